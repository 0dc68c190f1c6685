/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's measured limits, so that a figure can be a share of what is possible. */
#ifndef KILN_BENCH_PEAK_H
#define KILN_BENCH_PEAK_H

/** GFLOP/s of f32 fused multiply-adds on one core, best of several short runs with the widest
 * vectors it has. */
double bench_fma_peak(void);

#endif
