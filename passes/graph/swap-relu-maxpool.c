/* SPDX-License-Identifier: Apache-2.0 */
/* swap-relu-maxpool: the larger of two first, then relu, on fewer elements.
 *
 *        x                     x
 *        |                     |
 *      relu                max_pool          relu, clip and leaky_relu; max_pool, global_max_pool
 *        |         =>          |             and reduce_max. Never an average: it does not commute
 *    max_pool                relu            with relu.
 *        |                     |
 *
 * requires nothing, preserves nothing. The activation must have no other reader and the pool must
 * shrink, as far as the hints of open extents tell; nothing may read a second result of the pool,
 * for where the maximum stands among elements that the activation makes equal hangs on the order. A
 * window that is all padding gives the least number of the type, which relu would not leave alone:
 * pools that may have one stay.
 *
 * These activations are monotone to the last bit, which approximations (tanh) are not. Class E for
 * integers. Class U for floats: all numbers are equal, but where the maximum is a zero its sign may
 * be another, since which of +0 and -0 a maximum is ONNX leaves open.
 *
 * With the option keep-fusable the activation stays behind a convolution or product, for targets
 * whose kernels apply it on the way. */
#include "passes/rule.h"

#include "graph/infer/infer.h"
#include "graph/op/activation.h"
#include "graph/op/conv.h"
#include "graph/op/matmul.h"
#include "graph/op/pool.h"
#include "graph/op/reduce.h"

#include <math.h>
#include <string.h>

#define OPTIONS(OPTION, CHOICE) OPTION(BOOL, keep_fusable, false)
PASS_OPTIONS(swap_relu_maxpool, OPTIONS);

enum {
    MOST_WINDOWS = 65536 /* along one dim, that are looked at */
};

/* Where all is known: each window has an element of the operand, along each dim. */
static bool
windows_reach(const KilnWindow *window, int d, int64_t extent)
{
    if (window->out[d] > MOST_WINDOWS)
        return false;
    for (int64_t i = 0; i < window->out[d]; i++) {
        int64_t start = i * window->strides[d] - window->pads_begin[d];
        int64_t skipped =
            start < 0 ? (-start + window->dilations[d] - 1) / window->dilations[d] : 0;
        if (skipped >= window->kernel[d] || start + skipped * window->dilations[d] >= extent)
            return false;
    }
    return true;
}

/* Where the extent is not: windows without gaps, larger than the pads, that begin in time. */
static bool
windows_must_reach(const KilnWindow *window, const KilnAttrs_max_pool *attrs, int d)
{
    return !attrs->ceil_mode && strcmp(attrs->auto_pad, "NOTSET") == 0 &&
           window->dilations[d] == 1 && window->kernel[d] > window->pads_begin[d] &&
           window->kernel[d] > window->pads_end[d];
}

static bool
no_empty_window(const KilnNode *pool, const KilnType *x)
{
    KilnWindow window;
    if (!kiln_window_resolve(pool, &window, NULL))
        return false;
    for (int d = 0; d < window.rank; d++) {
        int64_t extent = x->dims[d + 2];
        bool known = extent >= 0 && window.out[d] >= 0;
        if (known ? !windows_reach(&window, d, extent)
                  : !windows_must_reach(&window, kiln_attrs(pool, max_pool), d))
            return false;
    }
    return true;
}

/* The maximum of nothing is the least number too. */
static bool
reduces_something(const KilnNode *pool, const KilnType *x)
{
    bool reduced[KILN_MAX_RANK], known = true;
    for (int d = 0; d < KILN_MAX_RANK; d++)
        reduced[d] = d >= 2;
    if (pool->op == KILN_OP_reduce_max &&
        (!kiln_reduce_axes(pool, reduced, &known, NULL) || !known))
        return false;
    for (int d = 0; d < x->rank; d++) {
        int64_t least, most;
        kiln_type_dim_range(x, d, &least, &most);
        if (reduced[d] && least < 1)
            return false;
    }
    return true;
}

static bool
shrinks(const KilnType *from, const KilnType *to)
{
    int64_t small = kiln_type_likely_elements(to);
    return small >= 0 && small < kiln_type_likely_elements(from);
}

static bool
is_monotone(const KilnNode *activation)
{
    if (activation->op != KILN_OP_leaky_relu)
        return true;
    float alpha = kiln_attrs(activation, leaky_relu)->alpha;
    return alpha > 0 && isfinite(alpha);
}

static bool
is_product(const KilnNode *node)
{
    return node && (node->op == KILN_OP_conv || node->op == KILN_OP_conv_transpose ||
                    node->op == KILN_OP_gemm || node->op == KILN_OP_matmul);
}

static bool
swap(KilnMatch *match)
{
    KilnNode *pool = match->root, *activation = kiln_match_node(match, "activation");
    KilnValue *x = kiln_match_value(match, "x");
    const KilnType *type = &pool->results[0].type;
    GUARD(indices_unread, pool->n_results == 1 || pool->results[1].n_uses == 0);
    GUARD(shrinks, shrinks(&x->type, type));
    GUARD(no_empty_window, pool->op == KILN_OP_max_pool ? no_empty_window(pool, &x->type)
                                                        : reduces_something(pool, &x->type));
    KilnValue *pool_operands[] = { x, kiln_node_operand(pool, 1) };
    KilnValue *pooled =
        kiln_match_build(match, pool->op, pool->attrs, pool_operands, pool->n_operands);
    if (!pooled)
        return false;
    KilnValue *operands[] = { pooled, kiln_node_operand(activation, 1),
                              kiln_node_operand(activation, 2) };
    KilnNodeSpec spec = { .op = activation->op,
                          .operands = operands,
                          .n_operands = activation->n_operands,
                          .attrs = activation->attrs,
                          .types = type };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

static bool
swap_reals(KilnMatch *match)
{
    const Options *options = kiln_pass_options(match->context);
    GUARD(monotone, is_monotone(kiln_match_node(match, "activation")));
    GUARD(not_fusable, !options->keep_fusable || !is_product(kiln_match_value(match, "x")->def));
    return swap(match);
}

/* An activation may change the parameters, which keeps the order; a pool that does so as well
 * rounds a second time. */
static bool
swap_quantized(KilnMatch *match)
{
    KilnType from = kiln_match_node(match, "activation")->results[0].type;
    KilnType to = match->root->results[0].type;
    from.rank = to.rank = 0;
    GUARD(same_parameters, kiln_type_equal(&from, &to));
    return swap_reals(match);
}

// clang-format off
static const KilnRule rules[] = {
    RULE("activation-below-maximum-integer", E, "(max_pool|reduce_max.0 (relu|clip!#activation ?x:int ...) ...)", swap),
    RULE("activation-below-maximum-quantized", E, "(max_pool|global_max_pool.0 (relu|clip|leaky_relu!#activation ?x:quantized ...) ...):quantized", swap_quantized),
    RULE("activation-below-maximum", U, "(max_pool|global_max_pool|reduce_max.0 (relu|clip|leaky_relu!#activation ?x:float ...) ...)", swap_reals),
};
// clang-format on

RULE_PASS(swap_relu_maxpool, FORWARD);
