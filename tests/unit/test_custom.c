/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of custom_ops as kernels of a target, by themselves and inside a vendor's regions. */
#include "exec/custom.h"
#include "ir/compiled.h"
#include "runtime/bind.h"
#include "runtime/program.h"
#include "runtime/targets.h"

#include "backends/ref/ref.h"
#include "graph/base/alloc.h"
#include "graph/base/shared.h"
#include "ir/target.h"
#include "ir/vendor.h"
#include "kiln.h"
#include "tests/unit/offload_case.h"
#include "tests/unit/runtime_case.h"

#include <glib/gstdio.h>
#include <string.h>

/* --- by themselves --- */

static const char *
tag(uint32_t layout, int rank)
{
    static const char *const tags[] = { "acdb", "aBcd4b" };
    return rank == 4 ? tags[layout] : NULL;
}

static KilnModule *
module_of(const char *text)
{
    GError *error = NULL;
    KilnModule *module = kiln_module_parse(text, strlen(text), "case.kiln", &error);
    cr_assert(module, "%s", error ? error->message : "");
    return module;
}

#define BODY(x, y, nodes) "graph @f(" x ") {\n" nodes "  return " y "\n}\n"

static const char shuffle[] =
    BODY("%x: f32[1,8,3,5], %b: f32[1,8,1,1]", "%s, %y",
         "  %half = const @half : f32[]\n"
         "  %s = channel_shuffle(%x) {group=2} : f32[1,8,3,5]\n"
         "  %a = add(%s, %b) : f32[1,8,3,5]\n"
         "  %y = mul(%a, %half) : f32[1,8,3,5]\n") "constants {\n"
                                                   "  @half = [0.5] : f32[]\n}\n";

static KilnCustom *
custom_of(const KilnModule *module, KilnTagFn layouts, uint32_t layout, const KilnTarget *target)
{
    GError *error = NULL;
    KilnCustom *custom =
        kiln_custom_get(kiln_module_entry(module), layouts, layout, target, 2, &error);
    cr_assert(custom, "%s", error ? error->message : "");
    return custom;
}

static void
release(KilnCustom *custom)
{
    kiln_shared_unref(kiln_custom_shared(custom));
}

Test(custom, equal_bodies_share_one_object)
{
    g_autoptr(KilnModule) module = module_of(shuffle), again = module_of(shuffle);
    uint64_t before = kiln_custom_made();
    KilnCustom *a = custom_of(module, NULL, 0, kiln_ref_target());
    KilnCustom *b = custom_of(again, NULL, 0, kiln_ref_target());
    KilnCustom *c = custom_of(again, tag, 0, kiln_ref_target());
    cr_expect_eq(a, b);
    cr_expect_neq(a, c);
    cr_expect_eq(kiln_custom_made(), before + 2);
    release(a);
    release(b);
    release(c);
    /* It went with the last reference. */
    release(custom_of(module, NULL, 0, kiln_ref_target()));
    cr_expect_eq(kiln_custom_made(), before + 3);
}

/* Element @i of a value of dims [1,8,3,5] or [1,8,1,1] in a layout. */
static size_t
place_of(uint32_t layout, size_t channel, size_t pixel)
{
    return layout == 0 ? pixel * 8 + channel : (channel / 4 * 15 + pixel) * 4 + channel % 4;
}

