/* SPDX-License-Identifier: Apache-2.0 */
/* MoE and QMoE of com.microsoft: a router picks k of the experts for each row, and weighs them.
 * Here all experts compute all rows, in two products for all of them. Those that a row does not
 * use have the weight 0:
 *
 *   shares[T, E]  = softmax of the router, but 0 for all but the k greatest
 *   h[T, E, I]    = activation(x[T, H] . transpose(w1[E * N, H]) + b1) * shares
 *   y[T, H]       = h[T, E * I] . w2[E * I, H] + shares . b2[E, H]
 *
 * N is I, or twice that where a gate and what it gates stand in one row. */
#include "graph/graph.h"
#include "graph/node.h"
#include "graph/onnx/contrib/bits.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/activation.h"
#include "graph/op/bounds.h"
#include "graph/op/gather.h"
#include "graph/op/reduce.h"
#include "graph/op/softmax.h"

#include <math.h>
#include <string.h>

/* A layer of all experts. */
typedef struct {
    KilnValue *w; /* [experts, out, in]; NULL: there is none */
    KilnValue *b; /* [experts, out]; NULL: none */
} Layer;

typedef struct {
    KilnOnnxSteps s;
    KilnOnnxCall *call;
    KilnDType dtype;
    int64_t k, normalizes, fusion;
    const char *activation;
    float alpha, beta, limit;      /* of swiglu */
    int64_t experts, inner, outer; /* the last two: numbers between the layers, and in a row */
    Layer first, second, third;
    KilnValue *x;      /* [rows, outer] */
    KilnValue *shares; /* [rows, experts] */
} Experts;

/* --- attributes --- */

static gboolean
read_attrs(Experts *e, GError **error)
{
    KilnOnnxCall *call = e->call;
    int64_t mixer = 0, after = 0;
    e->k = 1;
    e->activation = "relu";
    e->alpha = 1;
    e->limit = INFINITY;
    if (!kiln_onnx_take_int(call, "k", &e->k, error) ||
        !kiln_onnx_take_int(call, "normalize_routing_weights", &e->normalizes, error) ||
        !kiln_onnx_take_int(call, "swiglu_fusion", &e->fusion, error) ||
        !kiln_onnx_take_int(call, "use_sparse_mixer", &mixer, error) ||
        !kiln_onnx_take_int(call, "swiglu_limit_after_activation", &after, error) ||
        !kiln_onnx_take_text(call, "activation_type", &e->activation, error) ||
        !kiln_onnx_take_float(call, "activation_alpha", &e->alpha, error) ||
        !kiln_onnx_take_float(call, "activation_beta", &e->beta, error) ||
        !kiln_onnx_take_float(call, "swiglu_limit", &e->limit, error))
        return FALSE;
    if (mixer || after)
        return kiln_onnx_unsupported(call, error, "%s",
                                     mixer ? "use_sparse_mixer" : "swiglu_limit_after_activation");
    return (e->fusion >= 0 && e->fusion <= 2) ||
           kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "swiglu_fusion: expected 0 to 2, found %" G_GINT64_FORMAT, e->fusion);
}

static bool
is_fused(const Experts *e)
{
    return strcmp(e->activation, "swiglu") == 0 && !e->third.w;
}

/* The sizes, from the weights, which must fit each other. */
static gboolean
find_sizes(Experts *e, GError **error)
{
    const KilnOnnxCall *call = e->call;
    const KilnType *w1 = &e->first.w->type, *w2 = &e->second.w->type;
    if (!kiln_type_is_static(w1) || !kiln_type_is_static(w2) || w1->rank != 3 || w2->rank != 3)
        return kiln_onnx_unsupported(call, error, "weights of unknown dims");
    e->experts = w1->dims[0];
    e->outer = w1->dims[2];
    e->inner = w2->dims[2];
    if (e->experts < 1 || e->outer < 1 || e->inner < 1 || e->inner > INT32_MAX)
        return kiln_onnx_unsupported(call, error,
                                     "layers of %" G_GINT64_FORMAT " experts, of "
                                     "%" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " numbers",
                                     e->experts, e->inner, e->outer);
    const int64_t rows = is_fused(e) ? 2 * e->inner : e->inner;
    if (w2->dims[0] != e->experts || w1->dims[1] != rows || w2->dims[1] != e->outer)
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "expected weights of [%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT
                               ",%" G_GINT64_FORMAT "] for the second layer, found others",
                               e->experts, e->outer, is_fused(e) ? w1->dims[1] / 2 : w1->dims[1]);
    if (e->k < 1 || e->k > e->experts)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "k: expected 1 to %" G_GINT64_FORMAT
                               " experts, found %" G_GINT64_FORMAT,
                               e->experts, e->k);
    return TRUE;
}

/* --- the router --- */

