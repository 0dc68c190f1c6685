/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of reductions, softmax, normalisation and pooling for any processor. */
#include "backends/cpu/simd/simd_ops_portable.h"

#define REDUCERS kiln_cpu_reducers_portable
#include "backends/cpu/reduce/normalize_loops.h"
