/* SPDX-License-Identifier: Apache-2.0 */
/* Every file tests/golden/<pass>/<case>.kiln is a case. KILN_GOLDEN names one folder of them, or
 * one file as <pass>/<case>; `--verbose` tells each case before it runs.
 *
 * It is a program without Criterion, whose processes do not start under ThreadSanitizer. */
#include "tests/golden/golden.h"
#include "tests/test_operators.h"

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

typedef struct {
    bool update, verbose;
    guint n, n_failed;
} Run;

static void
run_case(Run *run, const char *path, FILE *notes)
{
    g_autoptr(GError) error = NULL;
    if (run->verbose)
        printf("%s\n", path);
    fflush(stdout);
    g_autoptr(Golden) golden = golden_read(path, &error);
    run->n++;
    if (golden && golden_check(golden, run->update, notes, &error))
        return;
    run->n_failed++;
    fprintf(stderr, "%s: %s\n", path, error ? error->message : "");
}

/* False where the notes cannot be written. */
static bool
run_folder(Run *run, const char *folder)
{
    g_autoptr(GPtrArray) files = cases(folder);
    const char *kept = files->len ? g_getenv("KILN_GOLDEN_NOTES") : NULL;
    g_autofree char *path = kept ? g_build_filename(kept, folder, NULL) : NULL;
    FILE *notes = path ? fopen(path, "w") : NULL;
    if (path && !notes) {
        fprintf(stderr, "%s cannot be written\n", path);
        return false;
    }
    for (guint i = 0; i < files->len; i++)
        run_case(run, g_ptr_array_index(files, i), notes);
    return !notes || fclose(notes) == 0;
}

int
main(int argc, char **argv)
{
    const char *only = g_getenv("KILN_GOLDEN");
    Run run = { .update = g_strcmp0(g_getenv("KILN_UPDATE"), "1") == 0,
                .verbose = argc == 2 && strcmp(argv[1], "--verbose") == 0 };
    if (argc > 1 && !run.verbose) {
        fprintf(stderr, "usage: kiln-golden-tests [--verbose]\n");
        return 2;
    }
    test_operators_register();
    bool good = true;
    g_autoptr(GPtrArray) folders = list(root);
    for (guint i = 0; i < folders->len; i++)
        good &= run_folder(&run, g_ptr_array_index(folders, i));
    if (run.n == 0)
        fprintf(stderr, "%s: no case of this name\n", only ? only : root);
    printf("%u cases, %u failed\n", run.n, run.n_failed);
    return good && run.n > 0 && run.n_failed == 0 ? 0 : 1;
}
