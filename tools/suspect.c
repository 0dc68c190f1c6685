/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of tests/onnx/suspect.txt, built into the command so that it says the same wherever it
 * runs. */
#include "tools/tolerance.h"

#include <glib.h>
#include <string.h>

static const char text[] =
#include "suspect.inc"
    ;

char *
kiln_suspect_reason(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *last = slash ? slash + 1 : name;
    size_t length = strlen(last);
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        if (*line == '#' || strncmp(line, last, length) != 0 || line[length] != ':')
            continue;
        const char *start = line + length + 1;
        start += strspn(start, " ");
        return g_strndup(start, strcspn(start, "\n"));
    }
    return NULL;
}
