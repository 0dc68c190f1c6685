/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse tensors of ONNX files become dense ones, within the limits. */
#include "graph/base/budget.h"
#include "graph/module.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/wire.h"
#include "tests/unit/onnx_builder.h"

#include <string.h>

/* A SparseTensorProto. @at: the indices, of shape @shape. */
static GByteArray *
sparse_of(GByteArray *values, int index_type, const char *shape, const int64_t *at, size_t n,
          const char *dims)
{
    GByteArray *sparse = g_byte_array_new();
    g_autoptr(GByteArray) indices = onnx_tensor(NULL, index_type, shape, at, n * sizeof *at);
    g_auto(GStrv) words = g_strsplit(dims, ",", -1);
    kiln_wire_put_message(sparse, 1, values);
    kiln_wire_put_message(sparse, 2, indices);
    for (char **word = words; *word; word++)
        kiln_wire_put_varint(sparse, 3, (uint64_t)g_ascii_strtoll(*word, NULL, 10));
    g_byte_array_unref(values);
    return sparse;
}

static GByteArray *
floats(const char *dims, size_t n)
{
    static const float values[] = { 1, 2, 3, 4 };
    return onnx_tensor("w", ONNX_F32, dims, values, n * sizeof *values);
}

/* A model that adds the sparse initializer to x. Takes @sparse over. */
static GBytes *
model_with(GByteArray *sparse, const char *dims)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_F32, dims);
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, "Add", "x,w", "z", NULL);
    kiln_wire_put_message(graph, 15, sparse);
    g_byte_array_unref(sparse);
    return onnx_model(graph, 8, 13);
}

static void
expect_dense(GByteArray *sparse, const char *dims, const float *expected, size_t n)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = model_with(sparse, dims);
    g_autoptr(KilnModule) module = kiln_onnx_import(bytes, NULL, &error);
    cr_assert_not_null(module, "%s", error ? error->message : "");
    const KilnTensor *tensor = kiln_module_find_constant(module, "w")->tensor;
    cr_assert_eq(kiln_type_bytes(&tensor->type), (int64_t)(n * sizeof *expected));
    g_autofree float *found = g_new0(float, n + 1);
    cr_assert(kiln_tensor_write(tensor, found, NULL));
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(found[i], expected[i], "element %zu: %g", i, (double)found[i]);
}
#define I64(...) ((const int64_t[]){ __VA_ARGS__ })
#define F32(...) ((const float[]){ __VA_ARGS__ })

Test(onnx_sparse, elements_are_counted)
{
    expect_dense(sparse_of(floats("2", 2), ONNX_I64, "2", I64(1, 5), 2, "2,3"), "2,3",
                 F32(0, 1, 0, 0, 0, 2), 6);
    expect_dense(sparse_of(floats("0", 0), ONNX_I64, "0", I64(0), 0, "3"), "3", F32(0, 0, 0), 3);
    expect_dense(sparse_of(floats("0", 0), ONNX_I64, "0", I64(0), 0, "0,2"), "0,2", F32(0), 0);
}

Test(onnx_sparse, or_have_coordinates)
{
    expect_dense(sparse_of(floats("3", 3), ONNX_I64, "3,2", I64(0, 2, 1, 0, 1, 1), 6, "2,3"), "2,3",
                 F32(0, 0, 1, 2, 3, 0), 6);
}

Test(onnx_sparse, of_a_constant_node)
{
    GByteArray *graph = onnx_graph_new("g");
    g_autoptr(GByteArray) sparse = sparse_of(floats("1", 1), ONNX_I64, "1", I64(1), 1, "2");
    GByteArray *attr = onnx_attr("sparse_value", 11);
    kiln_wire_put_message(attr, 22, sparse);
    onnx_node(graph, "Constant", "", "w", attr, NULL);
    onnx_output(graph, "w", ONNX_F32, "2");
    g_autoptr(GBytes) bytes = onnx_model(graph, 8, 13);
    g_autoptr(KilnModule) module = kiln_onnx_import(bytes, NULL, NULL);
    float found[2] = { 7, 7 };
    cr_assert_not_null(module);
    cr_assert(kiln_tensor_write(kiln_module_find_constant(module, "w")->tensor, found, NULL));
    cr_expect(found[0] == 0 && found[1] == 1);
}

static void
expect_refused(GByteArray *sparse, KilnError code, const char *expected)
{
    g_autofree char *found = onnx_imported(model_with(sparse, NULL));
    g_autofree char *start = g_strdup_printf("%d: ", (int)code);
    cr_expect(g_str_has_prefix(found, start) && strstr(found, expected), "expected '%s', found %s",
              expected, found);
}

Test(onnx_sparse, wrong_ones_are_refused)
{
    expect_refused(sparse_of(floats("1", 1), ONNX_I64, "1", I64(6), 1, "2,3"), KILN_ERROR_FORMAT,
                   "sparse tensor 'w': index 0 lies outside");
    expect_refused(sparse_of(floats("1", 1), ONNX_I64, "1", I64(-1), 1, "2,3"), KILN_ERROR_FORMAT,
                   "index 0 lies outside");
    expect_refused(sparse_of(floats("1", 1), ONNX_I64, "1,2", I64(0, 3), 2, "2,3"),
                   KILN_ERROR_FORMAT, "index 0 lies outside");
    expect_refused(sparse_of(floats("2", 2), ONNX_I64, "2", I64(3, 3), 2, "2,3"), KILN_ERROR_FORMAT,
                   "expected indices that ascend, found index 1 behind a greater or equal one");
    expect_refused(sparse_of(floats("2", 2), ONNX_I64, "1", I64(3), 1, "2,3"), KILN_ERROR_FORMAT,
                   "expected an index for each of 2 values, found 1");
    expect_refused(sparse_of(floats("1", 1), ONNX_I64, "1,3", I64(0, 0, 0), 3, "2,3"),
                   KILN_ERROR_FORMAT, "expected 2 coordinates, found 3");
    expect_refused(sparse_of(floats("1", 1), ONNX_I64, "1,1,1", I64(0), 1, "2"), KILN_ERROR_FORMAT,
                   "expected indices of rank 1 or 2, found rank 3");
    expect_refused(sparse_of(floats("1", 1), ONNX_F32, "2", I64(0), 1, "2"), KILN_ERROR_FORMAT,
                   "expected indices of i64, found f32");
    expect_refused(sparse_of(floats("1,1", 1), ONNX_I64, "1", I64(0), 1, "2"), KILN_ERROR_FORMAT,
                   "expected values of rank 1, found rank 2");
    expect_refused(sparse_of(floats("1", 1), ONNX_I64, "1", I64(0), 1, "-2"), KILN_ERROR_FORMAT,
                   "dim 0 is -2");
    expect_refused(sparse_of(floats("1", 1), ONNX_I64, "1", I64(0), 1,
                             "4611686018427387904,4611686018427387904"),
                   KILN_ERROR_FORMAT, "the dense tensor is too big");
}

Test(onnx_sparse, dense_bytes_are_held_to_the_limit)
{
    g_autoptr(KilnBudget) budget = kiln_budget_new(&(KilnLimits){ .bytes = 1 << 20 });
    KilnBudget *before = kiln_budget_enter(budget);
    expect_refused(sparse_of(floats("1", 1), ONNX_I64, "1", I64(0), 1, "1048576"), KILN_ERROR_LIMIT,
                   "memory limit: expected at most 1048576 bytes, found 4194304");
    kiln_budget_leave(before);
}
