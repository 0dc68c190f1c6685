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
 * An anchor opens a region, and every region stays open to the end. What reads a value of one joins
 * it where the vendor has it: an element-wise tail that is the only reader of a product, or, among
 * operators that want a layout of their own (convolutions, pools), anything that spares the values
 * between them a reorder. Branches that meet again become one region there:
 *
 *           x                    x                      rank 0
 *         /   \                /   \
 *     conv     conv    =>   ┌conv   conv┐               regions of rank 1 and 2 until concat reads
 *         \   /             │   \   /  │               both: then one of rank 1
 *         concat            └──concat───┘
 *           |                    |
 *          sin                  sin                     rank 1: behind that region
 *
 * Ranks are an order of the regions and of what stands between them: everything reads less than its
 * own rank, or from the same rank outside of regions, or from its own region. So no path leaves a
 * region and comes back, and no two regions read each other. A node joins the region of its
 * operands' with the greatest rank where all else that it reads has less. Where it has not, but
 * nothing outside has read the region yet, that gets a rank behind all others: the product whose
 * residual comes from a later region. Two regions become one of the lower rank where the higher one
 * reads nothing from there on, or of the higher one where nothing outside has read the lower. Each
 * node is looked at once, and a merge moves the smaller region into the bigger one.
 *
 * Only what takes less time there by the cost models is the vendor's at all
 * (passes/offload/offload_cost.h), and a region is kept where it pays as a whole: own kernels take
 * longer than the vendor's, its call, and the reorders at its edges
 * (passes/offload/offload_outline.h). What need not move for a region stays where it was.
 *
 * Bodies of branches and loops are functions of their own here: what they read from around them has
 * rank 0, and stands in front of all of theirs.
 *
 * Open dims count as at their hints. The vendor generates code anew for all numbers of a region
 * with open dims, so such a region has to make up for its code within open-runs runs. */
#include "graph/module/folding.h"
#include "graph/dim/dim_defined.h"
#include "graph/module/hints.h"
#include "graph/module/outline.h"
#include "graph/op/cast.h"
#include "graph/op/matmul.h"
#include "graph/op/offload.h"
#include "graph/type.h"
#include "ir/vendor.h"
#include "passes/offload/offload_cost.h"
#include "passes/offload/offload_outline.h"
#include "passes/pass.h"

#define OPTIONS(OPTION, CHOICE)                                                                    \
    CHOICE(policy, "fused", "fused|single")                                                        \
    CHOICE(when, "pays", "pays|always")                                                            \
    OPTION(INT, max_nodes, 512)                                                                    \
    OPTION(FLOAT, min_us, 5.0)                                                                     \
    OPTION(INT, open_runs, 256)
PASS_OPTIONS(partition_offload, OPTIONS);

static const char rule[] = "outline";

typedef struct {
    uint32_t rank;
    uint32_t floor;       /* the greatest rank that it reads */
    bool is_read;         /* outside */
    bool has_layout;      /* an anchor in it wants a layout of its own */
    bool kept;            /* it pays */
    const KilnNode *seen; /* the last node that was found to read it */
    GPtrArray *members;   /* KilnNode*, NULL: they went into another region */
} Region;

typedef struct {
    KilnFunction *function;
    KilnPassContext *context;
    const Options *options;
    const KilnVendor *vendor;
    KilnOffloadCosts costs;
    bool weighs;            /* by what both take */
    KilnVendorRole *roles;  /* by node id */
    bool *layouted;         /* by node id: computed in the vendor's layout */
    const KilnNode **tails; /* by node id: the product that each is a tail of */
    Region **region;        /* by node id; NULL: in none */
    uint32_t *rank;         /* by node id: of what is in no region */
    uint32_t *place;        /* by node id: among the nodes */
    GPtrArray *nodes;       /* KilnNode*, all, as they were */
    GPtrArray *regions;     /* Region*, owned */
    GPtrArray *near;    /* Region* whose values the node in hand reads, by rank, greatest first */
    uint32_t near_rank; /* the greatest rank that it reads outside of regions */
    uint32_t last_rank;
    uint32_t fence; /* the last rank that a loop or a branch may read from inside */
} Partition;

/* --- ranks --- */

static Region *
region_of(const Partition *partition, const KilnValue *value)
{
    const KilnNode *def = value ? value->def : NULL;
    return def && def->function == partition->function ? partition->region[def->id] : NULL;
}