static void
runs_as_the_reference(const KilnTarget *target, bool laid, uint32_t layout, int threads)
{
    g_autoptr(KilnModule) module = module_of(shuffle);
    KilnCustom *custom = custom_of(module, laid ? tag : NULL, layout, target);
    cr_expect_str_eq(laid ? tag(layout, 4) : "plain",
                     laid ? kiln_custom_type(custom, 1)->layout : "plain");
    float s[120], y[120], x[120], b[8];
    for (size_t c = 0; c < 8; c++) {
        b[c] = (float)c;
        for (size_t p = 0; p < 15; p++)
            x[laid ? place_of(layout, c, p) : c * 15 + p] = (float)(c * 15 + p);
    }
    void *scratch = kiln_alloc(1, kiln_custom_scratch(custom), NULL);
    memset(scratch, 0xff, kiln_custom_scratch(custom));
    cr_assert_null(kiln_custom_run(custom, (void *[]){ s, y, x, b }, scratch, threads));
    for (size_t c = 0; c < 8; c++) {
        size_t from = c % 2 * 4 + c / 2; /* two groups of four, dealt out */
        for (size_t p = 0; p < 15; p++) {
            size_t at = laid ? place_of(layout, c, p) : c * 15 + p;
            float want = (float)(from * 15 + p);
            cr_assert_eq(s[at], want, "channel %zu, pixel %zu: expected %g, found %g", c, p,
                         (double)want, (double)s[at]);
            cr_assert_eq(y[at], (want + (float)c) / 2);
        }
    }
    kiln_free(scratch);
    release(custom);
}

Test(custom, runs_plain_and_in_layouts)
{
    const KilnTarget *targets[] = { kiln_ref_target(), kiln_target_by_name("cpu", NULL) };
    for (size_t t = 0; t < G_N_ELEMENTS(targets); t++) {
        for (int threads = 1; threads <= 2; threads++) {
            runs_as_the_reference(targets[t], false, 0, threads);
            runs_as_the_reference(targets[t], true, 0, threads);
        }
    }
}

Test(custom, a_layout_that_means_something_else_is_refused)
{
    /* Two groups are dealt out within blocks of four channels. */
    g_autoptr(KilnModule) module = module_of(shuffle);
    GError *error = NULL;
    cr_expect_null(kiln_custom_laid(kiln_module_entry(module), tag, 1));
    cr_expect_null(
        kiln_custom_get(kiln_module_entry(module), tag, 1, kiln_ref_target(), 1, &error));
    expect_error(&error, KILN_ERROR_UNSUPPORTED, "mean something else");
}

Test(custom, a_target_without_the_kernel_is_an_error)
{
    g_autoptr(KilnModule) module = module_of(shuffle);
    KilnTarget empty = { .name = "empty" };
    GError *error = NULL;
    uint64_t before = kiln_custom_made();
    cr_expect_null(kiln_custom_get(kiln_module_entry(module), NULL, 0, &empty, 1, &error));
    expect_error(&error, KILN_ERROR_UNSUPPORTED, "target empty has no kernel for channel_shuffle");
    cr_expect_eq(kiln_custom_made(), before);
}

Test(custom, data_that_a_kernel_refuses)
{
    g_autoptr(KilnModule) module =
        module_of(BODY("%x: f32[4], %i: i64[2]", "%y", "  %y = gather(%x, %i) : f32[2]\n"));
    KilnCustom *custom = custom_of(module, NULL, 0, kiln_ref_target());
    float x[] = { 1, 2, 3, 4 }, y[2];
    int64_t good[] = { 3, 0 }, bad[] = { 4, 0 };
    void *scratch = kiln_alloc(1, kiln_custom_scratch(custom), NULL);
    cr_expect_null(kiln_custom_run(custom, (void *[]){ y, x, good }, scratch, 1));
    cr_expect(y[0] == 4 && y[1] == 1);
    cr_expect_not_null(kiln_custom_run(custom, (void *[]){ y, x, bad }, scratch, 1));
    kiln_free(scratch);
    release(custom);
}

/* --- in regions --- */

