/* SPDX-License-Identifier: Apache-2.0 */
/* Files are written whole or not at all, so that a full disk, a missing folder or an interrupted
 * run leaves what was there before. */
#include "graph/base/write_file.h"

#include "graph/error.h"
#include "graph/grow/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
    MAX_VECTORS = 1024, /* IOV_MAX */
};

/* --- places --- */

static bool
is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (!path[length] || path[length] == '/');
}

/* True for a folder of the system's own names. /dev/shm is for everybody's files. */
static bool
is_system_folder(const char *folder)
{
    char *real = realpath(folder, NULL);
    bool system = real && ((is_below(real, "/dev") && !is_below(real, "/dev/shm")) ||
                           is_below(real, "/proc"));
    free(real);
    return system;
}

/* True for what lies in such a folder. */
static bool
is_in_system(const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path);
    return is_system_folder(folder);
}

/* The descriptor of this process that @path is the name of, in the folder of those; -1: none. */
static int
descriptor_at(const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path), *name = g_path_get_basename(path);
    g_autofree char *own = g_strdup_printf("/proc/%ld/", (long)getpid());
    char *real = realpath(folder, NULL), *end;
    bool found = real && g_str_has_prefix(real, own) && g_str_has_suffix(real, "/fd");
    free(real);
    long number = found && g_ascii_isdigit(*name) ? strtol(name, &end, 10) : -1;
    return number >= 0 && number <= INT_MAX && !*end ? (int)number : -1;
}

/* What is at the end of symbolic links. */
typedef struct {
    char *end;      /* where the last one leads to; the path itself where it is none */
    bool system;    /* one on the way is the system's, which may lead to what has no name */
    int descriptor; /* of this process, that one on the way names, as /dev/stdout does; -1: none */
} Way;

static void
way_clear(Way *way)
{
    g_free(way->end);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Way, way_clear)

static Way
follow(const char *path)
{
    Way way = { .end = g_strdup(path), .system = is_in_system(path) };
    way.descriptor = descriptor_at(path);
    char *next;
    for (unsigned i = 0; i < MAX_LINKS && (next = g_file_read_link(way.end, NULL)); i++) {
        g_autofree char *link = next, *folder = g_path_get_dirname(way.end);
        g_free(way.end);
        way.end = g_path_is_absolute(link) ? g_strdup(link) : g_build_filename(folder, link, NULL);
        way.system |= is_in_system(way.end);
        if (way.descriptor < 0)
            way.descriptor = descriptor_at(way.end);
    }
    return way;
}

bool
kiln_file_has_place(const char *path)
{
    struct stat status;
    g_auto(Way) way = follow(path);
    return !way.system && (stat(path, &status) != 0 || S_ISREG(status.st_mode));
}

gboolean
kiln_folder_make(const char *path, int mode, GError **error)
{
    g_autofree char *there = g_strdup(path);
    struct stat status;
    while (stat(there, &status) != 0 && strcmp(there, "/") != 0 && strcmp(there, ".") != 0) {
        char *above = g_path_get_dirname(there);
        g_free(there);
        there = above;
    }
    bool allowed = strcmp(there, path) == 0 || !is_system_folder(there);
    errno = EPERM; /* where the system is not asked */
    return (allowed && g_mkdir_with_parents(path, mode) == 0) ||
           kiln_throw(error, KILN_ERROR_IO, "%s: cannot be made: %s", path, g_strerror(errno));
}

/* --- writing --- */

/* One file on its way; without `file` it is written to straight. */
typedef struct {
    const char *path;
    const KilnFilePiece *pieces;
    unsigned n_pieces;
    char *target;    /* the path, or where a link leads to that leads to nothing yet */
    int descriptor;  /* of this process, that the path names; -1: none */
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
    g_auto(Way) way = follow(path);
    pending->target = g_strdup(exists ? path : way.end);
    pending->descriptor = exists ? way.descriptor : -1;
    if (pending->descriptor >= 0)
        return TRUE;
    if (is_link || (exists && !S_ISREG(old.st_mode)) || way.system)
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
    /* Opening it once more would begin at the begin of the file, whatever has been written by now.
     */
    if (pending->descriptor >= 0)
        return write_all(pending->descriptor, pending->pieces, pending->n_pieces) ||
               throw_io(path, error);
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
    gboolean fine = kiln_reserve_check_lost(error);
    for (unsigned i = 0; i < n; i++)
        pending[i].file = pending[i].descriptor = -1;
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
