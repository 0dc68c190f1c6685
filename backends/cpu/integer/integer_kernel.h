/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of products of bytes, per instruction set. A product is one of rows of u8 by a
 * panel of columns of s8, which is the order that dot-product instructions want; whatever else
 * comes is brought there by flipping sign bits, and its zero point moves by 128. Sums are in i32
 * and wrap, so that every instruction set has the same bits: none of the loops uses an instruction
 * that saturates. Depth goes in groups of four bytes; a panel is [groups][columns][4].
 *
 * A convolution reads its columns, which are pixels, where they lie, as u8. Its weights are s8.
 * Private to the folder. */
#ifndef KILN_BACKENDS_CPU_INTEGER_INTEGER_KERNEL_H
#define KILN_BACKENDS_CPU_INTEGER_INTEGER_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    KILN_INTEGER_GROUP = 4,
    KILN_INTEGER_MAX_ROWS = 8,
    KILN_INTEGER_MAX_COLS = 48,
    KILN_INTEGER_BLOCK = 16, /* what is scaled at once: a panel's columns are a multiple */
};

/* What zero points and a bias make of the sums of one row:
 * sum[c] + base[c] - row_zero * sums[c] - row_sum * zeros[c]. */
typedef struct {
    int32_t row_zero, row_sum;
    const int32_t *sums, *base, *zeros; /* per column; base NULL: only sums */
} KilnIntegerFix;

/* How a row of single bytes becomes groups: pixel p has the bytes at stride * p + dilation * k for
 * k = 0 … 3. A multiple of four pixels is the same four again, 4 * stride bytes further, which is
 * what is said here for 16 of them: the words that four pixels lie in, and bytes of those. */
typedef struct {
    int64_t stride;
    int32_t words[16];
    int8_t bytes[64];
} KilnIntegerSlide;

/* Where the groups of a convolution's depth lie behind the address of a pixel. */
typedef struct {
    const int64_t *at;
    int64_t n;
    const KilnIntegerSlide *slide; /* NULL: pixels are groups, one behind the other */
} KilnIntegerTaps;

enum {
    KILN_INTEGER_SLIDE = 15 /* the last byte of four pixels must not lie further */
};

/* Sums times factors, rounded half to even, from a zero point. */
typedef struct {
    const float *factors; /* finite */
    bool one;             /* factor for all; or one per column, or row */
    const int32_t *adds;  /* to the sums, per row */
    bool is_signed;       /* i8, or u8 */
    int32_t zero;
} KilnIntegerScale;

/* How a block is scaled: an addend for its sums, and steps from the zero point within bounds. */
typedef struct {
    int32_t add, zero;
    float least, most;
} KilnIntegerSteps;

typedef struct {
    int rows, cols; /* of a tile: no more than the maxima above */
    /* out[rows][cols] = rows × panel, of which the first @n_rows and @n_cols count. */
    void (*tile)(int n_rows, int64_t n_cols, const uint8_t *const *rows, const int8_t *panel,
                 int64_t groups, int32_t *out);
    /* out[row * @pitch + pixel] of a convolution, of whose pixels the first @n_cols count. Weights:
     * [groups][rows][4]. */
    void (*conv_tile)(int64_t n_cols, const uint8_t *base, const KilnIntegerTaps *taps,
                      const int8_t *weights, int32_t *out, int64_t pitch);
    /* The same of one row, whose weights are [groups][4]. */
    void (*conv_row)(int64_t n_cols, const uint8_t *base, const KilnIntegerTaps *taps,
                     const int8_t *weights, int32_t *out);
    /* Four rows of bytes side by side, with flipped sign bits where @flip is 0x80; @n is a multiple
     * of 16. */
    void (*interleave)(const uint8_t *const from[KILN_INTEGER_GROUP], uint8_t *to, int64_t n,
                       uint8_t flip);
    void (*fix)(int32_t *sums, int64_t n, const KilnIntegerFix *fix);
    /* In whole blocks: reads and writes as many as @n is rounded up to. */
    void (*scale)(uint8_t *out, const int32_t *sums, int64_t n, const KilnIntegerScale *scale);
    /* Rows of @n sums, @pitch apart, in whole blocks as above. */
    void (*scale_rows)(uint8_t *out, int64_t out_pitch, const int32_t *sums, int64_t pitch,
                       int64_t n_rows, int64_t n, const KilnIntegerScale *scale);
    /* to = from with flipped sign bits where @flip is 0x80; returns the sum of what is stored in
     * to, seen as u8. */
    uint32_t (*flip)(uint8_t *to, const uint8_t *from, int64_t n, uint8_t flip);
    /* Every @step-th group. */
    void (*pick)(uint32_t *to, const uint32_t *from, int64_t n, int64_t step);
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

#endif
