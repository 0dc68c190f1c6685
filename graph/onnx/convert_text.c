/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of strings. */
#include "graph/onnx/convert.h"
#include "graph/op/text.h"

#include <string.h>

/* Kiln changes the case of each character by itself, in no language's way. The names of languages
 * differ between systems, and most exporters leave the attribute out or write one of English. */
gboolean
kiln_onnx_convert_string_normalizer(KilnOnnxCall *call, GError **error)
{
    (void)error;
    kiln_onnx_take(call, "locale");
    return TRUE;
}

/* Of separators and tokenexp one counts: separators, if both are there. One empty separator, and
 * the expression ".", stand for characters. */
gboolean
kiln_onnx_convert_tokenizer(KilnOnnxCall *call, GError **error)
{
    KilnAttrs_tokenizer *attrs = kiln_onnx_attrs(call, tokenizer);
    KilnStrings separators = { 0 };
    const char *tokenexp = "";
    if (!kiln_onnx_take_texts(call, "separators", &separators, error) ||
        !kiln_onnx_take_text(call, "tokenexp", &tokenexp, error) ||
        !kiln_onnx_take_int(call, "mincharnum", &attrs->mincharnum, error))
        return FALSE;
    if (!separators.n && !*tokenexp)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected 'separators' or 'tokenexp', found neither");
    const bool characters =
        separators.n ? separators.n == 1 && !*separators.v[0] : strcmp(tokenexp, ".") == 0;
    if (characters && attrs->mincharnum > 1)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "mincharnum: expected 1 where tokens are characters, found "
                               "%" G_GINT64_FORMAT,
                               attrs->mincharnum);
    if (!characters && separators.n)
        attrs->separators = separators;
    else if (!characters)
        attrs->tokenexp = tokenexp;
    return TRUE;
}
