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
    refused(beams("x,n,,n,n,,,,,,x", "y", NULL), "decoder_input_ids of a decoder alone");
    refused(beams("x,n,,n,n,,,,,,,n", "y", NULL), "logits_processor of a decoder alone");
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
