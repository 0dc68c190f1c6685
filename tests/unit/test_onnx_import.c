/* SPDX-License-Identifier: Apache-2.0 */
/* The importer: names, types, constants, subgraphs, what is unknown, what is wrong, and whole
 * corpora, damaged ones too. */
#include "graph/module.h"
#include "tests/unit/onnx_builder.h"

#include "graph/base/random.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/wire.h"
#include "graph/op/structure.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define CORPUS "/usr/share/libonnx-testdata/data"

static GByteArray *
graph_xz(const char *dims)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_F32, dims);
    onnx_output(graph, "z", ONNX_F32, NULL);
    return graph;
}

/* --- names and types --- */

Test(onnx_import, dims_keep_their_names)
{
    GByteArray *graph = onnx_graph_new(NULL);
    onnx_input(graph, "x", ONNX_F32, "batch size,?,3");
    onnx_input(graph, "y", ONNX_F32, "batch_size,2*n,3");
    onnx_input(graph, "any", ONNX_I64, NULL);
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "Neg", "x", "z", NULL);
    onnx_expect(
        graph, 13,
        "graph @main(%x: f32[batch_size,x_1,3], %y: f32[batch_size_1,_2_n,3], %any: i64[*]) "
        "{\n"
        "  %z = neg(%x) : f32[batch_size,x_1,3]\n"
        "  return %z\n"
        "}\n");
}

Test(onnx_import, names_of_the_model_come_first)
{
    GByteArray *graph = graph_xz("2,3");
    onnx_node(graph, "Clip", "x", "a", onnx_float("min", 1), NULL);
    onnx_node(graph, "Neg", "x", "a.min", NULL);
    onnx_node(graph, "Add", "a,a.min", "z", NULL);
    onnx_expect(graph, 10,
                "graph @g(%x: f32[2,3]) {\n"
                "  %a.min_1 = const @a.min : f32[]\n"
                "  %a = clip(%x, %a.min_1) : f32[2,3]\n"
                "  %a.min = neg(%x) : f32[2,3]\n"
                "  %z = add(%a, %a.min) : f32[2,3]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_import, a_value_that_is_returned_twice)
{
    GByteArray *graph = graph_xz("2,3");
    onnx_output(graph, "z_1", ONNX_F32, NULL);
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "Neg", "x", "z", NULL);
    onnx_node(graph, "Abs", "x", "z_1", NULL);
    onnx_expect(graph, 13,
                "graph @g(%x: f32[2,3]) {\n"
                "  %z = neg(%x) : f32[2,3]\n"
                "  %z_1 = abs(%x) : f32[2,3]\n"
                "  return %z, %z_1, %z as z_2, %z as z_3\n"
                "}\n");
}

/* Each gets its number at once. */
Test(onnx_import, a_value_that_is_returned_often, .timeout = 20)
{
    GByteArray *graph = graph_xz("2,3");
    for (int i = 0; i < 20000; i++)
        onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "Neg", "x", "z", NULL);
    g_autofree char *text = onnx_imported(onnx_model(graph, 8, 13));
    cr_expect_not_null(strstr(text, ", %z as z_20000"));
}

