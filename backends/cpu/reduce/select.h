/* SPDX-License-Identifier: Apache-2.0 */
/* Order of elements as order of unsigned keys, per instruction set. A larger element has a larger
 * key, NaN the largest; -0 and 0 have one key. Reversed keys turn the order of numbers around, and
 * NaN has the largest key (arg_min) or the least (top_k). Private to the folder. */
#ifndef KILN_BACKENDS_CPU_REDUCE_SELECT_H
#define KILN_BACKENDS_CPU_REDUCE_SELECT_H

#include "backends/cpu/isa.h"
#include "graph/kiln-types.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    KILN_CPU_KEYS_UP,
    KILN_CPU_KEYS_DOWN,         /* NaN the least */
    KILN_CPU_KEYS_DOWN_BUT_NAN, /* NaN the largest */
} KilnCpuKeyOrder;

/* Keys of @n elements. Elements of up to 32 bits have keys of 32. */
typedef void (*KilnCpuKeysRow)(void *keys, const void *x, int64_t n, KilnCpuKeyOrder order);

/* Loops over keys of 32 bits [0] and of 64 bits [1]. */
typedef struct {
    KilnCpuKeysRow keys[KILN_N_DTYPES]; /* NULL for other types than numbers */
    uint64_t (*largest[2])(const void *keys, int64_t n);
    /* Sets flags to 1 where keys are larger, else to 0; true if one is. */
    bool (*flag_larger[2])(const void *keys, int64_t n, uint64_t than, uint8_t *flags);
    /* Takes keys that are larger than the best of their column, or with @last as large. */
    void (*improve[2])(void *best, int64_t *at, const void *keys, int64_t n, int64_t step,
                       bool last);
} KilnCpuSelectRows;

extern const KilnCpuSelectRows kiln_cpu_select_portable;
#if defined(__x86_64__)
extern const KilnCpuSelectRows kiln_cpu_select_avx2;
extern const KilnCpuSelectRows kiln_cpu_select_avx512;
#endif

/** Returns the loops of the best instruction set. */
static inline const KilnCpuSelectRows *
kiln_cpu_select(void)
{
    return KILN_CPU_OF_ISA(KILN_CPU_ISA_AUTO, &kiln_cpu_select);
}

#endif
