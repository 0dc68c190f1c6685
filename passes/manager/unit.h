/* SPDX-License-Identifier: Apache-2.0 */
/* One function of either level, so that the manager's loop is written once. */
#ifndef KILN_PASSES_MANAGER_UNIT_H
#define KILN_PASSES_MANAGER_UNIT_H

#include "passes/context/context.h"
#include "passes/context/report.h"
#include "passes/manager/hash.h"
#include "passes/pass.h"

typedef struct {
    KilnLevel level;
    KilnModule *module;     /* of both levels */
    KilnIRModule *ir;       /* NULL at the graph level */
    KilnFunction *graph;    /* the function, at its level; NULL: the module as a whole */
    KilnIRFunction *instrs; /* likewise */
} KilnUnit;

/** Every function of the module as it is now: callees first, subgraphs before the functions around
 * them. KilnFunction* or KilnIRFunction*. */
GPtrArray *kiln_unit_functions(const KilnUnit *module);
/** True while @function (one of that list) still belongs to the module: a pass may have removed it
 * or the node whose subgraph it is. */
bool kiln_unit_is_alive(const KilnUnit *module, const void *function);
KilnUnit kiln_unit_of(const KilnUnit *module, void *function);

const char *kiln_unit_name(const KilnUnit *unit);
/** Nodes or instructions of the whole module. */
int64_t kiln_unit_size(const KilnUnit *unit);
/** Of the whole module: linear. */
KilnUnitCost kiln_unit_cost(const KilnUnit *unit);
/** Of the function and of what passes may change beside it. */
KilnHashes kiln_unit_hash(const KilnUnit *unit);
/** Grows with every change, above 0. A subgraph is part of what is around it, so that the graph
 * level goes by its module. */
uint64_t kiln_unit_stamp(const KilnUnit *unit);
/** Says that the function changed, whatever changed in it. */
void kiln_unit_touch(const KilnUnit *unit);
gboolean kiln_unit_verify(const KilnUnit *unit, GError **error);
/** The same, and notes from here on what the functions of graph/ or ir/ touch. */
gboolean kiln_unit_verify_whole(const KilnUnit *unit, GError **error);
/** Looks only at what they touched since it was found valid. */
gboolean kiln_unit_verify_changes(const KilnUnit *unit, GError **error);
void kiln_unit_print(const KilnUnit *unit, GString *out);
/** Numbers nodes or instructions densely in list order. */
void kiln_unit_renumber(const KilnUnit *unit);
gboolean kiln_unit_run(const KilnUnit *unit, const KilnPassInfo *pass, KilnPassContext *context,
                       bool *changed, GError **error);

#endif
