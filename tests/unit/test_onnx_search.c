/* SPDX-License-Identifier: Apache-2.0 */
/* Searches of com.microsoft: what is refused, and the types of what is not. Their results are
 * compared by tests/onnx/check_contrib.py. */
#include "graph/kiln-types.h"
#include "tests/unit/onnx_builder.h"

#include <string.h>

/* A decoder whose scores are the tokens, and whose present values have their tokens behind those of
 * the past. */
typedef struct {
    const char *past, *logits; /* dims */
    int layers, more;          /* inputs behind the past */
} Decoder;

static const Decoder plain = { "2,R,3,P,1", "R,N,5", 1, 0 };

static GByteArray *
graph_of_decoder(const Decoder *decoder)
{
    static const int64_t last = 2;
    GByteArray *graph = onnx_graph_new("decoder");
    onnx_input(graph, "input_ids", ONNX_I32, "R,N");
    onnx_input(graph, "position_ids", ONNX_I32, "R,N");
    onnx_input(graph, "attention_mask", ONNX_I32, "R,A");
    onnx_initializer(graph, onnx_tensor("axes", ONNX_I64, "1", &last, 8));
    onnx_node(graph, "Cast", "input_ids", "x", onnx_int("to", ONNX_F32), NULL);
    onnx_node(graph, "Unsqueeze", "x,axes", "x3", NULL);
    onnx_initializer(graph, onnx_tensor("times", ONNX_I64, "3", (int64_t[]){ 1, 1, 5 }, 24));
    onnx_node(graph, "Tile", "x3,times", "logits", NULL);
    onnx_output(graph, "logits", ONNX_F32, decoder->logits);
    onnx_initializer(graph, onnx_tensor("around", ONNX_I64, "3", (int64_t[]){ 0, 2, 4 }, 24));
    onnx_node(graph, "Unsqueeze", "x,around", "x5", NULL);
    onnx_initializer(graph, onnx_tensor("heads", ONNX_I64, "5", (int64_t[]){ 2, 1, 3, 1, 1 }, 40));
    onnx_node(graph, "Tile", "x5,heads", "more", NULL);
    for (int i = 0; i < decoder->layers; i++) {
        g_autofree char *past = g_strdup_printf("past_%d", i);
        g_autofree char *present = g_strdup_printf("present_%d", i);
        g_autofree char *both = g_strconcat(past, ",more", NULL);
        onnx_input(graph, past, ONNX_F32, decoder->past);
        onnx_node(graph, "Concat", both, present, onnx_int("axis", 3), NULL);
        onnx_output(graph, present, ONNX_F32, "2,R,3,A,1");
    }
    for (int i = 0; i < decoder->more; i++) {
        g_autofree char *name = g_strdup_printf("more_%d", i);
        onnx_input(graph, name, ONNX_I32, "1");
    }
    return graph;
}

/* An encoder and a decoder that behave alike: the scores are the tokens. What is left out is that
 * of one layer. */
typedef struct {
    bool speech, again, hidden;    /* as the names of the inputs say */
    bool apart;                    /* the encoder gives present_cross alone */
    int more_self, more_cross;     /* values beside two of the decoder, and of the encoder */
    int more;                      /* inputs behind the past */
    const char *ids, *past, *mask; /* dims of inputs, and the name of one */
    const char *encoded;           /* name */
} Pair;

static const Pair texts = { .speech = false }, speech = { .speech = true };

/* @out, f32[.., 3, .., 1] of the tokens @ids, and logits if @logits. */
static void
decode_tokens(GByteArray *graph, const char *ids, const char *out, bool logits)
{
    g_autofree char *x = g_strconcat(ids, "_x", NULL), *x3 = g_strconcat(ids, "_x3", NULL);
    g_autofree char *x4 = g_strconcat(ids, "_x4", NULL);
    g_autofree char *around = g_strconcat(x, ",around", NULL);
    g_autofree char *last = g_strconcat(x, ",last", NULL);
    g_autofree char *heads = g_strconcat(x4, ",heads", NULL);
    g_autofree char *times = g_strconcat(x3, ",times", NULL);
    onnx_node(graph, "Cast", ids, x, onnx_int("to", ONNX_F32), NULL);
    onnx_node(graph, "Unsqueeze", around, x4, NULL);
    onnx_node(graph, "Tile", heads, out, NULL);
    if (!logits)
        return;
    onnx_node(graph, "Unsqueeze", last, x3, NULL);
    onnx_node(graph, "Tile", times, "logits", NULL);
    onnx_output(graph, "logits", ONNX_F32, "R,N,5");
}

