/* SPDX-License-Identifier: Apache-2.0 */
/* What vendor libraries are made for, and what stands around it: convolutions and pools of every
 * kind on lines, pictures and volumes, what follows them, branches that meet again. Products of
 * matrices in every spelling, what works along rows, and recurrent layers. */
#include "graph/graph.h"
#include "graph/module.h"
#include "graph/node.h"
#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/concat.h"
#include "graph/op/conv.h"
#include "graph/op/expand.h"
#include "graph/op/matmul.h"
#include "graph/op/multiplicative.h"
#include "graph/op/norm.h"
#include "graph/op/pool.h"
#include "graph/op/recurrent.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "graph/op/resize.h"
#include "graph/op/slice.h"
#include "graph/op/softmax.h"
#include "graph/op/transpose.h"
#include "tests/random/random_graph_priv.h"

#include <math.h>

enum {
    SPATIAL = 3, /* dims at most */
};

/* --- what they are made of --- */

KilnValue *
rg_of_rank(RandomGraph *g, int least, int most)
{
    for (int tries = 0; tries < 8; tries++) {
        KilnValue *x = rg_any(g);
        if (x->type.rank >= least && x->type.rank <= most)
            return x;
    }
    return NULL;
}

KilnValue *
rg_weight(RandomGraph *g, int rank, const int64_t *dims, int64_t terms)
{
    KilnType type = kiln_type_make(g->dtype, rank, dims);
    double most = sqrt(3.0 / (double)MAX(terms, 1));
    if (rg_one_in(g, 3)) {
        kiln_foreach_node (node, g->function) {
            if (node->op == KILN_OP_const && kiln_type_equal(&node->results[0].type, &type))
                return &node->results[0];
        }
    }
    if (rg_one_in(g, 25)) {
        g_autofree char *name = g_strdup_printf("given%u", g->function->arguments->len);
        return &kiln_function_add_argument(g->function, name, &type, NULL)->value;
    }
    uint64_t seed = (uint64_t)rg_below(g, 1000);
    return kiln_build_constant(g->function, NULL, "w",
                               kiln_tensor_new_uniform(&type, seed, -most, most));
}

KilnValue *
rg_activation(RandomGraph *g, KilnValue *x)
{
    static const KilnOp ops[] = { KILN_OP_relu, KILN_OP_relu,       KILN_OP_relu,
                                  KILN_OP_tanh, KILN_OP_sigmoid,    KILN_OP_leaky_relu,
                                  KILN_OP_elu,  KILN_OP_hard_swish, KILN_OP_swish,
                                  KILN_OP_gelu, KILN_OP_mish,       KILN_OP_hard_sigmoid,
                                  KILN_OP_clip };
    KilnOp op = ops[rg_below(g, G_N_ELEMENTS(ops))];
    if (op != KILN_OP_clip)
        return rg_unary(g, op, NULL, x);
    KilnType scalar = kiln_type_scalar(g->dtype);
    KilnValue *low = rg_one_in(g, 5) ? NULL : rg_constant(g, &scalar, 0, 0);
    KilnValue *operands[] = { x, low, rg_one_in(g, 5) ? NULL : rg_constant(g, &scalar, 6, 6) };
    return rg_add(g, KILN_OP_clip, NULL, 1, 3, operands);
}

/* What broadcasts to @y: along one dim, all of them, none, or another value of the graph; or a
 * constant of its shape. */
static KilnValue *
partner(RandomGraph *g, KilnValue *y)
{
    KilnType type = y->type;
    int only = type.rank ? rg_below(g, type.rank) : 0, drop = rg_one_in(g, 2) ? only : 0;
    switch (rg_below(g, 7)) {
    case 6:
        return rg_weight(g, type.rank, type.dims, 3);
    case 0:
        return rg_scalar(g, 0.75);
    case 1:
        return rg_broadcastable(g, y);
    case 2:
    case 3:
        for (int tries = 0; tries < 6; tries++) {
            KilnValue *x = rg_any(g);
            if (kiln_type_same_shape(&x->type, &y->type))
                return x;
        }
        return y;
    default:
        if (type.rank > 1 && !rg_one_in(g, 3))
            only = 1; /* of channels */
        drop = MIN(drop, only);
        for (int d = drop; d < type.rank; d++)
            type.dims[d - drop] = d == only || rg_one_in(g, 12) ? type.dims[d] : 1;
        return rg_weight(g, type.rank - drop, type.dims, 3);
    }
}

