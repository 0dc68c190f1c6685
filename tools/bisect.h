/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a pipeline up to a cut, for kiln bisect. */
#ifndef KILN_TOOLS_BISECT_H
#define KILN_TOOLS_BISECT_H

#include "graph/arena.h"
#include "graph/binding.h"
#include "passes/context/options.h"
#include "passes/manager/draws.h"
#include "passes/manager/results.h"
#include "passes/pass.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/model.h"
#include "runtime/specialise.h"

/** The parts that all tries share. */
typedef struct {
    const KilnModel *model;
    const KilnBinding *bindings;
    const KilnPassPipeline *passes;
    KilnPassOptions options;
    const KilnTarget *reference; /* results are computed on it */
    GPtrArray *runs;             /* KilnBisectRun* */
    KilnDrawCount draws;         /* of numbers for open dims */
    KilnArena *arena;            /* of bindings */
} KilnBisect;

/** What a try is compared with. */
typedef struct {
    const KilnDimBinding *binding; /* numbers of open dims; none where shapes are fixed */
    GPtrArray *inputs;             /* KilnTensor*, per input of the model */
    KilnResults *expected;         /* of the model before any pass */
} KilnBisectRun;

/** The end of a try: whether it lowers the function, and how many applications run. */
typedef struct {
    bool lowered;
    uint32_t limit;
} KilnCut;

enum {
    KILN_BISECT_REWRITES = 16, /* most lines kept of the last application */
    KILN_BISECT_LINE = 240,
};

/** The result of a try. It ran in a process of its own, so that a crash is a result too. */
typedef struct {
    bool good;
    bool made;                /* the code at the cut was made, whatever it computes */
    bool finished;            /* the process did not crash or exit early */
    uint32_t applications;    /* of passes, the one that failed or crashed included */
    char why[1024];           /* if it is not good */
    char last[256];           /* "12 cse @main" */
    const KilnPassInfo *pass; /* of the last application, like its options; borrowed */
    const void *pass_options;
    uint32_t n_rewrites; /* of the last application */
    char rewrites[KILN_BISECT_REWRITES][KILN_BISECT_LINE];
} KilnTry;

/** Fills in inputs and expected results: of several runs if the model has open dims. */
gboolean kiln_bisect_expect(KilnBisect *bisect, uint64_t seed, GError **error);
void kiln_bisect_clear(KilnBisect *bisect);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KilnBisect, kiln_bisect_clear)

/** Runs the pipeline up to @cut and compares. FALSE only if no process could be made. */
gboolean kiln_bisect_try(const KilnBisect *bisect, KilnCut cut, KilnTry *out, GError **error);
/** The same in this process and without comparing. Sets @module or @ir to the result at @cut. */
gboolean kiln_bisect_run(const KilnBisect *bisect, KilnCut cut, KilnModule **module,
                         KilnIRModule **ir, GError **error);

#endif
