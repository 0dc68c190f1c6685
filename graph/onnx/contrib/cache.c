/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/onnx/contrib/cache.h"

#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/generate.h"

KilnValue *
kiln_onnx_count_to(const KilnOnnxSteps *s, KilnValue *n)
{
    return kiln_onnx_step3(s, KILN_OP_range, NULL,
                           kiln_onnx_scalar(s->call, "from", KILN_DTYPE_i64, 0), n,
                           kiln_onnx_scalar(s->call, "by", KILN_DTYPE_i64, 1));
}

/* Operand @i as a scalar of i64. */
static KilnValue *
scalar_operand(const KilnOnnxSteps *s, uint32_t i)
{
    KilnValue *x = kiln_onnx_need(s->call, i, s->error);
    if (x && x->type.rank != 0)
        x = kiln_onnx_step_reshape(s, x, NULL, 0);
    return kiln_onnx_step_cast(s, x, KILN_DTYPE_i64);
}

/* Operand @i as a number of i64 for each sample of @x. */
static KilnValue *
number_each(const KilnOnnxSteps *s, KilnValue *x, uint32_t i)
{
    const KilnOnnxExtent batch[] = { KILN_ONNX_DIM(x, 0) };
    KilnValue *numbers = kiln_onnx_need(s->call, i, s->error);
    if (numbers && numbers->type.rank != 1)
        numbers = kiln_onnx_step_reshape(s, numbers, batch, 1);
    return kiln_onnx_step_cast(s, numbers, KILN_DTYPE_i64);
}

gboolean
kiln_onnx_read_tokens(const KilnOnnxSteps *s, KilnValue *x, uint32_t lengths, double more,
                      uint32_t total, uint32_t rows, KilnOnnxTokens *out)
{
    out->lengths = number_each(s, x, lengths);
    if (out->lengths && more != 0)
        out->lengths = kiln_onnx_step_add_number(s, out->lengths, more);
    out->total = out->lengths ? scalar_operand(s, total) : NULL;
    if (!out->total)
        return FALSE;
    if (kiln_onnx_operand(s->call, rows))
        out->before = kiln_onnx_step_sub(s, out->lengths, number_each(s, x, rows));
    else
        out->before = kiln_onnx_step_at_least(
            s, kiln_onnx_step_sub(s, out->lengths, kiln_onnx_step_extent(s, x, 1)), 0);
    return out->before != NULL;
}

KilnValue *
kiln_onnx_token_positions(const KilnOnnxSteps *s, const KilnOnnxTokens *tokens, KilnValue *x)
{
    static const int64_t last[] = { 1 }, front[] = { 0 };
    KilnValue *rows = kiln_onnx_step_unsqueeze(
        s, kiln_onnx_count_to(s, kiln_onnx_step_extent(s, x, 1)), front, 1);
    return kiln_onnx_step_add(s, kiln_onnx_step_unsqueeze(s, tokens->before, last, 1), rows);
}

KilnValue *
kiln_onnx_as_long(const KilnOnnxSteps *s, KilnValue *x, int dim, KilnValue *like, int other)
{
    if (!x || !like || kiln_type_equal_dims(&x->type, dim, &like->type, other))
        return x;
    return kiln_onnx_step_longer(s, x, dim,
                                 kiln_onnx_step_sub(s, kiln_onnx_step_extent(s, like, other),
                                                    kiln_onnx_step_extent(s, x, dim)));
}

/* @buffer with as many rows as there are tokens, where it has fewer. */
static KilnValue *
grown(const KilnOnnxSteps *s, const KilnOnnxTokens *tokens, KilnValue *buffer)
{
    KilnValue *more = kiln_onnx_step_sub(s, tokens->total, kiln_onnx_step_extent(s, buffer, 2));
    return kiln_onnx_step_longer(s, buffer, 2, kiln_onnx_step_at_least(s, more, 0));
}

KilnValue *
kiln_onnx_into_cache(const KilnOnnxSteps *s, const KilnOnnxTokens *tokens, uint32_t past,
                     KilnValue *x)
{
    KilnValue *buffer = kiln_onnx_operand(s->call, past);
    if (!buffer || !x)
        return x;
    return kiln_onnx_step_write(s, grown(s, tokens, buffer), x, tokens->before);
}
