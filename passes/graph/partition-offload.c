/* SPDX-License-Identifier: Apache-2.0 */
/* partition-offload: what a vendor library computes faster goes into regions of its own.
 *
 *      %c = conv(%x, %w, %b)              %r = vendor.graph @r0(%x, %w, %b) body(…) {
 *      %r = relu(%c)               =>       %c = conv(%x, %w, %b)
 *                                           %r = relu(%c)
 *                                           return %r
 *                                         }
 *
 * requires nothing, preserves nothing; class E: nodes move, none changes.
 *
 * One walk over the nodes with one region open at a time. An anchor opens a region; what reads a
 * value of the region joins it where the vendor has it: an element-wise tail that is the only
 * reader of a product, or, among operators that want a layout of their own (convolutions, pools),
 * anything that spares the values between them a reorder. What the vendor lacks stays behind: in
 * front of the region where it reads nothing of it, else behind it, and what reads it cannot join
 * any more. So no path leaves a region and comes back, and regions have an order.
 *
 * Only what takes less time there by the cost models is the vendor's at all (passes/offload_cut.h),
 * and a region is kept where it pays as a whole: own kernels take longer than the vendor's, its
 * call, and the reorders at its edges. Values that are read outside become results.
 * Weights are captured, literal or not; literals that an operator takes in place of an attribute
 * (axes, bounds of a clip) are copied into the region. */
#include "graph/outline.h"
#include "ir/vendor.h"
#include "passes/offload_cut.h"
#include "passes/pass.h"

#include <stdlib.h>

static const char rule[] = "outline";

/* What a node is to the open region. Of nodes in front of it nothing is known. */
typedef enum {
    IS_BEFORE,
    IS_IN,
    IS_AFTER, /* reads it, or what reads it */
} Relation;

typedef struct {
    KilnFunction *function;
    KilnPassContext *context;
    const KilnPassOptions_partition_offload *options;
    const KilnVendor *vendor;
    KilnOffloadCosts costs;
    bool weighs;           /* by what both take */
    KilnVendorRole *roles; /* by node id */
    bool *layouted;        /* by node id: computed in the vendor's layout */
    uint32_t *relation;    /* by node id: the number of the region that was open, and a Relation */
    uint32_t n_ids;
    uint32_t opened;       /* regions so far */
    GPtrArray *members;    /* KilnNode*, in order; empty: no region is open */
    GPtrArray *early;      /* KilnNode* behind `first_after` that the region may read */
    KilnNode *first_after; /* NULL: none yet */
    bool has_layout;       /* an anchor in it wants a layout of its own */
    uint32_t number;       /* of the next region */
    bool changed;
    GError **error;
} Partition;

/* --- what joins --- */

/* What was said while another region was open counts no more. Nodes that were made since the walk
 * began are in front of it. */
static Relation
relation_to(const Partition *partition, const KilnNode *node)
{
    uint32_t mark = node->id < partition->n_ids ? partition->relation[node->id] : 0;
    return mark / 4 == partition->opened ? (Relation)(mark % 4) : IS_BEFORE;
}

static void
set_relation(Partition *partition, const KilnNode *node, Relation relation)
{
    partition->relation[node->id] = 4 * partition->opened + relation;
}

static KilnVendorRole
role_of(const Partition *partition, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (!kiln_type_is_static(&node->results[i].type) || node->results[i].type.quant ||
            node->results[i].type.layout || node->results[i].known)
            return KILN_VENDOR_NONE;
    }
    bool plain = node->n_results == 1 && !kiln_op_has(node->op, KILN_TRAIT_REGION);
    return plain ? partition->vendor->role(node) : KILN_VENDOR_NONE;
}

/* What it is to the region by what it reads. */
static Relation
relation_of(const Partition *partition, const KilnNode *node)
{
    Relation most = IS_BEFORE;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        const KilnNode *def = value ? value->def : NULL;
        if (def && def->function == partition->function)
            most = MAX(most, relation_to(partition, def));
    }
    return most;
}

static bool
is_member(const Partition *partition, const KilnValue *value)
{
    const KilnNode *def = value ? value->def : NULL;
    return def && def->function == partition->function && relation_to(partition, def) == IS_IN;
}