static void
add_numbers(GByteArray *graph)
{
    onnx_initializer(graph, onnx_tensor("last", ONNX_I64, "1", (int64_t[]){ 2 }, 8));
    onnx_initializer(graph, onnx_tensor("around", ONNX_I64, "2", (int64_t[]){ 1, 3 }, 16));
    onnx_initializer(graph, onnx_tensor("times", ONNX_I64, "3", (int64_t[]){ 1, 1, 5 }, 24));
    onnx_initializer(graph, onnx_tensor("heads", ONNX_I64, "4", (int64_t[]){ 1, 3, 1, 1 }, 32));
}

static GByteArray *
graph_of_encoder(const Pair *pair)
{
    GByteArray *graph = onnx_graph_new("encoder");
    const char *ids = pair->encoded ? pair->encoded : "encoder_input_ids";
    const int self = pair->apart ? 0 : 2 + pair->more_self;
    g_autofree char *both = g_strconcat(ids, ",encoder_attention_mask", NULL);
    add_numbers(graph);
    onnx_input(graph, ids, pair->speech ? ONNX_F32 : ONNX_I32, pair->speech ? "B,4,S" : "B,S");
    if (!pair->speech)
        onnx_input(graph, "encoder_attention_mask", ONNX_I32, "B,S");
    if (pair->speech) {
        onnx_initializer(graph, onnx_tensor("one", ONNX_I64, "", (int64_t[]){ 1 }, 8));
        onnx_node(graph, "Gather", "encoder_input_ids,one", "source", onnx_int("axis", 1), NULL);
    } else {
        onnx_node(graph, "Mul", both, "source", NULL);
    }
    if (!pair->apart) {
        onnx_input(graph, "decoder_input_ids", ONNX_I32, "B,N");
        decode_tokens(graph, "decoder_input_ids", "own", true);
        onnx_node(graph, "Unsqueeze", "source_x,last", "encoder_hidden_states", NULL);
        onnx_output(graph, "encoder_hidden_states", ONNX_F32, "B,S,1");
    }
    decode_tokens(graph, "source", "other", false);
    for (int i = 0; i < self + 2 + pair->more_cross; i++) {
        g_autofree char *name = g_strdup_printf("present_%d", i);
        onnx_node(graph, "Identity", i < self ? "own" : "other", name, NULL);
        onnx_output(graph, name, ONNX_F32, "B,3,S,1");
    }
    return graph;
}

static GByteArray *
graph_of_pair(const Pair *pair)
{
    GByteArray *graph = onnx_graph_new("decoder");
    add_numbers(graph);
    onnx_input(graph, "input_ids", ONNX_I32, pair->ids ? pair->ids : "R,1");
    if (pair->again)
        onnx_input(graph, "encoder_input_ids", ONNX_I32, "R,S");
    if (!pair->speech)
        onnx_input(graph, pair->mask ? pair->mask : "encoder_attention_mask", ONNX_I32, "R,S");
    if (pair->hidden)
        onnx_input(graph, "encoder_hidden_states", ONNX_F32, "R,S,1");
    decode_tokens(graph, "input_ids", "own", true);
    for (int i = 0; i < 2 + pair->more_self; i++) {
        g_autofree char *past = g_strdup_printf("past_%d", i);
        g_autofree char *present = g_strdup_printf("present_%d", i);
        g_autofree char *both = g_strconcat(past, ",own", NULL);
        onnx_input(graph, past, ONNX_F32, pair->past ? pair->past : "R,3,P,1");
        onnx_node(graph, "Concat", both, present, onnx_int("axis", 2), NULL);
        onnx_output(graph, present, ONNX_F32, "R,3,A,1");
    }
    for (int i = 0; i < 2 + pair->more; i++) {
        g_autofree char *name = g_strdup_printf("cross_%d", i);
        onnx_input(graph, name, ONNX_F32, "R,3,S,1");
    }
    return graph;
}

