/* SPDX-License-Identifier: Apache-2.0 */
/* Idioms that passes look for, as exporters write them, and their doubles: the same picture with
 * one operand, axis or permutation that is another. */
#include "graph/node.h"
#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/cast.h"
#include "graph/op/concat.h"
#include "graph/op/conv.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/matmul.h"
#include "graph/op/multiplicative.h"
#include "graph/op/norm.h"
#include "graph/op/pool.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "graph/op/resize.h"
#include "graph/op/slice.h"
#include "graph/op/softmax.h"
#include "graph/op/structure.h"
#include "graph/op/transpose.h"
#include "tests/random/random_graph_priv.h"

#include <math.h>
#include <string.h>

/* @x, or now and then something else of its type: what a pattern must notice. */
static KilnValue *
or_double(RandomGraph *g, KilnValue *x)
{
    return rg_one_in(g, 6) ? rg_unary(g, KILN_OP_neg, NULL, x) : x;
}

/* A commutative op in either order of its operands. */
static KilnValue *
either(RandomGraph *g, KilnOp op, KilnValue *x, KilnValue *y)
{
    return rg_one_in(g, 2) ? rg_binary(g, op, NULL, x, y) : rg_binary(g, op, NULL, y, x);
}

static KilnValue *
mean_of_last(RandomGraph *g, KilnValue *x, KilnOp op)
{
    KilnAttrs_reduce_mean attrs = { .keepdims = !rg_one_in(g, 10) };
    if (kiln_type_elements(&x->type) == 0)
        return NULL; /* the mean of nothing */
    int64_t axis = rg_one_in(g, 8) ? 0 : -1;
    return rg_binary(g, op, &attrs, x, rg_ints(g, &axis, 1));
}

/* --- activations --- */

static void
leaky_relu(RandomGraph *g)
{
    static const double slopes[] = { 0.1, 0.5, 1, 1.5, -0.2 };
    KilnValue *x = rg_any(g);
    KilnValue *scaled = either(g, KILN_OP_mul, or_double(g, x),
                               rg_scalar(g, slopes[rg_below(g, G_N_ELEMENTS(slopes))]));
    if (scaled)
        either(g, KILN_OP_max, x, scaled);
}

/* A choice by sign. */
static void
leaky_choice(RandomGraph *g)
{
    static const KilnOp ops[] = { KILN_OP_greater, KILN_OP_greater_or_equal, KILN_OP_less,
                                  KILN_OP_less_or_equal };
    KilnValue *x = rg_any(g);
    KilnOp op = ops[rg_below(g, G_N_ELEMENTS(ops))];
    bool greater = op == KILN_OP_greater || op == KILN_OP_greater_or_equal;
    KilnValue *scaled =
        either(g, KILN_OP_mul, or_double(g, x), rg_scalar(g, rg_one_in(g, 6) ? -0.5 : 0.25));
    KilnValue *which = rg_binary(g, op, NULL, x, rg_scalar(g, rg_one_in(g, 6) ? 1 : 0));
    if (rg_one_in(g, 6))
        greater = !greater;
    KilnValue *operands[] = { which, greater ? x : scaled, greater ? scaled : x };
    if (which && scaled)
        rg_add(g, KILN_OP_where, NULL, 1, 3, operands);
}

static void
clips(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    for (int i = 0; i < 3 && x; i++) {
        double low = rg_below(g, 5) - 2.5, high = low + rg_below(g, 4) - 0.5;
        KilnType scalar = kiln_type_scalar(g->dtype);
        KilnValue *bounds[] = { rg_constant(g, &scalar, low, low),
                                rg_constant(g, &scalar, high, high) };
        KilnValue *operands[] = { x, bounds[0], bounds[1] };
        switch (rg_below(g, 4)) {
        case 0:
            x = rg_add(g, KILN_OP_clip, NULL, 1, 3, operands);
            break;
        case 1:
            x = rg_unary(g, KILN_OP_relu, NULL, x);
            break;
        case 2:
            x = either(g, KILN_OP_max, x, bounds[0]);
            break;
        default:
            x = either(g, KILN_OP_min, x, bounds[1]);
        }
    }
}

