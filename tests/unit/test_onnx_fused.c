/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft that an optimizer made of several become these again. */
#include "graph/kiln-types.h"
#include "tests/unit/onnx_builder.h"

#include <string.h>

#define ARGUMENTS "graph @g(%a: f32[2,3,4], %b: f32[2,3,4], %g: f32[4], %h: f32[4]) {\n"

static GByteArray *
graph_of_floats(void)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "a", ONNX_F32, "2,3,4");
    onnx_input(graph, "b", ONNX_F32, "2,3,4");
    onnx_input(graph, "g", ONNX_F32, "4");
    onnx_input(graph, "h", ONNX_F32, "4");
    onnx_output(graph, "z", ONNX_F32, NULL);
    return graph;
}

/* The operator @op of @inputs becomes @body, which ends with what is returned. */
static void
becomes(const char *op, const char *inputs, const char *outputs, GByteArray *attr, const char *body)
{
    GByteArray *graph = graph_of_floats();
    g_autofree char *name = g_strconcat("com.microsoft:", op, NULL);
    g_autofree char *text = g_strconcat(ARGUMENTS, body, "}\n", NULL);
    if (strchr(outputs, 's'))
        onnx_output(graph, "s", ONNX_F32, NULL);
    onnx_node(graph, name, inputs, outputs, attr, NULL);
    onnx_expect(graph, 17, text);
}

Test(onnx_fused, activations)
{
    becomes("BiasGelu", "a,g", "z", NULL,
            "  %z.add = add(%a, %g) : f32[2,3,4]\n"
            "  %z = gelu(%z.add) : f32[2,3,4]\n  return %z\n");
    becomes("FastGelu", "a,g", "z", NULL,
            "  %z.add = add(%a, %g) : f32[2,3,4]\n"
            "  %z = gelu(%z.add) {approximate=\"tanh\"} : f32[2,3,4]\n  return %z\n");
    becomes("FastGelu", "a", "z", NULL,
            "  %z = gelu(%a) {approximate=\"tanh\"} : f32[2,3,4]\n  return %z\n");
    becomes("QuickGelu", "a", "z", onnx_float("alpha", 1),
            "  %z.sigmoid = sigmoid(%a) : f32[2,3,4]\n"
            "  %z = mul(%a, %z.sigmoid) : f32[2,3,4]\n  return %z\n");
    becomes("QuickGelu", "a", "z", NULL,
            "  %z.number = const @z.number : f32[]\n"
            "  %z.mul = mul(%a, %z.number) : f32[2,3,4]\n"
            "  %z.sigmoid = sigmoid(%z.mul) : f32[2,3,4]\n"
            "  %z = mul(%a, %z.sigmoid) : f32[2,3,4]\n  return %z\n");
    becomes("BiasAdd", "a,g,b", "z", NULL,
            "  %z.add = add(%a, %g) : f32[2,3,4]\n"
            "  %z = add(%z.add, %b) : f32[2,3,4]\n  return %z\n");
    becomes("BiasSplitGelu", "a,g", "z", NULL,
            "  %z.add = add(%a, %g) : f32[2,3,4]\n"
            "  %z.halves, %z.halves_1 = split(%z.add) {axis=-1, num_outputs=2} : f32[2,3,2], "
            "f32[2,3,2]\n"
            "  %z.gelu = gelu(%z.halves_1) : f32[2,3,2]\n"
            "  %z = mul(%z.halves, %z.gelu) : f32[2,3,2]\n  return %z\n");
}

