/* SPDX-License-Identifier: Apache-2.0 */
/* MultiHeadAttention and DecoderMaskedMultiHeadAttention of com.microsoft: queries, keys and values
 * were projected before. They may be packed, stand behind those of earlier steps, or be written
 * into a buffer, which several beams share. */
#include "graph/graph.h"
#include "graph/onnx/contrib/cache.h"
#include "graph/onnx/contrib/heads.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/gather.h"
#include "graph/op/logic.h"

/* Which operand is what. The first three are queries, keys and values. */
typedef struct {
    uint32_t bias, mask, scores_bias, past, length, beams;
} Places;

typedef struct {
    KilnOnnxHeads h;
    const Places *at;
    bool packed;  /* operand 0 is [batch, rows, heads, 3, size] */
    bool pairs;   /* operand 1 is [batch, keys, heads, 2, size] */
    bool final;   /* operands 1 and 2 are [batch, heads, keys, size] */
    bool buffers; /* keys and values are written into a buffer */
} Projected;

/* --- operands --- */

/* Whether past keys and values come together, and beside the number of tokens where there is one.
 */
static gboolean
check_pasts(const Projected *p, GError **error)
{
    const KilnOnnxCall *call = p->h.call;
    const bool keys = kiln_onnx_operand(call, p->at->past);
    if (keys != (kiln_onnx_operand(call, p->at->past + 1) != NULL))
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected operands %u and %u, found one of them", p->at->past,
                               p->at->past + 1);
    if (p->buffers && !keys)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "operand %u: expected a buffer beside it", p->at->length);
    if (keys && p->final)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "operand %u: expected none beside keys of rank 4", p->at->past);
    return TRUE;
}

/* Finds out the form by ranks, and checks them. */
static gboolean
find_form(Projected *p, GError **error)
{
    const KilnOnnxCall *call = p->h.call;
    const KilnValue *q = kiln_onnx_need(call, 0, error);
    const KilnValue *k = kiln_onnx_operand(call, 1), *v = kiln_onnx_operand(call, 2);
    if (!q || !kiln_onnx_require_rank(call, 0, 3, 5, error) ||
        !kiln_onnx_require_rank(call, 1, 3, 5, error) ||
        !kiln_onnx_require_rank(call, p->at->bias, 1, 1, error))
        return FALSE;
    p->packed = !k && q->type.rank == 5;
    p->pairs = k && k->type.rank == 5;
    p->final = k && k->type.rank == 4;
    p->buffers = kiln_onnx_operand(call, p->at->length);
    if (!p->packed && (q->type.rank != 3 || !k))
        return kiln_onnx_unsupported(call, error, "queries of rank %d %s keys", q->type.rank,
                                     k ? "beside" : "without");
    if (v && (p->packed || p->pairs))
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "operand 2: expected none beside packed values");
    if (!p->packed && !p->pairs && !v)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "lacks operand 2");
    if (!p->packed && !p->pairs && v->type.rank != k->type.rank)
        return kiln_onnx_unsupported(call, error, "keys of rank %d beside values of rank %d",
                                     k->type.rank, v->type.rank);
    if ((p->packed || p->pairs) && kiln_onnx_operand(call, p->at->bias))
        return kiln_onnx_unsupported(call, error, "a bias of packed operands");
    return check_pasts(p, error);
}

/* @hidden / heads; -1 where it is not known. */
static int64_t
per_head(const Projected *p, int64_t hidden)
{
    return hidden < 0 ? -1 : hidden / p->h.heads;
}

