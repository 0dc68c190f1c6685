/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles of products of numbers, for AVX2. */
#define TILES kiln_cpu_number_tiles_avx2
#include "backends/cpu/gemm/number_tile_loops.h"
