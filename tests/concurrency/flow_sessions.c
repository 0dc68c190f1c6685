/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of one program with branches and loops on several threads: its functions are bound once,
 * and each session iterates with shapes of its own. The other program has regions of the vendor,
 * where there is one, in a loop and in a branch: what is compiled for one session runs in all. */
#include "kiln.h"
#include "tests/concurrency/concurrency.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    THREADS = 8,
    RUNS = 40,
    MOST = 12, /* iterations */
    WIDTH = 16,
};

/* A row is added in each iteration. Where the sum of the rows is odd, they are negated. */
static const char text[] =
    "graph @f(%n: i64[], %x: f32[1,16], %odd: bool[]) {\n"
    "  %w = const @w : f32[16,16]\n"
    "  %rows, %sums = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[?,16]) {\n"
    "    %b = concat(%a, %x) : f32[?,16]\n"
    "    %p = matmul(%b, %w) : f32[?,16]\n"
    "    %s = reduce_sum(%p) {keepdims=false} : f32[]\n"
    "    return %go, %b, %s\n"
    "  } : f32[?,16], f32[?]\n"
    "  %y = if(%odd) then {\n"
    "    %m = neg(%rows) : f32[?,16]\n"
    "    return %m\n"
    "  } else {\n"
    "    %r = reduce_max(%rows) : f32[1,1]\n"
    "    %t = add(%r, %x) : f32[1,16]\n"
    "    return %t\n"
    "  } : f32[?,16]\n"
    "  return %y, %sums\n"
    "}\n"
    "constants { @w = splat(1) : f32[16,16] }\n";

/* Each product leaves rows of equal numbers as they are. */
static const char regions[] =
    "graph @f(%n: i64[], %x: f32[N,16], %odd: bool[]) {\n"
    "  %w = const @w : f32[16,16]\n"
    "  %rows = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[N,16]) {\n"
    "    %p = matmul(%a, %w) : f32[N,16]\n"
    "    %r = relu(%p) : f32[N,16]\n"
    "    return %go, %r\n"
    "  } : f32[N,16]\n"
    "  %y = if(%odd) then {\n"
    "    %q = matmul(%rows, %w) : f32[N,16]\n"
    "    %m = neg(%q) : f32[N,16]\n"
    "    return %m\n"
    "  } else {\n"
    "    return %rows\n"
    "  } : f32[N,16]\n"
    "  return %y\n"
    "}\n"
    "constants { @w = splat(0.0625) : f32[16,16] }\n";

static const char road[] = "partition-offload{when=always,min-us=0},compile-offload{min-us=0},dce";

typedef struct Work {
    KilnProgram *program;
    pthread_barrier_t *start;
    int64_t number;
    void (*run)(KilnSession *session, int64_t n, uint8_t odd, float value);
} Work;

static void
run_once(KilnSession *session, int64_t n, uint8_t odd, float value)
{
    float x[WIDTH];
    KilnTensorInfo rows = KILN_TENSOR_INFO_INIT, sums = KILN_TENSOR_INFO_INIT;
    for (int i = 0; i < WIDTH; i++)
        x[i] = value;
    REQUIRE(kiln_session_bind_input(session, 0, &n, sizeof n, NULL));
    REQUIRE(kiln_session_bind_input(session, 1, x, sizeof x, NULL));
    REQUIRE(kiln_session_bind_input(session, 2, &odd, 1, NULL));
    REQUIRE(kiln_session_run(session, NULL));
    const float *y = kiln_session_output(session, 0, &rows, NULL);
    const float *s = kiln_session_output(session, 1, &sums, NULL);
    REQUIRE(y && s && rows.dims[0] == (odd ? n + 1 : 1) && sums.dims[0] == n);
    REQUIRE(y[0] == (odd ? -value : 2 * value));
    for (int64_t i = 0; i < n; i++)
        REQUIRE(s[i] == (float)(i + 2) * WIDTH * WIDTH * value);
}

static void
run_regions(KilnSession *session, int64_t n, uint8_t odd, float value)
{
    float x[MOST * WIDTH];
    const int64_t dims[] = { n % 3 + 1, WIDTH };
    KilnTensorInfo rows = KILN_TENSOR_INFO_INIT;
    for (int64_t i = 0; i < dims[0] * WIDTH; i++)
        x[i] = value;
    REQUIRE(kiln_session_bind_input(session, 0, &n, sizeof n, NULL));
    REQUIRE(kiln_session_bind_input_shaped(session, 1, x, 2, dims, NULL));
    REQUIRE(kiln_session_bind_input(session, 2, &odd, 1, NULL));
    REQUIRE(kiln_session_run(session, NULL));
    const float *y = kiln_session_output(session, 0, &rows, NULL);
    REQUIRE(y && rows.dims[0] == dims[0]);
    for (int64_t i = 0; i < dims[0] * WIDTH; i++)
        REQUIRE(y[i] == (odd ? -value : value));
}

static void *
work(void *data)
{
    const Work *mine = data;
    pthread_barrier_wait(mine->start);
    KilnSession *session = kiln_session_new(mine->program, NULL, NULL);
    REQUIRE(session);
    for (int64_t i = 0; i < RUNS; i++)
        mine->run(session, (mine->number + i * 5) % MOST, (mine->number + i) & 1,
                  (float)(mine->number + 1));
    kiln_session_free(session);
    return NULL;
}

/* @graph under @pipeline, NULL for `default`, in sessions on all threads at once. */
static void
run_on_threads(const char *graph, KilnPipeline *pipeline,
               void (*run)(KilnSession *session, int64_t n, uint8_t odd, float value))
{
    g_autoptr(GBytes) bytes = g_bytes_new_static(graph, strlen(graph));
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "flow.kiln", NULL);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 2;
    options.pipeline = pipeline;
    g_autoptr(KilnProgram) program = model ? kiln_program_compile(model, &options, NULL) : NULL;
    REQUIRE(program);
    pthread_barrier_t start;
    pthread_t threads[THREADS];
    Work works[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    for (int t = 0; t < THREADS; t++) {
        works[t] = (Work){ program, &start, t, run };
        REQUIRE(pthread_create(&threads[t], NULL, work, &works[t]) == 0);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    pthread_barrier_destroy(&start);
}

int
main(void)
{
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_parse(road, NULL);
    REQUIRE(pipeline);
    run_on_threads(text, NULL, run_once);
    run_on_threads(regions, pipeline, run_regions);
    printf("%d runs on %d threads\n", 2 * RUNS * THREADS, THREADS);
    return 0;
}
