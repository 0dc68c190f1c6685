/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of what moves or repeats whole elements: transpose, concat, split, expand, tile,
 * and the exchange between depth and space; checks of trilu and reverse_sequence. */
#include "graph/infer/common.h"
#include "graph/op/concat.h"
#include "graph/op/slice.h"
#include "graph/op/transpose.h"

/* --- transpose --- */

gboolean
kiln_transpose_perm(const KilnNode *node, int perm[KILN_MAX_RANK], GError **error)
{
    const KilnType *x = &kiln_node_operand(node, 0)->type;
    KilnInts list = kiln_attrs(node, transpose)->perm;
    int rank = x->rank >= 0 ? x->rank : (int)MIN(list.n, KILN_MAX_RANK);
    uint32_t seen = 0;
    if (list.n && list.n != (uint32_t)rank)
        return kiln_throw(error, KILN_ERROR_SHAPE, "perm: expected %d axes, found %u", rank,
                          list.n);
    for (int d = 0; d < rank; d++) {
        int64_t from = kiln_ints_at(list, (uint32_t)d, rank - 1 - d);
        if (from < 0 || from >= rank || seen & 1u << from)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "perm: expected every axis from 0 to %d once, found %" G_GINT64_FORMAT
                              " for dim %d",
                              rank - 1, from, d);
        seen |= 1u << from;
        perm[d] = (int)from;
    }
    return TRUE;
}

/* Per-axis quantization follows its axis. */
static const KilnQuant *
transposed_quant(const KilnInfer *in, const int perm[KILN_MAX_RANK])
{
    const KilnType *x = kiln_infer_type(in, 0);
    uint32_t rank = x->rank < 0 ? kiln_attrs(in->node, transpose)->perm.n : (uint32_t)x->rank;
    int axis = -1;
    for (int d = 0; d < (int)MIN(rank, KILN_MAX_RANK); d++) {
        if (x->quant && perm[d] == x->quant->axis)
            axis = d;
    }
    return kiln_infer_quant_along(in, axis);
}

KILN_INFER(transpose)
{
    const KilnType *x = kiln_infer_type(in, 0);
    int perm[KILN_MAX_RANK];
    if (!kiln_transpose_perm(in->node, perm, error))
        return FALSE;
    uint32_t n = kiln_attrs(in->node, transpose)->perm.n;
    KilnType out = kiln_infer_unknown(x->dtype, x->rank >= 0 || !n ? x->rank : (int64_t)n);
    for (int d = 0; d < x->rank; d++)
        kiln_dim_copy(&out, d, x, perm[d]);
    out.quant = transposed_quant(in, perm);
    in->out[0] = out;
    if (kiln_known_operand(in, 0)) {
        int64_t own[KILN_MAX_RANK], strides[KILN_MAX_RANK];
        kiln_known_strides(x, own);
        for (int d = 0; d < x->rank; d++)
            strides[d] = own[perm[d]];
        kiln_known_strided(in, 0, 0, 0, strides);
    }
    return TRUE;
}

/* --- concat --- */

/* Adds operand @i to @out along @axis; every other dim must agree. */
static gboolean
concat_operand(const KilnInfer *in, uint32_t i, int axis, KilnType *out, GError **error)
{
    const KilnType *x = kiln_infer_type(in, i);
    if (!kiln_infer_require_rank(in, i, out->rank, out->rank, error))
        return FALSE;
    for (int d = 0; d < out->rank; d++) {
        int64_t expected = out->dims[d];
        if (d != axis && !kiln_dim_merge(out, d, x, d))
            return kiln_infer_throw_shape(in->node, i, error, "dim %d to be %" G_GINT64_FORMAT, d,
                                          expected);
    }
    if (out->dims[axis] >= 0)
        return kiln_dim_set_scaled(out, axis, x, axis, 1, out->dims[axis], error);
    if (x->dims[axis] >= 0)
        return kiln_dim_set_scaled(out, axis, out, axis, 1, x->dims[axis], error);
    const KilnDim *mine = out->open[axis], *more = x->open[axis];
    return kiln_dim_set_open(
        out, axis, mine ? kiln_dim_add(kiln_dim_table_of(mine), mine, more) : NULL, error);
}

