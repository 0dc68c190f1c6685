/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of what renames the dims of the same elements in the same order: reshape,
 * flatten, squeeze, unsqueeze. */
#include "graph/dim/dim_defined.h"
#include "graph/dim/dim_equal.h"
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/reshape.h"

#include <string.h>

/* --- quantization --- */

/* As many elements in front of axis @axis of @a as in front of axis @other of @b. */
static bool
same_before(const KilnType *a, int axis, const KilnType *b, int other)
{
    KilnType x = *a, y = *b;
    x.rank = axis;
    y.rank = other;
    return kiln_type_elements(&x) != 0 && kiln_type_same_elements(&x, &y);
}

/* The axis of quantization stays an axis where it has its size and as many elements in front. */
static const KilnQuant *
reshaped_quant(const KilnInfer *in, const KilnType *out)
{
    const KilnType *x = kiln_infer_type(in, 0);
    int axis = x->quant ? x->quant->axis : -1;
    if (axis < 0 || x->rank < 0 || out->rank < 0)
        return NULL;
    KilnType head = *x, same = *out;
    head.rank = same.rank = axis + 1;
    if (out->rank > axis && kiln_type_equal_shape(&head, &same))
        return x->quant;
    for (int d = 0; d < out->rank; d++) {
        if (kiln_type_equal_dims(out, d, x, axis) && same_before(x, axis, out, d))
            return kiln_infer_quant_along(in, d);
    }
    return NULL;
}

/* --- reshape --- */

/* What the stated dims leave open: dims of the operand that no 0 copies, and the dim to infer. */
typedef struct {
    KilnType rest; /* dims of the operand that are not copied */
    int infer;     /* the dim stated as -1; -1: none */
    bool open;     /* a result dim of which nothing is known */
    KilnWide stated;
    uint32_t n_open;            /* result dims that are expressions and no copies, */
    const KilnDim *open_stated; /* and their product; NULL where it is too big */
} ReshapePlan;

/* The specification reads 0 as a copy. An expression that is 0 is a dim of 0 here. This is the same
 * where the copied dim is 0, too; else the shapes need a program of their own. Dims that data
 * decides have none. */
static void
assume_no_copy(const KilnInfer *in, int d, const KilnDim *dim)
{
    const KilnType *x = kiln_infer_type(in, 0);
    if (kiln_attrs(in->node, reshape)->allowzero || kiln_dim_hangs_on_data(dim))
        return;
    const KilnDim *copied =
        d < x->rank ? kiln_type_dim(x, d, in->dims) : kiln_dim_number(in->dims, 1);
    const KilnDim *read = kiln_dim_select(in->dims, dim, kiln_dim_number(in->dims, 0), copied, dim);
    kiln_dim_table_assume_equal(in->dims, read, dim);
}

/* A stated dim without a number. */
static gboolean
state_open(const KilnInfer *in, int d, ReshapePlan *plan, KilnType *out, GError **error)
{
    const KilnDim *dim = kiln_infer_element(in, 1, d);
    int64_t lo, hi;
    kiln_dim_range(dim, &lo, &hi);
    plan->open |= !dim || lo < 0;
    if (plan->open)
        return TRUE;
    if (lo == 0)
        assume_no_copy(in, d, dim);
    for (int e = 0; e < plan->rest.rank; e++) {
        if (plan->rest.dims[e] < 0 && plan->rest.open[e] == dim) { /* cancels, as a copy does */
            kiln_dim_set(&plan->rest, e, 1);
            return kiln_dim_set_open(out, d, dim, error);
        }
    }
    plan->open_stated = !plan->n_open++ ? dim : kiln_dim_mul(in->dims, plan->open_stated, dim);
    return kiln_dim_set_open(out, d, dim, error);
}

