/* SPDX-License-Identifier: Apache-2.0 */
/* The table names values by numbers that shift when results come and go; meanwhile they are Refs:
 * an argument of the signature, or a result of a stage. */
#include "passes/fold/fold_plan.h"

#include "graph/module/folding.h"
#include "graph/module/outline.h"
#include "passes/fold/folded_tensors.h"
#include "passes/pass.h"

/* What the operands of copies become at one stage: entry value → value of the stage's function. */
typedef struct {
    KilnFoldTable *table;
    const KilnFoldPlan *plan;
    GHashTable *copies[KILN_FOLD_N_STAGES];
    GPtrArray *ends; /* KilnValue* of the entry that become arguments of it, in order */
} Move;

/* --- values at a stage --- */

/* A literal as a `const` node of the stage's function. */
static KilnValue *
copy_literal(KilnFoldStage *stage, const KilnValue *value)
{
    KilnConstant *constant = kiln_value_constant(value);
    if (!constant)
        return kiln_build_constant(stage->function, NULL, value->name,
                                   kiln_value_known_tensor(value));
    KilnAttrs_const attrs = { .value = constant };
    KilnNodeSpec spec = { .op = KILN_OP_const, .attrs = &attrs, .result_name = value->name };
    return &kiln_node_new(stage->function, &spec, NULL)->results[0]; /* no operand can be wrong */
}

/* Result @value of a node that is computed at @stage, as one of its function's results. */
static KilnFoldRef
export_result(Move *move, KilnConstness at, const KilnValue *value)
{
    KilnFoldStage *stage = kiln_fold_table_stage(move->table, at);
    KilnValue *copy = g_hash_table_lookup(move->copies[at], value);
    return kiln_fold_stage_export(stage, copy, value->name);
}

/* What stands for @value of the entry at stage @at. */
static KilnValue *
value_at(Move *move, KilnConstness at, KilnValue *value)
{
    KilnValue *copy = g_hash_table_lookup(move->copies[at], value);
    if (copy)
        return copy;
    KilnFoldStage *stage = kiln_fold_table_stage(move->table, at);
    if (kiln_fold_is_literal(value))
        copy = copy_literal(stage, value);
    else if (!value->def)
        copy = kiln_fold_stage_import(stage, kiln_fold_table_argument(move->table, value->index));
    else
        copy = kiln_fold_stage_import(
            stage, export_result(move, move->plan->nodes[value->def->id].earliest, value));
    g_hash_table_insert(move->copies[at], value, copy);
    return copy;
}

/* --- nodes --- */

/* With its subgraphs. */
static bool
copy_region_node(Move *move, KilnConstness at, const KilnNode *node, GError **error)
{
    KilnFoldStage *stage = kiln_fold_table_stage(move->table, at);
    g_autoptr(GPtrArray) captures = g_ptr_array_new();
    kiln_node_add_captures(node, captures);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value)
            value_at(move, at, node->operands[i].value);
    }
    for (guint i = 0; i < captures->len; i++)
        value_at(move, at, g_ptr_array_index(captures, i));
    return kiln_node_copy(stage->function, node, move->copies[at], NULL, NULL, error) != NULL;
}

static bool
copy_node(Move *move, KilnConstness at, const KilnNode *node, GError **error)
{
    if (kiln_op_has(node->op, KILN_TRAIT_REGION))
        return copy_region_node(move, at, node, error);
    KilnFoldStage *stage = kiln_fold_table_stage(move->table, at);
    g_autofree KilnValue **operands = g_new0(KilnValue *, node->n_operands + 1);
    g_autofree KilnType *types = g_new0(KilnType, node->n_results + 1);
    g_autofree const char **names = g_new0(const char *, node->n_results + 1);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value)
            operands[i] = value_at(move, at, node->operands[i].value);
    }
    for (uint32_t i = 0; i < node->n_results; i++) {
        types[i] = node->results[i].type;
        names[i] = node->results[i].name;
    }
    KilnNodeSpec spec = { .op = node->op,
                          .name = node->name,
                          .operands = operands,
                          .n_operands = node->n_operands,
                          .n_results = node->n_results,
                          .attrs = node->attrs,
                          .result_names = names,
                          .types = types };
    KilnNode *copy = kiln_node_new(stage->function, &spec, error);
    for (uint32_t i = 0; copy && i < node->n_results; i++)
        g_hash_table_insert(move->copies[at], (gpointer)&node->results[i], &copy->results[i]);
    return copy != NULL;
}