/* A product's result that only this node reads: computed before it is stored. */
static bool
is_only_reader(const Partition *partition, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (is_member(partition, value))
            return value->n_uses == 1;
    }
    return false;
}

static bool
joins(const Partition *partition, const KilnNode *node, KilnVendorRole role)
{
    KilnPassContext *context = partition->context;
    GUARD(one_region, relation_of(partition, node) == IS_IN);
    GUARD(small_enough, partition->members->len < (guint)partition->options->max_nodes);
    GUARD(fused, !g_str_equal(partition->options->policy, "single"));
    bool layout = partition->has_layout && node->results[0].type.rank >= 3;
    if (role == KILN_VENDOR_TAIL)
        return layout || is_only_reader(partition, node);
    if (role == KILN_VENDOR_ANCHOR)
        return layout && partition->vendor->wants_layout(node);
    return role == KILN_VENDOR_GLUE && layout;
}

/* --- what pays --- */

static bool
read_outside(const Partition *partition, const KilnValue *value)
{
    kiln_foreach_use (use, value) {
        if (use->user->function != partition->function ||
            relation_to(partition, use->user) != IS_IN)
            return true;
    }
    return false;
}

static bool
is_fused(const Partition *partition, const KilnNode *node)
{
    const KilnNode *product = kiln_tail_of_product(node);
    return product && relation_to(partition, product) == IS_IN;
}

/* What the vendor takes for all of it in a layout, edges included. */
static double
vendor_us(const Partition *partition, uint32_t layout)
{
    const KilnVendor *vendor = partition->vendor;
    double us = vendor->call_us;
    g_autoptr(GHashTable) entered = g_hash_table_new(NULL, NULL);
    for (guint m = 0; m < partition->members->len; m++) {
        const KilnNode *node = g_ptr_array_index(partition->members, m);
        us += vendor->node_us(node, layout);
        if (!partition->layouted[node->id])
            continue;
        for (uint32_t i = 0; i < node->n_operands; i++) {
            KilnValue *value = node->operands[i].value;
            if (value && !is_member(partition, value) && !kiln_value_constant(value) &&
                g_hash_table_add(entered, value))
                us += vendor->reorder_us(&value->type, layout);
        }
        if (read_outside(partition, &node->results[0]))
            us += vendor->reorder_us(&node->results[0].type, layout);
    }
    return us;
}

/* By how much the vendor must be faster: what no model sees decides below, and its code takes a
 * millisecond and more, and memory, to generate. */
static const double margin = 0.93, gain_us = 4;

static bool
is_worth_it(const Partition *partition)
{
    KilnPassContext *context = partition->context;
    double own = 0, vendor = G_MAXDOUBLE;
    for (guint m = 0; m < partition->members->len; m++) {
        const KilnNode *node = g_ptr_array_index(partition->members, m);
        own += kiln_own_us(&partition->costs, node, is_fused(partition, node));
    }
    for (uint32_t layout = 0; layout < partition->vendor->n_layouts; layout++)
        vendor = MIN(vendor, vendor_us(partition, layout));
    GUARD(big_enough, own >= partition->options->min_us);
    GUARD(pays, !partition->weighs || MIN(margin * own, own - gain_us) > vendor);
    return true;
}

/* --- outlining --- */

/* Literals in place of attributes. */
static bool
is_cloned(const KilnNode *node, uint32_t i)
{
    bool attribute =
        node->op == KILN_OP_clip ? i > 0 : kiln_op_info(node->op)->shape_operands >> i & 1;
    return attribute && kiln_value_constant(node->operands[i].value);
}

typedef struct {
    KilnFunction *body;
    GHashTable *values;  /* of the function → of the body */
    GPtrArray *captured; /* KilnValue* */
    GPtrArray *results;  /* KilnValue* of the function, and in the body below */
    GPtrArray *inner;
} Outline;

static bool
capture(Outline *outline, KilnValue *value, GError **error)
{
    if (g_hash_table_contains(outline->values, value))
        return true;
    KilnArgument *argument =
        kiln_function_add_argument(outline->body, value->name, &value->type, error);
    if (!argument)
        return false;
    if (kiln_value_constant(value))
        argument->constness = KILN_CONSTNESS_COMPILE;
    g_hash_table_insert(outline->values, value, &argument->value);
    g_ptr_array_add(outline->captured, value);
    return true;
}

