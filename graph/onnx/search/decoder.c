/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder of a search: its attributes and operands, its first step and the later ones.
 *
 *     (input_ids, position_ids, attention_mask, past_0, …)  ->  (logits, present_0, …)
 *
 * A past is [2, rows, heads, length, size]. It has no rows in the first step. Positions count the
 * tokens that are no padding. */
#include "graph/onnx/search/search.h"

#include "graph/graph.h"
#include "graph/module.h"
#include "graph/onnx/contrib/cache.h"
#include "graph/onnx/import.h"
#include "graph/onnx/model.h"
#include "graph/onnx/tensor.h"

enum {
    MAX_GRAM = 64,
    FIRST_PAST = 3, /* input of the decoder */
    PAST_RANK = 5,
    PAST_LENGTH = 3 /* dim */
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

static gboolean
check_graph(const KilnOnnxSearch *search, const KilnOnnxGraph *graph, GError **error)
{
    const guint inputs = graph->inputs->len, outputs = graph->outputs->len;
    if (outputs < 2 || inputs < outputs + 2)
        return kiln_onnx_throw(search->call, KILN_ERROR_INVALID, error,
                               "decoder: expected input_ids, position_ids, attention_mask and a "
                               "past for each present value, found %u inputs and %u outputs",
                               inputs, outputs);
    if (inputs > outputs + 2)
        return kiln_onnx_unsupported(
            search->call, error, "a decoder with %u inputs behind the past", inputs - outputs - 2);
    if (outputs - 1 != search->layers)
        return kiln_onnx_throw(search->call, KILN_ERROR_INVALID, error,
                               "init_decoder: expected %u present values, found %u", search->layers,
                               outputs - 1);
    return TRUE;
}

static gboolean
read_attrs(KilnOnnxSearch *search, GError **error)
{
    KilnOnnxCall *call = search->call;
    const KilnOnnxGraph *encoder = NULL;
    int64_t model_type = 0, start = -1;
    search->words = -1;
    if (!kiln_onnx_take_int(call, "model_type", &model_type, error) ||
        !kiln_onnx_take_int(call, "decoder_start_token_id", &start, error) ||
        !kiln_onnx_take_int(call, "eos_token_id", &search->eos, error) ||
        !kiln_onnx_take_int(call, "pad_token_id", &search->pad, error) ||
        !kiln_onnx_take_int(call, "vocab_size", &search->words, error) ||
        !kiln_onnx_take_int(call, "no_repeat_ngram_size", &search->ngram, error) ||
        !take_graph(call, "encoder", &encoder, error) ||
        !take_graph(call, "decoder", &search->decoder, error))
        return FALSE;
    search->first = search->decoder;
    if (!take_graph(call, "init_decoder", &search->first, error))
        return FALSE;
    if (model_type != 0)
        return kiln_onnx_unsupported(call, error, "model_type=%" G_GINT64_FORMAT, model_type);
    if (search->ngram < 0 || search->ngram > MAX_GRAM)
        return kiln_onnx_unsupported(call, error, "no_repeat_ngram_size=%" G_GINT64_FORMAT,
                                     search->ngram);
    if (search->pad < 0)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "pad_token_id: expected 0 or more, found %" G_GINT64_FORMAT,
                               search->pad);
    search->layers = search->decoder->outputs->len ? search->decoder->outputs->len - 1 : 0;
    return check_graph(search, search->decoder, error) && check_graph(search, search->first, error);
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
    const uint32_t numbers[] = { 1, at->min_length, at->penalty };
    const uint32_t tokens[] = { 0, at->attention_mask };
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        if (!kiln_onnx_require_one(call, numbers[i], error))
            return FALSE;
    }
    if (!kiln_onnx_need(call, 0, error) || !kiln_onnx_need(call, 1, error) ||
        !kiln_onnx_require_rank(call, 0, 2, 2, error) ||
        !kiln_onnx_require_rank(call, at->vocab_mask, 1, 1, error) ||
        !kiln_onnx_require_rank(call, at->prefix_mask, 2, 2, error) ||
        !kiln_onnx_require_rank(call, at->attention_mask, 2, 2, error))
        return FALSE;
    for (size_t i = 0; i < G_N_ELEMENTS(tokens); i++) {
        const KilnValue *value = kiln_onnx_operand(call, tokens[i]);
        if (value && value->type.dtype != KILN_DTYPE_i32)
            return kiln_onnx_throw(call, KILN_ERROR_TYPE, error,
                                   "operand %u: expected i32, found %s", tokens[i],
                                   kiln_dtype_name(value->type.dtype));
    }
    if (search->prompt->type.dims[1] == 0)
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "operand 0: expected one token or more, found none");
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
    if (!known || most->known->v[0] > tokens)
        return TRUE;
    return kiln_onnx_throw(search->call, KILN_ERROR_INVALID, error,
                           "max_length: expected more than the %" G_GINT64_FORMAT
                           " tokens of the prompt, found %" G_GINT64_FORMAT,
                           tokens, most->known->v[0]);
}

