/* SPDX-License-Identifier: Apache-2.0 */
/* drop-fp16-clips: clips to the range of f16, or wider, around f16 go.
 *
 *      x: f16                 x: f32                         x: f16
 *        |                      |                              |
 *    clip ±65504  =>  x     clip ±65504                    cast to f32
 *        |                      |          =>  cast(x)         |         =>  cast(x)
 *                           cast to f16                    clip ±65504
 *                               |                              |
 *
 * requires nothing, preserves nothing; class L under finite-math: only infinities are clipped
 * there, and numbers beyond the range that would become infinite in f16. Exporters of
 * half-precision models write such clips to keep infinities out. */
#include "graph/base/number.h"
#include "graph/op/cast.h"
#include "passes/query/clip.h"
#include "passes/rule.h"

static bool
is_wide(const KilnNode *clip)
{
    KilnInterval interval;
    double most = kiln_float_format(KILN_DTYPE_f16)->largest;
    return kiln_clip_interval(clip, &interval) && interval.low <= -most && interval.high >= most;
}

static bool
drop(KilnMatch *match)
{
    GUARD(wide, is_wide(match->root));
    return kiln_match_replace_by_x(match);
}

static bool
cast_unclipped(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    GUARD(wide, is_wide(kiln_match_node(match, "clip")));
    return kiln_match_replace(match,
                              kiln_match_build(match, KILN_OP_cast, match->root->attrs, &x, 1));
}

#define FINITE KILN_FLAG(finite_math)

static const KilnRule rules[] = {
    LOSSY_RULE("clip-of-f16", FINITE, "(clip ?x:f16 ...)", drop),
    LOSSY_RULE("clip-before-f16", FINITE, "(cast (clip!#clip ?x:float ...)):f16", cast_unclipped),
    LOSSY_RULE("clip-after-f16", FINITE, "(clip (cast#x ?:f16) ...)", drop),
};

RULE_PASS(drop_fp16_clips, FORWARD);
