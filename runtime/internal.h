/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of kiln.h from inside, for runtime/, the kiln command and the tests. */
#ifndef KILN_RUNTIME_INTERNAL_H
#define KILN_RUNTIME_INTERNAL_H

#include "kiln.h"

#include "graph/base/budget.h"
#include "ir/plan.h"
#include "passes/manager/manager.h"
#include "runtime/fold_calls.h"

#include <pthread.h>
#include <stdatomic.h>

/** A struct that begins with its size: what messages call it and its initializer. */
typedef struct {
    const char *type, *init;
    size_t size;
} KilnStructKind;
#define KILN_STRUCT_KIND(Type, INIT)                                                               \
    {                                                                                              \
#Type, #INIT, sizeof(Type)                                                                 \
    }
/** Copies the options at @given to @out. Fields that an older and shorter struct lacks become 0.
 * KILN_ERROR_USAGE for a size that no version has had. */
gboolean kiln_options_copy(const KilnStructKind *kind, const void *given, void *out,
                           GError **error);
/** Copies the struct at @from to the caller's at @out, as much as fits into the size that it has.
 * Fields of a later and longer struct become 0. KILN_ERROR_USAGE for a size of no version. */
gboolean kiln_report_copy(const KilnStructKind *kind, const void *from, void *out, GError **error);
/** KILN_ERROR_USAGE for a limit below 0. */
gboolean kiln_limits_check(const KilnLimits *limits, GError **error);
/** kiln_options_copy() of what a session of @program is made with; KILN_ERROR_USAGE for values that
 * are out of range. */
gboolean kiln_session_options_copy(const KilnProgram *program, const KilnSessionOptions *options,
                                   KilnSessionOptions *copy, GError **error);

/** Infos of all inputs or outputs, with the storage that they point to. */
typedef struct {
    unsigned n;
    KilnTensorInfo *info;
    KilnType *types; /* names borrowed from the module or IR that they were made from */
} KilnInfoList;
/** Types are copied into @list; the strings that they borrow must outlive it. */
void kiln_info_list_init(KilnInfoList *list, unsigned n, const char *const *names,
                         const KilnType *types);
/** The same infos; names stay those that @from borrows. Clears @to first. */
void kiln_info_list_copy(KilnInfoList *to, const KilnInfoList *from);
void kiln_info_list_clear(KilnInfoList *list);
/** What @module is given from outside, and the results of its entry. */
void kiln_info_lists_of_graph(const KilnModule *module, KilnInfoList *inputs,
                              KilnInfoList *outputs);

/** Where a pipeline comes from, and the plug-ins whose passes it may name. */
typedef struct {
    const char *name;           /* a shipped pipeline or a file; NULL: `text` */
    const char *text;           /* the inline form */
    const char *const *plugins; /* files, then NULL; may be NULL */
} KilnPipelineSource;
/** kiln_pipeline_load() or kiln_pipeline_parse(), with plug-ins loaded before. */
KilnPipeline *kiln_pipeline_open(const KilnPipelineSource *source, GError **error);

struct KilnModel {
    atomic_int references;
    char *name;         /* path, or what stands for it */
    KilnModule *module; /* graph level: what programs clone; IR level: the constants' home, for
                           infos only */
    GBytes *ir_text;    /* IR level: parsed anew by each compilation; NULL at graph level */
    KilnIRModule *ir;   /* IR level: for infos; owns `module` then */
    GBytes *map;        /* the file, where it is mapped and holds constants; else NULL */
    KilnInfoList inputs, outputs;
    KilnMetadata metadata;    /* texts are those of @module */
    KilnConstantCache *cache; /* of programs that are given no other */
};

/** A model without anything in it, to be filled. @name NULL: of memory. */
KilnModel *kiln_model_new(const char *name, GError **error);
/** kiln_model_load_bytes_with() of what lies in no folder: @name is for messages alone. */
KilnModel *kiln_model_load_alone(GBytes *bytes, const char *name, const KilnModelOptions *options,
                                 GError **error);
/** Makes @model the one of @ir, which it takes over. */
void kiln_model_take_ir(KilnModel *model, KilnIRModule *ir);

struct KilnPipeline {
    atomic_int references;
    KilnPassPipeline *passes;
    atomic_bool used;
};

/** What a run is specialised for: shape of each input, and the bytes of those that shapes depend
 * on. */
typedef struct {
    int rank; /* KILN_RANK_UNKNOWN: as the model says */
    int64_t dims[KILN_MAX_RANK];
    const void *data;        /* of inputs that shapes depend on; else NULL */
    KilnConstness constness; /* VARYING: as the model says */
} KilnBinding;

/** Inputs of @module whose values decide shapes: those that shape operands are computed from. One
 * flag per input, to be freed. */
bool *kiln_value_inputs(const KilnModule *module);
/** True where a tensor of @binding's shape is of @type, whose dims may be open. */
bool kiln_binding_fits(const KilnBinding *binding, const KilnType *type);
/** Says that it does not, of the input of that name. Always FALSE. */
gboolean kiln_binding_throw(const KilnBinding *binding, const char *input, const KilnType *type,
                            GError **error);
/** A clone of @module in which every input has the bound shape, inputs with data are literal, and
 * all types that this decides are static. @target evaluates what shape inference does not. */
KilnModule *kiln_specialise(const KilnModule *module, const KilnBinding *bindings,
                            const KilnTarget *target, GError **error);

