/* SPDX-License-Identifier: Apache-2.0 */
/* The template of loops over weights of few bits (gemm_nbits.h): a register tile for few rows, and
 * the conversion of a panel to floats. The including file includes gemm_tile_cases.h first and
 * defines
 *
 *     WORDS                           a vector of VW lanes of 32 bits
 *     WORDS_LOAD(p)                   loads one from any address
 *     nbits_numbers(x, shift, bits)   @bits bits of each lane from bit @shift on, as floats
 *     nbits_bytes(p)                  VW bytes as floats
 *     NBITS_CENTRED(x, shift)         the same of 4 bits less 8, where that takes less; or nothing
 *     NBITS_STEPS                     how many steps of a word have code of their own, at most
 *
 * The tile sums in the order of tile(), where blocks and blocks of depth have whole words. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_NBITS_TILE_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_NBITS_TILE_H

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/gemm_nbits.h"
#include "backends/cpu/simd/unrolled.h"

enum {
    NBITS_SUMS = 6, /* most accumulators: rows times sums that are kept apart */
    NBITS_BYTES = VW * 4,
};

/* The compile-time constants of a loop. */
typedef struct {
    int bits, vectors, rows, sums;
    bool middle; /* zero points are the middle of the range */
} NbitsKind;

/* What the weights of a block have in common. */
typedef struct {
    V scale[2], minus[2]; /* minus: the zero point times -1 */
} NbitsHead;

/* The part of a block that a loop covers. */
typedef struct {
    const char *words;    /* the first one */
    int64_t first, steps; /* steps of that word that come before; steps of the part */
} NbitsPart;

ALWAYS_INLINE NbitsHead
nbits_head(const KilnGemmNbits *n, const char *block, int64_t pitch, const NbitsKind kind)
{
    NbitsHead head;
    const char *zeros = block + 4 * pitch;
    UNROLLED
    for (int v = 0; v < kind.vectors; v++) {
        head.scale[v] = V_LOAD((const float *)(const void *)block + v * VW);
        V zero = V_SET1((float)(1 << (kind.bits - 1)));
        if (!kind.middle && n->zeros == KILN_GEMM_ZEROS_F32)
            zero = V_LOAD((const float *)(const void *)zeros + v * VW);
        else if (!kind.middle && n->zeros == KILN_GEMM_ZEROS_U8)
            zero = nbits_bytes((const uint8_t *)zeros + v * VW);
        head.minus[v] = V_MUL(zero, V_SET1(-1.0f));
    }
    return head;
}

/* The weights that @x has from bit @shift on, of vector @v of the panel. */
ALWAYS_INLINE V
nbits_weights(const NbitsHead *head, WORDS x, const int v, int shift, const NbitsKind kind)
{
#ifdef NBITS_CENTRED
    if (kind.middle && kind.bits == 4)
        return V_MUL(NBITS_CENTRED(x, shift), head->scale[v]);
#endif
    return V_MUL(V_ADD(nbits_numbers(x, shift, kind.bits), head->minus[v]), head->scale[v]);
}

/* The part of the block of step @k that ends before step @end, in a panel that begins at @panel. */
ALWAYS_INLINE NbitsPart
nbits_part(const KilnGemmNbits *n, const char *block, int64_t pitch, int64_t k, int64_t end,
           const int bits)
{
    const int per_word = KILN_GEMM_WORD_BITS / bits;
    const int64_t in = k % n->block, left = n->block - in;
    return (NbitsPart){ block + (kiln_gemm_nbits_head(n) + in / per_word * 4) * pitch,
                        in % per_word, end - k < left ? end - k : left };
}

/* --- few rows --- */

typedef struct {
    V v[2][NBITS_SUMS];
} NbitsSums;

/* Adds a step to the sums that begin with @first. */
ALWAYS_INLINE void
nbits_add(NbitsSums *sums, V w, const float *a, const int v, const int first, const NbitsKind kind)
{
    UNROLLED
    for (int i = 0; i < kind.rows; i++)
        sums->v[v][first + i] = V_FMA(V_SET1(a[i]), w, sums->v[v][first + i]);
}

