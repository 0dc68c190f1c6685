/* SPDX-License-Identifier: Apache-2.0 */
/* Microseconds on one thread by each term that backends/onednn/cost.h counts,
 * channels last and in blocks.
 * Written by kiln-fit-costs from bench/costs/operators.csv, which says what it was measured on. */
#pragma once

// clang-format off
#define KILN_ONEDNN_COSTS { \
    [KILN_ONEDNN_COST_window] = { { 7.811e-06, 9.422e-06, 0, 2.928e-06, 0.7943 }, { 8.783e-06, 4.593e-06, 3.631e-06, 0, 0.2926 } }, \
    [KILN_ONEDNN_COST_pointwise] = { { 8.642e-06, 1.339e-06, 0, 0, 0.3155 }, { 8.729e-06, 1.405e-06, 0, 0, 0.37 } }, \
    [KILN_ONEDNN_COST_transposed] = { { 9.253e-06, 0, 0, 1.849e-05, 0.9629 }, { 1.09e-05, 0, 9.085e-05, 0, 0.3478 } }, \
    [KILN_ONEDNN_COST_depthwise] = { { 1.316e-05, 4.328e-06, 8.893e-06, 0.001491, 0.4918 }, { 9.537e-06, 4.488e-06, 0, 0, 0.2708 } }, \
    [KILN_ONEDNN_COST_pool] = { { 8.099e-06, 5.279e-06, 0.2154 }, { 1.184e-05, 6.399e-06, 0.4184 } }, \
    [KILN_ONEDNN_COST_global_pool] = { { 0, 4.891e-06, 0.2359 }, { 0, 6.676e-06, 0.2624 } }, \
    [KILN_ONEDNN_COST_matmul] = { { 7.374e-06, 1.017e-05, 4.023e-06, 0.2289 }, { 0, 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_reorder] = { { 6.737e-05, 6.178e-07, 0.1415 }, { 1.888e-05, 4.463e-05, 0.2035 } }, \
    [KILN_ONEDNN_COST_softmax] = { { 0.0002743, 0.0124, 0.2134 }, { 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_layer_normalization] = { { 0.0001502, 0.005535, 0.4672 }, { 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_reduction] = { { 3.302e-05, 0.004461, 0.1949 }, { 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_lstm] = { { 2.607e-05, 4.752e-05, 0.07963, 0.7187 }, { 0, 0, 0, 0 } }, \
}
// clang-format on
