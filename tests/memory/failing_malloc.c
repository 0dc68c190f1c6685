/* SPDX-License-Identifier: Apache-2.0 */
/* A library to preload: one allocation of the process fails. FAIL_AT counts those of FAIL_MIN bytes
 * or more from 1; with FAIL_ALWAYS all from there on fail. A death by a signal prints the call that
 * got no memory and the place of death. FAIL_COUNT prints how many allocations there were. */
#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

enum {
    FRAMES = 64
};

static atomic_long counted;
static long fail_at, fail_min;
static bool fail_always, reports;
static void *where[FRAMES];
static int n_where;

static void
on_signal(int number)
{
    static const char died[] = "DIED\n", failed[] = "FAILED ALLOCATION\n";
    void *here[FRAMES];
    // NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c)
    int n_here = backtrace(here, FRAMES);
    if (write(STDERR_FILENO, died, sizeof died - 1) > 0)
        // NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c)
        backtrace_symbols_fd(here, n_here, STDERR_FILENO);
    if (write(STDERR_FILENO, failed, sizeof failed - 1) > 0)
        backtrace_symbols_fd(where, n_where, STDERR_FILENO);
    signal(number, SIG_DFL);
    raise(number);
}

static long
setting(const char *name)
{
    const char *value = getenv(name);
    return value ? atol(value) : 0;
}

__attribute__((constructor)) static void
begin(void)
{
    n_where = backtrace(where, FRAMES); /* loads what it needs */
    n_where = 0;
    static const int fatal[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP };
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], on_signal);
    reports = getenv("FAIL_COUNT") != NULL;
    fail_min = setting("FAIL_MIN");
    fail_always = getenv("FAIL_ALWAYS") != NULL;
    atomic_store(&counted, 0);
    fail_at = setting("FAIL_AT");
}

__attribute__((destructor)) static void
end(void)
{
    if (reports)
        dprintf(STDERR_FILENO, "ALLOCATIONS %ld\n", atomic_load(&counted));
}

static bool
fails(size_t size)
{
    if ((long)size < fail_min)
        return false;
    long number = atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed) + 1;
    if (!fail_at || number < fail_at || (number > fail_at && !fail_always))
        return false;
    if (number == fail_at)
        n_where = backtrace(where, FRAMES);
    errno = ENOMEM;
    return true;
}

void *
malloc(size_t size)
{
    return fails(size) ? NULL : __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
    return fails(count * size) ? NULL : __libc_calloc(count, size);
}

void *
realloc(void *memory, size_t size)
{
    return fails(size) ? NULL : __libc_realloc(memory, size);
}

void *
memalign(size_t alignment, size_t size)
{
    return fails(size) ? NULL : __libc_memalign(alignment, size);
}

void *
aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int
posix_memalign(void **memory, size_t alignment, size_t size)
{
    *memory = fails(size) ? NULL : __libc_memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}
