/* SPDX-License-Identifier: Apache-2.0 */
/* Microseconds on one thread by each term that backends/cpu/cost.h counts.
 * Written by kiln-fit-costs: bench/costs/operators-avx2.csv says what it was measured on. */
#ifndef KILN_BACKENDS_CPU_COSTS_AVX2_H
#define KILN_BACKENDS_CPU_COSTS_AVX2_H

// clang-format off
#define KILN_CPU_COSTS_AVX2 { \
    [KILN_CPU_COST_direct] = { 7.998e-05, 2.7e-05, 4.471 }, \
    [KILN_CPU_COST_pointwise] = { 7.516e-05, 8.026e-06, 0.6235 }, \
    [KILN_CPU_COST_taps] = { 6.82e-05, 6.601e-05, 6.053e-06, 1.484 }, \
    [KILN_CPU_COST_depthwise] = { 0.0003443, 0.001019, 0.001315, 0, 2.115e-05, 0.09626 }, \
    [KILN_CPU_COST_transposed] = { 8.127e-05, 0.0001038, 0, 16 }, \
    [KILN_CPU_COST_winograd] = { 6.86e-05, 0.006082, 0.004367, 1.387e-05, 2.734 }, \
    [KILN_CPU_COST_pool] = { 0.0008095, 0.001541, 0.001031, 0.0002696, 0.0643, 0.01308 }, \
    [KILN_CPU_COST_global_pool] = { 3.99e-06, 0.007595, 0.08034 }, \
    [KILN_CPU_COST_matmul] = { 7.054e-05, 2.119e-05, 3.126e-06, 0.2607 }, \
    [KILN_CPU_COST_softmax] = { 0.0004278, 0.0162, 0.09414 }, \
    [KILN_CPU_COST_reduction] = { 2.264e-05, 0.00533, 0.09245 }, \
    [KILN_CPU_COST_layer_normalization] = { 0.0001391, 0.01149, 0.1078 }, \
    [KILN_CPU_COST_lstm] = { 1.324e-05, 3.794e-05, 0.132, 0.9176 }, \
    [KILN_CPU_COST_computed] = { 5.86e-05 }, \
    [KILN_CPU_COST_moved] = { 6.153e-06, 0 }, \
    [KILN_CPU_COST_tail] = { 5.52e-05, 1.147e-05 }, \
    [KILN_CPU_COST_relayout] = { 2.786e-05, 0.1534 }, \
}
// clang-format on

#endif
