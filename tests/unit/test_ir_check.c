/* SPDX-License-Identifier: Apache-2.0 */
/* What the verifier asks of operand types and attributes: near misses per family, each next to a
 * form that passes. One bad row may not reach a kernel. */
#include "ir/ir.h"

#include <criterion/criterion.h>
#include <string.h>

/* Operand types in order (`_`: absent), then after '|' the rest of the instruction's text. */
typedef struct {
    const char *instr;
    const char *operands;
    const char *error; /* a part of the message; NULL: accepted */
} Case;

// clang-format off
static const Case cases[] = {
    { "copy", "f32[4]; f32[4]", NULL },
    { "copy", "f32[4]; f32[2,2]", "operand 1 (b1): expected f32[4], found f32[2,2]" },
    /* normalizations and their residuals */
    { "layer_normalization", "f32[2,3]; f32[2,3]; f32[3]; f32[3]; _; _; f32[2,3]", NULL },
    { "layer_normalization", "f32[2,3]; f32[2,3]; f32[3]; _; _; _; f32[3]", "operand 6 (b6): expected f32[2,3], found f32[3]" },
    { "rms_normalization", "f16[2,3]; f16[2,3]; f16[3]; f16[2,3]", NULL },
    { "rms_normalization", "f32[2,3]; f32[2,3]; f32[3]; f16[2,3]", "operand 3 (b3): expected f32[2,3], found f16[2,3]" },
    { "rms_normalization", "i32[2,3]; i32[2,3]; i32[3]; i32[2,3]", "floats in front of" },
    { "layer_normalization", "f32[2,3]; f64[2,3]; f32[3]; f32[3]; _; _; _", "(layer_normalization)" },
    { "layer_normalization", "f64[2,3]; f64[2,3]; f64[3]; f64[3]; _; _; _", NULL },
    /* tails */
    { "conv", "f32[1,2,4,4]; f32[1,3,4,4]; f32[2,3,1,1] | {activation=\"clip\", activation_params=[0,6]}", NULL },
    { "conv", "f32[1,2,4,4]; f32[1,3,4,4]; f32[2,3,1,1] | {activation=\"clip\", activation_params=[0]}", "activation_params: expected 2 numbers for clip, found 1" },
    { "conv", "f32[1,2,4,4]; f32[1,3,4,4]; f32[2,3,1,1] | {activation_params=[6]}", "activation_params: expected none without an activation, found 1" },
    { "conv", "f32[1,2,4,4]; f32[1,3,4,4]; f32[2,3,1,1] | {activation=\"exp\"}", "activation: expected one of none, clip, elu" },
    { "conv_transpose", "f32[1,2,4]; f32[1,3,4,4]; f32[3,2,1,1]", "operand 0 (b0): expected the rank of the data" },
    /* sequences, optionals and maps */
    { "item_none", "sequence(f32[2])", NULL },
    { "item_none", "f32[2]", "operand 0 (b0): expected a sequence or optional" },
    { "item_list", "sequence(f32[2]); f32[2]; f32[3]", NULL },
    { "item_list", "optional(f32[2]); f32[2]; f32[2]", "expected one value to be put in, found 2" },
    { "item_list", "sequence(f32[2]); optional(f32[2])", "operand 1: expected a plain tensor, a sequence or a map" },
    { "item_list", "sequence(f32[1,16,2,2]); f32[1,16,2,2]:aBcd16b", "operand 1: expected a plain tensor" },
    { "item_dims", "i64[1]; sequence(f32[?,3]); i64[] | {dims=[0]}", NULL },
    { "item_dims", "i64[2]; sequence(f32[?,3]); i64[] | {dims=[0]}", "operand 0 (b0): expected an i64 for each of dims" },
    { "item_dims", "i64[1]; sequence(f32[?,3]); i64[] | {dims=[8]}", "dims: expected numbers from 0 to 7, found 8" },
    { "item_dims", "i64[1]; f32[2]; i64[] | {dims=[0]}", "operand 1 (b1): expected a sequence or optional" },
    { "sequence_at", "f32[2]; sequence(f32[2]); i32[]", NULL },
    { "sequence_at", "f32[2]; optional(f32[2]); i64[]", "operand 1 (b1): expected a sequence" },
    { "sequence_at", "f32[2]; sequence(f32[2]); f32[]", "operand 2 (b2): expected one integer" },
    { "sequence_insert", "sequence(f32[2]); sequence(f32[2]); f32[2]; i64[]", NULL },
    { "sequence_insert", "sequence(f32[2]); sequence(f32[2]); optional(f32[2]); _", "operand 2 (b2): expected a tensor or a map" },
    { "sequence_insert", "sequence(f32[2]); sequence(f32[2]); f32[2]; i64[2]", "operand 3 (b3): expected one integer" },
    { "sequence_erase", "sequence(f32[2]); sequence(f32[2]); _", NULL },
    { "sequence_erase", "f32[2]; sequence(f32[2]); _", "operand 0 (b0): expected a sequence" },
    { "sequence_length", "i64[]; sequence(f32[2])", NULL },
    { "sequence_length", "i32[]; sequence(f32[2])", "operand 0 (b0): expected i64[]" },
    { "split_to_sequence", "sequence(f32[1,3]); f32[2,3]; _ | {axis=-2}", NULL },
    { "split_to_sequence", "sequence(f32[1,3]); f32[2,3]; _ | {axis=2}", "axis: expected a number from -2 to 1, found 2" },
    { "split_to_sequence", "sequence(f32[1,3]); f32[2,3]; f32[2]", "operand 2 (b2): expected a list of integers" },
    { "concat_dims", "i64[1]; sequence(f32[?]) | {dims=[0]}", NULL },
    { "concat_dims", "i64[1]; sequence(f32[?]) | {axis=-1, dims=[0]}", "axis: expected a number from 0 to 7, found -1" },
    { "concat_from_sequence", "f32[4]; sequence(f32[?])", NULL },
    { "concat_from_sequence", "f32[4]; sequence(f32[?]) | {axis=1}", "axis: expected a number from 0 to 0, found 1" },
    { "concat_from_sequence", "f32[4]; sequence(f32[?]) | {axis=-1}", "axis: expected a number from 0 to 0, found -1" },
    { "optional_has_element", "bool[]; optional(f32[2])", NULL },
    { "optional_has_element", "bool[]; sequence(f32[2])", "operand 1 (b1): expected" },
    { "optional_get_element", "f32[2]; optional(f32[2])", NULL },
    { "optional_get_element", "f32[2]; f32[2]", "operand 1 (b1): expected" },
    { "zip_map", "sequence(map(i64,f32)); f32[4,2] | {classlabels_int64s=[1,2]}", NULL },
    { "zip_map", "sequence(map(i64,f32)); f32[4,3] | {classlabels_int64s=[1,2]}", "operand 1 (b1): expected rows of an f32 for each label" },
    { "map_length", "i64[1]; map(i64,f32)", NULL },
    { "map_length", "i64[]; map(i64,f32)", "operand 0 (b0): expected an i64 for each of dims" },
    { "cast_map", "f32[1,3]; map(i64,f32)", NULL },
    { "cast_map", "f32[1,3]; map(string,f32)", "operand 1 (b1): expected a map from i64" },
    { "dict_vectorizer", "f32[1,2]; map(i64,f32) | {int64_vocabulary=[4,5]}", NULL },
    { "dict_vectorizer", "f32[1,3]; map(i64,f32) | {int64_vocabulary=[4,5]}", "operand 0 (b0): expected a value for each word of one vocabulary" },
    { "copy", "sequence(f32[2]); sequence(f32[2])", NULL },
    { "neg", "sequence(f32[2]); sequence(f32[2])", "operand 0 (b0): expected a tensor, found sequence(f32[*])" },
    { "add", "f32[]; f32[]; optional(f32[])", "operand 2 (b2): expected a tensor, found optional(f32[*])" },
    { "where", "map(i64,f32); bool[]; map(i64,f32); map(i64,f32)", "operand 0 (b0): expected a tensor" },
    { "concat", "sequence(f32[2]); sequence(f32[2]); sequence(f32[2])", "operand 0 (b0): expected a tensor" },
    { "tile", "sequence(f32[2]); sequence(f32[2])", "operand 0 (b0): expected a tensor" },
    /* recurrence */
    { "rnn", "f32[3,1,2,2]; _; f32[3,2,2]; f32[1,2,2]; f32[2,2] | {hidden_size=2}", "expected rank 3" },
    { "gru", "f32[4,1,2,4]; _; f32[4,2,3]; f32[1,12,3]; f32[1,12,4]; _; _; _ | {hidden_size=4}", NULL },
    { "gru", "f32[4,1,2,4]; _; f64[4,2,3]; f32[1,12,3]; f32[1,12,4]; _; _; _ | {hidden_size=4}", "(gru)" },
    { "gru", "f32[4,1,2,4]; _; i8[4,2,3]; f32[1,12,3]; f32[1,12,4]; _; _; _ | {hidden_size=4}", "(gru)" },
    /* element-wise */
    { "relu", "f32[4]; f32[4]", NULL },
    { "relu", "f32[5]; f32[4]", "operand 0 (b0): expected f32[4], found f32[5]" },
    { "relu", "f16[4]; f32[4]", "expected f32[4], found f16[4]" },
    { "relu", "u8[4]; u8[4]", NULL }, /* whether a kernel takes bytes is not asked here */
    { "relu", "u8[5]; u8[4]", "expected" },
    { "relu", "f32[1,16,2,2]:aBcd16b; f32[1,16,2,2]", "expected layout aBcd16b, found plain" },
    { "cast", "i8[4]; f32[4]", NULL },
    { "cast", "i8[3]; f32[4]", "expected i8[4]" },
    { "add", "f32[2,3]; f32[2,1]; f32[3]", NULL },
    { "add", "f32[2,3]; f32[2,1]; f32[2]", "(add)" },
    { "add", "f32[2,2]; f32[2,1]; f32[3]", "expected f32[2,3]" },
    { "add", "f32[2]; f32[2]; f16[2]", "(add)" },
    { "equal", "bool[2]; i32[2]; i32[2]", NULL },
    { "equal", "i32[2]; i32[2]; i32[2]", "expected bool[2]" },
    { "where", "f32[2]; bool[2]; f32[2]; f32[]", NULL },
    { "where", "f32[2]; f32[2]; f32[2]; f32[]", "(where)" },
    { "clip", "f32[2]; f32[2]; f32[]", NULL },
    { "clip", "f32[2]; f32[2]; f32[2]", "(clip)" },
    { "prelu", "f32[2,3]; f32[2,3]; f32[3]", NULL },
    { "prelu", "f32[2,3]; f32[2,3]; f32[2]", "(prelu)" },
    { "mod", "f32[2]; f32[2]; f32[2]", NULL },
    /* along axes */
    { "reduce_sum", "f32[2,1]; f32[2,3] | {axes=[1]}", NULL },
    { "reduce_sum", "f32[2]; f32[2,3] | {axes=[1]}", NULL },
    { "reduce_sum", "f32[3]; f32[2,3] | {axes=[1]}", "expected f32[2]" },
    { "reduce_sum", "f32[2]; f32[2,3] | {axes=[2]}", "(reduce_sum)" },
    { "reduce_sum", "f32[2,3]; f32[2,3]", NULL }, /* over no axis */
    { "arg_max", "i64[2]; f32[2,3] | {axis=1}", NULL },
    { "arg_max", "i32[2]; f32[2,3] | {axis=1}", "expected i64[2]" },
    { "softmax", "f32[2,3]; f32[2,3] | {axis=1}", NULL },
    { "softmax", "f32[2,3]; f32[2,3] | {axis=2}", "(softmax)" },
    { "cum_sum", "f32[2,3]; f32[2,3] | {axis=1}", NULL },
    { "cum_sum", "f32[2,3]; f32[2,3] | {axis=-3}", "(cum_sum)" },
    { "top_k", "f32[2,2]; i64[2,2]; f32[2,3] | {axis=1}", NULL },
    { "top_k", "f32[2,4]; i64[2,4]; f32[2,3] | {axis=1}", "(top_k)" },
    { "top_k", "f32[2,2]; i64[2,1]; f32[2,3] | {axis=1}", "operand 1 (b1): expected i64[2,2]" },
    { "one_hot", "f32[2,5]; i64[2]; f32[2]", NULL },
    { "one_hot", "f32[3,5]; i64[2]; f32[2]", "expected f32[2,5]" },
    { "one_hot", "f32[2,5]; i64[2]; f32[3]", "(one_hot)" },
    { "mean_variance_normalization", "f32[2,3]; f32[2,3] | {axes=[0]}", NULL },
    { "mean_variance_normalization", "f32[2,3]; f32[2,3]", "axes: expected 1 elements, found 0" },
    /* windows */
    { "conv", "f32[1,4,6,6]; f32[1,3,8,8]; f32[4,3,3,3]", NULL },
    { "conv", "f32[1,4,7,6]; f32[1,3,8,8]; f32[4,3,3,3]", "expected f32[1,4,6,6]" },
    { "conv", "f32[1,4,6,6]; f32[1,3,8,8]; f32[4,3,3,3] | {strides=[1]}", "strides: expected 2 elements" },
    { "conv", "f32[1,4,6,6]; f32[1,3,8,8]; f32[4,3,3,3] | {pads=[0,0]}", "pads: expected 4 elements" },
    { "conv", "f32[1,4,6,6]; f32[1,3,8,8]; f32[4,2,3,3]", "channels" },
    { "conv", "f32[1,4,6,6]; f32[1,3,8,8]; f32[4,3,3,3]; f32[3]", "(conv)" },
    { "conv", "f32[1,4]; f32[1,3]; f32[4,3]", "rank 3 or more" },
    { "conv_transpose", "f32[1,4,9]; f32[1,3,4]; f32[3,4,3] | {strides=[2]}", NULL },
    { "conv_transpose", "f32[1,4,10]; f32[1,3,4]; f32[3,4,3] | {strides=[2], pads=[0,-1]}", NULL },
    { "conv_transpose", "f32[1,5,9]; f32[1,3,4]; f32[3,4,3] | {strides=[2]}", "expected f32[1,4,9]" },
    { "max_pool", "f32[1,1,2]; f32[1,1,5] | {kernel_shape=[2], strides=[2]}", NULL },
    { "max_pool", "f32[1,1,3]; f32[1,1,5] | {kernel_shape=[2], strides=[2]}", NULL }, /* rounded up */
    { "max_pool", "f32[1,1,4]; f32[1,1,5] | {kernel_shape=[2], strides=[2]}", "(max_pool)" },
    { "max_pool", "f32[1,1,2]; f32[1,1,5]; i32[1,1,2] | {kernel_shape=[2], strides=[2]}", "operand 2 (b2): expected i64[1,1" },
    { "deform_conv", "f32[1,6,6,7]; f32[1,4,8,9]; f32[6,4,3,3]; f32[1,18,6,7]", NULL },
    { "deform_conv", "f32[1,6,6,6]; f32[1,4,8,9]; f32[6,4,3,3]; f32[1,18,6,7]", "expected f32[1,6,6,7]" },
    { "deform_conv", "f32[1,6,6,7]; f32[1,4,8,9]; f32[6,4,3,3]; f32[1,18,6,7] | {pads=[0]}", "pads: expected 4 elements" },
    { "max_roi_pool", "f32[5,3,2,1]; f32[1,3,8,9]; f32[5,5] | {pooled_shape=[2,1]}", NULL },
    { "max_roi_pool", "f32[5,3,2,2]; f32[1,3,8,9]; f32[5,5] | {pooled_shape=[2,1]}", "expected f32[5,3,2,1]" },
    { "image_decoder", "u8[4,5,3]; u8[9]", NULL },
    { "image_decoder", "u8[4,5,1]; u8[9]", "expected u8[4,5,3]" },
    { "image_decoder", "u8[4,5]; u8[9]", "rank 3" },
    { "roi_align", "f32[5,3,2,1]; f32[1,3,8,9]; f32[5,4]; i64[5] | {output_height=2}", NULL },
    { "roi_align", "f32[5,3,1,1]; f32[1,3,8,9]; f32[5,4]; i64[5] | {output_height=2}", "expected f32[5,3,2,1]" },
    { "max_unpool", "f32[1,1,4]; f32[1,1,2]; i64[1,1,2] | {kernel_shape=[2], strides=[2]}", NULL },
    { "max_unpool", "f32[1,1,4]; f32[1,1,2]; i64[1,1,3] | {kernel_shape=[2], strides=[2]}", "(max_unpool)" },
    { "global_average_pool", "f32[1,3,1,1]; f32[1,3,4,4]", NULL },
    { "global_average_pool", "f32[1,3]; f32[1,3,4,4]", "expected f32[1,3,1,1]" },
    /* normalisation */
    { "batch_normalization", "f32[1,3,2]; f32[1,3,2]; f32[3]; f32[3]; f32[3]; f32[3]", NULL },
    { "batch_normalization", "f32[1,3,2]; f32[1,3,2]; f32[3]; f32[3]; f32[2]; f32[3]", "(batch_normalization)" },
    { "batch_normalization", "f32[1,2,3]; f32[1,2,3]; f32[3]; f32[3]; f32[3]; f32[3] | {axis=-1}", NULL },
    { "batch_normalization", "f32[1,2,3]; f32[1,2,3]; f32[2]; f32[2]; f32[2]; f32[2] | {axis=2}", "(batch_normalization)" },
    { "batch_normalization", "f32[1,2,3]; f32[1,2,3]; f32[3]; f32[3]; f32[3]; f32[3] | {axis=3}", "expected a number from -3 to 2" },
    { "layer_normalization", "f32[2,3]; f32[2,3]; f32[3]; _; f32[2,1]", NULL },
    { "layer_normalization", "f32[2,3]; f32[2,3]; f32[3]; _; f32[2,3]", "operand 4 (b4): expected f32[2,1]" },
    /* products and recurrence */
    { "matmul", "f32[2,4]; f32[2,3]; f32[3,4]", NULL },
    { "matmul", "f32[2,4]; f32[2,3]; f32[2,4]", "(matmul)" },
    { "matmul", "f32[2,4]; f32[2,3]; bf16[3,4]", NULL },
    { "matmul", "f32[2,4]; bf16[2,3]; f32[3,4]", "operand 1" },
    { "matmul", "f32[2,4]; f32[2,3]; f64[3,4]", "(matmul)" },
    { "gemm", "f32[2,4]; f32[2,3]; f16[4,3] | {transB=true}", NULL },
    { "gemm", "f32[2,4]; f32[3,2]; f32[4,3] | {transA=true, transB=true}", NULL },
    { "gemm", "f32[2,4]; f32[2,3]; f32[4,3]", "(gemm)" },
    { "einsum", "f32[2,4]; f32[2,3]; f32[3,4] | {equation=\"ij,jk->ik\"}", NULL },
    { "einsum", "f32[2,4]; f32[2,3]; f32[3,4]", "(einsum)" },
    { "einsum", "f32[2]", "@in operand 0 is required" },
    { "rnn", "f32[3,1,2,2]; _; f32[3,2,2]; f32[1,2,2]; f32[1,2,2] | {hidden_size=2}", NULL },
    { "rnn", "f32[3,1,2,2]; _; f32[3,2,2]; f32[1,2,2]; f32[1,2,2]", "hidden_size" },
    { "rnn", "f32[3,1,2,2]; _; f32[3,2,2]; f32[1,2,2]; f32[1,2,2] | {hidden_size=2, activations=[\"Tanh\",\"Tanh\"]}", "activations: expected 1 elements" },
    /* movement */
    { "transpose", "f32[3,2]; f32[2,3] | {perm=[1,0]}", NULL },
    { "transpose", "f32[3,2]; f32[2,3]", "perm: expected 2 elements, found 0" },
    { "transpose", "f32[2,3]; f32[2,3] | {perm=[1,0]}", "expected f32[3,2]" },
    { "transpose", "f32[3,2]; f32[2,3] | {perm=[1,1]}", "(transpose)" },
    { "concat", "f32[2,5]; f32[2,3]; f32[2,2] | {axis=1}", NULL },
    { "concat", "f32[2,4]; f32[2,3]; f32[2,2] | {axis=1}", "expected f32[2,5]" },
    { "concat", "f32[2,5] | {axis=1}", "@in operand 0 is required" },
    { "slice", "f32[2]; f32[5] | {starts=[4], steps=[-3]}", NULL },
    { "slice", "f32[3]; f32[5] | {starts=[4], steps=[-3]}", "3 elements from 4 in steps of -3 do not lie inside 5" },
    { "slice", "f32[2]; f32[5] | {starts=[5], steps=[-3]}", "do not lie inside" },
    { "slice", "f32[2]; f32[5] | {starts=[0], steps=[0]}", "do not lie inside" },
    { "slice", "f32[3]; f32[5] | {starts=[2], steps=[9223372036854775807]}", "do not lie inside" },
    { "slice", "f32[0]; f32[0] | {starts=[7]}", NULL },
    { "slice", "f16[2]; f32[5]", "the element type of operand 1" },
    { "pad", "f32[4]; f32[3] | {pads=[2,-1]}", NULL },
    { "pad", "f32[4]; f32[3] | {pads=[2,1]}", "expected f32[6]" },
    { "pad", "f32[4]; f32[3] | {pads=[1]}", "pads: expected 2 elements" },
    { "gather", "f32[2,2]; f32[3,2]; i64[2]", NULL },
    { "gather", "f32[3,2]; f32[3,2]; i64[2]", "expected f32[2,2]" },
    { "gather", "f32[2,2]; f32[3,2]; f32[2]", "(gather)" },
    { "gather_elements", "i64[2,2]; i64[3,2]; i64[2,2]", NULL },
    { "scatter_nd", "f32[3,2]; f32[3,2]; i64[2,1]; f32[2,2]", NULL },
    { "scatter_nd", "f32[3,2]; f32[3,2]; i64[2,1]; f32[2,3]", "(scatter_nd)" },
    { "expand", "f32[2,3]; f32[3]", NULL },
    { "expand", "f32[2,3]; f32[2]", "(expand)" },
    { "tile", "f32[4,3]; f32[2,3]", NULL },
    { "tile", "f32[5,3]; f32[2,3]", "multiples of operand 1's dims" },
    { "tile", "f32[5,3]; f32[0,3]", "multiples of operand 1's dims" },
    { "range", "f32[4]; f32[]; f32[1]", NULL },
    { "range", "f32[4]; f32[]; i32[]", "one element of the result's type" },
    { "extents", "i64[2] | {values=[3,4]}", NULL },
    { "extents", "i64[2]", NULL },
    { "extents", "i64[2] | {values=[3]}", "values: expected 2 elements" },
    { "extents", "f32[2] | {values=[3,4]}", NULL },
    { "extents", "u8[2] | {values=[3,4]}", "i64, i32, bool, f32 or f64" },
    { "eye_like", "f32[3,4]", NULL },
    { "eye_like", "f32[3]", "rank 2" },
    { "grid_sample", "f32[1,2,3]; f32[1,2,5]; f32[1,3,1]", NULL },
    { "grid_sample", "f32[1,2,4]; f32[1,2,5]; f32[1,3,1]", "(grid_sample)" },
    { "grid_sample", "f32[1,2,3]; f32[1,2,5]; f32[1,3,2]", "(grid_sample)" },
    { "grid_sample", "f32[1,2,3]; f32[1,2,5]; f32[1,3,1] | {padding_mode=\"none\"}", "padding_mode" },
    { "resize", "f32[1,1,4]; f32[1,1,2] | {scales=[1,1,2]}", NULL },
    { "resize", "f32[1,1,4]; f32[1,1,2]", NULL },
    { "resize", "f32[1,1,4]; f32[1,1,2] | {scales=[1,2]}", "scales: expected 3 elements, found 2" },
    { "resize", "f32[1,1,4]; f32[1,1,2] | {scales=[1,1,0]}", "above 0" },
    { "resize", "f32[1,1,4]; f32[1,1,2] | {scales=[1,1,2], mode=\"best\"}", "mode" },
    { "resize", "f32[1,1,4]; f32[1,1,2] | {scales=[1,1,2], coordinate_transformation_mode=\"tf_crop_and_resize\"}", "roi: expected 6 elements" },
    { "resize", "f32[1,1,4]; f32[1,1,0] | {scales=[1,1,2]}", "no elements" },
    { "depth_to_space", "f32[1,1,2,2]; f32[1,4,1,1] | {blocksize=2}", NULL },
    { "depth_to_space", "f32[1,1,2,2]; f32[1,3,1,1] | {blocksize=2}", "(depth_to_space)" },
    { "pack", "f32[1,3,2]:aBc2b; f32[1,3,2]", NULL },
    { "pack", "f32[1,2,3]:aBc2b; f32[1,3,2]", "the dims of f32[1,2,3]:aBc2b" },
    /* quantization, random */
    { "quantize_linear", "u8[2,3]; f32[2,3]; f32[3] | {axis=1}", NULL },
    { "quantize_linear", "u8[2,3]; f32[2,3]; f32[2] | {axis=1}", "(quantize_linear)" },
    { "rescale_quantized", "i8[2] q(1,0); i8[2] q(2,0)", NULL },
    { "rescale_quantized", "i8[3] q(1,0); i8[2] q(2,0)", "the dims of" },
    { "random_normal", "f32[2]", NULL },
    { "random_normal", "i32[2]", "expected floats" },
    /* stacks */
    { "stack", "f32[2,3]; f32[3]; f32[2,1] | { relu; mul 0.5; add @b2 }", NULL },
    { "stack", "f32[2,3]; f32[2,3] | { t0: relu; t1: mul(@b1, 0.5); sub(t0, t1) }", NULL },
    { "stack", "f32[2,3]; f32[2] | { relu }", "dims that broadcast to the result's" },
    { "stack", "f32[2,3]; f32[3]; f32[4] | { add @b2 }", "dims that broadcast to the result's" },
    { "stack", "f32[2,3]; f32[3] | { add }", "step 0 (add): expected 2 sources, found 1" },
    { "stack", "f32[2,3]; f32[3] | { relu; relu 1 }", "step 1 (relu): expected 1 sources, found 2" },
    { "stack", "f32[2,3]; f32[3] | { clip 0 }", "step 0 (clip): expected 3 sources, found 2" },
    { "stack", "f32[2,3]; f32[3] | { softmax }", "step 0 (softmax): expected an element-wise instruction or a" },
    { "stack", "f32[2,3]; f32[3] | { transpose }", "step 0 (transpose): expected an element-wise" },
    { "stack", "f32[2,3]; f32[3] | { copy }", NULL },
    { "stack", "f32[2,3]; f32[3] | { add(1, 2) : f32 }", "expected a source that is no number" },
    { "stack", "f32[2]; bool[2]; f32[2] | { where @b2, 0 }", NULL },
    { "stack", "f32[2]; bool[2] | { where 1, 0 }", NULL },
    { "stack", "f32[2]; f32[2] | { where 1, 0 }", "expected a condition of bool" },
    { "stack", "f32[2]; f32[2] | { where(1, @b1, 0) }", "expected a condition that is no number" },
    { "stack", "f32[2]; f32[2]; i32[2] | { add @b2 }", "expected sources of one element type" },
    { "stack", "f32[2]; f32[2]; i32[2] | { pow @b2 }", NULL },
    { "stack", "f32[2]; i32[2]; f32[2] | { cast : f32; add @b2 }", NULL },
    { "stack", "f32[2]; f32[2] | { relu : f16; cast }", "expected a result of f32, found f16" },
    { "stack", "f16[2]; f32[2] | { relu }", "its result is f32[2], but b0 is f16[2]" },
    { "stack", "f32[2]; f32[2]; f32[2] | { relu }", "operand 2 (b2): no step reads it" },
    { "stack", "f32[2]; f32[2] | { relu; exp(@b1) }", "step 0 (relu): nothing reads or stores" },
    { "stack", "f32[2]; f32[2,3]; f32[3] | { mul @b2; reduce_sum {axes=[1]} }", NULL },
    { "stack", "f32[2,1]; f32[2,1]; f32[3] | { mul @b2; reduce_l2 {axes=[-1]} }", NULL },
    { "stack", "f32[1,2,1,1]; f32[1,2,4,3] | { relu; global_max_pool }", NULL },
    { "stack", "f32[1]; f32[2,3] | { relu; reduce_sum {axes=[0,1]} }", "its result is f32[], but b0 is f32[1]" },
    { "stack", "f32[3]; f32[2,3] | { relu; reduce_sum {axes=[0]} }", "step 1 (reduce_sum): expected axes that are the last of the space" },
    { "stack", "f32[2,3]; f32[2,3] | { relu; reduce_sum }", "expected axes that are the last" },
    { "stack", "f32[2,1]; f32[2,3] | { reduce_sum {axes=[7]} }", "expected axes that are the last" },
    { "stack", "f32[2,1]; f32[2,3] | { reduce_sum {axes=[1]} -> @b0; relu }", "step 1 (relu): expected no result of a reduction" },
    { "stack", "f32[2,3]; f32[2,3] | { t0: reduce_max {axes=[1]}; relu(@b1) }", "step 0 (reduce_max): expected an @out operand" },
    { "stack", "f32[2,1]; f32[2,3]; f32[4] | { add @b2; reduce_sum {axes=[1]} }", "expected @in operands that broadcast" },
    { "stack", "f32[2,3]; f32[2,3] | { reduce_log_sum_exp {axes=[1]} }", "expected an element-wise instruction or a reduction" },
    { "stack", "f16[2,1]; f32[2,3] | { reduce_sum {axes=[1]} }", "its result is f32[2,1], but b0 is f16[2,1]" },
    { "stack", "f32[2,1]; i8[2,3] q(1,0) | { reduce_max {axes=[1]} }", "expected types that are not quantized" },
    { "stack", "i8[2] q(1,0); f32[2] | { relu; quantize_linear }", NULL },
    { "stack", "f32[2]; f32[2] | { quantize_linear : i8 q(1,0); dequantize_linear }", NULL },
    { "stack", "f32[2]; f32[2] | { quantize_linear : i8; cast }", "expected quantized types" },
    { "stack", "i8[2] q(1,0); i8[2] q(1,0) | { relu }", "expected types that are not quantized" },
    { "stack", "i8[2] q(1,0); i8[2] q(1,0) | { copy }", NULL },
    { "stack", "i8[2] q(1,0); i8[2] q(2,0) | { copy }", "" },
    { "stack", "f32[2]; f32[2] | { quantize_linear : i8 q(1,200); dequantize_linear }", "zero point" },
    { "stack", "f32[2]; f32[2] | { quantize_linear : i8 q(axis=1,[1],[0]); dequantize_linear }", "axis" },
};
// clang-format on

