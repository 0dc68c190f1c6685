/* SPDX-License-Identifier: Apache-2.0 */
/* BeamSearch of com.microsoft: of each sample, the sequences of tokens with the greatest sums of
 * logarithms of probabilities.
 *
 *     scores     = log_softmax of the decoder's, adjusted, plus the sum of the beam
 *     candidates = the 2 * beams greatest of all beams of a sample
 *     beams      = the first candidates that do not end
 *     ended      = beams of candidates that end, among the first `beams` of them: by the sum
 * divided by the length to the power of length_penalty; the best `beams` are kept
 *
 * A sample is done when it has `beams` ended sequences, and when no candidate can become better
 * than the worst of them or early_stopping is set. If it is not done at the end, its beams count as
 * ended ones. The scores of all steps are those of the candidates, and zeros where a sample is
 * done. */
#include "graph/graph.h"
#include "graph/node.h"
#include "graph/onnx/contrib/cache.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/flow/loops.h"
#include "graph/onnx/search/search.h"
#include "graph/onnx/steps.h"
#include "graph/op/softmax.h"

#include <float.h>
#include <math.h>

enum {
    NUM_BEAMS = 3, /* operands */
    NUM_RETURNED,
    LENGTH_PENALTY,
    PROCESSOR = 11, /* of Whisper alone, as those behind it */
    EXTRA_IDS = 13,
    TEMPERATURE,
    SCORES = 2, /* results */
    CROSS_QK,
    NO_SPEECH
};

typedef struct {
    KilnOnnxSearch search;
    KilnValue *power;  /* f32: of the length */
    KilnDType dtype;   /* of scores that are results */
    bool steps;        /* the scores of all steps are a result */
    int64_t no_speech; /* a word of Whisper; -1: none */
    int64_t early;
} Beams;

/* What a step of the search knows beside the decoder's state. */
typedef struct {
    KilnOnnxSearchState decoder;
    KilnValue *sums;       /* f32[batch, beams] */
    KilnValue *ended;      /* i32[batch, beams, length]: tokens, padded */
    KilnValue *ended_sums; /* f32[batch, beams], from great to small; -inf: there are not so many */
    KilnValue *done;       /* bool[batch, 1] */
    KilnValue *scores;     /* f32[batch, beams, words]: of this step; NULL: nobody reads them */
} State;

/* --- lists of beams --- */

static KilnValue *
concat3(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b, KilnValue *c)
{
    return kiln_onnx_step_concat(s, a, kiln_onnx_step_concat(s, b, c, 0), 0);
}

static KilnValue *
length_of(const KilnOnnxSteps *s, KilnValue *tokens)
{
    KilnValue *length = tokens ? kiln_onnx_step_extent(s, tokens, tokens->type.rank - 1) : NULL;
    return kiln_onnx_step_cast(s, length, KILN_DTYPE_f32);
}

/* @sums divided by a power of the length of @tokens; finite, for -inf means that there is none. */
static KilnValue *
by_length(const Beams *b, const KilnOnnxSteps *s, KilnValue *sums, KilnValue *tokens)
{
    KilnValue *length = length_of(s, tokens);
    if (b->power)
        length = kiln_onnx_step_pow(s, length, b->power);
    return kiln_onnx_step_at_least(s, kiln_onnx_step_div(s, sums, length), (double)-FLT_MAX);
}

/* Rows @at, [batch, n], of @x, which is [batch, m, length]. */
static KilnValue *
pick(const KilnOnnxSteps *s, KilnValue *x, KilnValue *at)
{
    const int64_t last = 2;
    if (!x || !at)
        return NULL;
    const KilnOnnxExtent extents[] = { KILN_ONNX_DIM(at, 0), KILN_ONNX_DIM(at, 1),
                                       KILN_ONNX_DIM(x, 2) };
    at = kiln_onnx_step_expand(s, kiln_onnx_step_unsqueeze(s, at, &last, 1), extents, 3);
    return kiln_onnx_step_gather_elements(s, x, at, 1);
}

