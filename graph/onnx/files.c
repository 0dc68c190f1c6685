/* SPDX-License-Identifier: Apache-2.0 */
/* External data: files beside the model, mapped once each. A model names them, so a name is not
 * trusted: it must stay in the model's directory, links resolved. */
#include "graph/base/beside.h"
#include "graph/base/map_file.h"
#include "graph/onnx/tensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void
kiln_onnx_files_init(KilnOnnxFiles *files, GBytes *bytes, const char *path)
{
    *files = (KilnOnnxFiles){ .bytes = bytes, .path = path };
    files->names = g_ptr_array_new_with_free_func(g_free);
    files->mapped = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
}

void
kiln_onnx_files_clear(KilnOnnxFiles *files)
{
    g_clear_pointer(&files->names, g_ptr_array_unref);
    g_clear_pointer(&files->mapped, g_ptr_array_unref);
    g_clear_pointer(&files->directory, free);
}

static gboolean
find_directory(KilnOnnxFiles *files, GError **error)
{
    if (files->directory)
        return TRUE;
    if (!files->path)
        return kiln_throw(error, KILN_ERROR_FORMAT,
                          "external data, but the model was not read from a file");
    g_autofree char *name = g_path_get_dirname(files->path);
    files->directory = realpath(name, NULL);
    if (!files->directory)
        return kiln_throw(error, KILN_ERROR_IO, "%s: %s", name, g_strerror(errno));
    return TRUE;
}

/* The real path of @location, inside the model's directory. */
static char *
resolve(KilnOnnxFiles *files, const char *location, GError **error)
{
    char *path = NULL;
    if (files->alone)
        return kiln_throw_null(error, KILN_ERROR_FORMAT,
                               "external data '%s': expected a model that names no other file",
                               location);
    if (!find_directory(files, error))
        return NULL;
    switch (kiln_beside_find(files->directory, location, &path)) {
    case KILN_BESIDE_FOUND:
        return path;
    case KILN_BESIDE_BAD_NAME:
        return kiln_throw_null(error, KILN_ERROR_FORMAT,
                               "external data '%s': expected a path below the model's directory",
                               location);
    case KILN_BESIDE_MISSING:
        return kiln_throw_null(error, KILN_ERROR_IO, "external data '%s/%s': %s", files->directory,
                               location, g_strerror(errno));
    case KILN_BESIDE_OUTSIDE:
        return kiln_throw_null(error, KILN_ERROR_FORMAT,
                               "external data '%s' leads out of the model's directory", location);
    case KILN_BESIDE_NO_FILE:
        break;
    }
    return kiln_throw_null(error, KILN_ERROR_FORMAT, "external data '%s' is no regular file",
                           location);
}

static GBytes *
map_file(KilnOnnxFiles *files, const char *location, const char **out_path, GError **error)
{
    g_autofree char *path = resolve(files, location, error);
    if (!path)
        return NULL;
    for (guint i = 0; i < files->names->len; i++) {
        *out_path = g_ptr_array_index(files->names, i);
        if (strcmp(*out_path, path) == 0)
            return g_ptr_array_index(files->mapped, i);
    }
    GBytes *bytes = kiln_map_file(path, error);
    if (!bytes) {
        kiln_prefix_error(error, "external data: ");
        return NULL;
    }
    *out_path = path;
    g_ptr_array_add(files->names, g_steal_pointer(&path));
    g_ptr_array_add(files->mapped, bytes);
    return bytes;
}

GBytes *
kiln_onnx_files_slice(KilnOnnxFiles *files, const char *location, uint64_t offset, int64_t length,
                      const char **out_path, GError **error)
{
    GBytes *bytes = map_file(files, location, out_path, error);
    if (!bytes)
        return NULL;
    uint64_t size = g_bytes_get_size(bytes);
    if (offset > size || (length >= 0 && (uint64_t)length > size - offset))
        return kiln_throw_null(error, KILN_ERROR_FORMAT,
                               "external data '%s': expected %" G_GINT64_FORMAT
                               " bytes at %" G_GUINT64_FORMAT ", the file has %" G_GUINT64_FORMAT,
                               location, length, offset, size);
    return g_bytes_new_from_bytes(bytes, (gsize)offset,
                                  length < 0 ? (gsize)(size - offset) : (gsize)length);
}
