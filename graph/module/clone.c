/* SPDX-License-Identifier: Apache-2.0 */
/* Deep copies of modules. The copy is made node by node without inference, so that it is the same
 * to the last name and in the order of every list of readers: a pass does to the copy what it would
 * do to the original. Removed nodes and their subgraphs are left behind; ids become dense. */
#include "graph/base/shared.h"
#include "graph/module.h"
#include "graph/module/folding.h"

typedef struct {
    const KilnFunction *from;
    KilnFunction *to;
    KilnNode **nodes; /* of the copy, by id in the original */
} Copy;

typedef struct {
    KilnModule *module;   /* the copy */
    GHashTable *copies;   /* original function → Copy; looked up only */
    Copy *latest;         /* that was looked up */
    GPtrArray *originals; /* KilnFunction* in the order of copying */
} Clone;

static void
copy_free(gpointer data)
{
    Copy *copy = data;
    g_free(copy->nodes);
    g_free(copy);
}

static void
copy_value(Clone *clone, KilnValue *to, const KilnValue *from, KilnFunction *function)
{
    KilnArena *arena = clone->module->arena;
    to->name = kiln_arena_strdup(arena, from->name);
    to->type = kiln_type_copy(arena, &from->type);
    if (from->known) {
        size_t size = sizeof *from->known + (size_t)from->known->n * sizeof from->known->v[0];
        to->known = kiln_arena_copy(arena, from->known, size);
    }
    if (from->extents) {
        const KilnExtents *extents = from->extents;
        KilnExtents *copy =
            kiln_arena_copy(arena, extents, sizeof *extents + extents->n * sizeof extents->v[0]);
        if (extents->under)
            copy->under =
                kiln_arena_copy(arena, extents->under, extents->n * sizeof *extents->under);
        to->extents = copy;
    }
    to->index = from->index;
    to->made_up = from->made_up;
    kiln_function_enter_name(function, to);
}

/* --- functions --- */

static void copy_contents(Clone *clone, KilnFunction *to, const KilnFunction *from);

/* Constants and subgraphs are shared by kiln_attrs_copy: they become those of the copy. */
static void
copy_attrs(Clone *clone, KilnNode *to, const KilnNode *from)
{
    const KilnOpInfo *info = kiln_op_info(from->op);
    to->attrs = kiln_op_attrs_new(from->op, clone->module->arena);
    kiln_attrs_copy(info->attrs, info->n_attrs, to->attrs, from->attrs, clone->module->arena);
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        void *field = (char *)to->attrs + info->attrs[i].offset;
        if (info->attrs[i].kind == KILN_ATTR_CONSTANT) {
            KilnConstant **constant = field;
            if (*constant)
                *constant = g_ptr_array_index(clone->module->constants, (*constant)->id);
        } else if (info->attrs[i].kind == KILN_ATTR_FUNCTION) {
            KilnFunction **region = field;
            const KilnFunction *original = *region;
            if (!original)
                continue;
            *region = kiln_function_new_region(clone->module, original->name);
            (*region)->owner = to;
            copy_contents(clone, *region, original);
        }
    }
}

static void
copy_node(Clone *clone, KilnFunction *function, const KilnNode *from, KilnNode **nodes)
{
    KilnArena *arena = clone->module->arena;
    KilnModule *module = clone->module;
    KilnNode *node = kiln_arena_new0(module->nodes, KilnNode, 1);
    node->op = from->op;
    node->id = function->next_id++;
    node->mark = from->mark;
    node->name = kiln_arena_strdup(arena, from->name);
    node->function = function;
    node->n_operands = from->n_operands;
    node->n_results = from->n_results;
    node->operands = kiln_arena_new0(module->uses, KilnUse, from->n_operands);
    node->results = kiln_arena_new0(module->values, KilnValue, from->n_results);
    for (uint32_t i = 0; i < from->n_operands; i++) {
        node->operands[i].user = node;
        node->operands[i].index = i;
    }
    for (uint32_t i = 0; i < from->n_results; i++) {
        node->results[i].def = node;
        copy_value(clone, &node->results[i], &from->results[i], function);
    }
    node->previous = function->last;
    if (function->last)
        function->last->next = node;
    else
        function->first = node;
    function->last = node;
    function->n_nodes++;
    function->n_region_nodes += kiln_op_has(node->op, KILN_TRAIT_REGION);
    module->n_nodes++;
    module->made_nodes++;
    nodes[from->id] = node;
    copy_attrs(clone, node, from);
}

static void
copy_counters(KilnFunction *to, const KilnFunction *from)
{
    /* From one table into another: the order of the walk cannot be seen. */
    GHashTableIter iter;
    gpointer base, last;
    g_hash_table_iter_init(&iter, from->name_counters);
    while (g_hash_table_iter_next(&iter, &base, &last))
        g_hash_table_insert(to->name_counters, kiln_arena_strdup(to->module->arena, base), last);
}

