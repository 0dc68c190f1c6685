/* SPDX-License-Identifier: Apache-2.0 */
/* Folded constants under threads (CTF-32, CTF-35, CTF-36): all threads arrive at the first run
 * together and one of them folds; a fold that fails is reported to all who waited for it and made
 * again; buffers are evicted, and constants declared invalid, while other threads run. Every run
 * gives the bits that the unfolded program gives. The same where nothing is folded and the weights
 * of the first run are packed. */
#include "tests/concurrency/concurrency.h"

#include "graph/base/alloc.h"
#include "kiln.h"
#include "tests/fold_case.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    THREADS = 8,
    RUNS = 1000 / THREADS,
    ROUNDS = 20,
};

typedef struct {
    KilnProgram *program;
    pthread_barrier_t *barrier;
    const float *w2;
    const float *want;
    bool inject; /* an allocation of the first run fails */
    unsigned failures;
} Job;

/* Nothing to fold: the weights are read as they are given. */
static const char mlp_packed[] = "graph @mlp" MLP_SIGNATURE " {\n"
                                 "  %a = matmul(%x, %w1) : f32[1,16]\n"
                                 "  %b = matmul(%a, %w2) : f32[1,16]\n"
                                 "  return %b\n"
                                 "}\n";

static float x[MLP_WIDTH], w1[MLP_WEIGHT], w2[MLP_WEIGHT];

static KilnProgram *
compile(const char *text, KilnConstantCache *cache, const char *directory)
{
    g_autoptr(GBytes) bytes = g_bytes_new_static(text, strlen(text));
    g_autoptr(GBytes) value = g_bytes_new_static(w1, sizeof w1);
    const KilnConstantInput constant = { "w1", KILN_CONSTANT_COMPILE, value };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 1;
    options.constants = &constant;
    options.n_constants = 1;
    options.cache = cache;
    options.cache_dir = directory;
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "mlp.kiln", NULL);
    KilnProgram *program = model ? kiln_program_compile(model, &options, NULL) : NULL;
    REQUIRE(program);
    return program;
}

static KilnSession *
open_session(KilnProgram *program, const float *weights)
{
    KilnSession *session = kiln_session_new(program, NULL, NULL);
    REQUIRE(session);
    REQUIRE(kiln_session_bind_input(session, 0, x, sizeof x, NULL));
    REQUIRE(kiln_session_bind_input(session, 2, weights, sizeof w2, NULL));
    return session;
}

/* What @text gives where one thread runs it. */
static void
compute(const char *text, const float *weights, float *out)
{
    KilnProgram *plain = compile(text, NULL, NULL);
    KilnSession *session = open_session(plain, weights);
    REQUIRE(kiln_session_run(session, NULL));
    memcpy(out, kiln_session_output(session, 0, NULL, NULL), MLP_WIDTH * sizeof *out);
    kiln_session_free(session);
    kiln_program_unref(plain);
}

static void
expect_output(KilnSession *session, const float *want)
{
    const void *got = kiln_session_output(session, 0, NULL, NULL);
    REQUIRE(got && memcmp(got, want, MLP_WIDTH * sizeof *want) == 0);
}

static void *
work(void *data)
{
    Job *job = data;
    KilnSession *session = open_session(job->program, job->w2);
    pthread_barrier_wait(job->barrier);
    kiln_alloc_inject_failure(job->inject ? 1 : 0);
    for (int i = 0; i < RUNS;) {
        g_autoptr(GError) error = NULL;
        if (kiln_session_run(session, &error)) {
            expect_output(session, job->want);
            i++;
        } else {
            REQUIRE(g_error_matches(error, KILN_ERROR, KILN_ERROR_MEMORY));
            job->failures++;
        }
    }
    kiln_alloc_inject_failure(0);
    /* What a session found stays until the session goes. */
    pthread_barrier_wait(job->barrier);
    kiln_session_free(session);
    return NULL;
}

/* Starts one thread per job; @meanwhile runs beside them. */
static void
run_jobs(Job *jobs, void (*meanwhile)(KilnProgram *, KilnConstantCache *), KilnConstantCache *cache)
{
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    REQUIRE(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++) {
        jobs[i].barrier = &barrier;
        REQUIRE(pthread_create(&threads[i], NULL, work, &jobs[i]) == 0);
    }
    if (meanwhile)
        meanwhile(jobs[0].program, cache);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
}

static void
set_jobs(Job *jobs, KilnProgram *program, const float *want)
{
    for (int i = 0; i < THREADS; i++)
        jobs[i] = (Job){ .program = program, .w2 = w2, .want = want };
}

/* CTF-32: fold_runs is 1 over 1000 runs of 8 threads. */
static void
folds_once(const char *text, const float *want)
{
    Job jobs[THREADS];
    KilnProgram *program = compile(text, NULL, NULL);
    set_jobs(jobs, program, want);
    run_jobs(jobs, NULL, NULL);
    REQUIRE(kiln_program_fold_runs(program) == 1);
    kiln_program_unref(program);
}

