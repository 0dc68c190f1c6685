/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that a module calls once, ahead of its runs. The pass constant-fold moves them out of
 * the entry. The table says where their operands come from and where their results go.
 *
 *     fold(%x: f32[1,64], %w1: f32[64,64] constant=compile, %w2: f32[64,64] constant=run) {
 *       %f0, %f1 = compile @compiletime_fold(%w1)
 *       %f2 = run @runtime_fold(%w2)
 *     }
 *
 * Values are numbered: first the arguments of the signature, then the results of each fold. */
#ifndef KILN_GRAPH_MODULE_FOLDING_H
#define KILN_GRAPH_MODULE_FOLDING_H

#include "graph/graph.h"

/** A function that is called once. */
typedef struct {
    const char *function; /* of the module, in front of the entry; of either level */
    KilnConstness when;   /* COMPILE: while compiling; RUN: at the first run */
    uint32_t n_operands, n_results;
    uint32_t *operands;    /* per argument of the function: the number of an earlier value */
    const char **results;  /* names of the results; the entry's arguments for them have the same */
    uint32_t first_result; /* the number of the first result; the others follow */
} KilnFold;

struct KilnFolding {
    GPtrArray *signature; /* KilnArgument*: the arguments of the entry before any folding */
    GPtrArray *folds;     /* KilnFold*, in the order of their calls: compile before run */
    GArray *entry;        /* uint32_t: per argument of the entry, the number of its value */
};

/** Makes an empty table. The module that it is put into frees it. */
KilnFolding *kiln_folding_new(void);
void kiln_folding_free(KilnFolding *folding);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnFolding, kiln_folding_free)
/** Appends a deep copy of @call, made in the module's @arena. Sets its first_result. */
KilnFold *kiln_folding_add(KilnFolding *folding, const KilnFold *call, KilnArena *arena);
/** Copies @folding for a clone of its module. @arena belongs to the clone. */
KilnFolding *kiln_folding_clone(const KilnFolding *folding, KilnArena *arena);

uint32_t kiln_folding_n_values(const KilnFolding *folding);
/** The name of an argument of the signature or of a result of a fold. */
const char *kiln_folding_name(const KilnFolding *folding, uint32_t number);
/** The fold that makes value @number; NULL for an argument of the signature. */
const KilnFold *kiln_folding_maker(const KilnFolding *folding, uint32_t number);
/** True if a fold of the module calls @function. */
bool kiln_function_is_fold(const KilnFunction *function);

/** True if an argument of the entry has one value in all runs: its type says constant, or a fold
 * makes it. */
bool kiln_argument_is_fixed(const KilnArgument *argument);
/** The same for any value. */
bool kiln_value_is_fixed(const KilnValue *value);
/** The same for operand @i of @node, a node of the entry. Functions of branches and loops get all
 * that they read from around them as inputs, which vary. */
bool kiln_operand_is_fixed(const KilnNode *node, uint32_t i);

/** The inputs of the model (KilnArgument*): the arguments of the signature if something was folded,
 * else those of the entry. */
const GPtrArray *kiln_module_inputs(const KilnModule *module);

#endif
