/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the limits of the machine, so that a figure can be given as a share of them. */
#ifndef KILN_BENCH_BENCH_PEAK_H
#define KILN_BENCH_BENCH_PEAK_H

#include <stdint.h>

/** Returns the GFLOP/s of f32 fused multiply-adds on one core, with its widest vectors. Best of
 * several short runs. */
double bench_fma_peak(void);

/** Returns the GB/s at which @threads threads together read @bytes again and again. It is the speed
 * of the smallest cache that holds them, or of memory. Best of several short runs. At least 1, even
 * if there is nothing to read. */
double bench_bandwidth(int64_t bytes, int threads);

#endif