static void
gelu(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    KilnValue *root = rg_scalar(g, rg_one_in(g, 6) ? 1.5 : sqrt(2));
    if (!kiln_dtype_is_float(g->dtype))
        return; /* an error function of integers has no kernel */
    KilnValue *scaled = rg_binary(g, KILN_OP_div, NULL, x, root);
    KilnValue *erf = scaled ? rg_unary(g, KILN_OP_erf, NULL, scaled) : NULL;
    KilnValue *sum = erf ? either(g, KILN_OP_add, erf, rg_scalar(g, 1)) : NULL;
    KilnValue *product = sum ? either(g, KILN_OP_mul, or_double(g, x), sum) : NULL;
    if (product)
        either(g, KILN_OP_mul, product, rg_scalar(g, 0.5));
}

static void
gelu_tanh(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    KilnValue *cube = rg_binary(g, KILN_OP_pow, NULL, x, rg_scalar(g, rg_one_in(g, 6) ? 2 : 3));
    KilnValue *scaled = cube ? either(g, KILN_OP_mul, cube, rg_scalar(g, 0.044715)) : NULL;
    KilnValue *sum = scaled ? either(g, KILN_OP_add, or_double(g, x), scaled) : NULL;
    KilnValue *inner = sum ? either(g, KILN_OP_mul, sum, rg_scalar(g, sqrt(2 / G_PI))) : NULL;
    KilnValue *tanh = inner ? rg_unary(g, KILN_OP_tanh, NULL, inner) : NULL;
    KilnValue *one = tanh ? either(g, KILN_OP_add, tanh, rg_scalar(g, 1)) : NULL;
    KilnValue *half = either(g, KILN_OP_mul, x, rg_scalar(g, 0.5));
    if (one && half)
        either(g, KILN_OP_mul, half, one);
}

static void
silu(RandomGraph *g)
{
    KilnValue *x = rg_any(g), *sigmoid = rg_unary(g, KILN_OP_sigmoid, NULL, or_double(g, x));
    if (sigmoid)
        either(g, KILN_OP_mul, x, sigmoid);
}

static void
hard_swish(RandomGraph *g)
{
    KilnValue *x = rg_any(g), *sum = either(g, KILN_OP_add, or_double(g, x), rg_scalar(g, 3));
    KilnType scalar = kiln_type_scalar(g->dtype);
    KilnValue *operands[] = { sum, rg_constant(g, &scalar, 0, 0), rg_constant(g, &scalar, 6, 6) };
    KilnValue *clip = sum ? rg_add(g, KILN_OP_clip, NULL, 1, 3, operands) : NULL;
    KilnValue *sixth = clip ? rg_binary(g, KILN_OP_div, NULL, clip, rg_scalar(g, 6)) : NULL;
    if (sixth)
        either(g, KILN_OP_mul, x, sixth);
}

/* --- normalization --- */

static void
softmax(RandomGraph *g)
{
    KilnValue *x = rg_any(g), *exp = x->type.rank ? rg_unary(g, KILN_OP_exp, NULL, x) : NULL;
    KilnValue *sum = exp ? mean_of_last(g, exp, KILN_OP_reduce_sum) : NULL;
    if (!sum)
        return;
    KilnValue *soft = rg_one_in(g, 8) ? rg_binary(g, KILN_OP_div, NULL, sum, exp)
                                      : rg_binary(g, KILN_OP_div, NULL, exp, sum);
    if (soft && rg_one_in(g, 3))
        rg_unary(g, KILN_OP_log, NULL, soft);
}

static void
layer_norm(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    KilnValue *mean = x->type.rank ? mean_of_last(g, x, KILN_OP_reduce_mean) : NULL;
    bool centred = !rg_one_in(g, 3); /* else an RMS normalization */
    KilnValue *d = !mean ? NULL : centred ? rg_binary(g, KILN_OP_sub, NULL, x, mean) : x;
    KilnValue *square = !d                ? NULL
                        : rg_one_in(g, 2) ? rg_binary(g, KILN_OP_mul, NULL, d, or_double(g, d))
                                          : rg_binary(g, KILN_OP_pow, NULL, d, rg_scalar(g, 2));
    KilnValue *variance = square ? mean_of_last(g, square, KILN_OP_reduce_mean) : NULL;
    KilnValue *sum = variance ? either(g, KILN_OP_add, variance, rg_scalar(g, 1e-3)) : NULL;
    KilnValue *root = sum ? rg_unary(g, KILN_OP_sqrt, NULL, sum) : NULL;
    KilnValue *y = root ? rg_binary(g, KILN_OP_div, NULL, d, root) : NULL;
    if (!y || rg_one_in(g, 3))
        return;
    KilnType type = kiln_type_make(g->dtype, 1, &x->type.dims[x->type.rank - 1]);
    y = either(g, KILN_OP_mul, y, rg_constant(g, &type, 0.5, 2));
    if (y)
        either(g, KILN_OP_add, y, rg_constant(g, &type, -1, 1));
}

