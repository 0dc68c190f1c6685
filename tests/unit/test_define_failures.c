/* SPDX-License-Identifier: Apache-2.0 */
/* Runs behind a run that failed where data decides dims: they do all that is due, so they give the
 * bits of a session that never failed. */
#include "ir/life.h"
#include "ir/plan.h"
#include "kiln.h"
#include "runtime/session.h"
#include "tests/unit/runtime_case.h"

#include <stdbool.h>
#include <string.h>

enum {
    MOST = 9,   /* elements of an input */
    RUNS = 600, /* of one session */
};

/* Two definitions. A gather in each of the three stages fails where a number is no index of %z. The
 * product in the last one needs scratch for the first number. */
static const char chained[] =
    "graph @f(%x: f32[N], %lines: f32[1,M], %first: i64[1]) {\n"
    "  %axis = const @axis : i64[1]\n  %z = squeeze(%lines, %axis) : f32[M]\n"
    "  %d = mul(%z, %z) : f32[M]\n"
    "  %a = gather(%d, %first) : f32[1]\n"
    "  %n = non_zero(%x) : i64[1,?]\n  %t = transpose(%n) : i64[?,1]\n"
    "  %v = gather_nd(%x, %t) : f32[?]\n"
    "  %vm = reduce_max(%v) : f32[1]\n  %vi = cast(%vm) {to=i64} : i64[1]\n"
    "  %b = gather(%d, %vi) : f32[1]\n"
    "  %w = sub(%v, %b) : f32[?]\n"
    "  %m = non_zero(%w) : i64[1,?]\n  %k = transpose(%m) : i64[?,1]\n"
    "  %u = gather_nd(%v, %k) : f32[?]\n"
    "  %um = reduce_min(%u) : f32[1]\n  %ui = cast(%um) {to=i64} : i64[1]\n"
    "  %c = gather(%z, %ui) : f32[1]\n"
    "  %p = concat(%v, %z, %a) {axis=0} : f32[?]\n"
    "  %q = concat(%u, %x, %c) {axis=0} : f32[?]\n"
    "  %r = mul(%q, %c) : f32[?]\n"
    "  %row = const @row : i64[2]\n  %column = const @column : i64[2]\n"
    "  %vw = cast(%v) {to=i64} : i64[?]\n  %uw = cast(%u) {to=i64} : i64[?]\n"
    "  %vr = reshape(%vw, %row) : i64[1,?]\n  %vc = reshape(%vw, %column) : i64[?,1]\n"
    "  %uc = reshape(%uw, %column) : i64[?,1]\n"
    "  %table = mul(%uc, %vr) : i64[?,?]\n  %sums = matmul(%table, %vc) : i64[?,1]\n"
    "  return %p, %r, %sums\n}\n"
    "constants { @axis = [0] : i64[1] @row = [1,-1] : i64[2] @column = [-1,1] : i64[2] }\n";

/* The number of elements that are kept comes from data, and may be more than there are. */
static const char kept[] =
    "graph @f(%x: f32[N], %lines: f32[1,M], %first: i64[1]) {\n"
    "  %axis = const @axis : i64[1]\n  %z = squeeze(%lines, %axis) : f32[M]\n"
    "  %n = non_zero(%x) : i64[1,?]\n  %t = transpose(%n) : i64[?,1]\n"
    "  %v = gather_nd(%x, %t) : f32[?]\n"
    "  %last = const @last : i64[1]\n"
    "  %i = cast(%lines) {to=i64} : i64[1,M]\n"
    "  %k = reduce_max(%i, %last) {keepdims=false} : i64[1]\n"
    "  %y, %at = top_k(%v, %k)\n"
    "  %s = concat(%y, %z, %v) {axis=0} : f32[?]\n"
    "  return %s, %at, %y\n}\n"
    "constants { @axis = [0] : i64[1] @last = [-1] : i64[1] }\n";

typedef struct {
    float x[MOST], z[MOST];
    int64_t n, m, first;
} Inputs;

