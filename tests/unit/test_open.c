/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with open dims: compiled once, and run at one shape after another. */
#include "runtime/bind.h"
#include "runtime/program.h"
#include "runtime/session.h"
#include "tests/unit/runtime_case.h"

#include "kiln.h"

#include <string.h>

static float numbers[1 << 16];

static void
number_them(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        numbers[i] = (float)((i * 37) % 101) / 50 - 1;
}

TestSuite(open, .init = number_them);

static KilnSession *
session_with(KilnProgram *program, const KilnSessionOptions *options)
{
    GError *error = NULL;
    KilnSession *session = kiln_session_new(program, options, &error);
    cr_assert(session, "%s", error ? error->message : "");
    return session;
}

/* The session runs one open program that it moves from shape to shape. */
static void
expect_instance(const KilnSession *session)
{
    cr_expect(session->made && session->made->instance);
    cr_expect_eq(session->program->templates->len, 1);
}

static void
expect_no_instance(const KilnSession *session)
{
    cr_expect(session->made && !session->made->instance);
}

/* The error of @text compiled for @rank and @dims of input 0. */
static void
refuses_at(const char *text, int rank, const int64_t *dims, KilnError code, const char *message)
{
    g_autoptr(KilnModel) model = model_of(text);
    GError *error = NULL;
    KilnShape shape = { kiln_model_input(model, 0)->name, rank, { 0 } };
    memcpy(shape.dims, dims, (size_t)rank * sizeof *dims);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.shapes = &shape;
    options.n_shapes = 1;
    cr_expect_null(kiln_program_compile(model, &options, &error));
    expect_error(&error, code, message);
}

/* Arithmetic that is exact: any order of passes gives these bits. */
static void
expect_twice(KilnSession *session, unsigned output, int64_t rows, int64_t columns)
{
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    const float *found = kiln_session_output(session, output, &info, NULL);
    cr_assert(found && info.rank == 2);
    cr_expect(info.dims[0] == rows && info.dims[1] == columns);
    for (int64_t i = 0; i < rows * columns; i++)
        cr_assert_eq(found[i], 2 * numbers[i]);
}

static const char doubled[] = "graph @f(%x: f32[N,M]) {\n  %a = neg(%x) : f32[N,M]\n"
                              "  %b = sub(%x, %a) : f32[N,M]\n  return %b as y\n}\n";

static const char product[] = "graph @f(%a: f32[2,N], %b: f32[M,3]) {\n"
                              "  %y = matmul(%a, %b) : f32[2,3]\n  return %y\n}\n";

/* --- names --- */

Test(open, one_program_for_all_shapes)
{
    g_autoptr(KilnSession) session = session_of(doubled);
    static const int64_t shapes[][2] = { { 3, 5 }, { 1, 1 }, { 200, 7 }, { 3, 5 }, { 1, 300 } };
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        bind_shaped(session, 0, numbers, 2, shapes[i]);
        run(session);
        expect_twice(session, 0, shapes[i][0], shapes[i][1]);
        expect_instance(session);
    }
    cr_expect_eq(session->program->specialisations->len, 0);
}

Test(open, a_name_has_one_number)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%a: f32[N,2], %b: f32[N]) {\n  %s = reduce_sum(%b) : f32[1]\n"
                   "  %y = add(%a, %s) : f32[N,2]\n  return %y\n}\n");
    bind_shaped(session, 0, FLOATS(1, 2, 3, 4), DIMS(2, 2));
    bind_shaped(session, 1, FLOATS(1, 2), DIMS(2));
    run(session);
    expect_floats(session, 0, FLOATS(4, 5, 6, 7), DIMS(2, 2));
    expect_instance(session);
    bind_shaped(session, 1, FLOATS(1, 2, 3), DIMS(3));
    run_fails(session, KILN_ERROR_SHAPE, "dim N: expected one number, found 2 and 3");
    bind_shaped(session, 1, FLOATS(5, 6), DIMS(2));
    run(session);
    expect_floats(session, 0, FLOATS(12, 13, 14, 15), DIMS(2, 2));
    expect_instance(session);
}

