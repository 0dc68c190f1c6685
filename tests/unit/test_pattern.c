/* SPDX-License-Identifier: Apache-2.0 */
/* The pattern language: what parses, what matches. */
#include "graph/op/cast.h"
#include "graph/op/slice.h"
#include "passes/rule.h"
#include "passes/rules/pattern.h"

#include "tests/unit/op_named.h"
#include "tests/unit/graph_builder.h"

#include <string.h>

static void
expect_error(const char *pattern, const char *part)
{
    GError *error = NULL;
    cr_assert_null(kiln_pattern_parse(pattern, &error), "'%s' parsed", pattern);
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_PARSE));
    cr_assert(strstr(error->message, part), "'%s': %s", pattern, error->message);
    g_error_free(error);
}

Test(pattern, parses)
{
    static const char *const good[] = {
        "(relu ?)",
        "(conv#c ?x $w ?b)",
        "(add|sub#a ?x ?y)",
        "(@ELEMENTWISE#n ?x ...)",
        "(add~ ?x (mul ?y ?z))",
        "(transpose#outer (transpose!#inner ?x))",
        "(split#s.1 ?x)",
        "(split.1#s ?x _)",
        "(relu ?x:f32)",
        "(relu (neg ?x:float):f16)",
        "(add $a:quantized ?b:int)",
        "(const)",
        "(vendor.graph ...)",
        " ( relu\n\t?x ) ",
        "(clip ?x _ $hi)",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        GError *error = NULL;
        g_autoptr(KilnPattern) parsed = kiln_pattern_parse(good[i], &error);
        cr_assert(parsed, "%s", error ? error->message : "");
    }
}

Test(pattern, refuses_with_a_column)
{
    expect_error("", "column 1: expected '('");
    expect_error("relu", "column 1: expected '('");
    expect_error("(", "column 2: expected the name of an op, found the end");
    expect_error("(rellu ?x)", "column 2: expected the name of an op, found 'rellu ?x)'");
    expect_error("(return ?x)", "expected the name of an op");
    expect_error("(@SHINY ?x)", "column 3: expected a trait");
    expect_error("(relu ?x", "column 9: expected '(', '?', '$', '_', '...' or ')', found the end");
    expect_error("(relu ?x) y", "column 11: expected the end");
    expect_error("(relu x)", "column 7");
    expect_error("(relu ?x:f33)", "column 10: expected a dtype");
    expect_error("(relu ?x:)", "expected a dtype");
    expect_error("(relu# ?x)", "expected a name");
    expect_error("(relu#a#b ?x)", "expected an operand");
    expect_error("(relu!! ?x)", "expected an operand");
    expect_error("(add#x ?x ?y)", "a name that nodes and values do not share");
    expect_error("(add~ ?x)", "two operands");
    expect_error("(add~ ?x ?y ...)", "two operands");
    expect_error("(concat ... ?x)", "')' after '...'");
    expect_error("(split.999 ?x)", "the number of a result");
    expect_error("(relu ?x%)", "a blank or ')'");
}

Test(pattern, refuses_what_is_too_big)
{
    g_autoptr(GString) deep = g_string_new(NULL);
    for (int i = 0; i < 40; i++)
        g_string_append(deep, "(relu ");
    expect_error(deep->str, "fewer nested nodes");
    g_autoptr(GString) wide = g_string_new("(concat");
    for (int i = 0; i < 100; i++)
        g_string_append(wide, " ?");
    g_string_append(wide, ")");
    expect_error(wide->str, "a smaller pattern");
    g_autoptr(GString) orders = g_string_new("(add~ ? ");
    for (int i = 0; i < 8; i++)
        g_string_append(orders, "(add~ ? ");
    g_string_append(orders, "?)))))))))");
    expect_error(orders->str, "fewer '~'");
}

/* --- matching --- */

typedef struct {
    KilnModule *module;
    KilnFunction *function;
    KilnPattern *pattern;
    KilnValue *values[32];
    KilnMatch match;
} Case;

