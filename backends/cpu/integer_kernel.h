/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loops of products of bytes, per instruction set. A product is one of rows of u8 by a
 * panel of columns of s8, which is the order that dot-product instructions want; whatever else
 * comes is brought there by flipping sign bits, and its zero point moves by 128. Sums are in i32
 * and wrap, so that every instruction set has the same bits: none of the loops uses an instruction
 * that saturates. Depth goes in groups of four bytes; a panel is [groups][columns][4]. Private to
 * the folder.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    KILN_INTEGER_GROUP = 4,
    KILN_INTEGER_MAX_ROWS = 8,
    KILN_INTEGER_MAX_COLS = 48,
    KILN_INTEGER_BLOCK = 16, /* what is scaled at once: a panel's columns are a multiple */
};

/* What zero points and a bias make of the sums of one row:
 * sum[c] + add + base[c] - row_zero * sums[c] - row_sum * zeros[c]. */
typedef struct {
    int32_t add, row_zero, row_sum;
    const int32_t *sums, *base, *zeros; /* per column; base NULL: only sums */
} KilnIntegerFix;

/* Sums times factors, rounded half to even, from a zero point. */
typedef struct {
    const float *factors;
    bool per_column; /* or one for all */
    bool is_signed;  /* i8, or u8 */
    int32_t zero;
} KilnIntegerScale;

typedef struct {
    int rows, cols; /* of a tile: no more than the maxima above */
    /* out[rows][cols] = rows × panel, of which the first @n_rows and @n_cols count. */
    void (*tile)(int n_rows, int64_t n_cols, const uint8_t *const *rows, const int8_t *panel,
                 int64_t groups, int32_t *out);
    /* out[cols]: what lies behind each tap times the row's weights less @zero. */
    void (*window)(const int8_t *base, const int64_t *taps, int64_t n_taps, const uint8_t *row,
                   int32_t zero, int32_t *out);
    /* One group of a panel from four rows of cols bytes. */
    void (*interleave)(const int8_t *const from[KILN_INTEGER_GROUP], int8_t *to);
    void (*fix)(int32_t *sums, int64_t n, const KilnIntegerFix *fix);
    /* In whole blocks: reads and writes as many as @n is rounded up to. */
    void (*scale)(void *out, const int32_t *sums, int64_t n, const KilnIntegerScale *scale);
    /* to = from with flipped sign bits where @flip is 0x80; returns the sum of what is stored in
     * to, seen as u8. */
    uint32_t (*flip)(uint8_t *to, const uint8_t *from, int64_t n, uint8_t flip);
    /* Every @step-th byte, without the sum. */
    void (*pick)(uint8_t *to, const uint8_t *from, int64_t n, int64_t step, uint8_t flip);
    /* The least and the greatest of @n floats and 0; NaNs count as NaNs. */
    void (*range)(const float *x, int64_t n, float *low, float *high);
} KilnIntegerKernels;

extern const KilnIntegerKernels kiln_integer_kernels_portable;
#if defined(__x86_64__)
extern const KilnIntegerKernels kiln_integer_kernels_avx2;
extern const KilnIntegerKernels kiln_integer_kernels_avxvnni;
extern const KilnIntegerKernels kiln_integer_kernels_avx512;
extern const KilnIntegerKernels kiln_integer_kernels_avx512vnni;
#endif

/** The fastest of this machine, within what KILN_CPU_ISA allows. */
const KilnIntegerKernels *kiln_integer_kernels(void);
