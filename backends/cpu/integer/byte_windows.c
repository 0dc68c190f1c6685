/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/integer/byte_windows.h"

#include "backends/cpu/isa.h"

/* out[i] = the larger of itself and x[i * stride], with flipped bits. */
static void
take_larger(uint8_t *restrict out, const uint8_t *restrict x, int64_t n, int64_t stride,
            uint8_t flip)
{
    for (int64_t i = 0; i < n; i++) {
        const uint8_t byte = x[i * stride] ^ flip;
        out[i] = byte > out[i] ? byte : out[i];
    }
}

void
kiln_cpu_largest_bytes_portable(const KilnCpuByteWindows *w)
{
    for (int64_t i = 0; i < w->n; i++)
        w->out[i] = 0;
    for (int64_t row = 0; row < w->rows; row++) {
        for (int64_t k = 0; k < w->taps; k++) {
            const uint8_t *x = w->x + row * w->pitch + k * w->dilation;
            if (w->stride == 1)
                take_larger(w->out, x, w->n, 1, w->flip);
            else
                take_larger(w->out, x, w->n, w->stride, w->flip);
        }
    }
    for (int64_t i = 0; i < w->n; i++)
        w->out[i] ^= w->flip;
}

KilnCpuLargestBytes
kiln_cpu_largest_bytes(void)
{
    return KILN_CPU_OF_ISA(KILN_CPU_ISA_AUTO, kiln_cpu_largest_bytes);
}