static uint32_t
rank_of(const Partition *partition, const KilnValue *value)
{
    const KilnNode *def = value ? value->def : NULL;
    if (!def || def->function != partition->function)
        return 0;
    const Region *region = partition->region[def->id];
    return region ? region->rank : partition->rank[def->id];
}

/* The greatest rank that the node in hand reads beside @a and @b, which may be NULL. The ranks of
 * the others are what they were when it was looked at; those that went into @a or @b, at most as
 * many as a region may have nodes, stand in front of them. */
static uint32_t
rank_beside(const Partition *partition, const Region *a, const Region *b)
{
    for (guint i = 0; i < partition->near->len; i++) {
        const Region *region = g_ptr_array_index(partition->near, i);
        if (region->members && region != a && region != b)
            return MAX(region->rank, partition->near_rank);
    }
    return partition->near_rank;
}

static bool
is_movable(const Partition *partition, const Region *region)
{
    return !region->is_read && region->rank > partition->fence;
}

static int
by_rank(gconstpointer a, gconstpointer b)
{
    const Region *left = *(Region *const *)a, *right = *(Region *const *)b;
    return (left->rank < right->rank) - (left->rank > right->rank);
}

static void
find_near(Partition *partition, const KilnNode *node)
{
    GPtrArray *near = partition->near;
    g_ptr_array_set_size(near, 0);
    partition->near_rank = 0;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        Region *region = region_of(partition, value);
        if (!region)
            partition->near_rank = MAX(partition->near_rank, rank_of(partition, value));
        else if (region->seen != node)
            g_ptr_array_add(near, region);
        if (region)
            region->seen = node;
    }
    g_ptr_array_sort(near, by_rank);
}

/* --- what joins --- */

/* Data may decide another number in each run, and the vendor generates code for each. */
static bool
hangs_on_data(const KilnType *type)
{
    bool hangs = false;
    for (int d = 0; d < type->rank; d++)
        hangs |= kiln_dim_hangs_on_data(type->open[d]);
    return hangs;
}

/* Open dims have the numbers of their hints here: what is no expression either has none. */
static bool
reads_unknown_dims(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && (!kiln_type_is_static(&value->type) || hangs_on_data(&value->type)))
            return true;
    }
    return false;
}

static bool
has_open_result(const KilnNode *node)
{
    bool open = false;
    for (uint32_t r = 0; r < node->n_results; r++)
        open |= kiln_type_is_open(&node->results[r].type);
    return open;
}

static KilnVendorRole
role_of(const Partition *partition, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (!kiln_type_is_static(&node->results[i].type) || node->results[i].type.quant ||
            node->results[i].type.layout || node->results[i].known ||
            hangs_on_data(&node->results[i].type))
            return KILN_VENDOR_NONE;
    }
    bool plain = node->n_results > 0 && !kiln_op_has(node->op, KILN_TRAIT_REGION) &&
                 !reads_unknown_dims(node);
    return plain ? partition->vendor->role(node) : KILN_VENDOR_NONE;
}

/* A result of @region that only this node reads: computed before it is stored. */
static bool
is_only_reader(const Partition *partition, const KilnNode *node, const Region *region)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (region_of(partition, value) == region && value->n_uses == 1)
            return true;
    }
    return false;
}

static bool
shares_layout(const Region *region, const KilnNode *node)
{
    return region->has_layout && node->results[0].type.rank >= 3;
}

static bool
joins(const Partition *partition, const KilnNode *node, const Region *region)
{
    KilnPassContext *context = partition->context;
    PASS_GUARD(fused, !g_str_equal(partition->options->policy, "single"));
    PASS_GUARD(small_enough, region->members->len < (guint)partition->options->max_nodes);
    PASS_GUARD(convex, rank_beside(partition, region, NULL) < region->rank ||
                           is_movable(partition, region));
    bool layout = shares_layout(region, node);
    switch (partition->roles[node->id]) {
    case KILN_VENDOR_TAIL:
        return layout || is_only_reader(partition, node, region);
    case KILN_VENDOR_ANCHOR:
        return layout && partition->vendor->wants_layout(node);
    default:
        return layout;
    }
}

