/* SPDX-License-Identifier: Apache-2.0 */
/* Broken texts: every prefix, random bytes, pieces cut out, doubled and swapped. None may crash
 * (the sanitizers look on); each is either refused with a place or normalises to a text that reads
 * back to itself. Both levels are tried through the parser that reads both. */
#include "text_files.h"

#include "graph/base/random.h"
#include "ir/ir.h"

#include <string.h>

enum {
    MUTATIONS = 400 /* per text */
};

static char *
print(const KilnIRModule *ir)
{
    GString *out = g_string_new(NULL);
    for (guint i = 0; i < ir->module->functions->len; i++)
        kiln_function_print(g_ptr_array_index(ir->module->functions, i), out);
    cr_assert(kiln_ir_module_print(ir, NULL, out, NULL));
    return g_string_free(out, FALSE);
}

static void
try_text(const char *text, size_t length)
{
    /* A copy of its own, so that reading one byte too many is seen. */
    g_autofree char *exact = g_memdup2(text, length);
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(exact, length, "fuzz.kiln", &error);
    if (!ir) {
        cr_assert(error);
        cr_assert_eq(error->domain, KILN_ERROR);
        cr_assert(g_str_has_prefix(error->message, "fuzz.kiln:"), "%s", error->message);
        cr_assert(g_utf8_validate(error->message, -1, NULL), "%s", error->message);
        return;
    }
    cr_assert_null(error);
    g_autofree char *printed = print(ir);
    g_autoptr(KilnIRModule) again =
        kiln_ir_module_parse(printed, strlen(printed), "fuzz.kiln", &error);
    cr_assert(again, "%s: %s", error ? error->message : "", printed);
    g_autofree char *reprinted = print(again);
    cr_assert_str_eq(reprinted, printed);
}

static GPtrArray *
all_files(void)
{
    GPtrArray *files = text_files(false);
    g_autoptr(GPtrArray) ir = text_files(true);
    g_ptr_array_set_free_func(ir, NULL);
    g_ptr_array_extend(files, ir, NULL, NULL);
    return files;
}

Test(text_fuzz, prefixes)
{
    g_autoptr(GPtrArray) files = all_files();
    for (guint i = 0; i < files->len; i++) {
        const char *text = ((TextFile *)g_ptr_array_index(files, i))->text;
        size_t length = strlen(text);
        int open = 0;
        for (size_t n = 0; n <= length; n++) {
            try_text(text, n);
            /* Closed, so that the parser gets inside the block. */
            g_autoptr(GString) closed = g_string_new_len(text, (gssize)n);
            for (int k = 0; k < open; k++)
                g_string_append_c(closed, '}');
            try_text(closed->str, closed->len);
            open += (text[n] == '{') - (text[n] == '}');
        }
    }
}

/* One to three bytes become others: mostly what the grammar is made of. */
static void
flip(GString *text, uint64_t seed)
{
    static const char bytes[] = "()[],:=;?*%@\"\\_#-.0123456789abefinx \n";
    for (uint64_t k = 0; k < 1 + seed % 3; k++) {
        uint64_t random = kiln_random_bits(seed, k);
        char byte = random % 8 ? bytes[(random >> 32) % (sizeof bytes - 1)] : (char)(random >> 40);
        text->str[(random >> 1 & 0x7fffffff) % text->len] = byte;
    }
}

/* A piece is removed, doubled, or replaced by a piece of another text. */
static void
splice(GString *text, const char *other, uint64_t seed)
{
    uint64_t random = kiln_random_bits(seed, 10);
    size_t at = random % text->len, n = MIN((random >> 20) % 40, text->len - at);
    size_t from = (random >> 30) % strlen(other);
    size_t length = MIN((random >> 50) % 40, strlen(other) - from);
    g_autofree char *mine = g_strndup(text->str + at, n);
    if (seed % 3 == 0)
        g_string_erase(text, (gssize)at, (gssize)n);
    else if (seed % 3 == 1)
        g_string_insert(text, (gssize)at, mine);
    else
        g_string_insert_len(text, (gssize)at, other + from, (gssize)length);
}

static void
mutate(bool splices)
{
    g_autoptr(GPtrArray) files = all_files();
    for (guint i = 0; i < files->len; i++) {
        const TextFile *file = g_ptr_array_index(files, i);
        const TextFile *other = g_ptr_array_index(files, (i + 5) % files->len);
        for (uint64_t k = 0; *file->text && *other->text && k < MUTATIONS; k++) {
            g_autoptr(GString) text = g_string_new(file->text);
            uint64_t seed = kiln_random_bits(splices ? 77 : 78, i * MUTATIONS + k);
            if (splices)
                splice(text, other->text, seed);
            else
                flip(text, seed);
            try_text(text->str, text->len);
        }
    }
}

Test(text_fuzz, random_bytes)
{
    mutate(false);
}

Test(text_fuzz, random_pieces)
{
    mutate(true);
}
