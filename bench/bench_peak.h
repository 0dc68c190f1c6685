/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's measured limits, so that a figure can be a share of what is possible. */
#ifndef KILN_BENCH_BENCH_PEAK_H
#define KILN_BENCH_BENCH_PEAK_H

#include <stdint.h>

/** GFLOP/s of f32 fused multiply-adds on one core, best of several short runs with the widest
 * vectors it has. */
double bench_fma_peak(void);

/** GB/s at which @threads threads together read a working set of @bytes again and again: what the
 * smallest cache that holds it gives, or memory. Best of several short runs. 1 GB/s and more where
 * there is nothing to read. */
double bench_bandwidth(int64_t bytes, int threads);

#endif
