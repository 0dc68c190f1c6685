/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes and operands of a search, and the inputs of its decoder.
 *
 *     (input_ids, position_ids, attention_mask, past_0, …)  ->  (logits, present_0, …)
 *
 * Those of a decoder with an encoder are checked in pair.c. */
#include "graph/onnx/search/search.h"

#include "graph/graph.h"
#include "graph/onnx/model.h"
#include "graph/onnx/scope.h"
#include "graph/onnx/tensor.h"

enum {
    MAX_GRAM = 64,
    ALONE = 2 /* positions and mask, which a decoder alone has beside its layers' past */
};

/* --- attributes --- */

static gboolean
take_graph(KilnOnnxCall *call, const char *name, const KilnOnnxGraph **out, GError **error)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, name);
    if (attr && !attr->graph)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "attribute '%s' is no graph", name);
    *out = attr ? attr->graph : *out;
    return TRUE;
}

gboolean
kiln_onnx_search_check_names(const KilnOnnxSearch *search, const KilnOnnxGraph *graph,
                             const char *what, const char *const *names, uint32_t n, GError **error)
{
    for (uint32_t i = 0; i < n; i++) {
        const Onnx__ValueInfoProto *info = g_ptr_array_index(graph->inputs, i);
        if (g_strcmp0(info->name, names[i]) != 0)
            return kiln_onnx_throw(search->call, KILN_ERROR_INVALID, error,
                                   "%s: expected '%s' as input %u, found '%s'", what, names[i], i,
                                   info->name ? info->name : "");
    }
    return TRUE;
}

KilnType
kiln_onnx_search_input_type(const KilnOnnxSearch *search, const KilnOnnxGraph *graph, uint32_t i)
{
    const KilnOnnxImport *import = search->call->import;
    const Onnx__ValueInfoProto *info = g_ptr_array_index(graph->inputs, i);
    KilnType type = kiln_type_unranked(KILN_DTYPE_f32);
    if (kiln_onnx_type_load(info->type, import->dim_names, import->module, &type) !=
        KILN_ONNX_TYPE_TENSOR)
        return kiln_type_unranked(KILN_DTYPE_f32);
    return type;
}

static gboolean
check_graph(const KilnOnnxSearch *search, const KilnOnnxGraph *graph, const char *what,
            GError **error)
{
    static const char *const names[] = { "input_ids", "position_ids", "attention_mask" };
    const guint inputs = graph->inputs->len, outputs = graph->outputs->len;
    if (outputs < 2 || inputs < outputs + 2)
        return kiln_onnx_throw(search->call, KILN_ERROR_INVALID, error,
                               "%s: expected input_ids, position_ids, attention_mask and a "
                               "past for each present value, found %u inputs and %u outputs",
                               what, inputs, outputs);
    if (inputs > outputs + 2)
        return kiln_onnx_unsupported(
            search->call, error, "a decoder with %u inputs behind the past", inputs - outputs - 2);
    if (outputs - 1 + ALONE != search->n_past)
        return kiln_onnx_throw(search->call, KILN_ERROR_INVALID, error,
                               "%s: expected %u present values, found %u", what,
                               search->n_past - ALONE, outputs - 1);
    return kiln_onnx_search_check_names(search, graph, what, names, G_N_ELEMENTS(names), error);
}

static gboolean
check_attrs(const KilnOnnxSearch *search, unsigned models, GError **error)
{
    const KilnOnnxCall *call = search->call;
    const int64_t model = search->model;
    if (model < 0 || model > KILN_ONNX_SEARCH_SPEECH || !(models >> model & 1))
        return kiln_onnx_unsupported(call, error, "model_type=%" G_GINT64_FORMAT, model);
    if (search->ngram < 0 || search->ngram > MAX_GRAM)
        return kiln_onnx_unsupported(call, error, "no_repeat_ngram_size=%" G_GINT64_FORMAT,
                                     search->ngram);
    if (search->pad < 0)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "pad_token_id: expected 0 or more, found %" G_GINT64_FORMAT,
                               search->pad);
    return TRUE;
}

static gboolean
read_attrs(KilnOnnxSearch *search, unsigned models, GError **error)
{
    KilnOnnxCall *call = search->call;
    search->words = search->start = -1;
    if (!kiln_onnx_take_int(call, "model_type", &search->model, error) ||
        !kiln_onnx_take_int(call, "decoder_start_token_id", &search->start, error) ||
        !kiln_onnx_take_int(call, "eos_token_id", &search->eos, error) ||
        !kiln_onnx_take_int(call, "pad_token_id", &search->pad, error) ||
        !kiln_onnx_take_int(call, "vocab_size", &search->words, error) ||
        !kiln_onnx_take_int(call, "no_repeat_ngram_size", &search->ngram, error) ||
        !take_graph(call, "encoder", &search->encoder, error) ||
        !take_graph(call, "decoder", &search->decoder, error))
        return FALSE;
    search->first = search->decoder;
    if (!take_graph(call, "init_decoder", &search->first, error) ||
        !check_attrs(search, models, error))
        return FALSE;
    if (search->model != KILN_ONNX_SEARCH_DECODER)
        return TRUE;
    search->encoder = NULL; /* nothing runs it */
    search->n_past = MAX(search->decoder->outputs->len, 1) - 1 + ALONE;
    return check_graph(search, search->decoder, "decoder", error) &&
           check_graph(search, search->first,
                       search->first == search->decoder ? "decoder" : "init_decoder", error);
}

