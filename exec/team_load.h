/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out how many processors are free. A team pays off only if each worker gets a processor, and
 * other processes may use them. The times of jobs show it.
 *
 * - If a caller waits for a worker much longer than it worked, the worker lost its processor. The
 *   teams of the process shrink to half for some time. This time doubles if it happens again soon
 *   after they grew.
 * - After that time a scout looks for room: a worker that computes nothing. It observes how soon
 *   and where it was woken, and whether it was interrupted. Teams grow only if there is room, so no
 *   run pays for the check. */
#ifndef KILN_EXEC_TEAM_LOAD_H
#define KILN_EXEC_TEAM_LOAD_H

#include <stdbool.h>
#include <stdint.h>

/** The largest team now, between 1 and @processors. Asks for a scout when it is time. */
int kiln_load_limit(int processors);

/** Measurements of a job of several members. */
typedef struct {
    int64_t work_ns; /* until the caller found no more work */
    int64_t wait_ns; /* then, for members that still held a part */
    bool joined;     /* at least one worker came */
} KilnLoadJob;
void kiln_load_report(const KilnLoadJob *job, int processors);

/** Acts as the scout, if one is asked for. Idle workers call this. */
void kiln_load_scout(void);
/** Makes a worker call kiln_load_scout(). In team.c. */
void kiln_team_call_scout(void);
/** Resets the state in a child of fork(). */
void kiln_load_reset(void);

#endif
