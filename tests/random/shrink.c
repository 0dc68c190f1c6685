/* SPDX-License-Identifier: Apache-2.0 */
/* Delta debugging over graphs: a change that keeps the failure is kept. A change replaces a result
 * of a node by an operand or by a new argument of its type, or drops a result of the function; what
 * is dead then goes. Nodes of regions are nodes like others. */
#include "tests/random/shrink.h"

#include "graph/base/budget.h"
#include "graph/error.h"
#include "graph/function.h"
#include "graph/node.h"
#include "graph/text/text.h"
#include "passes/context/options.h"
#include "passes/manager/manager.h"
#include "tests/random/opened.h"
#include "tests/random/subject.h"

static uint32_t
count_nodes(const KilnFunction *function)
{
    uint32_t n = function->n_nodes;
    kiln_foreach_node (node, function)
        kiln_foreach_region (region, node)
            n += count_nodes(region);
    return n;
}

/* Regions come before their node. */
static KilnNode *
find_node(KilnFunction *function, uint32_t *left)
{
    KilnNode *found = NULL;
    kiln_foreach_node (node, function) {
        kiln_foreach_region (region, node)
            found = found ? found : find_node(region, left);
        if (found || (*left)-- == 0)
            return found ? found : node;
    }
    return NULL;
}

static KilnNode *
node_at(KilnFunction *function, uint32_t i)
{
    return find_node(function, &i);
}

static bool
sweep_once(KilnFunction *function)
{
    bool changed = false;
    kiln_foreach_node_safe (node, function) {
        if (kiln_node_is_dead(node)) {
            kiln_node_remove(node);
            changed = true;
            continue;
        }
        kiln_foreach_region (region, node)
            changed |= sweep_once(region);
    }
    return changed;
}

static void
sweep(KilnFunction *function)
{
    while (sweep_once(function)) {
    }
}

/* --- candidates: a clone with one change, or NULL where there is none to make --- */

static KilnModule *
without_result(const KilnModule *module, uint32_t i)
{
    g_autoptr(KilnModule) clone = kiln_module_clone(module);
    KilnFunction *function = kiln_module_entry(clone);
    KilnNode *last = kiln_function_return(function);
    if (last->n_operands < 2 || i >= last->n_operands)
        return NULL;
    g_autofree KilnValue **values = g_new(KilnValue *, last->n_operands);
    g_auto(GStrv) names = g_new0(char *, last->n_operands);
    uint32_t n = 0;
    for (uint32_t k = 0; k < last->n_operands; k++) {
        if (k == i)
            continue;
        values[n] = last->operands[k].value;
        names[n] = g_strdup_printf("r%u", n);
        n++;
    }
    if (!kiln_function_set_results(function, values, (const char *const *)names, n, NULL))
        return NULL;
    sweep(function);
    return g_steal_pointer(&clone);
}

static KilnValue *
stand_in(KilnFunction *function, const KilnNode *node, const KilnValue *result, uint32_t way)
{
    if (way < node->n_operands) {
        KilnValue *operand = node->operands[way].value;
        return operand && kiln_type_equal(&operand->type, &result->type) ? operand : NULL;
    }
    if (way > node->n_operands || node->op == KILN_OP_const || result->known ||
        !kiln_type_is_static(&result->type))
        return NULL;
    g_autofree char *name = g_strdup_printf("a%u", function->arguments->len);
    return &kiln_function_add_argument(function, name, &result->type, NULL)->value;
}

