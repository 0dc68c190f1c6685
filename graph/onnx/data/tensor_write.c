/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as TensorProto: raw_data for numbers, string_data for texts. */
#include "graph/onnx/onnx.h"

#include "graph/onnx/fields.h"
#include "graph/onnx/wire.h"
#include "graph/texts.h"

static gboolean
put_texts(const KilnTensor *tensor, GByteArray *out, GError **error)
{
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, error);
    const KilnText *const *elements = bytes ? g_bytes_get_data(bytes, NULL) : NULL;
    for (int64_t i = 0; bytes && i < kiln_type_elements(&tensor->type); i++) {
        const KilnText text = kiln_text_of(elements[i]);
        kiln_wire_put_bytes(out, TENSOR_STRING_DATA, text.text, text.length);
    }
    return bytes != NULL;
}

gboolean
kiln_onnx_tensor_write(const KilnTensor *tensor, const char *name, GByteArray *out, GError **error)
{
    const KilnType *type = &tensor->type;
    for (int i = 0; i < type->rank; i++)
        kiln_wire_put_varint(out, TENSOR_DIMS, (uint64_t)type->dims[i]);
    kiln_wire_put_varint(out, TENSOR_DATA_TYPE, (uint64_t)kiln_dtype_to_onnx(type->dtype));
    if (name && *name)
        kiln_wire_put_text(out, TENSOR_NAME, name);
    if (type->dtype == KILN_DTYPE_string)
        return put_texts(tensor, out, error);
    /* The length of a message is a number of 31 bits to most readers. */
    int64_t size = kiln_tensor_stored_bytes(type);
    if (size < 0 || size > G_MAXINT32 - (int64_t)out->len)
        return kiln_throw(error, KILN_ERROR_LIMIT,
                          "tensor '%s' has %" G_GINT64_FORMAT " bytes: protobuf holds 2 GiB",
                          name ? name : "", size);
    g_autoptr(GBytes) bytes = kiln_tensor_stored(tensor, error);
    if (!bytes)
        return FALSE;
    gsize length;
    const void *data = g_bytes_get_data(bytes, &length);
    kiln_wire_put_bytes(out, TENSOR_RAW_DATA, data, length);
    return TRUE;
}
