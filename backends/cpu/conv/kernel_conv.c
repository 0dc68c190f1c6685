/* SPDX-License-Identifier: Apache-2.0 */
/* conv and conv_transpose in f32, one to three spatial dims: the instruction's types and attributes
 * as a problem of conv.h. Operands: result, data, weights, bias, residual. */
#include "backends/cpu/conv/kernel_conv.h"

#include "backends/cpu/conv/conv.h"
#include "backends/cpu/cost.h"
#include "backends/cpu/movement/strided_operands.h"
#include "backends/cpu/stack/kernel_tail.h"

/* What the two instructions share, whatever the struct of their attributes. */
typedef struct {
    KilnInts strides, dilations, pads;
    int64_t group;
} Window;

static Window
window_of(const KilnInstr *instr)
{
    if (instr->kind == KILN_INSTR_conv) {
        const KilnInstrAttrs_conv *a = kiln_instr_attrs(instr, conv);
        return (Window){ a->strides, a->dilations, a->pads, a->group };
    }
    const KilnInstrAttrs_conv_transpose *a = kiln_instr_attrs(instr, conv_transpose);
    return (Window){ a->strides, a->dilations, a->pads, a->group };
}

/* Padding that an instruction states may be read by an image of some size. */
static bool
has_pads(KilnInts pads)
{
    for (uint32_t i = 0; i < pads.n; i++) {
        if (pads.v[i] > 0)
            return true;
    }
    return false;
}

KilnCpuConv
kiln_cpu_conv_problem(const KilnInstr *instr)
{
    const KilnType *out = cpu_type(instr, 0), *in = cpu_type(instr, 1), *w = cpu_type(instr, 2);
    Window window = window_of(instr);
    KilnCpuConv c = { .batch = in->dims[0],
                      .ic = in->dims[1],
                      .oc = out->dims[1],
                      .groups = window.group,
                      .tail = kiln_cpu_tail_of(instr),
                      .pads = has_pads(window.pads) };
    int missing = 5 - in->rank; /* dims that stand in front with extent 1 */
    for (int d = 0; d < 3; d++) {
        bool there = d >= missing;
        uint32_t i = there ? (uint32_t)(d - missing) : 0;
        c.in[d] = there ? in->dims[i + 2] : 1;
        c.out[d] = there ? out->dims[i + 2] : 1;
        c.kernel[d] = there ? w->dims[i + 2] : 1;
        c.stride[d] = there ? kiln_ints_at(window.strides, i, 1) : 1;
        c.dilation[d] = there ? kiln_ints_at(window.dilations, i, 1) : 1;
        c.pad[d] = there ? kiln_ints_at(window.pads, i, 0) : 0;
    }
    return c;
}

/* Forms of packed weights are numbered as those of conv.h, without the first, which is no form of
 * its own. */
static KilnCpuConv
packed_problem(const KilnInstr *instr, uint32_t form)
{
    KilnCpuConv c = kiln_cpu_conv_problem(instr);
    c.weights_packed = true;
    c.form = (KilnConvForm)(KILN_CONV_STRAIGHT + form);
    return c;
}

static KilnCpuConv
problem_of(const KilnKernelArgs *args)
{
    return args->packed ? packed_problem(args->instr, args->form)
                        : kiln_cpu_conv_problem(args->instr);
}

/* With packed weights, as is best for the extents. */
static KilnCpuConv
best_problem(const KilnInstr *instr)
{
    KilnCpuConv c = kiln_cpu_conv_problem(instr);
    c.weights_packed = true;
    return c;
}

bool
kiln_cpu_conv_supports(const KilnInstr *instr)
{
    int rank = cpu_type(instr, 1)->rank;
    return rank >= 3 && rank <= 5 && cpu_all_plain(instr, KILN_DTYPE_f32) &&
           kiln_cpu_tail_supports(instr);
}

KilnCpuConvArgs
kiln_cpu_conv_arguments(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    const int64_t batch = cpu_type(instr, 0)->dims[0];
    return (KilnCpuConvArgs){ .in_image = kiln_cpu_pitch(instr, 1, batch),
                              .out_image = kiln_cpu_pitch(instr, 0, batch),
                              .residual_image =
                                  cpu_type(instr, 4) ? kiln_cpu_pitch(instr, 4, batch) : 0,
                              .in = args->data[1],
                              .weights = args->packed ? args->packed : args->data[2],
                              .out = args->data[0],
                              .bias = cpu_type(instr, 3) ? args->data[3] : NULL,
                              .residual = cpu_type(instr, 4) ? args->data[4] : NULL,
                              .scratch = args->scratch,
                              .threads = args->threads };
}

