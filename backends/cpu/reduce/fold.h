/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that fold elements of 64 bits, and extremes of i32, into one number, and exponentials of
 * f32, per instruction set. A folded number has 64 bits: a double for floats, else an integer,
 * which wraps. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_REDUCE_FOLD_H
#define KILN_BACKENDS_CPU_REDUCE_FOLD_H

#include "backends/cpu/isa.h"
#include "graph/kiln-types.h"

#include <stdint.h>

typedef enum {
    KILN_CPU_FOLD_sum,
    KILN_CPU_FOLD_sizes, /* of absolute values */
    KILN_CPU_FOLD_squares,
    KILN_CPU_FOLD_product,
    KILN_CPU_FOLD_max,
    KILN_CPU_FOLD_min,
    KILN_CPU_N_FOLD
} KilnCpuFold;

typedef union {
    double f;
    int64_t s;
    uint64_t u;
} KilnCpuFolded;

/* A row into one number, or @n columns into one number each. They go on from what is there. */
typedef void (*KilnCpuFoldLoop)(const void *x, int64_t n, KilnCpuFolded *folded);
/* The same of exp(x - most), @most of the row or of each column. */
typedef void (*KilnCpuExpLoop)(const float *x, int64_t n, const KilnCpuFolded *most,
                               KilnCpuFolded *folded);

typedef struct {
    /* NULL for other types than f64, i64, u64 and, of extremes, i32. */
    KilnCpuFoldLoop row[KILN_CPU_N_FOLD][KILN_N_DTYPES];
    KilnCpuFoldLoop columns[KILN_CPU_N_FOLD][KILN_N_DTYPES];
    KilnCpuExpLoop exp_row, exp_columns;
} KilnCpuFoldRows;

extern const KilnCpuFoldRows kiln_cpu_fold_portable;
#if defined(__x86_64__)
extern const KilnCpuFoldRows kiln_cpu_fold_avx2;
extern const KilnCpuFoldRows kiln_cpu_fold_avx512;
#endif

/** Returns the loops of the best instruction set. */
static inline const KilnCpuFoldRows *
kiln_cpu_folds(void)
{
    return KILN_CPU_OF_ISA(KILN_CPU_ISA_AUTO, &kiln_cpu_fold);
}

#endif
