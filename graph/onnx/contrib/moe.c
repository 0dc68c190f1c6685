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
#include "graph/onnx/contrib/bits.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/activation.h"
#include "graph/op/bounds.h"
#include "graph/op/softmax.h"

#include <math.h>
#include <string.h>

/* A layer of all experts. */
typedef struct {
    KilnValue *w;   /* [experts, out, in]; NULL: there is none */
    KilnValue *b;   /* [experts, out]; NULL: none */
    uint32_t at[2]; /* the operands of both */
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
        !kiln_onnx_take_flag(call, "normalize_routing_weights", &e->normalizes, error) ||
        !kiln_onnx_take_int(call, "swiglu_fusion", &e->fusion, error) ||
        !kiln_onnx_take_flag(call, "use_sparse_mixer", &mixer, error) ||
        !kiln_onnx_take_flag(call, "swiglu_limit_after_activation", &after, error) ||
        !kiln_onnx_take_text(call, "activation_type", &e->activation, error) ||
        !kiln_onnx_take_float(call, "activation_alpha", &e->alpha, error) ||
        !kiln_onnx_take_float(call, "activation_beta", &e->beta, error) ||
        !kiln_onnx_take_float(call, "swiglu_limit", &e->limit, error))
        return FALSE;
    if (e->limit < 0)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "swiglu_limit: expected 0 or more, found %g", (double)e->limit);
    if (mixer || after)
        return kiln_onnx_unsupported(call, error, "%s",
                                     mixer ? "use_sparse_mixer" : "swiglu_limit_after_activation");
    return (e->fusion >= 0 && e->fusion <= 2) ||
           kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "swiglu_fusion: expected 0 to 2, found %" G_GINT64_FORMAT, e->fusion);
}

static bool
is_swiglu(const Experts *e)
{
    return strcmp(e->activation, "swiglu") == 0;
}

/* A gate and what it gates are in the first layer. */
static bool
is_fused(const Experts *e)
{
    return is_swiglu(e) && e->fusion;
}

/* What swiglu gates is in the third layer, or beside the gate. */
static gboolean
check_gate(const Experts *e, GError **error)
{
    if (!is_swiglu(e) || !e->fusion == (e->third.w != NULL))
        return TRUE;
    return kiln_onnx_throw(e->call, KILN_ERROR_INVALID, error,
                           "swiglu_fusion: expected %s operand %u, found %" G_GINT64_FORMAT,
                           e->third.w ? "0 beside" : "1 or 2 without", e->third.at[0], e->fusion);
}

/* Older files state the dims of weights the other way around. The numbers are in the same order. */
static gboolean
restate(Experts *e, int64_t inner)
{
    const int64_t out = is_fused(e) ? 2 * inner : inner;
    const KilnOnnxExtent first[] = { KILN_ONNX_NUMBER(e->experts), KILN_ONNX_NUMBER(out),
                                     KILN_ONNX_NUMBER(e->outer) };
    const KilnOnnxExtent second[] = { KILN_ONNX_NUMBER(e->experts), KILN_ONNX_NUMBER(e->outer),
                                      KILN_ONNX_NUMBER(inner) };
    const KilnOnnxExtent third[] = { KILN_ONNX_NUMBER(e->experts), KILN_ONNX_NUMBER(inner),
                                     KILN_ONNX_NUMBER(e->outer) };
    e->first.w = kiln_onnx_step_reshape(&e->s, e->first.w, first, 3);
    e->second.w = kiln_onnx_step_reshape(&e->s, e->second.w, second, 3);
    if (e->third.w && !(e->third.w = kiln_onnx_step_reshape(&e->s, e->third.w, third, 3)))
        return FALSE;
    return e->first.w && e->second.w;
}

/* The sizes, from the weights and the rows. */
static gboolean
find_sizes(Experts *e, GError **error)
{
    const KilnOnnxCall *call = e->call;
    const KilnType *w1 = &e->first.w->type, *w2 = &e->second.w->type;
    const KilnType *x = &call->operands[0]->type;
    if (!kiln_type_is_static(w1) || !kiln_type_is_static(w2) || w1->rank != 3 || w2->rank != 3)
        return kiln_onnx_unsupported(call, error, "weights of unknown dims");
    const int64_t hidden = x->dims[x->rank - 1];
    e->experts = w1->dims[0];
    e->outer = hidden < 0 ? w1->dims[2] : hidden;
    e->inner = e->outer > 0 ? w2->dims[1] * w2->dims[2] / e->outer : 0;
    if (e->experts < 1 || e->outer < 1 || e->inner < 1 || e->inner > INT32_MAX)
        return kiln_onnx_unsupported(call, error,
                                     "layers of %" G_GINT64_FORMAT " experts, of "
                                     "%" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " numbers",
                                     e->experts, e->inner, e->outer);
    if (e->k < 1 || e->k > e->experts)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "k: expected 1 to %" G_GINT64_FORMAT
                               " experts, found %" G_GINT64_FORMAT,
                               e->experts, e->k);
    return TRUE;
}