/* Keys and values in the form that was found. */
static gboolean
check_shapes(const Projected *p, GError **error)
{
    KilnOnnxCall *call = p->h.call;
    const int64_t *q = call->operands[0]->type.dims, heads = p->h.heads;
    const KilnValue *k = kiln_onnx_operand(call, 1);
    if (p->packed)
        return KILN_ONNX_REQUIRE_DIMS(call, 0, error, -1, -1, heads, 3, -1);
    if (p->pairs)
        return KILN_ONNX_REQUIRE_DIMS(call, 1, error, q[0], -1, heads, 2, per_head(p, q[2]));
    if (p->final)
        return KILN_ONNX_REQUIRE_DIMS(call, 1, error, q[0], heads, -1, per_head(p, q[2])) &&
               KILN_ONNX_REQUIRE_DIMS(call, 2, error, q[0], heads, k->type.dims[2], -1);
    return KILN_ONNX_REQUIRE_DIMS(call, 1, error, q[0], -1, q[2]) &&
           KILN_ONNX_REQUIRE_DIMS(call, 2, error, q[0], k->type.dims[1], -1);
}

/* Past keys and values, and the number of tokens in them, once heads are a dim. */
static gboolean
check_buffers(const Projected *p, GError **error)
{
    KilnOnnxCall *call = p->h.call;
    const int64_t *k = p->h.k->type.dims, *v = p->h.v->type.dims;
    const KilnValue *past = kiln_onnx_operand(call, p->at->past);
    const int64_t rows = past && past->type.rank == 4 ? past->type.dims[2] : -1;
    return KILN_ONNX_REQUIRE_DIMS(call, p->at->past, error, k[0], p->h.heads, -1, k[3]) &&
           KILN_ONNX_REQUIRE_DIMS(call, p->at->past + 1, error, v[0], p->h.heads, rows, v[3]) &&
           kiln_onnx_require_rank(call, p->at->length, 0, 1, error) &&
           KILN_ONNX_REQUIRE_DIMS(call, p->at->beams, error, -1, -1, rows);
}

/* Operand @i plus its part of the bias, which begins at *@first, in heads. */
static KilnValue *
projected(const Projected *p, uint32_t i, int64_t *first)
{
    const KilnOnnxSteps *s = &p->h.s;
    KilnValue *x = p->h.call->operands[i], *bias = kiln_onnx_operand(p->h.call, p->at->bias);
    int64_t n = x->type.dims[2];
    if (bias && n < 0) {
        kiln_onnx_unsupported(p->h.call, s->error,
                              "a bias of an operand whose hidden size is not known");
        return NULL;
    }
    if (bias)
        x = kiln_onnx_step_add(s, x, kiln_onnx_step_slice(s, bias, 0, *first, *first + n, 1));
    *first += n;
    return kiln_onnx_heads_split(&p->h, x);
}

/* Part @i of operand @operand, whose dim 3 has the parts: [batch, heads, rows, size]. */
static KilnValue *
part(const Projected *p, uint32_t operand, int64_t i)
{
    static const int64_t perm[] = { 0, 2, 1, 3 };
    const KilnOnnxSteps *s = &p->h.s;
    KilnValue *which = kiln_onnx_scalar(p->h.call, "part", KILN_DTYPE_i64, (double)i);
    KilnValue *x = kiln_onnx_step_gather(s, p->h.call->operands[operand], which, 3);
    return kiln_onnx_step_transpose(s, x, perm, 4);
}

static gboolean
find_tensors(Projected *p)
{
    KilnOnnxHeads *h = &p->h;
    int64_t first = 0;
    h->q = p->packed ? part(p, 0, 0) : projected(p, 0, &first);
    if (p->packed || p->pairs) {
        h->k = part(p, p->packed ? 0 : 1, p->packed);
        h->v = part(p, p->packed ? 0 : 1, p->packed + 1);
    } else if (p->final) {
        h->k = h->call->operands[1];
        h->v = h->call->operands[2];
    } else {
        h->k = h->q ? projected(p, 1, &first) : NULL;
        h->v = h->k ? projected(p, 2, &first) : NULL;
    }
    return h->q && h->k && h->v;
}

/* The bias has a number for each column of queries, keys and values. That of keys which have heads
 * already is not read behind the queries. */
