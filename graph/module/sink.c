/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/module/sink.h"

#include "graph/function.h"
#include "graph/module/define.h"
#include "graph/module/flow.h"
#include "graph/module/flow_types.h"
#include "graph/module/outline.h"
#include "graph/node.h"
#include "graph/op/flow.h"

enum {
    MOST_NESTED = 6 /* each level doubles the copies */
};

typedef struct {
    KilnSinkSettle settle;
    void *data;
} Sink;

static void
branches_of(const KilnNode *owner, KilnFunction *out[2])
{
    out[0] = kiln_attrs(owner, if)->then_branch;
    out[1] = kiln_attrs(owner, if)->else_branch;
}

bool
kiln_if_hides_rank(const KilnValue *value)
{
    const KilnNode *owner = value->def;
    KilnFunction *branches[2];
    if (!owner || owner->op != KILN_OP_if)
        return false;
    if (value->type.rank != 1 || !kiln_flow_is_listed(owner, kiln_type_dim_name(&value->type, 0)))
        return value->type.rank < 0;
    branches_of(owner, branches);
    bool known = false; /* a shape, not data */
    for (int b = 0; b < 2; b++)
        known |= kiln_function_return(branches[b])->operands[value->index].value->known != NULL;
    return known;
}

/* --- what lies between --- */

/* The node of @function that @node is, or is in a subgraph of; NULL for one of a copy that was
 * given up. */
static KilnNode *
node_in(const KilnFunction *function, KilnNode *node)
{
    while (node && node->function != function)
        node = node->function->owner;
    return node;
}

static bool
reads_any(const KilnNode *node, GHashTable *makers)
{
    g_autoptr(GPtrArray) values = g_ptr_array_new();
    bool reads = false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value)
            g_ptr_array_add(values, node->operands[i].value);
    }
    kiln_node_add_captures(node, values);
    for (guint i = 0; i < values->len; i++) {
        const KilnNode *maker = ((const KilnValue *)g_ptr_array_index(values, i))->def;
        reads |= maker && g_hash_table_contains(makers, maker);
    }
    return reads;
}

static bool
is_read_by(const KilnNode *node, GHashTable *readers)
{
    for (uint32_t r = 0; r < node->n_results; r++) {
        kiln_foreach_use (use, &node->results[r]) {
            if (g_hash_table_contains(readers, node_in(node->function, use->user)))
                return true;
        }
    }
    return false;
}

/* The nodes between @owner and @node that are computed from @owner, in order: those that @node is
 * computed from in @needed, the others in @rest. */
static void
find_between(KilnNode *owner, KilnNode *node, GPtrArray *needed, GPtrArray *rest)
{
    g_autoptr(GHashTable) makers = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) readers = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    g_hash_table_add(makers, owner);
    g_hash_table_add(readers, node);
    for (KilnNode *at = owner->next; at != node; at = at->next) {
        if (reads_any(at, makers) && g_hash_table_add(makers, at))
            g_ptr_array_add(all, at);
    }
    for (guint i = all->len; i-- > 0;) {
        KilnNode *at = g_ptr_array_index(all, i);
        if (is_read_by(at, readers))
            g_hash_table_add(readers, at);
    }
    for (guint i = 0; i < all->len; i++) {
        KilnNode *at = g_ptr_array_index(all, i);
        g_ptr_array_add(g_hash_table_contains(readers, at) ? needed : rest, at);
    }
}

/* --- one node --- */

/* @branch refuses to run, and has as many results more as @node has. */
static gboolean
refuse(KilnFunction *branch, const KilnNode *node, const char *reason, uint32_t n_before,
       GError **error)
{
    const KilnNode *results = kiln_function_return(branch);
    g_autofree KilnType *types = g_new0(KilnType, (gsize)n_before + node->n_results);
    g_autofree char *text = g_strdup(reason); /* which goes with the branch */
    for (uint32_t r = 0; r < n_before; r++)
        types[r] = kiln_type_unranked(results->operands[r].value->type.dtype);
    for (uint32_t r = 0; r < node->n_results; r++)
        types[n_before + r] = kiln_type_unranked(node->results[r].type.dtype);
    return kiln_region_refuse(branch, types, n_before + node->n_results, text, error);
}

