/* SPDX-License-Identifier: Apache-2.0 */
/* A result that replaces the model it was made of: what was trained is gone then, and the next
 * command reads something else under its name. */
#include "tools/overwrite.h"

#include "graph/attr.h"
#include "runtime/model.h"

#include <sys/stat.h>

/* False for what is not there, and for pipes and devices, which lose nothing. */
static bool
look_up(const char *path, struct stat *out)
{
    return stat(path, out) == 0 && S_ISREG(out->st_mode);
}

static bool
is_same_file(const struct stat *a, const char *path)
{
    struct stat b;
    return look_up(path, &b) && a->st_dev == b.st_dev && a->st_ino == b.st_ino;
}

/* The file that the constants of @model lie in and that @found is; NULL where it is none. */
static const char *
data_file(const KilnModel *model, const struct stat *found)
{
    const char *last = NULL;
    for (guint i = 0; model->module && i < model->module->constants->len; i++) {
        const KilnConstant *constant = g_ptr_array_index(model->module->constants, i);
        const char *file = constant->tensor ? constant->tensor->file : NULL;
        if (!file || g_strcmp0(file, last) == 0)
            continue;
        if (is_same_file(found, file))
            return file;
        last = file;
    }
    return NULL;
}

/* The one of @inputs that @found is; NULL where it is none. */
static const char *
input_file(const char *const *inputs, const struct stat *found)
{
    for (; inputs && *inputs; inputs++) {
        if (is_same_file(found, *inputs))
            return *inputs;
    }
    return NULL;
}

static gboolean
check_output(const char *output, const KilnOptions *options, const KilnFiles *files, GError **error)
{
    struct stat found;
    if (!look_up(output, &found))
        return TRUE;
    if (is_same_file(&found, files->path))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "output %s: expected another file than the model, found %s itself",
                          output, files->path);
    const char *data = data_file(files->model, &found);
    if (data)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "output %s: expected another file than those of the model, found %s, in "
                          "which %s has its weights",
                          output, data, files->path);
    const char *input = input_file(files->inputs, &found);
    if (!input)
        input = input_file((const char *const *)options->pipelines, &found);
    return !input || kiln_throw(error, KILN_ERROR_USAGE,
                                "output %s: expected another file than those that are read, found "
                                "%s",
                                output, input);
}

/* The same text for paths of one file, which need not be there yet; NULL for pipes and devices. */
static char *
place_of(const char *path)
{
    struct stat found;
    if (look_up(path, &found))
        return g_strdup_printf("%ju:%ju", (uintmax_t)found.st_dev, (uintmax_t)found.st_ino);
    if (stat(path, &found) == 0)
        return NULL;
    g_autofree char *folder = g_path_get_dirname(path), *name = g_path_get_basename(path);
    return stat(folder, &found) == 0 ? g_strdup_printf("%ju:%ju/%s", (uintmax_t)found.st_dev,
                                                       (uintmax_t)found.st_ino, name)
                                     : g_canonicalize_filename(path, NULL);
}

/* @places: outputs so far, by their place. */
static gboolean
check_places(GHashTable *places, const char *output, GError **error)
{
    char *place = place_of(output);
    const char *other = place ? g_hash_table_lookup(places, place) : NULL;
    if (other) {
        g_free(place);
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "output %s: expected a file of its own, found that of output %s", output,
                          other);
    }
    if (place)
        g_hash_table_insert(places, place, (char *)output);
    return TRUE;
}

gboolean
kiln_check_overwrite(const KilnOptions *options, const KilnFiles *files, GError **error)
{
    g_autoptr(GHashTable) places = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (options->trace && (!check_output(options->trace, options, files, error) ||
                           !check_places(places, options->trace, error)))
        return FALSE;
    for (const char *const *output = files->outputs; *output; output++) {
        if (options->trace && kiln_is_stdout(*output) && kiln_is_stdout(options->trace))
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "--trace: expected a file, found standard output, where the result "
                              "goes");
        if (!kiln_is_stdout(*output) && (!check_output(*output, options, files, error) ||
                                         !check_places(places, *output, error)))
            return FALSE;
    }
    return TRUE;
}
