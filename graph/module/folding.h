/* SPDX-License-Identifier: Apache-2.0 */
/* What a module computes once, ahead of its runs: functions that the pass constant-fold takes out
 * of the entry, and who feeds whom.
 *
 *     fold(%x: f32[1,64], %w1: f32[64,64] constant=compile, %w2: f32[64,64] constant=run) {
 *       %f0, %f1 = compile @compiletime_fold(%w1)
 *       %f2 = run @runtime_fold(%w2)
 *     }
 *
 * Values have numbers: the arguments of the signature first, then the results of each fold in turn.
 */
#ifndef KILN_GRAPH_MODULE_FOLDING_H
#define KILN_GRAPH_MODULE_FOLDING_H

#include "graph/graph.h"

/** A function that is called once. */
typedef struct {
    const char *function; /* of the module, in front of the entry; at either level */
    KilnConstness when;   /* COMPILE: while compiling; RUN: at the first run */
    uint32_t n_operands, n_results;
    uint32_t *operands;    /* per argument of the function: the number of a value made before */
    const char **results;  /* their names, which the entry's arguments have that take them */
    uint32_t first_result; /* the number of the first; the others follow */
} KilnFold;

struct KilnFolding {
    GPtrArray *signature; /* KilnArgument*: what the entry took before anything was folded */
    GPtrArray *folds;     /* KilnFold*, in the order of their calls: compile before run */
    GArray *entry;        /* uint32_t: the value that each argument of the entry takes */
};

/** An empty table, to be filled and put into a module, which frees it. */
KilnFolding *kiln_folding_new(void);
void kiln_folding_free(KilnFolding *folding);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnFolding, kiln_folding_free)
/** Appends a call; what it names and numbers is copied into @arena, the module's. */
KilnFold *kiln_folding_add(KilnFolding *folding, const KilnFold *call, KilnArena *arena);
/** For a module with @arena, a clone of the one that @folding belongs to. */
KilnFolding *kiln_folding_clone(const KilnFolding *folding, KilnArena *arena);

uint32_t kiln_folding_n_values(const KilnFolding *folding);
/** The name of an argument of the signature or of a result of a fold. */
const char *kiln_folding_name(const KilnFolding *folding, uint32_t number);
/** The fold that makes @number; NULL for an argument of the signature. */
const KilnFold *kiln_folding_maker(const KilnFolding *folding, uint32_t number);
/** True where a fold of the module calls @function. */
bool kiln_function_is_fold(const KilnFunction *function);

/** True of an argument of the module's entry that has one value in all runs: its type says
 * constant, or a fold makes it. */
bool kiln_argument_is_fixed(const KilnArgument *argument);
/** The same of a value that may be anything. */
bool kiln_value_is_fixed(const KilnValue *value);

/** What the model is given from outside: the arguments of the signature where something was folded,
 * else those of the entry (KilnArgument*). */
const GPtrArray *kiln_module_inputs(const KilnModule *module);

#endif
