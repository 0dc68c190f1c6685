/* SPDX-License-Identifier: Apache-2.0 */
/* An image as convolutions of bytes read it: copied as u8 into planes that are padded with its zero
 * point, all of one pitch, so that what a tap reads for results side by side lies side by side,
 * across the ends of rows too.
 *
 *   quads     four channels of a group side by side, the last of them filled up with 0; a plane for
 *             each phase of both strides
 *   singles   one channel, for groups of one; a plane for each phase of the rows' stride, whose
 *             columns stay together: pixel p of a tap's is at stride * p
 *
 * A unit is all planes of a quad, or of a single. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_INTEGER_INTEGER_PLANES_H
#define KILN_BACKENDS_CPU_INTEGER_INTEGER_PLANES_H

#include "backends/cpu/integer/integer_kernel.h"

/** A convolution of bytes. */
typedef struct {
    int64_t batch, groups, ic, oc; /* channels of all groups */
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pad[2];
    bool x_signed, w_signed;
} KilnIntegerConv;

typedef struct {
    bool single;
    int64_t phases[2]; /* that a tap reads */
    int64_t rows;
    int64_t pitch; /* of a row, in results, of which the last ones do not count */
    int64_t step;  /* bytes from one result to the next */
    int64_t plane, unit;
    int64_t units;                /* of a group */
    int64_t results, taps_of_row; /* counted through the pitch; groups of a row of the kernel */
    int64_t end;                  /* bytes of all, and of what may be read behind them */
} KilnIntegerPlanes;

/** Bytes of the planes of an image. */
double kiln_integer_planes_size(const KilnIntegerConv *c);

KilnIntegerPlanes kiln_integer_planes(const KilnIntegerConv *c);

/** Groups of four products of a sum. */
int64_t kiln_integer_planes_groups(const KilnIntegerConv *c, const KilnIntegerPlanes *p);

/** The kernel's element of byte @i of group @group of a sum, or -1: a byte that is no product. It
 * counts through the channels of a group, then the kernel. */
int64_t kiln_integer_planes_weight(const KilnIntegerConv *c, const KilnIntegerPlanes *p,
                                   int64_t group, int64_t i);

/** Where each group lies behind the address of a result in the group's first unit. */
void kiln_integer_planes_find_taps(const KilnIntegerConv *c, const KilnIntegerPlanes *p,
                                   int64_t *taps);

KilnIntegerSlide kiln_integer_planes_slide(const KilnIntegerConv *c);

/** All planes of the image at @x, by @threads threads. @zero: its zero point, as stored. */
void kiln_integer_planes_fill(const KilnIntegerConv *c, const KilnIntegerPlanes *p,
                              const uint8_t *x, int32_t zero, uint8_t *to, int threads);

#endif
