/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU and LSTM before opset 7. */
#include "graph/onnx/convert.h"

/* Whether the whole sequence is wanted is told by the result's having a name. */
gboolean
kiln_onnx_convert_recurrent_1(KilnOnnxCall *call, GError **error)
{
    int64_t output_sequence;
    return kiln_onnx_take_int(call, "output_sequence", &output_sequence, error);
}
