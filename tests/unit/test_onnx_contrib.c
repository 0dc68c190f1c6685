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
                      "operand 10: expected [1,4,?,?], found f32[1,3,S,T]");
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

/* --- attention of other forms --- */

static GByteArray *
graph_of_heads(const char *op, const char *inputs, const char *outputs, GByteArray *attr)
{
    GByteArray *graph = onnx_graph_new("g");
    g_autofree char *name = g_strconcat("com.microsoft:", op, NULL);
    onnx_input(graph, "q", ONNX_F32, "B,S,8");
    onnx_input(graph, "a", ONNX_F32, "B,S,2,3,4");
    onnx_input(graph, "k", ONNX_F32, "B,2,T,4");
    onnx_input(graph, "x", ONNX_U8, "B,S,6");
    onnx_input(graph, "w", ONNX_U8, "6,24");
    onnx_input(graph, "b", ONNX_F32, "24");
    onnx_input(graph, "s", ONNX_F32, "");
    onnx_input(graph, "n", ONNX_I32, "1");
    onnx_input(graph, "m", ONNX_I32, "6");
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, name, inputs, outputs, onnx_int("num_heads", 2), attr, NULL);
    return graph;
}

Test(onnx_contrib, heads)
{
    RETURNS(graph_of_heads("MultiHeadAttention", "a", "z", NULL), "%z = reshape(", ": f32[B,S,");
    RETURNS(graph_of_heads("MultiHeadAttention", "q,k,k", "z", NULL), "%z = reshape(");
    RETURNS(graph_of_heads("MultiHeadAttention", "q,q,q,,m", "z", NULL), "%z = reshape(");
    RETURNS(graph_of_heads("MultiHeadAttention", "q,k,k", "z,y", NULL), "%y = identity(%k)");
    RETURNS(graph_of_heads("MultiHeadAttention", "q,q,q,,,,k,k,n", "z,y", NULL),
            "%y = tensor_scatter(", ": f32[B,2,T,4]\n");
    RETURNS(graph_of_heads("DecoderMaskedMultiHeadAttention", "q,q,q,,,k,k,n", "z,y",
                           onnx_int("past_present_share_buffer", 1)),
            "%y = tensor_scatter(", ": f32[B,2,T,4]\n");
    RETURNS(graph_of_heads("QAttention", "x,w,b,s,s", "z", NULL), "matmul_integer(", "%z = ");
}

Test(onnx_contrib, heads_that_are_wrong)
{
    refused(graph_of_heads("MultiHeadAttention", "q", "z", NULL), "queries of rank 3 without keys");
    refused(graph_of_heads("MultiHeadAttention", "q,k,q", "z", NULL),
            "keys of rank 4 beside values of rank 3");
    refused(graph_of_heads("MultiHeadAttention", "a,,,b", "z", NULL), "a bias of packed operands");
    onnx_expect_error(graph_of_heads("MultiHeadAttention", "q,q,q,,,,k", "z", NULL), 17,
                      KILN_ERROR_INVALID, "expected operands 6 and 7, found one of them");
    onnx_expect_error(graph_of_heads("MultiHeadAttention", "q,q,q,,,,,,n", "z", NULL), 17,
                      KILN_ERROR_INVALID, "operand 8: expected a buffer beside it");
    refused(graph_of_heads("QAttention", "x,w,b,s,s", "z", onnx_int("do_rotary", 1)), "do_rotary");
}

/* --- tables of few bits --- */

static GByteArray *
graph_of_table(const char *op, GByteArray *first, GByteArray *second)
{
    GByteArray *graph = onnx_graph_new("g");
    g_autofree char *name = g_strconcat("com.microsoft:", op, NULL);
    onnx_input(graph, "d", ONNX_U8, "9,16");
    onnx_input(graph, "i", ONNX_I64, "N");
    onnx_input(graph, "s", ONNX_F32, "9,2");
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, name, "d,i,s", "z", first, second, NULL);
    return graph;
}

Test(onnx_contrib, rows_in_blocks)
{
    RETURNS(graph_of_table("GatherBlockQuantized", onnx_int("block_size", 16), NULL),
            "%z = dequantize_linear(", "block_size=16", ": f32[N,32]\n");
    onnx_expect_error(
        graph_of_table("GatherBlockQuantized", onnx_int("block_size", 16), onnx_int("bits", 3)), 17,
        KILN_ERROR_INVALID, "z (GatherBlockQuantized): bits: expected 2, 4 or 8, found 3");
    onnx_expect_error(graph_of_table("GatherBlockQuantized", onnx_int("gather_axis", 2), NULL), 17,
                      KILN_ERROR_INVALID,
                      "expected axes of rank 2, found quantize_axis=1 and gather_axis=2");
    onnx_expect_error(graph_of_table("GatherBlockQuantized", onnx_int("block_size", 0), NULL), 17,
                      KILN_ERROR_INVALID, "block_size: expected a power of 2 from 16 on, found 0");
}

/* --- others --- */

