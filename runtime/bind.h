/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for one combination of shapes: every operand is a place, every instruction a kernel. */
#ifndef KILN_RUNTIME_BIND_H
#define KILN_RUNTIME_BIND_H

#include "ir/plan.h"
#include "runtime/fold_calls.h"
#include "runtime/kiln-constants.h"
#include "runtime/model.h"
#include "runtime/specialise.h"

#include <stdatomic.h>

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
    uint32_t form;          /* of packed weights */
    size_t packed_bytes;    /* of the operands that the kernel wants packed; 0: none */
    bool fitted;            /* packed by kernel->fitted, which measured the size */
    uint32_t late; /* 1 + index of the folder's packing, which comes with the first run; 0: binding
                      packs */
    GBytes *packed;
    void *prepared;       /* NULL if the kernel prepares nothing */
    size_t prepared_room; /* bytes at @prepared */
} KilnBoundCall;

/** A program for one combination of shapes: immutable once made, shared by the program that caches
 * it and the sessions that run it. An instance of an open program is one, too.
 *
 * `weights`, `packed` and `states` have all constant bytes that runs read. The module below `ir`
 * has given up its own, so packed bytes are not kept plain too. Folded constants that the first run
 * computes are in the constant cache. */
typedef struct KilnSpecialisation {
    atomic_int references;
    KilnIRModule *ir; /* NULL: the model of a loaded program owns it, or this is a KilnBody */
    const KilnIRFunction *function;
    KilnMemoryPlan *plan;
    KilnBoundCall *calls;
    uint32_t n_calls;
    KilnSlot *slots;
    uint32_t n_slots;
    GBytes **weights;   /* aligned views; NULL: only packed kernels read it */
    bool *text_weights; /* per weight: its elements are strings */
    uint32_t n_weights;
    GBytes **states; /* initial bytes of weights that instructions write: a copy per session */
    uint32_t n_states;
    int64_t weight_bytes;
    int64_t arena_bytes;
    KilnFolder *folder;            /* NULL: nothing is computed ahead of the runs */
    GPtrArray *bodies;             /* KilnBody*, in the order in which its calls name them; NULL:
                                      it has no branches and loops. Of an instance: borrowed from
                                      its template */
    KilnInfoList inputs, outputs;  /* the program's */
    struct KilnInstance *instance; /* of an open program: belongs to one session, which moves it
                                      from shape to shape; NULL: immutable, and shared */
    void (*free_instance)(struct KilnInstance *instance); /* runtime/open/instance.c */
    /* the key */
    KilnBinding *bindings;
    GBytes **values; /* per input; NULL if shapes do not depend on it */
} KilnSpecialisation;

typedef struct {
    const KilnTarget *target;
    int threads;
    int64_t memory_limit;                 /* of the arena; 0: none */
    KilnConstantCache *cache;             /* makes equal weights of programs one */
    KilnFolder *folder;                   /* of @ir; NULL: none */
    bool frugal;                          /* low peak memory counts more than speed */
    bool keeps_constants;                 /* others will bind the same constants again */
    struct KilnCarries *carries;          /* of the session that an instance is for; NULL: none */
    const struct KilnProgramFile *stored; /* has the plan and all bytes; NULL: they are made now */
    const struct KilnProgramFile *forms;  /* has packed weights of branches and loops; NULL: none */
    /* The model's names of its outputs: a buffer gets one more letter if its name is taken. */
    const KilnInfoList *outputs;
    GHashTable *bodies; /* of KilnIRFunction to the KilnSpecialisation of a function that is bound
                           already; the first caller leaves it NULL */
    gboolean (*progress)(double fraction, const char *what, void *data); /* FALSE cancels */
    void *data;
} KilnBindOptions;

/** Resolves every operand of @ir's entry to a slot and every instruction to a kernel; packs
 * weights. Takes @ir and the folder over. */
KilnSpecialisation *kiln_program_bind(KilnIRModule *ir, const KilnBindOptions *options,
                                      GError **error);
/** The same for a function of the module that a branch or loop runs. Others bind the constants that
 * it reads, too. */
KilnSpecialisation *kiln_bind_function(KilnIRFunction *function, const KilnBindOptions *options,
                                       GError **error);
KilnSpecialisation *kiln_specialisation_ref(KilnSpecialisation *specialisation);
void kiln_specialisation_unref(KilnSpecialisation *specialisation);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnSpecialisation, kiln_specialisation_unref)

/** Decisions of binding about the operands of calls: arrays by buffer id. */
typedef struct {
    KilnSpecialisation *out;
    const KilnBindOptions *options;
    bool *written;    /* an instruction writes to it (through views) */
    bool *read_plain; /* a kernel reads its plain bytes */
    bool *aligned;    /* and needs them aligned */
    uint32_t *place;  /* index among weights, states, inputs or outputs */
} KilnBinder;
/* Steps of kiln_program_bind(), for binding one function again and again. */
void kiln_bind_find_written(KilnBinder *binder);
/** Fills @list and the places of @buffers, inputs or outputs. */
void kiln_bind_list(KilnBinder *binder, const GPtrArray *buffers, KilnInfoList *list);
/** Chooses the kernel of @call's instruction, and the form that it prefers. */
gboolean kiln_bind_kernel(const KilnBinder *binder, KilnBoundCall *call, GError **error);
/** Finds what the kernel wants packed in the form of @call. */
gboolean kiln_bind_packed(KilnBoundCall *call, GError **error);
/** Lets the kernel prepare, in the memory that @call has or in more. */
gboolean kiln_bind_prepare(KilnBoundCall *call, GError **error);
/** Marks the weights that the kernel of @call reads plain, or wants aligned. */
void kiln_bind_note_reads(KilnBinder *binder, const KilnBoundCall *call);
/** True where the weights of @call, which it wants packed, come with the first run. */
bool kiln_bind_comes_late(const KilnBoundCall *call);
/** Makes the first run pack the weights of @call, whose slots are those of its operands. */
void kiln_bind_add_packing(const KilnSpecialisation *out, const KilnBoundCall *call);
/** Says which folded constants kernels read unpacked, when all slots are there. */
void kiln_bind_note_plain(const KilnSpecialisation *out);
/** Where @buffer lies. */
KilnSlot kiln_bind_slot(const KilnBinder *binder, KilnBuffer *buffer);

/** KILN_ERROR_LIMIT if the memory or the estimated time of a run breaks a limit. Call it after
 * calls are bound. */
gboolean kiln_bind_check_limits(const KilnBinder *binder, GError **error);
/** Second half of binding: packs the operands that kernels want packed, and makes aligned views of
 * the others. Lets go of constants as soon as nothing below needs their payload. */
gboolean kiln_bind_weights(KilnBinder *binder, GError **error);

#endif
