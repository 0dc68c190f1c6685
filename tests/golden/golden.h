/* SPDX-License-Identifier: Apache-2.0 */
// clang-format off
/* Golden files: input and expected text of a pipeline, in one file that a reader sees whole.
 *
 *     # passes: a,b{x=1}           or   # pipeline: default
 *     # flags: no-signed-zeros     allows these lossy rewrites
 *     # mode: train
 *     # target: lean               the passes see the target of tests/lean_target.h, which has few
 *                                  kernels; `cpu`: the target that programs run on; `vendor`: the
 *                                  reference with tests/test_vendor.h; default: the reference
 *     # dims: N=3, M=2             sizes of named dims when the case runs
 *     # guard: pass/guard          this guard must refuse; without it the result must differ
 *     # not-idempotent: why        a second run may change something
 *     # no-run: why                the case cannot run
 *     # error: text                the case must fail with this text in the message; it has no
 *                                  expected text
 *     graph @f(…) { … }
 *     # ----
 *     graph @f(…) { … }
 *
 * KILN_UPDATE=1 writes the expected text anew. KILN_DISABLE_GUARD=rule/guard switches that guard
 * off, so that a script can see a case fail. KILN_GOLDEN_NOTES names a folder for notes, one file
 * per folder of cases. Scripts that check all goldens read them:
 *
 *     fired FILE PASS RULE           the rule fired; `-`: the pass changed something
 *     guard FILE PASS RULE/GUARD     the result differs with this guard switched off */
// clang-format on
#ifndef KILN_TESTS_GOLDEN_GOLDEN_H
#define KILN_TESTS_GOLDEN_GOLDEN_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct {
    char *path;
    char *input;    /* with headers, so that line numbers are those of the file */
    char *expected; /* NULL: the file has no `# ----` */
    char *passes, *pipeline, *flags, *mode, *target, *dims, *guard, *not_idempotent, *no_run,
        *error;
} Golden;

/** Reads and splits a file. Fails on unknown and missing headers. */
Golden *golden_read(const char *path, GError **error);
void golden_free(Golden *golden);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Golden, golden_free)

/** Checks all that must hold of one file. @update replaces its expected text instead of comparing
 * it. Writes notes to @notes, unless NULL. */
gboolean golden_check(const Golden *golden, bool update, FILE *notes, GError **error);

#endif
