/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a pass: the manager sets it, and the pass asks and reports through it. */
#ifndef KILN_PASSES_CONTEXT_CONTEXT_H
#define KILN_PASSES_CONTEXT_CONTEXT_H

#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/pass.h"

enum {
    KILN_RECENT_MAX = 8
}; /* an error about a cap names so many rewrites */

struct KilnPassContext {
    const KilnPassOptions *options;
    uint32_t flags;                 /* of the pipeline */
    const KilnPassInfo *pass;       /* the running one; NULL between passes */
    const void *pass_options;       /* of the running entry */
    KilnPassStats *stats;           /* of the running pass; NULL: nothing counts */
    const KilnMemoryPlan *liveness; /* NULL unless the running pass requires it */
    struct KilnLives *lives;        /* owned; kiln_pass_lives() looks whether they hold */
    bool implicit;                  /* the DCE in front of an entry: not among the last rewrites */
    const KilnNode *subject;        /* what refusals are about; NULL: they only count */
    int64_t subject_bytes;          /* of its results */
    uint32_t application;           /* the number of the running one */
    KilnNumerics numerics;          /* its class, at least */
    KilnNumerics elsewhere;         /* its class on targets other than that of passes */
    const char *last_refusal;       /* one of `refusals` */
    GHashTable *refusals;           /* char*, each once; NULL: none yet */
    char *recent[KILN_RECENT_MAX];  /* a ring of the last rewrites */
    uint32_t n_recent;              /* rewrites since the ring was cleared */

    struct KilnEqualConstants *equal_constants; /* owned, for kiln_pass_first_equal() */
};

void kiln_pass_context_clear_recent(KilnPassContext *context);
/** The last rewrites, oldest first: "a; b; c", or "none were noted". */
char *kiln_pass_context_recent(const KilnPassContext *context);

#endif