/* @rows, [batch * beams, n], by samples: [batch, beams, n]. */
static KilnValue *
by_sample(const Beams *b, const KilnOnnxSteps *s, KilnValue *rows)
{
    KilnValue *shape = concat3(s, kiln_onnx_step_extents(s, b->search.prompt, 0), b->search.beams,
                               kiln_onnx_step_extents(s, rows, 1));
    return kiln_onnx_step_reshape_to(s, rows, shape);
}

/* Keeps the best of the ended sequences and of @tokens, whose sums, -inf if they do not count, are
 * @sums. All have one length. */
static void
keep_best(const Beams *b, const KilnOnnxSteps *s, KilnValue *tokens, KilnValue *sums, State *state)
{
    KilnValue *all = kiln_onnx_step_concat(s, state->ended_sums, sums, 1);
    KilnValue *best = kiln_onnx_step_greatest_of(s, all, b->search.beams);
    all = kiln_onnx_step_concat(s, state->ended, tokens, 1);
    state->ended = best ? pick(s, all, &best[1]) : NULL;
    state->ended_sums = best ? &best[0] : NULL;
}

/* --- a step --- */

typedef struct {
    KilnValue *sums;   /* f32[batch, 2 * beams], from great to small */
    KilnValue *tokens; /* i64[batch, 2 * beams] */
    KilnValue *beams;  /* i64[batch, 2 * beams] */
    KilnValue *ends;   /* bool[batch, 2 * beams] */
} Candidates;

/* @scores, [rows, words], by samples; zeros for those that are @done. */
static KilnValue *
scores_of_open(const Beams *b, const KilnOnnxSteps *s, KilnValue *scores, KilnValue *done)
{
    const int64_t last = 2;
    KilnValue *zero = kiln_onnx_scalar(s->call, "nothing", KILN_DTYPE_f32, 0);
    done = kiln_onnx_step_unsqueeze(s, done, &last, 1);
    return kiln_onnx_step_where(s, done, zero, by_sample(b, s, scores));
}

/* @scores, f32[rows, words], as [batch, beams * words]. */
static KilnValue *
of_samples(const Beams *b, const KilnOnnxSteps *s, KilnValue *scores, KilnValue *words)
{
    KilnValue *batch = kiln_onnx_step_extents(s, b->search.prompt, 0);
    KilnValue *all = kiln_onnx_step_mul(s, b->search.beams, words);
    return kiln_onnx_step_reshape_to(s, scores, kiln_onnx_step_concat(s, batch, all, 0));
}

/* Finds the candidates by @scores, f32[rows, words]. */
static gboolean
find_candidates(const Beams *b, const KilnOnnxSteps *s, KilnValue *scores, State *state,
                Candidates *out)
{
    const KilnOnnxExtent column[] = { KILN_ONNX_NUMBER(-1), KILN_ONNX_NUMBER(1) };
    KilnValue *words = kiln_onnx_step_extent(s, scores, 1);
    scores = kiln_onnx_step_add(s, scores, kiln_onnx_step_reshape(s, state->sums, column, 2));
    if (b->steps && !(state->scores = scores_of_open(b, s, scores, state->done)))
        return FALSE;
    scores = of_samples(b, s, scores, words);
    KilnValue *best =
        kiln_onnx_step_greatest_of(s, scores, kiln_onnx_step_mul_number(s, b->search.beams, 2));
    if (!best)
        return FALSE;
    out->sums = &best[0];
    out->beams = kiln_onnx_step_div(s, &best[1], words);
    out->tokens = kiln_onnx_step_mod(s, &best[1], words);
    out->ends = kiln_onnx_step_equal_number(s, out->tokens, (double)b->search.eos);
    return out->ends != NULL;
}

