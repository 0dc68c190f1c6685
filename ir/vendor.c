/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel cache: compiled regions of this process by their content. */
#include "ir/vendor.h"

#include "graph/outline.h"
#include "graph/text/text.h"

static KilnCache cache = KILN_CACHE_INIT; /* of KilnCompiled */

static const KilnCompiled *
resolved(const KilnInstr *instr)
{
    return instr->declaration ? (const KilnCompiled *)instr->declaration->compiled : NULL;
}

const KilnKernel *
kiln_call_kernel(const KilnInstr *instr)
{
    const KilnCompiled *compiled = resolved(instr);
    return compiled ? &compiled->kernel : NULL;
}

const KilnCompiled *
kiln_call_compiled(const KilnInstr *instr)
{
    const KilnCompiled *compiled = resolved(instr);
    if (!compiled || !compiled->deferred)
        return compiled;
    return atomic_load_explicit(&compiled->made, memory_order_acquire);
}

KilnModule *
kiln_region_module(const KilnFunction *body, GError **error)
{
    g_autoptr(KilnModule) module = kiln_module_new();
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
    KilnType plain = argument->value.type;
    plain.layout = NULL;
    KilnValue *constant =
        kiln_build_constant(region, region->first, "c", kiln_tensor_new_extern(&plain));
    if (!argument->value.type.layout) {
        kiln_value_replace(&argument->value, constant);
        return;
    }
    kiln_foreach_use (use, &argument->value) {
        if (use->user->op == KILN_OP_unpack)
            kiln_value_replace(&use->user->results[0], constant);
    }
}

static gboolean
refuse(const KilnVendor *vendor, const KilnNode *node, GError **error)
{
    return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s (%s): %s does not take it",
                      kiln_node_label(node), kiln_op_info(node->op)->name, vendor->name);
}

/* A region is what the vendor takes, whoever made it: a text may say anything. Calls are those of
 * its custom_ops by now. Roles ask for constants, which a body has as arguments: they become
 * constants of @module. */
static gboolean
check_roles(const KilnVendor *vendor, KilnModule *module, GError **error)
{
    KilnFunction *region = kiln_module_entry(module);
    for (guint i = 0; i < region->arguments->len; i++) {
        KilnArgument *argument = kiln_function_argument(region, i);
        if (argument->constness == KILN_CONSTNESS_COMPILE)
            make_constant(region, argument);
    }
    kiln_foreach_node (node, region) {
        bool other = node->op == KILN_OP_const || node->op == KILN_OP_return || is_edge(node) ||
                     node->op == KILN_OP_vendor_executable;
        if (!other && vendor->role(node) == KILN_VENDOR_NONE)
            return refuse(vendor, node, error);
    }
    return TRUE;
}

/* Every custom_op of @region becomes a call of its body, declared: there are no other calls. */
static gboolean
call_customs(const KilnVendor *vendor, KilnFunction *region, GError **error)
{
    kiln_foreach_node_safe (node, region) {
        if (node->op == KILN_OP_vendor_executable ||
            (node->op == KILN_OP_custom_op && !vendor->takes_custom))
            return refuse(vendor, node, error);
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

typedef struct {
    const KilnTarget *target;
    KilnModule *module; /* has the region, and is of no use behind compile() */
    int threads;
} Task;

static KilnCompiled *
compile(const Task *task, GError **error)
{
    KilnFunction *body = kiln_module_entry(task->module);
    const KilnVendor *vendor = task->target->vendor;
    if (!call_customs(vendor, body, error))
        return NULL;
    guint n = body->arguments->len;
    g_autofree bool *constant = g_new0(bool, n + 1);
    for (guint i = 0; i < n; i++)
        constant[i] = kiln_function_argument(body, i)->constness == KILN_CONSTNESS_COMPILE;
    g_autoptr(KilnIRFunction) region = kiln_lower(body, error);
    if (!region || !check_roles(vendor, task->module, error))
        return NULL;
    KilnCompiled *compiled = vendor->compile(region, task->target, constant, task->threads, error);
    if (compiled) {
        compiled->vendor = vendor;
        compiled->threads = task->threads;
    }
    return compiled;
}

static KilnCached *
make(void *data, GError **error)
{
    const Task *task = data;
    KilnCompiled *compiled = compile(task, error);
    return compiled ? &compiled->cached : NULL;
}

KilnCompiled *
kiln_kernel_cache_get(const KilnTarget *target, const KilnFunction *body, int threads,
                      GError **error)
{
    g_autoptr(KilnModule) module = kiln_region_module(body, error);
    g_autofree char *region = module ? module_key(module, error) : NULL;
    if (!region)
        return NULL;
    g_autofree char *key = g_strdup_printf("%s %s, %s %s, %d threads\n%s", target->vendor->name,
                                           target->vendor->version, target->name,
                                           kiln_isa_name(target->isa), threads, region);
    Task task = { target, module, threads };
    return (KilnCompiled *)kiln_cache_get(&cache, key, make, &task, error);
}

uint64_t
kiln_kernel_cache_compiled(void)
{
    return kiln_cache_made(&cache);
}
