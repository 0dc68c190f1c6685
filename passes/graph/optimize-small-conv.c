/* SPDX-License-Identifier: Apache-2.0 */
/* optimize-small-conv: a convolution with one window needs no strides, and no weights for padding.
 *
 *     x: [1,C,3,3]   w: [O,C,5,5]            x: [1,C,3,3]   w[1:4, 1:4]: [O,C,3,3]
 *          \         /                            \         /
 *        conv, strides 2, pads 1       =>           conv
 *             |                                      |
 *         [1,O,1,1]                              [1,O,1,1]
 *
 * The strides go first, along each dim that the window takes all of. Where all are 1 the image is
 * what the window has on it, and the cut is the size of the image. Slicing the weights is left to
 * constant-fold.
 *
 * requires nothing, preserves nothing; class U: kernels for other shapes may sum in another order.
 * For the cut the shapes must be known, nothing be dilated, and the weights be literal and read by
 * nothing else: a second copy would cost more than it saves. */
#include "graph/infer/infer.h"
#include "passes/query/conv_window.h"
#include "passes/rule.h"

/* True where @node has one window, and everything about it is known. */
static bool
has_one_window(const KilnNode *node, const KilnWindow *window)
{
    const KilnType *x = &node->operands[0].value->type;
    if (window->rank < 1 || x->rank != window->rank + 2)
        return false;
    for (int d = 0; d < window->rank; d++) {
        if (window->out[d] != 1 || x->dims[d + 2] < 1)
            return false;
    }
    return true;
}

/* True where the window takes all of dim @d, so that there is no other place for it. */
static bool
fits_exactly(const KilnNode *node, const KilnWindow *window, int d)
{
    const KilnType *x = &node->operands[0].value->type;
    int64_t reach = (window->kernel[d] - 1) * window->dilations[d] + 1;
    return window->kernel[d] > 0 && x->rank > 2 && x->dims[d + 2] >= 0 &&
           x->dims[d + 2] + window->pads_begin[d] + window->pads_end[d] == reach;
}

static bool
drop_strides(KilnMatch *match)
{
    KilnNode *conv = match->root;
    KilnWindow window;
    bool changes = false;
    if (!kiln_window_resolve(conv, &window, match->error))
        return false;
    for (int d = 0; d < window.rank; d++) {
        GUARD(pads_known, window.pads_begin[d] >= 0);
        if (window.strides[d] > 1 && fits_exactly(conv, &window, d)) {
            window.strides[d] = 1;
            changes = true;
        }
    }
    GUARD(changes, changes);
    return kiln_conv_replace(match, &window, conv->operands[1].value);
}

static bool
cut_filter(KilnMatch *match)
{
    KilnNode *conv = match->root;
    KilnValue *weights = kiln_match_value(match, "w");
    const KilnType *x = &conv->operands[0].value->type;
    int64_t starts[KILN_MAX_RANK];
    KilnWindow window;
    bool padded = false;
    if (!kiln_window_resolve(conv, &window, match->error))
        return false;
    GUARD(one_window, has_one_window(conv, &window));
    GUARD(own_weights, weights->n_uses == 1);
    for (int d = 0; d < window.rank; d++) {
        GUARD(stride_one, window.strides[d] == 1);
        GUARD(not_dilated, window.dilations[d] == 1);
        padded |= window.pads_begin[d] || window.pads_end[d];
        starts[d] = window.pads_begin[d];
        window.kernel[d] = x->dims[d + 2];
        window.pads_begin[d] = window.pads_end[d] = 0;
    }
    GUARD(padded, padded);
    KilnValue *cut = kiln_conv_slice_taps(match, &window, starts, weights);
    return cut && kiln_conv_replace(match, &window, cut);
}

static const KilnRule rules[] = {
    RULE("small-conv-strides", U, "(conv ? ? ...):float", drop_strides),
    RULE("small-conv-filter", U, "(conv ? $w ...):float", cut_filter),
};

RULE_PASS(optimize_small_conv, FORWARD);