static void
concat_known(KilnInfer *in, int axis)
{
    uint32_t n = in->node->n_operands;
    for (uint32_t i = 0; i < n; i++) {
        if (!kiln_known_operand(in, i))
            return;
    }
    int64_t *to = kiln_known_result(in, 0);
    if (!to || in->known[0]->n == 0)
        return;
    /* Nothing is empty in the dims that all share, so every count below is small. */
    int64_t outer = 1, row = 1, at = 0;
    for (int d = 0; d < in->out[0].rank; d++) {
        outer *= d < axis ? in->out[0].dims[d] : 1;
        row *= d >= axis ? in->out[0].dims[d] : 1;
    }
    for (uint32_t i = 0; i < n; i++) {
        const int64_t *from = kiln_known_operand(in, i);
        int64_t run = kiln_type_elements(kiln_infer_type(in, i)) / outer;
        for (int64_t k = 0; k < outer * run; k++)
            to[k / run * row + at + k % run] = from[k];
        at += run;
    }
}

KILN_INFER(concat)
{
    int axis = 0, rank = KILN_RANK_UNKNOWN;
    bool all_ranked = true;
    if (!kiln_infer_require_present(in, error) || !kiln_infer_require_alike(in, error))
        return FALSE;
    KilnType out = kiln_type_unranked(kiln_infer_type(in, 0)->dtype);
    for (uint32_t i = 0; i < in->node->n_operands; i++) {
        const KilnType *x = kiln_infer_type(in, i);
        all_ranked &= x->rank >= 0;
        if (rank < 0 && x->rank >= 0) {
            rank = x->rank;
            out = kiln_infer_plain(x);
            if (!kiln_infer_axis(rank, kiln_attrs(in->node, concat)->axis, &axis, error))
                return FALSE;
        } else if (x->rank >= 0 && !concat_operand(in, i, axis, &out, error)) {
            return FALSE;
        }
    }
    if (!all_ranked && rank >= 0)
        kiln_dim_set(&out, axis, KILN_DIM_UNKNOWN);
    KilnType left = kiln_infer_plain(&out), right = left;
    left.quant = out.quant = kiln_infer_moved_quant(in, 0);
    for (uint32_t i = 1; out.quant && i < in->node->n_operands; i++) {
        right.quant = kiln_infer_moved_quant(in, i);
        if (!kiln_type_equal(&left, &right))
            out.quant = NULL;
    }
    in->out[0] = out;
    concat_known(in, axis);
    return TRUE;
}

/* --- split --- */

gboolean
kiln_split_resolve(const KilnNode *node, int64_t size, int64_t *parts, GError **error)
{
    const KilnValue *stated = kiln_node_operand(node, 1);
    const KilnKnown *sizes = stated ? stated->known : NULL;
    uint32_t n = node->n_results;
    bool uneven = kiln_attrs(node, split)->num_outputs != 0;
    int64_t chunk = size < 0 ? -1 : size / n + (uneven && size % n != 0);
    KilnWide sum = 0;
    for (uint32_t r = 0; r < n; r++) {
        if (stated)
            parts[r] = sizes ? sizes->v[r] : -1;
        else
            parts[r] = uneven && r == n - 1 && size >= 0 ? size - chunk * (n - 1) : chunk;
        if (stated && sizes && parts[r] < 0)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "split: expected sizes of 0 or more, found %" G_GINT64_FORMAT,
                              parts[r]);
        sum += parts[r];
    }
    if (size < 0 || (stated && !sizes) || (sum == size && parts[n - 1] >= 0))
        return TRUE;
    if (uneven)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "num_outputs: expected a number that parts of %" G_GINT64_FORMAT
                          " of %" G_GINT64_FORMAT " elements fill, found %u",
                          chunk, size, n);
    return kiln_throw(error, KILN_ERROR_SHAPE,
                      "split: expected %u parts of the %" G_GINT64_FORMAT
                      " elements, found parts of %" G_GINT64_FORMAT " elements",
                      n, size, (int64_t)CLAMP(sum, 0, INT64_MAX));
}

