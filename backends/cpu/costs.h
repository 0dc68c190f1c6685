/* SPDX-License-Identifier: Apache-2.0 */
/* Microseconds on one thread by each term that backends/cpu/cost.h counts.
 * Written by kiln-fit-costs from bench/costs/operators.csv, which says what it was measured on. */
#pragma once

// clang-format off
#define KILN_CPU_COSTS { \
    [KILN_CPU_COST_direct] = { 8.247e-05, 2.216e-05, 3.63 }, \
    [KILN_CPU_COST_pointwise] = { 7.602e-05, 4.99e-06, 0.5015 }, \
    [KILN_CPU_COST_depthwise] = { 0.0001665, 0.0009337, 0.0001073, 0.01607, 2.289e-05, 0.1656 }, \
    [KILN_CPU_COST_transposed] = { 9.697e-05, 7.468e-05, 0, 19.32 }, \
    [KILN_CPU_COST_winograd] = { 7.285e-05, 0.009497, 0.006485, 1.986e-05, 5.31 }, \
    [KILN_CPU_COST_pool] = { 0.0006756, 0.01336, 0.0006695, 0, 0.05696 }, \
    [KILN_CPU_COST_global_pool] = { 4.105e-06, 0.01028, 0.09222 }, \
    [KILN_CPU_COST_matmul] = { 6.51e-05, 1.619e-05, 4.398e-06, 0.2631 }, \
    [KILN_CPU_COST_softmax] = { 0.0002013, 0.01973, 0.09285 }, \
    [KILN_CPU_COST_reduction] = { 2.233e-05, 0.004964, 0.09429 }, \
    [KILN_CPU_COST_layer_normalization] = { 0.0001208, 0.02608, 0.09662 }, \
    [KILN_CPU_COST_lstm] = { 0, 3.363e-05, 0.02166, 0.6622 }, \
}
// clang-format on
