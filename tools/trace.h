/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome traces: what chrome://tracing and Perfetto open. */
#ifndef KILN_TOOLS_TRACE_H
#define KILN_TOOLS_TRACE_H

#include "runtime/session.h"
#include "tools/command.h"

KilnTrace *kiln_trace_new(void);
void kiln_trace_free(KilnTrace *trace);
/** Ends the step that is open, if any, and begins the next; @name NULL: none. No effect on a NULL
 * @trace, so that callers need not ask. */
void kiln_trace_step(KilnTrace *trace, const char *category, const char *name);
/** One event per instruction of the session's profile, one after the other up to now, and a counter
 * of the bytes that live while each runs. */
void kiln_trace_session(KilnTrace *trace, KilnSession *session);
gboolean kiln_trace_write(KilnTrace *trace, const char *path, GError **error);

#endif
