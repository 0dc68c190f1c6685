/* SPDX-License-Identifier: Apache-2.0 */
/* Any processor: tiles of 4 rows by 2 vectors of 4 in the compiler's generic vectors. Without a
 * fused instruction to rely on, products are rounded before they are added. */
#include "backends/cpu/gemm/gemm_kernel.h"

#include "graph/base/number.h"

#include <string.h>

#include "backends/cpu/simd/simd_portable.h"

static inline V
load_bf16(const uint16_t *p)
{
    return (V){ kiln_bf16_to_f32(p[0]), kiln_bf16_to_f32(p[1]), kiln_bf16_to_f32(p[2]),
                kiln_bf16_to_f32(p[3]) };
}

static inline V
load_f16(const uint16_t *p)
{
    return (V){ kiln_f16_to_f32(p[0]), kiln_f16_to_f32(p[1]), kiln_f16_to_f32(p[2]),
                kiln_f16_to_f32(p[3]) };
}

#define V_LOAD_BF16(p) load_bf16(p)
#define V_LOAD_F16(p) load_f16(p)
#define TILE_ROWS 4
#include "backends/cpu/gemm/gemm_tile_cases.h"

typedef uint32_t Exact __attribute__((vector_size(16)));

#define EXACT Exact
#define EXACT_TABLE const uint8_t *
#define EXACT_LOAD(p) load_exact(p)
#define exact_table(exponents) (exponents)

static inline Exact
load_exact(const void *p)
{
    Exact x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline Exact
exact_exponents(Exact codes, const uint8_t *table, const bool odd)
{
    Exact x;
    codes >>= odd ? 4 : 0;
    for (int i = 0; i < 4; i++)
        x[i] = table[codes[i] & 15] | (uint32_t)table[codes[i] >> 8 & 15] << 8 |
               (uint32_t)table[codes[i] >> 16 & 15] << 16 |
               (uint32_t)table[codes[i] >> 24 & 15] << 24;
    return x;
}

static inline V
exact_float(Exact x, Exact exponents, const int r)
{
    x = (x & 0x807fffff) | (exponents >> 8 * r & 0xff) << 23;
    V y;
    memcpy(&y, &x, sizeof y);
    return y;
}

static inline Exact
exact_join(Exact x, Exact y, Exact z)
{
    return (x << 8 & 0x80000000) | (x >> 24 & 0x7f) | (y >> 16 & 0x7f80) | (z >> 8 & 0x7f8000);
}
#include "backends/cpu/gemm/gemm_exact_tile.h"

#define WORDS Exact
#define WORDS_LOAD(p) load_exact(p)

static inline V
nbits_numbers(Exact x, int shift, const int bits)
{
    x = x >> (uint32_t)shift & (uint32_t)((1 << bits) - 1);
    return (V){ (float)x[0], (float)x[1], (float)x[2], (float)x[3] };
}

static inline V
nbits_bytes(const uint8_t *p)
{
    return (V){ p[0], p[1], p[2], p[3] };
}
#define NBITS_STEPS 1
#include "backends/cpu/gemm/gemm_nbits_tile.h"

static void
copy(const KilnGemmCopy *c)
{
    float *dst = c->dst;
    for (int64_t k = 0; k < c->depth; k++, dst += c->pitch) {
        const char *src = (const char *)c->src + 4 * kiln_gemm_copy_offset(c, k);
        int64_t end = 0;
        for (int r = 0; r < c->n_runs; r++) {
            const KilnGemmRun *run = &c->runs[r];
            memcpy(dst + run->at, src + 4 * run->src, 4 * (size_t)run->len);
            end = run->at + run->len;
        }
        for (int64_t i = end; i < c->pitch; i++)
            dst[i] = 0.0f;
    }
}

static void
transpose(const KilnGemmTranspose *t)
{
    for (int64_t k = 0; k < t->depth; k++) {
        float *dst = t->dst + k * t->pitch;
        for (int64_t i = 0; i < t->lanes; i++)
            memcpy(dst + i, (const char *)t->src + 4 * (i * t->stride + k), 4);
        for (int64_t i = t->lanes; i < t->pitch; i++)
            dst[i] = 0.0f;
    }
}

const KilnGemmKernels kiln_gemm_kernels_portable = {
    .vector = VW,
    .max_rows = TILE_ROWS,
    .max_cols = 2 * VW,
    .tile = { tile, tile_bf16, tile_f16, tile_exact, tile_nbits },
    .sums = tile_sums,
    .copy = copy,
    .finish = finish,
    .unpack = unpack_nbits,
    .transpose = transpose,
};