/* The @k greatest of each row, and where they are. NULL: it failed. */
static KilnValue *
greatest(const Experts *e, KilnValue *shares)
{
    const KilnAttrs_top_k attrs = { .axis = -1, .largest = true, .sorted = true };
    g_autofree char *name = g_strdup_printf("%s.best", e->call->base);
    KilnValue *operands[] = { shares, kiln_onnx_ints(e->call, "k", &e->k, 1) };
    const KilnNodeSpec spec = { .op = KILN_OP_top_k,
                                .operands = operands,
                                .n_operands = 2,
                                .n_results = 2,
                                .attrs = &attrs,
                                .result_name = name };
    KilnNode *node = shares ? kiln_node_new(e->call->function, &spec, e->s.error) : NULL;
    return node ? node->results : NULL;
}

/* The shares of the experts of each row, from the router's operand. Operand @weights, if there is
 * one, has them; then the router only picks. */
static gboolean
find_shares(Experts *e, uint32_t weights)
{
    const KilnOnnxSteps *s = &e->s;
    const KilnAttrs_softmax last = { .axis = -1 };
    const KilnAttrs_gather_elements along = { .axis = 1 };
    const KilnAttrs_scatter_elements back = { .axis = 1, .reduction = "none" };
    const KilnAttrs_reduce_sum keep = { .keepdims = true };
    KilnValue *given = kiln_onnx_operand(e->call, weights);
    KilnValue *all = kiln_onnx_step1(s, KILN_OP_softmax, &last, e->call->operands[1]);
    KilnValue *best = greatest(e, all);
    if (!best)
        return FALSE;
    KilnValue *values =
        given ? kiln_onnx_step2(s, KILN_OP_gather_elements, &along, given, &best[1]) : &best[0];
    if (e->normalizes) {
        KilnValue *sum = kiln_onnx_step2(s, KILN_OP_reduce_sum, &keep, values,
                                         kiln_onnx_ints(e->call, "axes", (int64_t[]){ 1 }, 1));
        values = kiln_onnx_step_div(s, values, sum);
    }
    e->shares = kiln_onnx_step3(s, KILN_OP_scatter_elements, &back,
                                kiln_onnx_step_mul_number(s, all, 0), &best[1], values);
    return e->shares != NULL;
}

/* --- experts --- */

/* What @layer makes of the rows: [rows, experts, out]. */
static KilnValue *
layer_of(const Experts *e, const Layer *layer)
{
    static const int64_t swap[] = { 1, 0 };
    const KilnOnnxSteps *s = &e->s;
    const int64_t out = layer->w->type.dims[1];
    const KilnOnnxExtent flat[] = { KILN_ONNX_NUMBER(e->experts * out),
                                    KILN_ONNX_NUMBER(e->outer) };
    const KilnOnnxExtent split[] = { KILN_ONNX_DIM(e->x, 0), KILN_ONNX_NUMBER(e->experts),
                                     KILN_ONNX_NUMBER(out) };
    KilnValue *w = kiln_onnx_step_reshape(s, layer->w, flat, 2);
    KilnValue *y = kiln_onnx_step_matmul(s, e->x, kiln_onnx_step_transpose(s, w, swap, 2));
    y = kiln_onnx_step_reshape(s, y, split, 3);
    return layer->b ? kiln_onnx_step_add(s, y, layer->b) : y;
}

/*   g * sigmoid(alpha * g) * (l + beta), where both are clipped */
static KilnValue *
swiglu(const Experts *e, KilnValue *g, KilnValue *l)
{
    const KilnOnnxSteps *s = &e->s;
    const KilnAttrs_swish swish = { .alpha = e->alpha };
    if (isfinite(e->limit)) {
        g = kiln_onnx_step_number(s, KILN_OP_min, g, (double)e->limit);
        l = kiln_onnx_step_number(s, KILN_OP_min, l, (double)e->limit);
        l = kiln_onnx_step_number(s, KILN_OP_max, l, (double)-e->limit);
    }
    if (e->beta != 0)
        l = kiln_onnx_step_add_number(s, l, (double)e->beta);
    return kiln_onnx_step_mul(s, kiln_onnx_step1(s, KILN_OP_swish, &swish, g), l);
}

/* The gate (@part 0) or what it gates, which stand in one row as neighbours or behind each other.
 */
static KilnValue *
half_of(const Experts *e, KilnValue *h, int64_t part)
{
    if (e->fusion == 1)
        return kiln_onnx_step_slice(&e->s, h, 2, part, INT64_MAX, 2);
    return kiln_onnx_step_slice(&e->s, h, 2, part * e->inner, (part + 1) * e->inner, 1);
}

