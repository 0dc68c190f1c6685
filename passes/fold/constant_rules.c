/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/fold/constant_rules.h"

#include "graph/base/number.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/reshape.h"
#include "graph/op/structure.h"

/* The bytes of operand 0 under the result's shape. */
static KilnRuleOutcome
share_bytes(KilnConstantPool *pool, const KilnNode *node, GError **error)
{
    (void)error;
    const KilnTensor *from = kiln_constant_pool_get(pool, kiln_node_operand(node, 0));
    const KilnType *type = &node->results[0].type;
    if (!kiln_type_is_static(type))
        return KILN_RULE_DECLINES;
    KilnTensor *to = kiln_tensor_copy(from);
    to->type = kiln_type_make(from->type.dtype, type->rank, type->dims);
    kiln_constant_pool_store(pool, &node->results[0], to);
    return KILN_RULE_STORES;
}

/* Equal elements take no storage. */
static KilnRuleOutcome
fill(KilnConstantPool *pool, const KilnNode *node, GError **error)
{
    (void)error;
    const KilnConstant *value = kiln_attrs(node, constant_of_shape)->value;
    const KilnType *type = &node->results[0].type;
    uint8_t element[8] = { 0 };
    if (!kiln_type_is_static(type) || (value && !kiln_tensor_is_splat(value->tensor, 1, element)))
        return KILN_RULE_DECLINES;
    KilnType plain = kiln_type_make(type->dtype, type->rank, type->dims);
    kiln_constant_pool_store(pool, &node->results[0], kiln_tensor_new_splat_bits(&plain, element));
    return KILN_RULE_STORES;
}

static bool
is_integer(KilnConstantPool *pool, const KilnValue *value, int64_t expected)
{
    const KilnTensor *tensor = kiln_constant_pool_get(pool, value);
    uint8_t element[8];
    return tensor && kiln_dtype_is_integer(tensor->type.dtype) &&
           kiln_tensor_is_splat(tensor, 1, element) &&
           kiln_element_as_i64(tensor->type.dtype, element, 0) == expected;
}

/* 0, 1, 2, … takes no storage. */
static KilnRuleOutcome
count_up(KilnConstantPool *pool, const KilnNode *node, GError **error)
{
    (void)error;
    const KilnType *type = &node->results[0].type;
    if (!kiln_type_is_static(type) || !is_integer(pool, kiln_node_operand(node, 0), 0) ||
        !is_integer(pool, kiln_node_operand(node, 2), 1))
        return KILN_RULE_DECLINES;
    KilnType plain = kiln_type_make(type->dtype, type->rank, type->dims);
    kiln_constant_pool_store(pool, &node->results[0], kiln_tensor_new_iota(&plain));
    return KILN_RULE_STORES;
}

static bool
is_zero(KilnDType dtype, const uint8_t *array, int64_t i)
{
    return kiln_element_as_f64(dtype, array, i) == 0;
}

/* The indices of elements that are not 0, one row per dim: how many there are, the data says. */
static KilnRuleOutcome
find_non_zero(KilnConstantPool *pool, const KilnNode *node, GError **error)
{
    const KilnValue *x = kiln_node_operand(node, 0);
    const uint8_t *from = kiln_constant_pool_array(pool, x, error);
    if (!from)
        return KILN_RULE_FAILS;
    KilnDType dtype = kiln_constant_pool_get(pool, x)->type.dtype;
    int64_t n = kiln_type_elements(&x->type), found = 0;
    for (int64_t i = 0; i < n; i++)
        found += !is_zero(dtype, from, i);
    KilnType type = kiln_type_make(KILN_DTYPE_i64, 2, (int64_t[]){ x->type.rank, found });
    void *array;
    KilnTensor *result = kiln_constant_pool_allocate(pool, &type, false, &array, error);
    if (!result)
        return KILN_RULE_FAILS;
    int64_t *to = array, column = 0;
    for (int64_t i = 0; i < n; i++) {
        if (is_zero(dtype, from, i))
            continue;
        int64_t rest = i;
        for (int d = x->type.rank - 1; d >= 0; d--) {
            to[d * found + column] = rest % x->type.dims[d];
            rest /= x->type.dims[d];
        }
        column++;
    }
    kiln_constant_pool_store(pool, &node->results[0], result);
    return KILN_RULE_STORES;
}

KilnConstantRuleFn
kiln_constant_rule(KilnOp op)
{
    switch (op) {
#define CONSTANT_RULE(id, function)                                                                \
    case KILN_OP_##id:                                                                             \
        return function;
#include "passes/fold/constant_rules.def"
    default:
        return NULL;
    }
}

bool
kiln_constant_rule_finds_shape(KilnOp op)
{
    return op == KILN_OP_non_zero;
}
