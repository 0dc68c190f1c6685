/* SPDX-License-Identifier: Apache-2.0 */
/* AVX-512: tiles of 14 rows by 2 vectors of 16. 28 accumulators, two vectors of the column panel
 * and one broadcast are 31 of the 32 registers; 16 loads feed 28 multiply-adds. */
#include "backends/cpu/gemm/gemm_transpose_x86.h"

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/simd/simd_avx512.h"

static inline __m512
load_bf16(const uint16_t *p)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

#define V_LOAD_BF16(p) load_bf16(p)
#define V_LOAD_F16(p) _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(p)))
#define TILE_ROWS 14
#include "backends/cpu/gemm/gemm_tile_cases.h"

#define EXACT __m512i
#define EXACT_TABLE __m512i
#define EXACT_LOAD(p) _mm512_loadu_si512(p)
/* Bits of a where the mask has ones, else of b. */
#define PICK(mask, a, b) _mm512_ternarylogic_epi32(a, _mm512_set1_epi32((int)(mask)), b, 0xe2)

static inline __m512i
exact_table(const uint8_t *exponents)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)exponents));
}

static inline __m512i
exact_exponents(__m512i codes, __m512i table, const bool odd)
{
    if (odd)
        codes = _mm512_srli_epi32(codes, 4);
    return _mm512_shuffle_epi8(table, _mm512_and_si512(codes, _mm512_set1_epi32(0x0f0f0f0f)));
}

static inline __m512
exact_float(__m512i x, __m512i exponents, const int r)
{
    __m512i exponent =
        r == 3 ? _mm512_srli_epi32(exponents, 1) : _mm512_slli_epi32(exponents, 23 - 8 * r);
    return _mm512_castsi512_ps(PICK(0x7f800000, exponent, x));
}

static inline __m512i
exact_join(__m512i x, __m512i y, __m512i z)
{
    __m512i low = PICK(0x8000007f, _mm512_ror_epi32(x, 24), _mm512_ror_epi32(y, 16));
    return PICK(0x80007fff, low, _mm512_ror_epi32(z, 8));
}
#include "backends/cpu/gemm/gemm_exact_tile.h"

#define WORDS __m512i
#define WORDS_LOAD(p) _mm512_loadu_si512(p)

/* The lookup reads the low four bits of a lane, whatever the others are. */
static inline __m512
nbits_numbers(__m512i x, int shift, const int bits)
{
    x = _mm512_srli_epi32(x, (unsigned)shift);
    if (bits == 4)
        return _mm512_permutexvar_ps(
            x, _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    return _mm512_cvtepi32_ps(_mm512_and_si512(x, _mm512_set1_epi32((1 << bits) - 1)));
}

static inline __m512
nbits_centred(__m512i x, int shift)
{
    return _mm512_permutexvar_ps(
        _mm512_srli_epi32(x, (unsigned)shift),
        _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7));
}

static inline __m512
nbits_bytes(const uint8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p)));
}

#define NBITS_CENTRED(x, shift) nbits_centred(x, shift)
#define NBITS_STEPS 8
#include "backends/cpu/gemm/gemm_nbits_tile.h"

/* What one vector of a panel's row takes from one run. */
typedef struct {
    const char *src; /* where lane 0 would be, were the run long enough */
    __mmask16 mask;
} Piece;

/* Lanes first … first + 15 of the panel, as masked loads; returns how many. */
static int
pieces_of(const KilnGemmCopy *c, int64_t first, Piece *pieces)
{
    int n = 0;
    for (int r = 0; r < c->n_runs; r++) {
        int64_t from = c->runs[r].at - first, to = from + c->runs[r].len;
        if (to <= 0 || from >= 16)
            continue;
        pieces[n].src = (const char *)c->src + 4 * (c->runs[r].src - from);
        pieces[n++].mask = V_LANES(from, to);
    }
    return n;
}

static void
copy(const KilnGemmCopy *c)
{
    for (int64_t first = 0; first < c->pitch; first += 16) {
        Piece pieces[16];
        int n = pieces_of(c, first, pieces);
        __mmask16 store = V_MASK(c->pitch - first);
        float *dst = c->dst + first;
        for (int64_t k = 0; k < c->depth; k++, dst += c->pitch) {
            int64_t at = 4 * kiln_gemm_copy_offset(c, k);
            __m512 x = _mm512_setzero_ps();
            for (int i = 0; i < n; i++)
                x = _mm512_mask_loadu_ps(x, pieces[i].mask, pieces[i].src + at);
            _mm512_mask_storeu_ps(dst, store, x);
        }
    }
}

const KilnGemmKernels kiln_gemm_kernels_avx512 = {
    .vector = VW,
    .max_rows = TILE_ROWS,
    .max_cols = 2 * VW,
    .pair_rows = 4,
    .tile = { tile, tile_bf16, tile_f16, tile_exact, tile_nbits },
    .sums = tile_sums,
    .pair = { [KILN_GEMM_F32] = pair, [KILN_GEMM_EXACT] = pair_exact },
    .copy = copy,
    .finish = finish,
    .unpack = unpack_nbits,
    .transpose = kiln_gemm_transpose_x86,
};