/* A dim of an input that the model states as an expression of others. */
Test(open, expressions_of_inputs)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%past: f32[P,2], %x: f32[T,2], %mask: f32[P+T]) {\n"
                   "  %axes = const @axes : i64[1]\n"
                   "  %c = concat(%past, %x) {axis=0} : f32[P+T,2]\n"
                   "  %s = reduce_sum(%c, %axes) {keepdims=false} : f32[P+T]\n"
                   "  %y = mul(%s, %mask) : f32[P+T]\n  return %y\n}\n"
                   "constants { @axes = [1] : i64[1] }");
    bind_shaped(session, 0, FLOATS(1, 2, 3, 4), DIMS(2, 2));
    bind_shaped(session, 1, FLOATS(5, 6), DIMS(1, 2));
    bind_shaped(session, 2, FLOATS(1, 0, 2), DIMS(3));
    run(session);
    expect_floats(session, 0, FLOATS(3, 0, 22), DIMS(3));
    expect_instance(session);
    bind_shaped(session, 2, FLOATS(1, 0, 2, 1), DIMS(4));
    run_fails(session, KILN_ERROR_SHAPE, "input mask: dim 0: expected P+T = 3, found 4");
    bind_shaped(session, 1, FLOATS(5, 6, 7, 8), DIMS(2, 2));
    run(session);
    expect_floats(session, 0, FLOATS(3, 0, 22, 15), DIMS(4));
    expect_instance(session);
}

/* One row has no pitch, and an empty part no place: both have one again at the next shape. */
Test(open, views_of_one_row_and_of_none)
{
    g_autoptr(KilnProgram) program =
        program_of("graph @f(%x: f32[N,64]) {\n  %start = const @start : i64[1]\n"
                   "  %end = const @end : i64[1]\n  %axes = const @axes : i64[1]\n"
                   "  %s = slice(%x, %start, %end, %axes) : f32[-min(2,N)+min(3,N),64]\n"
                   "  %e = exp(%s) : f32[-min(2,N)+min(3,N),64]\n"
                   "  %h = concat(%e, %x) {axis=0} : f32[-min(2,N)+min(3,N)+N,64]\n"
                   "  %b = exp(%x) : f32[N,64]\n  %c = concat(%x, %b) {axis=1} : f32[N,128]\n"
                   "  return %c as y, %h\n}\n"
                   "constants { @start = [2] : i64[1]  @end = [3] : i64[1]  @axes = [0] : i64[1] }",
                   NULL);
    g_autoptr(KilnSession) session = session_with(program, NULL);
    g_autoptr(KilnSpecialisation) first = NULL;
    static const int64_t rows[] = { 3, 1, 5, 2, 1, 3 };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(KilnSession) other = session_with(program, NULL);
        bind_shaped(session, 0, numbers, DIMS(rows[i], 64));
        bind_shaped(other, 0, numbers, DIMS(rows[i], 64));
        run(session);
        run(other);
        for (unsigned k = 0; k < 2; k++)
            cr_expect_eq(memcmp(kiln_session_output(session, k, NULL, NULL),
                                kiln_session_output(other, k, NULL, NULL),
                                (size_t)session->made->outputs.info[k].bytes),
                         0);
        if (!first)
            first = kiln_specialisation_ref(session->made);
        cr_expect_eq(session->made, first, "another instance at %d rows", (int)rows[i]);
    }
    expect_instance(session);
}

/* There are so many open programs, and none for numbers. */
static void
expect_open_programs(const KilnSession *session, guint n)
{
    cr_expect(session->made && session->made->instance);
    cr_expect_eq(session->program->templates->len, n);
    cr_expect_eq(session->program->specialisations->len, 0);
}

/* A name is at least 1: a dim of 0 has a second open program, which takes all shapes. */
Test(open, no_elements)
{
    static const int64_t shapes[][2] = { { 0, 3 }, { 4, 3 }, { 0, 7 }, { 0, 1 }, { 5, 2 } };
    g_autoptr(KilnSession) session = session_of(doubled);
    bind_shaped(session, 0, numbers, DIMS(2, 3));
    run(session);
    expect_instance(session);
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        bind_shaped(session, 0, numbers, DIMS(shapes[i][0], shapes[i][1]));
        run(session);
        expect_twice(session, 0, shapes[i][0], shapes[i][1]);
        expect_open_programs(session, 2);
    }
    /* Another name may be 0, too. */
    bind_shaped(session, 0, numbers, DIMS(3, 0));
    run(session);
    expect_twice(session, 0, 3, 0);
    expect_open_programs(session, 3);
    g_autoptr(KilnSession) other = session_with(session->program, NULL);
    bind_shaped(other, 0, numbers, DIMS(0, 0));
    run(other);
    bind_shaped(other, 0, numbers, DIMS(0, 5));
    run(other);
    expect_open_programs(other, 3);
}

