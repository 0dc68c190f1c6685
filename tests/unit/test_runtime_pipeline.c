/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines as users hold them: shipped, from a file, from text, built in C. */
#include "graph/op/math.h"
#include "kiln.h"
#include "passes/kiln-pass.h"
#include "tests/unit/runtime_case.h"

#include <glib/gstdio.h>

Test(runtime_pipeline, shipped_ones_load_and_print)
{
    static const char *const names[] = { "default", "none", "debug" };
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnPipeline) pipeline = kiln_pipeline_load(names[i], &error);
        cr_assert(pipeline, "%s", error ? error->message : "");
        g_autofree char *text = kiln_pipeline_to_string(pipeline);
        cr_expect(g_str_has_prefix(text, "version: 1"), "%s", text);
    }
}

Test(runtime_pipeline, printed_ones_load_back)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_load("default", &error);
    g_autofree char *text = kiln_pipeline_to_string(pipeline);
    g_autofree char *dir = g_dir_make_tmp("kiln-runtime-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "printed.yaml", NULL);
    cr_assert(g_file_set_contents(path, text, -1, NULL));
    g_autoptr(KilnPipeline) again = kiln_pipeline_load(path, &error);
    cr_assert(again, "%s", error ? error->message : "");
    g_autofree char *twice = kiln_pipeline_to_string(again);
    cr_expect_str_eq(twice, text);

    /* A file in the working folder needs neither a folder nor an ending in its name. */
    g_autofree char *plain = g_build_filename(dir, "mine", NULL);
    cr_assert(g_file_set_contents(plain, text, -1, NULL));
    g_autofree char *here = g_get_current_dir();
    cr_assert_eq(g_chdir(dir), 0);
    g_autoptr(KilnPipeline) mine = kiln_pipeline_load("mine", &error);
    cr_expect(mine, "%s", error ? error->message : "");
    cr_assert_eq(g_chdir(here), 0);
    g_unlink(plain);
    g_unlink(path);
    g_rmdir(dir);
}

Test(runtime_pipeline, wrong_ones)
{
    GError *error = NULL;
    cr_expect_null(kiln_pipeline_load("fast", &error));
    expect_error(&error, KILN_ERROR_PIPELINE, "fast: expected a file or one of ");
    cr_expect_null(kiln_pipeline_load("fast", &error));
    expect_error(&error, KILN_ERROR_PIPELINE, "default");
    cr_expect_null(kiln_pipeline_load("/nowhere/fast.yaml", &error));
    expect_error(&error, KILN_ERROR_IO, "/nowhere/fast.yaml");
    cr_expect_null(kiln_pipeline_parse("dce,no-such-pass", &error));
    expect_error(&error, KILN_ERROR_PIPELINE, "no-such-pass");
    cr_expect_null(kiln_pipeline_parse("constant-fold{evaluate=never}", &error));
    expect_error(&error, KILN_ERROR_PIPELINE, "never");
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_new();
    cr_expect(!kiln_pipeline_add(pipeline, "no-such-pass", &error));
    expect_error(&error, KILN_ERROR_PIPELINE, "no-such-pass");
    cr_expect(!kiln_pipeline_add(pipeline, "dce,cse{no-such-option=1}", &error));
    expect_error(&error, KILN_ERROR_PIPELINE, "no-such-option");
    cr_expect(!kiln_pipeline_add(pipeline, "", &error));
    expect_error(&error, KILN_ERROR_PIPELINE, "found nothing");
    g_autoptr(KilnPipeline) untouched = kiln_pipeline_new();
    g_autofree char *a = kiln_pipeline_to_string(pipeline);
    g_autofree char *b = kiln_pipeline_to_string(untouched);
    cr_expect_str_eq(a, b);
}

