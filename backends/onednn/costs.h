/* SPDX-License-Identifier: Apache-2.0 */
/* Microseconds on one thread by each term that backends/onednn/cost.h counts,
 * channels last and in blocks.
 * Written by kiln-fit-costs: bench/costs/operators.csv says what it was measured on. */
#ifndef KILN_BACKENDS_ONEDNN_COSTS_H
#define KILN_BACKENDS_ONEDNN_COSTS_H

// clang-format off
#define KILN_ONEDNN_COSTS { \
    [KILN_ONEDNN_COST_window] = { { 8.788e-06, 5.009e-06, 7.012e-06, 0, 0.131 }, { 8.885e-06, 4.732e-06, 4.684e-06, 0, 0.09921 } }, \
    [KILN_ONEDNN_COST_pointwise] = { { 8.489e-06, 2.271e-06, 0, 0, 0.2277 }, { 8.541e-06, 2.5e-06, 0, 0, 0.2192 } }, \
    [KILN_ONEDNN_COST_transposed] = { { 9.231e-06, 0, 0, 1.971e-05, 0.8753 }, { 1.077e-05, 0, 9.253e-05, 0, 0.4167 } }, \
    [KILN_ONEDNN_COST_depthwise] = { { 1.301e-05, 4.361e-06, 8.064e-06, 0.001398, 0.5019 }, { 9.228e-06, 4.725e-06, 0, 0, 0.2721 } }, \
    [KILN_ONEDNN_COST_pool] = { { 9.296e-06, 5.239e-06, 0.2115 }, { 1.182e-05, 6.44e-06, 0.3449 } }, \
    [KILN_ONEDNN_COST_global_pool] = { { 0, 5.078e-06, 0.2153 }, { 0, 6.752e-06, 0.2581 } }, \
    [KILN_ONEDNN_COST_matmul] = { { 7.662e-06, 5.099e-06, 4.04e-06, 0.1987 }, { 0, 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_reorder] = { { 6.742e-05, 0, 0.08346 }, { 1.827e-05, 4.35e-05, 0.1267 } }, \
    [KILN_ONEDNN_COST_softmax] = { { 0.0003032, 0.0115, 0.2148 }, { 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_layer_normalization] = { { 0.0001434, 0.004912, 0.3915 }, { 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_reduction] = { { 3.214e-05, 0.004204, 0.1953 }, { 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_lstm] = { { 2.668e-05, 4.784e-05, 0.08333, 0.7712 }, { 0, 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_concat] = { { 1.108e-05, 0.01151, 0.1785 }, { 0.0002691, 0, 0.4998 } }, \
    [KILN_ONEDNN_COST_pass] = { { 1.189e-05, 0.005687, 0.2115 }, { 1.223e-05, 0, 0.1699 } }, \
    [KILN_ONEDNN_COST_tail] = { { 2.495e-05, 1.924e-06 }, { 2.452e-05, 7.717e-07 } }, \
    [KILN_ONEDNN_COST_far_weights] = { { 7.376e-05 }, { 7.629e-05 } }, \
}
// clang-format on

#endif
