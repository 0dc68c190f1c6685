/* SPDX-License-Identifier: Apache-2.0 */
/* AVX2 with FMA: tiles of 6 rows by 2 vectors of 8. 12 accumulators, two vectors of the column
 * panel and one broadcast are 15 of the 16 registers. */
#include "backends/cpu/gemm/gemm_transpose_x86.h"

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/simd/simd_avx2.h"

static inline __m256
load_bf16(const uint16_t *p)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

#define V_LOAD_BF16(p) load_bf16(p)
#define V_LOAD_F16(p) _mm256_cvtph_ps(_mm_loadu_si128((const void *)(p)))
#define TILE_ROWS 6
#include "backends/cpu/gemm/gemm_tile_cases.h"

#define EXACT __m256i
#define EXACT_TABLE __m256i
#define EXACT_LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define KEEP_BITS(x, mask) _mm256_and_si256(x, _mm256_set1_epi32((int)(mask)))

static inline __m256i
exact_table(const uint8_t *exponents)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)exponents));
}

static inline __m256i
exact_exponents(__m256i codes, __m256i table, const bool odd)
{
    if (odd)
        codes = _mm256_srli_epi32(codes, 4);
    return _mm256_shuffle_epi8(table, KEEP_BITS(codes, 0x0f0f0f0f));
}

static inline __m256
exact_float(__m256i x, __m256i exponents, const int r)
{
    __m256i exponent =
        r == 3 ? _mm256_srli_epi32(exponents, 1) : _mm256_slli_epi32(exponents, 23 - 8 * r);
    return _mm256_castsi256_ps(
        _mm256_or_si256(KEEP_BITS(x, 0x807fffff), KEEP_BITS(exponent, 0x7f800000)));
}

static inline __m256i
exact_join(__m256i x, __m256i y, __m256i z)
{
    __m256i sign = KEEP_BITS(_mm256_slli_epi32(x, 8), 0x80000000);
    __m256i low = _mm256_or_si256(sign, KEEP_BITS(_mm256_srli_epi32(x, 24), 0x7f));
    __m256i high = _mm256_or_si256(KEEP_BITS(_mm256_srli_epi32(y, 16), 0x7f80),
                                   KEEP_BITS(_mm256_srli_epi32(z, 8), 0x7f8000));
    return _mm256_or_si256(low, high);
}
#include "backends/cpu/gemm/gemm_exact_tile.h"

#define WORDS __m256i
#define WORDS_LOAD(p) _mm256_loadu_si256((const void *)(p))

static inline __m256
nbits_numbers(__m256i x, int shift, const int bits)
{
    return _mm256_cvtepi32_ps(KEEP_BITS(_mm256_srli_epi32(x, shift), (1 << bits) - 1));
}

static inline __m256
nbits_bytes(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p)));
}
#define NBITS_STEPS 8
#include "backends/cpu/gemm/gemm_nbits_tile.h"

/* What one vector of a panel's row takes from one run. */
typedef struct {
    const char *src; /* where lane 0 would be, were the run long enough */
    __m256i mask;
} Piece;

/* Lanes first … first + 7 of the panel, as masked loads; returns how many. */
static int
pieces_of(const KilnGemmCopy *c, int64_t first, Piece *pieces)
{
    int n = 0;
    for (int r = 0; r < c->n_runs; r++) {
        int64_t from = c->runs[r].at - first, to = from + c->runs[r].len;
        if (to <= 0 || from >= 8)
            continue;
        pieces[n].src = (const char *)c->src + 4 * (c->runs[r].src - from);
        pieces[n++].mask = V_LANES(from, to);
    }
    return n;
}

static void
copy(const KilnGemmCopy *c)
{
    for (int64_t first = 0; first < c->pitch; first += 8) {
        Piece pieces[8];
        int n = pieces_of(c, first, pieces);
        bool whole = c->pitch - first >= 8;
        __m256i store = lanes_below(c->pitch - first);
        float *dst = c->dst + first;
        for (int64_t k = 0; k < c->depth; k++, dst += c->pitch) {
            int64_t at = 4 * kiln_gemm_copy_offset(c, k);
            __m256 x = _mm256_setzero_ps();
            for (int i = 0; i < n; i++) {
                const float *src = (const float *)(const void *)(pieces[i].src + at);
                x = _mm256_or_ps(x, _mm256_maskload_ps(src, pieces[i].mask));
            }
            if (whole)
                _mm256_storeu_ps(dst, x);
            else
                _mm256_maskstore_ps(dst, store, x);
        }
    }
}

const KilnGemmKernels kiln_gemm_kernels_avx2 = {
    .vector = VW,
    .max_rows = TILE_ROWS,
    .max_cols = 2 * VW,
    .tile = { tile, tile_bf16, tile_f16, tile_exact, tile_nbits },
    .sums = tile_sums,
    .copy = copy,
    .finish = finish,
    .unpack = unpack_nbits,
    .transpose = kiln_gemm_transpose_x86,
};