/* Who states that a name may be 0 gets one program. */
Test(open, zero_within_bounds)
{
    g_autoptr(KilnModel) model = model_of(doubled);
    const KilnDimRange range = { .name = "N", .least = KILN_LEAST_ZERO, .most = 8 };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.ranges = &range;
    options.n_ranges = 1;
    g_autoptr(KilnProgram) program = kiln_program_compile(model, &options, NULL);
    cr_assert(program);
    g_autoptr(KilnSession) session = session_with(program, NULL);
    for (int64_t n = 0; n < 4; n++) {
        bind_shaped(session, 0, numbers, DIMS(n, 3));
        run(session);
        expect_twice(session, 0, n, 3);
        expect_instance(session);
    }
    bind_shaped(session, 0, numbers, DIMS(9, 3));
    run_fails(session, KILN_ERROR_SHAPE, "expected 0..8, found 9");
}

/* The specification reads a stated 0 as a copy: there the shapes have a program of their own. */
Test(open, zero_that_a_reshape_copies)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[2,N]) {\n  %n = shape(%x) {start=1, end=2} : i64[1]\n"
                   "  %m = const @m : i64[1]\n  %s = concat(%n, %m) : i64[2]\n"
                   "  %y = reshape(%x, %s) : f32[?,?]\n  return %y\n}\n"
                   "constants {\n  @m = [-1] : i64[1]\n}\n");
    bind_shaped(session, 0, numbers, DIMS(2, 3));
    run(session);
    expect_open_programs(session, 1);
    bind_shaped(session, 0, numbers, DIMS(2, 0));
    run(session);
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    cr_assert(kiln_session_output(session, 0, &info, NULL));
    cr_expect(info.dims[0] == 2 && info.dims[1] == 0);
}

Test(open, inner_dims_of_a_product)
{
    g_autoptr(KilnSession) session = session_of(product);
    bind_shaped(session, 0, FLOATS(1, 2, 3, 4), DIMS(2, 2));
    bind_shaped(session, 1, FLOATS(1, 0, 0, 0, 1, 0), DIMS(2, 3));
    run(session);
    expect_floats(session, 0, FLOATS(1, 2, 0, 3, 4, 0), DIMS(2, 3));
    bind_shaped(session, 1, numbers, DIMS(5, 3));
    run_fails(session, KILN_ERROR_SHAPE, "y");
    bind_shaped(session, 0, FLOATS(1, 2), DIMS(2, 1));
    bind_shaped(session, 1, FLOATS(1, 2, 3), DIMS(1, 3));
    run(session);
    expect_floats(session, 0, FLOATS(1, 2, 3, 2, 4, 6), DIMS(2, 3));
}

Test(open, broadcasts_of_two_names)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%a: f32[N,2], %b: f32[M,2]) {\n  %y = add(%a, %b) : f32[?,2]\n"
                   "  return %y\n}\n");
    bind_shaped(session, 0, FLOATS(1, 2, 3, 4), DIMS(2, 2));
    bind_shaped(session, 1, FLOATS(10, 20, 30, 40), DIMS(2, 2));
    run(session);
    expect_floats(session, 0, FLOATS(11, 22, 33, 44), DIMS(2, 2));
    bind_shaped(session, 1, FLOATS(10, 20), DIMS(1, 2));
    run(session);
    expect_floats(session, 0, FLOATS(11, 22, 13, 24), DIMS(2, 2));
    bind_shaped(session, 0, FLOATS(1, 2), DIMS(1, 2));
    run(session);
    expect_floats(session, 0, FLOATS(11, 22), DIMS(1, 2));
    bind_shaped(session, 1, FLOATS(10, 20, 30, 40, 50, 60), DIMS(3, 2));
    run(session);
    expect_floats(session, 0, FLOATS(11, 22, 31, 42, 51, 62), DIMS(3, 2));
    bind_shaped(session, 0, FLOATS(1, 2, 3, 4), DIMS(2, 2));
    run_fails(session, KILN_ERROR_SHAPE, "y");
    bind_shaped(session, 1, NULL, DIMS(0, 2));
    run_fails(session, KILN_ERROR_SHAPE, "y");
    bind_shaped(session, 1, FLOATS(0, 1), DIMS(1, 2));
    run(session);
    expect_floats(session, 0, FLOATS(1, 3, 3, 5), DIMS(2, 2));
}

