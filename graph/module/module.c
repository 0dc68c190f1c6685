/* SPDX-License-Identifier: Apache-2.0 */
/* Modules own functions, constants and the arena; functions own the order of nodes and the names of
 * values. */
#include "graph/module.h"

#include "graph/base/shared.h"
#include "graph/module/changes.h"
#include "graph/module/folding.h"
#include "graph/order.h"

#include <string.h>

static void
constant_free(gpointer data)
{
    KilnConstant *constant = data;
    kiln_tensor_free(constant->tensor);
    constant->tensor = NULL;
}

static void
function_free(gpointer data)
{
    KilnFunction *function = data;
    g_hash_table_unref(function->names);
    g_hash_table_unref(function->name_counters);
    g_ptr_array_unref(function->arguments);
    g_ptr_array_unref(function->result_names);
    g_clear_pointer(&function->doubtful, g_ptr_array_unref);
    g_clear_pointer(&function->changes.nodes, g_ptr_array_unref);
    g_clear_pointer(&function->changes.values, g_ptr_array_unref);
    kiln_order_clear(&function->order);
    g_free(function);
}

/* Takes @dims over. */
static KilnModule *
module_with(KilnDimTable *dims)
{
    KilnModule *module = g_new0(KilnModule, 1);
    module->dims = dims;
    module->arena = kiln_arena_new();
    module->nodes = kiln_arena_new_by_lines();
    module->values = kiln_arena_new_by_lines();
    module->uses = kiln_arena_new();
    module->functions = g_ptr_array_new();
    module->all_functions = g_ptr_array_new_with_free_func(function_free);
    module->region_names = g_hash_table_new(NULL, NULL);
    module->constants = g_ptr_array_new_with_free_func(constant_free);
    module->constant_by_name = g_hash_table_new(g_str_hash, g_str_equal);
    module->declarations = g_ptr_array_new();
    module->stamp = 1;
    kiln_metadata_init(&module->metadata);
    return module;
}

KilnModule *
kiln_module_new(void)
{
    return module_with(kiln_dim_table_new());
}

KilnModule *
kiln_module_new_beside(const KilnModule *other)
{
    return module_with(kiln_dim_table_ref(other->dims));
}

void
kiln_module_free(KilnModule *module)
{
    if (!module)
        return;
    g_ptr_array_unref(module->functions);
    g_ptr_array_unref(module->all_functions);
    g_hash_table_unref(module->region_names);
    g_ptr_array_unref(module->constants);
    g_hash_table_unref(module->constant_by_name);
    for (guint i = 0; i < module->declarations->len; i++)
        kiln_shared_unref(
            ((KilnDeclaration *)g_ptr_array_index(module->declarations, i))->compiled);
    g_ptr_array_unref(module->declarations);
    kiln_folding_free(module->folding);
    kiln_arena_free(module->arena);
    kiln_arena_free(module->nodes);
    kiln_arena_free(module->values);
    kiln_arena_free(module->uses);
    kiln_dim_table_unref(module->dims);
    g_free(module->path);
    if (module->notes)
        g_ptr_array_unref(module->notes);
    g_free(module);
}

void
kiln_module_add_note(KilnModule *module, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *note = g_strdup_vprintf(format, args);
    va_end(args);
    if (!module->notes)
        module->notes = g_ptr_array_new_with_free_func(g_free);
    else
        g_ptr_array_set_size(module->notes, (int)module->notes->len - 1); /* the NULL */
    g_ptr_array_add(module->notes, kiln_error_escape(note, false));
    g_ptr_array_add(module->notes, NULL);
}

static KilnFunction *
function_new(KilnModule *module, const char *name)
{
    KilnFunction *function = g_new0(KilnFunction, 1);
    function->name = kiln_arena_strdup(module->arena, name);
    function->module = module;
    function->arguments = g_ptr_array_new();
    function->result_names = g_ptr_array_new();
    function->names = g_hash_table_new(g_str_hash, g_str_equal);
    function->name_counters = g_hash_table_new(g_str_hash, g_str_equal);
    g_ptr_array_add(module->all_functions, function);
    return function;
}

KilnFunction *
kiln_function_new_region(KilnModule *module, const char *name)
{
    KilnFunction *function = function_new(module, name);
    function->is_region = true;
    return function;
}

KilnFunction *
kiln_function_new(KilnModule *module, const char *name)
{
    KilnFunction *function = function_new(module, name);
    g_ptr_array_add(module->functions, function);
    return function;
}

void
kiln_function_touch(KilnFunction *function)
{
    kiln_changes_forget(function);
    function->module->doubtful_constants = true;
    kiln_function_stamp(function);
}

KilnFunction *
kiln_module_find_function(const KilnModule *module, const char *name)
{
    for (guint i = 0; i < module->functions->len; i++) {
        KilnFunction *function = g_ptr_array_index(module->functions, i);
        if (strcmp(function->name, name) == 0)
            return function;
    }
    return NULL;
}

