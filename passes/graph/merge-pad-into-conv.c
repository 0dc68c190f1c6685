/* SPDX-License-Identifier: Apache-2.0 */
/* merge-pad-into-conv: what pads the operand of a convolution or a pool becomes its own padding.
 *
 *        x                            x
 *        |                            |
 *     pad p with 0                 conv, pads q + p
 *        |             =>             |
 *     conv, pads q
 *        |
 *
 * Into average_pool with 0 where padding counts, or where it has no padding of its own (then it
 * begins to count); into max_pool with minus infinity, where nothing reads the indices.
 *
 * requires nothing, preserves nothing; class U: a kernel may sum in another order, or leave out
 * what padding adds. The padding must be constant and known, along spatial dims, and must not crop:
 * an element that is cropped and a zero that pads in its place are not the same. Weights must be
 * literal and finite, for 0 times infinity is no 0. Pools that round their size up do so before
 * padding counts, and stay. All readers of the padded value must be convolutions or pools: else it
 * would have to be made anyway. */
#include "graph/base/number.h"
#include "graph/infer/infer.h"
#include "graph/op/activation.h"
#include "graph/op/bounds.h"
#include "graph/op/conv.h"
#include "graph/op/expand.h"
#include "graph/op/math.h"
#include "graph/op/pool.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

#include <math.h>
#include <string.h>

enum {
    PADS_MAX = 1 << 30, /* what a window may have */
    READERS_MAX = 8,    /* of a padded value that are looked at */
};

typedef struct {
    int64_t v[2 * KILN_MAX_RANK];
    KilnInts list; /* of them */
    bool any_own;  /* the node had padding of its own */
} Pads;

static bool
has_mode(const char *mode, const char *a, const char *b)
{
    return strcmp(mode, a) == 0 || strcmp(mode, b) == 0;
}

static bool
only_windows_read(const KilnValue *padded)
{
    if (padded->n_uses > READERS_MAX)
        return false;
    kiln_foreach_use (use, padded) {
        KilnOp op = use->user->op;
        if (use->index != 0 ||
            (op != KILN_OP_conv && op != KILN_OP_average_pool && op != KILN_OP_max_pool))
            return false;
    }
    return true;
}

/* The padding of @node, a convolution or pool, and of the pad in front of it. */
static bool
merged_pads(KilnMatch *match, const char *auto_pad, Pads *pads)
{
    const KilnNode *pad = kiln_match_node(match, "pad");
    const KilnType *x = &pad->operands[0].value->type;
    int64_t begin[KILN_MAX_RANK], end[KILN_MAX_RANK];
    KilnWindow window;
    bool known = false;
    GUARD(plain, !x->layout);
    GUARD(only_windows, only_windows_read(&pad->results[0]));
    GUARD(constant_mode, strcmp(kiln_attrs(pad, pad)->mode, "constant") == 0);
    if (!kiln_pad_resolve(pad, begin, end, &known, match->error) ||
        !kiln_window_resolve(match->root, &window, match->error))
        return false;
    GUARD(pads_known, known);
    GUARD(own_pads_known, has_mode(auto_pad, "NOTSET", "VALID"));
    for (int d = 0; d < x->rank; d++) {
        GUARD(spatial, d >= 2 || (begin[d] == 0 && end[d] == 0));
        GUARD(no_crop, begin[d] >= 0 && end[d] >= 0);
        if (d < 2)
            continue;
        int64_t *from = &pads->v[d - 2], *to = &pads->v[x->rank - 2 + d - 2];
        *from = window.pads_begin[d - 2] + begin[d];
        *to = window.pads_end[d - 2] + end[d];
        GUARD(small, MAX(*from, *to) <= PADS_MAX);
        pads->any_own |= window.pads_begin[d - 2] || window.pads_end[d - 2];
    }
    pads->list = (KilnInts){ .n = 2 * (uint32_t)(x->rank - 2), .v = pads->v };
    return true;
}

/* True where the padding is @number. */
static bool
pads_with(const KilnNode *pad, double number)
{
    double value = 0;
    const KilnValue *operand = kiln_node_operand(pad, 2);
    return (!operand || kiln_literal_uniform(operand, &value)) && value == number;
}