static bool
fits(const Partition *partition, const Region *a, const Region *b)
{
    KilnPassContext *context = partition->context;
    PASS_GUARD(small_together,
               a->members->len + b->members->len < (guint)partition->options->max_nodes);
    return true;
}

/* The rank of what @high and @low become with the node in hand; 0 where a path leaves them and
 * comes back. */
static uint32_t
common_rank(const Partition *partition, const Region *high, const Region *low)
{
    uint32_t rest = MAX(high->floor, rank_beside(partition, high, low));
    if (rest < low->rank)
        return low->rank;
    return is_movable(partition, low) ? high->rank : 0;
}

static bool
meets(const Partition *partition, const Region *high, const Region *low)
{
    KilnPassContext *context = partition->context;
    PASS_GUARD(convex_together, common_rank(partition, high, low) != 0);
    return true;
}

/* All of @from goes into @into, in the order of the nodes. */
static void
merge(Partition *partition, Region *into, Region *from, uint32_t rank)
{
    into->rank = rank;
    into->floor = MAX(into->floor, from->floor);
    into->is_read |= from->is_read;
    into->has_layout |= from->has_layout;
    for (guint m = 0; m < from->members->len; m++) {
        KilnNode *member = g_ptr_array_index(from->members, m);
        partition->region[member->id] = into;
        g_ptr_array_add(into->members, member);
    }
    g_clear_pointer(&from->members, g_ptr_array_unref);
}

/* What @node reads of other regions in the layout of @region, which it joins, is computed there. */
static Region *
gather(Partition *partition, const KilnNode *node, Region *region)
{
    for (guint i = 0; shares_layout(region, node) && i < partition->near->len; i++) {
        Region *other = g_ptr_array_index(partition->near, i);
        if (other == region || !other->members || !other->has_layout ||
            !fits(partition, region, other) || !meets(partition, region, other))
            continue;
        uint32_t rank = common_rank(partition, region, other);
        bool smaller = region->members->len < other->members->len;
        Region *into = smaller ? other : region;
        merge(partition, into, smaller ? region : other, rank);
        region = into;
    }
    return region;
}

/* The region that @node joins, of those whose values it reads; NULL: none. */
static Region *
find_region(Partition *partition, const KilnNode *node)
{
    for (guint i = 0; i < partition->near->len; i++) {
        Region *region = g_ptr_array_index(partition->near, i);
        if (!joins(partition, node, region))
            continue;
        if (rank_beside(partition, region, NULL) >= region->rank)
            region->rank = ++partition->last_rank;
        return gather(partition, node, region);
    }
    return NULL;
}

static Region *
open_region(Partition *partition)
{
    Region *region = g_new0(Region, 1);
    region->rank = ++partition->last_rank;
    region->members = g_ptr_array_new();
    g_ptr_array_add(partition->regions, region);
    return region;
}

static void
visit(Partition *partition, KilnNode *node)
{
    KilnVendorRole role = partition->roles[node->id];
    find_near(partition, node);
    Region *region = role != KILN_VENDOR_NONE ? find_region(partition, node) : NULL;
    if (!region && role == KILN_VENDOR_ANCHOR)
        region = open_region(partition);
    for (guint i = 0; i < partition->near->len; i++) {
        Region *other = g_ptr_array_index(partition->near, i);
        other->is_read |= other != region;
    }
    uint32_t rank = rank_beside(partition, region, NULL);
    if (region) {
        region->floor = MAX(region->floor, rank);
        region->has_layout |= role == KILN_VENDOR_ANCHOR && partition->vendor->wants_layout(node);
        partition->region[node->id] = region;
        g_ptr_array_add(region->members, node);
    } else if (kiln_op_has(node->op, KILN_TRAIT_REGION)) {
        /* Its bodies may read what no operand says. */
        partition->rank[node->id] = partition->fence = partition->last_rank;
    } else {
        partition->rank[node->id] = rank;
    }
}

/* --- what pays --- */

static bool
read_outside(const Partition *partition, const Region *region, const KilnValue *value)
{
    kiln_foreach_use (use, value) {
        if (use->user->function != partition->function ||
            partition->region[use->user->id] != region)
            return true;
    }
    return false;
}

static bool
is_fused(const Partition *partition, const Region *region, const KilnNode *node)
{
    const KilnNode *product = partition->tails[node->id];
    return product && partition->region[product->id] == region;
}

