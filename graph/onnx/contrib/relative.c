/* SPDX-License-Identifier: Apache-2.0 */
/* RelativePositionBias and GatedRelativePositionBias of com.microsoft. The first looks up what each
 * key is worth by how far it stands from the query. Distances have a bucket each, and from half of
 * the buckets on one for several, by their logarithm:
 *
 *   d < exact:  d
 *   else        exact + log(d / exact) / log(max_distance / exact) * (buckets - exact), at most the
 *               last
 *
 * The second weighs such numbers by gates that are made of the queries. */
#include "graph/graph.h"
#include "graph/onnx/contrib/cache.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/logic.h"

#include <math.h>

/* --- RelativePositionBias --- */

typedef struct {
    KilnOnnxSteps s;
    int64_t both_ways, farthest, buckets, heads;
} Relative;

/* Operand @i as a scalar of i64. */
static KilnValue *
length_of(const Relative *r, uint32_t i)
{
    KilnValue *x = kiln_onnx_need(r->s.call, i, r->s.error);
    if (!x || !kiln_onnx_require_one(r->s.call, i, r->s.error))
        return NULL;
    if (x->type.rank != 0)
        x = kiln_onnx_step_reshape(&r->s, x, NULL, 0);
    return kiln_onnx_step_cast(&r->s, x, KILN_DTYPE_i64);
}

/* [queries, keys]: key - query */
static KilnValue *
places(const Relative *r)
{
    static const int64_t last[] = { 1 };
    KilnValue *queries = length_of(r, 1), *keys = queries ? length_of(r, 2) : NULL;
    if (!keys)
        return NULL;
    queries = kiln_onnx_step_unsqueeze(&r->s, kiln_onnx_count_to(&r->s, queries), last, 1);
    return kiln_onnx_step_sub(&r->s, kiln_onnx_count_to(&r->s, keys), queries);
}

/* The buckets of @distances, of which there are @buckets. */
static KilnValue *
buckets_of(const Relative *r, KilnValue *distances, int64_t buckets)
{
    const KilnOnnxSteps *s = &r->s;
    const int64_t exact = buckets / 2;
    const float range = logf((float)r->farthest / (float)exact);
    KilnValue *far = kiln_onnx_step_cast(s, distances, KILN_DTYPE_f32);
    far = kiln_onnx_step_at_least(s, kiln_onnx_step_div_number(s, far, (double)exact), 1);
    far = kiln_onnx_step_div_number(s, kiln_onnx_step_log(s, far), (double)range);
    far = kiln_onnx_step_mul_number(s, far, (double)(buckets - exact));
    far = kiln_onnx_step_cast(s, far, KILN_DTYPE_i64);
    far = kiln_onnx_step_add_number(s, far, (double)exact);
    far = kiln_onnx_step_at_most(s, far, (double)(buckets - 1));
    return kiln_onnx_step3(s, KILN_OP_where, NULL,
                           kiln_onnx_step_number(s, KILN_OP_less, distances, (double)exact),
                           distances, far);
}

static KilnValue *
all_buckets(const Relative *r)
{
    const KilnOnnxSteps *s = &r->s;
    KilnValue *at = places(r);
    if (!r->both_ways) {
        KilnValue *back = kiln_onnx_step_mul_number(s, at, -1);
        return buckets_of(r, kiln_onnx_step_at_least(s, back, 0), r->buckets);
    }
    const int64_t half = r->buckets / 2;
    KilnValue *ahead = kiln_onnx_step_number(s, KILN_OP_greater, at, 0);
    ahead =
        kiln_onnx_step_mul_number(s, kiln_onnx_step_cast(s, ahead, KILN_DTYPE_i64), (double)half);
    KilnValue *bucket = buckets_of(r, kiln_onnx_step_abs(s, at), half);
    return kiln_onnx_step_add(s, bucket, ahead);
}

/* (table, number of queries, number of keys). The table states [buckets, heads], but has the
 * buckets of one head after those of the other. */
gboolean
kiln_onnx_convert_relative_position_bias(KilnOnnxCall *call, GError **error)
{
    static const int64_t front[] = { 0 };
    Relative r = { .s = { call, error } };
    KilnValue *table = kiln_onnx_need(call, 0, error);
    if (!table || !kiln_onnx_require_rank(call, 0, 2, 2, error) ||
        !kiln_onnx_take_flag(call, "is_bidirectional", &r.both_ways, error) ||
        !kiln_onnx_take_int(call, "max_distance", &r.farthest, error))
        return FALSE;
    r.buckets = table->type.dims[0];
    r.heads = table->type.dims[1];
    if (r.buckets < 0 || r.heads < 0)
        return kiln_onnx_unsupported(call, error, "a table of unknown dims");
    const int64_t exact = r.buckets / (r.both_ways ? 4 : 2);
    if (exact < 1 || r.farthest <= exact)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "max_distance: expected more than the %" G_GINT64_FORMAT
                               " distances that have a bucket each, found %" G_GINT64_FORMAT,
                               exact, r.farthest);
    const KilnOnnxExtent heads[] = { KILN_ONNX_NUMBER(r.heads), KILN_ONNX_NUMBER(r.buckets) };
    table = kiln_onnx_step_reshape(&r.s, table, heads, 2);
    KilnValue *y = kiln_onnx_step_gather(&r.s, table, all_buckets(&r), 1);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_unsqueeze(&r.s, y, front, 1));
}

