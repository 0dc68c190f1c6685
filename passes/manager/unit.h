/* SPDX-License-Identifier: Apache-2.0 */
/* One function of either level, so that the manager has one loop for both. */
#ifndef KILN_PASSES_MANAGER_UNIT_H
#define KILN_PASSES_MANAGER_UNIT_H

#include "passes/context/context.h"
#include "passes/context/report.h"
#include "passes/manager/hash.h"
#include "passes/pass.h"

typedef struct {
    KilnLevel level;
    KilnModule *module;     /* set at both levels */
    KilnIRModule *ir;       /* NULL at the graph level */
    KilnFunction *graph;    /* the function, at the graph level; NULL: the whole module */
    KilnIRFunction *instrs; /* the same at the IR level */
} KilnUnit;

/** The functions of the module now (KilnFunction* or KilnIRFunction*): callees first, subgraphs
 * before the functions around them. */
GPtrArray *kiln_unit_functions(const KilnUnit *module);
/** True if @function, which is from such a list, is still in the module. A pass may have removed it
 * or the node that owns it. */
bool kiln_unit_is_alive(const KilnUnit *module, const void *function);
KilnUnit kiln_unit_of(const KilnUnit *module, void *function);

const char *kiln_unit_name(const KilnUnit *unit);
/** The number of nodes or instructions of the whole module. */
int64_t kiln_unit_size(const KilnUnit *unit);
/** The cost of the whole module. Takes linear time. */
KilnUnitCost kiln_unit_cost(const KilnUnit *unit);
/** Hashes the function, and the parts of the module beside it that passes may change. @known keeps
 * what is known of these parts for the next call; NULL: they are hashed anew. */
KilnHashes kiln_unit_hash(const KilnUnit *unit, KilnKnownHashes *known);
/** A number above 0 that grows with every change. At the graph level it is the module's, because a
 * subgraph is part of the function around it. */
uint64_t kiln_unit_stamp(const KilnUnit *unit);
/** Notes that anything in the function may have changed. */
void kiln_unit_touch(const KilnUnit *unit);
gboolean kiln_unit_verify(const KilnUnit *unit, GError **error);
/** Verifies all of it. From then on, the functions of graph/ or ir/ note what they change. */
gboolean kiln_unit_verify_whole(const KilnUnit *unit, GError **error);
/** Verifies only the parts that changed since it was found valid. */
gboolean kiln_unit_verify_changes(const KilnUnit *unit, GError **error);
void kiln_unit_print(const KilnUnit *unit, GString *out);
/** Numbers nodes or instructions densely in list order. */
void kiln_unit_renumber(const KilnUnit *unit);
gboolean kiln_unit_run(const KilnUnit *unit, const KilnPassInfo *pass, KilnPassContext *context,
                       bool *changed, GError **error);

#endif
