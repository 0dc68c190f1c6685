/* SPDX-License-Identifier: Apache-2.0 */
/* Small typed graphs from a seed, for property tests of passes. Biased to where rewrites go wrong:
 * extents of 1 and 0, scalars, broadcasts both ways, values with several readers, values that are
 * results too, equal operands, constants that are equal, splats, and no-ops of every kind. */
#include "graph/function.h"
#include "graph/node.h"
#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/cast.h"
#include "graph/op/concat.h"
#include "graph/op/conv.h"
#include "graph/op/expand.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/matmul.h"
#include "graph/op/multiplicative.h"
#include "graph/op/norm.h"
#include "graph/op/pool.h"
#include "graph/op/random.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "graph/op/slice.h"
#include "graph/op/softmax.h"
#include "graph/op/structure.h"
#include "graph/op/transpose.h"
#include "tests/random/random_graph.h"
#include "tests/random/random_graph_priv.h"

#include <math.h>
#include <string.h>

uint64_t
rg_next(RandomGraph *g)
{
    uint64_t z = g->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int
rg_below(RandomGraph *g, int n)
{
    return (int)(rg_next(g) % (uint64_t)n);
}

bool
rg_one_in(RandomGraph *g, int n)
{
    return rg_below(g, n) == 0;
}

int64_t
rg_extent(RandomGraph *g)
{
    static const int64_t extents[] = { 1, 1, 2, 2, 3, 4, 4, 5 };
    return rg_one_in(g, 40) ? 0 : extents[rg_below(g, G_N_ELEMENTS(extents))];
}

/* --- values --- */

KilnValue *
rg_add(RandomGraph *g, KilnOp op, const void *attrs, uint32_t n_results, uint32_t n_operands,
       KilnValue *const *operands)
{
    GError *error = NULL;
    KilnNode *node = kiln_node_new(g->function,
                                   &(KilnNodeSpec){ .op = op,
                                                    .operands = operands,
                                                    .n_operands = n_operands,
                                                    .n_results = n_results,
                                                    .attrs = attrs },
                                   &error);
    if (!node) {
        g_clear_error(&error);
        g->refused++;
        return NULL;
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        const KilnType *type = &node->results[r].type;
        if (type->dtype == g->dtype && kiln_type_elements(type) >= 0 &&
            kiln_type_elements(type) <= g->most)
            g_ptr_array_add(g->values, &node->results[r]);
    }
    return &node->results[0];
}

KilnValue *
rg_unary(RandomGraph *g, KilnOp op, const void *attrs, KilnValue *x)
{
    return rg_add(g, op, attrs, 1, 1, &x);
}

KilnValue *
rg_binary(RandomGraph *g, KilnOp op, const void *attrs, KilnValue *x, KilnValue *y)
{
    KilnValue *operands[] = { x, y };
    return rg_add(g, op, attrs, 1, 2, operands);
}

KilnValue *
rg_ints(RandomGraph *g, const int64_t *values, uint32_t n)
{
    return kiln_build_ints(g->function, NULL, values, n);
}

/* Numbers at the edges of @dtype; NaN, infinities and zeros of both signs. */
static double
rg_extreme(RandomGraph *g, KilnDType dtype)
{
    static const double floats[] = { NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-45, 65504, -3.4e38 };
    static const double integers[] = { INT32_MIN, INT32_MAX, 0, -1, 1 };
    return kiln_dtype_is_float(dtype) ? floats[rg_below(g, G_N_ELEMENTS(floats))]
                                      : integers[rg_below(g, G_N_ELEMENTS(integers))];
}

KilnValue *
rg_constant(RandomGraph *g, const KilnType *type, double low, double high)
{
    KilnType plain = kiln_type_make(type->dtype, type->rank, type->dims);
    KilnTensor *tensor;
    if (rg_one_in(g, 30))
        tensor = kiln_tensor_new_splat(&plain, rg_extreme(g, plain.dtype));
    else if (rg_one_in(g, 3))
        tensor = kiln_tensor_new_splat(&plain, low + (high - low) * rg_below(g, 5) / 4);
    else if (kiln_dtype_is_float(plain.dtype))
        tensor = kiln_tensor_new_uniform(&plain, (uint64_t)rg_below(g, 3), low, high);
    else
        tensor = kiln_tensor_new_iota(&plain);
    return kiln_build_constant(g->function, NULL, "k", tensor);
}

KilnValue *
rg_scalar(RandomGraph *g, double number)
{
    KilnType type = kiln_type_make(g->dtype, rg_below(g, 2), (int64_t[]){ 1 });
    return kiln_build_constant(g->function, NULL, "s", kiln_tensor_new_splat(&type, number));
}

KilnValue *
rg_any(RandomGraph *g)
{
    int n = (int)g->values->len, a = rg_below(g, n), b = rg_below(g, n);
    return g_ptr_array_index(g->values, (guint)MAX(a, b));
}

KilnValue *
rg_broadcastable(RandomGraph *g, KilnValue *x)
{
    for (int tries = 0; tries < 3; tries++) {
        KilnValue *y = rg_any(g);
        bool fits = true;
        for (int d = 1; d <= MIN(x->type.rank, y->type.rank); d++) {
            int64_t a = x->type.dims[x->type.rank - d], b = y->type.dims[y->type.rank - d];
            fits &= a == b || a == 1 || b == 1;
        }
        if (fits)
            return y;
    }
    KilnType type = x->type;
    int drop = rg_below(g, type.rank + 1);
    type.rank -= drop;
    memmove(type.dims, type.dims + drop, sizeof type.dims[0] * (size_t)type.rank);
    for (int d = 0; d < type.rank; d++)
        type.dims[d] = rg_one_in(g, 3) ? 1 : type.dims[d];
    return rg_constant(g, &type, -1, 1);
}

/* --- families of nodes --- */

static void
rg_elementwise(RandomGraph *g)
{
    static const KilnOp floats[] = { KILN_OP_relu,       KILN_OP_tanh,    KILN_OP_sigmoid,
                                     KILN_OP_leaky_relu, KILN_OP_neg,     KILN_OP_abs,
                                     KILN_OP_identity,   KILN_OP_dropout, KILN_OP_hard_swish,
                                     KILN_OP_softsign };
    static const KilnOp integers[] = { KILN_OP_neg, KILN_OP_abs, KILN_OP_identity };
    bool is_float = kiln_dtype_is_float(g->dtype);
    KilnValue *x = rg_any(g);
    KilnOp op = is_float ? floats[rg_below(g, G_N_ELEMENTS(floats))]
                         : integers[rg_below(g, G_N_ELEMENTS(integers))];
    KilnValue *y = rg_unary(g, op, NULL, x);
    if (y && rg_one_in(g, 5))
        rg_unary(g, op, NULL, x); /* the same again */
}

static void
rg_same(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    KilnAttrs_cast cast = kiln_cast_to(g->dtype);
    KilnType scalar = kiln_type_scalar(g->dtype);
    if (rg_one_in(g, 3)) {
        rg_unary(g, KILN_OP_cast, &cast, x);
        return;
    }
    KilnValue *low = rg_one_in(g, 2) ? rg_constant(g, &scalar, -1, 0) : NULL;
    KilnValue *operands[] = { x, low, rg_one_in(g, 2) ? rg_constant(g, &scalar, 0, 1) : NULL };
    rg_add(g, KILN_OP_clip, NULL, 1, 3, operands);
}

static void
rg_arithmetic(RandomGraph *g)
{
    static const KilnOp ops[] = { KILN_OP_add, KILN_OP_add, KILN_OP_sub, KILN_OP_sub,
                                  KILN_OP_mul, KILN_OP_mul, KILN_OP_max, KILN_OP_min };
    KilnValue *x = rg_any(g), *y = rg_one_in(g, 6) ? x : rg_broadcastable(g, x);
    KilnOp op = ops[rg_below(g, G_N_ELEMENTS(ops))];
    if (rg_one_in(g, 4)) { /* numbers that rules look for */
        static const double numbers[] = { 0, 1, -1, 2, 0.5, -0.0 };
        y = rg_scalar(g, numbers[rg_below(g, G_N_ELEMENTS(numbers))]);
    }
    if (rg_one_in(g, 2)) {
        KilnValue *swap = x;
        x = y;
        y = swap;
    }
    KilnValue *z = rg_binary(g, op, NULL, x, y);
    if (z && rg_one_in(g, 4))
        rg_binary(g, op, NULL, y, x); /* the other way round */
}

/* By a number that rules look for, or by something that is not near zero, which would make
 * roundings as large as results. */
static void
rg_divide(RandomGraph *g)
{
    static const double numbers[] = { 1, 1, 2, 2, -1, 0.5, 3 };
    double number = rg_one_in(g, 20) ? -0.0 : numbers[rg_below(g, G_N_ELEMENTS(numbers))];
    KilnValue *x = rg_any(g), *y = rg_scalar(g, number);
    if (rg_one_in(g, 2)) {
        KilnValue *size = rg_unary(g, KILN_OP_abs, NULL, rg_broadcastable(g, x));
        y = size ? rg_binary(g, KILN_OP_add, NULL, size, rg_scalar(g, 1)) : y;
        x = rg_one_in(g, 3) ? rg_scalar(g, rg_below(g, 3)) : x;
    }
    if (y && kiln_dtype_is_float(g->dtype))
        rg_binary(g, KILN_OP_div, NULL, x, y);
}

static void
rg_variadic(RandomGraph *g)
{
    static const KilnOp ops[] = { KILN_OP_sum, KILN_OP_mean, KILN_OP_max, KILN_OP_min };
    bool is_float = kiln_dtype_is_float(g->dtype);
    KilnValue *operands[4] = { rg_any(g) };
    uint32_t n = 1 + (uint32_t)rg_below(g, 3);
    for (uint32_t i = 1; i < n; i++)
        operands[i] = rg_broadcastable(g, operands[0]);
    rg_add(g, ops[is_float ? rg_below(g, 4) : 2 + rg_below(g, 2)], NULL, 1, n, operands);
}

static void
rg_where(RandomGraph *g)
{
    KilnValue *x = rg_any(g), *y = rg_broadcastable(g, x);
    KilnType type = kiln_type_make(KILN_DTYPE_bool, x->type.rank, x->type.dims);
    int64_t n = kiln_type_elements(&type);
    g_autofree uint8_t *bits = g_malloc0((size_t)n + 1);
    int kind = rg_below(g, 3); /* all false, all true, mixed */
    for (int64_t i = 0; i < n; i++)
        bits[i] = kind == 2 ? i % 2 == 0 : (uint8_t)kind;
    KilnValue *c =
        kiln_build_constant(g->function, NULL, "c", kiln_tensor_new_copy(&type, bits, NULL));
    KilnValue *operands[] = { c, x, y };
    rg_add(g, KILN_OP_where, NULL, 1, 3, operands);
}

static void
rg_transpose(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    int64_t perm[KILN_MAX_RANK];
    for (int d = 0; d < x->type.rank; d++)
        perm[d] = d;
    for (int d = x->type.rank - 1; d > 0; d--) {
        int other = rg_below(g, d + 1);
        int64_t swap = perm[d];
        perm[d] = perm[other];
        perm[other] = swap;
    }
    KilnAttrs_transpose attrs = { .perm = { .n = (uint32_t)x->type.rank, .v = perm } };
    bool reverse = rg_one_in(g, 4);
    KilnValue *y = rg_unary(g, KILN_OP_transpose, reverse ? NULL : &attrs, x);
    if (y && rg_one_in(g, 2))
        rg_unary(g, KILN_OP_transpose, reverse ? NULL : &attrs, y);
}

/* Puts extents together and takes factors apart. */
static void
rg_reshape(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    int64_t left = kiln_type_elements(&x->type), dims[4];
    uint32_t rank = 1 + (uint32_t)rg_below(g, 4);
    for (uint32_t d = 0; d + 1 < rank; d++) {
        int64_t factor = 1 + rg_below(g, 4);
        dims[d] = left % factor == 0 ? factor : 1;
        left /= dims[d];
    }
    dims[rank - 1] = left;
    if (rg_one_in(g, 4)) { /* to its own shape */
        rank = (uint32_t)x->type.rank;
        memcpy(dims, x->type.dims, sizeof dims[0] * MIN(rank, 4));
    }
    if (rank > 4)
        return;
    KilnAttrs_reshape attrs = { .allowzero = true };
    rg_binary(g, KILN_OP_reshape, &attrs, x, rg_ints(g, dims, rank));
}

static void
rg_axes(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    if (rg_one_in(g, 3)) {
        KilnAttrs_flatten attrs = { .axis = rg_below(g, x->type.rank + 1) };
        rg_unary(g, KILN_OP_flatten, &attrs, x);
    } else if (rg_one_in(g, 2) && x->type.rank < 4) {
        int64_t axis = rg_below(g, x->type.rank + 1);
        rg_binary(g, KILN_OP_unsqueeze, NULL, x, rg_ints(g, &axis, 1));
    } else {
        rg_unary(g, KILN_OP_squeeze, NULL, x);
    }
}

static void
rg_concat(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    KilnValue *operands[] = { x, x, x };
    for (int i = 1; i < 3; i++) {
        KilnValue *y = rg_any(g);
        if (kiln_type_same_shape(&x->type, &y->type))
            operands[i] = y;
    }
    if (!x->type.rank)
        return;
    KilnAttrs_concat attrs = { .axis = rg_below(g, x->type.rank) };
    rg_add(g, KILN_OP_concat, &attrs, 1, 1 + (uint32_t)rg_below(g, 3), operands);
}

static void
rg_slice(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    if (!x->type.rank)
        return;
    int64_t axis = rg_below(g, x->type.rank), extent = x->type.dims[axis];
    int64_t begin = extent ? rg_below(g, (int)extent) : 0, end = rg_one_in(g, 2) ? extent : 9;
    int64_t step = rg_one_in(g, 4) ? 2 : 1;
    if (rg_one_in(g, 4)) {
        step = -1;
        begin = -1;
        end = -100;
    } else if (rg_one_in(g, 2)) {
        begin = 0;
    }
    KilnValue *operands[] = { x, rg_ints(g, &begin, 1), rg_ints(g, &end, 1), rg_ints(g, &axis, 1),
                              rg_ints(g, &step, 1) };
    rg_add(g, KILN_OP_slice, NULL, 1, 5, operands);
}

static void
rg_split(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    if (!x->type.rank)
        return;
    int64_t axis = rg_below(g, x->type.rank), extent = x->type.dims[axis];
    int64_t first = extent ? rg_below(g, (int)extent + 1) : 0, sizes[] = { first, extent - first };
    KilnAttrs_split attrs = { .axis = axis };
    KilnValue *operands[] = { x, rg_ints(g, sizes, 2) };
    rg_add(g, KILN_OP_split, &attrs, 2, 2, operands);
}

static void
rg_grow(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    int rank = x->type.rank;
    int64_t numbers[2 * KILN_MAX_RANK] = { 0 };
    switch (rg_below(g, 3)) {
    case 0: /* pads: none, in front, behind, or shifting */
        for (int d = 0; d < rank && !rg_one_in(g, 3); d++) {
            numbers[d] = rg_below(g, 3) - 1;
            numbers[rank + d] = rg_one_in(g, 2) ? -numbers[d] : rg_below(g, 2);
            if (MIN(numbers[d], 0) + MIN(numbers[rank + d], 0) + x->type.dims[d] < 0)
                numbers[d] = numbers[rank + d] = 0;
        }
        rg_binary(g, KILN_OP_pad, NULL, x, rg_ints(g, numbers, 2 * (uint32_t)rank));
        return;
    case 1:
        for (int d = 0; d < rank; d++)
            numbers[d] = rg_one_in(g, 4) ? 2 : 1;
        rg_binary(g, KILN_OP_tile, NULL, x, rg_ints(g, numbers, (uint32_t)rank));
        return;
    default:
        for (int d = 0; d < rank; d++)
            numbers[d] = x->type.dims[d] == 1 && rg_one_in(g, 2) ? 3 : x->type.dims[d];
        rg_binary(g, KILN_OP_expand, NULL, x, rg_ints(g, numbers, (uint32_t)rank));
    }
}

static void
rg_reduce(RandomGraph *g)
{
    static const KilnOp ops[] = { KILN_OP_reduce_sum,        KILN_OP_reduce_max,
                                  KILN_OP_reduce_mean,       KILN_OP_reduce_l1,
                                  KILN_OP_reduce_sum_square, KILN_OP_reduce_l2 };
    KilnValue *x = rg_any(g);
    bool is_float = kiln_dtype_is_float(g->dtype);
    if (kiln_type_elements(&x->type) == 0)
        return; /* the largest of nothing */
    KilnAttrs_reduce_sum attrs = { .keepdims = rg_one_in(g, 2) };
    int64_t axis = x->type.rank ? rg_below(g, x->type.rank) : 0;
    KilnValue *operands[] = { x, x->type.rank && !rg_one_in(g, 3) ? rg_ints(g, &axis, 1) : NULL };
    rg_add(g, ops[rg_below(g, is_float ? 6 : 2)], &attrs, 1, 2, operands);
}

static void
rg_matmul(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    if (x->type.rank < 1)
        return;
    KilnType type =
        kiln_type_make(g->dtype, 2, (int64_t[]){ x->type.dims[x->type.rank - 1], rg_extent(g) });
    rg_binary(g, KILN_OP_matmul, NULL, x, rg_constant(g, &type, -0.5, 0.5));
}

static KilnValue *
rg_statistics(RandomGraph *g, int64_t channels, double low, double high)
{
    KilnType type = kiln_type_make(g->dtype, 1, &channels);
    return rg_constant(g, &type, low, high);
}

static void
rg_batchnorm(RandomGraph *g, KilnValue *x)
{
    int64_t c = x->type.dims[1];
    bool identity = rg_one_in(g, 5);
    KilnAttrs_batch_normalization attrs = { .epsilon = identity ? 0 : 1e-5f, .momentum = 0.9f };
    KilnValue *operands[] = { x, rg_statistics(g, c, identity ? 1 : 0.5, identity ? 1 : 2),
                              rg_statistics(g, c, identity ? 0 : -1, identity ? 0 : 1),
                              rg_statistics(g, c, identity ? 0 : -1, identity ? 0 : 1),
                              rg_statistics(g, c, identity ? 1 : 0.5, identity ? 1 : 2) };
    rg_add(g, KILN_OP_batch_normalization, &attrs, 1, 5, operands);
}

/* A convolution of some image, perhaps a batch normalization behind it, perhaps another reader. */
static void
rg_convolve(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    if (x->type.rank < 3 || x->type.rank > 4 || kiln_type_elements(&x->type) == 0)
        return;
    bool up = rg_one_in(g, 3);
    int64_t inputs = x->type.dims[1], outputs = 1 + rg_below(g, 3);
    int64_t group = inputs % 2 == 0 && rg_one_in(g, 2) ? 2 : 1, ones[] = { 1, 1, 1, 1 };
    uint32_t spatial = (uint32_t)x->type.rank - 2;
    int64_t dims[] = { up ? inputs : outputs * group, up ? outputs : inputs / group, 1, 1 };
    bool wide = rg_one_in(g, 2);
    for (uint32_t d = 0; d < spatial; d++)
        dims[2 + d] = wide ? 3 : 1;
    KilnType type = kiln_type_make(g->dtype, x->type.rank, dims);
    KilnInts pads = { .n = wide ? 2 * spatial : 0, .v = ones };
    KilnAttrs_conv conv = { .auto_pad = "NOTSET", .group = group, .pads = pads };
    KilnAttrs_conv_transpose back = { .auto_pad = "NOTSET", .group = group, .pads = pads };
    KilnValue *bias = rg_one_in(g, 2) ? rg_statistics(g, outputs * group, -1, 1) : NULL;
    KilnValue *operands[] = { x, rg_constant(g, &type, -0.5, 0.5), bias };
    KilnValue *y = rg_add(g, up ? KILN_OP_conv_transpose : KILN_OP_conv,
                          up ? (void *)&back : (void *)&conv, 1, 3, operands);
    if (y && !rg_one_in(g, 4))
        rg_batchnorm(g, rg_one_in(g, 6) ? rg_unary(g, KILN_OP_relu, NULL, y) : y);
}

static void
rg_pool(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    if (x->type.rank < 3 || kiln_type_elements(&x->type) == 0)
        return;
    int64_t window[] = { 1, 1, 1, 1, 1, 1 };
    KilnInts list = { .n = (uint32_t)x->type.rank - 2, .v = window };
    KilnAttrs_max_pool most = { .auto_pad = "NOTSET", .kernel_shape = list };
    KilnAttrs_average_pool mean = { .auto_pad = "NOTSET", .kernel_shape = list };
    window[0] = rg_one_in(g, 2) && x->type.dims[2] > 1 ? 2 : 1;
    switch (rg_below(g, 4)) {
    case 0:
        rg_add(g, KILN_OP_max_pool, &most, 1 + (uint32_t)rg_below(g, 2), 1, &x);
        return;
    case 1:
        rg_unary(g, KILN_OP_average_pool, &mean, x);
        return;
    case 2:
        rg_unary(g, KILN_OP_global_average_pool, NULL, x);
        return;
    default:
        rg_unary(g, KILN_OP_global_max_pool, NULL, x);
    }
}

static void
rg_rearrange(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    if (x->type.rank != 4)
        return;
    KilnAttrs_space_to_depth down = { .blocksize = rg_one_in(g, 3) ? 1 : 2,
                                      .mode = rg_one_in(g, 2) ? "CRD" : "DCR" };
    KilnAttrs_depth_to_space up = { .blocksize = down.blocksize,
                                    .mode = rg_one_in(g, 2) ? "DCR" : "CRD" };
    bool deep = x->type.dims[1] % (up.blocksize * up.blocksize) == 0;
    bool even = x->type.dims[2] % down.blocksize == 0 && x->type.dims[3] % down.blocksize == 0;
    if (deep && rg_one_in(g, 2))
        rg_unary(g, KILN_OP_depth_to_space, &up, x);
    else if (even)
        rg_unary(g, KILN_OP_space_to_depth, &down, x);
}

static void
rg_rows(RandomGraph *g)
{
    KilnValue *x = rg_any(g);
    KilnAttrs_softmax attrs = { .axis = -1 };
    if (x->type.rank > 0 && kiln_dtype_is_float(g->dtype))
        rg_unary(g, KILN_OP_softmax, &attrs, x);
}

/* Literals that hang together: what folds. */
static void
rg_literals(RandomGraph *g)
{
    KilnType type = kiln_type_make(g->dtype, 2, (int64_t[]){ rg_extent(g), rg_extent(g) });
    KilnValue *a = rg_constant(g, &type, -1, 1), *b = rg_constant(g, &type, -1, 1);
    g_ptr_array_add(g->values, a);
    rg_binary(g, KILN_OP_mul, NULL, a, b);
}

static void
rg_random(RandomGraph *g)
{
    int64_t dims[] = { rg_extent(g), rg_extent(g) };
    KilnAttrs_random_uniform attrs = {
        .dtype = g->dtype, .high = 1, .seed = rg_below(g, 3), .shape = { .n = 2, .v = dims }
    };
    if (kiln_dtype_is_float(g->dtype))
        rg_add(g, KILN_OP_random_uniform, &attrs, 1, 0, NULL);
}

/* --- a whole graph --- */

void
rg_step(RandomGraph *g)
{
    typedef void (*Family)(RandomGraph *);
    static const Family families[] = {
        rg_elementwise, rg_elementwise, rg_arithmetic, rg_arithmetic, rg_arithmetic, rg_divide,
        rg_variadic,    rg_same,        rg_where,      rg_transpose,  rg_transpose,  rg_reshape,
        rg_reshape,     rg_axes,        rg_concat,     rg_slice,      rg_split,      rg_grow,
        rg_literals,    rg_reduce,      rg_random,
    };
    static const Family of_floats[] = { rg_matmul,   rg_convolve, rg_convolve,
                                        rg_convolve, rg_pool,     rg_rows };
    if (rg_one_in(g, 6))
        rg_idiom(g);
    else if (kiln_dtype_is_float(g->dtype) && rg_one_in(g, 4))
        of_floats[rg_below(g, G_N_ELEMENTS(of_floats))](g);
    else if (rg_one_in(g, 12))
        rg_rearrange(g);
    else
        families[rg_below(g, G_N_ELEMENTS(families))](g);
}

/* Some values, the last one among them, and the last ones that nothing reads, as many as @ends; one
 * of them twice now and then, an argument too. */
static void
rg_set_results(RandomGraph *g, uint32_t ends)
{
    KilnValue *results[8];
    char *names[8] = { NULL };
    uint32_t n = 0;
    results[n++] = g_ptr_array_index(g->values, g->values->len - 1);
    for (guint i = g->values->len - 1; i > 0 && n <= ends; i--) {
        KilnValue *value = g_ptr_array_index(g->values, i - 1);
        if (!value->n_uses)
            results[n++] = value;
    }
    while (n < 7 && !rg_one_in(g, 3))
        results[n++] = rg_any(g);
    for (uint32_t i = 0; i < n; i++)
        names[i] = g_strdup_printf("result %u", i);
    kiln_function_set_results(g->function, results, (const char *const *)names, n, NULL);
    for (uint32_t i = 0; i < n; i++)
        g_free(names[i]);
}

void
rg_begin(RandomGraph *g)
{
    g->module = kiln_module_new();
    g->function = kiln_function_new(g->module, "random");
    g->values = g_ptr_array_new();
}

void
rg_argument(RandomGraph *g, const KilnType *type)
{
    g_autofree char *name = g_strdup_printf("x%u", g->function->arguments->len);
    KilnArgument *argument = kiln_function_add_argument(g->function, name, type, NULL);
    g_ptr_array_add(g->values, &argument->value);
}

KilnModule *
rg_end(RandomGraph *g, uint32_t ends)
{
    rg_set_results(g, ends);
    g_ptr_array_unref(g->values);
    return g->module;
}

/** A module of one function. Free it with kiln_module_free(). */
KilnModule *
random_graph(uint64_t seed)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_f32,  KILN_DTYPE_f32, KILN_DTYPE_f32,
                                        KILN_DTYPE_f32,  KILN_DTYPE_f64, KILN_DTYPE_f16,
                                        KILN_DTYPE_bf16, KILN_DTYPE_i64, KILN_DTYPE_i32 };
    RandomGraph g = { .state = seed * UINT64_C(0x2545f4914f6cdd1d) + 1, .most = 4096 };
    g.dtype = dtypes[rg_below(&g, G_N_ELEMENTS(dtypes))];
    rg_begin(&g);
    int n_arguments = 1 + rg_below(&g, 3);
    for (int i = 0; i < n_arguments; i++) {
        int64_t dims[4];
        int rank = rg_one_in(&g, 8) ? 0 : 1 + rg_below(&g, 4);
        for (int d = 0; d < rank; d++)
            dims[d] = rg_extent(&g);
        KilnType type = kiln_type_make(g.dtype, rank, dims);
        rg_argument(&g, &type);
    }
    int steps = rg_one_in(&g, 25) ? 60 : 4 + rg_below(&g, 16);
    for (int i = 0; i < steps; i++)
        rg_step(&g);
    return rg_end(&g, 0);
}
