/* SPDX-License-Identifier: Apache-2.0 */
/* quantize_linear, dequantize_linear, dynamic_quantize_linear, rescale_quantized.
 *
 * The arithmetic is that of f32, step by step, whatever the type of x and scale: x / scale (or the
 * difference from the zero point times scale) is rounded to f32, then half to even to an integer,
 * to which the zero point is added, saturating. So a fast kernel can have the same bits. What is
 * NaN quantizes to the zero point, which stands for 0. */
#include "backends/ref/integer/quantize.h"

#include "backends/ref/elementwise/scalar.h"
#include "backends/ref/kernel.h"

#include <math.h>

void
kiln_ref_store_quantized(KilnDType dtype, void *data, int64_t i, float steps, int64_t zero)
{
    /* In double neither 2^31 + zero nor 1e38 + zero is an overflow. */
    double rounded = isnan(steps) ? 0 : rint((double)steps);
    kiln_element_store_f64(dtype, data, i, rounded + (double)zero);
}

/* Where the parameters of elements lie. */
typedef struct {
    RefSplit split;
    int64_t block, blocks; /* elements of a block along the axis, and blocks there; 0: no blocks */
    bool one;
} Params;

static Params
params_of(const KilnKernelArgs *args, int64_t axis, int64_t block)
{
    const KilnType *type = ref_type(args, 1);
    Params params = { ref_split(type, axis), block, 0, ref_elements(ref_type(args, 2)) == 1 };
    if (block && params.split.axis)
        params.blocks = (params.split.axis - 1) / block + 1;
    return params;
}

static bool
params_fit(const KilnKernelArgs *args, const Params *params)
{
    const RefSplit *split = &params->split;
    const int64_t expected = params->one     ? 1
                             : params->block ? split->outer * params->blocks * split->inner
                                             : split->axis;
    return ref_elements(ref_type(args, 2)) == expected &&
           (!ref_has(args, 3) || ref_elements(ref_type(args, 3)) == expected);
}

static const char misfit[] = "the number of scales or zero points does not fit the data";

/* The index of element @i: one for all, one per index of the axis, or one per block of them. */
static int64_t
param_index(const Params *params, int64_t i)
{
    const RefSplit *split = &params->split;
    const int64_t at = i / split->inner % split->axis;
    if (params->one)
        return 0;
    if (!params->block)
        return at;
    const int64_t outer = i / split->inner / split->axis;
    return (outer * params->blocks + at / params->block) * split->inner + i % split->inner;
}

static float
as_f32(KilnDType dtype, const void *data, int64_t i)
{
    if (kiln_dtype_is_float(dtype))
        return (float)ref_load_float(dtype, data, i);
    return (float)ref_load_int(dtype, data, i);
}

static int64_t
zero_point(const KilnKernelArgs *args, uint32_t operand, int64_t index)
{
    return ref_has(args, operand)
               ? ref_load_int(ref_type(args, operand)->dtype, args->data[operand], index)
               : 0;
}

/* Of a float type, whose steps are no integers. */
static float
float_zero_point(const KilnKernelArgs *args, int64_t index)
{
    return as_f32(ref_type(args, 3)->dtype, args->data[3], index);
}

/* The forms with operands for scale and zero point. */
bool
kiln_ref_has_scale(const KilnInstr *instr)
{
    return kiln_instr_operand(instr, 2);
}

const char *
kiln_ref_quantize_linear(const KilnKernelArgs *args)
{
    const KilnType *type = ref_type(args, 1), *scales = ref_type(args, 2);
    const KilnInstrAttrs_quantize_linear *attrs = kiln_instr_attrs(args->instr, quantize_linear);
    const Params params = params_of(args, attrs->axis, attrs->block_size);
    const KilnDType to = ref_type(args, 0)->dtype;
    const int64_t n = ref_elements(type);
    if (n && !params_fit(args, &params))
        return misfit;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = param_index(&params, i);
        float steps =
            as_f32(type->dtype, args->data[1], i) / as_f32(scales->dtype, args->data[2], at);
        if (!kiln_dtype_is_low_float(to)) {
            kiln_ref_store_quantized(to, args->data[0], i, steps, zero_point(args, 3, at));
            continue;
        }
        if (ref_has(args, 3))
            steps += float_zero_point(args, at);
        ((uint8_t *)args->data[0])[i] =
            kiln_low_float_from_f64(to, (double)steps, attrs->saturate, KILN_ROUND_UP);
    }
    return NULL;
}

const char *
kiln_ref_dequantize_linear(const KilnKernelArgs *args)
{
    const KilnType *type = ref_type(args, 1), *scales = ref_type(args, 2);
    const KilnInstrAttrs_dequantize_linear *attrs =
        kiln_instr_attrs(args->instr, dequantize_linear);
    const Params params = params_of(args, attrs->axis, attrs->block_size);
    const bool floats = kiln_dtype_is_low_float(type->dtype);
    const int64_t n = ref_elements(type);
    if (n && !params_fit(args, &params))
        return misfit;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = param_index(&params, i);
        float steps;
        if (!floats)
            steps = (float)(ref_load_int(type->dtype, args->data[1], i) - zero_point(args, 3, at));
        else if (ref_has(args, 3))
            steps = as_f32(type->dtype, args->data[1], i) - float_zero_point(args, at);
        else
            steps = as_f32(type->dtype, args->data[1], i);
        ref_store_float(ref_type(args, 0)->dtype, args->data[0], i,
                        (double)(steps * as_f32(scales->dtype, args->data[2], at)));
    }
    return NULL;
}

