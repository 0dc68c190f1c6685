/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of direct convolution that each instruction set implements: one row of the halo copy,
 * one output channel of a depthwise convolution, rows of a transposed convolution. Private to the
 * folder. */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_KERNEL_H
#define KILN_BACKENDS_CPU_CONV_CONV_KERNEL_H

#include "backends/cpu/isa.h"

#include <stdint.h>

/* One output channel over one channel of the halo copy. If stride3x3 is 1 or 2, the kernel is
   3 × 3 with that stride and reads the image itself. Masks leave out positions outside of it. */
typedef struct {
    const float *in;
    const int64_t *offsets; /* of each tap */
    const float *weights;
    int64_t taps;
    int stride3x3;                       /* 0: any other kernel */
    int64_t height, width, pad_y, pad_x; /* of the image, for stride3x3 */
    float *out;
    const float *residual; /* has the layout of out and may be out; or NULL */
    int64_t dims[3], pitch[2];
    float bias, lo, hi;
} KilnDepthwisePlane;

/* dst[q] = src[q * stride] for lo <= q < hi, and zero for the other q < length. */
typedef struct {
    float *dst;
    const float *src; /* read from src[lo * stride] to src[(hi - 1) * stride] only */
    int64_t stride, lo, hi, length;
} KilnHaloRow;

/* dst[q * ways + r] = clip(bias + src[r * pitch + q]), for all positions of dst below length. */
typedef struct {
    float *dst;
    const float *src;
    int64_t ways, pitch, length; /* pitch is at least a vector more than length / ways */
    float bias, lo, hi;
} KilnWeave;

typedef struct {
    void (*halo_row)(const KilnHaloRow *row);
    /* dst[i] += scale src[i] */
    void (*add)(float *dst, const float *src, float scale, int64_t n);
    void (*weave)(const KilnWeave *weave);
    void (*plane)(const KilnDepthwisePlane *plane);
} KilnConvKernels;

extern const KilnConvKernels kiln_conv_kernels_portable;
#if defined(__x86_64__)
extern const KilnConvKernels kiln_conv_kernels_avx2;
extern const KilnConvKernels kiln_conv_kernels_avx512;
#endif

/** Returns the kernels of @isa for output rows of @width. AUTO is the best of this machine. */
static inline const KilnConvKernels *
kiln_conv_kernels(KilnCpuIsa isa, int64_t width)
{
#if defined(__x86_64__)
    KilnCpuIsa resolved = kiln_cpu_isa_resolve(isa);
    if (resolved == KILN_CPU_ISA_AVX512 && width > 8) /* narrower rows leave lanes idle */
        return &kiln_conv_kernels_avx512;
    if (resolved >= KILN_CPU_ISA_AVX2)
        return &kiln_conv_kernels_avx2;
#endif
    (void)isa;
    (void)width;
    return &kiln_conv_kernels_portable;
}

#endif