/* The ended sequences of the first candidates, unless the sample is done. */
static void
end_some(const Beams *b, const KilnOnnxSteps *s, const Candidates *c, State *state)
{
    KilnValue *first[] = { c->sums, c->beams, c->ends };
    for (int i = 0; i < 3; i++)
        first[i] = kiln_onnx_step_slice_to(s, first[i], 1, 0, b->search.beams);
    KilnValue *open = kiln_onnx_step_opposite(s, state->done);
    KilnValue *counts = kiln_onnx_step_both(s, first[2], open);
    KilnValue *none = kiln_onnx_scalar(s->call, "none", KILN_DTYPE_f32, -INFINITY);
    KilnValue *sums =
        kiln_onnx_step_where(s, counts, by_length(b, s, first[0], state->decoder.tokens), none);
    keep_best(b, s, pick(s, by_sample(b, s, state->decoder.tokens), first[1]), sums, state);
    if (!state->ended_sums)
        return;
    KilnValue *worst = kiln_onnx_step_slice(s, state->ended_sums, 1, -1, INT64_MAX, 1);
    KilnValue *enough = kiln_onnx_step_greater(s, worst, none);
    if (!b->early) {
        KilnValue *hope =
            by_length(b, s, kiln_onnx_step_slice(s, c->sums, 1, 0, 1, 1), state->decoder.tokens);
        enough = kiln_onnx_step_both(s, enough, kiln_onnx_step_greater_or_equal(s, worst, hope));
    }
    state->done = kiln_onnx_step_either(s, state->done, enough);
}

/* The next tokens of the first candidates that do not end. @was_done: before this step. */
static void
advance(const Beams *b, const KilnOnnxSteps *s, const Candidates *c, KilnValue *was_done,
        State *state)
{
    const int64_t first = 0, second = 1;
    const KilnOnnxExtent flat[] = { KILN_ONNX_NUMBER(-1) },
                         column[] = { KILN_ONNX_NUMBER(-1), KILN_ONNX_NUMBER(1) };
    KilnValue *all = kiln_onnx_step_extent(s, c->sums, 1);
    KilnValue *later = kiln_onnx_step_mul(s, kiln_onnx_step_cast(s, c->ends, KILN_DTYPE_i64), all);
    KilnValue *order = kiln_onnx_step_add(s, all ? kiln_onnx_count_to(s, all) : NULL, later);
    KilnValue *best =
        kiln_onnx_step_greatest_of(s, kiln_onnx_step_mul_number(s, order, -1), b->search.beams);
    if (!best)
        return;
    KilnValue *sums = kiln_onnx_step_gather_elements(s, c->sums, &best[1], 1);
    KilnValue *tokens = kiln_onnx_step_gather_elements(s, c->tokens, &best[1], 1);
    KilnValue *beams = kiln_onnx_step_gather_elements(s, c->beams, &best[1], 1);
    KilnValue *batch = kiln_onnx_step_extent(s, c->sums, 0);
    batch = batch ? kiln_onnx_step_unsqueeze(s, kiln_onnx_count_to(s, batch), &second, 1) : NULL;
    beams = kiln_onnx_step_add(s, beams, kiln_onnx_step_mul(s, batch, b->search.beams));
    beams = beams ? kiln_onnx_step_reshape(s, beams, flat, 1) : NULL;
    tokens = kiln_onnx_step_where(
        s, was_done, kiln_onnx_scalar(s->call, "pad", KILN_DTYPE_i64, (double)b->search.pad),
        tokens);
    tokens = kiln_onnx_step_cast(s, tokens ? kiln_onnx_step_reshape(s, tokens, column, 2) : NULL,
                                 KILN_DTYPE_i32);
    state->sums = kiln_onnx_step_where(
        s, was_done, kiln_onnx_scalar(s->call, "nothing", KILN_DTYPE_f32, 0), sums);
    state->decoder.tokens = kiln_onnx_step_concat(
        s, kiln_onnx_step_gather(s, state->decoder.tokens, beams, first), tokens, 1);
    for (uint32_t i = 0; i < b->search.n_past; i++) {
        const int dim = kiln_onnx_search_rows_dim(&b->search, i);
        if (dim >= 0)
            state->decoder.past[i] = kiln_onnx_step_gather(s, state->decoder.past[i], beams, dim);
    }
    if (!state->ended)
        return;
    const KilnOnnxExtent behind[] = { KILN_ONNX_DIM(state->ended, 0),
                                      KILN_ONNX_DIM(state->ended, 1), KILN_ONNX_NUMBER(1) };
    KilnValue *pad = kiln_onnx_scalar(s->call, "pad", KILN_DTYPE_i32, (double)b->search.pad);
    state->ended =
        kiln_onnx_step_concat(s, state->ended, kiln_onnx_step_expand(s, pad, behind, 3), 2);
}