/* A node @op of @inputs, with a @decoder; NULL: it has none. @attr may be NULL. */
static GByteArray *
graph_of(const char *op, const char *inputs, const char *outputs, const Decoder *decoder,
         GByteArray *attr)
{
    GByteArray *graph = onnx_graph_new("g");
    g_autofree char *name = g_strconcat("com.microsoft:", op, NULL);
    onnx_input(graph, "x", ONNX_I32, "B,S");
    onnx_input(graph, "e", ONNX_I32, "B,0");
    onnx_input(graph, "s", ONNX_I32, "2,3");
    onnx_input(graph, "w", ONNX_I64, "B,S");
    onnx_input(graph, "n", ONNX_I32, "1");
    onnx_input(graph, "m", ONNX_I32, "2");
    onnx_input(graph, "f", ONNX_F32, "1");
    onnx_input(graph, "v", ONNX_I32, "5");
    onnx_initializer(graph, onnx_tensor("three", ONNX_I32, "1", &(int32_t){ 3 }, 4));
    onnx_output(graph, "y", ONNX_I32, NULL);
    if (strstr(outputs, ",u"))
        onnx_output(graph, "u", ONNX_F32, NULL);
    onnx_node(graph, name, inputs, outputs, onnx_int("eos_token_id", 1),
              onnx_int("pad_token_id", 0),
              decoder ? onnx_graph("decoder", graph_of_decoder(decoder)) : onnx_int("decoder", 1),
              attr, NULL);
    return graph;
}

static GByteArray *
greedy(const char *inputs, const Decoder *decoder, GByteArray *attr)
{
    return graph_of("GreedySearch", inputs, "y", decoder, attr);
}

static GByteArray *
beams(const char *inputs, const char *outputs, GByteArray *attr)
{
    return graph_of("BeamSearch", inputs, outputs, &plain, attr);
}

/* A beam search with @pair. */
static GByteArray *
pair_of(const char *op, const char *inputs, const char *outputs, const Pair *pair, GByteArray *attr)
{
    GByteArray *graph = onnx_graph_new("g");
    g_autofree char *name = g_strconcat("com.microsoft:", op, NULL);
    onnx_input(graph, "x", ONNX_I32, "B,S");
    onnx_input(graph, "e", ONNX_I32, "B,0");
    onnx_input(graph, "w", ONNX_I64, "B,S");
    onnx_input(graph, "sound", ONNX_F32, "B,4,S");
    onnx_input(graph, "silence", ONNX_F32, "0,4,S");
    onnx_input(graph, "nobody", ONNX_I32, "0,1");
    onnx_input(graph, "n", ONNX_I32, "1");
    onnx_input(graph, "m", ONNX_I32, "2");
    onnx_input(graph, "f", ONNX_F32, "1");
    onnx_initializer(graph, onnx_tensor("one", ONNX_I32, "1", &(int32_t){ 1 }, 4));
    onnx_initializer(graph, onnx_tensor("two", ONNX_I32, "1", &(int32_t){ 2 }, 4));
    g_auto(GStrv) results = g_strsplit(outputs, ",", -1);
    for (int i = 0; results[i]; i++) {
        if (*results[i])
            onnx_output(graph, results[i], i ? ONNX_F32 : ONNX_I32, NULL);
    }
    onnx_node(graph, name, inputs, outputs, onnx_int("eos_token_id", 1),
              onnx_int("pad_token_id", 0), onnx_int("model_type", pair->speech ? 2 : 1),
              onnx_graph("encoder", graph_of_encoder(pair)),
              onnx_graph("decoder", graph_of_pair(pair)), attr, NULL);
    return graph;
}

static GByteArray *
texts_of(const char *inputs, const Pair *pair)
{
    return pair_of("BeamSearch", inputs, "y", pair, onnx_int("decoder_start_token_id", 2));
}

static GByteArray *
speech_of(const char *inputs, const char *outputs, GByteArray *attr)
{
    return pair_of("WhisperBeamSearch", inputs, outputs, &speech, attr);
}

