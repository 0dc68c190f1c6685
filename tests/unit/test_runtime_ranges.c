/* SPDX-License-Identifier: Apache-2.0 */
/* What callers say of open dims: bounds, divisors, hints; what is made ahead of runs for them. */
#include "graph/dim.h"
#include "kiln.h"
#include "runtime/program.h"
#include "tests/unit/runtime_case.h"

#include <string.h>

static const char pair[] = "graph @f(%a: f32[N,2], %b: f32[N,M]) {\n"
                           "  %c = concat(%a, %b) {axis=1} : f32[N,?]\n"
                           "  %y = neg(%c) : f32[N,?]\n"
                           "  return %y\n"
                           "}\n";
static const char weighted[] = "graph @f(%x: f32[N,8]) {\n"
                               "  %w = const @w : f32[8,16]\n"
                               "  %a = matmul(%x, %w) : f32[N,16]\n"
                               "  %b = softmax(%a) {axis=1} : f32[N,16]\n"
                               "  %y = add(%b, %a) : f32[N,16]\n"
                               "  return %y\n"
                               "}\nconstants { @w = random_normal(seed=1, std=1) : f32[8,16] }\n";

static KilnProgram *
program_with(KilnModel *model, const KilnDimRange *ranges, unsigned n, GError **error)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.ranges = ranges;
    options.n_ranges = n;
    return kiln_program_compile(model, &options, error);
}

static void
expect_refused(const KilnDimRange *ranges, unsigned n, const char *text)
{
    GError *error = NULL;
    g_autoptr(KilnModel) model = model_of(pair);
    cr_expect_null(program_with(model, ranges, n, &error));
    expect_error(&error, KILN_ERROR_USAGE, text);
}

static void
run_shaped(KilnSession *session, int64_t n, int64_t m)
{
    static const float data[4096];
    bind_shaped(session, 0, data, DIMS(n, 2));
    bind_shaped(session, 1, data, DIMS(n, m));
}

Test(runtime_ranges, numbers_outside_of_bounds)
{
    const KilnDimRange ranges[] = { { "N", 2, 64, 4, 0 }, { .name = "M", .most = 5 } };
    GError *error = NULL;
    g_autoptr(KilnModel) model = model_of(pair);
    g_autoptr(KilnProgram) program = program_with(model, ranges, 2, &error);
    cr_assert(program, "%s", error ? error->message : "");
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    run_shaped(session, 4, 1);
    run(session);
    run_shaped(session, 6, 1);
    run_fails(session, KILN_ERROR_SHAPE,
              "input a: dim N: expected a multiple of 4 in 4..64, found 6");
    run_shaped(session, 68, 1);
    run_fails(session, KILN_ERROR_SHAPE,
              "input a: dim N: expected a multiple of 4 in 4..64, found 68");
    run_shaped(session, 64, 6);
    run_fails(session, KILN_ERROR_SHAPE, "input b: dim M: expected 1..5, found 6");
    run_shaped(session, 64, 0);
    run_fails(session, KILN_ERROR_SHAPE, "input b: dim M: expected 1..5, found 0");
    run_shaped(session, 64, 5);
    run(session);
    cr_expect_eq(program->specialisations->len, 0);
    cr_expect_eq(program->templates->len, 1);
}

/* Facts are those of a program: the model and its other programs do not have them. */
Test(runtime_ranges, programs_of_one_model)
{
    const KilnDimRange narrow = { .name = "N", .most = 8 }, wide = { .name = "N", .most = 100 };
    GError *error = NULL;
    g_autoptr(KilnModel) model = model_of(pair);
    g_autoptr(KilnProgram) small = program_with(model, &narrow, 1, &error);
    g_autoptr(KilnProgram) big = program_with(model, &wide, 1, &error);
    g_autoptr(KilnProgram) any = program_with(model, NULL, 0, &error);
    KilnProgram *programs[] = { small, big, any };
    const int64_t most[] = { 8, 100, 1000 };
    for (int p = 0; p < 3; p++) {
        cr_assert(programs[p], "%s", error ? error->message : "");
        g_autoptr(KilnSession) session = kiln_session_new(programs[p], NULL, NULL);
        run_shaped(session, most[p], 1);
        run(session);
        run_shaped(session, most[p] + 1, 1);
        if (p < 2)
            run_fails(session, KILN_ERROR_SHAPE, "dim N: expected 1..");
        else
            run(session);
    }
}

