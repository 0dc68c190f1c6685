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
 *   custom    the vendor refused one operator of several: that, with all that are like it, is
 *             computed by own kernels among the vendor's, each as a custom_op, and the region is
 *             compiled again
 *   split     own kernels cannot be among them: that operator stands inline, and the rest is two
 *             regions, compiled in their turn
 *
 *      %y = vendor.graph @r0(%x, …) {        %a = vendor.graph @r0.1(%x, …) {…}
 *        … %a …                        =>    %b = lrn(%a)
 *        %b = lrn(%a)                        %y = vendor.graph @r0.2(%b, …) {…}
 *        … }
 *
 *   inline    no more is left of the region than own kernels take min-us for, or it reads values
 *             around it: its nodes stand where it stood, and run on own kernels
 *
 * What reads the refused operator, or something that does, is behind it, all else in front: both
 * parts are convex. What goes from one to the other stays in the vendor's layout.
 *
 * requires nothing, preserves nothing; class E: what the vendor rounds otherwise is judged where
 * models are compared. The declaration keeps the body: a printed program is compiled again where
 * it is read, and runs on own kernels where there is no vendor. Without a vendor nothing happens.
 */
#include "graph/base/shared.h"
#include "graph/module/hints.h"
#include "graph/module/outline.h"
#include "graph/op/layout.h"
#include "graph/op/offload.h"
#include "ir/compiled.h"
#include "ir/vendor.h"
#include "passes/offload/offload_cost.h"
#include "passes/offload/offload_outline.h"
#include "passes/offload/offload_split.h"
#include "passes/offload/region_merge.h"
#include "passes/pass.h"

#define OPTIONS(OPTION, CHOICE) OPTION(FLOAT, min_us, 5.0)
PASS_OPTIONS(compile_offload, OPTIONS);

static const char rule[] = "split";

typedef struct {
    const KilnTarget *target;
    KilnPassContext *context;
    KilnOffloadCosts costs;
    uint32_t number; /* of the next custom_op; 0: not known yet */
    KilnSplitter splitter;
    GError **error;
} Compiler;

static uint32_t
hash_text(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 16777619u;
    return hash;
}

/* Regions with other expressions may have the numbers of this one at their hints. */
static bool
has_key(const KilnDeclaration *declaration, const char *key)
{
    g_autofree char *other = kiln_region_key(declaration->body, NULL);
    return g_strcmp0(other, key) == 0;
}

