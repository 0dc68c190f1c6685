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

const GPtrArray *
kiln_module_inputs(const KilnModule *module)
{
    if (module->folding)
        return module->folding->signature;
    return kiln_module_entry(module)->arguments;
}

/* --- verification --- */

static const KilnType *
type_of(const KilnModule *module, uint32_t number)
{
    const KilnFold *fold = kiln_folding_maker(module->folding, number);
    if (fold) {
        const KilnFunction *function = kiln_module_find_function(module, fold->function);
        return &kiln_function_return(function)->operands[number - fold->first_result].value->type;
    }
    const KilnArgument *argument = g_ptr_array_index(module->folding->signature, number);
    return &argument->value.type;
}

/* Argument @i of @function takes value @number: made before @limit, and of its type. */
static gboolean
check_argument(const KilnFunction *function, guint i, uint32_t number, uint32_t limit,
               GError **error)
{
    const KilnValue *argument = &kiln_function_argument(function, i)->value;
    if (number >= limit)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "fold: argument %%%s of @%s takes value %u, but %u are made before it",
                          argument->name, function->name, number, limit);
    const KilnType *type = type_of(function->module, number);
    if (kiln_type_equal(type, &argument->type))
        return TRUE;
    g_autofree char *expected = kiln_type_to_string(type);
    g_autofree char *found = kiln_type_to_string(&argument->type);
    return kiln_throw(error, KILN_ERROR_INVALID,
                      "fold: argument %%%s of @%s: expected %s as %%%s is, found %s",
                      argument->name, function->name, expected,
                      kiln_folding_name(function->module->folding, number), found);
}

static gboolean
check_count(const char *function, const char *what, uint32_t expected, uint32_t found,
            GError **error)
{
    return expected == found ||
           kiln_throw(error, KILN_ERROR_INVALID, "fold: @%s: expected %u %s, found %u", function,
                      expected, what, found);
}

static gboolean
check_fold(const KilnModule *module, const KilnFold *fold, GError **error)
{
    const KilnFunction *function = kiln_module_find_function(module, fold->function);
    if (!function || function == kiln_module_entry(module))
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "fold: expected a graph in front of the entry, found @%s",
                          fold->function);
    const KilnNode *results = kiln_function_return(function);
    if (!check_count(fold->function, "arguments", function->arguments->len, fold->n_operands,
                     error) ||
        !check_count(fold->function, "results", results ? results->n_operands : 0, fold->n_results,
                     error))
        return FALSE;
    for (uint32_t i = 0; i < fold->n_operands; i++) {
        if (!check_argument(function, i, fold->operands[i], fold->first_result, error))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_folding_verify(const KilnModule *module, GError **error)
{
    const KilnFolding *folding = module->folding;
    const KilnFunction *entry = kiln_module_entry(module);
    if (!folding || !entry)
        return TRUE;
    KilnConstness before = KILN_CONSTNESS_COMPILE;
    for (guint i = 0; i < folding->folds->len; i++) {
        const KilnFold *fold = g_ptr_array_index(folding->folds, i);
        if (fold->when > before)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "fold: @%s is called while compiling, after a call at the first run",
                              fold->function);
        if (!check_fold(module, fold, error))
            return FALSE;
        before = fold->when;
    }
    if (!check_count(entry->name, "arguments", entry->arguments->len, folding->entry->len, error))
        return FALSE;
    uint32_t n = kiln_folding_n_values(folding);
    for (guint i = 0; i < entry->arguments->len; i++) {
        if (!check_argument(entry, i, g_array_index(folding->entry, uint32_t, i), n, error))
            return FALSE;
    }
    return TRUE;
}
