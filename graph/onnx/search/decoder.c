/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a decoder alone, and what they share with those of a decoder with an encoder.
 *
 *     (input_ids, position_ids, attention_mask, past_0, …)  ->  (logits, present_0, …)
 *
 * A past of a layer is [2, rows, heads, length, size]. It has no rows in the first step. Positions
 * count the tokens that are no padding. What a step leaves to the next one:
 *
 *     positions  i32[rows, 1], of the last tokens
 *     mask       i32[rows, length - 1], of those that were decoded
 *     past       one for each layer */
#include "graph/graph.h"
#include "graph/module.h"
#include "graph/onnx/contrib/cache.h"
#include "graph/onnx/import.h"
#include "graph/onnx/model.h"
#include "graph/onnx/search/search.h"

enum {
    POSITIONS, /* of state->past */
    MASK,
    LAYERS,         /* the first of them */
    FIRST_PAST = 3, /* input of the decoder */
    PAST_RANK = 5,
    PAST_ROWS = 1, /* dims */
    PAST_LENGTH = 3
};

int
kiln_onnx_search_growing(const KilnOnnxSearch *search, uint32_t i)
{
    if (search->encoder)
        return 2;
    return i == POSITIONS ? -1 : i == MASK ? 1 : PAST_LENGTH;
}

/* All beams of a sample have the same positions and mask. */
int
kiln_onnx_search_rows_dim(const KilnOnnxSearch *search, uint32_t i)
{
    if (search->encoder)
        return 0;
    return i < LAYERS ? -1 : PAST_ROWS;
}

KilnValue *
kiln_onnx_search_rows(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *x)
{
    return search->row_of ? kiln_onnx_step_gather(s, x, search->row_of, 0) : x;
}

KilnValue *
kiln_onnx_search_last(const KilnOnnxSteps *s, KilnValue *x)
{
    const int64_t last = -1;
    return kiln_onnx_step_gather(s, x, kiln_onnx_ints(s->call, "last", &last, 1), 1);
}

KilnValue *
kiln_onnx_search_last_scores(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                             KilnValue *logits)
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

gboolean
kiln_onnx_search_run(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                     const KilnOnnxGraph *graph, const char *what, KilnValue **inputs,
                     KilnValue **outputs)
{
    KilnOnnxCall *call = search->call;
    for (guint i = 0; i < graph->inputs->len; i++) {
        if (!inputs[i])
            return FALSE;
    }
    if (kiln_onnx_import_into(call->import, call->scope, graph, s->call->function, inputs, outputs,
                              s->error))
        return TRUE;
    kiln_prefix_error(s->error, "%s: %s: ", call->label, what);
    return FALSE;
}

gboolean
kiln_onnx_search_keep(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                      KilnValue *const *outputs, uint32_t n, int rank, KilnValue **past)
{
    for (uint32_t i = 0; i < n; i++) {
        if (outputs[i]->type.rank != rank) {
            g_autofree char *found = kiln_type_to_string(&outputs[i]->type);
            return kiln_onnx_throw(search->call, KILN_ERROR_SHAPE, s->error,
                                   "decoder: expected a present value of rank %d, found %s", rank,
                                   found);
        }
        past[i] = outputs[i];
    }
    return TRUE;
}

/* Runs @graph on the tokens @ids, whose positions are @positions, and @state, of which it replaces
 * the layers' past. */
static KilnValue *
decode(const KilnOnnxSearch *search, const KilnOnnxSteps *s, const KilnOnnxGraph *graph,
       KilnValue *ids, KilnValue *positions, KilnOnnxSearchState *state)
{
    const uint32_t layers = search->n_past - LAYERS;
    g_autofree KilnValue **inputs = g_new0(KilnValue *, (gsize)layers + FIRST_PAST + 1);
    g_autofree KilnValue **outputs = g_new0(KilnValue *, (gsize)layers + 2);
    inputs[0] = ids;
    inputs[1] = positions;
    inputs[2] = state->past[MASK];
    for (uint32_t i = 0; i < layers; i++)
        inputs[FIRST_PAST + i] = state->past[LAYERS + i];
    if (!kiln_onnx_search_run(search, s, graph, "decoder", inputs, outputs) ||
        !kiln_onnx_search_keep(search, s, outputs + 1, layers, PAST_RANK, state->past + LAYERS))
        return NULL;
    return kiln_onnx_search_last_scores(search, s, outputs[0]);
}