/* The results of @branch, those of @copy behind them. */
static gboolean
add_results(KilnFunction *branch, KilnNode *copy, GError **error)
{
    const KilnNode *results = kiln_function_return(branch);
    uint32_t n = results->n_operands;
    g_autofree KilnValue **values = g_new0(KilnValue *, (gsize)n + copy->n_results);
    g_autofree const char **names = g_new0(const char *, (gsize)n + copy->n_results);
    for (uint32_t r = 0; r < n; r++) {
        values[r] = results->operands[r].value;
        names[r] = g_ptr_array_index(branch->result_names, r);
    }
    for (uint32_t r = 0; r < copy->n_results; r++)
        values[n + r] = &copy->results[r];
    return kiln_function_set_results(branch, values, names, n + copy->n_results, error);
}

/* Names of dims that @node and its subgraphs define are of the original. */
static void
forget_names(KilnNode *node)
{
    KilnStrings *dims = kiln_node_item_dims(node);
    (void)kiln_node_forget_count(node);
    if (dims)
        *dims = (KilnStrings){ 0 };
    kiln_foreach_region (region, node) {
        kiln_foreach_node (inner, region)
            forget_names(inner);
    }
}

static gboolean
copy_into(const KilnNode *owner, KilnFunction *branch, const KilnNode *node, const Sink *sink,
          GError **error)
{
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    g_autoptr(GError) why = NULL;
    const char *refusal = kiln_region_refusal(branch);
    if (refusal)
        return refuse(branch, node, refusal, owner->n_results, error);
    for (uint32_t r = 0; r < owner->n_results; r++)
        g_hash_table_insert(values, (gpointer)&owner->results[r],
                            kiln_function_return(branch)->operands[r].value);
    KilnNode *copy = kiln_node_copy(branch, node, values, NULL, NULL, &why);
    if (copy && !add_results(branch, copy, error))
        return FALSE;
    if (copy)
        forget_names(copy);
    if (copy && sink->settle(copy, node, sink->data, &why))
        return TRUE;
    if (kiln_error_is_mismatch(why))
        return refuse(branch, node, why->message, owner->n_results, error);
    kiln_region_prefix_error(&why, owner, branch);
    g_propagate_error(error, g_steal_pointer(&why));
    return FALSE;
}

/* True where others than @node read result @r of @owner. */
static bool
is_kept(const KilnNode *owner, uint32_t r, const KilnNode *node)
{
    kiln_foreach_use (use, &owner->results[r]) {
        const KilnNode *reader = node_in(owner->function, use->user);
        if (reader && reader != node)
            return true;
    }
    return false;
}

/* @branch returns results with a mark in @kept, and those from @n_before on. */
static gboolean
keep_results(KilnFunction *branch, const bool *kept, uint32_t n_before, GError **error)
{
    const KilnNode *results = kiln_function_return(branch);
    g_autofree KilnValue **values = g_new0(KilnValue *, (gsize)results->n_operands + 1);
    g_autofree const char **names = g_new0(const char *, (gsize)results->n_operands + 1);
    uint32_t n = 0;
    for (uint32_t r = 0; r < results->n_operands; r++) {
        if (r < n_before && !kept[r])
            continue;
        values[n] = results->operands[r].value;
        names[n++] = g_ptr_array_index(branch->result_names, r);
    }
    return kiln_function_set_results(branch, values, names, n, error);
}

/* Readers of the results of @from, from result @first on, read those of @to in order. */
static void
hand_over(KilnNode *from, const bool *kept, KilnNode *to, uint32_t first)
{
    for (uint32_t r = 0; r < from->n_results; r++) {
        if (kept && !kept[r])
            continue;
        from->results[r].type = to->results[first].type;
        kiln_value_replace(&from->results[r], &to->results[first++]);
    }
    kiln_node_remove(from);
}