/* One operator that reads @y. */
static KilnValue *
tail(RandomGraph *g, KilnValue *y)
{
    static const KilnOp ops[] = { KILN_OP_add, KILN_OP_add, KILN_OP_add, KILN_OP_mul,
                                  KILN_OP_sub, KILN_OP_max, KILN_OP_min };
    if (rg_one_in(g, 2))
        return rg_activation(g, y);
    KilnValue *x = partner(g, y);
    KilnOp op = ops[rg_below(g, G_N_ELEMENTS(ops))];
    if (rg_one_in(g, 12) && y->type.rank > 2) {
        KilnValue *slope =
            rg_weight(g, y->type.rank - 1, (int64_t[]){ y->type.dims[1], 1, 1, 1, 1, 1, 1 }, 3);
        return rg_binary(g, KILN_OP_prelu, NULL, y, slope);
    }
    return rg_one_in(g, 2) ? rg_binary(g, op, NULL, x, y) : rg_binary(g, op, NULL, y, x);
}

void
rg_tails(RandomGraph *g, KilnValue *y)
{
    for (int i = rg_below(g, 4); i > 0 && y; i--)
        y = tail(g, y);
}

/* --- windows --- */

typedef struct {
    uint32_t n;
    int64_t kernel[SPATIAL], strides[SPATIAL], dilations[SPATIAL], pads[2 * SPATIAL];
    const char *auto_pad;
} Window;

/* Of one pixel, of three that keep extents, or of anything. */
static Window
draw_window(RandomGraph *g, const KilnType *x, int most_pad)
{
    static const int64_t kernels[] = { 1, 2, 3, 3, 4, 5 }, steps[] = { 1, 1, 2, 2, 3 };
    Window w = { .n = (uint32_t)x->rank - 2, .auto_pad = "NOTSET" };
    int kind = rg_below(g, 4);
    int64_t step = rg_one_in(g, 4) ? 2 : 1, far = rg_one_in(g, 8) ? 2 : 1;
    for (uint32_t d = 0; d < w.n; d++) {
        bool any = kind > 1;
        w.kernel[d] = any ? kernels[rg_below(g, G_N_ELEMENTS(kernels))] : kind == 0 ? 1 : 3;
        w.strides[d] = any ? steps[rg_below(g, G_N_ELEMENTS(steps))] : step;
        w.dilations[d] = any ? 1 + rg_one_in(g, 5) : kind == 0 ? 1 : far;
        int64_t reach = (w.kernel[d] - 1) * w.dilations[d];
        for (uint32_t side = 0; side < 2; side++)
            w.pads[d + side * w.n] = any ? rg_below(g, (int)MIN(reach + most_pad, 4)) : reach / 2;
    }
    if (rg_one_in(g, 10)) {
        static const char *const pads[] = { "SAME_UPPER", "SAME_LOWER", "VALID" };
        w.auto_pad = pads[rg_below(g, G_N_ELEMENTS(pads))];
    }
    return w;
}

/* Keeps extents: of one pixel, or of three. */
static Window
keeping_window(RandomGraph *g, const KilnType *x)
{
    bool three = rg_one_in(g, 2);
    Window w = { .n = (uint32_t)x->rank - 2, .auto_pad = "NOTSET" };
    for (uint32_t d = 0; d < w.n; d++) {
        w.kernel[d] = three ? 3 : 1;
        w.strides[d] = w.dilations[d] = 1;
        w.pads[d] = w.pads[d + w.n] = three;
    }
    return w;
}

static KilnInts
pads_of(Window *w)
{
    bool given = g_str_equal(w->auto_pad, "NOTSET");
    return (KilnInts){ .n = given ? 2 * w->n : 0, .v = w->pads };
}