static Case
case_new(void)
{
    Case c = { .module = kiln_module_new() };
    c.function = kiln_function_new(c.module, "f");
    return c;
}

static void
case_free(Case *c)
{
    kiln_pattern_free(c->pattern);
    kiln_module_free(c->module);
}

static bool
matches(Case *c, const char *text, KilnValue *root)
{
    GError *error = NULL;
    kiln_pattern_free(c->pattern);
    c->pattern = kiln_pattern_parse(text, &error);
    cr_assert_not_null(c->pattern, "%s", error ? error->message : "");
    c->match = (KilnMatch){ .root = root->def, .pattern = c->pattern, .values = c->values };
    return kiln_pattern_match(c->pattern, root->def, c->values);
}

Test(pattern, names_stand_for_values_and_nodes)
{
    Case c = case_new();
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    KilnValue *n = add_node(c.function, op_named("neg"), "n", NULL, x, NULL);
    KilnValue *r = add_node(c.function, op_named("relu"), "r", NULL, n, NULL);
    set_result(c.function, r);
    cr_assert(matches(&c, "(relu#outer (neg#inner ?v))", r));
    cr_assert_eq(kiln_match_value(&c.match, "v"), x);
    cr_assert_eq(kiln_match_node(&c.match, "inner"), n->def);
    cr_assert_eq(kiln_match_value(&c.match, "inner"), n);
    cr_assert_not(matches(&c, "(relu (relu ?v))", r));
    cr_assert_not(matches(&c, "(neg ?v)", r));
    cr_assert(matches(&c, "(neg|relu ?)", r));
    cr_assert(matches(&c, "(@MONOTONE ?)", r));
    cr_assert_not(matches(&c, "(@MONOTONE ?)", n));
    case_free(&c);
}

Test(pattern, the_same_name_is_the_same_value)
{
    Case c = case_new();
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    KilnValue *y = add_argument(c.function, "y", f32_2x3());
    KilnValue *xx = add_node(c.function, op_named("mul"), "xx", NULL, x, x);
    KilnValue *xy = add_node(c.function, op_named("mul"), "xy", NULL, x, y);
    KilnValue *ab = add_node(c.function, op_named("add"), "ab", NULL, xx, xy);
    cr_assert(matches(&c, "(mul ?v ?v)", xx));
    cr_assert_not(matches(&c, "(mul ?v ?v)", xy));
    cr_assert(matches(&c, "(mul ?v ?w)", xx)); /* two names may be one value */
    cr_assert(matches(&c, "(add (mul ?v ?v) (mul ?v ?w))", ab));
    cr_assert_not(matches(&c, "(add (mul ?v ?v) (mul ?w ?w))", ab));
    case_free(&c);
}

Test(pattern, commuted_operands_are_tried_as_written_first)
{
    Case c = case_new();
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    KilnValue *y = add_argument(c.function, "y", f32_2x3());
    KilnValue *m = add_node(c.function, op_named("mul"), "m", NULL, x, y);
    KilnValue *left = add_node(c.function, op_named("add"), "left", NULL, m, x);
    KilnValue *right = add_node(c.function, op_named("add"), "right", NULL, x, m);
    cr_assert(matches(&c, "(add~ ?v (mul ?a ?b))", right));
    cr_assert(matches(&c, "(add~ ?v (mul ?a ?b))", left));
    cr_assert_eq(kiln_match_value(&c.match, "v"), x);
    cr_assert_not(matches(&c, "(add ?v (mul ?a ?b))", left));
    cr_assert(matches(&c, "(add~ ?v ?w)", left));
    cr_assert_eq(kiln_match_value(&c.match, "v"), m);
    /* an inner choice is taken back where the outer name forces the other order */
    cr_assert(matches(&c, "(add~ (mul~ ?a ?b) ?b)", left));
    cr_assert_eq(kiln_match_value(&c.match, "a"), y);
    cr_assert(matches(&c, "(add~ (mul~ ?a ?b) ?b)", right));
    case_free(&c);
}

