/* SPDX-License-Identifier: Apache-2.0 */
/* Microseconds on one thread by each term that backends/onednn/cost.h counts,
 * channels last and in blocks.
 * Written by kiln-fit-costs: bench/costs/operators-avx2.csv says what it was measured on. */
#pragma once

// clang-format off
#define KILN_ONEDNN_COSTS_AVX2 { \
    [KILN_ONEDNN_COST_window] = { { 1.726e-05, 5.046e-07, 0, 2.814e-06, 0.9304 }, { 1.71e-05, 3.906e-07, 0, 3.161e-06, 0.9378 } }, \
    [KILN_ONEDNN_COST_pointwise] = { { 1.733e-05, 1.951e-06, 2.436e-06, 0, 0.3093 }, { 1.733e-05, 1.753e-06, 6.516e-07, 0, 0.327 } }, \
    [KILN_ONEDNN_COST_transposed] = { { 1.949e-05, 8.817e-07, 0, 0, 0.8634 }, { 1.93e-05, 1.177e-06, 0, 0, 0.8481 } }, \
    [KILN_ONEDNN_COST_depthwise] = { { 1.813e-05, 4.44e-06, 6.879e-06, 0.0006537, 0.2814 }, { 2.102e-05, 4.79e-06, 0, 0, 0.3914 } }, \
    [KILN_ONEDNN_COST_pool] = { { 2.39e-05, 6.584e-06, 0.2668 }, { 2.894e-05, 7.02e-06, 0.4804 } }, \
    [KILN_ONEDNN_COST_global_pool] = { { 0, 6.332e-06, 0.3006 }, { 0, 1.212e-05, 0.3226 } }, \
    [KILN_ONEDNN_COST_matmul] = { { 0, 0, 0, 0 }, { 0, 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_reorder] = { { 6.85e-05, 0, 0.1588 }, { 2.612e-05, 3.245e-05, 0.2023 } }, \
    [KILN_ONEDNN_COST_softmax] = { { 0.0004486, 0.007317, 0.2024 }, { 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_layer_normalization] = { { 0.0001437, 0.005023, 0.3873 }, { 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_reduction] = { { 5.729e-05, 0.00344, 0.2046 }, { 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_lstm] = { { 0, 0, 0, 0 }, { 0, 0, 0, 0 } }, \
}
// clang-format on
