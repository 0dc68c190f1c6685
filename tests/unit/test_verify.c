/* SPDX-License-Identifier: Apache-2.0 */
/* The graph verifier: every rule, broken on purpose, is reported with function and node. */
#include "graph/function.h"
#include "graph/node.h"
#include "graph/op/flow.h"
#include "graph/op/transpose.h"
#include "graph/text/text.h"
#include "text_fixture.h"
#include "tests/unit/op_named.h"

#include <string.h>

static const char text[] = "graph @f(%c: bool[], %x: f32[2], %i: i64[2]) {\n"
                           "  %w = const @w : f32[2]\n"
                           "  %a = add(%x, %w) : f32[2] loc(\"/add\")\n"
                           "  %b = relu(%a) : f32[2]\n"
                           "  %z = if(%c) then {\n"
                           "    %m = mul(%b, %w) : f32[2]\n"
                           "    return %m\n"
                           "  } else {\n"
                           "    return %b\n"
                           "  } : f32[2]\n"
                           "  return %z, %a as other\n"
                           "}\n"
                           "constants { @w = [1, 2] : f32[2] }\n";

static void
setup(void)
{
    g_autoptr(GError) error = NULL;
    read_module(text, "verify.kiln");
    cr_assert(kiln_module_verify(module, &error), "%s", error ? error->message : "");
}

TestSuite(verify, .init = setup, .fini = free_module);

static void
expect(KilnError code, const char *message)
{
    g_autoptr(GError) error = NULL;
    cr_assert_not(kiln_module_verify(module, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, code), "code %d: %s", error->code, error->message);
    cr_assert_str_eq(error->message, message);
    g_clear_error(&error);
    cr_assert_not(kiln_function_verify(function, &error));
    cr_assert_str_eq(error->message, message);
}

static KilnFunction *
then_branch(void)
{
    return kiln_attrs(value("z")->def, if)->then_branch;
}

Test(verify, a_read_before_the_definition)
{
    kiln_node_move(value("b")->def, value("a")->def);
    expect(KILN_ERROR_INVALID, "@f: b (relu): operand 0: %a is not defined before it");
}

Test(verify, a_subgraph_that_reads_what_comes_after_its_node)
{
    kiln_node_move(value("z")->def, value("b")->def);
    expect(KILN_ERROR_INVALID, "@then_branch: m (mul): operand 0: %b is not defined before it");
}

Test(verify, a_read_of_a_value_inside_a_subgraph)
{
    KilnValue *inner = kiln_function_find_value(then_branch(), "m");
    kiln_node_set_operand(kiln_function_return(function), 0, inner);
    expect(KILN_ERROR_INVALID,
           "@then_branch: m (mul): the list of readers of %m: expected 1, found 2 that are not all "
           "nodes of the function");
}

Test(verify, too_few_operands)
{
    value("a")->def->n_operands = 1;
    expect(KILN_ERROR_INVALID, "@f: /add (add): expected 2 operands, found 1");
}

Test(verify, a_required_operand_that_is_absent)
{
    kiln_node_set_operand(value("a")->def, 0, NULL);
    expect(KILN_ERROR_INVALID, "@f: /add (add): operand 0 is required, found none");
}

Test(verify, a_use_that_is_not_in_the_list_of_readers)
{
    value("b")->def->operands[0].value = value("x");
    expect(KILN_ERROR_INVALID, "@f: b (relu): operand 0 is not in the list of readers of %x");
}

Test(verify, a_count_of_readers_that_is_wrong)
{
    value("w")->n_uses = 7;
    expect(KILN_ERROR_INVALID, "@f: w (const): the list of readers of %w is broken");
}

Test(verify, a_reader_that_was_unlinked)
{
    /* Unlinked by hand: its use of %b stays in the list. */
    KilnFunction *region = then_branch();
    KilnNode *mul = kiln_function_find_value(region, "m")->def;
    kiln_node_set_operand(kiln_function_return(region), 0, value("x"));
    region->first = mul->next;
    region->first->previous = NULL;
    region->n_nodes--;
    g_hash_table_remove(region->names, "m");
    expect(KILN_ERROR_INVALID,
           "@f: w (const): the list of readers of %w: expected 1, found 2 that are not all nodes "
           "of the function");
}

