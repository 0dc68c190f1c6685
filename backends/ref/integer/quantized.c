/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on quantized operands, by way of f64 copies of them: the instruction is copied with
 * f64 in place of quantized types and floats, all in scratch, and its float kernel runs on the
 * copies. docs/quantization.md says what follows for the numbers:
 *
 *  - conv, conv_transpose, matmul and gemm see how many steps from its zero point each operand is.
 *    Their sums are integers, which f64 holds exactly and which then wrap to i32; the sum, as f32,
 *    is multiplied by x_scale * w_scale / y_scale, computed in f32 in this order.
 *  - everything else sees reals, scale * steps in f64, and its result, rounded to f64, is divided
 * by the scale of the result in f64.
 *
 * Both are rounded half to even, then the zero point is added, saturating. NaN gives the zero
 * point. */
#include "backends/ref/integer/quantized.h"

#include "backends/ref/integer/quantize.h"
#include "backends/ref/movement/blocked.h"
#include "graph/base/alloc.h"
#include "graph/base/number.h"
#include "ir/target.h"

#include <math.h>

/* True where operand @i is there and becomes f64. */
static bool
is_widened(const KilnInstr *instr, uint32_t i)
{
    const KilnBuffer *buffer = instr->operands[i].buffer;
    return buffer && (buffer->type.quant || kiln_dtype_is_float(buffer->type.dtype));
}

static RefCopy *
make_wide(const KilnInstr *instr, void *memory)
{
    RefCopy *wide = kiln_ref_instr_copy(instr, memory);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (!is_widened(instr, i))
            continue;
        wide->buffers[i].type.dtype = KILN_DTYPE_f64;
        wide->buffers[i].type.quant = NULL;
    }
    return wide;
}

static size_t
copy_bytes(const RefCopy *wide, uint32_t i)
{
    return kiln_align_up((size_t)kiln_type_bytes(&wide->buffers[i].type));
}

static bool
is_product(const KilnInstr *instr)
{
    return instr->kind == KILN_INSTR_conv || instr->kind == KILN_INSTR_conv_transpose ||
           instr->kind == KILN_INSTR_matmul || instr->kind == KILN_INSTR_gemm;
}

/* --- the kernel's row --- */

bool
kiln_ref_quantized_supports(const KilnTarget *ref, const KilnInstr *instr)
{
    const KilnBuffer *out = kiln_instr_operand(instr, 0), *in = kiln_instr_operand(instr, 1);
    /* A stack has steps whose results would not be rounded; conversions have kernels of their own.
     */
    bool other = instr->kind == KILN_INSTR_stack || instr->kind == KILN_INSTR_copy ||
                 instr->kind == KILN_INSTR_quantize_linear ||
                 instr->kind == KILN_INSTR_dequantize_linear ||
                 instr->kind == KILN_INSTR_rescale_quantized;
    if (other || !kiln_ref_is_plain(instr) || !out || !in || !out->type.quant || !in->type.quant)
        return false;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        KilnType wide = buffer ? buffer->type : kiln_type_scalar(KILN_DTYPE_f64);
        wide.dtype = is_widened(instr, i) ? KILN_DTYPE_f64 : wide.dtype;
        if (kiln_type_bytes(&wide) < 0)
            return false;
    }
    g_autofree void *memory = g_malloc(kiln_ref_instr_bytes(instr));
    return kiln_target_find(ref, &make_wide(instr, memory)->instr) != NULL;
}

size_t
kiln_ref_quantized_scratch(const KilnTarget *ref, const KilnInstr *instr, int threads)
{
    g_autofree void *memory = g_malloc(kiln_ref_instr_bytes(instr));
    const RefCopy *wide = make_wide(instr, memory);
    const KilnKernel *kernel = kiln_target_find(ref, &wide->instr);
    size_t bytes = kiln_ref_instr_bytes(instr);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (is_widened(instr, i))
            bytes += copy_bytes(wide, i);
    }
    return bytes + (kernel->scratch_bytes ? kernel->scratch_bytes(&wide->instr, 0, threads) : 0);
}

/* --- in and out of f64 --- */

static void
widen(const KilnType *type, const void *data, bool product, double *to)
{
    const int64_t n = ref_elements(type);
    for (int64_t i = 0; i < n; i++) {
        if (!type->quant) {
            to[i] = ref_load_float(type->dtype, data, i);
            continue;
        }
        const int64_t at = kiln_ref_quant_index(type, i);
        const double steps =
            (double)(ref_load_int(type->dtype, data, i) - type->quant->zero_points[at]);
        to[i] = product ? steps : steps * (double)type->quant->scales[at];
    }
}

static void
quantize(const KilnType *type, const double *reals, void *to)
{
    const int64_t n = ref_elements(type);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = kiln_ref_quant_index(type, i);
        const double steps = reals[i] / (double)type->quant->scales[at];
        kiln_element_store_f64(type->dtype, to, i,
                               (isnan(steps) ? 0 : rint(steps)) + type->quant->zero_points[at]);
    }
}

/* Channels are dim 1 of a convolution, the last of a matrix. */
static void
requantize(const KilnKernelArgs *args, const double *sums)
{
    const KilnType *type = ref_type(args, 0);
    const KilnQuant *x = ref_type(args, 1)->quant, *w = ref_type(args, 2)->quant, *y = type->quant;
    const bool matrix =
        args->instr->kind == KILN_INSTR_matmul || args->instr->kind == KILN_INSTR_gemm;
    const RefSplit split = ref_split(type, matrix ? type->rank - 1 : 1);
    const int64_t n = ref_elements(type);
    for (int64_t i = 0; i < n; i++) {
        const int64_t channel = w->axis < 0 ? 0 : i / split.inner % split.axis;
        const float factor = x->scales[0] * w->scales[channel] / y->scales[0];
        const int32_t sum = (int32_t)(uint32_t)(int64_t)sums[i];
        kiln_ref_store_quantized(type->dtype, args->data[0], i, (float)sum * factor,
                                 y->zero_points[0]);
    }
}

static void
narrow(const KilnKernelArgs *args, uint32_t i, const double *from)
{
    const KilnType *type = ref_type(args, i);
    const int64_t n = ref_elements(type);
    if (type->quant && is_product(args->instr)) {
        requantize(args, from);
    } else if (type->quant) {
        quantize(type, from, args->data[i]);
    } else {
        for (int64_t k = 0; k < n; k++)
            ref_store_float(type->dtype, args->data[i], k, from[k]);
    }
}

const char *
kiln_ref_quantized(const KilnTarget *ref, const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    RefCopy *wide = make_wide(instr, args->scratch);
    char *free = (char *)args->scratch + kiln_ref_instr_bytes(instr);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        wide->data[i] = args->data[i];
        if (!is_widened(instr, i))
            continue;
        wide->data[i] = free;
        free += copy_bytes(wide, i);
        if (instr->operands[i].access != KILN_ACCESS_OUT)
            widen(ref_type(args, i), args->data[i], is_product(instr), wide->data[i]);
    }
    const KilnKernelArgs wide_args = {
        .instr = &wide->instr, .data = wide->data, .scratch = free, .threads = args->threads
    };
    const KilnKernel *kernel = kiln_target_find(ref, &wide->instr);
    const char *error = kernel->run(&wide_args);
    for (uint32_t i = 0; i < instr->n_operands && !error; i++) {
        if (is_widened(instr, i) && instr->operands[i].access != KILN_ACCESS_IN)
            narrow(args, i, wide->data[i]);
    }
    return error;
}