gboolean
kiln_onnx_search_read(KilnOnnxSearch *search, KilnOnnxCall *call, const KilnOnnxSearchOperands *at,
                      GError **error)
{
    const KilnOnnxSteps s = { call, error };
    search->call = call;
    search->prompt = kiln_onnx_need(call, 0, error);
    if (!search->prompt || !read_attrs(search, error) || !check_operands(search, at, error))
        return FALSE;
    search->vocab_mask = kiln_onnx_operand(call, at->vocab_mask);
    search->prefix_mask = kiln_onnx_operand(call, at->prefix_mask);
    search->attention_mask = kiln_onnx_operand(call, at->attention_mask);
    search->max_length = kiln_onnx_search_number(&s, 1, KILN_DTYPE_i64);
    search->min_length = kiln_onnx_search_number(&s, at->min_length, KILN_DTYPE_i64);
    search->penalty = kiln_onnx_search_number(&s, at->penalty, KILN_DTYPE_f32);
    return search->max_length && check_length(search, error);
}

/* --- a step --- */

/* The last element of @x along dim 1, which stays. */
static KilnValue *
last_of(const KilnOnnxSteps *s, KilnValue *x)
{
    const int64_t last = -1;
    return kiln_onnx_step_gather(s, x, kiln_onnx_ints(s->call, "last", &last, 1), 1);
}

/* The scores behind the last token: f32[rows, words]. */
static KilnValue *
last_scores(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *logits)
{
    if (logits->type.rank != 3) {
        g_autofree char *found = kiln_type_to_string(&logits->type);
        kiln_onnx_throw(search->call, KILN_ERROR_SHAPE, s->error,
                        "decoder: expected logits of rank 3, found %s", found);
        return NULL;
    }
    const int64_t all = logits->type.dims[2];
    const int64_t words = search->words > 0 ? search->words : all;
    if (words < 1 || (all >= 0 && words > all)) {
        kiln_onnx_throw(search->call, KILN_ERROR_INVALID, s->error,
                        "vocab_size: expected 1 to the number of logits, found %" G_GINT64_FORMAT,
                        words);
        return NULL;
    }
    KilnValue *end = kiln_onnx_scalar(s->call, "end", KILN_DTYPE_i64, -1);
    KilnValue *last = kiln_onnx_step_gather(s, logits, end, 1);
    if (words != all)
        last = kiln_onnx_step_slice(s, last, 1, 0, words, 1);
    return kiln_onnx_step_cast(s, last, KILN_DTYPE_f32);
}

/* Runs @graph on @inputs; stores what is the past of the next step. */
static KilnValue *
decode(const KilnOnnxSearch *search, const KilnOnnxSteps *s, const KilnOnnxGraph *graph,
       KilnValue **inputs, KilnOnnxSearchState *state)
{
    KilnOnnxCall *call = search->call;
    const uint32_t n = search->layers;
    g_autofree KilnValue **outputs = g_new0(KilnValue *, (gsize)n + 2);
    for (uint32_t i = 0; i < FIRST_PAST + n; i++) {
        if (!inputs[i])
            return NULL;
    }
    if (!kiln_onnx_import_into(call->import, call->scope, graph, s->call->function, inputs, outputs,
                               s->error)) {
        kiln_prefix_error(s->error, "%s: decoder: ", call->label);
        return NULL;
    }
    state->past = kiln_arena_new0(call->import->module->arena, KilnValue *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (outputs[i + 1]->type.rank != PAST_RANK) {
            g_autofree char *found = kiln_type_to_string(&outputs[i + 1]->type);
            kiln_onnx_throw(call, KILN_ERROR_SHAPE, s->error,
                            "decoder: expected a present value of rank %d, found %s", PAST_RANK,
                            found);
            return NULL;
        }
        state->past[i] = outputs[i + 1];
    }
    return last_scores(search, s, outputs[0]);
}

/* The past before the first step, for input @i of the decoder. */
static KilnValue *
empty_past(const KilnOnnxSearch *search, const KilnOnnxSteps *s, uint32_t i, KilnValue *tokens)
{
    KilnOnnxCall *call = search->call;
    const Onnx__ValueInfoProto *info = g_ptr_array_index(search->decoder->inputs, i);
    KilnType type = kiln_type_unranked(KILN_DTYPE_f32);
    if (kiln_onnx_type_load(info->type, call->import->dim_names, call->import->module, &type) !=
            KILN_ONNX_TYPE_TENSOR ||
        type.rank != PAST_RANK || type.dims[0] != 2 || type.dims[2] < 1 || type.dims[4] < 1) {
        g_autofree char *found = kiln_type_to_string(&type);
        kiln_onnx_throw(call, KILN_ERROR_SHAPE, s->error,
                        "decoder: expected [2,batch,heads,length,size] with numbers of heads and "
                        "their size as '%s', found %s",
                        info->name, found);
        return NULL;
    }
    const KilnOnnxExtent extents[] = { KILN_ONNX_NUMBER(2), KILN_ONNX_DIM(tokens, 0),
                                       KILN_ONNX_NUMBER(type.dims[2]), KILN_ONNX_NUMBER(0),
                                       KILN_ONNX_NUMBER(type.dims[4]) };
    KilnValue *zero = kiln_onnx_scalar(s->call, "nothing", type.dtype, 0);
    return tokens ? kiln_onnx_step_expand(s, zero, extents, PAST_RANK) : NULL;
}

