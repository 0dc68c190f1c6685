/* SPDX-License-Identifier: Apache-2.0 */
/* A program with an open dim is specialised by whichever session meets a shape first, once, while
 * others wait. */
#include "kiln.h"
#include "tests/concurrency/concurrency.h"

#include <pthread.h>
#include <string.h>

static const char text[] = "graph @open(%x: f32[N,4]) {\n"
                           "  %e = exp(%x) : f32[N,4]\n"
                           "  %y = add(%e, %x) : f32[N,4]\n"
                           "  return %y\n"
                           "}\n";

enum {
    THREADS = 4,
    SHAPES = 3,
};

static void *
work(void *data)
{
    KilnSession *session = kiln_session_new(data, NULL, NULL);
    REQUIRE(session);
    for (int64_t n = 1; n <= SHAPES; n++) {
        float input[SHAPES * 4];
        fill(input, (size_t)n * 4, (unsigned)n);
        const int64_t dims[] = { n, 4 };
        REQUIRE(kiln_session_bind_input_shaped(session, 0, input, 2, dims, NULL));
        REQUIRE(kiln_session_run(session, NULL));
        KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
        const float *got = kiln_session_output(session, 0, &info, NULL);
        REQUIRE(got && info.rank == 2 && info.dims[0] == n);
        for (int64_t i = 0; i < n * 4; i++)
            REQUIRE(got[i] > input[i]);
    }
    kiln_session_free(session);
    return NULL;
}

int
main(void)
{
    GBytes *bytes = g_bytes_new_static(text, strlen(text));
    KilnModel *model = kiln_model_load_bytes(bytes, "open.kiln", NULL);
    KilnProgram *program = model ? kiln_program_compile(model, NULL, NULL) : NULL;
    REQUIRE(program);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, work, program) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    kiln_program_unref(program);
    kiln_model_unref(model);
    g_bytes_unref(bytes);
    return 0;
}