Test(verify, a_name_that_two_values_have)
{
    value("b")->name = "a";
    expect(KILN_ERROR_INVALID, "@f: a (relu): two values are called %a");
}

Test(verify, a_name_that_is_no_text)
{
    kiln_value_rename(function, value("b"), "\xff");
    expect(KILN_ERROR_INVALID, "@f: \uFFFD (relu): a value without a name in UTF-8");
}

Test(verify, a_name_that_the_table_lacks)
{
    g_hash_table_remove(function->names, "b");
    expect(KILN_ERROR_INVALID, "@f: b (relu): %b is missing in the table of names");
}

Test(verify, a_name_in_the_table_that_no_value_has)
{
    g_hash_table_insert(function->names, (char *)"ghost", value("a"));
    expect(KILN_ERROR_INVALID, "@f: expected 7 names, found 8 in the table");
}

Test(verify, a_name_of_a_subgraph_that_is_taken_around_it)
{
    KilnFunction *region = then_branch();
    kiln_value_rename(region, kiln_function_find_value(region, "m"), "x");
    expect(KILN_ERROR_INVALID,
           "@then_branch: x (mul): a value of @f, which is around it, is called %x too");
}

Test(verify, a_type_that_inference_contradicts)
{
    value("b")->type.dims[0] = 3;
    expect(KILN_ERROR_SHAPE, "@f: b (relu): result 0: expected f32[2], found f32[3] stated");
}

Test(verify, known_integers_that_inference_contradicts)
{
    KilnTensor *tensor = kiln_tensor_new_splat(&(KilnType){ .dtype = KILN_DTYPE_i64 }, 5);
    KilnValue *five = kiln_build_constant(function, function->first, "five", tensor);
    cr_assert(kiln_module_verify(module, NULL));
    ((KilnKnown *)five->known)->v[0] = 6;
    expect(KILN_ERROR_INVALID, "@f: five (const): result 0: the known integers are not those of "
                               "its operands");
}

Test(verify, a_malformed_type)
{
    value("x")->type.dims[0] = -2;
    expect(KILN_ERROR_INVALID, "@f: %x: expected a dim of 0 or more, found -2");
    value("x")->type.dims[0] = G_MAXINT64;
    expect(KILN_ERROR_INVALID,
           "@f: %x: expected less than 2^63 bytes, found f32[9223372036854775807]");
}

Test(verify, a_rank_that_is_too_big)
{
    value("b")->type.rank = KILN_MAX_RANK + 1;
    expect(KILN_ERROR_INVALID, "@f: b (relu): %b has a malformed type");
}

Test(verify, a_quantization_that_does_not_fit)
{
    static const float scales[] = { 1 };
    static const int32_t zero_points[] = { 0 };
    static const KilnQuant quant = { 5, 1, scales, zero_points };
    value("x")->type.quant = &quant;
    g_autoptr(GError) error = NULL;
    cr_assert_not(kiln_module_verify(module, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_TYPE));
    cr_assert(g_str_has_prefix(error->message, "@f: %x: "), "%s", error->message);
}

Test(verify, places_that_are_not_known)
{
    value("b")->def->operands[0].user = value("a")->def;
    expect(KILN_ERROR_INVALID, "@f: b (relu): operand 0 does not know its node");
    value("b")->def->operands[0].user = value("b")->def;
    value("b")->index = 3;
    expect(KILN_ERROR_INVALID, "@f: b (relu): result 0 does not know its node");
    value("b")->index = 0;
    value("x")->index = 2;
    expect(KILN_ERROR_INVALID, "@f: argument 1 does not know its place");
}

Test(verify, a_node_of_another_function)
{
    value("b")->def->function = then_branch();
    expect(KILN_ERROR_INVALID,
           "@f: b (relu): the node is listed in a function that is not its own");
}

Test(verify, an_operator_that_does_not_exist)
{
    value("b")->def->op = KILN_OP_END;
    expect(KILN_ERROR_INVALID, "@f: a node of an operator that does not exist");
}

