/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of an ONNX node: by name and kind into the typed attributes of graph/ops, or taken one
 * by one by converters. Every attribute is accounted for. */
#include "graph/module.h"
#include "graph/module/define.h"
#include "graph/module/flow.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/model.h"
#include "graph/onnx/opset.h"
#include "graph/onnx/tensor.h"
#include "graph/op/norm.h"

#include <string.h>

static const char *
kind_name(int kind)
{
    static const char *const names[] = { "undefined",      "a float",  "an integer",
                                         "a text",         "a tensor", "a graph",
                                         "floats",         "integers", "texts",
                                         "tensors",        "graphs",   "a sparse tensor",
                                         "sparse tensors", "a type",   "types" };
    return kind >= 0 && kind < (int)G_N_ELEMENTS(names) ? names[kind] : "of a later kind";
}

static gboolean
check_kind(const KilnOnnxCall *call, const KilnOnnxAttr *attr, int expected, GError **error)
{
    if (attr->proto->ref_attr_name && *attr->proto->ref_attr_name)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "attribute '%s' refers to one of a function, outside of any",
                               attr->proto->name);
    if (attr->kind != expected)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "attribute '%s': expected %s, found %s", attr->proto->name,
                               kind_name(expected), kind_name(attr->kind));
    return TRUE;
}

/* --- values of attributes --- */

static gboolean
read_text(const KilnOnnxCall *call, const char *name, ProtobufCBinaryData data, const char **out,
          GError **error)
{
    if (!g_utf8_validate((const char *)data.data, (gssize)data.len, NULL))
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "attribute '%s' is not UTF-8 text",
                               name);
    char *copy = kiln_arena_alloc(call->import->module->arena, data.len + 1);
    if (data.len)
        memcpy(copy, data.data, data.len);
    *out = copy;
    return TRUE;
}

