/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the model's own: calls are replaced by their nodes. */
#include "graph/base/budget.h"
#include "graph/kiln-types.h"
#include "graph/onnx/wire.h"
#include "tests/unit/onnx_builder.h"

#include <string.h>

enum {
    FLOAT = 1, /* kinds of attributes */
    INT = 2,
    GRAPH = 5,
};

/* x → z by one call. */
static GByteArray *
graph_xz(void)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_F32, "2,3");
    onnx_output(graph, "z", ONNX_F32, NULL);
    return graph;
}

/* The model of @graph in opset 13 with functions, up to NULL. Takes all over. */
static GBytes *
model_of(GByteArray *graph, ...)
{
    GBytes *model = onnx_model(graph, 8, 13);
    va_list functions;
    va_start(functions, graph);
    for (GByteArray *function; (function = va_arg(functions, GByteArray *));)
        model = onnx_model_append(model, 25, function);
    va_end(functions);
    return model;
}

static void
expect(GBytes *model, const char *expected)
{
    g_autofree char *found = onnx_imported(model);
    cr_expect(strcmp(found, expected) == 0, "expected\n%s\nfound\n%s\n", expected, found);
}

static void
expect_error(GBytes *model, KilnError code, const char *expected)
{
    g_autofree char *found = onnx_imported(model), *start = g_strdup_printf("%d: ", (int)code);
    cr_expect(g_str_has_prefix(found, start) && strstr(found, expected), "expected '%s', found %s",
              expected, found);
}

/* d:twice(a) = abs(a) + abs(a) */
static GByteArray *
twice(void)
{
    GByteArray *function = onnx_function_new("d:twice", "a", "b");
    onnx_function_opset(function, 13);
    onnx_function_node(function, "Abs", "a", "t", NULL);
    onnx_function_node(function, "Add", "t,t", "b", NULL);
    return function;
}

Test(onnx_function, nodes_replace_the_call)
{
    GByteArray *graph = graph_xz();
    onnx_node(graph, "d:twice", "x", "y", NULL);
    onnx_node(graph, "d:twice", "y", "z", NULL);
    expect(model_of(graph, twice(), NULL), "graph @g(%x: f32[2,3]) {\n"
                                           "  %\"y/t\" = abs(%x) : f32[2,3]\n"
                                           "  %y = add(%\"y/t\", %\"y/t\") : f32[2,3]\n"
                                           "  %\"z/t\" = abs(%y) : f32[2,3]\n"
                                           "  %z = add(%\"z/t\", %\"z/t\") : f32[2,3]\n"
                                           "  return %z\n"
                                           "}\n");
}

Test(onnx_function, functions_call_others)
{
    GByteArray *graph = graph_xz(), *outer = onnx_function_new("d:outer", "a", "b");
    onnx_function_opset(outer, 13);
    onnx_function_node(outer, "d:twice", "a", "t", NULL);
    onnx_function_node(outer, "Neg", "t", "b", NULL);
    onnx_node(graph, "d:outer", "x", "z", NULL);
    expect(model_of(graph, outer, twice(), NULL),
           "graph @g(%x: f32[2,3]) {\n"
           "  %\"z/t/t\" = abs(%x) : f32[2,3]\n"
           "  %\"z/t\" = add(%\"z/t/t\", %\"z/t/t\") : f32[2,3]\n"
           "  %z = neg(%\"z/t\") : f32[2,3]\n"
           "  return %z\n"
           "}\n");
}

/* d:leak(a) {alpha, beta = 0.25}: leaky_relu(elu(a)) */
static GByteArray *
leak(void)
{
    GByteArray *function = onnx_function_new("d:leak", "a", "b");
    g_autoptr(GByteArray) beta = onnx_float("beta", 0.25F);
    kiln_wire_put_text(function, 6, "alpha");
    kiln_wire_put_message(function, 11, beta);
    onnx_function_node(function, "Elu", "a", "t", onnx_reference("alpha", FLOAT, "alpha"), NULL);
    onnx_function_node(function, "LeakyRelu", "t", "b", onnx_reference("alpha", FLOAT, "beta"),
                       NULL);
    return function;
}