static bool
fill_body(const Partition *partition, Outline *outline, GError **error)
{
    for (guint m = 0; m < partition->members->len; m++) {
        KilnNode *node = g_ptr_array_index(partition->members, m);
        for (uint32_t i = 0; i < node->n_operands; i++) {
            KilnValue *value = node->operands[i].value;
            if (!value || is_member(partition, value))
                continue;
            bool ok = !is_cloned(node, i) ? capture(outline, value, error)
                                          : g_hash_table_contains(outline->values, value) ||
                                                kiln_node_copy(outline->body, value->def,
                                                               outline->values, NULL, NULL, error);
            if (!ok)
                return false;
        }
        if (!kiln_node_copy(outline->body, node, outline->values, NULL, NULL, error))
            return false;
        if (read_outside(partition, &node->results[0])) {
            g_ptr_array_add(outline->results, &node->results[0]);
            g_ptr_array_add(outline->inner,
                            g_hash_table_lookup(outline->values, &node->results[0]));
        }
    }
    return kiln_function_set_results(outline->body, (KilnValue *const *)outline->inner->pdata, NULL,
                                     outline->inner->len, error);
}

static KilnNode *
make_node(Partition *partition, const Outline *outline, KilnNode *before, GError **error)
{
    guint n = outline->results->len;
    g_autofree KilnType *types = g_new0(KilnType, n + 1);
    for (guint i = 0; i < n; i++)
        types[i] = ((KilnValue *)g_ptr_array_index(outline->results, i))->type;
    g_autofree char *name = g_strdup_printf("r%u", partition->number++);
    KilnAttrs_vendor_graph attrs = { .callee = name, .body = outline->body };
    KilnNodeSpec spec = { .op = KILN_OP_vendor_graph,
                          .operands = (KilnValue *const *)outline->captured->pdata,
                          .n_operands = outline->captured->len,
                          .n_results = n,
                          .attrs = &attrs,
                          .types = types,
                          .before = before };
    KilnNode *node = kiln_node_new(partition->function, &spec, error);
    if (node)
        kiln_pass_note(partition->context, rule, "@%s: %u nodes, from %s", name,
                       partition->members->len,
                       kiln_node_label(g_ptr_array_index(partition->members, 0)));
    return node;
}

static bool
outline(Partition *partition, KilnNode *end, GError **error)
{
    KilnNode *before = partition->first_after ? partition->first_after : end;
    for (guint i = 0; i < partition->early->len; i++)
        kiln_node_move(g_ptr_array_index(partition->early, i), before);
    Outline out = { .body = kiln_function_new_region(partition->function->module, "body"),
                    .values = g_hash_table_new(NULL, NULL),
                    .captured = g_ptr_array_new(),
                    .results = g_ptr_array_new(),
                    .inner = g_ptr_array_new() };
    KilnNode *node = NULL;
    if (fill_body(partition, &out, error))
        node = make_node(partition, &out, before, error);
    for (guint i = 0; node && i < out.results->len; i++)
        kiln_value_replace(g_ptr_array_index(out.results, i), &node->results[i]);
    for (guint m = partition->members->len; node && m > 0; m--)
        kiln_node_remove(g_ptr_array_index(partition->members, m - 1));
    g_hash_table_unref(out.values);
    g_ptr_array_unref(out.captured);
    g_ptr_array_unref(out.results);
    g_ptr_array_unref(out.inner);
    partition->changed = true;
    return node != NULL;
}

/* --- the walk --- */

/* Ends the open region in front of @end. */
static bool
close_region(Partition *partition, KilnNode *end)
{
    bool good = true;
    if (partition->members->len && is_worth_it(partition))
        good = outline(partition, end, partition->error);
    partition->opened++;
    g_ptr_array_set_size(partition->members, 0);
    g_ptr_array_set_size(partition->early, 0);
    partition->first_after = NULL;
    partition->has_layout = false;
    return good;
}

static void
add_member(Partition *partition, KilnNode *node, KilnVendorRole role)
{
    g_ptr_array_add(partition->members, node);
    set_relation(partition, node, IS_IN);
    if (role == KILN_VENDOR_ANCHOR)
        partition->has_layout |= partition->vendor->wants_layout(node);
}

