/* SPDX-License-Identifier: Apache-2.0 */
/* cast, between all element types but string (text/cast.c).
 *
 * Float to integer truncates; out of range, where ONNX leaves the result open, it saturates, and
 * NaN gives 0. To integers of 2 and 4 bits the low bits are kept instead. Integer to integer keeps
 * the low bits. Anything to bool is "not 0" (NaN is true). To a float rounds half to even, once:
 * f32 to f16 keeps what fits of a NaN's payload. Floats of 8 bits round as the attributes say. */
#include "backends/ref/elementwise/scalar.h"
#include "backends/ref/kernel.h"

#include <string.h>

static void
store_from_int(KilnDType to, void *data, int64_t i, RefValue value, bool is_signed)
{
    switch (to) {
    case KILN_DTYPE_f32: /* not through double, which would round twice */
        ((float *)data)[i] = is_signed ? (float)value.s : (float)value.u;
        break;
    case KILN_DTYPE_bf16: {
        float near = is_signed ? (float)value.s : (float)value.u;
        ((uint16_t *)data)[i] = kiln_f32_to_bf16(near);
        break;
    }
    default:
        if (kiln_dtype_is_float(to)) /* beyond 2^53 an f16 is infinite anyway */
            ref_store_float(to, data, i, is_signed ? (double)value.s : (double)value.u);
        else
            ref_store_int(to, data, i, value.s);
        break;
    }
}

void
kiln_ref_cast_element(KilnDType from, RefValue value, KilnDType to, void *data, int64_t i)
{
    if (!kiln_dtype_is_float(from))
        store_from_int(to, data, i, value, kiln_dtype_is_signed(from));
    else if (kiln_dtype_is_integer(to) && kiln_dtype_bits(to) < 8)
        ref_store_int(to, data, i, ref_truncate_signed(value.f));
    else if (to == KILN_DTYPE_f16 && from != KILN_DTYPE_f64)
        ((uint16_t *)data)[i] = kiln_f32_to_f16((float)value.f);
    else
        kiln_element_store_f64(to, data, i, value.f);
}

static KilnRoundMode
round_mode_of(const char *name)
{
    return strcmp(name, "down") == 0      ? KILN_ROUND_DOWN
           : strcmp(name, "nearest") == 0 ? KILN_ROUND_NEAREST
                                          : KILN_ROUND_UP;
}

static void
cast_to_low_float(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_cast *attrs = kiln_instr_attrs(args->instr, cast);
    const KilnDType from = ref_type(args, 1)->dtype, to = ref_type(args, 0)->dtype;
    const KilnRoundMode mode = round_mode_of(attrs->round_mode);
    const int64_t n = ref_elements(ref_type(args, 1));
    for (int64_t i = 0; i < n; i++)
        ((uint8_t *)args->data[0])[i] = kiln_low_float_from_f64(
            to, kiln_element_as_f64(from, args->data[1], i), attrs->saturate, mode);
}

const char *
kiln_ref_cast(const KilnKernelArgs *args)
{
    const KilnType *from = ref_type(args, 1), *to = ref_type(args, 0);
    const int64_t n = ref_elements(from);
    if (kiln_dtype_is_low_float(to->dtype)) {
        cast_to_low_float(args);
        return NULL;
    }
    if (from->dtype == to->dtype) {
        memmove(args->data[0], args->data[1], (size_t)n * kiln_dtype_size(to->dtype));
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        kiln_ref_cast_element(from->dtype, ref_load(from->dtype, args->data[1], i), to->dtype,
                              args->data[0], i);
    return NULL;
}

bool
kiln_ref_cast_supports(const KilnInstr *instr)
{
    return kiln_instr_operand(instr, 0)->type.dtype != KILN_DTYPE_string;
}
