/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of operators that read regions of pictures: each region becomes a picture of one
 * size. */
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/pool.h"
#include "graph/op/resize.h"

static gboolean
check_extent(const char *name, int64_t extent, GError **error)
{
    return extent >= 1 ||
           kiln_throw(error, KILN_ERROR_INVALID, "%s: expected 1 or more, found %" G_GINT64_FORMAT,
                      name, extent);
}

/* Data of rank 4 and regions of @columns numbers. The result is [regions, channels, ?, ?]. */
static gboolean
check_regions(KilnInfer *in, int64_t columns, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0), *regions = kiln_infer_type(in, 1);
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS, error) ||
        !kiln_infer_require_like(in, 1, 0, error) || !kiln_infer_require_rank(in, 0, 4, 4, error) ||
        !kiln_infer_require_rank(in, 1, 2, 2, error))
        return FALSE;
    in->out[0] = kiln_infer_unknown(x->dtype, 4);
    if (x->rank >= 0)
        kiln_dim_copy(&in->out[0], 1, x, 1);
    if (regions->rank < 0)
        return TRUE;
    kiln_dim_copy(&in->out[0], 0, regions, 0);
    return kiln_infer_require_dim(in, 1, 1, columns, error);
}

KILN_INFER(roi_align)
{
    const KilnAttrs_roi_align *attrs = kiln_attrs(in->node, roi_align);
    const KilnType *pictures = kiln_infer_type(in, 2);
    if (!kiln_infer_one_of("mode", attrs->mode, "avg max", error) ||
        !kiln_infer_one_of("coordinate_transformation_mode", attrs->coordinate_transformation_mode,
                           "half_pixel output_half_pixel", error) ||
        !check_extent("output_height", attrs->output_height, error) ||
        !check_extent("output_width", attrs->output_width, error) || !check_regions(in, 4, error) ||
        !kiln_infer_require(in, 2, KILN_SET(i64), error) ||
        !kiln_infer_require_rank(in, 2, 1, 1, error))
        return FALSE;
    if (attrs->sampling_ratio < 0)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "sampling_ratio: expected 0 or more, found %" G_GINT64_FORMAT,
                          attrs->sampling_ratio);
    if (pictures->rank == 1 && !kiln_dim_merge(&in->out[0], 0, pictures, 0))
        return kiln_infer_throw_shape(in->node, 2, error, "a number for each region");
    kiln_dim_set(&in->out[0], 2, attrs->output_height);
    kiln_dim_set(&in->out[0], 3, attrs->output_width);
    return TRUE;
}

KILN_INFER(max_roi_pool)
{
    const KilnInts shape = kiln_attrs(in->node, max_roi_pool)->pooled_shape;
    if (shape.n != 2)
        return kiln_throw(error, KILN_ERROR_INVALID, "pooled_shape: expected 2 extents, found %u",
                          shape.n);
    if (!check_extent("pooled_shape", shape.v[0], error) ||
        !check_extent("pooled_shape", shape.v[1], error) || !check_regions(in, 5, error))
        return FALSE;
    kiln_dim_set(&in->out[0], 2, shape.v[0]);
    kiln_dim_set(&in->out[0], 3, shape.v[1]);
    return TRUE;
}
