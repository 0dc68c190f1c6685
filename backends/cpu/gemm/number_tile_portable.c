/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles of products of numbers, for any processor. */
#define TILES kiln_cpu_number_tiles_portable
#include "backends/cpu/gemm/number_tile_loops.h"
