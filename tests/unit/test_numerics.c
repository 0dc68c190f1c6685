/* SPDX-License-Identifier: Apache-2.0 */
/* Numerics classes, random inputs, and the check around passes. */
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/manager.h"
#include "passes/manager/numerics.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/targets.h"

#include "backends/ref/ref.h"
#include "graph/base/number.h"
#include "graph/binding.h"
#include "graph/dim.h"
#include "exec/random_input.h"
#include "passes/context/context.h"
#include "passes/rule.h"

#include "tests/unit/op_named.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* --- comparing --- */

static KilnTensor *
tensor(KilnDType dtype, const double *values, int64_t n)
{
    KilnType type = kiln_type_make(dtype, 1, &n);
    g_autofree char *bytes = g_malloc0((gsize)n * 8 + 1);
    for (int64_t i = 0; i < n; i++)
        kiln_element_store_f64(dtype, bytes, i, values[i]);
    return kiln_tensor_new_copy(&type, bytes, NULL);
}

static bool
fits(KilnNumerics numerics, KilnDType dtype, const double *a, const double *b, int64_t n)
{
    KilnErrorTerms terms = { .terms = 10, .step = 0.5 };
    g_autoptr(KilnTensor) before = tensor(dtype, a, n);
    g_autoptr(KilnTensor) after = tensor(dtype, b, n);
    g_autoptr(GError) error = NULL;
    bool ok = kiln_compare_numerics(before, after, numerics, &terms, &error);
    cr_expect(ok || g_error_matches(error, KILN_ERROR, KILN_ERROR_MISMATCH));
    return ok;
}

#define V(...)                                                                                     \
    (const double[])                                                                               \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

Test(numerics, class_e_is_bits)
{
    KilnNumerics e = KILN_NUMERICS_E;
    cr_expect(fits(e, KILN_DTYPE_f32, V(1, 2), V(1, 2), 2));
    cr_expect_not(fits(e, KILN_DTYPE_f32, V(1, 2), V(1, 2 + 2 * 0x1p-23), 2));
    cr_expect_not(fits(e, KILN_DTYPE_f32, V(0.0), V(-0.0), 1));
    cr_expect(fits(e, KILN_DTYPE_f32, V(NAN, 1), V(-NAN, 1), 2));
    cr_expect_not(fits(e, KILN_DTYPE_f32, V(NAN), V(1), 1));
    cr_expect_not(fits(e, KILN_DTYPE_f32, V(INFINITY), V(-INFINITY), 1));
    cr_expect_not(fits(e, KILN_DTYPE_i64, V(3), V(4), 1));
}

Test(numerics, class_z_is_bits_but_for_the_sign_of_zeros)
{
    KilnNumerics z = KILN_NUMERICS_Z;
    cr_expect(fits(z, KILN_DTYPE_f32, V(0.0, 1), V(-0.0, 1), 2));
    cr_expect(fits(z, KILN_DTYPE_f16, V(-0.0), V(0.0), 1));
    cr_expect_not(fits(z, KILN_DTYPE_f32, V(0), V(0x1p-149), 1));
    cr_expect_not(fits(z, KILN_DTYPE_f32, V(1), V(-1), 1));
    cr_expect_not(fits(z, KILN_DTYPE_f32, V(1), V(1 + 0x1p-23), 1));
    cr_expect_not(fits(z, KILN_DTYPE_f32, V(INFINITY), V(-INFINITY), 1));
    cr_expect_not(fits(z, KILN_DTYPE_f32, V(NAN), V(0), 1));
}

Test(numerics, class_u_is_terms_times_epsilon)
{
    KilnNumerics u = KILN_NUMERICS_U;
    const double eps = 0x1p-23;
    cr_expect(fits(u, KILN_DTYPE_f32, V(4, 1), V(4 + 32 * eps, 1 - 32 * eps), 2));
    cr_expect_not(fits(u, KILN_DTYPE_f32, V(4, 1), V(4 + 64 * eps, 1), 2));
    cr_expect_not(fits(u, KILN_DTYPE_f64, V(4), V(4 + 32 * eps), 1));
    cr_expect(fits(u, KILN_DTYPE_f16, V(4), V(4 + 8 * 0x1p-10), 1));
    cr_expect(fits(u, KILN_DTYPE_f32, V(INFINITY, NAN), V(INFINITY, NAN), 2));
    cr_expect_not(fits(u, KILN_DTYPE_f32, V(INFINITY), V(FLT_MAX), 1));
    cr_expect_not(fits(u, KILN_DTYPE_f32, V(1), V(NAN), 1));
    cr_expect(fits(u, KILN_DTYPE_f32, V(0.0), V(-0.0), 1));
    cr_expect_not(fits(u, KILN_DTYPE_i32, V(1), V(2), 1));
    cr_expect_not(fits(u, KILN_DTYPE_bool, V(1), V(0), 1));
}

