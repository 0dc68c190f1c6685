/* SPDX-License-Identifier: Apache-2.0 */
/* Export: what is written reads back to the same function, and writes the same bytes again. */
#include "graph/function.h"
#include "graph/infer/infer.h"
#include "graph/node.h"
#include "graph/onnx/export.h"
#include "graph/onnx/onnx.h"
#include "graph/op/activation.h"
#include "graph/op/layout.h"
#include "graph/op/math.h"
#include "graph/op/random.h"
#include "graph/op/reduce.h"
#include "graph/op/softmax.h"
#include "graph/text/text.h"
#include "tests/unit/onnx_builder.h"

#include <string.h>

#define CORPUS "/usr/share/libonnx-testdata/data"

/* The printed function without its constants, whose place is not kept. */
static char *
nodes_of(const KilnModule *module)
{
    g_autoptr(GString) text = g_string_new(NULL);
    kiln_function_print(kiln_module_entry(module), text);
    g_auto(GStrv) lines = g_strsplit(text->str, "\n", -1);
    GString *kept = g_string_new(NULL);
    for (char **line = lines; *line; line++) {
        if (!strstr(*line, " = const @"))
            g_string_append_printf(kept, "%s\n", *line);
    }
    return g_string_free(kept, FALSE);
}

static bool
has_constant(const KilnFunction *function, const char *name, const KilnTensor *tensor)
{
    const KilnValue *value = kiln_function_find_value(function, name);
    const KilnConstant *constant = value ? kiln_value_constant(value) : NULL;
    return constant && kiln_tensor_equal(constant->tensor, tensor);
}

/* Every constant of @a stands in @b under the same name with the same bits. */
static void
expect_constants(const KilnModule *a, const KilnModule *b)
{
    const KilnFunction *left = kiln_module_entry(a), *right = kiln_module_entry(b);
    kiln_foreach_node (node, left) {
        if (node->op != KILN_OP_const)
            continue;
        const KilnTensor *tensor = kiln_attrs(node, const)->value->tensor;
        cr_expect(has_constant(right, node->results[0].name, tensor), "%s", node->results[0].name);
    }
}

/* Exports @module, imports that and compares; returns what was written, or NULL where the module
 * cannot be exported (then *@error says why). */
static GBytes *
round_trip(const KilnModule *module, const char *what, GError **error)
{
    g_autoptr(GByteArray) out = g_byte_array_new();
    g_autoptr(GByteArray) again = g_byte_array_new();
    if (!kiln_onnx_export(module, out, error))
        return NULL;
    GBytes *bytes = g_byte_array_free_to_bytes(g_steal_pointer(&out));
    g_autoptr(GError) failure = NULL;
    g_autoptr(KilnModule) back = kiln_onnx_import(bytes, NULL, &failure);
    cr_assert(back && kiln_module_verify(back, &failure), "%s: %s", what,
              failure ? failure->message : "");
    g_autofree char *before = nodes_of(module);
    g_autofree char *after = nodes_of(back);
    cr_expect(strcmp(before, after) == 0, "%s\nexpected\n%s\nfound\n%s", what, before, after);
    expect_constants(module, back);
    cr_assert(kiln_onnx_export(back, again, &failure), "%s", failure ? failure->message : "");
    g_autoptr(GBytes) second = g_byte_array_free_to_bytes(g_steal_pointer(&again));
    cr_expect(g_bytes_equal(bytes, second), "%s: other bytes the second time", what);
    return bytes;
}

/* Round trips of every model in DIR/…; returns how many were exported. */
static unsigned
trip_all(const char *directory, unsigned *out_models)
{
    unsigned n = 0;
    GDir *dir = g_dir_open(directory, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(directory, name, "model.onnx", NULL);
        g_autoptr(GError) error = NULL;
        if (!g_file_test(path, G_FILE_TEST_EXISTS))
            continue;
        ++*out_models;
        g_autoptr(KilnModule) module = kiln_onnx_import_file(path, &error);
        cr_assert_not_null(module, "%s", error ? error->message : "");
        g_autoptr(GBytes) bytes = round_trip(module, path, &error);
        n += bytes != NULL;
        cr_expect(bytes || error->code == (int)KILN_ERROR_UNSUPPORTED, "%s: %s", path,
                  error ? error->message : "");
    }
    if (dir)
        g_dir_close(dir);
    return n;
}