/** Where an operand of a bound call lies. */
typedef struct {
    enum {
        KILN_SLOT_NONE,
        KILN_SLOT_WEIGHT, /* index: of the specialisation's weights */
        KILN_SLOT_STATE,  /* index: of the session's mutable weights */
        KILN_SLOT_ARENA,
        KILN_SLOT_INPUT,  /* index: of the program's inputs */
        KILN_SLOT_FOLDED, /* index: of the buffers of the session's cache entry */
        KILN_SLOT_OUTPUT,
    } kind;
    uint32_t index;
    int64_t offset; /* bytes */
} KilnSlot;

typedef struct {
    const KilnInstr *instr;
    const KilnKernel *kernel;
    bool parallel; /* worth all threads; else one */
    uint32_t first_slot;
    int64_t scratch_offset; /* in the arena; -1: none */
    size_t packed_bytes;    /* of the operands that the kernel wants packed; 0: none */
    bool fitted;            /* packed by kernel->fitted, whose size was measured */
    uint32_t late;          /* 1 + which packing of the folder's: they come with the first run; 0:
                               they are packed when the program is bound */
    GBytes *packed;
    void *prepared; /* NULL where the kernel prepares nothing */
} KilnBoundCall;

/** A program for one combination of shapes: immutable once made, shared by the program that caches
 * it and the sessions that run it.
 *
 * All constant bytes that runs read are in `weights`, `packed` and `states`; the module below `ir`
 * has given up its own, so that what is packed is not kept plain too. Folded constants that the
 * first run computes are in the constant cache. */
typedef struct {
    atomic_int references;
    KilnIRModule *ir; /* NULL where the program's model owns it: of a program that was loaded */
    const KilnIRFunction *function;
    KilnMemoryPlan *plan;
    KilnBoundCall *calls;
    uint32_t n_calls;
    KilnSlot *slots;
    uint32_t n_slots;
    GBytes **weights; /* aligned views; NULL for what only packed kernels read */
    uint32_t n_weights;
    GBytes **states; /* initial bytes of weights that instructions write: a copy per session */
    uint32_t n_states;
    int64_t weight_bytes;
    int64_t arena_bytes;
    KilnFolder *folder;           /* NULL: nothing is computed ahead of the runs */
    KilnInfoList inputs, outputs; /* the program's */
    /* the key */
    KilnBinding *bindings;
    GBytes **values; /* per input; NULL where shapes do not depend on it */
} KilnSpecialisation;

typedef struct {
    const KilnTarget *target;
    int threads;
    int64_t memory_limit;                 /* of the arena; 0: none */
    KilnConstantCache *cache;             /* through which equal weights of programs become one */
    KilnFolder *folder;                   /* of @ir; NULL: none */
    bool frugal;                          /* fewer bytes at a time are worth more than speed */
    const struct KilnProgramFile *stored; /* where the plan and all bytes come from; NULL: they are
                                             made now */
    /* What the model calls its outputs: a buffer that has the name of another has one more letter.
     */
    const KilnInfoList *outputs;
    gboolean (*progress)(double fraction, const char *what, void *data); /* FALSE cancels */
    void *data;
} KilnBindOptions;

/** Resolves every operand of @ir's entry to a slot and every instruction to a kernel; packs
 * weights. Takes @ir and the folder over. */
KilnSpecialisation *kiln_program_bind(KilnIRModule *ir, const KilnBindOptions *options,
                                      GError **error);
KilnSpecialisation *kiln_specialisation_ref(KilnSpecialisation *specialisation);
void kiln_specialisation_unref(KilnSpecialisation *specialisation);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnSpecialisation, kiln_specialisation_unref)

/** What binding decides about the operands of calls: arrays by buffer id. */
typedef struct {
    KilnSpecialisation *out;
    const KilnBindOptions *options;
    bool *written;    /* an instruction writes to it (through views) */
    bool *read_plain; /* a kernel reads its plain bytes */
    bool *aligned;    /* and does not take them at any address */
    uint32_t *place;  /* index among weights, states, inputs or outputs */
} KilnBinder;
/** Fails with KILN_ERROR_LIMIT where memory or, by an estimate, a run breaks a limit. After calls
 * are bound. */
gboolean kiln_bind_check_limits(const KilnBinder *binder, GError **error);
/** Second half of binding: packs the operands that kernels want packed, makes aligned views of the
 * others, and lets go of constants as soon as nothing below needs their payload. */
gboolean kiln_bind_weights(KilnBinder *binder, GError **error);

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

/** The road from a model to bound code, step by step: what kiln_program_compile() walks, and `kiln
 * opt` stops on. The graph module of @model for @bindings (NULL: as the model says), optimized. */
KilnModule *kiln_compile_graph(const KilnModel *model, const KilnBinding *bindings,
                               const KilnPassPipeline *pipeline, const KilnPassOptions *options,
                               KilnPassReport *report, GError **error);
/** Lowered (takes @module over), optimized. */
KilnIRModule *kiln_compile_ir(KilnModule *module, const KilnPassPipeline *pipeline,
                              const KilnPassOptions *options, KilnPassReport *report,
                              GError **error);
/** An IR level model, parsed anew and optimized. */
KilnIRModule *kiln_compile_ir_text(const KilnModel *model, const KilnPassPipeline *pipeline,
                                   const KilnPassOptions *options, KilnPassReport *report,
                                   GError **error);

/** kiln_target_by_name(); without @offload its own kernels only. */
const KilnTarget *kiln_target_choose(const char *name, bool offload, GError **error);
/** "cpu", "ref"; NULL and KILN_ERROR_USAGE for others. */
const KilnTarget *kiln_target_by_name(const char *name, GError **error);
/** Names and summaries, in order; NULL past the end. */
const KilnTarget *kiln_target_at(unsigned i);

/** Processors that this process may use. */
int kiln_processor_count(void);

#endif
