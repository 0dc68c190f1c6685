/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between rows of 2 to 4 elements and as many columns, which lie apart, per instruction set.
 * Elements have 1, 2, 4 or 8 bytes and any address. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_MOVEMENT_COLUMNS_H
#define KILN_BACKENDS_CPU_MOVEMENT_COLUMNS_H

#include "backends/cpu/isa.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    KILN_CPU_COLUMNS_LEAST = 2,
    KILN_CPU_COLUMNS_MOST = 4,
    KILN_CPU_COLUMNS = KILN_CPU_COLUMNS_MOST + 1,
};

/** Column k of the rows at @from becomes @columns[k]: @n elements. */
typedef void (*KilnCpuSplitColumns)(char *const *columns, const char *from, int64_t n);
/** @columns[k] becomes column k of the rows at @to. */
typedef void (*KilnCpuJoinColumns)(char *to, const char *const *columns, int64_t n);
/** The first column of the rows at @from. */
typedef void (*KilnCpuPickColumn)(char *to, const char *from, int64_t n);

/** By the size of an element, as a power of 2, and the columns. */
typedef struct {
    KilnCpuSplitColumns split[4][KILN_CPU_COLUMNS];
    KilnCpuJoinColumns join[4][KILN_CPU_COLUMNS];
    KilnCpuPickColumn pick[4][KILN_CPU_COLUMNS];
} KilnCpuColumns;

extern const KilnCpuColumns kiln_cpu_columns_portable;
#if defined(__x86_64__)
extern const KilnCpuColumns kiln_cpu_columns_avx2;
extern const KilnCpuColumns kiln_cpu_columns_avx512;
#endif

/** True where there are loops for @n columns. */
static inline bool
kiln_cpu_has_columns(int64_t n)
{
    return n >= KILN_CPU_COLUMNS_LEAST && n <= KILN_CPU_COLUMNS_MOST;
}

/** Returns the loops of the best instruction set. */
static inline const KilnCpuColumns *
kiln_cpu_columns(void)
{
    return KILN_CPU_OF_ISA(KILN_CPU_ISA_AUTO, &kiln_cpu_columns);
}

#endif
