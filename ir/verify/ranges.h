/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of bytes of a buffer: which of them were written. */
#ifndef KILN_IR_VERIFY_RANGES_H
#define KILN_IR_VERIFY_RANGES_H

#include "ir/ir.h"

typedef struct {
    int64_t begin, end; /* half-open */
} KilnByteRange;

/** KilnByteRange, sorted, disjoint, not touching each other. */
GArray *kiln_ranges_new(void);
void kiln_ranges_add(GArray *list, const KilnRegion *added);
/** @list NULL: empty. */
bool kiln_ranges_cover(const GArray *list, const KilnRegion *wanted);

#endif
