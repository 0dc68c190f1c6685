/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a decoder with an encoder, like those of T5 and Whisper.
 *
 *     encoder (encoder_input_ids, encoder_attention_mask, decoder_input_ids)
 *         ->  (logits, encoder_hidden_states, present_self.., present_cross..)
 *     decoder (input_ids, encoder_attention_mask, encoder_hidden_states, past_self..,
 *              past_cross..)
 *         ->  (logits, present_self..)
 *
 * A present value and a past are [rows, heads, length, size]; keys and values of a layer stand side
 * by side. Those of `cross` belong to the tokens of the encoder, so they stay the same.
 *
 *     first step     the encoder also decodes the prompt, a row for each sample
 *     other steps    the decoder reads the last tokens; all, if its input_ids may be longer
 *
 * The decoder may lack encoder_hidden_states, and one of texts may have encoder_input_ids behind
 * input_ids. The encoder of Whisper has no mask. An encoder of texts may give present_cross alone:
 * then the decoder makes the first step, too, without a past. The prompt is decoder_start_token_id,
 * or what Whisper's operand says. */
#include "graph/graph.h"
#include "graph/onnx/model.h"
#include "graph/onnx/search/search.h"

enum {
    DECODER_IDS = 10, /* operand */
    GIVEN = 2,        /* outputs of the encoder before the present values */
    PAST_RANK = 4,
    MOST_NAMES = 3
};

/* How many values `cross` has; as many as a past. */
static uint32_t
n_cross(const KilnOnnxSearch *search)
{
    return search->n_past;
}

/* The encoder decodes the prompt. */
static bool
encoder_decodes(const KilnOnnxSearch *search)
{
    return search->model == KILN_ONNX_SEARCH_SPEECH || search->encoder->inputs->len > 2;
}

/* --- what the graphs are --- */

static gboolean
check_encoder(const KilnOnnxSearch *search, GError **error)
{
    static const char *const texts[] = { "encoder_input_ids", "encoder_attention_mask",
                                         "decoder_input_ids" };
    static const char *const speech[] = { "encoder_input_ids", "decoder_input_ids" };
    const bool is_speech = search->model == KILN_ONNX_SEARCH_SPEECH;
    const guint inputs = search->encoder->inputs->len, outputs = search->encoder->outputs->len;
    if (inputs != 2 && (is_speech || inputs != 3))
        return kiln_onnx_throw(search->call, KILN_ERROR_INVALID, error,
                               "encoder: expected %s, found %u inputs",
                               is_speech ? "encoder_input_ids and decoder_input_ids"
                                         : "encoder_input_ids, encoder_attention_mask and perhaps "
                                           "decoder_input_ids",
                               inputs);
    if (!kiln_onnx_search_check_names(search, search->encoder, "encoder",
                                      is_speech ? speech : texts, inputs, error))
        return FALSE;
    const uint32_t expected =
        encoder_decodes(search) ? GIVEN + search->n_past + n_cross(search) : n_cross(search);
    if (outputs == expected)
        return TRUE;
    return kiln_onnx_throw(search->call, KILN_ERROR_INVALID, error,
                           "encoder: expected %s for %u layers, which are %u outputs, found %u",
                           encoder_decodes(search)
                               ? "logits, encoder_hidden_states and four present values"
                               : "two present values",
                           search->n_past / 2, expected, outputs);
}

/* The decoder of texts reads the tokens of the encoder. */
static bool
reads_source(const KilnOnnxSearch *search)
{
    const GPtrArray *inputs = search->decoder->inputs;
    if (search->model == KILN_ONNX_SEARCH_SPEECH || inputs->len < 2)
        return false;
    const Onnx__ValueInfoProto *second = g_ptr_array_index(inputs, 1);
    return g_strcmp0(second->name, "encoder_input_ids") == 0;
}

