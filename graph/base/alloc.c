/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned allocation with errors, and its fault injection. */
#include "graph/base/alloc.h"

#include "graph/base/budget.h"
#include "graph/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum {
    HUGE = 2 * 1024 * 1024 /* the big pages of the system */
};

void
kiln_give_back(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* Per thread, so that concurrent sessions neither race on them nor see each other's injected
 * faults. */
static _Thread_local unsigned fail_at;
static _Thread_local uint64_t calls;

static bool
is_injected(void)
{
    calls++;
    return fail_at && --fail_at == 0;
}

void *
kiln_alloc_for(const char *what, size_t count, size_t size, GError **error)
{
    size_t bytes = 0;
    bool overflow = __builtin_mul_overflow(count, size, &bytes);
    size_t aligned = overflow ? SIZE_MAX : kiln_align_up(bytes ? bytes : 1);
    if (!kiln_budget_fits(aligned, what, error))
        return NULL;
    void *memory =
        is_injected() || aligned == SIZE_MAX ? NULL : aligned_alloc(KILN_ALIGNMENT, aligned);
    if (!memory)
        kiln_throw(error, KILN_ERROR_MEMORY, "cannot allocate %zu × %zu bytes for %s", count, size,
                   what);
    return memory;
}

/* @whole pages of @mapped, which has HUGE bytes more, from a multiple of HUGE on. Most of the time
 * that writing them takes goes into first touches, and weights that are streamed wait for the
 * addresses of pages: fewer where pages are big. A hint, which holds no page that is not written.
 */
static void *
align_huge(char *mapped, size_t whole)
{
    size_t skip = (HUGE - (uintptr_t)mapped % HUGE) % HUGE;
    if (skip)
        munmap(mapped, skip);
    munmap(mapped + skip + whole, HUGE - skip);
    madvise(mapped + skip, whole, MADV_HUGEPAGE);
    return mapped + skip;
}

void *
kiln_map(const char *what, size_t size, GError **error)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bool possible = size <= SIZE_MAX - 2 * HUGE;
    size_t whole = possible ? (size + page - 1) / page * page : 0;
    bool huge = whole >= HUGE;
    void *memory = MAP_FAILED;
    if (!is_injected() && possible)
        memory = mmap(NULL, whole + (huge ? HUGE : 0), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED)
        return huge ? align_huge(memory, whole) : memory;
    kiln_throw(error, KILN_ERROR_MEMORY, "cannot map %zu bytes for %s", size, what);
    return NULL;
}

void
kiln_free(void *memory)
{
    free(memory);
}

/* --- elements of tensors --- */

struct KilnRecycler {
    atomic_int references; /* the owner's, and one per tensor */
    pthread_mutex_t lock;
    void *kept; /* NULL: nothing */
    size_t kept_size;
    bool closed;
};

typedef struct {
    void *memory;
    size_t size;
    KilnRecycler *recycler; /* NULL: none */
    KilnBudget *budget;     /* NULL: it counts in none */
    bool sealed;            /* below the lock of `alive` */
} Pages;

static const char a_tensor[] = "a tensor";
static atomic_size_t mapped_bytes;

/* Which bytes are pages of their own: the address of each tensor that lives → its Pages. A GBytes
 * does not say. */
static GHashTable *alive;
static pthread_mutex_t alive_lock = PTHREAD_MUTEX_INITIALIZER;

static void
unmap(void *memory, size_t size)
{
    if (!memory)
        return;
    munmap(memory, size);
    atomic_fetch_sub(&mapped_bytes, size);
}

static void *
map(size_t size, GError **error)
{
    void *memory = kiln_map(a_tensor, size, error);
    if (memory)
        atomic_fetch_add(&mapped_bytes, size);
    return memory;
}

KilnRecycler *
kiln_recycler_new(void)
{
    KilnRecycler *recycler = g_new0(KilnRecycler, 1);
    recycler->references = 1;
    pthread_mutex_init(&recycler->lock, NULL);
    return recycler;
}

static void
recycler_unref(KilnRecycler *recycler)
{
    if (atomic_fetch_sub(&recycler->references, 1) > 1)
        return;
    pthread_mutex_destroy(&recycler->lock);
    g_free(recycler);
}

/* Puts @memory in place of what is kept, and returns what was, whose size is in @size then. */
static void *
swap(KilnRecycler *recycler, void *memory, size_t *size)
{
    pthread_mutex_lock(&recycler->lock);
    void *old = recycler->closed ? memory : recycler->kept;
    size_t old_size = recycler->closed ? *size : recycler->kept_size;
    if (!recycler->closed) {
        recycler->kept = memory;
        recycler->kept_size = *size;
    }
    *size = old_size;
    pthread_mutex_unlock(&recycler->lock);
    return old;
}

