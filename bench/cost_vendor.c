/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cost_vendor.h"

#include "graph/type.h"

#ifdef KILN_HAS_ONEDNN

#include "backends/onednn/region.h"

#include <string.h>

enum {
    MAX_ARGS = 5,
};

typedef struct {
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t made;
    dnnl_exec_arg_t args[MAX_ARGS];
    int n;
} Primitive;

typedef struct {
    Primitive primitive;
    dnnl_stream_t stream;
} Timed;

static dnnl_memory_desc_t
picture(int channels, int extent, bool blocked)
{
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 4, (int64_t[]){ 1, channels, extent, extent });
    return kiln_onednn_md(&type, blocked ? LAYOUT_BLOCKED : LAYOUT_CHANNELS_LAST);
}

static dnnl_status_t
describe_conv(const Shape *shape, bool blocked, dnnl_convolution_desc_t *op)
{
    int out = cost_shape_result(shape), half = cost_shape_pad(shape);
    int behind = (out - 1) * shape->stride + shape->kernel - shape->extent - half;
    dnnl_memory_desc_t x = picture(shape->in, shape->extent, blocked);
    dnnl_memory_desc_t y = picture(shape->out, out, blocked), w;
    /* The first layer reads pictures as they are. */
    if (blocked && shape->in <= 4) {
        KilnType type = kiln_type_make(KILN_DTYPE_f32, 4,
                                       (int64_t[]){ 1, shape->in, shape->extent, shape->extent });
        x = kiln_onednn_plain(&type);
    }
    dnnl_dims_t grouped = { shape->in, shape->out / shape->in, 1, shape->kernel, shape->kernel };
    dnnl_dims_t plain = { shape->out, shape->in, shape->kernel, shape->kernel };
    memset(&w, 0, sizeof w);
    dnnl_memory_desc_init_by_tag(&w, shape->kind == SHAPE_DEPTHWISE ? 5 : 4,
                                 shape->kind == SHAPE_DEPTHWISE ? grouped : plain, dnnl_f32,
                                 dnnl_format_tag_any);
    return dnnl_dilated_convolution_forward_desc_init(
        op, dnnl_forward_inference, dnnl_convolution_direct, &x, &w, NULL, &y,
        (dnnl_dims_t){ shape->stride, shape->stride }, (dnnl_dims_t){ 0, 0 },
        (dnnl_dims_t){ half, half }, (dnnl_dims_t){ behind, behind });
}

/* Adds to what lies in the result, or applies an activation to it. */
static dnnl_primitive_attr_t
tail_attr(const Shape *shape)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    bool good =
        dnnl_primitive_attr_create(&attr) == dnnl_success &&
        dnnl_post_ops_create(&ops) == dnnl_success &&
        (shape->kind == SHAPE_TAIL_ADD
             ? dnnl_post_ops_append_sum(ops, 1)
             : dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_swish, 1, 0)) == dnnl_success &&
        dnnl_primitive_attr_set_post_ops(attr, ops) == dnnl_success;
    if (ops)
        dnnl_post_ops_destroy(ops);
    if (!good && attr)
        dnnl_primitive_attr_destroy(g_steal_pointer(&attr));
    return attr;
}

static dnnl_status_t
describe_transposed(const Shape *shape, bool blocked, dnnl_deconvolution_desc_t *op)
{
    dnnl_memory_desc_t x = picture(shape->in, shape->extent, blocked);
    dnnl_memory_desc_t y = picture(shape->out, cost_shape_result(shape), blocked), w;
    dnnl_dims_t dims = { shape->out, shape->in, shape->kernel, shape->kernel };
    memset(&w, 0, sizeof w);
    dnnl_memory_desc_init_by_tag(&w, 4, dims, dnnl_f32, dnnl_format_tag_any);
    return dnnl_dilated_deconvolution_forward_desc_init(
        op, dnnl_forward_inference, dnnl_deconvolution_direct, &x, &w, NULL, &y,
        (dnnl_dims_t){ shape->stride, shape->stride }, (dnnl_dims_t){ 0, 0 }, (dnnl_dims_t){ 0, 0 },
        (dnnl_dims_t){ 0, 0 });
}

