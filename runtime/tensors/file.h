/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files. graph/base/write_file.h writes them. */
#ifndef KILN_RUNTIME_TENSORS_FILE_H
#define KILN_RUNTIME_TENSORS_FILE_H

#include <stdbool.h>

/** The bytes of a file: mapped. A pipe or device is read to the end, aligned as tensors are.
 * KILN_ERROR_IO and KILN_ERROR_MEMORY name the path. */
GBytes *kiln_file_map(const char *path, GError **error);
/** kiln_file_map() that tells if the file was mapped. */
GBytes *kiln_file_map_or_read(const char *path, bool *out_mapped, GError **error);
/** kiln_file_map_or_read() for a file of weights that is read in parts, or once: see
 * kiln_map_file(). Reads to the end if the system cannot map. */
GBytes *kiln_file_map_weights(const char *path, bool *out_mapped, GError **error);

/** The bytes of the regular file @path, mapped if possible. Does not open a link, a pipe or a
 * device. NULL if there is no file. */
GBytes *kiln_file_map_regular(const char *path, bool *out_mapped);

#endif
