/* SPDX-License-Identifier: Apache-2.0 */
/* The direct convolution kernels for AVX-512. */
#include "backends/cpu/simd/simd_avx512.h"

#include "backends/cpu/conv/conv_depthwise_plane.h"
#include "backends/cpu/conv/conv_kernel.h"

#define V_ZIP(low, high, a, b)                                                                     \
    do {                                                                                           \
        const __m512i first =                                                                      \
            _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);             \
        const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));                      \
        low = _mm512_permutex2var_ps(a, first, b);                                                 \
        high = _mm512_permutex2var_ps(a, second, b);                                               \
    } while (0)
#include "backends/cpu/conv/conv_loops.h"

/* The lowest n bits of 32; n may lie outside of 0 … 32. */
static inline uint32_t
bits_below(int64_t n)
{
    return n >= 32 ? UINT32_MAX : n <= 0 ? 0 : (1u << n) - 1;
}

static void
halo_row(const KilnHaloRow *r)
{
    int64_t lo = r->lo, hi = r->hi, length = r->length;
    if (r->stride == 1) {
        for (int64_t q = 0; q < length; q += 16) {
            uint32_t mask = bits_below(hi - q) & ~bits_below(lo - q);
            V_STORE_SOME(r->dst + q, V_MASK(length - q), V_LOAD_SOME(r->src + q, (MASK)mask));
        }
    } else if (r->stride == 2) {
        for (int64_t q = 0; q < length; q += 16) {
            uint32_t mask = bits_below(2 * (hi - q) - 1) & ~bits_below(2 * (lo - q));
            V x = V_LOAD_SOME(r->src + 2 * q, (MASK)mask);
            V y = V_LOAD_SOME(r->src + 2 * q + 16, (MASK)(mask >> 16));
            V_STORE_SOME(r->dst + q, V_MASK(length - q), V_EVENS(x, y));
        }
    } else {
        for (int64_t q = 0; q < length; q++)
            r->dst[q] = q >= lo && q < hi ? r->src[q * r->stride] : 0.0f;
    }
}

const KilnConvKernels kiln_conv_kernels_avx512 = {
    .halo_row = halo_row, .add = add_rows, .weave = weave, .plane = depthwise_plane
};
