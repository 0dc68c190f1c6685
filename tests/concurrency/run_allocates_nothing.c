/* SPDX-License-Identifier: Apache-2.0 */
/* kiln_session_run() allocates nothing: every allocation function of the process is counted while
 * it runs. */
#include "tests/concurrency/concurrency.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

static atomic_long allocations;

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
    allocations++;
    if (!real_malloc)
        *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
    return real_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
    static _Thread_local int looking;
    allocations++;
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
    allocations++;
    if (!real_realloc)
        *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
    return real_realloc(memory, size);
}

void *
aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    if (!real_aligned)
        *(void **)&real_aligned = dlsym(RTLD_NEXT, "aligned_alloc");
    return real_aligned(alignment, size);
}

static long
count_of_run(const char *path, int threads)
{
    KilnModel *model = kiln_model_load(path, NULL);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = threads;
    KilnProgram *program = model ? kiln_program_compile(model, &options, NULL) : NULL;
    KilnSession *session = program ? kiln_session_new(program, NULL, NULL) : NULL;
    REQUIRE(session);
    const KilnTensorInfo *input = kiln_program_input(program, 0);
    void *data = calloc(1, (size_t)input->bytes);
    REQUIRE(kiln_session_bind_input(session, 0, data, (size_t)input->bytes, NULL));
    REQUIRE(kiln_session_run(session, NULL)); /* the first parallel region makes OpenMP's threads */
    long before = allocations;
    for (int i = 0; i < 3; i++)
        REQUIRE(kiln_session_run(session, NULL));
    long counted = allocations - before;
    free(data);
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
    for (int i = 1; i < argc; i++) {
        for (int threads = 1; threads <= 2; threads++) {
            long counted = count_of_run(argv[i], threads);
            printf("%s, %d threads: %ld allocations in 3 runs\n", argv[i], threads, counted);
            REQUIRE(counted == 0);
        }
    }
    return 0;
}
