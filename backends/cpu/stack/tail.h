/* SPDX-License-Identifier: Apache-2.0 */
/* The tail: steps of convolutions and products on their sums, before or just after they are stored.
 * Private to the folder. */
#ifndef KILN_BACKENDS_CPU_STACK_TAIL_H
#define KILN_BACKENDS_CPU_STACK_TAIL_H

#include "backends/cpu/elementwise/elementwise.h"

/** x = clip(sum + residual), then activation(x). Every part rounds by itself, as an instruction
 * would. The residual has the layout of the result and may be the result itself. */
typedef struct {
    float lo, hi;               /* -INFINITY and INFINITY change nothing, NaN included */
    bool residual;              /* there is a residual; its address is passed elsewhere */
    KilnCpuUnaryRow activation; /* works on a row that is stored already; NULL: none */
    KilnCpuParams params;
} KilnCpuTail;

static inline KilnCpuTail
kiln_cpu_tail_none(void)
{
    return (KilnCpuTail){ .lo = -__builtin_inff(), .hi = __builtin_inff() };
}

/** Applies the activation to @n stored results in a row. */
static inline void
kiln_cpu_tail_activate(const KilnCpuTail *tail, float *out, int64_t n)
{
    if (tail->activation)
        tail->activation(out, out, n, &tail->params);
}

#endif
