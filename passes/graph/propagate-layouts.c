/* SPDX-License-Identifier: Apache-2.0 */
/* propagate-layouts: values stay in the layout of the regions that give and read them.
 *
 *   %a = vendor.graph @r0(…) {…}              %a = vendor.graph @r0(…) {… pack}  : …:acdb
 *   %s = channel_shuffle(%a)           =>     %s = channel_shuffle(%a)           : …:acdb
 *   %b = vendor.graph @r1(%s) {…}             %b = vendor.graph @r1(%s) {unpack …}
 *
 *   keep      a group of operators between regions, or one of them, computes in a layout: it is
 *             taken into it where that saves more reorders than it makes
 *   edge      a region takes an argument as it lies (its body begins with `unpack`), or gives a
 *             result in its own layout (its body ends with `pack`)
 *   reorder   where a value is wanted otherwise than it lies: one `pack` or `unpack` for all who
 *             want it so. Regions reorder inside, where the vendor does it
 *
 *   weight    a literal that all who read it want packed in one way gets one `pack`, in front of
 * the first of them, which constant-fold folds:
 *
 *       %y = vendor.graph @r0(%x, %w)   =>   %p = pack(%w) : f32[64,64,3,3]:ABcd16b16a
 *              body(…) {conv …}              %y = vendor.graph @r0(%x, %p) body(…) {unpack, conv …}
 *
 * requires nothing, preserves nothing; class U: a reduction sums in the order of memory.
 *
 * Which region computes in which of the vendor's layouts, and which operator between them in which,
 * is chosen by times: of the regions in each layout, of reorders, and of slices, splits and concats
 * that copy in one layout and not in another. From each region's own best layout, groups of
 * neighbours are moved together, then nodes alone, as long as it all gets faster: never slower than
 * before. */
#include "graph/base/shared.h"
#include "graph/module/hints.h"
#include "graph/module/layout.h"
#include "graph/module/outline.h"
#include "graph/op/offload.h"
#include "ir/compiled.h"
#include "ir/vendor.h"
#include "passes/offload/layout_labels.h"
#include "passes/pass.h"

static const char rule[] = "keep";
static const double LEAST_US = 1e-6; /* what sums of times are exact to */

/* --- which layouts --- */

static bool
may_carry(const KilnNode *node, const KilnType *result, void *data)
{
    KilnPassContext *context = data;
    PASS_GUARD(same_meaning, kiln_layout_carries(node, result));
    return true;
}

static bool
pays(KilnPassContext *context, KilnLayouts *layouts, const GPtrArray *nodes, int label)
{
    PASS_GUARD(faster, kiln_layouts_change(layouts, nodes, label) < -LEAST_US);
    return true;
}

/* Groups as a whole: one reorder less at each end often pays where a step alone does not. */
static void
move_groups(KilnPassContext *context, KilnLayouts *layouts, uint32_t n_layouts)
{
    for (int label = 0; label < (int)n_layouts; label++) {
        g_autoptr(GPtrArray) groups = kiln_layouts_groups(layouts, label);
        for (guint g = 0; g < groups->len; g++) {
            const GPtrArray *group = g_ptr_array_index(groups, g);
            g_autoptr(GPtrArray) all = kiln_layouts_with_regions(layouts, group, label);
            if (pays(context, layouts, group, label))
                kiln_layouts_set(layouts, group, label);
            else if (all->len > group->len && pays(context, layouts, all, label))
                kiln_layouts_set(layouts, all, label);
        }
    }
}

/* Nodes alone: the ends of a group, which may be better off as they were, and regions. */
static void
move_nodes(KilnLayouts *layouts, const KilnFunction *function, uint32_t n_layouts)
{
    enum {
        MAX_ROUNDS = 8
    };
    g_autoptr(GPtrArray) one = g_ptr_array_new();
    g_ptr_array_set_size(one, 1);
    bool moved = true;
    for (int round = 0; moved && round < MAX_ROUNDS; round++) {
        moved = false;
        kiln_foreach_node (node, function) {
            one->pdata[0] = node;
            for (int label = KILN_LABEL_KEPT; label < (int)n_layouts; label++) {
                if (label == kiln_layouts_label(layouts, node) ||
                    !kiln_layouts_may_be(layouts, node, label) ||
                    kiln_layouts_change(layouts, one, label) >= -LEAST_US)
                    continue;
                kiln_layouts_set(layouts, one, label);
                moved = true;
            }
        }
    }
}

/* --- rewriting --- */

