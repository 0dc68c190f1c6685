/* SPDX-License-Identifier: Apache-2.0 */
/* What the manager shows of a function after a pass ran on it. */
#ifndef KILN_PASSES_MANAGER_DUMP_H
#define KILN_PASSES_MANAGER_DUMP_H

#include "passes/context/options.h"
#include "passes/manager/unit.h"
#include "passes/pass.h"

typedef struct {
    const KilnPassInfo *pass;
    uint32_t number; /* of the application, counted from 1 */
    bool changed;
} KilnApplication;

/** Sends the function's text to @options->dump and to a file of @options->dump_dir, each where
 * asked for. Fails where the file cannot be written. */
gboolean kiln_dump(const KilnPassOptions *options, const KilnUnit *unit,
                   const KilnApplication *application, GError **error);

#endif
