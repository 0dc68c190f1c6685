/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of bytes of a buffer: the written bytes. */
#ifndef KILN_IR_VERIFY_RANGES_H
#define KILN_IR_VERIFY_RANGES_H

#include "ir/ir.h"

typedef struct {
    int64_t begin, end; /* half-open */
} KilnByteRange;

/** An empty list of KilnByteRange. Lists are sorted, and their ranges do not meet or touch. */
GArray *kiln_ranges_new(void);
void kiln_ranges_add(GArray *list, const KilnRegion *added);
/** True if @list (NULL: empty) has all bytes of @wanted. */
bool kiln_ranges_cover(const GArray *list, const KilnRegion *wanted);

#endif