static gboolean
state_dim(const KilnInfer *in, int d, ReshapePlan *plan, KilnType *out, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    int64_t size;
    if (!kiln_dim_is_number(kiln_infer_element(in, 1, d), &size))
        return state_open(in, d, plan, out, error);
    bool copies = size == 0 && !kiln_attrs(in->node, reshape)->allowzero;
    if (size < -1 || (size == -1 && plan->infer >= 0))
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "shape: expected sizes and at most one -1, found %" G_GINT64_FORMAT
                          " for dim %d",
                          size, d);
    if (size == -1) {
        plan->infer = d;
        kiln_dim_set(out, d, KILN_DIM_UNKNOWN);
        return TRUE;
    }
    if (!copies) {
        kiln_dim_set(out, d, size);
    } else if (x->rank < 0) {
        kiln_dim_set(out, d, KILN_DIM_UNKNOWN);
        plan->open = true;
        return TRUE;
    } else if (d >= x->rank) {
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "shape: expected a size for dim %d of rank-%d data, found 0", d, x->rank);
    } else {
        kiln_dim_copy(out, d, x, d);
        if (x->dims[d] < 0 && kiln_type_equal_dims(&plan->rest, d, x, d)) {
            kiln_dim_set(&plan->rest, d, 1); /* stands on both sides and cancels */
            return TRUE;
        }
        if (x->dims[d] < 0 && x->open[d]) { /* another dim like it was taken for this one */
            plan->open_stated = !plan->n_open++
                                    ? x->open[d]
                                    : kiln_dim_mul(in->dims, plan->open_stated, x->open[d]);
            return TRUE;
        }
        if (x->dims[d] < 0) {
            kiln_dim_set(&plan->rest, d, 1);
            return TRUE;
        }
    }
    if (__builtin_mul_overflow(plan->stated, out->dims[d], &plan->stated))
        return kiln_dim_set_wide(out, d, (KilnWide)INT64_MAX + 1, error);
    return TRUE;
}

static gboolean
throw_counts(const KilnInfer *in, KilnWide found, GError **error)
{
    if (found > INT64_MAX)
        found = INT64_MAX;
    return kiln_infer_throw_shape(
        in->node, 0, error, "a multiple or the number of the %" G_GINT64_FORMAT " elements stated",
        (int64_t)found);
}

/* The dim stated as -1 where a side has open dims: the quotient of both sides. */
static gboolean
close_open_plan(const KilnInfer *in, const ReshapePlan *plan, const KilnType *count, KilnType *out,
                GError **error)
{
    const KilnDim *elements = kiln_type_dim(count, 0, in->dims);
    const KilnDim *stated =
        plan->stated <= INT64_MAX ? kiln_dim_number(in->dims, (int64_t)plan->stated) : NULL;
    if (plan->n_open)
        stated = kiln_dim_mul(in->dims, stated, plan->open_stated);
    if (plan->infer < 0)
        return TRUE;
    const KilnDim *quotient = kiln_dim_divide(in->dims, elements, stated);
    if (!quotient)
        quotient = kiln_dim_floor(in->dims, elements, stated);
    if (!quotient && stated && kiln_dim_hangs_on_data(stated)) /* nothing is left of no elements */
        quotient = kiln_dim_floor(in->dims, elements,
                                  kiln_dim_max(in->dims, stated, kiln_dim_number(in->dims, 1)));
    return kiln_dim_set_open(out, plan->infer, quotient, error);
}

/* Compares the elements of both sides and finds the dim stated as -1. */
static gboolean
close_plan(const KilnInfer *in, ReshapePlan *plan, KilnType *out, GError **error)
{
    KilnType count = { .rank = 1 };
    if (kiln_infer_type(in, 0)->rank < 0 || plan->open)
        return TRUE;
    if (!kiln_dim_product(&count, 0, &plan->rest, 0, plan->rest.rank, error))
        return FALSE;
    if (count.dims[0] < 0 || plan->n_open)
        return close_open_plan(in, plan, &count, out, error);
    if (plan->infer < 0)
        return count.dims[0] == plan->stated || throw_counts(in, plan->stated, error);
    if (plan->stated == 0 || count.dims[0] % plan->stated)
        return throw_counts(in, plan->stated, error);
    return kiln_dim_set_wide(out, plan->infer, count.dims[0] / plan->stated, error);
}

KILN_INFER(reshape)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnKnown *shape = kiln_infer_known(in, 1);
    if (!kiln_infer_require_list(in, 1, KILN_SET(i64), false, error))
        return FALSE;
    int64_t rank = shape ? shape->n : kiln_infer_list_length(in, 1);
    if (!kiln_infer_check_rank(rank, error))
        return FALSE;
    KilnType out = kiln_infer_unknown(x->dtype, rank);
    ReshapePlan plan = { .rest = kiln_infer_plain(x), .infer = -1, .stated = 1 };
    bool zero = false;
    bool stated = shape || kiln_node_operand(in->node, 1)->extents;
    for (int d = 0; stated && d < out.rank; d++) {
        if (!state_dim(in, d, &plan, &out, error))
            return FALSE;
        zero |= shape && shape->v[d] == 0;
    }
    if (zero && plan.infer >= 0 && kiln_attrs(in->node, reshape)->allowzero)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "shape: expected no -1 beside 0 where allowzero is set, found both");
    if (stated && !close_plan(in, &plan, &out, error))
        return FALSE;
    out.quant = reshaped_quant(in, &out);
    in->out[0] = out;
    kiln_known_copy(in, 0, 0);
    return TRUE;
}

