/* SPDX-License-Identifier: Apache-2.0 */
/* Models in text with and without offload: the regions that the vendor takes, and the difference of
 * its results from those of own kernels. */
#ifndef KILN_TESTS_UNIT_OFFLOAD_CASE_H
#define KILN_TESTS_UNIT_OFFLOAD_CASE_H

#include "ir/target.h"
#include "kiln.h"
#include "runtime/bind.h"
#include "runtime/program.h"
#include "runtime/targets.h"
#include "tests/unit/runtime_case.h"

#include <math.h>
#include <string.h>

/** A constant with random elements, in a text. */
#define W(name, type) "  @" name " = random_normal(seed=3, std=0.2) : " type "\n"

/** The vendor library is there. */
static inline bool
offload_has_vendor(void)
{
    return kiln_target_by_name("cpu", NULL)->vendor != NULL;
}

/** The vendor library has all its kernels. Without AVX-512 it takes less. */
static inline bool
offload_has_all(void)
{
    const KilnTarget *target = kiln_target_by_name("cpu", NULL);
    return target->vendor && target->isa == KILN_ISA_AVX512 && !g_getenv("ONEDNN_MAX_CPU_ISA");
}

/** Compiles @text with @passes. NULL: no passes and no offload. */
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

/** The number of calls of regions that the vendor took. */
static inline uint32_t
offload_calls(const KilnProgram *program)
{
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    uint32_t calls = 0;
    for (uint32_t c = 0; c < made->n_calls; c++)
        calls += made->calls[c].instr->kind == KILN_INSTR_call;
    return calls;
}

/** Runs @program twice. Returns the elements of all outputs, which must be f32. */
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
    /* The second run sees memory that the first one left. */
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

/** The vendor may sum in another order than own kernels. Sums have some thousand f32 products at
 * most, so their roundings are far below the bound. One wrong element is far above it. */
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

/** Expects that @text with @passes gives the bits of @one on two, three and four threads. */
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