/* The declaration of @compiled, made where there is none. */
static KilnDeclaration *
declare(KilnModule *module, const KilnFunction *body, KilnCompiled *compiled, GError **error)
{
    g_autofree char *open = kiln_function_is_open(body) ? kiln_region_key(body, NULL) : NULL;
    for (guint i = 0; i < module->declarations->len; i++) {
        KilnDeclaration *declaration = g_ptr_array_index(module->declarations, i);
        if (declaration->compiled == &compiled->shared && (!open || has_key(declaration, open)))
            return declaration;
    }
    const KilnNode *first = body->first;
    while (first->op == KILN_OP_const || first->op == KILN_OP_unpack)
        first = first->next;
    g_autofree char *key = kiln_region_key(body, error);
    KilnFunction *copy = key ? kiln_body_copy(module, body, false, error) : NULL;
    if (!copy)
        return NULL;
    kiln_function_leave_hints(copy);
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

/* --- what the vendor refuses --- */

static uint32_t
bit(KilnPart part)
{
    return 1u << part;
}

static bool
pays(const Compiler *compiler, const KilnFunction *body, const KilnPart *parts, uint32_t which)
{
    double us = kiln_offload_parts_us(&compiler->costs, body, parts, which);
    const Options *options = kiln_pass_options(compiler->context);
    return us > 0 && us >= options->min_us;
}

/* More is left than a region is made for. */
static bool
is_worth_it(const Compiler *compiler, const KilnNode *region, const KilnPart *parts)
{
    KilnPassContext *context = compiler->context;
    const KilnFunction *body = kiln_attrs(region, vendor_graph)->body;
    PASS_GUARD(rest_pays,
               pays(compiler, body, parts, bit(KILN_PART_BEFORE) | bit(KILN_PART_AFTER)));
    return true;
}

static bool
may_be_custom(const Compiler *compiler, const KilnNode *refused)
{
    KilnPassContext *context = compiler->context;
    PASS_GUARD(kernels_in_steps, kiln_merge_may_be_custom(compiler->target, refused));
    return true;
}

static bool
part_pays(const Compiler *compiler, const KilnFunction *body, const KilnPart *parts, KilnPart part)
{
    KilnPassContext *context = compiler->context;
    PASS_GUARD(part_pays, pays(compiler, body, parts, bit(part)));
    return true;
}

/* Parts that are not worth a region stand inline, too. */
static void
choose_parts(const Compiler *compiler, const KilnFunction *body, KilnPart *parts)
{
    bool before = part_pays(compiler, body, parts, KILN_PART_BEFORE);
    bool after = part_pays(compiler, body, parts, KILN_PART_AFTER);
    kiln_foreach_node (node, body) {
        KilnPart *part = &parts[node->id];
        if ((*part == KILN_PART_BEFORE && !before) || (*part == KILN_PART_AFTER && !after))
            *part = KILN_PART_INLINE;
    }
}

static gboolean compile(Compiler *compiler, KilnNode *node);

static gboolean
split(Compiler *compiler, KilnNode *node, KilnPart *parts, const char *why)
{
    const KilnFunction *body = kiln_attrs(node, vendor_graph)->body;
    KilnNode *made[KILN_N_PARTS];
    choose_parts(compiler, body, parts);
    kiln_pass_note(compiler->context, rule, "@%s: %s", kiln_attrs(node, vendor_graph)->callee, why);
    return kiln_offload_split(&compiler->splitter, node, parts, made, compiler->error) &&
           (!made[KILN_PART_BEFORE] || compile(compiler, made[KILN_PART_BEFORE])) &&
           (!made[KILN_PART_AFTER] || compile(compiler, made[KILN_PART_AFTER]));
}

static gboolean
put_inline(const Compiler *compiler, KilnNode *node, const char *why)
{
    const KilnAttrs_vendor_graph *attrs = kiln_attrs(node, vendor_graph);
    kiln_pass_note(compiler->context, "inline", "@%s: %s", attrs->callee, why);
    return kiln_node_inline(node, attrs->body, compiler->error);
}

static bool
has_equal_types(const KilnNode *a, const KilnNode *b)
{
    bool equal = a->n_operands == b->n_operands && a->n_results == b->n_results;
    for (uint32_t i = 0; equal && i < a->n_operands; i++) {
        const KilnValue *x = a->operands[i].value, *y = b->operands[i].value;
        equal = !x == !y && (!x || kiln_type_equal(&x->type, &y->type));
    }
    for (uint32_t r = 0; equal && r < a->n_results; r++)
        equal = kiln_type_equal(&a->results[r].type, &b->results[r].type);
    return equal;
}

/* The same operator on the same types. */
static bool
is_alike(const KilnNode *a, const KilnNode *b)
{
    const KilnOpInfo *op = kiln_op_info(a->op);
    return a->op == b->op && has_equal_types(a, b) &&
           kiln_attrs_equal(op->attrs, op->n_attrs, a->attrs, b->attrs);
}

/* The vendor would refuse those like @refused in their turn, and compile the region as often. */
static GPtrArray *
find_alike(const Compiler *compiler, const KilnFunction *body, KilnNode *refused)
{
    GPtrArray *alike = g_ptr_array_new();
    g_ptr_array_add(alike, refused);
    kiln_foreach_node (node, body) {
        if (node != refused && is_alike(node, refused) &&
            kiln_merge_may_be_custom(compiler->target, node))
            g_ptr_array_add(alike, node);
    }
    return alike;
}

static gboolean
wrap_all(Compiler *compiler, const KilnNode *region, const GPtrArray *nodes, const char *why)
{
    const char *callee = kiln_attrs(region, vendor_graph)->callee;
    if (!compiler->number)
        compiler->number =
            kiln_offload_next_number(region->function->module, KILN_OP_custom_op, 'c');
    for (guint i = 0; i < nodes->len; i++) {
        KilnNode *node = g_ptr_array_index(nodes, i);
        kiln_pass_note(compiler->context, "custom", "@%s: @c%u for %s", callee, compiler->number,
                       i ? kiln_node_label(node) : why);
        if (!kiln_merge_wrap(node, compiler->number++, compiler->error))
            return FALSE;
    }
    return TRUE;
}

/* Region @node without @refused, which is in its body. */
static gboolean
leave_out(Compiler *compiler, KilnNode *node, KilnNode *refused, const char *why)
{
    const KilnAttrs_vendor_graph *attrs = kiln_attrs(node, vendor_graph);
    g_autofree KilnPart *parts = kiln_offload_parts(attrs->body, refused);
    bool custom = may_be_custom(compiler, refused);
    g_autoptr(GPtrArray) alike = find_alike(compiler, attrs->body, refused);
    for (guint i = 1; custom && i < alike->len; i++)
        parts[((const KilnNode *)g_ptr_array_index(alike, i))->id] = KILN_PART_INLINE;
    if (!is_worth_it(compiler, node, parts))
        return put_inline(compiler, node, why);
    if (!custom)
        return split(compiler, node, parts, why);
    return wrap_all(compiler, node, alike, why) && compile(compiler, node);
}

static gboolean
compile(Compiler *compiler, KilnNode *node)
{
    KilnFunction *body = kiln_attrs(node, vendor_graph)->body;
    const char *callee = kiln_attrs(node, vendor_graph)->callee;
    KilnPassContext *context = compiler->context;
    g_autoptr(GError) why = NULL;
    KilnNode *refused = NULL;
    if (!kiln_region_is_closed(node))
        return put_inline(compiler, node, "it reads values around it");
    take_back(node, context);
    KilnCompiled *compiled =
        kiln_kernel_cache_get(compiler->target, body, kiln_pass_threads(context), &refused, &why);
    if (!compiled && refused)
        return leave_out(compiler, node, refused, why->message);
    if (!compiled)
        return put_inline(compiler, node, why->message);
    const KilnDeclaration *declaration =
        declare(node->function->module, body, compiled, compiler->error);
    kiln_shared_unref(&compiled->shared); /* the declaration has one of its own */
    if (!declaration)
        return FALSE;
    kiln_pass_note(context, "compile", "@%s: @%s", callee, declaration->name);
    return kiln_node_call(node, declaration, compiler->error);
}

GRAPH_PASS(compile_offload);

gboolean
kiln_pass_compile_offload(KilnFunction *function, KilnPassContext *context, bool *changed,
                          GError **error)
{
    const KilnTarget *target = kiln_pass_target(context);
    *changed = false;
    if (!target || !target->vendor)
        return TRUE;
    Compiler compiler = { .target = target,
                          .context = context,
                          .costs = { target, target->vendor, !kiln_pass_one_algorithm(context) },
                          .error = error };
    gboolean good = TRUE;
    kiln_function_stand_at_hints(function);
    kiln_foreach_node_safe (node, function) {
        if (node->op != KILN_OP_vendor_graph || !good)
            continue;
        *changed = true;
        compiler.splitter =
            (KilnSplitter){ target->vendor, kiln_attrs(node, vendor_graph)->callee, 0 };
        good = compile(&compiler, node);
    }
    kiln_function_leave_hints(function);
    return good;
}