Test(onnx_export, backend_cases, .timeout = 60)
{
    static const char *const suites[] = { "node", "simple", "pytorch-operator",
                                          "pytorch-converted" };
    unsigned models = 0, exported = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(suites); i++) {
        g_autofree char *directory = g_build_filename(CORPUS, suites[i], NULL);
        exported += trip_all(directory, &models);
    }
    if (!models)
        cr_skip_test("no " CORPUS);
    cr_log_info("%u of %u models exported", exported, models);
    cr_expect_geq(exported, models * 8 / 10);
}

Test(onnx_export, shared_models)
{
    unsigned models = 0, exported = trip_all(KILN_SHARED_DIR "/models", &models);
    if (!models)
        cr_skip_test("no models beside the source tree");
    cr_expect_eq(exported, models);
}

/* --- one by one --- */

static KilnType
f32_2x3(void)
{
    return kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ 2, 3 });
}

typedef struct {
    KilnModule *module;
    KilnFunction *function;
    KilnValue *x;
} Small;

/* @f(%x: f32[2,3]), without nodes. */
static Small
small_new(void)
{
    Small small = { .module = kiln_module_new() };
    KilnType type = f32_2x3();
    small.function = kiln_function_new(small.module, "f");
    small.x = &kiln_function_add_argument(small.function, "x", &type, NULL)->value;
    return small;
}

/* A node of @op over x (twice, if it wants two), returned under @name. */
static void
small_return(Small *small, KilnOp op, const void *attrs, const char *name)
{
    KilnValue *operands[] = { small->x, small->x };
    GError *error = NULL;
    KilnNode *node = kiln_node_new(
        small->function,
        &(KilnNodeSpec){ .op = op,
                         .operands = operands,
                         .n_operands = (uint32_t)kiln_op_info(op)->min_operands,
                         .attrs = attrs,
                         .types =
                             kiln_infer_function(op) == kiln_infer_given ? &small->x->type : NULL },
        &error);
    cr_assert_not_null(node, "%s", error ? error->message : "");
    KilnValue *result = &node->results[0];
    cr_assert(kiln_function_set_results(small->function, &result, &name, 1, NULL));
}

static void
expect_unsupported(Small *small, const char *message)
{
    g_autoptr(GByteArray) out = g_byte_array_new();
    g_autoptr(GError) error = NULL;
    cr_assert_not(kiln_onnx_export(small->module, out, &error));
    cr_expect_eq(error->code, (int)KILN_ERROR_UNSUPPORTED);
    cr_expect_str_eq(error->message, message);
    kiln_module_free(small->module);
}

/* What a re-import of the export prints. */
static char *
small_printed(Small *small)
{
    g_autoptr(GError) error = NULL;
    GByteArray *out = g_byte_array_new();
    cr_assert(kiln_onnx_export(small->module, out, &error), "%s", error ? error->message : "");
    kiln_module_free(small->module);
    return onnx_imported(g_byte_array_free_to_bytes(out));
}

Test(onnx_export, what_onnx_lacks_is_named)
{
    Small small = small_new();
    small_return(&small, KILN_OP_pack, NULL, "y");
    expect_unsupported(&small, "pack (pack): no operator of ONNX");
    small = small_new();
    KilnAttrs_random_normal random = { .dtype = KILN_DTYPE_f32, .seed = G_MAXINT64 };
    random.shape = (KilnInts){ .n = 1, .v = (int64_t[]){ 4 } };
    small_return(&small, KILN_OP_random_normal, &random, "y");
    expect_unsupported(&small, "random_normal: its seed has no counterpart in ONNX");
    small = small_new();
    small_return(&small, KILN_OP_neg, NULL, "y");
    kiln_function_argument(small.function, 0)->variable = true;
    expect_unsupported(&small, "x: ONNX has no variables that keep their value");
    small = small_new();
    small_return(&small, KILN_OP_neg, NULL, "y");
    kiln_function_argument(small.function, 0)->value.type.layout = "aB2b";
    expect_unsupported(&small, "x: ONNX has no type f32[2,3]:aB2b");
    small = small_new();
    kiln_function_new(small.module, "second");
    expect_unsupported(&small, "an ONNX file holds one function, the module has 2");
}

