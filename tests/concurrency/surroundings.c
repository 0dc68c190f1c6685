/* SPDX-License-Identifier: Apache-2.0 */
/* What surrounds a run changes no bit of its results: the caller's rounding mode, denormal numbers,
 * a pool of the caller's, sessions that run at the same time, threads that cannot be made, and,
 * given `fork` as an argument, a child of fork(). */
#include "exec/team.h"
#include "kiln.h"
#include "tests/concurrency/concurrency.h"

#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

enum {
    PIXELS = 28 * 28,
    CLASSES = 10,
    CALLERS = 4,
};

static const char digits[] = KILN_SOURCE_DIR "/examples/digits/digits.onnx";
static float picture[PIXELS], tiny[PIXELS];

static KilnProgram *
compile(const KilnCompileOptions *options)
{
    g_autoptr(KilnModel) model = kiln_model_load(digits, NULL);
    KilnProgram *program = model ? kiln_program_compile(model, options, NULL) : NULL;
    REQUIRE(program);
    return program;
}

static void
run(KilnProgram *program, const KilnSessionOptions *options, const float *input, float *out)
{
    g_autoptr(KilnSession) session = kiln_session_new(program, options, NULL);
    REQUIRE(session && kiln_session_bind_input(session, 0, input, sizeof picture, NULL));
    for (int i = 0; i < 20; i++)
        REQUIRE(kiln_session_run(session, NULL));
    memcpy(out, kiln_session_output(session, 0, NULL, NULL), CLASSES * sizeof *out);
}

static void
expect_same(KilnProgram *program, const KilnSessionOptions *options, const float *want)
{
    float found[CLASSES];
    run(program, options, picture, found);
    REQUIRE(memcmp(found, want, sizeof found) == 0);
}

/* Built for OpenMP, Kiln leaves the vendor library's threads alone. */
#ifdef KILN_TEAM_OPENMP
static const gboolean own_kernels_only = TRUE;
#else
static const gboolean own_kernels_only = FALSE;
#endif

static void
check_floats(KilnProgram *program, const float *want)
{
    static const int modes[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 2;
    options.no_offload = own_kernels_only;
    for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
        fesetround(modes[i]);
        expect_same(program, NULL, want);
        g_autoptr(KilnProgram) other = compile(&options);
        REQUIRE(fegetround() == modes[i]);
        fesetround(FE_TONEAREST);
        expect_same(other, NULL, want);
    }
#if defined(__SSE__)
    float plain[CLASSES], flushed[CLASSES];
    run(program, NULL, tiny, plain);
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); /* denormal numbers are zeros */
    run(program, NULL, tiny, flushed);
    REQUIRE((_mm_getcsr() & 0x8040) == 0x8040);
    _mm_setcsr(before);
    REQUIRE(memcmp(plain, flushed, sizeof plain) == 0);
#endif
}

/* --- a pool of the caller's --- */

typedef struct {
    KilnParallelTask task;
    void *data;
    int i;
} Call;

static atomic_int calls;

static void *
run_call(void *data)
{
    Call *call = data;
    call->task(call->data, call->i);
    return NULL;
}

static void
all_at_once(void *pool, int n, KilnParallelTask task, void *data)
{
    REQUIRE(pool == &calls && n > 0 && n <= 8);
    atomic_fetch_add(&calls, 1);
    pthread_t threads[8];
    Call all[8];
    for (int i = 0; i < n; i++) {
        all[i] = (Call){ task, data, i };
        REQUIRE(pthread_create(&threads[i], NULL, run_call, &all[i]) == 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static void
one_by_one(void *pool, int n, KilnParallelTask task, void *data)
{
    REQUIRE(pool == &calls);
    atomic_fetch_add(&calls, 1);
    for (int i = n - 1; i >= 0; i--)
        task(data, i);
}

static void
check_pools(KilnProgram *program, const float *want)
{
    static const KilnParallelFor pools[] = { all_at_once, one_by_one };
    for (size_t i = 0; i < G_N_ELEMENTS(pools); i++) {
        KilnSessionOptions session = KILN_SESSION_OPTIONS_INIT;
        session.parallel_for = pools[i];
        session.pool = &calls;
        int before = atomic_load(&calls), workers = kiln_team_workers();
        expect_same(program, &session, want);
        REQUIRE(atomic_load(&calls) > before);
        KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
        options.threads = 3;
        options.no_offload = own_kernels_only;
        options.parallel_for = pools[i];
        options.pool = &calls;
        g_autoptr(KilnProgram) other = compile(&options);
        before = atomic_load(&calls);
        expect_same(other, NULL, want);
        REQUIRE(atomic_load(&calls) > before && kiln_team_workers() == workers);
    }
}

/* --- sessions at the same time --- */

typedef struct {
    KilnProgram *program;
    const float *want;
} Job;

static void *
run_job(void *data)
{
    const Job *job = data;
    for (int i = 0; i < 20; i++)
        expect_same(job->program, NULL, job->want);
    return NULL;
}

static void
check_sessions(KilnProgram *program, const float *want)
{
    pthread_t threads[CALLERS];
    Job job = { program, want };
    for (int i = 0; i < CALLERS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, run_job, &job) == 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    REQUIRE(kiln_team_workers() <= kiln_processors() - 1);
}

static void
check_fork(KilnProgram *program, const float *want)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        alarm(60);
        REQUIRE(kiln_team_workers() == 0);
        for (int i = 0; i < 10; i++)
            expect_same(program, NULL, want);
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_same(program, NULL, want);
}

int
main(int argc, char **argv)
{
    kiln_processors_set(4);
    fill(picture, PIXELS, 3);
    for (int i = 0; i < PIXELS; i++)
        tiny[i] = picture[i] * 1e-39f;
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 4;
    options.no_offload = own_kernels_only;
    g_autoptr(KilnProgram) program = compile(&options);
    float want[CLASSES];
    KilnSessionOptions alone = KILN_SESSION_OPTIONS_INIT;
    alone.threads = 1;
    run(program, &alone, picture, want);
    kiln_team_fail_threads(-1);
    expect_same(program, NULL, want);
    kiln_team_fail_threads(0);
    check_floats(program, want);
    check_pools(program, want);
    check_sessions(program, want);
    if (argc > 1 && strcmp(argv[1], "fork") == 0)
        check_fork(program, want);
    printf("ok\n");
    return 0;
}
