/* SPDX-License-Identifier: Apache-2.0 */
/* How many processors there are to spare. A team pays off only where its workers get a processor
 * each. Other processes may want them, and nothing says so beforehand: it is found out by what jobs
 * took.
 *
 * - A caller that waits for a worker much longer than it worked itself has met a worker that lost
 *   its processor. The teams of the process get half as large, for a time that doubles when the
 *   same happens again soon after they grew.
 * - When that time is over, a scout finds out whether there is room: a worker that computes
 * nothing, but looks at how soon it was woken, where, and whether it was interrupted. Teams grow
 * only on a good answer, so that no run pays for the question. */
#ifndef KILN_EXEC_TEAM_LOAD_H
#define KILN_EXEC_TEAM_LOAD_H

#include <stdbool.h>
#include <stdint.h>

/** The most members of a team now, between 1 and @processors. Asks for a scout where it is time. */
int kiln_load_limit(int processors);

/** What a job of several members was like. */
typedef struct {
    int64_t work_ns; /* until the caller found no more to do */
    int64_t wait_ns; /* for those that held a part then */
    bool joined;     /* somebody came */
} KilnLoadJob;
void kiln_load_report(const KilnLoadJob *job, int processors);

/** Called by workers that have nothing to do: does what a scout does if one is asked for. */
void kiln_load_scout(void);
/** Makes a worker call kiln_load_scout(). In team.c. */
void kiln_team_call_scout(void);
/** In a child of fork(). */
void kiln_load_reset(void);

#endif
