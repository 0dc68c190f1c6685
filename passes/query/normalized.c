/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/normalized.h"

#include "graph/infer/infer.h"
#include "graph/node.h"
#include "graph/op/additive.h"
#include "graph/op/math.h"
#include "graph/op/multiplicative.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "passes/query/factors.h"
#include "passes/query/literal.h"

/* --- x / √(mean(x²) + ε) --- */

/* The node of @op behind @value in the same function as @reader; notes where others read it. */
static const KilnNode *
behind(const KilnNode *reader, const KilnValue *value, KilnOp op, KilnNormalized *out)
{
    const KilnNode *node = kiln_value_def_of(value, op);
    if (!node || node->function != reader->function)
        return NULL;
    out->single_reader &= kiln_value_single_use(value);
    return node;
}

/* @value = mean(x²) + ε */
static bool
read_mean(const KilnNode *reader, const KilnValue *value, KilnNormalized *out)
{
    const KilnNode *sum = behind(reader, value, KILN_OP_add, out), *mean = NULL;
    for (uint32_t i = 0; sum && !mean && i < 2; i++) {
        if (kiln_literal_uniform(sum->operands[1 - i].value, &out->epsilon))
            mean = behind(sum, sum->operands[i].value, KILN_OP_reduce_mean, out);
    }
    if (!mean)
        return false;
    out->mean = mean;
    const KilnValue *squares = mean->operands[0].value;
    const KilnNode *pow = behind(mean, squares, KILN_OP_pow, out);
    if (pow) {
        out->x = pow->operands[0].value;
        out->reads = 1;
        return kiln_literal_is(pow->operands[1].value, 2);
    }
    const KilnNode *mul = behind(mean, squares, KILN_OP_mul, out);
    if (!mul || mul->operands[0].value != mul->operands[1].value)
        return false;
    out->x = mul->operands[0].value;
    out->reads = 2;
    return true;
}

/* @value = (mean(x²) + ε) ^ @power */
static bool
read_power(const KilnNode *reader, const KilnValue *value, double power, KilnNormalized *out)
{
    const KilnNode *sqrt = power == 0.5 ? behind(reader, value, KILN_OP_sqrt, out) : NULL;
    if (sqrt)
        return read_mean(sqrt, sqrt->operands[0].value, out);
    const KilnNode *pow = behind(reader, value, KILN_OP_pow, out);
    return pow && kiln_literal_is(pow->operands[1].value, power) &&
           read_mean(pow, pow->operands[0].value, out);
}

/* The result of @node = (mean(x²) + ε) ^ -½ */
static bool
read_inverse_node(const KilnNode *node, KilnNormalized *out)
{
    const KilnValue *first = kiln_node_operand(node, 0), *second = kiln_node_operand(node, 1);
    switch (node->op) {
    case KILN_OP_reciprocal:
        return read_power(node, first, 0.5, out);
    case KILN_OP_div:
        return kiln_literal_is(first, 1) && read_power(node, second, 0.5, out);
    case KILN_OP_pow:
        return kiln_literal_is(second, -0.5) && read_mean(node, first, out);
    default:
        return false;
    }
}

static bool
read_inverse(const KilnNode *reader, const KilnValue *value, KilnNormalized *out)
{
    if (!value->def || value->def->function != reader->function)
        return false;
    out->single_reader &= kiln_value_single_use(value);
    return read_inverse_node(value->def, out);
}

bool
kiln_inverse_of(const KilnFunction *function, const KilnValue *value, KilnNormalized *out)
{
    *out = (KilnNormalized){ .single_reader = true };
    return value->def && value->def->function == function && read_inverse_node(value->def, out) &&
           kiln_dtype_is_float(out->x->type.dtype);
}

bool
kiln_normalized_of(const KilnNode *root, KilnNormalized *out)
{
    *out = (KilnNormalized){ .single_reader = true };
    const KilnValue *a = kiln_node_operand(root, 0), *b = kiln_node_operand(root, 1);
    bool found = false;
    if (root->op == KILN_OP_div) {
        found = read_power(root, b, 0.5, out) && out->x == a;
    } else if (root->op == KILN_OP_mul) {
        found = read_inverse(root, b, out) && out->x == a;
        if (!found) {
            *out = (KilnNormalized){ .single_reader = true };
            found = read_inverse(root, a, out) && out->x == b;
        }
    }
    out->reads++;
    return found && kiln_dtype_is_float(out->x->type.dtype);
}

