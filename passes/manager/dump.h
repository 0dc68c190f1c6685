/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps a function after a pass ran on it. */
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

/** Sends the text of the function to @options->dump and to a file in @options->dump_dir, each if
 * the options ask for it. Fails if the file cannot be written. */
gboolean kiln_dump(const KilnPassOptions *options, const KilnUnit *unit,
                   const KilnApplication *application, GError **error);

#endif
