/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are read. Those that are written: graph/base/write_file.h. */
#ifndef KILN_RUNTIME_TENSORS_FILE_H
#define KILN_RUNTIME_TENSORS_FILE_H

#include "graph/error.h"
#include "graph/base/write_file.h"

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

#endif
