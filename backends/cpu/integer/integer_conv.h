/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bytes less their zero points, in i32, which wraps, or scaled to bytes.
 *
 * The image lies in planes (integer_planes.h), of which tiles of channels × pixels read their
 * groups of four where they lie. Pixels are counted through the pitch of the planes, so that a tile
 * goes across the ends of rows; what it computes behind them is not stored. Weights are packed as
 * the tiles read them. Tasks are blocks of groups × runs of pixels × blocks of channels, by shape.
 * Private to the folder. */
#ifndef KILN_BACKENDS_CPU_INTEGER_INTEGER_CONV_H
#define KILN_BACKENDS_CPU_INTEGER_INTEGER_CONV_H

#include "backends/cpu/integer/integer_args.h"
#include "backends/cpu/integer/integer_planes.h"
#include "ir/slice.h"

int64_t kiln_integer_conv_packed_size(const KilnIntegerConv *c);
void kiln_integer_conv_pack(const KilnIntegerConv *c, const void *w, void *packed, KilnSlice slice);
int64_t kiln_integer_conv_scratch_size(const KilnIntegerConv *c, bool packed);
/** The image is left, the weights are right. */
void kiln_integer_conv_run(const KilnIntegerConv *c, const KilnIntegerArgs *args);

#endif
