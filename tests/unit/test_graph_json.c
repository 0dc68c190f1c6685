/* SPDX-License-Identifier: Apache-2.0 */
/* DOT and JSON of both levels. */
#include "text_files.h"

#include "graph/text/json.h"
#include "ir/ir.h"
#include "ir/text/json.h"

#include <json-glib/json-glib.h>
#include <string.h>

static KilnIRModule *
parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    KilnIRModule *ir = kiln_ir_module_parse(text, strlen(text), "j.kiln", &error);
    cr_assert(ir, "%s", error ? error->message : "");
    return ir;
}

static const char small[] = "graph @g(%c: bool[], %\"a\\\"b\": f32[N] constant=run in [0,1)) {\n"
                            "  %w = const @w : f32[1]\n"
                            "  %y = if(%c) then {\n"
                            "    %t = clip(%\"a\\\"b\", _, _) : f32[N]\n"
                            "    return %t\n"
                            "  } else {\n"
                            "    %u = elu(%\"a\\\"b\") {alpha=0.1} : f32[N]\n"
                            "    return %u\n"
                            "  } : f32[N] loc(\"/If\")\n"
                            "  %z = mul(%y, %w) : f32[N]\n"
                            "  return %z as \"out put\"\n"
                            "}\n"
                            "constants { @w = splat(nan) : f32[1] }\n"
                            "func @f {\n"
                            "  arena 64\n"
                            "  weight @w : f32[1] const\n"
                            "  input @x : f32[1]\n"
                            "  output @y : f32[1]\n"
                            "  %a = alloc at 0 : f32[1]\n"
                            "  stack @out %a, @in @x, @in @w { mul inf; add @w; elu {alpha=inf} }\n"
                            "  clip @out @y, @in %a, _, @in @w\n"
                            "  dealloc %a\n"
                            "}\n";

Test(graph_json, dot_has_a_cluster_per_function_and_an_edge_per_read)
{
    g_autoptr(KilnIRModule) ir = parse(small);
    g_autoptr(GString) out = g_string_new(NULL);
    kiln_module_dot(ir->module, out);
    cr_assert_str_eq(
        out->str, "digraph kiln {\n"
                  "  node [fontname=\"monospace\"];\n"
                  "  subgraph cluster_0 {\n"
                  "    label=\"graph @g\";\n"
                  "    f0_a0 [shape=ellipse, label=\"argument\\n%c: bool[]\"];\n"
                  "    f0_a1 [shape=ellipse, label=\"argument\\n%\\\"a\\\\\\\"b\\\": f32[N]\"];\n"
                  "    f0_n0 [shape=ellipse, label=\"const @w\\n%w: f32[1]\"];\n"
                  "    f0_n1 [shape=box, label=\"if\\n%y: f32[N] loc(\\\"/If\\\")\"];\n"
                  "    subgraph cluster_1 {\n"
                  "      label=\"then @then_branch\";\n"
                  "      f1_n0 [shape=box, label=\"clip\\n%t: f32[N]\"];\n"
                  "      f0_a1 -> f1_n0 [label=\"%\\\"a\\\\\\\"b\\\"\"];\n"
                  "      f1_n1 [shape=box, label=\"return\"];\n"
                  "      f1_n0 -> f1_n1 [label=\"%t\"];\n"
                  "    }\n"
                  "    subgraph cluster_2 {\n"
                  "      label=\"else @else_branch\";\n"
                  "      f2_n0 [shape=box, label=\"elu {alpha=0.1}\\n%u: f32[N]\"];\n"
                  "      f0_a1 -> f2_n0 [label=\"%\\\"a\\\\\\\"b\\\"\"];\n"
                  "      f2_n1 [shape=box, label=\"return\"];\n"
                  "      f2_n0 -> f2_n1 [label=\"%u\"];\n"
                  "    }\n"
                  "    f0_a0 -> f0_n1 [label=\"%c\"];\n"
                  "    f0_n2 [shape=box, label=\"mul\\n%z: f32[N]\"];\n"
                  "    f0_n1 -> f0_n2 [label=\"%y\"];\n"
                  "    f0_n0 -> f0_n2 [label=\"%w\"];\n"
                  "    f0_n3 [shape=box, label=\"return\"];\n"
                  "    f0_n2 -> f0_n3 [label=\"%z\"];\n"
                  "  }\n"
                  "}\n");
}

static JsonObject *
member(JsonObject *object, const char *array, guint i)
{
    JsonArray *list = json_object_get_array_member(object, array);
    cr_assert(list && i < json_array_get_length(list), "%s[%u]", array, i);
    return json_array_get_object_element(list, i);
}

static JsonParser *
read_json(const GString *text)
{
    JsonParser *parser = json_parser_new();
    g_autoptr(GError) error = NULL;
    cr_assert(json_parser_load_from_data(parser, text->str, (gssize)text->len, &error), "%s\n%s",
              error ? error->message : "", text->str);
    return parser;
}

#define STRING(object, name) json_object_get_string_member(object, name)

