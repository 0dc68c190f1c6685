/* SPDX-License-Identifier: Apache-2.0 */
/* Files: mapped to be read; written whole or not at all, so that a full disk, a missing folder or
 * an interrupted run leaves what was there before. */
#include "runtime/file.h"

#include "graph/alloc.h"
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
    MAX_LINKS = 40,     /* that the system follows, too */
    MAX_OPEN = 64,      /* files that one call keeps open */
    CHUNK = 65536,      /* of a pipe, asked for at first */
    MAX_VECTORS = 1024, /* IOV_MAX */
};

/* --- reading --- */

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

/* --- places --- */

static bool
is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (!path[length] || path[length] == '/');
}

/* True for what lies in a folder of the system's own names. /dev/shm is for everybody's files. */
static bool
is_in_system(const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path);
    char *real = realpath(folder, NULL);
    bool system = real && ((is_below(real, "/dev") && !is_below(real, "/dev/shm")) ||
                           is_below(real, "/proc"));
    free(real);
    return system;
}

/* Where the symbolic link @path leads to, where nothing is yet; else @path itself. *out_system: one
 * of the links on the way is the system's, which may lead to what has no name. */
static char *
follow(const char *path, bool *out_system)
{
    char *at = g_strdup(path), *next;
    *out_system = is_in_system(at);
    for (unsigned i = 0; i < MAX_LINKS && (next = g_file_read_link(at, NULL)); i++) {
        g_autofree char *link = next, *folder = g_path_get_dirname(at);
        g_free(at);
        at = g_path_is_absolute(link) ? g_strdup(link) : g_build_filename(folder, link, NULL);
        *out_system |= is_in_system(at);
    }
    return at;
}

bool
kiln_file_has_place(const char *path)
{
    struct stat status;
    bool system;
    G_GNUC_UNUSED g_autofree char *end = follow(path, &system);
    return !system && (stat(path, &status) != 0 || S_ISREG(status.st_mode));
}

/* --- writing --- */

/* One file on its way; without `file` it is written to straight. */
typedef struct {
    const char *path;
    const KilnFilePiece *pieces;
    unsigned n_pieces;
    char *target;    /* the path, or where a link leads to that leads to nothing yet */
    int file;        /* what becomes the target, open; -1: none */
    char *temporary; /* its name; NULL: none yet, or the target's by now */
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

/* Tries names beside the target until @make, which returns what is less than 0 and sets errno where
 * it fails, takes one: pending->temporary. */
static int
make_beside(Pending *pending, int (*make)(const Pending *pending, const char *name))
{
    for (unsigned i = 0; i < MAX_TRIES; i++) {
        char *name = g_strdup_printf("%s.%ld-%u.tmp", pending->target, (long)getpid(), i);
        int made = make(pending, name);
        if (made >= 0) {
            pending->temporary = name;
            return made;
        }
        g_free(name);
        if (errno != EEXIST)
            break;
    }
    return -1;
}

static int
create(const Pending *pending, const char *name)
{
    (void)pending;
    return open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int
give_name(const Pending *pending, const char *name)
{
    g_autofree char *opened = g_strdup_printf("/proc/self/fd/%d", pending->file);
    return linkat(AT_FDCWD, opened, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* A new file in the target's folder, without a name as long as it is written, where the system has
 * such: nothing of it is left when the process is killed. */
static int
open_new(Pending *pending, bool nameless)
{
    g_autofree char *folder = g_path_get_dirname(pending->target);
    int file = nameless && access("/proc/self/fd", X_OK) == 0
                   ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666)
                   : -1;
    return file >= 0 ? file : make_beside(pending, create);
}

/* What is opened and written to, as it is no file that another can take the place of. */
static gboolean
check_straight(const Pending *pending, const struct stat *old, GError **error)
{
    if (old ? access(pending->path, W_OK) == 0 : !is_in_system(pending->target))
        return TRUE;
    if (!old)
        errno = EPERM;
    return throw_io(pending->path, error);
}

/* Writes the file beside its place; with @nameless it has no name then. */
static gboolean
stage(Pending *pending, bool nameless, GError **error)
{
    const char *path = pending->path;
    struct stat old, link;
    bool exists = stat(path, &old) == 0;
    if (!exists && errno == ELOOP)
        return throw_io(path, error);
    if (exists && S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        return throw_io(path, error);
    }
    bool is_link = lstat(path, &link) == 0 && S_ISLNK(link.st_mode);
    bool system;
    g_autofree char *end = follow(path, &system);
    pending->target = g_strdup(exists ? path : end);
    if (is_link || (exists && !S_ISREG(old.st_mode)) || system)
        return check_straight(pending, exists ? &old : NULL, error);
    if (exists && access(path, W_OK) != 0)
        return throw_io(path, error);
    pending->file = open_new(pending, nameless);
    if (pending->file < 0)
        return throw_io(path, error);
    /* What replaces a file keeps its mode; where that cannot be, the new file's will do. */
    if (exists && fchmod(pending->file, old.st_mode & 07777) != 0)
        errno = 0;
    return write_all(pending->file, pending->pieces, pending->n_pieces) || throw_io(path, error);
}

/* What a file system only says when a file is closed is known before anything takes its place. */
static gboolean
settle(Pending *pending, GError **error)
{
    if (pending->file < 0)
        return TRUE;
    if (!pending->temporary && make_beside(pending, give_name) < 0)
        return throw_io(pending->path, error);
    int file = pending->file;
    pending->file = -1;
    return close(file) == 0 || throw_io(pending->path, error);
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
    struct stat old;
    int create = stat(path, &old) == 0 ? 0 : O_CREAT;
    int file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | create, 0666);
    if (file < 0)
        return throw_io(path, error);
    bool fine = write_all(file, pending->pieces, pending->n_pieces);
    int failure = errno;
    if (close(file) == 0 || !fine)
        errno = failure;
    else
        fine = false;
    return fine || throw_io(path, error);
}

static void
pending_clear(Pending *pending)
{
    if (pending->file >= 0)
        close(pending->file);
    if (pending->temporary)
        unlink(pending->temporary);
    g_free(pending->temporary);
    g_free(pending->target);
}

static gboolean
write_pending(Pending *pending, unsigned n, GError **error)
{
    gboolean fine = TRUE;
    for (unsigned i = 0; i < n; i++)
        pending[i].file = -1;
    for (unsigned i = 0; fine && i < n; i++) {
        fine = stage(&pending[i], i < MAX_OPEN, error);
        if (fine && i >= MAX_OPEN)
            fine = settle(&pending[i], error);
    }
    for (unsigned i = 0; fine && i < n; i++)
        fine = settle(&pending[i], error);
    for (unsigned i = 0; fine && i < n; i++)
        fine = finish(&pending[i], error);
    for (unsigned i = 0; i < n; i++)
        pending_clear(&pending[i]);
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