Test(onnx_fused, residuals)
{
    becomes("SkipLayerNormalization", "a,b,g,h,h", "z,,,s", NULL,
            "  %z.add = add(%a, %b) : f32[2,3,4]\n"
            "  %s = add(%z.add, %h) : f32[2,3,4]\n"
            "  %z = layer_normalization(%s, %g, %h) {epsilon=1e-12} : f32[2,3,4]\n"
            "  return %z, %s\n");
    becomes("SkipLayerNormalization", "a,b,g", "z", onnx_float("epsilon", 0.5F),
            "  %z.add = add(%a, %b) : f32[2,3,4]\n"
            "  %z = layer_normalization(%z.add, %g) {epsilon=0.5} : f32[2,3,4]\n  return %z\n");
    becomes("SkipSimplifiedLayerNormalization", "a,b,g,h", "z", NULL,
            "  %z.add = add(%a, %b) : f32[2,3,4]\n"
            "  %z.add_1 = add(%z.add, %h) : f32[2,3,4]\n"
            "  %z = rms_normalization(%z.add_1, %g) {epsilon=1e-12} : f32[2,3,4]\n  return %z\n");
    becomes("SkipLayerNormalization", "a,b,g", "z,s", NULL,
            "  %z, %s = unknown(%a, %b, %g) {op_type=\"SkipLayerNormalization\", "
            "domain=\"com.microsoft\", reason=\"result 1, the statistics of training\"} : f32[*], "
            "f32[*]\n  return %z, %s\n");
}

/* A product of operands of dims @a and @b. */
static void
product_becomes(const char *a, const char *b, GByteArray *first, GByteArray *second,
                const char *text)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "a", ONNX_F32, a);
    onnx_input(graph, "b", ONNX_F32, b);
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "com.microsoft:FusedMatMul", "a,b", "z", first, second, NULL);
    onnx_expect(graph, 17, text);
}

Test(onnx_fused, products)
{
    product_becomes("2,4,3", "2,4,5", onnx_int("transA", 1), onnx_float("alpha", 0.5F),
                    "graph @g(%a: f32[2,4,3], %b: f32[2,4,5]) {\n"
                    "  %z.transpose = transpose(%a) {perm=[0,2,1]} : f32[2,3,4]\n"
                    "  %z.matmul = matmul(%z.transpose, %b) : f32[2,3,5]\n"
                    "  %z.number = const @z.number : f32[]\n"
                    "  %z = mul(%z.matmul, %z.number) : f32[2,3,5]\n  return %z\n}\n");
    product_becomes("2,3,5,4", "6,2,3,4", onnx_int("transB", 1), onnx_int("transBatchB", 1),
                    "graph @g(%a: f32[2,3,5,4], %b: f32[6,2,3,4]) {\n"
                    "  %z.transpose = transpose(%b) {perm=[1,2,3,0]} : f32[2,3,4,6]\n"
                    "  %z = matmul(%a, %z.transpose) : f32[2,3,5,6]\n  return %z\n}\n");
    product_becomes("4", "4,5", onnx_int("transA", 1), onnx_int("transBatchA", 1),
                    "graph @g(%a: f32[4], %b: f32[4,5]) {\n"
                    "  %z = matmul(%a, %b) : f32[5]\n  return %z\n}\n");
}

static GByteArray *
graph_of_conv(GByteArray *activation, GByteArray *numbers)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_F32, "1,2,4,4");
    onnx_input(graph, "w", ONNX_F32, "2,2,1,1");
    onnx_input(graph, "r", ONNX_F32, "1,2,4,4");
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "com.microsoft:FusedConv", "x,w,,r", "z", activation, numbers, NULL);
    return graph;
}

#define CONV                                                                                       \
    "graph @g(%x: f32[1,2,4,4], %w: f32[2,2,1,1], %r: f32[1,2,4,4]) {\n"                           \
    "  %z.conv = conv(%x, %w) : f32[1,2,4,4]\n"

Test(onnx_fused, convolutions)
{
    onnx_expect(graph_of_conv(onnx_text("activation", "Relu"), NULL), 17,
                CONV "  %z.add = add(%z.conv, %r) : f32[1,2,4,4]\n"
                     "  %z = relu(%z.add) : f32[1,2,4,4]\n  return %z\n}\n");
    onnx_expect_error(graph_of_conv(onnx_text("activation", "LeakyRelu"), NULL), 17,
                      KILN_ERROR_INVALID, "z (FusedConv): LeakyRelu: expected 1 numbers, found 0");
}

