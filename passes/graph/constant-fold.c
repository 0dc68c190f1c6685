/* SPDX-License-Identifier: Apache-2.0 */
/* constant-fold: what depends on nothing but constants is computed ahead of the runs.
 *
 *     graph @entry(%x, %w1 constant=compile, %w2 constant=run) {       functions: three
 *       %w0 = const @w0
 *       %p0 = pack(%w0)           graph @compiletime_fold(%w1) {
 *       %y0 = matmul(%x, %p0)       %w0 = const @w0
 *       %p1 = pack(%w1)             %p0 = pack(%w0)
 *       %y1 = matmul(%y0, %p1)      %p1 = pack(%w1)
 *       %p2 = pack(%w2)             return %p0, %p1 }
 *       %y2 = matmul(%y1, %p2)    graph @runtime_fold(%w2) { %p2 = pack(%w2) return %p2 }
 *       return %y2 }         =>   graph @entry(%x, %p0, %p1, %p2) { three matmuls }
 *
 * With `functions: two` all of it is in runtime_fold, which the first run calls. With `evaluate:
 * compile` literals are evaluated here, on the target that the program runs on, and their results
 * become constants of the module; arguments are still moved into functions.
 *
 * requires nothing (it analyses constness itself; marks of analyse-constness are gone afterwards),
 * preserves nothing; class E on the target that evaluates: folded and unfolded bits agree; with
 * `precision: wide`, U: chains of literals are computed in f64, i64 or u64 and rounded once. Must
 * run after passes that place packs. Only the entry's arguments are folded; a literal or argument
 * that is read as it is stays where it is.
 *
 * An `if` whose condition is constant, and all that its branches read around them, is moved into a
 * function as a whole. Loops are not.
 *
 * Never folded: random and stateful ops, side effects; quantize_linear (the business of
 * quantize-constants). Not stored, and then computed where it is read, with what it reads folded
 * as far as that goes: a dequantize or cast that only grows its operand, with `products: keep`
 * every dequantize that a product reads, which merge-qdq computes on what it is dequantized from;
 * expand and tile; a large diagonal that is only returned; views of arguments; results that are
 * more than `max-expansion` times the constants that they come from (small results among these), or
 * would bring what folding added to the module to more than `max-bytes` or a limit on memory
 * (results of at most 4 KiB are worth it). A result that takes the place of its source adds the
 * difference. Results whose elements are all equal take no storage and count nothing. Every refusal
 * is in the report.
 *
 * What nothing reads counts as a reader where literals are evaluated: else it would go on reading
 * literals whose bytes go with the last node that was folded. */
#include "graph/base/budget.h"
#include "graph/op/conv.h"
#include "graph/op/generate.h"
#include "graph/op/matmul.h"
#include "graph/op/quantize.h"
#include "passes/fold/constness.h"
#include "passes/fold/evaluator.h"
#include "passes/fold/fold_plan.h"
#include "passes/pass.h"

#include <string.h>

#define OPTIONS(OPTION, CHOICE)                                                                    \
    CHOICE(evaluate, "run", "run|compile")                                                         \
    CHOICE(functions, "two", "two|three")                                                          \
    CHOICE(precision, "strict", "strict|wide")                                                     \
    CHOICE(products, "fold", "fold|keep")                                                          \
    OPTION(INT, max_bytes, 268435456)                                                              \
    OPTION(FLOAT, max_expansion, 16)
PASS_OPTIONS(constant_fold, OPTIONS);

static const char rule[] = "fold";

/* --- what may fold --- */

static bool
may_compute(KilnFoldPlan *plan, const KilnNode *node)
{
    KilnPassContext *context = plan->context;
    const KilnFoldNode *info = &plan->nodes[node->id];
    kiln_pass_about(context, node, info->bytes);
    for (uint32_t i = 0; i < node->n_results; i++)
        PASS_GUARD(plain_result, plan->ahead || !node->results[i].type.quant);
    for (uint32_t i = 0; i < node->n_results; i++)
        PASS_GUARD(dims_stay, !node->results[i].extents);
    PASS_GUARD(branches_only, kiln_fold_holds_branches_only(node));
    if (info->bytes <= KILN_FOLD_SMALL)
        return true;
    double most = (double)plan->max_expansion * (double)MAX(info->base, (int64_t)1);
    PASS_GUARD(max_expansion, (double)info->bytes <= most);
    return true;
}

/* Room for @bytes more beside @live of them that are gone by the end of a chain. */
static bool
has_room(KilnFoldPlan *plan, int64_t bytes, int64_t live)
{
    KilnPassContext *context = plan->context;
    bool fits = bytes <= plan->max_bytes - plan->charged - live;
    plan->out_of_room |= !fits;
    PASS_GUARD(max_bytes, fits);
    return true;
}

/* A dequantize of what a product multiplies or adds. */
static bool
gives_product_reals(const KilnNode *node)
{
    if (node->op != KILN_OP_dequantize_linear)
        return false;
    kiln_foreach_use (use, &node->results[0]) {
        const KilnNode *user = use->user;
        if (user && (user->op == KILN_OP_conv || user->op == KILN_OP_conv_transpose ||
                     user->op == KILN_OP_matmul || user->op == KILN_OP_gemm))
            return true;
    }
    return false;
}

