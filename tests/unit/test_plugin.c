/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins: passes from shared objects, and every way in which one cannot be loaded. */
#include "passes/context/options.h"
#include "passes/kiln-pass.h"
#include "passes/manager/manager.h"
#include "passes/pipeline/pipeline.h"

#include <criterion/criterion.h>
#include <string.h>

#define PLUGIN(name) KILN_BINARY_DIR "/plugins/plugin-" name ".so"

static KilnPassPipeline *
read_yaml(const char *text, GError **error)
{
    return kiln_pass_pipeline_parse_yaml(text, strlen(text), "p.yaml", error);
}

static void
expect_error(const char *plugin, const char *part)
{
    g_autofree char *text = g_strdup_printf("version: 1\nplugins: [%s]\n", plugin);
    g_autoptr(GError) error = NULL;
    cr_assert_null(read_yaml(text, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_PIPELINE));
    cr_assert(g_str_has_prefix(error->message, "p.yaml:2:11: plug-in "), "%s", error->message);
    cr_assert(strstr(error->message, part), "expected: %s\nfound:    %s", part, error->message);
}

Test(plugin, its_passes_run_in_a_pipeline)
{
    static const char yaml[] = "version: 1\n"
                               "flags: [finite-math]\n"
                               "plugins: [" PLUGIN("good") "]\n"
                                                           "graph:\n"
                                                           "  - pass: soften\n"
                                                           "    options: {deep: true}\n"
                                                           "  - drop-identities\n"
                                                           "ir:\n"
                                                           "  - count-copies\n";
    static const char graph[] = "graph @f(%x: f32[3]) {\n"
                                "  %a = tanh(%x) : f32[3]\n"
                                "  %i = identity(%a) : f32[3]\n"
                                "  %b = tanh(%i) : f32[3]\n"
                                "  return %b\n"
                                "}\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPassPipeline) pipeline = read_yaml(yaml, &error);
    cr_assert_not_null(pipeline, "%s", error ? error->message : "");
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(graph, strlen(graph), "t.kiln", &error);
    cr_assert_not_null(ir, "%s", error ? error->message : "");
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.check_changed = true;
    cr_assert(kiln_pipeline_run_graph(pipeline, ir->module, &options, NULL, &error), "%s",
              error ? error->message : "");
    g_autoptr(GString) ops = g_string_new(NULL);
    kiln_foreach_node (node, kiln_module_entry(ir->module))
        g_string_append_printf(ops, "%s ", kiln_op_info(node->op)->name);
    cr_assert_str_eq(ops->str, "tanh softsign return ");
}

Test(plugin, printing_a_pipeline_keeps_its_plugins)
{
    static const char yaml[] =
        "version: 1\nplugins: [" PLUGIN("good") "]\ngraph: [drop-identities]\n";
    g_autoptr(KilnPassPipeline) once = read_yaml(yaml, NULL);
    cr_assert_not_null(once);
    g_autoptr(GString) first = g_string_new(NULL);
    kiln_pass_pipeline_print(once, first);
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPassPipeline) twice = read_yaml(first->str, &error);
    cr_assert_not_null(twice, "%s", error ? error->message : "");
    g_autoptr(GString) second = g_string_new(NULL);
    kiln_pass_pipeline_print(twice, second);
    cr_assert_str_eq(first->str, second->str);
}

Test(plugin, a_plugin_that_is_named_twice_is_loaded_once)
{
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_new();
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_pass_pipeline_load_plugin(pipeline, PLUGIN("good"), &error));
    cr_assert(kiln_pass_pipeline_load_plugin(pipeline, PLUGIN("good"), &error));
    cr_assert_eq(pipeline->plugins->len, 1);
    cr_assert_eq(pipeline->extra->len, 3);
}

Test(plugin, what_cannot_be_loaded_says_why)
{
    expect_error("./no-such-plugin.so", "there is no such file");
    expect_error(KILN_SOURCE_DIR "/LICENSE", "LICENSE: ");
    expect_error(PLUGIN("wrong_version"), "built for version 6 of kiln-pass.h, expected 5");
    expect_error(PLUGIN("no_symbol"), "it has no symbol kiln_pass_plugin");
    expect_error(PLUGIN("taken_id"), "there are two passes 'dce'");
    expect_error(PLUGIN("missing_function"), "kiln_function_that_is_nowhere");
}