/* From the scores of the decoder to the next tokens. @mask: of the first step. */
static gboolean
take_step(const Beams *b, const KilnOnnxSteps *s, KilnValue *scores, KilnValue *mask, State *state)
{
    const KilnAttrs_log_softmax softmax = { .axis = -1 };
    Candidates c;
    KilnValue *was_done = state->done;
    scores = kiln_onnx_step1(s, KILN_OP_log_softmax, &softmax, scores);
    scores =
        scores ? kiln_onnx_search_adjust(&b->search, s, scores, state->decoder.tokens, mask) : NULL;
    if (!scores || !find_candidates(b, s, scores, state, &c))
        return FALSE;
    end_some(b, s, &c, state);
    advance(b, s, &c, was_done, state);
    return TRUE;
}

/* --- the loop --- */

enum {
    TOKENS,
    SUMS,
    ENDED,
    ENDED_SUMS,
    DONE,
    PAST /* the first of them */
};

static void
carry(const Beams *b, const State *state, KilnValue **carried)
{
    carried[TOKENS] = state->decoder.tokens;
    carried[SUMS] = state->sums;
    carried[ENDED] = state->ended;
    carried[ENDED_SUMS] = state->ended_sums;
    carried[DONE] = state->done;
    for (uint32_t i = 0; i < b->search.n_past; i++)
        carried[PAST + i] = state->decoder.past[i];
}

static State
state_of(KilnValue **carried)
{
    return (State){ .decoder = { .tokens = carried[TOKENS], .past = carried + PAST },
                    .sums = carried[SUMS],
                    .ended = carried[ENDED],
                    .ended_sums = carried[ENDED_SUMS],
                    .done = carried[DONE] };
}

/* The body of the loop. */
static KilnValue *
search_on(const Beams *b, const KilnOnnxLoop *loop, KilnValue **next, GError **error)
{
    KilnOnnxCall call = loop->call;
    const KilnOnnxSteps s = { &call, error };
    State state = state_of(loop->inside);
    const KilnOnnxSearchState before = state.decoder;
    KilnValue *scores = kiln_onnx_search_step(&b->search, &s, &before, &state.decoder);
    if (!scores || !take_step(b, &s, scores, NULL, &state))
        return NULL;
    carry(b, &state, next);
    next[PAST + b->search.n_past] = state.scores; /* stacked */
    return kiln_onnx_search_goes_on(&s, state.done);
}

/* What there is before the first step, beside the state of the decoder. */
static void
begin_state(const Beams *b, const KilnOnnxSteps *s, State *state)
{
    KilnOnnxCall *call = s->call;
    const KilnOnnxExtent one[] = { KILN_ONNX_DIM(b->search.prompt, 0), KILN_ONNX_NUMBER(1) };
    KilnValue *batch = kiln_onnx_step_extents(s, b->search.prompt, 0);
    KilnValue *shape = kiln_onnx_step_concat(s, batch, b->search.beams, 0);
    KilnValue *length = kiln_onnx_step_extents(s, b->search.prompt, 1);
    KilnValue *count = kiln_onnx_count_to(s, kiln_onnx_step_reshape(s, b->search.beams, NULL, 0));
    KilnValue *is_first = kiln_onnx_step_equal_number(s, count, 0);
    KilnValue *sum =
        kiln_onnx_step_where(s, is_first, kiln_onnx_scalar(call, "first", KILN_DTYPE_f32, 0),
                             kiln_onnx_scalar(call, "other", KILN_DTYPE_f32, -1e9));
    state->sums = kiln_onnx_step_expand_to(s, sum, shape);
    state->ended_sums = kiln_onnx_step_expand_to(
        s, kiln_onnx_scalar(call, "none", KILN_DTYPE_f32, -INFINITY), shape);
    state->ended = kiln_onnx_step_expand_to(
        s, kiln_onnx_scalar(call, "pad", KILN_DTYPE_i32, (double)b->search.pad),
        kiln_onnx_step_concat(s, shape, length, 0));
    state->done =
        kiln_onnx_step_expand(s, kiln_onnx_scalar(call, "open", KILN_DTYPE_bool, 0), one, 2);
}

