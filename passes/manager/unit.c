/* SPDX-License-Identifier: Apache-2.0 */
/* What the manager does to a function of either level. */
#include "passes/manager/unit.h"

#include "graph/base/number.h"
#include "graph/module/changes.h"
#include "graph/module/folding.h"
#include "graph/verify/verify.h"
#include "ir/changes.h"
#include "passes/context/context.h"
#include "passes/rule.h"

static void
collect(KilnFunction *function, GPtrArray *out)
{
    uint32_t left = function->n_region_nodes;
    for (const KilnNode *node = function->first; node && left; node = node->next) {
        if (!kiln_op_has(node->op, KILN_TRAIT_REGION))
            continue;
        kiln_foreach_region (region, node)
            collect(region, out);
        left--;
    }
    g_ptr_array_add(out, function);
}

GPtrArray *
kiln_unit_functions(const KilnUnit *module)
{
    GPtrArray *out = g_ptr_array_new();
    if (module->level == KILN_LEVEL_IR) {
        g_ptr_array_extend(out, module->ir->functions, NULL, NULL);
        return out;
    }
    for (guint i = 0; i < module->module->functions->len; i++)
        collect(g_ptr_array_index(module->module->functions, i), out);
    return out;
}

static bool
owns(const KilnNode *node, const KilnFunction *function)
{
    kiln_foreach_region (region, node) {
        if (region == function)
            return true;
    }
    return false;
}

bool
kiln_unit_is_alive(const KilnUnit *module, const void *function)
{
    if (module->level == KILN_LEVEL_IR)
        return g_ptr_array_find(module->ir->functions, function, NULL);
    const KilnFunction *graph = function;
    for (; graph->owner; graph = graph->owner->function) {
        if (!kiln_node_is_linked(graph->owner) || !owns(graph->owner, graph))
            return false;
    }
    return g_ptr_array_find(module->module->functions, graph, NULL);
}

KilnUnit
kiln_unit_of(const KilnUnit *module, void *function)
{
    KilnUnit unit = *module;
    unit.graph = module->level == KILN_LEVEL_GRAPH ? function : NULL;
    unit.instrs = module->level == KILN_LEVEL_IR ? function : NULL;
    return unit;
}

const char *
kiln_unit_name(const KilnUnit *unit)
{
    return unit->graph ? unit->graph->name : unit->instrs->name;
}

int64_t
kiln_unit_size(const KilnUnit *unit)
{
    int64_t size = 0;
    if (unit->level == KILN_LEVEL_GRAPH)
        return unit->module->n_nodes;
    for (guint i = 0; i < unit->ir->functions->len; i++) {
        const KilnIRFunction *function = g_ptr_array_index(unit->ir->functions, i);
        size += function->n_instrs;
    }
    return size;
}

static int64_t
graph_flops(const KilnFunction *function)
{
    int64_t flops = 0;
    kiln_foreach_node (node, function) {
        flops = kiln_add_capped(flops, kiln_node_cost(node).flops);
        if (kiln_op_has(node->op, KILN_TRAIT_REGION)) {
            kiln_foreach_region (region, node)
                flops = kiln_add_capped(flops, graph_flops(region));
        }
    }
    return flops;
}

KilnUnitCost
kiln_unit_cost(const KilnUnit *unit)
{
    KilnUnitCost cost = { 0, 0 };
    for (guint i = 0; i < unit->module->constants->len; i++) {
        const KilnConstant *constant = g_ptr_array_index(unit->module->constants, i);
        const KilnTensor *tensor = constant->tensor;
        gsize bytes = tensor && tensor->bytes ? g_bytes_get_size(tensor->bytes) : 0;
        cost.constant_bytes = kiln_add_capped(cost.constant_bytes, (int64_t)bytes);
    }
    if (unit->level == KILN_LEVEL_GRAPH) {
        for (guint i = 0; i < unit->module->functions->len; i++)
            cost.flops = kiln_add_capped(
                cost.flops, graph_flops(g_ptr_array_index(unit->module->functions, i)));
        return cost;
    }
    for (guint i = 0; i < unit->ir->functions->len; i++) {
        kiln_foreach_instr (instr, (KilnIRFunction *)g_ptr_array_index(unit->ir->functions, i))
            cost.flops = kiln_add_capped(cost.flops, kiln_instr_cost(instr).flops);
    }
    return cost;
}

KilnHashes
kiln_unit_hash(const KilnUnit *unit, KilnKnownHashes *known)
{
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    KilnHashes own =
        unit->graph ? kiln_hash_function(unit->graph) : kiln_hash_ir_function(unit->instrs);
    KilnHashes module =
        known ? kiln_hash_module_again(unit->module, known) : kiln_hash_module(unit->module);
    return (KilnHashes){ own.structure * factor + module.structure,
                         own.named * factor + module.named };
}

uint64_t
kiln_unit_stamp(const KilnUnit *unit)
{
    return unit->graph ? unit->module->stamp : unit->instrs->stamp + 1;
}

void
kiln_unit_touch(const KilnUnit *unit)
{
    if (unit->graph)
        kiln_function_touch(unit->graph);
    else
        kiln_ir_touch(unit->instrs);
}

/* A pass on the entry may change what is folded out of it. */
static gboolean
verify_folding(const KilnUnit *unit, GError **error)
{
    const KilnModule *module = unit->module;
    if (!module->folding || unit->graph != kiln_module_entry(module))
        return TRUE;
    for (guint i = 0; i < module->folding->folds->len; i++) {
        const KilnFold *fold = g_ptr_array_index(module->folding->folds, i);
        const KilnFunction *function = kiln_module_find_function(module, fold->function);
        if (function && !kiln_function_verify(function, error))
            return FALSE;
    }
    return kiln_folding_verify(module, error);
}

gboolean
kiln_unit_verify(const KilnUnit *unit, GError **error)
{
    if (!unit->graph)
        return kiln_ir_verify(unit->instrs, error);
    return kiln_function_verify(unit->graph, error) && verify_folding(unit, error);
}

gboolean
kiln_unit_verify_whole(const KilnUnit *unit, GError **error)
{
    if (unit->graph)
        kiln_changes_forget(unit->graph);
    else
        kiln_ir_changes_forget(unit->instrs);
    return kiln_unit_verify_changes(unit, error);
}

gboolean
kiln_unit_verify_changes(const KilnUnit *unit, GError **error)
{
    if (!unit->graph)
        return kiln_ir_verify_changes(unit->instrs, error);
    return kiln_function_verify_changes(unit->graph, error) && verify_folding(unit, error);
}

void
kiln_unit_print(const KilnUnit *unit, GString *out)
{
    if (unit->graph)
        kiln_function_print(unit->graph, out);
    else
        kiln_ir_print(unit->instrs, out);
}

void
kiln_unit_renumber(const KilnUnit *unit)
{
    if (unit->graph) {
        kiln_function_renumber(unit->graph);
        return;
    }
    uint32_t id = 0;
    kiln_foreach_instr (instr, unit->instrs)
        instr->id = id++;
    unit->instrs->next_id = id;
}

gboolean
kiln_unit_run(const KilnUnit *unit, const KilnPassInfo *pass, KilnPassContext *context,
              bool *changed, GError **error)
{
    if (!unit->graph)
        return pass->run_ir(unit->instrs, context, changed, error);
    return pass->rules ? kiln_rules_run(pass->rules, unit->graph, context, changed, error)
                       : pass->run_graph(unit->graph, context, changed, error);
}