Test(onnx_function, attributes_come_from_the_call_or_a_default)
{
    GByteArray *graph = graph_xz();
    onnx_node(graph, "d:leak", "x", "y", onnx_float("alpha", 2), NULL);
    onnx_node(graph, "d:leak", "y", "z", onnx_float("beta", 0.5F), NULL);
    expect(model_of(graph, leak(), NULL), "graph @g(%x: f32[2,3]) {\n"
                                          "  %\"y/t\" = elu(%x) {alpha=2} : f32[2,3]\n"
                                          "  %y = leaky_relu(%\"y/t\") {alpha=0.25} : f32[2,3]\n"
                                          "  %\"z/t\" = elu(%y) : f32[2,3]\n"
                                          "  %z = leaky_relu(%\"z/t\") {alpha=0.5} : f32[2,3]\n"
                                          "  return %z\n"
                                          "}\n");
}

Test(onnx_function, references_go_through_functions_and_branches)
{
    GByteArray *graph = graph_xz(), *outer = onnx_function_new("d:outer", "c,a", "b");
    GByteArray *yes = onnx_graph_new("yes"), *no = onnx_graph_new("no");
    kiln_wire_put_text(outer, 6, "slope");
    onnx_node(yes, "d:leak", "a", "r", onnx_reference("beta", FLOAT, "slope"), NULL);
    onnx_output(yes, "r", ONNX_F32, NULL);
    onnx_node(no, "Identity", "a", "s", NULL);
    onnx_output(no, "s", ONNX_F32, NULL);
    onnx_function_node(outer, "If", "c", "b", onnx_graph("then_branch", yes),
                       onnx_graph("else_branch", no), NULL);
    onnx_input(graph, "on", ONNX_BOOL, "");
    onnx_node(graph, "d:outer", "on,x", "z", onnx_float("slope", 3), NULL);
    g_autofree char *found = onnx_imported(model_of(graph, leak(), outer, NULL));
    cr_expect(strstr(found, "%\"z/r\" = leaky_relu(%\"z/r/t\") {alpha=3}"), "%s", found);
    cr_expect(strstr(found, "%\"z/s\" = identity(%x)"), "%s", found);
}

Test(onnx_function, overloads_are_told_apart)
{
    GByteArray *graph = graph_xz(), *one = onnx_function_new("d:f.one", "a", "b");
    GByteArray *two = onnx_function_new("d:f.two", "a", "b");
    onnx_function_node(one, "Neg", "a", "b", NULL);
    onnx_function_node(two, "Abs", "a", "b", NULL);
    onnx_node(graph, "d:f.two", "x", "y", NULL);
    onnx_node(graph, "d:f.one", "y", "u", NULL);
    onnx_node(graph, "d:f", "u", "z", NULL);
    expect(model_of(graph, one, two, NULL),
           "graph @g(%x: f32[2,3]) {\n"
           "  %y = abs(%x) : f32[2,3]\n"
           "  %u = neg(%y) : f32[2,3]\n"
           "  %z = unknown(%u) {op_type=\"f\", domain=\"d\"} : f32[*]\n"
           "  return %z\n"
           "}\n");
}

Test(onnx_function, has_opsets_of_its_own)
{
    GByteArray *graph = graph_xz(), *old = onnx_function_new("d:old", "a", "b");
    onnx_function_opset(old, 6);
    onnx_function_node(old, "Clip", "a", "b", onnx_float("min", 0), NULL);
    onnx_node(graph, "d:old", "x", "y", NULL);
    onnx_node(graph, "Softmax", "y", "z", onnx_reference("axis", INT, ""), NULL);
    g_autofree char *found = onnx_imported(model_of(graph, old, NULL));
    cr_expect(strstr(found, "%y = clip(%x, %\"y/b.min\") : "), "%s", found);
    cr_expect(strstr(found, "%z = softmax(%y)"), "%s", found);
}

