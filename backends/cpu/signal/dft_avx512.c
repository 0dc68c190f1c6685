/* SPDX-License-Identifier: Apache-2.0 */
/* The butterflies of Fourier transforms for AVX-512. */
#define STAGE kiln_cpu_dft_stage_avx512
#include "backends/cpu/signal/dft_loops.h"
