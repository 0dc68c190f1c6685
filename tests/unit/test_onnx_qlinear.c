/* SPDX-License-Identifier: Apache-2.0 */
/* The quantized operators of com.microsoft: each on real numbers, between dequantize_linear and
 * quantize_linear. */
#include "graph/kiln-types.h"
#include "tests/unit/onnx_builder.h"

#include <string.h>

static GByteArray *
graph_ab(void)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "a", ONNX_U8, "1,2,3,3");
    onnx_input(graph, "b", ONNX_U8, "1,2,3,3");
    onnx_input(graph, "s", ONNX_F32, "");
    onnx_input(graph, "t", ONNX_F32, "");
    onnx_input(graph, "o", ONNX_U8, "");
    onnx_output(graph, "z", ONNX_U8, NULL);
    return graph;
}

/* The operator @op of @inputs, and an attribute or NULL. */
static GByteArray *
graph_of(const char *op, const char *inputs, GByteArray *attr)
{
    GByteArray *graph = graph_ab();
    g_autofree char *name = g_strconcat("com.microsoft:", op, NULL);
    onnx_node(graph, name, inputs, "z", attr, NULL);
    return graph;
}

/* It becomes @body. */
static void
becomes(GByteArray *graph, const char *body)
{
    g_autofree char *text = g_strconcat(
        "graph @g(%a: u8[1,2,3,3], %b: u8[1,2,3,3], %s: f32[], %t: f32[], %o: u8[]) {\n", body,
        "  return %z\n}\n", NULL);
    onnx_expect(graph, 13, text);
}

Test(onnx_qlinear, two_operands)
{
    becomes(graph_of("QLinearAdd", "a,s,o,b,t,,t,o", NULL),
            "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[1,2,3,3]\n"
            "  %z.dequantize_linear_1 = dequantize_linear(%b, %t) : f32[1,2,3,3]\n"
            "  %z.add = add(%z.dequantize_linear, %z.dequantize_linear_1) : f32[1,2,3,3]\n"
            "  %z = quantize_linear(%z.add, %t, %o) : u8[1,2,3,3]\n");
    becomes(graph_of("QLinearMul", "a,s,o,b,t,,t,o", NULL),
            "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[1,2,3,3]\n"
            "  %z.dequantize_linear_1 = dequantize_linear(%b, %t) : f32[1,2,3,3]\n"
            "  %z.mul = mul(%z.dequantize_linear, %z.dequantize_linear_1) : f32[1,2,3,3]\n"
            "  %z = quantize_linear(%z.mul, %t, %o) : u8[1,2,3,3]\n");
    onnx_expect_error(graph_of("QLinearMul", "a,s,o,b,t", NULL), 13, KILN_ERROR_INVALID,
                      "z (QLinearMul)");
}

Test(onnx_qlinear, one_operand)
{
    becomes(graph_of("QLinearLeakyRelu", "a,s,o,t,o", onnx_float("alpha", 0.25F)),
            "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[1,2,3,3]\n"
            "  %z.leaky_relu = leaky_relu(%z.dequantize_linear) {alpha=0.25} : f32[1,2,3,3]\n"
            "  %z = quantize_linear(%z.leaky_relu, %t, %o) : u8[1,2,3,3]\n");
    becomes(graph_of("QLinearGlobalAveragePool", "a,s,o,t,o", onnx_int("channels_last", 0)),
            "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[1,2,3,3]\n"
            "  %z.global_average_pool = global_average_pool(%z.dequantize_linear) : f32[1,2,1,1]\n"
            "  %z = quantize_linear(%z.global_average_pool, %t, %o) : u8[1,2,1,1]\n");
    becomes(graph_of("QLinearGlobalAveragePool", "a,s,o,t,o", onnx_int("channels_last", 1)),
            "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[1,2,3,3]\n"
            "  %z.transpose = transpose(%z.dequantize_linear) {perm=[0,3,1,2]} : f32[1,3,2,3]\n"
            "  %z.global_average_pool = global_average_pool(%z.transpose) : f32[1,3,1,1]\n"
            "  %z.transpose_1 = transpose(%z.global_average_pool) {perm=[0,2,3,1]} : "
            "f32[1,1,1,3]\n"
            "  %z = quantize_linear(%z.transpose_1, %t, %o) : u8[1,1,1,3]\n");
}

Test(onnx_qlinear, choice_and_mean)
{
    GByteArray *graph = graph_ab();
    onnx_input(graph, "c", ONNX_BOOL, "3");
    onnx_node(graph, "com.microsoft:QLinearWhere", "c,a,s,o,b,t,,t,o", "z", NULL);
    onnx_expect(graph, 13,
                "graph @g(%a: u8[1,2,3,3], %b: u8[1,2,3,3], %s: f32[], %t: f32[], %o: u8[], "
                "%c: bool[3]) {\n"
                "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[1,2,3,3]\n"
                "  %z.dequantize_linear_1 = dequantize_linear(%b, %t) : f32[1,2,3,3]\n"
                "  %z.where = where(%c, %z.dequantize_linear, %z.dequantize_linear_1) : "
                "f32[1,2,3,3]\n"
                "  %z = quantize_linear(%z.where, %t, %o) : u8[1,2,3,3]\n  return %z\n}\n");
    graph = graph_ab();
    onnx_node(graph, "com.microsoft:QLinearReduceMean", "a,s,o,t,o", "z",
              onnx_ints("axes", 2, (int64_t[]){ 2, 3 }), onnx_int("keepdims", 0), NULL);
    becomes(graph, "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[1,2,3,3]\n"
                   "  %z.axes = const @z.axes : i64[2]\n"
                   "  %z.reduce_mean = reduce_mean(%z.dequantize_linear, %z.axes) "
                   "{keepdims=false} : f32[1,2]\n"
                   "  %z = quantize_linear(%z.reduce_mean, %t, %o) : u8[1,2]\n");
}

