/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of kiln.h. */
#ifndef KILN_RUNTIME_PROGRAM_H
#define KILN_RUNTIME_PROGRAM_H

#include "kiln.h"
#include "passes/context/options.h"
#include "runtime/bind.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"

#include <pthread.h>
#include <stdatomic.h>

/** What a session runs: a kernel and what it is called with. */
struct KilnCall {
    KilnKernelFn run;
    KilnKernelArgs args;
};

struct KilnProgram {
    atomic_int references;
    KilnModel *model;
    KilnPipeline *pipeline;
    const KilnTarget *target;
    int threads;
    KilnParallelFor parallel_for; /* NULL: the process's own threads */
    void *pool;
    int64_t memory_limit; /* of the arena */
    KilnLimits limits;    /* of all that is compiled or folded for it */
    KilnConstantCache *cache;
    char *cache_dir;          /* where folded constants are kept on disk; NULL: nowhere */
    KilnConstness *constness; /* per input: as the options say */
    GBytes **values;          /* per input: known since the program was compiled; NULL: not */
    atomic_ullong generation; /* of the constants that come with the first run */
    atomic_ullong fold_runs;
    KilnPassOptions pass_options;
    const volatile int *cancel;
    KilnLogFn log;
    KilnProgressFn progress;
    void *data;
    bool *value_inputs; /* per input: shapes depend on its value */
    bool open;          /* shapes or values come with a run */
    KilnModule *shaped; /* open: the model with the shapes that are known; what infos borrow from */
    KilnInfoList inputs, outputs; /* as far as known when compiled */
    pthread_mutex_t lock;         /* guards what is below */
    const KilnObject *object;     /* whose entry function sessions run; NULL: they walk the calls */
    GPtrArray *specialisations;   /* the one asked for last is the last */
    double progress_done;         /* of the specialisation that is being made: how far it is, */
    double progress_stage;        /* and how much of the whole the present stage is */
};

/** A program of @model without anything in it, to be filled. */
KilnProgram *kiln_program_new(KilnModel *model);

enum {
    KILN_MAX_SPECIALISATIONS = 32 /* of one program; the one not used for longest goes */
};

/** A reference on the specialisation for @bindings (one per input), made now where there is none.
 */
KilnSpecialisation *kiln_program_specialise(KilnProgram *program, const KilnBinding *bindings,
                                            GError **error);
/** True where @made is what @bindings ask for. Needs no lock. */
bool kiln_specialisation_fits(const KilnProgram *program, const KilnSpecialisation *made,
                              const KilnBinding *bindings);

#endif
