/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that the importer expands into those that define them. */
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
