/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of kiln.h. */
#ifndef KILN_RUNTIME_PROGRAM_H
#define KILN_RUNTIME_PROGRAM_H

#include "graph/base/budget.h"
#include "ir/target.h"
#include "kiln.h"
#include "passes/context/options.h"
#include "runtime/bind.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/specialise.h"

#include <pthread.h>
#include <stdatomic.h>

struct KilnTemplate;
struct KilnPackedForm;

/** A kernel and its arguments: one call in a session. */
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
    KilnLimits limits;    /* of all compiling and folding for it */
    KilnConstantCache *cache;
    char *cache_dir;          /* where folded constants are kept on disk; NULL: nowhere */
    KilnConstness *constness; /* per input: as the options say */
    GBytes **values;          /* per input: known when compiled; NULL: not */
    atomic_ullong generation; /* of the constants that come with the first run */
    atomic_ullong fold_runs;
    KilnPassOptions pass_options;
    const volatile int *cancel;
    KilnLogFn log;
    KilnProgressFn progress;
    void *data;
    bool *value_inputs;           /* per input: shapes depend on its value */
    bool open;                    /* shapes or values come with a run */
    KilnModule *shaped;           /* open: the model with the known shapes; infos borrow from it */
    KilnInfoList inputs, outputs; /* as far as known when compiled */
    pthread_mutex_t lock;         /* guards the fields below */
    const KilnObject *object;     /* sessions run its entry function; NULL: they walk the calls */
    GPtrArray *specialisations;   /* in order of use, the latest at the end */
    GPtrArray *templates;  /* KilnTemplate*: open programs, by the values they are made for */
    GPtrArray *zeros;      /* KilnZeros*: names that were seen as 0, and theirs */
    char *refusal;         /* why no open program can be made of the model; NULL: it may be */
    double progress_done;  /* share of the present specialisation that is made */
    double progress_stage; /* share of its present stage */
};

/** An empty program of @model, to be filled. */
KilnProgram *kiln_program_new(KilnModel *model);

/** The input of that name, @what of which the caller states; -1 and KILN_ERROR_USAGE where there is
 * none. */
int kiln_program_input_named(const KilnProgram *program, const char *what, const char *name,
                             GError **error);
/** Writes what @shapes say into @bindings, one per input; the others get no rank. */
gboolean kiln_program_read_shapes(const KilnProgram *program, const KilnShape *shapes,
                                  unsigned n_shapes, KilnBinding *bindings, GError **error);

/** Fixes dims of the inputs of an open program without a graph, at the IR level or of a file, and
 * what follows from them: @bindings has one for each input, with -1 for what stays open. */
gboolean kiln_program_pin(KilnProgram *program, const KilnBinding *bindings, GError **error);

/** The memory of @made. */
void kiln_specialisation_report(const KilnProgram *program, const KilnSpecialisation *made,
                                KilnMemoryReport *out);
/** Copies @report into the caller's struct. */
gboolean kiln_memory_report_copy(const KilnMemoryReport *report, KilnMemoryReport *out,
                                 GError **error);

enum {
    KILN_MAX_SPECIALISATIONS = 32 /* per program; the least recently used one goes */
};

/** A reference to the specialisation for @bindings (one per input). Makes it if there is none: an
 * instance of an open program, which belongs to the caller alone, where the model can be compiled
 * for open dims. @carries: of the session that it is for; NULL: none. */
KilnSpecialisation *kiln_program_specialise(KilnProgram *program, const KilnBinding *bindings,
                                            struct KilnCarries *carries, GError **error);
/** A reference to the open program of @program, which is open, and the packed weights that it
 * likely wants, to be freed with kiln_probe_free(). NULL with an error where there can be none. */
struct KilnTemplate *kiln_program_open_template(KilnProgram *program,
                                                struct KilnPackedForm **out_forms, GError **error);
/** True if @made is the specialisation for @bindings. Needs no lock. */
bool kiln_specialisation_fits(const KilnProgram *program, const KilnSpecialisation *made,
                              const KilnBinding *bindings);

#endif