static bool
is_finite(const KilnValue *literal, GError **error)
{
    const KilnConstant *constant = kiln_value_constant(literal);
    g_autoptr(GBytes) bytes = kiln_tensor_view(constant->tensor, error);
    bool finite = bytes;
    for (int64_t i = 0, n = kiln_type_elements(&constant->type); finite && i < n; i++)
        finite =
            isfinite(kiln_element_as_f64(constant->type.dtype, g_bytes_get_data(bytes, NULL), i));
    return finite;
}

/* The node with @attrs on what was padded. */
static bool
replace(KilnMatch *match, const void *attrs)
{
    KilnNode *node = match->root;
    KilnValue *operands[] = { kiln_match_value(match, "x"), kiln_node_operand(node, 1),
                              kiln_node_operand(node, 2) };
    KilnNodeSpec spec = { .op = node->op,
                          .name = node->name,
                          .operands = operands,
                          .n_operands = node->n_operands,
                          .attrs = attrs };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

static bool
into_conv(KilnMatch *match)
{
    KilnAttrs_conv attrs = *kiln_attrs(match->root, conv);
    Pads pads = { 0 };
    if (!merged_pads(match, attrs.auto_pad, &pads))
        return false;
    GUARD(pads_zero, pads_with(kiln_match_node(match, "pad"), 0));
    GUARD(finite_weights, is_finite(kiln_match_value(match, "w"), match->error));
    attrs.auto_pad = "NOTSET";
    attrs.pads = pads.list;
    return replace(match, &attrs);
}

static bool
into_average_pool(KilnMatch *match)
{
    KilnAttrs_average_pool attrs = *kiln_attrs(match->root, average_pool);
    Pads pads = { 0 };
    if (!merged_pads(match, attrs.auto_pad, &pads))
        return false;
    GUARD(pads_zero, pads_with(kiln_match_node(match, "pad"), 0));
    GUARD(padding_counts, attrs.count_include_pad || !pads.any_own);
    GUARD(rounds_down, !attrs.ceil_mode);
    attrs.auto_pad = "NOTSET";
    attrs.pads = pads.list;
    attrs.count_include_pad = true;
    return replace(match, &attrs);
}

/* True where no element of @x is less than 0. */
static bool
is_not_negative(const KilnValue *x)
{
    if (!x->def)
        return false;
    double least;
    const KilnValue *bound = kiln_node_operand(x->def, 1);
    switch (x->def->op) {
    case KILN_OP_relu:
    case KILN_OP_sigmoid:
    case KILN_OP_abs:
        return true;
    case KILN_OP_clip:
        return bound && kiln_literal_uniform(bound, &least) && least >= 0;
    default:
        return false;
    }
}

/* True where each window of the pool with @pads has an element of @x. */
static bool
windows_have_data(const KilnNode *pool, const KilnType *x, const Pads *pads)
{
    KilnWindow window;
    int64_t least, most;
    if (!kiln_window_resolve(pool, &window, NULL))
        return false;
    for (int d = 0; d < window.rank; d++) {
        kiln_type_dim_range(x, d + 2, &least, &most);
        if (least < 1 || window.dilations[d] != 1 ||
            MAX(pads->v[d], pads->v[window.rank + d]) >= window.kernel[d])
            return false;
    }
    return true;
}

static bool
into_max_pool(KilnMatch *match)
{
    KilnNode *pool = match->root;
    KilnAttrs_max_pool attrs = *kiln_attrs(pool, max_pool);
    Pads pads = { 0 };
    if (!merged_pads(match, attrs.auto_pad, &pads))
        return false;
    const KilnValue *x = kiln_match_value(match, "x");
    const KilnNode *pad = kiln_match_node(match, "pad");
    GUARD(pads_least, pads_with(pad, -INFINITY) || (pads_with(pad, 0) && is_not_negative(x) &&
                                                    windows_have_data(pool, &x->type, &pads)));
    GUARD(indices_unused, pool->n_results == 1 || !pool->results[1].n_uses);
    GUARD(rounds_down, !attrs.ceil_mode);
    attrs.auto_pad = "NOTSET";
    attrs.pads = pads.list;
    return replace(match, &attrs);
}

static const KilnRule rules[] = {
    RULE("pad-into-conv", U, "(conv (pad#pad ?x ? ...) $w ...):float", into_conv),
    RULE("pad-into-average-pool", U, "(average_pool (pad#pad ?x ? ...)):float", into_average_pool),
    RULE("pad-into-max-pool", U, "(max_pool (pad#pad ?x ? ...)):float", into_max_pool),
};

RULE_PASS(merge_pad_into_conv, FORWARD);
