/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lstm and gru do with a row of gates once the matrix products have summed them: activations
 * and the new state, fused, per instruction set. Element j of a result depends on the elements at j
 * only, so that rows may be cut anywhere. All rows have n floats; states are updated in place.
 * Private to the folder.
 */
#pragma once

#include "backends/cpu/isa.h"

#include <stdint.h>

/** One row of gates, gate by gate, each @n floats behind the one before, and of the states. */
typedef struct {
    int64_t n;
    const float *gates;
    const float *recurrent; /* gru_linear: the state's part of the gates, apart */
    const float *before;    /* the state h; may be @h */
    float *h;               /* the new one */
    float *c;               /* lstm: the cell */
    float *update;          /* gru: where the update gate waits for the second half of the step */
} KilnCpuCellRow;

typedef void (*KilnCpuCell)(const KilnCpuCellRow *row);

typedef struct {
    KilnCpuCell lstm;
    KilnCpuCell gru_reset;  /* update = σ(z), h = σ(r) before */
    KilnCpuCell gru_update; /* h = (1 - update) tanh(n) + update before */
    KilnCpuCell gru_linear; /* whole step: the reset gate scales the state's part */
} KilnCpuCells;

extern const KilnCpuCells kiln_cpu_cells_portable;
#if defined(__x86_64__)
extern const KilnCpuCells kiln_cpu_cells_avx2;
extern const KilnCpuCells kiln_cpu_cells_avx512;
#endif

/** The loops of @isa (AUTO: the best here). */
static inline const KilnCpuCells *
kiln_cpu_cells(KilnCpuIsa isa)
{
#if defined(__x86_64__)
    switch (kiln_cpu_isa_resolve(isa)) {
    case KILN_CPU_ISA_AVX512:
        return &kiln_cpu_cells_avx512;
    case KILN_CPU_ISA_AVX2:
        return &kiln_cpu_cells_avx2;
    default:
        break;
    }
#endif
    (void)isa;
    return &kiln_cpu_cells_portable;
}