static void
stay_outside(Partition *partition, KilnNode *node)
{
    bool after = relation_of(partition, node) != IS_BEFORE;
    set_relation(partition, node, after ? IS_AFTER : IS_BEFORE);
    if (after && !partition->first_after)
        partition->first_after = node;
    else if (!after && partition->first_after)
        g_ptr_array_add(partition->early, node);
}

static bool
visit(Partition *partition, KilnNode *node)
{
    bool open = partition->members->len > 0;
    if (node->op == KILN_OP_return || kiln_op_has(node->op, KILN_TRAIT_REGION))
        return close_region(partition, node);
    KilnVendorRole role = partition->roles[node->id];
    if (open && role != KILN_VENDOR_NONE && joins(partition, node, role)) {
        add_member(partition, node, role);
        return true;
    }
    if (role == KILN_VENDOR_ANCHOR) {
        if (!close_region(partition, node))
            return false;
        add_member(partition, node, role);
    } else if (open) {
        stay_outside(partition, node);
    }
    return true;
}

/* Behind the greatest number of a region in the module, which may have been partitioned in part. */
static uint32_t
next_number(const KilnModule *module)
{
    uint32_t next = 0;
    for (guint f = 0; f < module->functions->len; f++) {
        const KilnFunction *function = g_ptr_array_index(module->functions, f);
        kiln_foreach_node (node, function) {
            const char *callee =
                node->op == KILN_OP_vendor_graph ? kiln_attrs(node, vendor_graph)->callee : NULL;
            if (callee && callee[0] == 'r')
                next = MAX(next, (uint32_t)strtoul(callee + 1, NULL, 10) + 1);
        }
    }
    return next;
}

static bool
is_chosen(const Partition *partition, const KilnNode *node, const bool *vendors)
{
    KilnPassContext *context = partition->context;
    GUARD(chosen, !partition->weighs || vendors[node->id]);
    return true;
}

/* Roles of all nodes, where what both sides take does not leave them to own kernels. */
static void
find_roles(Partition *partition)
{
    const KilnFunction *function = partition->function;
    kiln_foreach_node (node, function)
        partition->roles[node->id] = role_of(partition, node);
    g_autofree bool *vendors = kiln_offload_cut(function, partition->roles, &partition->costs);
    kiln_foreach_node (node, function) {
        KilnVendorRole *role = &partition->roles[node->id];
        if (!is_chosen(partition, node, vendors))
            *role = KILN_VENDOR_NONE;
        partition->layouted[node->id] =
            kiln_is_layouted(partition->vendor, node, *role, partition->layouted);
    }
}

static bool
walk(Partition *partition)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    kiln_foreach_node (node, partition->function)
        g_ptr_array_add(nodes, node);
    bool good = true;
    for (guint i = 0; good && i < nodes->len; i++)
        good = visit(partition, g_ptr_array_index(nodes, i));
    return good;
}

gboolean
kiln_pass_partition_offload(KilnFunction *function, KilnPassContext *context, bool *changed,
                            GError **error)
{
    const KilnTarget *target = kiln_pass_target(context);
    *changed = false;
    /* What runs in a loop or a branch is left to own kernels. So is all where memory is preferred
     * to speed: the vendor's weights and workspaces are the bigger ones. */
    if (!target || !target->vendor || function->owner || kiln_pass_prefers_memory(context))
        return TRUE;
    const KilnPassOptions_partition_offload *options =
        kiln_pass_options(context, partition_offload);
    gsize n = (gsize)function->next_id + 1;
    Partition partition = { .function = function,
                            .context = context,
                            .options = options,
                            .vendor = target->vendor,
                            .costs = { target, target->vendor, !kiln_pass_one_algorithm(context) },
                            .weighs = !g_str_equal(options->when, "always"),
                            .n_ids = function->next_id,
                            .roles = g_new0(KilnVendorRole, n),
                            .layouted = g_new0(bool, n),
                            .relation = g_new0(uint32_t, n),
                            .opened = 1,
                            .members = g_ptr_array_new(),
                            .early = g_ptr_array_new(),
                            .number = next_number(function->module),
                            .error = error };
    find_roles(&partition);
    bool good = walk(&partition);
    g_free(partition.roles);
    g_free(partition.layouted);
    g_free(partition.relation);
    g_ptr_array_unref(partition.members);
    g_ptr_array_unref(partition.early);
    *changed = partition.changed;
    return good;
}
