/* SPDX-License-Identifier: Apache-2.0 */
/* Constants in places of activations: in a region they lie nowhere until somebody reads them, and
 * in the layout that they are given in, by the whole road as it ships. */
#include "runtime/bind.h"
#include "runtime/program.h"
#include "tests/unit/offload_case.h"

#define PASSES                                                                                     \
    "partition-offload{when=always,min-us=0},propagate-layouts,constant-fold{evaluate=compile},"   \
    "compile-offload"
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

Test(offload_constants, OFF_06_in_places_of_activations)
{
    if (!offload_has_vendor())
        cr_skip_test("built without a vendor library");
    for (size_t p = 0; p < G_N_ELEMENTS(problems); p++) {
        g_autoptr(KilnProgram) alone = offload_program(problems[p].text, NULL, 1);
        g_autoptr(KilnProgram) offloading = offload_program(problems[p].text, PASSES, 1);
        uint32_t calls = offload_calls(offloading);
        if (offload_has_all())
            cr_expect_eq(calls, 1u, "%s: %u calls", problems[p].name, calls);
        g_autoptr(GArray) own = offload_outputs(alone), one = offload_outputs(offloading);
        offload_agrees(own, one, problems[p].name);
        offload_same_bits(problems[p].text, PASSES, one, problems[p].name);
    }
}

/* Weights that come with the first run: a region packs them behind it, beside literals. */
Test(offload_constants, of_the_first_run)
{
    static const char text[] = "graph @f(%x: f32[1,32,20,20], %w: f32[64,32,3,3] constant=run,\n"
                               "         %b: f32[64] constant=compile) {\n"
                               "  %c = conv(%x, %w, %b) {pads=[1,1,1,1]} : f32[1,64,20,20]\n"
                               "  %r = relu(%c) : f32[1,64,20,20]\n" END("64");
    if (!offload_has_vendor())
        cr_skip_test("built without a vendor library");
    g_autoptr(KilnProgram) alone = offload_program(text, NULL, 1);
    g_autoptr(KilnProgram) offloading = offload_program(text, PASSES, 1);
    if (offload_has_all())
        cr_expect_eq(offload_calls(offloading), 1u);
    const KilnSpecialisation *made = g_ptr_array_index(offloading->specialisations, 0);
    cr_expect_eq(made->calls[0].late, 1u);
    g_autoptr(GArray) own = offload_outputs(alone), one = offload_outputs(offloading);
    offload_agrees(own, one, "weights of the first run");
    offload_same_bits(text, PASSES, one, "weights of the first run");
}