/* Results: y (u8), its scale, its zero point. The range always includes 0; a range of 0 has
 * scale 1. */
const char *
kiln_ref_dynamic_quantize_linear(const KilnKernelArgs *args)
{
    const float *x = args->data[3];
    const int64_t n = ref_elements(ref_type(args, 3));
    float low = 0, high = 0;
    for (int64_t i = 0; i < n; i++) {
        low = (float)ref_min((double)low, (double)x[i]);
        high = (float)ref_max((double)high, (double)x[i]);
    }
    const float scale = low == high ? 1.f : (high - low) / 255.f;
    uint8_t *zero = args->data[2];
    kiln_ref_store_quantized(KILN_DTYPE_u8, zero, 0, -low / scale, 0);
    ((float *)args->data[1])[0] = scale;
    for (int64_t i = 0; i < n; i++)
        kiln_ref_store_quantized(KILN_DTYPE_u8, args->data[0], i, x[i] / scale, *zero);
    return NULL;
}

int64_t
kiln_ref_quant_index(const KilnType *type, int64_t i)
{
    if (type->quant->axis < 0)
        return 0;
    const RefSplit split = ref_split(type, type->quant->axis);
    return i / split.inner % split.axis;
}

/* --- parameters in the types --- */

void
kiln_ref_quantize_element(float x, KilnRefQuant to, KilnDType dtype, void *data, int64_t i)
{
    kiln_ref_store_quantized(dtype, data, i, x / to.scale, to.zero_point);
}

void
kiln_ref_dequantize_element(int64_t x, KilnRefQuant from, KilnDType dtype, void *data, int64_t i)
{
    const float steps = (float)(x - from.zero_point);
    ref_store_float(dtype, data, i, (double)(steps * from.scale));
}

/* The factor is rounded to f32. */
void
kiln_ref_rescale_element(int64_t x, KilnRefQuant from, KilnRefQuant to, KilnDType dtype, void *data,
                         int64_t i)
{
    const float factor = from.scale / to.scale;
    kiln_ref_store_quantized(dtype, data, i, (float)(x - from.zero_point) * factor, to.zero_point);
}

/* The parameters of element @i. */
static KilnRefQuant
quant_of(const KilnType *type, int64_t i)
{
    const int64_t at = kiln_ref_quant_index(type, i);
    return (KilnRefQuant){ type->quant->scales[at], type->quant->zero_points[at] };
}

const char *
kiln_ref_quantize_typed(const KilnKernelArgs *args)
{
    const KilnType *from = ref_type(args, 1), *to = ref_type(args, 0);
    const int64_t n = ref_elements(from);
    for (int64_t i = 0; i < n; i++)
        kiln_ref_quantize_element(as_f32(from->dtype, args->data[1], i), quant_of(to, i), to->dtype,
                                  args->data[0], i);
    return NULL;
}

bool
kiln_ref_quantize_typed_supports(const KilnInstr *instr)
{
    return !kiln_instr_operand(instr, 2) && kiln_instr_operand(instr, 0)->type.quant;
}

const char *
kiln_ref_dequantize_typed(const KilnKernelArgs *args)
{
    const KilnType *from = ref_type(args, 1), *to = ref_type(args, 0);
    const int64_t n = ref_elements(from);
    for (int64_t i = 0; i < n; i++)
        kiln_ref_dequantize_element(ref_load_int(from->dtype, args->data[1], i), quant_of(from, i),
                                    to->dtype, args->data[0], i);
    return NULL;
}

bool
kiln_ref_dequantize_typed_supports(const KilnInstr *instr)
{
    return !kiln_instr_operand(instr, 2) && kiln_instr_operand(instr, 1)->type.quant;
}

const char *
kiln_ref_lookup_table(const KilnKernelArgs *args)
{
    const KilnType *x = ref_type(args, 1), *table = ref_type(args, 2);
    const int64_t lowest = x->dtype == KILN_DTYPE_i8 ? INT8_MIN : 0, n = ref_elements(x);
    for (int64_t i = 0; i < n; i++)
        ref_copy_element(args->data[0], i, args->data[2],
                         ref_load_int(x->dtype, args->data[1], i) - lowest,
                         kiln_dtype_size(table->dtype));
    return NULL;
}

bool
kiln_ref_lookup_table_supports(const KilnInstr *instr)
{
    return kiln_instr_operand(instr, 2)->type.dtype != KILN_DTYPE_string;
}

const char *
kiln_ref_rescale_quantized(const KilnKernelArgs *args)
{
    const KilnType *from = ref_type(args, 1), *to = ref_type(args, 0);
    const int64_t n = ref_elements(from);
    for (int64_t i = 0; i < n; i++)
        kiln_ref_rescale_element(ref_load_int(from->dtype, args->data[1], i), quant_of(from, i),
                                 quant_of(to, i), to->dtype, args->data[0], i);
    return NULL;
}

bool
kiln_ref_rescale_quantized_supports(const KilnInstr *instr)
{
    return kiln_instr_operand(instr, 0)->type.quant && kiln_instr_operand(instr, 1)->type.quant;
}
