/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the time of a run per instruction. */
#ifndef KILN_TOOLS_PROFILE_H
#define KILN_TOOLS_PROFILE_H

#include "runtime/session.h"

#include <json-glib/json-glib.h>

/** Prints a table to standard error: instructions, the slowest first, then the time of each kind.
 * @quiet prints only the kinds. @run_ms: milliseconds of a whole run. */
void kiln_profile_print(KilnSession *session, double run_ms, bool quiet);
/** Returns an object per instruction, in order of execution. */
JsonArray *kiln_profile_json(KilnSession *session);

#endif