Test(onnx_fused, embeddings)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "i", ONNX_I32, "2,3");
    onnx_input(graph, "w", ONNX_F32, "9,4");
    onnx_input(graph, "p", ONNX_F32, "7,4");
    onnx_input(graph, "g", ONNX_F32, "4");
    onnx_input(graph, "h", ONNX_F32, "4");
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "com.microsoft:EmbedLayerNormalization", "i,,w,p,,g,h", "z", NULL);
    onnx_expect(graph, 17,
                "graph @g(%i: i32[2,3], %w: f32[9,4], %p: f32[7,4], %g: f32[4], %h: f32[4]) {\n"
                "  %z.gather = gather(%w, %i) : f32[2,3,4]\n"
                "  %z.extent = const @z.extent : i64[1]\n"
                "  %z.starts = const @z.starts : i64[1]\n"
                "  %z.axes = const @z.axes : i64[1]\n"
                "  %z.slice = slice(%p, %z.starts, %z.extent, %z.axes) : f32[3,4]\n"
                "  %z.add = add(%z.gather, %z.slice) : f32[2,3,4]\n"
                "  %z = layer_normalization(%z.add, %g, %h) {epsilon=1e-12} : f32[2,3,4]\n"
                "  return %z\n}\n");
}

/* --- attention --- */

static GByteArray *
graph_of_heads(const char *inputs, const char *outputs, GByteArray *attr)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "q", ONNX_F32, "2,3,8");
    onnx_input(graph, "k", ONNX_F32, "2,5,8");
    onnx_input(graph, "m", ONNX_I32, "2,5");
    onnx_input(graph, "c", ONNX_I32, "4");
    onnx_input(graph, "p", ONNX_F32, "2,2,4,4");
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "com.microsoft:MultiHeadAttention", inputs, outputs, onnx_int("num_heads", 2),
              attr, NULL);
    return graph;
}

#define HEADS                                                                                      \
    "graph @g(%q: f32[2,3,8], %k: f32[2,5,8], %m: i32[2,5], %c: i32[4], %p: f32[2,2,4,4]) {\n"

Test(onnx_fused, heads)
{
    onnx_expect(graph_of_heads("q,k,k", "z", NULL), 17,
                HEADS
                "  %z.shape = const @z.shape : i64[4]\n"
                "  %z.reshape = reshape(%q, %z.shape) {allowzero=true} : f32[2,3,2,4]\n"
                "  %z.transpose = transpose(%z.reshape) {perm=[0,2,1,3]} : f32[2,2,3,4]\n"
                "  %z.shape_1 = const @z.shape_1 : i64[4]\n"
                "  %z.reshape_1 = reshape(%k, %z.shape_1) {allowzero=true} : f32[2,5,2,4]\n"
                "  %z.transpose_1 = transpose(%z.reshape_1) {perm=[0,2,1,3]} : f32[2,2,5,4]\n"
                "  %z.shape_2 = const @z.shape_2 : i64[4]\n"
                "  %z.reshape_2 = reshape(%k, %z.shape_2) {allowzero=true} : f32[2,5,2,4]\n"
                "  %z.transpose_2 = transpose(%z.reshape_2) {perm=[0,2,1,3]} : f32[2,2,5,4]\n"
                "  %z.transpose_3 = transpose(%z.transpose_1) {perm=[0,1,3,2]} : f32[2,2,4,5]\n"
                "  %z.matmul = matmul(%z.transpose, %z.transpose_3) : f32[2,2,3,5]\n"
                "  %z.number = const @z.number : f32[]\n"
                "  %z.mul = mul(%z.matmul, %z.number) : f32[2,2,3,5]\n"
                "  %z.softmax = softmax(%z.mul) : f32[2,2,3,5]\n"
                "  %z.matmul_1 = matmul(%z.softmax, %z.transpose_2) : f32[2,2,3,4]\n"
                "  %z.transpose_4 = transpose(%z.matmul_1) {perm=[0,2,1,3]} : f32[2,3,2,4]\n"
                "  %z.shape_3 = const @z.shape_3 : i64[3]\n"
                "  %z = reshape(%z.transpose_4, %z.shape_3) {allowzero=true} : f32[2,3,8]\n  "
                "return %z\n}\n");
}

