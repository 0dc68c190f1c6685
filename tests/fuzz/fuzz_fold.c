/* SPDX-License-Identifier: Apache-2.0 */
/* Files of folded tensors. What is read is a file as it was stored, with bytes changed and its end
 * moved: it is of use as a whole, or not at all. */
#include "tests/fuzz/fuzz.h"

#include "graph/tensor.h"
#include "runtime/digest/digest.h"
#include "runtime/fold_file.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    MAX_TENSORS = 3,
    PATCH = 3, /* bytes: where, from the low one on, and what stands there */
};

static const KilnDigest key = { 1, 2 };

static KilnTensor *
tensor_of(uint8_t elements)
{
    KilnType type = kiln_type_make(KILN_DTYPE_u8, 1, (int64_t[]){ elements });
    uint8_t values[UINT8_MAX];
    for (int i = 0; i < elements; i++)
        values[i] = (uint8_t)(i * 7 + 1);
    return kiln_tensor_new_copy(&type, values, NULL);
}

/* The one file that the store wrote to @directory. */
static char *
stored_in(const char *directory)
{
    g_autoptr(GDir) names = g_dir_open(directory, 0, NULL);
    for (const char *name; names && (name = g_dir_read_name(names));) {
        if (g_str_has_suffix(name, ".kiln-fold"))
            return g_build_filename(directory, name, NULL);
    }
    abort();
}

/* The last two bytes say how long the file is, patches before them what stands in it. */
static void
alter(const char *path, const uint8_t *data, size_t size)
{
    g_autofree char *file = NULL;
    gsize length;
    if (!g_file_get_contents(path, &file, &length, NULL))
        abort();
    for (; size >= PATCH + 2; data += PATCH, size -= PATCH) {
        size_t at = (size_t)data[0] | (size_t)data[1] << 8;
        if (at < length)
            file[at] = (char)data[2];
    }
    size_t end = size >= 2 ? (size_t)data[0] | (size_t)data[1] << 8 : length;
    if (!g_file_set_contents_full(path, file, (gssize)MIN(end, length), G_FILE_SET_CONTENTS_NONE,
                                  0666, NULL))
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 + MAX_TENSORS)
        return 0;
    g_autofree char *directory = g_path_get_dirname(fuzz_file("", NULL, 0));
    uint32_t n = data[0] % (MAX_TENSORS + 1);
    KilnTensor *tensors[MAX_TENSORS] = { NULL }, *found[MAX_TENSORS] = { NULL };
    KilnType types[MAX_TENSORS];
    for (uint32_t i = 0; i < n; i++) {
        tensors[i] = tensor_of(data[1 + i]);
        if (!tensors[i])
            abort();
        types[i] = tensors[i]->type;
    }
    if (!kiln_fold_file_store(directory, &key, tensors, n))
        abort();
    g_autofree char *path = stored_in(directory);
    alter(path, data + 1 + MAX_TENSORS, size - 1 - MAX_TENSORS);
    bool loaded = kiln_fold_file_load(directory, &key, types, n, found);
    fuzz_expect(true, NULL);
    for (uint32_t i = 0; i < n; i++) {
        if (loaded && !kiln_tensor_equal(tensors[i], found[i])) {
            fprintf(stderr, "tensor %u is not what was stored\n", i);
            abort();
        }
        kiln_tensor_free(tensors[i]);
        kiln_tensor_free(found[i]);
    }
    return 0;
}
