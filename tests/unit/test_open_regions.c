/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of a vendor library in programs with open dims. They need the library. */
#include "ir/instr.h"
#include "ir/vendor.h"
#include "kiln.h"
#include "runtime/bind.h"
#include "runtime/kiln-pipeline.h"
#include "runtime/open/regions.h"
#include "runtime/open/template.h"
#include "runtime/program.h"
#include "runtime/session.h"
#include "tests/unit/offload_case.h"
#include "tests/unit/runtime_case.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

static float numbers[1 << 18];

static void
number_them(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        numbers[i] = (float)((i * 37) % 101) / 50 - 1;
}

TestSuite(open_regions, .init = number_them);

static const char picture[] =
    "graph @f(%x: f32[N,16,H,W]) {\n"
    "  %w = const @w : f32[16,16,3,3]\n"
    "  %c = conv(%x, %w) {pads=[1,1,1,1]} : f32[N,16,H,W]\n"
    "  %r = relu(%c) : f32[N,16,H,W]\n"
    "  %d = conv(%r, %w) {pads=[1,1,1,1]} : f32[N,16,H,W]\n"
    "  return %d\n}\n"
    "constants {\n  @w = random_normal(seed=1, std=0.1) : f32[16,16,3,3]\n}\n";

static KilnSession *
session_under(const char *text, const char *name, gboolean no_offload)
{
    GError *error = NULL;
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_load(name, &error);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    cr_assert(pipeline, "%s", error ? error->message : "");
    options.pipeline = pipeline;
    options.no_offload = no_offload;
    options.threads = 1;
    g_autoptr(KilnProgram) program = program_of(text, &options);
    KilnSession *session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    return session;
}

static void
run_at(KilnSession *session, int rank, const int64_t *dims)
{
    bind_shaped(session, 0, numbers, (size_t)rank, dims);
    run(session);
}

/* How many regions a run at @dims compiles. */
static uint64_t
compiled_at(KilnSession *session, int rank, const int64_t *dims)
{
    uint64_t before = kiln_kernel_cache_compiled();
    run_at(session, rank, dims);
    return kiln_kernel_cache_compiled() - before;
}

static void
expect_close(KilnSession *found, KilnSession *expected)
{
    KilnTensorInfo a = KILN_TENSOR_INFO_INIT, b = KILN_TENSOR_INFO_INIT;
    const float *x = kiln_session_output(found, 0, &a, NULL);
    const float *y = kiln_session_output(expected, 0, &b, NULL);
    cr_assert(x && y && a.bytes == b.bytes);
    for (int64_t i = 0; i < a.bytes / (int64_t)sizeof *x; i++)
        cr_assert(fabsf(x[i] - y[i]) <= 1e-5f, "element %d: expected %g, found %g", (int)i,
                  (double)y[i], (double)x[i]);
}

static uint32_t
count_regions(const KilnSession *session)
{
    const KilnSpecialisation *made = session->made;
    uint32_t n = 0;
    for (uint32_t c = 0; c < made->n_calls; c++)
        n += made->calls[c].instr->kind == KILN_INSTR_call;
    return n;
}

/* The region is compiled for each shape once, and one program has all shapes. */
Test(open_regions, shapes_are_compiled_once)
{
    if (!offload_has_vendor())
        cr_skip_test("built without a vendor library");
    static const int64_t shapes[][4] = {
        { 1, 16, 8, 9 }, { 2, 16, 8, 9 }, { 1, 16, 33, 5 }, { 1, 16, 8, 9 }, { 1, 16, 33, 5 },
    };
    g_autoptr(KilnSession) session = session_under(picture, "offload", FALSE);
    g_autoptr(KilnSession) own = session_under(picture, "none", TRUE);
    const int64_t before[] = { 3, 16, 4, 4 };
    run_at(session, 4, before); /* compiles the program with the hints, too */
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        cr_expect_eq(compiled_at(session, 4, shapes[i]), i < 3, "shape %zu", i);
        run_at(own, 4, shapes[i]);
        expect_close(session, own);
        cr_expect(session->made->instance);
        cr_expect_eq(count_regions(session), 1u);
    }
    cr_expect_eq(session->program->specialisations->len, 0u);
}

/* Sessions share regions, and both have the packed weights of the program. */
Test(open_regions, sessions_share_them)
{
    if (!offload_has_vendor())
        cr_skip_test("built without a vendor library");
    static const int64_t dims[] = { 1, 16, 12, 12 };
    GError *error = NULL;
    g_autoptr(KilnSession) session = session_under(picture, "offload", FALSE);
    g_autoptr(KilnSession) other = kiln_session_new(session->program, NULL, &error);
    cr_assert(other, "%s", error ? error->message : "");
    run_at(session, 4, dims);
    cr_expect_eq(compiled_at(other, 4, dims), 0u);
    for (uint32_t c = 0; c < session->made->n_calls; c++)
        cr_expect_eq(session->made->calls[c].packed, other->made->calls[c].packed);
}

