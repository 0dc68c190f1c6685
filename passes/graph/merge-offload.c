/* SPDX-License-Identifier: Apache-2.0 */
/* merge-offload: two regions of the vendor become one through what it lacks between them.
 *
 *   %a = vendor.graph @r0(…) {…}              %b = vendor.graph @r0(…) body(…) {
 *   %s = hard_sigmoid(%a)               =>      …                                     of @r0
 *   %b = vendor.graph @r1(%s, …) {…}            %s = custom_op @c0(%a) body(%x: …) {
 *                                                 %h = hard_sigmoid(%x)
 *                                                 return %h
 *                                               }
 *                                               …                                     of @r1
 *                                             }
 *
 *   merge    all that stands between two regions, none other among it, goes into one of both: what
 *            the vendor has as it is, what it lacks as custom_ops, which own kernels compute as
 *            steps among the vendor's. The nearest region in front is tried, again and again
 *   census   a remark: which operators stay outside regions, and which are in custom_ops
 *
 * requires nothing, preserves nothing, must run after partition-offload and before
 * propagate-layouts; class E: nodes move, none changes.
 *
 * It pays where it saves more than the least (min-us): a call, less what both regions lose in one
 * layout, and less what operators between would not have cost outside - results of one that another
 * takes on the way, slices and concats in place. The number of custom_ops is bounded, as is that
 * of operators in a region. */
#include "graph/module/hints.h"
#include "graph/module/layout.h"
#include "graph/module/outline.h"
#include "graph/op/concat.h"
#include "graph/op/offload.h"
#include "graph/op/slice.h"
#include "ir/vendor.h"
#include "passes/offload/offload_cost.h"
#include "passes/offload/offload_outline.h"
#include "passes/offload/region_merge.h"
#include "passes/pass.h"

#define OPTIONS(OPTION, CHOICE)                                                                    \
    CHOICE(when, "pays", "pays|always")                                                            \
    OPTION(INT, max_customs, 32)                                                                   \
    OPTION(INT, max_nodes, 512)                                                                    \
    OPTION(FLOAT, min_us, 0.5)
PASS_OPTIONS(merge_offload, OPTIONS);

static const char rule[] = "merge";

enum {
    WINDOW = 256,   /* nodes that are looked at in front of a region */
    MAX_LAYOUTS = 8 /* of a vendor that are weighed */
};

typedef struct {
    KilnFunction *function;
    KilnPassContext *context;
    const Options *options;
    const KilnVendor *vendor;
    KilnOffloadCosts costs;
    int64_t n_customs;
    uint32_t number; /* of the next custom_op */
    GError **error;
    bool changed;
} Merger;

/* --- what stands between --- */

/* A region as partition-offload makes it. */
static bool
is_region(const KilnNode *node)
{
    if (node->op != KILN_OP_vendor_graph || !kiln_region_is_closed(node))
        return false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (!node->operands[i].value || node->operands[i].value->type.layout)
            return false;
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (node->results[r].type.layout)
            return false;
    }
    return true;
}

static void
add_operands(GHashTable *wanted, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnNode *def = node->operands[i].value ? node->operands[i].value->def : NULL;
        if (def && def->op != KILN_OP_const)
            g_hash_table_add(wanted, def);
    }
}

/* Of @needed, what the last region needs, from the last to the first: those that need the first
 * region, in order. */
static void
keep_between(const KilnMerge *merge, const GPtrArray *needed)
{
    g_autoptr(GHashTable) after = g_hash_table_new(NULL, NULL);
    g_hash_table_add(after, merge->first);
    for (guint i = needed->len; i > 0; i--) {
        KilnNode *node = g_ptr_array_index(needed, i - 1);
        bool reads = false;
        for (uint32_t k = 0; k < node->n_operands; k++) {
            const KilnValue *value = node->operands[k].value;
            reads |= value && value->def && g_hash_table_contains(after, value->def);
        }
        if (!reads)
            continue;
        g_hash_table_add(after, node);
        g_ptr_array_add(merge->between, node);
    }
}

/* The nearest region in front of @last that it needs, and what stands between: no other region can,
 * for it would be nearer. False where there is none near. */