Test(onnx_export, results_keep_the_names_of_the_model)
{
    Small small = small_new();
    small_return(&small, KILN_OP_neg, NULL, "logits");
    g_autofree char *text = small_printed(&small);
    cr_expect_str_eq(text, "graph @f(%x: f32[2,3]) {\n"
                           "  %logits = neg(%x) : f32[2,3]\n"
                           "  return %logits\n"
                           "}\n");
    small = small_new();
    const char *names[] = { "a", "b" };
    KilnValue *both[] = { small.x, small.x };
    cr_assert(kiln_function_set_results(small.function, both, names, 2, NULL));
    g_autofree char *twice = small_printed(&small);
    cr_expect_str_eq(twice, "graph @f(%x: f32[2,3]) {\n"
                            "  %a = identity(%x) : f32[2,3]\n"
                            "  %b = identity(%x) : f32[2,3]\n"
                            "  return %a, %b\n"
                            "}\n");
}

static KilnModule *
parsed(const char *text)
{
    g_autoptr(GError) error = NULL;
    KilnModule *module = kiln_module_parse(text, strlen(text), "case", &error);
    cr_assert(module, "%s", error ? error->message : "");
    return module;
}

/* The text of what is read of the export of @text. */
static char *
exported(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = parsed(text);
    g_autoptr(GByteArray) out = g_byte_array_new();
    cr_assert(kiln_onnx_export(module, out, &error), "%s", error ? error->message : "");
    return onnx_imported(g_byte_array_free_to_bytes(g_steal_pointer(&out)));
}

/* A value that takes the name of a result hides none of that name, here or in a subgraph. */
Test(onnx_export, results_hide_no_other_value)
{
    g_autofree char *nested = exported("graph @f(%x: f32[2], %c: bool[]) {\n"
                                       "  %v = neg(%x) : f32[2]\n"
                                       "  %i = if(%c) then {\n"
                                       "    %out = relu(%v) : f32[2]\n"
                                       "    %w = add(%out, %v) : f32[2]\n"
                                       "    return %w as out\n"
                                       "  } else {\n"
                                       "    return %v\n"
                                       "  } : f32[2]\n"
                                       "  return %v as out, %i\n"
                                       "}\n");
    cr_expect(strstr(nested, "%out = neg(%x)"), "%s", nested);
    cr_expect(strstr(nested, "= add(%out_2, %out) : f32[2]"), "%s", nested);
    g_autofree char *swapped = exported("graph @f(%x: f32[2]) {\n"
                                        "  %a = neg(%x) : f32[2]\n"
                                        "  %b = abs(%a) : f32[2]\n"
                                        "  %x_1 = relu(%b) : f32[2]\n"
                                        "  return %a as b, %x_1 as x, %b as a\n"
                                        "}\n");
    cr_expect_str_eq(swapped, "graph @f(%x: f32[2]) {\n"
                              "  %b = neg(%x) : f32[2]\n"
                              "  %a = abs(%b) : f32[2]\n"
                              "  %x_2 = relu(%a) : f32[2]\n"
                              "  return %b, %x_2, %a\n"
                              "}\n");
}