static KilnValue *
activated(const Experts *e, KilnValue *h)
{
    const KilnOnnxSteps *s = &e->s;
    const KilnAttrs_gelu tanh = { .approximate = "tanh" };
    const char *name = e->activation;
    if (is_fused(e))
        return swiglu(e, half_of(e, h, 0), half_of(e, h, 1));
    if (strcmp(name, "swiglu") == 0)
        return swiglu(e, h, layer_of(e, &e->third));
    if (strcmp(name, "relu") == 0)
        h = kiln_onnx_step1(s, KILN_OP_relu, NULL, h);
    else if (strcmp(name, "gelu") == 0)
        h = kiln_onnx_step1(s, KILN_OP_gelu, &tanh, h);
    else if (strcmp(name, "silu") == 0)
        h = kiln_onnx_step_swish(s, h);
    else if (strcmp(name, "identity") != 0) {
        kiln_onnx_unsupported(e->call, s->error, "activation_type=%s", name);
        return NULL;
    }
    return e->third.w ? kiln_onnx_step_mul(s, h, layer_of(e, &e->third)) : h;
}

/* [rows, outer] */
static KilnValue *
mixed(const Experts *e)
{
    static const int64_t last[] = { 2 }, swap[] = { 0, 2, 1 };
    const KilnOnnxSteps *s = &e->s;
    KilnValue *h = activated(e, layer_of(e, &e->first));
    h = kiln_onnx_step_mul(s, h, kiln_onnx_step_unsqueeze(s, e->shares, last, 1));
    if (!h)
        return NULL;
    const KilnOnnxExtent rows[] = { KILN_ONNX_DIM(h, 0), KILN_ONNX_NUMBER(e->experts * e->inner) };
    const KilnOnnxExtent weights[] = { KILN_ONNX_NUMBER(e->experts * e->inner),
                                       KILN_ONNX_NUMBER(e->outer) };
    KilnValue *w =
        kiln_onnx_step_reshape(s, kiln_onnx_step_transpose(s, e->second.w, swap, 3), weights, 2);
    KilnValue *y = kiln_onnx_step_matmul(s, kiln_onnx_step_reshape(s, h, rows, 2), w);
    if (!e->second.b)
        return y;
    return kiln_onnx_step_add(s, y, kiln_onnx_step_matmul(s, e->shares, e->second.b));
}

/* --- weights of few bits --- */

/* Numbers of operand @i, [experts, out, bytes], as floats by the scales of operand @scale and the
 * zero points of operand @zero. */
static KilnValue *
real_weights(const Experts *e, uint32_t i, uint32_t scale, uint32_t zero, int64_t bits)
{
    static const int64_t last[] = { 2 };
    const KilnOnnxSteps *s = &e->s;
    KilnValue *w = kiln_onnx_need(e->call, i, s->error);
    KilnValue *scales = w ? kiln_onnx_need(e->call, scale, s->error) : NULL;
    KilnValue *zeros = kiln_onnx_operand(e->call, zero);
    if (!scales || !kiln_onnx_require_rank(e->call, i, 3, 3, s->error) ||
        !kiln_onnx_require_rank(e->call, scale, 2, 3, s->error) ||
        !(w = kiln_onnx_step_unpack(s, w, bits, false)))
        return NULL;
    const KilnType *type = &scales->type;
    if (!kiln_type_is_static(&w->type) || !kiln_type_is_static(type)) {
        kiln_onnx_unsupported(e->call, s->error, "weights of unknown dims");
        return NULL;
    }
    const int64_t blocks = type->rank == 3 ? type->dims[2] : 1;
    const int64_t places = type->rank == 3 ? blocks : type->dims[1];
    if (type->rank == 2)
        scales = kiln_onnx_step_unsqueeze(s, scales, last, 1);
    zeros = kiln_onnx_step_unpack(s, zeros, bits, false);
    if (zeros && zeros->type.dims[zeros->type.rank - 1] > places)
        zeros = kiln_onnx_step_slice(s, zeros, -1, 0, places, 1);
    if (zeros && zeros->type.rank == 2)
        zeros = kiln_onnx_step_unsqueeze(s, zeros, last, 1);
    const KilnOnnxExtent extents[] = { KILN_ONNX_NUMBER(w->type.dims[0]),
                                       KILN_ONNX_NUMBER(w->type.dims[1]),
                                       KILN_ONNX_NUMBER(blocks) };
    if (!kiln_onnx_operand(e->call, zero))
        zeros = kiln_onnx_step_expand(
            s, kiln_onnx_scalar(e->call, "half", KILN_DTYPE_u8, (double)((int64_t)1 << (bits - 1))),
            extents, 3);
    KilnValue *operands[] = { w, scales, zeros };
    const int64_t block = (w->type.dims[2] + blocks - 1) / MAX(blocks, 1);
    return kiln_onnx_step_cast(s, kiln_onnx_step_dequantize(s, operands, 2, MAX(block, 1)),
                               e->dtype);
}

