/* SPDX-License-Identifier: Apache-2.0 */
/* Files of weights, mapped where the system cannot use its big pages.
 *
 * Files that were just written lie in big pages of the page cache. Where the address and the offset
 * in the file agree modulo a big page, the system maps all 2 MB of one at the first touch, also of
 * a row of a table or a bias: in the end the whole file counts as memory of the process, beside the
 * packed weights. Advice against big pages (MADV_NOHUGEPAGE) does not prevent it; an address that
 * does not agree does. */
#include "graph/base/map_file.h"

#include "graph/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BIG_PAGE = 2 * 1024 * 1024, /* of the system */
};

typedef struct {
    void *memory;
    size_t size;
} Map;

static void
map_free(gpointer data)
{
    Map *map = data;
    munmap(map->memory, map->size);
    g_free(map);
}

/* An address of @size free bytes that is a multiple of pages, but of no big one: one page more is
 * reserved, at whose begin or end the rest goes back. */
static char *
reserve(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size > PTRDIFF_MAX - 2 * page) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    size_t whole = (size + page - 1) / page * page;
    char *place = mmap(NULL, whole + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
        return place;
    bool agrees = (uintptr_t)place % BIG_PAGE == 0;
    munmap(agrees ? place : place + whole, page);
    return agrees ? place + page : place;
}

GBytes *
kiln_map_open_file(int file, size_t size)
{
    char *place = reserve(size);
    if (place == MAP_FAILED)
        return NULL;
    void *memory = mmap(place, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0);
    if (memory == MAP_FAILED) {
        int failure = errno;
        munmap(place, size);
        errno = failure;
        return NULL;
    }
    Map *map = g_new(Map, 1);
    *map = (Map){ memory, size };
    return g_bytes_new_with_free_func(memory, size, map_free, map);
}

/* NULL: errno says why. */
static GBytes *
map_regular(int file)
{
    struct stat status;
    if (fstat(file, &status) != 0)
        return NULL;
    if (!S_ISREG(status.st_mode)) {
        errno = S_ISDIR(status.st_mode) ? EISDIR : ENODEV;
        return NULL;
    }
    return status.st_size ? kiln_map_open_file(file, (size_t)status.st_size) : g_bytes_new(NULL, 0);
}

GBytes *
kiln_map_file(const char *path, GError **error)
{
    /* Opening a pipe would wait for its writer. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    GBytes *bytes = file < 0 ? NULL : map_regular(file);
    if (!bytes)
        kiln_throw(error, KILN_ERROR_IO, "%s: cannot be read: %s", path, g_strerror(errno));
    if (file >= 0)
        close(file);
    return bytes;
}

void
kiln_map_drop(const void *data, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)data & ~(page - 1);
    uintptr_t end = ((uintptr_t)data + size + page - 1) & ~(page - 1);
    madvise((void *)start, end - start, MADV_DONTNEED);
}
