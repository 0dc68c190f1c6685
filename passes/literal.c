/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/literal.h"

#include "graph/alloc.h"
#include "graph/number.h"

static const int64_t exact = INT64_C(1) << 53; /* beyond it doubles skip integers */

/* @bytes[@i] as a double, or false where it is none. */
static bool
read_element(KilnDType dtype, const void *bytes, int64_t i, double *number)
{
    if (!kiln_dtype_is_float(dtype)) {
        int64_t integer = kiln_element_as_i64(dtype, bytes, i);
        if (integer > exact || integer < -exact)
            return false;
    }
    *number = kiln_element_as_f64(dtype, bytes, i);
    return true;
}

/* The tensor of a literal of numbers; NULL for anything else. */
static const KilnTensor *
number_tensor(const KilnValue *value)
{
    const KilnConstant *constant = value ? kiln_value_constant(value) : NULL;
    if (!constant || value->type.quant || value->type.layout)
        return NULL;
    const KilnTensor *tensor = constant->tensor;
    bool readable = tensor->kind != KILN_TENSOR_SPARSE && tensor->kind != KILN_TENSOR_STRINGS;
    return readable ? tensor : NULL;
}

double *
kiln_literal_read(const KilnValue *value, GError **error)
{
    const KilnTensor *tensor = number_tensor(value);
    if (!tensor)
        return NULL;
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, error);
    if (!bytes)
        return NULL;
    const void *data = g_bytes_get_data(bytes, NULL);
    int64_t n = kiln_type_elements(&tensor->type);
    g_autofree double *numbers = kiln_alloc((size_t)n + 1, sizeof *numbers, error);
    for (int64_t i = 0; numbers && i < n; i++) {
        if (!read_element(tensor->type.dtype, data, i, &numbers[i]))
            return NULL;
    }
    return g_steal_pointer(&numbers);
}

bool
kiln_literal_uniform(const KilnValue *value, double *number)
{
    const KilnTensor *tensor = number_tensor(value);
    uint8_t element[8];
    return tensor && kiln_tensor_is_splat(tensor, 65536, element) &&
           read_element(tensor->type.dtype, element, 0, number);
}

uint32_t
kiln_broadcast_dims(const KilnType *operand, const KilnType *type)
{
    if (operand->rank < 0 || operand->rank > type->rank)
        return UINT32_MAX;
    uint32_t varying = 0;
    int shift = type->rank - operand->rank;
    for (int d = 0; d < operand->rank; d++) {
        if (operand->dims[d] < 0 && !operand->dim_names[d])
            return UINT32_MAX;
        if (operand->dims[d] != 1)
            varying |= 1u << (d + shift);
    }
    return varying;
}

double *
kiln_literal_along(const KilnValue *value, const KilnType *type, int axis, GError **error)
{
    if (!number_tensor(value) || axis < 0 || axis >= type->rank || type->dims[axis] < 0 ||
        kiln_broadcast_dims(&value->type, type) & ~(1u << axis))
        return NULL;
    int64_t n = type->dims[axis], stored = kiln_type_elements(&value->type);
    if (stored != 1 && stored != n)
        return NULL;
    g_autofree double *read = kiln_literal_read(value, error);
    if (!read || stored == n)
        return g_steal_pointer(&read);
    double *numbers = kiln_alloc((size_t)n + 1, sizeof *numbers, error);
    for (int64_t i = 0; numbers && i < n; i++)
        numbers[i] = read[0];
    return numbers;
}

KilnValue *
kiln_literal_build(KilnFunction *function, KilnNode *before, const char *name, const KilnType *type,
                   const double *numbers, GError **error)
{
    size_t size = (size_t)kiln_type_bytes(type);
    void *data = kiln_alloc(1, size, error);
    if (!data)
        return NULL;
    for (int64_t i = 0, n = kiln_type_elements(type); i < n; i++)
        kiln_element_store_f64(type->dtype, data, i, numbers[i]);
    g_autoptr(GBytes) bytes = kiln_bytes_take(data, size);
    KilnTensor *tensor = kiln_tensor_new_data(type, bytes, error);
    return tensor ? kiln_build_constant(function, before, name, tensor) : NULL;
}

KilnValue *
kiln_literal_build_splat(KilnFunction *function, KilnNode *before, const char *name,
                         const KilnType *type, double number)
{
    return kiln_build_constant(function, before, name, kiln_tensor_new_splat(type, number));
}

KilnValue *
kiln_literal_build_as(KilnFunction *function, KilnNode *before, const char *name,
                      KilnTensor *tensor, const KilnType *type)
{
    KilnAttrs_const attrs = { .value =
                                  kiln_module_add_constant(function->module, name, tensor, type) };
    KilnNodeSpec spec = {
        .op = KILN_OP_const, .attrs = &attrs, .before = before, .result_name = name
    };
    return &kiln_node_new(function, &spec, NULL)->results[0]; /* without operands nothing fails */
}