Test(runtime_pipeline, built_in_c)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPipeline) built = kiln_pipeline_new();
    must(kiln_pipeline_add(built, "cse", &error), error);
    must(kiln_pipeline_add(built, "dse", &error), error); /* of the other level */
    must(kiln_pipeline_add(built, "constant-fold{evaluate=compile}", &error), error);
    g_autoptr(KilnPipeline) parsed =
        kiln_pipeline_parse("cse,constant-fold{evaluate=compile},dse", &error);
    cr_assert(parsed, "%s", error ? error->message : "");
    g_autofree char *a = kiln_pipeline_to_string(built), *b = kiln_pipeline_to_string(parsed);
    cr_expect_str_eq(a, b);

    /* Once used it cannot change: programs that hold it would. */
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = built;
    g_autoptr(KilnProgram) program =
        program_of("graph @f(%x: f32[2]) { %y = relu(%x) : f32[2] return %y }", &options);
    cr_assert_not_null(program);
    cr_expect(!kiln_pipeline_add(built, "dce", &error));
    expect_error(&error, KILN_ERROR_USAGE, "cannot change");
    cr_expect_eq(kiln_pipeline_ref(built), built);
    kiln_pipeline_unref(built);
}

/* A pass of the program's own: neg becomes abs. */
static gboolean
make_abs(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    cr_expect_str_eq(kiln_pass_running(context)->id, "make-abs");
    kiln_foreach_node_safe (node, function) {
        KilnValue *x = kiln_node_operand(node, 0);
        if (node->op != KILN_OP_neg)
            continue;
        KilnValue *abs = kiln_build(function, node, KILN_OP_abs, NULL, &x, 1, error);
        if (!abs)
            return FALSE;
        kiln_pass_note(context, "abs", "%s", kiln_node_label(node));
        kiln_value_replace(kiln_node_result(node, 0), abs);
        kiln_node_remove(node);
        *changed = true;
    }
    return TRUE;
}

Test(runtime_pipeline, passes_of_the_program)
{
    static const KilnPassInfo passes[] = { { .id = "make-abs",
                                             .level = KILN_LEVEL_GRAPH,
                                             .summary = "absolute values of what is negated",
                                             .run_graph = make_abs },
                                           { .id = "cse", .run_graph = make_abs } };
    KilnPassPlugin table = { KILN_PASS_API_VERSION, sizeof(KilnPassInfo), passes, 2 };
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_new();
    cr_expect(!kiln_pipeline_register_passes(pipeline, &table, &error));
    expect_error(&error, KILN_ERROR_PIPELINE, "there are two passes 'cse'");
    cr_expect(!kiln_pipeline_add(pipeline, "make-abs", &error)); /* none was taken */
    expect_error(&error, KILN_ERROR_PIPELINE, "make-abs");
    table.api_version++;
    cr_expect(!kiln_pipeline_register_passes(pipeline, &table, &error));
    expect_error(&error, KILN_ERROR_PIPELINE, "a table of passes: built for version");
    table = (KilnPassPlugin){ KILN_PASS_API_VERSION, 1, passes, 2 };
    cr_expect(!kiln_pipeline_register_passes(pipeline, &table, &error));
    expect_error(&error, KILN_ERROR_PIPELINE, "a table of passes: its rows are 1 bytes");
    cr_expect(!kiln_pipeline_load_plugin(pipeline, "./no-such-plugin.so", &error));
    expect_error(&error, KILN_ERROR_PIPELINE, "there is no such file");

    table = (KilnPassPlugin){ KILN_PASS_API_VERSION, sizeof(KilnPassInfo), passes, 1 };
    must(kiln_pipeline_register_passes(pipeline, &table, &error), error);
    must(kiln_pipeline_add(pipeline, "make-abs", &error), error);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = pipeline;
    g_autoptr(KilnProgram) program =
        program_of("graph @f(%x: f32[2]) { %y = neg(%x) : f32[2] return %y }", &options);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    bind(session, 0, FLOATS(1, -2), 8);
    run(session);
    expect_floats(session, 0, FLOATS(1, 2), DIMS(2));
    cr_expect(!kiln_pipeline_register_passes(pipeline, &table, &error));
    expect_error(&error, KILN_ERROR_USAGE, "cannot change");
}

/* An empty pipeline is one: the model runs as it is. */
Test(runtime_pipeline, empty)
{
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_new();
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = pipeline;
    g_autoptr(KilnProgram) program =
        program_of("graph @f(%x: f32[2]) { %y = neg(%x) : f32[2] return %y }", &options);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    bind(session, 0, FLOATS(1, -2), 8);
    run(session);
    expect_floats(session, 0, FLOATS(-1, 2), DIMS(2));
}
