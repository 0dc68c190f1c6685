/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a run goes: a line per instruction. */
#ifndef KILN_TOOLS_PROFILE_H
#define KILN_TOOLS_PROFILE_H

#include "runtime/session.h"
#include "tools/command.h"

/** A table on standard error, what takes longest first, and what all instructions of a kind take;
 * @quiet: the kinds alone. @run_ms: of a whole run. */
void kiln_profile_print(KilnSession *session, double run_ms, bool quiet);
/** An object per instruction, in order of execution. */
JsonArray *kiln_profile_json(KilnSession *session);

#endif