/* What the vendor takes for all of it in a layout, edges included. */
static double
vendor_us(const Partition *partition, const Region *region, uint32_t layout)
{
    const KilnVendor *vendor = partition->vendor;
    double us = vendor->call_us;
    g_autoptr(GHashTable) entered = g_hash_table_new(NULL, NULL);
    for (guint m = 0; m < region->members->len; m++) {
        const KilnNode *node = g_ptr_array_index(region->members, m);
        us += vendor->node_us(node, layout);
        if (!partition->layouted[node->id])
            continue;
        for (uint32_t i = 0; i < node->n_operands; i++) {
            KilnValue *value = node->operands[i].value;
            if (value && region_of(partition, value) != region && !kiln_value_constant(value) &&
                g_hash_table_add(entered, value))
                us += vendor->reorder_us(&value->type, layout);
        }
        if (read_outside(partition, region, &node->results[0]))
            us += vendor->reorder_us(&node->results[0].type, layout);
    }
    return us;
}

/* By how much the vendor must be faster: what no model sees decides below, and its code takes a
 * millisecond and more, and memory, to generate. */
static const double margin = 0.93, gain_us = 4;

/* What generating the code of @region takes each time that the numbers of its dims are new. */
static double
code_us(const Partition *partition, const Region *region)
{
    const KilnVendor *vendor = partition->vendor;
    bool open = false;
    uint32_t anchors = 0;
    for (guint m = 0; m < region->members->len; m++) {
        const KilnNode *node = g_ptr_array_index(region->members, m);
        open |= has_open_result(node);
        anchors += partition->roles[node->id] == KILN_VENDOR_ANCHOR;
    }
    return open ? anchors * vendor->code_us : 0;
}

static bool
is_worth_it(const Partition *partition, const Region *region)
{
    KilnPassContext *context = partition->context;
    const double runs = (double)partition->options->open_runs;
    double own = 0, vendor = G_MAXDOUBLE;
    for (guint m = 0; m < region->members->len; m++) {
        const KilnNode *node = g_ptr_array_index(region->members, m);
        own += kiln_own_us(&partition->costs, node, is_fused(partition, region, node));
    }
    for (uint32_t layout = 0; layout < partition->vendor->n_layouts; layout++)
        vendor = MIN(vendor, vendor_us(partition, region, layout));
    PASS_GUARD(big_enough, own >= partition->options->min_us);
    PASS_GUARD(pays, !partition->weighs || MIN(margin * own, own - gain_us) > vendor);
    double code = partition->weighs ? code_us(partition, region) : 0;
    PASS_GUARD(pays_for_code, code == 0 || (own - vendor) * runs >= code);
    return true;
}

/* --- the order --- */

/* What stands where: by rank, a region in front of the rest of its rank, and that as it stood. */
typedef struct {
    uint32_t rank, place;
    Region *region; /* NULL: a node by itself */
} Entry;

static int
by_order(gconstpointer a, gconstpointer b)
{
    const Entry *left = a, *right = b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    if (!left->region != !right->region)
        return left->region ? -1 : 1;
    return (left->place > right->place) - (left->place < right->place);
}

static Region *
kept_region(const Partition *partition, const KilnNode *node)
{
    Region *region = partition->region[node->id];
    return region && region->kept ? region : NULL;
}

/* The node of the function that @user is, or in whose bodies it is. */
static const KilnNode *
outer_node(const Partition *partition, const KilnNode *user)
{
    while (user->function != partition->function)
        user = user->function->owner;
    return user;
}

/* The greatest rank at which each node may stand: in front of the regions that read it. */
static uint32_t *
find_latest(const Partition *partition)
{
    uint32_t *latest = g_new(uint32_t, partition->nodes->len);
    for (guint n = partition->nodes->len; n-- > 0;) {
        const KilnNode *node = g_ptr_array_index(partition->nodes, n);
        latest[n] = UINT32_MAX;
        for (uint32_t r = 0; r < node->n_results; r++) {
            kiln_foreach_use (use, &node->results[r]) {
                const KilnNode *user = outer_node(partition, use->user);
                const Region *region = kept_region(partition, user);
                uint32_t most = region ? region->rank - 1 : latest[partition->place[user->id]];
                latest[n] = MIN(latest[n], most);
            }
        }
    }
    return latest;
}

