/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of an image in which a convolution needs no bounds checks and has stride 1. Padding is
 * written as zeros. Positions are sorted into *slots* by their remainder modulo the stride. Each
 * remainder that some tap reads has a slot. Tap t of output o reads slot(t) at o + shift(t).
 *
 *     stride 2, pad 1, kernel 3:    0 a b c d e f 0   ->   slot 0: 0 b d f   slot 1: a c e 0 */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_HALO_H
#define KILN_BACKENDS_CPU_CONV_CONV_HALO_H

#include "backends/cpu/conv/conv_problem.h"

typedef struct {
    int64_t slots, length; /* of one dim: number of slots, positions in a slot */
} KilnHaloDim;

typedef struct {
    KilnHaloDim dims[3];
    int64_t pitch[2]; /* floats between neighbours of dims 0 and 1 */
    int64_t plane;    /* floats of one channel */
    bool direct;      /* the image itself has this layout: nothing to copy */
} KilnHalo;

/** The layout for @conv. Its plane is INT64_MAX on overflow. */
KilnHalo kiln_halo_of(const KilnCpuConv *conv);

/** Offset of kernel tap (@t[0], @t[1], @t[2]) in a plane, for output position 0. */
int64_t kiln_halo_tap(const KilnCpuConv *conv, const KilnHalo *halo, const int64_t t[3]);

/* One copy: rows first … end - 1 of one channel. Rows count through dims 0 and 1. */
typedef struct {
    const float *in; /* the channel in the image */
    float *plane;
    int64_t first, end;
} KilnHaloCopy;

void kiln_halo_copy(const KilnCpuConv *conv, const KilnHalo *halo, const KilnHaloCopy *copy);

/** The number of rows of a plane, the limit of KilnHaloCopy.end. */
static inline int64_t
kiln_halo_rows(const KilnHalo *halo)
{
    return halo->dims[0].slots * halo->dims[0].length * halo->dims[1].slots * halo->dims[1].length;
}

#endif
