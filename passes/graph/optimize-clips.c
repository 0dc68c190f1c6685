/* SPDX-License-Identifier: Apache-2.0 */
/* optimize-clips: clips in a row become one; relu is the clip to [0, inf).
 *
 *        x                 x                       x                    x
 *        |                 |                       |                    |
 *    clip [a, b]           |                   clip [0, 6]          clip [0, 6]
 *        |          =>  clip [a', b']              |          =>        |
 *    clip [c, d]           |                      relu                  |
 *        |                 |                       |                    |
 *
 *    clip(x, -inf, b)  =>  clip(x, _, b)      clip(x, 0)  =>  relu(x)
 *
 * [a', b'] is [a, b] clipped to [c, d]. That holds for disjoint intervals too, where it is one
 * number: [2, 3] after [0, 1] gives [2, 2], never the reversed [2, 1]. Where the outer interval
 * covers the inner one the outer clip goes, even if the inner one has other readers.
 *
 * requires nothing, preserves nothing; class E. Bounds must be literal. ONNX says nothing of NaN;
 * here clip and relu let it through, one alone as well as two (passes/query/clip.h), so a merged
 * clip does the same. A bound that is NaN is left alone. */
#include "passes/query/clip.h"
#include "passes/rule.h"

#include <math.h>

static bool
is_within(KilnInterval inner, KilnInterval outer)
{
    return inner.low <= inner.high && inner.low >= outer.low && inner.high <= outer.high;
}

static bool
drop_wider(KilnMatch *match)
{
    KilnNode *inner = kiln_match_node(match, "inner");
    KilnInterval first = { 0, 0 }, second = { 0, 0 };
    GUARD(bounds, kiln_clip_interval(inner, &first) && kiln_clip_interval(match->root, &second));
    GUARD(covered, is_within(first, second));
    return kiln_match_replace(match, &inner->results[0]);
}

static bool
merge(KilnMatch *match)
{
    KilnNode *root = match->root;
    KilnInterval first = { 0, 0 }, second = { 0, 0 }, both = { 0, 0 };
    GUARD(bounds, kiln_clip_interval(kiln_match_node(match, "inner"), &first) &&
                      kiln_clip_interval(root, &second));
    GUARD(one_interval, kiln_clip_chain(first, second, &both));
    return kiln_match_replace(
        match, kiln_clip_build(root, kiln_match_value(match, "x"), both, match->error));
}

/* Fewer bounds than are written, or relu. */
static bool
is_simpler(const KilnNode *node, KilnInterval interval)
{
    return kiln_clip_is_relu(interval, node->results[0].type.dtype) ||
           (kiln_node_operand(node, 1) && interval.low == -INFINITY) ||
           (kiln_node_operand(node, 2) && interval.high == INFINITY);
}

static bool
simplify(KilnMatch *match)
{
    KilnNode *root = match->root;
    KilnInterval interval = { 0, 0 };
    GUARD(bounds, kiln_clip_interval(root, &interval));
    GUARD(simpler, is_simpler(root, interval));
    return kiln_match_replace(
        match, kiln_clip_build(root, kiln_match_value(match, "x"), interval, match->error));
}

static const KilnRule rules[] = {
    RULE("clip-of-narrower", E, "(clip|relu (clip|relu#inner ? ...) ...)", drop_wider),
    RULE("clip-of-clip", E, "(clip|relu (clip|relu!#inner ?x ...) ...)", merge),
    RULE("simple-clip", E, "(clip ?x ...)", simplify),
};

RULE_PASS(optimize_clips, FORWARD);
