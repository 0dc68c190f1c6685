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

/** Runs the function, unless its results are known from the pass before. A function that cannot run
 * (open shapes that do not fit, an operator without kernel) is logged and not compared. */
void kiln_check_before(KilnNumericCheck *check, const KilnUnit *unit);
/** Runs it again and compares. KILN_ERROR_MISMATCH names the result, the element, both values. */
gboolean kiln_check_after(KilnNumericCheck *check, const KilnUnit *unit, KilnNumerics numerics,
                          GError **error);

#endif
