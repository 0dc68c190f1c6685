/* SPDX-License-Identifier: Apache-2.0 */
/* A line for every instruction, with extents to fill in, and a function of that one line. For tests
 * that run all instructions on two targets. */
#ifndef KILN_TESTS_UNIT_INSTR_LINES_H
#define KILN_TESTS_UNIT_INSTR_LINES_H

#include <glib.h>
#include <string.h>

enum {
    MAX_OPERANDS = 12, /* of a line */
};

// clang-format off
/* An instruction, its operands with their access, its attributes. Capitals are extents. Tests try
 * other instructions with operands of one element type and shape. */
static const char *const lines[] = {
    "plugin_op o:f32[A,B] i:f32[A,B] {domain=\"test.ops\", op_type=\"Half\"}",
    /* reductions */
    "arg_max o:i64[1,B] i:f32[A,B] {axis=0}", "arg_max o:i64[A,1] i:f32[A,B] {axis=1}",
    "arg_min o:i64[1,B] i:f32[A,B] {axis=0}", "arg_min o:i64[A,1] i:f32[A,B] {axis=1}",
    "cum_prod o:f32[A,B,C] i:f32[A,B,C] {axis=1}", "cum_prod o:f32[A,B,C] i:f32[A,B,C] {axis=2, exclusive=true, reverse=true}",
    "cum_sum o:f32[A,B,C] i:f32[A,B,C] {axis=1}",
    "softmax o:f32[A,B,C] i:f32[A,B,C] {axis=0}", "softmax o:f32[A,B,C] i:f32[A,B,C] {axis=1}", "softmax o:f32[A,B,C] i:f32[A,B,C] {axis=2}",
    "log_softmax o:f32[A,B,C] i:f32[A,B,C] {axis=0}", "log_softmax o:f32[A,B,C] i:f32[A,B,C] {axis=2}",
    "hardmax o:f32[A,B,C] i:f32[A,B,C] {axis=0}", "hardmax o:f32[A,B,C] i:f32[A,B,C] {axis=2}",
    "top_k o:f32[A,2] o:i64[A,2] i:f32[A,B] {axis=1}", "top_k o:f32[A,0] o:i64[A,0] i:f32[A,B] {axis=1}",
    /* dims that data decides: all of each room is written */
    "non_zero o:i64[A] o:i64[1] i:f32[A]", "non_max_suppression o:i64[0,3] o:i64[1] i:f32[B,A,4] i:f32[B,C,A]",
    "unique o:f32[A] o:i64[1] o:i64[1] o:i64[1] o:i64[1] i:f32[1,A] {axis=0}",
    /* convolution and pooling */
    "conv o:f32[N,O,H,W] i:f32[N,C,H,W] i:f32[O,C,1,1] _", "conv o:f32[N,O,H,W] i:f32[N,C,H,W] i:f32[O,C,3,3] i:f32[O] {pads=[1,1,1,1]}",
    "conv o:f32[N,O,H] i:f32[N,C,H] i:f32[O,C,1] _", "conv o:f32[N,C,H,W] i:f32[N,C,H,W] i:f32[C,1,3,3] _ {group=4, pads=[1,1,1,1]}",
    "conv_transpose o:f32[N,O,H,W] i:f32[N,C,H,W] i:f32[C,O,1,1] _",
    "max_pool o:f32[N,C,H,W] i:f32[N,C,H,W] {kernel_shape=[3,3], pads=[1,1,1,1]}", "max_pool o:f32[N,C,H,W] i:f32[N,C,H,W] {kernel_shape=[1,1]}",
    "average_pool o:f32[N,C,H,W] i:f32[N,C,H,W] {kernel_shape=[3,3], pads=[1,1,1,1]}",
    "lp_pool o:f32[N,C,H,W] i:f32[N,C,H,W] {kernel_shape=[1,1]}",
    "deform_conv o:f32[N,3,H,W] i:f32[N,2,H,W] i:f32[3,2,1,1] i:f32[N,2,H,W] i:f32[3] i:f32[N,1,H,W]",
    "deform_conv o:f32[N,4,H,W] i:f32[N,4,H,W] i:f32[4,2,3,3] i:f32[N,36,H,W] {group=2, offset_group=2, pads=[1,1,1,1]}",
    "max_roi_pool o:f32[A,C,3,2] i:f32[1,C,H,W] i:f32[A,5] {pooled_shape=[3,2]}",
    "max_unpool o:f32[N,C,H,W] i:f32[N,C,H,W] i:i64[N,C,H,W] {kernel_shape=[1,1]}",
    "global_average_pool o:f32[N,C,1,1] i:f32[N,C,H,W]", "global_max_pool o:f32[N,C,1,1] i:f32[N,C,H,W]", "global_lp_pool o:f32[N,C,1,1] i:f32[N,C,H,W]",
    "col2im o:f32[N,C,4,4] i:f32[N,C,16] {block_shape=[1,1]}",
    "col2im o:f32[N,2,5,4] i:f32[N,8,6] {block_shape=[2,2], dilations=[2,1], pads=[0,1,0,0], strides=[1,2]}",
    /* normalisation */
    "batch_normalization o:f32[N,C,H] i:f32[N,C,H] i:f32[C] i:f32[C] i:f32[C] i:f32[C] _ _",
    "batch_normalization o:f32[N,C,H] i:f32[N,C,H] i:f32[C] i:f32[C] i:f32[C] i:f32[C] o:f32[C] o:f32[C] {training_mode=true}",
    "instance_normalization o:f32[N,C,H] i:f32[N,C,H] i:f32[C] i:f32[C]", "group_normalization o:f32[N,C,H] i:f32[N,C,H] i:f32[C] i:f32[C]",
    "layer_normalization o:f32[A,B,C] i:f32[A,B,C] i:f32[C] i:f32[C] _ _ _", "layer_normalization o:f32[A,B,C] i:f32[A,B,C] i:f32[A,B,C] _ _ _ i:f32[A,B,C] {axis=0}",
    "layer_normalization o:f32[A,B,C] i:f32[A,B,C] i:f32[B,C] i:f32[B,C] o:f32[A,1,1] o:f32[A,1,1] _ {axis=1}",
    "layer_normalization o:f32[A,B,C] i:f32[A,B,C] i:f32[A,B,C] _ o:f32[1,1,1] o:f32[1,1,1] _ {axis=0}",
    "rms_normalization o:f32[A,B,C] i:f32[A,B,C] i:f32[C] _", "rms_normalization o:f32[A,B,C] i:f32[A,B,C] i:f32[A,B,C] i:f32[A,B,C] {axis=0}",
    "lrn o:f32[N,C,H,W] i:f32[N,C,H,W] {size=3}", "lp_normalization o:f32[A,B,C] i:f32[A,B,C] {axis=0}", "lp_normalization o:f32[A,B,C] i:f32[A,B,C] {axis=2}",
    "mean_variance_normalization o:f32[N,C,H] i:f32[N,C,H] {axes=[0,2]}",
    /* products and recurrence */
    "matmul o:f32[A,M,N] i:f32[A,M,K] i:f32[A,K,N] _", "matmul o:f32[A,M,N] i:f32[A,M,K] i:f32[K,N] _", "matmul o:f32[M] i:f32[M,K] i:f32[K] _", "matmul o:f32[] i:f32[K] i:f32[K] _",
    "gemm o:f32[M,N] i:f32[M,K] i:f32[K,N] i:f32[N]", "gemm o:f32[M,N] i:f32[K,M] i:f32[N,K] i:f32[M,N] {transA=true, transB=true}",
    "einsum o:f32[A,C] i:f32[A,B] i:f32[B,C] {equation=\"ij,jk->ik\"}", "einsum o:f32[] i:f32[A,B] {equation=\"ij->\"}",
    "attention o:f32[A,M,V] i:f32[A,M,K] i:f32[A,N,K] i:f32[A,N,V] _", "attention o:f32[A,M,V] i:f32[A,M,K] i:f32[A,N,K] i:f32[A,N,V] i:f32[A,M,N]",
    "rnn o:f32[S,1,N,4] o:f32[1,N,4] i:f32[S,N,I] i:f32[1,4,I] i:f32[1,4,4] _ _ _ {hidden_size=4}",
    "gru o:f32[S,1,N,4] o:f32[1,N,4] i:f32[S,N,I] i:f32[1,12,I] i:f32[1,12,4] i:f32[1,24] _ _ {hidden_size=4}",
    "lstm o:f32[S,1,N,4] o:f32[1,N,4] o:f32[1,N,4] i:f32[S,N,I] i:f32[1,16,I] i:f32[1,16,4] i:f32[1,32] _ _ _ _ {hidden_size=4}",
    "lstm o:f32[S,1,N,0] o:f32[1,N,0] o:f32[1,N,0] i:f32[S,N,I] i:f32[1,0,I] i:f32[1,0,0] _ _ _ _ _ {hidden_size=0}",
    "linear_attention o:f32[A,S,16] o:f32[A,2,4,4] i:f32[A,S,16] i:f32[A,S,8] i:f32[A,S,8] i:f32[A,2,4,4] i:f32[A,S,8] i:f32[A,S,2] {kv_num_heads=2, q_num_heads=4}",
    "linear_attention o:f32[A,S,3] _ i:f32[A,S,4] i:f32[A,S,4] i:f32[A,S,3] _ _ _ {kv_num_heads=1, q_num_heads=1, update_rule=\"linear\"}",
    "det o:f32[A,B] i:f32[A,B,4,4]", "det o:f32[A] i:f32[A,0,0]",
    /* movement */
    "transpose o:f32[C,A,B] i:f32[A,B,C] {perm=[2,0,1]}", "transpose o:f32[A,C,B] i:f32[A,B,C] {perm=[0,2,1]}",
    "concat o:f32[A,8] i:f32[A,4] i:f32[A,4] {axis=1}", "concat o:f32[A,B,4] i:f32[A,B,0] i:f32[A,B,4] {axis=2}", "concat o:f32[4,A] i:f32[0,A] i:f32[4,A] {axis=0}",
    "slice o:f32[A,B,2] i:f32[A,B,4] {starts=[0,0,1]}", "slice o:f32[A,B,0] i:f32[A,B,4] {starts=[0,0,1]}",
    "pad o:f32[A,B,6] i:f32[A,B,4] _ {pads=[0,0,1,0,0,1]}", "pad o:f32[A,B,2] i:f32[A,B,0] _ {pads=[0,0,1,0,0,1]}",
    "gather o:f32[A,K,C] i:f32[A,B,C] i:i64[K] {axis=1}", "gather o:f32[K,C] i:f32[B,C] i:i64[K] {axis=0}",
    "gather_elements o:f32[A,K] i:f32[A,B] i:i64[A,K] {axis=1}", "gather_nd o:f32[K,C] i:f32[A,B,C] i:i64[K,2]", "gather_nd o:f32[K,A,C] i:f32[A,C] i:i64[K,0]",
    "scatter_elements o:f32[A,B] i:f32[A,B] i:i64[A,K] i:f32[A,K] {axis=1}", "scatter_nd o:f32[A,C] i:f32[A,C] i:i64[K,1] i:f32[K,C]",
    "tensor_scatter o:f32[A,8,C] i:f32[A,8,C] i:f32[A,4,C] i:i64[A] {axis=1, mode=\"circular\"}", "tensor_scatter o:f32[A,8,C] i:f32[A,8,C] i:f32[A,4,C] _ {axis=1}",
    "expand o:f32[A,B,C] i:f32[B,1]", "expand o:f32[A,B,C] i:f32[A,B,C]", "tile o:f32[A,B,8] i:f32[A,B,4]", "tile o:f32[A,0] i:f32[A,4]",
    "one_hot o:f32[A,B,D] i:i64[A,B] i:f32[2]", "one_hot o:f32[D,A,B] i:i64[A,B] i:f32[2] {axis=0}",
    "range o:f32[A] i:f32[] i:f32[]", "eye_like o:f32[A,B]", "extents o:i64[A]", "trilu o:f32[A,B,C] i:f32[A,B,C]",
    "depth_to_space o:f32[N,C,H,W] i:f32[N,C,H,W]", "depth_to_space o:f32[N,1,8,8] i:f32[N,4,4,4] {blocksize=2}",
    "space_to_depth o:f32[N,C,H,W] i:f32[N,C,H,W]", "space_to_depth o:f32[N,16,2,2] i:f32[N,4,4,4] {blocksize=2}",
    "channel_shuffle o:f32[N,4,H,W] i:f32[N,4,H,W] {group=2}",
    "resize o:f32[N,C,8,8] i:f32[N,C,4,4] {scales=[1,1,2,2]}", "resize o:f32[N,C,8,8] i:f32[N,C,4,4] {mode=\"linear\", scales=[1,1,2,2]}",
    "grid_sample o:f32[N,C,H,W] i:f32[N,C,4,4] i:f32[N,H,W,2]", "grid_sample o:f32[N,C,0,8] i:f32[N,C,0,4] i:f32[N,0,8,2] {mode=\"cubic\"}",
    "roi_align o:f32[A,C,3,2] i:f32[1,C,H,W] i:f32[A,4] i:i64[A] {output_height=3, output_width=2}",
    "roi_align o:f32[A,C,2,3] i:f32[1,C,H,W] i:f32[A,4] i:i64[A] {mode=\"max\", output_height=2, output_width=3, sampling_ratio=2}",
    "affine_grid o:f32[N,H,W,2] i:f32[N,2,3]", "affine_grid o:f32[N,H,W,B,3] i:f32[N,3,4] {align_corners=true}",
    "resize o:f32[N,C,0,8] i:f32[N,C,4,4] {scales=[1,1,0.1,2]}", "resize o:f32[N,C,0,8] i:f32[N,C,4,4] {mode=\"cubic\", scales=[1,1,0.1,2]}",
    "resize o:f32[N,C,8,0] i:f32[N,C,4,4] {mode=\"linear\", scales=[1,1,2,0.1]}", "resize o:f32[N,H,8,C] i:f32[N,4,4,C] {mode=\"linear\", antialias=true}",
    "resize o:f32[N,C,8,8] i:f32[N,C,H,4] {mode=\"linear\"}",
    "reverse_sequence o:f32[S,N,A] i:f32[S,N,A] i:i64[N]",
    "pack o:f32[N,16,H,W]:aBcd16b i:f32[N,16,H,W]", "unpack o:f32[N,16,H,W] i:f32[N,16,H,W]:aBcd16b",
    /* quantization */
    "quantize_linear o:i8[A,B] i:f32[A,B] i:f32[] i:i8[]", "quantize_linear o:u8[A,B,C] i:f32[A,B,C] i:f32[B] i:u8[B] {axis=1}",
    "dequantize_linear o:f32[A,B] i:i8[A,B] i:f32[] i:i8[]", "dequantize_linear o:f32[A,B,C] i:u8[A,B,C] i:f32[B] i:u8[B] {axis=1}",
    "dynamic_quantize_linear o:u8[A,B] o:f32[] o:u8[] i:f32[A,B]",
    "rescale_quantized o:i8[A,B]q(0.5,1) i:i8[A,B]q(0.25,0)", "lookup_table o:i8[A,B] i:i8[A,B] i:i8[256]",
    "matmul_integer o:i32[A,M,N] i:u8[A,M,K] i:u8[A,K,N] _ _", "conv_integer o:i32[N,O,H,W] i:u8[N,C,H,W] i:u8[O,C,1,1] _ _",
    "qlinear_conv o:u8[N,O,H,W] i:u8[N,C,H,W] i:f32[] i:u8[] i:u8[O,C,1,1] i:f32[] i:u8[] i:f32[] i:u8[] _",
    "matmul_nbits o:f32[A,M,12] i:f32[A,M,40] i:u8[12,3,8] i:f32[12,3] i:u8[12,2] _ _ {K=40, N=12, bits=4, block_size=16}",
    "matmul_nbits o:f32[M,5] i:f32[M,40] i:u8[5,2,32] i:f32[5,2] i:f32[5,2] i:f32[5] i:f32[M,5] {K=40, N=5, bits=8, block_size=32}",
    "qlinear_matmul o:u8[M,N] i:u8[M,K] i:f32[] i:u8[] i:u8[K,N] i:f32[] i:u8[] i:f32[] i:u8[]",
    /* signals */
    "dft o:f32[A,8,C,2] i:f32[A,8,C,1] {axis=1, length=[8]}", "dft o:f32[A,7,2] i:f32[A,6,2] {axis=1, inverse=true, length=[7]}",
    "dft o:f32[A,6,2] i:f32[A,12,1] {axis=1, length=[11], onesided=true}", "dft o:f32[A,38,1] i:f32[A,20,2] {axis=1, inverse=true, length=[38], onesided=true}",
    "mel_weight_matrix o:f32[5,A] i:i64[] i:i64[] i:i64[] i:f32[] i:f32[]",
    /* classical machine learning: the trees are leaves without entries */
    "tree_ensemble o:f32[A,3] i:f32[A,B] i:i32[0] i:i32[0] i:f32[0] i:i32[0] i:bool[0] i:i32[1] i:i32[0] i:f32[0] {n_targets=3}",
    "squared_distance o:f32[A,B] i:f32[A,C] i:f32[B,C]", "pairwise_coupling o:f32[A,3] i:f32[A,3] {classes=3}",
    "tf_idf_vectorizer o:f32[A,2] i:i64[A,B] {max_gram_length=2, max_skip_count=1, ngram_counts=[0,1], ngram_indexes=[0,1], pool_int64s=[3,1,3]}",
    "label_encoder o:f32[A,B] i:i64[A,B] i:i64[4] i:f32[4] i:f32[1]",
    /* pictures: any bytes are one of no pixels */
    "image_size o:i64[2] i:u8[A]", "image_decoder o:u8[0,0,3] i:u8[A]",
    /* strings */
    "string_concat o:string[A,B] i:string[A,1] i:string[B]", "string_parts o:i64[A] o:i64[1] i:string[A]", "string_split o:string[A,B] i:string[A]",
    "regex_full_match o:bool[A,B] i:string[A,B] {pattern=\"a*\"}",
    "token_count o:i64[1] i:string[A] {separators=[\" \"]}", "tokenizer o:string[A,B] i:string[A] {tokenexp=\"[a-z]+\"}",
    /* sequences, optionals and maps: all that are given are empty */
    "item_none o:sequence(f32[A])", "item_list o:sequence(f32[A]) i:f32[A] i:f32[B]", "item_list o:optional(f32[A]) i:f32[A]",
    "item_dims o:i64[1] i:sequence(f32[A]) i:i64[] {dims=[0]}", "sequence_insert o:sequence(f32[A]) i:sequence(f32[A]) i:f32[A]",
    "sequence_erase o:sequence(f32[A]) i:sequence(f32[A]) i:i64[]", "sequence_at o:f32[A] i:sequence(f32[A]) i:i64[]",
    "sequence_length o:i64[] i:sequence(f32[A])", "split_to_sequence o:sequence(f32[1,A]) i:f32[4,A] {axis=0}",
    "split_to_sequence o:sequence(f32[2,A]) i:f32[4,A] i:i64[B] {axis=0}", "concat_dims o:i64[1] i:sequence(f32[A]) {axis=0, dims=[0]}",
    "concat_from_sequence o:f32[A,B] i:sequence(f32[A,B]) {axis=0}", "concat_from_sequence o:f32[A,2,B] i:sequence(f32[A,B]) {axis=1, new_axis=true}",
    "optional_has_element o:bool[] i:optional(f32[A])", "optional_get_element o:f32[A] i:optional(f32[A])",
    "zip_map o:sequence(map(i64,f32)) i:f32[A,2] {classlabels_int64s=[1,2]}", "cast_map o:f32[1,A] i:map(i64,f32) {max_map=4}",
    /* the others */
    "random_normal o:f32[A,B]", "random_uniform o:f32[A,B]", "clip o:f32[A,B] i:f32[A,B] i:f32[] i:f32[]", "where o:f32[A,B] i:bool[A,1] i:f32[A,B] i:f32[B]",
    "add o:f32[A,B,C] i:f32[A,1,C] i:f32[B,1]", "stack o:f32[A,B] i:f32[A,B] { relu; mul 0.5 }", "copy o:f32[A,B] i:f32[A,B]",
};
// clang-format on

