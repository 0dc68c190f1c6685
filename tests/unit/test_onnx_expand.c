/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that the importer expands into those that define them. */
#include "graph/kiln-types.h"
#include "tests/unit/onnx_builder.h"

#include <string.h>

/* q, k and v with @heads and @kv_heads heads of four numbers. */
static GByteArray *
attention_of(const char *heads, const char *kv_heads)
{
    GByteArray *graph = onnx_graph_new("g");
    g_autofree char *q = g_strdup_printf("1,%s,N,4", heads);
    g_autofree char *kv = g_strdup_printf("1,%s,M,4", kv_heads);
    onnx_input(graph, "q", ONNX_F32, q);
    onnx_input(graph, "k", ONNX_F32, kv);
    onnx_input(graph, "v", ONNX_F32, kv);
    onnx_output(graph, "z", ONNX_F32, NULL);
    return graph;
}

/* x → x + x; with @more inputs. */
static GByteArray *
twice(bool more)
{
    GByteArray *graph = onnx_graph_new("twice");
    onnx_input(graph, "s", ONNX_F32, NULL);
    if (more)
        onnx_input(graph, "t", ONNX_F32, NULL);
    onnx_output(graph, "r", ONNX_F32, NULL);
    onnx_node(graph, "Add", "s,s", "r", NULL);
    return graph;
}

