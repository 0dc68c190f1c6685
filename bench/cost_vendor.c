/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cost_vendor.h"

#ifdef KILN_HAS_ONEDNN

#include "backends/onednn/region.h"
#include "bench/bench_stats.h"

#include <math.h>
#include <string.h>

enum {
    MIN_ROUNDS = 7,
    MAX_ARGS = 5,
};

typedef struct {
    dnnl_primitive_desc_t pd;
    dnnl_exec_arg_t args[MAX_ARGS];
    int n;
} Primitive;

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

static dnnl_primitive_desc_t
choose(const Shape *shape, bool blocked)
{
    Operation op;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_engine_t engine = kiln_onednn_engine();
    const char *name;
    dnnl_status_t status;
    if (shape->kind == SHAPE_REORDER) {
        KilnType type = kiln_type_make(KILN_DTYPE_f32, 4,
                                       (int64_t[]){ 1, shape->in, shape->extent, shape->extent });
        dnnl_memory_desc_t from = kiln_onednn_plain(&type);
        dnnl_memory_desc_t to = picture(shape->in, shape->extent, blocked);
        status = dnnl_reorder_primitive_desc_create(&pd, &from, engine, &to, engine, NULL);
        return status == dnnl_success ? pd : NULL;
    }
    if (shape->kind == SHAPE_CONV || shape->kind == SHAPE_DEPTHWISE)
        status = describe_conv(shape, blocked, &op.conv);
    else if (shape->kind == SHAPE_CONV_TRANSPOSE)
        status = describe_transposed(shape, blocked, &op.transposed);
    else if (!cost_shape_has_layouts(shape->kind))
        status = describe_rows(shape, &op);
    else
        status = describe_pool(shape, blocked, &op.pool);
    return status == dnnl_success ? kiln_onednn_choose(&op, NULL, &name) : NULL;
}

static bool
add_arg(Primitive *primitive, int arg, dnnl_query_t what, int i)
{
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(primitive->pd, what, i);
    dnnl_memory_t memory = NULL;
    if (!md || !dnnl_memory_desc_get_size(md))
        return true;
    if (dnnl_memory_create(&memory, md, kiln_onednn_engine(), DNNL_MEMORY_ALLOCATE) != dnnl_success)
        return false;
    void *data = NULL;
    dnnl_memory_get_data_handle(memory, &data);
    memset(data, 0, dnnl_memory_desc_get_size(md));
    primitive->args[primitive->n++] = (dnnl_exec_arg_t){ arg, memory };
    return true;
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
    const Argument *args = shape->kind == SHAPE_LSTM                  ? lstm
                           : shape->kind == SHAPE_LAYER_NORMALIZATION ? norm
                                                                      : usual;
    bool good = true;
    for (int i = 0; good && i < MAX_ARGS && args[i].arg; i++)
        good = add_arg(one, args[i].arg, args[i].what, args[i].index);
    return good;
}

static double
time_of(const Primitive *primitive, double min_time)
{
    dnnl_primitive_t made = NULL;
    dnnl_stream_t stream = NULL;
    double best = INFINITY;
    bool good =
        dnnl_primitive_create(&made, primitive->pd) == dnnl_success &&
        dnnl_stream_create(&stream, kiln_onednn_engine(), dnnl_stream_in_order) == dnnl_success;
    double end = bench_cpu_now() + min_time;
    for (int n = 0; good && (n < MIN_ROUNDS || bench_cpu_now() < end); n++) {
        double begin = bench_now();
        good =
            dnnl_primitive_execute(made, stream, primitive->n, primitive->args) == dnnl_success &&
            dnnl_stream_wait(stream) == dnnl_success;
        best = MIN(best, bench_now() - begin);
    }
    if (made)
        dnnl_primitive_destroy(made);
    if (stream)
        dnnl_stream_destroy(stream);
    return good ? best * 1e6 : 0;
}

double
cost_vendor_us(const Shape *shape, bool blocked, double min_time)
{
    if (!kiln_onednn_engine())
        return 0;
    int before = kiln_onednn_set_threads(1);
    Primitive one = { .pd = choose(shape, blocked) };
    bool good = one.pd && add_args(shape, &one);
    double us = good ? time_of(&one, min_time) : 0;
    for (int i = 0; i < one.n; i++)
        dnnl_memory_destroy(one.args[i].memory);
    if (one.pd)
        dnnl_primitive_desc_destroy(one.pd);
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