/* --- x - mean(x) --- */

bool
kiln_centred_of(const KilnFunction *function, const KilnValue *value, KilnCentred *out)
{
    const KilnNode *sub = kiln_value_def_of(value, KILN_OP_sub);
    if (!sub || sub->function != function)
        return false;
    out->x = sub->operands[0].value;
    out->mean = kiln_value_def_of(sub->operands[1].value, KILN_OP_reduce_mean);
    return out->mean && out->mean->function == function && out->mean->operands[0].value == out->x;
}

/* --- reduced dims --- */

uint32_t
kiln_reduced_dims(const KilnNode *reduction)
{
    bool reduced[KILN_MAX_RANK], known;
    uint32_t dims = 0;
    if (!kiln_reduce_axes(reduction, reduced, &known, NULL) || !known)
        return 0;
    for (int d = 0; d < reduction->operands[0].value->type.rank; d++)
        dims |= reduced[d] ? 1u << d : 0;
    return dims;
}

int
kiln_first_trailing_dim(const KilnType *type, uint32_t dims)
{
    int first = type->rank;
    while (first > 0 && (dims >> (first - 1) & 1))
        first--;
    return dims && dims == (1u << type->rank) - (1u << first) ? first : -1;
}

bool
kiln_keeps_dims(const KilnNode *reduction)
{
    return kiln_attrs(reduction, reduce_mean)->keepdims;
}

/* --- scales and biases --- */

static KilnType
run_type(const KilnType *data, int axis)
{
    return kiln_type_make(data->dtype, data->rank - axis, &data->dims[axis]);
}

/* Whether @type, aligned at the last dim, has the dims of @data from @first to @end and no other.
 */
static bool
has_dims(const KilnType *type, const KilnType *data, int first, int end)
{
    int shift = data->rank - type->rank;
    for (int d = 0; type->rank >= 0 && shift >= 0 && d < data->rank; d++) {
        int64_t dim = d < shift ? 1 : type->dims[d - shift];
        if (dim != (d < first || d >= end ? 1 : data->dims[d]))
            return false;
    }
    return type->rank >= 0 && shift >= 0;
}

/* @value, which must vary along the dims of @data from @first to @end alone, as a tensor of
 * @wanted.
 */
static KilnValue *
parameter_of(KilnNode *before, KilnValue *value, const KilnType *data, int first, int end,
             const KilnType *wanted, GError **error)
{
    double number;
    if (value->type.layout || value->type.quant || value->type.dtype != data->dtype ||
        !kiln_type_is_static(wanted) || value->type.rank > data->rank)
        return NULL;
    if (has_dims(&value->type, data, first, end)) {
        if (kiln_type_equal(&value->type, wanted))
            return value;
        KilnValue *shape =
            kiln_build_ints(before->function, before, wanted->dims, (uint32_t)wanted->rank);
        KilnAttrs_reshape attrs = { .allowzero = true };
        return kiln_build(before->function, before, KILN_OP_reshape, &attrs,
                          (KilnValue *[]){ value, shape }, 2, error);
    }
    if (kiln_type_elements(&value->type) != 1 || !kiln_literal_uniform(value, &number))
        return NULL;
    return kiln_literal_build_splat(before->function, before, "parameter", wanted, number);
}

KilnValue *
kiln_run_ones(KilnNode *before, const KilnType *data, int axis)
{
    KilnType run = run_type(data, axis);
    return kiln_literal_build_splat(before->function, before, "ones", &run, 1);
}

KilnValue *
kiln_run_parameter(KilnNode *before, KilnValue *value, const KilnType *data, int axis,
                   GError **error)
{
    KilnType run = run_type(data, axis);
    return parameter_of(before, value, data, axis, data->rank, &run, error);
}

KilnValue *
kiln_channel_number(KilnNode *before, const KilnType *data, const char *name, double number)
{
    KilnType channels = kiln_type_make(data->dtype, 1, &data->dims[1]);
    return kiln_literal_build_splat(before->function, before, name, &channels, number);
}

KilnValue *
kiln_channel_parameter(KilnNode *before, KilnValue *value, const KilnType *data, GError **error)
{
    KilnType channels = kiln_type_make(data->dtype, 1, &data->dims[1]);
    return parameter_of(before, value, data, 1, 2, &channels, error);
}