/* @n steps of the words @x from step @first on, which is a multiple of kind.sums. */
ALWAYS_INLINE void
nbits_group(NbitsSums *sums, const NbitsHead *head, const WORDS *x, const float *a, int first,
            const int n, const NbitsKind kind)
{
    UNROLLED
    for (int s = 0; s < n; s++) {
        UNROLLED
        for (int v = 0; v < kind.vectors; v++)
            nbits_add(sums, nbits_weights(head, x[v], v, (first + s) * kind.bits, kind),
                      a + (first + s) * kind.rows, v, s % kind.sums * kind.rows, kind);
    }
}

/* A whole word of steps. Where all have code of their own, that is fast. It is much, too, so rare
 * kinds have code for a few. */
ALWAYS_INLINE void
nbits_word(NbitsSums *sums, const NbitsHead *head, const char *words, const float *a,
           const NbitsKind kind)
{
    WORDS x[2];
    UNROLLED
    for (int v = 0; v < kind.vectors; v++)
        x[v] = WORDS_LOAD(words + v * NBITS_BYTES);
    __builtin_prefetch(words + KILN_GEMM_NBITS_AHEAD, 0, 2);
    if (kind.vectors * NBITS_BYTES > 64)
        __builtin_prefetch(words + KILN_GEMM_NBITS_AHEAD + 64, 0, 2);
    const int steps = KILN_GEMM_WORD_BITS / kind.bits;
    const int most = kind.vectors == 1 ? 1 : kind.bits == 2 ? 4 : NBITS_STEPS;
    const int group = MIN(steps, MAX(most, kind.sums));
    if (group == steps) {
        nbits_group(sums, head, x, a, 0, steps, kind);
        return;
    }
    LOOPED
    for (int first = 0; first < steps; first += group)
        nbits_group(sums, head, x, a, first, group, kind);
}

/* The first @steps steps behind @first of a word. */
ALWAYS_INLINE void
nbits_some(NbitsSums *sums, const NbitsHead *head, const NbitsPart *part, const float *a,
           int64_t steps, const NbitsKind kind)
{
    LOOPED
    for (int64_t s = 0; s < steps; s++) {
        UNROLLED
        for (int v = 0; v < kind.vectors; v++) {
            const int shift = (int)(part->first + s) * kind.bits;
            V w = nbits_weights(head, WORDS_LOAD(part->words + v * NBITS_BYTES), v, shift, kind);
            nbits_add(sums, w, a + s * kind.rows, v, 0, kind);
        }
    }
}

ALWAYS_INLINE void
nbits_sum_part(NbitsSums *sums, const NbitsHead *head, NbitsPart part, const float *a,
               int64_t pitch, const NbitsKind kind)
{
    const int64_t per_word = KILN_GEMM_WORD_BITS / kind.bits;
    if (part.first) {
        const int64_t left = per_word - part.first, n = part.steps < left ? part.steps : left;
        nbits_some(sums, head, &part, a, n, kind);
        part = (NbitsPart){ part.words + 4 * pitch, 0, part.steps - n };
        a += n * kind.rows;
    }
    for (; part.steps >= per_word; part.steps -= per_word) {
        nbits_word(sums, head, part.words, a, kind);
        part.words += 4 * pitch;
        a += per_word * kind.rows;
    }
    nbits_some(sums, head, &part, a, part.steps, kind);
}

ALWAYS_INLINE void
nbits_store(const KilnGemmTile *t, const NbitsSums *sums, const NbitsKind kind)
{
    Sums result;
    UNROLLED
    for (int i = 0; i < kind.rows * kind.sums; i++) {
        result.v[i][0] = sums->v[0][i];
        if (kind.vectors > 1)
            result.v[i][1] = sums->v[1][i];
    }
    join_sums(&result, kind.rows, kind.vectors, kind.sums);
    store_sums(t, &result);
}

