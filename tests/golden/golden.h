/* SPDX-License-Identifier: Apache-2.0 */
// clang-format off
/* Golden files: input and expected text of a pipeline, in one file that a reader sees whole.
 *
 *     # passes: a,b{x=1}           or   # pipeline: default
 *     # flags: no-signed-zeros     lossy rewrites that are allowed
 *     # mode: train
 *     # target: lean               the passes see a target that lacks what `lower` can express, with
 *                                  `cpu` the one that programs run on, with `vendor` the reference
 *                                  and the vendor of tests/test_vendor.h; else the reference
 *     # dims: N=3, M=2             what named dims are bound to where the case is executed
 *     # guard: pass/guard          this guard must be what keeps the case as it is: it refuses, and
 *                                  with it switched off the result is another
 *     # not-idempotent: why        a second run may change something
 *     # no-run: why                the case cannot be executed
 *     # error: text                it must fail, with this in the message; no expected text then
 *     graph @f(…) { … }
 *     # ----
 *     graph @f(…) { … }
 *
 * With KILN_UPDATE=1 the expected text is written anew; with KILN_DISABLE_GUARD=rule/guard that
 * guard is switched off, for a script that wants to see a case fail. KILN_GOLDEN_NOTES names a folder
 * for notes that checks of the goldens as a whole read, a file per folder of cases:
 *
 *     fired FILE PASS RULE           the rule fired; `-`: the pass changed something
 *     guard FILE PASS RULE/GUARD     the case comes out another with this guard switched off */
// clang-format on
#ifndef KILN_TESTS_GOLDEN_GOLDEN_H
#define KILN_TESTS_GOLDEN_GOLDEN_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct {
    char *path;
    char *input;    /* headers included, so that lines are those of the file */
    char *expected; /* NULL: the file has no `# ----` */
    char *passes, *pipeline, *flags, *mode, *target, *dims, *guard, *not_idempotent, *no_run,
        *error;
} Golden;

/** Reads and splits a file; complains of unknown and missing headers. */
Golden *golden_read(const char *path, GError **error);
void golden_free(Golden *golden);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Golden, golden_free)

/** Everything that must hold of one file. With @update its expected text is replaced instead of
 * compared. What was seen goes to @notes, or NULL. */
gboolean golden_check(const Golden *golden, bool update, FILE *notes, GError **error);

#endif