static int64_t
draw(uint32_t *state, int64_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (int64_t)((uint64_t)(*state >> 8) * (uint64_t)below >> 24);
}

/* Half of the runs keep an input of the run before: then its numbers are those that failed. */
static void
draw_inputs(Inputs *in, uint32_t *state)
{
    if (draw(state, 2)) {
        in->n = 1 + draw(state, MOST);
        for (int64_t i = 0; i < in->n; i++)
            in->x[i] = (float)MAX(0, draw(state, MOST) - 3);
    }
    if (draw(state, 2)) {
        in->m = 2 + draw(state, MOST - 2);
        for (int64_t i = 0; i < in->m; i++)
            in->z[i] = (float)draw(state, 5);
    }
    in->first = draw(state, MOST) ? draw(state, in->m) : MOST;
}

static bool
run_on(KilnSession *session, const Inputs *in)
{
    g_autoptr(GError) error = NULL;
    bind_shaped(session, 0, in->x, DIMS(in->n));
    bind_shaped(session, 1, in->z, DIMS(1, in->m));
    bind_shaped(session, 2, &in->first, DIMS(1));
    bool good = kiln_session_run(session, &error);
    cr_assert(good || error->code == KILN_ERROR_RUN, "%d %s", error->code, error->message);
    return good;
}

static void
expect_same(KilnSession *expected, KilnSession *found, unsigned i, int run)
{
    GError *error = NULL;
    KilnTensorInfo a = KILN_TENSOR_INFO_INIT, b = KILN_TENSOR_INFO_INIT;
    const void *x = kiln_session_output(expected, i, &a, &error);
    const void *y = kiln_session_output(found, i, &b, &error);
    cr_assert(x && y, "run %d: %s", run, error ? error->message : "");
    cr_assert_eq(a.dims[0], b.dims[0], "run %d, output %u", run, i);
    cr_expect_eq(memcmp(x, y, (size_t)a.bytes), 0, "run %d, output %u: other bits", run, i);
}

/* Kernels were asked how much scratch they want for these numbers. */
static void
expect_same_sizes(const KilnSession *expected, const KilnSession *found, int run)
{
    const KilnMemoryPlan *a = expected->made->plan, *b = found->made->plan;
    cr_assert_eq(a->n_lives, b->n_lives);
    for (uint32_t i = 0; i < a->n_lives; i++)
        cr_expect_eq(a->lives[i].size, b->lives[i].size, "run %d, life %u: expected %d, found %d",
                     run, i, (int)a->lives[i].size, (int)b->lives[i].size);
}

/* Returns how many runs failed. */
static int
expect_runs(const char *text, const char *target, uint32_t seed)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.target = target;
    g_autoptr(KilnProgram) program = program_of(text, &options);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    Inputs in = { .n = 4, .m = 4 };
    int failed = 0;
    for (int run = 0; run < RUNS; run++) {
        draw_inputs(&in, &seed);
        g_autoptr(KilnSession) fresh = kiln_session_new(program, NULL, NULL);
        bool good = run_on(fresh, &in);
        cr_assert_eq(run_on(session, &in), good, "run %d", run);
        failed += !good;
        if (good)
            expect_same_sizes(fresh, session, run);
        for (unsigned i = 0; good && i < 3; i++)
            expect_same(fresh, session, i, run);
    }
    return failed;
}

Test(define_failures, a_call_between_definitions)
{
    for (uint32_t seed = 1; seed <= 3; seed++) {
        int failed = expect_runs(chained, "cpu", seed);
        cr_expect(failed > RUNS / 20 && failed < RUNS, "%d failed", failed);
    }
    expect_runs(chained, "ref", 4);
}

Test(define_failures, a_number_out_of_bounds)
{
    for (uint32_t seed = 1; seed <= 3; seed++) {
        int failed = expect_runs(kept, "cpu", seed);
        cr_expect(failed > RUNS / 20 && failed < RUNS, "%d failed", failed);
    }
}
