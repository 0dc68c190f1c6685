/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a buffer: runs of equal length at a fixed distance. One run is a dense piece. Several
 * runs are an operand of a concat over an inner axis, a slice of an inner axis, or an image inside
 * its padding. */
#ifndef KILN_IR_REGION_H
#define KILN_IR_REGION_H

#include "graph/size.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

G_BEGIN_DECLS

/** In bytes and in normal form: a single row has its run as pitch, and rows without gaps between
 * them are one row. The numbers hold at the binding of the function, and the expressions
 * for all bindings. */
typedef struct {
    int64_t offset; /* of the first run */
    int64_t rows, run, pitch;
    const KilnDim *open_offset, *open_rows, *open_run, *open_pitch; /* NULL: the number holds */
    bool lost; /* it is not known for other bindings */
} KilnRegion;

/** Makes a region in normal form. */
KilnRegion kiln_region_make(int64_t offset, int64_t rows, int64_t run, int64_t pitch);
KilnRegion kiln_region_of_sizes(KilnSize offset, KilnSize rows, KilnSize run, KilnSize pitch);
KilnSize kiln_region_offset(const KilnRegion *region);
KilnSize kiln_region_rows(const KilnRegion *region);
KilnSize kiln_region_run(const KilnRegion *region);
KilnSize kiln_region_pitch(const KilnRegion *region);
/** Part @part of the data in @whole. The offset and pitch of @part count bytes as if @whole were
 * dense. False if the result is no region. The result is lost if it may be no region for another
 * binding. */
bool kiln_region_part(const KilnRegion *whole, const KilnRegion *part, KilnRegion *out);
/** True for the same region, for all bindings. */
bool kiln_region_equal(const KilnRegion *a, const KilnRegion *b);
/** True if two regions of one buffer may share a byte, for some binding. Rows of the same pitch
 * that lie side by side share none. For other rows only the spans are compared. */
bool kiln_region_meet(const KilnRegion *a, const KilnRegion *b);
/** The same for the numbers alone. */
bool kiln_region_meet_here(const KilnRegion *a, const KilnRegion *b);
/** True if every row begins at a multiple of @unit bytes. */
bool kiln_region_is_aligned(const KilnRegion *region, int64_t unit);

G_END_DECLS

#endif
