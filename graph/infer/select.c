/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of what selects by value: compress, non_zero, non_max_suppression, unique. How
 * much they select is known only with the data. So that dim is open unless the data is known, and
 * has the name that the node defines (graph/module/define.h). */
#include "graph/dim/dim_defined.h"
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/gather.h"

KILN_INFER(compress)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnKnown *condition = kiln_infer_known(in, 1);
    int64_t stated = kiln_attrs(in->node, compress)->axis, n = kiln_infer_list_length(in, 1);
    bool flat = stated == G_MININT64;
    int axis = 0;
    if (!kiln_infer_require_list(in, 1, KILN_SET(bool), false, error) ||
        !kiln_infer_require_rank(in, 0, 1, KILN_MAX_RANK, error))
        return FALSE;
    if (!flat && x->rank >= 0 && !kiln_infer_axis(x->rank, stated, &axis, error))
        return FALSE;
    int64_t size = flat ? kiln_type_elements(x) : x->rank < 0 ? -1 : x->dims[axis];
    if (n >= 0 && size >= 0 && n > size)
        return kiln_infer_throw_shape(in->node, 1, error, "at most %" G_GINT64_FORMAT " elements",
                                      size);
    KilnType out = flat ? kiln_infer_unknown(x->dtype, 1) : kiln_infer_plain(x);
    if (!flat && x->rank >= 0 && x->quant && x->quant->axis >= 0 && x->quant->axis != axis)
        out.quant = x->quant;
    int64_t kept = 0;
    for (int64_t i = 0; condition && i < condition->n; i++)
        kept += condition->v[i] != 0;
    if (out.rank >= 0)
        kiln_dim_set(&out, axis, condition ? kept : KILN_DIM_UNKNOWN);
    in->out[0] = out;
    return TRUE;
}

/* --- dims that data decides --- */

/* Dim @d of result @r has the name @count, where there is one and no number is known. */
static void
set_count(KilnInfer *in, uint32_t r, int d, const char *count)
{
    KilnType *out = &in->out[r];
    if (count && !kiln_type_knows_dim(out, d)) {
        out->dims[d] = KILN_DIM_UNKNOWN;
        out->open[d] = kiln_dim_defined(in->dims, count);
    }
}

/* --- non_zero --- */

static void
non_zero_known(KilnInfer *in)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const int64_t *from = kiln_known_operand(in, 0);
    int64_t n = from ? kiln_type_elements(x) : 0, found = 0, strides[KILN_MAX_RANK];
    if (!from)
        return;
    for (int64_t k = 0; k < n; k++)
        found += from[k] != 0;
    kiln_dim_set(&in->out[0], 1, found);
    int64_t *to = kiln_known_result(in, 0);
    if (!to || !found)
        return;
    kiln_known_strides(x, strides);
    for (int64_t k = 0, column = 0; k < n; k++) {
        for (int d = 0; from[k] && d < x->rank; d++)
            to[d * found + column] = k / strides[d] % x->dims[d];
        column += from[k] != 0;
    }
}

KILN_INFER(non_zero)
{
    const KilnType *x = kiln_infer_type(in, 0);
    if (!kiln_infer_require(in, 0, KILN_SET_NUMBERS | KILN_SET(bool), error))
        return FALSE;
    in->out[0] = kiln_infer_unknown(KILN_DTYPE_i64, 2);
    kiln_dim_set(&in->out[0], 0, x->rank);
    non_zero_known(in);
    set_count(in, 0, 1, kiln_attrs(in->node, non_zero)->count);
    return TRUE;
}

/* --- non_max_suppression --- */

KILN_INFER(non_max_suppression)
{
    const KilnType *boxes = kiln_infer_type(in, 0), *scores = kiln_infer_type(in, 1);
    KilnDTypeSet f32 = KILN_SET(f32);
    if (!kiln_infer_require(in, 0, f32, error) || !kiln_infer_require(in, 1, f32, error) ||
        !kiln_infer_require_rank(in, 0, 3, 3, error) ||
        !kiln_infer_require_rank(in, 1, 3, 3, error) || !kiln_infer_require_dim(in, 0, 2, 4, error))
        return FALSE;
    if (boxes->rank == 3 && scores->rank == 3 &&
        (!kiln_infer_require_dim(in, 1, 0, boxes->dims[0], error) ||
         !kiln_infer_require_dim(in, 1, 2, boxes->dims[1], error)))
        return FALSE;
    for (uint32_t i = 2; i < 5; i++) {
        if (!kiln_infer_require(in, i, i == 2 ? KILN_SET(i64) : f32, error) ||
            !kiln_infer_require_scalar(in, i, error))
            return FALSE;
    }
    in->out[0] = kiln_infer_unknown(KILN_DTYPE_i64, 2);
    kiln_dim_set(&in->out[0], 1, 3);
    set_count(in, 0, 0, kiln_attrs(in->node, non_max_suppression)->count);
    return TRUE;
}

/* --- unique --- */

/* The indices of the first occurrences and the counts have an element per unique one, the inverse
 * has one per element of the operand. */
KILN_INFER(unique)
{
    const KilnAttrs_unique *attrs = kiln_attrs(in->node, unique);
    const KilnType *x = kiln_infer_type(in, 0);
    bool flat = attrs->axis == G_MININT64;
    int axis = 0;
    if (!flat && x->rank >= 0 && !kiln_infer_axis(x->rank, attrs->axis, &axis, error))
        return FALSE;
    KilnType out = flat ? kiln_infer_unknown(x->dtype, 1) : kiln_infer_plain(x);
    if (out.rank >= 0) {
        kiln_dim_set(&out, axis, KILN_DIM_UNKNOWN);
        in->out[0] = out;
        set_count(in, 0, axis, attrs->count);
    } else {
        in->out[0] = out;
    }
    for (uint32_t r = 1; r < in->node->n_results; r++) {
        in->out[r] = kiln_infer_unknown(KILN_DTYPE_i64, 1);
        if (r != 2)
            set_count(in, r, 0, attrs->count);
        else if (!flat && x->rank >= 0)
            kiln_dim_copy(&in->out[r], 0, x, axis);
        else if (x->rank >= 0 && !kiln_dim_product(&in->out[r], 0, x, 0, x->rank, error))
            return FALSE;
    }
    return TRUE;
}