static bool
find_merge(KilnNode *last, KilnMerge *merge)
{
    g_autoptr(GHashTable) wanted = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    merge->last = last;
    add_operands(wanted, last);
    KilnNode *node = last->previous;
    for (int k = 0; node && k < WINDOW; k++, node = node->previous) {
        bool needed = g_hash_table_contains(wanted, node);
        /* Subgraphs may read what is around them. */
        if (kiln_op_has(node->op, KILN_TRAIT_REGION) && !is_region(node))
            return false;
        if (!needed)
            continue;
        if (node->op == KILN_OP_vendor_graph) {
            merge->first = node;
            keep_between(merge, found);
            return merge->between->len > 0;
        }
        add_operands(wanted, node);
        g_ptr_array_add(found, node);
    }
    return false;
}

/* --- what may be in a region --- */

static bool
is_tail(const Merger *merger, const KilnNode *node)
{
    KilnVendorRole role = node->n_results == 1 ? merger->vendor->role(node) : KILN_VENDOR_NONE;
    return role == KILN_VENDOR_TAIL || role == KILN_VENDOR_GLUE;
}

/* Whose each node between is. False where one can be in no region. */
static bool
assign(const Merger *merger, const KilnMerge *merge)
{
    for (guint i = 0; i < merge->between->len; i++) {
        const KilnNode *node = g_ptr_array_index(merge->between, i);
        merge->custom[i] = !is_tail(merger, node);
        if (merge->custom[i] && (merger->vendor->role(node) == KILN_VENDOR_ANCHOR ||
                                 !kiln_merge_may_be_custom(merger->costs.target, node)))
            return false;
    }
    return true;
}

static uint32_t
region_size(const KilnNode *node)
{
    return kiln_attrs(node, vendor_graph)->body->n_nodes;
}

/* --- what it gains --- */

static bool
is_between(const KilnMerge *merge, const KilnNode *node)
{
    return node && g_ptr_array_find(merge->between, node, NULL);
}

/* Operators between compute in layout @k as they do in the plain one. */
static bool
is_carried(const Merger *merger, const KilnMerge *merge, uint32_t k)
{
    for (guint i = 0; i < merge->between->len; i++) {
        const KilnNode *node = g_ptr_array_index(merge->between, i);
        KilnType type = node->results[0].type;
        type.layout = merger->vendor->layout_tag(k, type.rank);
        if (node->n_results != 1 || !type.layout || !kiln_layout_carries(node, &type))
            return false;
    }
    return true;
}

/* Reorders where values between meet @region, which computes in layout @k. */
static double
edges_us(const Merger *merger, const KilnMerge *merge, const KilnNode *region, uint32_t k)
{
    const KilnFunction *body = kiln_attrs(region, vendor_graph)->body;
    const KilnNode *results = kiln_function_return(body);
    double us = 0;
    for (uint32_t r = 0; region == merge->first && r < region->n_results; r++) {
        bool meets = false;
        kiln_foreach_use (use, &region->results[r])
            meets |= is_between(merge, use->user);
        if (meets && merger->vendor->lies_in(body, results->operands[r].value, k))
            us += merger->vendor->reorder_us(&region->results[r].type, k);
    }
    for (uint32_t i = 0; region == merge->last && i < region->n_operands; i++) {
        const KilnValue *value = region->operands[i].value;
        const KilnValue *inner = &kiln_function_argument(body, i)->value;
        if (is_between(merge, value->def) && merger->vendor->lies_in(body, inner, k))
            us += merger->vendor->reorder_us(&value->type, k);
    }
    return us;
}

/* What both regions lose where one layout is for both. */
static double
layout_loss_us(const Merger *merger, const KilnMerge *merge)
{
    uint32_t n = MIN(merger->vendor->n_layouts, (uint32_t)MAX_LAYOUTS);
    double us[2][MAX_LAYOUTS], edge[2][MAX_LAYOUTS], apart = G_MAXDOUBLE, together = G_MAXDOUBLE;
    for (uint32_t k = 0; k < n; k++) {
        us[0][k] = merger->vendor->layout_us(kiln_attrs(merge->first, vendor_graph)->body, k);
        us[1][k] = merger->vendor->layout_us(kiln_attrs(merge->last, vendor_graph)->body, k);
        edge[0][k] = edges_us(merger, merge, merge->first, k);
        edge[1][k] = edges_us(merger, merge, merge->last, k);
    }
    for (uint32_t a = 0; a < n; a++) {
        double edges = is_carried(merger, merge, a) ? 0 : edge[0][a] + edge[1][a];
        together = MIN(together, us[0][a] + us[1][a] + edges);
        apart = MIN(apart, us[0][a] + us[1][a] + edges);
        for (uint32_t b = 0; b < n; b++)
            apart = MIN(apart, us[0][a] + us[1][b] + edge[0][a] + edge[1][b]);
    }
    return n ? together - apart : 0;
}

