/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft that need more than a few nodes: what is refused, and the types of
 * what is not. Their results are compared by tests/onnx/check_contrib.py. */
#include "graph/kiln-types.h"
#include "tests/unit/onnx_builder.h"

#include <string.h>

/* The types of the results of @graph, as the text states them. */
static void
returns(GByteArray *graph, const char *const *expected)
{
    g_autofree char *found = onnx_imported(onnx_model(graph, 8, 17));
    for (; *expected; expected++)
        cr_expect(strstr(found, *expected), "expected %s in\n%s", *expected, found);
    cr_expect(!strstr(found, "unknown("), "%s", found);
}
#define RETURNS(graph, ...) returns((graph), (const char *const[]){ __VA_ARGS__, NULL })

/* The node becomes `unknown` with this reason. */
static void
refused(GByteArray *graph, const char *reason)
{
    g_autofree char *found = onnx_imported(onnx_model(graph, 8, 17));
    cr_expect(strstr(found, "unknown(") && strstr(found, reason), "expected '%s', found\n%s",
              reason, found);
}

/* --- GroupQueryAttention --- */

/* 4 heads of queries, 2 of keys, of 8 elements each. */
static GByteArray *
graph_of_group(const char *inputs, const char *outputs, GByteArray *attr, int64_t kv_heads)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "q", ONNX_F32, "B,S,32");
    onnx_input(graph, "k", ONNX_F32, "B,S,16");
    onnx_input(graph, "p", ONNX_F32, "B,2,P,8");
    onnx_input(graph, "w", ONNX_F32, "B,S,64");
    onnx_input(graph, "l", ONNX_I32, "B");
    onnx_input(graph, "t", ONNX_I32, "");
    onnx_input(graph, "c", ONNX_F32, "64,4");
    onnx_input(graph, "h", ONNX_F32, "1,3,S,T");
    onnx_output(graph, "z", ONNX_F32, NULL);
    if (strchr(outputs, 'y')) {
        onnx_output(graph, "x", ONNX_F32, NULL);
        onnx_output(graph, "y", ONNX_F32, NULL);
    }
    onnx_node(graph, "com.microsoft:GroupQueryAttention", inputs, outputs, onnx_int("num_heads", 4),
              onnx_int("kv_num_heads", kv_heads), attr, NULL);
    return graph;
}

Test(onnx_contrib, group_query)
{
    RETURNS(graph_of_group("q,k,k,,,l,t", "z,x,y", NULL, 2), "%z = reshape(", ": f32[B,S,32]\n",
            "%x = transpose(", ": f32[B,2,S,8]\n");
    RETURNS(graph_of_group("w,,,p,p,l,t,c,c", "z,x,y", onnx_int("do_rotary", 1), 2),
            "%x = tensor_scatter(", "%y = tensor_scatter(", ": f32[B,S,32]\n");
}

Test(onnx_contrib, group_query_that_is_wrong)
{
    onnx_expect_error(graph_of_group("q,k,k,,,l,t", "z", NULL, 3), 17, KILN_ERROR_INVALID,
                      "z (GroupQueryAttention): expected heads of queries in multiples of those of "
                      "keys, found 4 and 3");
    onnx_expect_error(graph_of_group("q,k,k,p,,l,t", "z", NULL, 2), 17, KILN_ERROR_INVALID,
                      "expected operands 3 and 4, found one of them");
    onnx_expect_error(graph_of_group("q,k,k,,,l,t", "z", onnx_int("do_rotary", 1), 2), 17,
                      KILN_ERROR_INVALID, "do_rotary: lacks operands 7 and 8");
    onnx_expect_error(graph_of_group("q,k,k,,,l", "z", NULL, 2), 17, KILN_ERROR_INVALID,
                      "lacks operand 6");
    onnx_expect_error(graph_of_group("q,k,k,,,l,t", "z", onnx_int("local_window_size", 0), 2), 17,
                      KILN_ERROR_INVALID, "local_window_size: expected -1, or 1 or more, found 0");
    onnx_expect_error(graph_of_group("q,k,k,,,l,t", "z", onnx_int("qk_output", 3), 2), 17,
                      KILN_ERROR_INVALID, "qk_output: expected 0 to 2, found 3");
    onnx_expect_error(graph_of_group("q,k,k,,,l,t,,,,h", "z", NULL, 2), 17, KILN_ERROR_SHAPE,
                      "operand 10: expected 1 or 4 heads, found 3");
    onnx_expect_error(graph_of_group("k,,,,,l,t,c,c", "z", onnx_int("do_rotary", 1), 2), 17,
                      KILN_ERROR_SHAPE,
                      "rotary_embedding_dim: expected an even number of at most "
                      "2, found 8");
    refused(graph_of_group("q,k,k,p,p,l,t", "z", onnx_int("sliding_window_cache", 1), 2),
            "reason=\"sliding_window_cache=1\"");
    refused(graph_of_group("q,k,k,p,p,l,t", "z", onnx_text("k_quant_type", "PER_TENSOR"), 2),
            "reason=\"k_quant_type=PER_TENSOR\"");
}

