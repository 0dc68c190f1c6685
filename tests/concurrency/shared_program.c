/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads open sessions of one program and run them at the same time; each gets the bits that
 * one session alone gets for its input. */
#include "kiln.h"
#include "tests/concurrency/concurrency.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 4,
    RUNS = 8,
    PIXELS = 28 * 28,
    CLASSES = 10,
};

typedef struct {
    KilnProgram *program;
    unsigned seed;
    float want[CLASSES];
} Job;

static void
run_once(KilnSession *session, unsigned seed, float out[CLASSES])
{
    float *picture = malloc(PIXELS * sizeof *picture);
    REQUIRE(picture);
    fill(picture, PIXELS, seed);
    REQUIRE(kiln_session_bind_input(session, 0, picture, PIXELS * sizeof *picture, NULL));
    REQUIRE(kiln_session_run(session, NULL));
    memcpy(out, kiln_session_output(session, 0, NULL, NULL), CLASSES * sizeof *out);
    free(picture);
}

static void *
work(void *data)
{
    Job *job = data;
    KilnSession *session = kiln_session_new(job->program, NULL, NULL);
    REQUIRE(session);
    for (int i = 0; i < RUNS; i++) {
        float got[CLASSES];
        run_once(session, job->seed, got);
        REQUIRE(memcmp(got, job->want, sizeof got) == 0);
    }
    kiln_session_free(session);
    return NULL;
}

int
main(void)
{
    KilnModel *model = kiln_model_load(KILN_SOURCE_DIR "/examples/digits/digits.onnx", NULL);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 2;
    KilnProgram *program = model ? kiln_program_compile(model, &options, NULL) : NULL;
    REQUIRE(program);
    Job jobs[THREADS];
    KilnSession *alone = kiln_session_new(program, NULL, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = (Job){ .program = program, .seed = i };
        run_once(alone, i, jobs[i].want);
    }
    kiln_session_free(alone);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, work, &jobs[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    kiln_program_unref(program);
    kiln_model_unref(model);
    return 0;
}
