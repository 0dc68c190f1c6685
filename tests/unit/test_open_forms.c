/* SPDX-License-Identifier: Apache-2.0 */
/* What exporters write with open dims: each model is one open program, whose results have the bits
 * of programs that are compiled for the numbers. */
#include "runtime/bind.h"
#include "runtime/kiln-pipeline.h"
#include "runtime/program.h"
#include "runtime/session.h"
#include "tests/unit/runtime_case.h"

#include "kiln.h"

#include <glib/gstdio.h>
#include <string.h>

static float numbers[1 << 16];

static void
number_them(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        numbers[i] = (float)((i * 37) % 101) / 50 - 1;
}

TestSuite(open_forms, .init = number_them);

typedef struct {
    const char *text;
    int rank;
    int64_t dims[6][4]; /* of runs, one after the other; the first 0 ends them */
} Form;

/* --- comparisons --- */

/* @dims NULL: for open dims. Passes that round in another way may do so for numbers alone. */
static KilnSession *
exact_session(const char *text, int rank, const int64_t *dims)
{
    GError *error = NULL;
    g_autoptr(KilnModel) model = model_of(text);
    g_autoptr(KilnPipeline) none = kiln_pipeline_load("none", &error);
    KilnShape shape = { kiln_model_input(model, 0)->name, rank, { 0 } };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    cr_assert(none, "%s", error ? error->message : "");
    if (dims) {
        memcpy(shape.dims, dims, (size_t)rank * sizeof *dims);
        options.shapes = &shape;
        options.n_shapes = 1;
    }
    options.pipeline = none;
    options.no_offload = TRUE;
    g_autoptr(KilnProgram) program = kiln_program_compile(model, &options, &error);
    cr_assert(program, "%s", error ? error->message : "");
    KilnSession *session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    return session;
}

static void
expect_same(KilnSession *found, KilnSession *expected, const char *text)
{
    for (unsigned i = 0; i < expected->program->outputs.n; i++) {
        KilnTensorInfo a = KILN_TENSOR_INFO_INIT, b = KILN_TENSOR_INFO_INIT;
        const void *x = kiln_session_output(found, i, &a, NULL);
        const void *y = kiln_session_output(expected, i, &b, NULL);
        cr_assert(x && y && a.rank == b.rank && a.bytes == b.bytes, "%s", text);
        for (int d = 0; d < a.rank; d++)
            cr_expect_eq(a.dims[d], b.dims[d], "dim %d of output %u of %s", d, i, text);
        cr_expect_eq(memcmp(x, y, (size_t)a.bytes), 0, "output %u of %s", i, text);
    }
}

static void
expect_form(const Form *form, bool open)
{
    g_autoptr(KilnSession) session = exact_session(form->text, form->rank, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(form->dims) && form->dims[i][0]; i++) {
        g_autoptr(KilnSession) other = exact_session(form->text, form->rank, form->dims[i]);
        bind_shaped(session, 0, numbers, (size_t)form->rank, form->dims[i]);
        bind_shaped(other, 0, numbers, (size_t)form->rank, form->dims[i]);
        run(other);
        for (int twice = 0; twice < 2; twice++) {
            run(session);
            expect_same(session, other, form->text);
        }
        cr_expect_eq(session->made->instance != NULL, open, "%s", form->text);
    }
    cr_expect_eq(session->program->specialisations->len == 0, open, "%s", form->text);
}

static uint64_t
runs_of(KilnSession *session, const char *instruction)
{
    unsigned n;
    uint64_t runs = 0;
    const KilnProfileEntry *const *entries = kiln_session_profile(session, &n);
    for (unsigned i = 0; i < n; i++)
        runs += strcmp(entries[i]->instruction, instruction) == 0 ? entries[i]->runs : 0;
    return runs;
}

static KilnSession *
profiled(const char *text, const KilnCompileOptions *compile, void *arena, size_t bytes)
{
    GError *error = NULL;
    g_autoptr(KilnProgram) program = program_of(text, compile);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.profile = TRUE;
    options.arena = arena;
    options.arena_bytes = bytes;
    KilnSession *session = kiln_session_new(program, &options, &error);
    cr_assert(session, "%s", error ? error->message : "");
    return session;
}

/* --- dims by way of floats --- */

#define COUNTS .rank = 2, .dims = { { 7, 2 }, { 1, 2 }, { 12, 1 }, { 3, 5 }, { 7, 2 }, { 1000, 3 } }

