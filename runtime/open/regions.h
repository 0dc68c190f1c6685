/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor's regions of an open program, compiled for numbers. The vendor takes numbers only, so
 * a region with open dims is compiled again for each set of numbers. The cache keeps those of the
 * last shapes, up to KILN_REGION_BYTES.
 *
 * What a region computes follows from its body and its numbers alone, never from what the cache
 * holds. A region that the vendor refuses for some numbers runs on own kernels there. */
#ifndef KILN_RUNTIME_OPEN_REGIONS_H
#define KILN_RUNTIME_OPEN_REGIONS_H

#include "graph/binding.h"
#include "ir/compiled.h"
#include "ir/target.h"

enum {
    KILN_REGION_BYTES = 64 * 1024 * 1024 /* of all regions that a program keeps, about */
};

typedef struct KilnRegions KilnRegions;

KilnRegions *kiln_regions_new(void);
void kiln_regions_free(KilnRegions *regions);

/** The region of @declaration at @numbers, for @threads threads or fewer: a new reference.
 * Thread-safe. All numbers of one cache have the same names. NULL with an error if neither the
 * vendor of @target nor own kernels compute it there. */
KilnCompiled *kiln_regions_get(KilnRegions *regions, const KilnDeclaration *declaration,
                               const KilnDimBinding *numbers, const KilnTarget *target, int threads,
                               GError **error);

/** The bytes of the regions that it keeps, about. */
size_t kiln_regions_bytes(const KilnRegions *regions);

/** A digest of how @compiled packs, for files. */
uint32_t kiln_regions_form(const KilnCompiled *compiled);

#endif
