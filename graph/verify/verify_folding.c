/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the `fold` block of a module: the functions that it calls, their order, and types. */
#include "graph/module.h"
#include "graph/module/folding.h"
#include "graph/verify/verify.h"

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
