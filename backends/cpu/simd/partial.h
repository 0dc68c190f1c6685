/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of up to one vector, in the vocabulary of simd_ISA.h. */
#ifndef KILN_BACKENDS_CPU_SIMD_PARTIAL_H
#define KILN_BACKENDS_CPU_SIMD_PARTIAL_H

#include <stdint.h>

/* The first VW of the @n elements at @p. Lanes behind the last element are 0. @n is at least 1. */
static inline V
load_up_to(const float *p, int64_t n)
{
    return n >= VW ? V_LOAD(p) : V_LOAD_SOME(p, V_MASK(n));
}

static inline void
store_up_to(float *p, int64_t n, V x)
{
    if (n >= VW)
        V_STORE(p, x);
    else
        V_STORE_SOME(p, V_MASK(n), x);
}

#endif
