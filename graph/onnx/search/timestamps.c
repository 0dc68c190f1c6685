/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of Whisper's timestamps, words from `first_timestamp` on. Among the tokens of a row,
 * the first timestamp begins the text.
 *
 *     everywhere     start_of_lm and no_timestamps do not come
 *     before a text  no timestamp comes that is far behind the first one
 *     in a text      translate, transcribe and the start do not come
 *     pairs          no third timestamp comes behind two; behind one comes another, or the end
 *     order          no timestamp comes before the last one; that one only closes a pair
 *     sum            only timestamps come where they are together more probable than each other
 *                    word
 *
 * What must not come gets the least number. The sum reads the scores that the other rules left. A
 * text has begun where a timestamp stands before the last token. */
#include "graph/graph.h"
#include "graph/onnx/contrib/cache.h"
#include "graph/onnx/search/search.h"

#include <float.h>

enum {
    LAST_FIRST = 50 /* of the timestamps that may begin a text, behind the first one */
};

/* What the tokens say: flags are bool[rows, 1]. */
typedef struct {
    KilnValue *any;       /* there is a timestamp */
    KilnValue *text;      /* there is one before the last token */
    KilnValue *last;      /* the last token is one */
    KilnValue *two;       /* the one before it is one, or there is no text */
    KilnValue *last_word; /* i32[rows, 1]: the last timestamp */
} Stamps;

/* @scores where not @never. */
static KilnValue *
without(const KilnOnnxSteps *s, KilnValue *scores, KilnValue *never)
{
    return kiln_onnx_search_masked(s, scores, kiln_onnx_step_opposite(s, never));
}

static void
read_stamps(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *tokens, Stamps *out)
{
    const int64_t axis = 0;
    const double first = (double)search->timestamps.first_timestamp;
    KilnValue *is = kiln_onnx_step_greater_or_equal_number(s, tokens, first);
    KilnValue *counts = kiln_onnx_step_cast(s, is, KILN_DTYPE_i64);
    KilnValue *count = kiln_onnx_step_sum(s, counts, 1, true);
    KilnValue *places = kiln_onnx_count_to(s, kiln_onnx_step_extent(s, tokens, 1));
    KilnValue *before = kiln_onnx_step_sub_number(s, kiln_onnx_step_extent(s, tokens, 1), 2);
    before = kiln_onnx_step_at_least(s, before, 0); /* one token: not read below */
    before = before ? kiln_onnx_step_unsqueeze(s, before, &axis, 1) : NULL;
    out->last = kiln_onnx_search_last(s, is);
    out->any = kiln_onnx_step_greater_number(s, count, 0);
    out->text = kiln_onnx_step_greater_number(
        s, kiln_onnx_step_sub(s, count, kiln_onnx_step_cast(s, out->last, KILN_DTYPE_i64)), 0);
    out->two = kiln_onnx_step_either(s, kiln_onnx_step_opposite(s, out->text),
                                     kiln_onnx_step_gather(s, is, before, 1));
    KilnValue *none = kiln_onnx_scalar(s->call, "nowhere", KILN_DTYPE_i64, -1);
    KilnValue *at = kiln_onnx_step_arg_max(s, kiln_onnx_step_where(s, is, places, none), 1);
    out->last_word = kiln_onnx_step_gather_elements(s, tokens, at, 1);
}

/* Where @words, i32[words], is one of @n numbers. */
static KilnValue *
is_one_of(const KilnOnnxSteps *s, KilnValue *words, const int64_t *numbers, int n)
{
    KilnValue *is = kiln_onnx_step_equal_number(s, words, (double)numbers[0]);
    for (int i = 1; i < n; i++)
        is =
            kiln_onnx_step_either(s, is, kiln_onnx_step_equal_number(s, words, (double)numbers[i]));
    return is;
}

