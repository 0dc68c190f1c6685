/* SPDX-License-Identifier: Apache-2.0 */
/* The geometry of sliding windows: kernel, strides, dilations, pads and result dims of convolutions
 * and poolings, as the ONNX specification defines them. Inference and lowering both ask here, so
 * that they cannot disagree. */
#include "graph/infer/common.h"
#include "graph/infer/infer.h"
#include "graph/op/conv.h"
#include "graph/op/pool.h"
#include "graph/op/qproduct.h"

enum {
    /* Attributes beyond this make no window over any tensor; below it nothing overflows. */
    ATTRIBUTE_MAX = 1 << 30
};

typedef enum {
    PAD_EXPLICIT,
    PAD_VALID,
    PAD_SAME_UPPER, /* the odd element of padding goes to the end */
    PAD_SAME_LOWER,
} PadMode;

/* What the node says, before geometry. */
typedef struct {
    PadMode mode;
    bool ceil;
    bool transposed;
    KilnInts output_shape;
} WindowRule;

static bool
is_same(const WindowRule *rule)
{
    return rule->mode == PAD_SAME_UPPER || rule->mode == PAD_SAME_LOWER;
}

static gboolean
check_list(const char *name, KilnInts list, uint32_t expected, int64_t min, GError **error)
{
    if (list.n && list.n != expected)
        return kiln_throw(error, KILN_ERROR_SHAPE, "%s: expected %u numbers, found %u", name,
                          expected, list.n);
    for (uint32_t i = 0; i < list.n; i++) {
        if (list.v[i] < min || list.v[i] > ATTRIBUTE_MAX)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "%s: expected numbers from %" G_GINT64_FORMAT
                              " to %d, found %" G_GINT64_FORMAT,
                              name, min, ATTRIBUTE_MAX, list.v[i]);
    }
    return TRUE;
}

static gboolean
read_rule(const KilnNode *node, KilnInts pads, WindowRule *rule, GError **error)
{
    const char *const *field = kiln_infer_attr(node, "auto_pad", KILN_ATTR_STRING);
    const char *mode = field ? *field : "NOTSET";
    if (!kiln_infer_one_of("auto_pad", mode, "NOTSET VALID SAME_UPPER SAME_LOWER", error))
        return FALSE;
    rule->mode = g_str_equal(mode, "NOTSET")       ? PAD_EXPLICIT
                 : g_str_equal(mode, "VALID")      ? PAD_VALID
                 : g_str_equal(mode, "SAME_UPPER") ? PAD_SAME_UPPER
                                                   : PAD_SAME_LOWER;
    rule->ceil = kiln_infer_attr_bool(node, "ceil_mode", false);
    rule->transposed = node->op == KILN_OP_conv_transpose || node->op == KILN_OP_max_unpool;
    rule->output_shape = kiln_infer_attr_ints(node, "output_shape");
    for (uint32_t i = 0; rule->mode != PAD_EXPLICIT && i < pads.n; i++) {
        if (pads.v[i])
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "pads: expected none beside auto_pad %s, found %" G_GINT64_FORMAT,
                              mode, pads.v[i]);
    }
    return TRUE;
}

/* The operand that holds the kernel of a convolution; NULL for pooling. */
static const KilnType *
weights_of(const KilnNode *node)
{
    switch (node->op) {
    case KILN_OP_conv:
    case KILN_OP_conv_transpose:
    case KILN_OP_conv_integer:
    case KILN_OP_deform_conv:
        return &kiln_node_operand(node, 1)->type;
    case KILN_OP_qlinear_conv:
        return &kiln_node_operand(node, 3)->type;
    default:
        return NULL;
    }
}