/* --- RotaryEmbedding --- */

static GByteArray *
graph_of_rotary(GByteArray *first, GByteArray *second)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_F32, "B,S,16");
    onnx_input(graph, "p", ONNX_I64, "B,S");
    onnx_input(graph, "c", ONNX_F32, "64,4");
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "com.microsoft:RotaryEmbedding", "x,p,c,c", "z", first, second, NULL);
    return graph;
}

Test(onnx_contrib, rotary)
{
    RETURNS(graph_of_rotary(NULL, NULL), "%z = reshape(", ": f32[B,S,16]\n");
    onnx_expect_error(graph_of_rotary(onnx_int("rotary_embedding_dim", 4), NULL), 17,
                      KILN_ERROR_INVALID,
                      "num_heads: expected 1 or more beside rotary_embedding_dim, found 0");
    onnx_expect_error(
        graph_of_rotary(onnx_int("rotary_embedding_dim", 4), onnx_int("num_heads", 2)), 17,
        KILN_ERROR_SHAPE, "operand 2: expected 2 angles a position, found 4");
    refused(graph_of_rotary(onnx_float("scale", 2), NULL), "scale=2, which no kernel applies");
}

/* --- com.microsoft.nchwc --- */

/* A convolution of 3 channels whose @channels × 1 filter has @weights, of which ReorderOutput keeps
 * @kept. */
static GByteArray *
graph_of_blocks(int64_t channels, const float *weights, int64_t kept)
{
    GByteArray *graph = onnx_graph_new("g");
    g_autofree char *dims = g_strdup_printf("%" G_GINT64_FORMAT ",1,1,1", channels);
    onnx_input(graph, "x", ONNX_F32, "N,1,4,4");
    onnx_initializer(graph,
                     onnx_tensor("w", ONNX_F32, dims, weights, (size_t)channels * sizeof *weights));
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "com.microsoft.nchwc:Conv", "x,w", "c", NULL);
    onnx_node(graph, "com.microsoft.nchwc:ReorderOutput", "c", "z", onnx_int("channels", kept),
              NULL);
    return graph;
}

Test(onnx_contrib, block_sizes)
{
    float weights[48];
    for (int i = 0; i < 48; i++)
        weights[i] = 1;
    /* 24 channels are no multiple of 16, and 20 of 32 leave more than a block of 8. */
    RETURNS(graph_of_blocks(24, weights, 20), "%z = slice(", ": f32[N,20,4,4]\n");
    RETURNS(graph_of_blocks(32, weights, 20), "%z = slice(", ": f32[N,20,4,4]\n");
    RETURNS(graph_of_blocks(24, weights, 24), "%z = identity(", ": f32[N,24,4,4]\n");
    refused(graph_of_blocks(32, weights, 32),
            "neither shapes nor weights tell whether blocks have 8 or 16 channels");
    onnx_expect_error(graph_of_blocks(24, weights, 25), 17, KILN_ERROR_SHAPE,
                      "z (ReorderOutput): channels: expected 1 to 24, found 25");
}
