/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of strings. */
#include "graph/onnx/convert.h"

/* Kiln changes the case of each character by itself, in no language's way. The names of languages
 * differ between systems, and most exporters leave the attribute out or write one of English. */
gboolean
kiln_onnx_convert_string_normalizer(KilnOnnxCall *call, GError **error)
{
    (void)error;
    kiln_onnx_take(call, "locale");
    return TRUE;
}
