/* SPDX-License-Identifier: Apache-2.0 */
/* `--check`: compares the results of a function before and after each pass that changed it. */
#ifndef KILN_PASSES_MANAGER_CHECK_H
#define KILN_PASSES_MANAGER_CHECK_H

#include "passes/context/options.h"
#include "passes/manager/unit.h"
#include "passes/pass.h"

typedef struct KilnNumericCheck KilnNumericCheck;

/** NULL and KILN_ERROR_USAGE if @options names no target to run on. */
KilnNumericCheck *kiln_check_new(const KilnPassOptions *options, GError **error);
void kiln_check_free(KilnNumericCheck *check);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnNumericCheck, kiln_check_free)

/** Runs the function, unless its results are known from the pass before: with several choices of
 * numbers if dims are open (passes/manager/draws.h). A function that cannot run (an operator
 * without kernel, shapes that do not fit) is logged and not compared. But KILN_ERROR_SHAPE if dims
 * are open and it refuses all numbers. */
gboolean kiln_check_before(KilnNumericCheck *check, const KilnUnit *unit, GError **error);
/** Runs it again with each of them and compares. KILN_ERROR_MISMATCH names the numbers of open
 * dims, the result, the element, both values. */
gboolean kiln_check_after(KilnNumericCheck *check, const KilnUnit *unit, KilnNumerics numerics,
                          GError **error);

#endif
