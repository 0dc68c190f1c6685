/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles of products of numbers, for AVX-512. */
#define TILES kiln_cpu_number_tiles_avx512
#include "backends/cpu/gemm/number_tile_loops.h"