/* --- declarations --- */

KilnDeclaration *
kiln_module_find_declaration(const KilnModule *module, const char *name)
{
    for (guint i = 0; i < module->declarations->len; i++) {
        KilnDeclaration *declaration = g_ptr_array_index(module->declarations, i);
        if (strcmp(declaration->name, name) == 0)
            return declaration;
    }
    return NULL;
}

KilnDeclaration *
kiln_module_declare(KilnModule *module, const char *name, KilnFunction *body)
{
    const KilnNode *results = kiln_function_return(body);
    KilnDeclaration *declaration = kiln_arena_new0(module->arena, KilnDeclaration, 1);
    declaration->name = kiln_arena_strdup(module->arena, name);
    declaration->body = body;
    declaration->n_operands = body->arguments->len;
    declaration->operands = kiln_arena_new0(module->arena, KilnType, declaration->n_operands);
    for (uint32_t i = 0; i < declaration->n_operands; i++)
        declaration->operands[i] = kiln_function_argument(body, i)->value.type;
    declaration->n_results = results->n_operands;
    declaration->results = kiln_arena_new0(module->arena, KilnType, declaration->n_results);
    for (uint32_t i = 0; i < declaration->n_results; i++)
        declaration->results[i] = results->operands[i].value->type;
    g_ptr_array_add(module->declarations, declaration);
    module->stamp++;
    return declaration;
}

void
kiln_module_keep_declarations(KilnModule *module, const bool *keep)
{
    guint kept = 0;
    for (guint i = 0; i < module->declarations->len; i++) {
        KilnDeclaration *declaration = g_ptr_array_index(module->declarations, i);
        if (keep[i])
            module->declarations->pdata[kept++] = declaration;
        else
            g_clear_pointer(&declaration->compiled, kiln_shared_unref);
    }
    g_ptr_array_set_size(module->declarations, (gint)kept);
    module->stamp++;
}

/* --- names --- */

static KilnFunction *
function_around(const KilnFunction *function)
{
    return function->owner ? function->owner->function : NULL;
}

static bool
name_is_free_around(const KilnFunction *function, const char *name)
{
    while ((function = function_around(function))) {
        if (g_hash_table_contains(function->names, name))
            return false;
    }
    return true;
}

static gpointer
name_hash(const char *name)
{
    return GUINT_TO_POINTER(g_str_hash(name));
}

void
kiln_function_enter_name(KilnFunction *function, KilnValue *value)
{
    g_hash_table_insert(function->names, (char *)value->name, value);
    if (function->is_region)
        g_hash_table_add(function->module->region_names, name_hash(value->name));
}

static bool
is_around(const KilnFunction *function, const KilnFunction *region)
{
    for (const KilnFunction *outer = region; (outer = function_around(outer));) {
        if (outer == function)
            return true;
    }
    return false;
}

static bool
subgraphs_have_name(const KilnFunction *function, const char *name)
{
    uint32_t left = function->n_region_nodes;
    for (const KilnNode *node = function->first; left > 0; node = node->next) {
        if (!kiln_op_has(node->op, KILN_TRAIT_REGION))
            continue;
        left--;
        kiln_foreach_region (region, node) {
            if (g_hash_table_contains(region->names, name) || subgraphs_have_name(region, name))
                return true;
        }
    }
    return false;
}

/* Subgraphs see the values around them, so a value must not be called like one inside them. Only a
 * name that some subgraph had is looked for: in the nodes of the function or in all functions, of
 * which there may be thousands, whichever are fewer. */
static bool
name_is_free_inside(const KilnFunction *function, const char *name)
{
    const KilnModule *module = function->module;
    if (!function->n_region_nodes || !g_hash_table_contains(module->region_names, name_hash(name)))
        return true;
    if (function->n_nodes < module->all_functions->len)
        return !subgraphs_have_name(function, name);
    for (guint i = 0; i < module->all_functions->len; i++) {
        const KilnFunction *region = g_ptr_array_index(module->all_functions, i);
        if (region->owner && g_hash_table_contains(region->names, name) &&
            is_around(function, region))
            return false;
    }
    return true;
}

/* True where @name is free in the function, in those around it and in those inside it. */
static bool
name_is_free(const KilnFunction *function, const char *name)
{
    return !g_hash_table_contains(function->names, name) && name_is_free_around(function, name) &&
           name_is_free_inside(function, name);
}

const char *
kiln_function_unique_name(KilnFunction *function, const char *base)
{
    KilnArena *arena = function->module->arena;
    if (name_is_free(function, base))
        return kiln_arena_strdup(arena, base);
    /* A counter per base keeps this linear. */
    gsize next = GPOINTER_TO_SIZE(g_hash_table_lookup(function->name_counters, base));
    g_autofree char *name = NULL;
    do {
        g_free(name);
        name = g_strdup_printf("%s_%zu", base, ++next);
    } while (!name_is_free(function, name));
    g_hash_table_insert(function->name_counters, kiln_arena_strdup(arena, base),
                        GSIZE_TO_POINTER(next));
    return kiln_arena_strdup(arena, name);
}