Test(numerics, class_qs_is_one_step)
{
    KilnNumerics q = KILN_NUMERICS_QS;
    cr_expect(fits(q, KILN_DTYPE_i8, V(-128, 5), V(-127, 4), 2));
    cr_expect_not(fits(q, KILN_DTYPE_i8, V(5), V(7), 1));
    cr_expect_not(fits(q, KILN_DTYPE_i8, V(-128), V(127), 1));
    cr_expect(fits(q, KILN_DTYPE_u64, V(7), V(6), 1));
    cr_expect_not(fits(q, KILN_DTYPE_bool, V(0), V(1), 1));
    cr_expect(fits(q, KILN_DTYPE_f32, V(1), V(1.5), 1)); /* the step of the function is 0.5 */
    cr_expect_not(fits(q, KILN_DTYPE_f32, V(1), V(1.6), 1));
}

/* @n elements of 1000 are @by off. */
static bool
share_fits(KilnNumerics numerics, KilnDType dtype, int n, double by)
{
    double before[1000], after[1000];
    for (int i = 0; i < 1000; i++) {
        before[i] = i % 50;
        after[i] = before[i] + (i < n ? by : 0);
    }
    return fits(numerics, dtype, before, after, 1000);
}

Test(numerics, class_qt_is_one_step_of_few_elements)
{
    const KilnNumerics qt = KILN_NUMERICS_QT, qs = KILN_NUMERICS_QS;
    const int most = (int)kiln_numerics_ties(1000);
    cr_assert(most >= 1 && most < 20);
    for (int k = 0; k < 2; k++) {
        KilnDType dtype = k ? KILN_DTYPE_f32 : KILN_DTYPE_i8;
        double step = k ? 0.5 : 1; /* the step of the function is 0.5 */
        cr_expect(share_fits(qt, dtype, most, step));
        cr_expect_not(share_fits(qt, dtype, most + 1, step));
        cr_expect_not(share_fits(qt, dtype, 1, 2 * step));
        cr_expect(share_fits(qs, dtype, 1000, step));
        cr_expect_not(share_fits(qs, dtype, 1, 2 * step));
    }
    cr_expect(share_fits(qt, KILN_DTYPE_f32, 1000, 0x1p-20), "roundings of floats are no steps");
    cr_expect(fits(qt, KILN_DTYPE_i8, V(7), V(6), 1), "one of a few");
    cr_expect_not(fits(qt, KILN_DTYPE_i8, V(7, 8), V(6, 9), 2));
}

Test(numerics, class_l_asks_for_the_type_only)
{
    cr_expect(fits(KILN_NUMERICS_L, KILN_DTYPE_f32, V(1), V(100), 1));
    g_autoptr(KilnTensor) a = tensor(KILN_DTYPE_f32, V(1, 2), 2);
    g_autoptr(KilnTensor) b = tensor(KILN_DTYPE_f32, V(1), 1);
    g_autoptr(KilnTensor) c = tensor(KILN_DTYPE_f64, V(1, 2), 2);
    KilnErrorTerms terms = { .terms = 1 };
    cr_expect_not(kiln_compare_numerics(a, b, KILN_NUMERICS_L, &terms, NULL));
    cr_expect_not(kiln_compare_numerics(a, c, KILN_NUMERICS_L, &terms, NULL));
}

Test(numerics, the_worst_element_is_named)
{
    g_autoptr(KilnTensor) a = tensor(KILN_DTYPE_f32, V(1, 2, 3), 3);
    g_autoptr(KilnTensor) b = tensor(KILN_DTYPE_f32, V(1.5, 4, 3), 3);
    KilnErrorTerms terms = { .terms = 1 };
    g_autoptr(GError) error = NULL;
    cr_assert_not(kiln_compare_numerics(a, b, KILN_NUMERICS_E, &terms, &error));
    cr_assert_str_eq(error->message, "2 of 3 elements differ; element 1: expected 2, found 4 "
                                     "(class E allows 0)");
}

