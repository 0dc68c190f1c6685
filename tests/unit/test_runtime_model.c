/* SPDX-License-Identifier: Apache-2.0 */
/* Models: what they are loaded from, what their inputs and outputs are, what is wrong with them. */
#include "tests/unit/runtime_case.h"

#include "graph/onnx/onnx.h"
#include "graph/onnx/wire.h"
#include "graph/text/text.h"
#include "ir/target.h"
#include "kiln.h"
#include "runtime/targets.h"
#include "tests/unit/onnx_builder.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static const char graph_text[] = "# a comment\n"
                                 "graph @f(%x: f32[N,3], %s: f32[], %any: i64[*]) {\n"
                                 "  %y = mul(%x, %s) : f32[N,3]\n"
                                 "  return %y, %any\n"
                                 "}\n";

static const char ir_text[] = "func @f {\n"
                              "  input @x : f32[2,2]\n"
                              "  output @y : f32[2,2]\n"
                              "  relu @out @y, @in @x\n"
                              "}\n";

static char *
write_file(const char *name, const void *data, gssize size)
{
    g_autofree char *dir = g_dir_make_tmp("kiln-runtime-XXXXXX", NULL);
    char *path = g_build_filename(dir, name, NULL);
    cr_assert(g_file_set_contents(path, data, size, NULL));
    return path;
}

static void
remove_file(const char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);
    cr_expect_eq(g_unlink(path), 0);
    cr_expect_eq(g_rmdir(dir), 0);
}

Test(runtime_model, onnx_from_path)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModel) model = kiln_model_load(DIGITS, &error);
    cr_assert(model, "%s", error ? error->message : "");
    cr_assert_eq(kiln_model_n_inputs(model), 1);
    cr_assert_eq(kiln_model_n_outputs(model), 1);
    const KilnTensorInfo *input = kiln_model_input(model, 0);
    cr_expect_str_eq(input->name, "image");
    cr_expect_eq(input->dtype, KILN_DTYPE_f32);
    cr_assert_eq(input->rank, 4);
    cr_expect_eq(input->dims[3], 28);
    cr_expect_eq(input->bytes, 28 * 28 * 4);
    cr_expect_null(kiln_model_input(model, 1));
    cr_expect_null(kiln_model_output(model, 1));
}

/* Blocks come in any order, and their words are all that a text without a name has to say. */
Test(runtime_model, texts_are_known_by_their_first_word)
{
    static const char function[] = "graph @f(%x: f32[2]) {\n  return %x\n}\n";
    static const char *const starts[] = { "",
                                          "graph@g(%x: f32[2]) {\n  return %x\n}\n",
                                          "fold(%x: f32[2]) {\n}\n",
                                          "constants{ @c = splat(1.0) : f32[2] }\n",
                                          "declare\n@d(f32[2]) -> f32[2]\n",
                                          "metadata{ domain = \"d\" }\n",
                                          "\n\t# a comment\n" };
    for (size_t i = 0; i < G_N_ELEMENTS(starts); i++) {
        g_autoptr(GError) error = NULL;
        char *text = g_strconcat(starts[i], function, NULL);
        g_autoptr(GBytes) bytes = g_bytes_new_take(text, strlen(text));
        g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, NULL, &error);
        cr_expect(model, "%s: %s", starts[i], error ? error->message : "");
    }
}

Test(runtime_model, onnx_from_bytes)
{
    char *data;
    gsize size;
    cr_assert(g_file_get_contents(DIGITS, &data, &size, NULL));
    g_autoptr(GBytes) bytes = g_bytes_new_take(data, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, NULL, &error);
    cr_assert(model, "%s", error ? error->message : "");
    cr_expect_str_eq(kiln_model_input(model, 0)->name, "image");

    /* The heap is not a map of a file: dropping pages of it would lose the weights. */
    g_autoptr(KilnProgram) program = kiln_program_compile(model, NULL, &error);
    cr_assert(program, "%s", error ? error->message : "");
    g_autoptr(GBytes) before = g_bytes_new(data, size);
    cr_expect(g_bytes_equal(before, bytes));
    g_autoptr(KilnModel) again = kiln_model_load(DIGITS, &error);
    g_autoptr(KilnProgram) mapped = kiln_program_compile(again, NULL, &error);
    float picture[28 * 28], first[10];
    for (int i = 0; i < 28 * 28; i++)
        picture[i] = (float)(i % 7) / 7;
    g_autoptr(KilnSession) a = kiln_session_new(program, NULL, NULL);
    g_autoptr(KilnSession) b = kiln_session_new(mapped, NULL, NULL);
    bind(a, 0, picture, sizeof picture);
    bind(b, 0, picture, sizeof picture);
    run(a);
    run(b);
    memcpy(first, kiln_session_output(a, 0, NULL, NULL), sizeof first);
    cr_expect_arr_eq(first, kiln_session_output(b, 0, NULL, NULL), sizeof first);
}

