/* SPDX-License-Identifier: Apache-2.0 */
/* Labels that say which node of a function computes in which layout, and their cost in reorders.
 *
 *      region       computes in one of the vendor's layouts; some of its edges lie in it
 *      carrier      computes in any layout that it carries, or plain
 *      the rest     reads and gives values as they are
 *
 * A value lies in one layout. A reorder stands between its definition and readers that want another
 * layout: one inside each region, and one beside it for all others that want the same. */
#ifndef KILN_PASSES_OFFLOAD_LAYOUT_LABELS_H
#define KILN_PASSES_OFFLOAD_LAYOUT_LABELS_H

#include "ir/target.h"

enum {
    KILN_LABEL_KEPT = -1, /* as the types say; plain for regions and carriers */
};

typedef struct KilnLayouts KilnLayouts;

/** @carries, called with @data, tells if a node may compute in the layout of @result, its type
 * except for the layout. Regions begin with the layout that is fastest alone; other nodes keep
 * theirs. @target has a vendor. */
typedef bool (*KilnCarriesFn)(const KilnNode *node, const KilnType *result, void *data);
KilnLayouts *kiln_layouts_new(const KilnFunction *function, const KilnTarget *target,
                              KilnCarriesFn carries, void *data);
void kiln_layouts_free(KilnLayouts *layouts);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnLayouts, kiln_layouts_free)

/** True for a region that is plain at all edges so far. */
bool kiln_layouts_is_region(const KilnLayouts *layouts, const KilnNode *node);
int kiln_layouts_label(const KilnLayouts *layouts, const KilnNode *node);
bool kiln_layouts_may_be(const KilnLayouts *layouts, const KilnNode *node, int label);
/** The layout that @node wants for operand @i: a tag, NULL for plain. Regions accept any layout. */
const char *kiln_layouts_wanted(const KilnLayouts *layouts, const KilnNode *node, uint32_t i);
/** The layout of @value. */
const char *kiln_layouts_held(const KilnLayouts *layouts, const KilnValue *value);

/** The change of the total time in microseconds if @nodes get @label. Negative: faster. */
double kiln_layouts_change(KilnLayouts *layouts, const GPtrArray *nodes, int label);
void kiln_layouts_set(KilnLayouts *layouts, const GPtrArray *nodes, int label);

/** Groups of carriers of @label that touch the same values, in order: GPtrArray of GPtrArray of
 * KilnNode. The caller frees it. */
GPtrArray *kiln_layouts_groups(const KilnLayouts *layouts, int label);
/** @nodes, and the regions that touch a value of them and may have @label. The caller frees it. */
GPtrArray *kiln_layouts_with_regions(const KilnLayouts *layouts, const GPtrArray *nodes, int label);

#endif