/* The words that the first rules leave out: bool[rows, words]. */
static KilnValue *
never(const KilnOnnxSearch *search, const KilnOnnxSteps *s, const Stamps *stamps, KilnValue *words,
      KilnValue *is_stamp)
{
    const KilnOnnxTimestamps *t = &search->timestamps;
    const int64_t always[] = { t->no_timestamps, t->start_of_lm };
    const int64_t in_text[] = { search->start, t->translate, t->transcribe };
    KilnValue *open = kiln_onnx_step_opposite(s, stamps->text);
    KilnValue *single =
        kiln_onnx_step_both(s, stamps->last, kiln_onnx_step_opposite(s, stamps->two));
    KilnValue *third = kiln_onnx_step_both(s, stamps->last, stamps->two);
    KilnValue *far =
        kiln_onnx_step_greater_number(s, words, (double)(t->first_timestamp + LAST_FIRST));
    KilnValue *text = kiln_onnx_step_less_number(s, words, (double)search->eos);
    KilnValue *more = kiln_onnx_step_cast(s, kiln_onnx_step_opposite(s, single), KILN_DTYPE_i32);
    KilnValue *early =
        kiln_onnx_step_less(s, words, kiln_onnx_step_add(s, stamps->last_word, more));
    early = kiln_onnx_step_both(s, kiln_onnx_step_both(s, early, is_stamp), stamps->any);
    KilnValue *out = is_one_of(s, words, always, 2);
    out = kiln_onnx_step_either(
        s, out, kiln_onnx_step_both(s, is_one_of(s, words, in_text, 3), stamps->text));
    out = kiln_onnx_step_either(s, out, kiln_onnx_step_both(s, far, open));
    out = kiln_onnx_step_either(s, out, kiln_onnx_step_both(s, is_stamp, third));
    out = kiln_onnx_step_either(s, out, kiln_onnx_step_both(s, text, single));
    return kiln_onnx_step_either(s, out, early);
}

/* Rows in which timestamps together have a greater score than each other word. */
static KilnValue *
are_more_probable(const KilnOnnxSteps *s, KilnValue *scores, KilnValue *is_stamp)
{
    KilnValue *least = kiln_onnx_scalar(s->call, "least", KILN_DTYPE_f32, (double)-FLT_MAX);
    KilnValue *zero = kiln_onnx_scalar(s->call, "zero", KILN_DTYPE_f32, 0);
    KilnValue *stamps = kiln_onnx_search_masked(s, scores, is_stamp);
    KilnValue *most = kiln_onnx_step_most(s, stamps, 1);
    KilnValue *e = kiln_onnx_step_exp(s, kiln_onnx_step_sub(s, stamps, most));
    e = kiln_onnx_step_where(s, kiln_onnx_step_greater(s, stamps, least), e, zero);
    e = kiln_onnx_step_sum(s, e, 1, true);
    KilnValue *sum = kiln_onnx_step_add(s, kiln_onnx_step_log(s, e), most);
    sum = kiln_onnx_step_where(s, kiln_onnx_step_greater_number(s, e, 0), sum, least);
    return kiln_onnx_step_greater(s, sum, kiln_onnx_step_most(s, without(s, scores, is_stamp), 1));
}

KilnValue *
kiln_onnx_search_stamped(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *scores,
                         KilnValue *tokens)
{
    const KilnOnnxTimestamps *t = &search->timestamps;
    if (!t->kind || !scores)
        return scores;
    Stamps stamps = { 0 };
    KilnValue *words = kiln_onnx_step_cast(
        s, kiln_onnx_count_to(s, kiln_onnx_step_extent(s, scores, 1)), KILN_DTYPE_i32);
    KilnValue *is_stamp =
        kiln_onnx_step_greater_or_equal_number(s, words, (double)t->first_timestamp);
    read_stamps(search, s, tokens, &stamps);
    KilnValue *new = without(s, scores, never(search, s, &stamps, words, is_stamp));
    KilnValue *others = kiln_onnx_step_both(s, are_more_probable(s, new, is_stamp),
                                            kiln_onnx_step_opposite(s, is_stamp));
    return kiln_onnx_step_where(s, kiln_onnx_step_equal_number(s, t->kind, 1),
                                without(s, new, others), scores);
}