static KilnIRModule *
parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    KilnIRModule *ir = kiln_ir_module_parse(text, strlen(text), "t.kiln", &error);
    cr_assert_not_null(ir, "%s", error ? error->message : "");
    return ir;
}

Test(numerics, terms_come_from_reductions)
{
    g_autoptr(KilnIRModule) ir =
        parse("graph @f(%x: f32[2,300], %w: f32[300,5], %i: f32[1,4,9,9]) {\n"
              "  %k = const @k : f32[8,4,3,3]\n"
              "  %m = matmul(%x, %w) : f32[2,5]\n"
              "  %c = conv(%i, %k) : f32[1,8,7,7]\n"
              "  return %m, %c\n"
              "}\n"
              "constants { @k = splat(1) : f32[8,4,3,3] }\n");
    KilnErrorTerms terms = kiln_error_terms(kiln_module_entry(ir->module), NULL);
    cr_expect_geq(terms.terms, 300 + 36);
    cr_expect_leq(terms.terms, 300 + 36 + 10);
    cr_expect_eq(terms.step, 0);
}

Test(numerics, terms_of_open_dims_are_those_of_the_run)
{
    g_autoptr(KilnIRModule) ir = parse("graph @f(%x: f32[N,3]) {\n"
                                       "  %s = softmax(%x) {axis=0} : f32[N,3]\n"
                                       "  return %s\n"
                                       "}\n");
    const KilnFunction *entry = kiln_module_entry(ir->module);
    KilnBoundName bound = { "N", 500 };
    const KilnDimBinding numbers = { 1, &bound };
    cr_expect_eq(kiln_error_terms(entry, &numbers).terms,
                 kiln_error_terms(entry, NULL).terms + (500 - KILN_DIM_HINT) * 3);
}

/* A value in f32 that comes from one in f16 has the rounding of f16. */
Test(numerics, halves_on_the_way_count)
{
    g_autoptr(KilnIRModule) ir = parse("graph @f(%x: f32[2]) {\n"
                                       "  %h = cast(%x) {to=f16} : f16[2]\n"
                                       "  %e = exp(%h) : f16[2]\n"
                                       "  %y = cast(%e) : f32[2]\n"
                                       "  return %y\n"
                                       "}\n");
    KilnErrorTerms terms = kiln_error_terms(kiln_module_entry(ir->module), NULL);
    cr_expect_eq(terms.epsilon, 0x1p-10);
    terms.terms = 2;
    g_autoptr(KilnTensor) a = tensor(KILN_DTYPE_f32, V(1, 2), 2);
    g_autoptr(KilnTensor) b = tensor(KILN_DTYPE_f32, V(1, 2 + 0x1p-9), 2);
    g_autoptr(KilnTensor) c = tensor(KILN_DTYPE_f32, V(1, 2 + 0x1p-7), 2);
    cr_expect(kiln_compare_numerics(a, b, KILN_NUMERICS_U, &terms, NULL));
    cr_expect_not(kiln_compare_numerics(a, c, KILN_NUMERICS_U, &terms, NULL));
    terms.epsilon = 0;
    cr_expect_not(kiln_compare_numerics(a, b, KILN_NUMERICS_U, &terms, NULL));
}

/* --- strings and sequences --- */

Test(numerics, strings_are_compared_as_texts)
{
    const KilnType type = kiln_type_make(KILN_DTYPE_string, 1, (int64_t[]){ 2 });
    const KilnText one = { "one", 3 }, same = { "one", 3 }, two = { "two", 3 };
    const KilnErrorTerms terms = { .terms = 1 };
    g_autoptr(KilnTensor) a = kiln_tensor_new_copy(&type, (const KilnText *[]){ &one, &two }, NULL);
    g_autoptr(KilnTensor) b =
        kiln_tensor_new_copy(&type, (const KilnText *[]){ &same, &one }, NULL);
    g_autoptr(GError) error = NULL;
    cr_assert_not(kiln_compare_numerics(a, b, KILN_NUMERICS_QS, &terms, &error));
    cr_expect_str_eq(error->message, "1 of 2 elements differ; element 1: expected \"two\", found "
                                     "\"one\" (class QS allows 0)");
}

