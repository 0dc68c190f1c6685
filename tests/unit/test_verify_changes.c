/* SPDX-License-Identifier: Apache-2.0 */
/* Verifying what changed: what a pass breaks through the functions of graph/ is found without
 * looking at the whole function. */
#include "graph/base/random.h"
#include "graph/function.h"
#include "graph/node.h"
#include "graph/op/transpose.h"
#include "graph/order.h"

#include "text_fixture.h"

#include "graph/text/text.h"
#include "tests/unit/op_named.h"

#include <string.h>

static const char text[] = "graph @f(%x: f32[2,3], %y: f32[2,3], %z: f32[3,2]) {\n"
                           "  %w = const @w : f32[2,3]\n"
                           "  %a = add(%x, %w) : f32[2,3]\n"
                           "  %b = relu(%a) : f32[2,3]\n"
                           "  %t = transpose(%b) {perm=[0,1]} : f32[2,3]\n"
                           "  %m = mul(%t, %y) : f32[2,3]\n"
                           "  %n = neg(%m) : f32[2,3]\n"
                           "  return %n, %a as other\n"
                           "}\n"
                           "constants { @w = splat(1.5) : f32[2,3] }\n";

static void
expect_fine(void)
{
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_function_verify_changes(function, &error), "%s", error ? error->message : "");
    cr_assert(function->changes.known);
    cr_assert_eq(function->changes.nodes->len, 0);
    cr_assert_eq(function->changes.values->len, 0);
}

static void
setup(void)
{
    read_module(text, "changes.kiln");
    expect_fine();
}

TestSuite(verify_changes, .init = setup, .fini = free_module);

/* Found by the short way, and it is something that the whole verifier finds. */
static void
expect(const char *message)
{
    g_autoptr(GError) error = NULL;
    cr_expect_not(kiln_function_verify(function, NULL));
    cr_assert(function->changes.known);
    cr_assert_not(kiln_function_verify_changes(function, &error), "expected: %s", message);
    cr_expect(strstr(error->message, message), "expected: %s\nfound:    %s", message,
              error->message);
}

Test(verify_changes, a_node_moved_before_what_it_reads)
{
    kiln_node_move(value("m")->def, value("a")->def);
    expect("@f: m (mul): operand 0: %t is not defined before it");
}

Test(verify_changes, a_node_moved_behind_its_readers)
{
    kiln_node_move(value("a")->def, value("n")->def);
    expect("%a is not defined before it");
}

Test(verify_changes, an_operand_that_comes_later)
{
    kiln_node_set_operand(value("b")->def, 0, value("m"));
    expect("@f: b (relu): operand 0: %m is not defined before it");
}

Test(verify_changes, a_replacement_that_comes_later)
{
    kiln_value_replace(value("a"), value("m"));
    expect("%m is not defined before it");
}

Test(verify_changes, an_operand_of_a_node_that_was_removed)
{
    KilnValue *x = value("x"),
              *late = kiln_build(function, value("b")->def, op_named("exp"), NULL, &x, 1, NULL);
    kiln_node_remove(late->def);
    kiln_node_set_operand(value("b")->def, 0, late);
    expect("%exp");
}

Test(verify_changes, a_name_that_a_removed_node_keeps)
{
    KilnValue *x = value("x"),
              *late = kiln_build(function, value("b")->def, op_named("exp"), NULL, &x, 1, NULL);
    kiln_node_remove(late->def);
    g_hash_table_insert(function->names, (char *)late->name, late);
    expect("it was removed, but %exp is in the table of names");
}

Test(verify_changes, a_return_that_was_removed)
{
    kiln_node_remove(kiln_function_return(function));
    expect("@f: expected 'return' as the last node");
}

Test(verify_changes, a_list_of_nodes_that_is_broken)
{
    kiln_node_touch(value("b")->def);
    value("b")->def->previous = NULL;
    expect("@f: b (relu): the list of 7 nodes is broken");
}

Test(verify_changes, nodes_that_are_miscounted)
{
    kiln_node_touch(value("b")->def);
    function->n_nodes++;
    expect("@f: expected 8 nodes, found 7");
}

Test(verify_changes, an_operand_that_is_missing)
{
    kiln_node_set_operand(value("m")->def, 1, NULL);
    expect("@f: m (mul): operand 1 is required, found none");
}