ALWAYS_INLINE void
sum_nbits(const KilnGemmTile *t, const NbitsKind kind)
{
    const KilnGemmNbits *n = t->nbits;
    const int64_t pitch = t->b_pitch, end = t->k + t->depth;
    const float *a = t->a;
    NbitsSums sums;
    UNROLLED
    for (int i = 0; i < NBITS_SUMS; i++)
        sums.v[0][i] = sums.v[1][i] = V_SET1(0.0f);
    for (int64_t k = t->k; k < end;) {
        const char *block = (const char *)t->b + k / n->block * kiln_gemm_nbits_block(n) * pitch;
        const NbitsPart part = nbits_part(n, block, pitch, k, end, kind.bits);
        const NbitsHead head = nbits_head(n, block, pitch, kind);
        nbits_sum_part(&sums, &head, part, a, pitch, kind);
        a += part.steps * kind.rows;
        k += part.steps;
    }
    nbits_store(t, &sums, kind);
}

// clang-format off
#define NBITS_CASE(n, s)                                                                           \
    case n: sum_nbits(t, (NbitsKind){ bits, vectors, n, s, middle }); break;
// clang-format on

ALWAYS_INLINE void
tile_of_nbits(const KilnGemmTile *t, const int bits, const int vectors, const bool middle)
{
    switch (t->rows) {
        EVERY_NARROW(NBITS_CASE)
    }
}

ALWAYS_INLINE void
tile_of_bits(const KilnGemmTile *t, const int bits, const bool middle)
{
    if (t->cols > VW)
        tile_of_nbits(t, bits, 2, middle);
    else
        tile_of_nbits(t, bits, 1, middle);
}

static void
tile_nbits(const KilnGemmTile *t)
{
    switch (t->nbits->bits) {
    case 2:
        tile_of_bits(t, 2, false);
        break;
    case 4:
#ifdef NBITS_CENTRED
        if (t->nbits->zeros == KILN_GEMM_ZEROS_MIDDLE) {
            tile_of_bits(t, 4, true);
            break;
        }
#endif
        tile_of_bits(t, 4, false);
        break;
    default:
        tile_of_bits(t, 8, false);
        break;
    }
}

/* --- panels of floats --- */

ALWAYS_INLINE void
nbits_widen(const KilnGemmUnpack *u, const NbitsKind kind)
{
    const KilnGemmNbits *n = u->nbits;
    const int per_word = KILN_GEMM_WORD_BITS / kind.bits;
    const int64_t end = u->k + u->depth;
    float *dst = u->dst;
    for (int64_t k = u->k; k < end;) {
        const char *block =
            (const char *)u->src + k / n->block * kiln_gemm_nbits_block(n) * u->pitch;
        NbitsPart part = nbits_part(n, block, u->pitch, k, end, kind.bits);
        const NbitsHead head = nbits_head(n, block, u->pitch, kind);
        k += part.steps;
        while (part.steps > 0) {
            const int64_t left = per_word - part.first;
            const int64_t steps = part.steps < left ? part.steps : left;
            for (int v = 0; v < kind.vectors; v++) {
                const WORDS x = WORDS_LOAD(part.words + v * NBITS_BYTES);
                for (int64_t s = 0; s < steps; s++)
                    V_STORE(dst + s * u->pitch + v * VW,
                            nbits_weights(&head, x, v, (int)(part.first + s) * kind.bits, kind));
            }
            dst += steps * u->pitch;
            part = (NbitsPart){ part.words + 4 * u->pitch, 0, part.steps - steps };
        }
    }
}

ALWAYS_INLINE void
nbits_widen_bits(const KilnGemmUnpack *u, const int bits)
{
    if (u->pitch > VW)
        nbits_widen(u, (NbitsKind){ .bits = bits, .vectors = 2 });
    else
        nbits_widen(u, (NbitsKind){ .bits = bits, .vectors = 1 });
}

static void
unpack_nbits(const KilnGemmUnpack *u)
{
    switch (u->nbits->bits) {
    case 2:
        nbits_widen_bits(u, 2);
        break;
    case 4:
        nbits_widen_bits(u, 4);
        break;
    default:
        nbits_widen_bits(u, 8);
        break;
    }
}

#endif
