/* SPDX-License-Identifier: Apache-2.0 */
/* Checks memory that callers bind: a run's written memory must not overlap its other memory. */
#ifndef KILN_RUNTIME_OVERLAP_H
#define KILN_RUNTIME_OVERLAP_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *kind, *name; /* "input" "image"; kept by the caller */
    const char *start;
    size_t bytes;
    bool written; /* by a run */
} KilnRange;

/** Sorts @ranges and checks that no range overlaps a written one. KILN_ERROR_USAGE names both, with
 * their addresses. Empty ranges overlap nothing. Allocates nothing but the error. */
gboolean kiln_ranges_check(KilnRange *ranges, size_t n, GError **error);

#endif
