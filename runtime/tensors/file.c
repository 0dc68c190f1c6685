/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are read: mapped, or read to the end. */
#include "runtime/tensors/file.h"

#include "graph/base/alloc.h"
#include "graph/base/map_file.h"
#include "graph/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHUNK = 65536, /* of a pipe, asked for at first */
};

static gboolean
throw_read(const char *path, GError **error)
{
    return kiln_throw(error, KILN_ERROR_IO, "%s: cannot be read: %s", path, g_strerror(errno));
}

/* @memory of @capacity bytes becomes twice as large. */
static gboolean
grow(uint8_t **memory, size_t *capacity, GError **error)
{
    size_t next = MAX(*capacity * 2, (size_t)CHUNK);
    uint8_t *bigger = kiln_alloc_for("a file", 1, next, error);
    if (!bigger)
        return FALSE;
    if (*capacity)
        memcpy(bigger, *memory, *capacity);
    kiln_free(*memory);
    *memory = bigger;
    *capacity = next;
    return TRUE;
}

static GBytes *
read_all(int file, const char *path, GError **error)
{
    uint8_t *memory = NULL;
    size_t size = 0, capacity = 0;
    for (;;) {
        if (size == capacity && !grow(&memory, &capacity, error)) {
            kiln_prefix_error(error, "%s: ", path);
            break;
        }
        ssize_t n = read(file, memory + size, capacity - size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            return g_bytes_new_with_free_func(memory, size, kiln_free, memory);
        if (n < 0) {
            throw_read(path, error);
            break;
        }
        size += (size_t)n;
    }
    kiln_free(memory);
    return NULL;
}

/* A MapFn maps what @file, a regular one, holds; NULL: errno says why. */
typedef GBytes *(*MapFn)(int file, size_t size);

static GBytes *
map_whole(int file, size_t size)
{
    (void)size;
    g_autoptr(GMappedFile) mapped = g_mapped_file_new_from_fd(file, FALSE, NULL);
    return mapped ? g_mapped_file_get_bytes(mapped) : NULL;
}

/* Files of /proc say that they are empty and are not, those of some file systems cannot be mapped.
 */
static GBytes *
map_weights(int file, size_t size)
{
    return size ? kiln_map_open_file(file, size) : NULL;
}

static GBytes *
map_or_read(int file, const char *path, MapFn map, bool *out_mapped, GError **error)
{
    struct stat status;
    if (fstat(file, &status) != 0)
        return throw_read(path, error), NULL;
    if (S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return throw_read(path, error), NULL;
    }
    GBytes *bytes = S_ISREG(status.st_mode) ? map(file, (size_t)status.st_size) : NULL;
    *out_mapped = bytes != NULL;
    return bytes ? bytes : read_all(file, path, error);
}

static GBytes *
open_and_map(const char *path, MapFn map, bool *out_mapped, GError **error)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return throw_read(path, error), NULL;
    GBytes *bytes = map_or_read(file, path, map, out_mapped, error);
    close(file);
    return bytes;
}

GBytes *
kiln_file_map_or_read(const char *path, bool *out_mapped, GError **error)
{
    return open_and_map(path, map_whole, out_mapped, error);
}

GBytes *
kiln_file_map_weights(const char *path, bool *out_mapped, GError **error)
{
    return open_and_map(path, map_weights, out_mapped, error);
}

GBytes *
kiln_file_map(const char *path, GError **error)
{
    bool mapped;
    return kiln_file_map_or_read(path, &mapped, error);
}

GBytes *
kiln_file_map_regular(const char *path, bool *out_mapped)
{
    struct stat status;
    /* A pipe that takes a link's place meanwhile does not block. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return NULL;
    bool regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    GBytes *bytes = regular ? map_or_read(file, path, map_whole, out_mapped, NULL) : NULL;
    close(file);
    return bytes;
}