static gboolean
check_split(const KilnInfer *in, GError **error)
{
    int64_t stated = kiln_attrs(in->node, split)->num_outputs, n = in->node->n_results;
    int64_t length = kiln_infer_list_length(in, 1);
    if (!kiln_infer_require_list(in, 1, KILN_SET(i64), false, error))
        return FALSE;
    if (stated && (stated != n || kiln_infer_type(in, 1)))
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "num_outputs: expected the %" G_GINT64_FORMAT
                          " results and no split operand, found %" G_GINT64_FORMAT,
                          n, stated);
    if (length >= 0 && length != n)
        return kiln_infer_throw_shape(in->node, 1, error, "%" G_GINT64_FORMAT " sizes", n);
    return TRUE;
}

/* The size of part @r of an open axis of @x, as kiln_split_resolve() has it of numbers. */
static const KilnDim *
open_part(const KilnInfer *in, const KilnType *x, int axis, uint32_t r)
{
    uint32_t n = in->node->n_results;
    const KilnDim *size = x->open[axis], *chunk;
    if (kiln_infer_type(in, 1))
        return kiln_infer_element(in, 1, r);
    if (!size)
        return NULL;
    KilnDimTable *table = kiln_dim_table_of(size);
    bool uneven = kiln_attrs(in->node, split)->num_outputs != 0;
    chunk = uneven ? kiln_dim_ceil(table, size, kiln_dim_number(table, n))
                   : kiln_dim_floor(table, size, kiln_dim_number(table, n));
    if (!uneven || r + 1 < n)
        return chunk;
    return kiln_dim_sub(table, size, kiln_dim_scale(table, chunk, n - 1));
}

KILN_INFER(split)
{
    const KilnType *x = kiln_infer_type(in, 0);
    uint32_t n = in->node->n_results;
    g_autofree int64_t *parts = g_new0(int64_t, n);
    int axis = 0;
    if (!check_split(in, error))
        return FALSE;
    if (x->rank >= 0 &&
        (!kiln_infer_axis(x->rank, kiln_attrs(in->node, split)->axis, &axis, error) ||
         !kiln_split_resolve(in->node, x->dims[axis], parts, error)))
        return FALSE;
    int64_t strides[KILN_MAX_RANK], at = 0;
    if (kiln_known_operand(in, 0))
        kiln_known_strides(x, strides);
    for (uint32_t r = 0; r < n; r++) {
        in->out[r] = kiln_infer_plain(x);
        if (x->rank < 0)
            continue;
        if (x->quant && x->quant->axis >= 0 && x->quant->axis != axis)
            in->out[r].quant = x->quant;
        kiln_dim_set(&in->out[r], axis, parts[r]);
        if (parts[r] < 0 && !kiln_dim_set_open(&in->out[r], axis, open_part(in, x, axis, r), error))
            return FALSE;
        if (kiln_known_operand(in, 0) && parts[r] >= 0) {
            kiln_known_strided(in, r, 0, at * strides[axis], strides);
            at += parts[r];
        }
    }
    return TRUE;
}

/* --- expand and tile --- */

/* An axis that is not repeated moves with the dims in front of it. */
static const KilnQuant *
expanded_quant(const KilnInfer *in, const KilnType *out)
{
    const KilnType *x = kiln_infer_type(in, 0);
    int axis = x->quant ? x->quant->axis : -1;
    if (axis < 0 || x->rank < 0 || out->rank < 0)
        return NULL;
    int to = axis + out->rank - x->rank;
    return x->dims[axis] >= 0 && x->dims[axis] == out->dims[to] ? kiln_infer_quant_along(in, to)
                                                                : NULL;
}

