/* SPDX-License-Identifier: Apache-2.0 */
/* What the versions of a model decide: by operator, never for the model as a whole. */
#include "graph/graph.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/wire.h"
#include "graph/text/text.h"
#include "kiln.h"
#include "tests/unit/onnx_builder.h"

#include <string.h>

static GByteArray *
graph_xz(int dtype, const char *dims)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", dtype, dims);
    onnx_output(graph, "z", 0, NULL);
    return graph;
}

/* The line of the text that computes %z. Takes @graph over. */
static char *
line_of(GByteArray *graph, int64_t opset)
{
    g_autofree char *text = onnx_imported(onnx_model(graph, 8, opset));
    const char *line = strstr(text, "  %z = ");
    return line ? g_strndup(line + 2, strcspn(line + 2, "\n")) : g_steal_pointer(&text);
}

static void
expect_line(GByteArray *graph, int64_t opset, const char *expected)
{
    g_autofree char *found = line_of(graph, opset);
    cr_expect_str_eq(found, expected);
}

Test(onnx_gate, operators_that_are_too_old_or_too_new_are_refused_for_themselves)
{
    GByteArray *graph = graph_xz(ONNX_F32, "4");
    onnx_node(graph, "Gelu", "x", "z", NULL);
    expect_line(graph, 19,
                "%z = unknown(%x) {op_type=\"Gelu\", opset=19, reason=\"opset 19 is older than "
                "those that are known for it: 20 to 28\"} : f32[*]");
    graph = graph_xz(ONNX_F32, "4");
    onnx_node(graph, "Gelu", "x", "z", NULL);
    expect_line(graph, 28, "%z = gelu(%x) : f32[4]");
    graph = graph_xz(ONNX_F32, "4");
    onnx_node(graph, "Gelu", "x", "z", NULL);
    expect_line(graph, 30,
                "%z = unknown(%x) {op_type=\"Gelu\", opset=30, reason=\"opset 30 is newer than "
                "those that are known for it: 20 to 28\"} : f32[*]");
    graph = graph_xz(ONNX_F32, "4");
    onnx_node(graph, "Frobnicate", "x", "z", NULL);
    expect_line(graph, 30, "%z = unknown(%x) {op_type=\"Frobnicate\", opset=30} : f32[*]");
}

/* The notes of a model, with a line each. */
static char *
notes_of(GBytes *bytes, const KilnOnnxOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = kiln_onnx_import_with(bytes, NULL, options, &error);
    cr_assert_not_null(module, "%s", error ? error->message : "");
    GString *text = g_string_new(NULL);
    for (guint i = 0; module->notes && i + 1 < module->notes->len; i++)
        g_string_append_printf(text, "%s\n", (const char *)g_ptr_array_index(module->notes, i));
    kiln_function_print(kiln_module_entry(module), text);
    return g_string_free(text, FALSE);
}

Test(onnx_gate, newer_opsets_are_read_where_the_caller_accepts_them)
{
    GByteArray *graph = graph_xz(ONNX_F32, "4");
    onnx_node(graph, "Gelu", "x", "z", NULL);
    g_autoptr(GBytes) model = onnx_model(graph, 8, 30);
    g_autofree char *strict = notes_of(model, &(KilnOnnxOptions){ 0 });
    g_autofree char *lenient = notes_of(model, &(KilnOnnxOptions){ .newer_opsets = true });
    cr_expect(g_str_has_prefix(strict, "graph @g"), "%s", strict);
    cr_expect(g_str_has_prefix(lenient, "opset 30 is newer than 28, the newest that is known: "
                                        "operators are read as those of opset 28\n"),
              "%s", lenient);
    cr_expect(strstr(lenient, "%z = gelu(%x) : f32[4]"), "%s", lenient);
}

Test(onnx_gate, the_c_interface_accepts_them_too)
{
    GByteArray *graph = graph_xz(ONNX_F32, "4");
    onnx_node(graph, "Neg", "x", "z", NULL);
    g_autoptr(GBytes) bytes = onnx_model(graph, 8, 30);
    KilnModelOptions options = KILN_MODEL_OPTIONS_INIT;
    for (int accepted = 0; accepted <= 1; accepted++) {
        options.accept_newer_opsets = accepted;
        g_autoptr(KilnModel) model = kiln_model_load_bytes_with(bytes, "m.onnx", &options, NULL);
        unsigned n = 9;
        cr_assert_not_null(model);
        g_autofree KilnUnsupported **found = kiln_model_check(model, NULL, &n, NULL);
        cr_assert_not_null(found);
        cr_expect_eq(n, accepted ? 0 : 1);
    }
}