/* A layer normalization that stands there already, and what follows it. */
static void
scaled_norm(RandomGraph *g)
{
    static const KilnOp ops[] = { KILN_OP_mul, KILN_OP_add };
    KilnValue *x = rg_any(g);
    if (x->type.rank < 1 || !kiln_dtype_is_float(g->dtype))
        return;
    KilnType run = kiln_type_make(g->dtype, 1, &x->type.dims[x->type.rank - 1]);
    KilnAttrs_layer_normalization attrs = { .axis = -1, .epsilon = 1e-3f, .stash_type = 1 };
    KilnValue *operands[] = { x, rg_constant(g, &run, 0.5, 2), rg_constant(g, &run, -1, 1) };
    KilnValue *y =
        rg_add(g, KILN_OP_layer_normalization, &attrs, 1, rg_one_in(g, 2) ? 2 : 3, operands);
    for (int i = rg_below(g, 3); i >= 0 && y; i--) {
        KilnValue *c = rg_one_in(g, 4)   ? rg_broadcastable(g, y)
                       : rg_one_in(g, 3) ? rg_scalar(g, 0.75)
                                         : rg_constant(g, &run, 0.5, 2);
        y = either(g, ops[rg_below(g, G_N_ELEMENTS(ops))], y, c);
    }
}

static void
log_of_shares(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    KilnAttrs_softmax attrs = { .axis = x->type.rank && rg_one_in(g, 2) ? 0 : -1 };
    if (x->type.rank < 1 || !kiln_dtype_is_float(g->dtype))
        return;
    if (rg_one_in(g, 2)) {
        KilnValue *shares = rg_unary(g, KILN_OP_softmax, &attrs, x);
        if (shares)
            rg_unary(g, KILN_OP_log, NULL, shares);
        return;
    }
    KilnValue *exp = rg_unary(g, KILN_OP_exp, NULL, or_double(g, x));
    KilnValue *sum = exp ? mean_of_last(g, exp, KILN_OP_reduce_sum) : NULL;
    KilnValue *log = sum ? rg_unary(g, KILN_OP_log, NULL, sum) : NULL;
    if (log)
        rg_binary(g, KILN_OP_sub, NULL, x, log);
}

/* --- products --- */

/* A convolution and what follows it per channel. It divides only where nothing on the way has lost
 * its digits to a difference: all of it is positive then. */
static void
scaled_conv(RandomGraph *g)
{
    static const KilnOp ops[] = { KILN_OP_add, KILN_OP_mul, KILN_OP_div, KILN_OP_sub };
    bool positive = rg_one_in(g, 4);
    KilnValue *x = rg_any(g);
    if (positive && (x = rg_unary(g, KILN_OP_abs, NULL, x)))
        x = rg_binary(g, KILN_OP_add, NULL, x, rg_scalar(g, 1));
    if (!x)
        return;
    if (x->type.rank < 3 || kiln_type_elements(&x->type) == 0)
        return;
    int64_t outputs = 1 + rg_below(g, 3), dims[KILN_MAX_RANK] = { outputs, x->type.dims[1] };
    for (int d = 2; d < x->type.rank; d++)
        dims[d] = 1;
    KilnType weights = kiln_type_make(g->dtype, x->type.rank, dims);
    KilnAttrs_conv attrs = { .auto_pad = "NOTSET", .group = 1 };
    KilnValue *y = rg_binary(g, KILN_OP_conv, &attrs, x,
                             rg_constant(g, &weights, positive ? 0.25 : -0.5, 0.5));
    for (int i = rg_below(g, 4); i >= 0 && y; i--) {
        int64_t varying[KILN_MAX_RANK] = { 1 };
        for (int d = 1; d < x->type.rank; d++)
            varying[d] = 1;
        bool spatial = rg_one_in(g, 6);
        varying[spatial ? 2 : 1] = y->type.dims[spatial ? 2 : 1];
        KilnType type = kiln_type_make(g->dtype, x->type.rank, varying);
        KilnValue *c = rg_one_in(g, 3) ? rg_scalar(g, 0.75) : rg_constant(g, &type, 0.5, 2);
        KilnOp op = ops[rg_below(g, positive ? 3 : 4)];
        bool turned = rg_one_in(g, 3) && (positive || op != KILN_OP_div);
        y = turned ? rg_binary(g, op, NULL, c, y) : rg_binary(g, op, NULL, y, c);
    }
}

