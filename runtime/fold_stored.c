/* SPDX-License-Identifier: Apache-2.0 */
/* The table of folded constants after the calls that could be made were: what a program file says,
 * and what a loaded program is folded by. */
#include "graph/module/folding.h"
#include "runtime/fold_calls.h"

/* The inputs of the program: those of the old table, or what the entry took before any of them was
 * known. */
static void
write_signature(const KilnFolder *folder, const KilnFolding *old, KilnFolding *table)
{
    KilnArena *arena = folder->ir->module->arena;
    for (uint32_t i = 0; i < folder->n_inputs; i++) {
        KilnArgument *argument = old ? g_ptr_array_index(old->signature, i) : NULL;
        if (!argument) {
            argument = kiln_arena_new0(arena, KilnArgument, 1);
            argument->value.name = kiln_arena_strdup(arena, folder->input_names[i]);
            argument->value.type = kiln_type_copy(arena, &folder->input_types[i]);
            argument->value.index = i;
        }
        g_ptr_array_add(table->signature, argument);
    }
}

/* Appends @call under the numbers of the new table, and notes those of its results. */
static void
write_call(const KilnFolder *folder, const KilnFolding *old, const KilnFoldCall *call,
           uint32_t *numbers, KilnFolding *table)
{
    KilnFold fold = *kiln_folding_maker(old, call->first_result);
    g_autofree uint32_t *operands = g_new(uint32_t, call->operands->len + 1);
    for (guint i = 0; i < call->operands->len; i++)
        operands[i] = numbers[g_array_index(call->operands, uint32_t, i)];
    fold.operands = operands;
    fold.n_operands = call->operands->len;
    const KilnFold *added = kiln_folding_add(table, &fold, folder->ir->module->arena);
    for (uint32_t r = 0; r < added->n_results; r++)
        numbers[call->first_result + r] = added->first_result + r;
}

static bool
is_left(const KilnFolder *folder, const KilnIRFunction *function)
{
    for (guint i = 0; i < folder->left.calls->len; i++) {
        if (g_array_index(folder->left.calls, KilnFoldCall, i).function == function)
            return true;
    }
    return false;
}

/* Functions whose calls were made are not called again. */
static void
drop_functions(const KilnFolder *folder, const KilnFolding *old)
{
    GPtrArray *functions = folder->ir->functions;
    for (guint i = 0; i < old->folds->len; i++) {
        const KilnFold *fold = g_ptr_array_index(old->folds, i);
        KilnIRFunction *function = kiln_ir_module_find_function(folder->ir, fold->function);
        if (function && !is_left(folder, function))
            g_ptr_array_remove(functions, function);
    }
}

void
kiln_folder_write_table(const KilnFolder *folder)
{
    KilnModule *module = folder->ir->module;
    g_autoptr(KilnFolding) old = g_steal_pointer(&module->folding);
    KilnFolding *table = module->folding = kiln_folding_new();
    g_autofree uint32_t *numbers = g_new0(uint32_t, folder->n_values + 1);
    write_signature(folder, old, table);
    for (uint32_t i = 0; i < folder->n_inputs; i++)
        numbers[i] = i;
    for (guint i = 0; i < folder->left.calls->len; i++)
        write_call(folder, old, &g_array_index(folder->left.calls, KilnFoldCall, i), numbers,
                   table);
    for (guint i = 0; i < folder->entry->len; i++)
        g_array_append_val(table->entry, numbers[g_array_index(folder->entry, uint32_t, i)]);
    if (old)
        drop_functions(folder, old);
}
