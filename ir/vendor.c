/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel cache: compiled regions of this process by their content. */
#include "ir/vendor.h"

#include "graph/dim.h"
#include "graph/function.h"
#include "graph/module/hints.h"
#include "graph/module/move_dims.h"
#include "graph/module/outline.h"
#include "graph/node.h"
#include "graph/op/layout.h"
#include "graph/op/offload.h"
#include "graph/text/text.h"
#include "ir/cache.h"

static KilnCache cache = KILN_CACHE_INIT; /* of KilnCompiled */

KilnModule *
kiln_region_module(const KilnFunction *body, GError **error)
{
    g_autoptr(KilnModule) module = kiln_module_new_beside(body->module);
    KilnFunction *copy = kiln_body_copy(module, body, true, error);
    if (!copy)
        return NULL;
    g_ptr_array_add(module->functions, copy);
    return g_steal_pointer(&module);
}

static char *
module_key(const KilnModule *module, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    if (!kiln_module_print(module, NULL, text, error))
        return NULL;
    return g_strdup(text->str);
}

char *
kiln_region_key(const KilnFunction *body, GError **error)
{
    g_autoptr(KilnModule) module = kiln_region_module(body, error);
    return module ? module_key(module, error) : NULL;
}

/* An argument that is unpacked, or a result that is packed. */
static bool
is_edge(const KilnNode *node)
{
    if (node->op == KILN_OP_unpack)
        return !node->results[0].type.layout && !node->operands[0].value->def;
    if (node->op != KILN_OP_pack || node->operands[0].value->type.layout)
        return false;
    kiln_foreach_use (use, &node->results[0]) {
        if (use->user->op != KILN_OP_return)
            return false;
    }
    return true;
}

/* @argument, or what is unpacked from it, as a constant. */
static void
make_constant(KilnFunction *region, KilnArgument *argument)
{
    KilnType type = argument->value.type;
    type.layout = NULL;
    KilnType plain = type;
    plain.quant = NULL;
    KilnValue *constant =
        kiln_build_constant_as(region, region->first, "c", kiln_tensor_new_extern(&plain), &type);
    if (!argument->value.type.layout) {
        kiln_value_replace(&argument->value, constant);
        return;
    }
    kiln_foreach_use (use, &argument->value) {
        if (use->user->op == KILN_OP_unpack)
            kiln_value_replace(&use->user->results[0], constant);
    }
}

typedef struct {
    const KilnTarget *target;
    KilnModule *module; /* has the region, and is of no use behind compile() */
    int threads;
    char *refused; /* the label of what the vendor refuses; NULL: nothing in particular */
} Task;

static gboolean
refuse(Task *task, const KilnNode *node, GError **error)
{
    task->refused = g_strdup(kiln_node_label(node));
    return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s does not take it",
                      task->target->vendor->name);
}

/* A region is what the vendor takes, whoever made it: a text may say anything. Calls are those of
 * its custom_ops by now. Roles ask for constants, which a body has as arguments: they become
 * constants of the module. */
static gboolean
check_roles(Task *task, GError **error)
{
    KilnFunction *region = kiln_module_entry(task->module);
    for (guint i = 0; i < region->arguments->len; i++) {
        KilnArgument *argument = kiln_function_argument(region, i);
        if (argument->constness == KILN_CONSTNESS_COMPILE)
            make_constant(region, argument);
    }
    kiln_foreach_node (node, region) {
        bool other = node->op == KILN_OP_const || node->op == KILN_OP_return || is_edge(node) ||
                     node->op == KILN_OP_vendor_executable;
        if (!other && task->target->vendor->role(node) == KILN_VENDOR_NONE)
            return refuse(task, node, error);
    }
    return TRUE;
}

/* Every custom_op of @region becomes a call of its body, declared: there are no other calls. */
static gboolean
call_customs(Task *task, GError **error)
{
    KilnFunction *region = kiln_module_entry(task->module);
    kiln_foreach_node_safe (node, region) {
        if (node->op == KILN_OP_vendor_executable ||
            (node->op == KILN_OP_custom_op && !task->target->vendor->takes_custom))
            return refuse(task, node, error);
        if (node->op != KILN_OP_custom_op)
            continue;
        const KilnAttrs_custom_op *attrs = kiln_attrs(node, custom_op);
        KilnFunction *body = kiln_body_copy(region->module, attrs->body, true, error);
        if (!body ||
            !kiln_node_call(node, kiln_module_declare(region->module, attrs->callee, body), error))
            return FALSE;
    }
    return TRUE;
}

static KilnCompiled *
compile(Task *task, GError **error)
{
    KilnFunction *body = kiln_module_entry(task->module);
    const KilnVendor *vendor = task->target->vendor;
    if (!call_customs(task, error))
        return NULL;
    guint n = body->arguments->len;
    g_autofree bool *constant = g_new0(bool, n + 1);
    for (guint i = 0; i < n; i++)
        constant[i] = kiln_function_argument(body, i)->constness == KILN_CONSTNESS_COMPILE;
    g_autoptr(KilnIRFunction) region = kiln_lower(body, error);
    if (!region || !check_roles(task, error))
        return NULL;
    const KilnInstr *refused = NULL;
    KilnCompiled *compiled =
        vendor->compile(region, task->target, constant, task->threads, &refused, error);
    if (compiled) {
        compiled->vendor = vendor;
        compiled->threads = task->threads;
    } else if (refused) {
        task->refused = g_strdup(kiln_instr_label(refused));
    }
    return compiled;
}