/* A func of one instruction; buffer @b<i> is operand i. */
static char *
func_text(const Case *c)
{
    static const char *const accesses[] = { "in", "out", "inout" };
    KilnInstrKind kind;
    cr_assert(kiln_instr_from_name(c->instr, &kind), "%s", c->instr);
    g_auto(GStrv) parts = g_strsplit(c->operands, "|", 2);
    g_auto(GStrv) types = g_strsplit(parts[0], ";", -1);
    g_autoptr(GString) buffers = g_string_new(NULL);
    g_autoptr(GString) uses = g_string_new(NULL);
    for (uint32_t i = 0; types[i]; i++) {
        KilnAccess access;
        bool optional, absent = strcmp(g_strstrip(types[i]), "_") == 0;
        if (!kiln_instr_access(kind, i, &access, &optional))
            access = i ? KILN_ACCESS_IN : KILN_ACCESS_OUT; /* stack */
        g_string_append(uses, i ? ", " : "");
        if (absent) {
            g_string_append_c(uses, '_');
            continue;
        }
        g_string_append_printf(buffers, "  %s @b%u : %s\n",
                               access == KILN_ACCESS_IN ? "input" : "output", i, types[i]);
        g_string_append_printf(uses, "@%s @b%u", accesses[access], i);
    }
    return g_strdup_printf("func @f {\n%s  %s %s %s\n}\n", buffers->str, c->instr, uses->str,
                           parts[1] ? parts[1] : "");
}