/* --- flatten --- */

KILN_INFER(flatten)
{
    const KilnType *x = kiln_infer_type(in, 0);
    int64_t axis = kiln_attrs(in->node, flatten)->axis;
    KilnType out = kiln_infer_unknown(x->dtype, 2);
    if (x->rank >= 0) {
        if (axis < -x->rank || axis > x->rank)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "axis: expected a number from %d to %d, found %" G_GINT64_FORMAT,
                              -x->rank, x->rank, axis);
        int split = (int)(axis < 0 ? axis + x->rank : axis);
        if (!kiln_dim_product(&out, 0, x, 0, split, error) ||
            !kiln_dim_product(&out, 1, x, split, x->rank - split, error))
            return FALSE;
    }
    out.quant = reshaped_quant(in, &out);
    in->out[0] = out;
    kiln_known_copy(in, 0, 0);
    return TRUE;
}

/* --- squeeze and unsqueeze --- */

static bool
is_certainly_not_1(const KilnDim *dim)
{
    KilnDimTable *table = dim ? kiln_dim_table_of(dim) : NULL;
    return dim && kiln_dim_equal(table, dim, kiln_dim_number(table, 1)) == KILN_ANSWER_NO;
}

/* The axes of a squeeze, where they are known. */
static gboolean
squeezed_axes(const KilnInfer *in, bool gone[KILN_MAX_RANK], bool *out_known, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnKnown *axes = kiln_infer_known(in, 1);
    memset(gone, 0, sizeof(bool) * KILN_MAX_RANK);
    *out_known = x->rank >= 0 && (axes || !kiln_infer_type(in, 1));
    if (!*out_known)
        return TRUE;
    if (!axes) { /* every dim of 1: decided once no other dim may be 1 */
        for (int d = 0; d < x->rank; d++) {
            gone[d] = x->dims[d] == 1;
            *out_known &= x->dims[d] >= 0 || is_certainly_not_1(x->open[d]);
        }
        return TRUE;
    }
    if (!kiln_infer_mark_axes(axes->v, axes->n, x->rank, gone, error))
        return FALSE;
    for (int d = 0; d < x->rank; d++) {
        if (gone[d] && !kiln_infer_require_dim(in, 0, d, 1, error))
            return FALSE;
    }
    return TRUE;
}

KILN_INFER(squeeze)
{
    const KilnType *x = kiln_infer_type(in, 0);
    bool gone[KILN_MAX_RANK], axes_known;
    if (!kiln_infer_require_list(in, 1, KILN_SET(i64), true, error) ||
        !squeezed_axes(in, gone, &axes_known, error))
        return FALSE;
    KilnType out = { .dtype = x->dtype };
    if (axes_known) {
        for (int d = 0; d < x->rank; d++) {
            if (!gone[d])
                kiln_dim_copy(&out, out.rank++, x, d);
        }
    } else {
        int64_t n = kiln_infer_list_length(in, 1);
        if (n >= 0 && x->rank >= 0 && n > x->rank)
            return kiln_infer_throw_shape(in->node, 1, error, "at most %d axes", x->rank);
        out = kiln_infer_unknown(x->dtype, n < 0 || x->rank < 0 ? -1 : x->rank - n);
    }
    out.quant = reshaped_quant(in, &out);
    in->out[0] = out;
    kiln_known_copy(in, 0, 0);
    return TRUE;
}

KILN_INFER(unsqueeze)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnKnown *axes = kiln_infer_known(in, 1);
    if (!kiln_infer_require_list(in, 1, KILN_SET(i64), true, error))
        return FALSE;
    int64_t n = axes ? axes->n : kiln_infer_list_length(in, 1);
    /* A list that only its type is known of may be of any length. */
    int64_t rank = n < 0 || x->rank < 0 ? -1 : x->rank + MIN(n, KILN_MAX_RANK + 1);
    if (!kiln_infer_check_rank(rank, error))
        return FALSE;
    KilnType out = kiln_infer_unknown(x->dtype, rank);
    if (axes && rank >= 0) {
        bool added[KILN_MAX_RANK];
        if (!kiln_infer_mark_axes(axes->v, n, (int)rank, added, error))
            return FALSE;
        for (int d = 0, from = 0; d < out.rank; d++) {
            if (added[d])
                kiln_dim_set(&out, d, 1);
            else
                kiln_dim_copy(&out, d, x, from++);
        }
    }
    out.quant = reshaped_quant(in, &out);
    in->out[0] = out;
    kiln_known_copy(in, 0, 0);
    return TRUE;
}
