/* SPDX-License-Identifier: Apache-2.0 */
/* Shape function of resize: sizes of the result stated outright (perhaps bent to keep the aspect
 * ratio), or scales, or scales of a cropped box. */
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/resize.h"

#include <math.h>

enum {
    X,
    ROI,
    SCALES,
    SIZES
};

/* An operand that is there and not an empty list: exporters write absent ones as empty. */
static bool
is_stated(const KilnInfer *in, uint32_t i)
{
    return kiln_infer_type(in, i) && kiln_infer_list_length(in, i) != 0;
}

static gboolean
check_modes(const KilnAttrs_resize *attrs, GError **error)
{
    return kiln_infer_one_of("mode", attrs->mode, "nearest linear cubic", error) &&
           kiln_infer_one_of("coordinate_transformation_mode",
                             attrs->coordinate_transformation_mode,
                             "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners "
                             "asymmetric tf_crop_and_resize tf_half_pixel_for_nn",
                             error) &&
           kiln_infer_one_of("nearest_mode", attrs->nearest_mode,
                             "round_prefer_floor round_prefer_ceil floor ceil", error) &&
           kiln_infer_one_of("keep_aspect_ratio_policy", attrs->keep_aspect_ratio_policy,
                             "stretch not_larger not_smaller", error);
}

/* The axes that scales and sizes speak of, in their order; @n of them, -1 where not known. */
static gboolean
resized_axes(const KilnInfer *in, int axes[KILN_MAX_RANK], int64_t *n, GError **error)
{
    const KilnType *x = kiln_infer_type(in, X);
    KilnInts list = kiln_attrs(in->node, resize)->axes;
    bool marked[KILN_MAX_RANK];
    *n = list.n ? (int64_t)list.n : x->rank;
    if (x->rank < 0)
        return TRUE;
    if (list.n && !kiln_infer_mark_axes(list.v, list.n, x->rank, marked, error))
        return FALSE;
    for (int i = 0; i < *n; i++)
        axes[i] = list.n ? kiln_type_axis(x, list.v[i]) : i;
    return TRUE;
}

static gboolean
check_operands(const KilnInfer *in, int64_t n, bool crops, GError **error)
{
    if (!kiln_infer_require_list(in, ROI, KILN_SET_FLOATS, false, error) ||
        !kiln_infer_require_list(in, SCALES, KILN_SET(f32), false, error) ||
        !kiln_infer_require_list(in, SIZES, KILN_SET(i64), false, error))
        return FALSE;
    bool scales = is_stated(in, SCALES), sizes = is_stated(in, SIZES);
    bool open = kiln_infer_list_length(in, SCALES) < 0 || kiln_infer_list_length(in, SIZES) < 0;
    if ((!scales && !sizes) || (scales && sizes && !open))
        return kiln_throw(error, KILN_ERROR_SHAPE, "expected scales or sizes, found %s",
                          scales ? "both" : "neither");
    if (crops && !is_stated(in, ROI))
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "expected a roi for tf_crop_and_resize, found none");
    for (uint32_t i = ROI; n >= 0 && i <= SIZES; i++) {
        int64_t length = kiln_infer_list_length(in, i), expected = i == ROI ? 2 * n : n;
        if (length > 0 && length != expected && (i != ROI || crops))
            return kiln_infer_throw_shape(in->node, i, error, "%" G_GINT64_FORMAT " elements",
                                          expected);
    }
    return TRUE;
}

/* The specification computes sizes in single precision: the same rounding gives the same sizes. */
static gboolean
set_scaled(KilnType *out, int d, float size, GError **error)
{
    if (!(size >= 0 && size < 0x1p63f))
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "dim %d: expected a size from 0 to 2^63-1, found %g", d, (double)size);
    kiln_dim_set(out, d, (int64_t)size);
    return TRUE;
}

enum {
    EXACT = 1 << 12 /* numerators and denominators with which floats compute sizes exactly */
};

/* floor(size · scale) where the scale is a quotient of small numbers, so that products of sizes are
 * exact in floats; NULL for others: their rounding depends on the size. */
static const KilnDim *
scaled_extent(const KilnDim *size, double scale)
{
    int64_t denominator = 1;
    while (denominator < EXACT && scale != floor(scale)) {
        scale *= 2;
        denominator *= 2;
    }
    if (!size || scale != floor(scale) || scale > EXACT)
        return NULL;
    KilnDimTable *table = kiln_dim_table_of(size);
    return kiln_dim_floor(table, kiln_dim_scale(table, size, (int64_t)scale),
                          kiln_dim_number(table, denominator));
}