/* The text of @graph has @expected, and no operator that is not known. */
static void
returns(GByteArray *graph, const char *expected)
{
    g_autofree char *found = onnx_imported(onnx_model(graph, 8, 17));
    cr_expect(strstr(found, expected), "expected %s in\n%s", expected, found);
    cr_expect(!strstr(found, "unknown("), "%s", found);
}

static void
refused(GByteArray *graph, const char *reason)
{
    g_autofree char *found = onnx_imported(onnx_model(graph, 8, 17));
    cr_expect(strstr(found, "unknown(") && strstr(found, reason), "expected '%s', found\n%s",
              reason, found);
}

static void
wrong(GByteArray *graph, KilnError code, const char *message)
{
    onnx_expect_error(graph, 17, code, message);
}

Test(onnx_search, greedy)
{
    returns(greedy("x,n", &plain, NULL), " = loop(");
    returns(greedy("x,n,n,f,v", &plain, onnx_int("no_repeat_ngram_size", 2)), " = loop(");
    returns(greedy("x,n,,,,,x", &plain, onnx_int("vocab_size", 4)), " = loop(");
    returns(greedy("x,n", &plain, onnx_graph("init_decoder", graph_of_decoder(&plain))),
            " = loop(");
}

Test(onnx_search, beams)
{
    returns(beams("x,n,,n,n", "y", NULL), " = top_k(");
    returns(beams("x,n,n,n,n,f,f,v", "y,z", onnx_int("early_stopping", 1)), " = top_k(");
    returns(beams("x,n,,n,n", "y,z,u", NULL), " = pad(");
    returns(beams("x,n,,n,n,,,,,,x,n", "y", NULL), " = loop(");
}

Test(onnx_search, samples)
{
    returns(graph_of("Sampling", "s,n", "y", &plain, NULL), "random_uniform(");
    returns(graph_of("Sampling", "s,n,n,f,v,,,s,n", "y", &plain, onnx_int("custom", 1)),
            "random_uniform(");
    refused(graph_of("Sampling", "x,n", "y", &plain, NULL), "random numbers for an unknown shape");
    wrong(graph_of("Sampling", "s,n", "y", &plain, onnx_int("custom", 2)), KILN_ERROR_INVALID,
          "custom: expected 0 or 1, found 2");
    wrong(graph_of("Sampling", "s,n,,,,,,v", "y", &plain, NULL), KILN_ERROR_SHAPE,
          "operand 7: expected rank 2");
}

Test(onnx_search, attributes_that_are_wrong)
{
    const KilnError invalid = KILN_ERROR_INVALID;
    wrong(greedy("x,n", NULL, NULL), invalid, "attribute 'decoder' is no graph");
    wrong(greedy("x,n", &plain, onnx_int("init_decoder", 1)), invalid,
          "attribute 'init_decoder' is no graph");
    wrong(greedy("x,n", &plain, onnx_int("vocab_size", 6)), invalid,
          "vocab_size: expected 1 to the number of logits, found 6");
    wrong(beams("x,n,,n,n", "y", onnx_int("early_stopping", 2)), invalid,
          "early_stopping: expected 0 or 1, found 2");
    refused(greedy("x,n", &plain, onnx_int("model_type", 1)), "model_type=1");
    refused(greedy("x,n", &plain, onnx_int("no_repeat_ngram_size", 65)), "no_repeat_ngram_size=65");
}

Test(onnx_search, operands_that_are_wrong)
{
    wrong(greedy("w,n", &plain, NULL), KILN_ERROR_TYPE, "operand 0: expected i32, found i64");
    wrong(greedy("n,n", &plain, NULL), KILN_ERROR_SHAPE,
          "operand 0: expected rank 2, found i32[1]");
    wrong(greedy("e,n", &plain, NULL), KILN_ERROR_SHAPE,
          "operand 0: expected one token or more, found none");
    wrong(greedy("s,three", &plain, NULL), KILN_ERROR_INVALID,
          "max_length: expected more than the 3 tokens of the prompt, found 3");
    wrong(greedy("x,m", &plain, NULL), KILN_ERROR_SHAPE, "operand 1: expected [1], found i32[2]");
    wrong(greedy("x,n,,,x", &plain, NULL), KILN_ERROR_SHAPE, "operand 4: expected rank 1");
    wrong(beams("x,n,,m,n", "y", NULL), KILN_ERROR_SHAPE, "operand 3: expected [1], found i32[2]");
}