Test(runtime_model, text_of_both_levels)
{
    g_autoptr(KilnModel) graph = model_of(graph_text);
    cr_assert_eq(kiln_model_n_inputs(graph), 3);
    cr_assert_eq(kiln_model_n_outputs(graph), 2);
    const KilnTensorInfo *x = kiln_model_input(graph, 0);
    cr_expect_eq(x->dims[0], -1);
    cr_expect_str_eq(x->dim_names[0], "N");
    cr_expect_eq(x->dims[1], 3);
    cr_expect_null(x->dim_names[1]);
    cr_expect_eq(x->bytes, -1);
    cr_expect_eq(kiln_model_input(graph, 1)->rank, 0);
    cr_expect_eq(kiln_model_input(graph, 1)->bytes, 4);
    cr_expect_eq(kiln_model_input(graph, 2)->rank, -1);
    cr_expect_eq(kiln_model_input(graph, 2)->bytes, -1);
    cr_expect_str_eq(kiln_model_output(graph, 0)->name, "y");
    cr_expect_eq(kiln_model_output(graph, 1)->dtype, KILN_DTYPE_i64);

    g_autoptr(KilnModel) ir = model_of(ir_text);
    cr_assert_eq(kiln_model_n_inputs(ir), 1);
    cr_expect_str_eq(kiln_model_output(ir, 0)->name, "y");
    cr_expect_eq(kiln_model_output(ir, 0)->bytes, 16);
}

/* What a file holds decides, where its name says nothing. */
Test(runtime_model, text_is_recognised)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        { "model.kiln", graph_text },
        { "model.txt", graph_text },
        { "model", ir_text },
        { "model", "\n\n  constants { }\ngraph @f(%x: f32[1]) { return %x }" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = write_file(cases[i].name, cases[i].text, -1);
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnModel) model = kiln_model_load(path, &error);
        cr_expect(model, "%s: %s", cases[i].name, error ? error->message : "");
        remove_file(path);
    }
}

Test(runtime_model, errors)
{
    static const struct {
        const char *name, *text;
        KilnError code;
        const char *message;
    } cases[] = {
        { "a.kiln", "", KILN_ERROR_PARSE, "a.kiln: expected a graph or func block" },
        { "a.kiln", "constants { }", KILN_ERROR_PARSE, "expected a graph or func block" },
        { "a.kiln", "graph @f(", KILN_ERROR_PARSE, "a.kiln:1:10" },
        { "a.kiln", "func @f {", KILN_ERROR_PARSE, "a.kiln:1:" },
        { "a.kiln", "graph @f(%x: f32[2]) { %y = relu(%x) : f32[3] return %y }", KILN_ERROR_SHAPE,
          "f32[3]" },
        { "a.kiln", "graph @f(%x: f32[2]) { return %y }", KILN_ERROR_PARSE, "y" },
        { "a.onnx", "", KILN_ERROR_FORMAT, "a.onnx: " },
        { "a.onnx", "graph @f() {}", KILN_ERROR_FORMAT, "a.onnx: " },
        { NULL, "\x0a\xff", KILN_ERROR_FORMAT, "(memory): " },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GBytes) bytes = g_bytes_new_static(cases[i].text, strlen(cases[i].text));
        GError *error = NULL;
        cr_assert_null(kiln_model_load_bytes(bytes, cases[i].name, &error), "%zu", i);
        expect_error(&error, cases[i].code, cases[i].message);
    }
}

Test(runtime_model, files_that_cannot_be_read)
{
    GError *error = NULL;
    cr_expect_null(kiln_model_load("/nowhere/model.onnx", &error));
    expect_error(&error, KILN_ERROR_IO, "/nowhere/model.onnx: cannot be read");
    cr_expect_null(kiln_model_load(KILN_SOURCE_DIR, &error));
    expect_error(&error, KILN_ERROR_IO, "cannot be read");
    g_autofree char *empty = write_file("empty.onnx", "", 0);
    cr_expect_null(kiln_model_load(empty, &error));
    expect_error(&error, KILN_ERROR_FORMAT, "empty.onnx");
    remove_file(empty);
    /* Errors may be ignored. */
    cr_expect_null(kiln_model_load("/nowhere/model.onnx", NULL));
}

