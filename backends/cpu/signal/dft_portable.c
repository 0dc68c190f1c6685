/* SPDX-License-Identifier: Apache-2.0 */
/* The butterflies of Fourier transforms for any processor. */
#define STAGE kiln_cpu_dft_stage_portable
#include "backends/cpu/signal/dft_loops.h"
