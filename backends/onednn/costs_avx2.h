/* SPDX-License-Identifier: Apache-2.0 */
/* Microseconds on one thread by each term that backends/onednn/cost.h counts,
 * channels last and in blocks.
 * Written by kiln-fit-costs: bench/costs/operators-avx2.csv says what it was measured on. */
#ifndef KILN_BACKENDS_ONEDNN_COSTS_AVX2_H
#define KILN_BACKENDS_ONEDNN_COSTS_AVX2_H

// clang-format off
#define KILN_ONEDNN_COSTS_AVX2 { \
    [KILN_ONEDNN_COST_window] = { { 1.714e-05, 2.466e-06, 3.105e-06, 2.705e-06, 0.3981 }, { 1.706e-05, 2.444e-06, 3.009e-06, 2.805e-06, 0.398 } }, \
    [KILN_ONEDNN_COST_pointwise] = { { 1.737e-05, 1.222e-06, 0, 0, 0.2209 }, { 1.733e-05, 1.73e-06, 0, 0, 0.2015 } }, \
    [KILN_ONEDNN_COST_transposed] = { { 1.899e-05, 1.5e-06, 0, 0, 0.6963 }, { 1.874e-05, 1.99e-06, 0, 0, 0.7548 } }, \
    [KILN_ONEDNN_COST_depthwise] = { { 1.717e-05, 4.895e-06, 6.917e-06, 0.0006474, 0.241 }, { 2.052e-05, 4.93e-06, 0, 0, 0.3312 } }, \
    [KILN_ONEDNN_COST_pool] = { { 2.529e-05, 5.49e-06, 0.2347 }, { 2.685e-05, 7.074e-06, 0.473 } }, \
    [KILN_ONEDNN_COST_global_pool] = { { 0, 6.156e-06, 0.2402 }, { 0, 1.239e-05, 0.2697 } }, \
    [KILN_ONEDNN_COST_matmul] = { { 0, 0, 0, 0 }, { 0, 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_reorder] = { { 6.57e-05, 0, 0.08557 }, { 2.498e-05, 3.155e-05, 0.137 } }, \
    [KILN_ONEDNN_COST_softmax] = { { 0.0004942, 0.007621, 0.1938 }, { 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_layer_normalization] = { { 0.0001445, 0.005164, 0.4575 }, { 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_reduction] = { { 5.745e-05, 0.003548, 0.1964 }, { 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_lstm] = { { 0, 0, 0, 0 }, { 0, 0, 0, 0 } }, \
    [KILN_ONEDNN_COST_concat] = { { 1.106e-05, 0.01129, 0.1469 }, { 0.0002816, 0, 1.205 } }, \
    [KILN_ONEDNN_COST_pass] = { { 1.477e-05, 0.005573, 0.226 }, { 1.265e-05, 0, 0.2013 } }, \
    [KILN_ONEDNN_COST_tail] = { { 4.941e-05, 1.505e-06 }, { 4.875e-05, 4.788e-07 } }, \
    [KILN_ONEDNN_COST_far_weights] = { { 5.159e-05 }, { 5.098e-05 } }, \
}
// clang-format on

#endif
