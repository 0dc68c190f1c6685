/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of bytes less their zero points, in i32, which wraps, or scaled to bytes.
 *
 * The weights of a channel are a row of u8. Each channel of the image is copied as s8 into planes
 * that are padded with its zero point, one per phase of the strides, all of one pitch: then what
 * any tap reads for a run of results lies in a run of a plane, and a panel of depth × pixels is
 * made from there. Pixels are counted through the pitch, so that a panel goes across the ends of
 * rows; what it computes behind them is not stored. Tasks are groups × runs of panels × blocks of
 * channels, by shape. Private to the folder.
 */
#pragma once

#include "backends/cpu/integer_args.h"
#include "ir/slice.h"

typedef struct {
    int64_t batch, groups, ic, oc; /* channels of all groups */
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pad[2];
    bool x_signed, w_signed;
} KilnIntegerConv;

/** Bytes of the planes of an image. */
double kiln_integer_conv_planes(const KilnIntegerConv *c);

int64_t kiln_integer_conv_packed_size(const KilnIntegerConv *c);
void kiln_integer_conv_pack(const KilnIntegerConv *c, const void *w, void *packed, KilnSlice slice);
int64_t kiln_integer_conv_scratch_size(const KilnIntegerConv *c, bool packed, int threads);
/** The image is left, the weights are right. */
void kiln_integer_conv_run(const KilnIntegerConv *c, const KilnIntegerArgs *args);
