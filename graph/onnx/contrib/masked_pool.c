/* SPDX-License-Identifier: Apache-2.0 */
/* MaxpoolWithMask of com.microsoft: the greatest element of a window, in each row of which elements
 * count up to the first whose mask is 0. Each place of the window is a slice of all windows:
 *
 *   y = greatest of x[.., place] where all masks up to the place in its row are not 0 */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/logic.h"

#include <float.h>

enum {
    MAX_AXES = 3,
    MAX_PLACES = 512
};

typedef struct {
    KilnOnnxSteps s;
    KilnOnnxCall *call;
    int n; /* axes of the window */
    int64_t kernel[MAX_AXES], strides[MAX_AXES], pads[2 * MAX_AXES], out[MAX_AXES];
    KilnValue *x, *mask; /* with pads; the mask as bool */
} Pool;

static gboolean
take_numbers(Pool *p, const char *name, int n, int64_t usual, int64_t *out, GError **error)
{
    KilnInts found = { 0 };
    bool there = false;
    if (!kiln_onnx_take_ints(p->call, name, &found, &there, error))
        return FALSE;
    if (there && found.n != (uint32_t)n)
        return kiln_onnx_throw(p->call, KILN_ERROR_INVALID, error,
                               "%s: expected %d numbers, found %u", name, n, found.n);
    for (int i = 0; i < n; i++)
        out[i] = there ? found.v[i] : usual;
    return TRUE;
}

static gboolean
read_attrs(Pool *p, GError **error)
{
    const char *pad = "NOTSET";
    int64_t order = 0, places = 1;
    const int n = p->n;
    if (!take_numbers(p, "kernel_shape", n, 0, p->kernel, error) ||
        !take_numbers(p, "strides", n, 1, p->strides, error) ||
        !take_numbers(p, "pads", 2 * n, 0, p->pads, error) ||
        !kiln_onnx_take_int(p->call, "storage_order", &order, error) ||
        !kiln_onnx_take_text(p->call, "auto_pad", &pad, error))
        return FALSE;
    if (g_strcmp0(pad, "NOTSET") != 0)
        return kiln_onnx_unsupported(p->call, error, "auto_pad=%s", pad);
    for (int i = 0; i < n; i++) {
        if (p->kernel[i] < 1 || p->strides[i] < 1 || p->pads[i] < 0 || p->pads[i + n] < 0 ||
            p->pads[i] >= p->kernel[i] || p->pads[i + n] >= p->kernel[i])
            return kiln_onnx_throw(p->call, KILN_ERROR_INVALID, error,
                                   "expected windows and strides of 1 or more and fewer pads than "
                                   "that, found a window of %" G_GINT64_FORMAT,
                                   p->kernel[i]);
        places = p->kernel[i] > MAX_PLACES ? MAX_PLACES + 1 : places * p->kernel[i];
        if (places > MAX_PLACES)
            return kiln_onnx_unsupported(p->call, error, "windows of more than %d places",
                                         MAX_PLACES);
    }
    return TRUE;
}

static gboolean
check(Pool *p, GError **error)
{
    const KilnOnnxCall *call = p->call;
    int64_t dims[MAX_AXES + 2] = { 1, 1 };
    if (!kiln_onnx_need(call, 0, error) || !kiln_onnx_need(call, 1, error) ||
        !kiln_onnx_require_rank(call, 0, 3, 2 + MAX_AXES, error))
        return FALSE;
    const KilnType *x = &call->operands[0]->type, *mask = &call->operands[1]->type;
    p->n = x->rank - 2;
    if (!read_attrs(p, error))
        return FALSE;
    for (int i = 0; i < p->n; i++) {
        dims[i + 2] = x->dims[i + 2];
        if (dims[i + 2] < 0)
            return kiln_onnx_unsupported(call, error, "an axis of an unknown length");
        p->out[i] =
            (dims[i + 2] + p->pads[i] + p->pads[i + p->n] - p->kernel[i]) / p->strides[i] + 1;
        if (dims[i + 2] + p->pads[i] + p->pads[i + p->n] < p->kernel[i])
            return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                                   "expected a window of at most %" G_GINT64_FORMAT
                                   " places, found %" G_GINT64_FORMAT,
                                   dims[i + 2] + p->pads[i] + p->pads[i + p->n], p->kernel[i]);
    }
    if (mask->rank == x->rank && (mask->dims[0] != 1 || mask->dims[1] != 1))
        return kiln_onnx_unsupported(call, error,
                                     "a mask of several channels, which ONNX Runtime mixes up");
    return kiln_onnx_require_shape(call, 1, dims, x->rank, error);
}

