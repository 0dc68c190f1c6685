/* SPDX-License-Identifier: Apache-2.0 */
/* crop-conv-kernel: rows and columns of taps that meet only padding leave a convolution.
 *
 *     x: [1,C,8,8]   w: [O,C,3,3]            x: [1,C,8,8]   w[1:2, 1:2]: [O,C,1,1]
 *          \         /                            \         /
 *      conv, dilations 12, pads 12    =>            conv
 *             |                                      |
 *         [1,O,8,8]                              [1,O,8,8]
 *
 * Along each dim the first and the last taps go, as long as no window has an element of the image
 * at them, and the pads that they stood for with them: a tap less is a dilation less of padding. A
 * tap stays where there is less padding than that, and one where all meet only padding. A single
 * tap has no dilation. Slicing the weights is left to constant-fold.
 *
 * requires nothing, preserves nothing; class U: kernels for other shapes may sum in another order.
 * What weights meet in padding does not count, not even where they are infinite: padding is no
 * operand of a product. The shapes must be known, and the weights be literal and read by nothing
 * else: a second copy would cost more than it saves. */
#include "graph/infer/infer.h"
#include "passes/query/conv_window.h"
#include "passes/rule.h"

/* True where some window has an element of the image, @extent long, at tap @tap of dim @d. */
static bool
meets_image(const KilnWindow *window, int d, int64_t extent, int64_t tap)
{
    int64_t first = tap * window->dilations[d] - window->pads_begin[d], stride = window->strides[d];
    int64_t skipped = first < 0 ? (-first + stride - 1) / stride : 0;
    return skipped < window->out[d] && first + skipped * stride < extent;
}

/* Takes the useless taps of dim @d off @window; the number of those in front. */
static int64_t
crop(KilnWindow *window, int d, int64_t extent)
{
    int64_t *kernel = &window->kernel[d], dilation = window->dilations[d], front = 0;
    while (*kernel > 1 && window->pads_end[d] >= dilation &&
           !meets_image(window, d, extent, *kernel - 1)) {
        window->pads_end[d] -= dilation;
        --*kernel;
    }
    while (*kernel > 1 && window->pads_begin[d] >= dilation && !meets_image(window, d, extent, 0)) {
        window->pads_begin[d] -= dilation;
        --*kernel;
        front++;
    }
    if (*kernel == 1)
        window->dilations[d] = 1;
    return front;
}

static bool
is_known(const KilnNode *conv, const KilnWindow *window)
{
    const KilnType *x = &conv->operands[0].value->type, *w = &conv->operands[1].value->type;
    if (window->rank < 1 || x->rank != window->rank + 2 || w->rank != x->rank)
        return false;
    for (int d = 0; d < window->rank; d++) {
        if (window->out[d] < 0 || x->dims[d + 2] < 0)
            return false;
    }
    return true;
}

static bool
crop_kernel(KilnMatch *match)
{
    KilnNode *conv = match->root;
    KilnValue *weights = kiln_match_value(match, "w");
    int64_t first[KILN_MAX_RANK];
    KilnWindow window;
    bool crops = false;
    if (!kiln_window_resolve(conv, &window, match->error))
        return false;
    GUARD(known, is_known(conv, &window));
    GUARD(own_weights, weights->n_uses == 1);
    for (int d = 0; d < window.rank; d++) {
        int64_t taps = window.kernel[d];
        first[d] = crop(&window, d, conv->operands[0].value->type.dims[d + 2]);
        crops |= window.kernel[d] < taps;
    }
    GUARD(crops, crops);
    KilnValue *cut = kiln_conv_slice_taps(match, &window, first, weights);
    return cut && kiln_conv_replace(match, &window, cut);
}

static const KilnRule rules[] = {
    RULE("crop-conv-kernel", U, "(conv ? $w ...):float", crop_kernel),
};

RULE_PASS(crop_conv_kernel, FORWARD);