/* What was decided of a node, before anything changes. */
typedef struct {
    KilnNode *node;
    bool is_region;
    const char **wanted; /* by operand */
    const char **held;   /* by result */
} Decision;

typedef struct {
    KilnPassContext *context;
    GHashTable *reorders; /* KilnValue* → GHashTable of tag → KilnValue* */
    GError **error;
    bool changed;
} Rewrite;

static GArray *
decide(const KilnLayouts *layouts, KilnFunction *function)
{
    GArray *decisions = g_array_new(FALSE, TRUE, sizeof(Decision));
    kiln_foreach_node (node, function) {
        bool is_region = kiln_layouts_is_region(layouts, node);
        if (!is_region && kiln_layouts_label(layouts, node) == KILN_LABEL_KEPT &&
            node->n_operands == 0)
            continue;
        Decision decision = { .node = node,
                              .is_region = is_region,
                              .wanted = g_new0(const char *, node->n_operands + 1),
                              .held = g_new0(const char *, node->n_results + 1) };
        for (uint32_t i = 0; i < node->n_operands; i++) {
            if (node->operands[i].value)
                decision.wanted[i] = kiln_layouts_wanted(layouts, node, i);
        }
        for (uint32_t r = 0; r < node->n_results; r++)
            decision.held[r] = kiln_layouts_held(layouts, &node->results[r]);
        g_array_append_val(decisions, decision);
    }
    return decisions;
}

static void
decisions_free(GArray *decisions)
{
    for (guint i = 0; i < decisions->len; i++) {
        g_free(g_array_index(decisions, Decision, i).wanted);
        g_free(g_array_index(decisions, Decision, i).held);
    }
    g_array_unref(decisions);
}

static const char *
name_of(const char *tag)
{
    return tag ? tag : "plain";
}

/* @value as @tag, for @user: made once. Nodes are visited in order, so that the first to ask stands
 * in front of all others. */
static KilnValue *
value_as(Rewrite *rewrite, KilnValue *value, const char *tag, KilnNode *user)
{
    if (g_strcmp0(value->type.layout, tag) == 0)
        return value;
    GHashTable *of = g_hash_table_lookup(rewrite->reorders, value);
    if (!of) {
        of = g_hash_table_new(g_str_hash, g_str_equal);
        g_hash_table_insert(rewrite->reorders, value, of);
    }
    KilnValue *made = g_hash_table_lookup(of, name_of(tag));
    if (!made) {
        made = kiln_value_reorder(user->function, user, value, tag, rewrite->error);
        if (!made)
            return NULL;
        g_hash_table_insert(of, (gpointer)name_of(tag), made);
        kiln_pass_note(rewrite->context, "reorder", "%s: %s to %s", value->name,
                       name_of(value->type.layout), name_of(tag));
        rewrite->changed = true;
    }
    return made;
}

static bool
rewrite_node(Rewrite *rewrite, const Decision *decision)
{
    KilnNode *node = decision->node;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = node->operands[i].value;
        if (!value)
            continue;
        KilnValue *as = value_as(rewrite, value, decision->wanted[i], node);
        if (!as)
            return false;
        if (as != value)
            kiln_node_set_operand(node, i, as);
    }
    if (node->n_results == 0 || g_strcmp0(decision->held[0], node->results[0].type.layout) == 0)
        return true;
    kiln_pass_note(rewrite->context, rule, "%s in %s", kiln_node_label(node), decision->held[0]);
    rewrite->changed = true;
    return kiln_node_reinfer(node, rewrite->error);
}

/* %a: … as an argument in @layout, and what it is to the body: it is in a layout already, or is
 * unpacked. */
static KilnValue *
add_argument(KilnFunction *laid, const KilnArgument *argument, const char *layout, GError **error)
{
    KilnType type = argument->value.type;
    type.layout = layout;
    KilnArgument *copy = kiln_function_add_argument(laid, argument->value.name, &type, error);
    if (!copy)
        return NULL;
    copy->constness = argument->constness;
    return layout && !argument->value.type.layout
               ? kiln_value_reorder(laid, NULL, &copy->value, NULL, error)
               : &copy->value;
}

