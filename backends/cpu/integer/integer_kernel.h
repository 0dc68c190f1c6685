/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of products of bytes, per instruction set. A product multiplies rows of u8 by a
 * panel of columns of s8, as dot-product instructions do. Other types are converted: their sign
 * bits are flipped, and their zero point moves by 128. Sums are i32 and wrap. No loop uses an
 * instruction that saturates, so that every instruction set has the same bits. The depth goes in
 * groups of four bytes. A panel is [groups][columns][4].
 *
 * The columns of a convolution are pixels, which it reads in place, as u8. Its weights are s8.
 * Private to the folder. */
#ifndef KILN_BACKENDS_CPU_INTEGER_INTEGER_KERNEL_H
#define KILN_BACKENDS_CPU_INTEGER_INTEGER_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    KILN_INTEGER_GROUP = 4,
    KILN_INTEGER_MAX_ROWS = 8,
    KILN_INTEGER_MAX_COLS = 48,
    KILN_INTEGER_BLOCK = 16, /* sums that are scaled at once; divides the columns of a panel */
};

/* Applies zero points and a bias to the sums of one row:
 * sum[c] + base[c] - row_zero * sums[c] - row_sum * zeros[c]. */
typedef struct {
    int32_t row_zero, row_sum;
    const int32_t *sums, *base, *zeros; /* per column; if base is NULL, only sums counts */
} KilnIntegerFix;

/* Shuffles that make groups of a row of single bytes. The group of pixel p has the bytes at
 * stride * p + dilation * k for k = 0 … 3. The next four pixels lie 4 * stride bytes further. For
 * each 4 of 16 pixels, words has the words that they lie in, and bytes selects from these. */
typedef struct {
    int64_t stride;
    int32_t words[16];
    int8_t bytes[64];
} KilnIntegerSlide;

/* The offsets of the groups of a convolution's depth from the address of a pixel. */
typedef struct {
    const int64_t *at;
    int64_t n;
    const KilnIntegerSlide *slide; /* NULL: pixels are groups that follow each other */
} KilnIntegerTaps;

enum {
    KILN_INTEGER_SLIDE = 15 /* largest offset of a byte of four pixels */
};

/* Multiplies sums by factors, rounds half to even, and adds a zero point. */
typedef struct {
    const float *factors; /* finite */
    bool one;             /* one factor for all; else one per column, or row */
    const int32_t *adds;  /* added to the sums, per row */
    bool is_signed;       /* the result is i8, not u8 */
    int32_t zero;
} KilnIntegerScale;

/* How a block is scaled: an addend for its sums, a zero point, and bounds before it is added. */
typedef struct {
    int32_t add, zero;
    float least, most;
} KilnIntegerSteps;

typedef struct {
    int rows, cols; /* of a tile: no more than the maxima above */
    /* out[rows][cols] = rows × panel. Only the first @n_rows and @n_cols of out count. */
    void (*tile)(int n_rows, int64_t n_cols, const uint8_t *const *rows, const int8_t *panel,
                 int64_t groups, int32_t *out);
    /* Computes out[row * @pitch + pixel] of a convolution. Only the first @n_cols pixels count.
     * @weights are [groups][rows][4]. */
    void (*conv_tile)(int64_t n_cols, const uint8_t *base, const KilnIntegerTaps *taps,
                      const int8_t *weights, int32_t *out, int64_t pitch);
    /* The same for one row. @weights are [groups][4]. */
    void (*conv_row)(int64_t n_cols, const uint8_t *base, const KilnIntegerTaps *taps,
                     const int8_t *weights, int32_t *out);
    /* Interleaves four rows of bytes. A @flip of 0x80 flips their sign bits. @n is a multiple of
     * 16. */
    void (*interleave)(const uint8_t *const from[KILN_INTEGER_GROUP], uint8_t *to, int64_t n,
                       uint8_t flip);
    void (*fix)(int32_t *sums, int64_t n, const KilnIntegerFix *fix);
    /* Works in whole blocks: @n is rounded up for reads and writes. */
    void (*scale)(uint8_t *out, const int32_t *sums, int64_t n, const KilnIntegerScale *scale);
    /* The same for rows of @n sums, @pitch apart. */
    void (*scale_rows)(uint8_t *out, int64_t out_pitch, const int32_t *sums, int64_t pitch,
                       int64_t n_rows, int64_t n, const KilnIntegerScale *scale);
    /* Copies @from to @to. A @flip of 0x80 flips sign bits. Returns the sum of @to, read as u8. */
    uint32_t (*flip)(uint8_t *to, const uint8_t *from, int64_t n, uint8_t flip);
    /* Copies every @step-th group. */
    void (*pick)(uint32_t *to, const uint32_t *from, int64_t n, int64_t step);
    /* Finds the least and the greatest of @n floats and 0. Both are NaN if a float is NaN. */
    void (*range)(const float *x, int64_t n, float *low, float *high);
} KilnIntegerKernels;

extern const KilnIntegerKernels kiln_integer_kernels_portable;
#if defined(__x86_64__)
extern const KilnIntegerKernels kiln_integer_kernels_avx2;
extern const KilnIntegerKernels kiln_integer_kernels_avxvnni;
extern const KilnIntegerKernels kiln_integer_kernels_avx512;
extern const KilnIntegerKernels kiln_integer_kernels_avx512vnni;
#endif

/** Returns the fastest kernels of this machine that KILN_CPU_ISA allows. */
const KilnIntegerKernels *kiln_integer_kernels(void);

#endif
