/* SPDX-License-Identifier: Apache-2.0 */
/* Guards the vendor's functions that allocate. The library is C++. If memory runs out, an exception
 * leaves its C interface, and in C frames that ends the process. A function of guard.cc therefore
 * calls each of them and returns dnnl_out_of_memory, or NULL, instead. Callers write the vendor's
 * names. Include this header behind the vendor's. */
#ifndef KILN_BACKENDS_ONEDNN_GUARD_H
#define KILN_BACKENDS_ONEDNN_GUARD_H

#include <oneapi/dnnl/dnnl.h>

/* X(name): functions that make objects or code. The library dies if there is no memory for some of
 * them, so that guard.cc looks for room before. */
#define KILN_ONEDNN_MAKES(X)                                                                       \
    X(concat_primitive_desc_create)                                                                \
    X(engine_create)                                                                               \
    X(memory_create)                                                                               \
    X(primitive_create)                                                                            \
    X(primitive_desc_iterator_create)                                                              \
    X(primitive_desc_iterator_next)                                                                \
    X(reorder_primitive_desc_create)                                                               \
    X(stream_create)

/* X(name): other functions that may throw. */
#define KILN_ONEDNN_CALLS(X)                                                                       \
    X(binary_desc_init)                                                                            \
    X(dilated_convolution_forward_desc_init)                                                       \
    X(dilated_deconvolution_forward_desc_init)                                                     \
    X(eltwise_forward_desc_init)                                                                   \
    X(layer_normalization_forward_desc_init)                                                       \
    X(lstm_forward_desc_init)                                                                      \
    X(matmul_desc_init)                                                                            \
    X(memory_set_data_handle_v2)                                                                   \
    X(pooling_v2_forward_desc_init)                                                                \
    X(post_ops_append_binary)                                                                      \
    X(post_ops_append_eltwise)                                                                     \
    X(post_ops_append_sum)                                                                         \
    X(post_ops_create)                                                                             \
    X(primitive_attr_create)                                                                       \
    X(primitive_attr_set_post_ops)                                                                 \
    X(primitive_desc_iterator_fetch)                                                               \
    X(primitive_desc_query)                                                                        \
    X(primitive_execute)                                                                           \
    X(reduction_desc_init)                                                                         \
    X(softmax_v2_forward_desc_init)                                                                \
    X(stream_wait)

typedef struct {
#define X(name) __typeof__(dnnl_##name) *name;
    KILN_ONEDNN_MAKES(X)
    KILN_ONEDNN_CALLS(X)
#undef X
} KilnOnednnGuarded;

#ifdef __cplusplus
extern "C" const KilnOnednnGuarded kiln_onednn_guarded;
#else
extern const KilnOnednnGuarded kiln_onednn_guarded;

#define dnnl_binary_desc_init kiln_onednn_guarded.binary_desc_init
#define dnnl_concat_primitive_desc_create kiln_onednn_guarded.concat_primitive_desc_create
#define dnnl_dilated_convolution_forward_desc_init                                                 \
    kiln_onednn_guarded.dilated_convolution_forward_desc_init
#define dnnl_dilated_deconvolution_forward_desc_init                                               \
    kiln_onednn_guarded.dilated_deconvolution_forward_desc_init
#define dnnl_eltwise_forward_desc_init kiln_onednn_guarded.eltwise_forward_desc_init
#define dnnl_engine_create kiln_onednn_guarded.engine_create
#define dnnl_layer_normalization_forward_desc_init                                                 \
    kiln_onednn_guarded.layer_normalization_forward_desc_init
#define dnnl_lstm_forward_desc_init kiln_onednn_guarded.lstm_forward_desc_init
#define dnnl_matmul_desc_init kiln_onednn_guarded.matmul_desc_init
#define dnnl_memory_create kiln_onednn_guarded.memory_create
#define dnnl_memory_set_data_handle_v2 kiln_onednn_guarded.memory_set_data_handle_v2
#define dnnl_pooling_v2_forward_desc_init kiln_onednn_guarded.pooling_v2_forward_desc_init
#define dnnl_post_ops_append_binary kiln_onednn_guarded.post_ops_append_binary
#define dnnl_post_ops_append_eltwise kiln_onednn_guarded.post_ops_append_eltwise
#define dnnl_post_ops_append_sum kiln_onednn_guarded.post_ops_append_sum
#define dnnl_post_ops_create kiln_onednn_guarded.post_ops_create
#define dnnl_primitive_attr_create kiln_onednn_guarded.primitive_attr_create
#define dnnl_primitive_attr_set_post_ops kiln_onednn_guarded.primitive_attr_set_post_ops
#define dnnl_primitive_create kiln_onednn_guarded.primitive_create
#define dnnl_primitive_desc_iterator_create kiln_onednn_guarded.primitive_desc_iterator_create
#define dnnl_primitive_desc_iterator_fetch kiln_onednn_guarded.primitive_desc_iterator_fetch
#define dnnl_primitive_desc_iterator_next kiln_onednn_guarded.primitive_desc_iterator_next
#define dnnl_primitive_desc_query kiln_onednn_guarded.primitive_desc_query
#define dnnl_primitive_execute kiln_onednn_guarded.primitive_execute
#define dnnl_reduction_desc_init kiln_onednn_guarded.reduction_desc_init
#define dnnl_reorder_primitive_desc_create kiln_onednn_guarded.reorder_primitive_desc_create
#define dnnl_softmax_v2_forward_desc_init kiln_onednn_guarded.softmax_v2_forward_desc_init
#define dnnl_stream_create kiln_onednn_guarded.stream_create
#define dnnl_stream_wait kiln_onednn_guarded.stream_wait
#endif

#endif
