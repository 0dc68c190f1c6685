/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose data decides dims: one session runs with one count after another. */
#include "graph/dim.h"
#include "graph/dim/dim_defined.h"
#include "graph/text/text.h"
#include "ir/ir.h"
#include "runtime/open/instance.h"
#include "runtime/program.h"
#include "runtime/session.h"
#include "tests/unit/runtime_case.h"

#include "kiln.h"

#include <string.h>

/* The values that are not 0, doubled, and how many they are. */
static const char picked[] = "graph @f(%x: f32[6]) {\n"
                             "  %n = non_zero(%x) : i64[1,?]\n"
                             "  %i = transpose(%n) : i64[?,1]\n"
                             "  %v = gather_nd(%x, %i) : f32[?]\n"
                             "  %y = add(%v, %v) : f32[?]\n"
                             "  %s = reduce_sum(%y) : f32[1]\n"
                             "  return %y, %s\n}\n";

typedef struct {
    size_t n;
    float x[6], y[6], sum;
} Picked;

/* All, none, and counts between; the same one twice. */
static const Picked cases[] = {
    { 3, { 1, 0, 2, 0, 0, 4 }, { 2, 4, 8 }, 14 },
    { 6, { 1, 2, 3, 4, 5, 6 }, { 2, 4, 6, 8, 10, 12 }, 42 },
    { 0, { 0 }, { 0 }, 0 },
    { 3, { 0, 7, 0, 8, 9, 0 }, { 14, 16, 18 }, 48 },
    { 3, { 1, 1, 1, 0, 0, 0 }, { 2, 2, 2 }, 6 },
    { 1, { 0, 0, 0, 0, 0, 5 }, { 10 }, 10 },
};

static void
expect_cases(KilnSession *session)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        bind(session, 0, cases[i].x, sizeof cases[i].x);
        run(session);
        expect_floats(session, 0, cases[i].y, DIMS((int64_t)cases[i].n));
        expect_floats(session, 1, &cases[i].sum, DIMS(1));
    }
}

Test(define, counts_alternate)
{
    g_autoptr(KilnSession) session = session_of(picked);
    expect_cases(session);
    cr_expect(session->made->instance);
    cr_expect_eq(session->program->templates->len, 1);
    cr_expect_eq(session->program->specialisations->len, 0);
}

Test(define, on_the_reference)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.target = "ref";
    g_autoptr(KilnProgram) program = program_of(picked, &options);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    expect_cases(session);
}

Test(define, with_profile_and_poison)
{
    g_autoptr(KilnProgram) program = program_of(picked, NULL);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.profile = options.poison = true;
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, NULL);
    expect_cases(session);
    unsigned n;
    const KilnProfileEntry *const *entries = kiln_session_profile(session, &n);
    cr_assert(n > 0);
    for (unsigned i = 0; i < n; i++)
        cr_expect(*entries[i]->kernel && entries[i]->runs == G_N_ELEMENTS(cases));
}

/* Places do not depend on the counts: after one run nothing moves. */
Test(define, memory_stays)
{
    g_autoptr(KilnSession) session = session_of(picked);
    bind(session, 0, cases[0].x, sizeof cases[0].x);
    run(session);
    const char *arena = session->arena;
    const void *output = session->outputs[0].own;
    int64_t bytes = session->made->arena_bytes;
    expect_cases(session);
    cr_expect_eq(session->arena, arena);
    cr_expect_eq(session->outputs[0].own, output);
    cr_expect_eq(session->made->arena_bytes, bytes);
}

/* Calls behind the definition are made ready for another count, and not for the same one. */
Test(define, nothing_is_done_for_the_same_count)
{
    g_autoptr(KilnSession) session = session_of(picked);
    GError *error = NULL;
    bool changed = true;
    bind(session, 0, cases[0].x, sizeof cases[0].x);
    run(session);
    must(kiln_instance_define(session->made, 0, (int64_t[]){ 3 }, &changed, &error), error);
    cr_expect_not(changed);
    must(kiln_instance_define(session->made, 0, (int64_t[]){ 4 }, &changed, &error), error);
    cr_expect(changed);
    cr_expect_not(kiln_instance_define(session->made, 0, (int64_t[]){ 7 }, &changed, &error));
    expect_error(&error, KILN_ERROR_RUN, "dim n_n: expected 0..6, found 7");
}