/* @part of @whole lies in one piece: it is cut along the outermost loop of more than one step. */
static bool
is_piece(const KilnType *whole, const KilnType *part, const char *tag)
{
    KilnType laid = *whole;
    KilnLayout layout;
    laid.layout = tag;
    if (whole->rank != part->rank || !kiln_layout_of(&laid, &layout))
        return true; /* not known: as if it were */
    for (int l = 0; l < layout.rank; l++) {
        if (!kiln_type_equal_dims(whole, layout.dim[l], part, layout.dim[l]))
            return true;
        if (layout.extent[l] > 1)
            return false;
    }
    return true;
}

/* Outside @node, which computes nothing, may be a view: in a layout in which all between compute,
 * or in the plain one where there is none. */
static bool
may_be_view(const Merger *merger, const KilnMerge *merge, const KilnNode *node)
{
    const KilnType *from = &node->operands[0].value->type, *to = &node->results[0].type;
    bool joins = node->op == KILN_OP_concat, carried = false, piece = false;
    if (kiln_op_has(node->op, KILN_TRAIT_VIEW))
        return true;
    if (!joins && node->op != KILN_OP_slice && node->op != KILN_OP_split)
        return false;
    const KilnType *whole = joins ? to : from, *part = joins ? from : to;
    for (uint32_t k = 0; k < merger->vendor->n_layouts; k++) {
        if (!is_carried(merger, merge, k))
            continue;
        carried = true;
        piece |= is_piece(whole, part, merger->vendor->layout_tag(k, whole->rank));
    }
    return carried ? piece : is_piece(whole, part, NULL);
}

/* What operators between cost in custom_ops and may not outside: there element-wise ones compute on
 * the way out of others, and views move nothing. Here each reads and writes memory. */
static double
apart_us(const Merger *merger, const KilnMerge *merge)
{
    double us = 0;
    for (guint i = 0; i < merge->between->len; i++) {
        const KilnNode *node = g_ptr_array_index(merge->between, i);
        bool elementwise = kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE);
        if (merge->custom[i] && may_be_view(merger, merge, node))
            us += kiln_reorder_us(merger->costs.target, &node->results[0].type);
        for (uint32_t k = 0; k < node->n_operands; k++) {
            const KilnValue *value = node->operands[k].value;
            if (value && is_between(merge, value->def) &&
                (elementwise || kiln_op_has(value->def->op, KILN_TRAIT_ELEMENTWISE)))
                us += kiln_reorder_us(merger->costs.target, &value->type);
        }
    }
    return us;
}

static double
gain_us(const Merger *merger, const KilnMerge *merge)
{
    return merger->vendor->call_us - layout_loss_us(merger, merge) - apart_us(merger, merge);
}

/* --- the census --- */

typedef struct {
    uint32_t regions, customs;
    uint32_t outside[KILN_OP_END], inside[KILN_OP_END]; /* of regions; in custom_ops */
} Census;

static void
count_customs(const KilnFunction *body, Census *census)
{
    kiln_foreach_node (node, body) {
        if (node->op != KILN_OP_custom_op)
            continue;
        census->customs++;
        kiln_foreach_node (inner, kiln_attrs(node, custom_op)->body)
            census->inside[inner->op]++;
    }
}

static Census
take_census(const KilnFunction *function)
{
    Census census = { .regions = 0 };
    kiln_foreach_node (node, function) {
        if (node->op != KILN_OP_vendor_graph) {
            census.outside[node->op]++;
            continue;
        }
        census.regions++;
        count_customs(kiln_attrs(node, vendor_graph)->body, &census);
    }
    return census;
}

/* --- merging --- */

/* Outside they are free; inside each is a copy, and a reorder in front of it. */
static bool
has_more_than_views(const KilnMerge *merge)
{
    for (guint i = 0; i < merge->between->len; i++) {
        const KilnNode *node = g_ptr_array_index(merge->between, i);
        if (merge->custom[i] && !kiln_op_has(node->op, KILN_TRAIT_VIEW))
            return true;
    }
    return false;
}

static bool
may_merge(const Merger *merger, const KilnMerge *merge, double gain)
{
    KilnPassContext *context = merger->context;
    uint32_t size = region_size(merge->first) + region_size(merge->last) + merge->between->len;
    uint32_t n = kiln_merge_customs(merge);
    PASS_GUARD(lacks_something, n > 0);
    PASS_GUARD(more_than_views, n == 0 || has_more_than_views(merge));
    PASS_GUARD(small_enough, size <= merger->options->max_nodes);
    PASS_GUARD(few_customs, merger->n_customs + n <= merger->options->max_customs);
    PASS_GUARD(gains,
               g_str_equal(merger->options->when, "always") || gain >= merger->options->min_us);
    return true;
}

