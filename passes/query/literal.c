/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/literal.h"

#include "graph/base/alloc.h"
#include "graph/base/number.h"
#include "graph/node.h"
#include "graph/op/cast.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/reshape.h"
#include "graph/op/slice.h"
#include "graph/op/structure.h"
#include "graph/op/transpose.h"

#include <float.h>
#include <math.h>

static const int64_t exact = INT64_C(1) << 53; /* beyond it doubles skip integers */

/* @bytes[@i] as a double, or false where it is none. */
static bool
read_element(KilnDType dtype, const void *bytes, int64_t i, double *number)
{
    if (!kiln_dtype_is_float(dtype)) {
        int64_t integer = kiln_element_as_i64(dtype, bytes, i);
        /* The upper half of u64 is read as negative. */
        if (integer > exact || integer < (dtype == KILN_DTYPE_u64 ? 0 : -exact))
            return false;
    }
    *number = kiln_element_as_f64(dtype, bytes, i);
    return true;
}

/* The tensor of a constant of numbers; NULL for anything else. */
static const KilnTensor *
number_tensor(const KilnConstant *constant)
{
    if (!constant || constant->type.quant || constant->type.layout)
        return NULL;
    const KilnTensor *tensor = constant->tensor;
    return kiln_tensor_is_readable(tensor) ? tensor : NULL;
}

static const KilnConstant *
constant_of(const KilnValue *value)
{
    return value ? kiln_value_constant(value) : NULL;
}

const KilnValue *
kiln_literal_source(const KilnValue *value)
{
    const KilnNode *node = value ? value->def : NULL;
    if (!node || node->op != KILN_OP_cast)
        return value;
    const KilnValue *source = node->operands[0].value;
    bool widens = kiln_dtype_is_half(source->type.dtype) &&
                  (value->type.dtype == KILN_DTYPE_f32 || value->type.dtype == KILN_DTYPE_f64);
    return widens && kiln_value_constant(source) ? source : value;
}

bool
kiln_literal_keeps_bits(KilnDType dtype, const double *numbers, int64_t n)
{
    for (int64_t i = 0; kiln_dtype_is_half(dtype) && i < n; i++) {
        uint8_t element[8];
        kiln_element_store_f64(dtype, element, 0, numbers[i]);
        double lost = fabs(kiln_element_as_f64(dtype, element, 0) - numbers[i]);
        if (!(lost <= (double)FLT_EPSILON / 2 * fabs(numbers[i])))
            return false;
    }
    return true;
}

double *
kiln_literal_read(const KilnValue *value, GError **error)
{
    return kiln_numbers_of(constant_of(value), error);
}