Test(onnx_gate, newer_files_and_devices_are_noted)
{
    for (int64_t ir = 3; ir <= 14; ir++) {
        GByteArray *graph = graph_xz(ONNX_F32, "4");
        onnx_node(graph, "Neg", "x", "z", NULL);
        g_autoptr(GBytes) model = onnx_model(graph, ir, 13);
        g_autofree char *text = notes_of(model, &(KilnOnnxOptions){ 0 });
        cr_expect(g_str_has_prefix(text, "graph @g"), "%s", text);
    }
    GByteArray *graph = graph_xz(ONNX_F32, "4");
    g_autoptr(GByteArray) node = g_byte_array_new();
    GByteArray *device = g_byte_array_new();
    kiln_wire_put_text(device, 1, "two GPUs");
    kiln_wire_put_text(node, 1, "x");
    kiln_wire_put_text(node, 2, "z");
    kiln_wire_put_text(node, 4, "Neg");
    kiln_wire_put_message(node, 10, device);
    kiln_wire_put_message(graph, 1, node);
    g_autoptr(GBytes) model = onnx_model_append(onnx_model(graph, 15, 13), 26, device);
    g_autofree char *text = notes_of(model, &(KilnOnnxOptions){ 0 });
    cr_expect(g_str_has_prefix(text, "IR version 15 is newer than 14, the newest that is known: "
                                     "fields that it added are left out\n"
                                     "annotations of devices at 2 places are left out: Kiln "
                                     "computes on one\n"
                                     "graph @g"),
              "%s", text);
}

Test(onnx_gate, types_that_kiln_lacks_are_named)
{
    GByteArray *graph = graph_xz(ONNX_C128, "4");
    onnx_node(graph, "Cast", "x", "z", onnx_int("to", ONNX_F32), NULL);
    expect_line(graph, 21,
                "%z = unknown(%x) {op_type=\"Cast\", opset=21, reason=\"operand 0: element type "
                "complex128 is not supported\"} : f32[*]");
    graph = graph_xz(ONNX_F32, "4");
    onnx_node(graph, "Cast", "x", "z", onnx_int("to", ONNX_C128), NULL);
    expect_line(graph, 21,
                "%z = unknown(%x) {op_type=\"Cast\", opset=21, reason=\"attribute 'to': element "
                "type complex128\"} : f32[*]");
    graph = onnx_graph_new("g");
    onnx_nested_sequence(graph, 11, "x");
    onnx_output(graph, "z", 0, NULL);
    onnx_node(graph, "Identity", "x", "z", NULL);
    expect_line(graph, 21,
                "%z = unknown(%x) {op_type=\"Identity\", opset=21, reason=\"operand 0: a sequence "
                "of this kind is not supported\"} : f32[*]");
    graph = onnx_graph_new("g");
    onnx_sparse(graph, 11, "x");
    onnx_output(graph, "z", 0, NULL);
    onnx_node(graph, "Identity", "x", "z", NULL);
    expect_line(graph, 21,
                "%z = unknown(%x) {op_type=\"Identity\", opset=21, reason=\"operand 0: a sparse "
                "tensor is not supported\"} : f32[*]");
}

Test(onnx_gate, sequences_are_values)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_sequence(graph, 11, "x");
    onnx_output(graph, "z", 0, NULL);
    onnx_node(graph, "Identity", "x", "z", NULL);
    expect_line(graph, 21, "%z = identity(%x) : sequence(f32[*])");
}

/* --- forms that changed after opset 21 --- */

Test(onnx_gate, casts_have_a_rounding_for_8_bit_floats_alone)
{
    GByteArray *graph = graph_xz(ONNX_F32, "4");
    onnx_node(graph, "Cast", "x", "z", onnx_int("to", ONNX_I64), onnx_text("round_mode", "nearest"),
              NULL);
    expect_line(graph, 24, "%z = cast(%x) {to=i64} : i64[4]");
    graph = graph_xz(ONNX_F32, "4");
    onnx_node(graph, "Cast", "x", "z", onnx_int("to", 24), onnx_text("round_mode", "nearest"),
              onnx_int("saturate", 0), NULL);
    expect_line(graph, 24,
                "%z = cast(%x) {to=f8e8m0, saturate=false, round_mode=\"nearest\"} : f8e8m0[4]");
    graph = graph_xz(ONNX_F32, "4");
    onnx_node(graph, "Cast", "x", "z", onnx_int("to", 23), onnx_int("saturate", 0), NULL);
    expect_line(graph, 24, "%z = cast(%x) {to=f4e2m1} : f4e2m1[4]");
}

