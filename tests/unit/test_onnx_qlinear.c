/* SPDX-License-Identifier: Apache-2.0 */
/* The quantized operators of com.microsoft: each on real numbers, between dequantize_linear and
 * quantize_linear. */
#include "tests/unit/onnx_builder.h"

#define ARGUMENTS "graph @g(%a: u8[1,2,3,3], %b: u8[1,2,3,3], %s: f32[], %t: f32[], %o: u8[]) {\n"

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

Test(onnx_qlinear, two_operands)
{
    GByteArray *graph = graph_ab();
    onnx_node(graph, "com.microsoft:QLinearAdd", "a,s,o,b,t,,t,o", "z", NULL);
    onnx_expect(graph, 13,
                ARGUMENTS "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[1,2,3,3]\n"
                          "  %z.dequantize_linear_1 = dequantize_linear(%b, %t) : f32[1,2,3,3]\n"
                          "  %z.add = add(%z.dequantize_linear, %z.dequantize_linear_1) : "
                          "f32[1,2,3,3]\n"
                          "  %z = quantize_linear(%z.add, %t, %o) : u8[1,2,3,3]\n"
                          "  return %z\n}\n");
    graph = graph_ab();
    onnx_node(graph, "com.microsoft:QLinearMul", "a,s,o,b,t", "z", NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "z (QLinearMul)");
}

Test(onnx_qlinear, one_operand)
{
    GByteArray *graph = graph_ab();
    onnx_node(graph, "com.microsoft:QLinearLeakyRelu", "a,s,o,t,o", "z", onnx_float("alpha", 0.25F),
              NULL);
    onnx_expect(graph, 13,
                ARGUMENTS "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[1,2,3,3]\n"
                          "  %z.leaky_relu = leaky_relu(%z.dequantize_linear) {alpha=0.25} : "
                          "f32[1,2,3,3]\n"
                          "  %z = quantize_linear(%z.leaky_relu, %t, %o) : u8[1,2,3,3]\n"
                          "  return %z\n}\n");
    graph = graph_ab();
    onnx_node(graph, "com.microsoft:QLinearGlobalAveragePool", "a,s,o,t,o", "z",
              onnx_int("channels_last", 0), NULL);
    onnx_expect(graph, 13,
                ARGUMENTS "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[1,2,3,3]\n"
                          "  %z.global_average_pool = global_average_pool(%z.dequantize_linear) : "
                          "f32[1,2,1,1]\n"
                          "  %z = quantize_linear(%z.global_average_pool, %t, %o) : u8[1,2,1,1]\n"
                          "  return %z\n}\n");
    graph = graph_ab();
    onnx_node(graph, "com.microsoft:QLinearGlobalAveragePool", "a,s,o,t,o", "z",
              onnx_int("channels_last", 1), NULL);
    onnx_expect(graph, 13,
                ARGUMENTS "  %z = unknown(%a, %s, %o, %t, %o) "
                          "{op_type=\"QLinearGlobalAveragePool\", domain=\"com.microsoft\", "
                          "reason=\"channels_last=1\"} : u8[*]\n"
                          "  return %z\n}\n");
}

Test(onnx_qlinear, concat_has_the_result_first)
{
    GByteArray *graph = graph_ab();
    onnx_node(graph, "com.microsoft:QLinearConcat", "t,o,a,s,o,b,t,o", "z", onnx_int("axis", 1),
              NULL);
    onnx_expect(graph, 13,
                ARGUMENTS "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[1,2,3,3]\n"
                          "  %z.dequantize_linear_1 = dequantize_linear(%b, %t, %o) : "
                          "f32[1,2,3,3]\n"
                          "  %z.concat = concat(%z.dequantize_linear, %z.dequantize_linear_1) "
                          "{axis=1} : f32[1,4,3,3]\n"
                          "  %z = quantize_linear(%z.concat, %t, %o) : u8[1,4,3,3]\n"
                          "  return %z\n}\n");
    graph = graph_ab();
    onnx_node(graph, "com.microsoft:QLinearConcat", "t,o,a,s", "z", onnx_int("axis", 1), NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID,
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
                "  %z.alpha = const @z.alpha : f32[]\n"
                "  %z.mul_1 = mul(%z.mul, %z.alpha) : f32[4]\n"
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

Test(onnx_qlinear, softmax)
{
    GByteArray *graph = graph_ab();
    onnx_node(graph, "com.microsoft:QLinearSoftmax", "a,s,o,t,o", "z", onnx_int("axis", 3),
              onnx_int("opset", 11), NULL);
    onnx_expect(graph, 11,
                ARGUMENTS "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) : f32[1,2,3,3]\n"
                          "  %z.softmax = softmax(%z.dequantize_linear) {axis=3} : f32[1,2,3,3]\n"
                          "  %z = quantize_linear(%z.softmax, %t, %o) : u8[1,2,3,3]\n"
                          "  return %z\n}\n");
    graph = graph_ab();
    onnx_node(graph, "com.microsoft:QLinearSoftmax", "a,s,o,t,o", "z", onnx_int("axis", 1),
              onnx_int("opset", 11), NULL);
    g_autofree char *found = onnx_imported(onnx_model(graph, 8, 11));
    cr_expect(strstr(found, "axis=1 of opset 11"), "%s", found);
}
