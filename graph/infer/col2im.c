/* SPDX-License-Identifier: Apache-2.0 */
/* The shape function of col2im: columns [N, C × block, blocks] become an image [N, C, …]. */
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/conv.h"

static gboolean
check_list(const char *name, KilnInts list, int64_t n, int64_t least, GError **error)
{
    if (list.n != 0 && n >= 0 && list.n != n)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "%s: expected %" G_GINT64_FORMAT " numbers, found %u", name, n, list.n);
    for (uint32_t i = 0; i < list.n; i++) {
        if (list.v[i] < least || list.v[i] > 1 << 30)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "%s: expected numbers from %" G_GINT64_FORMAT
                              " to 2^30, found %" G_GINT64_FORMAT,
                              name, least, list.v[i]);
    }
    return TRUE;
}

/* How many blocks an image holds in all; -1 where it is not known. */
static gboolean
count_blocks(const KilnInfer *in, const int64_t *block, int64_t n, KilnWide *out, GError **error)
{
    const KilnAttrs_col2im *attrs = kiln_attrs(in->node, col2im);
    *out = 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t extent;
        if (!kiln_dim_is_number(kiln_infer_element(in, 1, i), &extent)) {
            *out = -1;
            return TRUE;
        }
        KilnWide room = (KilnWide)extent + kiln_ints_at(attrs->pads, i, 0) +
                        kiln_ints_at(attrs->pads, n + i, 0) -
                        (KilnWide)kiln_ints_at(attrs->dilations, i, 1) * (block[i] - 1) - 1;
        if (room < 0)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "expected an image of at least one block, found %" G_GINT64_FORMAT
                              " elements for dim %" G_GINT64_FORMAT,
                              extent, i);
        *out *= room / kiln_ints_at(attrs->strides, i, 1) + 1;
        if (*out > INT64_MAX)
            return kiln_throw(error, KILN_ERROR_SHAPE, "expected less than 2^63 blocks");
    }
    return TRUE;
}

/* The block's dims and their product. */
static gboolean
read_block(const KilnInfer *in, int64_t n, int64_t *block, KilnWide *out, GError **error)
{
    const KilnKnown *known = kiln_infer_known(in, 2);
    *out = 1;
    for (int64_t i = 0; i < n; i++) {
        block[i] = known->v[i];
        if (block[i] < 1 || block[i] > 1 << 30)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "block_shape: expected numbers from 1 to 2^30, found "
                              "%" G_GINT64_FORMAT,
                              block[i]);
        *out *= block[i];
        if (*out > INT64_MAX)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "block_shape: expected less than 2^63 in all");
    }
    return TRUE;
}

/* What is known where the block is known. */
static gboolean
infer_channels(KilnInfer *in, int64_t n, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    int64_t block[KILN_MAX_RANK];
    KilnWide size, blocks;
    if (!read_block(in, n, block, &size, error) || !count_blocks(in, block, n, &blocks, error))
        return FALSE;
    if (x->rank < 0)
        return TRUE;
    if (blocks >= 0 && !kiln_infer_require_dim(in, 0, 2, (int64_t)blocks, error))
        return FALSE;
    if (x->dims[1] >= 0 && x->dims[1] % size != 0)
        return kiln_infer_throw_shape(in->node, 0, error, "dim 1 in multiples of %" G_GINT64_FORMAT,
                                      (int64_t)size);
    return kiln_dim_set_open(&in->out[0], 1,
                             kiln_dim_floor(in->dims, kiln_type_dim(x, 1, in->dims),
                                            kiln_dim_number(in->dims, (int64_t)size)),
                             error);
}

KILN_INFER(col2im)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnAttrs_col2im *attrs = kiln_attrs(in->node, col2im);
    int64_t n = kiln_infer_list_length(in, 1), block = kiln_infer_list_length(in, 2);
    if (!kiln_infer_require(in, 0, KILN_SET_NUMBERS | KILN_SET(bool), error) ||
        !kiln_infer_require_rank(in, 0, 3, 3, error) ||
        !kiln_infer_require_list(in, 1, KILN_SET(i64), false, error) ||
        !kiln_infer_require_list(in, 2, KILN_SET(i64), false, error))
        return FALSE;
    if (n >= 0 && block >= 0 && n != block)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "block_shape: expected %" G_GINT64_FORMAT
                          " numbers, found %" G_GINT64_FORMAT,
                          n, block);
    n = n >= 0 ? n : block;
    if (!check_list("dilations", attrs->dilations, n, 1, error) ||
        !check_list("strides", attrs->strides, n, 1, error) ||
        !check_list("pads", attrs->pads, n < 0 ? n : 2 * n, 0, error) ||
        !kiln_infer_check_rank(n < 0 ? n : n + 2, error))
        return FALSE;
    in->out[0] = kiln_infer_unknown(x->dtype, n < 0 ? n : n + 2);
    if (n < 0)
        return TRUE;
    if (x->rank >= 0)
        kiln_dim_copy(&in->out[0], 0, x, 0);
    for (int64_t i = 0; i < n; i++) {
        if (!kiln_dim_set_open(&in->out[0], (int)i + 2, kiln_infer_element(in, 1, i), error))
            return FALSE;
    }
    return !kiln_infer_known(in, 2) || infer_channels(in, n, error);
}