static dnnl_status_t
describe_pool(const Shape *shape, bool blocked, dnnl_pooling_v2_desc_t *op)
{
    int out = cost_shape_result(shape), half = cost_shape_pad(shape);
    bool average = shape->kind == SHAPE_GLOBAL_AVERAGE_POOL;
    int kernel = average ? shape->extent : shape->kernel, before = average ? 0 : half;
    int behind = average ? 0 : (out - 1) * shape->stride + shape->kernel - shape->extent - half;
    dnnl_memory_desc_t x = picture(shape->in, shape->extent, blocked);
    dnnl_memory_desc_t y = picture(shape->in, out, blocked);
    return dnnl_pooling_v2_forward_desc_init(
        op, dnnl_forward_inference, average ? dnnl_pooling_avg_exclude_padding : dnnl_pooling_max,
        &x, &y, (dnnl_dims_t){ shape->stride, shape->stride }, (dnnl_dims_t){ kernel, kernel },
        (dnnl_dims_t){ 0, 0 }, (dnnl_dims_t){ before, before }, (dnnl_dims_t){ behind, behind });
}

static dnnl_status_t
describe_product(const Shape *shape, dnnl_matmul_desc_t *op)
{
    KilnType a = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ shape->extent, shape->in });
    KilnType b = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ shape->in, shape->out });
    KilnType y = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ shape->extent, shape->out });
    dnnl_memory_desc_t a_md = kiln_onednn_plain(&a), b_md = kiln_onednn_plain(&b);
    dnnl_memory_desc_t y_md = kiln_onednn_plain(&y);
    b_md.format_kind = dnnl_format_kind_any;
    return dnnl_matmul_desc_init(op, &a_md, &b_md, NULL, &y_md);
}

static dnnl_memory_desc_t
rows_md(int rows, int columns)
{
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ rows, columns });
    return kiln_onednn_plain(&type);
}

static dnnl_status_t
describe_lstm(const Shape *shape, dnnl_rnn_desc_t *op)
{
    dnnl_memory_desc_t x, y, bias, w[2];
    memset(&x, 0, sizeof x);
    y = bias = w[0] = w[1] = x;
    for (int i = 0; i < 2; i++)
        dnnl_memory_desc_init_by_tag(
            &w[i], 5, (dnnl_dims_t){ 1, 1, i ? shape->out : shape->in, 4, shape->out }, dnnl_f32,
            dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&x, 3, (dnnl_dims_t){ shape->extent, 1, shape->in }, dnnl_f32,
                                 dnnl_tnc);
    dnnl_memory_desc_init_by_tag(&y, 3, (dnnl_dims_t){ shape->extent, 1, shape->out }, dnnl_f32,
                                 dnnl_tnc);
    dnnl_memory_desc_init_by_tag(&bias, 4, (dnnl_dims_t){ 1, 1, 4, shape->out }, dnnl_f32,
                                 dnnl_ldgo);
    return dnnl_lstm_forward_desc_init(op, dnnl_forward_inference, dnnl_unidirectional_left2right,
                                       &x, NULL, NULL, &w[0], &w[1], &bias, &y, NULL, NULL, 0);
}

typedef union {
    dnnl_convolution_desc_t conv;
    dnnl_deconvolution_desc_t transposed;
    dnnl_pooling_v2_desc_t pool;
    dnnl_matmul_desc_t product;
    dnnl_softmax_v2_desc_t softmax;
    dnnl_layer_normalization_desc_t norm;
    dnnl_reduction_desc_t reduction;
    dnnl_rnn_desc_t lstm;
    dnnl_binary_desc_t bias;
} Operation;

/* Of what has no pictures. */
static dnnl_status_t
describe_rows(const Shape *shape, Operation *op)
{
    dnnl_memory_desc_t x = rows_md(shape->extent, shape->in), y = rows_md(shape->extent, 1);
    switch (shape->kind) {
    case SHAPE_SOFTMAX:
        return dnnl_softmax_v2_forward_desc_init(&op->softmax, dnnl_forward_inference,
                                                 dnnl_softmax_accurate, &x, &x, 1);
    case SHAPE_LAYER_NORMALIZATION:
        return dnnl_layer_normalization_forward_desc_init(
            &op->norm, dnnl_forward_inference, &x, NULL, 1e-5f, dnnl_use_scale | dnnl_use_shift);
    case SHAPE_REDUCTION:
        return dnnl_reduction_desc_init(&op->reduction, dnnl_reduction_mean, &x, &y, 0, 0);
    case SHAPE_LSTM:
        return describe_lstm(shape, &op->lstm);
    default:
        return describe_product(shape, &op->product);
    }
}