Test(onnx_search, decoders_that_are_wrong)
{
    static const Decoder no_past = { "2,R,3,P,1", "R,N,5", 0, 0 };
    static const Decoder shared = { "2,R,3,P,1", "R,N,5", 1, 1 };
    static const Decoder flat = { "2,R,3,P", "R,N,5", 1, 0 };
    static const Decoder open = { "2,R,H,P,1", "R,N,5", 1, 0 };
    static const Decoder two = { "2,R,3,P,1", "R,N,5", 2, 0 };
    wrong(greedy("x,n", &no_past, NULL), KILN_ERROR_INVALID, "found 3 inputs and 1 outputs");
    wrong(greedy("x,n", &flat, NULL), KILN_ERROR_SHAPE,
          "decoder: expected [2,batch,heads,length,size]");
    wrong(greedy("x,n", &open, NULL), KILN_ERROR_SHAPE, "as 'past_0', found f32[2,R,H,P,1]");
    wrong(greedy("x,n", &plain, onnx_graph("init_decoder", graph_of_decoder(&two))),
          KILN_ERROR_INVALID, "init_decoder: expected 1 present values, found 2");
    refused(greedy("x,n", &shared, NULL), "a decoder with 1 inputs behind the past");
    returns(greedy("x,n", &two, NULL), " = loop(");
}

Test(onnx_search, pairs)
{
    static const Pair hidden = { .hidden = true }, apart = { .apart = true };
    static const Pair of_speech = { .speech = true, .hidden = true };
    static const Pair whole = { .ids = "R,N" }, again = { .again = true };
    static const Pair two = { .more_self = 2, .more_cross = 2, .more = 2 };
    returns(texts_of("x,n,,n,n", &texts), " = loop(");
    returns(texts_of("x,n,n,n,n,f,f,,,x", &hidden), " = loop(");
    returns(texts_of("x,n,,n,n", &apart), " = loop(");
    returns(texts_of("x,n,,n,n", &whole), " = loop(");
    returns(texts_of("x,n,,n,n", &again), " = loop(");
    returns(texts_of("x,n,,n,n", &two), " = loop(");
    returns(texts_of("sound,n,,n,n", &of_speech), " = loop(");
    returns(pair_of("BeamSearch", "sound,n,,n,n,,,,,,x", "y,z,u", &speech, NULL), " = pad(");
}

Test(onnx_search, speech)
{
    returns(speech_of("sound,n,,n,n,,,,,,x", "y", NULL), " = loop(");
    returns(speech_of("sound,n,,n,n,,,,,,x,two,,,f", "y", NULL), " = loop(");
    returns(speech_of("sound,n,,n,n,,,,,,x,n", "y", onnx_int("beginning_timestamp_token_id", 3)),
            " = arg_max(");
    returns(speech_of("sound,n,,n,n,,,,,,x,n", "y",
                      onnx_int("beginning_timestamp_token_id", INT32_MAX)),
            " = arg_max(");
    returns(speech_of("sound,n,,n,n,,,,,,x", "y,,,,p", onnx_int("no_speech_token_id", 3)),
            " = softmax(");
    returns(speech_of("silence,n,,n,n,,,,,,nobody", "y,,,,p", onnx_int("no_speech_token_id", 3)),
            " = softmax(");
    refused(speech_of("sound,n,,n,n,,,,,,x", "y,,,q", NULL), "cross_qk");
    refused(speech_of("sound,n,,n,n,,,,,,x", "y", onnx_int("decoder_output_cross_qk", 1)),
            "decoder_output_cross_qk=1");
    refused(speech_of("sound,n,,n,n,,,,,,x,,,x", "y", NULL), "extra_decoding_ids");
    refused(speech_of("sound,n,,n,n,,,,,,x,n", "y", NULL),
            "logits_processor that a run decides without beginning_timestamp_token_id");
    refused(pair_of("WhisperBeamSearch", "x,n,,n,n", "y", &texts, NULL), "model_type=1");
}