static bool
goes_inside(const Merger *merger, const KilnMerge *merge)
{
    KilnPassContext *context = merger->context;
    PASS_GUARD(kernels_in_steps, assign(merger, merge));
    return true;
}

static char *
list_customs(const KilnMerge *merge)
{
    GString *list = g_string_new(NULL);
    for (guint i = 0; i < merge->between->len; i++) {
        if (merge->custom[i])
            g_string_append_printf(
                list, "%s%s", list->len ? ", " : "",
                kiln_op_info(((KilnNode *)g_ptr_array_index(merge->between, i))->op)->name);
    }
    return g_string_free(list, FALSE);
}

/* What became of @last and the nearest region in front of it; NULL where it stays, or failed. */
static KilnNode *
merge_into(Merger *merger, KilnNode *last, bool *good)
{
    g_autoptr(GPtrArray) between = g_ptr_array_new();
    KilnMerge merge = { .between = between };
    if (!find_merge(last, &merge))
        return NULL;
    g_autofree bool *custom = g_new0(bool, between->len + 1);
    merge.custom = custom;
    if (!goes_inside(merger, &merge))
        return NULL;
    double gain = gain_us(merger, &merge);
    if (!may_merge(merger, &merge, gain))
        return NULL;
    g_autofree char *operators = list_customs(&merge);
    uint32_t n = kiln_merge_customs(&merge);
    kiln_pass_note(merger->context, rule, "@%s and @%s through %u custom_op%s: %s; gains %.1f us",
                   kiln_attrs(merge.first, vendor_graph)->callee,
                   kiln_attrs(last, vendor_graph)->callee, n, n == 1 ? "" : "s", operators, gain);
    KilnNode *merged = kiln_merge_make(&merge, &merger->number, merger->error);
    merger->n_customs += n;
    merger->changed = true;
    *good = merged != NULL;
    return merged;
}

static void
print_counts(const uint32_t *counts, GString *out)
{
    const char *separator = " ";
    for (uint32_t op = 0; op < KILN_OP_END; op++) {
        if (!counts[op] || op == KILN_OP_const || op == KILN_OP_return)
            continue;
        g_string_append_printf(out, "%s%u %s", separator, counts[op], kiln_op_info(op)->name);
        separator = ", ";
    }
    if (*separator == ' ')
        g_string_append(out, " nothing");
}

static void
report(const Merger *merger)
{
    Census census = take_census(merger->function);
    if (!census.regions)
        return;
    g_autoptr(GString) line = g_string_new(NULL);
    g_string_printf(line, "%u regions; outside:", census.regions);
    print_counts(census.outside, line);
    g_string_append_printf(line, "; in %u custom_ops:", census.customs);
    print_counts(census.inside, line);
    kiln_pass_remark(merger->context, "census", "%s", line->str);
}

GRAPH_PASS(merge_offload);

gboolean
kiln_pass_merge_offload(KilnFunction *function, KilnPassContext *context, bool *changed,
                        GError **error)
{
    const KilnTarget *target = kiln_pass_target(context);
    *changed = false;
    if (!target || !target->vendor || !target->vendor->takes_custom ||
        kiln_function_is_offloaded(function))
        return TRUE;
    Merger merger = { .function = function,
                      .context = context,
                      .options = kiln_pass_options(context),
                      .vendor = target->vendor,
                      .costs = { target, target->vendor, !kiln_pass_one_algorithm(context) },
                      .n_customs = take_census(function).customs,
                      .number = kiln_offload_next_number(function->module, KILN_OP_custom_op, 'c'),
                      .error = error };
    g_autoptr(GPtrArray) regions = g_ptr_array_new();
    kiln_foreach_node (node, function) {
        if (is_region(node))
            g_ptr_array_add(regions, node);
    }
    bool good = true;
    kiln_function_stand_at_hints(function);
    for (guint i = 0; good && i < regions->len; i++) {
        KilnNode *last = g_ptr_array_index(regions, i);
        while (last && good)
            last = merge_into(&merger, last, &good);
    }
    kiln_function_leave_hints(function);
    report(&merger);
    *changed = merger.changed;
    return good;
}