/* A sequence of two tensors, of @first and of @second. */
static KilnTensor *
sequence(double first, double second)
{
    const KilnType type = { .dtype = KILN_DTYPE_sequence };
    const float a[] = { (float)first, 0 }, b = (float)second;
    const int64_t n = 2;
    g_autoptr(KilnItem) x = kiln_item_new_tensor(KILN_DTYPE_f32, 1, &n, a, NULL);
    g_autoptr(KilnItem) y = kiln_item_new_tensor(KILN_DTYPE_f32, 0, NULL, &b, NULL);
    g_autoptr(KilnItem) list = kiln_item_new_sequence((KilnItem *[]){ x, y }, 2, NULL);
    return kiln_tensor_new_item(&type, list);
}

Test(numerics, sequences_are_compared_item_by_item)
{
    const KilnErrorTerms terms = { .terms = 10 };
    g_autoptr(KilnTensor) a = sequence(1, 1000), b = sequence(1 + 0x1p-15, 1000),
                          c = sequence(1, 1001), same = sequence(1, 1000);
    g_autoptr(GError) error = NULL;
    cr_expect(kiln_compare_numerics(a, same, KILN_NUMERICS_E, &terms, NULL));
    cr_expect(kiln_compare_numerics(a, b, KILN_NUMERICS_U, &terms, NULL), "the magnitude is 1000");
    cr_expect_not(kiln_compare_numerics(a, b, KILN_NUMERICS_E, &terms, NULL));
    cr_expect(kiln_compare_numerics(a, c, KILN_NUMERICS_L, &terms, NULL));
    cr_assert_not(kiln_compare_numerics(a, c, KILN_NUMERICS_E, &terms, &error));
    cr_expect_str_eq(error->message, "item 1: 1 of 1 elements differ; element 0: expected 1000, "
                                     "found 1001 (class E allows 0)");
}

Test(numerics, sequences_that_have_other_items_differ)
{
    const KilnErrorTerms terms = { .terms = 10 };
    const KilnType type = { .dtype = KILN_DTYPE_sequence };
    const int32_t number = 7;
    g_autoptr(KilnItem) item = kiln_item_new_tensor(KILN_DTYPE_i32, 0, NULL, &number, NULL);
    g_autoptr(KilnItem) list = kiln_item_new_sequence(&item, 1, NULL);
    g_autoptr(KilnItem) lists = kiln_item_new_sequence((KilnItem *[]){ item, item }, 2, NULL);
    g_autoptr(KilnTensor) a = sequence(1, 2), none = kiln_tensor_new_item(&type, NULL),
                          one = kiln_tensor_new_item(&type, list),
                          two = kiln_tensor_new_item(&type, lists);
    cr_expect_not(kiln_compare_numerics(a, none, KILN_NUMERICS_L, &terms, NULL));
    cr_expect_not(kiln_compare_numerics(none, a, KILN_NUMERICS_L, &terms, NULL));
    cr_expect_not(kiln_compare_numerics(one, two, KILN_NUMERICS_L, &terms, NULL));
    g_autoptr(GError) error = NULL;
    cr_assert_not(kiln_compare_numerics(a, two, KILN_NUMERICS_L, &terms, &error));
    cr_expect_str_eq(error->message, "item 0: expected f32[2], found i32[]");
    cr_expect(kiln_compare_numerics(none, none, KILN_NUMERICS_E, &terms, NULL));
}

/* --- random inputs --- */

static KilnDomain
domain_of(const char *text, guint argument)
{
    g_autoptr(KilnIRModule) ir = parse(text);
    return kiln_argument_domain(kiln_function_argument(kiln_module_entry(ir->module), argument),
                                NULL);
}

Test(numerics, indices_keep_to_what_gathers_allow)
{
    static const char text[] = "graph @f(%t: f32[30,4], %i: i64[5], %u: i64[1,3]) {\n"
                               "  %c = cast(%i) {to=i32} : i32[5]\n"
                               "  %a = gather(%t, %c) : f32[5,4]\n"
                               "  %b = gather(%t, %i) {axis=1} : f32[30,5]\n"
                               "  %n = neg(%u) : i64[1,3]\n"
                               "  return %a, %b, %n\n"
                               "}\n";
    KilnDomain domain = domain_of(text, 1);
    cr_expect_eq(domain.low, 0);
    cr_expect_eq(domain.high, 4); /* the narrower of the two */
    domain = domain_of(text, 2);
    cr_expect_eq(domain.low, -8);
    cr_expect_eq(domain.high, 8);
    cr_expect(domain_of(text, 0).normal);
}

