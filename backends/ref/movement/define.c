/* SPDX-License-Identifier: Apache-2.0 */
/* Dims that data decides: non_zero finds how many elements there are, define checks the numbers
 * that names were given, take copies what a branch or loop holds. */
#include "backends/ref/kernel.h"
#include "graph/type.h"
#include "ir/flow.h"

#include <string.h>

const char *
kiln_ref_define(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_define *attrs = kiln_instr_attrs(args->instr, define);
    const KilnType *numbers = ref_type(args, 0);
    for (uint32_t i = 0; i < attrs->values.n; i++) {
        if (ref_load_int(numbers->dtype, args->data[0], i) != attrs->values.v[i])
            return "data decides other dims than those that the program stands at";
    }
    return NULL;
}

const char *
kiln_ref_refuse(const KilnKernelArgs *args)
{
    return kiln_instr_attrs(args->instr, refuse)->reason;
}

const char *
kiln_ref_take(const KilnKernelArgs *args)
{
    const int64_t index = kiln_instr_attrs(args->instr, take)->index;
    const int64_t *list = args->data[1];
    const KilnHeld *held = (const KilnHeld *)(uintptr_t)list[index];
    const size_t bytes = (size_t)kiln_type_bytes(ref_type(args, 0));
    if (held->bytes != bytes)
        return "the held result has another size than the operand";
    if (bytes)
        memcpy(args->data[0], held->data, bytes);
    return NULL;
}

static bool
is_zero(KilnDType dtype, const void *data, int64_t i)
{
    return kiln_dtype_is_float(dtype) ? ref_load_float(dtype, data, i) == 0
                                      : ref_load_int(dtype, data, i) == 0;
}

/* Row d of the result has the index along dim d of each element that is not 0, in their order. */
const char *
kiln_ref_non_zero(const KilnKernelArgs *args)
{
    const KilnType *x = ref_type(args, 2);
    int64_t *to = args->data[0], *count = args->data[1];
    int64_t n = ref_elements(x), found = 0, column = 0, strides[KILN_MAX_RANK];
    ref_strides(x, strides);
    for (int64_t i = 0; i < n; i++)
        found += !is_zero(x->dtype, args->data[2], i);
    for (int64_t i = 0; i < n; i++) {
        if (is_zero(x->dtype, args->data[2], i))
            continue;
        for (int d = 0; d < x->rank; d++)
            to[d * found + column] = i / strides[d] % x->dims[d];
        column++;
    }
    *count = found;
    return NULL;
}