/* CTF-36: whoever folds first meets a failure; who waited meets the same one; all try again. */
static void
fails_and_retries(const float *want)
{
    for (int round = 0; round < ROUNDS; round++) {
        Job jobs[THREADS];
        KilnProgram *program = compile(mlp_three, NULL, NULL);
        set_jobs(jobs, program, want);
        for (int i = 0; i < THREADS; i++)
            jobs[i].inject = true;
        run_jobs(jobs, NULL, NULL);
        unsigned failures = 0;
        for (int i = 0; i < THREADS; i++)
            failures += jobs[i].failures;
        REQUIRE(failures >= 1);
        REQUIRE(kiln_program_fold_runs(program) == 1);
        kiln_program_unref(program);
    }
}

static void
evict(KilnProgram *program, KilnConstantCache *cache)
{
    for (int i = 0; i < RUNS; i++) {
        kiln_constant_cache_set_capacity(cache, 0);
        kiln_constant_cache_set_capacity(cache, -1);
        if (i % 8 == 0)
            kiln_program_invalidate_constants(program);
    }
}

/* CTF-35: eviction during runs. */
static void
evicts_during_runs(const char *text, const float *want)
{
    Job jobs[THREADS];
    KilnConstantCache *cache = kiln_constant_cache_new(-1);
    KilnProgram *program = compile(text, cache, NULL);
    set_jobs(jobs, program, want);
    run_jobs(jobs, evict, cache);
    kiln_program_unref(program);
    KilnConstantCacheStats stats = KILN_CONSTANT_CACHE_STATS_INIT;
    kiln_constant_cache_stats(cache, &stats, NULL);
    REQUIRE(stats.bytes == 0 && stats.entries == 0 && stats.weight_bytes == 0);
    kiln_constant_cache_unref(cache);
}

/* CTF-31, CTF-42: sessions with other weights have entries of their own, whoever comes first; with
 * no capacity at all each is computed as it is needed. */
static void
keeps_apart(const char *text, const float *want, int64_t capacity)
{
    static float others[MLP_WEIGHT];
    float want_others[MLP_WIDTH];
    mlp_fill(others, MLP_WEIGHT, 9);
    compute(text == mlp_three ? mlp_plain : text, others, want_others);

    Job jobs[THREADS];
    KilnConstantCache *cache = kiln_constant_cache_new(capacity);
    KilnProgram *program = compile(text, cache, NULL);
    set_jobs(jobs, program, want);
    for (int i = 1; i < THREADS; i += 2) {
        jobs[i].w2 = others;
        jobs[i].want = want_others;
    }
    run_jobs(jobs, NULL, NULL);
    KilnConstantCacheStats stats = KILN_CONSTANT_CACHE_STATS_INIT;
    kiln_constant_cache_stats(cache, &stats, NULL);
    REQUIRE(capacity == 0 ? stats.bytes == 0 : stats.fills == 2);
    kiln_program_unref(program);
    kiln_constant_cache_unref(cache);
}

/* Programs that share nothing but a directory, as processes do. */
static void
shares_directory(const float *want)
{
    g_autofree char *directory = g_dir_make_tmp("kiln-fold-XXXXXX", NULL);
    REQUIRE(directory);
    Job jobs[THREADS];
    for (int i = 0; i < THREADS; i++)
        jobs[i] = (Job){ .program = compile(mlp_two, NULL, directory), .w2 = w2, .want = want };
    run_jobs(jobs, NULL, NULL);
    for (int i = 0; i < THREADS; i++)
        kiln_program_unref(jobs[i].program);
    KilnProgram *late = compile(mlp_two, NULL, directory);
    KilnSession *session = open_session(late, w2);
    REQUIRE(kiln_session_run(session, NULL));
    expect_output(session, want);
    REQUIRE(kiln_program_fold_runs(late) == 0);
    kiln_session_free(session);
    kiln_program_unref(late);
    g_autoptr(GDir) files = g_dir_open(directory, 0, NULL);
    for (const char *name; (name = g_dir_read_name(files));) {
        REQUIRE(g_str_has_suffix(name, ".kiln-fold"));
        g_autofree char *path = g_build_filename(directory, name, NULL);
        REQUIRE(remove(path) == 0);
    }
    REQUIRE(remove(directory) == 0);
}

int
main(void)
{
    float want[MLP_WIDTH], packed[MLP_WIDTH];
    mlp_fill(x, MLP_WIDTH, 1);
    mlp_fill(w1, MLP_WEIGHT, 2);
    mlp_fill(w2, MLP_WEIGHT, 3);
    compute(mlp_plain, w2, want);
    compute(mlp_packed, w2, packed);

    folds_once(mlp_two, want);
    folds_once(mlp_three, want);
    fails_and_retries(want);
    evicts_during_runs(mlp_two, want);
    evicts_during_runs(mlp_packed, packed);
    keeps_apart(mlp_three, want, -1);
    keeps_apart(mlp_three, want, 0);
    keeps_apart(mlp_packed, packed, -1);
    keeps_apart(mlp_packed, packed, 0);
    shares_directory(want);
    return 0;
}