/* The scores of the first step, @first, and those of later ones, @stack, [steps, batch, beams,
 * words], with zeros up to the greatest length. */
static KilnValue *
all_scores(const Beams *b, const KilnOnnxSteps *s, KilnValue *first, KilnValue *stack)
{
    const int64_t front = 0;
    if (!first || !stack)
        return NULL;
    /* a stack without an iteration may lack beams */
    const KilnOnnxExtent extents[] = { KILN_ONNX_DIM(stack, 0), KILN_ONNX_DIM(first, 0),
                                       KILN_ONNX_DIM(first, 1), KILN_ONNX_DIM(first, 2) };
    stack = kiln_onnx_step_reshape(s, stack, extents, 4);
    KilnValue *all =
        kiln_onnx_step_concat(s, kiln_onnx_step_unsqueeze(s, first, &front, 1), stack, 0);
    KilnValue *most =
        kiln_onnx_step_sub(s, b->search.max_length, kiln_onnx_step_extent(s, b->search.prompt, 1));
    KilnValue *more = all ? kiln_onnx_step_sub(s, most, kiln_onnx_step_extent(s, all, 0)) : NULL;
    return kiln_onnx_step_longer(s, all, 0, more);
}

static gboolean
set_scores(const Beams *b, const KilnOnnxSteps *s, uint32_t i, KilnValue *scores)
{
    return kiln_onnx_set_result(s->call, i, kiln_onnx_step_cast(s, scores, b->dtype));
}

/* Beams of samples that are not done count as ended. */
static gboolean
set_results(const Beams *b, const KilnOnnxSteps *s, State *state)
{
    KilnOnnxCall *call = s->call;
    KilnValue *none = kiln_onnx_scalar(call, "none", KILN_DTYPE_f32, -INFINITY);
    KilnValue *sums = kiln_onnx_step_where(s, state->done, none,
                                           by_length(b, s, state->sums, state->decoder.tokens));
    KilnValue *tokens = by_sample(b, s, state->decoder.tokens);
    state->ended = kiln_onnx_search_padded(&b->search, s, state->ended);
    keep_best(b, s, kiln_onnx_search_padded(&b->search, s, tokens), sums, state);
    KilnValue *n = kiln_onnx_search_number(s, NUM_RETURNED, KILN_DTYPE_i64);
    KilnValue *which = n ? kiln_onnx_count_to(s, n) : NULL;
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_gather(s, state->ended, which, 1)) &&
           (call->n_results < 2 ||
            set_scores(b, s, 1, kiln_onnx_step_gather(s, state->ended_sums, which, 1))) &&
           (!b->steps || set_scores(b, s, SCORES, state->scores));
}

/* The steps behind the first one. */
static gboolean
loop_on(const Beams *b, const KilnOnnxSteps *s, State *state)
{
    const uint32_t n = PAST + b->search.n_past;
    g_autofree KilnValue **start = g_new0(KilnValue *, n);
    g_autofree KilnValue **next = g_new0(KilnValue *, n + 1);
    g_autofree KilnType *types = g_new0(KilnType, n);
    KilnValue *first = state->scores;
    carry(b, state, start);
    for (uint32_t i = 0; i < n; i++) {
        if (!start[i])
            return FALSE;
        types[i] =
            kiln_onnx_loop_type(start[i], i >= PAST ? kiln_onnx_search_growing(&b->search, i - PAST)
                                          : i == TOKENS ? 1
                                          : i == ENDED  ? 2
                                                        : -1);
    }
    KilnOnnxLoop loop = { .trips = kiln_onnx_search_trips(&b->search, s),
                          .condition = kiln_onnx_search_goes_on(s, state->done),
                          .start = start,
                          .types = types,
                          .n = n,
                          .n_stacked = b->steps };
    if (!loop.trips || !loop.condition || !kiln_onnx_loop_begin(&loop, s->call, s->error))
        return FALSE;
    KilnValue *again = search_on(b, &loop, next, s->error);
    KilnValue *results = again ? kiln_onnx_loop_end(&loop, again, next, s->error) : NULL;
    for (uint32_t i = 0; results && i < n; i++)
        next[i] = &results[i];
    if (!results)
        return FALSE;
    *state = state_of(next);
    state->decoder.past = NULL; /* nothing reads it any more */
    state->scores = b->steps ? all_scores(b, s, first, &results[n]) : NULL;
    return !b->steps || state->scores;
}

