/* SPDX-License-Identifier: Apache-2.0 */
/* What a public function that computes holds from its begin to its return: the default float
 * environment, and a share of the process's threads. */
#pragma once

#include "ir/float_env.h"
#include "ir/team.h"

#include <glib.h>

typedef struct {
    KilnTeamScope team;
    KilnFloatEnv floats;
} KilnRunScope;

/** @parallel_for: NULL for threads of Kiln's own. */
static inline KilnRunScope
kiln_run_scope_enter(KilnTeamFor parallel_for, void *pool)
{
    return (KilnRunScope){ kiln_team_enter(parallel_for, pool), kiln_float_env_enter() };
}

static inline void
kiln_run_scope_leave(KilnRunScope *scope)
{
    kiln_float_env_leave(scope->floats);
    kiln_team_leave(scope->team);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KilnRunScope, kiln_run_scope_leave)
