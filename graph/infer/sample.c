/* SPDX-License-Identifier: Apache-2.0 */
/* Shape function of grid_sample: the channels of the data at the positions of the grid. */
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