static gboolean
by_scales(const KilnInfer *in, const int *axes, int64_t n, KilnType *out, GError **error)
{
    const KilnType *x = kiln_infer_type(in, X);
    const KilnAttrs_resize *attrs = kiln_attrs(in->node, resize);
    bool crops = g_str_equal(attrs->coordinate_transformation_mode, "tf_crop_and_resize");
    double scales[KILN_MAX_RANK], roi[2 * KILN_MAX_RANK];
    int64_t found = 0, roi_found = 0;
    if (!kiln_infer_floats(kiln_node_operand(in->node, SCALES), scales, KILN_MAX_RANK, &found) ||
        found != n)
        return TRUE;
    bool roi_known =
        kiln_infer_floats(kiln_node_operand(in->node, ROI), roi, 2 * KILN_MAX_RANK, &roi_found) &&
        roi_found == 2 * n;
    for (int i = 0; i < n; i++) {
        int d = axes[i];
        if (!(scales[i] > 0))
            return kiln_throw(error, KILN_ERROR_SHAPE, "scales: expected numbers above 0, found %g",
                              scales[i]);
        float extent = crops && roi_known ? (float)roi[n + i] - (float)roi[i] : 1.0f;
        if (x->dims[d] < 0 && extent == 1 && (roi_known || !crops))
            kiln_type_set_dim(out, d, scaled_extent(x->open[d], (float)scales[i]));
        else if (x->dims[d] >= 0 && (roi_known || !crops) &&
                 !set_scaled(out, d, floorf((float)x->dims[d] * extent * (float)scales[i]), error))
            return FALSE;
    }
    return TRUE;
}

/* The one scale that all axes share so that the result is not larger (smaller) than stated. */
static float
shared_scale(const KilnType *x, const int *axes, const KilnKnown *sizes, bool not_larger)
{
    float scale = not_larger ? INFINITY : 0;
    for (int i = 0; i < sizes->n; i++) {
        float ratio = (float)sizes->v[i] / (float)x->dims[axes[i]];
        scale = not_larger ? fminf(scale, ratio) : fmaxf(scale, ratio);
    }
    return scale;
}

static gboolean
by_sizes(const KilnInfer *in, const int *axes, int64_t n, KilnType *out, GError **error)
{
    const KilnType *x = kiln_infer_type(in, X);
    const KilnKnown *sizes = kiln_infer_known(in, SIZES);
    const char *policy = kiln_attrs(in->node, resize)->keep_aspect_ratio_policy;
    bool stretch = g_str_equal(policy, "stretch"), all_known = true;
    for (int i = 0; stretch && !sizes && i < n && kiln_infer_list_length(in, SIZES) == n; i++) {
        if (!kiln_dim_set_open(out, axes[i], kiln_infer_element(in, SIZES, i), error))
            return FALSE;
    }
    if (!sizes || sizes->n != n)
        return TRUE;
    for (int i = 0; i < n; i++) {
        const bool is_empty = sizes->v[i] == 0 && x->dims[axes[i]] == 0;
        if (sizes->v[i] < 1 && !is_empty)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "sizes: expected 1 or more, found %" G_GINT64_FORMAT, sizes->v[i]);
        all_known &= x->dims[axes[i]] >= 0;
        if (stretch)
            kiln_dim_set(out, axes[i], sizes->v[i]);
    }
    if (stretch || !all_known)
        return TRUE;
    float scale = shared_scale(x, axes, sizes, g_str_equal(policy, "not_larger"));
    for (int i = 0; i < n; i++) {
        if (!set_scaled(out, axes[i], floorf(scale * (float)x->dims[axes[i]] + 0.5f), error))
            return FALSE;
    }
    return TRUE;
}

KILN_INFER(resize)
{
    const KilnType *x = kiln_infer_type(in, X);
    const KilnAttrs_resize *attrs = kiln_attrs(in->node, resize);
    int axes[KILN_MAX_RANK];
    int64_t n;
    if (!check_modes(attrs, error) || !resized_axes(in, axes, &n, error))
        return FALSE;
    bool crops = g_str_equal(attrs->coordinate_transformation_mode, "tf_crop_and_resize");
    if (!check_operands(in, n, crops, error))
        return FALSE;
    KilnType out = kiln_infer_plain(x);
    out.quant = kiln_infer_moved_quant(in, X);
    if (x->rank >= 0) {
        for (int i = 0; i < n; i++)
            kiln_dim_set(&out, axes[i], KILN_DIM_UNKNOWN);
        if (!(is_stated(in, SIZES) ? by_sizes(in, axes, n, &out, error)
                                   : by_scales(in, axes, n, &out, error)))
            return FALSE;
    }
    in->out[0] = out;
    return TRUE;
}