Test(numerics, parts_of_sequences_have_elements)
{
    static const char text[] = "graph @f(%x: f32[6,2], %n: i32[], %m: i64[2]) {\n"
                               "  %w = cast(%n) {to=i64} : i64[]\n"
                               "  %a = split_to_sequence(%x, %w) : sequence(f32[?,2])\n"
                               "  %b = split_to_sequence(%x, %m) : sequence(f32[?,2])\n"
                               "  return %a, %b\n"
                               "}\n";
    KilnDomain domain = domain_of(text, 1);
    cr_expect_eq(domain.low, 1);
    cr_expect_eq(domain.high, 9);
    cr_expect_eq(domain_of(text, 2).low, -8, "a list");
}

Test(numerics, a_stated_domain_counts)
{
    KilnDomain domain = domain_of("graph @f(%i: i64[3] in [0,4)) {\n  return %i\n}\n", 0);
    cr_expect(domain.low == 0 && domain.high == 4);
    domain = domain_of("graph @f(%i: i64[3] in (0,4]) {\n  return %i\n}\n", 0);
    cr_expect(domain.low == 1 && domain.high == 5);
    domain = domain_of("graph @f(%x: f32[3] in [-1,1)) {\n  return %x\n}\n", 0);
    cr_expect(!domain.normal && domain.low == -1 && domain.high == 1);
}

Test(numerics, random_tensors_depend_on_name_and_seed)
{
    KilnType type = kiln_type_make(KILN_DTYPE_i64, 1, (int64_t[]){ 1000 });
    KilnDomain domain = { false, 0, 4 };
    g_autoptr(KilnTensor) a = kiln_random_tensor(&type, &domain, "a", 1, NULL);
    g_autoptr(KilnTensor) again = kiln_random_tensor(&type, &domain, "a", 1, NULL);
    g_autoptr(KilnTensor) b = kiln_random_tensor(&type, &domain, "b", 1, NULL);
    g_autoptr(KilnTensor) other = kiln_random_tensor(&type, &domain, "a", 2, NULL);
    cr_expect(kiln_tensor_equal(a, again));
    cr_expect_not(kiln_tensor_equal(a, b));
    cr_expect_not(kiln_tensor_equal(a, other));
    const int64_t *values = g_bytes_get_data(a->bytes, NULL);
    uint32_t seen = 0;
    for (int i = 0; i < 1000; i++) {
        cr_assert(values[i] >= 0 && values[i] < 4);
        seen |= 1u << values[i];
    }
    cr_expect_eq(seen, 15);
    KilnType open = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ -1 });
    cr_expect_null(kiln_random_tensor(&open, &domain, "a", 1, NULL));
    KilnType text = kiln_type_make(KILN_DTYPE_string, 1, (int64_t[]){ 100 });
    g_autoptr(KilnTensor) words = kiln_random_tensor(&text, &domain, "a", 1, NULL);
    g_autoptr(KilnTensor) same = kiln_random_tensor(&text, &domain, "a", 1, NULL);
    g_autoptr(KilnTensor) others = kiln_random_tensor(&text, &domain, "b", 1, NULL);
    cr_expect(kiln_tensor_equal(words, same));
    cr_expect_not(kiln_tensor_equal(words, others));
}

/* --- the check around passes --- */

/* neg → abs: wrong for positive inputs. Declared as the class that the pass has. */
static gboolean
break_it(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)context;
    kiln_foreach_node_safe (node, function) {
        if (node->op != op_named("neg"))
            continue;
        KilnValue *built =
            kiln_build(function, node, op_named("abs"), NULL, &node->operands[0].value, 1, error);
        if (!built)
            return FALSE;
        kiln_value_replace(&node->results[0], built);
        kiln_node_remove(node);
        *changed = true;
    }
    return TRUE;
}

/* (a·b)·c → a·(b·c): rounds differently. */
static gboolean
reassociate(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)context;
    KilnNode *outer = kiln_function_return(function)->operands[0].value->def;
    KilnNode *inner = outer->operands[0].value->def;
    if (!inner || inner->op != op_named("mul"))
        return TRUE;
    KilnValue *bc[] = { inner->operands[1].value, outer->operands[1].value };
    KilnValue *right = kiln_build(function, outer, op_named("mul"), NULL, bc, 2, error);
    if (!right)
        return FALSE;
    kiln_node_set_operand(outer, 0, inner->operands[0].value);
    kiln_node_set_operand(outer, 1, right);
    *changed = true;
    return TRUE;
}

