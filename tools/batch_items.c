/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of a batch: what lies in a folder, or what the lines of a list name. */
#include "tools/batch.h"

#include "graph/base/budget.h"
#include "graph/error.h"
#include "graph/kiln-types.h"
#include "runtime/model.h"
#include "runtime/tensors/file.h"
#include "runtime/tensors/tensor_file.h"
#include "tools/execute.h"
#include "tools/overwrite.h"

#include <stdio.h>
#include <string.h>

static void
item_free(gpointer data)
{
    KilnBatchItem *item = data;
    g_ptr_array_unref(item->files);
    g_free(item->name);
    g_free(item->result);
    g_free(item->failure);
    g_free(item);
}

void
kiln_batch_clear(KilnBatch *batch)
{
    g_clear_pointer(&batch->items, g_ptr_array_unref);
}

/* `a/b.png` has the result `b`, and so has the folder `a/b`. */
static char *
result_name(const char *path, bool is_folder)
{
    g_autofree char *full = g_canonicalize_filename(path, NULL);
    char *name = g_path_get_basename(full);
    char *dot = is_folder ? NULL : strrchr(name, '.');
    if (dot && dot != name)
        *dot = '\0';
    return name;
}

static KilnBatchItem *
item_new(const KilnBatch *batch, const char *path, bool is_folder)
{
    KilnBatchItem *item = g_new0(KilnBatchItem, 1);
    item->name = g_strdup(path);
    item->result = result_name(path, is_folder);
    item->files = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_set_size(item->files, (int)batch->model->inputs.n);
    return item;
}

/* An item that fails does not keep others from their runs. */
static void
set_file(const KilnBatch *batch, KilnBatchItem *item, unsigned input, const char *path)
{
    const char *other = g_ptr_array_index(item->files, input);
    if (!other)
        item->files->pdata[input] = g_strdup(path);
    else if (!item->failure)
        item->failure = g_strdup_printf("input %s: expected one file, found %s and %s",
                                        batch->model->inputs.info[input].name, other, path);
}

/* --- which input a file is for --- */

/* The only input that -i does not give; -1: there are others, or none. */
static int
free_input(const KilnBatch *batch)
{
    const KilnInfoList *inputs = &batch->model->inputs;
    int found = -1;
    for (unsigned i = 0; i < inputs->n; i++) {
        if (kiln_inputs_file(batch->inputs, inputs->info[i].name))
            continue;
        if (found >= 0)
            return -1;
        found = (int)i;
    }
    return found;
}