/* Nodes and regions as they are to stand. A node stays behind what it stood behind where it may. */
static GArray *
find_order(const Partition *partition)
{
    GArray *order = g_array_new(FALSE, FALSE, sizeof(Entry));
    g_autofree uint32_t *latest = find_latest(partition);
    uint32_t reached = 0;
    for (guint n = 0; n < partition->nodes->len; n++) {
        const KilnNode *node = g_ptr_array_index(partition->nodes, n);
        Region *in = partition->region[node->id], *region = kept_region(partition, node);
        Entry entry = { .place = n, .region = region };
        if (region && g_ptr_array_index(region->members, region->members->len - 1) != node)
            continue;
        reached = MAX(reached, in ? in->rank : partition->rank[node->id]);
        entry.rank = region ? region->rank : MIN(reached, latest[n]);
        g_array_append_val(order, entry);
    }
    g_array_sort(order, by_order);
    return order;
}

static bool
outline(Partition *partition, const Region *region, uint32_t number, GError **error)
{
    const KilnNode *first = g_ptr_array_index(region->members, 0);
    g_autofree char *name = g_strdup_printf("r%u", number);
    kiln_pass_note(partition->context, rule, "@%s: %u nodes, from %s", name, region->members->len,
                   kiln_node_label(first));
    return kiln_offload_outline(partition->function, region->members, name, error) != NULL;
}

/* All nodes anew, one behind the other, with regions in place of their members. */
static bool
outline_all(Partition *partition, GError **error)
{
    g_autoptr(GArray) order = find_order(partition);
    KilnNode *last = partition->function->last;
    KilnNode *end = last && last->op == KILN_OP_return ? last : NULL;
    /* The module may have been partitioned in part. */
    uint32_t number =
        kiln_offload_next_number(partition->function->module, KILN_OP_vendor_graph, 'r');
    for (guint i = 0; i < order->len; i++) {
        const Entry *entry = &g_array_index(order, Entry, i);
        KilnNode *node = g_ptr_array_index(partition->nodes, entry->place);
        if (!entry->region)
            kiln_node_move(node, end);
        else if (!outline(partition, entry->region, number++, error))
            return false;
    }
    return true;
}

static int
by_place(gconstpointer a, gconstpointer b, gpointer place)
{
    const uint32_t *places = place;
    uint32_t left = places[(*(KilnNode *const *)a)->id],
             right = places[(*(KilnNode *const *)b)->id];
    return (left > right) - (left < right);
}

/* Decides which regions are kept: true where one is. */
static bool
keep_regions(Partition *partition)
{
    bool any = false;
    for (guint i = 0; i < partition->regions->len; i++) {
        Region *region = g_ptr_array_index(partition->regions, i);
        if (!region->members)
            continue;
        g_ptr_array_sort_with_data(region->members, by_place, partition->place);
        region->kept = is_worth_it(partition, region);
        any |= region->kept;
    }
    return any;
}

/* --- the choice --- */

static bool
is_chosen(const Partition *partition, const KilnNode *node, const bool *vendors)
{
    KilnPassContext *context = partition->context;
    PASS_GUARD(chosen, !partition->weighs || vendors[node->id]);
    return true;
}

/* A constant weight that is stored in 16 bits, as own products read it (merge-cast-into-matmul). */
static bool
reads_stored_weight(const KilnNode *node)
{
    if (node->op != KILN_OP_matmul && node->op != KILN_OP_gemm)
        return false;
    const KilnNode *cast = kiln_value_def_of(kiln_node_operand(node, 1), KILN_OP_cast);
    const KilnValue *stored = cast ? kiln_node_operand(cast, 0) : NULL;
    return stored && (kiln_value_constant(stored) || kiln_value_is_fixed(stored)) &&
           kiln_dtype_is_float(stored->type.dtype) &&
           !kiln_dtype_is_low_float(stored->type.dtype) &&
           kiln_dtype_size(stored->type.dtype) < kiln_dtype_size(cast->results[0].type.dtype);
}

/* The vendor would have the weight made wide in every run. */
static bool
may_choose(const Partition *partition, const KilnNode *node)
{
    KilnPassContext *context = partition->context;
    PASS_GUARD(wide_weight, !partition->weighs || !reads_stored_weight(node));
    return true;
}

