/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding of com.microsoft: positions stand before the tables of cosines and sines. Heads
 * are as wide as a row of the tables, twice, or as `num_heads` says. */
#include "graph/graph.h"
#include "graph/onnx/contrib/cache.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/rotary.h"
#include "graph/onnx/steps.h"

enum {
    X,
    POSITIONS,
    COS,
    SIN
};

typedef struct {
    KilnOnnxRotary turn;
    KilnOnnxCall *call;
    int64_t heads; /* 0: not stated */
    bool flat;     /* x is [batch, rows, hidden], else [batch, heads, rows, size] */
} Rotary;

static gboolean
take_attrs(Rotary *r, GError **error)
{
    KilnOnnxCall *call = r->call;
    int64_t packed = 0; /* loosens a check of ONNX Runtime's */
    float scale = 1;
    if (!kiln_onnx_take_int(call, "num_heads", &r->heads, error) ||
        !kiln_onnx_take_int(call, "rotary_embedding_dim", &r->turn.turned, error) ||
        !kiln_onnx_take_flag(call, "interleaved", &r->turn.interleaved, error) ||
        !kiln_onnx_take_flag(call, "is_packed_batching", &packed, error) ||
        !kiln_onnx_take_float(call, "scale", &scale, error))
        return FALSE;
    if (r->heads < 0 || r->heads > INT32_MAX || (r->turn.turned && r->heads < 1))
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "num_heads: expected %d or more%s, found %" G_GINT64_FORMAT,
                               r->turn.turned != 0,
                               r->turn.turned ? " beside rotary_embedding_dim" : "", r->heads);
    if (r->turn.turned < 0)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "rotary_embedding_dim: expected 0 or more, found %" G_GINT64_FORMAT,
                               r->turn.turned);
    return scale == 1 ||
           kiln_onnx_unsupported(call, error, "scale=%g, which no kernel applies", (double)scale);
}

static gboolean
check_operands(const Rotary *r, GError **error)
{
    const KilnOnnxCall *call = r->call;
    for (uint32_t i = X; i <= SIN; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    const KilnType *x = &call->operands[X]->type, *cos = &call->operands[COS]->type;
    const KilnType *at = &call->operands[POSITIONS]->type;
    if (!kiln_onnx_require_rank(call, X, 3, 4, error) ||
        !kiln_onnx_require_rank(call, POSITIONS, 0, 2, error) ||
        !kiln_onnx_require_rank(call, COS, 2, 2, error) ||
        !kiln_onnx_require_shape(call, SIN, cos->dims, 2, error))
        return FALSE;
    return at->rank == 2
               ? KILN_ONNX_REQUIRE_DIMS(call, POSITIONS, error, x->dims[0], x->dims[x->rank - 2])
           : at->rank == 1 ? KILN_ONNX_REQUIRE_DIMS(call, POSITIONS, error, 1)
                           : TRUE;
}

/* How many elements a head of @last columns has, in *@out: as the heads or the tables say. */
static gboolean
find_size(const Rotary *r, int64_t last, int64_t pairs, int64_t *out, GError **error)
{
    const KilnOnnxCall *call = r->call;
    *out = !r->flat && last >= 0 ? last : 2 * pairs;
    if (!r->flat && last < 0 && r->turn.turned)
        return kiln_onnx_unsupported(call, error, "an unknown size of heads");
    if (r->flat && r->heads > 0) {
        if (last < 0 && r->turn.turned)
            return kiln_onnx_unsupported(call, error, "an unknown size of heads");
        if (last % r->heads != 0 && last >= 0)
            return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                                   "num_heads: expected a divisor of the hidden size "
                                   "%" G_GINT64_FORMAT ", found %" G_GINT64_FORMAT,
                                   last, r->heads);
        *out = last < 0 ? *out : last / r->heads;
    }
    if (*out < 1)
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "expected heads of 1 element or more, found %" G_GINT64_FORMAT,
                               *out);
    return !r->flat || last < 0 || last % *out == 0 ||
           kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                           "expected a hidden size in multiples of %" G_GINT64_FORMAT
                           ", found %" G_GINT64_FORMAT,
                           *out, last);
}

static gboolean
find_sizes(Rotary *r, GError **error)
{
    const KilnOnnxCall *call = r->call;
    KilnOnnxRotary *turn = &r->turn;
    const KilnType *x = &call->operands[X]->type;
    const int64_t last = x->dims[x->rank - 1], pairs = call->operands[COS]->type.dims[1];
    if (pairs < 0 || pairs > INT32_MAX)
        return kiln_onnx_unsupported(call, error, "an unknown number of angles");
    if (!find_size(r, last, pairs, &turn->size, error))
        return FALSE;
    r->heads = last < 0 ? -1 : last / turn->size;
    turn->turned = turn->turned ? turn->turned : turn->size;
    if (pairs != turn->turned / 2)
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "operand %d: expected %" G_GINT64_FORMAT
                               " angles a position, found %" G_GINT64_FORMAT,
                               COS, turn->turned / 2, pairs);
    return kiln_onnx_rotary_check(turn, error);
}

/* [batch, rows]: one position is that of the first row, of all samples. */
static KilnValue *
positions_of(const Rotary *r)
{
    static const int64_t front[] = { 0 };
    const KilnOnnxSteps *s = &r->turn.s;
    KilnValue *x = r->call->operands[X], *at = r->call->operands[POSITIONS];
    const int rows = r->flat ? 1 : 2;
    const KilnOnnxExtent shape[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_DIM(x, rows) };
    if (at->type.rank == 2)
        return kiln_type_equal_dims(&at->type, 0, &x->type, 0) &&
                       kiln_type_equal_dims(&at->type, 1, &x->type, rows)
                   ? at
                   : kiln_onnx_step_reshape(s, at, shape, 2);
    if (at->type.rank == 1)
        at = kiln_onnx_step_reshape(s, at, NULL, 0);
    KilnValue *count = kiln_onnx_count_to(s, kiln_onnx_step_extent(s, x, rows));
    return kiln_onnx_step_unsqueeze(s, kiln_onnx_step_add(s, count, at), front, 1);
}

/* @x, whose last dim is that of a head: open dims cannot say so. */
static KilnValue *
of_size(const Rotary *r, KilnValue *x)
{
    const KilnOnnxExtent shape[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_DIM(x, 1), KILN_ONNX_DIM(x, 2),
                                     KILN_ONNX_NUMBER(r->turn.size) };
    return r->flat || x->type.dims[3] >= 0 ? x : kiln_onnx_step_reshape(&r->turn.s, x, shape, 4);
}

gboolean
kiln_onnx_convert_rotary_embedding_contrib(KilnOnnxCall *call, GError **error)
{
    Rotary r = { .turn = { .s = { call, error } }, .call = call };
    const KilnOnnxSteps *s = &r.turn.s;
    if (!take_attrs(&r, error) || !check_operands(&r, error))
        return FALSE;
    KilnValue *x = call->operands[X];
    r.flat = x->type.rank == 3;
    KilnValue *at = find_sizes(&r, error) ? positions_of(&r) : NULL;
    at = kiln_onnx_step_from_front(s, call->operands[COS], 0, at);
    x = at ? of_size(&r, x) : NULL;
    if (!x)
        return FALSE;
    r.turn.cos = kiln_onnx_rotary_angles(s, call->operands[COS], at, r.flat ? 2 : 1);
    r.turn.sin = kiln_onnx_rotary_angles(s, call->operands[SIN], at, r.flat ? 2 : 1);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_rotate_heads(&r.turn, x, r.heads));
}