Test(onnx_gate, blocks_go_to_channels_in_two_orders)
{
    GByteArray *graph = graph_xz(ONNX_F32, "1,1,4,4");
    onnx_node(graph, "SpaceToDepth", "x", "z", onnx_int("blocksize", 2), onnx_text("mode", "CRD"),
              NULL);
    expect_line(graph, 28, "%z = space_to_depth(%x) {blocksize=2, mode=\"CRD\"} : f32[1,4,2,2]");
}

Test(onnx_gate, ranges_of_16_bits_are_added_up_in_f32)
{
    for (int stash = 0; stash <= 10; stash += 10) {
        GByteArray *graph = onnx_graph_new("g");
        onnx_input(graph, "a", 10, "");
        onnx_input(graph, "b", 10, "");
        onnx_input(graph, "c", 10, "");
        onnx_output(graph, "z", 0, NULL);
        onnx_node(graph, "Range", "a,b,c", "z", onnx_int("stash_type", stash ? stash : 1), NULL);
        g_autofree char *found = line_of(graph, 27);
        cr_expect_str_eq(found, stash ? "%z = unknown(%a, %b, %c) {op_type=\"Range\", opset=27, "
                                        "reason=\"stash_type=f16\"} : f32[*]"
                                      : "%z = range(%a, %b, %c) : f16[?]");
    }
}

static GByteArray *
quantized(const char *op, const char *attr, int type)
{
    GByteArray *graph = graph_xz(op[0] == 'Q' ? ONNX_F32 : ONNX_U8, "4");
    onnx_input(graph, "s", ONNX_F32, "");
    onnx_node(graph, op, "x,s", "z", onnx_int(attr, type), NULL);
    return graph;
}

/* Integers have an operator of their own, floats have none. */
Test(onnx_gate, products_of_8_bit_floats_are_those_of_reals)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "a", 17, "2,3");
    onnx_input(graph, "b", 17, "3,4");
    onnx_input(graph, "s", ONNX_F32, "");
    onnx_input(graph, "t", ONNX_F32, "4");
    onnx_input(graph, "o", 17, "");
    onnx_input(graph, "p", 17, "4");
    onnx_output(graph, "z", 0, NULL);
    onnx_node(graph, "QLinearMatMul", "a,s,o,b,t,p,s,o", "z", NULL);
    g_autofree char *found = onnx_imported(onnx_model(graph, 8, 21));
    cr_expect_str_eq(strchr(found, '\n') + 1,
                     "  %z.dequantize_linear = dequantize_linear(%a, %s, %o) {axis=-2} : f32[2,3]\n"
                     "  %z.dequantize_linear_1 = dequantize_linear(%b, %t, %p) {axis=-1} : "
                     "f32[3,4]\n"
                     "  %z.matmul = matmul(%z.dequantize_linear, %z.dequantize_linear_1) : "
                     "f32[2,4]\n"
                     "  %z = quantize_linear(%z.matmul, %s, %o) : f8e4m3fn[2,4]\n"
                     "  return %z\n"
                     "}\n");
}

Test(onnx_gate, quantizing_has_a_precision_and_a_type)
{
    expect_line(quantized("QuantizeLinear", "precision", ONNX_F32), 23,
                "%z = quantize_linear(%x, %s) : u8[4]");
    expect_line(quantized("QuantizeLinear", "precision", 11), 23,
                "%z = unknown(%x, %s) {op_type=\"QuantizeLinear\", opset=23, "
                "reason=\"precision=f64\"} : f32[*]");
    expect_line(quantized("DequantizeLinear", "output_dtype", ONNX_F32), 23,
                "%z = dequantize_linear(%x, %s) : f32[4]");
    expect_line(quantized("DequantizeLinear", "output_dtype", 10), 23,
                "%z = cast(%z.dequantize_linear) {to=f16} : f16[4]");
    expect_line(quantized("DequantizeLinear", "output_dtype", ONNX_I64), 23,
                "%z = unknown(%x, %s) {op_type=\"DequantizeLinear\", opset=23, "
                "reason=\"output_dtype=i64\"} : f32[*]");
}