/* --- what the node says --- */

/* Fails where a run, or the model, wants timestamps without saying which words they are. Words have
 * 32 bits. */
static gboolean
check_timestamps(const Beams *b, GError **error)
{
    const KilnOnnxCall *call = b->search.call;
    const KilnValue *kind = b->search.timestamps.kind;
    const int64_t first = b->search.timestamps.first_timestamp;
    if (first > 0 && first <= INT32_MAX)
        return TRUE;
    if (first < 1 && (!kind->known || kind->extents))
        return kiln_onnx_unsupported(
            call, error,
            "logits_processor that a run decides without beginning_timestamp_token_id");
    return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "beginning_timestamp_token_id: expected 1 to 2147483647 where "
                           "logits_processor may be 1, found %" G_GINT64_FORMAT,
                           first);
}

/* Operands and results of Whisper. */
static gboolean
read_speech(Beams *b, const KilnOnnxSteps *s)
{
    KilnOnnxCall *call = s->call;
    KilnOnnxTimestamps *stamps = &b->search.timestamps;
    if (kiln_onnx_operand(call, EXTRA_IDS))
        return kiln_onnx_unsupported(call, s->error, "extra_decoding_ids");
    if (kiln_onnx_result_read(call, CROSS_QK))
        return kiln_onnx_unsupported(call, s->error, "cross_qk");
    if (!kiln_onnx_require_one(call, PROCESSOR, s->error) ||
        !kiln_onnx_require_one(call, TEMPERATURE, s->error))
        return FALSE;
    if (kiln_onnx_result_read(call, NO_SPEECH) && b->no_speech < 0)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, s->error,
                               "no_speech_token_id: expected 0 or more, found %" G_GINT64_FORMAT,
                               b->no_speech);
    b->search.temperature = kiln_onnx_search_number(s, TEMPERATURE, KILN_DTYPE_f32);
    stamps->kind = kiln_onnx_search_number(s, PROCESSOR, KILN_DTYPE_i64);
    if (stamps->kind && stamps->kind->known && !stamps->kind->extents &&
        stamps->kind->known->v[0] != 1)
        stamps->kind = NULL;
    return !stamps->kind || check_timestamps(b, s->error);
}

static gboolean
take_words(Beams *b, KilnOnnxCall *call, GError **error)
{
    KilnOnnxTimestamps *stamps = &b->search.timestamps;
    int64_t cross_qk = 0;
    if (!kiln_onnx_take_int(call, "translate_token_id", &stamps->translate, error) ||
        !kiln_onnx_take_int(call, "transcribe_token_id", &stamps->transcribe, error) ||
        !kiln_onnx_take_int(call, "start_of_lm_token_id", &stamps->start_of_lm, error) ||
        !kiln_onnx_take_int(call, "no_timestamps_token_id", &stamps->no_timestamps, error) ||
        !kiln_onnx_take_int(call, "beginning_timestamp_token_id", &stamps->first_timestamp,
                            error) ||
        !kiln_onnx_take_int(call, "no_speech_token_id", &b->no_speech, error) ||
        !kiln_onnx_take_int(call, "decoder_output_cross_qk", &cross_qk, error))
        return FALSE;
    if (cross_qk != 0)
        return kiln_onnx_unsupported(call, error, "decoder_output_cross_qk=%" G_GINT64_FORMAT,
                                     cross_qk);
    return TRUE;
}

