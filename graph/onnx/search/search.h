/* SPDX-License-Identifier: Apache-2.0 */
/* What the searches of com.microsoft share. A search runs a decoder, which gives scores of words.
 * It picks words, puts them behind the tokens, and runs the decoder again on the last ones.
 *
 *     rows    sequences of tokens that are searched: a batch, or the beams of each sample in a row
 *     past    values that a step of the decoder leaves to the next one: keys and values of the
 *             tokens before, and what else grows with them */
#ifndef KILN_GRAPH_ONNX_SEARCH_SEARCH_H
#define KILN_GRAPH_ONNX_SEARCH_SEARCH_H

#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/model.h"
#include "graph/onnx/steps.h"

/** Which operand of the node is what. */
typedef struct {
    uint32_t min_length, penalty, vocab_mask, prefix_mask, attention_mask;
} KilnOnnxSearchOperands;

/** The attribute model_type. */
typedef enum {
    KILN_ONNX_SEARCH_DECODER, /* a decoder alone, as that of GPT-2 */
    KILN_ONNX_SEARCH_TEXTS,   /* an encoder of tokens and a decoder, as those of T5 */
    KILN_ONNX_SEARCH_SPEECH   /* an encoder of numbers and a decoder, as those of Whisper */
} KilnOnnxSearchModel;

/** Words with a meaning for Whisper; -1: there is none. */
typedef struct {
    int64_t translate, transcribe, start_of_lm, no_timestamps;
    int64_t first_timestamp; /* this word and all behind it */
    KilnValue *kind;         /* i64: timestamps obey their rules where it is 1; NULL: nowhere */
} KilnOnnxTimestamps;

typedef struct KilnOnnxSearch KilnOnnxSearch;
struct KilnOnnxSearch {
    KilnOnnxCall *call;
    int64_t model;                        /* KilnOnnxSearchModel */
    const KilnOnnxGraph *decoder, *first; /* `first` for the first step */
    const KilnOnnxGraph *encoder;         /* NULL: there is none */
    int64_t start, eos, pad;              /* words; models with an encoder have a start */
    int64_t words;                        /* the scores that count; -1: all */
    int64_t ngram;                        /* 0: words may repeat */
    uint32_t n_past;
    /* operands; NULL: left out */
    KilnValue *prompt;      /* i32[batch, length] */
    KilnValue *max_length;  /* i64 */
    KilnValue *min_length;  /* i64 */
    KilnValue *penalty;     /* f32 */
    KilnValue *temperature; /* f32 */
    KilnValue *vocab_mask, *prefix_mask, *attention_mask;
    KilnValue *beams;  /* i64[1]: rows of each sample; NULL: one */
    KilnValue *row_of; /* i64[rows]: the sample of each row; NULL: its number */
    KilnOnnxTimestamps timestamps;
    /* what a decoder with an encoder reads in all steps, before the past and behind it */
    KilnValue **before, **behind;
    uint32_t n_before, n_behind;
    bool whole; /* the decoder reads all tokens, not the last ones only */
    /* of a search that has one row for each sample: the next words, i32[rows, 1] */
    KilnValue *(*pick)(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *scores);
};

/** What a search knows between two steps. */
typedef struct {
    KilnValue *tokens; /* i32[rows, length]: the last ones were not decoded yet */
    KilnValue **past;  /* search->n_past of them */
} KilnOnnxSearchState;

/* --- read.c --- */

/** Reads the attributes and the operands of the call. @models: the kinds of models that the
 * operator has, a bit for each. */
gboolean kiln_onnx_search_read(KilnOnnxSearch *search, KilnOnnxCall *call,
                               const KilnOnnxSearchOperands *operands, unsigned models,
                               GError **error);
/** Operand @i, a number, as a scalar of @dtype. NULL where it is left out, or where it failed. */
KilnValue *kiln_onnx_search_number(const KilnOnnxSteps *s, uint32_t i, KilnDType dtype);
/** The @n inputs of @graph from the first one on must be called @names. @what names the graph in
 * the error. */