Test(runtime_ranges, bounds_that_leave_one_number)
{
    const KilnDimRange ranges[] = { { "N", 3, 3, 0, 0 }, { .name = "M", .least = 2, .most = 2 } };
    GError *error = NULL;
    g_autoptr(KilnModel) model = model_of(pair);
    g_autoptr(KilnProgram) program = program_with(model, ranges, 2, &error);
    cr_assert(program, "%s", error ? error->message : "");
    cr_expect_eq(kiln_program_output(program, 0)->bytes, 3 * 4 * 4);
    cr_expect(!program->open);
}

Test(runtime_ranges, statements_that_cannot_hold)
{
    const KilnDimRange unknown = { .name = "Q", .most = 8 }, nameless = { .most = 8 };
    const KilnDimRange order = { "N", 8, 7, 0, 0 }, negative = { "N", -2, 7, 0, 0 };
    const KilnDimRange none = { "N", 9, 15, 8, 0 }, divisor = { .name = "N", .multiple = -8 };
    const KilnDimRange hint = { "N", 1, 8, 0, 9 };
    const KilnDimRange twice[] = { { "N", 1, 8, 0, 0 }, { "N", 9, 16, 0, 0 } };
    expect_refused(&unknown, 1, "dim range: expected an open dim (N, M), found Q");
    expect_refused(&nameless, 1, "dim range: expected an open dim (N, M), found NULL");
    expect_refused(&order, 1, "dim N: expected bounds of 0 to 2147483647 in order, found 8..7");
    expect_refused(&negative, 1, "in order, found -2..7");
    expect_refused(&none, 1, "dim N: expected a multiple of 8 in 9..15, which no number is");
    expect_refused(&divisor, 1, "dim N: expected a divisor of 1 to 2147483647, found -8");
    expect_refused(&hint, 1, "dim N: expected a hint in 1..8, found 9");
    expect_refused(twice, 2, "dim N: expected one range, found 1..8 and 9..16");
}

Test(runtime_ranges, bounds_beyond_those_that_nobody_states)
{
    const KilnDimRange far = { "N", 2, 100000000, 0, 0 };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    KilnDimFacts facts = { 0 };
    options.ranges = &far;
    options.n_ranges = 1;
    g_autoptr(KilnProgram) program = program_of(pair, &options);
    cr_assert(kiln_dim_facts(program->inputs.types[0].open[0], &facts));
    cr_expect_eq(facts.lo, 2);
    cr_expect_eq(facts.hi, 100000000);
}

/* --- shapes that leave dims open --- */