/* A range whose limit is made of the number of rows, %n, by @steps. */
#define RANGE(steps, limit)                                                                        \
    "graph @f(%x: f32[N,M]) {\n  %zero = const @zero : f32[]\n  %one = const @one : f32[]\n"       \
    "  %half = const @half : f32[]\n  %three = const @three : f32[]\n"                             \
    "  %two = const @two : f64[]\n"                                                                \
    "  %s = shape(%x) {end=1} : i64[1]\n  %i = squeeze(%s) : i64[]\n  %n = cast(%i) : "            \
    "f32[]\n" steps "  %r = range(%zero, %" limit ", %one) : f32[?]\n"                             \
    "  %y = add(%r, %half) : f32[?]\n  return %y\n}\n"                                             \
    "constants {\n  @zero = [0] : f32[]  @one = [1] : f32[]  @half = [0.5] : f32[]\n"              \
    "  @three = [3] : f32[]  @two = [2] : f64[]\n}\n"

Test(open_forms, ranges_of_floats)
{
    static const Form forms[] = {
        { RANGE("", "n"), COUNTS },
        { RANGE("  %m = mul(%n, %half) : f32[]\n  %l = floor(%m) : f32[]\n", "l"), COUNTS },
        { RANGE("  %m = div(%n, %three) : f32[]\n  %l = ceil(%m) : f32[]\n", "l"), COUNTS },
        { RANGE("  %m = div(%n, %three) : f32[]\n  %l = floor(%m) : f32[]\n", "l"), COUNTS },
        { RANGE("  %m = div(%n, %three) : f32[]\n  %k = cast(%m) {to=i64} : i64[]\n"
                "  %l = cast(%k) : f32[]\n",
                "l"),
          COUNTS },
        { RANGE("  %l = add(%n, %one) : f32[]\n", "l"), COUNTS },
        { RANGE("  %l = sub(%n, %one) : f32[]\n", "l"), COUNTS },
        { RANGE("  %l = mul(%n, %half) : f32[]\n", "l"), COUNTS },
        { RANGE("  %l = max(%n, %three) : f32[]\n", "l"), COUNTS },
        { RANGE("  %d = cast(%n) {to=f64} : f64[]\n  %m = mul(%d, %two) : f64[]\n"
                "  %l = cast(%m) : f32[]\n",
                "l"),
          COUNTS },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++)
        expect_form(&forms[i], true);
}

/* What floats round, and what is below zero on its way to whole numbers, is not followed. */
Test(open_forms, floats_that_are_not_followed)
{
    static const Form forms[] = {
        { RANGE("  %m = div(%n, %three) : f32[]\n  %k = mul(%m, %three) : f32[]\n"
                "  %l = floor(%k) : f32[]\n",
                "l"),
          COUNTS },
        { RANGE("  %m = sub(%n, %three) : f32[]\n  %k = mul(%m, %half) : f32[]\n"
                "  %l = floor(%k) : f32[]\n",
                "l"),
          COUNTS },
        { RANGE("  %m = mul(%n, %n) : f32[]\n  %q = mul(%m, %n) : f32[]\n", "q"), .rank = 2,
          .dims = { { 3, 1 }, { 17, 1 } } },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++)
        expect_form(&forms[i], false);
}

/* f32 counts to 2^24. With one more than a name, names are assumed to be small. */
Test(open_forms, numbers_that_are_not_small)
{
    g_autofree float *many = g_new0(float, (1 << 20) + 1);
    static const char text[] = RANGE("  %l = add(%n, %one) : f32[]\n", "l");
    g_autoptr(KilnSession) session = session_of(text);
    for (int64_t n = 1 << 20; n <= (1 << 20) + 1; n++) {
        KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
        bind_shaped(session, 0, many, DIMS(n, 1));
        run(session);
        kiln_session_output(session, 0, &info, NULL);
        cr_expect_eq(info.dims[0], n + 1);
        cr_expect_eq(session->made->instance != NULL, n == 1 << 20);
    }
}

/* --- pictures --- */

#define PICTURES                                                                                   \
    .rank = 4,                                                                                     \
    .dims = { { 1, 3, 8, 8 }, { 2, 3, 7, 9 }, { 1, 3, 1, 1 }, { 3, 3, 16, 33 }, { 1, 3, 8, 8 } }

#define RESIZE(attributes)                                                                         \
    "graph @f(%x: f32[N,3,H,W]) {\n"                                                               \
    "  %p = max_pool(%x) {kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]} : f32[N,3,?,?]\n"     \
    "  %s = shape(%x) : i64[4]\n  %u = resize(%p, _, _, %s) {" attributes "} : f32[N,3,H,W]\n"     \
    "  %y = add(%u, %x) : f32[N,3,H,W]\n  return %y\n}\n"

