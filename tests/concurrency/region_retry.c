/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of a loaded program are compiled by its first run. Where memory runs out then, that run
 * fails and the next one compiles them: threads that start together, each of which meets one failed
 * allocation, all get the results of the program that was saved. */
#include "tests/concurrency/concurrency.h"

#include "graph/base/alloc.h"
#include "kiln.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    THREADS = 4,
    ROUNDS = 8,
    ROWS = 16,
    WIDTH = 32,
};

/* To know a region's weight takes memory where the vendor wants it in another layout: a product's
 * or a convolution's, as the instruction set has it. */
static const char text[] = "graph @f(%x: f32[16,32]) {\n"
                           "  %y = vendor.graph @r0(%x) body(%a: f32[16,32]) {\n"
                           "    %w = const @w : f32[32,32]\n"
                           "    %m = matmul(%a, %w) : f32[16,32]\n"
                           "    %r = relu(%m) : f32[16,32]\n"
                           "    return %r\n"
                           "  } : f32[16,32]\n"
                           "  %four = const @four : i64[4]\n"
                           "  %two = const @two : i64[2]\n"
                           "  %image = reshape(%y, %four) : f32[1,8,8,8]\n"
                           "  %z = vendor.graph @r1(%image) body(%b: f32[1,8,8,8]) {\n"
                           "    %v = const @v : f32[8,8,3,3]\n"
                           "    %c = conv(%b, %v) {pads=[1,1,1,1]} : f32[1,8,8,8]\n"
                           "    %s = relu(%c) : f32[1,8,8,8]\n"
                           "    return %s\n"
                           "  } : f32[1,8,8,8]\n"
                           "  %rows = reshape(%z, %two) : f32[16,32]\n"
                           "  return %rows\n"
                           "}\n"
                           "constants {\n"
                           "  @four = [1,8,8,8] : i64[4]\n"
                           "  @two = [16,32] : i64[2]\n"
                           "  @w = random_uniform(seed=1, low=-1, high=1) : f32[32,32]\n"
                           "  @v = random_uniform(seed=2, low=-1, high=1) : f32[8,8,3,3]\n"
                           "}\n";

typedef struct {
    KilnProgram *program;
    pthread_barrier_t *barrier;
    const float *want;
    unsigned failures;
} Job;

static float x[ROWS * WIDTH];

static KilnProgram *
compile(void)
{
    g_autoptr(GBytes) bytes = g_bytes_new_static(text, strlen(text));
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "region.kiln", NULL);
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_new();
    REQUIRE(kiln_pipeline_add(pipeline, "compile-offload", NULL));
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 1;
    options.pipeline = pipeline;
    KilnProgram *program = model ? kiln_program_compile(model, &options, NULL) : NULL;
    REQUIRE(program);
    return program;
}

static KilnSession *
open_session(KilnProgram *program)
{
    KilnSession *session = kiln_session_new(program, NULL, NULL);
    REQUIRE(session);
    REQUIRE(kiln_session_bind_input(session, 0, x, sizeof x, NULL));
    return session;
}

static void
expect_output(KilnSession *session, const float *want)
{
    const void *got = kiln_session_output(session, 0, NULL, NULL);
    REQUIRE(got && memcmp(got, want, sizeof x) == 0);
}

static void *
work(void *data)
{
    Job *job = data;
    KilnSession *session = open_session(job->program);
    pthread_barrier_wait(job->barrier);
    kiln_alloc_inject_failure(1);
    for (int i = 0; i < 4; i++) {
        g_autoptr(GError) error = NULL;
        if (kiln_session_run(session, &error)) {
            expect_output(session, job->want);
        } else {
            REQUIRE(g_error_matches(error, KILN_ERROR, KILN_ERROR_RUN));
            REQUIRE(strstr(error->message, "cannot allocate"));
            job->failures++;
        }
    }
    REQUIRE(job->failures <= 1); /* each thread meets one failed allocation */
    kiln_alloc_inject_failure(0);
    kiln_session_free(session);
    return NULL;
}

/* How many runs failed. */
static unsigned
run_together(const char *path, const float *want)
{
    Job jobs[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    KilnProgram *program = kiln_program_load(path, NULL, NULL);
    REQUIRE(program);
    REQUIRE(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (Job){ program, &barrier, want, 0 };
        REQUIRE(pthread_create(&threads[i], NULL, work, &jobs[i]) == 0);
    }
    unsigned failures = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        failures += jobs[i].failures;
    }
    pthread_barrier_destroy(&barrier);
    kiln_program_unref(program);
    return failures;
}

int
main(void)
{
    float want[ROWS * WIDTH];
    fill(x, G_N_ELEMENTS(x), 1);
    KilnProgram *program = compile();
    KilnSession *session = open_session(program);
    REQUIRE(kiln_session_run(session, NULL));
    memcpy(want, kiln_session_output(session, 0, NULL, NULL), sizeof want);
    kiln_session_free(session);
    g_autofree char *directory = g_dir_make_tmp("kiln-region-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(directory, "f.kiln-program", NULL);
    REQUIRE(kiln_program_save(program, path, NULL));
    kiln_program_unref(program); /* and with it what was compiled for it */
    for (int round = 0; round < ROUNDS; round++)
        REQUIRE(run_together(path, want) >= 1);
    REQUIRE(remove(path) == 0 && remove(directory) == 0);
    return 0;
}
