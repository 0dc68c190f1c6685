/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of resize: one scale per dim whether scales or sizes were stated, and the cropped box
 * where the mode reads one, both for all dims and not only the axes that the node names. Without
 * scales each one is the quotient of the extents. */
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/resize.h"
#include "graph/size.h"
#include "ir/instr.h"
#include "ir/lower/lower_priv.h"

#include <math.h>

enum {
    X,
    ROI,
    SCALES,
    SIZES
};

/* The axes that roi, scales and sizes speak of, in their order. */
static int
resized_axes(const KilnNode *node, int axes[KILN_MAX_RANK])
{
    const KilnType *x = &kiln_node_operand(node, X)->type;
    KilnInts list = kiln_attrs(node, resize)->axes;
    int n = list.n ? (int)list.n : x->rank;
    for (int i = 0; i < n; i++)
        axes[i] = list.n ? kiln_type_axis(x, list.v[i]) : i;
    return n;
}

static gboolean
read_floats(const KilnNode *node, uint32_t i, double *out, int expected, GError **error)
{
    int64_t found = 0;
    if (!kiln_infer_floats(kiln_node_operand(node, i), out, expected, &found) || found != expected)
        return kiln_lower_throw_unknown(node, i, error);
    return TRUE;
}

/* Whether element @i of @sizes is the same multiple of the extent for all bindings: of an extent
 * that is 0 here, *@out. */
static bool
is_constant_ratio(const KilnValue *sizes, int i, const KilnType *x, int axis, float *out)
{
    KilnSize to = kiln_size_open(sizes->known->v[i], NULL), from = kiln_type_size(x, axis);
    if (sizes->extents && !kiln_dim_is_number(sizes->extents->v[i], &to.n))
        to.dim = sizes->extents->v[i];
    if (!to.dim && !from.dim)
        return true;
    int64_t ratio = from.n ? to.n / from.n : 0;
    if (!from.n &&
        !(from.dim && to.dim &&
          kiln_dim_is_number(kiln_dim_divide(kiln_dim_table_of(to.dim), to.dim, from.dim), &ratio)))
        return false;
    *out = (float)ratio;
    return kiln_size_equal(to, kiln_size_mul(from, kiln_size_make(ratio)));
}

/* *@out_open: some scale depends on open dims. It is the quotient of the extents then. */
static gboolean
scales_from_sizes(const KilnNode *node, const int *axes, int n, float *scales, bool *out_open,
                  GError **error)
{
    const KilnType *x = &kiln_node_operand(node, X)->type;
    const KilnKnown *sizes = kiln_node_operand(node, SIZES)->known;
    const char *policy = kiln_attrs(node, resize)->keep_aspect_ratio_policy;
    bool stretch = g_str_equal(policy, "stretch"), larger = g_str_equal(policy, "not_smaller");
    float shared = larger ? 0 : INFINITY;
    if (!sizes || sizes->n != n)
        return kiln_lower_throw_unknown(node, SIZES, error);
    for (int i = 0; i < n; i++) {
        float extent = (float)x->dims[axes[i]], ratio = 1;
        *out_open |= !is_constant_ratio(kiln_node_operand(node, SIZES), i, x, axes[i], &ratio);
        if (extent > 0)
            ratio = (float)sizes->v[i] / extent;
        scales[axes[i]] = ratio;
        shared = larger ? fmaxf(shared, ratio) : fminf(shared, ratio);
    }
    for (int i = 0; i < n && !stretch; i++)
        scales[axes[i]] = shared;
    if (*out_open && !stretch)
        return kiln_lower_throw(node, KILN_ERROR_UNSUPPORTED, error,
                                "the scale of all dims depends on open dims");
    return TRUE;
}

static bool
is_stated(const KilnNode *node, uint32_t i)
{
    const KilnValue *value = kiln_node_operand(node, i);
    return value && kiln_type_elements(&value->type) != 0;
}

static KilnFloats
floats(KilnLower *l, const float *values, int n)
{
    return (KilnFloats){ (uint32_t)n,
                         kiln_arena_copy(l->ir->arena, values, (size_t)n * sizeof *values) };
}

gboolean
kiln_lower_attrs_resize(KilnLower *l, const KilnNode *node, void *attrs, GError **error)
{
    KilnInstrAttrs_resize *resize = attrs;
    int axes[KILN_MAX_RANK], rank = kiln_node_operand(node, X)->type.rank;
    int n = resized_axes(node, axes);
    float scales[KILN_MAX_RANK], roi[2 * KILN_MAX_RANK];
    double stated[2 * KILN_MAX_RANK];
    bool open = false;
    for (int d = 0; d < rank; d++) {
        scales[d] = 1;
        roi[d] = 0;
        roi[rank + d] = 1;
    }
    if (is_stated(node, SIZES)) {
        if (!scales_from_sizes(node, axes, n, scales, &open, error))
            return FALSE;
    } else {
        if (!read_floats(node, SCALES, stated, n, error))
            return FALSE;
        for (int i = 0; i < n; i++)
            scales[axes[i]] = (float)stated[i];
    }
    resize->scales = floats(l, scales, open ? 0 : rank);
    if (!g_str_equal(resize->coordinate_transformation_mode, "tf_crop_and_resize"))
        return TRUE;
    if (!read_floats(node, ROI, stated, 2 * n, error))
        return FALSE;
    for (int i = 0; i < n; i++) {
        roi[axes[i]] = (float)stated[i];
        roi[rank + axes[i]] = (float)stated[n + i];
    }
    resize->roi = floats(l, roi, 2 * rank);
    return TRUE;
}