/* A diagonal that only outputs read: a run writes it faster than it copies a constant. */
static bool
is_returned_diagonal(const KilnNode *node)
{
    if (node->op != KILN_OP_eye_like)
        return false;
    kiln_foreach_use (use, &node->results[0]) {
        if (use->user->op != KILN_OP_return)
            return false;
    }
    return true;
}

static bool
may_store(KilnFoldPlan *plan, const KilnNode *node)
{
    KilnPassContext *context = plan->context;
    const KilnFoldNode *info = &plan->nodes[node->id];
    bool small = info->bytes <= KILN_FOLD_SMALL;
    if (plan->literals_stay && node->mark == KILN_CONSTNESS_LITERAL)
        return false; /* it was refused, or failed, when it could be evaluated */
    kiln_pass_about(context, node, info->bytes);
    PASS_GUARD(not_only_a_view, !plan->ahead || !info->view);
    PASS_GUARD(repeats, !info->repeats || (small && !plan->ahead));
    PASS_GUARD(no_product_reads, !plan->products_stay || !gives_product_reals(node));
    PASS_GUARD(no_returned_diagonal, small || !is_returned_diagonal(node));
    PASS_GUARD(only_grows, small || !info->grown || info->bytes <= info->base);
    return small || has_room(plan, info->charge, 0);
}

/* While a chain is evaluated its values are held beside each other. */
static bool
may_hold(KilnEvaluator *folder, KilnFoldPlan *plan, const KilnNode *node, int64_t live)
{
    const KilnFoldNode *info = &plan->nodes[node->id];
    kiln_pass_about(folder->context, node, info->bytes);
    return info->bytes <= KILN_FOLD_SMALL || info->bytes <= info->base ||
           has_room(plan, info->bytes, live);
}

/* --- the two halves --- */

/* What had no room beside values that are gone by the end of a sweep may have room now, what hung
 * on a shape that was found may be literal, and what grows equal elements takes no storage. */
static gboolean
evaluate_literals(KilnFunction *function, KilnEvaluator *folder, bool *changed, GError **error)
{
    do {
        folder->changed = folder->out_of_room = folder->retyped = folder->equal_found = false;
        kiln_fold_now(folder, function);
        *changed |= folder->changed;
    } while (folder->changed && !folder->failure &&
             (folder->out_of_room || folder->retyped || folder->equal_found));
    if (folder->failure)
        g_propagate_error(error, folder->failure);
    return folder->failure == NULL;
}

static bool
takes_constants(const KilnFunction *function)
{
    for (guint i = 0; i < function->arguments->len; i++) {
        if (kiln_function_argument(function, i)->constness != KILN_CONSTNESS_VARYING)
            return true;
    }
    return false;
}

static void
move_to_functions(KilnFunction *function, KilnFoldPlan *plan, bool three, bool *changed)
{
    KilnConstness early = three ? KILN_CONSTNESS_COMPILE : KILN_CONSTNESS_RUN;
    plan->function = function;
    plan->ahead = true;
    plan->when[KILN_CONSTNESS_RUN] = KILN_CONSTNESS_RUN;
    plan->when[KILN_CONSTNESS_COMPILE] = plan->when[KILN_CONSTNESS_LITERAL] = early;
    kiln_constness_mark(function);
    kiln_fold_plan_make(plan);
    *changed |= kiln_fold_into_functions(plan, rule);
    kiln_fold_plan_clear(plan);
}

GRAPH_PASS(constant_fold);

gboolean
kiln_pass_constant_fold(KilnFunction *function, KilnPassContext *context, bool *changed,
                        GError **error)
{
    *changed = false;
    const Options *options = kiln_pass_options(context);
    bool now = strcmp(options->evaluate, "compile") == 0;
    KilnFoldPlan plan = { .context = context,
                          .may_compute = may_compute,
                          .may_store = may_store,
                          .products_stay = strcmp(options->products, "keep") == 0,
                          .max_bytes = MIN(options->max_bytes, kiln_budget_room()),
                          .max_expansion = options->max_expansion };
    if (now) {
        KilnEvaluator folder = { .context = context,
                                 .rule = rule,
                                 .target = kiln_pass_target(context),
                                 .threads = kiln_pass_threads(context),
                                 .wide = strcmp(options->precision, "wide") == 0,
                                 .plan = plan,
                                 .may_hold = may_hold };
        folder.plan.when[KILN_CONSTNESS_LITERAL] = KILN_CONSTNESS_LITERAL;
        if (!evaluate_literals(function, &folder, changed, error))
            return FALSE;
    }
    /* Literals alone are worth a function only where they were not evaluated. */
    bool entry = function == kiln_module_entry(function->module);
    plan.literals_stay = now;
    if (entry && (!now || takes_constants(function)))
        move_to_functions(function, &plan, strcmp(options->functions, "three") == 0, changed);
    if (!function->owner)
        kiln_constness_clear(function);
    return TRUE;
}