static KilnCached *
make(void *data, GError **error)
{
    Task *task = data;
    KilnCompiled *compiled = compile(task, error);
    return compiled ? &compiled->cached : NULL;
}

/* The node of @body that is called @label in the module of the region, where values are numbered.
 */
static KilnNode *
find_refused(const KilnFunction *body, const char *label)
{
    g_autoptr(KilnModule) module = kiln_region_module(body, NULL);
    const KilnNode *copy = module ? kiln_module_entry(module)->first : NULL;
    KilnNode *node = body->first;
    for (; copy && node; copy = copy->next, node = node->next) {
        if (g_str_equal(kiln_node_label(copy), label))
            return node;
    }
    return NULL;
}

/* --- open regions --- */

typedef struct {
    KilnDimTable *table; /* of the pinned module */
    KilnDimLookup lookup;
    void *data;
} Numbers;

static const KilnDim *
number_of(void *data, const KilnDim *name)
{
    const Numbers *numbers = data;
    int64_t number = MAX(kiln_dim_hint(name), (int64_t)1);
    if (numbers->lookup && !numbers->lookup(numbers->data, kiln_dim_as_name(name), &number))
        return NULL;
    return kiln_dim_number(numbers->table, number);
}

static gboolean
check_value(const KilnValue *value, gboolean filled, GError **error)
{
    const int64_t elements = kiln_type_elements(&value->type);
    if (elements > 0 || (elements == 0 && !filled))
        return TRUE;
    g_autofree char *type = kiln_type_to_string(&value->type);
    return kiln_throw(error, elements == 0 ? KILN_ERROR_UNSUPPORTED : KILN_ERROR_SHAPE,
                      "%s: expected a shape with elements, found %s", value->name, type);
}

/* Checks that all types of @body have numbers, and where they are to be @filled, no zeros. */
static gboolean
check_values(const KilnFunction *body, gboolean filled, GError **error)
{
    for (guint i = 0; i < body->arguments->len; i++) {
        if (!check_value(&kiln_function_argument(body, i)->value, filled, error))
            return FALSE;
    }
    kiln_foreach_node (node, body) {
        for (uint32_t r = 0; r < node->n_results; r++) {
            if (!check_value(&node->results[r], filled, error))
                return FALSE;
        }
    }
    return TRUE;
}

/* Writes numbers for all expressions of @module, which is a region. */
static gboolean
pin(KilnModule *module, KilnDimLookup lookup, void *data, GError **error)
{
    const KilnFunction *body = kiln_module_entry(module);
    if (!kiln_function_is_open(body))
        return TRUE;
    g_autoptr(KilnDimTable) table = kiln_dim_table_new();
    Numbers numbers = { table, lookup, data };
    kiln_module_move_dims(module, table, number_of, &numbers);
    return check_values(body, FALSE, error);
}

KilnModule *
kiln_region_module_at(const KilnFunction *body, KilnDimLookup lookup, void *data, GError **error)
{
    g_autoptr(KilnModule) module = kiln_region_module(body, error);
    return module && pin(module, lookup, data, error) ? g_steal_pointer(&module) : NULL;
}

KilnCompiled *
kiln_kernel_cache_get(const KilnTarget *target, const KilnFunction *body, int threads,
                      KilnNode **out_refused, GError **error)
{
    return kiln_kernel_cache_get_at(target, body, NULL, NULL, threads, out_refused, error);
}

KilnCompiled *
kiln_kernel_cache_get_at(const KilnTarget *target, const KilnFunction *body, KilnDimLookup lookup,
                         void *data, int threads, KilnNode **out_refused, GError **error)
{
    if (out_refused)
        *out_refused = NULL;
    g_autoptr(KilnModule) module = kiln_region_module_at(body, lookup, data, error);
    /* The vendor takes no empty values. */
    if (!module ||
        (kiln_function_is_open(body) && !check_values(kiln_module_entry(module), TRUE, error)))
        return NULL;
    g_autofree char *region = module_key(module, error);
    if (!region)
        return NULL;
    g_autofree char *key = g_strdup_printf("%s %s, %s %s, %d threads\n%s", target->vendor->name,
                                           target->vendor->version, target->name,
                                           kiln_isa_name(target->isa), threads, region);
    Task task = { target, module, threads, NULL };
    KilnCached *compiled = kiln_cache_get(&cache, key, make, &task, error);
    KilnNode *refused = task.refused ? find_refused(body, task.refused) : NULL;
    if (refused)
        kiln_prefix_error(error, "%s (%s): ", kiln_node_label(refused),
                          kiln_op_info(refused->op)->name);
    if (out_refused)
        *out_refused = refused;
    g_free(task.refused);
    return (KilnCompiled *)compiled;
}

uint64_t
kiln_kernel_cache_compiled(void)
{
    return kiln_cache_made(&cache);
}
