/* SPDX-License-Identifier: Apache-2.0 */
/* Names of values: unique in a function, in the subgraphs inside it and in the functions around. */
#include "graph/function.h"
#include "graph/module.h"
#include "graph/node.h"
#include "graph/op/flow.h"
#include "graph/op/math.h"
#include "graph/op/structure.h"

#include <criterion/criterion.h>

static KilnModule *module;
static KilnFunction *function;
static KilnValue *condition, *x;

static KilnValue *
argument(KilnFunction *of, const char *name, KilnDType dtype)
{
    KilnType type = kiln_type_scalar(dtype);
    KilnArgument *made = kiln_function_add_argument(of, name, &type, NULL);
    cr_assert(made);
    return &made->value;
}

static void
setup(void)
{
    module = kiln_module_new();
    function = kiln_function_new(module, "f");
    condition = argument(function, "c", KILN_DTYPE_bool);
    x = argument(function, "x", KILN_DTYPE_f32);
}

static void
teardown(void)
{
    kiln_module_free(module);
}

TestSuite(names, .init = setup, .fini = teardown);

static KilnValue *
negate(KilnFunction *in, KilnValue *value, const char *name)
{
    KilnNodeSpec spec = {
        .op = KILN_OP_neg, .operands = &value, .n_operands = 1, .result_name = name
    };
    KilnNode *node = kiln_node_new(in, &spec, NULL);
    cr_assert(node);
    return &node->results[0];
}

/* A subgraph that negates @x and calls the result @name. */
static KilnFunction *
branch(const char *name)
{
    KilnFunction *region = kiln_function_new_region(module, "branch");
    KilnValue *result = negate(region, x, name);
    cr_assert(kiln_function_set_results(region, &result, NULL, 1, NULL));
    return region;
}

static KilnNode *
choose(KilnFunction *in, const char *then_name, const char *else_name, const char *name)
{
    KilnAttrs_if attrs = { .then_branch = branch(then_name), .else_branch = branch(else_name) };
    KilnType type = kiln_type_scalar(KILN_DTYPE_f32);
    KilnNodeSpec spec = { .op = KILN_OP_if,
                          .operands = &condition,
                          .n_operands = 1,
                          .attrs = &attrs,
                          .types = &type,
                          .result_name = name };
    KilnNode *node = kiln_node_new(in, &spec, NULL);
    cr_assert(node);
    return node;
}

static void
finish(KilnValue *result)
{
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_function_set_results(function, &result, NULL, 1, &error));
    cr_assert(kiln_module_verify(module, &error), "%s", error ? error->message : "");
}

static const char *
name_in(KilnFunction *region)
{
    return region->first->results[0].name;
}

Test(names, derived_names_count_up_per_base)
{
    for (int i = 0; i < 3; i++)
        negate(function, x, "x");
    cr_assert(kiln_function_find_value(function, "x_1"));
    cr_assert(kiln_function_find_value(function, "x_3"));
    cr_assert_str_eq(kiln_function_unique_name(function, "x"), "x_4");
    cr_assert_str_eq(kiln_function_unique_name(function, "y"), "y");
}

Test(names, many_of_one_base_are_linear)
{
    gint64 start = g_get_monotonic_time();
    for (int i = 0; i < 50000; i++)
        negate(function, x, "x");
    cr_assert_lt(g_get_monotonic_time() - start, 5 * G_USEC_PER_SEC);
}

Test(names, a_subgraph_gives_way_to_what_is_around_it)
{
    KilnValue *a = negate(function, x, "a");
    KilnNode *node = choose(function, "a", "free", "b");
    const KilnAttrs_if *attrs = kiln_attrs(node, if);
    cr_assert_str_eq(a->name, "a");
    cr_assert_str_eq(name_in(attrs->then_branch), "a_1");
    cr_assert_str_eq(name_in(attrs->else_branch), "free");
    finish(&node->results[0]);
}

Test(names, a_subgraph_gives_way_to_the_results_of_its_node)
{
    KilnNode *node = choose(function, "y", "y", "y");
    const KilnAttrs_if *attrs = kiln_attrs(node, if);
    cr_assert_str_eq(node->results[0].name, "y");
    cr_assert_str_neq(name_in(attrs->then_branch), "y");
    cr_assert_str_neq(name_in(attrs->else_branch), "y");
    finish(&node->results[0]);
}

Test(names, what_comes_later_gives_way_to_subgraphs)
{
    KilnNode *node = choose(function, "inner", "other", "y");
    KilnValue *later = negate(function, &node->results[0], "inner");
    cr_assert_str_eq(later->name, "inner_1");
    cr_assert(later->made_up);
    finish(later);
}

/* Names inside are looked for in the nodes of a function with few, else in all functions. */
Test(names, what_comes_later_gives_way_to_subgraphs_of_subgraphs)
{
    KilnNode *node = choose(function, "a", "b", "y");
    KilnFunction *outer = kiln_attrs(node, if)->then_branch;
    KilnNode *inner = choose(outer, "deep", "deeper", "z");
    cr_assert_str_eq(name_in(kiln_attrs(inner, if)->then_branch), "deep");
    cr_assert_str_eq(negate(function, x, "deep")->name, "deep_1");
    cr_assert_str_eq(negate(function, x, "free")->name, "free");
    for (int i = 0; i < 20; i++)
        negate(function, x, "many");
    cr_assert_str_eq(negate(function, x, "deep")->name, "deep_2");
    cr_assert_str_eq(negate(function, x, "deeper")->name, "deeper_1");
    kiln_node_remove(inner);
    cr_assert_str_eq(negate(function, x, "deeper")->name, "deeper");
    finish(&node->results[0]);
}

Test(names, results_may_be_named_one_by_one)
{
    static const char *const names[] = { "second", "first" };
    KilnType types[] = { kiln_type_scalar(KILN_DTYPE_f32), kiln_type_scalar(KILN_DTYPE_i64) };
    KilnNodeSpec spec = { .op = KILN_OP_unknown,
                          .operands = &x,
                          .n_operands = 1,
                          .n_results = 2,
                          .types = types,
                          .result_names = names };
    KilnNode *node = kiln_node_new(function, &spec, NULL);
    cr_assert(node);
    cr_assert_str_eq(node->results[0].name, "second");
    cr_assert_str_eq(node->results[1].name, "first");
    cr_assert_not(node->results[1].made_up);
}
