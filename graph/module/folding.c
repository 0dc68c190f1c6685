/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/module/folding.h"

#include <string.h>

KilnFolding *
kiln_folding_new(void)
{
    KilnFolding *folding = g_new0(KilnFolding, 1);
    folding->signature = g_ptr_array_new();
    folding->folds = g_ptr_array_new();
    folding->entry = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    return folding;
}

void
kiln_folding_free(KilnFolding *folding)
{
    if (!folding)
        return;
    g_ptr_array_unref(folding->signature);
    g_ptr_array_unref(folding->folds);
    g_array_unref(folding->entry);
    g_free(folding);
}

KilnFold *
kiln_folding_add(KilnFolding *folding, const KilnFold *call, KilnArena *arena)
{
    KilnFold *fold = kiln_arena_copy(arena, call, sizeof *call);
    fold->function = kiln_arena_strdup(arena, call->function);
    fold->operands =
        kiln_arena_copy(arena, call->operands, call->n_operands * sizeof *call->operands);
    fold->results = kiln_arena_new0(arena, const char *, call->n_results);
    for (uint32_t i = 0; i < call->n_results; i++)
        fold->results[i] = kiln_arena_strdup(arena, call->results[i]);
    fold->first_result = kiln_folding_n_values(folding);
    g_ptr_array_add(folding->folds, fold);
    return fold;
}

static KilnArgument *
clone_argument(const KilnArgument *argument, KilnArena *arena)
{
    KilnArgument *copy = kiln_arena_copy(arena, argument, sizeof *argument);
    copy->value = (KilnValue){ .name = kiln_arena_strdup(arena, argument->value.name),
                               .type = kiln_type_copy(arena, &argument->value.type),
                               .index = argument->value.index };
    copy->range = kiln_arena_strdup(arena, argument->range);
    copy->function = NULL;
    return copy;
}

KilnFolding *
kiln_folding_clone(const KilnFolding *folding, KilnArena *arena)
{
    KilnFolding *copy = kiln_folding_new();
    for (guint i = 0; i < folding->signature->len; i++)
        g_ptr_array_add(copy->signature,
                        clone_argument(g_ptr_array_index(folding->signature, i), arena));
    for (guint i = 0; i < folding->folds->len; i++)
        kiln_folding_add(copy, g_ptr_array_index(folding->folds, i), arena);
    g_array_append_vals(copy->entry, folding->entry->data, folding->entry->len);
    return copy;
}

/* --- values --- */

uint32_t
kiln_folding_n_values(const KilnFolding *folding)
{
    if (folding->folds->len == 0)
        return folding->signature->len;
    const KilnFold *last = g_ptr_array_index(folding->folds, folding->folds->len - 1);
    return last->first_result + last->n_results;
}

const KilnFold *
kiln_folding_maker(const KilnFolding *folding, uint32_t number)
{
    for (guint i = 0; i < folding->folds->len; i++) {
        const KilnFold *fold = g_ptr_array_index(folding->folds, i);
        if (number >= fold->first_result && number - fold->first_result < fold->n_results)
            return fold;
    }
    return NULL;
}

const char *
kiln_folding_name(const KilnFolding *folding, uint32_t number)
{
    const KilnFold *fold = kiln_folding_maker(folding, number);
    if (fold)
        return fold->results[number - fold->first_result];
    const KilnArgument *argument = g_ptr_array_index(folding->signature, number);
    return argument->value.name;
}

bool
kiln_function_is_fold(const KilnFunction *function)
{
    const KilnFolding *folding = function->module->folding;
    for (guint i = 0; folding && !function->owner && i < folding->folds->len; i++) {
        const KilnFold *fold = g_ptr_array_index(folding->folds, i);
        if (strcmp(fold->function, function->name) == 0)
            return true;
    }
    return false;
}

bool
kiln_argument_is_fixed(const KilnArgument *argument)
{
    const KilnFunction *function = argument->function;
    if (argument->variable || !function || function->owner ||
        function != kiln_module_entry(function->module))
        return false;
    const KilnFolding *folding = function->module->folding;
    if (!folding)
        return argument->constness != KILN_CONSTNESS_VARYING;
    uint32_t number = g_array_index(folding->entry, uint32_t, argument->value.index);
    if (number >= folding->signature->len)
        return true;
    argument = g_ptr_array_index(folding->signature, number);
    return argument->constness != KILN_CONSTNESS_VARYING;
}

bool
kiln_value_is_fixed(const KilnValue *value)
{
    return !value->def && kiln_argument_is_fixed((const KilnArgument *)value);
}

bool
kiln_operand_is_fixed(const KilnNode *node, uint32_t i)
{
    const KilnValue *value = i < node->n_operands ? node->operands[i].value : NULL;
    return value && !node->function->owner && kiln_value_is_fixed(value);
}

const GPtrArray *
kiln_module_inputs(const KilnModule *module)
{
    if (module->folding)
        return module->folding->signature;
    return kiln_module_entry(module)->arguments;
}