void
kiln_recycler_free(KilnRecycler *recycler)
{
    if (!recycler)
        return;
    pthread_mutex_lock(&recycler->lock);
    recycler->closed = true;
    pthread_mutex_unlock(&recycler->lock);
    unmap(recycler->kept, recycler->kept_size); /* nothing changes it any more */
    recycler_unref(recycler);
}

static void
enter_alive(Pages *pages)
{
    pthread_mutex_lock(&alive_lock);
    if (!alive)
        alive = g_hash_table_new(NULL, NULL);
    g_hash_table_insert(alive, pages->memory, pages);
    pthread_mutex_unlock(&alive_lock);
}

static void
leave_alive(const Pages *pages)
{
    pthread_mutex_lock(&alive_lock);
    g_hash_table_remove(alive, pages->memory);
    if (!g_hash_table_size(alive))
        g_clear_pointer(&alive, g_hash_table_unref);
    pthread_mutex_unlock(&alive_lock);
}

bool
kiln_bytes_seal(GBytes *bytes)
{
    size_t size;
    const void *data = g_bytes_get_data(bytes, &size);
    pthread_mutex_lock(&alive_lock);
    Pages *pages = alive ? g_hash_table_lookup(alive, data) : NULL;
    bool whole = pages && pages->size == size;
    if (whole && !pages->sealed)
        pages->sealed = mprotect(pages->memory, size, PROT_READ) == 0;
    bool sealed = whole && pages->sealed;
    pthread_mutex_unlock(&alive_lock);
    return sealed;
}

static void
pages_free(gpointer data)
{
    Pages *pages = data;
    leave_alive(pages);
    kiln_budget_give(pages->budget, pages->size);
    if (pages->recycler) {
        if (!pages->sealed) /* else nobody can write them again */
            pages->memory = swap(pages->recycler, pages->memory, &pages->size);
        recycler_unref(pages->recycler);
    }
    unmap(pages->memory, pages->size);
    g_free(pages);
}

/* What is kept, if it has @size; what has not makes room. */
static void *
take_kept(KilnRecycler *recycler, size_t size)
{
    size_t kept_size = 0;
    void *kept = recycler ? swap(recycler, NULL, &kept_size) : NULL;
    if (kept_size == size)
        return kept;
    unmap(kept, kept_size);
    return NULL;
}

static GBytes *
new_pages(KilnRecycler *recycler, size_t size, void **out_data, GError **error)
{
    KilnBudget *budget;
    *out_data = take_kept(recycler, size);
    if ((!*out_data && !(*out_data = map(size, error))) ||
        !kiln_budget_take(size, a_tensor, &budget, error)) {
        unmap(*out_data, size);
        return NULL;
    }
    Pages *pages = g_new(Pages, 1);
    *pages = (Pages){ .memory = *out_data, .size = size, .recycler = recycler, .budget = budget };
    enter_alive(pages);
    if (recycler)
        atomic_fetch_add(&recycler->references, 1);
    return g_bytes_new_with_free_func(*out_data, size, pages_free, pages);
}

/* Bytes of the heap that count in a budget. */
typedef struct {
    void *memory;
    size_t size;
    KilnBudget *budget;
} Counted;

static void
counted_free(gpointer data)
{
    Counted *counted = data;
    kiln_budget_give(counted->budget, counted->size);
    kiln_free(counted->memory);
    g_free(counted);
}

static GBytes *
new_on_heap(size_t count, size_t size, void **out_data, GError **error)
{
    KilnBudget *budget;
    *out_data = kiln_alloc_for(a_tensor, count, size, error);
    if (!*out_data)
        return NULL;
    if (!kiln_budget_take(count * size, a_tensor, &budget, error)) {
        kiln_free(*out_data);
        return NULL;
    }
    if (!budget)
        return g_bytes_new_with_free_func(*out_data, count * size, kiln_free, *out_data);
    Counted *counted = g_new(Counted, 1);
    *counted = (Counted){ *out_data, count * size, budget };
    return g_bytes_new_with_free_func(*out_data, count * size, counted_free, counted);
}

GBytes *
kiln_bytes_recycle(KilnRecycler *recycler, size_t count, size_t size, void **out_data,
                   GError **error)
{
#ifdef KILN_SANITIZED
    const bool may_map = false;
#else
    const bool may_map = true;
#endif
    size_t bytes;
    if (may_map && !__builtin_mul_overflow(count, size, &bytes) && bytes >= KILN_MAP_MIN)
        return new_pages(recycler, bytes, out_data, error);
    return new_on_heap(count, size, out_data, error);
}

GBytes *
kiln_bytes_new(size_t count, size_t size, void **out_data, GError **error)
{
    return kiln_bytes_recycle(NULL, count, size, out_data, error);
}

size_t
kiln_bytes_mapped(void)
{
    return atomic_load(&mapped_bytes);
}

void
kiln_alloc_inject_failure(unsigned nth)
{
    fail_at = nth;
}

uint64_t
kiln_alloc_count(void)
{
    return calls;
}