static bool
read_in_entry(const KilnFoldPlan *plan, const KilnValue *value)
{
    kiln_foreach_use (use, value) {
        if (kiln_fold_plan_has(plan, kiln_fold_reader(plan, use), KILN_CONSTNESS_VARYING))
            return true;
    }
    return false;
}

static bool
copy_nodes(Move *move, GError **error)
{
    static const KilnConstness stages[] = { KILN_CONSTNESS_COMPILE, KILN_CONSTNESS_RUN };
    kiln_foreach_node (node, move->plan->function) {
        for (size_t s = 0; s < G_N_ELEMENTS(stages); s++) {
            if (kiln_fold_plan_has(move->plan, node, stages[s]) &&
                !copy_node(move, stages[s], node, error))
                return false;
        }
        for (uint32_t i = 0; i < node->n_results && move->plan->nodes[node->id].end; i++) {
            if (read_in_entry(move->plan, &node->results[i]))
                g_ptr_array_add(move->ends, &node->results[i]);
        }
    }
    return true;
}

/* The entry reads folded tensors as arguments of their old names. */
static void
read_folded(Move *move, const char *rule)
{
    KilnFunction *entry = move->plan->function;
    for (guint i = 0; i < move->ends->len; i++) {
        KilnValue *value = g_ptr_array_index(move->ends, i);
        KilnNode *def = value->def;
        const char *name = value->name;
        KilnConstness at = move->plan->nodes[def->id].earliest;
        KilnFoldRef ref = export_result(move, at, value);
        kiln_pass_note(move->plan->context, rule, "%s (%s)", kiln_node_label(def),
                       kiln_op_info(def->op)->name);
        KilnArgument *argument = kiln_fold_table_add_argument(move->table, ref);
        kiln_value_replace(value, &argument->value);
        kiln_node_remove_if_dead(def);
        if (!kiln_function_find_value(entry, name))
            kiln_value_rename(entry, &argument->value, name);
    }
}

static bool
anything_ahead(const KilnFoldPlan *plan)
{
    const uint8_t ahead = 1u << KILN_CONSTNESS_COMPILE | 1u << KILN_CONSTNESS_RUN;
    kiln_foreach_node (node, plan->function) {
        if (plan->nodes[node->id].stages & ahead)
            return true;
    }
    return false;
}

/* An argument that a fold made or took over and that nothing reads any more. */
static bool
anything_unread(const KilnFunction *entry)
{
    const KilnFolding *folding = entry->module->folding;
    for (guint i = 0; folding && i < folding->entry->len; i++) {
        if (kiln_function_argument(entry, i)->value.n_uses == 0 &&
            kiln_folding_maker(folding, g_array_index(folding->entry, uint32_t, i)))
            return true;
    }
    return false;
}

bool
kiln_fold_into_functions(const KilnFoldPlan *plan, const char *rule)
{
    bool ahead = anything_ahead(plan);
    if (!ahead && !anything_unread(plan->function))
        return false;
    KilnFoldTable *table = kiln_fold_table_open(plan->function);
    Move move = { .table = table, .plan = plan, .ends = g_ptr_array_new() };
    for (size_t s = 0; s < G_N_ELEMENTS(move.copies); s++)
        move.copies[s] = g_hash_table_new(NULL, NULL);
    /* Copies of nodes that are valid are valid: an error would be a slip of this file. */
    if (ahead && !copy_nodes(&move, NULL))
        g_assert_not_reached();
    read_folded(&move, rule);
    for (size_t s = 0; s < G_N_ELEMENTS(move.copies); s++)
        g_hash_table_unref(move.copies[s]);
    g_ptr_array_unref(move.ends);
    return kiln_fold_table_close(table) || ahead;
}