/* --- GatedRelativePositionBias --- */

/* The queries plus their bias: [batch, heads, rows, size] */
static KilnValue *
queries_of(const KilnOnnxSteps *s, int64_t heads, int64_t size)
{
    static const int64_t perm[] = { 0, 2, 1, 3 };
    KilnValue *x = kiln_onnx_step_add(s, s->call->operands[0], s->call->operands[1]);
    if (!x)
        return NULL;
    const KilnOnnxExtent extents[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_DIM(x, 1),
                                       KILN_ONNX_NUMBER(heads), KILN_ONNX_NUMBER(size) };
    return kiln_onnx_step_transpose(s, kiln_onnx_step_reshape(s, x, extents, 4), perm, 4);
}

/* Both gates of each row: [batch, heads, rows, 2] */
static KilnValue *
gates_of(const KilnOnnxSteps *s, KilnValue *queries, int64_t columns)
{
    KilnValue *y = kiln_onnx_step_matmul(s, queries, s->call->operands[3]);
    y = kiln_onnx_step_add(s, y, s->call->operands[4]);
    if (!y)
        return NULL;
    const KilnOnnxExtent halves[] = { KILN_ONNX_DIM(y, 0), KILN_ONNX_DIM(y, 1), KILN_ONNX_DIM(y, 2),
                                      KILN_ONNX_NUMBER(2), KILN_ONNX_NUMBER(columns / 2) };
    y = kiln_onnx_step_sum(s, kiln_onnx_step_reshape(s, y, halves, 5), -1, false);
    return kiln_onnx_step_sigmoid(s, y);
}

static gboolean
check_gated(const KilnOnnxCall *call, int64_t heads, GError **error)
{
    for (uint32_t i = 0; i < 6; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    if (kiln_onnx_operand(call, 6))
        return kiln_onnx_unsupported(call, error, "operand 6, rows without padding");
    if (!kiln_onnx_require_rank(call, 0, 3, 3, error) ||
        !kiln_onnx_require_rank(call, 3, 2, 2, error))
        return FALSE;
    const int64_t *x = call->operands[0]->type.dims, *w = call->operands[3]->type.dims;
    if (w[0] < 0 || w[1] < 0)
        return kiln_onnx_unsupported(call, error, "weights of unknown dims");
    if (heads < 1 || heads > INT32_MAX || w[0] > INT32_MAX || w[1] % 2 != 0 || w[1] < 2)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected 1 head or more and gates of an even number of columns, "
                               "found %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                               heads, w[1]);
    return KILN_ONNX_REQUIRE_DIMS(call, 0, error, -1, -1, heads * w[0]) &&
           KILN_ONNX_REQUIRE_DIMS(call, 1, error, heads * w[0]) &&
           KILN_ONNX_REQUIRE_DIMS(call, 2, error, 1, heads, x[1], x[1]) &&
           KILN_ONNX_REQUIRE_DIMS(call, 4, error, w[1]) &&
           KILN_ONNX_REQUIRE_DIMS(call, 5, error, 1, heads, 1, 1);
}

/*   (u * (r * a - 1) + 2) * positions; (queries, bias, positions, weights, bias, a) */
gboolean
kiln_onnx_convert_gated_relative_position_bias(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    int64_t heads = 0;
    if (!kiln_onnx_take_int(call, "num_heads", &heads, error) || !check_gated(call, heads, error))
        return FALSE;
    const int64_t *w = call->operands[3]->type.dims;
    KilnValue *gates = gates_of(&s, queries_of(&s, heads, w[0]), w[1]);
    KilnValue *u = kiln_onnx_step_slice(&s, gates, 3, 0, 1, 1);
    KilnValue *r = kiln_onnx_step_slice(&s, gates, 3, 1, 2, 1);
    r = kiln_onnx_step_sub_number(&s, kiln_onnx_step_mul(&s, r, call->operands[5]), 1);
    KilnValue *gate = kiln_onnx_step_add_number(&s, kiln_onnx_step_mul(&s, u, r), 2);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_mul(&s, gate, call->operands[2]));
}
