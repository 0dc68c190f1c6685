/* SPDX-License-Identifier: Apache-2.0 */
/* fold-min-max-to-clip: max and min with a number become clips.
 *
 *     x     a                x
 *      \   /                 |
 *       max   b       =>  clip [a, b]      likewise max(min(x, b), a), where a <= b
 *         \  /               |
 *         min                |
 *
 *     max(x, a)  =>  clip(x, a, _)     min(x, b)  =>  clip(x, _, b)     max(x, 0)  =>  relu(x)
 *
 * requires nothing, preserves nothing; class E. a and b are literals with equal elements that do
 * not make the result larger than x. A clip is a min of a max, NaN rules included
 * (passes/query/clip.h): NaN in x goes through both. Which of two zeros max and min return hangs on
 * the order of their operands, so that a literal zero must stand on the right. */
#include "graph/op/bounds.h"
#include "passes/query/clip.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

#include <math.h>

/* The interval of a max or a min with the literal @c, or false. */
static bool
interval_of(const KilnNode *node, const KilnValue *c, KilnInterval *out)
{
    const KilnType *type = &node->results[0].type;
    bool right = node->operands[1].value == c;
    double number;
    if (type->quant || (type->rank < 0 && c->type.rank != 0) || !kiln_literal_uniform(c, &number) ||
        isnan(number) || (number == 0 && !right && kiln_dtype_is_float(type->dtype)))
        return false;
    *out = node->op == KILN_OP_max ? (KilnInterval){ number, INFINITY }
                                   : (KilnInterval){ -INFINITY, number };
    return true;
}

static bool
fold_one(KilnMatch *match)
{
    KilnNode *root = match->root;
    KilnInterval interval = { 0, 0 };
    GUARD(number, interval_of(root, kiln_match_value(match, "c"), &interval));
    return kiln_match_replace(
        match, kiln_clip_build(root, kiln_match_value(match, "x"), interval, match->error));
}

/* max(min(x, b), a) is a where b < a; the clip to [a, b] would be b, that to [a, a] is a. */
static bool
fold_two(KilnMatch *match)
{
    KilnNode *root = match->root;
    KilnInterval first = { 0, 0 }, second = { 0, 0 }, both = { 0, 0 };
    GUARD(number,
          interval_of(kiln_match_node(match, "inner"), kiln_match_value(match, "c"), &first) &&
              interval_of(root, kiln_match_value(match, "d"), &second));
    GUARD(one_interval, kiln_clip_chain(first, second, &both));
    return kiln_match_replace(
        match, kiln_clip_build(root, kiln_match_value(match, "x"), both, match->error));
}

static const KilnRule rules[] = {
    RULE("min-of-max", E, "(min~ (max!~#inner ?x $c) $d)", fold_two),
    RULE("max-of-min", E, "(max~ (min!~#inner ?x $c) $d)", fold_two),
    RULE("max-with-number", E, "(max~ ?x $c)", fold_one),
    RULE("min-with-number", E, "(min~ ?x $c)", fold_one),
};

RULE_PASS(fold_min_max_to_clip, REVERSE);