Test(onnx_import, absent_operands_and_results)
{
    GByteArray *graph = graph_xz("2,3,4");
    onnx_input(graph, "w", ONNX_F32, "1,20,4");
    onnx_input(graph, "r", ONNX_F32, "1,20,5");
    onnx_input(graph, "h", ONNX_F32, "1,3,5");
    onnx_node(graph, "LSTM", "x,w,r,,,h,,", ",z,", onnx_int("hidden_size", 5), NULL);
    onnx_expect(graph, 14,
                "graph @g(%x: f32[2,3,4], %w: f32[1,20,4], %r: f32[1,20,5], %h: f32[1,3,5]) {\n"
                "  %lstm, %z = lstm(%x, %w, %r, _, _, %h) {hidden_size=5} : f32[2,1,3,5], "
                "f32[1,3,5]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_import, declared_numbers_fill_what_inference_cannot_tell)
{
    GByteArray *graph = graph_xz("2,3");
    onnx_input(graph, "shape", ONNX_I64, "2");
    onnx_node(graph, "Reshape", "x,shape", "a", NULL);
    onnx_value_info(graph, "a", ONNX_F32, "3,N");
    onnx_node(graph, "Neg", "a", "z", NULL);
    onnx_value_info(graph, "z", ONNX_F32, "3,2");
    onnx_node(graph, "Abs", "a", "b", NULL);
    onnx_value_info(graph, "b", ONNX_F32, "4,2");
    onnx_expect(graph, 14,
                "graph @g(%x: f32[2,3], %shape: i64[2]) {\n"
                "  %a = reshape(%x, %shape) : f32[3,?]\n"
                "  %z = neg(%a) : f32[3,2]\n"
                "  %b = abs(%a) : f32[3,?]\n"
                "  return %z\n"
                "}\n");
}

/* --- constants --- */

Test(onnx_import, initializers_listed_as_inputs_are_constants)
{
    const float w[] = { 1, 2, 3 };
    GByteArray *graph = graph_xz("2,3");
    onnx_input(graph, "w", ONNX_F32, "3");
    onnx_initializer(graph, onnx_tensor("w", ONNX_F32, "3", w, sizeof w));
    onnx_node(graph, "Add", "x,w", "z", NULL);
    g_autofree char *text = onnx_imported(onnx_model(graph, 3, 7));
    cr_expect_str_eq(text, "graph @g(%x: f32[2,3]) {\n"
                           "  %w = const @w : f32[3]\n"
                           "  %z = add(%x, %w) : f32[2,3]\n"
                           "  return %z\n"
                           "}\n");
}

/* The one constant of a model made of @tensor (taken over); NULL and @error where it is refused. */
static KilnModule *
module_of(GByteArray *tensor, GError **error)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_initializer(graph, tensor);
    g_autoptr(GBytes) bytes = onnx_model(graph, 8, 13);
    return kiln_onnx_import(bytes, NULL, error);
}

static void
expect_elements(GByteArray *tensor, KilnDType dtype, const void *elements, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = module_of(tensor, &error);
    cr_assert_not_null(module, "%s", error ? error->message : "");
    const KilnConstant *constant = g_ptr_array_index(module->constants, 0);
    cr_expect_eq(constant->type.dtype, dtype);
    g_autoptr(GBytes) view = kiln_tensor_view(constant->tensor, &error);
    g_autoptr(GBytes) expected = g_bytes_new(elements, size);
    cr_expect(g_bytes_equal(view, expected), "%s", kiln_dtype_name(dtype));
}

Test(onnx_import, elements_in_typed_lists)
{
    GByteArray *tensor = onnx_tensor("t", ONNX_F32, "3", NULL, 0);
    const float three[] = { 1, -2, 3.5F };
    kiln_wire_put_bytes(tensor, 4, three, sizeof three); /* one packed run: not copied */
    expect_elements(tensor, KILN_DTYPE_f32, three, sizeof three);
    tensor = onnx_tensor("t", ONNX_F32, "3", NULL, 0);
    kiln_wire_put_bytes(tensor, 4, three, 4); /* a run and single numbers */
    kiln_wire_put_f32(tensor, 4, three[1]);
    kiln_wire_put_f32(tensor, 4, three[2]);
    expect_elements(tensor, KILN_DTYPE_f32, three, sizeof three);
    tensor = onnx_tensor("t", 11, "1", NULL, 0);
    kiln_wire_put_bytes(tensor, 10, &(double){ 0.1 }, 8);
    expect_elements(tensor, KILN_DTYPE_f64, &(double){ 0.1 }, 8);
    tensor = onnx_tensor("t", ONNX_I64, "1", NULL, 0);
    kiln_wire_put_varint(tensor, 7, (uint64_t)-5);
    expect_elements(tensor, KILN_DTYPE_i64, &(int64_t){ -5 }, 8);
    tensor = onnx_tensor("t", 3, "2", NULL, 0);
    kiln_wire_put_varint(tensor, 5, (uint64_t)-128);
    kiln_wire_put_varint(tensor, 5, 127);
    expect_elements(tensor, KILN_DTYPE_i8, (int8_t[]){ -128, 127 }, 2);
    tensor = onnx_tensor("t", 10, "1", NULL, 0);
    kiln_wire_put_varint(tensor, 5, 0xFC00);
    expect_elements(tensor, KILN_DTYPE_f16, &(uint16_t){ 0xFC00 }, 2);
    tensor = onnx_tensor("t", 12, "1", NULL, 0);
    kiln_wire_put_varint(tensor, 11, UINT32_MAX);
    expect_elements(tensor, KILN_DTYPE_u32, &(uint32_t){ UINT32_MAX }, 4);
    tensor = onnx_tensor("t", ONNX_BOOL, "2", NULL, 0);
    kiln_wire_put_bytes(tensor, 5, "\1\0", 2);
    expect_elements(tensor, KILN_DTYPE_bool, "\1\0", 2);
}

Test(onnx_import, elements_of_few_bits)
{
    /* raw_data: packed. */
    expect_elements(onnx_tensor("t", 22, "3", "\x21\x0f", 2), KILN_DTYPE_i4, "\1\2\xf", 3);
    expect_elements(onnx_tensor("t", 25, "5", "\x39\x01", 2), KILN_DTYPE_u2, "\1\2\3\0\1", 5);
    expect_elements(onnx_tensor("t", 27, "2", "\x81\x0f", 2), KILN_DTYPE_f6e2m3, "\1\x3e", 2);
    expect_elements(onnx_tensor("t", 17, "2", "\x7e\x80", 2), KILN_DTYPE_f8e4m3fn, "\x7e\x80", 2);
    /* int32_data: a byte of elements of 2 and 4 bits, or one element. */
    GByteArray *tensor = onnx_tensor("t", 23, "3", NULL, 0);
    kiln_wire_put_varint(tensor, 5, 0xf1);
    kiln_wire_put_varint(tensor, 5, 0x02);
    expect_elements(tensor, KILN_DTYPE_f4e2m1, "\1\xf\2", 3);
    tensor = onnx_tensor("t", 28, "2", NULL, 0);
    kiln_wire_put_varint(tensor, 5, 0x3f);
    kiln_wire_put_varint(tensor, 5, 0x01);
    expect_elements(tensor, KILN_DTYPE_f6e3m2, "\x3f\1", 2);
    tensor = onnx_tensor("t", 24, "1", NULL, 0);
    kiln_wire_put_varint(tensor, 5, 0xfe);
    expect_elements(tensor, KILN_DTYPE_f8e8m0, "\xfe", 1);
}

/* @tensor is taken over. */
static void
expect_refused(GByteArray *tensor, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = module_of(tensor, &error);
    cr_assert_null(module, "expected '%s'", message);
    cr_expect_eq(error->code, (int)KILN_ERROR_FORMAT);
    cr_expect(strstr(error->message, message) && strstr(error->message, "byte "),
              "expected '%s', found '%s'", message, error->message);
}

Test(onnx_import, tensors_that_contradict_themselves)
{
    expect_refused(onnx_tensor("t", ONNX_F32, "3", "12345678", 8),
                   "tensor 't': expected 12 bytes for f32[3], found 8");
    expect_refused(onnx_tensor("t", ONNX_F32, "3", NULL, 0),
                   "expected 3 elements for f32[3], found 0");
    expect_refused(onnx_tensor("t", 0, "3", "", 0), "tensor 't' has no element type");
    expect_refused(onnx_tensor(NULL, ONNX_U8, "1", "a", 1), "an initializer has no name");
    expect_refused(onnx_tensor("t", ONNX_F32, "4294967296,4294967296", "", 0), "too big");
    expect_refused(onnx_tensor("t", ONNX_U8, "18446744073709551615", "", 0), "dim 0 is -1");
    expect_refused(onnx_tensor("t", 22, "3", "abc", 3), "expected 2 bytes for i4[3], found 3");
    expect_refused(onnx_tensor("t", 22, "3", NULL, 0), "expected 3 elements for i4[3], found 0");
    GByteArray *tensor = onnx_tensor("t", ONNX_U8, "1", NULL, 0);
    kiln_wire_put_varint(tensor, 5, 256);
    expect_refused(tensor, "tensor 't' has elements out of range");
    tensor = onnx_tensor("t", ONNX_F32, "1", "abcd", 4);
    kiln_wire_put_f32(tensor, 4, 1);
    expect_refused(tensor, "elements in a field of another type");
    tensor = onnx_tensor("t", ONNX_F32, "2", NULL, 0);
    kiln_wire_put_bytes(tensor, 10, &(double){ 0.1 }, 8);
    expect_refused(tensor, "elements in a field of another type");
    tensor = onnx_tensor("t", ONNX_U8, "1", "a", 1);
    kiln_wire_put_bytes(tensor, 3, "", 0);
    expect_refused(tensor, "expected a whole tensor, found a segment");
    tensor = onnx_tensor("t", 8, "1", NULL, 0);
    kiln_wire_put_bytes(tensor, 6, "\xFF", 1);
    expect_refused(tensor, "expected UTF-8, found other bytes in element 0");
}

/* --- subgraphs --- */

Test(onnx_import, branches_see_the_values_around_them)
{
    GByteArray *yes = onnx_graph_new("yes"), *no = onnx_graph_new("no");
    onnx_node(yes, "Neg", "x", "a", NULL);
    onnx_output(yes, "a", ONNX_F32, NULL);
    onnx_node(no, "Identity", "x", "late", NULL);
    onnx_node(no, "Concat", "late,late", "a", onnx_int("axis", 1), NULL);
    onnx_output(no, "a", ONNX_F32, NULL);
    GByteArray *graph = graph_xz("2,3");
    onnx_input(graph, "c", ONNX_BOOL, "");
    onnx_node(graph, "If", "c", "r", onnx_graph("then_branch", yes), onnx_graph("else_branch", no),
              NULL);
    onnx_node(graph, "Neg", "r", "late", NULL);
    onnx_node(graph, "Neg", "late", "z", NULL);
    onnx_expect(graph, 13,
                "graph @g(%x: f32[2,3], %c: bool[]) {\n"
                "  %r = if(%c) then @yes {\n"
                "    %a = neg(%x) : f32[2,3]\n"
                "    return %a\n"
                "  } else @no {\n"
                "    %late_1 = identity(%x) : f32[2,3]\n"
                "    %a = concat(%late_1, %late_1) {axis=1} : f32[2,6]\n"
                "    return %a\n"
                "  } : f32[2,?]\n"
                "  %late = neg(%r) : f32[2,?]\n"
                "  %z = neg(%late) : f32[2,?]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_import, loops_carry_and_stack)
{
    GByteArray *body = onnx_loop_body("2");
    onnx_node(body, "Add", "v,x", "w", NULL);
    onnx_node(body, "Neg", "w", "s", NULL);
    onnx_output(body, "w", ONNX_F32, "2");
    onnx_output(body, "s", ONNX_F32, "2");
    GByteArray *graph = graph_xz("2");
    onnx_input(graph, "n", ONNX_I64, "");
    onnx_node(graph, "Loop", "n,,x", "z,all", onnx_graph("body", body), NULL);
    g_autofree char *text = onnx_imported(onnx_model(graph, 8, 13));
    cr_expect(strstr(text, "%z, %all = loop(%n, _, %x)"), "%s", text);
    cr_expect(strstr(text, " : f32[2], f32[?,2]\n"), "%s", text);
}

Test(onnx_import, scans_take_slices)
{
    GByteArray *body = onnx_graph_new("body");
    onnx_input(body, "s", 0, NULL);
    onnx_input(body, "e", 0, NULL);
    onnx_node(body, "Add", "s,e", "t", NULL);
    onnx_node(body, "Identity", "t", "u", NULL);
    onnx_output(body, "t", ONNX_F32, NULL);
    onnx_output(body, "u", ONNX_F32, NULL);
    GByteArray *graph = graph_xz("5,7");
    onnx_input(graph, "s0", ONNX_F32, "5");
    onnx_node(graph, "Scan", "s0,x", "z,all", onnx_graph("body", body),
              onnx_int("num_scan_inputs", 1), ONNX_INTS("scan_input_axes", 1),
              ONNX_INTS("scan_output_axes", -1), NULL);
    g_autofree char *text = onnx_imported(onnx_model(graph, 8, 13));
    cr_expect(strstr(text, "(%s: f32[5], %e: f32[5])"), "%s", text);
    cr_expect(strstr(text, " : f32[5], f32[5,7]\n"), "%s", text);
}

/* --- what Kiln does not have --- */

Test(onnx_import, unknown_operators_are_all_listed)
{
    GByteArray *graph = graph_xz("2,3");
    onnx_node(graph, "Frobnicate", "x", "a", NULL);
    onnx_value_info(graph, "a", ONNX_F32, "7");
    onnx_node(graph, "com.example:Neg", "a", "b", onnx_int("anything", 1), NULL);
    onnx_node(graph, "Gather", "x,b", "c", NULL);
    onnx_node(graph, "Neg", "c", "z", NULL);
    onnx_expect(graph, 13,
                "graph @g(%x: f32[2,3]) {\n"
                "  %a = unknown(%x) {op_type=\"Frobnicate\", opset=13} : f32[7]\n"
                "  %b = unknown(%a) {op_type=\"Neg\", domain=\"com.example\"} : f32[*]\n"
                "  %c = unknown(%x, %b) {op_type=\"Gather\", opset=13, reason=\"c (gather): "
                "operand 1: expected i32, i64, found f32[*]\", untyped=true} : f32[*]\n"
                "  %z = neg(%c) : f32[*]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xz("2,3");
    onnx_node(graph, "Neg", "x", "z", NULL);
    onnx_expect(graph, 29,
                "graph @g(%x: f32[2,3]) {\n"
                "  %z = unknown(%x) {op_type=\"Neg\", opset=29, reason=\"opset 29 is newer than "
                "those that are known for it: 1 to 28\"} : f32[*]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_import, types_that_kiln_lacks_make_operators_unknown)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_nested_sequence(graph, 11, "list");
    onnx_sparse(graph, 11, "sparse");
    onnx_sequence(graph, 11, "known");
    onnx_input(graph, "small", ONNX_C128, "2");
    onnx_initializer(graph, onnx_tensor("w", ONNX_C128, "2", "ab", 2));
    onnx_node(graph, "Identity", "list", "same", NULL);
    onnx_node(graph, "Identity", "sparse", "also", NULL);
    onnx_node(graph, "Identity", "known", "value", NULL);
    onnx_node(graph, "Cast", "small", "a", onnx_int("to", ONNX_F32), NULL);
    onnx_node(graph, "Cast", "w", "b", onnx_int("to", ONNX_F32), NULL);
    onnx_output(graph, "a", ONNX_F32, "2");
    g_autofree char *text = onnx_imported(onnx_model(graph, 8, 19));
    cr_expect(strstr(text, "%w = unknown() {op_type=\"Constant\""), "%s", text);
    cr_expect(strstr(text, "%same = unknown(%list) {op_type=\"Identity\""), "%s", text);
    cr_expect(strstr(text, "%also = unknown(%sparse) {op_type=\"Identity\""), "%s", text);
    cr_expect(strstr(text, "%value = identity(%known) : sequence(f32[*])"), "%s", text);
    cr_expect(strstr(text, "%a = unknown(%small) {op_type=\"Cast\""), "%s", text);
    cr_expect(strstr(text, "%b = unknown(%w) {op_type=\"Cast\""), "%s", text);
}

/* --- what is wrong --- */

Test(onnx_import, broken_graphs)
{
    GByteArray *graph = graph_xz("2");
    onnx_node(graph, "Neg", "a", "z", NULL);
    onnx_node(graph, "Neg", "z", "a", NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "z (Neg): reads 'a', which is computed later");
    graph = graph_xz("2");
    onnx_node(graph, "Neg", "nowhere", "z", NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID,
                      "z (Neg): reads 'nowhere', which nothing computes");
    graph = graph_xz("2");
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "graph 'g': nothing computes the output 'z'");
    graph = graph_xz("2");
    onnx_node(graph, "Neg", "x", "z", NULL);
    onnx_node(graph, "Neg", "x", "z", NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "computes 'z', which is there already");
    graph = graph_xz("2");
    onnx_node(graph, "Split", "x", "z,z", NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "two values are called 'z'");
    graph = graph_xz("2");
    onnx_input(graph, "x", ONNX_F32, "2");
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "two inputs are called 'x'");
    graph = graph_xz("2");
    onnx_input(graph, "typeless", 0, NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_FORMAT, "input 'typeless' has no type");
    graph = graph_xz("2");
    onnx_node(graph, "Neg", "x", "z", NULL);
    onnx_expect_error(graph, 0, KILN_ERROR_INVALID, "the model imports no version");
    graph = graph_xz("2");
    onnx_node(graph, "Neg", "", "z", NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "z (neg): expected 1 operands, found 0");
    graph = graph_xz("2");
    onnx_node(graph, "Neg", "nowhere", "", NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "node at byte 43 (Neg): reads 'nowhere'");
    graph = graph_xz("2");
    onnx_node(graph, "Elu", "x", "z", onnx_int("alpha", 1), NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID,
                      "z (Elu): attribute 'alpha': expected a float, found an integer");
    graph = graph_xz("2");
    onnx_node(graph, "Elu", "x", "z", onnx_float("beta", 1), NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "the attribute 'beta' is not one of");
    g_autofree char *text = onnx_imported(g_bytes_new_static("\x08\x08", 2));
    cr_expect(strstr(text, "the file has no graph"), "%s", text);
    g_autofree char *empty = onnx_imported(g_bytes_new_static("", 0));
    cr_expect(strstr(empty, "not an ONNX model: the file has no graph"), "%s", empty);
}

Test(onnx_import, subgraphs_are_bounded_in_depth)
{
    GByteArray *graph = graph_xz("2");
    onnx_node(graph, "Neg", "x", "z", NULL);
    for (int i = 0; i < 70; i++) {
        GByteArray *around = graph_xz("2");
        GByteArray *copy = onnx_graph_new(NULL);
        g_byte_array_append(copy, graph->data, graph->len);
        onnx_node(around, "If", "x", "z", onnx_graph("then_branch", graph), NULL);
        graph = around;
        g_byte_array_unref(copy);
    }
    onnx_expect_error(graph, 13, KILN_ERROR_FORMAT, "graphs are nested too deeply");
}

/* --- external data --- */

/* A model with one tensor of 4 bytes in @location, in a new directory, which it returns. */
static char *
write_external(const char *location, const char *offset)
{
    char *directory = g_dir_make_tmp("kiln-onnx-XXXXXX", NULL);
    const char *entries[][2] = { { "location", location }, { "offset", offset } };
    GByteArray *tensor = onnx_tensor("w", ONNX_F32, "1", NULL, 0);
    for (size_t i = 0; i < 2; i++) {
        g_autoptr(GByteArray) entry = g_byte_array_new();
        kiln_wire_put_text(entry, 1, entries[i][0]);
        kiln_wire_put_text(entry, 2, entries[i][1]);
        kiln_wire_put_message(tensor, 13, entry);
    }
    kiln_wire_put_varint(tensor, 14, 1);
    GByteArray *graph = onnx_graph_new("g");
    onnx_initializer(graph, tensor);
    g_autoptr(GBytes) model = onnx_model(graph, 8, 13);
    gsize size;
    const char *data = g_bytes_get_data(model, &size);
    g_autofree char *inside = g_build_filename(directory, "inside", NULL);
    g_mkdir(inside, 0700);
    g_autofree char *path = g_build_filename(inside, "model.onnx", NULL);
    g_autofree char *weights = g_build_filename(inside, "w.bin", NULL);
    g_autofree char *secret = g_build_filename(directory, "secret", NULL);
    g_autofree char *link = g_build_filename(inside, "link", NULL);
    cr_assert(g_file_set_contents(path, data, (gssize)size, NULL));
    cr_assert(g_file_set_contents(weights, "0123ABCD", 8, NULL));
    cr_assert(g_file_set_contents(secret, "4567ABCD", 8, NULL));
    cr_assert_eq(symlink(secret, link), 0);
    return directory;
}

static void
remove_external(char *directory)
{
    const char *names[] = {
        "inside/model.onnx", "inside/w.bin", "inside/link", "inside", "secret", "."
    };
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(directory, names[i], NULL);
        g_remove(path);
    }
    g_rmdir(directory);
    g_free(directory);
}

/* Imports it; NULL: as it should be, else part of the message. */
static void
check_external(const char *location, const char *offset, const char *message)
{
    char *directory = write_external(location, offset);
    g_autofree char *path = g_build_filename(directory, "inside", "model.onnx", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = kiln_onnx_import_file(path, &error);
    if (message) {
        cr_expect_null(module, "%s", location);
        cr_expect(error && strstr(error->message, message) && strstr(error->message, path) &&
                      strstr(error->message, "tensor 'w'"),
                  "expected '%s', found '%s'", message, error ? error->message : "nothing");
    } else {
        cr_assert_not_null(module, "%s", error ? error->message : "");
        const KilnTensor *tensor = kiln_module_find_constant(module, "w")->tensor;
        cr_expect(memcmp(g_bytes_get_data(tensor->bytes, NULL), "ABCD", 4) == 0);
        cr_expect(g_str_has_suffix(tensor->file, "/inside/w.bin"));
        cr_expect_eq(tensor->file_offset, 4);
    }
    remove_external(directory);
}

Test(onnx_import, external_data_stays_beside_the_model)
{
    check_external("w.bin", "4", NULL);
    check_external("./w.bin", "4", NULL);
    check_external("w.bin", "5", "expected 4 bytes at 5, the file has 8");
    check_external("w.bin", "18446744073709551615", "is no number");
    check_external("w.bin", "-1", "is no number");
    check_external("missing.bin", "0", "No such file or directory");
    check_external("../secret", "0", "expected a path below the model's directory");
    check_external("a/../../secret", "0", "expected a path below the model's directory");
    check_external("/etc/passwd", "0", "expected a path below the model's directory");
    check_external("", "0", "expected a path below the model's directory");
    check_external("link", "0", "leads out of the model's directory");
    check_external(".", "0", "is no regular file");
}

/* --- whole corpora --- */

static unsigned
count_unknown(const KilnFunction *function)
{
    unsigned n = 0;
    kiln_foreach_node (node, function) {
        n += node->op == KILN_OP_unknown;
        kiln_foreach_region (region, node)
            n += count_unknown(region);
    }
    return n;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Paths of DIR/…/model.onnx, @depth directories down, sorted. */
static void
find_models(const char *directory, int depth, GPtrArray *out)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    GDir *dir = g_dir_open(directory, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));)
        g_ptr_array_add(names, g_build_filename(directory, name, NULL));
    if (dir)
        g_dir_close(dir);
    g_ptr_array_sort(names, by_name);
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *path = g_build_filename(g_ptr_array_index(names, i), "model.onnx", NULL);
        if (depth > 1)
            find_models(g_ptr_array_index(names, i), depth - 1, out);
        else if (g_file_test(path, G_FILE_TEST_EXISTS))
            g_ptr_array_add(out, g_steal_pointer(&path));
    }
}

