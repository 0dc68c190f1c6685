/* SPDX-License-Identifier: Apache-2.0 */
/* The loops written by hand, for any processor. */
#include "backends/cpu/simd/simd_ops_portable.h"

#define HANDS bench_hand_portable
#include "bench/bench_hand_loops.h"
