/* SPDX-License-Identifier: Apache-2.0 */
/* Typed attributes as AttributeProto. Defaults of graph/ops are ONNX's and left out, unless ONNX
 * has none. */
#include "graph/onnx/export.h"
#include "graph/onnx/opset.h"

#include "graph/base/alloc.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/fields.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/wire.h"
#include "graph/op/items.h"
#include "graph/op/slice.h"
#include "graph/kiln-op.h"
#include "graph/plugin/plugin.h"
#include "graph/tensor.h"

#include <math.h>
#include <string.h>

static GByteArray *
attr_new(const char *name, Onnx__AttributeProto__AttributeType type)
{
    GByteArray *out = g_byte_array_new();
    kiln_wire_put_text(out, ATTR_NAME, name);
    kiln_wire_put_varint(out, ATTR_TYPE, (uint64_t)type);
    return out;
}

static GByteArray *
write_int(const char *name, int64_t value)
{
    GByteArray *out = attr_new(name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    kiln_wire_put_varint(out, ATTR_I, (uint64_t)value);
    return out;
}

static GByteArray *
write_float(const char *name, float value)
{
    GByteArray *out = attr_new(name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    kiln_wire_put_f32(out, ATTR_F, value);
    return out;
}

static GByteArray *
write_ints(const char *name, const KilnInts *list)
{
    GByteArray *out = attr_new(name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    for (uint32_t i = 0; i < list->n; i++)
        kiln_wire_put_varint(out, ATTR_INTS, (uint64_t)list->v[i]);
    return out;
}

static GByteArray *
write_floats(const char *name, const KilnFloats *list)
{
    GByteArray *out = attr_new(name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
    for (uint32_t i = 0; i < list->n; i++)
        kiln_wire_put_f32(out, ATTR_FLOATS, list->v[i]);
    return out;
}

static GByteArray *
write_strings(const char *name, const KilnStrings *list)
{
    GByteArray *out = attr_new(name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    for (uint32_t i = 0; i < list->n; i++)
        kiln_wire_put_text(out, ATTR_STRINGS, list->v[i]);
    return out;
}

static GByteArray *
write_tensor(const char *name, const KilnConstant *constant, GError **error)
{
    g_autoptr(GByteArray) out = attr_new(name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
    g_autoptr(GByteArray) tensor = g_byte_array_new();
    if (!constant || !kiln_onnx_tensor_write(constant->tensor, NULL, tensor, error))
        return NULL;
    return kiln_onnx_append(out, ATTR_T, tensor, error) ? g_steal_pointer(&out) : NULL;
}

static GByteArray *
write_region(KilnOnnxExport *export_, const char *name, const KilnFunction *region, GError **error)
{
    g_autoptr(GByteArray) out = attr_new(name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH);
    g_autoptr(GByteArray) graph = g_byte_array_new();
    if (!kiln_onnx_write_graph(export_, region, graph, error))
        return NULL;
    return kiln_onnx_append(out, ATTR_G, graph, error) ? g_steal_pointer(&out) : NULL;
}

/* The reverse of the importer's: 32 bits are those of a float. */
static GByteArray *
write_seed(int64_t seed, GError **error)
{
    uint32_t bits = (uint32_t)seed;
    float value;
    memcpy(&value, &bits, sizeof value);
    if (seed < 0 || seed > UINT32_MAX || isnan(value)) {
        kiln_throw(error, KILN_ERROR_UNSUPPORTED, "its seed has no counterpart in ONNX");
        return NULL;
    }
    return write_float("seed", value);
}

static GByteArray *
write_value(KilnOnnxExport *export_, const KilnNode *node, const KilnAttrInfo *info, GError **error)
{
    const void *field = (const char *)node->attrs + info->offset;
    switch (info->kind) {
    case KILN_ATTR_INT:
        if (kiln_op_has(node->op, KILN_TRAIT_RANDOM) && strcmp(info->name, "seed") == 0)
            return write_seed(*(const KilnC_INT *)field, error);
        return write_int(info->name, *(const KilnC_INT *)field);
    case KILN_ATTR_BOOL:
        return write_int(info->name, *(const KilnC_BOOL *)field);
    case KILN_ATTR_DTYPE:
        return write_int(info->name, kiln_dtype_to_onnx(*(const KilnC_DTYPE *)field));
    case KILN_ATTR_FLOAT:
        return write_float(info->name, *(const KilnC_FLOAT *)field);
    case KILN_ATTR_STRING: {
        GByteArray *out = attr_new(info->name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
        kiln_wire_put_text(out, ATTR_S, *(const KilnC_STRING *)field);
        return out;
    }
    case KILN_ATTR_INTS:
        return write_ints(info->name, field);
    case KILN_ATTR_FLOATS:
        return write_floats(info->name, field);
    case KILN_ATTR_STRINGS:
        return write_strings(info->name, field);
    case KILN_ATTR_CONSTANT:
        return write_tensor(info->name, *(KilnConstant *const *)field, error);
    case KILN_ATTR_FUNCTION:
        return write_region(export_, info->name, *(KilnFunction *const *)field, error);
    }
    return NULL;
}

static bool
is_left_out(const KilnOnnxExport *export_, const KilnNode *node, const KilnAttrInfo *info,
            char **required)
{
    if (node->op == KILN_OP_split && strcmp(info->name, "num_outputs") == 0 && export_->opset < 18)
        return true;
    if (kiln_onnx_attr_is_own(node->op, info->name))
        return true; /* kiln_decompose() states an axis; the name of a node says its stream */
    return kiln_attr_is_default(info, node->attrs) &&
           !g_strv_contains((const char *const *)required, info->name);
}

/* An optional without content says what it could have. */
static GByteArray *
write_none(const KilnNode *node)
{
    GByteArray *out = attr_new("type", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTO);
    g_autoptr(GByteArray) type = g_byte_array_new();
    kiln_onnx_put_type(kiln_type_element(&node->results[0].type), type);
    kiln_wire_put_message(out, ATTR_TYPE_PROTO, type);
    return out;
}

gboolean
kiln_onnx_write_attrs(KilnOnnxExport *export_, const KilnNode *node, GByteArray *out,
                      GError **error)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    const KilnOnnxRow *row = kiln_onnx_row(info->onnx, export_->opset);
    g_auto(GStrv) required = g_strsplit(row ? row->required : "", " ", -1);
    if (node->op == KILN_OP_optional_none) {
        g_autoptr(GByteArray) attr = write_none(node);
        return kiln_onnx_append(out, NODE_ATTRIBUTE, attr, error);
    }
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        if (is_left_out(export_, node, &info->attrs[i], required))
            continue;
        g_autoptr(GByteArray) attr = write_value(export_, node, &info->attrs[i], error);
        if (!attr || !kiln_onnx_append(out, NODE_ATTRIBUTE, attr, error))
            return FALSE;
    }
    return TRUE;
}

/* --- operators of plug-ins --- */

static GByteArray *
write_plugin_tensor(const KilnPluginColumns *columns, const KilnPluginAttribute *attribute,
                    GError **error)
{
    void *data;
    g_autoptr(GBytes) memory =
        kiln_bytes_new(1, (size_t)kiln_type_bytes(&attribute->type), &data, error);
    if (!memory)
        return NULL;
    kiln_plugin_decode(columns, attribute, data);
    g_autoptr(KilnTensor) tensor = kiln_tensor_new_copy(&attribute->type, data, error);
    const KilnConstant constant = { .tensor = tensor };
    return tensor ? write_tensor(attribute->name, &constant, error) : NULL;
}

static GByteArray *
write_plugin_attr(const KilnPluginColumns *columns, const KilnPluginAttribute *attribute,
                  GError **error)
{
    const char *name = attribute->name;
    const uint32_t first = attribute->first, n = attribute->n;
    switch (attribute->kind) {
    case KILN_OP_ATTRIBUTE_INT:
        return write_int(name, columns->ints.v[first]);
    case KILN_OP_ATTRIBUTE_FLOAT:
        return write_float(name, columns->floats.v[first]);
    case KILN_OP_ATTRIBUTE_STRING: {
        GByteArray *out = attr_new(name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
        kiln_wire_put_text(out, ATTR_S, columns->texts.v[first]);
        return out;
    }
    case KILN_OP_ATTRIBUTE_INTS:
        return write_ints(name, &(KilnInts){ n, columns->ints.v + first, NULL });
    case KILN_OP_ATTRIBUTE_FLOATS:
        return write_floats(name, &(KilnFloats){ n, columns->floats.v + first });
    case KILN_OP_ATTRIBUTE_STRINGS:
        return write_strings(name, &(KilnStrings){ n, columns->texts.v + first });
    case KILN_OP_ATTRIBUTE_TENSOR:
        return write_plugin_tensor(columns, attribute, error);
    }
    return NULL;
}

gboolean
kiln_onnx_note_domain(KilnOnnxExport *export_, const KilnOpset *wanted, GError **error)
{
    for (guint i = 0; i < export_->domains->len; i++) {
        const KilnOpset *opset = &g_array_index(export_->domains, KilnOpset, i);
        if (strcmp(opset->domain, wanted->domain) != 0)
            continue;
        return opset->version == wanted->version ||
               kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "expected opset %" G_GINT64_FORMAT " of domain \"%s\", as other nodes "
                          "have it, found %" G_GINT64_FORMAT,
                          opset->version, wanted->domain, wanted->version);
    }
    if (*wanted->domain && strcmp(wanted->domain, "ai.onnx") != 0)
        g_array_append_val(export_->domains, *wanted);
    return TRUE;
}

gboolean
kiln_onnx_write_plugin(KilnOnnxExport *export_, const KilnNode *node, GByteArray *out,
                       GError **error)
{
    const KilnPluginColumns columns = kiln_node_plugin_columns(node);
    KilnPluginPlace place = { 0 };
    KilnPluginAttribute attribute;
    bool broken;
    kiln_wire_put_text(out, NODE_OP_TYPE, columns.op_type);
    kiln_wire_put_text(out, NODE_DOMAIN, columns.domain);
    if (!kiln_onnx_note_domain(export_, &(KilnOpset){ columns.domain, columns.opset }, error))
        return FALSE;
    while (kiln_plugin_next_attribute(&columns, &place, &attribute, &broken)) {
        g_autoptr(GByteArray) attr = write_plugin_attr(&columns, &attribute, error);
        if (!attr || !kiln_onnx_append(out, NODE_ATTRIBUTE, attr, error))
            return FALSE;
    }
    return TRUE;
}
