/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models written byte by byte, so that tests can have any version and any mistake. */
#ifndef KILN_TESTS_UNIT_ONNX_BUILDER_H
#define KILN_TESTS_UNIT_ONNX_BUILDER_H

#include "graph/onnx/onnx.h"
#include "graph/onnx/wire.h"
#include "graph/text/text.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <string.h>

enum {
    ONNX_F32 = 1,
    ONNX_U8 = 2,
    ONNX_I32 = 6,
    ONNX_I64 = 7,
    ONNX_STRING = 8,
    ONNX_BOOL = 9,
    ONNX_C128 = 15,
};

/* --- attributes: each call makes one for onnx_node(), which takes it over --- */

static inline GByteArray *
onnx_attr(const char *name, unsigned kind)
{
    GByteArray *attr = g_byte_array_new();
    kiln_wire_put_text(attr, 1, name);
    kiln_wire_put_varint(attr, 20, kind);
    return attr;
}

static inline GByteArray *
onnx_int(const char *name, int64_t value)
{
    GByteArray *attr = onnx_attr(name, 2);
    kiln_wire_put_varint(attr, 3, (uint64_t)value);
    return attr;
}

static inline GByteArray *
onnx_float(const char *name, float value)
{
    GByteArray *attr = onnx_attr(name, 1);
    kiln_wire_put_f32(attr, 2, value);
    return attr;
}

static inline GByteArray *
onnx_text(const char *name, const char *value)
{
    GByteArray *attr = onnx_attr(name, 3);
    kiln_wire_put_text(attr, 4, value);
    return attr;
}

static inline GByteArray *
onnx_texts(const char *name, int n, const char *const *values)
{
    GByteArray *attr = onnx_attr(name, 8);
    for (int i = 0; i < n; i++)
        kiln_wire_put_text(attr, 9, values[i]);
    return attr;
}

static inline GByteArray *
onnx_ints(const char *name, int n, const int64_t *values)
{
    GByteArray *attr = onnx_attr(name, 7);
    for (int i = 0; i < n; i++)
        kiln_wire_put_varint(attr, 8, (uint64_t)values[i]);
    return attr;
}
#define ONNX_INTS(name, ...)                                                                       \
    onnx_ints((name), sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t),                        \
              (int64_t[]){ __VA_ARGS__ })

static inline GByteArray *
onnx_floats(const char *name, int n, const float *values)
{
    GByteArray *attr = onnx_attr(name, 6);
    for (int i = 0; i < n; i++)
        kiln_wire_put_f32(attr, 7, values[i]);
    return attr;
}

/* Takes @graph over. */
static inline GByteArray *
onnx_graph(const char *name, GByteArray *graph)
{
    GByteArray *attr = onnx_attr(name, 5);
    kiln_wire_put_message(attr, 6, graph);
    g_byte_array_unref(graph);
    return attr;
}

/* Takes @tensor over. */
static inline GByteArray *
onnx_tensor_attr(const char *name, GByteArray *tensor)
{
    GByteArray *attr = onnx_attr(name, 4);
    kiln_wire_put_message(attr, 5, tensor);
    g_byte_array_unref(tensor);
    return attr;
}

/* --- graphs --- */

/* @dims: "2,N,?" and "" for a scalar; NULL: no shape at all. @dtype 0: no type at all. */
static inline void
onnx_value(GByteArray *graph, uint32_t field, const char *name, int dtype, const char *dims)
{
    g_autoptr(GByteArray) info = g_byte_array_new();
    g_autoptr(GByteArray) type = g_byte_array_new();
    g_autoptr(GByteArray) tensor = g_byte_array_new();
    g_autoptr(GByteArray) shape = g_byte_array_new();
    g_auto(GStrv) words = g_strsplit(dims ? dims : "", ",", -1);
    for (char **word = words; *word; word++) {
        g_autoptr(GByteArray) dim = g_byte_array_new();
        if (**word && strspn(*word, "0123456789") == strlen(*word))
            kiln_wire_put_varint(dim, 1, g_ascii_strtoull(*word, NULL, 10));
        else if (strcmp(*word, "?") != 0)
            kiln_wire_put_text(dim, 2, *word);
        kiln_wire_put_message(shape, 1, dim);
    }
    kiln_wire_put_varint(tensor, 1, (uint64_t)dtype);
    if (dims)
        kiln_wire_put_message(tensor, 2, shape);
    kiln_wire_put_message(type, 1, tensor);
    kiln_wire_put_text(info, 1, name);
    if (dtype)
        kiln_wire_put_message(info, 2, type);
    kiln_wire_put_message(graph, field, info);
}
#define onnx_input(graph, name, dtype, dims) onnx_value((graph), 11, (name), (dtype), (dims))
#define onnx_output(graph, name, dtype, dims) onnx_value((graph), 12, (name), (dtype), (dims))
#define onnx_value_info(graph, name, dtype, dims) onnx_value((graph), 13, (name), (dtype), (dims))

