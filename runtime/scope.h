/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a public function while it computes: the default float environment, a share of the
 * process's threads, and limits. */
#ifndef KILN_RUNTIME_SCOPE_H
#define KILN_RUNTIME_SCOPE_H

#include "exec/float_env.h"
#include "exec/team.h"
#include "graph/base/budget.h"

#include <glib.h>

typedef struct {
    KilnTeamScope team;
    KilnFloatEnv floats;
    KilnBudget *budget; /* of the caller */
} KilnRunScope;

/** @parallel_for: NULL for Kiln's own threads. @budget: limits of the function, borrowed; NULL:
 * those of its caller. */
static inline KilnRunScope
kiln_run_scope_enter_within(KilnTeamFor parallel_for, void *pool, KilnBudget *budget)
{
    return (KilnRunScope){ kiln_team_enter(parallel_for, pool), kiln_float_env_enter(),
                           kiln_budget_enter(budget) };
}

static inline KilnRunScope
kiln_run_scope_enter(KilnTeamFor parallel_for, void *pool)
{
    return kiln_run_scope_enter_within(parallel_for, pool, NULL);
}

static inline void
kiln_run_scope_leave(KilnRunScope *scope)
{
    kiln_budget_leave(scope->budget);
    kiln_float_env_leave(scope->floats);
    kiln_team_leave(scope->team);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KilnRunScope, kiln_run_scope_leave)

#endif