Test(pattern, single_use_is_one_reader_that_is_no_return)
{
    Case c = case_new();
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    KilnValue *n = add_node(c.function, op_named("neg"), "n", NULL, x, NULL);
    KilnValue *r = add_node(c.function, op_named("relu"), "r", NULL, n, NULL);
    set_result(c.function, r);
    cr_assert(matches(&c, "(relu (neg! ?))", r));
    cr_assert_not(matches(&c, "(relu! ?)", r)); /* a result of the function */
    add_node(c.function, op_named("abs"), "a", NULL, n, NULL);
    cr_assert_not(matches(&c, "(relu (neg! ?))", r));
    cr_assert(matches(&c, "(relu (neg ?))", r));
    case_free(&c);
}

Test(pattern, literals)
{
    Case c = case_new();
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    KilnValue *w = add_splat(c.function, "w", f32_2x3(), 2);
    KilnValue *a = add_node(c.function, op_named("add"), "a", NULL, x, w);
    KilnValue *b = add_node(c.function, op_named("add"), "b", NULL, w, x);
    cr_assert(matches(&c, "(add ?x $w)", a));
    cr_assert_eq(kiln_match_value(&c.match, "w"), w);
    cr_assert_not(matches(&c, "(add ?x $w)", b));
    cr_assert(matches(&c, "(add~ ?x $w)", b));
    cr_assert_eq(kiln_match_value(&c.match, "w"), w);
    cr_assert(matches(&c, "(const)", w));
    case_free(&c);
}

Test(pattern, absent_and_further_operands)
{
    Case c = case_new();
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    KilnValue *lo = add_splat(c.function, "lo", kiln_type_scalar(KILN_DTYPE_f32), 0);
    KilnValue *hi = add_splat(c.function, "hi", kiln_type_scalar(KILN_DTYPE_f32), 6);
    KilnValue *bare = add_node(c.function, op_named("clip"), "bare", NULL, x, NULL);
    KilnValue *low = add_node(c.function, op_named("clip"), "low", NULL, x, lo);
    KilnNode *high = kiln_node_new(c.function,
                                   &(KilnNodeSpec){ .op = op_named("clip"),
                                                    .operands = (KilnValue *[]){ x, NULL, hi },
                                                    .n_operands = 3 },
                                   NULL);
    KilnNode *trailing = kiln_node_new(c.function,
                                       &(KilnNodeSpec){ .op = op_named("clip"),
                                                        .operands = (KilnValue *[]){ x, lo, NULL },
                                                        .n_operands = 3 },
                                       NULL);
    cr_assert(matches(&c, "(clip ?x)", bare));
    cr_assert(matches(&c, "(clip ?x _ _)", bare));
    cr_assert_not(matches(&c, "(clip ?x ?lo)", bare)); /* `?` is a value, not its absence */
    cr_assert_not(matches(&c, "(clip ?x)", low));
    cr_assert(matches(&c, "(clip ?x ...)", low));
    cr_assert(matches(&c, "(clip ?x ?lo)", low));
    cr_assert(matches(&c, "(clip ?x ?lo)", kiln_node_result(trailing, 0)));
    cr_assert(matches(&c, "(clip ?x _ $hi)", kiln_node_result(high, 0)));
    cr_assert_not(matches(&c, "(clip ?x ?lo $hi)", kiln_node_result(high, 0)));
    case_free(&c);
}