/* An input or output of a type that is given in bytes of the file. */
static inline void
onnx_value_of_type(GByteArray *graph, uint32_t field, const char *name, const uint8_t *type,
                   size_t n)
{
    g_autoptr(GByteArray) info = g_byte_array_new();
    kiln_wire_put_text(info, 1, name);
    kiln_wire_put_bytes(info, 2, type, n);
    kiln_wire_put_message(graph, field, info);
}

/* An input or output that is a sequence of f32 tensors. */
static inline void
onnx_sequence(GByteArray *graph, uint32_t field, const char *name)
{
    static const uint8_t type[] = { 0x22, 6, 0x0A, 4, 0x0A, 2, 0x08, 1 };
    onnx_value_of_type(graph, field, name, type, sizeof type);
}

/* The same of sequences of f32 tensors, and a sparse tensor of f32: types that Kiln lacks. */
static inline void
onnx_nested_sequence(GByteArray *graph, uint32_t field, const char *name)
{
    static const uint8_t type[] = { 0x22, 10, 0x0A, 8, 0x22, 6, 0x0A, 4, 0x0A, 2, 0x08, 1 };
    onnx_value_of_type(graph, field, name, type, sizeof type);
}

static inline void
onnx_sparse(GByteArray *graph, uint32_t field, const char *name)
{
    static const uint8_t type[] = { 0x42, 2, 0x08, 1 };
    onnx_value_of_type(graph, field, name, type, sizeof type);
}

static inline void
onnx_names(GByteArray *node, uint32_t field, const char *names)
{
    g_auto(GStrv) words = g_strsplit(names, ",", -1);
    for (char **word = words; *word; word++)
        kiln_wire_put_text(node, field, *word);
}

/* @op: "Op", "domain:Op" or "domain:Op.overload". */
static inline void
onnx_put_node(GByteArray *parent, uint32_t field, const char *op, const char *inputs,
              const char *outputs, va_list attrs)
{
    g_autoptr(GByteArray) node = g_byte_array_new();
    onnx_names(node, 1, inputs);
    onnx_names(node, 2, outputs);
    const char *colon = strchr(op, ':'), *dot = colon ? strchr(colon, '.') : NULL;
    g_autofree char *type =
        g_strndup(colon ? colon + 1 : op, dot ? (gsize)(dot - colon - 1) : strlen(op));
    kiln_wire_put_text(node, 4, type);
    if (colon) {
        g_autofree char *domain = g_strndup(op, (gsize)(colon - op));
        kiln_wire_put_text(node, 7, domain);
    }
    if (dot)
        kiln_wire_put_text(node, 8, dot + 1);
    for (GByteArray *attr; (attr = va_arg(attrs, GByteArray *));) {
        kiln_wire_put_message(node, 5, attr);
        g_byte_array_unref(attr);
    }
    kiln_wire_put_message(parent, field, node);
}

/* @inputs, @outputs: names between commas. Then attributes, which are taken over, and NULL. */
static inline void
onnx_node(GByteArray *graph, const char *op, const char *inputs, const char *outputs, ...)
{
    va_list attrs;
    va_start(attrs, outputs);
    onnx_put_node(graph, 1, op, inputs, outputs, attrs);
    va_end(attrs);
}

/* --- functions --- */

/* @id as for nodes. Names between commas. The caller adds nodes and attributes. */
static inline GByteArray *
onnx_function_new(const char *id, const char *inputs, const char *outputs)
{
    GByteArray *function = g_byte_array_new();
    g_auto(GStrv) words = g_strsplit_set(id, ":.", -1);
    kiln_wire_put_text(function, 10, words[0]);
    kiln_wire_put_text(function, 1, words[1]);
    if (words[2])
        kiln_wire_put_text(function, 13, words[2]);
    if (*inputs)
        onnx_names(function, 4, inputs);
    onnx_names(function, 5, outputs);
    return function;
}

static inline void
onnx_function_node(GByteArray *function, const char *op, const char *inputs, const char *outputs,
                   ...)
{
    va_list attrs;
    va_start(attrs, outputs);
    onnx_put_node(function, 7, op, inputs, outputs, attrs);
    va_end(attrs);
}

static inline void
onnx_function_opset(GByteArray *function, int64_t version)
{
    g_autoptr(GByteArray) import = g_byte_array_new();
    kiln_wire_put_text(import, 1, "");
    kiln_wire_put_varint(import, 2, (uint64_t)version);
    kiln_wire_put_message(function, 9, import);
}

