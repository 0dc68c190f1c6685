/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the verifier share. */
#ifndef KILN_GRAPH_VERIFY_PRIV_H
#define KILN_GRAPH_VERIFY_PRIV_H

#include "graph/module.h"

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
    GError **error;
} KilnVerify;

/** KILN_ERROR_INVALID with function and node named. Always false. */
bool kiln_verify_throw(KilnVerify *verify, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** Attributes of the current node, its subgraphs' signatures and its callee. */
bool kiln_verify_attrs(KilnVerify *verify);

#endif
