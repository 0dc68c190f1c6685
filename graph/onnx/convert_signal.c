/* SPDX-License-Identifier: Apache-2.0 */
/* DFT before opset 20, and STFT: a DFT of overlapping frames.
 *
 *     signal [batch, length, 1 or 2]
 *        │  gather: frame f has the elements f · step …
 *     [batch, frames, frame length, 1 or 2]  · window ── dft */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"

#include "graph/op/bounds.h"
#include "graph/op/generate.h"
#include "graph/op/signal.h"

gboolean
kiln_onnx_convert_dft_17(KilnOnnxCall *call, GError **error)
{
    int64_t axis = 1;
    if (!kiln_onnx_need(call, 0, error) || !kiln_onnx_take_int(call, "axis", &axis, error))
        return FALSE;
    kiln_onnx_set_operand(call, 2, kiln_onnx_scalar(call, "axis", KILN_DTYPE_i64, (double)axis));
    return TRUE;
}

enum {
    SIGNAL,
    STEP,
    WINDOW,
    LENGTH
};

/* 0, 1, … below @end. */
static KilnValue *
count_to(const KilnOnnxSteps *s, KilnValue *end)
{
    KilnValue *zero = kiln_onnx_scalar(s->call, "zero", KILN_DTYPE_i64, 0);
    return kiln_onnx_step3(s, KILN_OP_range, NULL, zero, end,
                           kiln_onnx_scalar(s->call, "one", KILN_DTYPE_i64, 1));
}

static KilnValue *
frame_length(const KilnOnnxSteps *s)
{
    KilnValue *length = kiln_onnx_operand(s->call, LENGTH);
    KilnValue *window = kiln_onnx_operand(s->call, WINDOW);
    if (length)
        return kiln_onnx_step_cast(s, length, KILN_DTYPE_i64);
    return window ? kiln_onnx_step_extent(s, window, 0)
                  : kiln_onnx_step_extent(s, s->call->operands[SIGNAL], 1);
}

/* Which element of the signal each element of each frame is, as [frames, frame length]. */
static KilnValue *
elements_of_frames(const KilnOnnxSteps *s)
{
    static const int64_t column[] = { 1 };
    KilnValue *step = kiln_onnx_step_cast(s, s->call->operands[STEP], KILN_DTYPE_i64);
    KilnValue *length = frame_length(s);
    KilnValue *room =
        kiln_onnx_step_sub(s, kiln_onnx_step_extent(s, s->call->operands[SIGNAL], 1), length);
    room = kiln_onnx_step_add(s, room, step);
    room = kiln_onnx_step_number(s, KILN_OP_max, room, 0);
    KilnValue *frames = count_to(s, kiln_onnx_step_div(s, room, step));
    KilnValue *begin = kiln_onnx_step_mul(s, frames, step);
    begin = kiln_onnx_step_unsqueeze(s, begin, column, 1);
    return kiln_onnx_step_add(s, begin, count_to(s, length));
}

static gboolean
check_stft(const KilnOnnxCall *call, GError **error)
{
    const KilnKnown *step = call->operands[STEP]->known;
    if (step && step->n == 1 && step->v[0] < 1)
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "operand 1: expected a step of 1 or more, found %" G_GINT64_FORMAT,
                               step->v[0]);
    return kiln_onnx_require_rank(call, SIGNAL, 3, 3, error) &&
           kiln_onnx_require_rank(call, STEP, 0, 1, error) &&
           kiln_onnx_require_rank(call, WINDOW, 1, 1, error) &&
           kiln_onnx_require_rank(call, LENGTH, 0, 1, error);
}

gboolean
kiln_onnx_convert_stft(KilnOnnxCall *call, GError **error)
{
    static const int64_t column[] = { 1 };
    const KilnOnnxSteps s = { call, error };
    int64_t onesided = 1;
    if (!kiln_onnx_need(call, SIGNAL, error) || !kiln_onnx_need(call, STEP, error) ||
        !kiln_onnx_take_int(call, "onesided", &onesided, error) || !check_stft(call, error))
        return FALSE;
    KilnValue *window = kiln_onnx_operand(call, WINDOW);
    KilnValue *frames =
        kiln_onnx_step_gather(&s, call->operands[SIGNAL], elements_of_frames(&s), 1);
    if (window)
        frames = kiln_onnx_step_mul(&s, frames, kiln_onnx_step_unsqueeze(&s, window, column, 1));
    if (!frames)
        return FALSE;
    const KilnAttrs_dft attrs = { .onesided = onesided != 0 };
    KilnValue *operands[] = { frames, NULL, kiln_onnx_scalar(call, "axis", KILN_DTYPE_i64, 2) };
    return kiln_onnx_set_result(call, 0,
                                kiln_onnx_build(call, KILN_OP_dft, &attrs, operands, 3, error));
}
