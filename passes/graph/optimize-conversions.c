/* SPDX-License-Identifier: Apache-2.0 */
/* optimize-conversions: a cast of a cast becomes one, a cast to the same type goes.
 *
 *       x: A                 x: A                      x: A           x: A
 *        |                    |                         |              |
 *    cast to B       =>       |                     cast to A    =>    |
 *        |                    |                         |              |
 *    cast to C            cast to C
 *
 * requires nothing, preserves nothing; class E. The inner cast must not change the value: B holds
 * every number of A (f16 in f32, i8 in f16, bool in all). One more thing may differ then: from an
 * integer to an integer bits are cut off, from a float to an integer numbers saturate, so that
 * i8 -> f32 -> u8 is no i8 -> u8. Among integers only the low bits count: i64 -> i32 -> i16 is
 * i64 -> i16, where nothing else reads the i32. A cast of f8e5m2 to itself may saturate, which
 * turns infinities into numbers, so that it stays. The test tests/unit/test_conversions.c compares
 * all triples of types. Casts of literals are constant-fold's. */
#include "graph/base/number.h"
#include "graph/op/cast.h"
#include "passes/rule.h"

/* Binary digits that every number of the type fits in, and the sign; 0 digits: not a number. */
typedef struct {
    int digits;
    bool is_signed;
} Range;

static Range
range_of(KilnDType dtype)
{
    if (kiln_dtype_is_float(dtype))
        return (Range){ kiln_float_format(dtype)->digits, true };
    bool is_signed = kiln_dtype_is_signed(dtype);
    int bits = dtype == KILN_DTYPE_bool ? 1 : (int)kiln_dtype_bits(dtype);
    return (Range){ is_signed ? bits - 1 : bits, is_signed };
}

/* Whether every number of @inner is one of @outer. The least of n signed bits is a power of two. */
static bool
holds(KilnDType outer, KilnDType inner)
{
    Range o = range_of(outer), i = range_of(inner);
    if (outer == inner)
        return outer != KILN_DTYPE_f8e5m2;
    if (i.digits == 0 || o.digits < i.digits || (i.is_signed && !o.is_signed) ||
        outer == KILN_DTYPE_bool || kiln_dtype_is_low_float(outer))
        return false;
    if (!kiln_dtype_is_float(inner))
        return true;
    if (kiln_dtype_is_low_float(inner) && kiln_dtype_is_half(outer))
        return outer == KILN_DTYPE_bf16 || inner != KILN_DTYPE_f8e8m0;
    return outer == KILN_DTYPE_f64 || (outer == KILN_DTYPE_f32 && inner != KILN_DTYPE_f64);
}

static bool
merge(KilnMatch *match)
{
    KilnNode *root = match->root;
    return kiln_match_replace(match,
                              kiln_match_build(match, KILN_OP_cast, root->attrs,
                                               (KilnValue *[]){ kiln_match_value(match, "x") }, 1));
}

static bool
drop(KilnMatch *match)
{
    GUARD(keeps_infinities, match->root->results[0].type.dtype != KILN_DTYPE_f8e5m2 ||
                                !kiln_attrs(match->root, cast)->saturate);
    return kiln_match_replace_by_x(match);
}

static bool
merge_widening(KilnMatch *match)
{
    KilnDType from = kiln_match_value(match, "x")->type.dtype;
    KilnDType through = kiln_match_node(match, "inner")->results[0].type.dtype;
    KilnDType to = match->root->results[0].type.dtype;
    GUARD(inner_holds, holds(through, from));
    GUARD(no_saturation, !kiln_dtype_is_float(through) || !kiln_dtype_is_integer(from) ||
                             !kiln_dtype_is_integer(to) || holds(to, from));
    return merge(match);
}

static bool
merge_cutting(KilnMatch *match)
{
    KilnDType through = kiln_match_node(match, "inner")->results[0].type.dtype;
    KilnDType to = match->root->results[0].type.dtype;
    GUARD(low_bits, kiln_dtype_bits(to) <= kiln_dtype_bits(through));
    return merge(match);
}

static const KilnRule rules[] = {
    RULE("cast-to-same", E, "(cast ?x)", drop),
    RULE("cast-of-widening", E, "(cast (cast#inner ?x))", merge_widening),
    RULE("cast-of-cutting", E, "(cast (cast!#inner ?x:int):int):int", merge_cutting),
};

RULE_PASS(optimize_conversions, FORWARD);
