/* SPDX-License-Identifier: Apache-2.0 */
/* The table through which a shared library calls functions of others. */
#ifndef KILN_BACKENDS_ONEDNN_ENTRIES_H
#define KILN_BACKENDS_ONEDNN_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>

typedef void (*KilnEntryFn)(void);

typedef struct {
    const char *name;
    KilnEntryFn fn;
    KilnEntryFn *out_before; /* what it called so far */
} KilnEntry;

/** Makes the library that defines @of call @entries' functions instead of those of that name, for
 * all its callers. FALSE, and nothing changed, where the library is not a shared one of its own, or
 * does not import one of them through its table. */
bool kiln_entries_replace(KilnEntryFn of, const KilnEntry *entries, size_t n);

#endif
