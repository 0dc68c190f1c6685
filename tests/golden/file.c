/* SPDX-License-Identifier: Apache-2.0 */
/* Reading golden files. */
#include "graph/error.h"
#include "tests/golden/golden.h"

#include <string.h>

static char **
header_slot(Golden *golden, const char *key)
{
    struct {
        const char *key;
        char **slot;
    } slots[] = {
        { "passes", &golden->passes },
        { "pipeline", &golden->pipeline },
        { "flags", &golden->flags },
        { "mode", &golden->mode },
        { "target", &golden->target },
        { "dims", &golden->dims },
        { "guard", &golden->guard },
        { "no-run", &golden->no_run },
        { "not-idempotent", &golden->not_idempotent },
        { "error", &golden->error },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(slots); i++) {
        if (strcmp(slots[i].key, key) == 0)
            return slots[i].slot;
    }
    return NULL;
}

/* `# key: value`; other comments are left to the parser. */
static gboolean
read_header(Golden *golden, const char *line, int number, GError **error)
{
    size_t length = strspn(line + 2, "abcdefghijklmnopqrstuvwxyz-");
    if (strncmp(line, "# ", 2) != 0 || length == 0 || line[2 + length] != ':')
        return TRUE;
    g_autofree char *key = g_strndup(line + 2, length);
    char **slot = header_slot(golden, key);
    if (!slot || *slot)
        return kiln_throw(error, KILN_ERROR_PARSE, "%s:%d: %s header '%s'", golden->path, number,
                          slot ? "second" : "unknown", key);
    *slot = g_strstrip(g_strdup(line + 2 + length + 1));
    return TRUE;
}

static gboolean
check_headers(const Golden *golden, GError **error)
{
    if (!golden->passes == !golden->pipeline)
        return kiln_throw(error, KILN_ERROR_PARSE,
                          "%s:1: expected either '# passes:' or '# pipeline:'", golden->path);
    const char *const targets[] = { "lean", "cpu", "vendor", NULL };
    if (golden->target && !g_strv_contains(targets, golden->target))
        return kiln_throw(error, KILN_ERROR_PARSE,
                          "%s: target: expected lean, cpu or vendor, found %s", golden->path,
                          golden->target);
    const char *const said[] = { golden->no_run, golden->not_idempotent, golden->error };
    for (size_t i = 0; i < G_N_ELEMENTS(said); i++) {
        if (said[i] && !*said[i])
            return kiln_throw(error, KILN_ERROR_PARSE, "%s: a header gives no reason",
                              golden->path);
    }
    if (golden->error && golden->expected)
        return kiln_throw(error, KILN_ERROR_PARSE, "%s: a case that must fail has no expected text",
                          golden->path);
    return TRUE;
}

Golden *
golden_read(const char *path, GError **error)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, error))
        return NULL;
    g_autoptr(Golden) golden = g_new0(Golden, 1);
    golden->path = g_strdup(path);
    static const char rule[] = "\n# ----\n";
    const char *end = strstr(text, rule);
    golden->input = end ? g_strndup(text, (gsize)(end - text) + 1) : g_strdup(text);
    golden->expected = end ? g_strdup(end + strlen(rule)) : NULL;
    g_auto(GStrv) lines = g_strsplit(golden->input, "\n", -1);
    for (int i = 0; lines[i] && lines[i][0] == '#'; i++) {
        if (!read_header(golden, lines[i], i + 1, error))
            return NULL;
    }
    return check_headers(golden, error) ? g_steal_pointer(&golden) : NULL;
}

void
golden_free(Golden *golden)
{
    if (!golden)
        return;
    char *const texts[] = { golden->path,   golden->input, golden->expected,
                            golden->passes, golden->flags, golden->not_idempotent,
                            golden->mode,   golden->dims,  golden->guard,
                            golden->no_run, golden->error, golden->pipeline,
                            golden->target };
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(texts[i]);
    g_free(golden);
}
