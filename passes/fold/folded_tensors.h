/* SPDX-License-Identifier: Apache-2.0 */
/* A module's table of folded tensors (graph/module/folding.h) during a change. */
#ifndef KILN_PASSES_FOLD_FOLDED_TENSORS_H
#define KILN_PASSES_FOLD_FOLDED_TENSORS_H

#include "graph/graph.h"

enum {
    KILN_FOLD_N_STAGES = KILN_CONSTNESS_COMPILE + 1, /* by KilnConstness; VARYING has none */
};

/** An argument of the signature (stage VARYING), or a result of a stage. */
typedef struct {
    KilnConstness stage;
    uint32_t index;
} KilnFoldRef;

typedef struct KilnFoldTable KilnFoldTable;

/** A fold function during a change. */
typedef struct {
    KilnFoldTable *table;
    KilnConstness when;
    KilnFunction *function; /* NULL: there is none */
    GArray *operands;       /* KilnFoldRef per argument */
    GPtrArray *results;     /* KilnValue* of the function */
    GPtrArray *names;       /* char* per result */
    GHashTable *imported;   /* KilnFoldRef as a key → KilnValue* */
    GHashTable *exported;   /* KilnValue* → its index among the results + 1 */
} KilnFoldStage;

struct KilnFoldTable {
    KilnModule *module;
    KilnFunction *entry;
    GPtrArray *signature; /* KilnArgument* */
    GArray *arguments;    /* KilnFoldRef per argument of the entry */
    KilnFoldStage stages[KILN_FOLD_N_STAGES];
};

/** Opens the table of @entry's module. It is new if nothing was folded. */
KilnFoldTable *kiln_fold_table_open(KilnFunction *entry);
/** Drops arguments and results without readers, orders the others, writes the table to the module
 * and frees it. True if something was dropped. */
bool kiln_fold_table_close(KilnFoldTable *table);

/** The stage of @when. Makes its function if there is none. */
KilnFoldStage *kiln_fold_table_stage(KilnFoldTable *table, KilnConstness when);
/** The value for @ref in the function of @stage: an argument, or the value that is its result. */
KilnValue *kiln_fold_stage_import(KilnFoldStage *stage, KilnFoldRef ref);
/** Makes @value a result of its function in @stage, called @name if that is free. */
KilnFoldRef kiln_fold_stage_export(KilnFoldStage *stage, KilnValue *value, const char *name);
/** The reference that argument @i of the entry takes. */
KilnFoldRef kiln_fold_table_argument(const KilnFoldTable *table, uint32_t i);
/** The argument of the entry that takes @ref. Adds one at the end if there is none. */
KilnArgument *kiln_fold_table_add_argument(KilnFoldTable *table, KilnFoldRef ref);

#endif
