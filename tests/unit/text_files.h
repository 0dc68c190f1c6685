/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the texts of tests/text. Each has the form of the printer. */
#ifndef KILN_TESTS_UNIT_TEXT_FILES_H
#define KILN_TESTS_UNIT_TEXT_FILES_H

#include <criterion/criterion.h>
#include <glib.h>

typedef struct {
    char *path, *text;
} TextFile;

static inline void
text_file_free(gpointer data)
{
    TextFile *file = data;
    g_free(file->path);
    g_free(file->text);
    g_free(file);
}

static inline gint
text_file_compare(gconstpointer a, gconstpointer b)
{
    return g_strcmp0((*(TextFile *const *)a)->path, (*(TextFile *const *)b)->path);
}

/* Returns the texts of the IR level (`ir-*.kiln`) or of the graph level, sorted by name. */
static inline GPtrArray *
text_files(bool ir)
{
    const char *folder = KILN_SOURCE_DIR "/tests/text";
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    cr_assert(dir, "%s", folder);
    GPtrArray *files = g_ptr_array_new_with_free_func(text_file_free);
    for (const char *name; (name = g_dir_read_name(dir));) {
        if (!g_str_has_suffix(name, ".kiln") || g_str_has_prefix(name, "ir-") != ir)
            continue;
        TextFile *file = g_new0(TextFile, 1);
        file->path = g_build_filename(folder, name, NULL);
        cr_assert(g_file_get_contents(file->path, &file->text, NULL, NULL), "%s", file->path);
        g_ptr_array_add(files, file);
    }
    g_ptr_array_sort(files, text_file_compare);
    return files;
}

#endif
