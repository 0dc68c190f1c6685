/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/base/budget.h"

#include "graph/error.h"
#include "graph/grow/reserve.h"

#include <stdatomic.h>
#include <time.h>

struct KilnBudget {
    atomic_int references; /* the owner's, and one per block that counts */
    KilnLimits limits;
    double begun; /* ms */
    _Atomic int64_t held;
};

static _Thread_local KilnBudget *current;

static double
now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

KilnBudget *
kiln_budget_new(const KilnLimits *limits)
{
    if (!kiln_limits_any(limits))
        return NULL;
    KilnBudget *budget = g_new0(KilnBudget, 1);
    atomic_init(&budget->references, 1);
    budget->limits = *limits;
    budget->begun = now_ms();
    return budget;
}

void
kiln_budget_restart(KilnBudget *budget)
{
    if (budget)
        budget->begun = now_ms();
}

KilnBudget *
kiln_budget_ref(KilnBudget *budget)
{
    atomic_fetch_add(&budget->references, 1);
    return budget;
}

void
kiln_budget_unref(KilnBudget *budget)
{
    if (budget && atomic_fetch_sub(&budget->references, 1) == 1)
        g_free(budget);
}

KilnBudget *
kiln_budget_current(void)
{
    return current;
}

KilnBudget *
kiln_budget_enter(KilnBudget *budget)
{
    KilnBudget *before = current;
    if (budget)
        current = budget;
    return before;
}

void
kiln_budget_leave(KilnBudget *before)
{
    current = before;
}

KilnLimits
kiln_limits_current(void)
{
    return current ? current->limits : (KilnLimits){ 0 };
}

/* --- memory --- */

static gboolean
throw_memory(size_t bytes, const char *what, int64_t held, GError **error)
{
    return kiln_throw(error, KILN_ERROR_LIMIT,
                      "memory limit: expected at most %" G_GINT64_FORMAT
                      " bytes, found %zu for %s beside %" G_GINT64_FORMAT " that are held",
                      current->limits.bytes, bytes, what, held);
}

/* True where @bytes fit beside @held ones. */
static bool
fits(size_t bytes, int64_t held)
{
    const int64_t limit = current->limits.bytes;
    return held <= limit && bytes <= (uint64_t)(limit - held);
}

gboolean
kiln_budget_take(size_t bytes, const char *what, KilnBudget **out, GError **error)
{
    *out = NULL;
    if (!current || !current->limits.bytes)
        return TRUE;
    int64_t held = atomic_load(&current->held);
    do {
        if (!fits(bytes, held))
            return throw_memory(bytes, what, held, error);
    } while (!atomic_compare_exchange_weak(&current->held, &held, held + (int64_t)bytes));
    *out = kiln_budget_ref(current);
    return TRUE;
}

void
kiln_budget_give(KilnBudget *budget, size_t bytes)
{
    if (!budget)
        return;
    atomic_fetch_sub(&budget->held, (int64_t)bytes);
    kiln_budget_unref(budget);
}

gboolean
kiln_budget_fits(size_t bytes, const char *what, GError **error)
{
    if (!current || !current->limits.bytes)
        return TRUE;
    int64_t held = atomic_load(&current->held);
    return fits(bytes, held) || throw_memory(bytes, what, held, error);
}

int64_t
kiln_budget_room(void)
{
    if (!current || !current->limits.bytes)
        return INT64_MAX;
    return MAX(current->limits.bytes - atomic_load(&current->held), (int64_t)0);
}

/* --- nodes --- */

gboolean
kiln_budget_check_nodes(size_t n, const char *where, GError **error)
{
    if (!current || !current->limits.nodes || n <= (uint64_t)current->limits.nodes)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_LIMIT,
                      "node limit: expected at most %" G_GINT64_FORMAT
                      " nodes in all graphs, found %zu up to %s",
                      current->limits.nodes, n, *where ? where : "the end of the graph");
}

/* --- time --- */

gboolean
kiln_budget_check_time(GError **error)
{
    if (!current || !current->limits.ms)
        return TRUE;
    const double took = now_ms() - current->begun;
    return took <= (double)current->limits.ms ||
           kiln_throw(error, KILN_ERROR_LIMIT,
                      "time limit: expected at most %g seconds, found %.3g",
                      (double)current->limits.ms / 1e3, took / 1e3);
}

gboolean
kiln_budget_check_work(double us, const char *what, GError **error)
{
    if (!current || !current->limits.ms)
        return TRUE;
    const double took = now_ms() - current->begun;
    return took + us / 1e3 <= (double)current->limits.ms ||
           kiln_throw(error, KILN_ERROR_LIMIT,
                      "time limit: expected at most %g seconds, found %.3g and an estimate of %.3g "
                      "for %s",
                      (double)current->limits.ms / 1e3, took / 1e3, us / 1e6, what);
}

gboolean
kiln_checkpoint(GError **error)
{
    return kiln_reserve_check_step(error) && kiln_budget_check_time(error);
}
