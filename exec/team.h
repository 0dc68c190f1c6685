/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the process. All sessions share one pool of workers. The caller publishes a job
 * and starts to work at once. Workers join while work is left.
 *
 * No thread waits for a worker to arrive. A job consists of parts that members claim one by one, so
 * the caller can finish it alone. A late worker finds no part. The caller waits only for workers
 * that joined. A worker without a processor costs nothing. One that loses its processor delays one
 * part.
 *
 * The result of a part depends on its number only, not on its thread or the number of members. */
#ifndef KILN_EXEC_TEAM_H
#define KILN_EXEC_TEAM_H

#include <stdbool.h>
#include <stddef.h>

typedef void (*KilnTeamMember)(void *data, int member);

/** Runs @member on the calling thread as number 0. Up to @members - 1 other threads run it at the
 * same time, each with its own number below @members. Returns when all that began have returned.
 * The calling thread runs alone within a member, and where no processor is free. */
void kiln_team_run(int members, KilnTeamMember member, void *data);

enum {
    KILN_TEAM_SHARES = 16 /* further members begin with the share of another */
};

typedef void (*KilnTeamTask)(const void *data, int64_t task, int member);

/** Runs @task for 0 … @n - 1. Each member begins with its own share, the same in every run, because
 * its cache may still hold those data (above all weights). Then it helps the others. */
void kiln_team_tasks(int64_t n, int members, KilnTeamTask task, const void *data);

/** Tasks in rounds: all tasks of a round end before the next round begins. This is cheaper than one
 * call of kiln_team_tasks() per round. */
typedef struct {
    unsigned n;
    int64_t (*tasks)(const void *data, unsigned round);  /* at least 1, below 2^31 */
    bool (*backwards)(const void *data, unsigned round); /* each share from its end to its begin */
    /* runs @n tasks: @task, @task + @step, …; @step is 1, or -1 if backwards */
    void (*run)(const void *data, unsigned round, int64_t task, int step, int64_t n, int member);
    const void *data;
} KilnTeamRounds;
void kiln_team_rounds(const KilnTeamRounds *rounds, int members);

/** A thread pool of the caller. Calls @task(@task_data, i) for each i of 0 … @n - 1 on any threads,
 * and returns when all calls have returned. The calls need not run at the same time. */
typedef void (*KilnTeamFor)(void *pool, int n, void (*task)(void *task_data, int i),
                            void *task_data);

/** The calling thread computes between enter and leave. It counts when processors are divided. Its
 * teams use @parallel_for if that is not NULL. Scopes nest. */
typedef struct {
    KilnTeamFor parallel_for;
    void *pool;
    int depth; /* 0: outside of all scopes */
} KilnTeamScope;
KilnTeamScope kiln_team_enter(KilnTeamFor parallel_for, void *pool);
void kiln_team_leave(KilnTeamScope before);

/** The largest team that the calling thread could have now. */
int kiln_team_limit(void);

/** For tests: the number of workers so far; the next @n attempts to make one fail (-1: all). */
int kiln_team_workers(void);
void kiln_team_fail_threads(int n);

/* --- processors (processors.c) --- */

/** Processors that this process may use, at least 1: its affinity, at most the quota of its control
 * group, rounded down. The quota is read below @root; "" is the real system. */
int kiln_processors_below(const char *root);
/** kiln_processors_below(""), computed once. */
int kiln_processors(void);
/** For tests: kiln_processors() returns @n from now on; 0 restores the real number. */
void kiln_processors_set(int n);
/** The default number of threads: kiln_processors(), or less if @omp_num_threads asks for less.
 * That is the value of OMP_NUM_THREADS or NULL. */
int kiln_default_threads(const char *omp_num_threads);

#endif