static gboolean
check_bias(const Projected *p, GError **error)
{
    KilnOnnxCall *call = p->h.call;
    int64_t all = 0;
    if (p->final || !kiln_onnx_operand(call, p->at->bias))
        return TRUE;
    for (uint32_t i = 0; i < 3; i++) {
        const int64_t n = call->operands[i]->type.dims[2];
        all = n < 0 || all < 0 ? -1 : all + n;
    }
    return KILN_ONNX_REQUIRE_DIMS(call, p->at->bias, error, all);
}

/* --- earlier steps --- */

/* Operand @i before @x along the rows; @x where there is no such operand. */
static KilnValue *
behind_past(const Projected *p, uint32_t i, KilnValue *x)
{
    KilnValue *past = kiln_onnx_operand(p->h.call, i);
    return past ? kiln_onnx_step_concat(&p->h.s, past, x, 2) : x;
}

/* Operand @i with the rows of @x from the number of tokens on. */
static KilnValue *
written(const Projected *p, uint32_t i, KilnValue *x, KilnValue *tokens)
{
    const KilnOnnxSteps *s = &p->h.s;
    KilnValue *buffer = p->h.call->operands[i];
    const KilnOnnxExtent batch[] = { KILN_ONNX_DIM(buffer, 0) };
    KilnValue *each = kiln_onnx_step_expand(s, tokens, batch, 1);
    return kiln_onnx_step_write(s, buffer, x, each);
}

/* @buffer, [batch, heads, rows, size], as each beam sees it. Row j of a beam comes from the beam of
 * its sample that [sample, beam, j] of the operand names, but the last row is its own. */
static KilnValue *
of_beams(const Projected *p, KilnValue *buffer, KilnValue *tokens)
{
    static const int64_t axes[] = { 1 }, last[] = { 2 }, swap[] = { 0, 2, 1, 3 };
    const KilnOnnxSteps *s = &p->h.s;
    KilnValue *beams = kiln_onnx_operand(p->h.call, p->at->beams);
    if (!beams || !buffer)
        return buffer;
    KilnValue *width = kiln_onnx_step_extent(s, beams, 1);
    KilnValue *batch = kiln_onnx_count_to(s, kiln_onnx_step_extent(s, buffer, 0));
    KilnValue *rows = kiln_onnx_count_to(s, kiln_onnx_step_extent(s, buffer, 2));
    const KilnOnnxExtent flat[] = { KILN_ONNX_DIM(buffer, 0), KILN_ONNX_DIM(beams, 2) };
    beams = kiln_onnx_step_cast(s, kiln_onnx_step_reshape(s, beams, flat, 2), KILN_DTYPE_i64);
    if (!beams || !rows || !batch)
        return NULL;
    KilnValue *first = kiln_onnx_step_mul(s, kiln_onnx_step_div(s, batch, width), width);
    KilnValue *source = kiln_onnx_step_add(s, beams, kiln_onnx_step_unsqueeze(s, first, axes, 1));
    KilnValue *past = kiln_onnx_step2(s, KILN_OP_less, NULL, rows, tokens);
    source = kiln_onnx_step3(s, KILN_OP_where, NULL, past, source,
                             kiln_onnx_step_unsqueeze(s, batch, axes, 1));
    KilnValue *zeros = source ? kiln_onnx_step_mul_number(s, source, 0) : NULL;
    KilnValue *row = kiln_onnx_step_add(s, zeros, rows);
    KilnValue *places = kiln_onnx_step_concat(s, kiln_onnx_step_unsqueeze(s, source, last, 1),
                                              kiln_onnx_step_unsqueeze(s, row, last, 1), 2);
    buffer = kiln_onnx_step_transpose(s, buffer, swap, 4);
    return kiln_onnx_step_transpose(s, kiln_onnx_step2(s, KILN_OP_gather_nd, NULL, buffer, places),
                                    swap, 4);
}

/* The tokens in the buffer before this step: i64[1]. */
static KilnValue *
tokens_before(const Projected *p)
{
    const KilnOnnxExtent one[] = { KILN_ONNX_NUMBER(1) };
    KilnValue *tokens = p->h.call->operands[p->at->length];
    tokens = kiln_onnx_step_cast(&p->h.s, tokens, KILN_DTYPE_i64);
    return kiln_onnx_step_reshape(&p->h.s, tokens, one, 1);
}

