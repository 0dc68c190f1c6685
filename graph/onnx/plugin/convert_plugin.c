/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of plug-ins: all attributes of the node go into columns, as they are. */
#include "graph/kiln-op.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/model.h"
#include "graph/onnx/opset.h"
#include "graph/onnx/tensor.h"
#include "graph/op/plugin.h"
#include "graph/plugin/plugin.h"
#include "graph/tensor.h"

static gboolean
take_tensor(KilnOnnxCall *call, const KilnOnnxAttr *attr, KilnPluginWriter *writer, GError **error)
{
    const char *name = attr->proto->name;
    if (!attr->tensor)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "attribute '%s' has no tensor",
                               name);
    g_autoptr(KilnTensor) tensor = kiln_onnx_tensor_load(attr->tensor, &call->import->files, error);
    if (tensor && kiln_dtype_is_address(tensor->type.dtype))
        return kiln_onnx_unsupported(call, error, "attribute '%s' is a tensor of strings", name);
    g_autoptr(GBytes) bytes = tensor ? kiln_tensor_view(tensor, error) : NULL;
    if (!bytes) {
        kiln_prefix_error(error, "%s (%s): attribute '%s': ", call->label,
                          call->node->proto->op_type, name);
        return FALSE;
    }
    kiln_plugin_write_tensor(writer, name, &tensor->type, g_bytes_get_data(bytes, NULL));
    return TRUE;
}

static gboolean
take_list(KilnOnnxCall *call, const KilnOnnxAttr *attr, KilnPluginWriter *writer, GError **error)
{
    const char *name = attr->proto->name;
    KilnInts ints = { 0 };
    KilnFloats floats = { 0 };
    KilnStrings texts = { 0 };
    bool there;
    switch (attr->kind) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        if (!kiln_onnx_take_ints(call, name, &ints, &there, error))
            return FALSE;
        kiln_plugin_write_ints(writer, name, KILN_OP_ATTRIBUTE_INTS, ints.v, ints.n);
        return TRUE;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        if (!kiln_onnx_take_floats(call, name, &floats, error))
            return FALSE;
        kiln_plugin_write_floats(writer, name, KILN_OP_ATTRIBUTE_FLOATS, floats.v, floats.n);
        return TRUE;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
        if (!kiln_onnx_take_texts(call, name, &texts, error))
            return FALSE;
        kiln_plugin_write_texts(writer, name, KILN_OP_ATTRIBUTE_STRINGS, texts.v, texts.n);
        return TRUE;
    default:
        return kiln_onnx_unsupported(call, error,
                                     "attribute '%s': a plug-in gets numbers, texts, lists of "
                                     "them, and tensors",
                                     name);
    }
}

static gboolean
take_attribute(KilnOnnxCall *call, const KilnOnnxAttr *attr, KilnPluginWriter *writer,
               GError **error)
{
    const char *name = attr->proto->name, *text = "";
    int64_t number = 0;
    float real = 0;
    switch (attr->kind) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        if (!kiln_onnx_take_int(call, name, &number, error))
            return FALSE;
        kiln_plugin_write_ints(writer, name, KILN_OP_ATTRIBUTE_INT, &number, 1);
        return TRUE;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        if (!kiln_onnx_take_float(call, name, &real, error))
            return FALSE;
        kiln_plugin_write_floats(writer, name, KILN_OP_ATTRIBUTE_FLOAT, &real, 1);
        return TRUE;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        if (!kiln_onnx_take_text(call, name, &text, error))
            return FALSE;
        kiln_plugin_write_texts(writer, name, KILN_OP_ATTRIBUTE_STRING, &text, 1);
        return TRUE;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
        return take_tensor(call, attr, writer, error);
    default:
        return take_list(call, attr, writer, error);
    }
}

/* The columns of plugin_op and plugin_effect are alike (graph/ops/plugin.def). */
static void
set_columns(KilnOnnxCall *call, const KilnPluginColumns *columns)
{
    KilnArena *arena = call->import->module->arena;
    KilnAttrs_plugin_op from = { .domain = call->node->proto->domain,
                                 .op_type = call->node->proto->op_type,
                                 .opset = call->opset,
                                 .attributes = columns->attributes,
                                 .ints = columns->ints,
                                 .floats = columns->floats,
                                 .texts = columns->texts };
    from.domain = from.domain ? from.domain : "";
    const KilnOpInfo *info = kiln_op_info(KILN_OP_plugin_op);
    kiln_attrs_copy(info->attrs, info->n_attrs, call->attrs, &from, arena);
}

static gboolean
convert(KilnOnnxCall *call, GError **error)
{
    const Onnx__NodeProto *proto = call->node->proto;
    const KilnOpDescription *op = kiln_plugin_find(proto->domain, proto->op_type, call->opset);
    KilnPluginWriter writer;
    gboolean good = TRUE;
    call->op = op && op->flags & KILN_OP_PURE ? KILN_OP_plugin_op : KILN_OP_plugin_effect;
    kiln_plugin_writer_init(&writer, call->import->module->arena);
    for (size_t i = 0; good && i < call->node->n_attrs; i++) {
        good = take_attribute(call, &call->node->attrs[i], &writer, error);
        call->taken[i] = true;
    }
    const KilnPluginColumns columns = kiln_plugin_writer_columns(&writer);
    if (good)
        set_columns(call, &columns);
    kiln_plugin_writer_clear(&writer);
    return good;
}

const KilnOnnxRow *
kiln_onnx_plugin_row(const char *domain, const char *name, int64_t opset)
{
    static const KilnOnnxRow row = { "", 1, KILN_OP_plugin_op, convert, "" };
    return kiln_plugin_find(domain, name, opset) ? &row : NULL;
}
