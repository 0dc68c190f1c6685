/* SPDX-License-Identifier: Apache-2.0 */
/* Microseconds on one thread by each term that backends/cpu/cost.h counts.
 * Written by kiln-fit-costs: bench/costs/operators.csv says what it was measured on. */
#ifndef KILN_BACKENDS_CPU_COSTS_H
#define KILN_BACKENDS_CPU_COSTS_H

// clang-format off
#define KILN_CPU_COSTS { \
    [KILN_CPU_COST_direct] = { 8.31e-05, 2.096e-05, 3.817 }, \
    [KILN_CPU_COST_pointwise] = { 7.392e-05, 6.634e-06, 0.4659 }, \
    [KILN_CPU_COST_taps] = { 6.21e-05, 9.74e-05, 7.411e-06, 1.326 }, \
    [KILN_CPU_COST_depthwise] = { 0.0001628, 0.0009036, 0.0002686, 0.01515, 2.215e-05, 0.1472 }, \
    [KILN_CPU_COST_transposed] = { 9.251e-05, 6.985e-05, 0, 20.14 }, \
    [KILN_CPU_COST_winograd] = { 6.452e-05, 0.008204, 0.005681, 1.256e-05, 3.678 }, \
    [KILN_CPU_COST_pool] = { 0.001062, 0.002336, 0.0007587, 0.0004049, 0.1239, 0.01436 }, \
    [KILN_CPU_COST_global_pool] = { 4.86e-06, 0.005529, 0.09229 }, \
    [KILN_CPU_COST_matmul] = { 6.642e-05, 1.514e-05, 3.466e-06, 0.2035 }, \
    [KILN_CPU_COST_softmax] = { 0.0001787, 0.01236, 0.09432 }, \
    [KILN_CPU_COST_reduction] = { 2.115e-05, 0.00493, 0.08888 }, \
    [KILN_CPU_COST_layer_normalization] = { 9.156e-05, 0.01122, 0.1047 }, \
    [KILN_CPU_COST_lstm] = { 0, 3.4e-05, 0.02314, 0.715 }, \
    [KILN_CPU_COST_computed] = { 1.885e-05 }, \
    [KILN_CPU_COST_moved] = { 5.953e-06, 0 }, \
    [KILN_CPU_COST_tail] = { 1.897e-05, 1.219e-05 }, \
    [KILN_CPU_COST_relayout] = { 2.887e-05, 0.1505 }, \
}
// clang-format on

#endif
