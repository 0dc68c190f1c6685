/* SPDX-License-Identifier: Apache-2.0 */
/* Which node of a function computes in which layout: labels, and what they cost in reorders.
 *
 *      region       computes in one of the vendor's layouts; some of its edges lie in it
 *      carrier      computes in any layout that it carries, or plain
 *      the rest     reads and gives values as they are
 *
 * A value lies in one layout. Its definition and its readers agree on it, or a reorder stands
 * between: one inside each region, one beside it for all others that want it the same way. */
#ifndef KILN_PASSES_OFFLOAD_LAYOUT_LABELS_H
#define KILN_PASSES_OFFLOAD_LAYOUT_LABELS_H

#include "ir/vendor.h"

enum {
    KILN_LABEL_KEPT = -1, /* as the types say now: plain for regions and carriers */
};

typedef struct KilnLayouts KilnLayouts;

/** @carries: whether a node may compute in the layout of @result, of whose type it is otherwise;
 * called with @data. Regions begin with the layout that is fastest by itself, all others as they
 * are. @target has a vendor. */
typedef bool (*KilnCarriesFn)(const KilnNode *node, const KilnType *result, void *data);
KilnLayouts *kiln_layouts_new(const KilnFunction *function, const KilnTarget *target,
                              KilnCarriesFn carries, void *data);
void kiln_layouts_free(KilnLayouts *layouts);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnLayouts, kiln_layouts_free)

/** A region that lies plain at all edges so far. */
bool kiln_layouts_is_region(const KilnLayouts *layouts, const KilnNode *node);
int kiln_layouts_label(const KilnLayouts *layouts, const KilnNode *node);
bool kiln_layouts_may_be(const KilnLayouts *layouts, const KilnNode *node, int label);
/** What operand @i is wanted as: a tag, NULL for plain. Regions take it as it lies all the same. */
const char *kiln_layouts_wanted(const KilnLayouts *layouts, const KilnNode *node, uint32_t i);
/** How @value lies. */
const char *kiln_layouts_held(const KilnLayouts *layouts, const KilnValue *value);

/** Microseconds by which it all gets slower if @nodes get @label; negative: faster. */
double kiln_layouts_change(KilnLayouts *layouts, const GPtrArray *nodes, int label);
void kiln_layouts_set(KilnLayouts *layouts, const GPtrArray *nodes, int label);

/** Groups of carriers of @label that touch the same values: GPtrArray of GPtrArray of KilnNode, in
 * order; the caller's. */
GPtrArray *kiln_layouts_groups(const KilnLayouts *layouts, int label);
/** The regions that touch a value of @nodes and may have @label, and @nodes. The caller's. */
GPtrArray *kiln_layouts_with_regions(const KilnLayouts *layouts, const GPtrArray *nodes, int label);

#endif
