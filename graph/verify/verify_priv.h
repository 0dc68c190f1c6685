/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the verifier share. */
#ifndef KILN_GRAPH_VERIFY_VERIFY_PRIV_H
#define KILN_GRAPH_VERIFY_VERIFY_PRIV_H

#include "graph/graph.h"

/** One function that is being verified, and the one around it. */
typedef struct KilnVerifyScope {
    const KilnFunction *function;
    struct KilnVerifyScope *outer;
    uint32_t *first_reads; /* by node id: 1 + where the counts of its results begin in `reads`;
                              0: the node was not reached yet */
    GArray *reads;         /* uint32_t per value: arguments first, then results in order */
} KilnVerifyScope;

typedef struct {
    const KilnModule *module;
    KilnArena *scratch; /* of inference; emptied never, freed whole */
    KilnVerifyScope *scope;
    const KilnNode *node; /* the one that is looked at, for the error */
    const char *declared; /* of the declaration whose body it is in; NULL: of none */
    GError **error;
} KilnVerify;

/** KILN_ERROR_INVALID with function and node named. Always false. */
bool kiln_verify_throw(KilnVerify *verify, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** Names and types of a value of the current function. */
bool kiln_verify_value(KilnVerify *verify, const KilnValue *value);
/** What the current node says of itself: operator, place, arity; not its id. */
bool kiln_verify_node(KilnVerify *verify);
/** Operand @i of the current node is linked to its neighbours among the readers of its value. */
bool kiln_verify_use(KilnVerify *verify, uint32_t i);
/** The current node's results know it, and are sound as values. */
bool kiln_verify_results(KilnVerify *verify);
/** The chain of readers of @value: whole, linked both ways; stores its length. */
bool kiln_verify_chain(KilnVerify *verify, const KilnValue *value, uint32_t *n);
/** The current node's types are those that inference finds. */
bool kiln_verify_types(KilnVerify *verify);
/** The function's results have names of their own. */
bool kiln_verify_result_names(KilnVerify *verify);

/** Attributes of the current node, its subgraphs' signatures and its callee. */
bool kiln_verify_attrs(KilnVerify *verify);

#endif
