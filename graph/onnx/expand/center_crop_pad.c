/* SPDX-License-Identifier: Apache-2.0 */
/* CenterCropPad: a slice where the data is larger than the shape, a pad where it is smaller. An odd
 * element is cropped from the end, or added to it.
 *
 *     x ── slice ── pad ── y
 *           from       max(d - shape, 0) / 2
 *           to         that + min(d, shape)
 *           in front   max(shape - d, 0) / 2,  the rest behind */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"

#include "graph/op/bounds.h"
#include "graph/op/expand.h"
#include "graph/op/generate.h"
#include "graph/op/slice.h"

/* The axes that the shape is of, as a constant. */
static KilnValue *
axes_of(const KilnOnnxSteps *s)
{
    const int rank = s->call->operands[0]->type.rank;
    int64_t all[KILN_MAX_RANK];
    KilnInts stated = { 0 };
    bool there = false;
    if (!kiln_onnx_take_ints(s->call, "axes", &stated, &there, s->error))
        return NULL;
    for (int d = 0; d < rank; d++)
        all[d] = d;
    for (uint32_t i = 0; there && i < stated.n; i++) {
        if (kiln_type_axis(&s->call->operands[0]->type, stated.v[i]) < 0) {
            kiln_onnx_throw(s->call, KILN_ERROR_SHAPE, s->error,
                            "axes: expected axes of rank %d, found %" G_GINT64_FORMAT, rank,
                            stated.v[i]);
            return NULL;
        }
    }
    return there ? kiln_onnx_ints(s->call, "axes", stated.v, stated.n)
                 : kiln_onnx_ints(s->call, "axes", all, (uint32_t)rank);
}

/* max(a - b, 0), and half of it. */
static KilnValue *
excess(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b, KilnValue **out_half)
{
    KilnValue *more = kiln_onnx_step_number(s, KILN_OP_max, kiln_onnx_step_sub(s, a, b), 0);
    *out_half = kiln_onnx_step_div_number(s, more, 2);
    return more;
}

/* Says what the dims are: those that the shape states, and those of x. Nothing else sees that the
 * sums of what is cropped and padded come to a number. */
static KilnValue *
shaped(const KilnOnnxSteps *s, KilnValue *y, const KilnKnown *wanted, const KilnValue *axes)
{
    KilnValue *x = s->call->operands[0];
    KilnOnnxExtent shape[KILN_MAX_RANK];
    if (!y || !wanted || !axes->known || kiln_type_is_static(&y->type))
        return y;
    for (int d = 0; d < x->type.rank; d++)
        shape[d] = (KilnOnnxExtent)KILN_ONNX_DIM(x, d);
    for (int64_t i = 0; i < axes->known->n; i++)
        shape[kiln_type_axis(&x->type, axes->known->v[i])] =
            (KilnOnnxExtent)KILN_ONNX_NUMBER(wanted->v[i]);
    return kiln_onnx_step_reshape(s, y, shape, (uint32_t)x->type.rank);
}

static gboolean
check_shape(const KilnOnnxCall *call, const KilnValue *axes, GError **error)
{
    const KilnValue *shape = call->operands[1];
    const int64_t n = axes->type.dims[0], found = shape->type.dims[0];
    if (found >= 0 && found != n)
        return kiln_onnx_throw(
            call, KILN_ERROR_SHAPE, error,
            "operand 1: expected %" G_GINT64_FORMAT " extents, found %" G_GINT64_FORMAT, n, found);
    for (int64_t i = 0; shape->known && i < shape->known->n; i++) {
        if (shape->known->v[i] < 0)
            return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                                   "operand 1: expected extents of 0 or more, found "
                                   "%" G_GINT64_FORMAT,
                                   shape->known->v[i]);
    }
    return TRUE;
}

gboolean
kiln_onnx_convert_center_crop_pad(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    const KilnAttrs_shape whole = { .end = G_MAXINT64 };
    const KilnAttrs_pad zeros = { .mode = "constant" };
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_need(call, 1, error) ||
        !kiln_onnx_require_rank(call, 0, 0, KILN_MAX_RANK, error) ||
        !kiln_onnx_require_rank(call, 1, 1, 1, error))
        return FALSE;
    KilnValue *axes = axes_of(&s), *from, *front;
    if (!axes || !check_shape(call, axes, error))
        return FALSE;
    KilnValue *wanted = kiln_onnx_step_cast(&s, call->operands[1], KILN_DTYPE_i64);
    KilnValue *dims =
        kiln_onnx_step_gather(&s, kiln_onnx_step1(&s, KILN_OP_shape, &whole, x), axes, 0);
    excess(&s, dims, wanted, &from);
    KilnValue *pad = excess(&s, wanted, dims, &front);
    KilnValue *to =
        kiln_onnx_step_add(&s, from, kiln_onnx_step2(&s, KILN_OP_min, NULL, dims, wanted));
    KilnValue *behind = kiln_onnx_step_sub(&s, pad, front);
    KilnValue *pads = kiln_onnx_step_concat(&s, front, behind, 0);
    if (!to || !pads)
        return FALSE;
    KilnValue *part =
        kiln_onnx_build(call, KILN_OP_slice, NULL, (KilnValue *[]){ x, from, to, axes }, 4, error);
    if (!part)
        return FALSE;
    KilnValue *padded[] = { part, pads, NULL, axes };
    KilnValue *y = kiln_onnx_build(call, KILN_OP_pad, &zeros, padded, 4, error);
    return kiln_onnx_set_result(call, 0, shaped(&s, y, wanted->known, axes));
}
