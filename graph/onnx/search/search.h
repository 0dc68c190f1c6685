/* SPDX-License-Identifier: Apache-2.0 */
/* What the searches of com.microsoft share. A search runs a decoder, which gives scores of words.
 * It picks words, puts them behind the tokens, and runs the decoder again on the last ones.
 *
 *     rows    sequences of tokens that are searched: a batch, or the beams of each sample in a row
 *     past    a value of the decoder for each layer: keys and values of the tokens before */
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

typedef struct KilnOnnxSearch KilnOnnxSearch;
struct KilnOnnxSearch {
    KilnOnnxCall *call;
    const KilnOnnxGraph *decoder, *first; /* `first` for the first step */
    int64_t eos, pad, words;              /* words: the scores that count; -1: all */
    int64_t ngram;                        /* 0: words may repeat */
    uint32_t layers;
    /* operands; NULL: left out */
    KilnValue *prompt;     /* i32[batch, length] */
    KilnValue *max_length; /* i64 */
    KilnValue *min_length; /* i64 */
    KilnValue *penalty;    /* f32 */
    KilnValue *vocab_mask, *prefix_mask, *attention_mask;
    /* of a search that has one row for each sample: the next words, i32[rows, 1] */
    KilnValue *(*pick)(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *scores);
};

/** What a search knows between two steps. */
typedef struct {
    KilnValue *tokens;    /* i32[rows, length]: the last ones were not decoded yet */
    KilnValue *positions; /* i32[rows, 1]: of the last ones */
    KilnValue *mask;      /* i32[rows, length - 1]: of those that were decoded */
    KilnValue **past;     /* one for each layer */
} KilnOnnxSearchState;

enum {
    KILN_ONNX_SEARCH_LENGTH = 3 /* the dim of a past that grows */
};

/** Reads the attributes and the operands of the call. */
gboolean kiln_onnx_search_read(KilnOnnxSearch *search, KilnOnnxCall *call,
                               const KilnOnnxSearchOperands *operands, GError **error);
/** Operand @i, a number, as a scalar of @dtype. NULL where it is left out, or where it failed. */
KilnValue *kiln_onnx_search_number(const KilnOnnxSteps *s, uint32_t i, KilnDType dtype);
/** @x, [batch, n], with @beams rows of each sample, an i64[1]; NULL: one. */
KilnValue *kiln_onnx_search_rows(const KilnOnnxSteps *s, KilnValue *x, KilnValue *beams);
/** Runs the decoder on the prompt, whose samples have @beams rows each (NULL: one). Fills @state
 * except for the tokens, which are those of the prompt. Returns the scores of the next words,
 * f32[rows, words]; NULL: it failed. */
KilnValue *kiln_onnx_search_begin(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                                  KilnValue *beams, KilnOnnxSearchState *state);
/** Runs the decoder on the last tokens of @before. @state has what is new except for tokens. */
KilnValue *kiln_onnx_search_step(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                                 const KilnOnnxSearchState *before, KilnOnnxSearchState *state);
/** The scores with what the operands and attributes ask for: words that must not come have the
 * least number. @rows_mask is of the first step: bool[rows, words], or NULL. */
KilnValue *kiln_onnx_search_adjust(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                                   KilnValue *scores, KilnValue *tokens, KilnValue *rows_mask);
/** Sets result 0: the tokens of a search that picks one word in each step. */
gboolean kiln_onnx_search_words(const KilnOnnxSearch *search, GError **error);
/** @tokens, [.., length], with the id of padding up to the greatest length. */
KilnValue *kiln_onnx_search_padded(const KilnOnnxSearch *search, const KilnOnnxSteps *s,
                                   KilnValue *tokens);
/** True where some element of the flags @done is false: bool. */
KilnValue *kiln_onnx_search_goes_on(const KilnOnnxSteps *s, KilnValue *done);
/** How many steps may follow the first one: i64. */
KilnValue *kiln_onnx_search_trips(const KilnOnnxSearch *search, const KilnOnnxSteps *s);

#endif
