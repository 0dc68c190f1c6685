/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of cum_prod and cum_sum, per instruction set. Running numbers of floats stay in double.
 * Private to the folder. */
#ifndef KILN_BACKENDS_CPU_REDUCE_CUMULATIVE_H
#define KILN_BACKENDS_CPU_REDUCE_CUMULATIVE_H

#include "backends/cpu/isa.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    KILN_CPU_CUMULATIVE_LINES = 1024, /* side by side, at most: memory is read in its order */
    KILN_CPU_CUMULATIVE_ROWS = 8,     /* of one line each, at most */
};

typedef enum {
    KILN_CPU_CUMULATIVE_f32,
    KILN_CPU_CUMULATIVE_f64,
    KILN_CPU_CUMULATIVE_32, /* integers wrap, so that signs do not matter */
    KILN_CPU_CUMULATIVE_64,
    KILN_CPU_N_CUMULATIVES
} KilnCpuCumulative;

/** Lines, all of @extent steps. */
typedef struct {
    void *to;
    const void *from;
    int64_t n;      /* lines */
    int64_t extent; /* steps of a line */
    int64_t step;   /* elements between two steps, may be negative */
    int64_t line;   /* elements between two lines */
    bool exclusive;
} KilnCpuLines;

typedef void (*KilnCpuCumulativeLoop)(const KilnCpuLines *lines);

/** For sums [0] and products [1]. */
typedef struct {
    KilnCpuCumulativeLoop columns[2][KILN_CPU_N_CUMULATIVES]; /* line is 1 */
    KilnCpuCumulativeLoop rows[2][KILN_CPU_N_CUMULATIVES];    /* step is 1 or -1 */
} KilnCpuCumulatives;

extern const KilnCpuCumulatives kiln_cpu_cumulatives_portable;
#if defined(__x86_64__)
extern const KilnCpuCumulatives kiln_cpu_cumulatives_avx2;
extern const KilnCpuCumulatives kiln_cpu_cumulatives_avx512;
#endif

/** Returns the loops of the best instruction set. */
static inline const KilnCpuCumulatives *
kiln_cpu_cumulatives(void)
{
    return KILN_CPU_OF_ISA(KILN_CPU_ISA_AUTO, &kiln_cpu_cumulatives);
}

#endif