Test(open_forms, resize_to_the_sizes_of_another_tensor)
{
    static const Form forms[] = {
        { RESIZE("mode=\"linear\""), PICTURES },
        { RESIZE("mode=\"linear\", coordinate_transformation_mode=\"align_corners\""), PICTURES },
        { RESIZE("mode=\"cubic\""), PICTURES },
        { RESIZE("mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
                 "nearest_mode=\"floor\""),
          PICTURES },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++)
        expect_form(&forms[i], true);
}

#define WINDOW(op, operands, attributes, channels)                                                 \
    "graph @f(%x: f32[N,3,H,W]) {\n  %w = const @w : f32[4,3,3,3]\n"                               \
    "  %y = " op "(" operands ") {" attributes "} : f32[N," channels ",?,?]\n  return %y\n}\n"     \
    "constants { @w = random_normal(seed=7, std=0.5) : f32[4,3,3,3] }\n"

Test(open_forms, padding_that_keeps_sizes)
{
    static const Form forms[] = {
        { WINDOW("conv", "%x, %w", "auto_pad=\"SAME_UPPER\", strides=[2,2]", "4"), PICTURES },
        { WINDOW("conv", "%x, %w", "auto_pad=\"SAME_LOWER\", strides=[3,2]", "4"), PICTURES },
        { WINDOW("conv", "%x, %w", "auto_pad=\"SAME_UPPER\", dilations=[2,2], strides=[2,2]", "4"),
          PICTURES },
        { WINDOW("max_pool", "%x", "auto_pad=\"SAME_LOWER\", kernel_shape=[3,2], strides=[2,3]",
                 "3"),
          PICTURES },
        { WINDOW("average_pool", "%x", "auto_pad=\"SAME_UPPER\", kernel_shape=[2,2], strides=[2,2]",
                 "3"),
          PICTURES },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++)
        expect_form(&forms[i], true);
}

/* No name says that there are so many rows. Runs with fewer are refused. */
Test(open_forms, windows_that_need_many_rows)
{
    static const Form form = {
        "graph @f(%x: f32[N,1,T]) {\n  %w = const @w : f32[2,1,400]\n"
        "  %a = conv(%x, %w) {strides=[160]} : f32[N,2,?]\n"
        "  %y = max_pool(%a) {kernel_shape=[3], strides=[2]} : f32[N,2,?]\n  return %y\n}\n"
        "constants { @w = splat(0.25) : f32[2,1,400] }\n",
        .rank = 3, .dims = { { 1, 1, 4000 }, { 2, 1, 720 }, { 1, 1, 16001 } }
    };
    expect_form(&form, true);
    g_autoptr(KilnSession) session = session_of(form.text);
    bind_shaped(session, 0, numbers, DIMS(1, 1, 719));
    run_fails(session, KILN_ERROR_SHAPE, "expected 3 elements or more");
    bind_shaped(session, 0, numbers, DIMS(1, 1, 720));
    run(session);
    cr_expect(session->made->instance);
    /* An upper bound leaves few numbers. */
    const KilnDimRange range = { .name = "T", .most = 800 };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.ranges = &range;
    options.n_ranges = 1;
    g_autoptr(KilnSession) bounded = profiled(form.text, &options, NULL, 0);
    for (int64_t rows = 720; rows <= 800; rows += 20) {
        bind_shaped(session, 0, numbers, DIMS(1, 1, rows));
        bind_shaped(bounded, 0, numbers, DIMS(1, 1, rows));
        run(session);
        run(bounded);
        expect_same(bounded, session, form.text);
        cr_expect(bounded->made->instance);
    }
}

Test(open_forms, squeezes_of_dims_that_are_never_1)
{
#define SQUEEZE(parts)                                                                             \
    "graph @f(%x: f32[N,4]) {\n  %axes = const @axes : i64[1]\n"                                   \
    "  %c = concat(" parts ") {axis=0} : f32[?,4]\n"                                               \
    "  %m = reduce_mean(%c, %axes) : f32[?,1]\n  %y = squeeze(%m) : f32[*]\n  return %y\n}\n"      \
    "constants { @axes = [1] : i64[1] }\n"
    static const Form never = { SQUEEZE("%x, %x"), .rank = 2, .dims = { { 1, 4 }, { 5, 4 } } };
    static const Form perhaps = { SQUEEZE("%x"), .rank = 2, .dims = { { 1, 4 }, { 5, 4 } } };
    expect_form(&never, true);
    expect_form(&perhaps, false);
}

