/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a session, for session.c and the files of session/. */
#ifndef KILN_RUNTIME_SESSION_H
#define KILN_RUNTIME_SESSION_H

#include "graph/base/budget.h"
#include "graph/texts.h"
#include "ir/plan.h"
#include "kiln.h"
#include "runtime/bind.h"
#include "runtime/constant_cache.h"
#include "runtime/open/carry.h"
#include "runtime/program.h"
#include "runtime/specialise.h"

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

/* --- memory that callers bind: what a run writes must not overlap its other memory --- */

typedef struct {
    const char *kind, *name; /* "input" "image"; kept by the caller */
    const char *start;
    size_t bytes;
    bool written; /* by a run */
} KilnRange;

/** Sorts @ranges and checks that no range overlaps a written one. KILN_ERROR_USAGE names both, with
 * their addresses. Empty ranges overlap nothing. Allocates nothing but the error. */
gboolean kiln_ranges_check(KilnRange *ranges, size_t n, GError **error);

/* --- poison: dead memory is filled with NaN, so that an instruction that reads unwritten or
 * overwritten memory changes results --- */

/** The bytes of an arena that die at each step. */
typedef struct KilnPoison KilnPoison;

/** @plan is borrowed. */
KilnPoison *kiln_poison_new(const KilnMemoryPlan *plan);
void kiln_poison_free(KilnPoison *poison);

/** Fills @size bytes: 0xFF is NaN in every float type, -1 or the greatest in integers. */
void kiln_poison_fill(void *memory, size_t size);
/** Fills the bytes that the instruction at @step touched last. Steps come in order, from 0. */
void kiln_poison_step(KilnPoison *poison, char *arena, int64_t step);

/* --- the session --- */

typedef struct {
    void *user; /* the caller's memory; NULL: the session's own */
    size_t user_bytes;
    void *own;
    size_t own_bytes;
    bool moved; /* bound elsewhere since the last run */
    bool taken; /* by the caller since the last run: @own is NULL */
} OutputSlot;

struct KilnSession {
    KilnProgram *program;
    const KilnObject *object; /* whose entry function makes the calls; NULL: the session makes each.
                                 It has the calls of the entry, so inner sessions have none */
    KilnSpecialisation *made; /* NULL before the first run of an open program */
    int threads;
    KilnParallelFor parallel_for; /* NULL: the process's own threads */
    void *pool;
    bool profile;
    bool poisons;
    bool ran;                   /* the last run succeeded */
    bool outputs_taken;         /* by the caller since the last run: they need new memory */
    bool outputs_changed;       /* bound since the last run: sizes must be checked */
    bool ranges_changed;        /* bound since the last run: overlaps must be checked */
    KilnCarries carries;        /* outputs that the next run reads as inputs */
    bool carries_moved;         /* addresses of carried values must be resolved */
    KilnRange *ranges;          /* room for inputs, outputs and the caller's arena */
    const volatile int *cancel; /* NULL: nobody cancels */
    KilnPollFn poll;            /* NULL: nobody is asked */
    void *poll_data;
    KilnBudget *budget; /* of a run; NULL: no limit of its own */
    int64_t budget_ms;  /* its time; 0: none */
    bool seeded, draws; /* @run_seed is the caller's; a call draws from it */
    uint64_t run_seed;
    void *user_arena;
    size_t user_arena_bytes;
    char *arena; /* the caller's or the session's own */
    size_t arena_bytes;
    const void **data; /* per input; NULL: not bound */
    KilnBinding *bindings;
    OutputSlot *outputs;
    KilnCacheEntry *entry;         /* the folded constants that it reads; NULL: none yet */
    unsigned long long fills;      /* of the entry, when addresses were resolved */
    unsigned long long generation; /* of the program's constants, when the entry was found */
    bool constants_changed;        /* an input that a fold function reads was bound since then */
    char **states;
    uint32_t n_states;
    KilnCall *calls;                /* as the specialisation has them */
    void **addresses;               /* one per slot: calls[].args.data point into it */
    void **outputs_at, **folded_at; /* per output and folded constant: for the entry function of an
                                       object */
    KilnProfileEntry **entries;     /* in one block with their data; NULL unless it profiles */
    GPtrArray *listed;              /* those that the caller got last, with the bodies'; or NULL */
    KilnTextHeap *texts;            /* what the last run made */
    KilnItem **items;               /* per input: what the caller bound as an item; NULL: nothing */
    int64_t *element_ranks;         /* per input: of its items in this run */
    bool has_items;                 /* an input is a sequence, optional or map */
    KilnPoison *poison;             /* NULL unless it poisons */
    struct KilnFlows *flows;        /* of its branches and loops; NULL: there are none */
    bool lost;                      /* what is made is of no use: a definition failed */
    bool settled;                   /* the arena has the results of calls that need not run again */
};

/** A session within @outer for a function that a branch or loop runs; takes the reference @made
 * over. It has no program of its own. */