Test(onnx_search, speech_that_is_wrong)
{
    wrong(speech_of("sound,n,,n,n,,,,,,x,one", "y", NULL), KILN_ERROR_INVALID,
          "beginning_timestamp_token_id: expected 1 to 2147483647 where logits_processor may be 1, "
          "found -1");
    wrong(speech_of("sound,n,,n,n,,,,,,x,one", "y",
                    onnx_int("beginning_timestamp_token_id", INT64_MAX)),
          KILN_ERROR_INVALID, "may be 1, found 9223372036854775807");
    wrong(speech_of("sound,n,,n,n,,,,,,x,n", "y",
                    onnx_int("beginning_timestamp_token_id", INT64_C(1) << 31)),
          KILN_ERROR_INVALID, "may be 1, found 2147483648");
    wrong(speech_of("sound,n,,n,n", "y", NULL), KILN_ERROR_INVALID,
          "decoder_start_token_id: expected 0 or more, found -1");
    wrong(speech_of("sound,n,,n,n,,,,,,x", "y,,,,p", NULL), KILN_ERROR_INVALID,
          "no_speech_token_id: expected 0 or more, found -1");
    wrong(speech_of("x,n,,n,n,,,,,,x", "y", NULL), KILN_ERROR_SHAPE,
          "operand 0: expected rank 3, found i32[B,S]");
    wrong(speech_of("sound,n,,n,n,,,,,,w", "y", NULL), KILN_ERROR_TYPE,
          "operand 10: expected i32, found i64");
    wrong(speech_of("sound,n,,n,n,,,,,,n", "y", NULL), KILN_ERROR_SHAPE,
          "operand 10: expected rank 2, found i32[1]");
    wrong(speech_of("sound,n,,n,n,,,,,,e", "y", NULL), KILN_ERROR_SHAPE,
          "operand 10: expected one token or more, found none");
    wrong(speech_of("sound,n,,n,n,,,,,,x,m", "y", NULL), KILN_ERROR_SHAPE,
          "operand 11: expected [1], found i32[2]");
}

Test(onnx_search, pairs_that_are_wrong)
{
    static const Pair less = { .more_cross = -1 }, none = { .more_self = -1 };
    static const Pair shared = { .more = 2 }, few = { .more = -1 };
    static const Pair names = { .mask = "mask" }, encoded = { .encoded = "ids" };
    static const Pair flat = { .apart = true, .past = "R,P,1" };
    static const Pair open = { .apart = true, .past = "R,H,P,1" };
    static const Pair blind = { .apart = true, .hidden = true };
    const char *const x = "x,n,,n,n";
    wrong(texts_of(x, &less), KILN_ERROR_INVALID,
          "encoder: expected logits, encoder_hidden_states and four present values for 1 layers, "
          "which are 6 outputs, found 5");
    wrong(texts_of(x, &none), KILN_ERROR_INVALID, "for each layer, found 2 outputs");
    wrong(texts_of(x, &few), KILN_ERROR_INVALID,
          "four past values for each of 1 layers, found 5 inputs");
    refused(texts_of(x, &shared), "a decoder with 2 inputs behind the past");
    wrong(texts_of(x, &names), KILN_ERROR_INVALID,
          "decoder: expected 'encoder_attention_mask' as input 1, found 'mask'");
    wrong(texts_of(x, &encoded), KILN_ERROR_INVALID,
          "encoder: expected 'encoder_input_ids' as input 0, found 'ids'");
    wrong(texts_of(x, &flat), KILN_ERROR_SHAPE, "decoder: expected [batch,heads,length,size]");
    wrong(texts_of(x, &open), KILN_ERROR_SHAPE, "as 'past_0', found f32[R,H,P,1]");
    wrong(texts_of(x, &blind), KILN_ERROR_INVALID,
          "encoder: expected encoder_hidden_states, which the decoder reads, as an output");
    wrong(pair_of("BeamSearch", x, "y", &texts, NULL), KILN_ERROR_INVALID,
          "decoder_start_token_id: expected 0 or more, found -1");
    wrong(graph_of("BeamSearch", x, "y", &plain, onnx_int("model_type", 1)), KILN_ERROR_INVALID,
          "expected an attribute 'encoder' beside model_type=1, found none");
    refused(graph_of("BeamSearch", x, "y", &plain, onnx_int("model_type", 3)), "model_type=3");
}