Test(open, reshape_that_does_not_divide)
{
    static const char text[] = "graph @f(%x: f32[N]) {\n  %s = const @s : i64[2]\n"
                               "  %r = reshape(%x, %s) : f32[?,4]\n  %y = neg(%r) : f32[?,4]\n"
                               "  return %y\n}\nconstants { @s = [-1, 4] : i64[2] }";
    g_autoptr(KilnSession) session = session_of(text);
    bind_shaped(session, 0, FLOATS(1, 2, 3, 4), DIMS(4));
    run(session);
    expect_floats(session, 0, FLOATS(-1, -2, -3, -4), DIMS(1, 4));
    bind_shaped(session, 0, numbers, DIMS(6));
    run_fails(session, KILN_ERROR_SHAPE, "r");
    refuses_at(text, 1, (int64_t[]){ 6 }, KILN_ERROR_SHAPE, "r");
    bind_shaped(session, 0, FLOATS(1, 2, 3, 4, 5, 6, 7, 8), DIMS(8));
    run(session);
    expect_floats(session, 0, FLOATS(-1, -2, -3, -4, -5, -6, -7, -8), DIMS(2, 4));
}

/* Two rows go in front, and as many behind as there are. */
Test(open, pads_that_depend_on_dims)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[N,2]) {\n  %s = shape(%x) : i64[2]\n"
                   "  %zero = const @zero : i64[1]\n  %n = gather(%s, %zero) : i64[1]\n"
                   "  %two = const @two : i64[1]\n"
                   "  %p = concat(%two, %zero, %n, %zero) {axis=0} : i64[4]\n"
                   "  %r = pad(%x, %p) : f32[?,2]\n  %y = neg(%r) : f32[?,2]\n  return %y\n}\n"
                   "constants { @zero = [0] : i64[1] @two = [2] : i64[1] }\n");
    bind_shaped(session, 0, FLOATS(1, 2), DIMS(1, 2));
    run(session);
    expect_floats(session, 0, FLOATS(0, 0, 0, 0, -1, -2, 0, 0), DIMS(4, 2));
    expect_instance(session);
    bind_shaped(session, 0, FLOATS(1, 2, 3, 4), DIMS(2, 2));
    run(session);
    expect_floats(session, 0, FLOATS(0, 0, 0, 0, -1, -2, -3, -4, 0, 0, 0, 0), DIMS(6, 2));
    expect_instance(session);
}

/* Twice as wide by a size of 2*N: one scale for all N. */
static const char resized[] = "graph @f(%%x: f32[1,1,N]) {\n  %%s = shape(%%x) : i64[3]\n"
                              "  %%k = const @k : i64[3]\n  %%sizes = %s(%%s, %%k) : i64[3]\n"
                              "  %%y = resize(%%x, _, _, %%sizes) {mode=\"nearest\", "
                              "coordinate_transformation_mode=\"asymmetric\", "
                              "nearest_mode=\"floor\"} : f32[1,1,?]\n  return %%y\n}\n"
                              "constants { @k = %s : i64[3] }\n";

Test(open, sizes_that_are_multiples_of_dims)
{
    g_autofree char *text = g_strdup_printf(resized, "mul", "[1, 1, 2]");
    g_autoptr(KilnSession) session = session_of(text);
    bind_shaped(session, 0, FLOATS(1, 2), DIMS(1, 1, 2));
    run(session);
    expect_floats(session, 0, FLOATS(1, 1, 2, 2), DIMS(1, 1, 4));
    expect_instance(session);
    bind_shaped(session, 0, FLOATS(1, 2, 3), DIMS(1, 1, 3));
    run(session);
    expect_floats(session, 0, FLOATS(1, 1, 2, 2, 3, 3), DIMS(1, 1, 6));
    expect_instance(session);
}

