/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding: pairs of elements of each head are turned by the angle of their position.
 *
 *     x1·cos - x2·sin,  x1·sin + x2·cos
 *
 * The pairs are the halves of a head, or its neighbours (`interleaved`). Heads are a dim of their
 * own on the way; elements behind `rotary_embedding_dim` stay. */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/rotary.h"
#include "graph/onnx/steps.h"

enum {
    X,
    COS,
    SIN,
    POSITIONS
};

typedef struct {
    KilnOnnxRotary turn;
    KilnOnnxCall *call;
    int64_t heads; /* an attribute */
    bool flat;     /* x is [batch, sequence, heads × size] */
} Rotary;

/* --- the rotation --- */

KilnValue *
kiln_onnx_rotary_angles(const KilnOnnxSteps *s, KilnValue *cache, KilnValue *positions,
                        int64_t heads)
{
    if (positions)
        cache = kiln_onnx_step_gather(s, cache, positions, 0);
    return kiln_onnx_step_unsqueeze(s, cache, &heads, 1);
}

/* Every first (@half 0) or second element of the pairs of @x. */
static KilnValue *
half_of(const KilnOnnxRotary *r, KilnValue *x, int64_t half)
{
    if (r->interleaved)
        return kiln_onnx_step_slice(&r->s, x, -1, half, r->turned, 2);
    return kiln_onnx_step_slice(&r->s, x, -1, half * r->turned / 2, (half + 1) * r->turned / 2, 1);
}

static KilnValue *
sum_of_products(const KilnOnnxRotary *r, bool minus, KilnValue *a, KilnValue *b, KilnValue *c,
                KilnValue *d)
{
    KilnValue *x = kiln_onnx_step_mul(&r->s, a, b), *y = kiln_onnx_step_mul(&r->s, c, d);
    return minus ? kiln_onnx_step_sub(&r->s, x, y) : kiln_onnx_step_add(&r->s, x, y);
}

/* The pairs in the order that they had. */
static KilnValue *
join(const KilnOnnxRotary *r, KilnValue *x, KilnValue *first, KilnValue *second)
{
    static const int64_t last[] = { -1 };
    if (!r->interleaved)
        return kiln_onnx_step_concat(&r->s, first, second, -1);
    KilnValue *pairs = kiln_onnx_step_concat(&r->s, kiln_onnx_step_unsqueeze(&r->s, first, last, 1),
                                             kiln_onnx_step_unsqueeze(&r->s, second, last, 1), -1);
    const KilnOnnxExtent shape[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_DIM(x, 1), KILN_ONNX_DIM(x, 2),
                                     KILN_ONNX_NUMBER(r->turned) };
    return kiln_onnx_step_reshape(&r->s, pairs, shape, 4);
}

KilnValue *
kiln_onnx_step_rotate(const KilnOnnxRotary *r, KilnValue *x)
{
    if (!x || !r->cos || !r->sin)
        return NULL;
    KilnValue *first = half_of(r, x, 0), *second = half_of(r, x, 1);
    KilnValue *real = sum_of_products(r, true, r->cos, first, r->sin, second);
    KilnValue *imaginary = sum_of_products(r, false, r->sin, first, r->cos, second);
    KilnValue *turned = join(r, x, real, imaginary);
    if (r->turned == r->size)
        return turned;
    return kiln_onnx_step_concat(&r->s, turned,
                                 kiln_onnx_step_slice(&r->s, x, -1, r->turned, r->size, 1), -1);
}

KilnValue *
kiln_onnx_step_rotate_heads(const KilnOnnxRotary *r, KilnValue *x, int64_t heads)
{
    if (x->type.rank != 3)
        return kiln_onnx_step_rotate(r, x);
    const KilnOnnxExtent split[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_DIM(x, 1),
                                     KILN_ONNX_NUMBER(heads), KILN_ONNX_NUMBER(r->size) };
    const KilnOnnxExtent flat[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_DIM(x, 1),
                                    KILN_ONNX_NUMBER(heads * r->size) };
    const KilnOnnxExtent open[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_DIM(x, 1), KILN_ONNX_DIM(x, 2) };
    KilnValue *y = kiln_onnx_step_rotate(r, kiln_onnx_step_reshape(&r->s, x, split, 4));
    return kiln_onnx_step_reshape(&r->s, y, heads < 0 ? open : flat, 3);
}