/* Memory of the caller needs room for what is found, and no more. */
Test(define, output_of_the_caller)
{
    g_autoptr(KilnSession) session = session_of(picked);
    float memory[16] __attribute__((aligned(64))) = { 0 };
    GError *error = NULL;
    must(kiln_session_bind_output(session, 0, memory, 3 * sizeof(float), &error), error);
    bind(session, 0, cases[0].x, sizeof cases[0].x);
    run(session);
    expect_floats(session, 0, cases[0].y, DIMS(3));
    cr_expect_eq(memory[2], 8);
    bind(session, 0, cases[1].x, sizeof cases[1].x);
    run_fails(session, KILN_ERROR_SHAPE, "output y: expected room for 24 bytes, found 12");
    must(kiln_session_bind_output(session, 0, memory, sizeof memory, &error), error);
    run(session);
    expect_floats(session, 0, cases[1].y, DIMS(6));
}

Test(define, shapes_are_known_after_the_run)
{
    g_autoptr(KilnProgram) program = program_of(picked, NULL);
    const KilnTensorInfo *info = kiln_program_output(program, 0);
    cr_expect_eq(info->rank, 1);
    cr_expect_eq(info->dims[0], -1);
    cr_expect_str_eq(info->dim_names[0], "n_n");
    cr_expect_eq(info->bytes, -1);
}

/* The dims of inputs are open, too: the bound depends on them. */
Test(define, beside_open_inputs)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[N,M]) {\n"
                   "  %n = non_zero(%x) : i64[2,?]\n  %i = transpose(%n) : i64[?,2]\n"
                   "  %v = gather_nd(%x, %i) : f32[?]\n  return %v\n}\n");
    bind_shaped(session, 0, FLOATS(1, 0, 0, 2), DIMS(2, 2));
    run(session);
    expect_floats(session, 0, FLOATS(1, 2), DIMS(2));
    bind_shaped(session, 0, FLOATS(1, 3, 4, 2, 0, 7), DIMS(3, 2));
    run(session);
    expect_floats(session, 0, FLOATS(1, 3, 4, 2, 7), DIMS(5));
    bind_shaped(session, 0, FLOATS(0), DIMS(1, 1));
    run(session);
    expect_floats(session, 0, NULL, DIMS(0));
    bind_shaped(session, 0, FLOATS(1, 0, 0, 2), DIMS(2, 2));
    run(session);
    expect_floats(session, 0, FLOATS(1, 2), DIMS(2));
}

/* The second count is bounded by the first one. */
Test(define, one_after_the_other)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[4]) {\n"
                   "  %one = const @one : f32[]\n"
                   "  %n = non_zero(%x) : i64[1,?]\n  %i = transpose(%n) : i64[?,1]\n"
                   "  %v = gather_nd(%x, %i) : f32[?]\n  %w = sub(%v, %one) : f32[?]\n"
                   "  %m = non_zero(%w) : i64[1,?]\n  %k = transpose(%m) : i64[?,1]\n"
                   "  %y = gather_nd(%v, %k) : f32[?]\n  return %v, %y\n}\n"
                   "constants { @one = [1] : f32[] }\n");
    bind(session, 0, FLOATS(1, 0, 2, 1), 4 * sizeof(float));
    run(session);
    expect_floats(session, 0, FLOATS(1, 2, 1), DIMS(3));
    expect_floats(session, 1, FLOATS(2), DIMS(1));
    bind(session, 0, FLOATS(3, 4, 5, 6), 4 * sizeof(float));
    run(session);
    expect_floats(session, 1, FLOATS(3, 4, 5, 6), DIMS(4));
    bind(session, 0, FLOATS(1, 1, 1, 1), 4 * sizeof(float));
    run(session);
    expect_floats(session, 0, FLOATS(1, 1, 1, 1), DIMS(4));
    expect_floats(session, 1, NULL, DIMS(0));
    bind(session, 0, FLOATS(0, 0, 0, 0), 4 * sizeof(float));
    run(session);
    expect_floats(session, 0, NULL, DIMS(0));
    bind(session, 0, FLOATS(1, 0, 2, 1), 4 * sizeof(float));
    run(session);
    expect_floats(session, 1, FLOATS(2), DIMS(1));
}

