/* SPDX-License-Identifier: Apache-2.0 */
/* Where a buffer lies in another one: runs of equal length, one after the other at a fixed
 * distance. One run is a dense piece; several are what one operand of a concat over an inner axis
 * takes of the result, a slice of an inner axis, or an image inside its padding. */
#ifndef KILN_IR_REGION_H
#define KILN_IR_REGION_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

G_BEGIN_DECLS

/** In bytes. In normal form: one row has its run for a pitch, and rows that follow each other
 * without a gap are one row. */
typedef struct {
    int64_t offset; /* of the first run */
    int64_t rows, run, pitch;
} KilnRegion;

/** In normal form. */
KilnRegion kiln_region_make(int64_t offset, int64_t rows, int64_t run, int64_t pitch);
/** The bytes from the first to the last one. */
int64_t kiln_region_span(const KilnRegion *region);
/** Part @part of what lies in @whole, whose offset and pitch count the bytes of @whole as if they
 * were dense. False where that is no region. */
bool kiln_region_part(const KilnRegion *whole, const KilnRegion *part, KilnRegion *out);
/** Whether two regions of one buffer may have a byte in common. Rows of one pitch that lie beside
 * each other have none; of other rows only spans are compared. */
bool kiln_region_meet(const KilnRegion *a, const KilnRegion *b);
bool kiln_region_equal(const KilnRegion *a, const KilnRegion *b);
/** Whether every row begins at a multiple of @unit bytes. */
bool kiln_region_is_aligned(const KilnRegion *region, int64_t unit);

G_END_DECLS

#endif
