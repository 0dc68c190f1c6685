/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of the IR level. */
#include "ir/ir.h"

#include <criterion/criterion.h>
#include <string.h>

static KilnIRModule *
parse(const char *text, const char *path)
{
    g_autoptr(GError) error = NULL;
    KilnIRModule *ir = kiln_ir_module_parse(text, strlen(text), path, &error);
    cr_assert(ir, "%s in:\n%s", error ? error->message : "", text);
    return ir;
}

static char *
print(const KilnIRModule *ir)
{
    GString *out = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_ir_module_print(ir, NULL, out, &error), "%s", error ? error->message : "");
    return g_string_free(out, FALSE);
}

Test(ir_text, printed_text_reads_back_to_itself)
{
    g_autoptr(GDir) dir = g_dir_open(KILN_SOURCE_DIR "/tests/text", 0, NULL);
    cr_assert(dir);
    int n = 0;
    for (const char *name; (name = g_dir_read_name(dir));) {
        if (!g_str_has_suffix(name, ".kiln") || !g_str_has_prefix(name, "ir-"))
            continue;
        g_autofree char *path = g_build_filename(KILN_SOURCE_DIR "/tests/text", name, NULL);
        g_autofree char *text = NULL;
        cr_assert(g_file_get_contents(path, &text, NULL, NULL));
        g_autoptr(KilnIRModule) ir = parse(text, path);
        g_autofree char *again = print(ir);
        cr_assert_str_eq(again, text, "%s:\n%s", name, again);
        n++;
    }
    cr_assert_geq(n, 3);
}