/* The body of a region whose edges lie as its operands and @held say. */
static KilnFunction *
make_body(const KilnNode *node, const char *const *held, GError **error)
{
    const KilnFunction *body = kiln_attrs(node, vendor_graph)->body;
    const KilnNode *results = kiln_function_return(body);
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    g_autofree KilnValue **given = g_new0(KilnValue *, node->n_results + 1);
    KilnFunction *laid = kiln_function_new_region(node->function->module, body->name);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnArgument *argument = kiln_function_argument(body, i);
        KilnValue *value =
            add_argument(laid, argument, node->operands[i].value->type.layout, error);
        if (!value)
            return NULL;
        g_hash_table_insert(values, (gpointer)&argument->value, value);
    }
    kiln_foreach_node (inner, body) {
        if (inner != results && !kiln_node_copy(laid, inner, values, NULL, NULL, error))
            return NULL;
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        given[r] = g_hash_table_lookup(values, results->operands[r].value);
        if (held[r] && !given[r]->type.layout)
            given[r] = kiln_value_reorder(laid, NULL, given[r], held[r], error);
        if (!given[r])
            return NULL;
    }
    return kiln_function_set_results(laid, given, NULL, node->n_results, error) ? laid : NULL;
}

/* Makes @node anew with operands as they lie now and results as @held says; NULL with an error.
 * Readers are seen to in their turn. */
static KilnNode *
remake(KilnNode *node, const char *const *held, GError **error)
{
    g_autofree KilnType *types = g_new0(KilnType, node->n_results + 1);
    for (uint32_t r = 0; r < node->n_results; r++) {
        types[r] = node->results[r].type;
        types[r].layout = held[r];
    }
    KilnFunction *body = make_body(node, held, error);
    const KilnAttrs_vendor_graph attrs = { .callee = kiln_attrs(node, vendor_graph)->callee,
                                           .body = body };
    return body ? kiln_node_remake_offload(node, KILN_OP_vendor_graph, &attrs, types, error) : NULL;
}

static bool
rewrite_region(Rewrite *rewrite, const Decision *decision)
{
    const KilnNode *node = decision->node;
    uint32_t laid = 0;
    for (uint32_t i = 0; i < node->n_operands; i++)
        laid += node->operands[i].value->type.layout != NULL;
    for (uint32_t r = 0; r < node->n_results; r++)
        laid += decision->held[r] != NULL;
    if (!laid)
        return true;
    kiln_pass_note(rewrite->context, "edge", "@%s: %u in a layout",
                   kiln_attrs(node, vendor_graph)->callee, laid);
    rewrite->changed = true;
    return remake(decision->node, decision->held, rewrite->error);
}

static bool
rewrite_all(Rewrite *rewrite, const GArray *decisions)
{
    bool good = true;
    for (guint i = 0; good && i < decisions->len; i++) {
        const Decision *decision = &g_array_index(decisions, Decision, i);
        good = decision->is_region ? rewrite_region(rewrite, decision)
                                   : rewrite_node(rewrite, decision);
    }
    return good;
}

/* --- weights --- */

/* How a weight is wanted by those who read it. */
typedef struct {
    const char *tag;
    uint32_t n_wanted; /* operands that want it so */
    bool disputed;     /* others want it in another layout */
} Want;

/* A region, and how the vendor wants its operands. */
typedef struct {
    KilnNode *node;
    KilnCompiled *compiled; /* NULL: it cannot be compiled, as compile-offload will say */
} Region;

static const char *
wanted_tag(const KilnVendor *vendor, const Region *region, uint32_t i)
{
    const KilnValue *value = region->node->operands[i].value;
    if (!region->compiled || !kiln_value_constant(value) || value->type.layout)
        return NULL;
    return vendor->packed_tag(region->compiled, region->node->n_results + i);
}

static GArray *
compile_regions(KilnFunction *function, const KilnTarget *target, int threads)
{
    GArray *regions = g_array_new(FALSE, FALSE, sizeof(Region));
    kiln_foreach_node (node, function) {
        if (node->op != KILN_OP_vendor_graph || !kiln_region_is_closed(node))
            continue;
        const KilnFunction *body = kiln_attrs(node, vendor_graph)->body;
        Region region = { node, kiln_kernel_cache_get(target, body, threads, NULL, NULL) };
        g_array_append_val(regions, region);
    }
    return regions;
}

/* KilnValue* → Want*. */
static GHashTable *
find_wants(const GArray *regions, const KilnVendor *vendor)
{
    GHashTable *wants = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    for (guint k = 0; k < regions->len; k++) {
        const Region *region = &g_array_index(regions, Region, k);
        for (uint32_t i = 0; i < region->node->n_operands; i++) {
            KilnValue *value = region->node->operands[i].value;
            const char *tag = wanted_tag(vendor, region, i);
            if (!tag)
                continue;
            Want *want = g_hash_table_lookup(wants, value);
            if (!want) {
                want = g_new0(Want, 1);
                want->tag = tag;
                g_hash_table_insert(wants, value, want);
            }
            want->disputed |= !g_str_equal(want->tag, tag);
            want->n_wanted++;
        }
    }
    return wants;
}

