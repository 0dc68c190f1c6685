/* SPDX-License-Identifier: Apache-2.0 */
/* unary-to-lut: a function of one quantized byte becomes a look-up in the table of its 256 results.
 *
 *      x : i8 q          x : i8 q   table : u8[256] q
 *      |                      \       /
 *    sigmoid       =>       lookup_table
 *      |                        |
 *      y : u8 q                 y : u8 q
 *
 * So do element-wise operators of several operands if all but one are single literals (clip, add),
 * and rescale_quantized.
 *
 * requires nothing, preserves nothing; class E: the table is what the target itself computes of all
 * 256 values. What looks for the operator (rescales, relus that do nothing) comes before; what
 * looks for equal nodes behind, for operators that differ may have one table. */
#include "exec/eval.h"
#include "graph/op/quantize.h"
#include "passes/rule.h"

enum {
    TABLE = 256
};

/* --- the node on all values --- */

/* All values of @x's element type, from the lowest on. */
static KilnTensor *
all_values(const KilnType *x, GError **error)
{
    KilnType type = kiln_type_make(x->dtype, 1, (int64_t[]){ TABLE });
    uint8_t values[TABLE];
    for (int i = 0; i < TABLE; i++)
        values[i] = (uint8_t)(x->dtype == KILN_DTYPE_i8 ? i - TABLE / 2 : i);
    g_autoptr(GBytes) bytes = g_bytes_new(values, sizeof values);
    return kiln_tensor_new_data(&type, bytes, error);
}

/* A literal of one element as a scalar. */
static KilnTensor *
scalar_of(const KilnValue *literal, GError **error)
{
    const KilnTensor *tensor = kiln_value_constant(literal)->tensor;
    KilnType type = kiln_type_scalar(tensor->type.dtype);
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, error);
    return bytes ? kiln_tensor_new_data(&type, bytes, error) : NULL;
}

/* The node with a vector of all values for operand @x and scalars for the others, in a module of
 * its own. */
static KilnNode *
build_probe(KilnModule *module, const KilnNode *node, uint32_t x, GError **error)
{
    KilnFunction *function = kiln_function_new(module, "table");
    g_autofree KilnValue **operands = g_new0(KilnValue *, node->n_operands);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (!value)
            continue;
        KilnType type = value->type;
        type.rank = i == x ? 1 : 0;
        type.dims[0] = TABLE;
        type.open[0] = NULL;
        g_autofree char *name = g_strdup_printf("operand_%u", i);
        KilnArgument *argument = kiln_function_add_argument(function, name, &type, error);
        if (!argument)
            return NULL;
        operands[i] = &argument->value;
    }
    KilnType type = kiln_type_make(node->results[0].type.dtype, 1, (int64_t[]){ TABLE });
    type.quant = node->results[0].type.quant;
    KilnNodeSpec spec = { .op = node->op,
                          .operands = operands,
                          .n_operands = node->n_operands,
                          .attrs = node->attrs,
                          .types = &type };
    return kiln_node_new(function, &spec, error);
}

/* NULL where the target cannot; @error only for want of memory. */
static KilnTensor *
evaluate(const KilnTarget *target, const KilnNode *node, uint32_t x, GError **error)
{
    g_autoptr(KilnModule) module = kiln_module_new();
    g_autoptr(GPtrArray) tensors = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_tensor_free);
    const KilnNode *probe = build_probe(module, node, x, NULL);
    for (uint32_t i = 0; probe && i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        KilnTensor *tensor = !value   ? NULL
                             : i == x ? all_values(&value->type, error)
                                      : scalar_of(value, error);
        if (value && !tensor)
            return NULL;
        g_ptr_array_add(tensors, tensor);
    }
    KilnTensor *table = NULL;
    bool good =
        probe && kiln_target_evaluate(target, probe, (const KilnTensor *const *)tensors->pdata,
                                      &table, NULL);
    return good ? table : NULL;
}

/* --- the rule --- */

static bool
is_single(const KilnValue *value)
{
    const KilnConstant *constant = kiln_value_constant(value);
    bool plain = constant && !constant->type.layout && kiln_type_elements(&constant->type) == 1;
    return plain && (!constant->type.quant || constant->type.quant->axis < 0);
}

/* The one operand that is not a single literal; false where there is not exactly one. */
static bool
find_variable(const KilnNode *node, uint32_t *out)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value && !is_single(node->operands[i].value)) {
            *out = i;
            found++;
        }
    }
    return found == 1;
}

static bool
is_byte(const KilnType *type)
{
    return type->quant && type->quant->axis < 0 && !type->layout &&
           (type->dtype == KILN_DTYPE_i8 || type->dtype == KILN_DTYPE_u8);
}

static bool
make_table(KilnMatch *match)
{
    const KilnNode *node = match->root;
    const KilnTarget *target = kiln_pass_target(match->context);
    const KilnType *out = &node->results[0].type;
    KilnFunction *function = match->root->function;
    uint32_t i = 0;
    if (!target || !kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE) || !find_variable(node, &i))
        return false;
    KilnValue *x = node->operands[i].value;
    if (!x->type.quant || !kiln_type_same_shape(&x->type, out))
        return false;
    GUARD(bytes, is_byte(&x->type));
    GUARD(one_scale, out->quant && out->quant->axis < 0);
    KilnTensor *tensor = evaluate(target, node, i, match->error);
    if (!tensor)
        return false;
    KilnType type = kiln_type_make(out->dtype, 1, (int64_t[]){ TABLE });
    type.quant = out->quant;
    KilnValue *table = kiln_build_constant_as(function, match->root, "table", tensor, &type);
    return kiln_match_replace_by_op(match, KILN_OP_lookup_table, (KilnValue *[]){ x, table }, 2);
}

static const KilnRule rules[] = {
    RULE("function-to-table", E, "(@QUANTIZED ...)", make_table),
    RULE("rescale-to-table", E, "(rescale_quantized ?)", make_table),
};

RULE_PASS(unary_to_lut, FORWARD);
