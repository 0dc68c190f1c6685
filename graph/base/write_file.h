/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are written: whole or not at all. All that Kiln writes goes through here. */
#ifndef KILN_GRAPH_BASE_WRITE_FILE_H
#define KILN_GRAPH_BASE_WRITE_FILE_H

#include "graph/error.h"

#include <stdbool.h>
#include <stddef.h>

/** What a file is to hold. */
typedef struct {
    const char *path;
    const void *data;
    size_t size;
} KilnFileContent;

/** Writes all of @files or none: each beside its place first, then renamed, in order. A process
 * that is killed meanwhile leaves nothing, where the file system has files without a name
 * (O_TMPFILE). What is not a regular file (a device, a pipe) is opened and written to, and so is
 * what a symbolic link leads to: that is never replaced, be it a file that the system opened and
 * nobody can name. A descriptor of this process, as /dev/stdout is, is written to where it stands.
 * Nothing new is made in /dev or /proc. KILN_ERROR_IO names the path. */
gboolean kiln_files_write(const KilnFileContent *files, unsigned n, GError **error);
/** The same for one file. */
gboolean kiln_file_write(const char *path, const void *data, size_t size, GError **error);

/** True where other files can lie beside what is written to @path: it is no device and no pipe, and
 * no link below /dev or /proc, such as /dev/stdout. */
bool kiln_file_has_place(const char *path);

/** A part of what a file is to hold. */
typedef struct {
    const void *data;
    size_t size;
} KilnFilePiece;

/** The same for one file whose content lies in pieces. */
gboolean kiln_file_write_pieces(const char *path, const KilnFilePiece *pieces, unsigned n,
                                GError **error);

/** Makes the folder @path, with its parents, where it is not there yet; not in /dev or /proc.
 * KILN_ERROR_IO names the path. */
gboolean kiln_folder_make(const char *path, int mode, GError **error);

#endif
