/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bytes less their zero points. Results are i32, which wraps, or scaled to bytes.
 *
 * The image lies in planes (integer_planes.h), where tiles of channels × pixels read their groups
 * of four in place. Pixels are counted through the pitch of the planes, so a tile may cross the
 * ends of rows. Its results behind the ends are not stored. Weights are packed in the order in
 * which tiles read them. Tasks are blocks of groups × runs of pixels × blocks of channels; their
 * sizes follow from the shape. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_INTEGER_INTEGER_CONV_H
#define KILN_BACKENDS_CPU_INTEGER_INTEGER_CONV_H

#include "backends/cpu/integer/integer_args.h"
#include "backends/cpu/integer/integer_planes.h"
#include "ir/slice.h"

int64_t kiln_integer_conv_packed_size(const KilnIntegerConv *c);
void kiln_integer_conv_pack(const KilnIntegerConv *c, const void *w, void *packed, KilnSlice slice);
int64_t kiln_integer_conv_scratch_size(const KilnIntegerConv *c, bool packed);
/** In @args the image is left, the weights are right. */
void kiln_integer_conv_run(const KilnIntegerConv *c, const KilnIntegerArgs *args);

#endif