static int
input_named(const KilnBatch *batch, const char *name)
{
    for (unsigned i = 0; i < batch->model->inputs.n; i++) {
        if (strcmp(batch->model->inputs.info[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

/* input_3 is the fourth; -1: @stem is no such name, or there are fewer inputs. */
static int
input_numbered(const KilnBatch *batch, const char *stem)
{
    guint64 number;
    return g_str_has_prefix(stem, "input_") &&
                   g_ascii_string_to_unsigned(stem + strlen("input_"), 10, 0, G_MAXINT, &number,
                                              NULL) &&
                   number < batch->model->inputs.n
               ? (int)number
               : -1;
}

/* --- folders --- */

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in @folder but for hidden ones, sorted. */
static GPtrArray *
list_folder(const char *folder, GError **error)
{
    g_autoptr(GError) inner = NULL;
    g_autoptr(GDir) dir = g_dir_open(folder, 0, &inner);
    if (!dir)
        return kiln_throw_null(error, KILN_ERROR_IO, "%s: cannot be read: %s", folder,
                               inner->message);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *name; (name = g_dir_read_name(dir));) {
        if (!kiln_checkpoint(error))
            return NULL;
        if (*name != '.')
            g_ptr_array_add(names, g_strdup(name));
    }
    g_ptr_array_sort(names, compare_names);
    return g_steal_pointer(&names);
}

/* A folder with input_0 has numbered files, as test data of ONNX has. In others, files have the
 * names of inputs. */
static bool
is_numbered(const GPtrArray *names)
{
    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        if (g_str_has_prefix(name, "input_0.") && kiln_tensor_file_has_ending(name))
            return true;
    }
    return false;
}

/* The files of one run. What is no input, such as expected outputs, is left out. */
static void
add_folder(KilnBatch *batch, const char *folder)
{
    KilnBatchItem *item = item_new(batch, folder, true);
    g_ptr_array_add(batch->items, item);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) names = list_folder(folder, &error);
    if (!names) {
        item->failure = g_strdup(error->message);
        return;
    }
    bool numbered = is_numbered(names);
    unsigned found = 0;
    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        if (!kiln_tensor_file_has_ending(name))
            continue;
        g_autofree char *stem = g_strndup(name, (gsize)(strrchr(name, '.') - name));
        int input = numbered ? -1 : input_named(batch, stem);
        if (input < 0)
            input = input_numbered(batch, stem);
        if (input < 0)
            continue;
        g_autofree char *path = g_build_filename(folder, name, NULL);
        set_file(batch, item, (unsigned)input, path);
        found++;
    }
    if (!found && !item->failure)
        item->failure = g_strdup_printf("%s: expected files called input_0.pb or like inputs of "
                                        "the model, found none",
                                        folder);
}

static gboolean
add_file(KilnBatch *batch, const char *path, GError **error)
{
    int input = free_input(batch);
    if (input < 0)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "%s: expected a folder with a file for each input: a file alone is the "
                          "one input that has no -i, and the model has not one such input",
                          path);
    KilnBatchItem *item = item_new(batch, path, false);
    set_file(batch, item, (unsigned)input, path);
    g_ptr_array_add(batch->items, item);
    return TRUE;
}

static gboolean
find_in_folder(KilnBatch *batch, GError **error)
{
    g_autoptr(GPtrArray) names = list_folder(batch->of, error);
    g_autofree char *other = NULL;
    unsigned n_others = 0;
    for (guint i = 0; names && i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        g_autofree char *path = g_build_filename(batch->of, name, NULL);
        if (!kiln_checkpoint(error))
            return FALSE;
        if (g_file_test(path, G_FILE_TEST_IS_DIR)) {
            add_folder(batch, path);
        } else if (kiln_tensor_file_has_ending(name)) {
            if (!add_file(batch, path, error))
                return FALSE;
        } else if (n_others++ == 0) {
            other = g_strdup(path);
        }
    }
    if (n_others && !batch->options->quiet) {
        g_autofree char *line = kiln_one_line(other);
        fprintf(stderr, "kiln run: note: left out files of other kinds: %u, such as %s\n", n_others,
                line);
    }
    return names != NULL;
}

/* --- lists --- */

/* One run: a file or folder, or fields NAME=FILE with tabs between them. */
static gboolean
add_line(KilnBatch *batch, unsigned number, const char *line, GError **error)
{
    g_auto(GStrv) fields = g_strsplit(line, "\t", -1);
    KilnBatchItem *item = NULL;
    for (char **field = fields; *field; field++) {
        const char *equals = strchr(*field, '=');
        int input = -1;
        for (; equals && input < 0; equals = strchr(equals + 1, '=')) {
            g_autofree char *name = g_strndup(*field, (gsize)(equals - *field));
            input = input_named(batch, name);
            if (input >= 0)
                break;
        }
        if (input < 0 && !fields[1])
            return g_file_test(line, G_FILE_TEST_IS_DIR) ? (add_folder(batch, line), TRUE)
                                                         : add_file(batch, line, error);
        if (input < 0)
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "%s:%u: expected NAME=FILE with an input of the model, found %s",
                              batch->of, number, *field);
        if (!item) {
            item = item_new(batch, equals + 1, false);
            g_ptr_array_add(batch->items, item);
        }
        set_file(batch, item, (unsigned)input, equals + 1);
    }
    return TRUE;
}

