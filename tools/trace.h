/* SPDX-License-Identifier: Apache-2.0 */
/* Writes Chrome traces, which chrome://tracing and Perfetto open. */
#ifndef KILN_TOOLS_TRACE_H
#define KILN_TOOLS_TRACE_H

#include "graph/base/json_writer.h"
#include "graph/binding.h"
#include "runtime/session.h"
#include "tools/command.h"

KilnTrace *kiln_trace_new(void);
void kiln_trace_free(KilnTrace *trace);
/** Ends the open step, if any, and begins the step @name, unless it is NULL. A NULL @trace has no
 * effect. */
void kiln_trace_step(KilnTrace *trace, const char *category, const char *name);
/** Adds an event per instruction of the session's profile, one after the other up to now. A counter
 * shows the bytes that are live while it runs. An event around them names the @numbers of open
 * dims, if there are any. */
void kiln_trace_session(KilnTrace *trace, KilnSession *session, const KilnDimBinding *numbers);
/** Ends the trace and writes it. */
gboolean kiln_trace_write(KilnTrace *trace, const char *path, GError **error);

/* --- the time of a run per instruction --- */

/** Prints a table to standard error: instructions, the slowest first, then the time of each kind,
 * and the @numbers of open dims. @quiet prints only the kinds. @run_ms: milliseconds of a whole
 * run.
 */
void kiln_profile_print(KilnSession *session, double run_ms, const KilnDimBinding *numbers,
                        bool quiet);
/** Adds an array with an object per instruction, in order of execution. */
void kiln_profile_write(KilnJson *json, const char *key, KilnSession *session);

#endif