/* Imports and verifies all; returns how many have unknown operators. */
static unsigned
import_all(const GPtrArray *paths)
{
    unsigned unknown = 0;
    for (guint i = 0; i < paths->len; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnModule) module = kiln_onnx_import_file(g_ptr_array_index(paths, i), &error);
        cr_expect(module && kiln_module_verify(module, &error), "%s", error ? error->message : "");
        unknown += module && count_unknown(kiln_module_entry(module)) > 0;
    }
    return unknown;
}

Test(onnx_import, backend_cases)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    find_models(CORPUS, 2, paths);
    if (!paths->len)
        cr_skip_test("no " CORPUS);
    unsigned unknown = import_all(paths);
    cr_log_info("%u models, %u with unknown operators", paths->len, unknown);
    cr_expect_leq(unknown, 82);
}

Test(onnx_import, shared_models)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    find_models(KILN_SHARED_DIR "/models", 1, paths);
    if (!paths->len)
        cr_skip_test("no models beside the source tree");
    cr_expect_eq(import_all(paths), 0);
}

/* --- damage --- */

/* Small models that between them have all that the format has. */
static const char *const victims[] = {
    CORPUS "/node/test_scan9_sum/model.onnx",
    CORPUS "/node/test_loop11/model.onnx",
    CORPUS "/node/test_if_seq/model.onnx",
    CORPUS "/node/test_lstm_with_peepholes/model.onnx",
    CORPUS "/pytorch-converted/test_PReLU_2d/model.onnx",
    CORPUS "/pytorch-operator/test_operator_pad/model.onnx",
    CORPUS "/simple/test_expand_shape_model1/model.onnx",
    CORPUS "/node/test_layer_normalization_4d_axis1_expanded/model.onnx",
};

