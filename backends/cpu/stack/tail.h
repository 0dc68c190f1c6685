/* SPDX-License-Identifier: Apache-2.0 */
/* What convolutions and products do with their sums before they are stored, and the loop that does
 * it where a kernel does not in its registers. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_STACK_TAIL_H
#define KILN_BACKENDS_CPU_STACK_TAIL_H

#include "backends/cpu/elementwise/elementwise.h"

/**
 * x = clip(sum + residual), then activation(x): every part rounds by itself, as an instruction
 * would. The residual is laid out as the result and may be it.
 */
typedef struct {
    float lo, hi;  /* -INFINITY and INFINITY leave everything, NaN included, as it is */
    bool residual; /* there is one: the addresses say where */
    KilnCpuUnaryRow activation; /* of a row that is stored already; NULL: none */
    KilnCpuParams params;
} KilnCpuTail;

static inline KilnCpuTail
kiln_cpu_tail_none(void)
{
    return (KilnCpuTail){ .lo = -__builtin_inff(), .hi = __builtin_inff() };
}

/** The activation of @n results in a row, which are stored but for it. */
static inline void
kiln_cpu_tail_activate(const KilnCpuTail *tail, float *out, int64_t n)
{
    if (tail->activation)
        tail->activation(out, out, n, &tail->params);
}

#endif
