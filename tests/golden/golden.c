/* SPDX-License-Identifier: Apache-2.0 */
/* Every file tests/golden/<pass>/<case>.kiln is a test. KILN_GOLDEN names one folder of them, or
 * one file as <pass>/<case>. */
#include "tests/golden/golden.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdlib.h>
#include <string.h>

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

static bool
is_chosen(const char *folder, const char *file)
{
    const char *only = g_getenv("KILN_GOLDEN");
    g_autofree char *whole = g_strdup_printf("%s/%s", folder, file);
    size_t length = only ? strlen(only) : 0;
    return !only || strcmp(only, folder) == 0 ||
           (strncmp(whole, only, length) == 0 && strcmp(whole + length, ".kiln") == 0);
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
free_paths(struct criterion_test_params *params)
{
    char **paths = params->params;
    for (size_t i = 0; i < params->length; i++)
        cr_free(paths[i]);
    cr_free(paths);
}

ParameterizedTestParameters(golden, file)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    static const char root[] = KILN_SOURCE_DIR "/tests/golden";
    g_autoptr(GPtrArray) folders = list(root);
    for (guint i = 0; i < folders->len; i++) {
        const char *folder = g_ptr_array_index(folders, i);
        g_autofree char *path = g_build_filename(root, folder, NULL);
        if (!g_file_test(path, G_FILE_TEST_IS_DIR))
            continue;
        g_autoptr(GPtrArray) files = list(path);
        for (guint k = 0; k < files->len; k++) {
            const char *file = g_ptr_array_index(files, k);
            if (g_str_has_suffix(file, ".kiln") && is_chosen(folder, file))
                g_ptr_array_add(found, g_build_filename(path, file, NULL));
        }
    }
    char **paths = cr_malloc(sizeof(char *) * (found->len + 1));
    for (guint i = 0; i < found->len; i++)
        paths[i] = shared_copy(g_ptr_array_index(found, i));
    return cr_make_param_array(char *, paths, found->len, free_paths);
}

ParameterizedTest(char **path, golden, file)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Golden) golden = golden_read(*path, &error);
    bool update = g_strcmp0(g_getenv("KILN_UPDATE"), "1") == 0;
    bool ok = golden && golden_check(golden, update, &error);
    cr_expect(ok, "%s: %s", *path, error ? error->message : "");
}
