/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of linear_attention for any processor. */
#include "backends/cpu/simd/simd_ops_portable.h"

#define RECALL kiln_cpu_recall_portable
#include "backends/cpu/recurrent/linear_attention_loops.h"
