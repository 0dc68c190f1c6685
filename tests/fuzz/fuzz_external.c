/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models whose weights lie in other files. A line is an entry of a tensor's external data,
 * `location=file.bin`; an empty one begins the next tensor. */
#include "kiln.h"
#include "runtime/model.h"
#include "tests/fuzz/fuzz.h"

#include "onnx.pb-c.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    MAX_TENSORS = 4,
    MAX_ENTRIES = 6,
    ELEMENTS = 4,
};

typedef struct {
    Onnx__TensorProto proto;
    Onnx__StringStringEntryProto entries[MAX_ENTRIES];
    Onnx__StringStringEntryProto *pointers[MAX_ENTRIES];
    int64_t dims[1];
} Tensor;

static void
tensor_init(Tensor *tensor, char *name)
{
    onnx__tensor_proto__init(&tensor->proto);
    tensor->proto.name = name;
    tensor->proto.has_data_type = true;
    tensor->proto.data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    tensor->proto.has_data_location = true;
    tensor->proto.data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    tensor->dims[0] = ELEMENTS;
    tensor->proto.dims = tensor->dims;
    tensor->proto.n_dims = 1;
    tensor->proto.external_data = tensor->pointers;
}

static void
add_entry(Tensor *tensor, char *line)
{
    size_t n = tensor->proto.n_external_data;
    if (n == MAX_ENTRIES)
        return;
    char *value = strchr(line, '=');
    if (value)
        *value++ = '\0';
    onnx__string_string_entry_proto__init(&tensor->entries[n]);
    tensor->entries[n].key = line;
    tensor->entries[n].value = value ? value : line + strlen(line);
    tensor->pointers[n] = &tensor->entries[n];
    tensor->proto.n_external_data++;
}

/* The first tensor is the result; others are there to be read. */
static GByteArray *
model_of(Tensor *tensors, size_t n)
{
    Onnx__TensorProto *initializers[MAX_TENSORS];
    for (size_t i = 0; i < n; i++)
        initializers[i] = &tensors[i].proto;
    char *inputs[] = { tensors[0].proto.name }, *outputs[] = { "y" };
    Onnx__NodeProto node = ONNX__NODE_PROTO__INIT, *nodes[] = { &node };
    node.op_type = "Identity";
    node.n_input = node.n_output = 1;
    node.input = inputs;
    node.output = outputs;
    Onnx__ValueInfoProto result = ONNX__VALUE_INFO_PROTO__INIT, *results[] = { &result };
    result.name = "y";
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    graph.name = "g";
    graph.n_node = graph.n_output = 1;
    graph.node = nodes;
    graph.output = results;
    graph.n_initializer = n;
    graph.initializer = initializers;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = { &opset };
    opset.has_version = true;
    opset.version = 17;
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    model.has_ir_version = true;
    model.ir_version = 8;
    model.graph = &graph;
    model.n_opset_import = 1;
    model.opset_import = opsets;
    GByteArray *out = g_byte_array_new();
    g_byte_array_set_size(out, (guint)onnx__model_proto__get_packed_size(&model));
    onnx__model_proto__pack(&model, out->data);
    return out;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const float weights[4 * ELEMENTS] = { 1, 2, 3 };
    static char *const names[MAX_TENSORS] = { "a", "b", "c", "d" };
    Tensor tensors[MAX_TENSORS] = { 0 };
    size_t n = 1;
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    tensor_init(&tensors[0], names[0]);
    for (char **line = lines; *line; line++) {
        if (**line)
            add_entry(&tensors[n - 1], *line);
        else if (n < MAX_TENSORS)
            tensor_init(&tensors[n], names[n]), n++;
    }
    g_autoptr(GByteArray) bytes = model_of(tensors, n);
    fuzz_file(".bin", (const uint8_t *)weights, sizeof weights);
    const char *path = fuzz_file(".onnx", bytes->data, bytes->len);
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModel) model = kiln_model_load(path, &error);
    fuzz_expect(model, error);
    if (model)
        fuzz_compile(model, (unsigned)size);
    return 0;
}