/* The opset that an export of one node declares. */
static int64_t
opset_of(KilnOp op, const void *attrs)
{
    Small small = small_new();
    small_return(&small, op, attrs, "y");
    g_autoptr(GByteArray) out = g_byte_array_new();
    cr_assert(kiln_onnx_export(small.module, out, NULL));
    g_autoptr(GBytes) bytes = g_byte_array_free_to_bytes(g_steal_pointer(&out));
    g_autoptr(KilnModule) module = kiln_onnx_import(bytes, NULL, NULL);
    kiln_module_free(small.module);
    return module->opset;
}

Test(onnx_export, opset_is_the_lowest_that_has_the_form)
{
    cr_expect_eq(opset_of(KILN_OP_neg, NULL), 17);
    cr_expect_eq(opset_of(KILN_OP_softmax, NULL), 17);
    cr_expect_eq(opset_of(KILN_OP_gelu, NULL), 21);
    cr_expect_eq(opset_of(KILN_OP_reduce_mean, NULL), 21);
    cr_expect_eq(opset_of(KILN_OP_reduce_sum, NULL), 17);
}

static int64_t
opset_of_text(const char *node)
{
    g_autofree char *text = g_strdup_printf(
        "graph @f(%%x: f16[2], %%i: i16[2], %%b: i8[2], %%f: f32[2], %%s: f32[], %%h: f16[], "
        "%%m: f32[1,1,2,2], %%a: i64[]) {\n"
        "  %%y = %s\n"
        "  return %%y\n"
        "}\n",
        node);
    g_autoptr(KilnModule) module = parsed(text);
    return kiln_onnx_export_opset(kiln_module_entry(module));
}

/* Opset 17 has the form, but not for all of today's element types. */
Test(onnx_export, opset_admits_the_element_types)
{
    cr_expect_eq(opset_of_text("split(%f) {num_outputs=1} : f32[2]"), 17);
    cr_expect_eq(opset_of_text("is_inf(%f) : bool[2]"), 17);
    cr_expect_eq(opset_of_text("is_inf(%x) : bool[2]"), 21);
    cr_expect_eq(opset_of_text("dequantize_linear(%b, %s) : f32[2]"), 17);
    cr_expect_eq(opset_of_text("dequantize_linear(%b, %h) : f16[2]"), 21);
    cr_expect_eq(opset_of_text("dequantize_linear(%i, %s) : f32[2]"), 21);
    cr_expect_eq(opset_of_text("quantize_linear(%f, %s) : u8[2]"), 17);
    cr_expect_eq(opset_of_text("quantize_linear(%x, %h) : u8[2]"), 21);
    cr_expect_eq(opset_of_text("quantize_linear(%f, %h) : u8[2]"), 23);
    cr_expect_eq(opset_of_text("cast(%f) {to=f8e5m2} : f8e5m2[2]"), 21);
    cr_expect_eq(opset_of_text("cast(%f) {to=i4} : i4[2]"), 21);
    cr_expect_eq(opset_of_text("cast(%f) {to=f4e2m1} : f4e2m1[2]"), 23);
    cr_expect_eq(opset_of_text("cast(%f) {to=f8e8m0} : f8e8m0[2]"), 24);
    cr_expect_eq(opset_of_text("cast(%f) {to=u2} : u2[2]"), 25);
    cr_expect_eq(opset_of_text("cast(%f) {to=f6e3m2} : f6e3m2[2]"), 28);
    cr_expect_eq(opset_of_text("quantize_linear(%f, %f) {axis=0, block_size=1} : u8[2]"), 21);
    cr_expect_eq(opset_of_text("celu(%f) : f32[2]"), 17);
    cr_expect_eq(opset_of_text("bit_cast(%f) {to=i32} : i32[2]"), 26); /* there is none before */
    cr_expect_eq(opset_of_text("cum_prod(%f, %a) : f32[2]"), 26);
    cr_expect_eq(opset_of_text("celu(%x) : f16[2]"), 28);
    cr_expect_eq(opset_of_text("bit_shift(%i, %i) : i16[2]"), 28);
    cr_expect_eq(opset_of_text("mod(%i, %i) : i16[2]"), 17);
    cr_expect_eq(opset_of_text("mod(%f, %f) {fmod=true} : f32[2]"), 17);
    cr_expect_eq(opset_of_text("mod(%f, %f) : f32[2]"), 28);
    cr_expect_eq(opset_of_text("space_to_depth(%m) {blocksize=2} : f32[1,4,1,1]"), 17);
    cr_expect_eq(opset_of_text("space_to_depth(%m) {blocksize=2, mode=\"CRD\"} : f32[1,4,1,1]"),
                 28);
}