Test(onnx_expand, flex_attention)
{
    GByteArray *graph = attention_of("2", "2");
    onnx_node(graph, "ai.onnx.preview:FlexAttention", "q,k,v", "z", onnx_float("scale", 4),
              onnx_graph("score_mod", twice(false)), NULL);
    onnx_expect(graph, 26,
                "graph @g(%q: f32[1,2,N,4], %k: f32[1,2,M,4], %v: f32[1,2,M,4]) {\n"
                "  %z.scale = const @z.scale : f32[]\n"
                "  %z.mul = mul(%q, %z.scale) : f32[1,2,N,4]\n"
                "  %z.mul_1 = mul(%k, %z.scale) : f32[1,2,M,4]\n"
                "  %z.transpose = transpose(%z.mul_1) {perm=[0,1,3,2]} : f32[1,2,4,M]\n"
                "  %z.matmul = matmul(%z.mul, %z.transpose) : f32[1,2,N,M]\n"
                "  %r = add(%z.matmul, %z.matmul) : f32[1,2,N,M]\n"
                "  %z.softmax = softmax(%r) : f32[1,2,N,M]\n"
                "  %z = matmul(%z.softmax, %v) : f32[1,2,N,4]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_expand, flex_attention_shares_heads_and_casts)
{
    GByteArray *graph = attention_of("6", "2");
    onnx_node(graph, "ai.onnx.preview:FlexAttention", "q,k,v", "z",
              onnx_int("softmax_precision", 11), onnx_graph("prob_mod", twice(false)), NULL);
    g_autofree char *text = onnx_imported(onnx_model(graph, 8, 26));
    cr_expect(strstr(text, "expand(%z.unsqueeze, %z.copies) : f32[1,2,3,M,4]"), "%s", text);
    cr_expect(strstr(text, "{to=f64} : f64[1,6,N,M]"), "%s", text);
    cr_expect(strstr(text, "%z.cast_1 = cast(%r) : f32[1,6,N,M]"), "%s", text);
    cr_expect(strstr(text, "%z = matmul("), "%s", text);
    cr_expect(strstr(text, " : f32[1,6,N,4]\n  return"), "%s", text);
}

static void
expect(GByteArray *graph, GByteArray *attr, const char *expected)
{
    onnx_node(graph, "ai.onnx.preview:FlexAttention", "q,k,v", "z", attr, NULL);
    g_autofree char *text = onnx_imported(onnx_model(graph, 8, 26));
    cr_expect(strstr(text, expected), "expected '%s', found %s", expected, text);
}

Test(onnx_expand, flex_attention_says_what_is_wrong)
{
    expect(attention_of("3", "2"), NULL,
           "z (FlexAttention): expected query heads in groups for each of 2 key heads, found 3");
    expect(attention_of("2", "2"), onnx_graph("score_mod", twice(true)),
           "attribute 'score_mod': expected a graph with one input and one output");
    expect(attention_of("2", "2"), onnx_int("softmax_precision", ONNX_I64),
           "softmax_precision: expected a float type, found i64");
    expect(attention_of("2", "2"), onnx_float("scale", -1), "reason=\"scale=-1\"");
    expect(attention_of("H", "2"), NULL, "reason=\"heads of unknown number or size\"");
    expect(attention_of("2,2", "2"), NULL, "operand 0: expected rank 4, found rank 5");
}

/* --- optimizers --- */

/* @n values of a step with @lists lists, f32[3] each. */
static GByteArray *
step_of(const char *op, uint32_t n, const char *operands, const char *results, GByteArray *attr)
{
    GByteArray *graph = onnx_graph_new("g");
    g_auto(GStrv) names = g_strsplit(operands, ",", -1);
    onnx_input(graph, "r", ONNX_F32, "");
    onnx_input(graph, "t", ONNX_I64, "");
    for (uint32_t i = 2; i < n; i++)
        onnx_input(graph, names[i], ONNX_F32, "3");
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, op, operands, results, attr, NULL);
    return graph;
}

Test(onnx_expand, adagrad)
{
    GByteArray *graph = step_of("ai.onnx.preview.training:Adagrad", 5, "r,t,x,g,h", "z,i",
                                onnx_float("decay_factor", 0.5f));
    onnx_expect(graph, 17,
                "graph @g(%r: f32[], %t: i64[], %x: f32[3], %g: f32[3], %h: f32[3]) {\n"
                "  %z.cast = cast(%r) {to=f64} : f64[]\n"
                "  %z.cast_1 = cast(%t) {to=f64} : f64[]\n"
                "  %z.number = const @z.number : f64[]\n"
                "  %z.mul = mul(%z.cast_1, %z.number) : f64[]\n"
                "  %z.number_1 = const @z.number_1 : f64[]\n"
                "  %z.add = add(%z.mul, %z.number_1) : f64[]\n"
                "  %z.div = div(%z.cast, %z.add) : f64[]\n"
                "  %z.mul_1 = mul(%g, %g) : f32[3]\n"
                "  %i = add(%h, %z.mul_1) : f32[3]\n"
                "  %z.sqrt = sqrt(%i) : f32[3]\n"
                "  %z.number_2 = const @z.number_2 : f32[]\n"
                "  %z.add_2 = add(%z.sqrt, %z.number_2) : f32[3]\n"
                "  %z.div_1 = div(%g, %z.add_2) : f32[3]\n"
                "  %z.cast_2 = cast(%z.div) : f32[]\n"
                "  %z.mul_2 = mul(%z.div_1, %z.cast_2) : f32[3]\n"
                "  %z = sub(%x, %z.mul_2) : f32[3]\n"
                "  return %z\n"
                "}\n");
}

/* The norm is a part of the gradient where it weighs something. */
Test(onnx_expand, optimizers_of_several_values)
{
    GByteArray *graph = step_of("ai.onnx.preview.training:Adam", 10, "r,t,x,y,g,h,v,w,s,q",
                                "z,a,b,c,d,e", onnx_float("norm_coefficient", 0.25f));
    g_autofree char *text = onnx_imported(onnx_model(graph, 8, 17));
    cr_expect(strstr(text, "mul(%x, "), "%s", text);
    cr_expect(strstr(text, "mul(%y, "), "%s", text);
    cr_expect(strstr(text, "where("), "%s", text);
}

/* Values, gradients and sums of one value have one shape. */
Test(onnx_expand, optimizers_of_other_shapes)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "r", ONNX_F32, "");
    onnx_input(graph, "t", ONNX_I64, "");
    onnx_input(graph, "x", ONNX_F32, "2,3");
    onnx_input(graph, "g", ONNX_F32, "1,3");
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "ai.onnx.preview.training:Adagrad", "r,t,x,g,x", "z", NULL);
    onnx_expect_error(graph, 17, KILN_ERROR_SHAPE, "operand 3: expected [2,3], found f32[1,3]");
}

Test(onnx_expand, optimizers_that_are_refused)
{
    GByteArray *graph = step_of("ai.onnx.preview.training:Adam", 5, "r,t,x,g,h", "z", NULL);
    onnx_expect_error(graph, 17, KILN_ERROR_INVALID,
                      "expected 2 operands and 4 for each value, found 5");
    graph = step_of("ai.onnx.preview.training:Gradient", 3, "r,t,x", "z", NULL);
    g_autofree char *text = onnx_imported(onnx_model(graph, 8, 17));
    cr_expect(strstr(text, "Kiln does not differentiate graphs"), "%s", text);
}