Test(runtime_ranges, shapes_of_some_dims)
{
    const KilnShape shape = { "b", 2, { -1, 3 } }, wrong = { "b", 2, { -2, 3 } };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    GError *error = NULL;
    options.shapes = &shape;
    options.n_shapes = 1;
    g_autoptr(KilnProgram) program = program_of(pair, &options);
    const KilnTensorInfo *info = kiln_program_output(program, 0);
    cr_expect_eq(info->dims[0], -1);
    cr_expect_str_eq(info->dim_names[0], "N");
    cr_expect_eq(info->dims[1], 5);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    static const float data[64];
    for (int64_t n = 1; n < 4; n++) {
        bind_shaped(session, 0, data, DIMS(n, 2));
        bind_shaped(session, 1, data, DIMS(n, 3));
        run(session);
    }
    cr_expect_eq(program->templates->len, 1);
    cr_expect(!kiln_session_bind_input_shaped(session, 1, data, DIMS(1, 4), &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input b: expected f32[N,3], found f32[1,4]");
    g_autoptr(KilnModel) model = model_of(pair);
    options.shapes = &wrong;
    cr_expect_null(kiln_program_compile(model, &options, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input b: expected f32[N,M], found f32[");
}

/* --- what is made ahead --- */

Test(runtime_ranges, prepared_program_has_nothing_to_compile)
{
    const KilnShape shape = { "x", 2, { 5, 8 } };
    GError *error = NULL;
    g_autoptr(KilnProgram) program = program_of(weighted, NULL);
    cr_expect_eq(program->templates->len, 0);
    must(kiln_program_prepare(program, &shape, 1, &error), error);
    cr_assert_eq(program->templates->len, 1);
    const void *template = g_ptr_array_index(program->templates, 0);
    must(kiln_program_prepare(program, NULL, 0, &error), error); /* for the hint */
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    static const float data[8 * 8];
    bind_shaped(session, 0, data, DIMS(7, 8));
    run(session);
    cr_expect_eq(program->templates->len, 1);
    cr_expect_eq(g_ptr_array_index(program->templates, 0), template);
    cr_expect_eq(program->specialisations->len, 0);
}

Test(runtime_ranges, shapes_that_do_not_fit)
{
    const KilnShape both[] = { { "a", 2, { 3, 2 } }, { "b", 2, { 4, 1 } } };
    const KilnShape width = { "a", 2, { 3, 4 } }, rank = { "a", 1, { 3 } };
    const KilnShape huge = { "b", 2, { INT64_C(1) << 40, INT64_C(1) << 40 } };
    GError *error = NULL;
    g_autoptr(KilnProgram) program = program_of(pair, NULL);
    cr_expect(!kiln_program_prepare(program, both, 2, &error));
    expect_error(&error, KILN_ERROR_SHAPE,
                 "dim N: expected one number, found 3 (input a) and 4 (input b)");
    cr_expect(!kiln_program_prepare(program, &width, 1, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input a: expected f32[N,2], found f32[3,4]");
    cr_expect(!kiln_program_prepare(program, &rank, 1, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input a: expected f32[N,2], found f32[3]");
    cr_expect(!kiln_program_prepare(program, &huge, 1, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input b: expected f32[N,M] of less than 2^63 bytes");
}

Test(runtime_ranges, shapes_that_values_decide)
{
    GError *error = NULL;
    g_autoptr(KilnProgram) program =
        program_of("graph @f(%x: f32[N], %s: i64[1]) {\n  %y = reshape(%x, %s) : f32[?]\n"
                   "  return %y\n}\n",
                   NULL);
    cr_expect(!kiln_program_prepare(program, NULL, 0, &error));
    expect_error(&error, KILN_ERROR_USAGE,
                 "input s: shapes depend on its value, which comes with a run");
}

static KilnMemoryReport
memory_for(KilnProgram *program, int64_t n)
{
    const KilnShape shape = { "x", 2, { n, 8 } };
    KilnMemoryReport report = KILN_MEMORY_REPORT_INIT;
    GError *error = NULL;
    must(kiln_program_memory_for(program, &shape, 1, &report, &error), error);
    return report;
}

Test(runtime_ranges, memory_of_shapes)
{
    const KilnDimRange range = { .name = "N", .most = 50 };
    KilnMemoryReport most = KILN_MEMORY_REPORT_INIT, closed = KILN_MEMORY_REPORT_INIT;
    GError *error = NULL;
    g_autoptr(KilnModel) model = model_of(weighted);
    g_autoptr(KilnProgram) open = program_with(model, NULL, 0, &error);
    g_autoptr(KilnProgram) bounded = program_with(model, &range, 1, &error);
    cr_expect(!kiln_program_memory_for(open, NULL, 0, &most, &error));
    expect_error(&error, KILN_ERROR_USAGE,
                 "input x: dim N: expected a number or an upper bound, found neither");
    KilnMemoryReport small = memory_for(open, 2), big = memory_for(open, 50);
    cr_expect_lt(small.arena, big.arena);
    cr_expect(big.lb_node <= big.lb_live && big.lb_live <= big.arena && big.arena <= big.sum);
    cr_expect_geq(big.weights, 8 * 16 * 4);
    cr_expect_eq(small.weights, big.weights);
    must(kiln_program_memory_for(bounded, NULL, 0, &most, &error), error);
    cr_expect_eq(most.arena, big.arena);
    cr_expect_eq(most.sum, big.sum);
    /* One arena for all runs. */
    cr_expect_eq(memory_for(bounded, 2).arena, most.arena);
    const KilnShape outside = { "x", 2, { 51, 8 } }, inside = { "x", 2, { 9, 8 } };
    cr_expect(!kiln_program_memory_for(bounded, &outside, 1, &most, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input x: dim N: expected 1..50, found 51");

    /* A program of numbers has them already. */
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.shapes = &inside;
    options.n_shapes = 1;
    g_autoptr(KilnProgram) program = kiln_program_compile(model, &options, &error);
    must(kiln_program_memory(program, &closed, &error), error);
    must(kiln_program_memory_for(program, &inside, 1, &most, &error), error);
    cr_expect_eq(memcmp(&closed, &most, sizeof most), 0);
    cr_expect(!kiln_program_memory_for(program, &outside, 1, &most, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input x: expected f32[9,8], found f32[51,8]");
}

/* Buffers lie where the bounds put them: the arena of a caller that is big enough once is so
 * always, and memory that no instruction wrote changes nothing. */
Test(runtime_ranges, one_arena_for_all_runs)
{
    const KilnDimRange range = { .name = "N", .most = 40 };
    GError *error = NULL;
    g_autoptr(KilnModel) model = model_of(weighted);
    g_autoptr(KilnProgram) bounded = program_with(model, &range, 1, &error);
    KilnMemoryReport report = KILN_MEMORY_REPORT_INIT;
    must(kiln_program_memory_for(bounded, NULL, 0, &report, &error), error);
    g_autofree char *memory = g_malloc((gsize)report.arena + 64);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.arena = memory + (64 - (uintptr_t)memory % 64) % 64;
    options.arena_bytes = (size_t)report.arena;
    options.poison = TRUE;
    g_autoptr(KilnSession) session = kiln_session_new(bounded, &options, NULL);
    g_autoptr(KilnSession) plain = session_of(weighted);
    static float data[40 * 8];
    for (int i = 0; i < 40 * 8; i++)
        data[i] = (float)(i % 7) - 3;
    for (int64_t n = 40; n > 0; n -= 3) {
        bind_shaped(session, 0, data, DIMS(n, 8));
        bind_shaped(plain, 0, data, DIMS(n, 8));
        run(session);
        run(plain);
        expect_floats(session, 0, kiln_session_output(plain, 0, NULL, NULL), DIMS(n, 16));
    }
}

/* Where a dim of 1 would be taken out there is no open program: bounds hold all the same. */
Test(runtime_ranges, programs_for_each_shape)
{
    const KilnDimRange range = { .name = "N", .most = 5 };
    GError *error = NULL;
    g_autoptr(KilnModel) model = model_of("graph @f(%x: f32[N,8]) {\n  %s = squeeze(%x) : f32[*]\n"
                                          "  %y = neg(%s) : f32[*]\n  return %y\n}\n");
    g_autoptr(KilnProgram) program = program_with(model, &range, 1, &error);
    cr_assert(program, "%s", error ? error->message : "");
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    static const float data[128];
    bind_shaped(session, 0, data, DIMS(5, 8));
    run(session);
    bind_shaped(session, 0, data, DIMS(6, 8));
    run_fails(session, KILN_ERROR_SHAPE, "input x: dim N: expected 1..5, found 6");
    must(kiln_program_prepare(program, &(KilnShape){ "x", 2, { 3, 8 } }, 1, &error), error);
    cr_expect_eq(program->specialisations->len, 2);
}
