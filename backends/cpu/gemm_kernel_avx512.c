/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AVX-512: tiles of 14 rows by 2 vectors of 16. 28 accumulators, two vectors of the column panel
 * and one broadcast are 31 of the 32 registers; 16 loads feed 28 multiply-adds.
 */
#include "backends/cpu/gemm_transpose_x86.h"

#include "backends/cpu/simd_avx512.h"

static inline __m512
load_bf16(const uint16_t *p)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

#define V_LOAD_BF16(p) load_bf16(p)
#define V_LOAD_F16(p) _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(p)))
#define TILE_ROWS 14
#include "backends/cpu/gemm_tile.h"

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
    .tile = { tile, tile_bf16, tile_f16 },
    .sums = tile_sums,
    .pair = pair,
    .copy = copy,
    .finish = finish,
    .transpose = kiln_gemm_transpose_x86,
};