static gboolean
resolve_kernel(const KilnNode *node, KilnWindow *out, GError **error)
{
    const KilnType *weights = weights_of(node);
    KilnInts kernel = kiln_infer_attr_ints(node, "kernel_shape");
    if (!weights && !kernel.n)
        return kiln_throw(error, KILN_ERROR_SHAPE, "kernel_shape: expected %d numbers, found none",
                          out->rank);
    for (int i = 0; i < out->rank; i++) {
        int64_t own = weights && weights->rank > 0 ? weights->dims[i + 2] : KILN_DIM_UNKNOWN;
        out->kernel[i] = kiln_ints_at(kernel, (uint32_t)i, own);
        if (own >= 0 && own != out->kernel[i])
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "kernel_shape: expected %" G_GINT64_FORMAT
                              " as the weights' dim %d, found %" G_GINT64_FORMAT,
                              own, i + 2, out->kernel[i]);
        if (out->kernel[i] == 0 || out->kernel[i] > ATTRIBUTE_MAX)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "kernel dim %d: expected a number from 1 to %d, "
                              "found %" G_GINT64_FORMAT,
                              i, ATTRIBUTE_MAX, out->kernel[i]);
    }
    return TRUE;
}

static gboolean
resolve_lists(const KilnNode *node, KilnWindow *out, KilnInts pads, GError **error)
{
    uint32_t rank = (uint32_t)out->rank;
    KilnInts strides = kiln_infer_attr_ints(node, "strides");
    KilnInts dilations = kiln_infer_attr_ints(node, "dilations");
    KilnInts extra = kiln_infer_attr_ints(node, "output_padding");
    KilnInts kernel = kiln_infer_attr_ints(node, "kernel_shape");
    KilnInts shape = kiln_infer_attr_ints(node, "output_shape");
    if (!check_list("strides", strides, rank, 1, error) ||
        !check_list("dilations", dilations, rank, 1, error) ||
        !check_list("pads", pads, 2 * rank, 0, error) ||
        !check_list("output_padding", extra, rank, 0, error) ||
        !check_list("kernel_shape", kernel, rank, 1, error) ||
        !check_list("output_shape", shape, rank, 0, error))
        return FALSE;
    for (uint32_t i = 0; i < rank; i++) {
        out->strides[i] = kiln_ints_at(strides, i, 1);
        out->dilations[i] = kiln_ints_at(dilations, i, 1);
        out->pads_begin[i] = kiln_ints_at(pads, i, 0);
        out->pads_end[i] = kiln_ints_at(pads, rank + i, 0);
        out->output_padding[i] = kiln_ints_at(extra, i, 0);
        if (out->output_padding[i] >= MAX(out->strides[i], out->dilations[i]))
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "output_padding: expected less than the stride or dilation of dim "
                              "%u, found %" G_GINT64_FORMAT,
                              i, out->output_padding[i]);
    }
    return TRUE;
}

/* --- dims --- */

static gboolean
set_out(KilnWindow *window, int i, KilnWide size, GError **error)
{
    if (size < 0 || size > INT64_MAX)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "spatial dim %d: expected a result of 0 to 2^63-1 elements, found %s", i,
                          size < 0 ? "less" : "more");
    window->out[i] = (int64_t)size;
    return TRUE;
}

static void
distribute(KilnWindow *window, int i, KilnWide total, bool begin_first)
{
    int64_t larger = (int64_t)(total - total / 2), smaller = (int64_t)(total / 2);
    window->pads_begin[i] = begin_first ? larger : smaller;
    window->pads_end[i] = begin_first ? smaller : larger;
}

/* The padding of SAME along @size, an open extent: the last window begins at the last multiple of
 * the stride. */
static void
pad_same_open(KilnWindow *window, int i, const KilnDim *size, const WindowRule *rule)
{
    int64_t reach = (window->kernel[i] - 1) * window->dilations[i] + 1, number;
    if (!size || window->kernel[i] < 0)
        return;
    KilnDimTable *table = kiln_dim_table_of(size);
    const KilnDim *stride = kiln_dim_number(table, window->strides[i]);
    const KilnDim *steps =
        kiln_dim_sub(table, kiln_dim_ceil(table, size, stride), kiln_dim_number(table, 1));
    const KilnDim *end =
        kiln_dim_add(table, kiln_dim_mul(table, steps, stride), kiln_dim_number(table, reach));
    const KilnDim *total =
        kiln_dim_max(table, kiln_dim_sub(table, end, size), kiln_dim_number(table, 0));
    if (!total || kiln_dim_is_number(total, &number))
        return;
    const KilnDim *smaller = kiln_dim_floor(table, total, kiln_dim_number(table, 2));
    const KilnDim *larger = kiln_dim_sub(table, total, smaller);
    window->open_begin[i] = rule->mode == PAD_SAME_LOWER ? larger : smaller;
    window->open_end[i] = rule->mode == PAD_SAME_LOWER ? smaller : larger;
}