KilnSession *kiln_session_new_inner(KilnSession *outer, KilnSpecialisation *made, GError **error);
void kiln_session_free_inner(KilnSession *session);
void kiln_session_free_arena(KilnSession *session);
/** Where an operand in @slot lies. */
void *kiln_session_address(const KilnSession *session, const KilnSlot *slot);

/** Resolves the operands of one kind (-1: all) that lie in buffer @index (UINT32_MAX: in any). */
void kiln_session_resolve(KilnSession *session, int kind, uint32_t index);

/** True where runs of @made decide the rank of output @i, which they write in an optional. */
bool kiln_session_hides_rank(const KilnSession *session, const KilnSpecialisation *made,
                             unsigned i);
/** Fails where the caller bound memory to such an output. */
gboolean kiln_session_check_rank(const KilnSession *session, const KilnSpecialisation *made,
                                 unsigned i, GError **error);
/** Gives output @i memory of the session's own, unless the caller bound some. */
gboolean kiln_session_make_output(KilnSession *session, unsigned i, GError **error);
/** True once the caller wants the run to end. */
bool kiln_session_cancelled(const KilnSession *session);
/** New memory for the outputs that the caller took, where runs write to the session's own. */
gboolean kiln_session_renew_outputs(KilnSession *session, GError **error);
/** Makes call @c, or all calls of a run: plainly, with their times in the profile, and once more
 * with poison in dead memory. */
gboolean kiln_session_call(const KilnSession *session, uint32_t c, GError **error);
gboolean kiln_session_calls(KilnSession *session, GError **error);
gboolean kiln_session_calls_profiled(KilnSession *session, GError **error);
gboolean kiln_session_calls_poisoned(KilnSession *session, GError **error);

/** Makes all calls with @run, and stops before each definition to make what hangs on it ready
 * (open/session_define.c). */
typedef gboolean (*KilnCallsFn)(const KilnSession *session, uint32_t from, uint32_t end,
                                GError **error);
gboolean kiln_session_stages(KilnSession *session, KilnCallsFn run, GError **error);
/** Gives the session an arena of @need bytes, unless the one that it has is as big. */
gboolean kiln_session_make_arena(KilnSession *session, size_t need, GError **error);
/** The instance stands at other shapes, and there is memory: calls and addresses follow. @anew:
 * these are the shapes of a new run, so that times begin anew. */
void kiln_session_refill(KilnSession *session, bool anew);

/** Drops what was made for the shapes of the last run. */
void kiln_session_drop(KilnSession *session);

/* --- strings (session/carry.c) --- */

KilnTextHeap *kiln_session_new_texts(const KilnProgram *program);
/** Before the calls of a run: the strings of inputs are UTF-8, which callers may change between two
 * runs, and those of the last run are forgotten. */
gboolean kiln_session_begin_texts(KilnSession *session, GError **error);
/** True, and an error, where @instr failed because the heap has no memory. */
bool kiln_session_lacks_texts(const KilnSession *session, const KilnInstr *instr, GError **error);

/* --- sequences, optionals and maps (session/items.c) --- */

void kiln_session_items_init(KilnSession *session);
void kiln_session_items_clear(KilnSession *session);
/** @clone owns the items that @session has, and reads its own. */
void kiln_session_copy_items(KilnSession *clone, const KilnSession *session);
/** What shapes depend on in input @i: its value, or the rank of its elements. */
const void *kiln_session_key(const KilnSession *session, unsigned i);
/** Before the shapes of a run are looked at: the items of inputs are of the types that the model
 * asks for, and the ranks of their elements are known. */
gboolean kiln_session_begin_items(KilnSession *session, GError **error);

/* --- carried values (session/carry.c) --- */

/** Says that the caller bound @input. */
void kiln_session_carry_bound(KilnSession *session, unsigned input);
/** Before the shapes of a run are looked at: binds the inputs that are carried. */
gboolean kiln_session_carry_begin(KilnSession *session, GError **error);
/** Before the calls of a run: values lie where the program reads them. */
gboolean kiln_session_carry_ready(KilnSession *session, GError **error);
/** After a run that succeeded: its outputs are the values. */
void kiln_session_carry_end(KilnSession *session);
/** The carried value that @output appends to in place; NULL: it is written as others are. */
const KilnCarry *kiln_session_carried_in_place(const KilnSession *session, unsigned output);

/** Makes the entries of the profile. */
void kiln_session_make_entries(KilnSession *session);
/** Times begin anew, those of bodies, too. */
void kiln_session_forget_times(KilnSession *session);
/** Writes what the present shapes make of them: kernels, work, bytes. @anew: times begin anew. */
void kiln_session_state_entries(KilnSession *session, bool anew);

/** True if runs read constants that the first run computes. */
bool kiln_session_has_folded(const KilnSession *session);
/** Pins the folded constants for a run. Uses only atomic operations, except in the first run with
 * them and after they were evicted. */
gboolean kiln_session_pin_folded(KilnSession *session, GError **error);

#endif