gboolean kiln_onnx_search_check_names(const KilnOnnxSearch *search, const KilnOnnxGraph *graph,
                                      const char *what, const char *const *names, uint32_t n,
                                      GError **error);
/** The type that @graph declares for input @i; of unknown rank where it has none. */
KilnType kiln_onnx_search_input_type(const KilnOnnxSearch *search, const KilnOnnxGraph *graph,
                                     uint32_t i);

/* --- decoder.c --- */

/** Runs the decoder on the prompt. Fills @state except for the tokens, which are those of the
 * prompt, with a row for each beam. Returns the scores of the next words, f32[rows, words]; NULL:
 * it failed. */
KilnValue *kiln_onnx_search_begin(KilnOnnxSearch *search, const KilnOnnxSteps *s,
                                  KilnOnnxSearchState *state);
/** Runs the decoder on the last tokens of @before. @state has what is new except for tokens. */
KilnValue *kiln_onnx_search_step(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                                 const KilnOnnxSearchState *before, KilnOnnxSearchState *state);
/** Dim of past @i that grows with the tokens, and the one that has the rows; -1: there is none. */
int kiln_onnx_search_growing(const KilnOnnxSearch *search, uint32_t i);
int kiln_onnx_search_rows_dim(const KilnOnnxSearch *search, uint32_t i);
/** @x, [batch, ..], with a row for each beam. */
KilnValue *kiln_onnx_search_rows(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                                 KilnValue *x);
/** Imports @graph, which messages call @what, with @inputs, none of which may be NULL. */
gboolean kiln_onnx_search_run(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                              const KilnOnnxGraph *graph, const char *what, KilnValue **inputs,
                              KilnValue **outputs);
/** The scores behind the last token of @logits, [rows, tokens, all words]: f32[rows, words]. */
KilnValue *kiln_onnx_search_last_scores(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                                        KilnValue *logits);
/** The present values @outputs of a decoder become the @n ones of @past. They have @rank dims. */
gboolean kiln_onnx_search_keep(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                               KilnValue *const *outputs, uint32_t n, int rank, KilnValue **past);
/** The last element of @x along dim 1, which stays. */
KilnValue *kiln_onnx_search_last(const KilnOnnxSteps *s, KilnValue *x);
/** @tokens, [.., length], with the id of padding up to the greatest length. */
KilnValue *kiln_onnx_search_padded(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                                   KilnValue *tokens);
/** True where some element of the flags @done is false: bool. */
KilnValue *kiln_onnx_search_goes_on(const KilnOnnxSteps *s, KilnValue *done);
/** How many steps may follow the first one: i64. */
KilnValue *kiln_onnx_search_trips(const KilnOnnxSearch *search, const KilnOnnxSteps *s);

/* --- pair.c --- */

/** Checks the encoder and the decoder, and reads the prompt. */
gboolean kiln_onnx_pair_read(KilnOnnxSearch *search, GError **error);
/** The same as kiln_onnx_search_begin() and kiln_onnx_search_step(), of a decoder with an encoder.
 */
KilnValue *kiln_onnx_pair_begin(KilnOnnxSearch *search, const KilnOnnxSteps *s,
                                KilnOnnxSearchState *state);
KilnValue *kiln_onnx_pair_step(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                               const KilnOnnxSearchState *before, KilnOnnxSearchState *state);

/* --- scores.c, timestamps.c, greedy.c --- */

/** The scores with what the operands and attributes ask for: words that must not come have the
 * least number. @rows_mask is of the first step: bool[rows, words], or NULL. */
KilnValue *kiln_onnx_search_adjust(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                                   KilnValue *scores, KilnValue *tokens, KilnValue *rows_mask);
/** @scores where @allowed is not 0, else the least number. */
KilnValue *kiln_onnx_search_masked(const KilnOnnxSteps *s, KilnValue *scores, KilnValue *allowed);
/** The scores with the rules of timestamps, if the search has them. */
KilnValue *kiln_onnx_search_stamped(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                                    KilnValue *scores, KilnValue *tokens);
/** Sets result 0: the tokens of a search that picks one word in each step. */
gboolean kiln_onnx_search_words(KilnOnnxSearch *search, GError **error);

#endif