/* The result dim of a window that slides along an extent without a number. */
static void
slide_open(KilnWindow *window, int i, const KilnDim *size, const WindowRule *rule)
{
    bool same = is_same(rule);
    if (!size || (window->kernel[i] < 0 && !same))
        return;
    KilnDimTable *table = kiln_dim_table_of(size);
    const KilnDim *stride = kiln_dim_number(table, window->strides[i]);
    int64_t reach = (window->kernel[i] - 1) * window->dilations[i] + 1; /* attributes are small */
    if (same) {
        window->open_out[i] = kiln_dim_ceil(table, size, stride);
        return;
    }
    const KilnDim *filled =
        kiln_dim_add(table, size, kiln_dim_number(table, window->pads_begin[i]));
    const KilnDim *room =
        kiln_dim_add(table, filled, kiln_dim_number(table, window->pads_end[i] - reach));
    const KilnDim *steps = kiln_dim_floor(table, room, stride);
    if (rule->ceil && rule->mode == PAD_EXPLICIT && window->strides[i] > 1) {
        /* With as much padding as the window reaches, what rounding does is not written down. */
        if (window->pads_end[i] >= reach)
            return;
        /* The last window begins in the data or in the padding before it. */
        const KilnDim *last =
            kiln_dim_sub(table, kiln_dim_ceil(table, filled, stride), kiln_dim_number(table, 1));
        steps = kiln_dim_min(table, kiln_dim_ceil(table, room, stride), last);
    }
    window->open_out[i] = kiln_dim_add(table, steps, kiln_dim_number(table, 1));
}

/* The same of a window that spreads. */
static void
spread_open(KilnWindow *window, int i, const KilnDim *size, const WindowRule *rule)
{
    bool same = is_same(rule);
    if (!size || rule->output_shape.n || (window->kernel[i] < 0 && !same))
        return;
    KilnDimTable *table = kiln_dim_table_of(size);
    const KilnDim *scaled = kiln_dim_scale(table, size, window->strides[i]);
    int64_t more = window->output_padding[i] + (window->kernel[i] - 1) * window->dilations[i] + 1 -
                   window->strides[i] - window->pads_begin[i] - window->pads_end[i];
    window->open_out[i] = same ? scaled : kiln_dim_add(table, scaled, kiln_dim_number(table, more));
}

static gboolean
slide_dim(KilnWindow *window, int i, int64_t size, const WindowRule *rule, GError **error)
{
    KilnWide stride = window->strides[i];
    bool same = is_same(rule);
    KilnWide reach = (KilnWide)(window->kernel[i] - 1) * window->dilations[i] + 1;
    if (same) {
        if (size >= 0)
            window->out[i] = size / window->strides[i] + (size % window->strides[i] != 0);
        if (window->kernel[i] < 0 || (size < 0 && stride > 1)) {
            window->pads_begin[i] = window->pads_end[i] = KILN_DIM_UNKNOWN;
            return TRUE;
        }
        KilnWide total =
            size < 0 ? reach - 1 : ((KilnWide)window->out[i] - 1) * stride + reach - size;
        distribute(window, i, MAX(total, 0), rule->mode == PAD_SAME_LOWER);
        return TRUE;
    }
    if (size < 0 || window->kernel[i] < 0)
        return TRUE;
    KilnWide begin = window->pads_begin[i];
    KilnWide room = size + begin + window->pads_end[i] - reach;
    /* What pads of SAME leave of nothing. */
    if (size == 0 && room < 0 && room >= -stride)
        return set_out(window, i, 0, error);
    if (room < 0)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "spatial dim %d: expected %" G_GINT64_FORMAT
                          " elements or more with padding, found %" G_GINT64_FORMAT,
                          i, (int64_t)reach, (int64_t)(room + reach));
    KilnWide steps = room / stride;
    if (rule->ceil && rule->mode == PAD_EXPLICIT && room % stride) {
        /* A window that would begin beyond the data and the padding before it is left out. */
        steps += (steps + 1) * stride < size + begin;
    }
    return set_out(window, i, steps + 1, error);
}

