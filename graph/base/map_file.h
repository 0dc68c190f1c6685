/* SPDX-License-Identifier: Apache-2.0 */
/* Maps files of weights, so that only bytes that are read take memory. */
#ifndef KILN_GRAPH_BASE_MAP_FILE_H
#define KILN_GRAPH_BASE_MAP_FILE_H

#include <stddef.h>

/** Maps the regular file @path read-only in small pages. Reading a byte brings at most about 64 KB
 * into the process. kiln_tensor_drop_pages() gives these pages back. KILN_ERROR_IO names the path.
 */
GBytes *kiln_map_file(const char *path, GError **error);

/** Maps the first @size bytes (at least 1) of the open @file, which may be closed then. NULL: errno
 * says why. */
GBytes *kiln_map_open_file(int file, size_t size);

/** Drops the pages of @size bytes at @data from the process. The bytes lie in a private read-only
 * map of a file; the page cache returns them at the next read. Pages at both ends are dropped
 * whole, because their other bytes belong to the same map. */
void kiln_map_drop(const void *data, size_t size);

#endif