/* Finds how many values the decoder reads before the past. */
static gboolean
check_decoder(KilnOnnxSearch *search, GError **error)
{
    static const char *const texts[] = { "input_ids", "encoder_attention_mask",
                                         "encoder_hidden_states" };
    static const char *const all[] = { "input_ids", "encoder_input_ids", "encoder_attention_mask",
                                       "encoder_hidden_states" };
    static const char *const speech[] = { "input_ids", "encoder_hidden_states" };
    const bool is_speech = search->model == KILN_ONNX_SEARCH_SPEECH;
    const bool source = reads_source(search);
    const guint inputs = search->decoder->inputs->len, outputs = search->decoder->outputs->len;
    const guint least = is_speech ? 1 : source ? 3 : 2;
    const guint past = search->n_past + n_cross(search);
    if (outputs < 3 || outputs % 2 == 0)
        return kiln_onnx_throw(search->call, KILN_ERROR_INVALID, error,
                               "decoder: expected logits, and a present key and value for each "
                               "layer, found %u outputs",
                               outputs);
    if (inputs > least + 1 + past)
        return kiln_onnx_unsupported(
            search->call, error, "a decoder with %u inputs behind the past", inputs - least - past);
    if (inputs < least + past)
        return kiln_onnx_throw(search->call, KILN_ERROR_INVALID, error,
                               "decoder: expected %s, perhaps encoder_hidden_states, and four past "
                               "values for each of %u layers, found %u inputs",
                               is_speech ? "input_ids" : "input_ids, encoder_attention_mask",
                               search->n_past / 2, inputs);
    search->n_before = inputs - past - 1;
    if (search->n_before == least && !encoder_decodes(search))
        return kiln_onnx_throw(search->call, KILN_ERROR_INVALID, error,
                               "encoder: expected encoder_hidden_states, which the decoder reads, "
                               "as an output, found present values only");
    return kiln_onnx_search_check_names(search, search->decoder, "decoder",
                                        is_speech ? speech
                                        : source  ? all
                                                  : texts,
                                        1 + search->n_before, error);
}

/* The prompt is the start of each sample. */
static KilnValue *
start_of(const KilnOnnxSearch *search, const KilnOnnxSteps *s)
{
    const KilnOnnxExtent column[] = { KILN_ONNX_DIM(search->prompt, 0), KILN_ONNX_NUMBER(1) };
    if (search->start < 0) {
        kiln_onnx_throw(search->call, KILN_ERROR_INVALID, s->error,
                        "decoder_start_token_id: expected 0 or more, found %" G_GINT64_FORMAT,
                        search->start);
        return NULL;
    }
    KilnValue *start = kiln_onnx_scalar(s->call, "start", KILN_DTYPE_i32, (double)search->start);
    return kiln_onnx_step_expand(s, start, column, 2);
}

gboolean
kiln_onnx_pair_read(KilnOnnxSearch *search, GError **error)
{
    KilnOnnxCall *call = search->call;
    const KilnOnnxSteps s = { call, error };
    KilnValue *ids = kiln_onnx_operand(call, DECODER_IDS);
    if (!search->encoder)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected an attribute 'encoder' beside model_type=%" G_GINT64_FORMAT
                               ", found none",
                               search->model);
    const guint outputs = search->decoder->outputs->len;
    search->n_past = search->n_behind = outputs ? outputs - 1 : 0;
    if (!check_decoder(search, error) || !check_encoder(search, error))
        return FALSE;
    const KilnType type = kiln_onnx_search_input_type(search, search->decoder, 0);
    search->whole = !(type.rank == 2 && type.dims[1] == 1);
    if (search->model != KILN_ONNX_SEARCH_SPEECH || !ids)
        search->prompt = start_of(search, &s);
    else if (!kiln_onnx_require_rank(call, DECODER_IDS, 2, 2, error))
        return FALSE;
    else if (ids->type.dtype != KILN_DTYPE_i32)
        return kiln_onnx_throw(call, KILN_ERROR_TYPE, error, "operand %d: expected i32, found %s",
                               DECODER_IDS, kiln_dtype_name(ids->type.dtype));
    else
        search->prompt = ids;
    return search->prompt != NULL;
}

/* --- steps --- */

/* 0 for padding before the first other token of @ids, i32[batch, length], else 1. */
static KilnValue *
mask_of(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *ids)
{
    KilnValue *is_pad = kiln_onnx_step_equal_number(s, ids, (double)search->pad);
    KilnValue *counts = kiln_onnx_step_cast(s, kiln_onnx_step_opposite(s, is_pad), KILN_DTYPE_i32);
    counts = kiln_onnx_step_add(s, kiln_onnx_step_sums_before(s, counts, 1), counts);
    return kiln_onnx_step_cast(s, kiln_onnx_step_greater_number(s, counts, 0), KILN_DTYPE_i32);
}

/* Runs the decoder on @ids and the past of @state, and replaces it. */
static KilnValue *
decode(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *ids,
       KilnOnnxSearchState *state)
{
    const KilnOnnxGraph *graph = search->decoder;
    g_autofree KilnValue **inputs = g_new0(KilnValue *, graph->inputs->len + 1);
    g_autofree KilnValue **outputs = g_new0(KilnValue *, graph->outputs->len + 1);
    KilnValue **next = inputs;
    *next++ = ids;
    for (uint32_t i = 0; i < search->n_before; i++)
        *next++ = search->before[i];
    for (uint32_t i = 0; i < search->n_past; i++)
        *next++ = state->past[i];
    for (uint32_t i = 0; i < search->n_behind; i++)
        *next++ = search->behind[i];
    if (!kiln_onnx_search_run(search, s, graph, "decoder", inputs, outputs) ||
        !kiln_onnx_search_keep(search, s, outputs + 1, search->n_past, PAST_RANK, state->past))
        return NULL;
    return kiln_onnx_search_last_scores(search, s, outputs[0]);
}