static void
products_of_one(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    if (x->type.rank < 2)
        return;
    int64_t k = x->type.dims[x->type.rank - 1];
    for (int i = 0; i < 2; i++) {
        int64_t n = 1 + rg_below(g, 4);
        KilnType weights = kiln_type_make(g->dtype, 2, (int64_t[]){ k, n });
        KilnType bias = kiln_type_make(g->dtype, 1, &n);
        KilnValue *y = rg_binary(g, KILN_OP_matmul, NULL, x, rg_constant(g, &weights, -0.5, 0.5));
        if (y && !rg_one_in(g, 3))
            either(g, KILN_OP_add, y, rg_constant(g, &bias, -1, 1));
    }
}

static KilnValue *
turned(RandomGraph *g, KilnValue *x)
{
    int64_t perm[KILN_MAX_RANK];
    uint32_t rank = (uint32_t)x->type.rank;
    for (uint32_t d = 0; d < rank; d++)
        perm[d] = d;
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    KilnAttrs_transpose attrs = { .perm = { .n = rank, .v = perm } };
    return rg_unary(g, KILN_OP_transpose, &attrs, x);
}

static void
attention(RandomGraph *g)
{
    KilnValue *q = rg_any(g);
    if (q->type.rank < 2)
        return;
    KilnValue *key = or_double(g, q), *k = turned(g, key);
    KilnValue *scores = k ? rg_binary(g, KILN_OP_matmul, NULL, q, k) : NULL;
    if (scores && !rg_one_in(g, 4))
        scores = either(g, KILN_OP_mul, scores, rg_scalar(g, 0.5));
    if (scores && rg_one_in(g, 2))
        scores = either(g, KILN_OP_add, scores, rg_constant(g, &scores->type, -1, 1));
    KilnAttrs_softmax attrs = { .axis = rg_one_in(g, 8) ? 0 : -1 };
    KilnValue *weights = scores ? rg_unary(g, KILN_OP_softmax, &attrs, scores) : NULL;
    if (weights)
        rg_binary(g, KILN_OP_matmul, NULL, weights, q);
}

/* --- movement --- */

/* Transposes that cancel across what stands between them. */
static void
sandwich(RandomGraph *g)
{
    static const KilnOp ops[] = { KILN_OP_relu, KILN_OP_tanh, KILN_OP_neg, KILN_OP_identity };
    KilnValue *x = rg_any(g);
    if (x->type.rank < 2)
        return;
    KilnValue *y = turned(g, x);
    KilnValue *z = y && rg_one_in(g, 2) ? turned(g, or_double(g, x)) : NULL;
    if (y)
        y = rg_unary(g, ops[rg_below(g, G_N_ELEMENTS(ops))], NULL, y);
    if (y && z)
        y = either(g, KILN_OP_add, y, z);
    else if (y && rg_one_in(g, 2))
        y = either(g, KILN_OP_mul, y, rg_broadcastable(g, y));
    if (y)
        turned(g, y);
}

/* Pieces put together again, in order or not. */
static void
pieces(RandomGraph *g)
{
    KilnValue *x = rg_any(g), *parts[3];
    if (!x->type.rank)
        return;
    int64_t axis = rg_below(g, x->type.rank), extent = x->type.dims[axis], step = 1;
    int64_t cut = extent ? rg_below(g, (int)extent + 1) : 0, bounds[] = { 0, cut, extent };
    for (int i = 0; i < 2; i++) {
        KilnValue *operands[] = { x, rg_ints(g, &bounds[i], 1), rg_ints(g, &bounds[i + 1], 1),
                                  rg_ints(g, &axis, 1), rg_ints(g, &step, 1) };
        parts[i] = rg_add(g, KILN_OP_slice, NULL, 1, 5, operands);
        if (!parts[i])
            return;
    }
    parts[2] = parts[0];
    bool shifted = rg_one_in(g, 5);
    KilnAttrs_concat attrs = { .axis = axis };
    KilnValue *y = rg_add(g, KILN_OP_concat, &attrs, 1, 2, parts + shifted);
    KilnValue *again[] = { y, x };
    if (y && rg_one_in(g, 2))
        rg_add(g, KILN_OP_concat, &attrs, 1, 2, again);
}

