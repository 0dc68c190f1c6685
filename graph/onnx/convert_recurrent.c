/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU and LSTM before opset 7, and a convolution with a state. */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/conv.h"
#include "graph/op/expand.h"

#include <string.h>

/* Whether the whole sequence is wanted is told by the result's having a name. */
gboolean
kiln_onnx_convert_recurrent_1(KilnOnnxCall *call, GError **error)
{
    int64_t output_sequence;
    return kiln_onnx_take_int(call, "output_sequence", &output_sequence, error);
}

/* --- CausalConvWithState --- */

static gboolean
check_causal_conv(const KilnOnnxCall *call, const char *activation, int64_t dilation,
                  GError **error)
{
    const KilnValue *past = kiln_onnx_operand(call, 3);
    if (!kiln_onnx_require_rank(call, 0, 3, 3, error) ||
        !kiln_onnx_require_rank(call, 1, 3, 3, error) ||
        !kiln_onnx_require_rank(call, 3, 3, 3, error))
        return FALSE;
    const KilnType *w = &call->operands[1]->type;
    if (w->dims[0] < 0 || w->dims[2] < 0 || w->dims[2] > INT32_MAX)
        return kiln_onnx_unsupported(call, error, "weights of unknown dims");
    if (dilation < 1 || dilation > INT32_MAX)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "dilation: expected 1 or more, found %" G_GINT64_FORMAT, dilation);
    const int64_t n = (w->dims[2] - 1) * dilation;
    if (w->dims[2] < 1 || (past && past->type.dims[2] >= 0 && past->type.dims[2] != n))
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "operand 3: expected a state of %" G_GINT64_FORMAT
                               " positions, found %" G_GINT64_FORMAT,
                               n, past ? past->type.dims[2] : 0);
    if (strcmp(activation, "none") != 0 && strcmp(activation, "silu") != 0 &&
        strcmp(activation, "swish") != 0)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "activation: expected none, silu or swish, found '%s'", activation);
    return TRUE;
}

/* The @n positions of the state in front of x: zeros where there is none. */
static KilnValue *
with_state(const KilnOnnxSteps *s, int64_t n)
{
    KilnValue *x = s->call->operands[0], *past = kiln_onnx_operand(s->call, 3);
    const int64_t pads[] = { 0, 0, n, 0, 0, 0 };
    if (n == 0)
        return x;
    if (past)
        return kiln_onnx_step_concat(s, past, x, 2);
    return kiln_onnx_step2(s, KILN_OP_pad, NULL, x, kiln_onnx_ints(s->call, "pads", pads, 6));
}

/*   swish(conv(concat(past, x))), and the last positions as the next state */
gboolean
kiln_onnx_convert_causal_conv(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    const char *activation = "none";
    int64_t dilation = 1;
    if (!kiln_onnx_need(call, 0, error) || !kiln_onnx_need(call, 1, error) ||
        !kiln_onnx_take_text(call, "activation", &activation, error) ||
        !kiln_onnx_take_int(call, "dilation", &dilation, error) ||
        !check_causal_conv(call, activation, dilation, error))
        return FALSE;
    KilnValue *w = call->operands[1], *bias = kiln_onnx_operand(call, 2);
    const int64_t n = (w->type.dims[2] - 1) * dilation;
    KilnAttrs_conv attrs = { .auto_pad = "NOTSET", .group = w->type.dims[0] };
    if (dilation > 1)
        attrs.dilations = (KilnInts){ .n = 1, .v = &dilation };
    KilnValue *x = with_state(&s, n), *y;
    if (bias)
        y = kiln_onnx_step3(&s, KILN_OP_conv, &attrs, x, w, bias);
    else
        y = kiln_onnx_step2(&s, KILN_OP_conv, &attrs, x, w);
    if (strcmp(activation, "none") != 0)
        y = kiln_onnx_step_swish(&s, y);
    if (!kiln_onnx_set_result(call, 0, y))
        return FALSE;
    return call->n_results < 2 ||
           kiln_onnx_set_result(call, 1,
                                kiln_onnx_step_slice(&s, x, 2, n ? -n : INT64_MAX, INT64_MAX, 1));
}
