/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/clip.h"

#include "graph/node.h"
#include "graph/op/activation.h"
#include "graph/op/bounds.h"
#include "passes/query/literal.h"

#include <math.h>

/* The least and the greatest number of an integer type; infinite for floats. */
static KilnInterval
limits(KilnDType dtype)
{
    if (!kiln_dtype_is_integer(dtype))
        return (KilnInterval){ -INFINITY, INFINITY };
    bool is_signed = kiln_dtype_is_signed(dtype);
    int bits = (int)kiln_dtype_bits(dtype);
    double half = ldexp(1, bits - 1);
    return is_signed ? (KilnInterval){ -half, half - 1 } : (KilnInterval){ 0, 2 * half - 1 };
}

/* One bound; an absent one leaves @number as it is. */
static bool
read_bound(const KilnValue *bound, double *number)
{
    return !bound || (kiln_literal_uniform(bound, number) && !isnan(*number));
}

bool
kiln_clip_interval(const KilnNode *node, KilnInterval *out)
{
    const KilnType *type = &node->operands[0].value->type;
    if (type->quant)
        return false;
    *out = (KilnInterval){ -INFINITY, INFINITY };
    if (node->op == KILN_OP_relu) {
        out->low = 0;
        return true;
    }
    if (!read_bound(kiln_node_operand(node, 1), &out->low) ||
        !read_bound(kiln_node_operand(node, 2), &out->high))
        return false;
    KilnInterval whole = limits(type->dtype);
    if (out->low <= whole.low)
        out->low = -INFINITY;
    if (out->high >= whole.high)
        out->high = INFINITY;
    return true;
}

/* Of two zeros the first stays. */
static double
clip(double x, KilnInterval interval)
{
    x = x >= interval.low ? x : interval.low;
    return x <= interval.high ? x : interval.high;
}

/* Where zeros stay what they are; not in reversed bounds. */
static bool
has_zero(KilnInterval interval)
{
    return interval.low <= 0 && interval.high >= 0;
}

bool
kiln_clip_chain(KilnInterval first, KilnInterval second, KilnInterval *out)
{
    double low = first.low > first.high ? first.high : first.low;
    *out = (KilnInterval){ clip(low, second), clip(first.high, second) };
    return (has_zero(first) && has_zero(second)) || !has_zero(*out);
}

bool
kiln_clip_is_relu(KilnInterval interval, KilnDType dtype)
{
    return interval.low == 0 && !signbit(interval.low) && interval.high == INFINITY &&
           (kiln_dtype_is_float(dtype) || kiln_dtype_is_signed(dtype));
}

static KilnValue *
bound_literal(KilnNode *before, KilnDType dtype, const char *name, double number)
{
    KilnType scalar = kiln_type_scalar(dtype);
    return kiln_literal_build_splat(before->function, before, name, &scalar, number);
}

KilnValue *
kiln_clip_build(KilnNode *before, KilnValue *x, KilnInterval interval, GError **error)
{
    KilnDType dtype = x->type.dtype;
    KilnValue *operands[] = { x, NULL, NULL };
    if (interval.low == -INFINITY && interval.high == INFINITY)
        return x;
    if (kiln_clip_is_relu(interval, dtype))
        return kiln_build(before->function, before, KILN_OP_relu, NULL, operands, 1, error);
    if (interval.low != -INFINITY)
        operands[1] = bound_literal(before, dtype, "low", interval.low);
    if (interval.high != INFINITY)
        operands[2] = bound_literal(before, dtype, "high", interval.high);
    return kiln_build(before->function, before, KILN_OP_clip, NULL, operands, 3, error);
}
