/* SPDX-License-Identifier: Apache-2.0 */
/* Files: mapped to be read, written whole or not at all. */
#ifndef KILN_RUNTIME_FILE_H
#define KILN_RUNTIME_FILE_H

#include "graph/error.h"

/** The bytes of a file: mapped; of a pipe or device, read to the end, aligned as tensors are.
 * KILN_ERROR_IO and KILN_ERROR_MEMORY name the path. */
GBytes *kiln_file_map(const char *path, GError **error);
/** The same, telling which of the two was done. */
GBytes *kiln_file_map_or_read(const char *path, bool *out_mapped, GError **error);
/** The same for a file of weights, of which parts are read, or read once: see kiln_map_file(). What
 * the system does not map is read to the end. */
GBytes *kiln_file_map_weights(const char *path, bool *out_mapped, GError **error);

/** The bytes of the regular file @path, mapped where it can be: what is a link, a pipe or a device
 * is not opened. NULL where there is none. */
GBytes *kiln_file_map_regular(const char *path, bool *out_mapped);

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
 * nobody can name. Nothing new is made in /dev or /proc. KILN_ERROR_IO names the path. */
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

#endif
