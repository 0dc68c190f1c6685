/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome traces of a profiled run. */
#ifndef KILN_TOOLS_TRACE_H
#define KILN_TOOLS_TRACE_H

#include "tools/command.h"

/** Writes one complete event per instruction, in order, from the session's profile. */
gboolean kiln_trace_write(const char *path, KilnSession *session, GError **error);

#endif