KILN_INFER(expand)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnKnown *shape = kiln_infer_known(in, 1);
    if (!kiln_infer_require_list(in, 1, KILN_SET(i64), false, error))
        return FALSE;
    int64_t n = shape ? shape->n : kiln_infer_list_length(in, 1);
    if (!kiln_infer_check_rank(n, error))
        return FALSE;
    KilnType stated = kiln_infer_unknown(x->dtype, n);
    for (int d = 0; d < stated.rank; d++) {
        if (!kiln_dim_set_open(&stated, d, kiln_infer_element(in, 1, d), error))
            return FALSE;
    }
    in->out[0].dtype = x->dtype;
    if (!kiln_infer_broadcast_shapes(x, &stated, &in->out[0], error))
        return FALSE;
    in->out[0].quant = expanded_quant(in, &in->out[0]);
    if (kiln_known_operand(in, 0) && in->out[0].rank >= 0) {
        int64_t own[KILN_MAX_RANK], strides[KILN_MAX_RANK] = { 0 };
        kiln_known_strides(x, own);
        for (int d = 0; d < x->rank; d++)
            strides[d + in->out[0].rank - x->rank] = x->dims[d] == 1 ? 0 : own[d];
        kiln_known_strided(in, 0, 0, 0, strides);
    }
    return TRUE;
}

static void
tile_known(KilnInfer *in)
{
    const KilnType *x = kiln_infer_type(in, 0), *type = &in->out[0];
    const int64_t *from = kiln_known_operand(in, 0);
    int64_t *to = from ? kiln_known_result(in, 0) : NULL;
    int64_t strides[KILN_MAX_RANK];
    if (!to)
        return;
    kiln_known_strides(x, strides);
    for (int64_t k = 0; k < in->known[0]->n; k++) {
        int64_t at = 0, rest = k;
        for (int d = type->rank - 1; d >= 0; d--) {
            at += rest % type->dims[d] % x->dims[d] * strides[d];
            rest /= type->dims[d];
        }
        to[k] = from[at];
    }
}

KILN_INFER(tile)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnKnown *repeats = kiln_infer_known(in, 1);
    int64_t n = kiln_infer_list_length(in, 1);
    if (!kiln_infer_require_list(in, 1, KILN_SET(i64), false, error))
        return FALSE;
    if (x->rank >= 0 && n >= 0 && n != x->rank)
        return kiln_infer_throw_shape(in->node, 1, error, "%d repeats", x->rank);
    KilnType out = kiln_infer_unknown(x->dtype, x->rank >= 0 ? x->rank : n);
    for (int d = 0; repeats && d < x->rank; d++) {
        int64_t times = repeats->v[d];
        if (times < 0)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "repeats: expected 0 or more, found %" G_GINT64_FORMAT, times);
        if (times == 0)
            kiln_dim_set(&out, d, 0);
        else if (!kiln_dim_set_scaled(&out, d, x, d, times, 0, error))
            return FALSE;
    }
    for (int d = 0; !repeats && d < out.rank && x->rank >= 0; d++) {
        const KilnDim *times = kiln_infer_element(in, 1, d);
        if (times &&
            !kiln_dim_set_open(&out, d,
                               kiln_dim_mul(in->dims, kiln_type_dim(x, d, in->dims), times), error))
            return FALSE;
    }
    int axis = x->quant ? x->quant->axis : -1;
    if (axis >= 0 && repeats && x->rank >= 0 && repeats->v[axis] == 1)
        out.quant = x->quant;
    in->out[0] = out;
    tile_known(in);
    return TRUE;
}

/* --- depth and space --- */

static gboolean
check_blocks(const KilnInfer *in, int64_t block, GError **error)
{
    if (block < 1 || block > 1 << 20)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "blocksize: expected a number from 1 to 2^20, found %" G_GINT64_FORMAT,
                          block);
    return kiln_infer_require_rank(in, 0, 4, 4, error);
}

/* Dim @d of @out becomes that of @x divided by @by, which must divide it. */
static gboolean
divide_dim(const KilnInfer *in, KilnType *out, int d, int64_t by, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    if (x->dims[d] >= 0 && x->dims[d] % by)
        return kiln_infer_throw_shape(in->node, 0, error,
                                      "dim %d to be a multiple of %" G_GINT64_FORMAT, d, by);
    const KilnDim *open = x->dims[d] < 0 ? x->open[d] : NULL;
    kiln_dim_set(out, d, x->dims[d] < 0 ? x->dims[d] : x->dims[d] / by);
    if (open) {
        KilnDimTable *table = kiln_dim_table_of(open);
        kiln_type_set_dim(out, d, kiln_dim_floor(table, open, kiln_dim_number(table, by)));
    }
    return TRUE;
}