/* What opset 21 lacks is written with what it has; the module stays as it is. */
Test(onnx_export, raised_operators_are_decomposed)
{
    Small small = small_new();
    small_return(&small, KILN_OP_swish, NULL, "y");
    g_autoptr(GByteArray) out = g_byte_array_new();
    cr_assert(kiln_onnx_export(small.module, out, NULL));
    g_autofree char *text = onnx_imported(g_byte_array_free_to_bytes(g_steal_pointer(&out)));
    cr_expect(strstr(text, "sigmoid("), "%s", text);
    cr_expect(strstr(text, "%y = mul("), "%s", text);
    cr_expect_eq(kiln_function_return(kiln_module_entry(small.module))->operands[0].value->def->op,
                 KILN_OP_swish);
    kiln_module_free(small.module);
}

/* ONNX normalizes dim 1 and no other. */
Test(onnx_export, normalization_of_the_last_dim)
{
    g_autofree char *text = exported("graph @f(%x: f32[2,4,5,3], %s: f32[3]) {\n"
                                     "  %y = batch_normalization(%x, %s, %s, %s, %s) {axis=-1}\n"
                                     "  return %y\n"
                                     "}\n");
    cr_expect_str_eq(text, "graph @f(%x: f32[2,4,5,3], %s: f32[3]) {\n"
                           "  %transpose = transpose(%x) {perm=[0,3,2,1]} : f32[2,3,5,4]\n"
                           "  %batch_normalization = batch_normalization(%transpose, %s, %s, %s, "
                           "%s) : f32[2,3,5,4]\n"
                           "  %y = transpose(%batch_normalization) {perm=[0,3,2,1]} : "
                           "f32[2,4,5,3]\n"
                           "  return %y\n"
                           "}\n");
}

/* Parameters become operands, what computes stands between conversions; the module stays as it is.
 */
