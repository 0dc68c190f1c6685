/* SPDX-License-Identifier: Apache-2.0 */
/* Limits for work on a model that nobody vouches for: memory, nodes and time.
 *
 * A public function that loads or compiles enters a budget, and whatever it calls on its thread is
 * held to it. Threads that work on tensors for it enter the same budget (exec/chains.h). Memory is
 * asked for before it is taken, nodes before they are made, and time between two steps, or before a
 * step whose work can be estimated. What fails is KILN_ERROR_LIMIT. */
#ifndef KILN_GRAPH_BASE_BUDGET_H
#define KILN_GRAPH_BASE_BUDGET_H

#include "graph/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

G_BEGIN_DECLS

/** 0 stands for no limit. */
typedef struct {
    int64_t bytes; /* of tensors that are held, and of what is allocated beside them */
    int64_t nodes; /* of all graphs of a module, constants among them */
    int64_t ms;    /* from the begin of the budget */
} KilnLimits;

/** True where one of @limits is set. */
static inline bool
kiln_limits_any(const KilnLimits *limits)
{
    return limits->bytes || limits->nodes || limits->ms;
}

typedef struct KilnBudget KilnBudget;

/** A budget whose time begins now. Threads may share it. NULL where no limit is set. */
KilnBudget *kiln_budget_new(const KilnLimits *limits);
/** Its time begins now; @budget may be NULL. */
void kiln_budget_restart(KilnBudget *budget);
KilnBudget *kiln_budget_ref(KilnBudget *budget);
void kiln_budget_unref(KilnBudget *budget);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnBudget, kiln_budget_unref)

/** The budget of this thread; NULL: none. */
KilnBudget *kiln_budget_current(void);
/** Makes @budget that of this thread, if it is not NULL; returns the one before. */
KilnBudget *kiln_budget_enter(KilnBudget *budget);
void kiln_budget_leave(KilnBudget *before);

/** The limits of this thread: zeros where it has no budget. */
KilnLimits kiln_limits_current(void);

/* --- memory --- */

/** Counts @bytes for @what as held. *@out gets the budget that they count in, with a reference, for
 * kiln_budget_give(); NULL where there is none. */
gboolean kiln_budget_take(size_t bytes, const char *what, KilnBudget **out, GError **error);
/** The bytes were freed; takes the reference. @budget may be NULL. */
void kiln_budget_give(KilnBudget *budget, size_t bytes);
/** Fails where @bytes for @what do not fit beside what is held. */
gboolean kiln_budget_fits(size_t bytes, const char *what, GError **error);
/** Bytes that are left; INT64_MAX without a limit. */
int64_t kiln_budget_room(void);

/* --- nodes --- */

/** Fails where @n nodes are more than the limit; @where names the last of them. */
gboolean kiln_budget_check_nodes(size_t n, const char *where, GError **error);

/* --- time --- */

/** Fails where the time is over. */
gboolean kiln_budget_check_time(GError **error);
/** Fails where @us microseconds for @what, by an estimate, are more than what is left. */
gboolean kiln_budget_check_work(double us, const char *what, GError **error);

/** A checkpoint for every step of a loop: kiln_reserve_check_step(), and the time. */
gboolean kiln_checkpoint(GError **error);

G_END_DECLS

#endif