/* Reshape, transpose, reshape: a shuffle of channels where the middle swaps the two halves. */
static void
shuffle(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    if (x->type.rank < 2 || x->type.rank > 4 || x->type.dims[1] % 2)
        return;
    int64_t dims[KILN_MAX_RANK] = { x->type.dims[0], 2, x->type.dims[1] / 2 };
    int64_t perm[KILN_MAX_RANK] = { 0, 2, 1, 3, 4 };
    uint32_t rank = (uint32_t)x->type.rank + 1;
    for (int d = 2; d < x->type.rank; d++)
        dims[d + 1] = x->type.dims[d];
    if (rg_one_in(g, 4)) {
        perm[0] = 1;
        perm[1] = 0;
        perm[2] = 2;
    }
    KilnAttrs_reshape keep = { .allowzero = true };
    KilnAttrs_transpose attrs = { .perm = { .n = rank, .v = perm } };
    KilnValue *y = rg_binary(g, KILN_OP_reshape, &keep, x, rg_ints(g, dims, rank));
    y = y ? rg_unary(g, KILN_OP_transpose, &attrs, y) : NULL;
    if (y)
        rg_binary(g, KILN_OP_reshape, &keep, y, rg_ints(g, x->type.dims, rank - 1));
}

/* A shape taken apart and put together for a reshape or an expand. */
static void
shape_arithmetic(RandomGraph *g)
{
    KilnValue *x = rg_any(g), *shape = x->type.rank ? rg_unary(g, KILN_OP_shape, NULL, x) : NULL;
    if (!shape)
        return;
    int64_t at = rg_below(g, x->type.rank), minus = -1;
    KilnAttrs_gather gather = { .axis = 0 };
    KilnValue *dim = rg_binary(g, KILN_OP_gather, &gather, shape, rg_ints(g, &at, 1));
    KilnValue *operands[] = { dim, rg_ints(g, &minus, 1) };
    KilnAttrs_concat concat = { .axis = 0 };
    KilnValue *target = dim ? rg_add(g, KILN_OP_concat, &concat, 1, 2, operands) : NULL;
    if (target && kiln_type_elements(&x->type) > 0)
        rg_binary(g, KILN_OP_reshape, NULL, x, target);
    rg_binary(g, KILN_OP_expand, NULL, rg_scalar(g, 0.25), shape);
}

static void
casts(RandomGraph *g)
{
    static const KilnDType to[] = { KILN_DTYPE_f64, KILN_DTYPE_f32, KILN_DTYPE_f16, KILN_DTYPE_bf16,
                                    KILN_DTYPE_f64 };
    KilnValue *x = rg_any(g);
    KilnAttrs_cast there = kiln_cast_to(to[rg_below(g, G_N_ELEMENTS(to))]),
                   back = kiln_cast_to(g->dtype);
    KilnValue *y = rg_unary(g, KILN_OP_cast, &there, x);
    if (y)
        rg_unary(g, KILN_OP_cast, &back, y);
}

static void
pooled_relu(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    if (x->type.rank != 4 || kiln_type_elements(&x->type) == 0)
        return;
    int64_t window[] = { 2, 2 }, pads[] = { 1, 1, 1, 1 };
    KilnAttrs_max_pool attrs = { .auto_pad = "NOTSET",
                                 .kernel_shape = { .n = 2, .v = window },
                                 .pads = { .n = rg_one_in(g, 2) ? 4 : 0, .v = pads } };
    KilnValue *y = rg_unary(g, rg_one_in(g, 5) ? KILN_OP_abs : KILN_OP_relu, NULL, x);
    if (y)
        rg_unary(g, KILN_OP_max_pool, &attrs, y);
}

/* The mean of the picture, by a reduction. */
static void
mean_of_picture(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    int64_t axes[] = { -1, -2 };
    if (x->type.rank < 3 || kiln_type_elements(&x->type) == 0)
        return;
    axes[1] = rg_one_in(g, 5) ? -3 : -2;
    KilnAttrs_reduce_mean attrs = { .keepdims = rg_one_in(g, 2) };
    rg_binary(g, KILN_OP_reduce_mean, &attrs, x, rg_ints(g, axes, 2));
}