static gboolean
break_ir(KilnIRFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)context, (void)error;
    kiln_foreach_instr (instr, function) {
        if (instr->kind != KILN_INSTR_sub)
            continue;
        KilnBuffer *a = kiln_instr_operand(instr, 1), *b = kiln_instr_operand(instr, 2);
        if (strcmp(a->name, "x") != 0)
            continue;
        kiln_instr_set_operand(instr, 1, b);
        kiln_instr_set_operand(instr, 2, a);
        *changed = true;
    }
    return TRUE;
}

static const KilnPassInfo breaks = { .id = "breaks", .run_graph = break_it };
static const KilnPassInfo breaks_lossy = { .id = "breaks-lossy",
                                           .run_graph = break_it,
                                           .numerics = KILN_NUMERICS_L };
static const KilnPassInfo rounds_e = { .id = "rounds-e", .run_graph = reassociate };
static const KilnPassInfo rounds_u = { .id = "rounds-u",
                                       .run_graph = reassociate,
                                       .numerics = KILN_NUMERICS_U };
static const KilnPassInfo breaks_ir = { .id = "breaks-ir",
                                        .level = KILN_LEVEL_IR,
                                        .run_ir = break_ir };

static void
collect(const char *text, void *data)
{
    g_string_append(data, text);
}

static char *
check(const char *text, const char *passes, GString *log)
{
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_new();
    const KilnPassInfo *const infos[] = { &breaks, &breaks_lossy, &rounds_e, &rounds_u,
                                          &breaks_ir };
    for (size_t i = 0; i < G_N_ELEMENTS(infos); i++)
        cr_assert(kiln_pass_pipeline_register(pipeline, infos[i], NULL));
    cr_assert(kiln_pipeline_read_inline(pipeline, passes, NULL));
    g_autoptr(KilnIRModule) ir = parse(text);
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.check_numerics = true;
    options.check_target = kiln_ref_target();
    options.log = log ? collect : NULL;
    options.data = log;
    g_autoptr(GError) error = NULL;
    gboolean ok = kiln_pipeline_run_graph(pipeline, ir->module, &options, NULL, &error) &&
                  kiln_pipeline_run_ir(pipeline, ir, &options, NULL, &error);
    cr_assert(ok || g_error_matches(error, KILN_ERROR, KILN_ERROR_MISMATCH));
    return ok ? NULL : g_strdup(error->message);
}

static void
expect_caught(const char *text, const char *passes, const char *part)
{
    g_autofree char *found = check(text, passes, NULL);
    cr_assert_not_null(found, "%s was not caught", passes);
    cr_assert(strstr(found, part), "expected: %s\nfound:    %s", part, found);
}

static void
expect_fine(const char *text, const char *passes)
{
    g_autofree char *found = check(text, passes, NULL);
    cr_assert_null(found, "%s", found);
}

static const char negs[] = "graph @f(%x: f32[N,3]) {\n"
                           "  %n = neg(%x) : f32[N,3]\n"
                           "  return %n\n"
                           "}\n";

Test(numerics, a_pass_that_breaks_results_is_caught)
{
    expect_caught(
        negs, "breaks",
        "pass breaks (application 2, @f): it changed what @f computes with N=64: result n: ");
    expect_fine(negs, "breaks-lossy");
    expect_fine(negs, "dce,empty");
}

Test(numerics, a_pass_is_held_to_its_class)
{
    static const char text[] = "graph @f(%a: f32[1000], %b: f32[1000], %c: f32[1000]) {\n"
                               "  %m = mul(%a, %b) : f32[1000]\n"
                               "  %r = mul(%m, %c) : f32[1000]\n"
                               "  return %r\n"
                               "}\n";
    expect_caught(text, "rounds-e", "(class E allows 0)");
    expect_fine(text, "rounds-u");
}

static KilnNumerics
check_fold(const char *passes, const KilnTarget *on)
{
    static const char text[] = "graph @f(%x: f32[1000]) {\n"
                               "  %w = const @w\n  %s = const @s\n"
                               "  %a = sigmoid(%w)\n  %b = mul(%a, %s)\n  %c = mul(%b, %s)\n"
                               "  %r = add(%x, %c)\n  return %r\n}\n"
                               "constants {\n  @w = random_normal(seed=3, std=2) : f32[1000]\n"
                               "  @s = random_uniform(seed=4, low=0.5, high=2) : f32[1000]\n}\n";
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_parse_inline(passes, NULL);
    g_autoptr(KilnIRModule) ir = parse(text);
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = kiln_target_by_name("cpu", NULL);
    options.check_numerics = true;
    options.check_target = on;
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_pipeline_run_graph(pipeline, ir->module, &options, report, &error), "%s",
              error ? error->message : "");
    uint32_t n_rounding;
    return kiln_pass_report_numerics(report, pipeline, &n_rounding);
}

