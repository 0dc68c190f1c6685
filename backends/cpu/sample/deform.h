/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a deformable convolution: what each kernel element reads for each window. Channels
 * lie side by side in the data, so that a place is read in vectors of channels. Private to the
 * folder. */
#ifndef KILN_BACKENDS_CPU_SAMPLE_DEFORM_H
#define KILN_BACKENDS_CPU_SAMPLE_DEFORM_H

#include <stdint.h>

enum {
    KILN_CPU_DEFORM_BLOCK = 64,    /* windows */
    KILN_CPU_DEFORM_FAR = 1 << 29, /* no extent of a picture or of a kernel reaches this */
};

/** A picture and its offsets. */
typedef struct {
    int64_t height, width, channels;
    int64_t groups, offset_groups; /* of channels */
    int64_t kernel[2], stride[2], pad[2], dilation[2];
    int64_t out_width, positions; /* of the result */
    const float *data;            /* [height][width][channels] */
    const float *offsets;         /* [offset_groups][kernel][2][positions] */
    const float *mask;            /* [offset_groups][kernel][positions], or NULL */
} KilnCpuDeform;

/** Where kernel elements of the windows of a block read. Of each, four corners. */
typedef struct {
    int32_t at[4][KILN_CPU_DEFORM_BLOCK]; /* elements of a plane */
    float weights[4][KILN_CPU_DEFORM_BLOCK];
} KilnCpuPlaces;

typedef struct {
    /** Writes the columns of windows @first … @first + @n - 1:
     * [groups][KILN_CPU_DEFORM_BLOCK][kernel][channels of a group]. */
    void (*columns)(const KilnCpuDeform *d, int64_t first, int64_t n, float *columns);
    /** Element (i, k) of [rows][columns] becomes (k, i), for rows @begin … @end - 1. */
    void (*turn)(const float *from, int64_t rows, int64_t columns, int64_t begin, int64_t end,
                 float *to);
} KilnCpuDeformLoops;

extern const KilnCpuDeformLoops kiln_cpu_deform_portable;
#if defined(__x86_64__)
extern const KilnCpuDeformLoops kiln_cpu_deform_avx2;
extern const KilnCpuDeformLoops kiln_cpu_deform_avx512;
#endif

#endif
