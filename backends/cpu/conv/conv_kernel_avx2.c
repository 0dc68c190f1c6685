/* SPDX-License-Identifier: Apache-2.0 */
/* The direct convolution kernels for AVX2. */
#include "backends/cpu/simd/simd_avx2.h"

#include "backends/cpu/conv/conv_depthwise_plane.h"
#include "backends/cpu/conv/conv_kernel.h"

#define V_ZIP(low, high, a, b)                                                                     \
    do {                                                                                           \
        __m256 evens = _mm256_unpacklo_ps(a, b), odds = _mm256_unpackhi_ps(a, b);                  \
        low = _mm256_permute2f128_ps(evens, odds, 0x20);                                           \
        high = _mm256_permute2f128_ps(evens, odds, 0x31);                                          \
    } while (0)
#include "backends/cpu/conv/conv_loops.h"

static inline V
load_every(const float *src, int64_t stride, int64_t lo, int64_t hi)
{
    if (stride == 1)
        return lo <= 0 && hi >= 8 ? V_LOAD(src) : V_LOAD_SOME(src, V_LANES(lo, hi));
    V x = V_LOAD_SOME(src, V_LANES(2 * lo, 2 * hi - 1));
    V y = V_LOAD_SOME(src + 8, V_LANES(2 * lo - 8, 2 * hi - 9));
    return V_EVENS(x, y);
}

static void
halo_row(const KilnHaloRow *r)
{
    int64_t q = 0;
    for (; r->stride <= 2 && q < r->length; q += 8) {
        V x = load_every(r->src + q * r->stride, r->stride, r->lo - q, r->hi - q);
        if (q + 8 <= r->length)
            V_STORE(r->dst + q, x);
        else
            V_STORE_SOME(r->dst + q, V_MASK(r->length - q), x);
    }
    for (; q < r->length; q++)
        r->dst[q] = q >= r->lo && q < r->hi ? r->src[q * r->stride] : 0.0f;
}

const KilnConvKernels kiln_conv_kernels_avx2 = {
    .halo_row = halo_row, .add = add_rows, .weave = weave, .plane = depthwise_plane
};