static gboolean
read_beams(Beams *b, KilnOnnxCall *call, unsigned models, GError **error)
{
    static const KilnOnnxSearchOperands at = { 2, 6, 7, 8, 9 };
    const KilnOnnxSteps s = { call, error };
    const int64_t zero = 0;
    if (!kiln_onnx_take_flag(call, "early_stopping", &b->early, error) ||
        !kiln_onnx_search_read(&b->search, call, &at, models, error))
        return FALSE;
    for (uint32_t i = NUM_BEAMS; i <= LENGTH_PENALTY; i++) {
        if ((i < LENGTH_PENALTY && !kiln_onnx_need(call, i, error)) ||
            !kiln_onnx_require_one(call, i, error))
            return FALSE;
    }
    if (b->search.model == KILN_ONNX_SEARCH_SPEECH && !read_speech(b, &s))
        return FALSE;
    const KilnValue *power = kiln_onnx_operand(call, LENGTH_PENALTY);
    KilnValue *beams = kiln_onnx_search_number(&s, NUM_BEAMS, KILN_DTYPE_i64);
    b->search.beams = beams ? kiln_onnx_step_unsqueeze(&s, beams, &zero, 1) : NULL;
    b->power = kiln_onnx_search_number(&s, LENGTH_PENALTY, KILN_DTYPE_f32);
    b->dtype = power ? power->type.dtype : KILN_DTYPE_f32;
    b->steps = kiln_onnx_result_read(call, SCORES);
    return b->search.beams != NULL;
}

/* The probability of the word for no speech, by @scores of the first step, [rows, words]: [batch].
 */
static gboolean
set_no_speech(const Beams *b, const KilnOnnxSteps *s, KilnValue *scores)
{
    const KilnAttrs_softmax softmax = { .axis = -1 };
    KilnValue *p = kiln_onnx_step1(s, KILN_OP_softmax, &softmax, scores);
    KilnValue *word = kiln_onnx_scalar(s->call, "no_speech", KILN_DTYPE_i64, (double)b->no_speech);
    KilnValue *first = kiln_onnx_scalar(s->call, "first", KILN_DTYPE_i64, 0);
    KilnValue *batch = kiln_onnx_step_extents(s, b->search.prompt, 0);
    KilnValue *shape = kiln_onnx_step_concat(s, batch, b->search.beams, 0);
    p = kiln_onnx_step_gather(s, p, word, 1);
    p = kiln_onnx_step_gather(s, kiln_onnx_step_reshape_to(s, p, shape), first, 1);
    return set_scores(b, s, NO_SPEECH, p);
}

static gboolean
search_beams(Beams *b, KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    State state = { .sums = NULL };
    KilnValue *mask = b->search.prefix_mask;
    KilnValue *scores = kiln_onnx_search_begin(&b->search, &s, &state.decoder);
    if (!scores || (mask && !(mask = kiln_onnx_search_rows(&b->search, &s, mask))))
        return FALSE;
    if (b->search.model == KILN_ONNX_SEARCH_SPEECH && kiln_onnx_result_read(call, NO_SPEECH) &&
        !set_no_speech(b, &s, scores))
        return FALSE;
    begin_state(b, &s, &state);
    return state.sums && state.ended && state.ended_sums && state.done &&
           take_step(b, &s, scores, mask, &state) && loop_on(b, &s, &state) &&
           set_results(b, &s, &state);
}

static Beams
new_beams(int64_t model)
{
    return (Beams){ .search = { .model = model,
                                .timestamps = { .translate = -1,
                                                .transcribe = -1,
                                                .start_of_lm = -1,
                                                .no_timestamps = -1,
                                                .first_timestamp = -1 } },
                    .no_speech = -1 };
}

/* (prompt, greatest length, least length, numbers of beams and of results, powers of lengths, the
 * operands of GreedySearch from the penalty on; the first tokens and the kind of rules for words,
 * which only Whisper reads) */
gboolean
kiln_onnx_convert_beam_search(KilnOnnxCall *call, GError **error)
{
    Beams b = new_beams(KILN_ONNX_SEARCH_DECODER);
    return read_beams(&b, call, ~0U, error) && search_beams(&b, call, error);
}

/* The same, then (what cross_qk has, more of the first tokens, temperature) */
gboolean
kiln_onnx_convert_whisper_beam_search(KilnOnnxCall *call, GError **error)
{
    Beams b = new_beams(KILN_ONNX_SEARCH_SPEECH);
    return take_words(&b, call, error) &&
           read_beams(&b, call, 1U << KILN_ONNX_SEARCH_SPEECH, error) &&
           search_beams(&b, call, error);
}
