/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of an image in which a convolution needs no bounds checks and has stride 1. Padding is
 * written out as zeros, and positions are sorted by their remainder modulo the stride, each
 * remainder that some kernel tap meets in a *slot* of its own: tap t of output o reads slot(t) at o
 * + shift(t).
 *
 *     stride 2, pad 1, kernel 3:    0 a b c d e f 0   ->   slot 0: 0 b d f   slot 1: a c e 0 */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_HALO_H
#define KILN_BACKENDS_CPU_CONV_CONV_HALO_H

#include "backends/cpu/conv/conv_problem.h"

typedef struct {
    int64_t slots, length; /* of each dim: slots, and positions in a slot */
} KilnHaloDim;

typedef struct {
    KilnHaloDim dims[3];
    int64_t pitch[2]; /* floats between neighbours of dims 0 and 1 */
    int64_t plane;    /* floats of one channel */
    bool direct;      /* the image itself has this layout: nothing to copy */
} KilnHalo;

/** The layout for @conv; plane is INT64_MAX where no number can say it. */
KilnHalo kiln_halo_of(const KilnCpuConv *conv);

/** Offset in a plane of kernel tap (@t[0], @t[1], @t[2]) for output position 0. */
int64_t kiln_halo_tap(const KilnCpuConv *conv, const KilnHalo *halo, const int64_t t[3]);

/* A copy of rows first … end - 1 of dims 0 × 1 of one channel. */
typedef struct {
    const float *in; /* the channel in the image */
    float *plane;
    int64_t first, end;
} KilnHaloCopy;

void kiln_halo_copy(const KilnCpuConv *conv, const KilnHalo *halo, const KilnHaloCopy *copy);

/** Rows of a plane: what range counts. */
static inline int64_t
kiln_halo_rows(const KilnHalo *halo)
{
    return halo->dims[0].slots * halo->dims[0].length * halo->dims[1].slots * halo->dims[1].length;
}

#endif
