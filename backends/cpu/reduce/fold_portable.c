/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that fold numbers, for any processor. */
#define FOLDS kiln_cpu_fold_portable
#include "backends/cpu/reduce/fold_loops.h"