/* --- operands that data computes --- */

#define SUMS(dtype)                                                                                \
    "  %axis = const @axis : i64[1]\n  %k = reduce_sum(%p, %axis) {keepdims=false} : " dtype
#define AXIS "constants { @axis = [1] : i64[1] @one = [1] : i32[1] @step = [2] : i32[1] }\n"

/* One list may decide several shapes. */
Test(define, one_operand_of_two_nodes)
{
    g_autoptr(KilnSession) session = session_of("graph @f(%x: f32[1], %p: i64[2,2]) {\n" SUMS(
        "i64[2]\n") "  %a = expand(%x, %k) : f32[?,?]\n  %y = neg(%x) : f32[1]\n"
                    "  %b = expand(%y, %k) : f32[?,?]\n  %c = sub(%a, %b) : f32[?,?]\n"
                    "  return %a, %c\n}\n" AXIS);
    bind(session, 0, FLOATS(3), sizeof(float));
    bind(session, 1, ((int64_t[]){ 1, 1, 0, 1 }), 4 * sizeof(int64_t));
    run(session);
    expect_floats(session, 0, FLOATS(3, 3), DIMS(2, 1));
    expect_floats(session, 1, FLOATS(6, 6), DIMS(2, 1));
}

static const char parted[] = "graph @f(%x: f32[6], %p: i64[3,2]) {\n" SUMS(
    "i64[3]\n") "  %a, %b, %c = split(%x, %k) {axis=0}\n"
                "  %y = concat(%a, %b, %c) {axis=0} : f32[?]\n"
                "  %w = concat(%c, %a) {axis=0} : f32[?]\n"
                "  %z = add(%x, %y) : f32[6]\n"
                "  return %a, %b, %c, %z, %w\n}\n" AXIS;

/* They must be the whole, as stated parts must; then types know that they are. */
Test(define, parts_of_a_split)
{
    g_autoptr(KilnSession) session = session_of(parted);
    bind(session, 0, FLOATS(1, 2, 3, 4, 5, 6), 6 * sizeof(float));
    bind(session, 1, ((int64_t[]){ 1, 1, 0, 0, 2, 2 }), 6 * sizeof(int64_t));
    run(session);
    expect_floats(session, 0, FLOATS(1, 2), DIMS(2));
    expect_floats(session, 1, NULL, DIMS(0));
    expect_floats(session, 2, FLOATS(3, 4, 5, 6), DIMS(4));
    expect_floats(session, 3, FLOATS(2, 4, 6, 8, 10, 12), DIMS(6));
    expect_floats(session, 4, FLOATS(3, 4, 5, 6, 1, 2), DIMS(6));
    bind(session, 1, ((int64_t[]){ 1, 1, 0, 0, 2, 1 }), 6 * sizeof(int64_t));
    run_fails(session, KILN_ERROR_RUN, "too_many: expected 0..0, found -1");
    bind(session, 1, ((int64_t[]){ 1, 1, 0, 0, 2, 3 }), 6 * sizeof(int64_t));
    run_fails(session, KILN_ERROR_RUN, "too_many: expected 0..0, found 1");
    bind(session, 1, ((int64_t[]){ 1, 1, 5, 5, -6, 0 }), 6 * sizeof(int64_t));
    run_fails(session, KILN_ERROR_RUN, "expected 0..6, found 10");
    bind(session, 1, ((int64_t[]){ 2, 2, 2, 2, -2, 0 }), 6 * sizeof(int64_t));
    run_fails(session, KILN_ERROR_RUN, "expected 0..6, found -2");
    bind(session, 1, ((int64_t[]){ 1, 1, 1, 1, 1, 1 }), 6 * sizeof(int64_t));
    run(session);
    expect_floats(session, 2, FLOATS(5, 6), DIMS(2));
}

