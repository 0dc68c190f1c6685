/* SPDX-License-Identifier: Apache-2.0 */
/* compile-offload: the vendor compiles each region; what it cannot compile goes back inline.
 *
 *      %y = vendor.graph @r0(%x, %w)          %y = vendor.executable @conv_5f0c12ab(%x, %w)
 *             body(…) {…}
 *                                      =>
 *                                             declare @conv_5f0c12ab(types) -> types body(…) {…}
 *
 *   compile   the vendor took it. The name is that of its first operator and a hash of its content:
 *             operators, types, attributes, literals. Equal regions share one declaration and one
 *             compiled object, which lies in the kernel cache as long as a declaration refers to it
 *   take-back a constant was to be packed for the region, and the pack was not folded: the region
 *             reads it plain, and packs it when it is bound
 *   inline    the vendor did not, or the region reads values around it: its nodes stand where it
 *             stood, and run on own kernels
 *
 * requires nothing, preserves nothing; class E: what the vendor rounds otherwise is judged where
 * models are compared. The declaration keeps the body: a printed program is compiled again where
 * it is read, and runs on own kernels where there is no vendor. Without a vendor nothing happens.
 */
#include "graph/outline.h"
#include "ir/vendor.h"
#include "passes/pass.h"

static uint32_t
hash_text(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 16777619u;
    return hash;
}

/* The declaration of @compiled, made where there is none. */
static KilnDeclaration *
declare(KilnModule *module, const KilnFunction *body, KilnCompiled *compiled, GError **error)
{
    for (guint i = 0; i < module->declarations->len; i++) {
        KilnDeclaration *declaration = g_ptr_array_index(module->declarations, i);
        if (declaration->compiled == &compiled->shared)
            return declaration;
    }
    const KilnNode *first = body->first;
    while (first->op == KILN_OP_const || first->op == KILN_OP_unpack)
        first = first->next;
    g_autofree char *key = kiln_region_key(body, error);
    KilnFunction *copy = key ? kiln_body_copy(module, body, false, error) : NULL;
    if (!copy)
        return NULL;
    uint32_t hash = hash_text(key);
    g_autofree char *name = NULL;
    do {
        g_free(name);
        name = g_strdup_printf("%s_%08x", kiln_op_info(first->op)->name, hash++);
    } while (kiln_module_find_declaration(module, name));
    KilnDeclaration *declaration = kiln_module_declare(module, name, copy);
    declaration->compiled = kiln_shared_ref(&compiled->shared);
    return declaration;
}

/* The pack of a constant that a run would repeat. */
static KilnNode *
unfolded_pack(const KilnNode *node, uint32_t i)
{
    const KilnFunction *body = kiln_attrs(node, vendor_graph)->body;
    const KilnArgument *argument = kiln_function_argument(body, i);
    KilnNode *pack = kiln_value_def_of(node->operands[i].value, KILN_OP_pack);
    bool constant = argument->constness == KILN_CONSTNESS_COMPILE && pack &&
                    kiln_value_constant(pack->operands[0].value);
    kiln_foreach_use (use, &argument->value)
        constant &= use->user->op == KILN_OP_unpack;
    return constant ? pack : NULL;
}

static void
take_back(KilnNode *node, KilnPassContext *context)
{
    KilnFunction *body = kiln_attrs(node, vendor_graph)->body;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnNode *pack = unfolded_pack(node, i);
        KilnArgument *argument = kiln_function_argument(body, i);
        if (!pack)
            continue;
        kiln_pass_note(context, "take-back", "@%s: %s", kiln_attrs(node, vendor_graph)->callee,
                       pack->operands[0].value->name);
        argument->value.type.layout = NULL;
        kiln_foreach_use_safe (use, &argument->value) {
            KilnNode *unpack = use->user;
            kiln_value_replace(&unpack->results[0], &argument->value);
            kiln_node_remove(unpack);
        }
        kiln_node_set_operand(node, i, pack->operands[0].value);
        kiln_node_remove_if_dead(pack);
    }
}

static gboolean
compile(KilnNode *node, const KilnTarget *target, KilnPassContext *context, GError **error)
{
    KilnFunction *body = kiln_attrs(node, vendor_graph)->body;
    const char *callee = kiln_attrs(node, vendor_graph)->callee;
    g_autoptr(GError) why = NULL;
    KilnCompiled *compiled = NULL;
    if (kiln_region_is_closed(node)) {
        take_back(node, context);
        compiled = kiln_kernel_cache_get(target, body, kiln_pass_threads(context), &why);
    }
    if (!compiled) {
        kiln_pass_note(context, "inline", "@%s: %s", callee,
                       why ? why->message : "it reads values around it");
        return kiln_node_inline(node, body, error);
    }
    const KilnDeclaration *declaration = declare(node->function->module, body, compiled, error);
    kiln_shared_unref(&compiled->shared); /* the declaration has one of its own */
    if (!declaration)
        return FALSE;
    kiln_pass_note(context, "compile", "@%s: @%s", callee, declaration->name);
    return kiln_node_call(node, declaration, error);
}

gboolean
kiln_pass_compile_offload(KilnFunction *function, KilnPassContext *context, bool *changed,
                          GError **error)
{
    const KilnTarget *target = kiln_pass_target(context);
    *changed = false;
    if (!target || !target->vendor)
        return TRUE;
    kiln_foreach_node_safe (node, function) {
        if (node->op != KILN_OP_vendor_graph)
            continue;
        *changed = true;
        if (!compile(node, target, context, error))
            return FALSE;
    }
    return TRUE;
}