static int64_t
some_channels(RandomGraph *g)
{
    static const int64_t channels[] = { 1, 3, 4, 8, 8, 12, 16, 16, 16, 17, 24, 32, 32 };
    return channels[rg_below(g, G_N_ELEMENTS(channels))];
}

static int64_t
some_group(RandomGraph *g, int64_t channels)
{
    int64_t groups[] = { 1, 1, 1, channels, 2, 4 };
    int64_t group = groups[rg_below(g, G_N_ELEMENTS(groups))];
    return group && channels % group == 0 ? group : 1;
}

/* Of @outputs channels, in whole groups; biased or not. */
static KilnValue *
conv(RandomGraph *g, KilnValue *x, Window *w, int64_t outputs, int64_t group)
{
    int64_t inputs = x->type.dims[1] / group, terms = inputs;
    int64_t dims[2 + SPATIAL] = { outputs, inputs };
    for (uint32_t d = 0; d < w->n; d++) {
        dims[2 + d] = w->kernel[d];
        terms *= w->kernel[d];
    }
    KilnAttrs_conv attrs = { .auto_pad = w->auto_pad,
                             .group = group,
                             .pads = pads_of(w),
                             .strides = { .n = w->n, .v = w->strides },
                             .dilations = { .n = w->n, .v = w->dilations } };
    KilnValue *operands[] = { x, rg_weight(g, x->type.rank, dims, terms),
                              rg_one_in(g, 2) ? rg_weight(g, 1, &outputs, 3) : NULL };
    return rg_add(g, KILN_OP_conv, &attrs, 1, 3, operands);
}

/* --- operators that have a layout of their own --- */

static void
convolution(RandomGraph *g, KilnValue *x)
{
    Window w = draw_window(g, &x->type, 2);
    int64_t inputs = x->type.dims[1], group = some_group(g, inputs);
    int64_t each = group == inputs ? 1 + rg_one_in(g, 4) : some_channels(g);
    KilnValue *y = conv(g, x, &w, group == 1 ? some_channels(g) : each * group, group);
    rg_tails(g, y);
}

static void
convolution_up(RandomGraph *g, KilnValue *x)
{
    Window w = draw_window(g, &x->type, 1);
    int64_t inputs = x->type.dims[1], group = rg_one_in(g, 4) ? some_group(g, inputs) : 1;
    int64_t outputs = rg_one_in(g, 3) ? 1 : some_channels(g), more[SPATIAL] = { 0 };
    int64_t dims[2 + SPATIAL] = { inputs, outputs }, terms = inputs / group;
    for (uint32_t d = 0; d < w.n; d++) {
        dims[2 + d] = w.kernel[d];
        terms *= w.kernel[d];
        more[d] = rg_one_in(g, 4) ? MAX(w.strides[d], w.dilations[d]) - 1 : 0;
    }
    outputs *= group;
    KilnAttrs_conv_transpose attrs = { .auto_pad = w.auto_pad,
                                       .group = group,
                                       .pads = pads_of(&w),
                                       .strides = { .n = w.n, .v = w.strides },
                                       .dilations = { .n = w.n, .v = w.dilations },
                                       .output_padding = { .n = w.n, .v = more } };
    KilnValue *operands[] = { x, rg_weight(g, x->type.rank, dims, terms),
                              rg_one_in(g, 2) ? rg_weight(g, 1, &outputs, 3) : NULL };
    KilnValue *y = rg_add(g, KILN_OP_conv_transpose, &attrs, 1, 3, operands);
    rg_tails(g, y);
}