static void
settle_name(KilnFunction *function, KilnValue *value)
{
    if (name_is_free_around(function, value->name))
        return;
    kiln_value_rename(function, value, kiln_function_unique_name(function, value->name));
    value->made_up = true;
}

void
kiln_function_settle_names(KilnFunction *region)
{
    for (guint i = 0; i < region->arguments->len; i++)
        settle_name(region, &kiln_function_argument(region, i)->value);
    kiln_foreach_node (node, region) {
        for (uint32_t i = 0; i < node->n_results; i++)
            settle_name(region, &node->results[i]);
        kiln_foreach_region (inner, node)
            kiln_function_settle_names(inner);
    }
}

KilnValue *
kiln_function_find_value(const KilnFunction *function, const char *name)
{
    return g_hash_table_lookup(function->names, name);
}

void
kiln_value_rename(KilnFunction *function, KilnValue *value, const char *name)
{
    KilnValue *other = g_hash_table_lookup(function->names, name);
    if (other)
        kiln_changes_add_value(other); /* which is not to be found any more */
    g_hash_table_remove(function->names, value->name);
    value->name = kiln_arena_strdup(function->module->arena, name);
    value->made_up = false;
    kiln_function_enter_name(function, value);
    kiln_changes_add_value(value);
    kiln_function_stamp(function);
}

/* --- constants --- */

KilnConstant *
kiln_module_add_constant(KilnModule *module, const char *name, KilnTensor *tensor,
                         const KilnType *type)
{
    g_autofree char *unique = g_strdup(name);
    while (g_hash_table_contains(module->constant_by_name, unique)) {
        g_free(unique);
        unique = g_strdup_printf("%s_%u", name, ++module->name_counter);
    }
    KilnConstant *constant = kiln_arena_new0(module->arena, KilnConstant, 1);
    constant->name = kiln_arena_strdup(module->arena, unique);
    constant->type = kiln_type_copy(module->arena, type ? type : &tensor->type);
    constant->tensor = tensor;
    constant->module = module;
    constant->base = -1;
    constant->id = module->constants->len;
    g_ptr_array_add(module->constants, constant);
    g_hash_table_insert(module->constant_by_name, (char *)constant->name, constant);
    module->doubtful_constants = true;
    module->stamp++;
    return constant;
}

KilnConstant *
kiln_module_find_constant(const KilnModule *module, const char *name)
{
    return g_hash_table_lookup(module->constant_by_name, name);
}

void
kiln_module_remove_constants(KilnModule *module, const bool *remove)
{
    g_autoptr(GPtrArray) kept = g_ptr_array_new_with_free_func(constant_free);
    for (guint i = 0; i < module->constants->len; i++) {
        KilnConstant *constant = g_ptr_array_index(module->constants, i);
        if (remove[constant->id]) {
            g_hash_table_remove(module->constant_by_name, constant->name);
            constant_free(constant);
            continue;
        }
        constant->id = kept->len;
        g_ptr_array_add(kept, constant);
    }
    g_ptr_array_set_free_func(module->constants, NULL);
    g_ptr_array_unref(module->constants);
    module->constants = g_steal_pointer(&kept);
    module->stamp++;
    module->removed_constants++;
}

/* --- arguments --- */

KilnArgument *
kiln_function_add_argument(KilnFunction *function, const char *name, const KilnType *type,
                           GError **error)
{
    KilnArena *arena = function->module->arena;
    if (!name_is_free(function, name))
        return kiln_throw_null(error, KILN_ERROR_INVALID, "@%s: two values are called %%%s",
                               function->name, name);
    KilnArgument *argument = kiln_arena_new0(arena, KilnArgument, 1);
    argument->value.name = kiln_arena_strdup(arena, name);
    argument->value.type = kiln_type_copy(arena, type);
    argument->value.index = function->arguments->len;
    argument->function = function;
    g_ptr_array_add(function->arguments, argument);
    kiln_function_enter_name(function, &argument->value);
    kiln_function_touch(function);
    return argument;
}

void
kiln_function_keep_arguments(KilnFunction *function, KilnArgument *const *kept, uint32_t n)
{
    for (guint i = 0; i < function->arguments->len; i++)
        g_hash_table_remove(function->names, kiln_function_argument(function, i)->value.name);
    g_ptr_array_set_size(function->arguments, 0);
    for (uint32_t i = 0; i < n; i++) {
        kept[i]->value.index = i;
        g_ptr_array_add(function->arguments, kept[i]);
        kiln_function_enter_name(function, &kept[i]->value);
    }
    kiln_changes_forget(function);
    kiln_function_touch(function);
}
