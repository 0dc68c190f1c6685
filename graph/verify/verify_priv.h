/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the verifier share. */
#ifndef KILN_GRAPH_VERIFY_VERIFY_PRIV_H
#define KILN_GRAPH_VERIFY_VERIFY_PRIV_H

#include "graph/graph.h"

/** One function that is being verified, and the one around it. */
typedef struct KilnVerifyScope {
    const KilnFunction *function;
    struct KilnVerifyScope *outer;
    uint32_t *first_reads; /* by node id: 1 + the index in `reads` of the counts of its results; 0:
                              the node was not reached yet */
    GArray *reads;         /* uint32_t per value: arguments first, then results in order */
} KilnVerifyScope;

typedef struct {
    const KilnModule *module;
    KilnArena *scratch; /* of inference; freed whole at the end */
    KilnVerifyScope *scope;
    const KilnNode *node; /* the node being checked, for the error */
    const char *declared; /* name of the declaration whose body is checked; NULL: none */
    GError **error;
} KilnVerify;

/** KILN_ERROR_INVALID with function and node named. Always false. */
bool kiln_verify_throw(KilnVerify *verify, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** Checks names and types of a value of the current function. */
bool kiln_verify_value(KilnVerify *verify, const KilnValue *value);
/** Checks operator, place and arity of the current node, not its id. */
bool kiln_verify_node(KilnVerify *verify);
/** Checks the links of operand @i of the current node to other readers of its value. */
bool kiln_verify_use(KilnVerify *verify, uint32_t i);
/** Checks that the current node's results know it and are sound as values. */
bool kiln_verify_results(KilnVerify *verify);
/** Checks that the chain of readers of @value is whole and linked both ways; stores its length. */
bool kiln_verify_chain(KilnVerify *verify, const KilnValue *value, uint32_t *n);
/** Checks that the current node has the types that inference finds. */
bool kiln_verify_types(KilnVerify *verify);
/** Checks that the function's results have names of their own. */
bool kiln_verify_result_names(KilnVerify *verify);

/** Checks attributes of the current node, signatures of its subgraphs, and its callee. */
bool kiln_verify_attrs(KilnVerify *verify);
/** Checks types and attributes of the current node where it is a branch or loop. Its subgraphs have
 * the right numbers of arguments and results. */
bool kiln_verify_flow(KilnVerify *verify);

#endif