/* @x with @value around it as the pads say. */
static KilnValue *
padded(const Pool *p, KilnValue *x, KilnValue *value)
{
    int64_t pads[2 * (MAX_AXES + 2)] = { 0 };
    const int rank = p->n + 2;
    for (int i = 0; i < p->n; i++) {
        pads[i + 2] = p->pads[i];
        pads[rank + i + 2] = p->pads[p->n + i];
    }
    KilnValue *sizes = kiln_onnx_ints(p->call, "pads", pads, (uint32_t)(2 * rank));
    return kiln_onnx_step_pad_with(&p->s, x, sizes, value);
}

/* What all windows have in place @at. */
static KilnValue *
place_of(const Pool *p, KilnValue *x, const int64_t *at)
{
    for (int i = 0; i < p->n; i++)
        x = kiln_onnx_step_slice(&p->s, x, i + 2, at[i],
                                 at[i] + (p->out[i] - 1) * p->strides[i] + 1, p->strides[i]);
    return x;
}

/* The mask as bool. With several axes, the first element of a picture counts in any case. */
static KilnValue *
mask_of(const Pool *p)
{
    const KilnOnnxSteps *s = &p->s;
    KilnValue *mask = kiln_onnx_step_cast(s, p->call->operands[1], KILN_DTYPE_bool);
    int64_t sizes[2 * (MAX_AXES + 2)] = { 0 };
    if (p->n == 1 || !mask)
        return mask;
    const int rank = p->n + 2;
    for (int i = 2; i < rank; i++)
        sizes[rank + i] = mask->type.dims[i] - 1;
    const KilnOnnxExtent one[MAX_AXES + 2] = { KILN_ONNX_NUMBER(1), KILN_ONNX_NUMBER(1),
                                               KILN_ONNX_NUMBER(1), KILN_ONNX_NUMBER(1),
                                               KILN_ONNX_NUMBER(1) };
    KilnValue *first = kiln_onnx_scalar(p->call, "first", KILN_DTYPE_bool, 1);
    first = kiln_onnx_step_reshape(s, first, one, (uint32_t)rank);
    first = kiln_onnx_step_pad(s, kiln_onnx_step_cast(s, first, KILN_DTYPE_i32),
                               kiln_onnx_ints(p->call, "sizes", sizes, (uint32_t)(2 * rank)));
    return kiln_onnx_step2(s, KILN_OP_or, NULL, mask,
                           kiln_onnx_step_cast(s, first, KILN_DTYPE_bool));
}

static KilnValue *
greatest(const Pool *p, KilnValue *least)
{
    const KilnOnnxSteps *s = &p->s;
    int64_t at[MAX_AXES] = { 0 };
    KilnValue *y = NULL, *counts = NULL;
    while (at[0] < p->kernel[0]) {
        KilnValue *mask = place_of(p, p->mask, at), *x = place_of(p, p->x, at);
        counts =
            at[p->n - 1] && counts ? kiln_onnx_step2(s, KILN_OP_and, NULL, counts, mask) : mask;
        x = kiln_onnx_step3(s, KILN_OP_where, NULL, counts, x, least);
        KilnValue *more = y ? kiln_onnx_step2(s, KILN_OP_greater, NULL, x, y) : NULL;
        if (!x || (y && !more))
            return NULL;
        y = more ? kiln_onnx_step3(s, KILN_OP_where, NULL, more, x, y)
                 : kiln_onnx_step3(s, KILN_OP_where, NULL,
                                   kiln_onnx_step2(s, KILN_OP_greater, NULL, x, least), x, least);
        int i = p->n - 1;
        while (++at[i] == p->kernel[i] && i > 0)
            at[i--] = 0;
    }
    return y;
}

/* (x, mask) */
gboolean
kiln_onnx_convert_masked_pool(KilnOnnxCall *call, GError **error)
{
    Pool p = { .s = { call, error }, .call = call };
    if (!check(&p, error))
        return FALSE;
    KilnValue *least = kiln_onnx_scalar(call, "least", call->operands[0]->type.dtype, -FLT_MAX);
    KilnValue *mask = kiln_onnx_step_cast(&p.s, mask_of(&p), KILN_DTYPE_i32);
    p.x = padded(&p, call->operands[0], least);
    mask = padded(&p, mask, kiln_onnx_scalar(call, "counts", KILN_DTYPE_i32, 1));
    p.mask = kiln_onnx_step_cast(&p.s, mask, KILN_DTYPE_bool);
    return kiln_onnx_set_result(call, 0, p.x && p.mask ? greatest(&p, least) : NULL);
}
