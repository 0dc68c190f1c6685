/* SPDX-License-Identifier: Apache-2.0 */
/* Nets with a state of com.microsoft. */
#include "graph/graph.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/converters.h"
#include "graph/onnx/steps.h"
#include "graph/op/recurrent.h"

/* Refuses an attribute that is not @usual. */
static gboolean
require_usual(KilnOnnxCall *call, const char *name, int64_t usual, GError **error)
{
    int64_t found = usual;
    if (!kiln_onnx_take_int(call, name, &found, error))
        return FALSE;
    return found == usual ||
           kiln_onnx_unsupported(call, error, "%s=%" G_GINT64_FORMAT, name, found);
}

/* --- LinearAttention --- */

/* The form of ONNX, but for states of several tokens. */
gboolean
kiln_onnx_convert_linear_attention_contrib(KilnOnnxCall *call, GError **error)
{
    return require_usual(call, "state_window", 0, error);
}

/* --- CausalConvWithState --- */

static gboolean
refuse_extensions(KilnOnnxCall *call, GError **error)
{
    static const struct {
        const char *name;
        int64_t usual;
    } all[] = {
        { "ndim", 1 },          { "state_update_capacity", 0 }, { "state_channels_last", -1 },
        { "state_window", 0 },  { "state_length", 0 },          { "input_channel_offset", 0 },
        { "input_channels", 0 }
    };
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        if (!require_usual(call, all[i].name, all[i].usual, error))
            return FALSE;
    }
    return TRUE;
}

/* Rows of channels become channels of rows, and back. */
gboolean
kiln_onnx_convert_causal_conv_contrib(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    int64_t last = 0;
    if (!refuse_extensions(call, error) ||
        !kiln_onnx_take_flag(call, "channels_last", &last, error) ||
        !kiln_onnx_need(call, 0, error))
        return FALSE;
    for (uint32_t i = 0; last && i <= 3; i += 3) {
        KilnValue *x = kiln_onnx_operand(call, i);
        if (!kiln_onnx_require_rank(call, i, 3, 3, error))
            return FALSE;
        if (x && !(call->operands[i] = kiln_onnx_step_channels_second(&s, x)))
            return FALSE;
    }
    if (!kiln_onnx_convert_causal_conv(call, error))
        return FALSE;
    for (uint32_t i = 0; last && i < call->n_results && i < 2; i++) {
        if (!kiln_onnx_set_result(call, i, kiln_onnx_step_channels_last(&s, call->results[i])))
            return FALSE;
    }
    return TRUE;
}

/* --- DynamicQuantizeLSTM --- */

/* Parameter @i of @dims[directions] or [directions, columns] as it broadcasts to matrices. */
static KilnValue *
parameter(const KilnOnnxSteps *s, uint32_t i)
{
    static const int64_t one[] = { 1 }, two[] = { 1, 2 };
    KilnValue *x = kiln_onnx_need(s->call, i, s->error);
    if (!x || !kiln_onnx_require_rank(s->call, i, 1, 2, s->error))
        return NULL;
    return x->type.rank == 2 ? kiln_onnx_step_unsqueeze(s, x, one, 1)
                             : kiln_onnx_step_unsqueeze(s, x, two, 2);
}

/* Operand @i, [directions, rows, columns], as floats in the order of lstm, by the scale and the
 * zero point of operands @scale and @scale + 1. */
static KilnValue *
real_weights(const KilnOnnxSteps *s, uint32_t i, uint32_t scale)
{
    static const int64_t swap[] = { 0, 2, 1 };
    KilnValue *w = kiln_onnx_need(s->call, i, s->error), *by = w ? parameter(s, scale) : NULL;
    KilnValue *zero = by ? parameter(s, scale + 1) : NULL;
    if (!zero || !kiln_onnx_require_rank(s->call, i, 3, 3, s->error))
        return NULL;
    w = kiln_onnx_step_sub(s, kiln_onnx_step_cast(s, w, KILN_DTYPE_f32),
                           kiln_onnx_step_cast(s, zero, KILN_DTYPE_f32));
    return kiln_onnx_step_transpose(s, kiln_onnx_step_mul(s, w, by), swap, 3);
}

/* An lstm of floats. ONNX Runtime rounds the state and the input of each step to 8 bits; this does
 * not. (x, w, r, bias, lengths, h, c, peepholes, w scale, w zero, r scale, r zero) */
gboolean
kiln_onnx_convert_dynamic_quantize_lstm(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *w = kiln_onnx_need(call, 0, error) ? real_weights(&s, 1, 8) : NULL;
    KilnValue *r = w ? real_weights(&s, 2, 10) : NULL;
    if (!r)
        return FALSE;
    call->operands[1] = w;
    call->operands[2] = r;
    call->n_operands = 8;
    return TRUE;
}
