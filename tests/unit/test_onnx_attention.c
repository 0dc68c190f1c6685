/* SPDX-License-Identifier: Apache-2.0 */
/* Imports of operators that others express: attention, its embedding of positions, gates and
 * normalizations. What they become, and what is refused. */
#include "graph/kiln-types.h"
#include "tests/unit/onnx_builder.h"

#include <string.h>

enum {
    OPSET = 28
};

/* A node of inputs of f32 with these dims, between semicolons; a name in front of `:`. */
static GByteArray *
graph_of(const char *op, const char *inputs, const char *results, GByteArray *a, GByteArray *b)
{
    GByteArray *graph = onnx_graph_new("g");
    g_auto(GStrv) words = g_strsplit(inputs, ";", -1);
    g_autoptr(GString) names = g_string_new(NULL);
    for (int i = 0; words[i]; i++) {
        const char *dims = strchr(words[i], ':');
        g_autofree char *name =
            dims ? g_strndup(words[i], (size_t)(dims - words[i])) : g_strdup("");
        g_string_append_printf(names, "%s%s", i ? "," : "", name);
        if (dims)
            onnx_input(graph, name, ONNX_F32, dims + 1);
    }
    if (a)
        onnx_node(graph, op, names->str, results, a, b, NULL);
    else
        onnx_node(graph, op, names->str, results, NULL);
    g_auto(GStrv) outs = g_strsplit(results, ",", -1);
    for (char **out = outs; *out; out++)
        onnx_output(graph, *out, ONNX_F32, NULL);
    return graph;
}

static void
refused(const char *op, const char *inputs, GByteArray *a, GByteArray *b, KilnError code,
        const char *expected)
{
    onnx_expect_error(graph_of(op, inputs, "z", a, b), OPSET, code, expected);
}

/* --- attention --- */

