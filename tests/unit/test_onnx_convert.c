/* SPDX-License-Identifier: Apache-2.0 */
/* Old and odd forms of operators, each brought to the form of ops.def. */
#include "graph/onnx/opset.h"
#include "graph/op.h"
#include "tests/unit/onnx_builder.h"

#include <string.h>

static GByteArray *
graph_xy(const char *x, const char *y)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_F32, x);
    if (y)
        onnx_input(graph, "y", ONNX_F32, y);
    onnx_output(graph, "z", ONNX_F32, NULL);
    return graph;
}

Test(onnx_convert, broadcast_axis_aligns_the_second_operand)
{
    GByteArray *graph = graph_xy("2,3,4,5", "3,4");
    onnx_node(graph, "Add", "x,y", "z", onnx_int("broadcast", 1), onnx_int("axis", 1), NULL);
    onnx_expect(graph, 6,
                "graph @g(%x: f32[2,3,4,5], %y: f32[3,4]) {\n"
                "  %z.axes = const @z.axes : i64[1]\n"
                "  %z.unsqueeze = unsqueeze(%y, %z.axes) : f32[3,4,1]\n"
                "  %z = add(%x, %z.unsqueeze) : f32[2,3,4,5]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("2,3,4,5", "4,5");
    onnx_node(graph, "Sub", "x,y", "z", onnx_int("broadcast", 1), NULL);
    onnx_expect(graph, 6,
                "graph @g(%x: f32[2,3,4,5], %y: f32[4,5]) {\n"
                "  %z = sub(%x, %y) : f32[2,3,4,5]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("2,3", "3,4");
    onnx_node(graph, "Mul", "x,y", "z", onnx_int("broadcast", 1), onnx_int("axis", 1), NULL);
    onnx_expect_error(graph, 6, KILN_ERROR_SHAPE, "axis 1 does not align rank 2 with rank 2");
    graph = graph_xy("2,3", "3");
    onnx_node(graph, "Mul", "x,y", "z", onnx_int("axis", 1), NULL);
    onnx_expect_error(graph, 7, KILN_ERROR_INVALID, "the attribute 'axis' is not one of");
}

Test(onnx_convert, slope_of_prelu_belongs_to_channels)
{
    GByteArray *graph = graph_xy("2,3,4,5", "3");
    onnx_node(graph, "PRelu", "x,y", "z", NULL);
    onnx_expect(graph, 6,
                "graph @g(%x: f32[2,3,4,5], %y: f32[3]) {\n"
                "  %z.axes = const @z.axes : i64[2]\n"
                "  %z.unsqueeze = unsqueeze(%y, %z.axes) : f32[3,1,1]\n"
                "  %z = prelu(%x, %z.unsqueeze) : f32[2,3,4,5]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_convert, bounds_of_clip_become_operands)
{
    GByteArray *graph = graph_xy("2,3", NULL);
    onnx_node(graph, "Clip", "x", "z", onnx_float("max", 6), NULL);
    onnx_expect(graph, 6,
                "graph @g(%x: f32[2,3]) {\n"
                "  %z.max = const @z.max : f32[]\n"
                "  %z = clip(%x, _, %z.max) : f32[2,3]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_convert, casts)
{
    GByteArray *graph = graph_xy("2", NULL);
    onnx_node(graph, "Cast", "x", "z", onnx_text("to", "INT64"), NULL);
    onnx_expect(graph, 1,
                "graph @g(%x: f32[2]) {\n"
                "  %z = cast(%x) {to=i64} : i64[2]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("2", NULL);
    onnx_input(graph, "like", ONNX_U8, "7,7");
    onnx_node(graph, "CastLike", "x,like", "z", onnx_int("saturate", 0), NULL);
    onnx_expect(graph, 19,
                "graph @g(%x: f32[2], %like: u8[7,7]) {\n"
                "  %z = cast(%x) {to=u8} : u8[2]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("2", NULL);
    onnx_node(graph, "Cast", "x", "z", NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "z (Cast): lacks the attribute 'to'");
    graph = graph_xy("2", NULL);
    onnx_node(graph, "Cast", "x", "z", onnx_int("to", ONNX_C128), NULL);
    onnx_expect(
        graph, 19,
        "graph @g(%x: f32[2]) {\n"
        "  %z = unknown(%x) {op_type=\"Cast\", opset=19, reason=\"attribute 'to': element type "
        "complex128\"} : f32[*]\n"
        "  return %z\n"
        "}\n");
}

Test(onnx_convert, dropout_of_old)
{
    GByteArray *graph = graph_xy("2,3", NULL);
    onnx_output(graph, "mask", ONNX_F32, NULL);
    onnx_node(graph, "Dropout", "x", "z,mask", onnx_float("ratio", 0.25F), onnx_int("is_test", 1),
              NULL);
    onnx_expect(graph, 6,
                "graph @g(%x: f32[2,3]) {\n"
                "  %z.ratio = const @z.ratio : f32[]\n"
                "  %z, %dropout_1 = dropout(%x, %z.ratio) : f32[2,3], bool[2,3]\n"
                "  %mask = cast(%dropout_1) : f32[2,3]\n"
                "  return %z, %mask\n"
                "}\n");
}

Test(onnx_convert, axes_of_reductions_become_operands)
{
    GByteArray *graph = graph_xy("2,3,4", NULL);
    onnx_node(graph, "ReduceMean", "x", "z", ONNX_INTS("axes", -1, 1), onnx_int("keepdims", 0),
              NULL);
    onnx_expect(graph, 13,
                "graph @g(%x: f32[2,3,4]) {\n"
                "  %z.axes = const @z.axes : i64[2]\n"
                "  %z = reduce_mean(%x, %z.axes) {keepdims=false} : f32[2]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("2,3,4", NULL);
    onnx_node(graph, "ReduceSum", "x", "z", NULL);
    onnx_expect(graph, 11,
                "graph @g(%x: f32[2,3,4]) {\n"
                "  %z = reduce_sum(%x) : f32[1,1,1]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("2,3,4", NULL);
    onnx_node(graph, "ReduceSum", "x", "z", ONNX_INTS("axes", 1), NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID,
                      "'axes' is input 1 since opset 13: expected that input, found an attribute");
}

Test(onnx_convert, softmax_folds_to_two_dims)
{
    GByteArray *graph = graph_xy("2,3,4", NULL);
    onnx_node(graph, "Softmax", "x", "z", NULL);
    onnx_expect(graph, 11,
                "graph @g(%x: f32[2,3,4]) {\n"
                "  %z.flatten = flatten(%x) : f32[2,12]\n"
                "  %z.softmax = softmax(%z.flatten) : f32[2,12]\n"
                "  %z.shape = const @z.shape : i64[3]\n"
                "  %z = reshape(%z.softmax, %z.shape) {allowzero=true} : f32[2,3,4]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("N,3,4", NULL);
    onnx_node(graph, "Hardmax", "x", "z", onnx_int("axis", -2), NULL);
    onnx_expect(graph, 12,
                "graph @g(%x: f32[N,3,4]) {\n"
                "  %z.flatten = flatten(%x) {axis=-2} : f32[N,12]\n"
                "  %z.hardmax = hardmax(%z.flatten) : f32[N,12]\n"
                "  %z.shape = shape(%x) : i64[3]\n"
                "  %z = reshape(%z.hardmax, %z.shape) {allowzero=true} : f32[N,3,4]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("N,3", NULL);
    onnx_node(graph, "LogSoftmax", "x", "z", NULL);
    onnx_expect(graph, 11,
                "graph @g(%x: f32[N,3]) {\n"
                "  %z = log_softmax(%x) : f32[N,3]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_convert, attributes_that_became_operands)
{
    GByteArray *graph = graph_xy("2,1,3,4", NULL);
    onnx_node(graph, "Squeeze", "x", "a", ONNX_INTS("axes", 1), NULL);
    onnx_node(graph, "Unsqueeze", "a", "b", ONNX_INTS("axes", 0), NULL);
    onnx_node(graph, "Slice", "b", "c", ONNX_INTS("starts", 1), ONNX_INTS("ends", 9), NULL);
    onnx_node(graph, "Pad", "b", "d", ONNX_INTS("pads", 0, 0, 0, 1, 0, 0, 0, 1),
              onnx_float("value", 2), NULL);
    onnx_node(graph, "TopK", "d", "e,f", onnx_int("k", 2), NULL);
    onnx_node(graph, "Identity", "e", "z", NULL);
    onnx_expect(graph, 8,
                "graph @g(%x: f32[2,1,3,4]) {\n"
                "  %a.axes = const @a.axes : i64[1]\n"
                "  %a = squeeze(%x, %a.axes) : f32[2,3,4]\n"
                "  %b.axes = const @b.axes : i64[1]\n"
                "  %b = unsqueeze(%a, %b.axes) : f32[1,2,3,4]\n"
                "  %c.starts = const @c.starts : i64[1]\n"
                "  %c.ends = const @c.ends : i64[1]\n"
                "  %c = slice(%b, %c.starts, %c.ends) : f32[0,2,3,4]\n"
                "  %d.pads = const @d.pads : i64[8]\n"
                "  %d.value = const @d.value : f32[]\n"
                "  %d = pad(%b, %d.pads, %d.value) : f32[1,2,3,6]\n"
                "  %e.k = const @e.k : i64[1]\n"
                "  %e, %f = top_k(%d, %e.k) : f32[1,2,3,2], i64[1,2,3,2]\n"
                "  %z = identity(%e) : f32[1,2,3,2]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("2,3", NULL);
    onnx_node(graph, "Reshape", "x", "z", ONNX_INTS("shape", 3, -1), NULL);
    onnx_expect(graph, 1,
                "graph @g(%x: f32[2,3]) {\n"
                "  %z.shape = const @z.shape : i64[2]\n"
                "  %z = reshape(%x, %z.shape) : f32[3,2]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_convert, split_counts_its_results)
{
    GByteArray *graph = graph_xy("6,2", NULL);
    onnx_node(graph, "Split", "x", "z,a,", NULL);
    onnx_expect(graph, 13,
                "graph @g(%x: f32[6,2]) {\n"
                "  %z, %a, %z_2 = split(%x) {num_outputs=3} : f32[2,2], f32[2,2], f32[2,2]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("6,2", NULL);
    onnx_node(graph, "Split", "x", "z,a", ONNX_INTS("split", 4, 2), NULL);
    onnx_expect(graph, 11,
                "graph @g(%x: f32[6,2]) {\n"
                "  %z.split = const @z.split : i64[2]\n"
                "  %z, %a = split(%x, %z.split) : f32[4,2], f32[2,2]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("6,2", NULL);
    onnx_node(graph, "Split", "x", "z,a", onnx_int("num_outputs", 3), NULL);
    onnx_expect_error(graph, 18, KILN_ERROR_INVALID, "num_outputs: expected 2");
}

Test(onnx_convert, upsample_and_resize)
{
    GByteArray *graph = graph_xy("1,1,2,2", NULL);
    onnx_node(graph, "Upsample", "x", "z", onnx_floats("scales", 4, (const float[]){ 1, 1, 2, 3 }),
              NULL);
    onnx_expect(graph, 7,
                "graph @g(%x: f32[1,1,2,2]) {\n"
                "  %z.scales = const @z.scales : f32[4]\n"
                "  %z = resize(%x, _, %z.scales) {coordinate_transformation_mode=\"asymmetric\", "
                "nearest_mode=\"floor\"} : f32[1,1,4,6]\n"
                "  return %z\n"
                "}\n");
    const float halves[] = { 1, 1, 0.5F, 0.5F };
    graph = graph_xy("1,1,2,2", NULL);
    onnx_initializer(graph, onnx_tensor("s", ONNX_F32, "4", halves, sizeof halves));
    onnx_node(graph, "Resize", "x,s", "z", NULL);
    onnx_expect(graph, 10,
                "graph @g(%x: f32[1,1,2,2]) {\n"
                "  %s = const @s : f32[4]\n"
                "  %z = resize(%x, _, %s) {coordinate_transformation_mode=\"asymmetric\", "
                "nearest_mode=\"ceil\"} : f32[1,1,1,1]\n"
                "  return %z\n"
                "}\n");
    const int64_t sizes[] = { 1, 1, 4, 4 };
    graph = graph_xy("1,1,2,2", NULL);
    onnx_initializer(graph, onnx_tensor("none", ONNX_F32, "0", "", 0));
    onnx_initializer(graph, onnx_tensor("sizes", ONNX_I64, "4", sizes, sizeof sizes));
    onnx_node(graph, "Resize", "x,none,none,sizes", "z",
              onnx_text("coordinate_transformation_mode", "tf_half_pixel_for_nn"),
              onnx_text("nearest_mode", "floor"), NULL);
    onnx_expect(graph, 11,
                "graph @g(%x: f32[1,1,2,2]) {\n"
                "  %none = const @none : f32[0]\n"
                "  %sizes = const @sizes : i64[4]\n"
                "  %z = resize(%x, _, _, %sizes) {nearest_mode=\"round_prefer_ceil\"} : "
                "f32[1,1,4,4]\n"
                "  return %z\n"
                "}\n");
}

/* Without a mode before opset 16, and with another default since. */
Test(onnx_convert, roi_align)
{
    for (int opset = 10; opset <= 16; opset += 6) {
        GByteArray *graph = graph_xy("1,3,8,9", "5,4");
        onnx_input(graph, "b", ONNX_I64, "5");
        onnx_node(graph, "RoiAlign", "x,y,b", "z", onnx_int("output_height", 2), NULL);
        g_autofree char *expected = g_strdup_printf(
            "graph @g(%%x: f32[1,3,8,9], %%y: f32[5,4], %%b: i64[5]) {\n"
            "  %%z = roi_align(%%x, %%y, %%b) {%soutput_height=2} : f32[5,3,2,1]\n"
            "  return %%z\n"
            "}\n",
            opset < 16 ? "coordinate_transformation_mode=\"output_half_pixel\", " : "");
        onnx_expect(graph, opset, expected);
    }
}

Test(onnx_convert, grid_sample)
{
    GByteArray *graph = graph_xy("1,2,3,4", "1,5,6,2");
    onnx_node(graph, "GridSample", "x,y", "z", onnx_int("align_corners", 1),
              onnx_text("mode", "bicubic"), onnx_text("padding_mode", "border"), NULL);
    onnx_expect(graph, 16,
                "graph @g(%x: f32[1,2,3,4], %y: f32[1,5,6,2]) {\n"
                "  %z = grid_sample(%x, %y) {align_corners=true, mode=\"cubic\", "
                "padding_mode=\"border\"} : f32[1,2,5,6]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("1,2,3,4", "1,5,6,2");
    onnx_node(graph, "GridSample", "x,y", "z", onnx_text("mode", "bilinear"), NULL);
    onnx_expect(graph, 16,
                "graph @g(%x: f32[1,2,3,4], %y: f32[1,5,6,2]) {\n"
                "  %z = grid_sample(%x, %y) : f32[1,2,5,6]\n"
                "  return %z\n"
                "}\n");
}

static GByteArray *
graph_of_norm(const char *outputs, GByteArray *attr)
{
    GByteArray *graph = graph_xy("2,4,5", "4");
    onnx_node(graph, "BatchNormalization", "x,y,y,y,y", outputs, attr, NULL);
    return graph;
}

Test(onnx_convert, batch_normalization_of_old)
{
    static const char plain[] = "graph @g(%x: f32[2,4,5], %y: f32[4]) {\n"
                                "  %z = batch_normalization(%x, %y, %y, %y, %y) : f32[2,4,5]\n"
                                "  return %z\n"
                                "}\n";
    onnx_expect(graph_of_norm("z", onnx_int("is_test", 1)), 6, plain);
    onnx_expect(graph_of_norm("z,a,b,c,d", NULL), 9, plain);
    GByteArray *graph = graph_of_norm("z,a,b,c,d", NULL);
    onnx_output(graph, "d", ONNX_F32, NULL);
    g_autofree char *text = onnx_imported(onnx_model(graph, 8, 9));
    cr_expect(strstr(text, "unknown(") && strstr(text, "statistics saved by training are read"));
    graph = graph_of_norm("z,a,b", NULL);
    onnx_output(graph, "a", ONNX_F32, NULL);
    onnx_output(graph, "b", ONNX_F32, NULL);
    onnx_expect(graph, 9,
                "graph @g(%x: f32[2,4,5], %y: f32[4]) {\n"
                "  %z, %a, %b = batch_normalization(%x, %y, %y, %y, %y) {training_mode=true} : "
                "f32[2,4,5], f32[4], f32[4]\n"
                "  return %z, %a, %b\n"
                "}\n");
}

/* An attribute that Kiln's own operator has beside those of ONNX. */
Test(onnx_convert, batch_normalization_has_no_axis)
{
    onnx_expect_error(graph_of_norm("z", onnx_int("axis", 2)), 15, KILN_ERROR_INVALID,
                      "the attribute 'axis' is not one of");
}

Test(onnx_convert, random_operators_have_no_stream)
{
    static const char *const ops[] = { "RandomNormalLike", "RandomUniformLike", "Bernoulli" };
    for (size_t i = 0; i < G_N_ELEMENTS(ops); i++) {
        GByteArray *graph = graph_xy("2,3", NULL);
        onnx_node(graph, ops[i], "x", "z", onnx_int("stream", 7), NULL);
        onnx_expect_error(graph, 15, KILN_ERROR_INVALID, "the attribute 'stream' is not one of");
    }
}

Test(onnx_convert, batch_normalization_per_element)
{
    GByteArray *graph = graph_xy("2,4", "4");
    onnx_node(graph, "BatchNormalization", "x,y,y,y,y", "z", onnx_int("spatial", 0), NULL);
    onnx_expect(graph, 7,
                "graph @g(%x: f32[2,4], %y: f32[4]) {\n"
                "  %z.epsilon = const @z.epsilon : f32[]\n"
                "  %z.add = add(%y, %z.epsilon) : f32[4]\n"
                "  %z.sqrt = sqrt(%z.add) : f32[4]\n"
                "  %z.sub = sub(%x, %y) : f32[2,4]\n"
                "  %z.div = div(%z.sub, %z.sqrt) : f32[2,4]\n"
                "  %z.mul = mul(%z.div, %y) : f32[2,4]\n"
                "  %z = add(%z.mul, %y) : f32[2,4]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_convert, layer_normalization_scaled_per_row)
{
    GByteArray *graph = graph_xy("2,3,4", "3,1");
    onnx_node(graph, "LayerNormalization", "x,y,y", "z,mean", NULL);
    onnx_output(graph, "mean", ONNX_F32, NULL);
    onnx_expect(
        graph, 17,
        "graph @g(%x: f32[2,3,4], %y: f32[3,1]) {\n"
        "  %z.one = const @z.one : f32[]\n"
        "  %z.normalized, %mean = layer_normalization(%x, %z.one) : f32[2,3,4], f32[2,3,1]\n"
        "  %z.mul = mul(%z.normalized, %y) : f32[2,3,4]\n"
        "  %z = add(%z.mul, %y) : f32[2,3,4]\n"
        "  return %z, %mean\n"
        "}\n");
    graph = graph_xy("2,3,4", "3,4");
    onnx_node(graph, "LayerNormalization", "x,y,y", "z", onnx_int("axis", 1), NULL);
    onnx_expect(graph, 17,
                "graph @g(%x: f32[2,3,4], %y: f32[3,4]) {\n"
                "  %z = layer_normalization(%x, %y, %y) {axis=1} : f32[2,3,4]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_convert, group_normalization_per_group)
{
    GByteArray *graph = graph_xy("2,4,5", "2");
    onnx_node(graph, "GroupNormalization", "x,y,y", "z", onnx_int("num_groups", 2), NULL);
    g_autofree char *text = onnx_imported(onnx_model(graph, 8, 18));
    cr_expect(strstr(text, "%z.expand = expand(%z.reshape, %z.per_group) : f32[2,2]"), "%s", text);
    cr_expect(strstr(text, "%z.reshape_1 = reshape(%z.expand, %z.flat) : f32[4]"), "%s", text);
    cr_expect(strstr(text, " = group_normalization(%x, %z.reshape_1, %z.reshape_3) {num_groups=2} "
                           ": f32[2,4,5]"),
              "%s", text);
    graph = graph_xy("2,4,5", "4");
    onnx_node(graph, "GroupNormalization", "x,y,y", "z", onnx_int("num_groups", 2), NULL);
    onnx_expect(graph, 21,
                "graph @g(%x: f32[2,4,5], %y: f32[4]) {\n"
                "  %z = group_normalization(%x, %y, %y) {num_groups=2} : f32[2,4,5]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_convert, quantize_linear_of_later_opsets)
{
    GByteArray *graph = graph_xy("2,3", "");
    onnx_node(graph, "QuantizeLinear", "x,y", "z", onnx_int("output_dtype", 3), NULL);
    onnx_expect(graph, 21,
                "graph @g(%x: f32[2,3], %y: f32[]) {\n"
                "  %z.zero_point = const @z.zero_point : i8[]\n"
                "  %z = quantize_linear(%x, %y, %z.zero_point) : i8[2,3]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("2,4", "2,2");
    onnx_node(graph, "QuantizeLinear", "x,y", "z", onnx_int("block_size", 2), NULL);
    onnx_expect(graph, 21,
                "graph @g(%x: f32[2,4], %y: f32[2,2]) {\n"
                "  %z = quantize_linear(%x, %y) {block_size=2} : u8[2,4]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_convert, operators_of_opset_1)
{
    GByteArray *graph = graph_xy("2,3", "2,4");
    onnx_node(graph, "Concat", "x,y", "a", NULL);
    onnx_node(graph, "Selu", "a", "z", NULL);
    onnx_expect(graph, 1,
                "graph @g(%x: f32[2,3], %y: f32[2,4]) {\n"
                "  %a = concat(%x, %y) {axis=1} : f32[2,7]\n"
                "  %z = selu(%a) {alpha=1.6732, gamma=1.0507} : f32[2,7]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("1,1,2,2", NULL);
    onnx_node(graph, "Upsample", "x", "z", onnx_float("height_scale", 2),
              onnx_float("width_scale", 3), onnx_text("mode", "bilinear"), NULL);
    onnx_expect(graph, 1,
                "graph @g(%x: f32[1,1,2,2]) {\n"
                "  %z.scales = const @z.scales : f32[4]\n"
                "  %z = resize(%x, _, %z.scales) {coordinate_transformation_mode=\"asymmetric\", "
                "mode=\"linear\", nearest_mode=\"floor\"} : f32[1,1,4,6]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_convert, tile_of_opset_1)
{
    const int64_t three = 3, last = -1, far = 2;
    GByteArray *graph = graph_xy("2,2", NULL);
    onnx_initializer(graph, onnx_tensor("n", ONNX_I64, "", &three, sizeof three));
    onnx_initializer(graph, onnx_tensor("axis", ONNX_I64, "", &last, sizeof last));
    onnx_node(graph, "Tile", "x,n,axis", "z", NULL);
    onnx_expect(graph, 1,
                "graph @g(%x: f32[2,2]) {\n"
                "  %n = const @n : i64[]\n"
                "  %axis = const @axis : i64[]\n"
                "  %z.repeats = const @z.repeats : i64[2]\n"
                "  %z = tile(%x, %z.repeats) : f32[2,6]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("2,2", NULL);
    onnx_initializer(graph, onnx_tensor("n", ONNX_I64, "", &three, sizeof three));
    onnx_initializer(graph, onnx_tensor("axis", ONNX_I64, "", &far, sizeof far));
    onnx_node(graph, "Tile", "x,n,axis", "z", NULL);
    g_autofree char *text = onnx_imported(onnx_model(graph, 8, 1));
    cr_expect(strstr(text, "axis 2 of rank 2"), "%s", text);
    graph = graph_xy("2,2", NULL);
    onnx_input(graph, "n", ONNX_I64, "");
    onnx_node(graph, "Tile", "x,n,n", "z", NULL);
    g_autofree char *open = onnx_imported(onnx_model(graph, 8, 1));
    cr_expect(strstr(open, "a count or axis that is no constant"), "%s", open);
}

Test(onnx_convert, activations_of_recurrent_operators)
{
    const char *const names[] = { "LeakyRelu" };
    const float alpha = 0.5F;
    GByteArray *graph = graph_xy("3,1,2", NULL);
    onnx_input(graph, "w", ONNX_F32, "1,4,2");
    onnx_input(graph, "r", ONNX_F32, "1,4,4");
    onnx_node(graph, "RNN", "x,w,r", "z", onnx_int("hidden_size", 4),
              onnx_texts("activations", 1, names), onnx_floats("activation_alpha", 1, &alpha),
              onnx_int("output_sequence", 1), NULL);
    onnx_expect(graph, 1,
                "graph @g(%x: f32[3,1,2], %w: f32[1,4,2], %r: f32[1,4,4]) {\n"
                "  %z = rnn(%x, %w, %r) {activation_alpha=[0.5], activations=[\"LeakyRelu\"], "
                "hidden_size=4} : f32[3,1,1,4]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_convert, constants_in_all_spellings)
{
    const char *const words[] = { "one", "two" };
    GByteArray *graph = onnx_graph_new("g");
    const float pair[] = { 1.5F, 2 };
    onnx_node(graph, "Constant", "", "a", onnx_float("value_float", 2), NULL);
    onnx_node(graph, "Constant", "", "b", onnx_floats("value_floats", 2, pair), NULL);
    onnx_node(graph, "Constant", "", "c", onnx_int("value_int", 2), NULL);
    onnx_node(graph, "Constant", "", "d", ONNX_INTS("value_ints", 2, 3, 4), NULL);
    onnx_node(graph, "Constant", "", "e", onnx_text("value_string", "word"), NULL);
    onnx_node(graph, "Constant", "", "f",
              onnx_tensor_attr("value", onnx_tensor(NULL, ONNX_F32, "2", pair, sizeof pair)), NULL);
    onnx_node(graph, "Constant", "", "h", onnx_texts("value_strings", 2, words), NULL);
    onnx_output(graph, "a", ONNX_F32, "");
    onnx_expect(graph, 13,
                "graph @g() {\n"
                "  %a = const @a : f32[]\n"
                "  %b = const @b : f32[2]\n"
                "  %c = const @c : i64[]\n"
                "  %d = const @d : i64[3]\n"
                "  %e = const @e : string[]\n"
                "  %f = const @f : f32[2]\n"
                "  %h = const @h : string[2]\n"
                "  return %a\n"
                "}\n");
    graph = onnx_graph_new("g");
    onnx_node(graph, "Constant", "", "a", NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "a (Constant): has no value");
    graph = onnx_graph_new("g");
    onnx_node(graph, "Constant", "", "a", onnx_int("value", 1), NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "a (Constant): has no value");
}

Test(onnx_convert, seeds_of_random_tensors)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_node(graph, "RandomNormal", "", "a", ONNX_INTS("shape", 2, 3), onnx_float("seed", 1),
              NULL);
    onnx_output(graph, "a", ONNX_F32, "2,3");
    onnx_expect(graph, 13,
                "graph @g() {\n"
                "  %a = random_normal() {seed=1065353216, shape=[2,3]} : f32[2,3]\n"
                "  return %a\n"
                "}\n");
    graph = onnx_graph_new("g"); /* none: the run gives one */
    onnx_node(graph, "RandomUniform", "", "a", ONNX_INTS("shape", 2), NULL);
    onnx_output(graph, "a", ONNX_F32, "2");
    onnx_expect(graph, 13,
                "graph @g() {\n"
                "  %a = random_uniform() {shape=[2]} : f32[2]\n"
                "  return %a\n"
                "}\n");
}

/* The search by halving needs the order; a row that no opset reaches would be dead. */
Test(onnx_convert, table_is_sorted)
{
    size_t n;
    const KilnOnnxRow *rows = kiln_onnx_rows(&n);
    for (size_t i = 1; i < n; i++) {
        int order = strcmp(rows[i - 1].name, rows[i].name);
        cr_expect(order < 0 || (order == 0 && rows[i - 1].since < rows[i].since), "%s %d",
                  rows[i].name, rows[i].since);
    }
    for (size_t i = 0; i < n; i++) {
        cr_expect(rows[i].since >= 1 && rows[i].since <= KILN_ONNX_LATEST);
        cr_expect_eq(kiln_onnx_row(rows[i].name, rows[i].since), &rows[i]);
    }
    cr_expect_eq(kiln_onnx_row("Abs", KILN_ONNX_LATEST + 1), kiln_onnx_row("Abs", 1));
    cr_expect_null(kiln_onnx_row("Mish", 17));
    cr_expect_null(kiln_onnx_row("Zebra", 17));
}

/* The row by which @name is imported, from ONNX or from ONNX Runtime's domain. */
static const KilnOnnxRow *
row_of(const char *name)
{
    const KilnOnnxRow *row = kiln_onnx_row(name, KILN_ONNX_LATEST);
    return row ? row : kiln_onnx_domain_row("com.microsoft", name);
}

/* Every operator that has a name there can be imported. Optional has two forms: the one without an
 * operand is optional_none. */
Test(onnx_convert, every_op_has_a_row)
{
    kiln_foreach_op (op) {
        const char *name = kiln_op_info(op)->onnx;
        const KilnOnnxRow *row = *name ? row_of(name) : NULL;
        const char *other = row ? kiln_op_info(row->op)->name : "";
        bool second =
            g_str_equal(other, "optional") && g_str_equal(kiln_op_info(op)->name, "optional_none");
        cr_expect(!*name || (row && (row->op == op || second)), "%s", name);
    }
}

Test(onnx_convert, losses_are_gathers_and_sums)
{
    GByteArray *graph = graph_xy("3,5,2", NULL);
    onnx_input(graph, "t", ONNX_I32, "3,2");
    onnx_node(graph, "NegativeLogLikelihoodLoss", "x,t", "z", onnx_text("reduction", "sum"), NULL);
    onnx_expect(graph, 13,
                "graph @g(%x: f32[3,5,2], %t: i32[3,2]) {\n"
                "  %z.axis = const @z.axis : i64[1]\n"
                "  %z.unsqueeze = unsqueeze(%t, %z.axis) : i32[3,1,2]\n"
                "  %z.gather_elements = gather_elements(%x, %z.unsqueeze) {axis=1} : f32[3,1,2]\n"
                "  %z.squeeze = squeeze(%z.gather_elements, %z.axis) : f32[3,2]\n"
                "  %z.neg = neg(%z.squeeze) : f32[3,2]\n"
                "  %z = reduce_sum(%z.neg) {keepdims=false} : f32[]\n"
                "  return %z\n"
                "}\n");
    graph = graph_xy("3,5", "5");
    onnx_input(graph, "t", ONNX_I64, "3");
    onnx_output(graph, "p", ONNX_F32, NULL);
    onnx_node(graph, "SoftmaxCrossEntropyLoss", "x,t,y", "z,p", onnx_int("ignore_index", -1), NULL);
    g_autofree char *text = onnx_imported(onnx_model(graph, 8, 13));
    cr_expect(strstr(text, "  %p = log_softmax(%x) {axis=1} : f32[3,5]\n"), "%s", text);
    cr_expect(strstr(text, "  %z.where = where(%z.equal, %z.class, %t) : i64[3]\n"), "%s", text);
    cr_expect(strstr(text, "  %z.gather = gather(%y, %z.where) : f32[3]\n"), "%s", text);
    cr_expect(strstr(text, "  %z = div(%z.reduce_sum, %z.reduce_sum_1) : f32[]\n"), "%s", text);
    graph = graph_xy("3,5", "5");
    onnx_input(graph, "t", ONNX_I64, "3");
    onnx_node(graph, "NegativeLogLikelihoodLoss", "x,t", "z", onnx_text("reduction", "max"), NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "expected none, sum or mean, found 'max'");
}

Test(onnx_convert, windows_are_sums_of_cosines)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "n", ONNX_I64, "");
    onnx_output(graph, "z", ONNX_F32, "10");
    onnx_node(graph, "HannWindow", "n", "z", onnx_int("periodic", 0), NULL);
    onnx_expect(graph, 17,
                "graph @g(%n: i64[]) {\n"
                "  %z.first = const @z.first : i64[]\n"
                "  %z.step = const @z.step : i64[]\n"
                "  %z.range = range(%z.first, %n, %z.step) : i64[?]\n"
                "  %z.cast = cast(%z.range) : f32[?]\n"
                "  %z.number = const @z.number : f32[]\n"
                "  %z.mul = mul(%z.cast, %z.number) : f32[?]\n"
                "  %z.number_1 = const @z.number_1 : i64[]\n"
                "  %z.sub = sub(%n, %z.number_1) : i64[]\n"
                "  %z.cast_1 = cast(%z.sub) : f32[]\n"
                "  %z.div = div(%z.mul, %z.cast_1) : f32[?]\n"
                "  %z.number_2 = const @z.number_2 : f32[]\n"
                "  %z.mul_1 = mul(%z.div, %z.number_2) : f32[?]\n"
                "  %z.cos = cos(%z.mul_1) : f32[?]\n"
                "  %z.number_3 = const @z.number_3 : f32[]\n"
                "  %z.mul_2 = mul(%z.cos, %z.number_3) : f32[?]\n"
                "  %z.number_4 = const @z.number_4 : f32[]\n"
                "  %z.add = add(%z.mul_2, %z.number_4) : f32[?]\n"
                "  %z = cast(%z.add) : f32[10]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_convert, random_tensors_like_another)
{
    GByteArray *graph = graph_xy("2,3", NULL);
    onnx_node(graph, "RandomUniformLike", "x", "a", onnx_float("seed", 1), onnx_int("dtype", 11),
              NULL);
    onnx_node(graph, "Bernoulli", "x", "z", onnx_float("seed", 2), onnx_int("dtype", ONNX_BOOL),
              NULL);
    onnx_expect(graph, 15,
                "graph @g(%x: f32[2,3]) {\n"
                "  %a = random_uniform() {dtype=f64, seed=1065353216, shape=[2,3]} : f64[2,3]\n"
                "  %z.random_uniform = random_uniform() {seed=1073741824, shape=[2,3]} : f32[2,3]\n"
                "  %z.less = less(%z.random_uniform, %x) : bool[2,3]\n"
                "  %z = cast(%z.less) {to=bool} : bool[2,3]\n"
                "  return %z\n"
                "}\n");
}