static KilnValue *
pool(RandomGraph *g, KilnValue *x, Window *w)
{
    bool ceil_mode = rg_one_in(g, 3) && g_str_equal(w->auto_pad, "NOTSET");
    KilnInts kernel = { .n = w->n, .v = w->kernel }, strides = { .n = w->n, .v = w->strides };
    KilnAttrs_max_pool most = { .auto_pad = w->auto_pad,
                                .ceil_mode = ceil_mode,
                                .kernel_shape = kernel,
                                .strides = strides,
                                .dilations = { .n = w->n, .v = w->dilations },
                                .pads = pads_of(w) };
    KilnAttrs_average_pool mean = { .auto_pad = w->auto_pad,
                                    .ceil_mode = ceil_mode,
                                    .count_include_pad = rg_one_in(g, 2),
                                    .kernel_shape = kernel,
                                    .strides = strides,
                                    .dilations = { .n = w->n, .v = w->dilations },
                                    .pads = pads_of(w) };
    return rg_one_in(g, 2) ? rg_add(g, KILN_OP_max_pool, &most, 1 + rg_one_in(g, 8), 1, &x)
                           : rg_unary(g, KILN_OP_average_pool, &mean, x);
}

static void
pooled(RandomGraph *g, KilnValue *x)
{
    Window w = draw_window(g, &x->type, 1);
    KilnValue *y =
        rg_one_in(g, 4)
            ? rg_unary(g, rg_one_in(g, 2) ? KILN_OP_global_average_pool : KILN_OP_global_max_pool,
                       NULL, x)
            : pool(g, x, &w);
    if (rg_one_in(g, 2))
        rg_tails(g, y);
}

/* --- blocks --- */

static KilnValue *
kept(RandomGraph *g, KilnValue *x, int64_t outputs)
{
    Window w = keeping_window(g, &x->type);
    if (outputs == x->type.dims[1] && outputs && rg_one_in(g, 4))
        return rg_one_in(g, 2) ? conv(g, x, &w, outputs, outputs) : pool(g, x, &w);
    return conv(g, x, &w, outputs, 1);
}

static void
residual(RandomGraph *g, KilnValue *x)
{
    KilnValue *y = x;
    for (int i = rg_below(g, 2); i >= 0 && y; i--) {
        y = kept(g, y, x->type.dims[1]);
        y = y && !rg_one_in(g, 3) ? rg_activation(g, y) : y;
    }
    KilnValue *sum = !y                ? NULL
                     : rg_one_in(g, 2) ? rg_binary(g, KILN_OP_add, NULL, y, x)
                                       : rg_binary(g, KILN_OP_add, NULL, x, y);
    if (sum && !rg_one_in(g, 3))
        rg_activation(g, sum);
}

static void
branches(RandomGraph *g, KilnValue *x)
{
    KilnValue *ends[4];
    uint32_t n = 2 + (uint32_t)rg_below(g, 3);
    bool joined = rg_one_in(g, 2); /* else added */
    int64_t outputs = some_channels(g);
    for (uint32_t i = 0; i < n; i++) {
        KilnValue *y = rg_one_in(g, 8) ? x : kept(g, x, joined ? some_channels(g) : outputs);
        ends[i] = y && rg_one_in(g, 2) ? rg_activation(g, y) : y;
        ends[i] = ends[i] && rg_one_in(g, 4) ? kept(g, ends[i], ends[i]->type.dims[1]) : ends[i];
        if (ends[i] && rg_one_in(g, 8))
            ends[i] = rg_weight(g, ends[i]->type.rank, ends[i]->type.dims, 3);
        if (!ends[i])
            return;
    }
    KilnAttrs_concat attrs = { .axis = 1 };
    KilnValue *y = joined ? rg_add(g, KILN_OP_concat, &attrs, 1, n, ends)
                          : rg_binary(g, KILN_OP_add, NULL, ends[0], ends[1]);
    if (rg_one_in(g, 2))
        rg_tails(g, y);
}

/* Squeeze and excitation. */
static void
excited(RandomGraph *g, KilnValue *x)
{
    int64_t c = x->type.dims[1];
    Window w = { .n = (uint32_t)x->type.rank - 2,
                 .kernel = { 1, 1, 1 },
                 .strides = { 1, 1, 1 },
                 .dilations = { 1, 1, 1 },
                 .auto_pad = "NOTSET" };
    KilnValue *y = rg_unary(g, KILN_OP_global_average_pool, NULL, x);
    y = y ? conv(g, y, &w, MAX(c / 4, 1), 1) : NULL;
    y = y ? rg_activation(g, y) : NULL;
    y = y ? conv(g, y, &w, c, 1) : NULL;
    y = y ? rg_unary(g, rg_one_in(g, 2) ? KILN_OP_sigmoid : KILN_OP_hard_sigmoid, NULL, y) : NULL;
    y = y ? rg_binary(g, KILN_OP_mul, NULL, x, y) : NULL;
    if (y && rg_one_in(g, 2))
        kept(g, y, some_channels(g));
}