/* --- the operators --- */

/* Sets result 0, of the shape of operand 0. */
static gboolean
finish(Experts *e, uint32_t weights, GError **error)
{
    KilnOnnxCall *call = e->call;
    KilnValue *x = call->operands[0];
    if (!find_sizes(e, error))
        return FALSE;
    const KilnOnnxExtent flat[] = { KILN_ONNX_NUMBER(-1), KILN_ONNX_NUMBER(e->outer) };
    e->x = x->type.rank == 3 ? kiln_onnx_step_reshape(&e->s, x, flat, 2) : x;
    if (!e->x || !find_shares(e, weights))
        return FALSE;
    KilnValue *y = mixed(e);
    if (x->type.rank == 3) {
        const KilnOnnxExtent shape[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_DIM(x, 1),
                                         KILN_ONNX_NUMBER(e->outer) };
        y = kiln_onnx_step_reshape(&e->s, y, shape, 3);
    }
    return kiln_onnx_set_result(call, 0, y);
}

static gboolean
begin(Experts *e, GError **error)
{
    KilnOnnxCall *call = e->call;
    if (!kiln_onnx_need(call, 0, error) || !kiln_onnx_need(call, 1, error) ||
        !kiln_onnx_require_rank(call, 0, 2, 3, error) ||
        !kiln_onnx_require_rank(call, 1, 2, 2, error))
        return FALSE;
    e->dtype = call->operands[0]->type.dtype;
    return read_attrs(e, error);
}

/* (x, router, w1, b1, w2, b2, w3, b3) */
gboolean
kiln_onnx_convert_moe(KilnOnnxCall *call, GError **error)
{
    Experts e = { .s = { call, error }, .call = call };
    if (!begin(&e, error))
        return FALSE;
    e.first = (Layer){ kiln_onnx_need(call, 2, error), kiln_onnx_operand(call, 3) };
    e.second =
        (Layer){ e.first.w ? kiln_onnx_need(call, 4, error) : NULL, kiln_onnx_operand(call, 5) };
    e.third = (Layer){ kiln_onnx_operand(call, 6), kiln_onnx_operand(call, 7) };
    return e.second.w && finish(&e, UINT32_MAX, error);
}

static gboolean
read_bits(KilnOnnxCall *call, int64_t bits[3], GError **error)
{
    static const char *const names[] = { "fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                         "fc3_expert_weight_bits" };
    int64_t all = 4, block = 0, packed = 0;
    const char *kind = "int";
    if (!kiln_onnx_take_int(call, "expert_weight_bits", &all, error) ||
        !kiln_onnx_take_int(call, "block_size", &block, error) ||
        !kiln_onnx_take_int(call, "weights_prepacked", &packed, error) ||
        !kiln_onnx_take_text(call, "quant_type", &kind, error))
        return FALSE;
    if (strcmp(kind, "int") != 0)
        return kiln_onnx_unsupported(call, error, "quant_type=%s", kind);
    for (int i = 0; i < 3; i++) {
        bits[i] = all;
        if (!kiln_onnx_take_int(call, names[i], &bits[i], error))
            return FALSE;
        if (bits[i] != 2 && bits[i] != 4 && bits[i] != 8)
            return kiln_onnx_unsupported(call, error, "weights of %" G_GINT64_FORMAT " bits",
                                         bits[i]);
    }
    return TRUE;
}

/* (x, router, w1, scales, b1, w2, scales, b2, w3, scales, b3, 3 zero points, weights of the router)
 */
gboolean
kiln_onnx_convert_qmoe(KilnOnnxCall *call, GError **error)
{
    Experts e = { .s = { call, error }, .call = call };
    int64_t bits[3];
    if (!begin(&e, error) || !read_bits(call, bits, error))
        return FALSE;
    for (uint32_t i = 15; i < call->n_operands; i++) {
        if (call->operands[i])
            return kiln_onnx_unsupported(call, error, "operand %u, a scale of floats", i);
    }
    e.first = (Layer){ real_weights(&e, 2, 3, 11, bits[0]), kiln_onnx_operand(call, 4) };
    if (!e.first.w)
        return FALSE;
    e.second = (Layer){ real_weights(&e, 5, 6, 12, bits[1]), kiln_onnx_operand(call, 7) };
    if (!e.second.w)
        return FALSE;
    if (kiln_onnx_operand(call, 8)) {
        e.third = (Layer){ real_weights(&e, 8, 9, 13, bits[2]), kiln_onnx_operand(call, 10) };
        if (!e.third.w)
            return FALSE;
    }
    if (!kiln_onnx_operand(call, 14)) /* a softmax of the picked ones alone */
        e.normalizes = 1;
    return finish(&e, 14, error);
}