static gboolean
read_texts(const KilnOnnxCall *call, const KilnOnnxAttr *attr, KilnStrings *out, GError **error)
{
    const Onnx__AttributeProto *proto = attr->proto;
    out->n = (uint32_t)proto->n_strings;
    out->v = kiln_arena_new0(call->import->module->arena, const char *, proto->n_strings);
    for (size_t i = 0; i < proto->n_strings; i++) {
        if (!read_text(call, proto->name, proto->strings[i], &out->v[i], error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
read_dtype(const KilnOnnxCall *call, const KilnOnnxAttr *attr, KilnDType *out, GError **error)
{
    int64_t number = attr->proto->i;
    if (number < 0 || number > G_MAXINT || !kiln_dtype_from_onnx((int)number, out)) {
        g_autofree char *text = kiln_onnx_dtype_text(number);
        return kiln_onnx_unsupported(call, error, "attribute '%s': element type %s",
                                     attr->proto->name, text);
    }
    return TRUE;
}

static KilnInts
copy_ints(const KilnOnnxCall *call, const KilnOnnxAttr *attr)
{
    return kiln_ints_make(call->import->module->arena, attr->proto->ints,
                          (uint32_t)attr->proto->n_ints);
}

static KilnFloats
copy_floats(const KilnOnnxCall *call, const KilnOnnxAttr *attr)
{
    const Onnx__AttributeProto *proto = attr->proto;
    return (KilnFloats){ (uint32_t)proto->n_floats,
                         kiln_arena_copy(call->import->module->arena, proto->floats,
                                         proto->n_floats * sizeof *proto->floats) };
}

KilnConstant *
kiln_onnx_constant(KilnOnnxCall *call, const char *name, const KilnOnnxTensor *tensor,
                   GError **error)
{
    KilnTensor *loaded = tensor ? kiln_onnx_tensor_load(tensor, &call->import->files, error) : NULL;
    if (!tensor)
        kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "a tensor attribute has no tensor");
    else if (!loaded)
        kiln_prefix_error(error, "%s (%s): ", call->label, call->node->proto->op_type);
    return loaded ? kiln_module_add_constant(call->import->module, name, loaded, NULL) : NULL;
}

/* --- attributes of graph/ops --- */

/* The kind of AttributeProto that fills a kind of graph/ops; 0: read by converters alone. */
static int
onnx_kind(KilnAttrKind kind)
{
    switch (kind) {
    case KILN_ATTR_INT:
    case KILN_ATTR_BOOL:
    case KILN_ATTR_DTYPE:
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    case KILN_ATTR_FLOAT:
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    case KILN_ATTR_STRING:
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    case KILN_ATTR_INTS:
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    case KILN_ATTR_FLOATS:
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
    case KILN_ATTR_STRINGS:
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
    case KILN_ATTR_CONSTANT:
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    case KILN_ATTR_FUNCTION:
        return 0;
    }
    return 0;
}

static gboolean
read_constant(KilnOnnxCall *call, const KilnOnnxAttr *attr, KilnConstant **out, GError **error)
{
    g_autofree char *name = g_strdup_printf("%s.%s", call->base, attr->proto->name);
    *out = kiln_onnx_constant(call, name, attr->tensor, error);
    return *out != NULL;
}

static gboolean
read_attr(KilnOnnxCall *call, const KilnOnnxAttr *attr, const KilnAttrInfo *info, GError **error)
{
    const Onnx__AttributeProto *proto = attr->proto;
    void *field = (char *)call->attrs + info->offset;
    if (!check_kind(call, attr, onnx_kind(info->kind), error))
        return FALSE;
    switch (info->kind) {
    case KILN_ATTR_INT:
        *(KilnC_INT *)field = proto->i;
        return TRUE;
    case KILN_ATTR_BOOL:
        *(KilnC_BOOL *)field = proto->i != 0;
        return TRUE;
    case KILN_ATTR_FLOAT:
        *(KilnC_FLOAT *)field = proto->f;
        return TRUE;
    case KILN_ATTR_STRING:
        return read_text(call, proto->name, proto->s, field, error);
    case KILN_ATTR_INTS:
        *(KilnC_INTS *)field = copy_ints(call, attr);
        return TRUE;
    case KILN_ATTR_FLOATS:
        *(KilnC_FLOATS *)field = copy_floats(call, attr);
        return TRUE;
    case KILN_ATTR_STRINGS:
        return read_texts(call, attr, field, error);
    case KILN_ATTR_DTYPE:
        return read_dtype(call, attr, field, error);
    case KILN_ATTR_CONSTANT:
        return read_constant(call, attr, field, error);
    case KILN_ATTR_FUNCTION:
        break;
    }
    return TRUE;
}

bool
kiln_onnx_attr_is_own(KilnOp op, const char *name)
{
    return (op == KILN_OP_batch_normalization && strcmp(name, "axis") == 0) ||
           (kiln_op_has(op, KILN_TRAIT_RANDOM) && strcmp(name, "stream") == 0) ||
           (kiln_op_counts(op) && (strcmp(name, "count") == 0 || strcmp(name, "dims") == 0)) ||
           (kiln_op_is_flow(op) && strcmp(name, "dims") == 0);
}

gboolean
kiln_onnx_read_attrs(KilnOnnxCall *call, GError **error)
{
    const KilnOpInfo *info = kiln_op_info(call->op);
    if (call->attrs_read)
        return TRUE;
    call->attrs_read = true;
    for (size_t i = 0; i < call->node->n_attrs; i++) {
        const KilnOnnxAttr *attr = &call->node->attrs[i];
        const KilnAttrInfo *row = kiln_attr_find(info->attrs, info->n_attrs, attr->proto->name);
        if (call->taken[i] || !row || row->kind == KILN_ATTR_FUNCTION ||
            kiln_onnx_attr_is_own(call->op, row->name))
            continue;
        call->taken[i] = true;
        if (!read_attr(call, attr, row, error))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_onnx_check_taken(const KilnOnnxCall *call, GError **error)
{
    for (size_t i = 0; i < call->node->n_attrs; i++) {
        const char *name = call->node->attrs[i].proto->name;
        /* Opsets before 6 say here what may be overwritten. */
        bool ignored = call->opset < 6 && strcmp(name, "consumed_inputs") == 0;
        if (call->taken[i] || ignored)
            continue;
        const KilnOnnxMoved *moved = kiln_onnx_moved(call->node->proto->op_type, name, call->opset);
        if (moved)
            return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                                   "'%s' is input %d since opset %d: expected that input, found "
                                   "an attribute; the model imports opset %d",
                                   name, moved->input, moved->since, call->opset);
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "the attribute '%s' is not one of the operator in opset %d", name,
                               call->opset);
    }
    return TRUE;
}

/* --- attributes that converters take --- */

const KilnOnnxAttr *
kiln_onnx_take(KilnOnnxCall *call, const char *name)
{
    for (size_t i = 0; i < call->node->n_attrs; i++) {
        if (strcmp(call->node->attrs[i].proto->name, name) == 0) {
            call->taken[i] = true;
            return &call->node->attrs[i];
        }
    }
    return NULL;
}

gboolean
kiln_onnx_take_int(KilnOnnxCall *call, const char *name, int64_t *out, GError **error)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, name);
    if (attr && !check_kind(call, attr, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, error))
        return FALSE;
    *out = attr ? attr->proto->i : *out;
    return TRUE;
}

gboolean
kiln_onnx_take_flag(KilnOnnxCall *call, const char *name, int64_t *out, GError **error)
{
    if (!kiln_onnx_take_int(call, name, out, error))
        return FALSE;
    return *out == 0 || *out == 1 ||
           kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "%s: expected 0 or 1, found %" G_GINT64_FORMAT, name, *out);
}

gboolean
kiln_onnx_take_float(KilnOnnxCall *call, const char *name, float *out, GError **error)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, name);
    if (attr && !check_kind(call, attr, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, error))
        return FALSE;
    *out = attr ? attr->proto->f : *out;
    return TRUE;
}

gboolean
kiln_onnx_take_text(KilnOnnxCall *call, const char *name, const char **out, GError **error)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, name);
    if (!attr)
        return TRUE;
    return check_kind(call, attr, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, error) &&
           read_text(call, name, attr->proto->s, out, error);
}

gboolean
kiln_onnx_take_texts(KilnOnnxCall *call, const char *name, KilnStrings *out, GError **error)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, name);
    if (!attr)
        return TRUE;
    return check_kind(call, attr, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS, error) &&
           read_texts(call, attr, out, error);
}

gboolean
kiln_onnx_take_ints(KilnOnnxCall *call, const char *name, KilnInts *out, bool *out_there,
                    GError **error)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, name);
    if (attr && !check_kind(call, attr, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, error))
        return FALSE;
    *out_there = attr != NULL;
    if (attr)
        *out = copy_ints(call, attr);
    return TRUE;
}

gboolean
kiln_onnx_take_floats(KilnOnnxCall *call, const char *name, KilnFloats *out, GError **error)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, name);
    if (attr && !check_kind(call, attr, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS, error))
        return FALSE;
    if (attr)
        *out = copy_floats(call, attr);
    return TRUE;
}

gboolean
kiln_onnx_take_dtype(KilnOnnxCall *call, const char *name, KilnDType *out, GError **error)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, name);
    if (!attr)
        return TRUE;
    return check_kind(call, attr, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, error) &&
           read_dtype(call, attr, out, error);
}