static GByteArray *
graph_of_other(const char *op, const char *inputs, GByteArray *first, GByteArray *second)
{
    GByteArray *graph = onnx_graph_new("g");
    g_autofree char *name = g_strconcat("com.microsoft:", op, NULL);
    onnx_input(graph, "x", ONNX_F32, "N,4,5,8");
    onnx_input(graph, "g", ONNX_F32, "8");
    onnx_input(graph, "m", ONNX_F32, "M,8");
    onnx_input(graph, "i", ONNX_I32, "M");
    onnx_input(graph, "h", ONNX_I32, "2");
    onnx_input(graph, "w", ONNX_I64, "N,L");
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, name, inputs, "z", first, second, NULL);
    return graph;
}

Test(onnx_contrib, others)
{
    RETURNS(graph_of_other("GroupNorm", "x,g,g", onnx_int("groups", 4), onnx_int("activation", 1)),
            "%z = transpose(", ": f32[N,4,5,8]\n");
    RETURNS(graph_of_other("CDist", "m,m", onnx_text("metric", "euclidean"), NULL), "%z = sqrt(",
            ": f32[M,M]\n");
    RETURNS(graph_of_other("NGramRepeatBlock", "w,m", onnx_int("ngram_size", 2), NULL),
            "%z = scatter_elements(", ": f32[M,8]\n");
}

Test(onnx_contrib, others_that_are_wrong)
{
    onnx_expect_error(
        graph_of_other("GroupNorm", "x,g,g", onnx_int("groups", 4), onnx_int("activation", 2)), 17,
        KILN_ERROR_INVALID, "z (GroupNorm): activation: expected 0 or 1, found 2");
    refused(graph_of_other("CDist", "m,m", onnx_text("metric", "cosine"), NULL), "metric=cosine");
    refused(graph_of_other("Inverse", "w", NULL, NULL), "matrices of order -1");
    refused(graph_of_other("NGramRepeatBlock", "w,m", onnx_int("ngram_size", 0), NULL),
            "ngram_size=0");
    refused(graph_of_other("CropAndResize", "x,m,i,h", NULL, NULL),
            "a size of crops that is not known");
}

/* --- mixtures of experts --- */

static GByteArray *
graph_of_experts(const char *inputs, int64_t k, GByteArray *attr)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_F32, "B,S,8");
    onnx_input(graph, "r", ONNX_F32, "T,4");
    onnx_input(graph, "a", ONNX_F32, "4,6,8");
    onnx_input(graph, "b", ONNX_F32, "4,8,6");
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "com.microsoft:MoE", inputs, "z", onnx_int("k", k), attr, NULL);
    return graph;
}

Test(onnx_contrib, experts)
{
    RETURNS(graph_of_experts("x,r,a,,b", 2, NULL), "top_k(", "%z = reshape(", ": f32[B,S,8]\n");
    onnx_expect_error(graph_of_experts("x,r,a,,b", 5, NULL), 17, KILN_ERROR_INVALID,
                      "z (MoE): k: expected 1 to 4 experts, found 5");
    onnx_expect_error(graph_of_experts("x,r,a,,a", 2, NULL), 17, KILN_ERROR_SHAPE,
                      "operand 4: expected weights of [4,8,6], found [4,6,8]");
    refused(graph_of_experts("x,r,a,,b", 2, onnx_text("activation_type", "relu2")),
            "activation_type=relu2");
    refused(graph_of_experts("x,r,a,,b", 2, onnx_int("use_sparse_mixer", 1)), "use_sparse_mixer");
}

/* --- SparseAttention --- */

/* 2 heads of 4 elements, one layout of 2 blocks, the second of which sees @column, too. */
static GByteArray *
graph_of_blocks_seen(int32_t column, bool known)
{
    const int32_t rows[] = { 0, 1, 3 }, columns[] = { 0, column, 1 };
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "q", ONNX_F32, "B,S,8");
    onnx_input(graph, "p", ONNX_F32, "B,2,P,4");
    onnx_input(graph, "t", ONNX_I32, "1");
    onnx_input(graph, "l", ONNX_I32, "B");
    onnx_initializer(graph, onnx_tensor("r", ONNX_I32, "1,3", rows, sizeof rows));
    if (known)
        onnx_initializer(graph, onnx_tensor("c", ONNX_I32, "1,3", columns, sizeof columns));
    else
        onnx_input(graph, "c", ONNX_I32, "1,3");
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "com.microsoft:SparseAttention", "q,q,q,p,p,r,c,t,l", "z",
              onnx_int("num_heads", 2), onnx_int("kv_num_heads", 2),
              onnx_int("sparse_block_size", 16), NULL);
    return graph;
}

Test(onnx_contrib, blocks_seen)
{
    RETURNS(graph_of_blocks_seen(0, true), "tensor_scatter(", "%z = reshape(", ": f32[B,S,8]\n");
    refused(graph_of_blocks_seen(0, false), "operand 6: blocks that are not known");
    onnx_expect_error(graph_of_blocks_seen(2, true), 17, KILN_ERROR_INVALID,
                      "z (SparseAttention): expected blocks from 0 to 1, found others");
}
