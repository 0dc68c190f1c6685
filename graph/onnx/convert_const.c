/* SPDX-License-Identifier: Apache-2.0 */
/* Constant in all its spellings. */
#include "graph/module.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/model.h"
#include "graph/onnx/scope.h"
#include "graph/onnx/tensor.h"

/* A tensor of numbers that the attribute lists; rank 0 for one number, 1 for a list. */
static KilnTensor *
listed(KilnDType dtype, bool is_list, const void *values, size_t n, GError **error)
{
    KilnType type = kiln_type_make(dtype, is_list ? 1 : 0, (int64_t[]){ (int64_t)n });
    return kiln_tensor_new_copy(&type, values, error);
}

static KilnTensor *
strings(const ProtobufCBinaryData *texts, size_t n, bool is_list, GError **error)
{
    const KilnType type =
        kiln_type_make(KILN_DTYPE_string, is_list ? 1 : 0, (int64_t[]){ (int64_t)n });
    return kiln_onnx_texts_load(&type, texts, n, error);
}

static KilnTensor *
constant_tensor(KilnOnnxCall *call, const KilnOnnxAttr *attr, GError **error)
{
    const Onnx__AttributeProto *proto = attr->proto;
    switch (attr->kind) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
        return attr->tensor ? kiln_onnx_tensor_load(attr->tensor, &call->import->files, error)
                            : NULL;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR:
        return attr->sparse ? kiln_onnx_sparse_load(attr->sparse, &call->import->files, error)
                            : NULL;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        return listed(KILN_DTYPE_f32, false, &proto->f, 1, error);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        return listed(KILN_DTYPE_f32, true, proto->floats, proto->n_floats, error);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        return listed(KILN_DTYPE_i64, false, &proto->i, 1, error);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        return listed(KILN_DTYPE_i64, true, proto->ints, proto->n_ints, error);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        return strings(&proto->s, 1, false, error);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
        return strings(proto->strings, proto->n_strings, true, error);
    default:
        return NULL;
    }
}

gboolean
kiln_onnx_convert_constant(KilnOnnxCall *call, GError **error)
{
    static const struct {
        const char *name;
        int kind;
    } spellings[] = {
        { "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR },
        { "value_float", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT },
        { "value_floats", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS },
        { "value_int", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT },
        { "value_ints", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS },
        { "value_string", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING },
        { "value_strings", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS },
        { "sparse_value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR },
    };
    const KilnOnnxAttr *attr = NULL;
    int kind = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(spellings) && !attr; i++) {
        attr = kiln_onnx_take(call, spellings[i].name);
        kind = spellings[i].kind;
    }
    if (!attr || attr->kind != kind)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "has no value");
    g_autoptr(GError) failure = NULL;
    KilnTensor *tensor = constant_tensor(call, attr, &failure);
    if (!tensor && !failure)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "its value is empty");
    if (!tensor)
        return kiln_onnx_throw(call, (KilnError)failure->code, error, "%s", failure->message);
    const char *name =
        call->n_results ? kiln_onnx_shown(call->scope, call->node->proto->output[0]) : "constant";
    kiln_onnx_attrs(call, const)->value =
        kiln_module_add_constant(call->import->module, name, tensor, NULL);
    return TRUE;
}