static void
gathered(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    if (!x->type.rank)
        return;
    KilnAttrs_gather attrs = { .axis = rg_below(g, x->type.rank) };
    int64_t extent = x->type.dims[attrs.axis];
    int64_t index = extent ? rg_below(g, 2 * (int)extent) - extent : 0;
    if (extent)
        rg_binary(g, KILN_OP_gather, &attrs, x, rg_ints(g, &index, 1));
}

/* Images of which each phase is whole: some that there are, else new ones. */
static KilnValue *
picture(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    if (x->type.rank == 4 && kiln_type_elements(&x->type) > 0 && x->type.dims[2] % 2 == 0 &&
        x->type.dims[3] % 2 == 0)
        return x;
    int64_t dims[] = { 1 + rg_below(g, 2), 1 + rg_below(g, 3), 4, 4 };
    KilnType type = kiln_type_make(g->dtype, 4, dims);
    return rg_constant(g, &type, -1, 1);
}

/* Padding in front of a window, with what the window would pad with, or something else. */
static void
padded_window(RandomGraph *g)
{
    KilnValue *x = picture(g);
    int64_t numbers[8] = { 0 }, window[] = { 2, 2 }, own[] = { 1, 0, 0, 1 };
    for (int d = 0; d < 2; d++) {
        numbers[2 + d] = rg_one_in(g, 8) ? -1 : rg_below(g, 2);
        numbers[6 + d] = 1 + rg_below(g, 2);
    }
    bool most = rg_one_in(g, 3);
    KilnValue *number = most && !rg_one_in(g, 3) ? rg_scalar(g, -INFINITY) : NULL;
    x = rg_one_in(g, 2) ? rg_unary(g, KILN_OP_relu, NULL, x) : x;
    KilnValue *operands[] = { x, rg_ints(g, numbers, 8), number };
    KilnValue *y = x ? rg_add(g, KILN_OP_pad, NULL, 1, 3, operands) : NULL;
    if (!y)
        return;
    KilnInts pads = { .n = rg_one_in(g, 2) ? 4 : 0, .v = own }, kernel = { .n = 2, .v = window };
    KilnAttrs_max_pool greatest = { .auto_pad = "NOTSET", .kernel_shape = kernel, .pads = pads };
    KilnAttrs_average_pool mean = { .auto_pad = "NOTSET",
                                    .count_include_pad = rg_one_in(g, 2),
                                    .kernel_shape = kernel,
                                    .pads = pads };
    KilnAttrs_conv conv = { .auto_pad = "NOTSET", .group = 1, .pads = pads };
    KilnType type = kiln_type_make(g->dtype, 4, (int64_t[]){ 2, y->type.dims[1], 2, 2 });
    if (most)
        rg_unary(g, KILN_OP_max_pool, &greatest, y);
    else if (rg_one_in(g, 2))
        rg_unary(g, KILN_OP_average_pool, &mean, y);
    else
        rg_binary(g, KILN_OP_conv, &conv, y, rg_constant(g, &type, -0.5, 0.5));
}

/* A convolution of the phases of a picture. */
static void
phases(RandomGraph *g)
{
    KilnValue *x = picture(g);
    int64_t swap[] = { 1, 0, 2, 3 }, own[] = { 1, 0, 0, 1 };
    KilnAttrs_transpose transpose = { .perm = { .n = 4, .v = swap } };
    KilnAttrs_space_to_depth down = { .blocksize = 2, .mode = rg_one_in(g, 4) ? "CRD" : "DCR" };
    KilnAttrs_depth_to_space up = { .blocksize = 2, .mode = rg_one_in(g, 4) ? "CRD" : "DCR" };
    KilnAttrs_conv conv = { .auto_pad = "NOTSET",
                            .group = 1,
                            .pads = { .n = rg_one_in(g, 2) ? 4 : 0, .v = own } };
    KilnType type = kiln_type_make(g->dtype, 4, (int64_t[]){ 2, x->type.dims[0], 1, 1 });
    KilnValue *y = rg_unary(g, KILN_OP_space_to_depth, &down, x);
    y = y ? rg_unary(g, KILN_OP_transpose, &transpose, y) : NULL;
    y = y ? rg_binary(g, KILN_OP_conv, &conv, y, rg_constant(g, &type, -0.5, 0.5)) : NULL;
    y = y ? rg_unary(g, KILN_OP_transpose, &transpose, y) : NULL;
    if (y)
        rg_unary(g, KILN_OP_depth_to_space, &up, y);
}