double *
kiln_numbers_of(const KilnConstant *constant, GError **error)
{
    const KilnTensor *tensor = number_tensor(constant);
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

static bool
is_uniform(const KilnConstant *constant, double *number)
{
    const KilnTensor *tensor = number_tensor(constant);
    uint8_t element[8];
    return tensor && kiln_tensor_is_splat(tensor, 65536, element) &&
           read_element(tensor->type.dtype, element, 0, number);
}

bool
kiln_literal_uniform(const KilnValue *value, double *number)
{
    return is_uniform(constant_of(value), number);
}

/* Each element of a result is one of operand 0. */
static bool
moves_elements(KilnOp op)
{
    switch (op) {
    case KILN_OP_expand:
    case KILN_OP_gather:
    case KILN_OP_identity:
    case KILN_OP_reshape:
    case KILN_OP_flatten:
    case KILN_OP_slice:
    case KILN_OP_split:
    case KILN_OP_squeeze:
    case KILN_OP_tile:
    case KILN_OP_transpose:
    case KILN_OP_unsqueeze:
        return true;
    default:
        return false;
    }
}

bool
kiln_value_uniform(const KilnValue *value, double *number)
{
    if (!value || value->type.quant || value->type.layout)
        return false;
    while (value->def && moves_elements(value->def->op))
        value = value->def->operands[0].value;
    if (!value->def || value->def->op != KILN_OP_constant_of_shape)
        return kiln_literal_uniform(value, number);
    const KilnConstant *fill = kiln_attrs(value->def, constant_of_shape)->value;
    *number = 0;
    return !fill || is_uniform(fill, number);
}

uint32_t
kiln_broadcast_dims(const KilnType *operand, const KilnType *type)
{
    if (operand->rank < 0 || operand->rank > type->rank)
        return UINT32_MAX;
    uint32_t varying = 0;
    int shift = type->rank - operand->rank;
    for (int d = 0; d < operand->rank; d++) {
        if (!kiln_type_knows_dim(operand, d))
            return UINT32_MAX;
        if (operand->dims[d] != 1)
            varying |= 1u << (d + shift);
    }
    return varying;
}

bool
kiln_broadcasts_to(const KilnType *operand, const KilnType *type)
{
    if (operand->rank < 0 || operand->rank > type->rank)
        return false;
    for (int d = 0; d < operand->rank; d++) {
        int to = d + type->rank - operand->rank;
        if (operand->dims[d] != 1 && !kiln_type_equal_dims(operand, d, type, to))
            return false;
    }
    return true;
}

double *
kiln_literal_along(const KilnValue *value, const KilnType *type, int axis, GError **error)
{
    if (!number_tensor(constant_of(value)) || axis < 0 || axis >= type->rank ||
        type->dims[axis] < 0 || kiln_broadcast_dims(&value->type, type) & ~(1u << axis))
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

KilnTensor *
kiln_tensor_of_numbers(const KilnType *type, const double *numbers, GError **error)
{
    size_t size = (size_t)kiln_type_bytes(type);
    void *data;
    g_autoptr(GBytes) bytes = kiln_bytes_new(1, size, &data, error);
    if (!bytes)
        return NULL;
    for (int64_t i = 0, n = kiln_type_elements(type); i < n; i++)
        kiln_element_store_f64(type->dtype, data, i, numbers[i]);
    return kiln_tensor_compact(kiln_tensor_new_data(type, bytes, error));
}

KilnValue *
kiln_literal_build(KilnFunction *function, KilnNode *before, const char *name, const KilnType *type,
                   const double *numbers, GError **error)
{
    KilnTensor *tensor = kiln_tensor_of_numbers(type, numbers, error);
    return tensor ? kiln_build_constant(function, before, name, tensor) : NULL;
}

KilnValue *
kiln_literal_build_splat(KilnFunction *function, KilnNode *before, const char *name,
                         const KilnType *type, double number)
{
    return kiln_build_constant(function, before, name, kiln_tensor_new_splat(type, number));
}

int64_t
kiln_charged_bytes(const KilnModule *module)
{
    int64_t bytes = 0;
    for (guint i = 0; i < module->constants->len; i++) {
        const KilnConstant *constant = g_ptr_array_index(module->constants, i);
        if (__builtin_add_overflow(bytes, constant->charged, &bytes))
            return INT64_MAX;
    }
    return bytes;
}

/* --- equal constants --- */

enum {
    SAMPLE = 8 /* elements at each end that the hash sees */
};

static uint32_t
mix(uint32_t hash, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

static bool
is_generated(const KilnTensor *tensor)
{
    return tensor->kind == KILN_TENSOR_NORMAL || tensor->kind == KILN_TENSOR_UNIFORM ||
           tensor->kind == KILN_TENSOR_IOTA;
}

/* What a generator is made of stands for its elements: they are not made to be compared. */
static uint32_t
generator_hash(const KilnTensor *tensor, uint32_t hash)
{
    const double numbers[] = { tensor->std, tensor->low, tensor->high };
    hash = mix(hash, (const uint8_t *)&tensor->kind, sizeof tensor->kind);
    hash = mix(hash, (const uint8_t *)&tensor->seed, sizeof tensor->seed);
    return mix(hash, (const uint8_t *)numbers, sizeof numbers);
}

/* The bytes of element @i of a tensor that is no generator; @room may hold them. */
static const uint8_t *
element_at(const KilnTensor *tensor, int64_t i, uint8_t *room)
{
    if (tensor->kind == KILN_TENSOR_SPLAT)
        return tensor->splat;
    const uint8_t *data = g_bytes_get_data(tensor->bytes, NULL);
    if (tensor->kind == KILN_TENSOR_DATA)
        return data + (size_t)i * kiln_dtype_size(tensor->type.dtype);
    kiln_unpack_elements(tensor->type.dtype, room, data, i, 1);
    return room;
}

KilnValue *
kiln_literal_recast(KilnNode *before, const KilnValue *literal, const KilnType *type)
{
    const KilnConstant *constant = kiln_value_constant(literal);
    return kiln_build_constant_as(before->function, before, constant->name,
                                  kiln_tensor_copy(constant->tensor), type);
}

uint32_t
kiln_constant_hash(const KilnConstant *constant)
{
    const KilnTensor *tensor = constant->tensor;
    int64_t n = kiln_type_elements(&constant->type);
    size_t size = kiln_dtype_size(constant->type.dtype);
    uint32_t hash =
        mix(2166136261u, (const uint8_t *)&n, sizeof n) + (uint32_t)constant->type.dtype;
    if (!kiln_tensor_is_readable(tensor))
        return hash + constant->id;
    if (is_generated(tensor))
        return generator_hash(tensor, hash);
    if (tensor->type.dtype == KILN_DTYPE_string)
        return hash + (uint32_t)kiln_tensor_hash_texts(tensor);
    int64_t sampled = MIN(n, (int64_t)SAMPLE);
    for (int64_t i = 0; i < sampled; i++) {
        uint8_t room;
        hash = mix(hash, element_at(tensor, i, &room), size);
        hash = mix(hash, element_at(tensor, n - 1 - i, &room), size);
    }
    return hash;
}

bool
kiln_constant_same(const KilnConstant *a, const KilnConstant *b)
{
    const KilnTensor *x = a->tensor, *y = b->tensor;
    if (a == b)
        return true;
    if (!kiln_type_equal(&a->type, &b->type) || !kiln_tensor_is_readable(x) ||
        !kiln_tensor_is_readable(y))
        return false;
    if (is_generated(x) || is_generated(y))
        return x->kind == y->kind && x->seed == y->seed && x->std == y->std && x->low == y->low &&
               x->high == y->high;
    return kiln_tensor_equal(x, y);
}