gboolean
kiln_onnx_rotary_check(const KilnOnnxRotary *r, GError **error)
{
    if (r->turned >= 0 && r->turned <= r->size && r->turned % 2 == 0)
        return TRUE;
    return kiln_onnx_throw(r->s.call, KILN_ERROR_SHAPE, error,
                           "rotary_embedding_dim: expected an even number of at most "
                           "%" G_GINT64_FORMAT ", found %" G_GINT64_FORMAT,
                           r->size, r->turned);
}

/* --- the operator --- */

static gboolean
find_sizes(Rotary *r, GError **error)
{
    const KilnOnnxCall *call = r->call;
    KilnOnnxRotary *turn = &r->turn;
    const KilnType *x = &call->operands[X]->type;
    const int64_t last = x->dims[x->rank - 1];
    if (last < 0)
        return kiln_onnx_unsupported(call, error, "an unknown size of heads");
    if (r->flat && (r->heads < 1 || last % r->heads != 0))
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "num_heads: expected a divisor of the hidden size %" G_GINT64_FORMAT
                               ", found %" G_GINT64_FORMAT,
                               last, r->heads);
    turn->size = r->flat ? last / r->heads : last;
    turn->turned = turn->turned ? turn->turned : turn->size;
    return kiln_onnx_rotary_check(turn, error);
}

static gboolean
check_cache(const Rotary *r, uint32_t i, GError **error)
{
    const int rank = kiln_onnx_operand(r->call, POSITIONS) ? 2 : 3;
    const KilnType *type = &r->call->operands[i]->type, *x = &r->call->operands[X]->type;
    if (!kiln_onnx_require_rank(r->call, i, rank, rank, error) ||
        (rank == 3 &&
         !KILN_ONNX_REQUIRE_DIMS(r->call, i, error, x->dims[0], x->dims[x->rank - 2], -1)))
        return FALSE;
    if (type->dims[rank - 1] < 0 || type->dims[rank - 1] == r->turn.turned / 2)
        return TRUE;
    return kiln_onnx_throw(r->call, KILN_ERROR_SHAPE, error,
                           "operand %u: expected %" G_GINT64_FORMAT
                           " angles a position, found %" G_GINT64_FORMAT,
                           i, r->turn.turned / 2, type->dims[rank - 1]);
}

gboolean
kiln_onnx_convert_rotary_embedding(KilnOnnxCall *call, GError **error)
{
    for (uint32_t i = X; i <= SIN; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    KilnValue *x = call->operands[X], *positions = kiln_onnx_operand(call, POSITIONS);
    Rotary r = { .turn = { .s = { call, error } }, .call = call, .flat = x->type.rank == 3 };
    const KilnOnnxSteps *s = &r.turn.s;
    if (!kiln_onnx_take_int(call, "num_heads", &r.heads, error) ||
        !kiln_onnx_take_int(call, "rotary_embedding_dim", &r.turn.turned, error) ||
        !kiln_onnx_take_flag(call, "interleaved", &r.turn.interleaved, error) ||
        !kiln_onnx_require_rank(call, X, 3, 4, error) ||
        !KILN_ONNX_REQUIRE_DIMS(call, POSITIONS, error, x->type.dims[0],
                                x->type.dims[r.flat ? 1 : 2]) ||
        !find_sizes(&r, error) || !check_cache(&r, COS, error) || !check_cache(&r, SIN, error))
        return FALSE;
    r.turn.cos = kiln_onnx_rotary_angles(s, call->operands[COS], positions, r.flat ? 2 : 1);
    r.turn.sin = kiln_onnx_rotary_angles(s, call->operands[SIN], positions, r.flat ? 2 : 1);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_rotate_heads(&r.turn, x, r.heads));
}