/* Products of many columns with few, some of them made of one another, and of few rows with many.
 */
static void
thin_products(RandomGraph *g)
{
    KilnType wide = kiln_type_make(g->dtype, 2, (int64_t[]){ 12, 12 });
    KilnValue *x = rg_constant(g, &wide, -0.5, 0.5);
    x = rg_binary(g, KILN_OP_add, NULL, x, rg_scalar(g, 0.5));
    KilnValue *last = NULL;
    for (int i = 0, n = 2 + rg_below(g, 4); x && i < n; i++) {
        bool rows = rg_one_in(g, 2);
        int64_t dims[] = { rows ? 1 : 12, rows ? 12 : 1 };
        KilnType thin = kiln_type_make(g->dtype, 2, dims);
        bool again = last && last->type.dims[0] == dims[0] && rg_one_in(g, 2);
        KilnValue *other = again ? last : rg_constant(g, &thin, -0.5, 0.5);
        last = rows ? rg_binary(g, KILN_OP_matmul, NULL, other, x)
                    : rg_binary(g, KILN_OP_matmul, NULL, x, other);
        if (last && rg_one_in(g, 3))
            last = rg_unary(g, KILN_OP_neg, NULL, last);
    }
}

static void
fully_connected(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    if (x->type.rank != 2)
        return;
    bool turned = rg_one_in(g, 2);
    int64_t columns = rg_extent(g), depth = x->type.dims[1];
    KilnAttrs_gemm attrs = { .alpha = 1, .beta = rg_one_in(g, 3) ? 2 : 1, .transB = turned };
    int64_t dims[] = { turned ? columns : depth, turned ? depth : columns };
    KilnType type = kiln_type_make(g->dtype, 2, dims);
    KilnType vector = kiln_type_make(g->dtype, 1, &columns);
    KilnValue *bias = rg_one_in(g, 2) ? rg_constant(g, &vector, -1, 1) : NULL;
    KilnValue *operands[] = { x, rg_constant(g, &type, -0.5, 0.5), bias };
    KilnValue *y = rg_add(g, KILN_OP_gemm, &attrs, 1, 3, operands);
    if (y && rg_one_in(g, 2))
        rg_binary(g, rg_one_in(g, 2) ? KILN_OP_mul : KILN_OP_add, NULL, y,
                  rg_constant(g, &vector, -1, 1));
}

/* The same to each part of a value, or almost the same. */
static void
parts_alike(RandomGraph *g)
{
    static const KilnOp ops[] = { KILN_OP_add, KILN_OP_mul, KILN_OP_max, KILN_OP_sub };
    KilnValue *x = rg_any(g);
    KilnOp op = ops[rg_below(g, G_N_ELEMENTS(ops))];
    KilnAttrs_split attrs = { .axis = x->type.rank ? rg_below(g, x->type.rank) : 0 };
    if (!x->type.rank || x->type.dims[attrs.axis] < 2)
        return;
    int64_t sizes[] = { 1, x->type.dims[attrs.axis] - 1 };
    KilnValue *operands[] = { x, rg_ints(g, sizes, 2) };
    KilnNodeSpec spec = {
        .op = KILN_OP_split, .operands = operands, .n_operands = 2, .n_results = 2, .attrs = &attrs
    };
    KilnNode *split = kiln_node_new(g->function, &spec, NULL); /* nothing else is to read parts */
    KilnValue *other = rg_scalar(g, 1.5), *made[2] = { NULL };
    bool left = rg_one_in(g, 3);
    for (int i = 0; i < 2 && split; i++) {
        KilnValue *part = &split->results[i], *with = or_double(g, other);
        made[i] = rg_binary(g, op, NULL, left ? with : part, left ? part : with);
    }
    KilnAttrs_concat joined = { .axis = attrs.axis };
    if (made[0] && made[1])
        rg_add(g, KILN_OP_concat, &joined, 1, 2, made);
}