/* Channels in halves, of which one is computed, and mixed. */
static void
shuffled(RandomGraph *g, KilnValue *x)
{
    int64_t c = x->type.dims[1],
            cut = rg_one_in(g, 3) && c > 1 ? 1 + rg_below(g, (int)c - 1) : c / 2;
    int64_t sizes[] = { cut, c - cut };
    if (!cut)
        return;
    KilnAttrs_split split = { .axis = 1 };
    KilnValue *operands[] = { x, rg_ints(g, sizes, 2) };
    KilnValue *half = rg_add(g, KILN_OP_split, &split, 2, 2, operands);
    KilnValue *other = half ? &half->def->results[1] : NULL;
    other = other ? kept(g, other, c - cut) : NULL;
    other = other ? rg_activation(g, other) : NULL;
    KilnAttrs_concat attrs = { .axis = 1 };
    KilnValue *ends[] = { half, other };
    KilnValue *y = other ? rg_add(g, KILN_OP_concat, &attrs, 1, 2, ends) : NULL;
    KilnAttrs_channel_shuffle mix = { .axis = 1, .group = 2 };
    y = y && c % 2 == 0 ? rg_unary(g, KILN_OP_channel_shuffle, &mix, y) : y;
    if (y && rg_one_in(g, 2))
        kept(g, y, some_channels(g));
}

/* Twice as wide, beside what is as wide already. */
static void
widened(RandomGraph *g, KilnValue *x)
{
    float scales[KILN_MAX_RANK] = { 1, 1, 2, 2, 2 };
    KilnType list = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ x->type.rank });
    KilnAttrs_resize *attrs = kiln_op_attrs_new(KILN_OP_resize, g->module->arena);
    attrs->mode = rg_one_in(g, 2) ? "linear" : "nearest";
    KilnTensor *numbers = kiln_tensor_new_copy(&list, scales, NULL);
    KilnValue *operands[] = { x, NULL, kiln_build_constant(g->function, NULL, "scales", numbers) };
    KilnValue *y = rg_add(g, KILN_OP_resize, attrs, 1, 3, operands);
    if (y)
        kept(g, y, some_channels(g));
}

/* --- what stands between --- */

static void
last_channels(RandomGraph *g, KilnValue *x)
{
    int64_t perm[KILN_MAX_RANK] = { 0 }, back[KILN_MAX_RANK] = { 0 };
    int rank = x->type.rank;
    for (int d = 1; d < rank; d++) {
        perm[d] = d + 1 < rank ? d + 1 : 1;
        back[d] = d > 1 ? d - 1 : rank - 1;
    }
    KilnAttrs_transpose there = { .perm = { .n = (uint32_t)rank, .v = perm } };
    KilnAttrs_transpose again = { .perm = { .n = (uint32_t)rank, .v = back } };
    KilnValue *y = rg_unary(g, KILN_OP_transpose, &there, x);
    y = y && rg_one_in(g, 2) ? tail(g, y) : y;
    if (y && !rg_one_in(g, 3))
        rg_unary(g, KILN_OP_transpose, &again, y);
}

static void
cut(RandomGraph *g, KilnValue *x)
{
    static const int64_t parts[] = { 1, 4, 8, 8, 16 };
    int64_t axis = rg_one_in(g, 3) ? rg_below(g, x->type.rank) : 1;
    int64_t part = parts[rg_below(g, G_N_ELEMENTS(parts))], extent = x->type.dims[axis];
    int64_t begin = extent > part ? rg_below(g, (int)(extent / part)) * part : 0;
    int64_t end = begin + part * (1 + rg_below(g, 3));
    KilnValue *operands[] = { x, rg_ints(g, &begin, 1), rg_ints(g, &end, 1), rg_ints(g, &axis, 1) };
    rg_add(g, KILN_OP_slice, NULL, 1, 4, operands);
}

