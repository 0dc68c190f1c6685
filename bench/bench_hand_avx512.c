/* SPDX-License-Identifier: Apache-2.0 */
/* The loops written by hand, for AVX-512. */
#include "backends/cpu/simd/simd_ops_avx512.h"

#define HANDS bench_hand_avx512
#include "bench/bench_hand_loops.h"
