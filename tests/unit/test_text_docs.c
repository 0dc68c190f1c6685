/* SPDX-License-Identifier: Apache-2.0 */
/* Every example of the pages about the text form is a text, and what it prints is one that reads
 * back. */
#include "ir/ir.h"

#include <criterion/criterion.h>
#include <string.h>

static char *
print(const KilnIRModule *ir)
{
    GString *out = g_string_new(NULL);
    for (guint i = 0; i < ir->module->functions->len; i++)
        kiln_function_print(g_ptr_array_index(ir->module->functions, i), out);
    cr_assert(kiln_ir_module_print(ir, NULL, out, NULL));
    return g_string_free(out, FALSE);
}

static KilnIRModule *
parse(const char *text, gssize length)
{
    g_autoptr(GError) error = NULL;
    KilnIRModule *ir = kiln_ir_module_parse(text, (size_t)length, "docs", &error);
    cr_assert(ir, "%s in:\n%.*s", error ? error->message : "", (int)length, text);
    return ir;
}

static int
count_examples(const char *path)
{
    static const char fence[] = "\n```kiln\n";
    g_autofree char *page = NULL;
    cr_assert(g_file_get_contents(path, &page, NULL, NULL));
    int n = 0;
    for (const char *at = page; (at = strstr(at, fence)); n++) {
        at += strlen(fence);
        const char *end = strstr(at, "\n```\n");
        cr_assert(end);
        g_autoptr(KilnIRModule) ir = parse(at, end - at);
        g_autofree char *printed = print(ir);
        g_autoptr(KilnIRModule) again = parse(printed, (gssize)strlen(printed));
        g_autofree char *reprinted = print(again);
        cr_assert_str_eq(reprinted, printed);
        at = end;
    }
    return n;
}

Test(text_docs, examples_parse)
{
    cr_assert_geq(count_examples(KILN_SOURCE_DIR "/docs/text-form.md"), 8);
    cr_assert_geq(count_examples(KILN_SOURCE_DIR "/docs/quantization.md"), 1);
}
