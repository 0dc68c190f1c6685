/* SPDX-License-Identifier: Apache-2.0 */
/* Constants in places of activations: in a region they lie nowhere until somebody reads them, and
 * in the layout that they are given in, by the whole road as it ships. */
#include "runtime/internal.h"
#include "tests/unit/runtime_case.h"

#include <math.h>

#define W(name, type) "  @" name " = random_normal(seed=3, std=0.2) : " type "\n"
#define BEGIN                                                                                      \
    "graph @f(%x: f32[1,32,20,20]) {\n"                                                            \
    "  %w = const @w : f32[64,32,3,3]\n  %k = const @k : f32[1,64,20,20]\n"                        \
    "  %c = conv(%x, %w) {pads=[1,1,1,1]} : f32[1,64,20,20]\n"
#define END(inputs)                                                                                \
    "  %v = const @v : f32[64," inputs ",3,3]\n"                                                   \
    "  %y = conv(%r, %v) {pads=[1,1,1,1]} : f32[1,64,20,20]\n  return %y\n}\n"                     \
    "constants {\n" W("w", "f32[64,32,3,3]") W("k", "f32[1,64,20,20]")                             \
        W("v", "f32[64," inputs ",3,3]") "}\n"

static const struct {
    const char *name, *text;
} problems[] = {
    { "a residual", BEGIN "  %r = add(%c, %k) : f32[1,64,20,20]\n" END("64") },
    { "a part of a concat",
      BEGIN "  %r = concat(%c, %k) {axis=1} : f32[1,128,20,20]\n" END("128") },
    { "a part of a concat, twice",
      BEGIN "  %r = concat(%k, %c, %k) {axis=1} : f32[1,192,20,20]\n" END("192") },
    { "a factor", BEGIN "  %r = mul(%k, %c) : f32[1,64,20,20]\n" END("64") },
    { "an activation of one, in a text",
      "graph @f(%x: f32[1,32,8,8]) {\n"
      "  %w = const @w : f32[16,32,3,3]\n  %k = const @k : f32[1,16,8,8]\n"
      "  %y, %n = vendor.executable @r(%x, %w, %k) : f32[1,16,8,8], f32[1,16,8,8]\n"
      "  return %y, %n\n}\n"
      "declare @r(f32[1,32,8,8], f32[16,32,3,3], f32[1,16,8,8]) -> f32[1,16,8,8], f32[1,16,8,8]\n"
      "  body(%p: f32[1,32,8,8], %q: f32[16,32,3,3] constant=compile,\n"
      "       %z: f32[1,16,8,8] constant=compile) {\n"
      "  %c = conv(%p, %q) {pads=[1,1,1,1]} : f32[1,16,8,8]\n"
      "  %n = relu(%z) : f32[1,16,8,8]\n  %s = add(%c, %n) : f32[1,16,8,8]\n  return %s, %n\n}\n"
      "constants {\n" W("w", "f32[16,32,3,3]") W("k", "f32[1,16,8,8]") "}\n" },
};

static GArray *
outputs_of(const char *text, gboolean no_offload, int threads)
{
    GError *error = NULL;
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = kiln_pipeline_parse(
        "partition-offload{when=always,min-us=0},propagate-layouts,constant-fold{evaluate=compile},"
        "compile-offload",
        &error);
    cr_assert(options.pipeline, "%s", error ? error->message : "");
    options.no_offload = no_offload;
    options.threads = threads;
    g_autoptr(KilnProgram) program = program_of(text, &options);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    int64_t n = kiln_program_input(program, 0)->bytes / (int64_t)sizeof(float);
    g_autofree float *x = g_new(float, (gsize)n);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((i * 37 % 101) - 50) / 50.0f;
    bind(session, 0, x, (size_t)n * sizeof *x);
    run(session);
    run(session); /* finds what the first one left behind */
    GArray *all = g_array_new(FALSE, FALSE, sizeof(float));
    for (unsigned i = 0; i < kiln_program_n_outputs(program); i++) {
        KilnTensorInfo info;
        const float *data = kiln_session_output(session, i, &info, &error);
        g_array_append_vals(all, data, (guint)(info.bytes / 4));
    }
    kiln_pipeline_unref(options.pipeline);
    return all;
}

Test(offload_constants, OFF_06_in_places_of_activations)
{
    for (size_t p = 0; p < G_N_ELEMENTS(problems); p++) {
        g_autoptr(GArray) own = outputs_of(problems[p].text, TRUE, 1);
        g_autoptr(GArray) one = outputs_of(problems[p].text, FALSE, 1);
        g_autoptr(GArray) two = outputs_of(problems[p].text, FALSE, 2);
        double scale = 0, difference = 0;
        cr_assert_eq(one->len, own->len);
        for (guint i = 0; i < own->len; i++) {
            double a = (double)g_array_index(own, float, i);
            double d = a - (double)g_array_index(one, float, i);
            scale += a * a;
            difference += d * d;
        }
        cr_expect(sqrt(difference) <= 1e-5 * sqrt(scale), "%s: relative L2 error %g",
                  problems[p].name, sqrt(difference / scale));
        cr_expect(memcmp(one->data, two->data, one->len * sizeof(float)) == 0,
                  "%s: two threads give other bits than one", problems[p].name);
    }
}