/* Whatever happens to the bytes, the import ends, with a module that verifies or with a message. */
static void
try_import(const char *data, size_t size)
{
    /* An exact copy: reading past its end is reading past an allocation. */
    g_autoptr(GBytes) bytes = g_bytes_new(data, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = kiln_onnx_import(bytes, NULL, &error);
    cr_assert((module == NULL) == (error != NULL));
    if (module)
        cr_assert(kiln_module_verify(module, &error), "%s", error ? error->message : "");
}

Test(onnx_import, every_truncation_is_an_answer)
{
    for (size_t v = 0; v < G_N_ELEMENTS(victims); v++) {
        g_autofree char *data = NULL;
        gsize size;
        if (!g_file_get_contents(victims[v], &data, &size, NULL))
            cr_skip_test("no " CORPUS);
        for (size_t n = 0; n < size; n += 1 + size / 800)
            try_import(data, n);
    }
}

Test(onnx_import, every_flipped_bit_is_an_answer, .timeout = 60)
{
    for (size_t v = 0; v < G_N_ELEMENTS(victims); v++) {
        g_autofree char *data = NULL;
        gsize size;
        if (!g_file_get_contents(victims[v], &data, &size, NULL))
            cr_skip_test("no " CORPUS);
        for (uint64_t i = 0; i < 1500; i++) {
            g_autofree char *copy = g_memdup2(data, size);
            for (uint64_t k = 0; k <= i % 3; k++) {
                uint64_t bits = kiln_random_bits(v * 10 + k, i);
                copy[bits % size] ^= (char)(1 << (bits >> 32) % 8);
            }
            try_import(copy, size);
        }
    }
}
