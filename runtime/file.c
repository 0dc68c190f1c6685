/* SPDX-License-Identifier: Apache-2.0 */
/* Files: mapped to be read; written whole or not at all, so that a full disk, a missing folder or
 * an interrupted run leaves what was there before. */
#include "runtime/file.h"

#include "graph/map_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    MAX_TRIES = 100,    /* names for a temporary file */
    CHUNK = 65536,      /* of a pipe, read at a time */
    MAX_VECTORS = 1024, /* IOV_MAX */
    MAX_PIPE = G_MAXINT32,
};

/* --- reading --- */

static gboolean
throw_read(const char *path, GError **error)
{
    return kiln_throw(error, KILN_ERROR_IO, "%s: cannot be read: %s", path, g_strerror(errno));
}

static GBytes *
read_all(int file, const char *path, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    uint8_t chunk[CHUNK];
    for (;;) {
        ssize_t n = read(file, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return throw_read(path, error), NULL;
        if (n == 0)
            return g_byte_array_free_to_bytes(g_steal_pointer(&bytes));
        if (bytes->len > MAX_PIPE - (guint)n)
            return kiln_throw_null(error, KILN_ERROR_LIMIT, "%s: more than 2 GiB from a pipe",
                                   path);
        g_byte_array_append(bytes, chunk, (guint)n);
    }
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

/* --- writing --- */

/* One file on its way: `temporary` is NULL for what is written to straight. */
typedef struct {
    const char *path;
    const KilnFilePiece *pieces;
    unsigned n_pieces;
    char *target; /* with symbolic links followed */
    char *temporary;
} Pending;

static gboolean
throw_io(const char *path, GError **error)
{
    return kiln_throw(error, KILN_ERROR_IO, "%s: cannot be written: %s", path, g_strerror(errno));
}

/* The whole of @pieces in as few calls as can be: the system keeps what one call writes in big
 * pages, of which a map asks for few. */
static bool
write_all(int file, const KilnFilePiece *pieces, unsigned n)
{
    struct iovec vectors[MAX_VECTORS];
    size_t done = 0; /* bytes of the first piece that is left */
    while (n) {
        unsigned count = 0;
        for (; count < MIN(n, MAX_VECTORS); count++)
            vectors[count] = (struct iovec){ (void *)pieces[count].data, pieces[count].size };
        vectors[0].iov_base = (char *)vectors[0].iov_base + done;
        vectors[0].iov_len -= done;
        ssize_t written = writev(file, vectors, (int)count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        done += (size_t)written;
        for (; n && done >= pieces->size; pieces++, n--)
            done -= pieces->size;
    }
    return true;
}

/* A new file beside @target; the name is stored in @out_path. -1: errno says why. */
static int
open_beside(const char *target, char **out_path)
{
    for (unsigned i = 0; i < MAX_TRIES; i++) {
        char *path = g_strdup_printf("%s.%ld-%u.tmp", target, (long)getpid(), i);
        int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0) {
            *out_path = path;
            return file;
        }
        g_free(path);
        if (errno != EEXIST)
            break;
    }
    return -1;
}

static bool
write_and_close(int file, const Pending *pending)
{
    bool fine = write_all(file, pending->pieces, pending->n_pieces);
    int failure = errno;
    if (close(file) != 0)
        return false;
    errno = failure;
    return fine;
}

static gboolean
stage(Pending *pending, GError **error)
{
    const char *path = pending->path;
    char *real = realpath(path, NULL);
    pending->target = g_strdup(real ? real : path);
    free(real);
    struct stat old;
    bool exists = stat(pending->target, &old) == 0;
    if (exists && S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        return throw_io(path, error);
    }
    if (exists && !S_ISREG(old.st_mode))
        return TRUE;
    if (exists && access(pending->target, W_OK) != 0)
        return throw_io(path, error);
    int file = open_beside(pending->target, &pending->temporary);
    if (file < 0)
        return throw_io(path, error);
    /* What replaces a file keeps its mode; where that cannot be, the new file's will do. */
    if (exists && fchmod(file, old.st_mode & 07777) != 0)
        errno = 0;
    return write_and_close(file, pending) || throw_io(path, error);
}

static gboolean
finish(Pending *pending, GError **error)
{
    const char *path = pending->path;
    if (pending->temporary) {
        if (rename(pending->temporary, pending->target) != 0)
            return throw_io(path, error);
        g_clear_pointer(&pending->temporary, g_free);
        return TRUE;
    }
    int file = open(pending->target, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return throw_io(path, error);
    return write_and_close(file, pending) || throw_io(path, error);
}

static gboolean
write_pending(Pending *pending, unsigned n, GError **error)
{
    gboolean fine = TRUE;
    for (unsigned i = 0; fine && i < n; i++)
        fine = stage(&pending[i], error);
    for (unsigned i = 0; fine && i < n; i++)
        fine = finish(&pending[i], error);
    for (unsigned i = 0; i < n; i++) {
        if (pending[i].temporary)
            unlink(pending[i].temporary);
        g_free(pending[i].temporary);
        g_free(pending[i].target);
    }
    return fine;
}

gboolean
kiln_files_write(const KilnFileContent *files, unsigned n, GError **error)
{
    g_autofree Pending *pending = g_new0(Pending, n + 1);
    g_autofree KilnFilePiece *pieces = g_new0(KilnFilePiece, n + 1);
    for (unsigned i = 0; i < n; i++) {
        pieces[i] = (KilnFilePiece){ files[i].data, files[i].size };
        pending[i] = (Pending){ .path = files[i].path, .pieces = &pieces[i], .n_pieces = 1 };
    }
    return write_pending(pending, n, error);
}

gboolean
kiln_file_write_pieces(const char *path, const KilnFilePiece *pieces, unsigned n, GError **error)
{
    Pending pending = { .path = path, .pieces = pieces, .n_pieces = n };
    return write_pending(&pending, 1, error);
}

gboolean
kiln_file_write(const char *path, const void *data, size_t size, GError **error)
{
    const KilnFileContent file = { path, data, size };
    return kiln_files_write(&file, 1, error);
}
