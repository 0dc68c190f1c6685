/* SPDX-License-Identifier: Apache-2.0 */
/* range, one_hot, eye_like, trilu, extents: results that follow from positions. */
#include "backends/ref/kernel.h"
#include "ir/kernel.h"

/* operands: result, start, delta. Element i is start + i × delta, evaluated as one operation. */
const char *
kiln_ref_range(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0);
    int64_t n = ref_elements(out);
    if (n == 0)
        return NULL;
    RefValue start = ref_load(out->dtype, args->data[1], 0);
    RefValue delta = ref_load(out->dtype, args->data[2], 0);
    for (int64_t i = 0; i < n; i++) {
        RefValue value;
        if (kiln_dtype_is_float(out->dtype))
            value.f = start.f + (double)i * delta.f;
        else
            value.u = start.u + (uint64_t)i * delta.u;
        ref_store(out->dtype, args->data[0], i, value);
    }
    return NULL;
}

/* operands: result, indices, [off, on]. The depth is the result's extent along the axis; indices
 * below zero count from its end, and one that fits nowhere gives off everywhere. Indices of a float
 * type are truncated. */
const char *
kiln_ref_one_hot(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_one_hot *attrs = kiln_instr_attrs(args->instr, one_hot);
    const KilnType *out = ref_type(args, 0);
    KilnDType indices = ref_type(args, 1)->dtype;
    size_t size = kiln_dtype_size(out->dtype);
    RefSplit split = ref_split(out, attrs->axis);
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        int64_t hot = kiln_element_as_i64(indices, args->data[1], i);
        if (hot < 0 && hot >= -split.axis && indices != KILN_DTYPE_u64)
            hot += split.axis;
        int64_t base = i / split.inner * split.axis * split.inner + i % split.inner;
        for (int64_t a = 0; a < split.axis; a++)
            ref_copy_element(args->data[0], base + a * split.inner, args->data[2], a == hot, size);
    }
    return NULL;
}

/* The numbers that the attribute lists; none stands for zeros. */
const char *
kiln_ref_extents(const KilnKernelArgs *args)
{
    const KilnInts values = kiln_instr_attrs(args->instr, extents)->values;
    const KilnType *out = ref_type(args, 0);
    for (int64_t i = 0; i < ref_elements(out); i++) {
        int64_t value = kiln_ints_at(values, (uint32_t)i, 0);
        if (out->dtype == KILN_DTYPE_i64)
            ((int64_t *)args->data[0])[i] = value;
        else /* exact in a double: 32 bits or a bit */
            kiln_element_store_f64(out->dtype, args->data[0], i, (double)value);
    }
    return NULL;
}

/* Ones where column - row is k. */
const char *
kiln_ref_eye_like(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_eye_like *attrs = kiln_instr_attrs(args->instr, eye_like);
    const KilnType *out = ref_type(args, 0);
    for (int64_t row = 0; row < out->dims[0]; row++) {
        for (int64_t column = 0; column < out->dims[1]; column++)
            kiln_element_store_f64(out->dtype, args->data[0], row * out->dims[1] + column,
                                   column - row == attrs->k);
    }
    return NULL;
}

/* Keeps what lies on the diagonal k and above it (upper) or below it; the rest is zero. May run in
 * place. */
const char *
kiln_ref_trilu(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_trilu *attrs = kiln_instr_attrs(args->instr, trilu);
    const KilnType *out = ref_type(args, 0);
    size_t size = kiln_dtype_size(out->dtype);
    int64_t rows = out->dims[out->rank - 2], columns = out->dims[out->rank - 1];
    int64_t n = ref_elements(out);
    for (int64_t i = 0; i < n; i++) {
        /* Compared without a sum: k may be anything. */
        int64_t row = i / columns % rows, above = i % columns - row;
        bool keep = attrs->upper ? above >= attrs->k : above <= attrs->k;
        if (!keep)
            memset(ref_at_out(args->data[0], i, size), 0, size);
        else if (args->data[0] != args->data[1])
            ref_copy_element(args->data[0], i, args->data[1], i, size);
    }
    return NULL;
}
