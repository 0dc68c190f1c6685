/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on disk whose plan has other scratch than their kernels ask for: copies of operands in
 * rows that they do not take, or none where there is nothing to compute. Weights in rows. */
#include "tests/unit/runtime_case.h"

#include "kiln.h"
#include "tests/fold_case.h"

#include <glib/gstdio.h>

enum {
    N_IN = 16 * 5 * 6,
    N_OUT = 8 * 7 * 6
};

static void
run_into(KilnProgram *program, const float *x, float *y)
{
    GError *error = NULL;
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    must(kiln_session_bind_input(session, 0, x, N_IN * sizeof *x, &error), error);
    must(kiln_session_bind_output(session, 0, y, N_OUT * sizeof *y, &error), error);
    must(kiln_session_run(session, &error), error);
}

static KilnProgram *
saved_and_loaded(KilnProgram *program)
{
    GError *error = NULL;
    g_autofree char *folder = g_dir_make_tmp("kiln-rows-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "saved.kiln-program", NULL);
    must(kiln_program_save(program, path, &error), error);
    KilnProgram *loaded = kiln_program_load(path, NULL, &error);
    cr_assert(loaded, "%s", error ? error->message : "");
    g_unlink(path);
    g_rmdir(folder);
    return loaded;
}

Test(programs_rows, copies_are_in_the_plan)
{
    g_autofree float *x = g_new(float, N_IN), *y = g_new(float, N_OUT), *z = g_new(float, N_OUT);
    g_autoptr(KilnProgram) program =
        program_of("graph @f(%x: f32[2,8,5,6]) {\n"
                   "  %b = const @b : i64[1]\n  %e = const @e : i64[1]\n  %a = const @b : i64[1]\n"
                   "  %p = const @p : i64[8]\n"
                   "  %s = slice(%x, %b, %e, %a) : f32[1,8,5,6]\n"
                   "  %y = pad(%s, %p) : f32[1,8,7,6]\n  return %y\n}\n"
                   "constants {\n  @b = [0] : i64[1]\n  @e = [1] : i64[1]\n"
                   "  @p = [0, 0, 0, 0, 0, 0, 2, 0] : i64[8]\n}\n",
                   NULL);
    g_autoptr(KilnProgram) loaded = saved_and_loaded(program);
    mlp_fill(x, N_IN, 5);
    run_into(program, x, y);
    run_into(loaded, x, z);
    cr_expect_arr_eq(y, z, N_OUT * sizeof *y);
}

Test(programs_rows, nothing_to_compute_needs_no_scratch)
{
    GError *error = NULL;
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.no_offload = TRUE;
    g_autoptr(KilnProgram) program =
        program_of("graph @f(%x: f32[2,16,0]) {\n  %w = const @w : f32[16,16,5]\n"
                   "  %y = conv(%x, %w) {pads=[2,2], strides=[2]} : f32[2,16,0]\n  return %y\n}\n"
                   "constants {\n  @w = random_uniform(seed=1, low=-1, high=1) : f32[16,16,5]\n}\n",
                   &options);
    g_autoptr(KilnProgram) loaded = saved_and_loaded(program);
    g_autoptr(KilnSession) session = kiln_session_new(loaded, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    must(kiln_session_bind_input(session, 0, &error, 0, &error), error);
    must(kiln_session_run(session, &error), error);
}

/* --- weights in rows --- */

enum {
    N_SMALL = 256 /* floats of x and of y, whatever is used of them */
};

/* Each has a weight @w of which a kernel that packs its weights reads a part in rows. */
static const char *const weights_in_rows[] = {
    "func @f {\n  weight @w : f32[4,4,3,3] const\n  input @x : f32[1,2,8,8]\n"
    "  output @y : f32[1,4,8,8]\n  %v = view @w {rows=4, pitch=36} : f32[4,2,3,3]\n"
    "  conv @out @y, @in @x, @in %v, _, _ {pads=[1,1,1,1], algorithm=\"winograd\"}\n}\n"
    "constants {\n  @w = random_normal(seed=7, std=0.2) : f32[4,4,3,3]\n}\n",
    "func @f {\n  weight @r : f32[1,64,4] const\n  weight @w : f32[1,64,32] const\n"
    "  input @x : f32[3,1,4]\n  output @y : f32[3,1,1,16]\n"
    "  %v = view @w {offset=3, rows=64, pitch=32} : f32[1,64,16]\n"
    "  lstm @out @y, _, _, @in @x, @in @r, @in %v, _, _, _, _, _ {hidden_size=16}\n}\n"
    "constants {\n  @r = random_normal(seed=7, std=0.2) : f32[1,64,4]\n"
    "  @w = random_normal(seed=8, std=0.2) : f32[1,64,32]\n}\n",
    "func @f {\n  weight @w : f32[40,100] const\n  input @x : f32[2,40]\n  output @y : f32[2,96]\n"
    "  %v = view @w {offset=4, rows=40, pitch=100} : f32[40,96]\n"
    "  matmul @out @y, @in @x, @in %v, _\n}\n"
    "constants {\n  @w = random_normal(seed=7, std=0.2) : f32[40,100]\n}\n",
};

static void
run_small(const char *text, const char *target, float *y)
{
    float x[N_SMALL];
    GError *error = NULL;
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    g_autoptr(KilnPipeline) none = kiln_pipeline_load("none", &error);
    options.pipeline = none;
    options.target = target;
    mlp_fill(x, N_SMALL, 5);
    g_autoptr(KilnProgram) program = program_of(text, &options);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    must(kiln_session_bind_input(session, 0, x, (size_t)kiln_program_input(program, 0)->bytes,
                                 &error),
         error);
    must(kiln_session_bind_output(session, 0, y, (size_t)kiln_program_output(program, 0)->bytes,
                                  &error),
         error);
    must(kiln_session_run(session, &error), error);
}

/* Winograd and the gates round in another order than the reference; a weight of the wrong place
 * makes a difference of about one. */
Test(programs_rows, weights_in_rows_are_read_in_rows)
{
    for (size_t i = 0; i < G_N_ELEMENTS(weights_in_rows); i++) {
        float expected[N_SMALL] = { 0 }, found[N_SMALL] = { 0 };
        run_small(weights_in_rows[i], "ref", expected);
        run_small(weights_in_rows[i], "cpu", found);
        for (int k = 0; k < N_SMALL; k++)
            cr_assert_float_eq(found[k], expected[k], 1e-5, "%d of program %zu", k, i);
    }
}
