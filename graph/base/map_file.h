/* SPDX-License-Identifier: Apache-2.0 */
/* Files of weights: mapped, so that only what is read of them takes memory. */
#ifndef KILN_GRAPH_BASE_MAP_FILE_H
#define KILN_GRAPH_BASE_MAP_FILE_H

#include "graph/error.h"

#include <stddef.h>

/** The regular file @path, mapped read-only in small pages: reading a byte brings at most some 64
 * KB into the process, and what kiln_tensor_drop_pages() gives back leaves it. KILN_ERROR_IO names
 * the path. */
GBytes *kiln_map_file(const char *path, GError **error);

/** The same for the first @size bytes, one or more, of the open @file, which may be closed then.
 * NULL: errno says why. */
GBytes *kiln_map_open_file(int file, size_t size);

/** The pages of @size bytes at @data, which lie in a private read-only map of a file, leave the
 * process, and come back from the page cache when something reads them: whole pages, those at the
 * ends included, as what else lies on them is of the same map. */
void kiln_map_drop(const void *data, size_t size);

#endif
