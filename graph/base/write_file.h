/* SPDX-License-Identifier: Apache-2.0 */
/* Writes files, whole or not at all. All files of Kiln are written here. */
#ifndef KILN_GRAPH_BASE_WRITE_FILE_H
#define KILN_GRAPH_BASE_WRITE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/** A file and its content. */
typedef struct {
    const char *path;
    const void *data;
    size_t size;
} KilnFileContent;

/** Writes all of @files or none. Each is written beside its place first, then all are renamed in
 * order. A killed process leaves nothing behind if the file system has O_TMPFILE. A path that is
 * not a regular file (a device, a pipe) is opened and written to. The target of a symbolic link is
 * written to as well, never replaced, even if it is an open file without a name. A descriptor of
 * this process, such as /dev/stdout, is written at its position. No new file is made in /dev or
 * /proc. KILN_ERROR_IO names the path. KILN_ERROR_MEMORY: content was lost before
 * (kiln_reserve_check_lost()), and no file is touched. */
gboolean kiln_files_write(const KilnFileContent *files, unsigned n, GError **error);
/** kiln_files_write() for one file. */
gboolean kiln_file_write(const char *path, const void *data, size_t size, GError **error);

/** True if other files can lie beside @path. False for a device, a pipe, and a link below /dev or
 * /proc, such as /dev/stdout. */
bool kiln_file_has_place(const char *path);

/** A part of the content of a file. */
typedef struct {
    const void *data;
    size_t size;
} KilnFilePiece;

/** kiln_file_write() for content in pieces. */
gboolean kiln_file_write_pieces(const char *path, const KilnFilePiece *pieces, unsigned n,
                                GError **error);

/** Makes the folder @path and its parents if they are missing; not in /dev or /proc. KILN_ERROR_IO
 * names the path. */
gboolean kiln_folder_make(const char *path, int mode, GError **error);

#endif