/* Two targets may differ in the last bits of a sigmoid: what was folded on one is no less right on
 * the other. On the target that folds no bit changes, unless the pass is asked for wider sums. */
Test(numerics, what_a_target_computed_is_checked_on_another)
{
    cr_expect_eq(check_fold("constant-fold{evaluate=compile}", kiln_ref_target()), KILN_NUMERICS_E);
    cr_expect_eq(check_fold("constant-fold{evaluate=compile}", NULL), KILN_NUMERICS_E);
    cr_expect_eq(check_fold("constant-fold{evaluate=compile, precision=wide}", NULL),
                 KILN_NUMERICS_U);
}

/* The passes of the IR turn round a maximum with a zero only where zeros have no sign, and are held
 * to every bit where they have one. */
Test(numerics, the_sign_of_zeros_counts_unless_the_flag_says_no)
{
    const KilnPassInfo *pass = kiln_pass_find("ir-peephole");
    cr_expect_eq(kiln_pass_numerics(pass, 0), KILN_NUMERICS_E);
    cr_expect_eq(kiln_pass_numerics(pass, KILN_FLAG(finite_math)), KILN_NUMERICS_E);
    cr_expect_eq(kiln_pass_numerics(pass, KILN_FLAG(no_signed_zeros)), KILN_NUMERICS_Z);
    pass = kiln_pass_find("optimize-arithmetic");
    cr_expect_eq(kiln_pass_numerics(pass, 0), KILN_NUMERICS_E);
    cr_expect_eq(kiln_pass_numerics(pass, KILN_FLAG(no_signed_zeros)), KILN_NUMERICS_Z);
    cr_expect_eq(kiln_pass_numerics(pass, KILN_FLAG(no_signed_zeros) | KILN_FLAG(finite_math)),
                 KILN_NUMERICS_L);
    pass = kiln_pass_find("cse");
    cr_expect_eq(kiln_pass_numerics(pass, KILN_FLAG(no_signed_zeros)), KILN_NUMERICS_E);
}

Test(numerics, subgraphs_are_checked_with_what_is_around)
{
    expect_caught("graph @f(%c: bool[], %x: f32[9]) {\n"
                  "  %r = if(%c) then {\n"
                  "    %t = neg(%x) : f32[9]\n"
                  "    return %t\n"
                  "  } else {\n"
                  "    %e = neg(%x) : f32[9]\n"
                  "    return %e\n"
                  "  } : f32[9]\n"
                  "  return %r\n"
                  "}\n",
                  "breaks", "pass breaks (application ");
}

Test(numerics, the_ir_level_is_checked_too)
{
    expect_caught("func @f {\n"
                  "  input @x : f32[4]\n"
                  "  input @z : f32[4]\n"
                  "  output @y : f32[4]\n"
                  "  sub @out @y, @in @x, @in @z\n"
                  "}\n",
                  "breaks-ir", "pass breaks-ir (application 1, @f): it changed what @f computes");
}

Test(numerics, what_cannot_run_is_told)
{
    g_autoptr(GString) log = g_string_new(NULL);
    g_autofree char *found =
        check("graph @f(%x: f32[3]) {\n"
              "  %u = unknown(%x) {op_type=\"Log\", domain=\"d\", opset=1} : f32[3]\n"
              "  %n = neg(%u) : f32[3]\n"
              "  return %n\n"
              "}\n",
              "breaks", log);
    cr_assert_null(found, "%s", found);
    cr_assert(g_str_has_prefix(log->str, "check: @f cannot be run and is not compared: "), "%s",
              log->str);
}

Test(numerics, checking_needs_a_target)
{
    g_autoptr(KilnIRModule) ir = parse(negs);
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_new();
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.check_numerics = true;
    g_autoptr(GError) error = NULL;
    cr_assert_not(kiln_pipeline_run_graph(pipeline, ir->module, &options, NULL, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_USAGE));
}
