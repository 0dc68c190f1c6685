/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of sampling: the channels of the data at the positions of a grid, and such grids.
 */
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/resize.h"

KILN_INFER(grid_sample)
{
    const KilnType *x = kiln_infer_type(in, 0), *grid = kiln_infer_type(in, 1);
    const KilnAttrs_grid_sample *attrs = kiln_attrs(in->node, grid_sample);
    if (!kiln_infer_one_of("mode", attrs->mode, "linear nearest cubic", error) ||
        !kiln_infer_one_of("padding_mode", attrs->padding_mode, "zeros border reflection", error) ||
        !kiln_infer_require(in, 0, KILN_SET_FLOATS, error) ||
        !kiln_infer_require(in, 1, KILN_SET_FLOATS, error) ||
        !kiln_infer_require_rank(in, 0, 3, KILN_MAX_RANK, error) ||
        !kiln_infer_require_rank(in, 1, 3, KILN_MAX_RANK, error))
        return FALSE;
    int rank = x->rank >= 0 ? x->rank : grid->rank;
    in->out[0] = kiln_infer_unknown(x->dtype, rank);
    if (x->rank >= 0 && grid->rank >= 0 && !kiln_infer_require_rank(in, 1, rank, rank, error))
        return FALSE;
    if (grid->rank >= 0) {
        if (!kiln_infer_require_dim(in, 1, rank - 1, rank - 2, error))
            return FALSE;
        for (int d = 2; d < rank; d++)
            kiln_dim_copy(&in->out[0], d, grid, d - 1);
    }
    if (x->rank >= 0) {
        if (grid->rank >= 0 && !kiln_infer_require_dim(in, 1, 0, x->dims[0], error))
            return FALSE;
        kiln_dim_copy(&in->out[0], 0, x, 0);
        kiln_dim_copy(&in->out[0], 1, x, 1);
    }
    return TRUE;
}

/* Positions of a grid [N, H, W, 2] or [N, D, H, W, 3]; the size is [N, C, …]. */
KILN_INFER(affine_grid)
{
    const KilnType *theta = kiln_infer_type(in, 0);
    const int64_t n = kiln_infer_list_length(in, 1);
    int64_t batch;
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS, error) ||
        !kiln_infer_require_rank(in, 0, 3, 3, error) ||
        !kiln_infer_require_list(in, 1, KILN_SET(i64), false, error))
        return FALSE;
    if (n >= 0 && n != 4 && n != 5)
        return kiln_infer_throw_shape(in->node, 1, error, "4 or 5 extents");
    in->out[0] = kiln_infer_unknown(theta->dtype, n);
    if (n < 0)
        return TRUE;
    if (!kiln_infer_require_dim(in, 0, 1, n - 2, error) ||
        !kiln_infer_require_dim(in, 0, 2, n - 1, error))
        return FALSE;
    if (kiln_dim_is_number(kiln_infer_element(in, 1, 0), &batch) &&
        !kiln_infer_require_dim(in, 0, 0, batch, error))
        return FALSE;
    if (theta->rank >= 0)
        kiln_dim_copy(&in->out[0], 0, theta, 0);
    if (theta->rank < 0 || !kiln_type_knows_dim(theta, 0))
        kiln_type_set_dim(&in->out[0], 0, kiln_infer_element(in, 1, 0));
    for (int d = 1; d < n - 1; d++) {
        if (!kiln_dim_set_open(&in->out[0], d, kiln_infer_element(in, 1, d + 1), error))
            return FALSE;
    }
    kiln_dim_set(&in->out[0], (int)n - 1, n - 2);
    return TRUE;
}