/* A scatter over all rows, or over one of them twice. */
static void
overwritten(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    int64_t n = x->type.rank ? x->type.dims[0] : 0, rows[8];
    if (n < 1 || n > (int64_t)G_N_ELEMENTS(rows))
        return;
    for (int64_t i = 0; i < n; i++)
        rows[i] = rg_one_in(g, 3) ? i - n : i;
    if (rg_one_in(g, 4))
        rows[rg_below(g, (int)n)] = 0;
    KilnType column = kiln_type_make(KILN_DTYPE_i64, 2, (int64_t[]){ n, 1 });
    KilnValue *list =
        kiln_build_constant(g->function, NULL, "rows", kiln_tensor_new_copy(&column, rows, NULL));
    KilnValue *operands[] = { rg_constant(g, &x->type, 0, 0), list, x };
    KilnAttrs_scatter_nd attrs = { .reduction = "none" };
    rg_add(g, KILN_OP_scatter_nd, &attrs, 1, 3, operands);
}

/* Of dims of extent 1, of none, or of any. */
static void
resized(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    float scales[KILN_MAX_RANK];
    if (!x->type.rank || kiln_type_elements(&x->type) == 0 || !kiln_dtype_is_float(x->type.dtype))
        return;
    bool any = rg_one_in(g, 3);
    for (int d = 0; d < x->type.rank; d++)
        scales[d] = rg_one_in(g, 3) && (any || x->type.dims[d] == 1) ? 2 : 1;
    KilnType list = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ x->type.rank });
    KilnValue *operands[] = { x, NULL,
                              kiln_build_constant(g->function, NULL, "scales",
                                                  kiln_tensor_new_copy(&list, scales, NULL)) };
    KilnAttrs_resize *attrs = kiln_op_attrs_new(KILN_OP_resize, g->module->arena);
    rg_add(g, KILN_OP_resize, attrs, 1, 3, operands);
}

/* @x with an operand that broadcasts to the few elements that were repeated, or to all of them. */
static KilnValue *
with_another(RandomGraph *g, KilnValue *few, KilnValue *x)
{
    static const KilnOp ops[] = { KILN_OP_add, KILN_OP_sub, KILN_OP_mul, KILN_OP_max };
    KilnValue *y = NULL;
    switch (rg_below(g, 4)) {
    case 0:
        y = rg_broadcastable(g, x);
        break;
    case 1:
        y = rg_broadcastable(g, few);
        break;
    case 2:
        y = rg_constant(g, &x->type, 2, 2);
        break;
    default:
        y = rg_one_in(g, 2) ? x : rg_scalar(g, 0.5);
    }
    return either(g, ops[rg_below(g, G_N_ELEMENTS(ops))], x, y);
}

/* Something repeated, and arithmetic on all of it. */
static void
repeated(RandomGraph *g)
{
    KilnValue *few = rg_any(g), *x = NULL;
    int64_t target[KILN_MAX_RANK];
    uint32_t rank = (uint32_t)few->type.rank;
    bool tile = rank && rg_one_in(g, 3);
    if (kiln_type_elements(&few->type) > 256)
        return;
    for (uint32_t d = 0; d < rank; d++) {
        int64_t extent = few->type.dims[d];
        target[d] = tile ? 1 + rg_below(g, 2) : extent == 1 ? 1 + rg_below(g, 3) : extent;
    }
    if (!tile && rank < 5 && rg_one_in(g, 2)) { /* one more dim in front */
        memmove(target + 1, target, rank++ * sizeof *target);
        target[0] = 2;
    }
    x = rg_binary(g, tile ? KILN_OP_tile : KILN_OP_expand, NULL, few, rg_ints(g, target, rank));
    for (int i = rg_below(g, 4); i >= 0 && x; i--)
        x = rg_one_in(g, 3) ? rg_unary(g, rg_one_in(g, 2) ? KILN_OP_neg : KILN_OP_abs, NULL, x)
                            : with_another(g, few, x);
}

void
rg_idiom(RandomGraph *g)
{
    typedef void (*Idiom)(RandomGraph *);
    static const Idiom idioms[] = {
        leaky_relu,
        clips,
        gelu,
        gelu_tanh,
        silu,
        hard_swish,
        softmax,
        layer_norm,
        layer_norm,
        attention,
        scaled_conv,
        scaled_conv,
        products_of_one,
        sandwich,
        sandwich,
        pieces,
        shuffle,
        shape_arithmetic,
        casts,
        pooled_relu,
        mean_of_picture,
        gathered,
        padded_window,
        phases,
        thin_products,
        fully_connected,
        parts_alike,
        overwritten,
        resized,
        scaled_norm,
        log_of_shares,
        leaky_choice,
        repeated,
        repeated,
    };
    idioms[rg_below(g, G_N_ELEMENTS(idioms))](g);
}
