/* SPDX-License-Identifier: Apache-2.0 */
/* Finds files that a model or a text names. A name is not trusted: the file must lie in or below
 * the directory of the file that names it. */
#ifndef KILN_GRAPH_BASE_BESIDE_H
#define KILN_GRAPH_BASE_BESIDE_H

#include <glib.h>

typedef enum {
    KILN_BESIDE_FOUND,
    KILN_BESIDE_BAD_NAME, /* empty, absolute, or with `..` in it */
    KILN_BESIDE_MISSING,  /* errno says why */
    KILN_BESIDE_OUTSIDE,  /* a symbolic link leads out of the directory */
    KILN_BESIDE_NO_FILE,  /* a directory, a pipe or a device */
} KilnBeside;

/** Resolves @location against @directory, which has no links in it (realpath(3)). If it is found,
 * *out_path is its path without links. */
KilnBeside kiln_beside_find(const char *directory, const char *location, char **out_path);

/** The rest of @path below @directory; NULL if @path lies elsewhere. Both have no links. Borrows
 * from @path. */
const char *kiln_beside_name(const char *directory, const char *path);

#endif
