/* SPDX-License-Identifier: Apache-2.0 */
/* kiln_session_run() allocates nothing and starts no thread: every allocation function of the
 * process, and pthread_create(), is counted while it runs. The team of threads is made by the first
 * run and kept: whoever asks for another size of team in between has threads end and start again.
 * What the vendor library allocates inside its own calls is counted and shown apart: it is known by
 * who calls, the library itself or the C++ library, which nothing else here uses. So is what LLVM's
 * OpenMP allocates for the vendor's parallel regions, which were compiled for GCC's: for Kiln's own
 * it allocates nothing. */
#include "kiln.h"
#include "tests/concurrency/concurrency.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_long allocations, of_vendor, of_team, threads_started;

enum {
    RANGES_MAX = 64
};
static struct {
    uintptr_t begin, end;
    atomic_long *counter;
} code_of_others[RANGES_MAX];
static int n_ranges;

static int
add_ranges(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    atomic_long *counter = NULL;
    if (strstr(info->dlpi_name, "libdnnl") || strstr(info->dlpi_name, "libstdc++"))
        counter = &of_vendor;
    else if (strstr(info->dlpi_name, "libomp"))
        counter = &of_team;
    if (!counter)
        return 0;
    for (int i = 0; i < info->dlpi_phnum && n_ranges < RANGES_MAX; i++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        code_of_others[n_ranges].begin = begin;
        code_of_others[n_ranges].end = begin + info->dlpi_phdr[i].p_memsz;
        code_of_others[n_ranges++].counter = counter;
    }
    return 0;
}

static void
count(const void *caller)
{
    for (int i = 0; i < n_ranges; i++) {
        if ((uintptr_t)caller >= code_of_others[i].begin &&
            (uintptr_t)caller < code_of_others[i].end) {
            ++*code_of_others[i].counter;
            return;
        }
    }
    allocations++;
}

/* Found once, before anything is counted; dlsym itself may allocate. */
static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_aligned)(size_t, size_t);

static char early[1 << 16];
static size_t early_used;

/* glibc's dlsym may call calloc before the real one is known. */
static void *
early_alloc(size_t size)
{
    void *memory = early + early_used;
    early_used += (size + 63) & ~(size_t)63;
    REQUIRE(early_used <= sizeof early);
    return memory;
}

void *
malloc(size_t size)
{
    count(__builtin_return_address(0));
    if (!real_malloc)
        *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
    return real_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
    static _Thread_local int looking;
    count(__builtin_return_address(0));
    if (!real_calloc && looking)
        return early_alloc(n * size);
    looking = 1;
    if (!real_calloc)
        *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
    looking = 0;
    return real_calloc(n, size);
}

void *
realloc(void *memory, size_t size)
{
    count(__builtin_return_address(0));
    if (!real_realloc)
        *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
    return real_realloc(memory, size);
}

void *
aligned_alloc(size_t alignment, size_t size)
{
    count(__builtin_return_address(0));
    if (!real_aligned)
        *(void **)&real_aligned = dlsym(RTLD_NEXT, "aligned_alloc");
    return real_aligned(alignment, size);
}

int
posix_memalign(void **out, size_t alignment, size_t size)
{
    static int (*real)(void **, size_t, size_t);
    count(__builtin_return_address(0));
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "posix_memalign");
    return real(out, alignment, size);
}

int
pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*function)(void *), void *data)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    threads_started++;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(out, attr, function, data);
}

static long
count_of_run(const char *path, const char *pipeline, int threads, long *out_vendor)
{
    KilnModel *model = kiln_model_load(path, NULL);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = threads;
    options.pipeline = kiln_pipeline_load(pipeline, NULL);
    KilnProgram *program = model ? kiln_program_compile(model, &options, NULL) : NULL;
    KilnSession *session = program ? kiln_session_new(program, NULL, NULL) : NULL;
    REQUIRE(session);
    const KilnTensorInfo *input = kiln_program_input(program, 0);
    void *data = calloc(1, (size_t)input->bytes);
    REQUIRE(kiln_session_bind_input(session, 0, data, (size_t)input->bytes, NULL));
    REQUIRE(kiln_session_run(session, NULL)); /* the first parallel region makes OpenMP's threads */
    long before = allocations, vendor_before = of_vendor, team_before = of_team;
    long threads_before = threads_started;
    for (int i = 0; i < 3; i++)
        REQUIRE(kiln_session_run(session, NULL));
    REQUIRE(threads_started == threads_before);
    long counted = allocations - before;
    long of_regions = of_team - team_before;
    *out_vendor = of_vendor - vendor_before;
    if (*out_vendor > 0) /* the vendor computes here */
        *out_vendor += of_regions;
    else
        counted += of_regions;
    free(data);
    kiln_pipeline_unref(options.pipeline);
    kiln_session_free(session);
    kiln_program_unref(program);
    kiln_model_unref(model);
    return counted;
}

int
main(int argc, char **argv)
{
    void *volatile probe = malloc(1); /* volatile: or the pair is optimized away */
    free(probe);
    REQUIRE(allocations > 0); /* or nothing is counted at all */
    dl_iterate_phdr(add_ranges, NULL);
    static const char *const pipelines[] = { "own", "default" };
    for (int i = 1; i < argc; i++) {
        for (int way = 0; way < 4; way++) {
            const char *pipeline = pipelines[way / 2];
            int threads = 1 + way % 2;
            long vendor, counted = count_of_run(argv[i], pipeline, threads, &vendor);
            printf("%s, %s, %d threads: %ld allocations in 3 runs, %ld of the vendor's own\n",
                   argv[i], pipeline, threads, counted, vendor);
            REQUIRE(counted == 0);
        }
    }
    return 0;
}
