/* SPDX-License-Identifier: Apache-2.0 */
/* Models in text on the offload road and without it: what the vendor takes, and how far its results
 * are from those of own kernels. */
#ifndef KILN_TESTS_UNIT_OFFLOAD_CASE_H
#define KILN_TESTS_UNIT_OFFLOAD_CASE_H

#include "ir/kernel.h"
#include "ir/vendor.h"
#include "runtime/bind.h"
#include "runtime/program.h"
#include "runtime/targets.h"
#include "tests/unit/runtime_case.h"

#include <math.h>

/** A constant with random elements, in a text. */
#define W(name, type) "  @" name " = random_normal(seed=3, std=0.2) : " type "\n"

/** The vendor library is there. */
static inline bool
offload_has_vendor(void)
{
    return kiln_target_by_name("cpu", NULL)->vendor != NULL;
}

/** And has all its kernels: without AVX-512 it takes less. */
static inline bool
offload_has_all(void)
{
    const KilnTarget *target = kiln_target_by_name("cpu", NULL);
    return target->vendor && target->isa == KILN_ISA_AVX512 && !g_getenv("ONEDNN_MAX_CPU_ISA");
}

/** @text after @passes; NULL: none, and own kernels alone. */
static inline KilnProgram *
offload_program(const char *text, const char *passes, int threads)
{
    GError *error = NULL;
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = kiln_pipeline_parse(passes ? passes : "", &error);
    cr_assert(options.pipeline, "%s", error ? error->message : "");
    options.no_offload = !passes;
    options.threads = threads;
    KilnProgram *program = program_of(text, &options);
    kiln_pipeline_unref(options.pipeline);
    return program;
}

/** Calls of regions that the vendor took. */
static inline uint32_t
offload_calls(const KilnProgram *program)
{
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    uint32_t calls = 0;
    for (uint32_t c = 0; c < made->n_calls; c++)
        calls += made->calls[c].instr->kind == KILN_INSTR_call;
    return calls;
}

/** The elements of all outputs, which are of f32. */
static inline GArray *
offload_outputs(KilnProgram *program)
{
    GError *error = NULL;
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func(g_free);
    for (unsigned n = 0; n < kiln_program_n_inputs(program); n++) {
        const KilnTensorInfo *input = kiln_program_input(program, n);
        float *x = g_malloc((gsize)input->bytes);
        g_ptr_array_add(inputs, x);
        for (int64_t i = 0; i < input->bytes / 4; i++)
            x[i] = (float)((i * 37 % 101) - 50) / 50.0f;
        bind(session, n, x, (size_t)input->bytes);
    }
    /* The second run finds what the first left behind. */
    run(session);
    run(session);
    GArray *all = g_array_new(FALSE, FALSE, sizeof(float));
    for (unsigned i = 0; i < kiln_program_n_outputs(program); i++) {
        KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
        const float *data = kiln_session_output(session, i, &info, &error);
        cr_assert(data, "%s", error ? error->message : "");
        g_array_append_vals(all, data, (guint)(info.bytes / 4));
    }
    return all;
}

/** What the vendor gives is what own kernels do but for the order of sums, of some thousand
 * products of f32 at most: their roundings are far below the bound, and one wrong element of many
 * far above. */
static inline void
offload_agrees(const GArray *own, const GArray *vendor, const char *what)
{
    double scale = 0, difference = 0;
    cr_assert_eq(vendor->len, own->len);
    for (guint i = 0; i < own->len; i++) {
        double a = (double)g_array_index(own, float, i);
        double d = a - (double)g_array_index(vendor, float, i);
        scale += a * a;
        difference += d * d;
    }
    cr_expect(sqrt(difference) <= 1e-5 * sqrt(scale), "%s: relative L2 error %g", what,
              sqrt(difference / scale));
}

/** @text after @passes has on two to four threads the bits of @one. */
static inline void
offload_same_bits(const char *text, const char *passes, const GArray *one, const char *what)
{
    for (int threads = 2; threads <= 4; threads++) {
        g_autoptr(KilnProgram) program = offload_program(text, passes, threads);
        g_autoptr(GArray) more = offload_outputs(program);
        cr_assert_eq(more->len, one->len);
        cr_expect_eq(memcmp(more->data, one->data, one->len * sizeof(float)), 0,
                     "%s: %d threads give other bits than 1", what, threads);
    }
}

#endif