/* @way: an operand, or a new argument after the last of them. */
static KilnModule *
without_node(const KilnModule *module, uint32_t i, uint32_t way)
{
    g_autoptr(KilnModule) clone = kiln_module_clone(module);
    KilnFunction *function = kiln_module_entry(clone);
    KilnNode *node = node_at(function, i);
    if (!node || node->op == KILN_OP_return || way > node->n_operands)
        return NULL;
    bool made = false;
    for (uint32_t r = 0; r < node->n_results; r++) {
        KilnValue *result = &node->results[r];
        KilnValue *other = result->n_uses ? stand_in(function, node, result, way) : NULL;
        if (result->n_uses && !other)
            return NULL;
        if (other)
            kiln_value_replace(result, other);
        made |= other != NULL;
    }
    if (!made)
        return NULL;
    sweep(function);
    return g_steal_pointer(&clone);
}

/* --- keeping what still fails --- */

/* What remains of a loop may have no end. Then a limit is met, which is no failure of @property. */
static bool
still_fails(const Property *property, const KilnModule *module)
{
    static const KilnLimits limits = { .bytes = INT64_C(1) << 30, .ms = 20000 };
    g_autoptr(KilnBudget) budget = kiln_budget_new(&limits);
    KilnBudget *before = kiln_budget_enter(budget);
    g_autoptr(GError) error = NULL;
    bool fired;
    g_auto(Subject) subject = { 0 };
    const bool fails = subject_init(&subject, module, NULL) &&
                       !property_holds(property, &subject, &fired, &error) &&
                       !g_error_matches(error, KILN_ERROR, KILN_ERROR_LIMIT);
    kiln_budget_leave(before);
    return fails;
}

static bool
take(const Property *property, KilnModule **module, KilnModule *candidate)
{
    if (!candidate)
        return false;
    if (!still_fails(property, candidate)) {
        kiln_module_free(candidate);
        return false;
    }
    kiln_module_free(*module);
    *module = candidate;
    return true;
}

/* Constants that nothing reads any more are only in the way of a reader. */
static KilnModule *
without_dead_constants(const KilnModule *module)
{
    g_autoptr(Property) sweep_all = property_new("dce", NULL);
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    g_autoptr(KilnModule) clone = kiln_module_clone(module);
    if (!kiln_pipeline_run_graph(sweep_all->pipeline, clone, &options, NULL, NULL))
        return NULL;
    return g_steal_pointer(&clone);
}

KilnModule *
shrink(const Property *property, const KilnModule *module)
{
    KilnModule *small = kiln_module_clone(module);
    bool smaller = true;
    while (smaller) {
        smaller = false;
        for (uint32_t i = kiln_function_return(kiln_module_entry(small))->n_operands; i-- > 0;)
            smaller |= take(property, &small, without_result(small, i));
        for (uint32_t i = count_nodes(kiln_module_entry(small)); i-- > 0;) {
            KilnNode *node = node_at(kiln_module_entry(small), i);
            uint32_t ways = node ? node->n_operands + 1 : 0;
            for (uint32_t way = 0; way < ways; way++) {
                if (take(property, &small, without_node(small, i, way))) {
                    smaller = true;
                    break;
                }
            }
        }
    }
    take(property, &small, without_dead_constants(small));
    return small;
}

char *
shrink_to_golden(const Property *property, const KilnModule *module, uint64_t seed)
{
    GString *out = g_string_new(NULL);
    bool shipped = property->shipped;
    g_string_append_printf(out, "# %s: %s\n", shipped ? "pipeline" : "passes", property->passes);
    if (property->lossy)
        g_string_append(out, "# flags: fp-reassoc,no-signed-zeros,finite-math,quant-lossy,"
                             "quant-param-changes\n");
    if (property->lean || property->vendor)
        g_string_append_printf(out, "# target: %s\n", property->lean ? "lean" : "vendor");
    g_string_append_printf(out, "# Found by graph %" G_GUINT64_FORMAT "%s%s.\n", seed,
                           property->skip ? " without " : "", property->skip ? property->skip : "");
    g_auto(Opened) opened = { 0 };
    bool open = property->open && opened_init(&opened, module, property->seed);
    kiln_module_print(open ? opened.module : module, NULL, out, NULL);
    return g_string_free(out, FALSE);
}
