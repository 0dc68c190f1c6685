/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/conv_window.h"

#include "graph/op/conv.h"
#include "graph/op/slice.h"

bool
kiln_conv_replace(KilnMatch *match, const KilnWindow *window, KilnValue *weights)
{
    KilnNode *conv = match->root;
    KilnAttrs_conv attrs = *kiln_attrs(conv, conv);
    uint32_t rank = (uint32_t)window->rank;
    int64_t pads[2 * KILN_MAX_RANK];
    KilnWindow resolved = *window;
    bool strided = false, dilated = false, padded = false;
    for (uint32_t d = 0; d < rank; d++) {
        pads[d] = window->pads_begin[d];
        pads[rank + d] = window->pads_end[d];
        strided |= window->strides[d] != 1;
        dilated |= window->dilations[d] != 1;
        padded |= pads[d] || pads[rank + d];
    }
    attrs.auto_pad = "NOTSET";
    attrs.strides = (KilnInts){ .n = strided ? rank : 0, .v = resolved.strides };
    attrs.dilations = (KilnInts){ .n = dilated ? rank : 0, .v = resolved.dilations };
    attrs.pads = (KilnInts){ .n = padded ? 2 * rank : 0, .v = pads };
    if (attrs.kernel_shape.n)
        attrs.kernel_shape = (KilnInts){ .n = rank, .v = resolved.kernel };
    KilnNodeSpec spec = { .op = KILN_OP_conv,
                          .name = conv->name,
                          .operands = (KilnValue *[]){ conv->operands[0].value, weights,
                                                       kiln_node_operand(conv, 2) },
                          .n_operands = kiln_node_operand(conv, 2) ? 3 : 2,
                          .attrs = &attrs };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

KilnValue *
kiln_conv_slice_taps(KilnMatch *match, const KilnWindow *window, const int64_t *first,
                     KilnValue *weights)
{
    KilnNode *conv = match->root;
    KilnFunction *function = match->root->function;
    int64_t ends[KILN_MAX_RANK], axes[KILN_MAX_RANK];
    for (int d = 0; d < window->rank; d++) {
        ends[d] = first[d] + window->kernel[d];
        axes[d] = d + 2;
    }
    uint32_t n = (uint32_t)window->rank;
    KilnValue *operands[] = { weights, kiln_build_ints(function, conv, first, n),
                              kiln_build_ints(function, conv, ends, n),
                              kiln_build_ints(function, conv, axes, n) };
    return kiln_match_build(match, KILN_OP_slice, NULL, operands, 4);
}
