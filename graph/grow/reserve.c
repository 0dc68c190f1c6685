/* SPDX-License-Identifier: Apache-2.0 */
/* The reserve: one mapping of the process, which shrinks where the system refuses a request. */
#include "graph/grow/reserve.h"

#include "graph/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    BASE = 4 * 1024 * 1024, /* what is held for the smallest model */
    PER_NODE = 512,         /* more than a pass adds per node: a copy, and entries of tables */
    SLICE = 1280 * 1024,    /* beyond a request: malloc() asks the system for a megabyte at least */
    MOST_NODES = 1 << 24,   /* that the reserve grows with */
    MESSAGE = 128
};

static struct {
    pthread_mutex_t lock;
    char *start;
    size_t size;
    size_t wanted; /* what the largest model of this time needs */
    unsigned holds;
    size_t refused; /* the request that touched it last */
    const char *refused_for;
} reserve = { .lock = PTHREAD_MUTEX_INITIALIZER };

static atomic_bool touched;
/* Of this thread: what a library had no memory for; NULL: it had all. */
static _Thread_local const char *failed;
static _Thread_local size_t failed_size; /* of the request; 0: of a library, which does not say */
static _Thread_local unsigned refuse_at; /* as tests set it */

bool
kiln_reserve_is_touched(void)
{
    return atomic_load_explicit(&touched, memory_order_relaxed);
}

static bool
is_refused(void)
{
    return refuse_at && --refuse_at == 0;
}

/* Gives the system back what a request for @size bytes needs. False: nothing is left. */
static bool
give_back(size_t size, const char *what)
{
    pthread_mutex_lock(&reserve.lock);
    bool any = reserve.size > 0;
    reserve.refused = size;
    reserve.refused_for = what;
    if (any) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        size_t slice = size > reserve.size ? reserve.size : size + SLICE;
        slice = MIN((slice + page - 1) / page * page, reserve.size);
        reserve.size -= slice;
        munmap(reserve.start + reserve.size, slice);
        atomic_store_explicit(&touched, true, memory_order_relaxed);
    }
    pthread_mutex_unlock(&reserve.lock);
    return any;
}

static void
die(size_t size, const char *what)
{
    g_error("no memory for %zu bytes of %s, and no reserve is left", size, what);
}

void *
kiln_take(size_t size, const char *what)
{
    if (!size)
        return NULL;
    void *memory = is_refused() ? NULL : malloc(size);
    while (!memory) {
        if (!give_back(size, what))
            die(size, what);
        memory = malloc(size);
    }
    return memory;
}

void *
kiln_take_zeros(size_t count, size_t size, const char *what)
{
    if (!count || !size)
        return NULL;
    void *memory = is_refused() ? NULL : calloc(count, size);
    while (!memory) {
        size_t bytes = 0;
        bool overflow = __builtin_mul_overflow(count, size, &bytes);
        if (overflow || !give_back(bytes, what))
            die(overflow ? SIZE_MAX : bytes, what);
        memory = calloc(count, size);
    }
    return memory;
}

void *
kiln_take_more(void *memory, size_t size, const char *what)
{
    if (!size) {
        free(memory);
        return NULL;
    }
    void *more = is_refused() ? NULL : realloc(memory, size);
    while (!more) {
        if (!give_back(size, what))
            die(size, what);
        more = realloc(memory, size);
    }
    return more;
}

void *
kiln_take_more_or_lose(void *memory, size_t size, const char *what)
{
    if (size <= KILN_LARGE_REQUEST)
        return kiln_take_more(memory, size, what);
    void *more = is_refused() ? NULL : realloc(memory, size);
    if (!more) {
        kiln_reserve_note_failure(what);
        failed_size = size;
    }
    return more;
}

void *
kiln_try_aligned(size_t alignment, size_t size)
{
    void *memory = NULL;
    return !is_refused() && posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

/* Below the lock: the reserve has @size bytes after it. */
static bool
map(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size > SIZE_MAX - page)
        return false;
    size = (size + page - 1) / page * page;
    void *start =
        reserve.size ? mremap(reserve.start, reserve.size, size, MREMAP_MAYMOVE)
                     : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return false;
    reserve.start = start;
    reserve.size = size;
    return true;
}

/* Below the lock: makes the reserve whole, or says why it cannot be. */
static bool
fill(char message[MESSAGE])
{
    if (!reserve.holds || reserve.size >= reserve.wanted || map(reserve.wanted)) {
        atomic_store_explicit(&touched, false, memory_order_relaxed);
        reserve.refused = 0;
        return true;
    }
    if (reserve.refused)
        g_snprintf(message, MESSAGE, "cannot allocate %zu bytes for %s", reserve.refused,
                   reserve.refused_for);
    else
        g_snprintf(message, MESSAGE, "cannot map a reserve of %zu bytes", reserve.wanted);
    return false;
}

static gboolean
fill_and_unlock(bool may_release, GError **error)
{
    char message[MESSAGE];
    bool whole = fill(message);
    if (!whole && may_release)
        reserve.holds--;
    pthread_mutex_unlock(&reserve.lock);
    return whole || kiln_throw(error, KILN_ERROR_MEMORY, "%s", message);
}

gboolean
kiln_reserve_hold(GError **error)
{
    pthread_mutex_lock(&reserve.lock);
    if (reserve.holds++ == 0)
        reserve.wanted = BASE;
    return fill_and_unlock(true, error);
}

void
kiln_reserve_release(void)
{
    pthread_mutex_lock(&reserve.lock);
    if (--reserve.holds == 0) {
        if (reserve.size)
            munmap(reserve.start, reserve.size);
        reserve.size = 0;
        reserve.refused = 0;
        atomic_store_explicit(&touched, false, memory_order_relaxed);
    }
    pthread_mutex_unlock(&reserve.lock);
}

bool
kiln_reserve_probe(size_t size)
{
    void *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return start != MAP_FAILED && munmap(start, size) == 0;
}

void
kiln_reserve_note_failure(const char *what)
{
    failed = what;
    failed_size = 0;
    atomic_store_explicit(&touched, true, memory_order_relaxed);
}

gboolean
kiln_reserve_check_lost(GError **error)
{
    const char *what = failed;
    failed = NULL;
    if (what && failed_size)
        return kiln_throw(error, KILN_ERROR_MEMORY, "cannot allocate %zu bytes for %s", failed_size,
                          what);
    return !what || kiln_throw(error, KILN_ERROR_MEMORY, "%s had no memory", what);
}

gboolean
kiln_reserve_check(size_t n_nodes, GError **error)
{
    if (!kiln_reserve_check_lost(error))
        return FALSE;
    pthread_mutex_lock(&reserve.lock);
    if (reserve.holds)
        reserve.wanted = MAX(reserve.wanted, BASE + MIN(n_nodes, MOST_NODES) * PER_NODE);
    return fill_and_unlock(false, error);
}

void
kiln_reserve_inject_refusal(unsigned nth)
{
    refuse_at = nth;
}

size_t
kiln_reserve_size(void)
{
    pthread_mutex_lock(&reserve.lock);
    size_t size = reserve.size;
    pthread_mutex_unlock(&reserve.lock);
    return size;
}