Test(graph_json, a_graph_reads_back)
{
    g_autoptr(KilnIRModule) ir = parse(small);
    g_autoptr(GString) out = g_string_new(NULL);
    kiln_module_json(ir->module, out);
    JsonParser *parser = read_json(out);
    JsonObject *root = json_node_get_object(json_parser_get_root(parser));
    cr_assert_eq(json_object_get_int_member(root, "schema_version"), 1);
    JsonObject *g = member(root, "functions", 0);
    cr_assert_str_eq(STRING(g, "name"), "g");
    JsonObject *argument = member(g, "arguments", 1);
    cr_assert_str_eq(STRING(argument, "name"), "a\"b");
    cr_assert_str_eq(STRING(argument, "type"), "f32[N]");
    cr_assert_str_eq(STRING(argument, "constant"), "run");
    cr_assert_str_eq(STRING(argument, "range"), "[0,1)");
    JsonObject *constant = json_object_get_object_member(member(g, "nodes", 0), "attrs");
    cr_assert_str_eq(STRING(constant, "value"), "w");
    JsonObject *branch = member(g, "nodes", 1);
    cr_assert_str_eq(STRING(branch, "op"), "if");
    cr_assert_str_eq(STRING(branch, "name"), "/If");
    cr_assert_str_eq(STRING(member(branch, "results", 0), "name"), "y");
    JsonObject *attrs = json_object_get_object_member(branch, "attrs");
    JsonObject *clip = member(json_object_get_object_member(attrs, "then_branch"), "nodes", 0);
    JsonArray *operands = json_object_get_array_member(clip, "operands");
    cr_assert_eq(json_array_get_length(operands), 3);
    cr_assert(json_array_get_null_element(operands, 1));
    JsonObject *elu = member(json_object_get_object_member(attrs, "else_branch"), "nodes", 0);
    elu = json_object_get_object_member(elu, "attrs");
    cr_assert_eq(json_object_get_double_member(elu, "alpha"), 0.1);
    cr_assert_str_eq(STRING(member(g, "results", 0), "name"), "out put");
    cr_assert_str_eq(STRING(member(g, "results", 0), "value"), "z");
    cr_assert_str_eq(STRING(member(root, "constants", 0), "type"), "f32[1]");
    g_object_unref(parser);
}

Test(graph_json, a_func_reads_back)
{
    g_autoptr(KilnIRModule) ir = parse(small);
    g_autoptr(GString) out = g_string_new(NULL);
    kiln_ir_json(ir, out);
    JsonParser *parser = read_json(out);
    JsonObject *root = json_node_get_object(json_parser_get_root(parser));
    JsonObject *f = member(root, "functions", 0);
    cr_assert_eq(json_object_get_int_member(f, "arena"), 64);
    cr_assert_str_eq(STRING(member(f, "weights", 0), "constant"), "w");
    cr_assert(json_object_get_boolean_member(member(f, "weights", 0), "const"));
    cr_assert_str_eq(STRING(member(f, "inputs", 0), "type"), "f32[1]");
    JsonObject *alloc = member(f, "instrs", 0);
    cr_assert_str_eq(STRING(alloc, "op"), "alloc");
    cr_assert_eq(json_object_get_int_member(alloc, "offset"), 0);
    JsonObject *stack = member(f, "instrs", 1);
    cr_assert_str_eq(STRING(member(stack, "operands", 0), "access"), "out");
    JsonObject *mul = member(stack, "steps", 0), *add = member(stack, "steps", 1);
    cr_assert_eq(json_object_get_int_member(member(mul, "sources", 0), "operand"), 1);
    cr_assert_str_eq(STRING(member(mul, "sources", 1), "scalar"), "inf");
    cr_assert_str_eq(STRING(mul, "type"), "f32");
    cr_assert_eq(json_object_get_int_member(member(add, "sources", 0), "step"), 0);
    cr_assert_eq(json_object_get_int_member(member(add, "sources", 1), "operand"), 2);
    cr_assert_eq(json_object_get_int_member(member(stack, "steps", 2), "store"), 0);
    JsonObject *elu = json_object_get_object_member(member(stack, "steps", 2), "attrs");
    cr_assert_str_eq(STRING(elu, "alpha"), "inf");
    JsonArray *clip = json_object_get_array_member(member(f, "instrs", 2), "operands");
    cr_assert(json_array_get_null_element(clip, 2));
    g_object_unref(parser);
}

Test(graph_json, every_text_makes_valid_json)
{
    for (int level = 0; level < 2; level++) {
        g_autoptr(GPtrArray) files = text_files(level);
        for (guint i = 0; i < files->len; i++) {
            g_autoptr(KilnIRModule) ir = parse(((TextFile *)g_ptr_array_index(files, i))->text);
            g_autoptr(GString) out = g_string_new(NULL);
            if (level)
                kiln_ir_json(ir, out);
            else
                kiln_module_json(ir->module, out);
            g_object_unref(read_json(out));
            kiln_module_dot(ir->module, out);
        }
    }
}
