/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of slice and pad, and the boxes that lowering shares with them. */
#include "graph/infer/common.h"
#include "graph/infer/infer.h"
#include "graph/op/expand.h"

#include <string.h>

/* --- slice --- */

static const KilnKnown *
known_of(const KilnNode *node, uint32_t i)
{
    const KilnValue *value = kiln_node_operand(node, i);
    return value ? value->known : NULL;
}

/* The axis of entry @i of the lists; the axes operand may be absent. */
static gboolean
slice_axis(const KilnNode *node, int64_t i, int rank, uint32_t *seen, int *axis, GError **error)
{
    const KilnKnown *axes = known_of(node, 3);
    if (!kiln_infer_axis(rank, axes ? axes->v[i] : i, axis, error))
        return FALSE;
    if (*seen & 1u << *axis)
        return kiln_throw(error, KILN_ERROR_SHAPE, "axes: expected every axis once, found %d twice",
                          *axis);
    *seen |= 1u << *axis;
    return TRUE;
}

/* Clamps a slice of one axis of @size elements. */
static void
slice_box(KilnSliceBox *box, int d, int64_t size, int64_t end)
{
    int64_t start = box->start[d], step = box->step[d];
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
    start = CLAMP(start < 0 ? start + size : start, 0, MAX(high, 0));
    end = CLAMP(end < 0 ? end + size : end, low, high);
    KilnWide distance = step < 0 ? (KilnWide)start - end : (KilnWide)end - start;
    KilnWide by = step < 0 ? -(KilnWide)step : step;
    box->start[d] = start;
    box->extent[d] = distance <= 0 || size == 0 ? 0 : (int64_t)((distance + by - 1) / by);
}

/* Element @i of operand @operand as an expression of @table. */
static const KilnDim *
element_of(const KilnNode *node, uint32_t operand, int64_t i, KilnDimTable *table)
{
    const KilnValue *value = kiln_node_operand(node, operand);
    if (value->extents)
        return value->extents->v[i];
    return value->known ? kiln_dim_number(table, value->known->v[i]) : NULL;
}

/* Whether the size or a bound of dim @d, entry @i of the lists, has an expression. */
static bool
is_open_box(const KilnNode *node, int d, int64_t i)
{
    bool open = kiln_node_operand(node, 0)->type.open[d] != NULL;
    for (uint32_t operand = 1; operand <= 2; operand++) {
        const KilnExtents *extents = kiln_node_operand(node, operand)->extents;
        open |= extents && extents->v[i];
    }
    return open;
}

/* A bound of a slice, counted from the front and clamped into [@low, @high]. NULL where its sign is
 * not certain. */
static const KilnDim *
clamp_bound(const KilnDim *bound, const KilnDim *size, const KilnDim *low, const KilnDim *high)
{
    int64_t lo, hi;
    KilnDimTable *table = kiln_dim_table_of(size);
    if (!bound)
        return NULL;
    kiln_dim_range(bound, &lo, &hi);
    if (hi < 0)
        bound = kiln_dim_add(table, bound, size);
    else if (lo < 0)
        return NULL;
    return kiln_dim_max(table, low, kiln_dim_min(table, bound, high));
}

/* Dim @d of the box where the size or a bound, entry @i of the lists, is an expression. */
static void
open_box(KilnSliceBox *box, const KilnNode *node, int d, int64_t i, const KilnDim *size)
{
    int64_t step = box->step[d];
    if (!size || step == INT64_MIN)
        return;
    KilnDimTable *table = kiln_dim_table_of(size);
    const KilnDim *zero = kiln_dim_number(table, 0), *one = kiln_dim_number(table, 1);
    const KilnDim *low = step < 0 ? kiln_dim_number(table, -1) : zero;
    const KilnDim *high = step < 0 ? kiln_dim_sub(table, size, one) : size;
    const KilnDim *start =
        clamp_bound(element_of(node, 1, i, table), size, zero, kiln_dim_max(table, high, zero));
    const KilnDim *end = clamp_bound(element_of(node, 2, i, table), size, low, high);
    const KilnDim *distance =
        step < 0 ? kiln_dim_sub(table, start, end) : kiln_dim_sub(table, end, start);
    const KilnDim *count = kiln_dim_ceil(table, distance, kiln_dim_number(table, ABS(step)));
    int64_t least, most;
    kiln_dim_range(size, &least, &most);
    if (step < 0 && least < 1) /* nothing stands at the first place */
        count = kiln_dim_min(table, count, size);
    box->open_start[d] = start;
    box->open_extent[d] = kiln_dim_max(table, count, zero);
    /* The box has a number only where both have: a place in data of an open size is no number. */
    int64_t first, extent;
    bool fixed = kiln_dim_is_number(start, &first);
    if (fixed && kiln_dim_is_number(box->open_extent[d], &extent)) {
        box->start[d] = first;
        box->extent[d] = extent;
    }
    if (fixed)
        box->open_start[d] = NULL;
}