/* --- calls that compute from dims alone --- */

static const char tables[] =
    "graph @f(%q: f32[N,T,8]) {\n  %zero = const @zero : i64[]\n  %one = const @one : i64[]\n"
    "  %axes = const @axes : i64[1]\n  %inv = const @inv : f32[1,8]\n"
    "  %s = shape(%q) {end=2, start=1} : i64[1]\n  %t = squeeze(%s) : i64[]\n"
    "  %p = range(%zero, %t, %one) : i64[?]\n  %f = cast(%p) : f32[?]\n"
    "  %u = unsqueeze(%f, %axes) : f32[?,1]\n  %a = mul(%u, %inv) : f32[?,8]\n"
    "  %cos = cos(%a) : f32[?,8]\n  %sin = sin(%a) : f32[?,8]\n"
    "  %e = exp(%q) : f32[N,T,8]\n  %m = softmax(%e) {axis=2} : f32[N,T,8]\n"
    "  %b = mul(%m, %cos) : f32[N,T,8]\n  %c = mul(%e, %sin) : f32[N,T,8]\n"
    "  %y = add(%b, %c) : f32[N,T,8]\n  return %y\n}\n"
    "constants {\n  @zero = [0] : i64[]  @one = [1] : i64[]  @axes = [1] : i64[1]\n"
    "  @inv = [1, 0.5, 0.25, 0.125, 0.1, 0.05, 0.025, 0.0125] : f32[1,8]\n}\n";

Test(open_forms, tables_of_dims)
{
    static const Form form = {
        tables, .rank = 3,
        .dims = { { 1, 5, 8 }, { 4, 5, 8 }, { 2, 9, 8 }, { 50, 9, 8 }, { 1, 1, 8 }, { 2, 400, 8 } }
    };
    expect_form(&form, true);
}

/* The tables are made once for each number of rows, and stay for another batch. */
Test(open_forms, tables_are_made_once)
{
    g_autoptr(KilnSession) session = profiled(tables, NULL, NULL, 0);
    static const struct {
        int64_t n, t;
        bool again;
    } steps[] = {
        { 8, 9, true }, { 3, 9, false }, { 8, 9, false }, { 2, 5, true }, { 2, 9, true }
    };
    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        bind_shaped(session, 0, numbers, DIMS(steps[i].n, steps[i].t, 8));
        for (int times = 0; times < 3; times++)
            run(session);
        cr_expect_eq(runs_of(session, "range"), steps[i].again, "step %zu: range ran %d times", i,
                     (int)runs_of(session, "range"));
        cr_expect_eq(runs_of(session, "softmax"), 3);
    }
}

/* Memory of the caller may have other bytes in the next run, and little memory counts more. */
Test(open_forms, tables_are_made_in_each_run)
{
    enum {
        BYTES = 1 << 16
    };
    void *arena = g_aligned_alloc0(1, BYTES, 64);
    KilnSession *session = profiled(tables, NULL, arena, BYTES);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.prefer_memory = TRUE;
    g_autoptr(KilnSession) frugal = profiled(tables, &options, NULL, 0);
    options.prefer_memory = FALSE;
    options.memory_limit = BYTES;
    g_autoptr(KilnSession) limited = profiled(tables, &options, NULL, 0);
    for (int times = 0; times < 3; times++) {
        bind_shaped(session, 0, numbers, DIMS(2, 5, 8));
        bind_shaped(frugal, 0, numbers, DIMS(2, 5, 8));
        run(session);
        bind_shaped(limited, 0, numbers, DIMS(2, 5, 8));
        run(frugal);
        run(limited);
        memset(arena, 0xFF, BYTES);
    }
    cr_expect_eq(runs_of(session, "range"), 3);
    cr_expect_eq(runs_of(frugal, "range"), 3);
    cr_expect_eq(runs_of(limited, "range"), 3);
    kiln_session_free(session);
    g_aligned_free(arena);
}

/* The session profiles a program that was saved and loaded. */
static KilnSession *
loaded(const char *text)
{
    GError *error = NULL;
    g_autofree char *folder = g_dir_make_tmp("kiln-open-forms-XXXXXX", &error);
    cr_assert(folder, "%s", error ? error->message : "");
    g_autofree char *path = g_build_filename(folder, "p", NULL);
    g_autoptr(KilnProgram) program = program_of(text, NULL);
    must(kiln_program_save(program, path, &error), error);
    g_autoptr(KilnProgram) file = kiln_program_load(path, NULL, &error);
    cr_assert(file, "%s", error ? error->message : "");
    g_unlink(path);
    g_rmdir(folder);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.profile = TRUE;
    KilnSession *session = kiln_session_new(file, &options, &error);
    cr_assert(session, "%s", error ? error->message : "");
    return session;
}

