/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a buffer: runs of equal length at a fixed distance. One run is a dense piece. Several
 * runs are an operand of a concat over an inner axis, a slice of an inner axis, or an image inside
 * its padding. */
#ifndef KILN_IR_REGION_H
#define KILN_IR_REGION_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

G_BEGIN_DECLS

/** In bytes and in normal form: a single row has its run as pitch, and rows without gaps between
 * them are one row. */
typedef struct {
    int64_t offset; /* of the first run */
    int64_t rows, run, pitch;
} KilnRegion;

/** Makes a region in normal form. */
KilnRegion kiln_region_make(int64_t offset, int64_t rows, int64_t run, int64_t pitch);
/** The bytes from the first to the last one. */
int64_t kiln_region_span(const KilnRegion *region);
/** Part @part of the data in @whole. The offset and pitch of @part count bytes as if @whole were
 * dense. False if the result is no region. */
bool kiln_region_part(const KilnRegion *whole, const KilnRegion *part, KilnRegion *out);
/** True if two regions of one buffer may share a byte. Rows of the same pitch that lie side by side
 * share none. For other rows only the spans are compared. */
bool kiln_region_meet(const KilnRegion *a, const KilnRegion *b);
bool kiln_region_equal(const KilnRegion *a, const KilnRegion *b);
/** True if every row begins at a multiple of @unit bytes. */
bool kiln_region_is_aligned(const KilnRegion *region, int64_t unit);

G_END_DECLS

#endif