Test(pattern, types_and_classes)
{
    Case c = case_new();
    KilnType i8 = kiln_type_make(KILN_DTYPE_i8, 1, (int64_t[]){ 4 });
    KilnType u8 = kiln_type_make(KILN_DTYPE_u8, 1, (int64_t[]){ 4 });
    KilnType q = i8;
    const float scale = 0.5f;
    const int32_t zero = 3;
    q.quant = &(KilnQuant){ -1, 1, &scale, &zero };
    KilnValue *f = add_argument(c.function, "f", f32_2x3());
    KilnValue *i = add_argument(c.function, "i", i8);
    KilnValue *u = add_argument(c.function, "u", u8);
    KilnValue *z = add_argument(c.function, "z", q);
    KilnValue *rf = add_node(c.function, op_named("relu"), "rf", NULL, f, NULL);
    KilnValue *ri = add_node(c.function, op_named("relu"), "ri", NULL, i, NULL);
    KilnAttrs_cast to = kiln_cast_to(KILN_DTYPE_f32);
    KilnValue *cu = add_node(c.function, op_named("cast"), "cu", &to, u, NULL);
    KilnValue *cz = add_node(c.function, op_named("dequantize_linear"), "cz", NULL, z, NULL);
    cr_assert(matches(&c, "(relu ?x:f32)", rf));
    cr_assert_not(matches(&c, "(relu ?x:f16)", rf));
    cr_assert(matches(&c, "(relu ?x:float)", rf));
    cr_assert_not(matches(&c, "(relu ?x:int)", rf));
    cr_assert(matches(&c, "(relu ?x:signed)", ri));
    cr_assert(matches(&c, "(relu ?x:int)", ri));
    cr_assert_not(matches(&c, "(relu ?x:unsigned)", ri));
    cr_assert(matches(&c, "(cast ?x:unsigned):float", cu));
    cr_assert_not(matches(&c, "(cast ?x:unsigned):int", cu));
    cr_assert_not(matches(&c, "(cast ?x:signed)", cu));
    cr_assert(matches(&c, "(relu ?x:number)", rf));
    cr_assert(matches(&c, "(relu ?x:number)", ri));
    cr_assert(matches(&c, "(dequantize_linear ?x:quantized)", cz));
    cr_assert(matches(&c, "(dequantize_linear ?x:i8)", cz));
    cr_assert_not(matches(&c, "(dequantize_linear ?x:int)", cz));
    cr_assert_not(matches(&c, "(dequantize_linear ?x:number)", cz));
    cr_assert_not(matches(&c, "(cast ?x:quantized)", cu));
    cr_assert_not(matches(&c, "(cast ?x:bool)", cu));
    case_free(&c);
}

Test(pattern, results_by_number)
{
    Case c = case_new();
    KilnType long_type = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 4 });
    KilnValue *x = add_argument(c.function, "x", long_type);
    KilnAttrs_split attrs = { .num_outputs = 2 };
    KilnNode *split = kiln_node_new(c.function,
                                    &(KilnNodeSpec){ .op = op_named("split"),
                                                     .operands = &x,
                                                     .n_operands = 1,
                                                     .n_results = 2,
                                                     .attrs = &attrs },
                                    NULL);
    cr_assert_not_null(split);
    KilnValue *first = kiln_node_result(split, 0), *second = kiln_node_result(split, 1);
    KilnValue *r = add_node(c.function, op_named("relu"), "r", NULL, second, NULL);
    KilnValue *both = add_node(c.function, op_named("add"), "both", NULL, first, second);
    cr_assert(matches(&c, "(relu (split.1 ?x))", r));
    cr_assert_not(matches(&c, "(relu (split ?x))", r));
    cr_assert(matches(&c, "(add (split#s ?x) (split#s.1 ?x))", both));
    cr_assert_not(matches(&c, "(add (split#s.1 ?x) (split#s ?x))", both));
    cr_assert(matches(&c, "(split.1 ?x)", first)); /* at the root it says which result is meant */
    case_free(&c);
}

Test(pattern, a_subgraph_sees_values_around_it_but_no_nodes)
{
    Case c = case_new();
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    KilnValue *w = add_splat(c.function, "w", f32_2x3(), 2);
    KilnValue *n = add_node(c.function, op_named("neg"), "n", NULL, x, NULL);
    KilnFunction *region = kiln_function_new_region(c.module, "body");
    KilnValue *a = add_node(region, op_named("add"), "a", NULL, n, w);
    cr_assert(matches(&c, "(add ?n $w)", a));
    cr_assert_not(matches(&c, "(add (neg ?) $w)", a));
    case_free(&c);
}