/* Of many shapes the last ones stay. */
Test(open_regions, the_cache_is_bounded)
{
    if (!offload_has_vendor())
        cr_skip_test("built without a vendor library");
    g_autoptr(KilnSession) session = session_under(picture, "offload", FALSE);
    size_t most = 0;
    for (int64_t i = 0; i < 700; i++) {
        const int64_t dims[] = { 1, 16, 1 + i % 26, 1 + i / 26 };
        run_at(session, 4, dims);
        const KilnTemplate *template = g_ptr_array_index(session->program->templates, 0);
        most = MAX(most, kiln_regions_bytes(kiln_template_regions(template)));
    }
    cr_expect_leq(most, (size_t)KILN_REGION_BYTES);
    cr_expect_gt(most, (size_t)KILN_REGION_BYTES / 2);
    const int64_t first[] = { 1, 16, 1, 1 };
    cr_expect_eq(compiled_at(session, 4, first), 1u);
}

/* At the hint the softmax runs along the last dim, for the dim behind it is 1. The vendor refuses
 * other numbers, and own kernels compute the region there. */
Test(open_regions, refused_numbers_run_on_own_kernels)
{
    if (!offload_has_vendor())
        cr_skip_test("built without a vendor library");
    static const char text[] = "graph @f(%x: f32[A,8,C]) {\n"
                               "  %s = softmax(%x) {axis=1} : f32[A,8,C]\n"
                               "  return %s\n}\n"
                               "dims {\n  A: hint=4096\n  C: hint=1\n}\n";
    static const int64_t shapes[][3] = { { 4, 8, 1 }, { 4, 8, 3 }, { 2, 8, 5 }, { 4, 8, 1 } };
    g_autoptr(KilnSession) session = session_under(text, "offload", FALSE);
    g_autoptr(KilnSession) own = session_under(text, "none", TRUE);
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        run_at(session, 3, shapes[i]);
        run_at(own, 3, shapes[i]);
        expect_close(session, own);
        cr_assert(session->made->instance);
        cr_assert_eq(count_regions(session), 1u);
        for (uint32_t c = 0; c < session->made->n_calls; c++) {
            const KilnBoundCall *call = &session->made->calls[c];
            bool by_own = strcmp(call->kernel->name, "own:region") == 0;
            if (call->instr->kind == KILN_INSTR_call)
                cr_expect_eq(by_own, shapes[i][2] > 1, "shape %zu", i);
        }
    }
}

/* A file of @session's program, read again. */
static KilnSession *
session_of_file(KilnSession *session)
{
    GError *error = NULL;
    g_autofree char *path = NULL;
    int file = g_file_open_tmp("kiln-regions-XXXXXX", &path, &error);
    cr_assert_geq(file, 0);
    g_close(file, NULL);
    must(kiln_program_save(session->program, path, &error), error);
    g_autoptr(KilnProgram) program = kiln_program_load(path, NULL, &error);
    g_unlink(path);
    cr_assert(program, "%s", error ? error->message : "");
    KilnSession *again = kiln_session_new(program, NULL, &error);
    cr_assert(again, "%s", error ? error->message : "");
    return again;
}

static void
expect_equal(KilnSession *found, KilnSession *expected)
{
    KilnTensorInfo a = KILN_TENSOR_INFO_INIT, b = KILN_TENSOR_INFO_INIT;
    const void *x = kiln_session_output(found, 0, &a, NULL);
    const void *y = kiln_session_output(expected, 0, &b, NULL);
    cr_assert(x && y && a.bytes == b.bytes);
    cr_expect_arr_eq(x, y, (size_t)a.bytes);
}

/* The program of a file has the regions of the one that was saved, with equal bits. */
Test(open_regions, files_have_them)
{
    static const int64_t shapes[][4] = { { 1, 16, 8, 9 }, { 2, 16, 30, 7 } };
    if (!offload_has_vendor())
        cr_skip_test("built without a vendor library");
    g_autoptr(KilnSession) session = session_under(picture, "offload", FALSE);
    g_autoptr(KilnSession) again = session_of_file(session);
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        run_at(session, 4, shapes[i]);
        run_at(again, 4, shapes[i]);
        expect_equal(again, session);
        cr_expect_eq(count_regions(again), count_regions(session));
    }
}

/* A program is open if data decides a dim. Its regions may have numbers only. */
Test(open_regions, files_have_regions_of_fixed_shapes)
{
    static const char text[] = "graph @f(%x: f32[1,16,24,24]) {\n"
                               "  %w = const @w : f32[16,16,3,3]\n"
                               "  %c = conv(%x, %w) {pads=[1,1,1,1]} : f32[1,16,24,24]\n"
                               "  %r = relu(%c) : f32[1,16,24,24]\n"
                               "  %n = non_zero(%r) : i64[4,?]\n"
                               "  return %r, %n\n}\n"
                               "constants {\n"
                               "  @w = random_normal(seed=1, std=0.1) : f32[16,16,3,3]\n}\n";
    static const int64_t dims[] = { 1, 16, 24, 24 };
    if (!offload_has_vendor())
        cr_skip_test("built without a vendor library");
    g_autoptr(KilnSession) session = session_under(text, "offload", FALSE);
    g_autoptr(KilnSession) again = session_of_file(session);
    run_at(session, 4, dims);
    run_at(again, 4, dims);
    expect_equal(again, session);
    cr_expect_eq(count_regions(again), 1u);
}
