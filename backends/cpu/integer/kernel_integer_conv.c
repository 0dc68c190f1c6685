/* SPDX-License-Identifier: Apache-2.0 */
/* conv_integer, and conv of quantized types without a tail, of one or two spatial dims: the
 * instruction as a problem of integer_conv.h. Operands: result, data, weights, then two zero
 * points, or the bias. */
#include "backends/cpu/integer/integer_args.h"
#include "backends/cpu/integer/integer_conv.h"
#include "backends/cpu/integer/integer_planes.h"
#include "backends/cpu/integer/kernel_integer_params.h"
#include "backends/cpu/kernel.h"

/* Where each result has a pixel of its own, all rows are one. */
static void
join_rows(KilnIntegerConv *c)
{
    for (int d = 0; d < 2; d++) {
        if (c->kernel[d] != 1 || c->stride[d] != 1 || c->pad[d] != 0 || c->in[d] != c->out[d])
            return;
    }
    c->in[1] *= c->in[0];
    c->in[0] = 1;
    c->out[1] = c->in[1];
    c->out[0] = 1;
}

static KilnIntegerConv
problem_of(const KilnInstr *instr)
{
    const KilnType *out = cpu_type(instr, 0), *x = cpu_type(instr, 1), *w = cpu_type(instr, 2);
    const bool plain = instr->kind == KILN_INSTR_conv_integer;
    const KilnInstrAttrs_conv_integer *a = plain ? kiln_instr_attrs(instr, conv_integer) : NULL;
    const KilnInstrAttrs_conv *q = plain ? NULL : kiln_instr_attrs(instr, conv);
    const KilnInts strides = plain ? a->strides : q->strides, pads = plain ? a->pads : q->pads;
    const KilnInts dilations = plain ? a->dilations : q->dilations;
    KilnIntegerConv c = { .batch = x->dims[0],
                          .groups = plain ? a->group : q->group,
                          .ic = x->dims[1],
                          .oc = out->dims[1],
                          .x_signed = x->dtype == KILN_DTYPE_i8,
                          .w_signed = w->dtype == KILN_DTYPE_i8 };
    const int missing = 4 - x->rank; /* dims that stand in front with extent 1 */
    for (int d = 0; d < 2; d++) {
        const bool there = d >= missing;
        const uint32_t i = there ? (uint32_t)(d - missing) : 0;
        c.in[d] = there ? x->dims[i + 2] : 1;
        c.out[d] = there ? out->dims[i + 2] : 1;
        c.kernel[d] = there ? w->dims[i + 2] : 1;
        c.stride[d] = there ? kiln_ints_at(strides, i, 1) : 1;
        c.dilation[d] = there ? kiln_ints_at(dilations, i, 1) : 1;
        c.pad[d] = there ? kiln_ints_at(pads, i, 0) : 0;
    }
    join_rows(&c);
    return c;
}

/* Padding makes planes larger than anything that the instruction names. */
static bool
has_countable_planes(const KilnInstr *instr)
{
    const KilnIntegerConv c = problem_of(instr);
    return kiln_integer_planes_size(&c) < 0x1p56;
}

bool
kiln_cpu_conv_integer_supports(const KilnInstr *instr)
{
    const KilnType *x = cpu_type(instr, 1), *w = cpu_type(instr, 2);
    return x->rank >= 3 && x->rank <= 4 && kiln_type_elements(w) > 0 && kiln_cpu_is_bytes(x) &&
           kiln_cpu_is_bytes(w) && kiln_cpu_is_countable(instr) && has_countable_planes(instr);
}

bool
kiln_cpu_conv_quantized_supports(const KilnInstr *instr)
{
    const KilnType *bias = cpu_type(instr, 3);
    return kiln_cpu_conv_integer_supports(instr) && kiln_cpu_scales_bytes(instr) &&
           (!bias || bias->dtype == KILN_DTYPE_i32);
}

static size_t
scratch_of(const KilnInstr *instr, int threads)
{
    (void)threads;
    const KilnIntegerConv c = problem_of(instr);
    const bool packed = kiln_operand_is_const(instr, 2);
    return kiln_cpu_params_size(c.oc) + (size_t)kiln_integer_conv_scratch_size(&c, packed);
}

static const char *
run(const KilnKernelArgs *args, const KilnIntegerParams *params, const int32_t *bias)
{
    const KilnIntegerConv c = problem_of(args->instr);
    const KilnIntegerArgs a = kiln_cpu_integer_args(args, params, bias, c.oc);
    kiln_integer_conv_run(&c, &a);
    return NULL;
}

const char *
kiln_cpu_conv_integer(const KilnKernelArgs *args)
{
    const KilnIntegerParams params = kiln_cpu_zero_params(args);
    return run(args, &params, NULL);
}

const char *
kiln_cpu_conv_quantized(const KilnKernelArgs *args)
{
    const KilnIntegerParams params = kiln_cpu_scale_params(args);
    return run(args, &params, cpu_type(args->instr, 3) ? args->data[3] : NULL);
}

/* --- packed weights --- */

static size_t
packed_of(const KilnInstr *instr)
{
    const KilnIntegerConv c = problem_of(instr);
    return (size_t)kiln_integer_conv_packed_size(&c);
}

static const char *
pack(const KilnInstr *instr, const void *const *data, void *packed, KilnSlice slice)
{
    const KilnIntegerConv c = problem_of(instr);
    kiln_integer_conv_pack(&c, data[2], packed, slice);
    return NULL;
}

KILN_CPU_PACKS(conv_integer)
KILN_CPU_PACKS(conv_quantized)