#define UNKNOWN_HEADS(operands, reason)                                                            \
    HEADS "  %z = unknown(" operands ") {op_type=\"MultiHeadAttention\", "                         \
          "domain=\"com.microsoft\", reason=\"" reason "\"} : f32[*]\n  return %z\n}\n"

Test(onnx_fused, heads_that_are_refused)
{
    onnx_expect(graph_of_heads("q,k,k,,p", "z", NULL), 17,
                UNKNOWN_HEADS("%q, %k, %k, _, %p", "a mask of rank 4"));
    onnx_expect(graph_of_heads("q,p,k", "z", NULL), 17,
                UNKNOWN_HEADS("%q, %p, %k", "keys of rank 4 beside values of rank 3"));
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "q", ONNX_F32, "2,3,8");
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "com.microsoft:MultiHeadAttention", "q,q,q", "z", onnx_int("num_heads", 0),
              NULL);
    onnx_expect_error(graph, 17, KILN_ERROR_INVALID, "num_heads: expected 1 or more, found 0");
}

/* An Attention of a state of four rows, with a past of @past. */
static GByteArray *
graph_of_state(const char *past, GByteArray *attr)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_F32, "2,4,8");
    onnx_input(graph, "w", ONNX_F32, "8,24");
    onnx_input(graph, "p", ONNX_F32, past);
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "com.microsoft:Attention", "x,w,,,p", "z", onnx_int("num_heads", 2), attr,
              NULL);
    return graph;
}

Test(onnx_fused, states_that_are_wrong)
{
    onnx_expect_error(graph_of_state("", NULL), 17, KILN_ERROR_SHAPE,
                      "z (Attention): operand 4: expected rank 5, found f32[]");
    onnx_expect_error(graph_of_state("2,2,2,3", NULL), 17, KILN_ERROR_SHAPE,
                      "z (Attention): operand 4: expected rank 5, found f32[2,2,2,3]");
    onnx_expect_error(
        graph_of_state("2,2,2,3,4", onnx_ints("qkv_hidden_sizes", 2, (int64_t[]){ 8, 8 })), 17,
        KILN_ERROR_INVALID, "qkv_hidden_sizes: expected 3 numbers, found 2");
}

/* --- weights of few bits --- */

static GByteArray *
graph_of_bits(const char *inputs, int64_t bits, int64_t block)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "a", ONNX_F32, "3,32");
    onnx_input(graph, "b", ONNX_U8, "4,2,8");
    onnx_input(graph, "s", ONNX_F32, "4,2");
    onnx_input(graph, "g", ONNX_I32, "32");
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "com.microsoft:MatMulNBits", inputs, "z", onnx_int("K", 32), onnx_int("N", 4),
              onnx_int("bits", bits), onnx_int("block_size", block), NULL);
    return graph;
}

#define BITS "graph @g(%a: f32[3,32], %b: u8[4,2,8], %s: f32[4,2], %g: i32[32]) {\n"

Test(onnx_fused, weights_of_four_bits)
{
    onnx_expect(graph_of_bits("a,b,s", 4, 16), 17,
                BITS "  %z = matmul_nbits(%a, %b, %s) {K=32, N=4, block_size=16} : "
                     "f32[3,4]\n  return %z\n}\n");
}

Test(onnx_fused, weights_that_are_refused)
{
    onnx_expect(graph_of_bits("a,b,s", 3, 16), 17,
                BITS "  %z = unknown(%a, %b, %s) {op_type=\"MatMulNBits\", "
                     "domain=\"com.microsoft\", reason=\"bits=3\"} : f32[*]\n  return %z\n}\n");
    onnx_expect_error(graph_of_bits("a,b,s", 4, 0), 17, KILN_ERROR_INVALID,
                      "expected K, N and block_size from 1 to 2147483647, found 32, 4 and 0");
    onnx_expect_error(graph_of_bits("a,b,s", 4, 8), 17, KILN_ERROR_SHAPE,
                      "operand 1: expected [4,4,4], found u8[4,2,8]");
}
