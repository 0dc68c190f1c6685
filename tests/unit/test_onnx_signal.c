/* SPDX-License-Identifier: Apache-2.0 */
/* Imports of operators on signals, and of CenterCropPad: what they become, and what is refused. */
#include "graph/kiln-types.h"
#include "tests/unit/onnx_builder.h"

#include <string.h>

static GByteArray *
graph_of(const char *op, const char *x_dims, const int64_t *values, int n, GByteArray *attr)
{
    GByteArray *graph = onnx_graph_new("g");
    g_autofree char *dims = g_strdup_printf("%d", n);
    onnx_input(graph, "x", ONNX_F32, x_dims);
    onnx_initializer(graph, onnx_tensor("n", ONNX_I64, dims, values, (size_t)n * sizeof *values));
    onnx_node(graph, op, "x,n", "z", attr, NULL);
    onnx_output(graph, "z", ONNX_F32, NULL);
    return graph;
}

Test(onnx_signal, the_axis_of_dft_was_an_attribute)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_F32, "3,N,5,1");
    onnx_node(graph, "DFT", "x", "z", onnx_int("axis", 2), onnx_int("onesided", 1), NULL);
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_expect(graph, 17,
                "graph @g(%x: f32[3,N,5,1]) {\n"
                "  %z.axis = const @z.axis : i64[]\n"
                "  %z = dft(%x, _, %z.axis) {onesided=true} : f32[3,N,3,2]\n"
                "  return %z\n"
                "}\n");
}

Test(onnx_signal, frames_of_stft_are_gathered)
{
    GByteArray *graph = graph_of("STFT", "2,10,1", (int64_t[]){ 0 }, 1, onnx_int("onesided", 1));
    onnx_expect_error(graph, 17, KILN_ERROR_SHAPE, "expected a step of 1 or more, found 0");
    graph = graph_of("STFT", "10,1", (int64_t[]){ 2 }, 1, onnx_int("onesided", 1));
    onnx_expect_error(graph, 17, KILN_ERROR_SHAPE, "operand 0: expected rank 3, found f32[10,1]");
    graph = graph_of("STFT", "2,10,2", (int64_t[]){ 2 }, 1, onnx_int("onesided", 1));
    onnx_expect_error(graph, 17, KILN_ERROR_SHAPE, "expected dim 3 to be 1");
}

Test(onnx_signal, a_cropped_shape_is_stated)
{
    GByteArray *graph =
        graph_of("CenterCropPad", "N,9", (int64_t[]){ 4, 12 }, 2, ONNX_INTS("axes", -2, 1));
    g_autofree char *found = onnx_imported(onnx_model(graph, 8, 18));
    cr_expect(strstr(found, "%z = reshape(%z.pad, %z.shape"), "%s", found);
    cr_expect(strstr(found, ": f32[4,12]\n  return %z"), "%s", found);
}

Test(onnx_signal, crops_that_do_not_fit)
{
    GByteArray *graph =
        graph_of("CenterCropPad", "8,9", (int64_t[]){ 4, 12 }, 2, ONNX_INTS("axes", 2, 1));
    onnx_expect_error(graph, 18, KILN_ERROR_SHAPE, "axes: expected axes of rank 2, found 2");
    graph = graph_of("CenterCropPad", "8,9", (int64_t[]){ 4, 12 }, 2, ONNX_INTS("axes", 1));
    onnx_expect_error(graph, 18, KILN_ERROR_SHAPE, "operand 1: expected 1 extents, found 2");
    graph = graph_of("CenterCropPad", "8,9", (int64_t[]){ -4 }, 1, ONNX_INTS("axes", 1));
    onnx_expect_error(graph, 18, KILN_ERROR_SHAPE, "expected extents of 0 or more, found -4");
}