/* One way for all: a second copy of a weight costs more than packing it where it is bound. */
static bool
is_agreed(KilnPassContext *context, const KilnNode *node, const KilnValue *value, const Want *want)
{
    kiln_pass_about(context, node, kiln_type_bytes(&value->type));
    PASS_GUARD(one_layout, !want->disputed);
    PASS_GUARD(no_plain_reader, want->n_wanted == value->n_uses);
    return true;
}

static bool
pack_weights(Rewrite *rewrite, const GArray *regions, const KilnVendor *vendor)
{
    g_autoptr(GHashTable) wants = find_wants(regions, vendor);
    g_autoptr(GHashTable) packed = g_hash_table_new(NULL, NULL); /* KilnValue* → as it is wanted */
    for (guint k = 0; k < regions->len; k++) {
        const Region *region = &g_array_index(regions, Region, k);
        KilnNode *node = region->node;
        uint32_t n = 0;
        for (uint32_t i = 0; i < node->n_operands; i++) {
            KilnValue *value = node->operands[i].value;
            const Want *want = g_hash_table_lookup(wants, value);
            KilnValue *as = g_hash_table_lookup(packed, value);
            if (!want || !wanted_tag(vendor, region, i) ||
                (!as && !is_agreed(rewrite->context, node, value, want)))
                continue;
            if (!as)
                as = kiln_value_reorder(node->function, node, value, want->tag, rewrite->error);
            if (!as)
                return false;
            g_hash_table_insert(packed, value, as);
            kiln_node_set_operand(node, i, as);
            kiln_pass_note(rewrite->context, "weight", "%s in %s", value->name, want->tag);
            n++;
        }
        g_autofree const char **held = g_new0(const char *, node->n_results + 1);
        for (uint32_t r = 0; r < node->n_results; r++)
            held[r] = node->results[r].type.layout;
        rewrite->changed |= n > 0;
        if (n && !remake(node, held, rewrite->error))
            return false;
    }
    return true;
}

static bool
rewrite_weights(Rewrite *rewrite, KilnFunction *function, const KilnTarget *target)
{
    GArray *regions = compile_regions(function, target, kiln_pass_threads(rewrite->context));
    bool good = pack_weights(rewrite, regions, target->vendor);
    for (guint k = 0; k < regions->len; k++) {
        KilnCompiled *compiled = g_array_index(regions, Region, k).compiled;
        if (compiled)
            kiln_shared_unref(&compiled->shared);
    }
    g_array_unref(regions);
    return good;
}

static bool
has_regions(const KilnFunction *function)
{
    kiln_foreach_node (node, function) {
        if (node->op == KILN_OP_vendor_graph)
            return true;
    }
    return false;
}

/* Open dims have the numbers of their hints. */
static bool
propagate_at_hints(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    const KilnTarget *target = kiln_pass_target(context);
    uint32_t n_layouts = target->vendor->n_layouts;
    g_autoptr(KilnLayouts) layouts = kiln_layouts_new(function, target, may_carry, context);
    move_groups(context, layouts, n_layouts);
    move_nodes(layouts, function, n_layouts);
    GArray *decisions = decide(layouts, function);
    Rewrite rewrite = { .context = context,
                        .reorders = g_hash_table_new_full(NULL, NULL, NULL,
                                                          (GDestroyNotify)g_hash_table_unref),
                        .error = error };
    bool good = rewrite_all(&rewrite, decisions);
    decisions_free(decisions);
    g_hash_table_unref(rewrite.reorders);
    if (good && target->vendor->packed_tag)
        good = rewrite_weights(&rewrite, function, target);
    *changed = rewrite.changed;
    return good;
}

GRAPH_PASS(propagate_layouts);

gboolean
kiln_pass_propagate_layouts(KilnFunction *function, KilnPassContext *context, bool *changed,
                            GError **error)
{
    const KilnTarget *target = kiln_pass_target(context);
    *changed = false;
    if (!target || !target->vendor || !target->vendor->n_layouts || !has_regions(function))
        return TRUE;
    kiln_function_stand_at_hints(function);
    bool good = propagate_at_hints(function, context, changed, error);
    kiln_function_leave_hints(function);
    return good;
}
