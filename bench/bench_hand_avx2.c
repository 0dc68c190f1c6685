/* SPDX-License-Identifier: Apache-2.0 */
/* The loops written by hand, for AVX2. */
#include "backends/cpu/simd/simd_ops_avx2.h"

#define HANDS bench_hand_avx2
#include "bench/bench_hand_loops.h"