static gboolean
check_slice_lengths(const KilnNode *node, GError **error)
{
    int64_t expected = -1;
    for (uint32_t i = 1; i < node->n_operands; i++) {
        const KilnValue *list = kiln_node_operand(node, i);
        int64_t n = !list ? -1 : list->known ? list->known->n : kiln_type_elements(&list->type);
        if (n < 0)
            continue;
        if (expected >= 0 && n != expected)
            return kiln_infer_throw_shape(node, i, error, "%" G_GINT64_FORMAT " elements",
                                          expected);
        expected = n;
    }
    return TRUE;
}

/* What is known of the box: @touched marks axes that lists name, or all where axes are not known;
 * an extent that is not known is KILN_DIM_UNKNOWN. */
static gboolean
resolve_slice(const KilnNode *node, KilnSliceBox *box, bool touched[KILN_MAX_RANK], GError **error)
{
    const KilnType *x = &kiln_node_operand(node, 0)->type;
    const KilnKnown *starts = known_of(node, 1), *ends = known_of(node, 2);
    const KilnKnown *axes = known_of(node, 3), *steps = known_of(node, 4);
    bool axes_open = kiln_node_operand(node, 3) && !axes;
    bool steps_open = kiln_node_operand(node, 4) && !steps;
    const KilnValue *list = kiln_node_operand(node, 1);
    int64_t n = starts ? starts->n : axes ? axes->n : kiln_type_elements(&list->type);
    KilnDimTable *table = node->function->module->dims;
    uint32_t seen = 0;
    if (!check_slice_lengths(node, error))
        return FALSE;
    for (int d = 0; d < x->rank; d++) {
        touched[d] = axes_open || n < 0;
        box->start[d] = 0;
        box->step[d] = 1;
        box->extent[d] = touched[d] ? KILN_DIM_UNKNOWN : x->dims[d];
        box->open_start[d] = NULL;
        box->open_extent[d] = touched[d] ? NULL : x->open[d];
    }
    for (int64_t i = 0; !axes_open && i < n; i++) {
        int d;
        if (!slice_axis(node, i, x->rank, &seen, &d, error))
            return FALSE;
        touched[d] = true;
        box->extent[d] = KILN_DIM_UNKNOWN;
        box->open_extent[d] = NULL;
        if (steps && steps->v[i] == 0)
            return kiln_throw(error, KILN_ERROR_SHAPE, "steps: expected no 0, found one");
        if (steps_open)
            continue;
        box->step[d] = steps ? steps->v[i] : 1;
        if (x->dims[d] >= 0 && starts && ends) {
            box->start[d] = starts->v[i];
            slice_box(box, d, x->dims[d], ends->v[i]);
            if (!is_open_box(node, d, i))
                continue;
            KilnSliceBox here = *box; /* its numbers stay: open_box() knows some of them only */
            open_box(&here, node, d, i, kiln_type_dim(x, d, table));
            box->open_start[d] = here.open_start[d];
            box->open_extent[d] = here.open_extent[d];
            continue;
        }
        open_box(box, node, d, i, kiln_type_dim(x, d, table));
        if (box->step[d] == 1 && x->dims[d] < 0 && box->open_extent[d] == x->open[d])
            touched[d] = false;
    }
    return TRUE;
}

gboolean
kiln_slice_resolve(const KilnNode *node, KilnSliceBox *out, bool *out_known, GError **error)
{
    const KilnType *x = &kiln_node_operand(node, 0)->type;
    bool touched[KILN_MAX_RANK] = { false };
    memset(out, 0, sizeof *out);
    *out_known = false;
    if (x->rank < 0)
        return TRUE;
    if (!resolve_slice(node, out, touched, error))
        return FALSE;
    *out_known = true;
    for (int d = 0; d < x->rank; d++)
        *out_known &= out->extent[d] >= 0;
    return TRUE;
}

KILN_INFER(slice)
{
    const KilnType *x = kiln_infer_type(in, 0);
    KilnSliceBox box = { .start = { 0 } };
    bool touched[KILN_MAX_RANK] = { false };
    for (uint32_t i = 1; i < 5; i++) {
        if (!kiln_infer_require_list(in, i, KILN_SET_INDICES, false, error) ||
            !kiln_infer_require_like(in, i, 1, error))
            return FALSE;
    }
    in->out[0] = kiln_infer_plain(x);
    if (x->rank < 0)
        return check_slice_lengths(in->node, error);
    if (!resolve_slice(in->node, &box, touched, error))
        return FALSE;
    if (x->quant && x->quant->axis >= 0 && !touched[x->quant->axis])
        in->out[0].quant = x->quant;
    for (int d = 0; d < x->rank; d++) {
        if (touched[d]) {
            kiln_dim_set(&in->out[0], d, box.extent[d]);
            if (box.open_extent[d])
                kiln_type_set_dim(&in->out[0], d, box.open_extent[d]);
        }
    }
    if (kiln_known_operand(in, 0) && kiln_type_is_static(&in->out[0])) {
        int64_t strides[KILN_MAX_RANK], base = 0;
        kiln_known_strides(x, strides);
        for (int d = 0; d < x->rank; d++) {
            base += box.start[d] * strides[d];
            /* Steps that nothing takes may be as big as they like. */
            strides[d] = box.extent[d] > 1 ? strides[d] * box.step[d] : 0;
        }
        kiln_known_strided(in, 0, 0, base, strides);
    }
    return TRUE;
}