/* A scale of (N + 2) / N is another one at each N. */
Test(open, sizes_without_one_scale)
{
    g_autofree char *text = g_strdup_printf(resized, "add", "[0, 0, 2]");
    g_autoptr(KilnSession) session = session_of(text);
    bind_shaped(session, 0, FLOATS(1, 2), DIMS(1, 1, 2));
    run(session);
    expect_floats(session, 0, FLOATS(1, 1, 2, 2), DIMS(1, 1, 4));
    expect_instance(session);
    bind_shaped(session, 0, FLOATS(1), DIMS(1, 1, 1));
    run(session);
    expect_floats(session, 0, FLOATS(1, 1, 1), DIMS(1, 1, 3));
    expect_instance(session);
}

/* Strides of 2 pad an even width on one side only. */
Test(open, padding_that_depends_on_dims)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[1,1,N]) {\n  %w = const @w : f32[1,1,3]\n"
                   "  %y = conv(%x, %w) {auto_pad=\"SAME_UPPER\", strides=[2]} : f32[1,1,?]\n"
                   "  return %y\n}\nconstants { @w = [1, 2, 4] : f32[1,1,3] }\n");
    bind_shaped(session, 0, FLOATS(1, 2, 3, 4), DIMS(1, 1, 4));
    run(session);
    expect_floats(session, 0, FLOATS(17, 11), DIMS(1, 1, 2));
    expect_instance(session);
    bind_shaped(session, 0, FLOATS(1, 2, 3), DIMS(1, 1, 3));
    run(session);
    expect_floats(session, 0, FLOATS(10, 8), DIMS(1, 1, 2));
    expect_instance(session);
}

/* --- what an open program refuses --- */

Test(open, open_ranks_have_programs_of_their_own)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[*]) {\n  %y = neg(%x) : f32[*]\n  return %y\n}\n");
    for (int64_t n = 1; n < 4; n++) {
        bind_shaped(session, 0, FLOATS(1, 2, 3), DIMS(n));
        run(session);
        expect_no_instance(session);
    }
    cr_expect_eq(session->program->templates->len, 0);
    cr_expect_eq(session->program->specialisations->len, 3);
}

/* One open program per value. */
Test(open, values_that_decide_shapes)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[N,4], %s: i64[2]) {\n  %r = reshape(%x, %s) : f32[?,?]\n"
                   "  %y = neg(%r) : f32[?,?]\n  return %y\n}\n");
    int64_t shape[] = { -1, 2 };
    bind(session, 1, shape, sizeof shape);
    bind_shaped(session, 0, FLOATS(1, 2, 3, 4), DIMS(1, 4));
    run(session);
    expect_floats(session, 0, FLOATS(-1, -2, -3, -4), DIMS(2, 2));
    bind_shaped(session, 0, FLOATS(1, 2, 3, 4, 5, 6, 7, 8), DIMS(2, 4));
    run(session);
    expect_floats(session, 0, FLOATS(-1, -2, -3, -4, -5, -6, -7, -8), DIMS(4, 2));
    shape[0] = 1;
    shape[1] = -1;
    run(session);
    expect_floats(session, 0, FLOATS(-1, -2, -3, -4, -5, -6, -7, -8), DIMS(1, 8));
    shape[0] = 3;
    run_fails(session, KILN_ERROR_SHAPE, "r");
    shape[0] = 8;
    run(session);
    expect_floats(session, 0, FLOATS(-1, -2, -3, -4, -5, -6, -7, -8), DIMS(8, 1));
}

Test(open, states_are_refused)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[N], %v: f32[1] variable) {\n  %y = add(%x, %v) : f32[N]\n"
                   "  return %y\n}\n");
    bind_shaped(session, 0, FLOATS(1, 2), DIMS(2));
    bind(session, 1, FLOATS(1), 4);
    run_fails(session, KILN_ERROR_UNSUPPORTED, "argument v: state kept between runs");
    run_fails(session, KILN_ERROR_UNSUPPORTED, "argument v: state kept between runs");
}

/* --- what sessions do at each shape --- */

static const char layers[] = "graph @f(%x: f32[N,8]) {\n  %w = const @w : f32[8,16]\n"
                             "  %a = matmul(%x, %w) : f32[N,16]\n"
                             "  %b = softmax(%a) {axis=1} : f32[N,16]\n"
                             "  %c = softmax(%a) {axis=0} : f32[N,16]\n"
                             "  %d = mul(%b, %c) : f32[N,16]\n"
                             "  %y = transpose(%d) : f32[16,N]\n  return %y\n}\n"
                             "constants { @w = splat(0.5) : f32[8,16] }\n";

