/* SPDX-License-Identifier: Apache-2.0 */
/* How each op is lowered. What has no row becomes the instruction of the same name, operands and
 * results in order, attributes of the same name copied; what has no such instruction either is not
 * supported. */
#include "ir/lower/lower_priv.h"

#include "graph/op/all.h"

#define AT(i) (1u << (i))
#define VIA(fn) .lower = kiln_lower_##fn
#define ATTRS(fn) .attrs = kiln_lower_attrs_##fn

// clang-format off
static const KilnLowering lowerings[KILN_OP_END] = {
    /* the same bytes under another type */
    [KILN_OP_identity]   = { VIA(alias_first) },
    [KILN_OP_reshape]    = { VIA(alias_first) },
    [KILN_OP_flatten]    = { VIA(alias_first) },
    [KILN_OP_squeeze]    = { VIA(alias_first) },
    [KILN_OP_unsqueeze]  = { VIA(alias_first) },
    [KILN_OP_storage_cast] = { VIA(alias_first) },
    [KILN_OP_bit_cast]   = { VIA(alias_first) },
    [KILN_OP_regression] = { VIA(alias_first), .ignores = AT(1) },
    [KILN_OP_dropout]    = { VIA(dropout), .known_at_run = AT(1) },

    /* element-wise: one operand is returned as it is */
    [KILN_OP_max]  = { VIA(variadic) },
    [KILN_OP_min]  = { VIA(variadic) },
    [KILN_OP_sum]  = { VIA(variadic) },
    [KILN_OP_mean] = { VIA(variadic) },

    /* along axes */
    [KILN_OP_reduce_l1]          = { VIA(reduce) },
    [KILN_OP_reduce_l2]          = { VIA(reduce) },
    [KILN_OP_reduce_log_sum]     = { VIA(reduce) },
    [KILN_OP_reduce_log_sum_exp] = { VIA(reduce) },
    [KILN_OP_reduce_max]         = { VIA(reduce) },
    [KILN_OP_reduce_mean]        = { VIA(reduce) },
    [KILN_OP_reduce_min]         = { VIA(reduce) },
    [KILN_OP_reduce_prod]        = { VIA(reduce) },
    [KILN_OP_reduce_sum]         = { VIA(reduce) },
    [KILN_OP_reduce_sum_square]  = { VIA(reduce) },
    [KILN_OP_arg_max]     = { ATTRS(axis) },
    [KILN_OP_arg_min]     = { ATTRS(axis) },
    [KILN_OP_softmax]     = { ATTRS(axis) },
    [KILN_OP_log_softmax] = { ATTRS(axis) },
    [KILN_OP_hardmax]     = { ATTRS(axis) },
    [KILN_OP_top_k]       = { ATTRS(axis) },
    [KILN_OP_cum_prod]    = { ATTRS(cum_sum) },
    [KILN_OP_cum_sum]     = { ATTRS(cum_sum) },
    [KILN_OP_layer_normalization] = { ATTRS(axis) },
    [KILN_OP_rms_normalization]   = { ATTRS(axis) },
    [KILN_OP_lp_normalization]    = { ATTRS(axis) },
    [KILN_OP_mean_variance_normalization] = { ATTRS(mean_variance) },

    /* sliding windows */
    [KILN_OP_conv]           = { ATTRS(window) },
    [KILN_OP_conv_transpose] = { ATTRS(window) },
    [KILN_OP_conv_integer]   = { ATTRS(window) },
    [KILN_OP_qlinear_conv]   = { ATTRS(window) },
    [KILN_OP_deform_conv]    = { ATTRS(window) },
    [KILN_OP_max_pool]       = { ATTRS(window) },
    [KILN_OP_average_pool]   = { ATTRS(window) },
    [KILN_OP_lp_pool]        = { ATTRS(window) },
    [KILN_OP_max_unpool]     = { ATTRS(window) },
    [KILN_OP_col2im]         = { ATTRS(col2im) },

    /* recurrence */
    [KILN_OP_rnn]  = { ATTRS(recurrent) },
    [KILN_OP_gru]  = { ATTRS(recurrent) },
    [KILN_OP_lstm] = { ATTRS(recurrent) },

    /* movement */
    [KILN_OP_transpose] = { ATTRS(transpose) },
    [KILN_OP_concat]    = { ATTRS(axis) },
    [KILN_OP_split]     = { VIA(split) },
    [KILN_OP_slice]     = { ATTRS(slice) },
    [KILN_OP_pad]       = { VIA(pad) },
    [KILN_OP_gather]           = { ATTRS(axis) },
    [KILN_OP_channel_shuffle]  = { ATTRS(axis) },
    [KILN_OP_gather_elements]  = { ATTRS(axis) },
    [KILN_OP_scatter_elements] = { ATTRS(axis) },
    [KILN_OP_tensor_scatter]   = { ATTRS(axis) },
    [KILN_OP_constant_of_shape] = { VIA(constant_of_shape) },
    [KILN_OP_range]    = { .reads = AT(0) | AT(2), .known_at_run = AT(0) | AT(1) | AT(2) },
    [KILN_OP_one_hot]  = { ATTRS(one_hot) },
    [KILN_OP_eye_like] = { .ignores = AT(0) },
    [KILN_OP_trilu]    = { ATTRS(trilu) },
    [KILN_OP_resize]   = { ATTRS(resize) },
    [KILN_OP_compress] = { VIA(compress) },

    /* dims that data decides */
    [KILN_OP_if]       = { VIA(if), .reads = AT(0), .known_at_run = AT(0) },
    [KILN_OP_loop]     = { VIA(loop) },
    [KILN_OP_scan]     = { VIA(loop) },
    [KILN_OP_define]   = { VIA(define) },
    [KILN_OP_non_zero] = { VIA(non_zero) },
    [KILN_OP_non_max_suppression] = { VIA(non_max_suppression) },
    [KILN_OP_unique]   = { VIA(unique) },
    [KILN_OP_string_split]      = { VIA(string_split) },
    [KILN_OP_tokenizer]         = { VIA(tokenizer) },
    [KILN_OP_string_normalizer] = { VIA(string_normalizer) },

    /* sequences, optionals, maps */
    [KILN_OP_sequence_empty]       = { VIA(item_none) },
    [KILN_OP_optional_none]        = { VIA(item_none) },
    [KILN_OP_sequence_construct]   = { VIA(item_list) },
    [KILN_OP_optional]             = { VIA(item_list) },
    [KILN_OP_sequence_at]          = { VIA(item_out) },
    [KILN_OP_optional_get_element] = { VIA(item_out) },
    [KILN_OP_concat_from_sequence] = { VIA(concat_from_sequence) },
    [KILN_OP_cast_map]             = { VIA(cast_map) },

    /* signals */
    [KILN_OP_dft]               = { ATTRS(dft) },
    [KILN_OP_mel_weight_matrix] = { .reads = AT(0) | AT(1) },

    /* quantization */
    [KILN_OP_quantize_linear]   = { ATTRS(quantize) },
    [KILN_OP_dequantize_linear] = { ATTRS(quantize) },

    /* offload */
    [KILN_OP_vendor_executable] = { VIA(call) },
    [KILN_OP_custom_op]         = { VIA(custom) },

    /* plug-ins */
    [KILN_OP_plugin_op]     = { VIA(plugin) },
    [KILN_OP_plugin_effect] = { VIA(plugin) },
};
// clang-format on

const KilnLowering *
kiln_lowering_of(KilnOp op)
{
    return &lowerings[op];
}
