/* SPDX-License-Identifier: Apache-2.0 */
/* SparseTensorProto: the elements that are not zero, with their places. They are made dense, within
 * the limits of memory. */
#include "graph/base/alloc.h"
#include "graph/error.h"
#include "graph/onnx/tensor.h"

#include <stdarg.h>
#include <string.h>

/* A sparse tensor while its elements are put in their places. */
typedef struct {
    const KilnOnnxSparse *sparse;
    const char *name;
    KilnType type;       /* of the dense tensor */
    KilnTensor *values;  /* [n] */
    KilnTensor *indices; /* [n], or [n, rank] */
} Sparse;

static gboolean G_GNUC_PRINTF(3, 4)
    throw_format(const Sparse *s, GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: sparse tensor '%s': %s",
                      s->sparse->values.offset, s->name, text);
}

static gboolean
find_type(Sparse *s, GError **error)
{
    const KilnOnnxSparse *sparse = s->sparse;
    if (sparse->n_dims > KILN_MAX_RANK)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "sparse tensor '%s': rank %zu, at most %d",
                          s->name, sparse->n_dims, KILN_MAX_RANK);
    if (s->values->type.dtype == KILN_DTYPE_string)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "sparse tensor '%s': element type string",
                          s->name);
    for (size_t d = 0; d < sparse->n_dims; d++) {
        if (sparse->dims[d] < 0)
            return throw_format(s, error, "dim %zu is %" G_GINT64_FORMAT, d, sparse->dims[d]);
    }
    s->type = kiln_type_make(s->values->type.dtype, (int)sparse->n_dims, sparse->dims);
    return kiln_type_bytes(&s->type) >= 0 || throw_format(s, error, "the dense tensor is too big");
}

static gboolean
check_types(const Sparse *s, GError **error)
{
    const KilnType *values = &s->values->type, *indices = &s->indices->type;
    if (values->rank != 1)
        return throw_format(s, error, "expected values of rank 1, found rank %d", values->rank);
    if (indices->dtype != KILN_DTYPE_i64)
        return throw_format(s, error, "expected indices of i64, found %s",
                            kiln_dtype_name(indices->dtype));
    if (indices->rank != 1 && indices->rank != 2)
        return throw_format(s, error, "expected indices of rank 1 or 2, found rank %d",
                            indices->rank);
    if (indices->dims[0] != values->dims[0])
        return throw_format(s, error,
                            "expected an index for each of %" G_GINT64_FORMAT
                            " values, found %" G_GINT64_FORMAT,
                            values->dims[0], indices->dims[0]);
    if (indices->rank == 2 && indices->dims[1] != s->type.rank)
        return throw_format(s, error, "expected %d coordinates, found %" G_GINT64_FORMAT,
                            s->type.rank, indices->dims[1]);
    return TRUE;
}

/* The number of the element that value @k is; -1 where it lies outside. */
static int64_t
place_of(const Sparse *s, const int64_t *indices, int64_t k)
{
    int64_t elements = kiln_type_elements(&s->type), place = 0;
    if (s->indices->type.rank == 1)
        return indices[k] >= 0 && indices[k] < elements ? indices[k] : -1;
    for (int d = 0; d < s->type.rank; d++) {
        int64_t at = indices[k * s->type.rank + d];
        if (at < 0 || at >= s->type.dims[d])
            return -1;
        place = place * s->type.dims[d] + at;
    }
    return elements ? place : -1;
}

static gboolean
scatter(const Sparse *s, uint8_t *to, GError **error)
{
    const size_t size = kiln_dtype_size(s->type.dtype);
    g_autoptr(GBytes) index_bytes = kiln_tensor_view(s->indices, error);
    g_autoptr(GBytes) value_bytes = index_bytes ? kiln_tensor_view(s->values, error) : NULL;
    if (!value_bytes)
        return FALSE;
    const int64_t *indices = g_bytes_get_data(index_bytes, NULL);
    const uint8_t *values = g_bytes_get_data(value_bytes, NULL);
    int64_t last = -1;
    for (int64_t k = 0; k < s->values->type.dims[0]; k++) {
        int64_t place = place_of(s, indices, k);
        if (place < 0)
            return throw_format(s, error, "index %" G_GINT64_FORMAT " lies outside", k);
        if (place <= last)
            return throw_format(s, error,
                                "expected indices that ascend, found index %" G_GINT64_FORMAT
                                " behind a greater or equal one",
                                k);
        memcpy(to + (size_t)place * size, values + (size_t)k * size, size);
        last = place;
    }
    return TRUE;
}

static KilnTensor *
make_dense(const Sparse *s, GError **error)
{
    void *data;
    const size_t size = (size_t)kiln_type_bytes(&s->type);
    g_autoptr(GBytes) bytes = kiln_bytes_new(size, 1, &data, error);
    if (!bytes)
        return NULL;
    memset(data, 0, size);
    return scatter(s, data, error) ? kiln_tensor_new_data(&s->type, bytes, error) : NULL;
}

KilnTensor *
kiln_onnx_sparse_load(const KilnOnnxSparse *sparse, KilnOnnxFiles *files, GError **error)
{
    g_autoptr(KilnTensor) values = kiln_onnx_tensor_load(&sparse->values, files, error);
    g_autoptr(KilnTensor) indices =
        values ? kiln_onnx_tensor_load(&sparse->indices, files, error) : NULL;
    Sparse s = { .sparse = sparse,
                 .name = sparse->name ? sparse->name : "",
                 .values = values,
                 .indices = indices };
    if (!indices || !find_type(&s, error) || !check_types(&s, error))
        return NULL;
    return make_dense(&s, error);
}
