/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between instruction sets in a Winograd convolution: the three transforms. Private to
 * the folder.
 *
 * A channel of the input is split by its rows and columns modulo 4 into 16 planes, in which tile
 * (y, x) finds element (r, c) of its 6 × 6 window in plane (r % 4, c % 4) at (y + r / 4) * pitch +
 * x + c / 4: the same place for neighbouring tiles one further on, so that vectors hold tiles. */
#ifndef KILN_BACKENDS_CPU_CONV_WINOGRAD_KERNEL_H
#define KILN_BACKENDS_CPU_CONV_WINOGRAD_KERNEL_H

#include "backends/cpu/isa.h"

#include <stdint.h>

enum {
    KILN_WINOGRAD_TILE = 4,      /* results of a tile in each direction */
    KILN_WINOGRAD_WINDOW = 6,    /* inputs */
    KILN_WINOGRAD_POINTS = 36,   /* products */
    KILN_WINOGRAD_SLACK = 16,    /* floats that may be written behind a plane's last row */
    KILN_WINOGRAD_READ = 2 * 16, /* floats readable behind a plane's last tile */
};

/* One row of the input into four planes: planes[c * plane + x] = row[4 * x + c - pad], x < n, zero
   outside. */
typedef struct {
    const float *row; /* of column 0; NULL for a row outside of the image */
    float *planes;
    int64_t plane, n;
    int64_t soon;       /* floats from the row to one that is read soon */
    int64_t width, pad; /* columns of the image, and how many stand in front of it */
} KilnWinogradRow;

/* n tiles from planes at @in: window element (r, c) of tile i at in[(4 * (r % 4) + c % 4) * plane +
   r / 4 * pitch + c / 4 + at[i]]; transformed element k goes to out[k * out_pitch + i]. */
typedef struct {
    const float *in;
    const int32_t *at; /* of 16 neighbours, all less than 32 behind the first */
    int64_t plane, pitch, n;
    float *out;
    int64_t out_pitch;
} KilnWinogradInput;

/* n tiles: sum k at in[k * in_pitch + i]; result (r, c) of tile i goes to out[(4 * r + c) *
   out_pitch + i], with the bias added and clipped. */
typedef struct {
    const float *in;
    int64_t in_pitch, n;
    float *out;
    int64_t out_pitch;
    float bias, lo, hi;
} KilnWinogradOutput;

/* A row of results from its four planes: row[4 * x + c] = planes[c * plane + x]; with a residual
   that is added first, clipped here. */
typedef struct {
    float *row;
    const float *planes, *residual;
    int64_t soon; /* floats from the row to one that is written soon */
    int64_t plane, width;
    float lo, hi;
} KilnWinogradStore;

/* Weights of up to 16 output channels, one input channel: w[(9 * channel) …] is not contiguous over
   channels, stride floats apart; out[k * out_pitch + i] for channel i. */
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

/** The kernels of @isa (AUTO: the best here). */
static inline const KilnWinogradKernels *
kiln_winograd_kernels(KilnCpuIsa isa)
{
#if defined(__x86_64__)
    KilnCpuIsa resolved = kiln_cpu_isa_resolve(isa);
    if (resolved == KILN_CPU_ISA_AVX512)
        return &kiln_winograd_kernels_avx512;
    if (resolved == KILN_CPU_ISA_AVX2)
        return &kiln_winograd_kernels_avx2;
#endif
    (void)isa;
    return &kiln_winograd_kernels_portable;
}

#endif