static void
copy_contents(Clone *clone, KilnFunction *to, const KilnFunction *from)
{
    KilnArena *arena = clone->module->arena;
    g_ptr_array_add(clone->originals, (gpointer)from);
    for (guint i = 0; i < from->arguments->len; i++) {
        const KilnArgument *argument = kiln_function_argument(from, i);
        KilnArgument *same = kiln_arena_new0(arena, KilnArgument, 1);
        same->constness = argument->constness;
        same->variable = argument->variable;
        same->range = kiln_arena_strdup(arena, argument->range);
        same->function = to;
        copy_value(clone, &same->value, &argument->value, to);
        g_ptr_array_add(to->arguments, same);
    }
    Copy *copy = g_new0(Copy, 1);
    *copy = (Copy){ from, to, g_new0(KilnNode *, (gsize)from->next_id + 1) };
    g_hash_table_insert(clone->copies, (gpointer)from, copy);
    kiln_foreach_node (node, from)
        copy_node(clone, to, node, copy->nodes);
    for (guint i = 0; i < from->result_names->len; i++)
        g_ptr_array_add(to->result_names,
                        kiln_arena_strdup(arena, g_ptr_array_index(from->result_names, i)));
    copy_counters(to, from);
    to->stamp = from->stamp;
}

/* --- uses --- */

/* The copy of @node; NULL where it is none of the module's. */
static KilnNode *
copy_of(Clone *clone, const KilnNode *node)
{
    if (!clone->latest || clone->latest->from != node->function)
        clone->latest = g_hash_table_lookup(clone->copies, node->function);
    return clone->latest ? clone->latest->nodes[node->id] : NULL;
}

/* Readers are chained as they are in the original; all of them are nodes that were copied. */
static void
copy_uses(Clone *clone, KilnValue *to, const KilnValue *from)
{
    kiln_foreach_use (original, from) {
        KilnNode *user = copy_of(clone, original->user);
        if (!user)
            continue;
        KilnUse *use = &user->operands[original->index];
        use->value = to;
        use->previous = to->last_use;
        if (to->last_use)
            to->last_use->next = use;
        else
            to->first_use = use;
        to->last_use = use;
        to->n_uses++;
    }
}

static void
copy_all_uses(Clone *clone)
{
    for (guint i = 0; i < clone->originals->len; i++) {
        const KilnFunction *from = g_ptr_array_index(clone->originals, i);
        const Copy *copy = g_hash_table_lookup(clone->copies, from);
        for (guint k = 0; k < from->arguments->len; k++)
            copy_uses(clone, &kiln_function_argument(copy->to, k)->value,
                      &kiln_function_argument(from, k)->value);
        kiln_foreach_node (node, from) {
            for (uint32_t k = 0; k < node->n_results; k++)
                copy_uses(clone, &copy->nodes[node->id]->results[k], &node->results[k]);
        }
    }
}

/* --- modules --- */

static KilnType *
copy_types(KilnArena *arena, const KilnType *types, uint32_t n)
{
    KilnType *copy = kiln_arena_new0(arena, KilnType, n);
    for (uint32_t i = 0; i < n; i++)
        copy[i] = kiln_type_copy(arena, &types[i]);
    return copy;
}

static void
copy_declarations(Clone *clone, const KilnModule *from)
{
    KilnModule *to = clone->module;
    for (guint i = 0; i < from->declarations->len; i++) {
        const KilnDeclaration *declaration = g_ptr_array_index(from->declarations, i);
        KilnDeclaration *copy = kiln_arena_new0(to->arena, KilnDeclaration, 1);
        copy->name = kiln_arena_strdup(to->arena, declaration->name);
        copy->n_operands = declaration->n_operands;
        copy->operands = copy_types(to->arena, declaration->operands, declaration->n_operands);
        copy->n_results = declaration->n_results;
        copy->results = copy_types(to->arena, declaration->results, declaration->n_results);
        copy->compiled = kiln_shared_ref(declaration->compiled);
        if (declaration->body) {
            copy->body = kiln_function_new_region(to, declaration->body->name);
            copy_contents(clone, copy->body, declaration->body);
        }
        g_ptr_array_add(to->declarations, copy);
    }
}

KilnModule *
kiln_module_clone(const KilnModule *module)
{
    KilnModule *copy = kiln_module_new_beside(module);
    copy->path = g_strdup(module->path);
    kiln_metadata_copy(&copy->metadata, &module->metadata, copy->arena);
    copy->opset = module->opset;
    copy->mode = module->mode;
    copy->seed = module->seed;
    for (guint i = 0; i < module->constants->len; i++) {
        const KilnConstant *constant = g_ptr_array_index(module->constants, i);
        KilnConstant *same = kiln_module_add_constant(
            copy, constant->name, kiln_tensor_copy(constant->tensor), &constant->type);
        same->charged = constant->charged;
        same->base = constant->base;
    }
    copy->name_counter = module->name_counter;
    Clone clone = { .module = copy,
                    .copies = g_hash_table_new_full(NULL, NULL, NULL, copy_free),
                    .originals = g_ptr_array_new() };
    copy_declarations(&clone, module);
    for (guint i = 0; i < module->functions->len; i++) {
        const KilnFunction *function = g_ptr_array_index(module->functions, i);
        copy_contents(&clone, kiln_function_new(copy, function->name), function);
    }
    copy_all_uses(&clone);
    if (module->folding)
        copy->folding = kiln_folding_clone(module->folding, copy->arena);
    g_hash_table_unref(clone.copies);
    g_ptr_array_unref(clone.originals);
    return copy;
}