Test(ir_check, types_and_attributes)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = func_text(&cases[i]);
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "case", &error);
        if (!cases[i].error) {
            cr_expect(ir, "%s\n%s", error ? error->message : "", text);
            continue;
        }
        cr_expect(!ir, "accepted:\n%s", text);
        cr_expect(!error || strstr(error->message, cases[i].error), "%s\nexpected: %s\n%s",
                  error->message, cases[i].error, text);
        cr_expect(!error || g_error_matches(error, KILN_ERROR, KILN_ERROR_INVALID), "%s",
                  error->message);
    }
}

/* --- calls --- */

static void
expect_call(const char *declared, const char *error_part)
{
    g_autofree char *text = g_strdup_printf("func @f {\n  input @x : f32[2]\n  output @y : f32[2]\n"
                                            "  call @r0 @out @y, @in @x\n}\n%s\n",
                                            declared);
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "call", &error);
    if (!error_part) {
        cr_expect(ir, "%s", error ? error->message : "");
        return;
    }
    cr_assert(!ir);
    cr_expect(strstr(error->message, error_part), "%s", error->message);
}

Test(ir_check, calls_are_as_declared)
{
    expect_call("declare @r0(f32[2]) -> f32[2]", NULL);
    expect_call("", "@r0 is not declared");
    expect_call("declare @r0(f32[2], f32[2]) -> f32[2]", "expected 3 operands, found 2");
    expect_call("declare @r0(f32[3]) -> f32[2]", "operand 1 (x): expected f32[3], found f32[2]");
}

Test(ir_check, calls_get_dense_operands_in_order)
{
    static const char *const calls[][2] = {
        { "call @r0 @out @y, @in %dense", NULL },
        { "call @r0 @in %dense, @out @y", "expected @in, found @out" },
        { "call @r0 @out @y, _", "operand 1 is required, found none" },
        { "call @r0 @out @y, @in %column", "expected a dense buffer, not rows with gaps" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
        g_autofree char *text =
            g_strdup_printf("func @f {\n  input @x : f32[2,4]\n  output @y : f32[2]\n"
                            "  %%dense = view @x {offset=2} : f32[2]\n"
                            "  %%column = view @x {offset=1, rows=2, pitch=4} : f32[2]\n  %s\n}\n"
                            "declare @r0(f32[2]) -> f32[2]\n",
                            calls[i][0]);
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "call", &error);
        cr_assert_eq(ir == NULL, calls[i][1] != NULL, "%s", error ? error->message : calls[i][0]);
        cr_expect(!error || strstr(error->message, calls[i][1]), "%s", error ? error->message : "");
    }
}