Test(onnx_export, quantized_types_are_stated)
{
    static const char text[] = "graph @f(%x: f32[1,1,4], %y: i8[1,1,4] q(0.5,3)) {\n"
                               "  %q = quantize_linear(%x) : u8[1,1,4] q(0.1,10)\n"
                               "  %w = const @w : i8[2,1,1] q(axis=0,[0.5,0.25],[0,0])\n"
                               "  %c = conv(%q, %w) : i8[1,2,4] q(0.2,0)\n"
                               "  %r = rescale_quantized(%y) : u8[1,1,4] q(0.1,10)\n"
                               "  %k = const @k : i64[6]\n"
                               "  %p = pad(%r, %k) : u8[1,1,5] q(0.1,10)\n"
                               "  %s = storage_cast(%p) : u8[1,1,5]\n"
                               "  %t = const @t : f32[256]\n"
                               "  %l = lookup_table(%y, %t) : f32[1,1,4]\n"
                               "  %d = dequantize_linear(%c) : f16[1,2,4]\n"
                               "  return %d, %s, %l\n"
                               "}\n"
                               "constants {\n"
                               "  @w = [1, 2] : i8[2,1,1] q(axis=0,[0.5,0.25],[0,0])\n"
                               "  @k = [0, 0, 0, 0, 0, 1] : i64[6]\n"
                               "  @t = splat(1) : f32[256]\n"
                               "}\n";
    static const char *const lines[] = {
        "%y: i8[1,1,4]",
        "%q = quantize_linear(%x, %scale, %zero_point) : u8[1,1,4]",
        "dequantize_linear(%w, %scale_2, %zero_point_2) {axis=0} : f32[2,1,1]",
        "%c = quantize_linear(%conv, ",
        "%s = pad(%r, %k, %const) : u8[1,1,5]",
        "gather(%t, ",
        "{to=f16} : f16[1,2,4]",
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = kiln_module_parse(text, strlen(text), "quantized", &error);
    cr_assert(module, "%s", error ? error->message : "");
    g_autofree char *before = nodes_of(module);
    g_autoptr(GByteArray) out = g_byte_array_new();
    cr_assert(kiln_onnx_export(module, out, &error), "%s", error ? error->message : "");
    g_autofree char *after = nodes_of(module);
    cr_expect_str_eq(after, before);
    g_autofree char *found = onnx_imported(g_byte_array_free_to_bytes(g_steal_pointer(&out)));
    for (size_t i = 0; i < G_N_ELEMENTS(lines); i++)
        cr_expect(strstr(found, lines[i]), "expected %s in\n%s", lines[i], found);
}

/* A product of @node in a function whose weights are literals, but for a scale, weights and zero
 * points that a run brings: %r, %b and %p. */
static KilnModule *
packed_product(const char *node)
{
    g_autofree char *text = g_strdup_printf(
        "graph @f(%%x: f32[2,5], %%b: u8[2,2,2], %%r: f32[2,2], %%p: u8[2,1], %%c: f32[2], "
        "%%y: f32[2,20], %%d: u8[2,2,8]) {\n"
        "  %%w = const @w : u8[2,2,2]\n"
        "  %%s = const @s : f32[2,2]\n"
        "  %%z = const @z : u8[2,1]\n"
        "  %%f = const @f : f32[2,2]\n"
        "  %%o = %s : f32[2,2]\n"
        "  return %%o\n"
        "}\n"
        "constants {\n"
        "  @w = [33, 67, 15, 255, 101, 135, 9, 255] : u8[2,2,2]\n"
        "  @s = [1, 2, 3, 4] : f32[2,2]\n"
        "  @z = [33, 67] : u8[2,1]\n"
        "  @f = [1, 2, 3, 4] : f32[2,2]\n"
        "}\n",
        node);
    return parsed(text);
}

static void
expect_product(const char *node, const char *const *lines)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = packed_product(node);
    g_autoptr(GByteArray) out = g_byte_array_new();
    cr_assert(kiln_onnx_export(module, out, &error), "%s", error ? error->message : "");
    g_autofree char *found = onnx_imported(g_byte_array_free_to_bytes(g_steal_pointer(&out)));
    for (; *lines; lines++)
        cr_expect(strstr(found, *lines), "expected %s in\n%s", *lines, found);
}

/* A block that is not full is cut off, and the middle of the range is the zero of signed numbers.
 */
Test(onnx_export, products_with_packed_weights)
{
    expect_product("matmul_nbits(%x, %w, %s) {K=5, N=2, block_size=4}",
                   (const char *const[]){ "dequantize_linear(%w_1, %s) {block_size=4} : f32[2,5]",
                                          "perm=[1,0]", "%o = matmul(%x, %transpose) : f32[2,2]",
                                          NULL });
    expect_product(
        "matmul_nbits(%x, %w, %s, %z, %c) {K=5, N=2, block_size=4}",
        (const char *const[]){ "dequantize_linear(%w_1, %s, %z_1) {block_size=4} : f32[2,5]",
                               "%o = add(%matmul, %c) : f32[2,2]", NULL });
}

