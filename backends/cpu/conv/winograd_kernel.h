/* SPDX-License-Identifier: Apache-2.0 */
/* The transforms of a Winograd convolution, which each instruction set implements. Private to the
 * folder.
 *
 * A channel of the input is split by its rows and columns modulo 4 into 16 planes. Tile (y, x) has
 * a window of 6 × 6 elements. Element (r, c) lies in plane (r % 4, c % 4) at (y + r / 4) * pitch +
 * x + c / 4. The next tile finds it one place further on: a vector holds neighbouring tiles. */
#ifndef KILN_BACKENDS_CPU_CONV_WINOGRAD_KERNEL_H
#define KILN_BACKENDS_CPU_CONV_WINOGRAD_KERNEL_H

#include "backends/cpu/isa.h"

#include <stdint.h>

enum {
    KILN_WINOGRAD_TILE = 4,      /* results of a tile in each direction */
    KILN_WINOGRAD_WINDOW = 6,    /* inputs of a tile in each direction */
    KILN_WINOGRAD_POINTS = 36,   /* products of a tile */
    KILN_WINOGRAD_READ = 2 * 16, /* floats that may be read behind a plane's last tile */
};

/* Splits one row of the input into four planes: planes[c * plane + x] = row[4 * x + c - pad] for
   x < n. Columns outside of the image are zero. */
typedef struct {
    const float *row; /* at column 0; NULL for a row outside of the image */
    float *planes;
    int64_t plane, n;
    int64_t soon;       /* floats from the row to another row that is read soon */
    int64_t width, pad; /* columns of the image, columns of padding in front of it */
} KilnWinogradRow;

/* Transforms the windows of n tiles. Element (r, c) of tile i is in[(4 * (r % 4) + c % 4) * plane +
   r / 4 * pitch + c / 4 + at[i]]. Transformed element k goes to out[k * out_pitch + i]. */
typedef struct {
    const float *in;
    const int32_t *at; /* in each 16 tiles, all lie less than 32 behind the first */
    int64_t plane, pitch, n;
    float *out;
    int64_t out_pitch;
} KilnWinogradInput;

/* Transforms the sums of n tiles back, adds the bias and clips. Sum k of tile i is in[k * in_pitch
   + i]. Result (r, c) goes to out[(4 * r + c) * out_pitch + i]. */
typedef struct {
    const float *in;
    int64_t in_pitch, n;
    float *out;
    int64_t out_pitch;
    float bias, lo, hi;
} KilnWinogradOutput;

/* Joins four planes into a row of results: row[4 * x + c] = planes[c * plane + x]. If there is a
   residual, it is added and the sum is clipped. */
typedef struct {
    float *row;
    const float *planes, *residual;
    int64_t soon; /* floats from the row to another row that is written soon */
    int64_t plane, width;
    float lo, hi;
} KilnWinogradStore;

/* Transforms the weights of up to 16 output channels and one input channel. The nine weights of an
   output channel follow each other. Element k of channel i goes to out[k * out_pitch + i]. */
typedef struct {
    const char *src; /* any byte address */
    int64_t stride;  /* floats between output channels */
    int64_t channels;
    float *out;
    int64_t out_pitch;
} KilnWinogradWeights;

typedef struct {
    void (*row)(const KilnWinogradRow *row);
    void (*input)(const KilnWinogradInput *input);
    void (*output)(const KilnWinogradOutput *output);
    void (*store)(const KilnWinogradStore *store);
    void (*weights)(const KilnWinogradWeights *weights);
} KilnWinogradKernels;

extern const KilnWinogradKernels kiln_winograd_kernels_portable;
#if defined(__x86_64__)
extern const KilnWinogradKernels kiln_winograd_kernels_avx2;
extern const KilnWinogradKernels kiln_winograd_kernels_avx512;
#endif

/** Returns the kernels of @isa. AUTO is the best of this machine. */
static inline const KilnWinogradKernels *
kiln_winograd_kernels(KilnCpuIsa isa)
{
    return KILN_CPU_OF_ISA(isa, &kiln_winograd_kernels);
}

#endif
