/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of the graph level: what is printed reads back to the same text and the same bits,
 * what is written by hand is normalised, and what is wrong is refused with its place. */
#include "graph/alloc.h"
#include "graph/text/text.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

static KilnModule *
parse(const char *text, const char *path)
{
    g_autoptr(GError) error = NULL;
    KilnModule *module = kiln_module_parse(text, strlen(text), path, &error);
    cr_assert(module, "%s in:\n%s", error ? error->message : "", text);
    return module;
}

static char *
print(const KilnModule *module)
{
    GString *out = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_module_print(module, NULL, out, &error), "%s", error ? error->message : "");
    return g_string_free(out, FALSE);
}

/* --- what is printed --- */

Test(text, printed_text_reads_back_to_itself)
{
    g_autoptr(GDir) dir = g_dir_open(KILN_SOURCE_DIR "/tests/text", 0, NULL);
    cr_assert(dir);
    int n = 0;
    for (const char *name; (name = g_dir_read_name(dir));) {
        if (!g_str_has_suffix(name, ".kiln") || g_str_has_prefix(name, "ir-"))
            continue;
        g_autofree char *path = g_build_filename(KILN_SOURCE_DIR "/tests/text", name, NULL);
        g_autofree char *text = NULL;
        cr_assert(g_file_get_contents(path, &text, NULL, NULL));
        g_autoptr(KilnModule) module = parse(text, path);
        g_autofree char *again = print(module);
        cr_assert_str_eq(again, text, "%s:\n%s", name, again);
        n++;
    }
    cr_assert_geq(n, 10);
}
