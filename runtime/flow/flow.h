/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and loops in a run. The functions that they run are bound like the entry. A session has
 * a frame for each such call. A frame has an inner session for each function: the same arena,
 * addresses and calls as a session for a caller, but its inputs and outputs are those of the call.
 *
 * An iteration of a loop sets addresses of inputs and outputs, and makes the calls. What is carried
 * has two places, which change roles, so nothing is copied. Only where the dims of what it is given
 * changed, the instance of an open program moves first. */
#ifndef KILN_RUNTIME_FLOW_FLOW_H
#define KILN_RUNTIME_FLOW_FLOW_H

#include <stdbool.h>
#include <stdint.h>

struct KilnSession;

/** The branches and loops of a session: a frame for each call, NULL for others. */
typedef struct KilnFlows KilnFlows;

/** NULL where the specialisation of @session has none; @error is set where it fails. */
KilnFlows *kiln_flows_new(struct KilnSession *session, GError **error);
void kiln_flows_free(KilnFlows *flows);
/** What the kernel of call @c gets as `prepared`; NULL where it is no branch or loop. */
void *kiln_flows_runner(const KilnFlows *flows, uint32_t c);
/** Throws what went wrong in call @c. Always FALSE. */
gboolean kiln_flows_throw(KilnFlows *flows, uint32_t c, GError **error);
/** The session of body @b of call @c; NULL where there is none. */
struct KilnSession *kiln_flows_inner(const KilnFlows *flows, uint32_t c, int b);
/** True where a function draws random numbers. */
bool kiln_flows_draw(const KilnFlows *flows);

#endif
