/* SPDX-License-Identifier: Apache-2.0 */
/* fold-dilated-conv: a convolution of the phases of an image is a dilated convolution of the image.
 *
 *     x: [C,N,H,W]                          x: [C,N,H,W]
 *         |                                     |
 *     space_to_depth b  [C,b·b·N,H/b,W/b]   transpose [1,0,2,3]
 *         |                                     |
 *     transpose [1,0,2,3]                   conv, dilations b, pads b · p
 *         |                                     |
 *     conv, pads p                   =>     transpose [1,0,2,3]
 *         |                                     |
 *     transpose [1,0,2,3]
 *         |
 *     depth_to_space b  (DCR)
 *         |
 *
 * Batch and channels are exchanged, so that space goes to the batch: each of the b·b phases is an
 * image of its own. The transposes that are left cancel with those around (merge-transposes).
 *
 * requires nothing, preserves nothing; class U: kernels for other shapes may sum in another order.
 * The convolution must have strides and dilations of 1; every value in between must have no other
 * reader. */
#include "passes/rule.h"

#include "graph/infer/infer.h"
#include "graph/op/conv.h"
#include "graph/op/transpose.h"

#include <string.h>

static bool
swaps_batch(const KilnNode *transpose, GError **error)
{
    int perm[KILN_MAX_RANK];
    return transpose->results[0].type.rank == 4 && kiln_transpose_perm(transpose, perm, error) &&
           perm[0] == 1 && perm[1] == 0 && perm[2] == 2 && perm[3] == 3;
}

static KilnValue *
swap_batch(KilnMatch *match, KilnValue *x)
{
    KilnAttrs_transpose attrs = { .perm = { .n = 4, .v = (int64_t[]){ 1, 0, 2, 3 } } };
    return kiln_match_build(match, KILN_OP_transpose, &attrs, &x, 1);
}

static bool
is_dense(const KilnWindow *window)
{
    return window->rank == 2 && window->strides[0] == 1 && window->strides[1] == 1 &&
           window->dilations[0] == 1 && window->dilations[1] == 1;
}

static bool
dilate(KilnMatch *match)
{
    KilnNode *conv = kiln_match_node(match, "conv"), *up = match->root;
    const KilnNode *down = kiln_match_node(match, "down");
    int64_t block = kiln_attrs(down, space_to_depth)->blocksize;
    KilnWindow window;
    GUARD(same_block, kiln_attrs(up, depth_to_space)->blocksize == block);
    GUARD(block_first, strcmp(kiln_attrs(up, depth_to_space)->mode, "DCR") == 0);
    GUARD(block_first_below, strcmp(kiln_attrs(down, space_to_depth)->mode, "DCR") == 0);
    GUARD(swaps_before, swaps_batch(kiln_match_node(match, "before"), match->error));
    GUARD(swaps_after, swaps_batch(kiln_match_node(match, "after"), match->error));
    if (!kiln_window_resolve(conv, &window, match->error))
        return false;
    GUARD(dense, is_dense(&window));
    KilnAttrs_conv attrs = *kiln_attrs(conv, conv);
    bool explicit_pads =
        strcmp(attrs.auto_pad, "NOTSET") == 0 || strcmp(attrs.auto_pad, "VALID") == 0;
    GUARD(explicit_pads, explicit_pads);
    attrs.auto_pad = "NOTSET";
    attrs.dilations = (KilnInts){ .n = 2, .v = (int64_t[]){ block, block } };
    attrs.pads =
        (KilnInts){ .n = 4,
                    .v = (int64_t[]){ window.pads_begin[0] * block, window.pads_begin[1] * block,
                                      window.pads_end[0] * block, window.pads_end[1] * block } };
    KilnValue *x = swap_batch(match, kiln_match_value(match, "x"));
    KilnValue *operands[] = { x, conv->operands[1].value, kiln_node_operand(conv, 2) };
    KilnValue *dilated =
        x ? kiln_match_build(match, KILN_OP_conv, &attrs, operands, operands[2] ? 3 : 2) : NULL;
    KilnValue *result = dilated ? swap_batch(match, dilated) : NULL;
    return kiln_match_replace(match, result);
}

static const KilnRule rules[] = {
    RULE("fold-dilated-conv", U,
         "(depth_to_space (transpose!#after (conv!#conv (transpose!#before "
         "(space_to_depth!#down ?x)) ? ...):float))",
         dilate),
};

RULE_PASS(fold_dilated_conv, FORWARD);