Test(open_forms, tables_of_a_program_that_was_loaded)
{
    g_autoptr(KilnSession) session = loaded(tables);
    g_autoptr(KilnSession) other = session_of(tables);
    for (int64_t t = 3; t < 30; t += 13) {
        bind_shaped(session, 0, numbers, DIMS(2, t, 8));
        bind_shaped(other, 0, numbers, DIMS(2, t, 8));
        run(other);
        for (int times = 0; times < 3; times++) {
            run(session);
            expect_same(session, other, tables);
        }
        cr_expect_eq(runs_of(session, "range"), 1);
    }
}

/* It has no graph that could be compiled for big numbers. */
Test(open_forms, big_numbers_of_a_program_that_was_loaded)
{
    g_autofree float *many = g_new0(float, (1 << 20) + 1);
    g_autoptr(KilnSession) session = loaded(RANGE("  %l = add(%n, %one) : f32[]\n", "l"));
    bind_shaped(session, 0, many, DIMS(1 << 20, 1));
    run(session);
    bind_shaped(session, 0, many, DIMS((1 << 20) + 1, 1));
    run_fails(session, KILN_ERROR_SHAPE, "N");
    bind_shaped(session, 0, many, DIMS(5, 1));
    run(session);
}

/* --- constants --- */

static const char weighted[] =
    "graph @f(%x: f32[N,4], %w: f32[3,4]) {\n  %e = exp(%w) : f32[3,4]\n"
    "  %t = transpose(%e) {perm=[1,0]} : f32[4,3]\n  %y = matmul(%x, %t) : f32[N,3]\n"
    "  return %y\n}\n";

static KilnSession *
session_with_weights(KilnConstantWhen when, GBytes *value)
{
    const KilnConstantInput constant = { "w", when, value };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.constants = &constant;
    options.n_constants = 1;
    return profiled(weighted, &options, NULL, 0);
}

/* A value that the compiler knows is a weight of the open program: nothing is left of its
 * arithmetic. The first run computes other constants once for all shapes. */
Test(open_forms, constants_of_the_compiler)
{
    g_autoptr(GBytes) value = g_bytes_new_static(numbers, 12 * sizeof *numbers);
    g_autoptr(KilnSession) known = session_with_weights(KILN_CONSTANT_COMPILE, value);
    g_autoptr(KilnSession) late = session_with_weights(KILN_CONSTANT_RUN, NULL);
    for (int64_t n = 1; n < 40; n = 3 * n + 1) {
        bind_shaped(known, 0, numbers + 50, DIMS(n, 4));
        bind_shaped(late, 0, numbers + 50, DIMS(n, 4));
        bind_shaped(late, 1, numbers, DIMS(3, 4));
        run(known);
        run(late);
        expect_same(known, late, weighted);
        cr_expect(known->made->instance);
        cr_expect(late->made->instance);
        cr_expect_eq(kiln_program_fold_runs(late->program), 1);
        cr_expect_eq(runs_of(known, "exp"), 0);
        cr_expect_eq(known->made->n_calls, 1);
    }
    cr_expect_eq(known->program->specialisations->len, 0);
}

/* Weights in fewer bits suit few rows. With many rows they would give other bits than those that a
 * session packs that never had few. */
Test(open_forms, weights_of_few_rows_with_little_memory)
{
    static const char text[] =
        "graph @f(%x: f32[N,3584]) {\n  %w = const @w : f32[3584,32]\n"
        "  %y = gemm(%x, %w, _) : f32[N,32]\n  return %y\n}\n"
        "constants { @w = random_uniform(seed=706, low=-0.03, high=0.03) : f32[3584,32] }\n";
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.prefer_memory = TRUE;
    options.no_offload = TRUE;
    g_autoptr(KilnSession) moved = profiled(text, &options, NULL, 0);
    g_autoptr(KilnSession) fresh = profiled(text, &options, NULL, 0);
    bind_shaped(moved, 0, numbers, DIMS(1, 3584));
    run(moved);
    for (int64_t rows = 7; rows > 1; rows -= 5) {
        bind_shaped(moved, 0, numbers, DIMS(rows, 3584));
        bind_shaped(fresh, 0, numbers, DIMS(rows, 3584));
        run(moved);
        run(fresh);
        expect_same(moved, fresh, text);
    }
}
