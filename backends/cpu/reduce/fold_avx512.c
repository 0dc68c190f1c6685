/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that fold numbers, for AVX-512. */
#define FOLDS kiln_cpu_fold_avx512
#include "backends/cpu/reduce/fold_loops.h"
