/* SPDX-License-Identifier: Apache-2.0 */
/* Weights are packed by a team: threads that compile the same model at the same time, for teams of
 * every size, pack the same bytes, which their programs share. */
#include "kiln.h"
#include "tests/concurrency/concurrency.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    THREADS = 4,
};

/* Groups of small packings, and packings that are groups of their own, of every kind of kernel. */
static const char text[] =
    "func @f {\n"
    "  weight @w : f32[300,2100] const\n  weight @v : f32[300,40] const\n"
    "  weight @k : f32[96,100,3,3] const\n  weight @l : f32[20,100,3,3] const\n"
    "  weight @d : f32[100,1,3,3] const\n  weight @t : f32[100,30,2,2] const\n"
    "  input @x : f32[7,300]\n  input @p : f32[1,100,9,9]\n"
    "  output @y : f32[7,2100]\n  output @z : f32[7,40]\n  output @q : f32[1,20,9,9]\n"
    "  gemm @out @y, @in @x, @in @w, _\n  matmul @out @z, @in @x, @in @v\n"
    "  %a = alloc : f32[1,100,9,9]\n"
    "  conv @out %a, @in @p, @in @d, _ {group=100, pads=[1,1,1,1]}\n"
    "  %b = alloc : f32[1,96,9,9]\n"
    "  conv @out %b, @in %a, @in @k, _ {algorithm=\"winograd\", pads=[1,1,1,1]}\n"
    "  %c = alloc : f32[1,30,18,18]\n"
    "  conv_transpose @out %c, @in %a, @in @t, _ {strides=[2,2]}\n"
    "  conv @out @q, @in %a, @in @l, _ {pads=[1,1,1,1]}\n"
    "  dealloc %a\n  dealloc %b\n  dealloc %c\n}\n"
    "constants { @w = random_uniform(seed=1, low=-1, high=1) : f32[300,2100]\n"
    "  @v = random_uniform(seed=2, low=-1, high=1) : f32[300,40]\n"
    "  @k = random_uniform(seed=3, low=-1, high=1) : f32[96,100,3,3]\n"
    "  @l = random_uniform(seed=4, low=-1, high=1) : f32[20,100,3,3]\n"
    "  @d = random_uniform(seed=5, low=-1, high=1) : f32[100,1,3,3]\n"
    "  @t = random_uniform(seed=6, low=-1, high=1) : f32[100,30,2,2] }\n";

typedef struct {
    KilnConstantCache *cache;
    int threads;
    KilnProgram *program;
} Job;

static KilnProgram *
compile(KilnConstantCache *cache, int threads)
{
    GBytes *bytes = g_bytes_new_static(text, strlen(text));
    KilnModel *model = kiln_model_load_bytes(bytes, "packing.kiln", NULL);
    KilnPipeline *none = kiln_pipeline_load("none", NULL);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = threads;
    options.cache = cache;
    options.pipeline = none;
    KilnProgram *program = model ? kiln_program_compile(model, &options, NULL) : NULL;
    REQUIRE(program);
    kiln_pipeline_unref(none);
    kiln_model_unref(model);
    g_bytes_unref(bytes);
    return program;
}

static void *
work(void *data)
{
    Job *job = data;
    job->program = compile(job->cache, job->threads);
    return NULL;
}

int
main(void)
{
    KilnConstantCache *cache = kiln_constant_cache_new(-1);
    KilnProgram *alone = compile(cache, 1);
    KilnConstantCacheStats before = KILN_CONSTANT_CACHE_STATS_INIT,
                           after = KILN_CONSTANT_CACHE_STATS_INIT;
    kiln_constant_cache_stats(cache, &before, NULL);
    REQUIRE(before.weight_bytes > 4 * (300 * 2140 + 36 * 96 * 100));
    Job jobs[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (Job){ cache, i + 1, NULL };
        REQUIRE(pthread_create(&threads[i], NULL, work, &jobs[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    /* Every block was found among those of the first program: it has the same bytes. */
    kiln_constant_cache_stats(cache, &after, NULL);
    REQUIRE(after.weight_bytes == before.weight_bytes);
    REQUIRE(after.shared_weights == before.shared_weights + THREADS * 6);
    for (int i = 0; i < THREADS; i++)
        kiln_program_unref(jobs[i].program);
    kiln_program_unref(alone);
    kiln_constant_cache_unref(cache);
    printf("weights are packed in the same bytes for 1, 2, 3 and 4 threads\n");
    return 0;
}