/* Own products choose an algorithm for each number of rows, and the vendor is chosen once. */
static bool
holds_at_least(const Partition *partition, KilnNode *node)
{
    KilnPassContext *context = partition->context;
    bool asks = partition->weighs && partition->roles[node->id] == KILN_VENDOR_ANCHOR &&
                !partition->vendor->wants_layout(node) && has_open_result(node);
    PASS_GUARD(holds_at_least, !asks || kiln_offload_holds_at_least(&partition->costs, node));
    return true;
}

/* Roles of all nodes, where what both sides take does not leave them to own kernels. */
static void
find_roles(Partition *partition)
{
    const KilnFunction *function = partition->function;
    kiln_foreach_node (node, function)
        partition->roles[node->id] =
            may_choose(partition, node) ? role_of(partition, node) : KILN_VENDOR_NONE;
    kiln_foreach_node (node, function) {
        if (!holds_at_least(partition, node))
            partition->roles[node->id] = KILN_VENDOR_NONE;
    }
    g_autofree bool *vendors = kiln_offload_cut(function, partition->roles, &partition->costs);
    kiln_foreach_node (node, function) {
        KilnVendorRole *role = &partition->roles[node->id];
        if (!is_chosen(partition, node, vendors))
            *role = KILN_VENDOR_NONE;
        partition->layouted[node->id] =
            kiln_is_layouted(partition->vendor, node, *role, partition->layouted);
    }
}

static void
region_free(gpointer data)
{
    Region *region = data;
    if (region->members)
        g_ptr_array_unref(region->members);
    g_free(region);
}

static bool
partition_at_hints(Partition *partition, bool *changed, GError **error)
{
    find_roles(partition);
    kiln_foreach_node (node, partition->function) {
        partition->place[node->id] = partition->nodes->len;
        g_ptr_array_add(partition->nodes, node);
        visit(partition, node);
    }
    *changed = keep_regions(partition);
    return !*changed || outline_all(partition, error);
}

static bool
partition_function(Partition *partition, bool *changed, GError **error)
{
    kiln_function_stand_at_hints(partition->function);
    bool good = partition_at_hints(partition, changed, error);
    kiln_function_leave_hints(partition->function);
    return good;
}

/* The choice is made for a whole function at once: what it left to own kernels stays there. */
static bool
is_undivided(const KilnFunction *function, KilnPassContext *context)
{
    bool undivided = true;
    kiln_foreach_node (node, function)
        undivided &= node->op != KILN_OP_vendor_graph && node->op != KILN_OP_vendor_executable;
    PASS_GUARD(undivided, undivided);
    return true;
}

GRAPH_PASS(partition_offload);

gboolean
kiln_pass_partition_offload(KilnFunction *function, KilnPassContext *context, bool *changed,
                            GError **error)
{
    const KilnTarget *target = kiln_pass_target(context);
    *changed = false;
    /* All is left to own kernels where memory is preferred to speed: the vendor's weights and
     * workspaces are the bigger ones. */
    if (!target || !target->vendor || kiln_function_is_offloaded(function) ||
        kiln_pass_prefers_memory(context) || !is_undivided(function, context))
        return TRUE;
    const Options *options = kiln_pass_options(context);
    gsize n = (gsize)function->next_id + 1;
    Partition partition = { .function = function,
                            .context = context,
                            .options = options,
                            .vendor = target->vendor,
                            .costs = { target, target->vendor, !kiln_pass_one_algorithm(context) },
                            .weighs = !g_str_equal(options->when, "always"),
                            .roles = g_new0(KilnVendorRole, n),
                            .layouted = g_new0(bool, n),
                            .tails = kiln_find_tails(function),
                            .region = g_new0(Region *, n),
                            .rank = g_new0(uint32_t, n),
                            .place = g_new0(uint32_t, n),
                            .nodes = g_ptr_array_new(),
                            .regions = g_ptr_array_new_with_free_func(region_free),
                            .near = g_ptr_array_new() };
    bool good = partition_function(&partition, changed, error);
    g_free(partition.roles);
    g_free(partition.layouted);
    g_free(partition.tails);
    g_free(partition.region);
    g_free(partition.rank);
    g_free(partition.place);
    g_ptr_array_unref(partition.nodes);
    g_ptr_array_unref(partition.regions);
    g_ptr_array_unref(partition.near);
    return good;
}