Test(onnx_function, operands_and_results_may_be_left_out)
{
    GByteArray *graph = graph_xz(), *clip = onnx_function_new("d:clip", "a,lo,hi", "b,same");
    onnx_function_node(clip, "Clip", "a,lo,hi", "b", NULL);
    onnx_function_node(clip, "Identity", "a", "same", NULL);
    onnx_node(graph, "d:clip", "x", "y", NULL);
    onnx_node(graph, "d:clip", "y,,top", "z", NULL);
    onnx_initializer(graph, onnx_tensor("top", ONNX_F32, "", "\0\0\x80\x3F", 4));
    g_autofree char *found = onnx_imported(model_of(graph, clip, NULL));
    cr_expect(strstr(found, "%y = clip(%x) :"), "%s", found);
    cr_expect(strstr(found, "%z = clip(%y, _, %top) :"), "%s", found);
}

Test(onnx_function, may_hand_an_operand_on)
{
    GByteArray *graph = graph_xz(), *pass = onnx_function_new("d:pass", "a", "a");
    onnx_node(graph, "d:pass", "x", "z", NULL);
    expect(model_of(graph, pass, NULL), "graph @g(%x: f32[2,3]) {\n"
                                        "  %z = identity(%x) : f32[2,3]\n"
                                        "  return %z\n"
                                        "}\n");
}

Test(onnx_function, wins_over_an_operator_of_its_name)
{
    GByteArray *graph = graph_xz(), *gelu = onnx_function_new(":Gelu", "a", "b");
    onnx_function_node(gelu, "Neg", "a", "b", NULL);
    onnx_node(graph, "Gelu", "x", "z", NULL);
    g_autofree char *found = onnx_imported(model_of(graph, gelu, NULL));
    cr_expect(strstr(found, "%z = neg(%x)"), "%s", found);
}

Test(onnx_function, names_of_the_model_come_first)
{
    GByteArray *graph = graph_xz();
    onnx_node(graph, "d:twice", "x", "y", NULL);
    onnx_node(graph, "Neg", "y", "y/t", NULL);
    onnx_node(graph, "Neg", "y/t", "z", NULL);
    g_autofree char *found = onnx_imported(model_of(graph, twice(), NULL));
    cr_expect(strstr(found, "%\"y/t_1\" = abs(%x)"), "%s", found);
    cr_expect(strstr(found, "%\"y/t\" = neg(%y)"), "%s", found);
}

Test(onnx_function, recursion_is_an_error)
{
    GByteArray *graph = graph_xz(), *f = onnx_function_new("d:f", "a", "b");
    GByteArray *g = onnx_function_new("d:g", "a", "b");
    onnx_function_node(f, "d:g", "a", "b", NULL);
    onnx_function_node(g, "d:f", "a", "b", NULL);
    onnx_node(graph, "d:f", "x", "z", NULL);
    expect_error(model_of(graph, f, g, NULL), KILN_ERROR_INVALID,
                 "z/b/b (f): the function calls itself");
}

Test(onnx_function, wrong_calls_are_refused)
{
    GByteArray *graph = graph_xz();
    onnx_node(graph, "d:twice", "x,x", "z", NULL);
    expect_error(
        model_of(graph, twice(), NULL), KILN_ERROR_INVALID,
        "z (twice): the function has 1 inputs: expected at most as many operands, found 2");
    graph = graph_xz();
    onnx_node(graph, "d:twice", "x", "z,y", NULL);
    expect_error(model_of(graph, twice(), NULL), KILN_ERROR_INVALID,
                 "the function has 1 outputs: expected at most as many results, found 2");
    graph = graph_xz();
    onnx_node(graph, "d:twice", "x", "z", onnx_int("more", 1), NULL);
    expect_error(model_of(graph, twice(), NULL), KILN_ERROR_INVALID,
                 "the attribute 'more' is not one of the function");
    graph = graph_xz();
    onnx_node(graph, "d:twice", "", "z", NULL);
    expect_error(model_of(graph, twice(), NULL), KILN_ERROR_INVALID,
                 "z/t (abs): expected 1 operands");
    graph = graph_xz();
    onnx_node(graph, "Neg", "x", "z", onnx_reference("alpha", FLOAT, "a"), NULL);
    expect_error(model_of(graph, twice(), NULL), KILN_ERROR_INVALID, "z (Neg): ");
}

