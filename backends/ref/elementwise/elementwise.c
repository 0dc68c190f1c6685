/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the element-wise instructions of several operands: numpy broadcasting around the
 * single-element operations of scalar.h. Each element of every operand is read before the element
 * of the result is written, so that the result may lie in an operand of its type. */
#include "backends/ref/elementwise/scalar.h"
#include "backends/ref/kernel.h"

/* True where all operands have the shape of the result: then element i belongs to element i. */
static bool
is_flat(const KilnKernelArgs *args)
{
    for (uint32_t k = 1; k < args->instr->n_operands; k++) {
        if (ref_has(args, k) && !kiln_type_same_shape(ref_type(args, k), ref_type(args, 0)))
            return false;
    }
    return true;
}

/* Element @i, at @index, of the result as operand @k sees it. */
static RefValue
load(const KilnKernelArgs *args, uint32_t k, const int64_t *index, int64_t i, bool flat)
{
    const KilnType *type = ref_type(args, k);
    if (!flat)
        i = ref_broadcast_offset(type, index, ref_type(args, 0)->rank);
    return ref_load(type->dtype, args->data[k], i);
}

/* pow has two classes of operands, and no @op. */
static const char *
combine(const KilnKernelArgs *args, const RefBinary *op)
{
    const KilnType *out = ref_type(args, 0);
    const RefClass left = ref_class(ref_type(args, 1)->dtype);
    const RefClass right = ref_class(ref_type(args, 2)->dtype);
    const bool flat = is_flat(args);
    const int64_t n = ref_elements(out);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < n; i++, ref_next(index, out->dims, out->rank)) {
        RefValue result = { 0 };
        RefValue operands[2] = {
            load(args, 1, index, i, flat),
            load(args, 2, index, i, flat),
        };
        const char *error =
            op ? kiln_ref_apply_binary(op, args->instr->attrs, left, operands, &result)
               : kiln_ref_apply_pow(left, right, operands, &result);
        if (error)
            return error;
        ref_store(out->dtype, args->data[0], i, result);
    }
    return NULL;
}

const char *
kiln_ref_binary(const KilnKernelArgs *args)
{
    return combine(args, kiln_ref_binary_op(args->instr->kind));
}

const char *
kiln_ref_pow(const KilnKernelArgs *args)
{
    return combine(args, NULL);
}

/* max, min, sum, mean: operands are taken from the left; sums are rounded once, at the end. */
const char *
kiln_ref_variadic(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    const KilnType *out = ref_type(args, 0);
    const bool mean = instr->kind == KILN_INSTR_mean;
    const RefBinary *op = kiln_ref_binary_op(mean ? KILN_INSTR_sum : instr->kind);
    const RefClass class_ = ref_class(out->dtype);
    const bool flat = is_flat(args);
    const int64_t n = ref_elements(out);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < n; i++, ref_next(index, out->dims, out->rank)) {
        RefValue result = { 0 };
        for (uint32_t k = 1; k < instr->n_operands; k++) {
            RefValue next = load(args, k, index, i, flat);
            if (k == 1)
                result = next;
            else
                kiln_ref_apply_binary(op, instr->attrs, class_, (RefValue[]){ result, next },
                                      &result);
        }
        if (mean)
            result.f /= instr->n_operands - 1;
        ref_store(out->dtype, args->data[0], i, result);
    }
    return NULL;
}

/* min(max(x, low), high): where low > high the result is high, and NaN anywhere gives NaN. */
const char *
kiln_ref_clip(const KilnKernelArgs *args)
{
    const KilnType *type = ref_type(args, 1);
    const KilnInstrKind step[2] = { KILN_INSTR_max, KILN_INSTR_min };
    const int64_t n = ref_elements(type);
    for (int64_t i = 0; i < n; i++) {
        RefValue x = ref_load(type->dtype, args->data[1], i);
        for (uint32_t k = 0; k < 2; k++) {
            if (!ref_has(args, k + 2))
                continue;
            RefValue operands[2] = { x, ref_load(type->dtype, args->data[k + 2], 0) };
            kiln_ref_apply_binary(kiln_ref_binary_op(step[k]), NULL, ref_class(type->dtype),
                                  operands, &x);
        }
        ref_store(type->dtype, args->data[0], i, x);
    }
    return NULL;
}

/* Moves bytes, so that NaNs keep their payload. */
const char *
kiln_ref_where(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0);
    const bool flat = is_flat(args);
    const size_t size = kiln_dtype_size(out->dtype);
    const int64_t n = ref_elements(out);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < n; i++, ref_next(index, out->dims, out->rank)) {
        uint32_t chosen = load(args, 1, index, i, flat).u ? 2 : 3;
        int64_t from = flat ? i : ref_broadcast_offset(ref_type(args, chosen), index, out->rank);
        ref_copy_element(args->data[0], i, args->data[chosen], from, size);
    }
    return NULL;
}