/* Of i32, beside bounds and steps that are known. */
Test(define, bounds_of_a_slice)
{
    g_autoptr(KilnSession) session = session_of("graph @f(%x: f32[6], %p: i32[1,2]) {\n" SUMS(
        "i32[1]\n") "  %one = const @one : i32[1]\n  %zero = sub(%one, %one) : i32[1]\n"
                    "  %two = const @step : i32[1]\n"
                    "  %a = slice(%x, %one, %k) : f32[?]\n"
                    "  %b = slice(%x, %k, %one) : f32[?]\n"
                    "  %c = slice(%x, %zero, %k, %zero, %two) : f32[?]\n"
                    "  return %a, %b, %c\n}\n" AXIS);
    bind(session, 0, FLOATS(1, 2, 3, 4, 5, 6), 6 * sizeof(float));
    bind(session, 1, ((int32_t[]){ 2, 2 }), 2 * sizeof(int32_t));
    run(session);
    expect_floats(session, 0, FLOATS(2, 3, 4), DIMS(3));
    expect_floats(session, 1, NULL, DIMS(0));
    expect_floats(session, 2, FLOATS(1, 3), DIMS(2));
    bind(session, 1, ((int32_t[]){ -1, -5 }), 2 * sizeof(int32_t));
    run(session);
    expect_floats(session, 0, NULL, DIMS(0));
    expect_floats(session, 1, FLOATS(1), DIMS(1));
    bind(session, 1, ((int32_t[]){ 50, 50 }), 2 * sizeof(int32_t));
    run(session);
    expect_floats(session, 0, FLOATS(2, 3, 4, 5, 6), DIMS(5));
    expect_floats(session, 2, FLOATS(1, 3, 5), DIMS(3));
}

/* --- how many --- */

Test(define, no_more_names_than_a_shape_has_dims)
{
#define NINE "\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\""
    static const char graph[] = "graph @f(%p: i64[9]) {\n"
                                "  %k = define(%p) {names=[" NINE "]} : i64[9]\n"
                                "  return %k\n}\n";
    static const char ir[] = "func @f {\n  input @p : i64[65]\n"
                             "  define @in @p {values=[a], most=[-1]}\n}\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = kiln_module_parse(graph, strlen(graph), "f.kiln", &error);
    cr_assert_null(module);
    cr_expect(strstr(error->message, "names: expected at most 8, found 9"), "%s", error->message);
    g_clear_error(&error);
    g_autoptr(KilnIRModule) code = kiln_ir_module_parse(ir, strlen(ir), "f.kiln", &error);
    cr_assert_null(code);
    cr_expect(strstr(error->message, "expected at most 64 elements"), "%s", error->message);
}

/* --- names --- */

static bool
starts_with_n(void *data, const char *name)
{
    return name[0] == *(const char *)data;
}

Test(define, names_begin_at_0)
{
    g_autoptr(KilnDimTable) table = kiln_dim_table_new();
    const KilnDim *input = kiln_dim_name(table, "n"), *n = kiln_dim_define(table, "n", 8);
    const KilnDim *one = kiln_dim_number(table, 1);
    int64_t lo, hi;
    cr_expect_str_eq(kiln_dim_as_name(n), "n.2");
    cr_expect_neq(n, input);
    cr_expect_eq(kiln_dim_define(table, "n", 8), n);
    cr_expect_str_eq(kiln_dim_as_name(kiln_dim_define(table, "n", 9)), "n.3");
    kiln_dim_range(n, &lo, &hi);
    cr_expect(lo == 0 && hi == 8);
    cr_expect_eq(kiln_dim_at_most(table, one, n), KILN_ANSWER_UNKNOWN);
    cr_expect_null(kiln_dim_floor(table, input, n));
    cr_expect_neq(kiln_dim_broadcast(table, one, n), NULL);
    const KilnDim *sum = kiln_dim_add(table, kiln_dim_mul(table, n, n), one);
    cr_expect(kiln_dim_any_name(sum, starts_with_n, "n"));
    cr_expect_not(kiln_dim_any_name(sum, starts_with_n, "m"));
    cr_expect_not(kiln_dim_any_name(NULL, starts_with_n, "n"));
}