static gboolean
find_in_list(KilnBatch *batch, GError **error)
{
    g_autoptr(GBytes) bytes = kiln_file_map(batch->of, error);
    if (!bytes)
        return FALSE;
    gsize size;
    const char *data = g_bytes_get_data(bytes, &size);
    if (size && memchr(data, '\0', size))
        return kiln_throw(error, KILN_ERROR_FORMAT,
                          "%s: expected a folder or a list with a file on each line, found a "
                          "binary file",
                          batch->of);
    g_autofree char *text = g_strndup(size ? data : "", size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (unsigned i = 0; lines[i]; i++) {
        char *line = lines[i];
        gsize length = strlen(line);
        if (length && line[length - 1] == '\r')
            line[length - 1] = '\0';
        if (!kiln_checkpoint(error) || (*line && !add_line(batch, i + 1, line, error)))
            return FALSE;
    }
    return TRUE;
}

/* --- results --- */

GPtrArray *
kiln_batch_results(const KilnBatch *batch, const KilnBatchItem *item)
{
    const KilnInfoList *outputs = &batch->model->outputs;
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);
    for (unsigned i = 0; i < outputs->n; i++) {
        const char *ending = kiln_tensor_ending(outputs->info[i].dtype, batch->npy);
        g_ptr_array_add(
            paths,
            outputs->n == 1
                ? g_strdup_printf("%s/%s.%s", batch->out_dir, item->result, ending)
                : g_strdup_printf("%s/%s/output_%u.%s", batch->out_dir, item->result, i, ending));
    }
    return paths;
}

char *
kiln_batch_failures_path(const KilnBatch *batch)
{
    return g_build_filename(batch->out_dir, "failures.tsv", NULL);
}

static gboolean
check_names(const KilnBatch *batch, GError **error)
{
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < batch->items->len; i++) {
        KilnBatchItem *item = g_ptr_array_index(batch->items, i);
        const KilnBatchItem *other = g_hash_table_lookup(names, item->result);
        if (other)
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "%s: expected a result of its own, found that of %s, which is called "
                              "%s too",
                              item->name, other->name, item->result);
        g_hash_table_insert(names, item->result, item);
    }
    return TRUE;
}

static void
add_paths(GPtrArray *to, const GPtrArray *from)
{
    for (guint i = 0; i < from->len; i++) {
        if (from->pdata[i])
            g_ptr_array_add(to, g_strdup(from->pdata[i]));
    }
}

static gboolean
check_results(const KilnBatch *batch, GError **error)
{
    g_autoptr(GPtrArray) reads = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) results = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < batch->items->len; i++) {
        const KilnBatchItem *item = g_ptr_array_index(batch->items, i);
        if (!kiln_checkpoint(error))
            return FALSE;
        g_autoptr(GPtrArray) paths = kiln_batch_results(batch, item);
        add_paths(reads, item->files);
        add_paths(results, paths);
    }
    for (unsigned i = 0; i < batch->model->inputs.n; i++) {
        const char *file = kiln_inputs_file(batch->inputs, batch->model->inputs.info[i].name);
        if (file)
            g_ptr_array_add(reads, g_strdup(file));
    }
    g_ptr_array_add(reads, g_strdup(batch->of));
    g_ptr_array_add(reads, NULL);
    g_ptr_array_add(results, kiln_batch_failures_path(batch));
    g_ptr_array_add(results, NULL);
    const KilnFiles files = { .model = batch->model,
                              .path = batch->path,
                              .inputs = (const char *const *)reads->pdata,
                              .outputs = (const char *const *)results->pdata };
    return kiln_check_overwrite(batch->options, &files, error);
}

gboolean
kiln_batch_find(KilnBatch *batch, GError **error)
{
    batch->items = g_ptr_array_new_with_free_func(item_free);
    bool is_folder = g_file_test(batch->of, G_FILE_TEST_IS_DIR);
    if (!(is_folder ? find_in_folder(batch, error) : find_in_list(batch, error)))
        return FALSE;
    if (!batch->items->len)
        return kiln_throw(error, KILN_ERROR_USAGE, "%s: expected %s, found none", batch->of,
                          is_folder ? "files of inputs, such as .npy or .png, or folders of them"
                                    : "a file on each line");
    return check_names(batch, error) && check_results(batch, error);
}