/* Past @i of the decoder without a token. */
static KilnValue *
empty_past(const KilnOnnxSearch *search, const KilnOnnxSteps *s, uint32_t i, KilnValue *tokens)
{
    const uint32_t at = 1 + search->n_before + i;
    const KilnType type = kiln_onnx_search_input_type(search, search->decoder, at);
    if (type.rank != PAST_RANK || type.dims[1] < 1 || type.dims[3] < 1) {
        const Onnx__ValueInfoProto *info = g_ptr_array_index(search->decoder->inputs, at);
        g_autofree char *found = kiln_type_to_string(&type);
        kiln_onnx_throw(search->call, KILN_ERROR_SHAPE, s->error,
                        "decoder: expected [batch,heads,length,size] with numbers of heads and "
                        "their size as '%s', found %s",
                        info->name ? info->name : "", found);
        return NULL;
    }
    const KilnOnnxExtent extents[] = { KILN_ONNX_DIM(tokens, 0), KILN_ONNX_NUMBER(type.dims[1]),
                                       KILN_ONNX_NUMBER(0), KILN_ONNX_NUMBER(type.dims[3]) };
    KilnValue *zero = kiln_onnx_scalar(s->call, "nothing", type.dtype, 0);
    return tokens ? kiln_onnx_step_expand(s, zero, extents, PAST_RANK) : NULL;
}

/* Stores what all steps of the decoder read, with a row for each beam. */
static gboolean
keep_encoded(KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *mask, KilnValue *hidden,
             KilnValue *const *cross)
{
    KilnArena *arena = search->call->import->module->arena;
    KilnValue *all[] = { kiln_onnx_operand(search->call, 0), mask, hidden };
    const bool is_speech = search->model == KILN_ONNX_SEARCH_SPEECH;
    KilnValue *const *before = all + (reads_source(search) ? 0 : is_speech ? 2 : 1);
    search->before = kiln_arena_new0(arena, KilnValue *, search->n_before + 1);
    search->behind = kiln_arena_new0(arena, KilnValue *, search->n_behind + 1);
    for (uint32_t i = 0; i < search->n_before; i++) {
        if (!(search->before[i] = kiln_onnx_search_rows(search, s, before[i])))
            return FALSE;
    }
    for (uint32_t i = 0; i < search->n_behind; i++) {
        if (!(search->behind[i] = kiln_onnx_search_rows(search, s, cross[i])))
            return FALSE;
    }
    return TRUE;
}

KilnValue *
kiln_onnx_pair_begin(KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnOnnxSearchState *state)
{
    const bool decodes = encoder_decodes(search);
    const uint32_t n = search->n_past;
    KilnValue *source = kiln_onnx_operand(search->call, 0), *mask = NULL;
    if (search->model == KILN_ONNX_SEARCH_TEXTS)
        mask = search->attention_mask ? search->attention_mask : mask_of(search, s, source);
    if (search->model == KILN_ONNX_SEARCH_TEXTS && !mask)
        return NULL;
    KilnValue *inputs[MOST_NAMES] = { source, mask ? mask : search->prompt, search->prompt };
    g_autofree KilnValue **outputs = g_new0(KilnValue *, search->encoder->outputs->len + 1);
    state->tokens = kiln_onnx_search_rows(search, s, search->prompt);
    if (!kiln_onnx_search_run(search, s, search->encoder, "encoder", inputs, outputs) ||
        !keep_encoded(search, s, mask, decodes ? outputs[1] : NULL,
                      decodes ? outputs + GIVEN + n : outputs))
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        state->past[i] = decodes ? kiln_onnx_search_rows(search, s, outputs[GIVEN + i])
                                 : empty_past(search, s, i, state->tokens);
        if (!state->past[i])
            return NULL;
    }
    if (!decodes)
        return decode(search, s, state->tokens, state);
    if (!kiln_onnx_search_keep(search, s, state->past, n, PAST_RANK, state->past))
        return NULL;
    KilnValue *scores = kiln_onnx_search_last_scores(search, s, outputs[0]);
    return scores ? kiln_onnx_search_rows(search, s, scores) : NULL;
}

KilnValue *
kiln_onnx_pair_step(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                    const KilnOnnxSearchState *before, KilnOnnxSearchState *state)
{
    for (uint32_t i = 0; i < search->n_past; i++)
        state->past[i] = before->past[i];
    return decode(search, s,
                  search->whole ? before->tokens : kiln_onnx_search_last(s, before->tokens), state);
}