/* Bytes without a name have no folder that external data could lie in. */
Test(runtime_model, external_data_needs_a_file)
{
    GByteArray *graph = onnx_graph_new("g");
    GByteArray *tensor = onnx_tensor("w", ONNX_F32, "2", NULL, 0);
    g_autoptr(GByteArray) entry = g_byte_array_new();
    kiln_wire_put_text(entry, 1, "location");
    kiln_wire_put_text(entry, 2, "w.bin");
    kiln_wire_put_message(tensor, 13, entry);
    kiln_wire_put_varint(tensor, 14, 1);
    onnx_initializer(graph, tensor);
    onnx_input(graph, "x", ONNX_F32, "2");
    onnx_node(graph, "Add", "x,w", "y", NULL);
    onnx_output(graph, "y", ONNX_F32, "2");
    g_autoptr(GBytes) model = onnx_model(graph, 8, 13);
    GError *error = NULL;
    cr_expect_null(kiln_model_load_bytes(model, NULL, &error));
    expect_error(&error, KILN_ERROR_FORMAT, "the model was not read from a file");
}

/* --- what the file says of itself --- */

static void
add_property(GByteArray *out, const char *key, const char *value)
{
    g_autoptr(GByteArray) property = g_byte_array_new();
    kiln_wire_put_text(property, 1, key);
    kiln_wire_put_text(property, 2, value);
    kiln_wire_put_message(out, 14, property);
}

/* y = relu(x), with all that a ModelProto has beside its graph. */
static GBytes *
described_onnx(void)
{
    GByteArray *graph = onnx_graph_new("net");
    onnx_input(graph, "x", ONNX_F32, "2");
    onnx_node(graph, "Relu", "x", "y", NULL);
    onnx_output(graph, "y", ONNX_F32, "2");
    g_autoptr(GBytes) bare = onnx_model(graph, 8, 13);
    GByteArray *file = g_byte_array_new();
    gsize size;
    const uint8_t *data = g_bytes_get_data(bare, &size);
    g_byte_array_append(file, data, size);
    kiln_wire_put_text(file, 2, "a trainer");
    kiln_wire_put_text(file, 3, "2.5");
    kiln_wire_put_text(file, 4, "org.example");
    kiln_wire_put_varint(file, 5, (uint64_t)INT64_C(-3));
    kiln_wire_put_bytes(file, 6, "a \"net\"\n\xff\0.", 11);
    add_property(file, "labels", "cat");
    add_property(file, "stride", "32");
    add_property(file, "labels", "dog\n");
    return g_byte_array_free_to_bytes(file);
}

static void
expect_described(const KilnMetadata *metadata, bool exported)
{
    cr_expect_str_eq(metadata->graph_name, "net");
    cr_expect_str_eq(metadata->producer_name, exported ? "kiln" : "a trainer");
    cr_expect_str_eq(metadata->producer_version, exported ? kiln_version() : "2.5");
    cr_expect_str_eq(metadata->domain, "org.example");
    cr_expect_eq(metadata->model_version, -3);
    cr_expect_eq(metadata->ir_version, 8);
    cr_expect_str_eq(metadata->doc_string, "a \"net\"\n\xef\xbf\xbd\xef\xbf\xbd.");
    cr_assert_eq(metadata->n_opsets, 1);
    cr_expect_str_eq(metadata->opsets[0].domain, "");
    cr_expect_eq(metadata->opsets[0].version, exported ? 17 : 13);
    cr_assert_eq(metadata->n_properties, 3);
    cr_expect_str_eq(metadata->properties[0].value, "cat");
    cr_expect_str_eq(kiln_metadata_property(metadata, "labels"), "dog\n");
    cr_expect_str_eq(kiln_metadata_property(metadata, "stride"), "32");
    cr_expect_null(kiln_metadata_property(metadata, "label"));
}

Test(runtime_model, metadata_is_kept_to_the_program)
{
    g_autoptr(GBytes) bytes = described_onnx();
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "m.onnx", &error);
    cr_assert(model, "%s", error ? error->message : "");
    expect_described(kiln_model_metadata(model), false);

    g_autoptr(KilnProgram) program = kiln_program_compile(model, NULL, &error);
    cr_assert(program, "%s", error ? error->message : "");
    g_clear_pointer(&model, kiln_model_unref);
    expect_described(kiln_program_metadata(program), false);

    g_autofree char *path = write_file("p.kiln-program", "", 0);
    cr_assert(kiln_program_save(program, path, &error), "%s", error ? error->message : "");
    g_autoptr(KilnProgram) loaded = kiln_program_load(path, NULL, &error);
    cr_assert(loaded, "%s", error ? error->message : "");
    expect_described(kiln_program_metadata(loaded), false);
    remove_file(path);
}