/* --- operands --- */

KilnValue *
kiln_onnx_search_number(const KilnOnnxSteps *s, uint32_t i, KilnDType dtype)
{
    KilnValue *value = kiln_onnx_operand(s->call, i);
    return value ? kiln_onnx_step_cast(s, kiln_onnx_step_reshape(s, value, NULL, 0), dtype) : NULL;
}

static gboolean
check_operands(const KilnOnnxSearch *search, const KilnOnnxSearchOperands *at, GError **error)
{
    const KilnOnnxCall *call = search->call;
    const bool speech = search->model == KILN_ONNX_SEARCH_SPEECH;
    const uint32_t numbers[] = { 1, at->min_length, at->penalty };
    const uint32_t tokens[] = { 0, at->attention_mask };
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        if (!kiln_onnx_require_one(call, numbers[i], error))
            return FALSE;
    }
    if (!kiln_onnx_need(call, 0, error) || !kiln_onnx_need(call, 1, error) ||
        !kiln_onnx_require_rank(call, 0, speech ? 3 : 2, speech ? 3 : 2, error) ||
        !kiln_onnx_require_rank(call, at->vocab_mask, 1, 1, error) ||
        !kiln_onnx_require_rank(call, at->prefix_mask, 2, 2, error) ||
        (!speech && !kiln_onnx_require_rank(call, at->attention_mask, 2, 2, error)))
        return FALSE;
    for (size_t i = 0; !speech && i < G_N_ELEMENTS(tokens); i++) {
        const KilnValue *value = kiln_onnx_operand(call, tokens[i]);
        if (value && value->type.dtype != KILN_DTYPE_i32)
            return kiln_onnx_throw(call, KILN_ERROR_TYPE, error,
                                   "operand %u: expected i32, found %s", tokens[i],
                                   kiln_dtype_name(value->type.dtype));
    }
    if (kiln_onnx_operand(call, at->min_length) && search->eos < 0)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "eos_token_id: expected 0 or more beside min_length, found "
                               "%" G_GINT64_FORMAT,
                               search->eos);
    return TRUE;
}

/* Where both are known. If a run decides, the gather of kiln_onnx_search_trips() fails. */
static gboolean
check_length(const KilnOnnxSearch *search, GError **error)
{
    const KilnValue *most = search->max_length;
    const int64_t tokens = search->prompt->type.dims[1];
    const bool known = most->known && most->known->n == 1 && !most->extents && tokens >= 0;
    if (tokens == 0)
        return kiln_onnx_throw(search->call, KILN_ERROR_SHAPE, error,
                               "operand %d: expected one token or more, found none",
                               search->model == KILN_ONNX_SEARCH_SPEECH ? 10 : 0);
    if (!known || most->known->v[0] > tokens)
        return TRUE;
    return kiln_onnx_throw(search->call, KILN_ERROR_INVALID, error,
                           "max_length: expected more than the %" G_GINT64_FORMAT
                           " tokens of the prompt, found %" G_GINT64_FORMAT,
                           tokens, most->known->v[0]);
}

gboolean
kiln_onnx_search_read(KilnOnnxSearch *search, KilnOnnxCall *call, const KilnOnnxSearchOperands *at,
                      unsigned models, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    search->call = call;
    if (!read_attrs(search, models, error) || !check_operands(search, at, error))
        return FALSE;
    search->prompt = kiln_onnx_need(call, 0, error);
    search->vocab_mask = kiln_onnx_operand(call, at->vocab_mask);
    search->prefix_mask = kiln_onnx_operand(call, at->prefix_mask);
    search->attention_mask = kiln_onnx_operand(call, at->attention_mask);
    if (search->model != KILN_ONNX_SEARCH_DECODER && !kiln_onnx_pair_read(search, error))
        return FALSE;
    search->max_length = kiln_onnx_search_number(&s, 1, KILN_DTYPE_i64);
    search->min_length = kiln_onnx_search_number(&s, at->min_length, KILN_DTYPE_i64);
    search->penalty = kiln_onnx_search_number(&s, at->penalty, KILN_DTYPE_f32);
    return search->max_length && check_length(search, error);
}