/* Shuffles of channels, and what the vendor lacks of a squeeze-and-excitation block. */
static const char regions[] =
    "graph @f(%x: f32[1,32,14,14]) {\n"
    "  %w0 = const @w0 : f32[32,32,3,3]\n  %w1 = const @w1 : f32[32,32,1,1]\n"
    "  %w2 = const @w2 : f32[32,32,1,1]\n  %s = const @s : f32[1,32,1,1]\n"
    "  %c0 = conv(%x, %w0) {pads=[1,1,1,1]} : f32[1,32,14,14]\n"
    "  %r0 = relu(%c0) : f32[1,32,14,14]\n"
    "  %k = channel_shuffle(%r0) {group=2} : f32[1,32,14,14]\n"
    "  %d = div(%k, %s) : f32[1,32,14,14]\n"
    "  %c1 = conv(%d, %w1) : f32[1,32,14,14]\n"
    "  %p = global_average_pool(%c1) : f32[1,32,1,1]\n"
    "  %c2 = conv(%p, %w2) : f32[1,32,1,1]\n"
    "  %h = hard_sigmoid(%c2) : f32[1,32,1,1]\n"
    "  %m = mul(%c1, %h) : f32[1,32,14,14]\n"
    "  %y = conv(%m, %w1) : f32[1,32,14,14]\n"
    "  return %y, %k\n}\n"
    "constants {\n"
    "  @w0 = random_normal(seed=1, std=0.1) : f32[32,32,3,3]\n"
    "  @w1 = random_normal(seed=2, std=0.2) : f32[32,32,1,1]\n"
    "  @w2 = random_normal(seed=3, std=0.2) : f32[32,32,1,1]\n"
    "  @s = random_uniform(seed=4, low=1, high=2) : f32[1,32,1,1]\n}\n";

#define MERGED                                                                                     \
    "partition-offload{when=always,min-us=0},merge-offload{when=always},propagate-layouts,"        \
    "constant-fold{evaluate=compile},compile-offload"

/* How many custom_ops the regions that @program calls describe. */
static uint32_t
count_customs(const KilnProgram *program)
{
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    uint32_t customs = 0;
    for (uint32_t c = 0; c < made->n_calls; c++) {
        if (made->calls[c].instr->kind != KILN_INSTR_call)
            continue;
        const KilnCompiled *compiled = kiln_call_compiled(made->calls[c].instr);
        g_autoptr(GString) text = g_string_new(NULL);
        compiled->vendor->describe(compiled, text);
        for (const char *at = text->str; (at = strstr(at, "custom_op: ")); at++)
            customs++;
    }
    return customs;
}

Test(custom, three_regions_become_one_and_agree)
{
    g_autoptr(KilnProgram) alone = offload_program(regions, NULL, 1);
    g_autoptr(KilnProgram) merged = offload_program(regions, MERGED, 1);
    if (offload_has_all()) {
        uint32_t customs = count_customs(merged);
        cr_expect_eq(offload_calls(merged), 1u, "%u calls", offload_calls(merged));
        /* What the vendor lacks; weights scaled by channel are a third where that is faster. */
        cr_expect(customs == 2 || customs == 3, "%u custom_ops", customs);
    }
    g_autoptr(GArray) own = offload_outputs(alone), one = offload_outputs(merged);
    offload_agrees(own, one, "regions");
}

Test(custom, same_bits_for_any_threads)
{
    g_autoptr(KilnProgram) program = offload_program(regions, MERGED, 1);
    g_autoptr(GArray) one = offload_outputs(program);
    offload_same_bits(regions, MERGED, one, "regions");
}

Test(custom, a_program_file_has_its_regions)
{
    GError *error = NULL;
    g_autofree char *path = NULL;
    int fd = g_file_open_tmp("kiln-custom-XXXXXX", &path, &error);
    cr_assert(fd >= 0, "%s", error ? error->message : "");
    g_close(fd, NULL);
    g_autoptr(KilnProgram) made = offload_program(regions, MERGED, 2);
    must(kiln_program_save(made, path, &error), error);
    uint64_t regions_before = kiln_kernel_cache_compiled(), before = kiln_custom_made();
    g_autoptr(KilnProgram) loaded = kiln_program_load(path, NULL, &error);
    cr_assert(loaded, "%s", error ? error->message : "");
    g_autoptr(GArray) want = offload_outputs(made), got = offload_outputs(loaded);
    cr_assert_eq(got->len, want->len);
    cr_expect_eq(memcmp(got->data, want->data, want->len * sizeof(float)), 0);
    cr_expect_eq(offload_calls(loaded), offload_calls(made));
    cr_expect_eq(count_customs(loaded), count_customs(made));
    /* They are those of the program that is there already. */
    cr_expect_eq(kiln_kernel_cache_compiled(), regions_before);
    cr_expect_eq(kiln_custom_made(), before);
    g_unlink(path);
}
