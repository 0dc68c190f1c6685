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
    int64_t packed; /* loosens a check of ONNX Runtime's */
    float scale = 1;
    if (!kiln_onnx_take_int(call, "num_heads", &r->heads, error) ||
        !kiln_onnx_take_int(call, "rotary_embedding_dim", &r->turn.turned, error) ||
        !kiln_onnx_take_int(call, "interleaved", &r->turn.interleaved, error) ||
        !kiln_onnx_take_int(call, "is_packed_batching", &packed, error) ||
        !kiln_onnx_take_float(call, "scale", &scale, error))
        return FALSE;
    if (r->turn.turned && r->heads < 1)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "num_heads: expected 1 or more beside rotary_embedding_dim, found "
                               "%" G_GINT64_FORMAT,
                               r->heads);
    return scale == 1 ||
           kiln_onnx_unsupported(call, error, "scale=%g, which no kernel applies", (double)scale);
}

static gboolean
check_ranks(const Rotary *r, GError **error)
{
    for (uint32_t i = X; i <= SIN; i++) {
        if (!kiln_onnx_need(r->call, i, error))
            return FALSE;
    }
    return kiln_onnx_require_rank(r->call, X, 3, 4, error) &&
           kiln_onnx_require_rank(r->call, POSITIONS, 1, 2, error) &&
           kiln_onnx_require_rank(r->call, COS, 2, 2, error) &&
           kiln_onnx_require_rank(r->call, SIN, 2, 2, error);
}

static gboolean
find_sizes(Rotary *r, GError **error)
{
    const KilnOnnxCall *call = r->call;
    KilnOnnxRotary *turn = &r->turn;
    const KilnType *x = &call->operands[X]->type;
    const int64_t last = x->dims[x->rank - 1], pairs = call->operands[COS]->type.dims[1];
    if (last < 0 || pairs < 0)
        return kiln_onnx_unsupported(call, error, "an unknown size of heads");
    turn->size = last;
    if (r->flat) {
        turn->size = turn->turned ? last / r->heads : 2 * pairs;
        if (turn->size < 1 || last % turn->size != 0)
            return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                                   "expected a hidden size in multiples of %" G_GINT64_FORMAT
                                   ", found %" G_GINT64_FORMAT,
                                   turn->size, last);
        r->heads = last / turn->size;
    }
    turn->turned = turn->turned ? turn->turned : turn->size;
    if (pairs != turn->turned / 2)
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "operand %d: expected %" G_GINT64_FORMAT
                               " angles a position, found %" G_GINT64_FORMAT,
                               COS, turn->turned / 2, pairs);
    return kiln_onnx_rotary_check(turn, error);
}

/* One position is that of the first row, of all samples. */
static KilnValue *
positions_of(const Rotary *r)
{
    static const int64_t front[] = { 0 };
    const KilnOnnxSteps *s = &r->turn.s;
    KilnValue *at = r->call->operands[POSITIONS];
    if (at->type.rank == 2)
        return at;
    KilnValue *rows = kiln_onnx_step_extent(s, r->call->operands[X], r->flat ? 1 : 2);
    return kiln_onnx_step_unsqueeze(s, kiln_onnx_step_add(s, kiln_onnx_count_to(s, rows), at),
                                    front, 1);
}

gboolean
kiln_onnx_convert_rotary_embedding_contrib(KilnOnnxCall *call, GError **error)
{
    Rotary r = { .turn = { .s = { call, error } }, .call = call };
    const KilnOnnxSteps *s = &r.turn.s;
    if (!take_attrs(&r, error) || !check_ranks(&r, error))
        return FALSE;
    KilnValue *x = call->operands[X];
    r.flat = x->type.rank == 3;
    KilnValue *at = find_sizes(&r, error) ? positions_of(&r) : NULL;
    if (!at)
        return FALSE;
    r.turn.cos = kiln_onnx_rotary_angles(s, call->operands[COS], at, r.flat ? 2 : 1);
    r.turn.sin = kiln_onnx_rotary_angles(s, call->operands[SIN], at, r.flat ? 2 : 1);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_rotate_heads(&r.turn, x, r.heads));
}