Test(open, profile)
{
    g_autoptr(KilnProgram) program = program_of(layers, NULL);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.profile = TRUE;
    g_autoptr(KilnSession) session = session_with(program, &options);
    for (int64_t n = 1; n <= 64; n *= 4) {
        unsigned n_entries;
        int64_t flops = 0;
        bind_shaped(session, 0, numbers, DIMS(n, 8));
        run(session);
        run(session);
        expect_instance(session);
        const KilnProfileEntry *const *entries = kiln_session_profile(session, &n_entries);
        cr_assert_geq(n_entries, 4);
        for (unsigned i = 0; i < n_entries; i++) {
            cr_expect_eq(entries[i]->runs, 2, "%s ran %d times", entries[i]->instruction,
                         (int)entries[i]->runs);
            if (strcmp(entries[i]->instruction, "matmul") == 0 ||
                strcmp(entries[i]->instruction, "gemm") == 0)
                flops += entries[i]->flops;
        }
        cr_expect_eq(flops, 2 * n * 8 * 16);
    }
}

Test(open, poison)
{
    g_autoptr(KilnProgram) program = program_of(layers, NULL);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.poison = TRUE;
    g_autoptr(KilnSession) poisoned = session_with(program, &options);
    g_autoptr(KilnSession) plain = session_with(program, NULL);
    static const int64_t rows[] = { 5, 1, 130, 5, 64, 0, 7 };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        bind_shaped(poisoned, 0, numbers, DIMS(rows[i], 8));
        bind_shaped(plain, 0, numbers, DIMS(rows[i], 8));
        run(poisoned);
        run(plain);
        cr_expect_eq(memcmp(kiln_session_output(poisoned, 0, NULL, NULL),
                            kiln_session_output(plain, 0, NULL, NULL), (size_t)rows[i] * 16 * 4),
                     0);
        expect_open_programs(poisoned, i < 5 ? 1 : 2);
    }
}

static int64_t
arena_at(KilnProgram *program, int64_t rows)
{
    g_autoptr(KilnSession) session = session_with(program, NULL);
    bind_shaped(session, 0, numbers, DIMS(rows, 8));
    run(session);
    expect_instance(session);
    return session->made->arena_bytes;
}

Test(open, arena_of_the_caller)
{
    g_autoptr(KilnProgram) program = program_of(layers, NULL);
    int64_t need = arena_at(program, 10);
    cr_assert(need > 0 && need < 1 << 16);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.arena = g_aligned_alloc0(1, (gsize)need, 64);
    options.arena_bytes = (size_t)need;
    float first[160];
    KilnSession *session = session_with(program, &options);
    bind_shaped(session, 0, numbers, DIMS(10, 8));
    run(session);
    memcpy(first, kiln_session_output(session, 0, NULL, NULL), sizeof first);
    for (int i = 0; i < 3; i++) {
        bind_shaped(session, 0, numbers, DIMS(1000, 8));
        run_fails(session, KILN_ERROR_USAGE, "arena: expected");
        run_fails(session, KILN_ERROR_USAGE, "arena: expected");
        bind_shaped(session, 0, numbers, DIMS(10, 8));
        run(session);
        cr_expect_eq(memcmp(first, kiln_session_output(session, 0, NULL, NULL), sizeof first), 0);
        expect_instance(session);
        bind_shaped(session, 0, numbers, DIMS(3, 8));
        run(session);
    }
    kiln_session_free(session);
    g_aligned_free(options.arena);
}

Test(open, outputs_of_the_caller)
{
    g_autoptr(KilnSession) session = session_of(doubled);
    GError *error = NULL;
    float small[6], big[12];
    must(kiln_session_bind_output(session, 0, small, sizeof small, &error), error);
    bind_shaped(session, 0, numbers, DIMS(2, 3));
    run(session);
    cr_expect_eq(kiln_session_output(session, 0, NULL, NULL), small);
    expect_twice(session, 0, 2, 3);
    bind_shaped(session, 0, numbers, DIMS(4, 3));
    memset(small, 0, sizeof small);
    run_fails(session, KILN_ERROR_SHAPE, "output y: expected 48 bytes, found 24");
    for (int i = 0; i < 6; i++)
        cr_expect_eq(small[i], 0);
    must(kiln_session_bind_output(session, 0, big, sizeof big, &error), error);
    run(session);
    cr_expect_eq(kiln_session_output(session, 0, NULL, NULL), big);
    expect_twice(session, 0, 4, 3);
    expect_instance(session);
    /* As many bytes under another shape. */
    bind_shaped(session, 0, numbers, DIMS(3, 4));
    run(session);
    expect_twice(session, 0, 3, 4);
    bind_shaped(session, 0, numbers, DIMS(1, 1));
    run_fails(session, KILN_ERROR_SHAPE, "output y: expected 4 bytes, found 48");
    must(kiln_session_bind_output(session, 0, NULL, 0, &error), error);
    run(session);
    expect_twice(session, 0, 1, 1);
    expect_instance(session);
}