Test(verify, a_function_of_another_module)
{
    g_autoptr(KilnModule) other = kiln_module_new();
    then_branch()->module = other;
    expect(KILN_ERROR_INVALID, "@then_branch: the function belongs to another module");
}

Test(verify, nodes_that_are_miscounted)
{
    function->n_nodes++;
    expect(KILN_ERROR_INVALID, "@f: expected 6 nodes, found 5");
}

Test(verify, a_list_of_nodes_that_is_broken)
{
    value("b")->def->previous = NULL;
    expect(KILN_ERROR_INVALID, "@f: the list of 5 nodes is broken at b");
}

Test(verify, a_function_that_does_not_return)
{
    kiln_node_remove(kiln_function_return(function));
    expect(KILN_ERROR_INVALID, "@f: expected 'return' as the last node");
}

Test(verify, a_return_in_the_middle)
{
    kiln_node_move(kiln_function_return(function), value("z")->def);
    expect(KILN_ERROR_INVALID, "@f: expected 'return' as the last node");
}

Test(verify, an_id_that_two_nodes_have)
{
    value("b")->def->id = value("a")->def->id;
    expect(KILN_ERROR_INVALID, "@f: b (relu): expected an id of its own below 5, found 1");
}

Test(verify, results_without_names)
{
    g_ptr_array_set_size(function->result_names, 1);
    expect(KILN_ERROR_INVALID, "@f: expected a name for each of 2 results, found 1");
}

Test(verify, results_that_share_a_name)
{
    function->result_names->pdata[1] = function->result_names->pdata[0];
    expect(KILN_ERROR_INVALID, "@f: two results are called \"z\"");
}

Test(verify, a_constant_that_is_missing)
{
    kiln_attrs(value("w")->def, const)->value = NULL;
    expect(KILN_ERROR_INVALID, "@f: w (const): the constant is missing");
}

Test(verify, a_constant_of_another_module)
{
    g_autoptr(KilnModule) other = kiln_module_clone(module);
    kiln_attrs(value("w")->def, const)->value = kiln_module_find_constant(other, "w");
    expect(KILN_ERROR_INVALID, "@f: w (const): value is no constant of the module");
}

Test(verify, a_subgraph_that_is_missing)
{
    kiln_attrs(value("z")->def, if)->else_branch = NULL;
    expect(KILN_ERROR_INVALID, "@f: z (if): subgraph else_branch is missing");
}

Test(verify, a_subgraph_of_another_node)
{
    then_branch()->owner = value("a")->def;
    expect(KILN_ERROR_INVALID, "@f: z (if): subgraph @then_branch belongs to another node");
}

Test(verify, a_subgraph_with_other_results)
{
    KilnValue *two[] = { value("a"), value("b") };
    cr_assert(kiln_function_set_results(then_branch(), two, NULL, 2, NULL));
    expect(KILN_ERROR_INVALID, "@f: z (if): subgraph @then_branch: expected 1 results, found 2");
}

Test(verify, a_subgraph_with_another_element_type)
{
    KilnValue *other[] = { value("i") };
    cr_assert(kiln_function_set_results(then_branch(), other, NULL, 1, NULL));
    expect(KILN_ERROR_INVALID,
           "@f: z (if): subgraph @then_branch, result 0: expected f32, found i64");
}

Test(verify, a_subgraph_with_arguments_that_nothing_passes)
{
    KilnType type = kiln_type_scalar(KILN_DTYPE_f32);
    cr_assert(kiln_function_add_argument(then_branch(), "extra", &type, NULL));
    expect(KILN_ERROR_INVALID, "@f: z (if): subgraph @then_branch: expected 0 arguments, found 1");
}

Test(verify, a_subgraph_that_does_not_return)
{
    kiln_function_clear(then_branch());
    expect(KILN_ERROR_INVALID, "@f: z (if): subgraph @then_branch does not return");
}

Test(verify, attributes_that_are_missing)
{
    KilnNode *node = value("z")->def;
    void *attrs = node->attrs;
    node->attrs = NULL;
    expect(KILN_ERROR_INVALID, "@f: z (if): the attributes are missing");
    node->attrs = attrs;
}