Test(onnx_attention, is_products_and_a_softmax)
{
    GByteArray *graph =
        graph_of("Attention", "q:B,2,S,4;k:B,2,T,4;v:B,2,T,5", "z", onnx_float("scale", 1), NULL);
    onnx_expect(graph, 23,
                "graph @g(%q: f32[B,2,S,4], %k: f32[B,2,T,4], %v: f32[B,2,T,5]) {\n"
                "  %z.transpose = transpose(%k) {perm=[0,1,3,2]} : f32[B,2,4,T]\n"
                "  %z.matmul = matmul(%q, %z.transpose) : f32[B,2,S,T]\n"
                "  %z.softmax = softmax(%z.matmul) : f32[B,2,S,T]\n"
                "  %z = matmul(%z.softmax, %v) : f32[B,2,S,5]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_attention, wrong_operands)
{
    static const char flat[] = "q:2,3,8;k:2,5,4;v:2,5,6", deep[] = "q:2,4,3,8;k:2,2,5,8;v:2,2,5,6";
    refused("Attention", flat, NULL, NULL, KILN_ERROR_SHAPE, "expected heads of queries");
    refused("Attention", "q:2,3,3,8;k:2,2,5,8;v:2,2,5,6", NULL, NULL, KILN_ERROR_SHAPE,
            "expected heads of queries in multiples of those of keys, found 3 and 2");
    refused("Attention", "q:2,3,9;k:2,5,4;v:2,5,6", onnx_int("q_num_heads", 2),
            onnx_int("kv_num_heads", 2), KILN_ERROR_SHAPE,
            "operand 0: expected a hidden size in multiples of 2 heads, found 9");
    refused("Attention", "q:2,4,3,8;k:2,5,8;v:2,2,5,6", NULL, NULL, KILN_ERROR_SHAPE,
            "operand 1: expected rank 4");
    refused("Attention", "q:2,4,3,8;k:2,2,5,8;v:2,2,5,6;;pk:2,2,1,8", NULL, NULL,
            KILN_ERROR_INVALID, "expected past_key and past_value, found one of them");
    refused("Attention", "q:2,4,3,8;k:2,2,5,8;v:2,2,5,6;m:3,6", NULL, NULL, KILN_ERROR_SHAPE,
            "operand 3: expected a mask of at most 5 keys, found 6");
    refused("Attention", "q:2,4,3,8;k:2,2,5,8;v:2,2,5,6;m:3,3,5", NULL, NULL, KILN_ERROR_SHAPE,
            "operand 3: expected a mask of 1 or 4 heads, found 3");
    refused("Attention", deep, onnx_int("qk_matmul_output_mode", 4), NULL, KILN_ERROR_INVALID,
            "qk_matmul_output_mode: expected 0 to 3, found 4");
    refused("Attention", deep, onnx_int("left_window_size", -2), NULL, KILN_ERROR_INVALID,
            "left_window_size and right_window_size: expected -1 or more, found -2 and -1");
    refused("Attention", deep, onnx_int("softmax_precision", 7), NULL, KILN_ERROR_TYPE,
            "softmax_precision: expected a float type, found i64");
    refused("Attention", "q:2,4,3,8;k:2,2,5,7;v:2,2,5,6", NULL, NULL, KILN_ERROR_SHAPE, "matmul");
}

/* --- the others --- */

Test(onnx_attention, wrong_angles)
{
    refused("RotaryEmbedding", "x:2,3,4,8;c:2,4,3;s:2,4,3", NULL, NULL, KILN_ERROR_SHAPE,
            "operand 1: expected 4 angles a position, found 3");
    refused("RotaryEmbedding", "x:2,3,4,7;c:2,4,3;s:2,4,3", NULL, NULL, KILN_ERROR_SHAPE,
            "rotary_embedding_dim: expected an even number of at most 7, found 7");
    refused("RotaryEmbedding", "x:2,3,4,8;c:2,4,5;s:2,4,5", onnx_int("rotary_embedding_dim", 10),
            NULL, KILN_ERROR_SHAPE, "rotary_embedding_dim: expected an even number of at most 8");
    refused("RotaryEmbedding", "x:2,3,8;c:2,3,4;s:2,3,4", NULL, NULL, KILN_ERROR_SHAPE,
            "num_heads: expected a divisor of the hidden size 8, found 0");
    refused("RotaryEmbedding", "x:2,3,4,8;c:9,4;s:9,4", NULL, NULL, KILN_ERROR_SHAPE,
            "operand 1: expected rank 3");
    refused("RotaryEmbedding", "x:2,3,4,8;c:2,4,4;s:2,1,4", NULL, NULL, KILN_ERROR_SHAPE,
            "operand 2: expected [2,4,?], found f32[2,1,4]");
    refused("RotaryEmbedding", "x:2,3,4,8;c:9,4;s:9,4;p:2,1", NULL, NULL, KILN_ERROR_SHAPE,
            "operand 3: expected [2,4], found f32[2,1]");
    refused("RotaryEmbedding", "x:2,3,4,8;c:2,4,4;s:2,4,4", onnx_int("interleaved", 2), NULL,
            KILN_ERROR_INVALID, "interleaved: expected 0 or 1, found 2");
}

Test(onnx_attention, normalizations_round_before_they_scale)
{
    onnx_expect(graph_of("RMSNormalization", "x:2,N,4;s:4", "z", onnx_float("epsilon", 0.5f), NULL),
                23,
                "graph @g(%x: f32[2,N,4], %s: f32[4]) {\n"
                "  %z = rms_normalization(%x, %s) {epsilon=0.5} : f32[2,N,4]\n"
                "  return %z\n"
                "}\n");
    onnx_expect(
        graph_of("RMSNormalization", "x:2,4;s:4", "z", onnx_int("stash_type", 11), NULL), 23,
        "graph @g(%x: f32[2,4], %s: f32[4]) {\n"
        "  %z.one = const @z.one : f64[]\n"
        "  %z.cast = cast(%x) {to=f64} : f64[2,4]\n"
        "  %z.rms_normalization = rms_normalization(%z.cast, %z.one) {stash_type=11} : f64[2,4]\n"
        "  %z.cast_1 = cast(%z.rms_normalization) : f32[2,4]\n"
        "  %z = mul(%z.cast_1, %s) : f32[2,4]\n"
        "  return %z\n"
        "}\n");
    refused("RMSNormalization", "x:2,4;s:4", onnx_int("stash_type", 7), NULL, KILN_ERROR_TYPE,
            "stash_type: expected 1, 10, 11 or 16, found 7");
}

Test(onnx_attention, gates)
{
    onnx_expect(graph_of("SwiGLU", "a:2,N;b:2,N", "z", onnx_float("alpha", 2), NULL), OPSET,
                "graph @g(%a: f32[2,N], %b: f32[2,N]) {\n"
                "  %z.swish = swish(%a) {alpha=2} : f32[2,N]\n"
                "  %z = mul(%z.swish, %b) : f32[2,N]\n"
                "  return %z\n"
                "}\n");
    refused("SwiGLU", "a:2,3;b:1,3", NULL, NULL, KILN_ERROR_SHAPE,
            "operand 1: expected f32[2,3], found f32[1,3]");
    refused("SwiGLU", "a:2,3;b:3", NULL, NULL, KILN_ERROR_SHAPE,
            "operand 1: expected f32[2,3], found f32[3]");
}

Test(onnx_attention, convolutions_with_a_state)
{
    onnx_expect(graph_of("CausalConvWithState", "x:N,3,L;w:3,1,4;;p:N,3,3", "z,n",
                         onnx_text("activation", "silu"), NULL),
                OPSET,
                "graph @g(%x: f32[N,3,L], %w: f32[3,1,4], %p: f32[N,3,3]) {\n"
                "  %z.concat = concat(%p, %x) {axis=2} : f32[N,3,L+3]\n"
                "  %z.conv = conv(%z.concat, %w) {group=3} : f32[N,3,L]\n"
                "  %z = swish(%z.conv) : f32[N,3,L]\n"
                "  %z.starts = const @z.starts : i64[1]\n"
                "  %z.ends = const @z.ends : i64[1]\n"
                "  %z.axes = const @z.axes : i64[1]\n"
                "  %n = slice(%z.concat, %z.starts, %z.ends, %z.axes) : f32[N,3,3]\n"
                "  return %z, %n\n"
                "}\n");
    refused("CausalConvWithState", "x:2,3,5;w:3,1,4;;p:2,3,4", NULL, NULL, KILN_ERROR_SHAPE,
            "operand 3: expected a state of 3 positions, found 4");
    refused("CausalConvWithState", "x:2,3,5;w:3,1,4", onnx_text("activation", "gelu"), NULL,
            KILN_ERROR_INVALID, "activation: expected none, silu or swish, found 'gelu'");
    refused("CausalConvWithState", "x:2,3;w:3,1,4", NULL, NULL, KILN_ERROR_SHAPE,
            "operand 0: expected rank 3");
}