KilnValue *
kiln_onnx_search_rows(const KilnOnnxSteps *s, KilnValue *x, KilnValue *beams)
{
    const int64_t one = 1;
    if (!beams || !x)
        return x;
    const KilnOnnxExtent flat[] = { KILN_ONNX_NUMBER(-1), KILN_ONNX_DIM(x, 1) };
    KilnValue *shape = kiln_onnx_step_concat(
        s, kiln_onnx_step_extents(s, x, 0),
        kiln_onnx_step_concat(s, beams, kiln_onnx_step_extents(s, x, 1), 0), 0);
    KilnValue *wide = kiln_onnx_step_expand_to(s, kiln_onnx_step_unsqueeze(s, x, &one, 1), shape);
    return kiln_onnx_step_reshape(s, wide, flat, 2);
}

KilnValue *
kiln_onnx_search_begin(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *beams,
                       KilnOnnxSearchState *state)
{
    KilnValue *pad = kiln_onnx_scalar(s->call, "pad", KILN_DTYPE_i32, (double)search->pad);
    state->tokens = kiln_onnx_search_rows(s, search->prompt, beams);
    KilnValue *is_pad = kiln_onnx_step_equal(s, state->tokens, pad);
    KilnValue *counts = kiln_onnx_step_cast(s, kiln_onnx_step_opposite(s, is_pad), KILN_DTYPE_i32);
    state->mask =
        search->attention_mask ? kiln_onnx_search_rows(s, search->attention_mask, beams) : counts;
    KilnValue *positions = kiln_onnx_step_sums_before(s, counts, 1);
    state->positions = kiln_onnx_step_sum(s, counts, 1, true);
    g_autofree KilnValue **inputs = g_new0(KilnValue *, (gsize)search->layers + FIRST_PAST + 1);
    inputs[0] = state->tokens;
    inputs[1] = kiln_onnx_step_mul(s, positions, counts);
    inputs[2] = state->mask;
    for (uint32_t i = 0; i < search->layers; i++) {
        inputs[FIRST_PAST + i] = empty_past(search, s, FIRST_PAST + i, state->tokens);
        if (!inputs[FIRST_PAST + i])
            return NULL;
    }
    return decode(search, s, search->first, inputs, state);
}

KilnValue *
kiln_onnx_search_step(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                      const KilnOnnxSearchState *before, KilnOnnxSearchState *state)
{
    const KilnOnnxExtent column[] = { KILN_ONNX_DIM(before->tokens, 0), KILN_ONNX_NUMBER(1) };
    KilnValue *one = kiln_onnx_scalar(s->call, "one", KILN_DTYPE_i32, 1);
    g_autofree KilnValue **inputs = g_new0(KilnValue *, (gsize)search->layers + FIRST_PAST + 1);
    state->mask =
        kiln_onnx_step_concat(s, before->mask, kiln_onnx_step_expand(s, one, column, 2), 1);
    state->positions = kiln_onnx_step_add_number(s, before->positions, 1);
    inputs[0] = last_of(s, before->tokens);
    inputs[1] = before->positions;
    inputs[2] = state->mask;
    for (uint32_t i = 0; i < search->layers; i++)
        inputs[FIRST_PAST + i] = before->past[i];
    return decode(search, s, search->decoder, inputs, state);
}

/* --- the end --- */

KilnValue *
kiln_onnx_search_padded(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *tokens)
{
    if (!tokens)
        return NULL;
    const int last = tokens->type.rank - 1;
    KilnValue *pad = kiln_onnx_scalar(s->call, "pad", KILN_DTYPE_i32, (double)search->pad);
    KilnValue *places = kiln_onnx_count_to(s, search->max_length);
    KilnValue *length = kiln_onnx_step_extent(s, tokens, last);
    KilnValue *from = kiln_onnx_step_least(s, places, kiln_onnx_step_sub_number(s, length, 1));
    KilnValue *there = kiln_onnx_step_less(s, places, length);
    return kiln_onnx_step_where(s, there, kiln_onnx_step_gather(s, tokens, from, last), pad);
}

KilnValue *
kiln_onnx_search_goes_on(const KilnOnnxSteps *s, KilnValue *done)
{
    return kiln_onnx_step_any(s, kiln_onnx_step_opposite(s, done));
}

/* A prompt that is too long is an error of the gather. */
KilnValue *
kiln_onnx_search_trips(const KilnOnnxSearch *search, const KilnOnnxSteps *s)
{
    KilnValue *length = kiln_onnx_step_extent(s, search->prompt, 1);
    KilnValue *places = kiln_onnx_count_to(s, search->max_length);
    KilnValue *first = kiln_onnx_step_gather(s, places, length, 0);
    return kiln_onnx_step_sub_number(s, kiln_onnx_step_sub(s, search->max_length, first), 1);
}
