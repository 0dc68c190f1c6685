/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of sums on their way out: they are stored as i32, or scaled to bytes. Private to the
 * folder. */
#ifndef KILN_BACKENDS_CPU_INTEGER_INTEGER_STORE_H
#define KILN_BACKENDS_CPU_INTEGER_INTEGER_STORE_H

#include "backends/cpu/integer/integer_kernel.h"

#include <stddef.h>
#include <string.h>

/* Of a whole instruction. factors: NULL for i32. */
typedef struct {
    const float
        *factors; /* x_scale * w_scale / y_scale, per channel of the weights or one; finite */
    bool one_factor;
    bool is_signed;
    int32_t zero;
} KilnIntegerOut;

static inline size_t
kiln_integer_out_size(const KilnIntegerOut *out)
{
    return out->factors ? 1 : sizeof(int32_t);
}

/** @n sums of a panel, whose columns are there in memory, to @to. @channel is that of the first. */
static inline void
kiln_integer_store(const KilnIntegerKernels *kernels, const KilnIntegerOut *out, void *to,
                   const int32_t *sums, int64_t n, int64_t channel)
{
    if (!out->factors) {
        memcpy(to, sums, (size_t)n * sizeof *sums);
        return;
    }
    const KilnIntegerScale scale = { .factors = out->factors + (out->one_factor ? 0 : channel),
                                     .one = out->one_factor,
                                     .is_signed = out->is_signed,
                                     .zero = out->zero };
    uint8_t scaled[KILN_INTEGER_MAX_COLS];
    kernels->scale(scaled, sums, n, &scale);
    memcpy(to, scaled, (size_t)n);
}

#endif