/* How many keys are of earlier steps, where there are not as many others as rows of queries. */
static gboolean
find_before(Projected *p)
{
    KilnOnnxHeads *h = &p->h;
    KilnValue *past = kiln_onnx_operand(h->call, p->at->past);
    if (!h->causal || kiln_type_equal_dims(&h->q->type, 2, &h->k->type, 2))
        return TRUE;
    h->before = past ? kiln_onnx_step_extent(&h->s, past, 2)
                     : kiln_onnx_scalar(h->call, "before", KILN_DTYPE_i64, 0);
    return h->before != NULL;
}

/* Keys and values become those in the buffers, of which there are as many as tokens now. */
static gboolean
write_buffers(Projected *p)
{
    KilnOnnxHeads *h = &p->h;
    h->before = tokens_before(p);
    h->n_keys = kiln_onnx_step_add(&h->s, h->before, kiln_onnx_step_extents(&h->s, h->k, 2));
    h->k = h->n_keys ? written(p, p->at->past, h->k, h->before) : NULL;
    h->v = h->k ? written(p, p->at->past + 1, h->v, h->before) : NULL;
    return h->v != NULL;
}

/* Results 1 and 2 are all keys and values, if they are wanted. */
static gboolean
add_pasts(Projected *p)
{
    KilnOnnxHeads *h = &p->h;
    if (!(p->buffers ? write_buffers(p) : find_before(p)))
        return FALSE;
    if (!p->buffers) {
        h->k = behind_past(p, p->at->past, h->k);
        h->v = h->k ? behind_past(p, p->at->past + 1, h->v) : NULL;
    }
    if (!h->v || (h->call->n_results > 1 && !kiln_onnx_set_result(h->call, 1, h->k)) ||
        (h->call->n_results > 2 && !kiln_onnx_set_result(h->call, 2, h->v)))
        return FALSE;
    if (!p->buffers)
        return TRUE;
    h->k = of_beams(p, h->k, h->before);
    h->v = of_beams(p, h->v, h->before);
    return h->k && h->v;
}

static gboolean
convert(KilnOnnxCall *call, const Places *at, GError **error)
{
    Projected p = { .h = { .s = { call, error }, .call = call }, .at = at };
    p.h.shows = call->n_results > 3;
    return find_form(&p, error) && kiln_onnx_heads_read(&p.h, error) && check_shapes(&p, error) &&
           check_bias(&p, error) && find_tensors(&p) && check_buffers(&p, error) && add_pasts(&p) &&
           kiln_onnx_heads_attend(&p.h, at->mask, at->scores_bias, error);
}

/* (query, key, value, bias, mask, attention bias, past key, past value, past length, beams) */
gboolean
kiln_onnx_convert_multi_head_attention(KilnOnnxCall *call, GError **error)
{
    static const Places at = {
        .bias = 3, .mask = 4, .scores_bias = 5, .past = 6, .length = 8, .beams = 9
    };
    return convert(call, &at, error);
}

/* (query, key, value, mask, attention bias, past key, past value, past length, beam width, beams,
 * bias); one row of queries */
gboolean
kiln_onnx_convert_decoder_attention(KilnOnnxCall *call, GError **error)
{
    static const Places at = {
        .bias = 10, .mask = 3, .scores_bias = 4, .past = 5, .length = 7, .beams = 9
    };
    int64_t shares = 0, shows = 0;
    if (!kiln_onnx_take_flag(call, "past_present_share_buffer", &shares, error) ||
        !kiln_onnx_take_flag(call, "output_qk", &shows, error) ||
        !KILN_ONNX_REQUIRE_DIMS(call, 0, error, -1, 1, -1))
        return FALSE;
    if (!shares && kiln_onnx_operand(call, at.past))
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "past_present_share_buffer: expected 1 beside operand %u, found 0",
                               at.past);
    return convert(call, &at, error);
}
