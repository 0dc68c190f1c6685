/* SPDX-License-Identifier: Apache-2.0 */
/* A slice of some work, so that threads can do the slices at the same time. The number of a slice
 * alone decides its extent. */
#ifndef KILN_IR_SLICE_H
#define KILN_IR_SLICE_H

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

typedef struct {
    int64_t index, n;
} KilnSlice;

/** All of the work. */
#define KILN_SLICE_WHOLE ((KilnSlice){ 0, 1 })

/** The first of @units in @slice; kiln_slice_end() is the first behind it. */
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