static gboolean
multiply_dim(const KilnInfer *in, KilnType *out, int d, int64_t by, GError **error)
{
    return kiln_dim_set_scaled(out, d, kiln_infer_type(in, 0), d, by, 0, error);
}

KILN_INFER(depth_to_space)
{
    const KilnType *x = kiln_infer_type(in, 0);
    int64_t block = kiln_attrs(in->node, depth_to_space)->blocksize;
    const char *mode = kiln_attrs(in->node, depth_to_space)->mode;
    if (!kiln_infer_one_of("mode", mode, "DCR CRD", error) || !check_blocks(in, block, error))
        return FALSE;
    KilnType out = x->rank == 4 ? kiln_infer_plain(x) : kiln_infer_unknown(x->dtype, 4);
    if (x->rank == 4 &&
        (!divide_dim(in, &out, 1, block * block, error) ||
         !multiply_dim(in, &out, 2, block, error) || !multiply_dim(in, &out, 3, block, error)))
        return FALSE;
    in->out[0] = out;
    return TRUE;
}

KILN_INFER(space_to_depth)
{
    const KilnType *x = kiln_infer_type(in, 0);
    int64_t block = kiln_attrs(in->node, space_to_depth)->blocksize;
    const char *mode = kiln_attrs(in->node, space_to_depth)->mode;
    if (!kiln_infer_one_of("mode", mode, "DCR CRD", error) || !check_blocks(in, block, error))
        return FALSE;
    KilnType out = x->rank == 4 ? kiln_infer_plain(x) : kiln_infer_unknown(x->dtype, 4);
    if (x->rank == 4 &&
        (!multiply_dim(in, &out, 1, block * block, error) ||
         !divide_dim(in, &out, 2, block, error) || !divide_dim(in, &out, 3, block, error)))
        return FALSE;
    in->out[0] = out;
    return TRUE;
}

/* Glow's: the @group blocks of channels are dealt out in turn. */
KILN_INFER(channel_shuffle)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnAttrs_channel_shuffle *attrs = kiln_attrs(in->node, channel_shuffle);
    int axis;
    if (attrs->group < 1)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "group: expected 1 or more, found %" G_GINT64_FORMAT, attrs->group);
    in->out[0] = kiln_infer_plain(x);
    in->out[0].quant = kiln_infer_moved_quant(in, 0);
    if (x->rank < 0)
        return TRUE;
    return kiln_infer_axis(x->rank, attrs->axis, &axis, error) &&
           divide_dim(in, &(KilnType){ 0 }, axis, attrs->group, error);
}

/* --- checks that `same` calls --- */

gboolean
kiln_infer_check_trilu(const KilnInfer *in, GError **error)
{
    return kiln_infer_require_rank(in, 0, 2, KILN_MAX_RANK, error) &&
           kiln_infer_require(in, 1, KILN_SET(i64), error) &&
           kiln_infer_require_scalar(in, 1, error);
}

gboolean
kiln_infer_check_reverse_sequence(const KilnInfer *in, GError **error)
{
    const KilnAttrs_reverse_sequence *attrs = kiln_attrs(in->node, reverse_sequence);
    bool axes_fit = (attrs->batch_axis == 0 && attrs->time_axis == 1) ||
                    (attrs->batch_axis == 1 && attrs->time_axis == 0);
    if (!axes_fit)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "batch_axis and time_axis: expected 0 and 1 or 1 and 0, found "
                          "%" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                          attrs->batch_axis, attrs->time_axis);
    return kiln_infer_require_rank(in, 0, 2, KILN_MAX_RANK, error) &&
           kiln_infer_require(in, 1, KILN_SET(i64), error) &&
           kiln_infer_require_vector(in, 1, kiln_infer_type(in, 0), (int)attrs->batch_axis, error);
}