Test(verify_changes, an_operand_of_another_function)
{
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ 2, 3 });
    KilnFunction *other = kiln_function_new(module, "other");
    KilnArgument *argument = kiln_function_add_argument(other, "far", &type, NULL);
    kiln_node_set_operand(value("b")->def, 0, &argument->value);
    expect("@f: b (relu): operand 0: %far is not defined before it");
}

Test(verify_changes, an_operand_of_another_type)
{
    kiln_node_set_operand(value("b")->def, 0, value("z"));
    expect("@f: b (relu): result 0: expected f32[3,2], found f32[2,3] stated");
}

Test(verify_changes, an_attribute_that_does_not_fit_the_types)
{
    KilnNode *node = value("t")->def;
    kiln_attrs(node, transpose)->perm.v = (int64_t[]){ 1, 0 };
    kiln_node_touch(node);
    expect("@f: t (transpose): result 0: expected f32[3,2], found f32[2,3] stated");
}

Test(verify_changes, readers_of_what_has_another_type_now)
{
    KilnNode *node = value("t")->def;
    kiln_attrs(node, transpose)->perm.v = (int64_t[]){ 1, 0 };
    cr_assert(kiln_node_reinfer(node, NULL));
    expect("@f: m (mul):");
}

Test(verify_changes, a_name_that_is_taken)
{
    kiln_value_rename(function, value("b"), "m");
    expect("%m");
}

Test(verify_changes, a_constant_that_was_removed)
{
    bool all[] = { true };
    kiln_module_remove_constants(module, all);
    expect("@f: w (const): value is no constant of the module");
}

Test(verify_changes, results_that_are_called_the_same)
{
    KilnValue *results[] = { value("n"), value("a") };
    const char *names[] = { "one", "one" };
    cr_assert(kiln_function_set_results(function, results, names, 2, NULL));
    expect("two results are called \"one\"");
}

/* What is written past the functions of graph/ has to be told. */
Test(verify_changes, what_nothing_told_of_is_seen_by_the_whole_verifier)
{
    value("n")->type.dims[0] = 77;
    expect_fine();
    cr_assert_not(kiln_function_verify(function, NULL));
    kiln_function_touch(function);
    g_autoptr(GError) error = NULL;
    cr_assert_not(kiln_function_verify_changes(function, &error));
    cr_assert(strstr(error->message, "@f: n (neg): result 0"), "%s", error->message);
}

Test(verify_changes, what_is_rewritten_as_it_should_be_is_fine)
{
    KilnNode *relu = value("b")->def;
    KilnValue *built =
        kiln_build(function, relu, op_named("sigmoid"), NULL, &relu->operands[0].value, 1, NULL);
    kiln_value_replace(&relu->results[0], built);
    kiln_node_remove(relu);
    expect_fine();
    kiln_value_rename(function, built, "better");
    kiln_node_move(value("w")->def, function->first);
    expect_fine();
    cr_assert(kiln_function_verify(function, NULL));
}

Test(verify_changes, more_notes_than_nodes_are_none)
{
    for (int i = 0; i < 100; i++) {
        KilnValue *x = value("x");
        kiln_node_remove(
            kiln_build(function, function->first, op_named("exp"), NULL, &x, 1, NULL)->def);
    }
    cr_assert_not(function->changes.known);
    expect_fine();
}

/* --- the table of the order --- */

static void
expect_order(void)
{
    const KilnNodeOrder *order = kiln_function_order(function);
    uint32_t n = 0, n_of_op[KILN_OP_END] = { 0 };
    kiln_foreach_node (node, function) {
        cr_assert_lt(n, order->n);
        cr_assert_eq(order->entries[n].node, node);
        cr_assert_eq(order->entries[n].id, node->id);
        cr_assert_eq(order->ops[n], node->op);
        for (uint32_t i = 0; i < KILN_ORDER_DEFS; i++) {
            const KilnValue *read = kiln_node_operand(node, i);
            cr_assert_eq(kiln_order_def(&order->entries[n], i),
                         read && read->def ? (uint32_t)read->def->op : KILN_ORDER_NO_OP);
        }
        n_of_op[node->op]++;
        cr_assert_eq(order->at[node->id], n);
        n++;
    }
    cr_assert_eq(order->n, n);
    cr_assert_arr_eq(order->n_of_op, n_of_op, sizeof n_of_op);
}

