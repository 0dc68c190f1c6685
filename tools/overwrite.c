/* SPDX-License-Identifier: Apache-2.0 */
/* A result that replaces the model it was made of: what was trained is gone then, and the next
 * command reads something else under its name. */
#include "tools/overwrite.h"

#include "runtime/internal.h"

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

gboolean
kiln_check_overwrite(const KilnModel *model, const char *path, const char *const *outputs,
                     GError **error)
{
    for (; *outputs; outputs++) {
        struct stat found;
        if (kiln_is_stdout(*outputs) || !look_up(*outputs, &found))
            continue;
        if (is_same_file(&found, path))
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "output %s: expected another file than the model, found %s itself",
                              *outputs, path);
        const char *data = data_file(model, &found);
        if (data)
            return kiln_throw(
                error, KILN_ERROR_USAGE,
                "output %s: expected another file than those of the model, found %s, in "
                "which %s has its weights",
                *outputs, data, path);
    }
    return TRUE;
}
