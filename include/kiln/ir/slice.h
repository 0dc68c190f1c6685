/* SPDX-License-Identifier: Apache-2.0 */
/* One of several slices of some work, which threads may do at the same time: what a slice is
 * follows from its number, never from who does it. */
#ifndef KILN_IR_SLICE_H
#define KILN_IR_SLICE_H

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

typedef struct {
    int64_t index, n;
} KilnSlice;

/** All of it. */
#define KILN_SLICE_WHOLE ((KilnSlice){ 0, 1 })

/** The first of @units that are in @slice, and the first that is behind it. */
static inline int64_t
kiln_slice_begin(KilnSlice slice, int64_t units)
{
    return slice.index * units / slice.n;
}
static inline int64_t
kiln_slice_end(KilnSlice slice, int64_t units)
{
    return (slice.index + 1) * units / slice.n;
}

G_END_DECLS

#endif
