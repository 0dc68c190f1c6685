/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the element-wise instructions of several operands: numpy broadcasting around the
 * single-element operations of scalar.h. Each element of every operand is read before the element
 * of the result is written, so that the result may lie in an operand of its type. */
#include "backends/ref/scalar.h"

/* Where the operand's element lies that belongs to element @i, at @index, of the result. */
static int64_t
operand_offset(const KilnType *operand, const KilnType *result, const int64_t *index, int64_t i)
{
    return kiln_type_same_shape(operand, result)
               ? i
               : ref_broadcast_offset(operand, index, result->rank);
}

const char *
kiln_ref_binary(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    const KilnType *out = ref_type(args, 0), *a = ref_type(args, 1), *b = ref_type(args, 2);
    const RefBinary *op = kiln_ref_binary_op(instr->kind);
    const int64_t n = ref_elements(out);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < n; i++, ref_next(index, out->dims, out->rank)) {
        RefValue result = { 0 };
        RefValue operands[2] = {
            ref_load(a->dtype, args->data[1], operand_offset(a, out, index, i)),
            ref_load(b->dtype, args->data[2], operand_offset(b, out, index, i)),
        };
        const char *error =
            kiln_ref_apply_binary(op, instr->attrs, ref_class(a->dtype), operands, &result);
        if (error)
            return error;
        ref_store(out->dtype, args->data[0], i, result);
    }
    return NULL;
}

const char *
kiln_ref_pow(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0), *a = ref_type(args, 1), *b = ref_type(args, 2);
    const int64_t n = ref_elements(out);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < n; i++, ref_next(index, out->dims, out->rank)) {
        RefValue result = { 0 };
        RefValue operands[2] = {
            ref_load(a->dtype, args->data[1], operand_offset(a, out, index, i)),
            ref_load(b->dtype, args->data[2], operand_offset(b, out, index, i)),
        };
        const char *error =
            kiln_ref_apply_pow(ref_class(a->dtype), ref_class(b->dtype), operands, &result);
        if (error)
            return error;
        ref_store(out->dtype, args->data[0], i, result);
    }
    return NULL;
}

/* max, min, sum, mean: operands are taken from the left; sums are rounded once, at the end. */
const char *
kiln_ref_variadic(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    const KilnType *out = ref_type(args, 0);
    const bool mean = instr->kind == KILN_INSTR_mean;
    const RefBinary *op = kiln_ref_binary_op(mean ? KILN_INSTR_sum : instr->kind);
    const int64_t n = ref_elements(out);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < n; i++, ref_next(index, out->dims, out->rank)) {
        RefValue result = { 0 };
        for (uint32_t k = 1; k < instr->n_operands; k++) {
            const KilnType *type = ref_type(args, k);
            RefValue next =
                ref_load(type->dtype, args->data[k], operand_offset(type, out, index, i));
            if (k == 1)
                result = next;
            else
                kiln_ref_apply_binary(op, instr->attrs, ref_class(type->dtype),
                                      (RefValue[]){ result, next }, &result);
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
    const KilnType *out = ref_type(args, 0), *condition = ref_type(args, 1);
    const size_t size = kiln_dtype_size(out->dtype);
    const int64_t n = ref_elements(out);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < n; i++, ref_next(index, out->dims, out->rank)) {
        int64_t at = operand_offset(condition, out, index, i);
        uint32_t chosen = ((const uint8_t *)args->data[1])[at] ? 2 : 3;
        int64_t from = operand_offset(ref_type(args, chosen), out, index, i);
        ref_copy_element(args->data[0], i, args->data[chosen], from, size);
    }
    return NULL;
}
