/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/fold/folded_tensors.h"

#include "graph/function.h"
#include "graph/module.h"
#include "graph/module/folding.h"
#include "graph/node.h"

#include <stdlib.h>
#include <string.h>

static const KilnConstness in_order[] = { KILN_CONSTNESS_COMPILE, KILN_CONSTNESS_RUN };

#define foreach_stage(stage, table)                                                                \
    for (size_t i_##stage = 0; i_##stage < G_N_ELEMENTS(in_order); i_##stage++)                    \
        for (KilnFoldStage *stage = &(table)->stages[in_order[i_##stage]];                         \
             stage && stage->function; stage = NULL)

static KilnFoldRef
ref_at(const GArray *refs, guint i)
{
    return g_array_index(refs, KilnFoldRef, i);
}

static gpointer
key_of(KilnFoldRef ref)
{
    return GSIZE_TO_POINTER(((gsize)ref.index + 1) * KILN_FOLD_N_STAGES + ref.stage);
}

/* --- opening --- */

static KilnFoldRef
decode(const KilnFolding *folding, uint32_t number)
{
    const KilnFold *fold = kiln_folding_maker(folding, number);
    if (!fold)
        return (KilnFoldRef){ KILN_CONSTNESS_VARYING, number };
    return (KilnFoldRef){ fold->when, number - fold->first_result };
}

static void
open_stage(KilnFoldStage *stage, const KilnFolding *folding, const KilnFold *fold)
{
    stage->function = kiln_module_find_function(stage->table->module, fold->function);
    const KilnNode *results = kiln_function_return(stage->function);
    for (uint32_t i = 0; i < fold->n_operands; i++) {
        KilnFoldRef ref = decode(folding, fold->operands[i]);
        g_array_append_val(stage->operands, ref);
        g_hash_table_insert(stage->imported, key_of(ref),
                            &kiln_function_argument(stage->function, i)->value);
    }
    for (uint32_t i = 0; i < results->n_operands; i++) {
        KilnValue *value = results->operands[i].value;
        g_ptr_array_add(stage->results, value);
        g_ptr_array_add(stage->names, (char *)fold->results[i]);
        g_hash_table_insert(stage->exported, value, GUINT_TO_POINTER(i + 1));
    }
}

static KilnArgument *
copy_argument(const KilnArgument *argument)
{
    KilnArgument *copy =
        kiln_arena_copy(argument->function->module->arena, argument, sizeof *argument);
    copy->function = NULL;
    copy->value.first_use = copy->value.last_use = NULL;
    copy->value.n_uses = 0;
    return copy;
}

/* Nothing was folded yet: the signature is what the entry takes. */
static void
open_new(KilnFoldTable *table)
{
    for (guint i = 0; i < table->entry->arguments->len; i++) {
        KilnFoldRef ref = { KILN_CONSTNESS_VARYING, i };
        g_ptr_array_add(table->signature, copy_argument(kiln_function_argument(table->entry, i)));
        g_array_append_val(table->arguments, ref);
    }
}

static void
open_old(KilnFoldTable *table, const KilnFolding *folding)
{
    g_ptr_array_extend(table->signature, folding->signature, NULL, NULL);
    for (guint i = 0; i < folding->entry->len; i++) {
        KilnFoldRef ref = decode(folding, g_array_index(folding->entry, uint32_t, i));
        g_array_append_val(table->arguments, ref);
    }
    for (guint i = 0; i < folding->folds->len; i++) {
        const KilnFold *fold = g_ptr_array_index(folding->folds, i);
        open_stage(&table->stages[fold->when], folding, fold);
    }
}

KilnFoldTable *
kiln_fold_table_open(KilnFunction *entry)
{
    KilnFoldTable *table = g_new0(KilnFoldTable, 1);
    table->module = entry->module;
    table->entry = entry;
    table->signature = g_ptr_array_new();
    table->arguments = g_array_new(FALSE, FALSE, sizeof(KilnFoldRef));
    for (size_t s = 0; s < KILN_FOLD_N_STAGES; s++) {
        table->stages[s] =
            (KilnFoldStage){ .table = table,
                             .when = (KilnConstness)s,
                             .operands = g_array_new(FALSE, FALSE, sizeof(KilnFoldRef)),
                             .results = g_ptr_array_new(),
                             .names = g_ptr_array_new(),
                             .imported = g_hash_table_new(NULL, NULL),
                             .exported = g_hash_table_new(NULL, NULL) };
    }
    if (entry->module->folding)
        open_old(table, entry->module->folding);
    else
        open_new(table);
    return table;
}

static void
table_free(KilnFoldTable *table)
{
    for (size_t s = 0; s < KILN_FOLD_N_STAGES; s++) {
        KilnFoldStage *stage = &table->stages[s];
        g_array_unref(stage->operands);
        g_ptr_array_unref(stage->results);
        g_ptr_array_unref(stage->names);
        g_hash_table_unref(stage->imported);
        g_hash_table_unref(stage->exported);
    }
    g_ptr_array_unref(table->signature);
    g_array_unref(table->arguments);
    g_free(table);
}

/* --- changing --- */

/* In front of the entry, and of runtime_fold, which is called later. */
static void
place_function(KilnFoldTable *table, KilnFunction *function)
{
    KilnFunction *later = table->stages[KILN_CONSTNESS_RUN].function;
    guint at = 0;
    g_ptr_array_remove(table->module->functions, function);
    g_ptr_array_find(table->module->functions, later ? later : table->entry, &at);
    g_ptr_array_insert(table->module->functions, (gint)at, function);
}

KilnFoldStage *
kiln_fold_table_stage(KilnFoldTable *table, KilnConstness when)
{
    KilnFoldStage *stage = &table->stages[when];
    if (stage->function)
        return stage;
    const char *base = when == KILN_CONSTNESS_COMPILE ? "compiletime_fold" : "runtime_fold";
    g_autofree char *name = g_strdup(base);
    for (int i = 1; kiln_module_find_function(table->module, name); i++) {
        g_free(name);
        name = g_strdup_printf("%s_%d", base, i);
    }
    KilnFunction *function = kiln_function_new(table->module, name);
    place_function(table, function);
    stage->function = function;
    return stage;
}

/* The argument of the signature, or the value that is a result of a stage. */
static const KilnValue *
referred(const KilnFoldTable *table, KilnFoldRef ref)
{
    if (ref.stage != KILN_CONSTNESS_VARYING)
        return g_ptr_array_index(table->stages[ref.stage].results, ref.index);
    const KilnArgument *argument = g_ptr_array_index(table->signature, ref.index);
    return &argument->value;
}

static KilnConstness
constness_of(const KilnFoldTable *table, KilnFoldRef ref)
{
    const KilnArgument *argument =
        ref.stage == KILN_CONSTNESS_VARYING ? g_ptr_array_index(table->signature, ref.index) : NULL;
    return argument ? argument->constness : ref.stage;
}

static const char *
name_of(const KilnFoldTable *table, KilnFoldRef ref)
{
    if (ref.stage != KILN_CONSTNESS_VARYING)
        return g_ptr_array_index(table->stages[ref.stage].names, ref.index);
    return referred(table, ref)->name;
}

KilnValue *
kiln_fold_stage_import(KilnFoldStage *stage, KilnFoldRef ref)
{
    if (ref.stage == stage->when)
        return g_ptr_array_index(stage->results, ref.index);
    KilnValue *value = g_hash_table_lookup(stage->imported, key_of(ref));
    if (value)
        return value;
    const char *name = kiln_function_unique_name(stage->function, name_of(stage->table, ref));
    KilnArgument *argument =
        kiln_function_add_argument(stage->function, name, &referred(stage->table, ref)->type, NULL);
    argument->constness = constness_of(stage->table, ref);
    if (ref.stage == KILN_CONSTNESS_VARYING)
        argument->range =
            ((const KilnArgument *)g_ptr_array_index(stage->table->signature, ref.index))->range;
    g_array_append_val(stage->operands, ref);
    g_hash_table_insert(stage->imported, key_of(ref), &argument->value);
    return &argument->value;
}

KilnFoldRef
kiln_fold_stage_export(KilnFoldStage *stage, KilnValue *value, const char *name)
{
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(stage->exported, value));
    if (known)
        return (KilnFoldRef){ stage->when, known - 1 };
    g_ptr_array_add(stage->results, value);
    g_ptr_array_add(stage->names, (char *)name);
    g_hash_table_insert(stage->exported, value, GUINT_TO_POINTER(stage->results->len));
    return (KilnFoldRef){ stage->when, stage->results->len - 1 };
}

KilnFoldRef
kiln_fold_table_argument(const KilnFoldTable *table, uint32_t i)
{
    return ref_at(table->arguments, i);
}

KilnArgument *
kiln_fold_table_add_argument(KilnFoldTable *table, KilnFoldRef ref)
{
    for (guint i = 0; i < table->arguments->len; i++) {
        if (key_of(ref_at(table->arguments, i)) == key_of(ref))
            return kiln_function_argument(table->entry, i);
    }
    const char *name = kiln_function_unique_name(table->entry, name_of(table, ref));
    KilnArgument *argument =
        kiln_function_add_argument(table->entry, name, &referred(table, ref)->type, NULL);
    argument->constness = ref.stage;
    g_array_append_val(table->arguments, ref);
    return argument;
}

/* --- closing --- */

/* Where a folded tensor stands among others: literals first, then in the order of the arguments
 * that it is computed from. */
typedef struct {
    GHashTable *of_value; /* KilnValue* of a fold function → rank + 1 */
    guint *of_result[KILN_FOLD_N_STAGES];
} Ranks;

static guint
rank_of_ref(const Ranks *ranks, KilnFoldRef ref)
{
    return ref.stage == KILN_CONSTNESS_VARYING ? ref.index + 1
                                               : ranks->of_result[ref.stage][ref.index];
}

static void
rank_stage(Ranks *ranks, KilnFoldStage *stage)
{
    g_autoptr(GPtrArray) reads = g_ptr_array_new();
    for (guint i = 0; i < stage->operands->len; i++)
        g_hash_table_insert(ranks->of_value, &kiln_function_argument(stage->function, i)->value,
                            GUINT_TO_POINTER(rank_of_ref(ranks, ref_at(stage->operands, i))));
    kiln_foreach_node (node, stage->function) {
        guint rank = 0;
        g_ptr_array_set_size(reads, 0);
        for (uint32_t i = 0; i < node->n_operands; i++)
            g_ptr_array_add(reads, node->operands[i].value);
        kiln_node_add_captures(node, reads);
        for (guint i = 0; i < reads->len; i++) {
            gpointer value = g_ptr_array_index(reads, i);
            guint one = GPOINTER_TO_UINT(g_hash_table_lookup(ranks->of_value, value));
            rank = one && (!rank || one < rank) ? one : rank;
        }
        for (uint32_t i = 0; i < node->n_results; i++)
            g_hash_table_insert(ranks->of_value, &node->results[i], GUINT_TO_POINTER(rank));
    }
    ranks->of_result[stage->when] = g_new0(guint, stage->results->len + 1);
    for (guint i = 0; i < stage->results->len; i++)
        ranks->of_result[stage->when][i] = GPOINTER_TO_UINT(
            g_hash_table_lookup(ranks->of_value, g_ptr_array_index(stage->results, i)));
}

/* An index and what it is sorted by. */
typedef struct {
    guint rank, index;
} Ranked;

static gint
compare_ranked(gconstpointer a, gconstpointer b)
{
    const Ranked *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* An argument of the entry goes where nothing reads it and a fold took it over or made it. */
static bool
goes(KilnFoldTable *table, guint i)
{
    KilnFoldRef ref = ref_at(table->arguments, i);
    if (kiln_function_argument(table->entry, i)->value.n_uses)
        return false;
    bool taken = ref.stage != KILN_CONSTNESS_VARYING;
    foreach_stage(stage, table)
    {
        const KilnValue *import = g_hash_table_lookup(stage->imported, key_of(ref));
        taken |= import && import->n_uses;
    }
    return taken;
}

/* Plain arguments in their order, folded ones behind them by rank. */
static bool
order_entry(KilnFoldTable *table, const Ranks *ranks)
{
    guint n = table->arguments->len, kept = 0;
    g_autofree Ranked *order = g_new0(Ranked, n + 1);
    g_autofree KilnArgument **arguments = g_new0(KilnArgument *, n + 1);
    bool moved = false;
    for (guint i = 0; i < n; i++) {
        KilnFoldRef ref = ref_at(table->arguments, i);
        bool folded = ref.stage != KILN_CONSTNESS_VARYING;
        if (!goes(table, i))
            order[kept++] = (Ranked){ folded ? rank_of_ref(ranks, ref) + 1 : 0, i };
    }
    qsort(order, kept, sizeof *order, compare_ranked);
    g_autoptr(GArray) refs = g_array_new(FALSE, FALSE, sizeof(KilnFoldRef));
    for (guint i = 0; i < kept; i++) {
        KilnFoldRef ref = ref_at(table->arguments, order[i].index);
        arguments[i] = kiln_function_argument(table->entry, order[i].index);
        g_array_append_val(refs, ref);
        moved |= order[i].index != i;
    }
    if (kept == n && !moved)
        return false;
    kiln_function_keep_arguments(table->entry, arguments, kept);
    g_array_set_size(table->arguments, 0);
    g_array_append_vals(table->arguments, refs->data, refs->len);
    return true;
}

/* Marks the results of @stage that @refs name. */
static void
mark_results(bool *wanted, KilnConstness stage, const GArray *refs)
{
    for (guint i = 0; i < refs->len; i++) {
        KilnFoldRef ref = ref_at(refs, i);
        if (ref.stage == stage)
            wanted[ref.index] = true;
    }
}

static void
redirect(GArray *refs, KilnConstness stage, const guint *to)
{
    for (guint i = 0; i < refs->len; i++) {
        KilnFoldRef *ref = &g_array_index(refs, KilnFoldRef, i);
        if (ref->stage == stage)
            ref->index = to[ref->index];
    }
}

/* Keeps the results of @stage that something takes, by rank; all refs to them follow. */
static bool
order_results(KilnFoldTable *table, KilnFoldStage *stage, const Ranks *ranks)
{
    guint n = stage->results->len, kept = 0;
    g_autofree bool *wanted = g_new0(bool, n + 1);
    g_autofree Ranked *order = g_new0(Ranked, n + 1);
    g_autofree guint *to = g_new0(guint, n + 1);
    GArray *later = table->stages[KILN_CONSTNESS_RUN].operands;
    mark_results(wanted, stage->when, table->arguments);
    mark_results(wanted, stage->when, later);
    for (guint i = 0; i < n; i++) {
        if (wanted[i])
            order[kept++] = (Ranked){ ranks->of_result[stage->when][i], i };
    }
    qsort(order, kept, sizeof *order, compare_ranked);
    g_autoptr(GPtrArray) results = g_ptr_array_new();
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < kept; i++) {
        to[order[i].index] = i;
        g_ptr_array_add(results, g_ptr_array_index(stage->results, order[i].index));
        g_ptr_array_add(names, g_ptr_array_index(stage->names, order[i].index));
    }
    redirect(table->arguments, stage->when, to);
    redirect(later, stage->when, to);
    kiln_function_set_results(stage->function, (KilnValue *const *)results->pdata,
                              (const char *const *)names->pdata, kept, NULL);
    kiln_foreach_node_reverse (node, stage->function) {
        if (kiln_node_is_dead(node))
            kiln_node_remove(node);
    }
    g_ptr_array_set_size(stage->results, 0);
    g_ptr_array_extend(stage->results, results, NULL, NULL);
    g_ptr_array_set_size(stage->names, 0);
    g_ptr_array_extend(stage->names, names, NULL, NULL);
    return kept < n;
}

/* @name, or one that follows from it, that is not in @taken: in there now, in the arena. */
static char *
take_name(KilnFoldTable *table, GHashTable *taken, const char *name)
{
    char *unique = kiln_arena_strdup(table->module->arena, name);
    while (!g_hash_table_add(taken, unique)) {
        const char *next = kiln_function_unique_name(table->entry, name);
        unique = kiln_arena_strdup(table->module->arena, next);
    }
    return unique;
}

/* The values of the table have distinct names: results go by those of the entry's arguments that
 * take them. */
static void
settle_names(KilnFoldTable *table)
{
    g_autoptr(GHashTable) taken = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < table->signature->len; i++) {
        const KilnArgument *argument = g_ptr_array_index(table->signature, i);
        g_hash_table_add(taken, (char *)argument->value.name);
    }
    for (guint i = 0; i < table->arguments->len; i++) {
        KilnFoldRef ref = ref_at(table->arguments, i);
        KilnValue *value = &kiln_function_argument(table->entry, i)->value;
        if (ref.stage == KILN_CONSTNESS_VARYING)
            continue;
        char *name = take_name(table, taken, value->name);
        if (strcmp(name, value->name) != 0)
            kiln_value_rename(table->entry, value, name);
        g_ptr_array_index(table->stages[ref.stage].names, ref.index) = name;
    }
    foreach_stage(stage, table)
    {
        for (guint i = 0; i < stage->names->len; i++) {
            char *name = g_ptr_array_index(stage->names, i);
            /* Not the same string: what an argument is called stands in the table itself. */
            if (g_hash_table_lookup(taken, name) != name)
                g_ptr_array_index(stage->names, i) = take_name(table, taken, name);
        }
    }
}

/* Keeps the arguments of @stage that it reads, in the order of what they take. */
static void
order_operands(KilnFoldTable *table, KilnFoldStage *stage)
{
    guint n = stage->operands->len, kept = 0;
    g_autofree Ranked *order = g_new0(Ranked, n + 1);
    g_autofree KilnArgument **arguments = g_new0(KilnArgument *, n + 1);
    for (guint i = 0; i < n; i++) {
        KilnFoldRef ref = ref_at(stage->operands, i);
        bool made = ref.stage != KILN_CONSTNESS_VARYING;
        if (kiln_function_argument(stage->function, i)->value.n_uses)
            order[kept++] = (Ranked){ ref.index + made * table->signature->len, i };
    }
    qsort(order, kept, sizeof *order, compare_ranked);
    g_autoptr(GArray) refs = g_array_new(FALSE, FALSE, sizeof(KilnFoldRef));
    for (guint i = 0; i < kept; i++) {
        KilnFoldRef ref = ref_at(stage->operands, order[i].index);
        arguments[i] = kiln_function_argument(stage->function, order[i].index);
        g_array_append_val(refs, ref);
    }
    kiln_function_keep_arguments(stage->function, arguments, kept);
    g_array_set_size(stage->operands, 0);
    g_array_append_vals(stage->operands, refs->data, refs->len);
}

static uint32_t
encode(const KilnFolding *folding, KilnFoldRef ref)
{
    for (guint i = 0; i < folding->folds->len; i++) {
        const KilnFold *fold = g_ptr_array_index(folding->folds, i);
        if (fold->when == ref.stage)
            return fold->first_result + ref.index;
    }
    return ref.index;
}

static void
write_stage(const KilnFoldTable *table, KilnFolding *folding, const KilnFoldStage *stage)
{
    g_autofree uint32_t *operands = g_new0(uint32_t, stage->operands->len + 1);
    for (guint i = 0; i < stage->operands->len; i++)
        operands[i] = encode(folding, ref_at(stage->operands, i));
    for (guint i = 0; i < stage->names->len; i++)
        g_ptr_array_index(stage->function->result_names, i) = g_ptr_array_index(stage->names, i);
    KilnFold call = { .function = stage->function->name,
                      .when = stage->when,
                      .n_operands = stage->operands->len,
                      .n_results = stage->results->len,
                      .operands = operands,
                      .results = (const char **)stage->names->pdata };
    kiln_folding_add(folding, &call, table->module->arena);
}

/* A function that folds nothing any more leaves the module. */
static void
write_table(KilnFoldTable *table)
{
    KilnFolding *folding = kiln_folding_new();
    g_ptr_array_extend(folding->signature, table->signature, NULL, NULL);
    foreach_stage(stage, table)
    {
        if (stage->results->len == 0) {
            g_ptr_array_remove(table->module->functions, stage->function);
            continue;
        }
        write_stage(table, folding, stage);
    }
    for (guint i = 0; i < table->arguments->len; i++) {
        uint32_t number = encode(folding, ref_at(table->arguments, i));
        g_array_append_val(folding->entry, number);
    }
    kiln_folding_free(table->module->folding);
    table->module->folding = folding;
    kiln_function_touch(table->entry);
}

bool
kiln_fold_table_close(KilnFoldTable *table)
{
    Ranks ranks = { .of_value = g_hash_table_new(NULL, NULL) };
    foreach_stage(stage, table) rank_stage(&ranks, stage);
    bool changed = order_entry(table, &ranks);
    /* Last stage first: what it stops reading, the stage before need not make. */
    for (size_t s = G_N_ELEMENTS(in_order); s-- > 0;) {
        KilnFoldStage *stage = &table->stages[in_order[s]];
        if (!stage->function)
            continue;
        changed |= order_results(table, stage, &ranks);
        order_operands(table, stage);
    }
    settle_names(table);
    write_table(table);
    g_hash_table_unref(ranks.of_value);
    for (size_t s = 0; s < KILN_FOLD_N_STAGES; s++)
        g_free(ranks.of_result[s]);
    table_free(table);
    return changed;
}