/* An attribute of a node in a function that is what attribute @of of the call is. */
static inline GByteArray *
onnx_reference(const char *name, unsigned kind, const char *of)
{
    GByteArray *attr = onnx_attr(name, kind);
    kiln_wire_put_text(attr, 21, of);
    return attr;
}

/* A TensorProto with raw_data; @dims as above. */
static inline GByteArray *
onnx_tensor(const char *name, int dtype, const char *dims, const void *data, size_t size)
{
    GByteArray *tensor = g_byte_array_new();
    g_auto(GStrv) words = g_strsplit(dims, ",", -1);
    for (char **word = words; *word; word++)
        kiln_wire_put_varint(tensor, 1, g_ascii_strtoull(*word, NULL, 10));
    kiln_wire_put_varint(tensor, 2, (uint64_t)dtype);
    if (name)
        kiln_wire_put_text(tensor, 8, name);
    if (data)
        kiln_wire_put_bytes(tensor, 9, data, size);
    return tensor;
}

/* Takes @tensor over. */
static inline void
onnx_initializer(GByteArray *graph, GByteArray *tensor)
{
    kiln_wire_put_message(graph, 5, tensor);
    g_byte_array_unref(tensor);
}

/* Takes @graph over. */
static inline GBytes *
onnx_model(GByteArray *graph, int64_t ir_version, int64_t opset)
{
    g_autoptr(GByteArray) import = g_byte_array_new();
    GByteArray *model = g_byte_array_new();
    kiln_wire_put_text(import, 1, "");
    kiln_wire_put_varint(import, 2, (uint64_t)opset);
    kiln_wire_put_varint(model, 1, (uint64_t)ir_version);
    if (opset)
        kiln_wire_put_message(model, 8, import);
    kiln_wire_put_message(model, 7, graph);
    g_byte_array_unref(graph);
    return g_byte_array_free_to_bytes(model);
}

/* @model with one more field, a message. Takes both over. */
static inline GBytes *
onnx_model_append(GBytes *model, uint32_t field, GByteArray *message)
{
    gsize size;
    const void *data = g_bytes_get_data(model, &size);
    GByteArray *bytes = g_byte_array_new();
    g_byte_array_append(bytes, data, (guint)size);
    g_bytes_unref(model);
    kiln_wire_put_message(bytes, field, message);
    g_byte_array_unref(message);
    return g_byte_array_free_to_bytes(bytes);
}

static inline GByteArray *
onnx_graph_new(const char *name)
{
    GByteArray *graph = g_byte_array_new();
    if (name)
        kiln_wire_put_text(graph, 2, name);
    return graph;
}

/* The body of a Loop that does not stop early and carries `v` of @dims. The caller adds results. */
static inline GByteArray *
onnx_loop_body(const char *dims)
{
    GByteArray *body = onnx_graph_new("body");
    onnx_input(body, "i", ONNX_I64, "");
    onnx_input(body, "go", ONNX_BOOL, "");
    onnx_input(body, "v", ONNX_F32, dims);
    onnx_node(body, "Identity", "go", "go_on", NULL);
    onnx_output(body, "go_on", ONNX_BOOL, "");
    return body;
}

/* --- imports --- */

/* The printed function, or "code: message". Takes @model over. */
static inline char *
onnx_imported(GBytes *model)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = kiln_onnx_import(model, NULL, &error);
    g_bytes_unref(model);
    if (!module)
        return g_strdup_printf("%d: %s", error->code, error->message);
    cr_expect(kiln_module_verify(module, &error), "%s", error ? error->message : "");
    GString *text = g_string_new(NULL);
    kiln_function_print(kiln_module_entry(module), text);
    return g_string_free(text, FALSE);
}

/* Imports @graph as a model of IR version 8 in @opset and compares the text. Takes @graph over. */
static inline void
onnx_expect(GByteArray *graph, int64_t opset, const char *expected)
{
    g_autofree char *found = onnx_imported(onnx_model(graph, 8, opset));
    cr_expect(strcmp(found, expected) == 0, "expected\n%s\nfound\n%s\n", expected, found);
}

/* The same for wrong models: the message must contain @expected. */
static inline void
onnx_expect_error(GByteArray *graph, int64_t opset, KilnError code, const char *expected)
{
    g_autofree char *found = onnx_imported(onnx_model(graph, 8, opset));
    g_autofree char *start = g_strdup_printf("%d: ", (int)code);
    cr_expect(g_str_has_prefix(found, start) && strstr(found, expected),
              "expected error %d with '%s', found\n%s\n", (int)code, expected, found);
}

#endif
