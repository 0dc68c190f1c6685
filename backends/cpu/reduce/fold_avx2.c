/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that fold numbers, for AVX2. */
#define FOLDS kiln_cpu_fold_avx2
#include "backends/cpu/reduce/fold_loops.h"