/* The past before the first step, for input @i of the decoder. */
static KilnValue *
empty_past(const KilnOnnxSearch *search, const KilnOnnxSteps *s, uint32_t i, KilnValue *tokens)
{
    const KilnType type = kiln_onnx_search_input_type(search, search->decoder, i);
    if (type.rank != PAST_RANK || type.dims[0] != 2 || type.dims[2] < 1 || type.dims[4] < 1) {
        const Onnx__ValueInfoProto *info = g_ptr_array_index(search->decoder->inputs, i);
        g_autofree char *found = kiln_type_to_string(&type);
        kiln_onnx_throw(search->call, KILN_ERROR_SHAPE, s->error,
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

static KilnValue **
new_past(const KilnOnnxSearch *search)
{
    return kiln_arena_new0(search->call->import->module->arena, KilnValue *, search->n_past + 1);
}

static KilnValue *
begin_alone(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnOnnxSearchState *state)
{
    KilnValue *pad = kiln_onnx_scalar(s->call, "pad", KILN_DTYPE_i32, (double)search->pad);
    state->tokens = kiln_onnx_search_rows(search, s, search->prompt);
    KilnValue *is_pad = kiln_onnx_step_equal(s, state->tokens, pad);
    KilnValue *counts = kiln_onnx_step_cast(s, kiln_onnx_step_opposite(s, is_pad), KILN_DTYPE_i32);
    KilnValue *positions = kiln_onnx_step_sums_before(s, counts, 1);
    state->past[MASK] =
        search->attention_mask ? kiln_onnx_search_rows(search, s, search->attention_mask) : counts;
    state->past[POSITIONS] = kiln_onnx_step_sum(s, counts, 1, true);
    for (uint32_t i = LAYERS; i < search->n_past; i++) {
        state->past[i] = empty_past(search, s, FIRST_PAST + i - LAYERS, state->tokens);
        if (!state->past[i])
            return NULL;
    }
    return decode(search, s, search->first, state->tokens, kiln_onnx_step_mul(s, positions, counts),
                  state);
}

/* The sample of each row, where there are beams. */
static KilnValue *
sample_of_rows(const KilnOnnxSearch *search, const KilnOnnxSteps *s)
{
    KilnValue *beams = kiln_onnx_step_reshape(s, search->beams, NULL, 0);
    KilnValue *rows = kiln_onnx_step_mul(s, kiln_onnx_step_extent(s, search->prompt, 0), beams);
    return kiln_onnx_step_div(s, rows ? kiln_onnx_count_to(s, rows) : NULL, beams);
}

KilnValue *
kiln_onnx_search_begin(KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnOnnxSearchState *state)
{
    if (search->beams && !(search->row_of = sample_of_rows(search, s)))
        return NULL;
    state->past = new_past(search);
    return search->encoder ? kiln_onnx_pair_begin(search, s, state) : begin_alone(search, s, state);
}

KilnValue *
kiln_onnx_search_step(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                      const KilnOnnxSearchState *before, KilnOnnxSearchState *state)
{
    state->past = new_past(search);
    if (search->encoder)
        return kiln_onnx_pair_step(search, s, before, state);
    const KilnOnnxExtent column[] = { KILN_ONNX_DIM(before->tokens, 0), KILN_ONNX_NUMBER(1) };
    KilnValue *one = kiln_onnx_scalar(s->call, "one", KILN_DTYPE_i32, 1);
    for (uint32_t i = LAYERS; i < search->n_past; i++)
        state->past[i] = before->past[i];
    state->past[MASK] =
        kiln_onnx_step_concat(s, before->past[MASK], kiln_onnx_step_expand(s, one, column, 2), 1);
    state->past[POSITIONS] = kiln_onnx_step_add_number(s, before->past[POSITIONS], 1);
    return decode(search, s, search->decoder, kiln_onnx_search_last(s, before->tokens),
                  before->past[POSITIONS], state);
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
