/* SPDX-License-Identifier: Apache-2.0 */
/* Microseconds on one thread by each term that backends/cpu/cost.h counts.
 * Written by kiln-fit-costs: bench/costs/operators-avx2.csv says what it was measured on. */
#pragma once

// clang-format off
#define KILN_CPU_COSTS_AVX2 { \
    [KILN_CPU_COST_direct] = { 7.691e-05, 4.627e-05, 3.958 }, \
    [KILN_CPU_COST_pointwise] = { 7.525e-05, 9.714e-06, 0.4759 }, \
    [KILN_CPU_COST_depthwise] = { 0.0003904, 0.001095, 0.0009526, 0, 2.119e-05, 0.08733 }, \
    [KILN_CPU_COST_transposed] = { 8.488e-05, 0.0001006, 0, 17.49 }, \
    [KILN_CPU_COST_winograd] = { 6.704e-05, 0.005007, 0.004161, 8.981e-06, 2.209 }, \
    [KILN_CPU_COST_pool] = { 0.0008235, 0.001863, 0.001034, 0.0002796, 0.03442, 0.01346 }, \
    [KILN_CPU_COST_global_pool] = { 3.508e-06, 0.008006, 0.08653 }, \
    [KILN_CPU_COST_matmul] = { 7.163e-05, 2.114e-05, 2.942e-06, 0.2605 }, \
    [KILN_CPU_COST_softmax] = { 0.0004202, 0.0156, 0.08773 }, \
    [KILN_CPU_COST_reduction] = { 2.283e-05, 0.005361, 0.0921 }, \
    [KILN_CPU_COST_layer_normalization] = { 0.0001434, 0.01097, 0.1044 }, \
    [KILN_CPU_COST_lstm] = { 1.55e-05, 3.708e-05, 0.1455, 0.8674 }, \
}
// clang-format on