/* An `if` before @before in place of @owner and @node, whose branches have both. */
static KilnNode *
remake(KilnNode *owner, KilnNode *node, KilnNode *before, GError **error)
{
    const uint32_t n = owner->n_results;
    g_autofree bool *kept = g_new0(bool, n + 1);
    g_autofree KilnType *types = g_new0(KilnType, (gsize)n + node->n_results);
    g_autofree const char **names = g_new0(const char *, (gsize)n + node->n_results);
    KilnValue *condition = owner->operands[0].value;
    KilnFunction *branches[2];
    KilnNodeSpec spec = { .op = KILN_OP_if,
                          .name = owner->name,
                          .operands = &condition,
                          .n_operands = 1,
                          .attrs = owner->attrs,
                          .types = types,
                          .result_names = names,
                          .before = before };
    for (uint32_t r = 0; r < n; r++) {
        kept[r] = is_kept(owner, r, node);
        if (!kept[r])
            continue;
        types[spec.n_results] = owner->results[r].type;
        names[spec.n_results++] = owner->results[r].name;
    }
    const uint32_t n_kept = spec.n_results;
    for (uint32_t r = 0; r < node->n_results; r++) {
        const KilnType *type = &node->results[r].type;
        types[spec.n_results] = type->contents ? *type : kiln_type_unranked(type->dtype);
        names[spec.n_results++] = node->results[r].name;
    }
    branches_of(owner, branches);
    if (!keep_results(branches[0], kept, n, error) || !keep_results(branches[1], kept, n, error))
        return NULL;
    KilnNode *made = kiln_node_new(owner->function, &spec, error);
    if (!made)
        return NULL;
    hand_over(node, NULL, made, n_kept); /* names of dims follow from names of values */
    hand_over(owner, kept, made, 0);
    return kiln_if_settle_from(made, n_kept, error) ? made : NULL;
}

static gboolean
check_branches(const KilnNode *owner, const KilnFunction *const branches[2], GError **error)
{
    if (!kiln_region_refusal(branches[0]) || !kiln_region_refusal(branches[1]))
        return TRUE;
    return kiln_throw(error, KILN_ERROR_SHAPE, "%s (if): neither branch can run: %s; %s",
                      kiln_node_label(owner), kiln_region_refusal(branches[0]),
                      kiln_region_refusal(branches[1]));
}

static KilnNode *
sink_one(KilnNode *owner, KilnNode *node, KilnNode *before, const Sink *sink, GError **error)
{
    KilnFunction *branches[2];
    branches_of(owner, branches);
    for (int b = 0; b < 2; b++) {
        if (!copy_into(owner, branches[b], node, sink, error))
            return NULL;
    }
    return check_branches(owner, (const KilnFunction *const *)branches, error)
               ? remake(owner, node, before, error)
               : NULL;
}

static gboolean
check_depth(const KilnNode *owner, GError **error)
{
    int depth = 0;
    for (const KilnNode *at = owner; at; at = at->function->owner)
        depth += at->op == KILN_OP_if;
    return depth <= MOST_NESTED ||
           kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                      "%s (if): expected at most %d branches in each other that give values of "
                      "different ranks, found more",
                      kiln_node_label(owner), MOST_NESTED);
}

KilnNode *
kiln_if_sink(KilnNode *owner, KilnNode *node, KilnSinkSettle settle, void *data, GError **error)
{
    const Sink sink = { settle, data };
    KilnNode *before = node->next;
    g_autoptr(GPtrArray) needed = g_ptr_array_new();
    g_autoptr(GPtrArray) rest = g_ptr_array_new();
    if (!check_depth(owner, error))
        return NULL;
    find_between(owner, node, needed, rest);
    g_ptr_array_add(needed, node);
    for (guint i = 0; i < needed->len; i++) {
        owner = sink_one(owner, g_ptr_array_index(needed, i), before, &sink, error);
        if (!owner)
            return NULL;
    }
    for (guint i = 0; i < rest->len; i++)
        kiln_node_move(g_ptr_array_index(rest, i), before);
    for (guint i = 0; i < rest->len; i++) { /* names of dims are others now */
        KilnNode *at = g_ptr_array_index(rest, i);
        if (kiln_node_is_linked(at) && !settle(at, at, data, error))
            return NULL;
    }
    return owner;
}