/* --- programs --- */

typedef struct {
    int64_t extent[26]; /* per capital */
} Extents;

static inline void
append_type(GString *text, const char *type, const Extents *extents)
{
    bool items = strchr(type, '(') != NULL; /* "sequence(…" has a q */
    for (; *type; type++) {
        if (*type >= 'A' && *type <= 'Z' && strchr("[,", type[-1]))
            g_string_append_printf(text, "%" G_GINT64_FORMAT, extents->extent[*type - 'A']);
        else if (*type == 'q' && !items)
            g_string_append(text, " q");
        else
            g_string_append_c(text, *type);
    }
}

/* Returns the text of a function whose one instruction is @line. */
static inline char *
program_text(const char *line, const Extents *extents)
{
    g_autofree char *head = g_strndup(line, strcspn(line, "{"));
    g_auto(GStrv) words = g_strsplit(g_strstrip(head), " ", MAX_OPERANDS + 1);
    g_autoptr(GString) text = g_string_new("func @f {\n");
    g_autoptr(GString) instr = g_string_new(words[0]);
    for (int access = 'i'; access <= 'o'; access += 'o' - 'i') {
        for (int i = 1; words[i]; i++) {
            if (words[i][0] != access)
                continue;
            g_string_append_printf(text, "  %s @v%d : ", access == 'i' ? "input" : "output", i);
            append_type(text, words[i] + 2, extents);
            g_string_append_c(text, '\n');
        }
    }
    for (int i = 1; words[i]; i++) {
        g_string_append(instr, i > 1 ? ", " : " ");
        if (words[i][0] == '_')
            g_string_append_c(instr, '_');
        else
            g_string_append_printf(instr, "@%s @v%d", words[i][0] == 'i' ? "in" : "out", i);
    }
    g_string_append_printf(text, "  %s %s\n}\n", instr->str, line + strcspn(line, "{"));
    return g_strdup(text->str);
}

#endif