static bool
has_dims(const Layer *layer, int64_t rows, int64_t columns)
{
    const int64_t *dims = layer->w ? layer->w->type.dims : NULL;
    return !dims || (dims[1] == rows && dims[2] == columns);
}

static bool
has_old_shapes(const Experts *e)
{
    const int64_t out = is_fused(e) ? 2 * e->inner : e->inner;
    return has_dims(&e->first, e->outer, out) && has_dims(&e->second, e->inner, e->outer) &&
           has_dims(&e->third, e->outer, e->inner) &&
           !(has_dims(&e->first, out, e->outer) && has_dims(&e->second, e->outer, e->inner));
}

/* Checks the dims of @layer, which may have been computed of the operand. */
static gboolean
check_layer(const Experts *e, const Layer *layer, int64_t out, int64_t in, GError **error)
{
    const int64_t *found = layer->w ? layer->w->type.dims : NULL;
    if (!found)
        return layer->b ? kiln_onnx_throw(e->call, KILN_ERROR_INVALID, error,
                                          "operand %u: expected weights beside it", layer->at[1])
                        : TRUE;
    if (found[0] != e->experts || !has_dims(layer, out, in))
        return kiln_onnx_throw(e->call, KILN_ERROR_SHAPE, error,
                               "operand %u: expected weights of [%" G_GINT64_FORMAT
                               ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT "], found "
                               "[%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT "]",
                               layer->at[0], e->experts, out, in, found[0], found[1], found[2]);
    return KILN_ONNX_REQUIRE_DIMS(e->call, layer->at[1], error, e->experts, out);
}

static gboolean
check_layers(Experts *e, GError **error)
{
    const KilnType *x = &e->call->operands[0]->type;
    const KilnValue *third = e->third.w;
    int64_t rows = x->dims[0];
    if (x->rank == 3)
        rows = rows < 0 || x->dims[1] < 0 ? -1 : rows * x->dims[1];
    if (third && (third->type.rank != 3 || !kiln_type_is_static(&third->type)))
        return kiln_onnx_unsupported(e->call, error, "weights of unknown dims");
    return (!has_old_shapes(e) || restate(e, e->inner)) &&
           check_layer(e, &e->first, is_fused(e) ? 2 * e->inner : e->inner, e->outer, error) &&
           check_layer(e, &e->second, e->outer, e->inner, error) &&
           check_layer(e, &e->third, e->inner, e->outer, error) &&
           KILN_ONNX_REQUIRE_DIMS(e->call, 1, error, rows, e->experts);
}

/* --- the router --- */

/* The shares of the experts of each row, from the router's operand. Operand @weights, if there is
 * one, has them; then the router only picks. */
