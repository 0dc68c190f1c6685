/* SPDX-License-Identifier: Apache-2.0 */
/* conv with the attribute algorithm="winograd" and constant weights. What it cannot compute, and
 * weights that are not constant, are left to the direct form. So are weights of the first run that
 * are not finite: transformed, they would be NaN in all of a tile. */
#include "backends/cpu/conv/conv_problem.h"
#include "backends/cpu/conv/conv_winograd.h"
#include "backends/cpu/conv/kernel_conv.h"
#include "backends/cpu/cost.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/stack/kernel_tail.h"

#include <math.h>
#include <string.h>

bool
kiln_cpu_conv_winograd_supports(const KilnInstr *instr)
{
    if (strcmp(kiln_instr_attrs(instr, conv)->algorithm, "winograd") != 0 ||
        cpu_type(instr, 1)->rank != 4 || !cpu_all_plain(instr, KILN_DTYPE_f32) ||
        !kiln_operand_is_const(instr, 2) || !kiln_cpu_tail_supports(instr))
        return false;
    KilnCpuConv c = kiln_cpu_conv_problem(instr);
    return kiln_winograd_supports(&c);
}

/* @form is the direct form's, which may take its place. */
size_t
kiln_cpu_conv_winograd_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    KilnCpuConv c = kiln_cpu_conv_problem(instr);
    size_t bytes = (size_t)kiln_winograd_scratch_size(&c, threads);
    return kiln_operand_comes_late(instr, 2)
               ? MAX(bytes, kiln_cpu_conv_scratch(instr, form, threads))
               : bytes;
}

size_t
kiln_cpu_conv_winograd_packed(const KilnInstr *instr, uint32_t form)
{
    (void)form;
    KilnCpuConv c = kiln_cpu_conv_problem(instr);
    return (size_t)kiln_winograd_pack_size(&c);
}

const char *
kiln_cpu_conv_winograd_prepack(const KilnInstr *instr, uint32_t form, const void *const *data,
                               void *packed, KilnSlice slice)
{
    (void)form;
    KilnCpuConv c = kiln_cpu_conv_problem(instr);
    kiln_winograd_pack(&c, data[2], packed, slice);
    return NULL;
}

double
kiln_cpu_conv_winograd_cost(const KilnInstr *instr)
{
    KilnCpuConv c = kiln_cpu_conv_problem(instr);
    double terms[KILN_CPU_TERMS];
    kiln_winograd_terms(&c, terms);
    return kiln_cpu_cost(KILN_CPU_COST_winograd, terms);
}

const char *
kiln_cpu_conv_winograd(const KilnKernelArgs *args)
{
    if (args->fitted)
        return kiln_cpu_conv(args);
    KilnCpuConv c = kiln_cpu_conv_problem(args->instr);
    KilnCpuConvArgs a = kiln_cpu_conv_arguments(args);
    kiln_winograd_run(&c, &a);
    return NULL;
}

/* --- the direct form in its place --- */

static size_t
measure(const KilnInstr *instr, uint32_t form, const void *const *data, int threads,
        GByteArray *head)
{
    (void)threads;
    (void)head;
    const char *weights = data[2];
    int64_t bytes = kiln_type_bytes(cpu_type(instr, 2));
    for (int64_t i = 0; i < bytes; i += sizeof(float)) {
        float weight;
        memcpy(&weight, weights + i, sizeof weight);
        if (!isfinite(weight))
            return kiln_cpu_conv_packed(instr, form);
    }
    return 0;
}

static void
pack_direct(const KilnInstr *instr, uint32_t form, const void *const *data, void *packed,
            KilnSlice slice)
{
    kiln_cpu_conv_prepack(instr, form, data, packed, slice);
}

static bool
is_sound(const KilnInstr *instr, uint32_t form, const void *packed, size_t bytes)
{
    (void)packed;
    return bytes == kiln_cpu_conv_packed(instr, form);
}

const KilnFitted kiln_cpu_conv_winograd_spare = { .measure = measure,
                                                  .pack = pack_direct,
                                                  .is_sound = is_sound };
