/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces entries of the table through which a shared library calls functions of others. */
#ifndef KILN_BACKENDS_ONEDNN_ENTRIES_H
#define KILN_BACKENDS_ONEDNN_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>

typedef void (*KilnEntryFn)(void);

typedef struct {
    const char *name;
    KilnEntryFn fn;
    KilnEntryFn *out_before; /* receives the function called before */
} KilnEntry;

/** Makes the library that defines @of call the functions of @entries instead of the functions of
 * these names, for all its callers. Returns false and changes nothing if the library is not a
 * shared one of its own, or does not import a name through its table. */
bool kiln_entries_replace(KilnEntryFn of, const KilnEntry *entries, size_t n);

#endif