static dnnl_status_t
describe_bias(const Shape *shape, bool blocked, dnnl_binary_desc_t *op)
{
    dnnl_memory_desc_t x = picture(shape->in, shape->extent, blocked);
    dnnl_memory_desc_t row = picture(shape->in, 1, blocked);
    return dnnl_binary_desc_init(op, dnnl_binary_add, &x, &row, &x);
}

/* NULL of what the library lacks, or is not asked for. */
static dnnl_primitive_desc_t
choose_operation(const Shape *shape, bool blocked, bool bare)
{
    Operation op;
    dnnl_status_t status = dnnl_unimplemented;
    const char *name;
    dnnl_primitive_attr_t attr = NULL;
    switch (shape->kind) {
    case SHAPE_TAIL_ADD:
    case SHAPE_TAIL_SWISH:
        attr = bare ? NULL : tail_attr(shape);
        status = bare || attr ? describe_conv(shape, blocked, &op.conv) : dnnl_out_of_memory;
        break;
    case SHAPE_CONV:
    case SHAPE_DEPTHWISE:
    case SHAPE_FAR_WEIGHTS:
        status = describe_conv(shape, blocked, &op.conv);
        break;
    case SHAPE_CONV_TRANSPOSE:
        status = describe_transposed(shape, blocked, &op.transposed);
        break;
    case SHAPE_MAX_POOL:
    case SHAPE_GLOBAL_AVERAGE_POOL:
        status = describe_pool(shape, blocked, &op.pool);
        break;
    case SHAPE_BIAS:
        status = describe_bias(shape, blocked, &op.bias);
        break;
    default:
        if (!cost_shape_has_layouts(shape->kind))
            status = describe_rows(shape, &op);
    }
    dnnl_primitive_desc_t pd = status == dnnl_success ? kiln_onednn_choose(&op, attr, &name) : NULL;
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return pd;
}

static dnnl_primitive_desc_t
choose(const Shape *shape, bool blocked, bool bare)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_engine_t engine = kiln_onednn_engine();
    dnnl_memory_desc_t whole = picture(shape->in, shape->extent, blocked);
    dnnl_status_t status;
    if (shape->kind == SHAPE_REORDER) {
        KilnType type = kiln_type_make(KILN_DTYPE_f32, 4,
                                       (int64_t[]){ 1, shape->in, shape->extent, shape->extent });
        dnnl_memory_desc_t from = kiln_onednn_plain(&type);
        status = dnnl_reorder_primitive_desc_create(&pd, &from, engine, &whole, engine, NULL);
    } else if (shape->kind == SHAPE_CONCAT) {
        dnnl_memory_desc_t half = picture(shape->in / 2, shape->extent, blocked);
        status = dnnl_concat_primitive_desc_create(
            &pd, &whole, 2, 1, (dnnl_memory_desc_t[]){ half, half }, NULL, engine);
    } else {
        return choose_operation(shape, blocked, bare);
    }
    return status == dnnl_success && kiln_onednn_implementation(pd, "this", NULL) ? pd : NULL;
}

/* NULL where there is no memory for it. */
static dnnl_memory_t
zeros(const dnnl_memory_desc_t *md)
{
    dnnl_memory_t memory = NULL;
    if (dnnl_memory_create(&memory, md, kiln_onednn_engine(), DNNL_MEMORY_ALLOCATE) != dnnl_success)
        return NULL;
    void *data = NULL;
    dnnl_memory_get_data_handle(memory, &data);
    memset(data, 0, dnnl_memory_desc_get_size(md));
    return memory;
}

static bool
add_arg(Primitive *primitive, int arg, dnnl_query_t what, int i)
{
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(primitive->pd, what, i);
    if (!md || !dnnl_memory_desc_get_size(md))
        return true;
    dnnl_memory_t memory = zeros(md);
    if (memory)
        primitive->args[primitive->n++] = (dnnl_exec_arg_t){ arg, memory };
    return memory != NULL;
}

typedef struct {
    int arg;
    dnnl_query_t what;
    int index;
} Argument;

