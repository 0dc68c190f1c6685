/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices in every spelling, what works along rows, and recurrent layers. */
#include "tests/random/random_graph_priv.h"
#include "graph/graph.h"
#include "graph/op/additive.h"
#include "graph/op/matmul.h"
#include "graph/op/multiplicative.h"
#include "graph/op/norm.h"
#include "graph/op/recurrent.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "graph/op/softmax.h"
#include "graph/op/transpose.h"

#include <math.h>

int64_t
rg_columns(RandomGraph *g)
{
    static const int64_t columns[] = { 1, 3, 8, 16, 16, 17, 24, 32, 33 };
    return columns[rg_below(g, G_N_ELEMENTS(columns))];
}

static int64_t
extent(const KilnValue *x, int from_behind)
{
    return x->type.dims[x->type.rank - from_behind];
}

static KilnValue *
last_two_swapped(RandomGraph *g, KilnValue *x)
{
    int64_t perm[KILN_MAX_RANK];
    int rank = x->type.rank;
    for (int d = 0; d < rank; d++)
        perm[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
    KilnAttrs_transpose attrs = { .perm = { .n = (uint32_t)rank, .v = perm } };
    return rg_unary(g, KILN_OP_transpose, &attrs, x);
}

/* --- products --- */

/* By weights, biased or not, of a stack or of one matrix. */
static void
linear(RandomGraph *g, KilnValue *x)
{
    int64_t k = extent(x, 1), n = rg_columns(g);
    KilnValue *w = rg_one_in(g, 5) ? rg_weight(g, 3, (int64_t[]){ 1, k, n }, k)
                                   : rg_weight(g, 2, (int64_t[]){ k, n }, k);
    KilnValue *y = rg_binary(g, KILN_OP_matmul, NULL, x, w);
    y = y && rg_one_in(g, 2) ? rg_binary(g, KILN_OP_add, NULL, y, rg_weight(g, 1, &n, 3)) : y;
    rg_tails(g, y);
}

static void
gemm(RandomGraph *g, KilnValue *x)
{
    static const float factors[] = { 1, 1, 1, 0.5, 0, -2 };
    KilnAttrs_gemm attrs = { .alpha = factors[rg_below(g, G_N_ELEMENTS(factors))],
                             .beta = factors[rg_below(g, G_N_ELEMENTS(factors))],
                             .transA = rg_one_in(g, 3),
                             .transB = rg_one_in(g, 2) };
    int64_t m = x->type.dims[attrs.transA], k = x->type.dims[!attrs.transA], n = rg_columns(g);
    int64_t shapes[][2] = { { 1, n }, { m, n }, { m, 1 }, { 1, 1 } };
    int shape = rg_below(g, G_N_ELEMENTS(shapes)), drop = rg_one_in(g, 2) && shape != 1;
    if (x->type.rank != 2)
        return;
    int64_t dims[] = { attrs.transB ? n : k, attrs.transB ? k : n };
    KilnValue *c = rg_one_in(g, 4)      ? NULL
                   : drop && shape != 2 ? rg_weight(g, 1, &shapes[shape][1], 3)
                                        : rg_weight(g, 2, shapes[shape], 3);
    KilnValue *operands[] = { x, rg_weight(g, 2, dims, k), c };
    KilnValue *y = rg_add(g, KILN_OP_gemm, &attrs, 1, 3, operands);
    rg_tails(g, y);
}

/* Two values of the graph, of which one may have to be turned; or one with itself. */
static void
product(RandomGraph *g, KilnValue *x)
{
    for (int tries = 0; tries < 6; tries++) {
        KilnValue *y = rg_of_rank(g, 2, 4);
        if (y && extent(y, 2) == extent(x, 1)) {
            y = rg_binary(g, KILN_OP_matmul, NULL, x, y);
            rg_tails(g, y);
            return;
        }
    }
    KilnValue *turned = last_two_swapped(g, x);
    KilnValue *y = turned ? rg_binary(g, KILN_OP_matmul, NULL, x, turned) : NULL;
    rg_tails(g, y);
}

static void
attention(RandomGraph *g, KilnValue *x)
{
    KilnAttrs_softmax soft = { .axis = -1 };
    KilnValue *parts[3];
    int64_t k = extent(x, 1), n = rg_columns(g);
    for (int i = 0; i < 3; i++) {
        parts[i] = rg_binary(g, KILN_OP_matmul, NULL, x, rg_weight(g, 2, (int64_t[]){ k, n }, k));
        if (!parts[i])
            return;
    }
    KilnValue *turned = last_two_swapped(g, parts[1]);
    KilnValue *y = turned ? rg_binary(g, KILN_OP_matmul, NULL, parts[0], turned) : NULL;
    y = y ? rg_binary(g, KILN_OP_mul, NULL, y, rg_scalar(g, 1 / sqrt((double)MAX(n, 1)))) : NULL;
    y = y ? rg_unary(g, KILN_OP_softmax, &soft, y) : NULL;
    y = y ? rg_binary(g, KILN_OP_matmul, NULL, y, parts[2]) : NULL;
    if (rg_one_in(g, 2))
        rg_tails(g, y);
}

/* --- along rows --- */

static void
soft(RandomGraph *g, KilnValue *x)
{
    KilnAttrs_softmax attrs = { .axis = rg_one_in(g, 3) ? rg_below(g, x->type.rank) : -1 };
    KilnAttrs_log_softmax log = { .axis = attrs.axis };
    KilnValue *y = rg_one_in(g, 3) ? rg_unary(g, KILN_OP_log_softmax, &log, x)
                                   : rg_unary(g, KILN_OP_softmax, &attrs, x);
    if (rg_one_in(g, 3))
        rg_tails(g, y);
}

static void
layer_norm(RandomGraph *g, KilnValue *x)
{
    int rank = x->type.rank, axis = rg_one_in(g, 3) ? rg_below(g, rank) : rank - 1;
    KilnAttrs_layer_normalization attrs = { .axis = rg_one_in(g, 2) ? axis - rank : axis,
                                            .epsilon = 1e-2f,
                                            .stash_type = 1 };
    KilnValue *operands[] = { x, rg_weight(g, rank - axis, x->type.dims + axis, 3),
                              rg_one_in(g, 3) ? NULL
                                              : rg_weight(g, rank - axis, x->type.dims + axis, 3) };
    KilnValue *y =
        rg_add(g, KILN_OP_layer_normalization, &attrs, 1 + 2 * rg_one_in(g, 10), 3, operands);
    if (rg_one_in(g, 2))
        rg_tails(g, y);
}

static void
reduced(RandomGraph *g, KilnValue *x)
{
    static const KilnOp ops[] = { KILN_OP_reduce_sum, KILN_OP_reduce_mean, KILN_OP_reduce_max,
                                  KILN_OP_reduce_min };
    int64_t axes[KILN_MAX_RANK];
    uint32_t n = 0, most = 1 + (uint32_t)rg_below(g, 2);
    KilnAttrs_reduce_sum attrs = { .keepdims = rg_one_in(g, 2) };
    if (kiln_type_elements(&x->type) == 0)
        return; /* the largest of nothing */
    for (int d = x->type.rank - 1; d >= 0 && n < most; d--) {
        if (!rg_one_in(g, 4))
            axes[n++] = rg_one_in(g, 2) ? d : d - x->type.rank;
    }
    KilnValue *y = rg_binary(g, ops[rg_below(g, G_N_ELEMENTS(ops))], &attrs, x,
                             n ? rg_ints(g, axes, n) : NULL);
    if (rg_one_in(g, 2))
        rg_tails(g, y);
}

/* --- along time --- */

static void
lstm(RandomGraph *g, KilnValue *x)
{
    int64_t hidden = rg_columns(g), input = x->type.dims[2], gates = 4 * hidden;
    static const char *const directions[] = { "forward", "forward", "forward", "reverse",
                                              "bidirectional" };
    const char *direction = directions[rg_below(g, G_N_ELEMENTS(directions))];
    int64_t n = g_str_equal(direction, "bidirectional") ? 2 : 1, batch = x->type.dims[1];
    KilnAttrs_lstm *attrs = kiln_op_attrs_new(KILN_OP_lstm, g->module->arena);
    attrs->direction = direction;
    attrs->hidden_size = hidden;
    attrs->clip = rg_one_in(g, 10) ? 0.5f : 0;
    int64_t state[] = { n, batch, hidden };
    bool states = rg_one_in(g, 3);
    KilnValue *operands[] = { x,
                              rg_weight(g, 3, (int64_t[]){ n, gates, input }, input),
                              rg_weight(g, 3, (int64_t[]){ n, gates, hidden }, hidden),
                              rg_one_in(g, 4) ? NULL
                                              : rg_weight(g, 2, (int64_t[]){ n, 2 * gates }, 3),
                              NULL,
                              states ? rg_weight(g, 3, state, 3) : NULL,
                              states ? rg_weight(g, 3, state, 3) : NULL };
    KilnValue *y = rg_add(g, KILN_OP_lstm, attrs, 3, 7, operands);
    int64_t axis = 1;
    y = y && !rg_one_in(g, 3) ? rg_binary(g, KILN_OP_squeeze, NULL, y, rg_ints(g, &axis, 1)) : NULL;
    if (rg_one_in(g, 2))
        rg_tails(g, y);
}

void
rg_product(RandomGraph *g)
{
    typedef void (*Family)(RandomGraph *, KilnValue *);
    static const Family families[] = {
        linear, linear, linear,     gemm,       gemm,    product, product, attention,
        soft,   soft,   layer_norm, layer_norm, reduced, reduced, lstm,
    };
    KilnValue *x = rg_of_rank(g, 2, 4);
    Family family = families[rg_below(g, G_N_ELEMENTS(families))];
    x = family == lstm ? rg_of_rank(g, 3, 3) : x;
    if (!x)
        return;
    if (rg_one_in(g, 8))
        last_two_swapped(g, x);
    else
        family(g, x);
}
