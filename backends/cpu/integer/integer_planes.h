/* SPDX-License-Identifier: Apache-2.0 */
/* An image as convolutions of bytes read it: copied as u8 into planes that are padded with its zero
 * point. All planes have one pitch. So the bytes that a tap reads for neighbouring results lie side
 * by side, even across the ends of rows.
 *
 *   quads     four channels of a group side by side, the last quad filled up with 0; one plane for
 *             each phase of both strides
 *   singles   one channel, for groups of one; one plane for each phase of the rows' stride. Columns
 *             stay together: a tap reads pixel p at stride * p
 *
 * A *unit* is all planes of one quad or of one single. Private to the folder. */
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
    int64_t phases[2]; /* of each stride that taps read */
    int64_t rows;
    int64_t pitch; /* of a row, in results; the last ones are not used */
    int64_t step;  /* bytes from one result to the next */
    int64_t plane, unit;
    int64_t units;                /* of a group */
    int64_t results, taps_of_row; /* results counted through the pitch; groups in a kernel row */
    int64_t end;                  /* bytes of all planes, and what loads may read behind them */
} KilnIntegerPlanes;

/** Bytes of the planes of an image. */
double kiln_integer_planes_size(const KilnIntegerConv *c);

KilnIntegerPlanes kiln_integer_planes(const KilnIntegerConv *c);

/** The number of groups of four products in a sum. */
int64_t kiln_integer_planes_groups(const KilnIntegerConv *c, const KilnIntegerPlanes *p);

/** The index of the weight for byte @i of group @group of a sum; -1 if no weight meets this byte.
 * The index counts [channel of the group][kernel]. */
int64_t kiln_integer_planes_weight(const KilnIntegerConv *c, const KilnIntegerPlanes *p,
                                   int64_t group, int64_t i);

/** The offset of each group from the address of a result in the first unit of its channels. */
void kiln_integer_planes_find_taps(const KilnIntegerConv *c, const KilnIntegerPlanes *p,
                                   int64_t *taps);

KilnIntegerSlide kiln_integer_planes_slide(const KilnIntegerConv *c);

/** Fills all planes from the image at @x on @threads threads. @zero: its zero point, as stored. */
void kiln_integer_planes_fill(const KilnIntegerConv *c, const KilnIntegerPlanes *p,
                              const uint8_t *x, int32_t zero, uint8_t *to, int threads);

#endif
