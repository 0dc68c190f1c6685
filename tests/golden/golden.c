/* SPDX-License-Identifier: Apache-2.0 */
/* Every file tests/golden/<pass>/<case>.kiln is a case, every folder a test: starting a process
 * takes longer than most cases. KILN_GOLDEN names one folder of them, or one file as <pass>/<case>;
 * `--verbose` tells each case before it runs. */
#include "tests/golden/golden.h"
#include "tests/test_operators.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <string.h>

static const char root[] = KILN_SOURCE_DIR "/tests/golden";

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static GPtrArray *
list(const char *path)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir)) != NULL)
        g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, compare_names);
    return names;
}

/* The files of a folder that KILN_GOLDEN lets run. */
static GPtrArray *
cases(const char *folder)
{
    GPtrArray *chosen = g_ptr_array_new_with_free_func(g_free);
    const char *only = g_getenv("KILN_GOLDEN");
    g_autofree char *path = g_build_filename(root, folder, NULL);
    g_autoptr(GPtrArray) files = list(path);
    for (guint i = 0; i < files->len; i++) {
        const char *file = g_ptr_array_index(files, i);
        g_autofree char *whole = g_strconcat(folder, "/", file, NULL);
        g_autofree char *one = g_strconcat(only ? only : "", ".kiln", NULL);
        bool is_chosen = !only || strcmp(only, folder) == 0 || strcmp(one, whole) == 0;
        if (is_chosen && g_str_has_suffix(file, ".kiln"))
            g_ptr_array_add(chosen, g_build_filename(path, file, NULL));
    }
    return chosen;
}

/* In memory of Criterion's own, as it asks for: tests run in other processes. */
static char *
shared_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = cr_malloc(size);
    memcpy(copy, text, size);
    return copy;
}

static void
free_names(struct criterion_test_params *params)
{
    char **names = params->params;
    for (size_t i = 0; i < params->length; i++)
        cr_free(names[i]);
    cr_free(names);
}

ParameterizedTestParameters(golden, folder)
{
    g_autoptr(GPtrArray) folders = list(root);
    char **names = cr_malloc(sizeof(char *) * (folders->len + 1));
    size_t n_names = 0;
    for (guint i = 0; i < folders->len; i++) {
        const char *folder = g_ptr_array_index(folders, i);
        g_autoptr(GPtrArray) files = cases(folder);
        if (files->len)
            names[n_names++] = shared_copy(folder);
    }
    return cr_make_param_array(char *, names, n_names, free_names);
}

Test(golden, chosen)
{
    g_autoptr(GPtrArray) folders = list(root);
    guint n = 0;
    for (guint i = 0; i < folders->len; i++) {
        g_autoptr(GPtrArray) files = cases(g_ptr_array_index(folders, i));
        n += files->len;
    }
    const char *only = g_getenv("KILN_GOLDEN");
    cr_assert_gt(n, 0, "%s: no case of this name", only ? only : root);
}

static FILE *
open_notes(const char *folder)
{
    const char *notes = g_getenv("KILN_GOLDEN_NOTES");
    if (!notes)
        return NULL;
    g_autofree char *path = g_build_filename(notes, folder, NULL);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file, "%s cannot be written", path);
    return file;
}

ParameterizedTest(char **folder, golden, folder)
{
    test_operators_register();
    bool update = g_strcmp0(g_getenv("KILN_UPDATE"), "1") == 0;
    FILE *notes = open_notes(*folder);
    g_autoptr(GPtrArray) files = cases(*folder);
    for (guint i = 0; i < files->len; i++) {
        const char *path = g_ptr_array_index(files, i);
        cr_log_info("%s\n", path);
        g_autoptr(GError) error = NULL;
        g_autoptr(Golden) golden = golden_read(path, &error);
        bool ok = golden && golden_check(golden, update, notes, &error);
        cr_expect(ok, "%s: %s", path, error ? error->message : "");
    }
    if (notes)
        fclose(notes);
}