static gboolean
spread_dim(KilnWindow *window, int i, int64_t size, const WindowRule *rule, GError **error)
{
    KilnWide stride = window->strides[i];
    bool same = is_same(rule);
    if (rule->output_shape.n)
        window->out[i] = rule->output_shape.v[i];
    if (size < 0 || window->kernel[i] < 0)
        return TRUE;
    KilnWide full = stride * ((KilnWide)size - 1) + window->output_padding[i] +
                    (KilnWide)(window->kernel[i] - 1) * window->dilations[i] + 1;
    if (!rule->output_shape.n && !same)
        return set_out(window, i, full - window->pads_begin[i] - window->pads_end[i], error);
    if (!rule->output_shape.n && !set_out(window, i, size * stride, error))
        return FALSE;
    if (full > INT64_MAX)
        return set_out(window, i, full, error);
    /* Padding follows from the size that is wanted; what the windows do not reach is at the end. */
    KilnWide total = full - window->out[i];
    window->pads_begin[i] = 0;
    window->pads_end[i] = (int64_t)total;
    if (total > 0)
        distribute(window, i, total, rule->mode != PAD_SAME_UPPER);
    return TRUE;
}

static int
spatial_rank(const KilnNode *node)
{
    const KilnType *x = &kiln_node_operand(node, 0)->type, *weights = weights_of(node);
    KilnInts kernel = kiln_infer_attr_ints(node, "kernel_shape");
    if (x->rank >= 0)
        return x->rank - 2;
    if (weights && weights->rank >= 0)
        return weights->rank - 2;
    return kernel.n ? (int)kernel.n : KILN_RANK_UNKNOWN;
}

gboolean
kiln_window_resolve(const KilnNode *node, KilnWindow *out, GError **error)
{
    const KilnType *x = &kiln_node_operand(node, 0)->type, *weights = weights_of(node);
    KilnInts pads = kiln_infer_attr_ints(node, "pads");
    WindowRule rule;
    *out = (KilnWindow){ .rank = spatial_rank(node) };
    for (int i = 0; i < KILN_MAX_RANK; i++)
        out->out[i] = KILN_DIM_UNKNOWN;
    if (!read_rule(node, pads, &rule, error))
        return FALSE;
    if (x->rank >= 0 && x->rank < 3)
        return kiln_infer_throw_shape(node, 0, error, "rank 3 or more");
    if (weights && weights->rank >= 0 && weights->rank < 3)
        return kiln_throw(error, KILN_ERROR_SHAPE, "expected weights of rank 3 or more, found %d",
                          weights->rank);
    if (out->rank == KILN_RANK_UNKNOWN)
        return TRUE;
    if (out->rank < 1 || out->rank > KILN_MAX_RANK - 2)
        return kiln_throw(error, KILN_ERROR_SHAPE, "expected 1 to %d spatial dims, found %d",
                          KILN_MAX_RANK - 2, out->rank);
    if (weights && weights->rank >= 0 && weights->rank != out->rank + 2)
        return kiln_throw(error, KILN_ERROR_SHAPE, "expected weights of rank %d, found rank %d",
                          out->rank + 2, weights->rank);
    if (!resolve_lists(node, out, pads, error) || !resolve_kernel(node, out, error))
        return FALSE;
    for (int i = 0; i < out->rank; i++) {
        int64_t size = x->rank < 0 ? KILN_DIM_UNKNOWN : x->dims[i + 2];
        if (!(rule.transposed ? spread_dim(out, i, size, &rule, error)
                              : slide_dim(out, i, size, &rule, error)))
            return FALSE;
        if (size < 0 && x->rank >= 0)
            (rule.transposed ? spread_open : slide_open)(out, i, x->open[i + 2], &rule);
        if (!rule.transposed && is_same(&rule) && x->rank >= 0)
            pad_same_open(out, i, x->open[i + 2], &rule);
    }
    return TRUE;
}
