/* SPDX-License-Identifier: Apache-2.0 */
/* Limits memory, nodes and time for work on an untrusted model.
 *
 * A public function that loads or compiles enters a budget. The budget holds for all that it calls
 * on its thread. Its worker threads enter the same budget (exec/chains.h). Code asks for memory
 * before it takes it, and for nodes before it makes them. It checks the time between two steps, and
 * before a step whose work it can estimate. All failures are KILN_ERROR_LIMIT. */
#ifndef KILN_GRAPH_BASE_BUDGET_H
#define KILN_GRAPH_BASE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

G_BEGIN_DECLS

/** 0 means no limit. */
typedef struct {
    int64_t bytes; /* of live tensors and of buffers beside them */
    int64_t nodes; /* of all graphs of a module, with constants */
    int64_t ms;    /* since the budget began */
} KilnLimits;

/** True if one of @limits is set. */
static inline bool
kiln_limits_any(const KilnLimits *limits)
{
    return limits->bytes || limits->nodes || limits->ms;
}

typedef struct KilnBudget KilnBudget;

/** Makes a budget; its time begins now. Threads may share it. NULL if no limit is set. */
KilnBudget *kiln_budget_new(const KilnLimits *limits);
/** Starts the time of @budget again. @budget may be NULL. */
void kiln_budget_restart(KilnBudget *budget);
KilnBudget *kiln_budget_ref(KilnBudget *budget);
void kiln_budget_unref(KilnBudget *budget);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnBudget, kiln_budget_unref)

/** The budget of this thread; NULL: none. */
KilnBudget *kiln_budget_current(void);
/** Makes @budget the budget of this thread, if it is not NULL. Returns the one before. */
KilnBudget *kiln_budget_enter(KilnBudget *budget);
void kiln_budget_leave(KilnBudget *before);

/** The limits of this thread; zeros if it has no budget. */
KilnLimits kiln_limits_current(void);

/* --- memory --- */

/** Counts @bytes for @what as held. *@out becomes a reference to the budget that counts them, for
 * kiln_budget_give(); NULL: no budget. */
gboolean kiln_budget_take(size_t bytes, const char *what, KilnBudget **out, GError **error);
/** Counts @bytes as freed and drops the reference. @budget may be NULL. */
void kiln_budget_give(KilnBudget *budget, size_t bytes);
/** Fails if @bytes for @what do not fit beside the bytes that are held. */
gboolean kiln_budget_fits(size_t bytes, const char *what, GError **error);
/** Bytes that are left; INT64_MAX without a limit. */
int64_t kiln_budget_room(void);

/* --- nodes --- */

/** Fails if @n nodes are more than the limit. @where names the last of them. */
gboolean kiln_budget_check_nodes(size_t n, const char *where, GError **error);

/* --- time --- */

/** Fails if the time is over. */
gboolean kiln_budget_check_time(GError **error);
/** Fails if @what takes longer than the time left. @us is an estimate in microseconds. */
gboolean kiln_budget_check_work(double us, const char *what, GError **error);

/** A checkpoint for every step of a loop: kiln_reserve_check_step(), and the time. */
gboolean kiln_checkpoint(GError **error);

G_END_DECLS

#endif