/* Other weights stay packed for ONNX Runtime, which takes blocks of some sizes. */
Test(onnx_export, products_with_weights_of_a_run)
{
    static const char *const unknown[] = {
        "matmul_nbits(%x, %b, %s) {K=5, N=2, block_size=4}",
        "matmul_nbits(%x, %w, %r) {K=5, N=2, block_size=4}",
        "matmul_nbits(%x, %w, %s, %p) {K=5, N=2, block_size=4}",
        "matmul_nbits(%x, %w, %s, %f) {K=5, N=2, block_size=4}",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(unknown); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnModule) module = packed_product(unknown[i]);
        g_autoptr(GByteArray) out = g_byte_array_new();
        cr_assert_not(kiln_onnx_export(module, out, &error), "%s", unknown[i]);
        cr_expect_str_eq(error->message,
                         "o (matmul_nbits): expected literal weights and scales with zero points "
                         "of u8, or a block_size that is a power of two from 16 on; found neither, "
                         "but block_size=4");
    }
    expect_product("matmul_nbits(%y, %d, %s, %f, %c) {K=20, N=2, block_size=16}",
                   (const char *const[]){
                       "%o = matmul_nbits(%y, %d, %s, %f, %c) {K=20, N=2, block_size=16}", NULL });
}

Test(onnx_export, subgraphs_and_absent_operands)
{
    GByteArray *body = onnx_graph_new("body");
    onnx_input(body, "i", ONNX_I64, "");
    onnx_input(body, "go", ONNX_BOOL, "");
    onnx_input(body, "v", ONNX_F32, "2");
    onnx_node(body, "Add", "v,x", "w", NULL);
    onnx_output(body, "go", ONNX_BOOL, "");
    onnx_output(body, "w", ONNX_F32, "2");
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_F32, "2");
    onnx_input(graph, "n", ONNX_I64, "");
    onnx_node(graph, "Loop", "n,,x", "z", onnx_graph("body", body), NULL);
    onnx_output(graph, "z", ONNX_F32, "2");
    g_autoptr(GBytes) model = onnx_model(graph, 8, 13);
    g_autoptr(KilnModule) module = kiln_onnx_import(model, NULL, NULL);
    g_autoptr(GByteArray) out = g_byte_array_new();
    cr_assert(kiln_onnx_export(module, out, NULL));
    g_autofree char *text = onnx_imported(g_byte_array_free_to_bytes(g_steal_pointer(&out)));
    cr_expect(strstr(text, "%z = loop(%n, _, %x)"), "%s", text);
    cr_expect(strstr(text, "%go_1 = identity(%go) : bool[]"), "%s", text);
}

/* A loop has two operands at least, which may be absent. */
Test(onnx_export, loops_keep_absent_operands_at_the_end)
{
    static const char text[] = "graph @g(%n: i64[]) {\n"
                               "  %z = loop(%n, _) body(%i: i64[], %go: bool[]) {\n"
                               "    return %go, %i\n"
                               "  } : i64[?]\n"
                               "  return %z\n"
                               "}\n";
    g_autoptr(KilnModule) module = kiln_module_parse(text, strlen(text), "test", NULL);
    g_autoptr(GByteArray) out = g_byte_array_new();
    cr_assert(module && kiln_onnx_export(module, out, NULL));
    g_autofree char *found = onnx_imported(g_byte_array_free_to_bytes(g_steal_pointer(&out)));
    cr_expect(strstr(found, "%z = loop(%n, _) body("), "%s", found);
}

Test(onnx_export, tensors_write_and_read)
{
    KilnType type = f32_2x3();
    g_autoptr(KilnTensor) splat = kiln_tensor_new_splat(&type, 2.5);
    g_autoptr(GByteArray) out = g_byte_array_new();
    g_autofree char *name = NULL;
    cr_assert(kiln_onnx_tensor_write(splat, "t", out, NULL));
    g_autoptr(GBytes) bytes = g_byte_array_free_to_bytes(g_steal_pointer(&out));
    g_autoptr(KilnTensor) back = kiln_onnx_tensor_parse(bytes, NULL, &name, NULL);
    cr_assert_not_null(back);
    cr_expect_str_eq(name, "t");
    cr_expect(kiln_tensor_equal(splat, back));
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) cut = g_bytes_new_from_bytes(bytes, 0, g_bytes_get_size(bytes) - 1);
    cr_expect_null(kiln_onnx_tensor_parse(cut, "dir/input_0.pb", NULL, &error));
    cr_expect(g_str_has_prefix(error->message, "dir/input_0.pb: byte "), "%s", error->message);
}