static void
padded(RandomGraph *g, KilnValue *x)
{
    int64_t pads[2 * KILN_MAX_RANK] = { 0 };
    int rank = x->type.rank;
    for (int d = rg_one_in(g, 4) ? 1 : 2; d < rank; d++) {
        pads[d] = rg_below(g, 3);
        pads[rank + d] = rg_below(g, 3);
    }
    static const char *const modes[] = { "constant", "constant", "reflect", "edge" };
    KilnAttrs_pad attrs = { .mode = modes[rg_below(g, G_N_ELEMENTS(modes))] };
    rg_binary(g, KILN_OP_pad, &attrs, x, rg_ints(g, pads, 2 * (uint32_t)rank));
}

static void
normalized(RandomGraph *g, KilnValue *x)
{
    KilnAttrs_lrn lrn = { .alpha = 1e-2f, .beta = 0.75f, .bias = 1, .size = 3 };
    KilnAttrs_instance_normalization instance = { .epsilon = 1e-2f };
    KilnAttrs_batch_normalization batch = { .epsilon = 1e-2f, .momentum = 0.9f };
    KilnType type = kiln_type_make(g->dtype, 1, &x->type.dims[1]);
    KilnValue *variance =
        kiln_build_constant(g->function, NULL, "v", kiln_tensor_new_uniform(&type, 3, 0.5, 2));
    KilnValue *operands[] = { x, rg_weight(g, 1, &x->type.dims[1], 3),
                              rg_weight(g, 1, &x->type.dims[1], 3),
                              rg_weight(g, 1, &x->type.dims[1], 3), variance };
    switch (rg_below(g, 3)) {
    case 0:
        rg_unary(g, KILN_OP_lrn, &lrn, x);
        return;
    case 1:
        rg_add(g, KILN_OP_instance_normalization, &instance, 1, 3, operands);
        return;
    default:
        rg_add(g, KILN_OP_batch_normalization, &batch, 1, 5, operands);
    }
}

static void
spatial_mean(RandomGraph *g, KilnValue *x)
{
    int64_t axes[SPATIAL] = { 2, 3, 4 };
    KilnAttrs_reduce_mean attrs = { .keepdims = rg_one_in(g, 2) };
    rg_binary(g, KILN_OP_reduce_mean, &attrs, x, rg_ints(g, axes, (uint32_t)x->type.rank - 2));
}

/* A classifier. */
static void
head(RandomGraph *g, KilnValue *x)
{
    KilnAttrs_flatten flat = { .axis = 1 };
    KilnAttrs_gemm attrs = { .alpha = 1, .beta = 1, .transB = rg_one_in(g, 2) };
    x = rg_one_in(g, 2) ? rg_unary(g, KILN_OP_global_average_pool, NULL, x) : x;
    x = x ? rg_unary(g, KILN_OP_flatten, &flat, x) : NULL;
    if (!x)
        return;
    int64_t k = x->type.dims[1], n = some_channels(g);
    KilnValue *operands[] = {
        x, rg_weight(g, 2, (int64_t[]){ attrs.transB ? n : k, attrs.transB ? k : n }, k),
        rg_one_in(g, 3) ? NULL : rg_weight(g, 1, &n, 3)
    };
    rg_tails(g, rg_add(g, KILN_OP_gemm, &attrs, 1, 3, operands));
}

void
rg_picture(RandomGraph *g)
{
    typedef void (*Family)(RandomGraph *, KilnValue *);
    static const Family families[] = {
        convolution, convolution,   convolution, convolution, convolution, convolution_up, pooled,
        pooled,      residual,      residual,    branches,    branches,    excited,        shuffled,
        widened,     last_channels, cut,         padded,      normalized,  spatial_mean,   head,
    };
    KilnValue *x = rg_of_rank(g, 3, 2 + SPATIAL);
    if (!x)
        return;
    if (rg_one_in(g, 12))
        rg_tails(g, x);
    else
        families[rg_below(g, G_N_ELEMENTS(families))](g, x);
}

/* --- rows --- */

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
