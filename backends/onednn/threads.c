/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of oneDNN. Its OpenMP would keep a pool of its own for each thread that calls, wait
 * for each of its threads without end, and end the process where one cannot be made. Regions run on
 * Kiln's pool instead (exec/team.h): the entries through which the library reaches its OpenMP are
 * replaced by those of this file, once, when the library is first used. They differ only for
 * threads that run a region of Kiln; other users of the library in the process get its OpenMP.
 *
 * The library divides its work by the number of threads, and its kernels for inference do not wait
 * for each other, so that one thread may do the parts of several, one after the other. If one asks
 * for a barrier nevertheless, the region fails.
 *
 * Where the entries are not found, the library keeps its OpenMP. */
#include "backends/onednn/entries.h"
#include "backends/onednn/region.h"
#include "exec/team.h"

#include <omp.h>
#include <pthread.h>

#ifdef KILN_TEAM_OPENMP
#define OWN_TEAM false
#else
#define OWN_TEAM true
#endif

typedef void (*ParallelFn)(void *data);

/* Of the calling thread. */
typedef struct {
    int threads;         /* that a parallel part has; 0: not in a region of Kiln */
    int number, members; /* in a parallel part; members 0: in none */
} Place;
static __thread Place place;

static atomic_bool met_barrier;

/* What the entries led to before. */
static struct {
    void (*parallel)(ParallelFn fn, void *data, unsigned threads, unsigned flags);
    void (*barrier)(void);
    int (*max_threads)(void), (*num_threads)(void), (*thread_num)(void), (*in_parallel)(void);
} library;

/* --- a parallel part --- */

enum {
    MAX_PARTS = 1024
};

typedef struct {
    ParallelFn fn;
    void *data;
    int threads; /* of the region */
    int members;
    _Atomic uint64_t taken[MAX_PARTS / 64]; /* bits of parts that somebody does, or did */
} Parts;

static void
run_part(const Parts *parts, int number)
{
    Place before = place;
    place = (Place){ parts->threads, number, parts->members };
    parts->fn(parts->data);
    place = before;
}

/* Each member begins with its own part, the same in every run, and then looks for others. */
static void
run_parts(void *data, int member)
{
    Parts *parts = data;
    for (int i = 0; i < parts->members; i++) {
        int number = (member + i) % parts->members;
        _Atomic uint64_t *taken = &parts->taken[number / 64];
        uint64_t bit = UINT64_C(1) << number % 64;
        if (!(atomic_load_explicit(taken, memory_order_relaxed) & bit) &&
            !(atomic_fetch_or_explicit(taken, bit, memory_order_relaxed) & bit))
            run_part(parts, number);
    }
}

static void
parallel(ParallelFn fn, void *data, unsigned threads, unsigned flags)
{
    if (place.threads == 0) {
        library.parallel(fn, data, threads, flags);
        return;
    }
    Parts parts = { .fn = fn, .data = data, .threads = place.threads, .members = 1 };
    if (place.members == 0)
        parts.members = threads > 0 ? (int)threads : place.threads;
    if (parts.members > 1 && parts.members <= MAX_PARTS) {
        kiln_team_run(parts.members, run_parts, &parts);
        return;
    }
    for (int i = 0; i < parts.members; i++)
        run_part(&parts, i);
}

static void
barrier(void)
{
    if (place.threads == 0)
        library.barrier();
    else if (place.members > 1)
        atomic_store(&met_barrier, true);
}

static int
max_threads(void)
{
    return place.threads > 0 ? place.threads : library.max_threads();
}

static int
num_threads(void)
{
    return place.members > 0 ? place.members : place.threads > 0 ? 1 : library.num_threads();
}

static int
thread_num(void)
{
    return place.threads > 0 ? place.number : library.thread_num();
}

static int
in_parallel(void)
{
    return place.members > 1 ? 1 : place.threads > 0 ? 0 : library.in_parallel();
}

/* --- the entries --- */

static bool replaced;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* All of them, or none: what one says must agree with what the others do. */
static void
replace(void)
{
    const KilnEntry entries[] = {
        { "GOMP_parallel", (KilnEntryFn)parallel, (KilnEntryFn *)&library.parallel },
        { "GOMP_barrier", (KilnEntryFn)barrier, (KilnEntryFn *)&library.barrier },
        { "omp_get_max_threads", (KilnEntryFn)max_threads, (KilnEntryFn *)&library.max_threads },
        { "omp_get_num_threads", (KilnEntryFn)num_threads, (KilnEntryFn *)&library.num_threads },
        { "omp_get_thread_num", (KilnEntryFn)thread_num, (KilnEntryFn *)&library.thread_num },
        { "omp_in_parallel", (KilnEntryFn)in_parallel, (KilnEntryFn *)&library.in_parallel },
    };
    replaced =
        OWN_TEAM && kiln_entries_replace((KilnEntryFn)dnnl_version, entries, G_N_ELEMENTS(entries));
}

/* True if the library's parallel parts run on Kiln's team. */
static bool
uses_team(void)
{
    pthread_once(&once, replace);
    return replaced;
}

int
kiln_onednn_set_threads(int threads)
{
    int before;
    if (uses_team()) {
        before = place.threads;
        place.threads = threads;
        return before;
    }
    before = omp_get_max_threads();
    if (before != threads)
        omp_set_num_threads(threads);
    return before;
}

bool
kiln_onednn_met_barrier(void)
{
    return atomic_load_explicit(&met_barrier, memory_order_relaxed);
}