static gboolean
find_shares(Experts *e, uint32_t weights)
{
    const KilnOnnxSteps *s = &e->s;
    const KilnAttrs_softmax last = { .axis = -1 };
    const KilnOnnxExtent extents[] = { KILN_ONNX_DIM(e->x, 0), KILN_ONNX_NUMBER(e->experts) };
    KilnValue *given = kiln_onnx_operand(e->call, weights), *router = e->call->operands[1];
    if (!kiln_type_equal_dims(&router->type, 0, &e->x->type, 0))
        router = kiln_onnx_step_reshape(s, router, extents, 2);
    KilnValue *all = kiln_onnx_step1(s, KILN_OP_softmax, &last, router);
    KilnValue *best = kiln_onnx_step_greatest(s, all, e->k);
    if (!best)
        return FALSE;
    KilnValue *values = given ? kiln_onnx_step_gather_elements(s, given, &best[1], 1) : &best[0];
    if (e->normalizes) {
        KilnValue *sum = kiln_onnx_step_sum(s, values, 1, true);
        values = kiln_onnx_step_div(s, values, sum);
    }
    e->shares = kiln_onnx_step_scatter_elements(s, kiln_onnx_step_mul_number(s, all, 0), &best[1],
                                                values, 1);
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
    if (is_swiglu(e))
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

/* Operands of weights of few bits, and the blocks of their scales. */
typedef struct {
    uint32_t w, scale, zero;
    int64_t bits, block; /* 0: a scale for each row */
} Packed;

/* Checks the scales and zero points of @rows rows of @blocks blocks. */
static gboolean
check_scales(const Experts *e, const Packed *p, const int64_t dims[2], int64_t blocks,
             GError **error)
{
    const KilnOnnxCall *call = e->call;
    const int64_t each = blocks * p->bits / 8 + (blocks * p->bits % 8 != 0);
    const int64_t flat = dims[1] * p->bits / 8 + (dims[1] * p->bits % 8 != 0);
    if (call->operands[p->scale]->type.rank == 3)
        return KILN_ONNX_REQUIRE_DIMS(call, p->scale, error, dims[0], dims[1], blocks) &&
               KILN_ONNX_REQUIRE_DIMS(call, p->zero, error, dims[0], dims[1], each);
    return KILN_ONNX_REQUIRE_DIMS(call, p->scale, error, dims[0], dims[1]) &&
           KILN_ONNX_REQUIRE_DIMS(call, p->zero, error, dims[0], flat);
}

/* Zero points of @extents blocks: those of the operand, or half of the range of numbers. */
static KilnValue *
zeros_of(const Experts *e, const Packed *p, const KilnOnnxExtent extents[3], bool flat)
{
    static const int64_t last[] = { 2 };
    const KilnOnnxSteps *s = &e->s;
    KilnValue *zeros = kiln_onnx_operand(e->call, p->zero);
    if (!zeros)
        return kiln_onnx_step_expand(
            s,
            kiln_onnx_scalar(e->call, "half", KILN_DTYPE_u8, (double)((int64_t)1 << (p->bits - 1))),
            extents, 3);
    const int64_t places = extents[flat ? 1 : 2].number;
    zeros = kiln_onnx_step_unpack(s, zeros, p->bits, false);
    if (zeros && zeros->type.dims[zeros->type.rank - 1] > places)
        zeros = kiln_onnx_step_slice(s, zeros, -1, 0, places, 1);
    return flat ? kiln_onnx_step_unsqueeze(s, zeros, last, 1) : zeros;
}

/* Weights, [experts, out, bytes], as floats. */
static KilnValue *
real_weights(const Experts *e, const Packed *p)
{
    static const int64_t last[] = { 2 };
    const KilnOnnxSteps *s = &e->s;
    KilnValue *w = kiln_onnx_need(e->call, p->w, s->error);
    KilnValue *scales = w ? kiln_onnx_need(e->call, p->scale, s->error) : NULL;
    if (!scales || !kiln_onnx_require_rank(e->call, p->w, 3, 3, s->error) ||
        !kiln_onnx_require_rank(e->call, p->scale, 2, 3, s->error) ||
        !(w = kiln_onnx_step_unpack(s, w, p->bits, false)))
        return NULL;
    if (!kiln_type_is_static(&w->type)) {
        kiln_onnx_unsupported(e->call, s->error, "weights of unknown dims");
        return NULL;
    }
    const int64_t *dims = w->type.dims;
    const bool flat = scales->type.rank == 2;
    const int64_t block = flat || !p->block ? MAX(dims[2], 1) : p->block;
    const int64_t blocks = (dims[2] + block - 1) / block;
    if (!check_scales(e, p, dims, blocks, s->error))
        return NULL;
    const KilnOnnxExtent extents[] = { KILN_ONNX_NUMBER(dims[0]), KILN_ONNX_NUMBER(dims[1]),
                                       KILN_ONNX_NUMBER(blocks) };
    if (flat)
        scales = kiln_onnx_step_unsqueeze(s, scales, last, 1);
    KilnValue *operands[] = { w, scales, zeros_of(e, p, extents, flat) };
    return operands[2]
               ? kiln_onnx_step_cast(s, kiln_onnx_step_dequantize(s, operands, 2, block), e->dtype)
               : NULL;
}

/* --- the operators --- */

/* Sets result 0, of the shape of operand 0. */
static gboolean
finish(Experts *e, uint32_t weights, GError **error)
{
    KilnOnnxCall *call = e->call;
    KilnValue *x = call->operands[0];
    if (!check_gate(e, error) || !find_sizes(e, error) || !check_layers(e, error))
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

/* Layer @at[0] with the bias @at[1]; @needed: it must be there. */
static gboolean
plain_layer(const Experts *e, uint32_t w, uint32_t b, bool needed, Layer *out)
{
    *out = (Layer){ kiln_onnx_operand(e->call, w), kiln_onnx_operand(e->call, b), { w, b } };
    return out->w || !needed || kiln_onnx_need(e->call, w, e->s.error);
}

/* (x, router, w1, b1, w2, b2, w3, b3) */
gboolean
kiln_onnx_convert_moe(KilnOnnxCall *call, GError **error)
{
    Experts e = { .s = { call, error }, .call = call };
    return begin(&e, error) && plain_layer(&e, 2, 3, true, &e.first) &&
           plain_layer(&e, 4, 5, true, &e.second) && plain_layer(&e, 6, 7, false, &e.third) &&
           finish(&e, UINT32_MAX, error);
}

/* Sets what the attributes say of the weights of the three layers. */
static gboolean
read_packed(KilnOnnxCall *call, Packed packed[3], GError **error)
{
    static const char *const names[] = { "fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                         "fc3_expert_weight_bits" };
    int64_t all = 4, block = 0, prepacked = 0;
    const char *kind = "int";
    if (!kiln_onnx_take_int(call, "expert_weight_bits", &all, error) ||
        !kiln_onnx_take_int(call, "block_size", &block, error) ||
        !kiln_onnx_take_int(call, "weights_prepacked", &prepacked, error) ||
        !kiln_onnx_take_text(call, "quant_type", &kind, error))
        return FALSE;
    if (strcmp(kind, "int") != 0)
        return kiln_onnx_unsupported(call, error, "quant_type=%s", kind);
    if (prepacked > 0)
        return kiln_onnx_unsupported(call, error, "weights that are packed for another machine");
    if (block < 0 || block > INT32_MAX || (block && (block < 16 || (block & (block - 1)))))
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "block_size: expected 0 or a power of 2 from 16 on, found "
                               "%" G_GINT64_FORMAT,
                               block);
    for (uint32_t i = 0; i < 3; i++) {
        int64_t bits = all;
        if (!kiln_onnx_take_int(call, names[i], &bits, error))
            return FALSE;
        if (bits != 2 && bits != 4 && bits != 8)
            return kiln_onnx_unsupported(call, error, "weights of %" G_GINT64_FORMAT " bits", bits);
        packed[i] = (Packed){ 2 + 3 * i, 3 + 3 * i, 11 + i, bits, block };
    }
    return TRUE;
}

/* The layer of @packed, whose bias is the operand behind the scales. */
static gboolean
real_layer(const Experts *e, const Packed *packed, Layer *out)
{
    const uint32_t bias = packed->scale + 1;
    *out = (Layer){ NULL, kiln_onnx_operand(e->call, bias), { packed->w, bias } };
    out->w = real_weights(e, packed);
    return out->w != NULL;
}

/* (x, router, w1, scales, b1, w2, scales, b2, w3, scales, b3, 3 zero points, weights of the router)
 */
gboolean
kiln_onnx_convert_qmoe(KilnOnnxCall *call, GError **error)
{
    Experts e = { .s = { call, error }, .call = call };
    Packed packed[3];
    if (!begin(&e, error) || !read_packed(call, packed, error))
        return FALSE;
    for (uint32_t i = 15; i < call->n_operands; i++) {
        if (call->operands[i])
            return kiln_onnx_unsupported(call, error, "operand %u, a scale of floats", i);
    }
    if (!real_layer(&e, &packed[0], &e.first) || !real_layer(&e, &packed[1], &e.second))
        return FALSE;
    e.third = (Layer){ NULL, kiln_onnx_operand(call, 10), { 8, 10 } };
    if (kiln_onnx_operand(call, 8) && !real_layer(&e, &packed[2], &e.third))
        return FALSE;
    if (!kiln_onnx_operand(call, 14)) /* a softmax of the picked ones alone */
        e.normalizes = 1;
    return KILN_ONNX_REQUIRE_DIMS(call, 14, error, call->operands[1]->type.dims[0],
                                  call->operands[1]->type.dims[1]) &&
           finish(&e, 14, error);
}
