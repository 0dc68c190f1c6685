/* SPDX-License-Identifier: Apache-2.0 */
/* One copy of each weight, measured in resident memory: for two programs of one model, for eight
 * sessions of a program, and for what eight sessions fold at their first run. Arguments: models. */
#include "kiln.h"
#include "tests/concurrency/concurrency.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SESSIONS = 8,
    WIDTH = 1024,
    SLACK = 8 << 20, /* of what is no weight: graphs, heaps with holes */
};

/* Bytes of the process that lie in memory, without what is free. */
static int64_t
resident(void)
{
    long size, pages;
    malloc_trim(0);
    FILE *file = fopen("/proc/self/statm", "r");
    REQUIRE(file && fscanf(file, "%ld %ld", &size, &pages) == 2);
    fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static void
require_growth(const char *what, int64_t before, int64_t limit)
{
    int64_t growth = resident() - before;
    printf("%s: %.1f MB, at most %.1f\n", what, (double)growth / 1e6, (double)limit / 1e6);
    REQUIRE(growth <= limit);
}

/* A session on zeros that has run once; its inputs are leaked into @inputs to be freed. */
static KilnSession *
run_session(KilnProgram *program, GPtrArray *inputs)
{
    KilnSession *session = kiln_session_new(program, NULL, NULL);
    REQUIRE(session);
    for (unsigned i = 0; i < kiln_program_n_inputs(program); i++) {
        size_t size = (size_t)kiln_program_input(program, i)->bytes;
        void *data = calloc(1, size);
        g_ptr_array_add(inputs, data);
        REQUIRE(data && kiln_session_bind_input(session, i, data, size, NULL));
    }
    REQUIRE(kiln_session_run(session, NULL));
    return session;
}

static int64_t
io_bytes(const KilnProgram *program)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < kiln_program_n_inputs(program); i++)
        sum += kiln_program_input(program, i)->bytes;
    for (unsigned i = 0; i < kiln_program_n_outputs(program); i++)
        sum += kiln_program_output(program, i)->bytes;
    return sum;
}

static void
measure_model(const char *path)
{
    g_autoptr(KilnModel) model = kiln_model_load(path, NULL);
    REQUIRE(model);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 1;
    g_autoptr(KilnProgram) first = kiln_program_compile(model, &options, NULL);
    REQUIRE(first);
    KilnMemoryReport report = KILN_MEMORY_REPORT_INIT;
    kiln_program_memory(first, &report, NULL);
    printf("%s: %.1f MB of weights\n", path, (double)report.weights / 1e6);

    int64_t before = resident();
    g_autoptr(KilnProgram) second = kiln_program_compile(model, &options, NULL);
    REQUIRE(second);
    require_growth("  a second program", before, report.weights / 8 + SLACK);

    before = resident();
    KilnSession *sessions[SESSIONS];
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func(free);
    for (int i = 0; i < SESSIONS; i++)
        sessions[i] = run_session(i % 2 ? second : first, inputs);
    int64_t own = report.arena + io_bytes(first);
    require_growth("  eight sessions", before, SESSIONS * own + report.weights / 8 + SLACK);
    for (int i = 0; i < SESSIONS; i++)
        kiln_session_free(sessions[i]);
}

static const char folded_text[] = "graph @runtime_fold(%w: f32[1024,1024] constant=run) {\n"
                                  "  %f = transpose(%w) {perm=[1,0]} : f32[1024,1024]\n"
                                  "  return %f\n"
                                  "}\n"
                                  "graph @g(%x: f32[1,1024], %f: f32[1024,1024]) {\n"
                                  "  %y = matmul(%x, %f) : f32[1,1024]\n"
                                  "  return %y\n"
                                  "}\n"
                                  "fold(%x: f32[1,1024], %w: f32[1024,1024] constant=run) {\n"
                                  "  %f = run @runtime_fold(%w)\n"
                                  "}\n";

static void
measure_folded(void)
{
    enum {
        WEIGHT = WIDTH * WIDTH * sizeof(float)
    };
    g_autoptr(GBytes) bytes = g_bytes_new_static(folded_text, strlen(folded_text));
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "folded.kiln", NULL);
    g_autoptr(KilnConstantCache) cache = kiln_constant_cache_new(-1);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 1;
    options.cache = cache;
    KilnProgram *programs[2];
    KilnSession *sessions[SESSIONS];
    float *x = calloc(WIDTH, sizeof *x), *w = malloc(WEIGHT);
    REQUIRE(x && w);
    memset(w, 1, WEIGHT);
    for (int i = 0; i < 2; i++)
        REQUIRE((programs[i] = kiln_program_compile(model, &options, NULL)));
    int64_t before = resident();
    for (int i = 0; i < SESSIONS; i++) {
        REQUIRE((sessions[i] = kiln_session_new(programs[i % 2], NULL, NULL)));
        REQUIRE(kiln_session_bind_input(sessions[i], 0, x, WIDTH * sizeof *x, NULL));
        REQUIRE(kiln_session_bind_input(sessions[i], 1, w, WEIGHT, NULL));
        REQUIRE(kiln_session_run(sessions[i], NULL));
    }
    require_growth("folded at the first run", before, 2 * WEIGHT);
    KilnConstantCacheStats stats = KILN_CONSTANT_CACHE_STATS_INIT;
    kiln_constant_cache_stats(cache, &stats, NULL);
    REQUIRE(stats.bytes == WEIGHT && stats.fills == 1);
    for (int i = 0; i < SESSIONS; i++)
        kiln_session_free(sessions[i]);
    for (int i = 0; i < 2; i++)
        kiln_program_unref(programs[i]);
    free(x);
    free(w);
}

int
main(int argc, char **argv)
{
    measure_folded();
    for (int i = 1; i < argc; i++)
        measure_model(argv[i]);
    return 0;
}