Test(onnx_qlinear, convolution_with_channels_last)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_U8, "1,3,3,2");
    onnx_input(graph, "w", ONNX_U8, "4,2,1,1");
    onnx_input(graph, "s", ONNX_F32, "");
    onnx_input(graph, "o", ONNX_U8, "");
    onnx_output(graph, "z", ONNX_U8, NULL);
    onnx_node(graph, "com.microsoft:QLinearConv", "x,s,o,w,s,o,s,o", "z",
              onnx_int("channels_last", 1), NULL);
    onnx_expect(graph, 13,
                "graph @g(%x: u8[1,3,3,2], %w: u8[4,2,1,1], %s: f32[], %o: u8[]) {\n"
                "  %z.transpose = transpose(%x) {perm=[0,3,1,2]} : u8[1,2,3,3]\n"
                "  %z.qlinear_conv = qlinear_conv(%z.transpose, %s, %o, %w, %s, %o, %s, %o) : "
                "u8[1,4,3,3]\n"
                "  %z = transpose(%z.qlinear_conv) {perm=[0,2,3,1]} : u8[1,3,3,4]\n"
                "  return %z\n}\n");
}

Test(onnx_qlinear, concat_has_the_result_first)
{
    becomes(graph_of("QLinearConcat", "t,o,a,s,o,b,t,o", onnx_int("axis", 1)),
            "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[1,2,3,3]\n"
            "  %z.dequantize_linear_1 = dequantize_linear(%b, %t, %o) : f32[1,2,3,3]\n"
            "  %z.concat = concat(%z.dequantize_linear, %z.dequantize_linear_1) {axis=1} : "
            "f32[1,4,3,3]\n"
            "  %z = quantize_linear(%z.concat, %t, %o) : u8[1,4,3,3]\n");
    onnx_expect_error(graph_of("QLinearConcat", "t,o,a,s", onnx_int("axis", 1)), 13,
                      KILN_ERROR_INVALID,
                      "z (QLinearConcat): expected 2 operands and 3 for each part, found 4");
}

static GByteArray *
graph_of_gemm(const char *inputs, GByteArray *attr)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "a", ONNX_U8, "2,3");
    onnx_input(graph, "b", ONNX_U8, "4,3");
    onnx_input(graph, "c", ONNX_I32, "4");
    onnx_input(graph, "s", ONNX_F32, "");
    onnx_input(graph, "t", ONNX_F32, "4");
    onnx_input(graph, "o", ONNX_U8, "");
    onnx_output(graph, "z", 0, NULL);
    onnx_node(graph, "com.microsoft:QGemm", inputs, "z", onnx_int("transB", 1), attr, NULL);
    return graph;
}

#define GEMM_ARGUMENTS                                                                             \
    "graph @g(%a: u8[2,3], %b: u8[4,3], %c: i32[4], %s: f32[], %t: f32[4], %o: u8[]) {\n"          \
    "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[2,3]\n"                          \
    "  %z.dequantize_linear_1 = dequantize_linear(%b, %t) {axis=0} : f32[4,3]\n"

Test(onnx_qlinear, gemm)
{
    onnx_expect(graph_of_gemm("a,s,o,b,t,,c,s,o", onnx_float("alpha", 0.5F)), 13,
                GEMM_ARGUMENTS
                "  %z.mul = mul(%s, %t) : f32[4]\n"
                "  %z.number = const @z.number : f32[]\n"
                "  %z.mul_1 = mul(%z.mul, %z.number) : f32[4]\n"
                "  %z.cast = cast(%c) : f32[4]\n"
                "  %z.mul_2 = mul(%z.cast, %z.mul_1) : f32[4]\n"
                "  %z.gemm = gemm(%z.dequantize_linear, %z.dequantize_linear_1, %z.mul_2) "
                "{alpha=0.5, transB=true} : f32[2,4]\n"
                "  %z = quantize_linear(%z.gemm, %s, %o) : u8[2,4]\n"
                "  return %z\n}\n");
    onnx_expect(
        graph_of_gemm("a,s,o,b,t", NULL), 13,
        GEMM_ARGUMENTS
        "  %z = gemm(%z.dequantize_linear, %z.dequantize_linear_1) {transB=true} : f32[2,4]\n"
        "  return %z\n}\n");
}

static GByteArray *
graph_of_softmax(int64_t axis)
{
    GByteArray *graph = graph_ab();
    onnx_node(graph, "com.microsoft:QLinearSoftmax", "a,s,o,t,o", "z", onnx_int("axis", axis),
              onnx_int("opset", 11), NULL);
    return graph;
}

Test(onnx_qlinear, softmax)
{
    becomes(graph_of_softmax(3),
            "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[1,2,3,3]\n"
            "  %z.softmax = softmax(%z.dequantize_linear) {axis=3} : f32[1,2,3,3]\n"
            "  %z = quantize_linear(%z.softmax, %t, %o) : u8[1,2,3,3]\n");
    g_autofree char *found = onnx_imported(onnx_model(graph_of_softmax(1), 8, 13));
    cr_expect(strstr(found, "axis=1 of opset 11"), "%s", found);
}