static KilnNode *
any_node(uint64_t *state)
{
    const KilnNodeOrder *order = kiln_function_order(function);
    return order->entries[kiln_random_bits(3, (*state)++) % order->n].node;
}

/* Nodes made, moved, removed and given other operands anywhere, several between one look and the
 * next. */
Test(verify_changes, the_order_is_that_of_the_list_whatever_happened)
{
    uint64_t state = 7;
    for (int round = 0; round < 400; round++) {
        KilnNode *places[4];
        for (size_t i = 0; i < G_N_ELEMENTS(places); i++)
            places[i] = any_node(&state);
        for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
            KilnValue *x = value("x");
            KilnValue *made = kiln_build(function, places[i], op_named("exp"), NULL, &x, 1, NULL);
            uint64_t what = kiln_random_bits(3, state++) % 5;
            if (what == 0)
                kiln_node_move(made->def, places[(i + 1) % 4]);
            else if (what == 1)
                kiln_node_move(made->def, function->first);
            else if (what == 2)
                kiln_node_remove(made->def);
            else if (what == 3)
                kiln_value_replace(
                    kiln_build(function, function->last, op_named("neg"), NULL, &made, 1, NULL), x);
            if (what == 4) {
                KilnValue *read =
                    kiln_build(function, function->last, op_named("neg"), NULL, &made, 1, NULL);
                expect_order();
                kiln_value_replace(made, x);
                kiln_node_set_operand(read->def, 0, i % 2 ? made : x);
            }
        }
        expect_order();
        if (round % 50 == 0)
            expect_fine();
    }
    kiln_function_renumber(function);
    expect_order();
    expect_fine();
    cr_assert(kiln_function_verify(function, NULL));
}

/* --- moving what remains together --- */

static char *
printed(void)
{
    GString *out = g_string_new(NULL);
    kiln_function_print(function, out);
    return g_string_free(out, FALSE);
}

/* A chain of @n nodes behind %x, every third of which something reads beside the next one. */
static void
add_chain(uint32_t n)
{
    KilnNode *last = function->last;
    KilnValue *chain = value("x");
    for (uint32_t i = 0; i < n; i++) {
        KilnValue *operands[] = { chain, i % 3 ? chain : value("y") };
        chain = kiln_build(function, last, op_named("add"), NULL, operands, 2, NULL);
    }
    kiln_node_set_operand(last, 0, chain);
}

/* Takes @n nodes out of the chain, at random. */
static void
shorten_chain(uint32_t n)
{
    uint64_t state = 11;
    while (n > 0) {
        KilnNode *node = any_node(&state);
        if (node->op != op_named("add"))
            continue;
        kiln_value_replace(&node->results[0], node->operands[0].value);
        kiln_node_remove(node);
        n--;
    }
}

Test(verify_changes, what_remains_moves_together_and_is_the_same)
{
    add_chain(6000);
    cr_assert_not(kiln_module_compact(module), "nothing was removed");
    shorten_chain(4000);
    expect_fine();
    g_autofree char *before = printed();
    const KilnNode *first = function->first;
    cr_assert(kiln_module_compact(module));
    cr_assert_neq(function->first, first);
    g_autofree char *after = printed();
    cr_assert_str_eq(before, after);
    cr_assert(function->changes.known);
    expect_order();
    expect_fine();
    cr_assert(kiln_module_verify(module, NULL));
    cr_assert_not(kiln_module_compact(module), "it was done");
    shorten_chain(1000);
    expect_order();
    expect_fine();
    cr_assert(kiln_module_verify(module, NULL));
}

/* Notes of what changed are lost with the places that they name: all is looked at then. */
Test(verify_changes, what_was_not_verified_before_moving_is_verified_whole)
{
    add_chain(6000);
    shorten_chain(4000);
    expect_fine();
    kiln_node_move(value("m")->def, value("t")->def);
    cr_assert(kiln_module_compact(module));
    cr_assert_not(function->changes.known);
    cr_assert_not(kiln_function_verify_changes(function, NULL));
}
