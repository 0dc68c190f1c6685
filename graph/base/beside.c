/* SPDX-License-Identifier: Apache-2.0 */
/* Both checks are needed: the name alone says nothing of links, and the path that is found depends
 * on what other files there are. */
#include "graph/base/beside.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool
leads_up(const char *location)
{
    g_auto(GStrv) parts = g_strsplit_set(location, "/\\", -1);
    return g_strv_contains((const char *const *)parts, "..");
}

const char *
kiln_beside_name(const char *directory, const char *path)
{
    size_t length = strlen(directory);
    if (strncmp(path, directory, length) != 0)
        return NULL;
    if (length && directory[length - 1] == '/') /* the root */
        return path + length;
    return path[length] == '/' ? path + length + 1 : NULL;
}

KilnBeside
kiln_beside_find(const char *directory, const char *location, char **out_path)
{
    if (!*location || g_path_is_absolute(location) || leads_up(location))
        return KILN_BESIDE_BAD_NAME;
    g_autofree char *joined = g_build_filename(directory, location, NULL);
    char *real = realpath(joined, NULL);
    if (!real)
        return KILN_BESIDE_MISSING;
    g_autofree char *path = g_strdup(real);
    free(real);
    if (strcmp(path, directory) == 0)
        return KILN_BESIDE_NO_FILE;
    if (!kiln_beside_name(directory, path))
        return KILN_BESIDE_OUTSIDE;
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return KILN_BESIDE_NO_FILE;
    *out_path = g_steal_pointer(&path);
    return KILN_BESIDE_FOUND;
}