static bool
add_args(const Shape *shape, Primitive *one)
{
    static const Argument usual[MAX_ARGS] = { { DNNL_ARG_SRC, dnnl_query_src_md, 0 },
                                              { DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0 },
                                              { DNNL_ARG_DST, dnnl_query_dst_md, 0 } };
    static const Argument norm[MAX_ARGS] = { { DNNL_ARG_SRC, dnnl_query_src_md, 0 },
                                             { DNNL_ARG_SCALE, dnnl_query_weights_md, 0 },
                                             { DNNL_ARG_SHIFT, dnnl_query_weights_md, 0 },
                                             { DNNL_ARG_DST, dnnl_query_dst_md, 0 } };
    static const Argument lstm[MAX_ARGS] = { { DNNL_ARG_SRC_LAYER, dnnl_query_src_md, 0 },
                                             { DNNL_ARG_WEIGHTS_LAYER, dnnl_query_weights_md, 0 },
                                             { DNNL_ARG_WEIGHTS_ITER, dnnl_query_weights_md, 1 },
                                             { DNNL_ARG_BIAS, dnnl_query_weights_md, 2 },
                                             { DNNL_ARG_DST_LAYER, dnnl_query_dst_md, 0 } };
    static const Argument binary[MAX_ARGS] = { { DNNL_ARG_SRC_0, dnnl_query_src_md, 0 },
                                               { DNNL_ARG_SRC_1, dnnl_query_src_md, 1 },
                                               { DNNL_ARG_DST, dnnl_query_dst_md, 0 } };
    static const Argument concat[MAX_ARGS] = { { DNNL_ARG_MULTIPLE_SRC, dnnl_query_src_md, 0 },
                                               { DNNL_ARG_MULTIPLE_SRC + 1, dnnl_query_src_md, 1 },
                                               { DNNL_ARG_DST, dnnl_query_dst_md, 0 } };
    const Argument *args = shape->kind == SHAPE_LSTM                  ? lstm
                           : shape->kind == SHAPE_LAYER_NORMALIZATION ? norm
                           : shape->kind == SHAPE_BIAS                ? binary
                           : shape->kind == SHAPE_CONCAT              ? concat
                                                                      : usual;
    bool good = true;
    for (int i = 0; good && i < MAX_ARGS && args[i].arg; i++)
        good = add_arg(one, args[i].arg, args[i].what, args[i].index);
    return good;
}

static bool
open_primitive(const Shape *shape, bool blocked, bool bare, Primitive *out)
{
    *out = (Primitive){ .pd = choose(shape, blocked, bare) };
    return out->pd && add_args(shape, out) &&
           dnnl_primitive_create(&out->made, out->pd) == dnnl_success;
}

static void
close_primitive(Primitive *primitive)
{
    for (int i = 0; i < primitive->n; i++)
        dnnl_memory_destroy(primitive->args[i].memory);
    if (primitive->made)
        dnnl_primitive_destroy(primitive->made);
    if (primitive->pd)
        dnnl_primitive_desc_destroy(primitive->pd);
}

/* A run; false where it failed. */
static bool
run_primitive(void *data)
{
    const Timed *timed = data;
    const Primitive *primitive = &timed->primitive;
    return dnnl_primitive_execute(primitive->made, timed->stream, primitive->n, primitive->args) ==
               dnnl_success &&
           dnnl_stream_wait(timed->stream) == dnnl_success;
}

double
cost_vendor_us(const Shape *shape, bool blocked, double min_time)
{
    if (!kiln_onednn_engine())
        return 0;
    int before = kiln_onednn_set_threads(1), n = cost_shape_is_difference(shape->kind) ? 2 : 1;
    dnnl_stream_t stream = NULL;
    Timed timed[2] = { { .stream = NULL }, { .stream = NULL } };
    bool good =
        dnnl_stream_create(&stream, kiln_onednn_engine(), dnnl_stream_in_order) == dnnl_success;
    for (int i = 0; good && i < n; i++) {
        timed[i].stream = stream;
        good = open_primitive(shape, blocked, i == 1, &timed[i].primitive);
    }
    double us = 0;
    if (good)
        us = cost_shape_time(shape, run_primitive, &timed[0], n > 1 ? &timed[1] : NULL, min_time);
    for (int i = 0; i < n; i++)
        close_primitive(&timed[i].primitive);
    if (stream)
        dnnl_stream_destroy(stream);
    kiln_onednn_set_threads(before);
    return us;
}

#else

double
cost_vendor_us(const Shape *shape, bool blocked, double min_time)
{
    (void)shape;
    (void)blocked;
    (void)min_time;
    return 0;
}

#endif