Test(open, memory_limit)
{
    g_autoptr(KilnProgram) free_program = program_of(layers, NULL);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.memory_limit = arena_at(free_program, 20);
    g_autoptr(KilnProgram) program = program_of(layers, &options);
    g_autoptr(KilnSession) session = session_with(program, NULL);
    static const int64_t rows[] = { 2000, 4, 20, 3000, 1, 3000, 20 };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        bind_shaped(session, 0, numbers, DIMS(rows[i], 8));
        if (rows[i] > 20) {
            run_fails(session, KILN_ERROR_LIMIT, "expected an arena of at most");
            continue;
        }
        run(session);
        expect_instance(session);
        cr_expect_leq(session->made->arena_bytes, options.memory_limit);
    }
}

Test(open, cancel)
{
    g_autoptr(KilnProgram) program = program_of(layers, NULL);
    int stop = 0;
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.cancel = &stop;
    g_autoptr(KilnSession) session = session_with(program, &options);
    for (int64_t n = 1; n < 40; n += 7) {
        bind_shaped(session, 0, numbers, DIMS(n, 8));
        g_atomic_int_set(&stop, 1);
        run_fails(session, KILN_ERROR_CANCELLED, "cancelled before");
        g_atomic_int_set(&stop, 0);
        run(session);
        expect_instance(session);
    }
}

/* --- weights --- */

Test(open, sessions_share_packed_weights)
{
    g_autoptr(KilnProgram) program = program_of(layers, NULL);
    g_autoptr(KilnSession) a = session_with(program, NULL), b = session_with(program, NULL);
    bind_shaped(a, 0, numbers, DIMS(50, 8));
    bind_shaped(b, 0, numbers, DIMS(50, 8));
    run(a);
    run(b);
    unsigned packed = 0;
    cr_assert_eq(a->made->n_calls, b->made->n_calls);
    for (uint32_t c = 0; c < a->made->n_calls; c++) {
        cr_expect_eq(a->made->calls[c].packed, b->made->calls[c].packed);
        packed += a->made->calls[c].packed != NULL;
    }
    cr_expect_geq(packed, 1);
}

/* --- memory --- */

static int64_t
resident_bytes(void)
{
    g_autofree char *text = NULL;
    cr_assert(g_file_get_contents("/proc/self/status", &text, NULL, NULL));
    const char *at = strstr(text, "VmRSS:");
    return at ? g_ascii_strtoll(at + strlen("VmRSS:"), NULL, 10) * 1024 : -1;
}

Test(open, many_shapes_take_no_memory)
{
    enum {
        MOST = 100
    };
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[N,M]) {\n  %t = transpose(%x) : f32[M,N]\n"
                   "  %p = matmul(%x, %t) : f32[N,N]\n  %s = softmax(%p) {axis=1} : f32[N,N]\n"
                   "  %y = matmul(%s, %x) : f32[N,M]\n  return %y\n}\n");
    int64_t before = 0;
    for (int i = 0; i < MOST * MOST; i++) {
        /* The biggest shapes are among the first hundred. */
        int64_t n = i < MOST ? MOST : MOST - i / MOST, m = MOST - i % MOST;
        bind_shaped(session, 0, numbers, DIMS(n, m));
        run(session);
        if (i == MOST)
            before = resident_bytes();
    }
    expect_instance(session);
    cr_expect_eq(session->program->specialisations->len, 0);
    int64_t after = resident_bytes(), most = before + before / 50;
#ifdef KILN_SANITIZED
    most = INT64_MAX; /* it keeps what is freed */
#endif
    cr_expect_leq(after, most, "%d bytes, then %d", (int)before, (int)after);
}
