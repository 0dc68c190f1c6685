/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the process. All sessions share one pool of workers; the thread that calls
 * publishes a job and begins to work at once, and workers join it while there is work left.
 *
 * Nobody waits for a worker to arrive. A job must be complete when its caller returns from it
 * alone: the work is in parts that members claim one by one, and whoever comes late finds none. The
 * caller waits only for workers that joined. A worker that gets no processor therefore costs
 * nothing, and one that loses its processor costs the part that it holds.
 *
 * What a part computes depends on its number only, never on the thread that runs it or on how many
 * joined, so that no result depends on either. */
#ifndef KILN_EXEC_TEAM_H
#define KILN_EXEC_TEAM_H

#include "exec/wait.h"

#include <stdbool.h>
#include <stddef.h>

typedef void (*KilnTeamMember)(void *data, int member);

/** Runs @member on the calling thread, as number 0, and at the same time on up to @members - 1
 * others, each with a number of its own below @members. Returns when all that began have returned.
 * Within a member, and where there is no processor to spare, the calling thread runs alone. */
void kiln_team_run(int members, KilnTeamMember member, void *data);

enum {
    KILN_TEAM_SHARES = 16 /* members beyond begin with another's */
};

typedef void (*KilnTeamTask)(const void *data, int64_t task, int member);

/** Runs @task for 0 … @n - 1. Each member begins with a share of its own, the same in every run, so
 * that it finds in its cache what it left there (weights above all), and then helps the others. */
void kiln_team_tasks(int64_t n, int members, KilnTeamTask task, const void *data);

/** Tasks in rounds: all tasks of a round are done before the next begins. Cheaper than a call of
 * kiln_team_tasks() for each round. */
typedef struct {
    unsigned n;
    int64_t (*tasks)(const void *data, unsigned round);  /* at least 1, below 2^31 */
    bool (*backwards)(const void *data, unsigned round); /* each share from its end to its begin */
    /* @n tasks: @task, @task + @step, …; @step is 1, or -1 backwards */
    void (*run)(const void *data, unsigned round, int64_t task, int step, int64_t n, int member);
    const void *data;
} KilnTeamRounds;
void kiln_team_rounds(const KilnTeamRounds *rounds, int members);

/** A pool of the caller's: calls @task(@task_data, i) for each i of 0 … @n - 1 on any threads, and
 * returns when all calls have. The calls need not run at the same time. */
typedef void (*KilnTeamFor)(void *pool, int n, void (*task)(void *task_data, int i),
                            void *task_data);

/** Between enter and leave the calling thread computes: it counts when processors are divided, and
 * its teams come from @parallel_for where that is not NULL. Scopes nest. */
typedef struct {
    KilnTeamFor parallel_for;
    void *pool;
    int depth; /* 0: outside of all scopes */
} KilnTeamScope;
KilnTeamScope kiln_team_enter(KilnTeamFor parallel_for, void *pool);
void kiln_team_leave(KilnTeamScope before);

/** The most members that a team of the calling thread would have now. */
int kiln_team_limit(void);

/** For tests: workers that were made; the next @n attempts to make one fail (-1: all of them). */
int kiln_team_workers(void);
void kiln_team_fail_threads(int n);

/* --- processors (processors.c) --- */

/** Processors that this process may use, at least 1: those of its affinity, and no more than the
 * quota of its control group, read below @root ("" is the system's own) and rounded down. */
int kiln_processors_below(const char *root);
/** kiln_processors_below(""), found once. */
int kiln_processors(void);
/** For tests: what kiln_processors() says from now on; 0: the truth. */
void kiln_processors_set(int n);
/** Threads where nobody asked for a number: kiln_processors(), or less where @omp_num_threads, the
 * value of OMP_NUM_THREADS or NULL, asks for less. */
int kiln_default_threads(const char *omp_num_threads);

#endif
