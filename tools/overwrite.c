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

static char *
place_of_status(const struct stat *status)
{
    return g_strdup_printf("%ju:%ju", (uintmax_t)status->st_dev, (uintmax_t)status->st_ino);
}

/* The regular files of @paths by their place. There may be thousands, for as many outputs. */
static GHashTable *
places_of(const char *const *paths)
{
    GHashTable *places = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    struct stat status;
    for (; paths && *paths; paths++) {
        if (look_up(*paths, &status))
            g_hash_table_insert(places, place_of_status(&status), (char *)*paths);
    }
    return places;
}

/* Of one call: what is read, and the outputs so far, by their places. */
typedef struct {
    const KilnOptions *options;
    const KilnFiles *files;
    GHashTable *inputs, *pipelines, *outputs;
} Check;

static gboolean
check_output(const Check *check, const char *output, GError **error)
{
    const KilnFiles *files = check->files;
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
    g_autofree char *place = place_of_status(&found);
    const char *input = g_hash_table_lookup(check->inputs, place);
    if (!input)
        input = g_hash_table_lookup(check->pipelines, place);
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
        return place_of_status(&found);
    if (stat(path, &found) == 0)
        return NULL;
    g_autofree char *folder = g_path_get_dirname(path), *name = g_path_get_basename(path);
    return stat(folder, &found) == 0 ? g_strdup_printf("%ju:%ju/%s", (uintmax_t)found.st_dev,
                                                       (uintmax_t)found.st_ino, name)
                                     : g_canonicalize_filename(path, NULL);
}

static gboolean
check_place(const Check *check, const char *output, GError **error)
{
    char *place = place_of(output);
    const char *other = place ? g_hash_table_lookup(check->outputs, place) : NULL;
    if (other) {
        g_free(place);
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "output %s: expected a file of its own, found that of output %s", output,
                          other);
    }
    if (place)
        g_hash_table_insert(check->outputs, place, (char *)output);
    return TRUE;
}

static gboolean
check_outputs(const Check *check, GError **error)
{
    const char *trace = check->options->trace;
    if (trace && (!check_output(check, trace, error) || !check_place(check, trace, error)))
        return FALSE;
    for (const char *const *output = check->files->outputs; *output; output++) {
        if (trace && kiln_is_stdout(*output) && kiln_is_stdout(trace))
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "--trace: expected a file, found standard output, where the result "
                              "goes");
        if (!kiln_is_stdout(*output) &&
            (!check_output(check, *output, error) || !check_place(check, *output, error)))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_check_overwrite(const KilnOptions *options, const KilnFiles *files, GError **error)
{
    g_autoptr(GHashTable) inputs = places_of(files->inputs);
    g_autoptr(GHashTable) pipelines = places_of((const char *const *)options->pipelines);
    g_autoptr(GHashTable) outputs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const Check check = { options, files, inputs, pipelines, outputs };
    return check_outputs(&check, error);
}
