/* SPDX-License-Identifier: Apache-2.0 */
/* Stores sums as i32, or scaled to bytes. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_INTEGER_INTEGER_STORE_H
#define KILN_BACKENDS_CPU_INTEGER_INTEGER_STORE_H

#include "backends/cpu/integer/integer_kernel.h"

#include <stddef.h>
#include <string.h>

/* How an instruction stores its sums. factors is NULL for i32. */
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

/** Stores @n sums of a panel at @to. @channel is the channel of the first. @sums must be readable
 * to the end of the panel. */
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