/* Weights that are not known to be constant may still be packed when the program is bound. */
static size_t
scratch_of(const KilnInstr *instr, uint32_t form, int threads,
           int64_t (*scratch_size)(const KilnCpuConv *conv, int threads))
{
    KilnCpuConv packed = packed_problem(instr, form), plain = kiln_cpu_conv_problem(instr);
    size_t bytes = (size_t)scratch_size(&packed, threads);
    if (kiln_operand_is_const(instr, 2))
        return bytes;
    return MAX(bytes, (size_t)scratch_size(&plain, threads));
}

uint32_t
kiln_cpu_conv_form(const KilnInstr *instr)
{
    KilnCpuConv c = best_problem(instr);
    return kiln_cpu_conv_best_form(&c) - KILN_CONV_STRAIGHT;
}

size_t
kiln_cpu_conv_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    return scratch_of(instr, form, threads, kiln_cpu_conv_scratch_size);
}

size_t
kiln_cpu_conv_packed(const KilnInstr *instr, uint32_t form)
{
    KilnCpuConv c = packed_problem(instr, form);
    return (size_t)kiln_cpu_conv_pack_size(&c);
}

const char *
kiln_cpu_conv_prepack(const KilnInstr *instr, uint32_t form, const void *const *data, void *packed,
                      KilnSlice slice)
{
    KilnCpuConv c = packed_problem(instr, form);
    kiln_cpu_conv_pack(&c, data[2], packed, slice);
    return NULL;
}

const char *
kiln_cpu_conv(const KilnKernelArgs *args)
{
    KilnCpuConv c = problem_of(args);
    KilnCpuConvArgs a = kiln_cpu_conv_arguments(args);
    kiln_cpu_conv_run(&c, &a);
    return NULL;
}

double
kiln_cpu_conv_cost(const KilnInstr *instr)
{
    KilnCpuConv c = best_problem(instr);
    double terms[KILN_CPU_TERMS];
    KilnCpuCostKind kind = kiln_direct_terms(&c, terms);
    return kiln_cpu_cost(kind, terms);
}

bool
kiln_cpu_conv_transpose_supports(const KilnInstr *instr)
{
    return kiln_cpu_conv_supports(instr) && !cpu_type(instr, 4);
}

uint32_t
kiln_cpu_conv_transpose_form(const KilnInstr *instr)
{
    KilnCpuConv c = best_problem(instr);
    return kiln_cpu_conv_transpose_best_form(&c) - KILN_CONV_STRAIGHT;
}

size_t
kiln_cpu_conv_transpose_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    return scratch_of(instr, form, threads, kiln_cpu_conv_transpose_scratch_size);
}

size_t
kiln_cpu_conv_transpose_packed(const KilnInstr *instr, uint32_t form)
{
    KilnCpuConv c = packed_problem(instr, form);
    return (size_t)kiln_cpu_conv_transpose_pack_size(&c);
}

const char *
kiln_cpu_conv_transpose_prepack(const KilnInstr *instr, uint32_t form, const void *const *data,
                                void *packed, KilnSlice slice)
{
    KilnCpuConv c = packed_problem(instr, form);
    kiln_cpu_conv_transpose_pack(&c, data[2], packed, slice);
    return NULL;
}

double
kiln_cpu_conv_transpose_cost(const KilnInstr *instr)
{
    KilnCpuConv c = best_problem(instr);
    double terms[KILN_CPU_TERMS];
    kiln_transposed_terms(&c, terms);
    return kiln_cpu_cost(KILN_CPU_COST_transposed, terms);
}

const char *
kiln_cpu_conv_transpose(const KilnKernelArgs *args)
{
    KilnCpuConv c = problem_of(args);
    KilnCpuConvArgs a = kiln_cpu_conv_arguments(args);
    kiln_cpu_conv_transpose_run(&c, &a);
    return NULL;
}