Test(onnx_function, wrong_functions_are_refused)
{
    expect_error(model_of(graph_xz(), twice(), twice(), NULL), KILN_ERROR_FORMAT,
                 "a second function 'd:twice'");
    expect_error(model_of(graph_xz(), g_byte_array_new(), NULL), KILN_ERROR_FORMAT,
                 "a function has no name");
    GByteArray *nameless = onnx_function_new("d:f", "", "b");
    kiln_wire_put_text(nameless, 4, "");
    expect_error(model_of(graph_xz(), nameless, NULL), KILN_ERROR_FORMAT,
                 "a parameter has no name");
    GByteArray *number = onnx_function_new("d:f", "", "b");
    kiln_wire_put_varint(number, 7, 1);
    expect_error(model_of(graph_xz(), number, NULL), KILN_ERROR_FORMAT,
                 "field 7: expected wire type 2, found 0");
    GByteArray *graph = graph_xz(), *empty = onnx_function_new("d:f", "a", "b");
    onnx_node(graph, "d:f", "x", "z", NULL);
    expect_error(model_of(graph, empty, NULL), KILN_ERROR_INVALID,
                 "graph 'f': nothing computes the output 'b'");
}

Test(onnx_function, a_graph_that_a_caller_hands_over_is_not_supported)
{
    GByteArray *graph = graph_xz(), *f = onnx_function_new("d:f", "c,a", "b");
    GByteArray *branch = onnx_graph_new("branch");
    onnx_node(branch, "Neg", "x", "r", NULL);
    onnx_output(branch, "r", ONNX_F32, NULL);
    kiln_wire_put_text(f, 6, "body");
    onnx_function_node(f, "If", "c", "b", onnx_reference("then_branch", GRAPH, "body"),
                       onnx_reference("else_branch", GRAPH, "body"), NULL);
    onnx_input(graph, "on", ONNX_BOOL, "");
    onnx_node(graph, "d:f", "on,x", "z", onnx_graph("body", branch), NULL);
    g_autofree char *found = onnx_imported(model_of(graph, f, NULL));
    cr_expect(strstr(found, "reason=\"attribute 'body' of the function is a graph\""), "%s", found);
}

/* d:f0 … d:fN: each calls the one before twice; the first does nothing. */
static GBytes *
doubling(int n)
{
    GByteArray *graph = graph_xz(), *first = onnx_function_new("d:f0", "a", "a");
    g_autofree char *last = g_strdup_printf("d:f%d", n);
    onnx_node(graph, last, "x", "z", NULL);
    GBytes *model = model_of(graph, first, NULL);
    for (int i = 1; i <= n; i++) {
        g_autofree char *id = g_strdup_printf("d:f%d", i),
                        *callee = g_strdup_printf("d:f%d", i - 1);
        GByteArray *function = onnx_function_new(id, "a", "b");
        onnx_function_node(function, callee, "a", "t", NULL);
        onnx_function_node(function, callee, "t", "b", NULL);
        model = onnx_model_append(model, 25, function);
    }
    return model;
}

Test(onnx_function, calls_count_against_the_limit)
{
    g_autoptr(KilnBudget) budget = kiln_budget_new(&(KilnLimits){ .nodes = 1000 });
    KilnBudget *before = kiln_budget_enter(budget);
    g_autofree char *fits = onnx_imported(doubling(5));
    cr_expect(g_str_has_prefix(fits, "graph @g"), "%s", fits);
    expect_error(doubling(60), KILN_ERROR_LIMIT, "node limit: expected at most 1000 nodes");
    kiln_budget_leave(before);
}

Test(onnx_function, chains_end_at_a_depth)
{
    GByteArray *graph = graph_xz(), *first = onnx_function_new("d:f0", "a", "a");
    onnx_node(graph, "d:f200", "x", "z", NULL);
    GBytes *model = model_of(graph, first, NULL);
    for (int i = 1; i <= 200; i++) {
        g_autofree char *id = g_strdup_printf("d:f%d", i),
                        *callee = g_strdup_printf("d:f%d", i - 1);
        GByteArray *function = onnx_function_new(id, "a", "b");
        onnx_function_node(function, callee, "a", "b", NULL);
        model = onnx_model_append(model, 25, function);
    }
    expect_error(model, KILN_ERROR_LIMIT,
                 "expected at most 128 graphs and functions inside each other, found more");
}