/* --- pad --- */

gboolean
kiln_pad_resolve(const KilnNode *node, int64_t begin[KILN_MAX_RANK], int64_t end[KILN_MAX_RANK],
                 bool *out_known, GError **error)
{
    const KilnType *x = &kiln_node_operand(node, 0)->type;
    const KilnKnown *pads = known_of(node, 1), *axes = known_of(node, 3);
    bool marked[KILN_MAX_RANK];
    memset(begin, 0, sizeof(int64_t) * KILN_MAX_RANK);
    memset(end, 0, sizeof(int64_t) * KILN_MAX_RANK);
    *out_known = x->rank >= 0 && pads && (axes || !kiln_node_operand(node, 3));
    if (!*out_known)
        return TRUE;
    int64_t n = axes ? axes->n : x->rank;
    if (axes && !kiln_infer_mark_axes(axes->v, n, x->rank, marked, error))
        return FALSE;
    if (pads->n != 2 * n)
        return kiln_infer_throw_shape(node, 1, error, "%" G_GINT64_FORMAT " elements", 2 * n);
    for (int64_t i = 0; i < n; i++) {
        int d = axes ? kiln_type_axis(x, axes->v[i]) : (int)i;
        begin[d] = pads->v[i];
        end[d] = pads->v[n + i];
    }
    return TRUE;
}

/* Modes that take padding from the data need data to take it from. */
static gboolean
check_pad_source(const KilnInfer *in, int d, int64_t pad, GError **error)
{
    const char *mode = kiln_attrs(in->node, pad)->mode;
    int64_t size = kiln_infer_type(in, 0)->dims[d];
    int64_t max = g_str_equal(mode, "reflect") ? size - 1 : size ? INT64_MAX : 0;
    if (size < 0 || g_str_equal(mode, "constant") || pad <= MAX(max, 0))
        return TRUE;
    return kiln_throw(error, KILN_ERROR_SHAPE,
                      "pads: expected at most %" G_GINT64_FORMAT
                      " elements of %s padding for dim %d, found %" G_GINT64_FORMAT,
                      MAX(max, 0), mode, d, pad);
}

/* Dims of the result where some padding is an expression. */
static gboolean
open_pads(const KilnInfer *in, KilnType *out, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnKnown *axes = kiln_infer_known(in, 3);
    int64_t length = kiln_infer_list_length(in, 1), n = axes ? axes->n : x->rank;
    if (x->rank < 0 || length != 2 * n || (kiln_infer_type(in, 3) && !axes))
        return TRUE;
    for (int d = 0; d < x->rank; d++)
        kiln_dim_copy(out, d, x, d);
    for (int64_t i = 0; i < n; i++) {
        int d = (int)i;
        if (axes && !kiln_infer_axis(x->rank, axes->v[i], &d, error))
            return FALSE;
        const KilnDim *more =
            kiln_dim_add(in->dims, kiln_infer_element(in, 1, i), kiln_infer_element(in, 1, n + i));
        const KilnDim *size = kiln_dim_add(in->dims, kiln_type_dim(x, d, in->dims), more);
        if (!kiln_dim_set_open(out, d, size, error))
            return FALSE;
    }
    return TRUE;
}

KILN_INFER(pad)
{
    const KilnType *x = kiln_infer_type(in, 0);
    int64_t begin[KILN_MAX_RANK], end[KILN_MAX_RANK];
    bool pads_known;
    if (!kiln_infer_one_of("mode", kiln_attrs(in->node, pad)->mode, "constant reflect edge wrap",
                           error) ||
        !kiln_infer_require_list(in, 1, KILN_SET(i64), false, error) ||
        !kiln_infer_require_like(in, 2, 0, error) || !kiln_infer_require_scalar(in, 2, error) ||
        !kiln_infer_require_list(in, 3, KILN_SET_INDICES, false, error) ||
        !kiln_pad_resolve(in->node, begin, end, &pads_known, error))
        return FALSE;
    KilnType out = kiln_infer_unknown(x->dtype, x->rank);
    for (int d = 0; pads_known && d < out.rank; d++) {
        if (!check_pad_source(in, d, begin[d], error) || !check_pad_source(in, d, end[d], error))
            return FALSE;
        if (!kiln_dim_set_scaled(&out, d, x, d, 1, (KilnWide)begin[d] + end[d], error))
            return FALSE;
    }
    if (!pads_known && !open_pads(in, &out, error))
        return FALSE;
    int axis = x->quant ? x->quant->axis : -1;
    if (axis >= 0 && pads_known && begin[axis] == 0 && end[axis] == 0)
        out.quant = x->quant;
    in->out[0] = out;
    return TRUE;
}