Test(runtime_model, metadata_is_kept_by_text_and_by_export)
{
    g_autoptr(GBytes) bytes = described_onnx();
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = kiln_onnx_import(bytes, NULL, &error);
    cr_assert(module, "%s", error ? error->message : "");
    g_autoptr(KilnModule) clone = kiln_module_clone(module);
    g_autoptr(GString) text = g_string_new(NULL);
    cr_assert(kiln_module_print(clone, NULL, text, &error));
    g_autoptr(KilnModel) read = model_of(text->str);
    expect_described(kiln_model_metadata(read), false);

    g_autoptr(GByteArray) file = g_byte_array_new();
    cr_assert(kiln_onnx_export(clone, file, &error));
    g_autoptr(GBytes) exported = g_bytes_new(file->data, file->len);
    g_autoptr(KilnModel) again = kiln_model_load_bytes(exported, "again.onnx", &error);
    cr_assert(again, "%s", error ? error->message : "");
    expect_described(kiln_model_metadata(again), true);
}

Test(runtime_model, metadata_of_a_text_that_says_nothing)
{
    g_autoptr(KilnModel) model = model_of(ir_text);
    const KilnMetadata *metadata = kiln_model_metadata(model);
    cr_expect_str_eq(metadata->graph_name, "f");
    cr_expect_str_eq(metadata->producer_name, "");
    cr_expect_str_eq(metadata->doc_string, "");
    cr_expect(metadata->n_opsets == 0 && metadata->n_properties == 0);
    cr_expect_null(kiln_metadata_property(metadata, ""));
}

/* --- what a target lacks --- */

Test(runtime_model, nothing_is_missing)
{
    g_autoptr(KilnModel) model = model_of(graph_text);
    g_autoptr(KilnModel) ir = model_of(ir_text);
    const struct {
        const KilnModel *model;
        const char *target;
    } cases[] = { { model, "cpu" }, { model, NULL }, { ir, "ref" } };
    unsigned n;
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        n = 1;
        g_autofree KilnUnsupported **found =
            kiln_model_check(cases[i].model, cases[i].target, &n, NULL);
        cr_expect(found && !found[0] && n == 0);
    }
    GError *error = NULL;
    cr_expect(!kiln_model_check(model, "gpu", &n, &error) && n == 0);
    expect_error(&error, KILN_ERROR_USAGE, "gpu");
}

Test(runtime_model, everything_that_is_missing)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_F32, "2");
    onnx_node(graph, "NoSuchOp", "x", "a", NULL);
    onnx_node(graph, "com.example:Thing", "x", "b", NULL);
    onnx_node(graph, "Add", "a,b", "y", NULL);
    onnx_output(graph, "y", ONNX_F32, "2");
    g_autoptr(GBytes) bytes = onnx_model(graph, 8, 13);
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "m.onnx", &error);
    cr_assert(model, "%s", error ? error->message : "");
    unsigned n;
    g_autofree KilnUnsupported **found = kiln_model_check(model, "cpu", &n, &error);
    cr_assert(found && n == 2 && !found[2]);
    cr_expect_str_eq(found[0]->op, "NoSuchOp");
    cr_expect_eq(found[0]->opset, 13);
    cr_expect_str_eq(found[0]->dtype, "f32");
    cr_expect_str_eq(found[0]->node, "a");
    cr_expect_str_eq(found[1]->op, "com.example:Thing");

    cr_expect_null(kiln_program_compile(model, NULL, &error));
    expect_error(&error, KILN_ERROR_UNSUPPORTED, "NoSuchOp");
}

Test(runtime_model, references)
{
    KilnModel *model = model_of(graph_text);
    cr_expect_eq(kiln_model_ref(model), model);
    kiln_model_unref(model);
    cr_expect_eq(kiln_model_n_inputs(model), 3);
    kiln_model_unref(model);
    kiln_model_unref(NULL);
    kiln_program_unref(NULL);
    kiln_pipeline_unref(NULL);
    kiln_session_free(NULL);
}

Test(runtime_model, version)
{
    cr_expect(g_str_has_prefix(kiln_build_info(), "kiln "));
    cr_expect(strstr(kiln_build_info(), kiln_version()));
    g_autoptr(GError) error = NULL;
    const KilnTarget *target = kiln_target_by_name("cpu", &error);
    cr_assert_not_null(target);
    cr_expect(strstr(kiln_build_info(), target->vendor ? ", oneDNN " : ", without oneDNN"), "%s",
              kiln_build_info());
}
