/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of kiln.h from inside, for runtime/, the kiln command and the tests. */
#ifndef KILN_RUNTIME_INTERNAL_H
#define KILN_RUNTIME_INTERNAL_H

#include "runtime/kiln.h"

#include "ir/plan.h"
#include "passes/manager.h"

#include <pthread.h>
#include <stdatomic.h>

/** Infos of all inputs or outputs, with the storage that they point to. */
typedef struct {
    unsigned n;
    KilnTensorInfo *info;
    KilnType *types; /* names borrowed from the module or IR that they were made from */
} KilnInfoList;
/** Types are copied into @list; the strings that they borrow must outlive it. */
void kiln_info_list_init(KilnInfoList *list, unsigned n, const char *const *names,
                         const KilnType *types);
void kiln_info_list_clear(KilnInfoList *list);

struct KilnModel {
    atomic_int references;
    char *name;         /* path, or what stands for it */
    KilnModule *module; /* graph level: what programs clone; IR level: the constants' home, for
                           infos only */
    GBytes *ir_text;    /* IR level: parsed anew by each compilation; NULL at graph level */
    KilnIRModule *ir;   /* IR level: for infos; owns `module` then */
    KilnInfoList inputs, outputs;
};

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
    const void *data; /* of inputs that shapes depend on; else NULL */
} KilnBinding;

/** Arguments of @function whose values decide shapes: those that shape operands are computed from.
 * One flag per argument, to be freed. */
bool *kiln_value_arguments(const KilnFunction *function);
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
        KILN_SLOT_INPUT,
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
    void *packed;           /* owned; NULL: none */
    KilnCost cost;
} KilnBoundCall;

/** A program for one combination of shapes: immutable once made. */
typedef struct {
    KilnIRModule *ir;
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
    KilnInfoList inputs, outputs;
    /* the key */
    KilnBinding *bindings;
    GBytes **values; /* per input; NULL where shapes do not depend on it */
} KilnSpecialisation;

/** Resolves every operand of @ir's entry to a slot and every instruction to a kernel; packs
 * weights. Takes @ir over. */
KilnSpecialisation *kiln_program_bind(KilnIRModule *ir, const KilnTarget *target, int threads,
                                      GError **error);
void kiln_specialisation_free(KilnSpecialisation *specialisation);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnSpecialisation, kiln_specialisation_free)

struct KilnProgram {
    atomic_int references;
    KilnModel *model;
    KilnPipeline *pipeline;
    const KilnTarget *target;
    int threads;
    int64_t memory_limit;
    KilnPassOptions pass_options;
    const volatile int *cancel;
    KilnLogFn log;
    KilnProgressFn progress;
    void *data;
    bool *value_inputs;   /* per input: shapes depend on its value */
    bool open;            /* shapes or values come with a run */
    pthread_mutex_t lock; /* guards specialisations while they are made */
    GPtrArray *specialisations;
    KilnInfoList inputs, outputs; /* as far as known when compiled */
};

/** The specialisation for @bindings (one per input), made now where there is none. */
const KilnSpecialisation *kiln_program_specialise(KilnProgram *program, const KilnBinding *bindings,
                                                  GError **error);

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

/** "cpu", "ref"; NULL and KILN_ERROR_USAGE for others. */
const KilnTarget *kiln_target_by_name(const char *name, GError **error);
/** Names and summaries, in order; NULL past the end. */
const KilnTarget *kiln_target_at(unsigned i);

/** Processors that this process may use. */
int kiln_processor_count(void);

#endif