Test(verify, a_list_attribute_without_elements)
{
    KilnAttrs_transpose attrs = { .perm = { .n = 0, .v = NULL } };
    KilnValue *x = value("x");
    KilnValue *moved = kiln_build(function, NULL, op_named("transpose"), &attrs, &x, 1, NULL);
    cr_assert(moved);
    kiln_attrs(moved->def, transpose)->perm = (KilnInts){ .n = 1, .v = NULL };
    expect(KILN_ERROR_INVALID, "@f: transpose (transpose): perm is a list without elements");
}

/* What belongs to the module alone. */
static void
expect_of_module(const char *message)
{
    g_autoptr(GError) error = NULL;
    cr_assert_not(kiln_module_verify(module, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_INVALID));
    cr_assert_str_eq(error->message, message);
}

Test(verify, two_functions_of_one_name)
{
    KilnFunction *twin = kiln_function_new(module, "f");
    cr_assert(kiln_function_set_results(twin, NULL, NULL, 0, NULL));
    expect_of_module("two graphs are called @f");
}

Test(verify, a_constant_whose_tensor_is_of_another_type)
{
    KilnConstant *w = kiln_module_find_constant(module, "w");
    w->type.dims[0] = 3;
    expect_of_module("constant @w: expected a tensor of f32[3], found f32[2]");
}

Test(verify, a_constant_under_another_name)
{
    kiln_module_find_constant(module, "w")->name = "v";
    expect_of_module("two constants are called @v");
}

Test(verify, a_subgraph_that_is_listed)
{
    g_ptr_array_insert(module->functions, 0, then_branch());
    expect_of_module("@then_branch is listed, but it is a subgraph");
    g_ptr_array_remove_index(module->functions, 0);
}

Test(verify, a_constant_that_is_out_of_its_place)
{
    kiln_module_find_constant(module, "w")->id = 1;
    expect_of_module("constant @w does not know its place");
}

/* --- alone --- */

Test(verify, a_subgraph_alone)
{
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_function_verify(then_branch(), &error), "%s", error ? error->message : "");
}

Test(verify, a_call_of_what_is_not_declared_or_declared_otherwise)
{
    static const char *const cases[][2] = {
        { "graph @g(%x: f32[2]) {\n  %y = vendor.executable @r(%x) : f32[2]\n  return %y\n}\n",
          "call.kiln:2: @g: y (vendor.executable): @r is not declared" },
        { "graph @g(%x: f32[2]) {\n  %y = vendor.executable @r(%x) : f32[2]\n  return %y\n}\n"
          "declare @r(f32[3]) -> f32[2]\n",
          "call.kiln:2: @g: y (vendor.executable): operand 0: expected f32[3] as @r is declared, "
          "found f32[2]" },
        { "graph @g(%x: f32[2]) {\n  %y = vendor.executable @r(%x) : f32[2]\n  return %y\n}\n"
          "declare @r(f32[2]) -> f32[2], f32[2]\n",
          "call.kiln:2: @g: y (vendor.executable): @r is declared with 2 results, found 1" },
        { "graph @g(%x: f32[2]) {\n  %y = vendor.executable @r(%x) : f32[2]\n  return %y\n}\n"
          "declare @r(f32[2]) -> f32[2] body(%a: f32[2]) {\n"
          "  %b = vendor.executable @r(%a) : f32[2]\n  return %b\n}\n",
          "call.kiln:6: @r: b (vendor.executable): a region for a vendor has no calls of others" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        cr_assert_null(kiln_module_parse(cases[i][0], strlen(cases[i][0]), "call.kiln", &error));
        cr_assert_str_eq(error->message, cases[i][1]);
    }
}

Test(verify, costs_are_linear)
{
    /* A chain of many nodes that all read one value, each in its own subgraph's sight. */
    enum {
        MANY = 20000
    };
    KilnValue *x = value("x"), *last = x;
    for (int i = 0; i < MANY; i++)
        last = kiln_build(function, value("z")->def, op_named("add"), NULL,
                          (KilnValue *[]){ last, x }, 2, NULL);
    gint64 start = g_get_monotonic_time();
    cr_assert(kiln_module_verify(module, NULL));
    cr_assert_lt(g_get_monotonic_time() - start, 5 * G_USEC_PER_SEC);
}
