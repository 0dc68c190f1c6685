/* SPDX-License-Identifier: Apache-2.0 */
/* Merging products: which may stand together is decided by places in the list of nodes. Operands of
 * all must be defined before the first reader of any; then the merged product fits in between, and
 * none can depend on another. That looks at operands and readers alone, never further up the graph.
 *
 * Values whose products are merged are visited in the order of the first product that reads them.
 */
#include "passes/query/join_products.h"

#include "graph/op/concat.h"
#include "graph/op/matmul.h"
#include "graph/op/slice.h"

enum {
    ROUNDS_MAX = 8, /* of groups that differ in op or attributes, per shared value */
    BEFORE_ALL = -1,
    NODES_MAX = INT32_MAX / 4, /* more have no place numbers */
};

typedef struct {
    KilnFunction *function;
    KilnJoin join;
    KilnPassContext *context;
    const char *rule;
    GArray *places; /* int32_t by node id: twice the number in the list; odd: what was inserted */
} Joiner;

/* Products that can become one. */
typedef struct {
    GPtrArray *members;   /* KilnNode*, in list order */
    int32_t last_operand; /* places */
    const KilnNode *last; /* what defines the last operand; NULL: nothing does here */
    int32_t first_reader;
    double gain; /* bytes saved, in elements per row of what is shared or of all */
} Group;

/* --- places --- */

static int32_t
place_of_node(const Joiner *joiner, const KilnNode *node)
{
    while (node->function != joiner->function)
        node = node->function->owner;
    return g_array_index(joiner->places, int32_t, node->id);
}

/* Literals may be moved up, what a function around this one defines is there from the start. */
static int32_t
place_of_value(const Joiner *joiner, const KilnValue *value)
{
    if (!value || !value->def || value->def->op == KILN_OP_const ||
        value->def->function != joiner->function)
        return BEFORE_ALL;
    return place_of_node(joiner, value->def);
}

static int32_t
first_reader(const Joiner *joiner, const KilnNode *node)
{
    int32_t first = INT32_MAX;
    kiln_foreach_use (use, &node->results[0])
        first = MIN(first, place_of_node(joiner, use->user));
    return first;
}

static void
set_place(Joiner *joiner, const KilnNode *node, int32_t place)
{
    if (node->id >= joiner->places->len)
        g_array_set_size(joiner->places, node->id + 1);
    g_array_index(joiner->places, int32_t, node->id) = place;
}

/* --- what a product is --- */

static uint32_t
joined_operand(const Joiner *joiner)
{
    return joiner->join == KILN_JOIN_LEFT ? 0 : 1;
}

static bool
is_transposed(const KilnNode *product, uint32_t operand)
{
    if (product->op != KILN_OP_gemm)
        return false;
    return operand == 0 ? kiln_attrs(product, gemm)->transA : kiln_attrs(product, gemm)->transB;
}

/* The dim along which the other operands are joined: rows of left ones, columns of right ones. */
static int
joined_axis(const Joiner *joiner, const KilnNode *product)
{
    bool last = joiner->join == KILN_JOIN_RIGHT;
    return last != is_transposed(product, joined_operand(joiner)) ? 1 : 0;
}

static const KilnType *
joined_type(const Joiner *joiner, const KilnNode *product)
{
    return &product->operands[joined_operand(joiner)].value->type;
}

/* What a group wins by @product: elements of the shared operand that are not read again, less those
 * that taking the result apart, and joining what is not literal, reads and writes. Where columns
 * are joined and weights are literal, that is per row, and the number of rows does not matter. */
static double
gain_of(const Joiner *joiner, const KilnNode *product)
{
    const KilnValue *other = product->operands[joined_operand(joiner)].value;
    const KilnType *shared = &product->operands[1 - joined_operand(joiner)].value->type;
    int axis = joined_axis(joiner, product);
    double extent = (double)other->type.dims[axis], depth = (double)other->type.dims[1 - axis];
    double copied = kiln_value_constant(other) ? 0 : 2 * extent * depth;
    if (joiner->join == KILN_JOIN_LEFT) {
        double columns = (double)shared->dims[is_transposed(product, 1) ? 0 : 1];
        return depth * columns - 2 * extent * columns - copied;
    }
    double rows = (double)kiln_type_likely_elements(shared) / MAX(depth, 1);
    return depth - 2 * extent - (copied > 0 ? copied / rows : 0);
}

/* What is saved for the first of a group as well is not: somebody has to read the operand. */
static double
first_read(const Joiner *joiner, const KilnNode *product)
{
    const KilnType *other = joined_type(joiner, product);
    const KilnType *shared = &product->operands[1 - joined_operand(joiner)].value->type;
    double depth = (double)other->dims[1 - joined_axis(joiner, product)];
    return joiner->join == KILN_JOIN_RIGHT ? depth : (double)kiln_type_elements(shared);
}

static bool
is_plain(const KilnNode *product)
{
    for (uint32_t i = 0; i < product->n_operands; i++) {
        const KilnValue *value = product->operands[i].value;
        if (value && (value->type.quant || value->type.layout))
            return false;
    }
    return !product->results[0].type.layout;
}

/* A bias that can be joined with the columns, or that all rows share. */
static bool
bias_joins(const Joiner *joiner, const KilnNode *product)
{
    const KilnValue *bias = kiln_node_operand(product, 2);
    if (!bias)
        return true;
    const KilnType *other = joined_type(joiner, product);
    if (joiner->join == KILN_JOIN_LEFT)
        return bias->type.rank == 0 || bias->type.rank == 1;
    return bias->type.rank == 1 &&
           kiln_type_equal_dims(&bias->type, 0, other, joined_axis(joiner, product));
}

/* An operand that is itself a product with what is shared, and so perhaps a member. */
static bool
reads_another(const Joiner *joiner, const KilnNode *product)
{
    uint32_t shared = 1 - joined_operand(joiner);
    for (uint32_t i = 0; i < product->n_operands; i++) {
        const KilnNode *def = product->operands[i].value ? product->operands[i].value->def : NULL;
        if (def && def->op == product->op && i != shared &&
            def->operands[shared].value == product->operands[shared].value)
            return true;
    }
    return false;
}

static bool
can_join(const Joiner *joiner, const KilnNode *product)
{
    KilnPassContext *context = joiner->context;
    const char *rule = joiner->rule;
    const KilnValue *other = product->operands[joined_operand(joiner)].value;
    const KilnValue *shared = product->operands[1 - joined_operand(joiner)].value;
    PASS_GUARD(plain, is_plain(product));
    PASS_GUARD(matrix, other->type.rank == 2 && kiln_type_is_static(&other->type));
    PASS_GUARD(shared_matrix, joiner->join == KILN_JOIN_RIGHT
                                  ? shared->type.rank >= 1
                                  : shared->type.rank == 2 && kiln_type_is_static(&shared->type));
    PASS_GUARD(own_literal, !kiln_value_constant(other) || other->n_uses == 1);
    PASS_GUARD(bias_joins, bias_joins(joiner, product));
    PASS_GUARD(narrow, gain_of(joiner, product) > 0);
    PASS_GUARD(reads_no_other, !reads_another(joiner, product));
    return true;
}

/* --- groups --- */

static bool
is_alike(const Joiner *joiner, const KilnNode *a, const KilnNode *b)
{
    const KilnValue *bias_a = kiln_node_operand(a, 2), *bias_b = kiln_node_operand(b, 2);
    if (a->op != b->op || !bias_a != !bias_b ||
        (joiner->join == KILN_JOIN_LEFT && bias_a != bias_b))
        return false;
    if (a->op == KILN_OP_matmul)
        return true;
    const KilnAttrs_gemm *x = kiln_attrs(a, gemm), *y = kiln_attrs(b, gemm);
    return x->alpha == y->alpha && x->beta == y->beta && x->transA == y->transA &&
           x->transB == y->transB;
}

/* Adds @product unless an operand would come too late for a reader. */
static bool
add_member(const Joiner *joiner, Group *group, KilnNode *product)
{
    KilnPassContext *context = joiner->context;
    const char *rule = joiner->rule;
    int32_t last = group->last_operand;
    const KilnNode *def = group->last;
    for (uint32_t i = 0; i < product->n_operands; i++) {
        int32_t place = place_of_value(joiner, product->operands[i].value);
        def = place > last ? product->operands[i].value->def : def;
        last = MAX(last, place);
    }
    int32_t first = MIN(group->first_reader, first_reader(joiner, product));
    PASS_GUARD(independent, last < first);
    group->last = def;
    group->last_operand = last;
    group->first_reader = first;
    group->gain += gain_of(joiner, product);
    g_ptr_array_add(group->members, product);
    return true;
}

/* --- the merged product --- */

/* The node that the merged product stands before: the first member, or, where an operand comes
 * later, what follows its definition. */
static KilnNode *
anchor_of(const Joiner *joiner, const Group *group)
{
    KilnNode *anchor = g_ptr_array_index(group->members, 0);
    if (place_of_node(joiner, anchor) < group->last_operand)
        anchor = group->last->next;
    while (place_of_node(joiner, anchor) <= group->last_operand || anchor->op == KILN_OP_const)
        anchor = anchor->next;
    return anchor;
}

/* Operand @i of all members, joined along @axis. */
static KilnValue *
join(Joiner *joiner, const Group *group, uint32_t operand, int axis, KilnNode *anchor,
     GError **error)
{
    g_autofree KilnValue **parts = g_new(KilnValue *, group->members->len);
    for (guint i = 0; i < group->members->len; i++) {
        const KilnNode *member = g_ptr_array_index(group->members, i);
        parts[i] = member->operands[operand].value;
        KilnNode *def = parts[i]->def;
        if (def && def->op == KILN_OP_const && def->function == joiner->function &&
            place_of_node(joiner, def) > place_of_node(joiner, anchor)) {
            kiln_node_move(def, anchor);
            set_place(joiner, def, place_of_node(joiner, anchor) - 1);
        }
    }
    KilnAttrs_concat attrs = { .axis = axis };
    return kiln_build(joiner->function, anchor, KILN_OP_concat, &attrs, parts, group->members->len,
                      error);
}

static KilnNode *
build_product(Joiner *joiner, const Group *group, KilnNode *anchor, GError **error)
{
    const KilnNode *first = g_ptr_array_index(group->members, 0);
    uint32_t joined = joined_operand(joiner);
    KilnValue *operands[] = { first->operands[0].value, first->operands[1].value,
                              kiln_node_operand(first, 2) };
    operands[joined] = join(joiner, group, joined, joined_axis(joiner, first), anchor, error);
    if (operands[joined] && operands[2] && joiner->join == KILN_JOIN_RIGHT)
        operands[2] = join(joiner, group, 2, 0, anchor, error);
    if (!operands[joined] || (!operands[2] && kiln_node_operand(first, 2)))
        return NULL;
    KilnNodeSpec spec = { .op = first->op,
                          .operands = operands,
                          .n_operands = operands[2] ? 3 : 2,
                          .attrs = first->attrs,
                          .before = anchor };
    return kiln_node_new(joiner->function, &spec, error);
}

/* The results of the members, taken out of the merged one. */
static KilnNode *
split(Joiner *joiner, const Group *group, KilnValue *merged, KilnNode *anchor, GError **error)
{
    uint32_t n = group->members->len;
    g_autofree int64_t *sizes = g_new(int64_t, n);
    g_autofree KilnType *types = g_new(KilnType, n);
    for (uint32_t i = 0; i < n; i++) {
        const KilnNode *member = g_ptr_array_index(group->members, i);
        sizes[i] = joined_type(joiner, member)->dims[joined_axis(joiner, member)];
        types[i] = member->results[0].type;
    }
    KilnAttrs_split attrs = { .axis = joiner->join == KILN_JOIN_LEFT ? 0 : merged->type.rank - 1 };
    KilnValue *operands[] = { merged, kiln_build_ints(joiner->function, anchor, sizes, n) };
    KilnNodeSpec spec = { .op = KILN_OP_split,
                          .operands = operands,
                          .n_operands = 2,
                          .n_results = n,
                          .attrs = &attrs,
                          .types = types,
                          .before = anchor };
    return kiln_node_new(joiner->function, &spec, error);
}

static bool
merge(Joiner *joiner, const Group *group, GError **error)
{
    KilnPassContext *context = joiner->context;
    const char *rule = joiner->rule;
    KilnNode *first = g_ptr_array_index(group->members, 0);
    PASS_GUARD(pays, group->gain > first_read(joiner, first));
    KilnNode *anchor = anchor_of(joiner, group);
    const KilnNode *before = anchor->previous;
    KilnNode *product = build_product(joiner, group, anchor, error);
    KilnNode *parts = product ? split(joiner, group, &product->results[0], anchor, error) : NULL;
    if (!parts)
        return false;
    for (KilnNode *node = parts; node && node != before; node = node->previous)
        set_place(joiner, node, place_of_node(joiner, anchor) - 1);
    kiln_pass_note(context, rule, "%u products with %s by %s", group->members->len,
                   first->operands[1 - joined_operand(joiner)].value->name,
                   product->results[0].name);
    for (uint32_t i = 0; i < group->members->len; i++) {
        KilnNode *member = g_ptr_array_index(group->members, i);
        kiln_value_replace(&member->results[0], &parts->results[i]);
        kiln_node_remove_if_dead(member);
    }
    return true;
}

/* --- all of them --- */

static int
by_place(gconstpointer a, gconstpointer b, gpointer joiner)
{
    int32_t x = place_of_node(joiner, *(KilnNode *const *)a);
    int32_t y = place_of_node(joiner, *(KilnNode *const *)b);
    return (x > y) - (x < y);
}

/* The products that share @value and may be merged, in list order. */
static GPtrArray *
candidates(Joiner *joiner, const KilnValue *value)
{
    GPtrArray *found = g_ptr_array_new();
    kiln_foreach_use (use, value) {
        KilnNode *node = use->user;
        bool is_product = node->op == KILN_OP_matmul || node->op == KILN_OP_gemm;
        if (is_product && use->index == 1 - joined_operand(joiner) &&
            node->function == joiner->function && node->results[0].n_uses > 0 &&
            can_join(joiner, node))
            g_ptr_array_add(found, node);
    }
    g_ptr_array_sort_with_data(found, by_place, joiner);
    return found;
}

static gboolean
join_products_of(Joiner *joiner, const KilnValue *value, bool *changed, GError **error)
{
    g_autoptr(GPtrArray) left = candidates(joiner, value);
    for (int round = 0; round < ROUNDS_MAX && left->len > 1; round++) {
        g_autoptr(GPtrArray) members = g_ptr_array_new();
        g_autoptr(GPtrArray) others = g_ptr_array_new();
        Group group = { members, BEFORE_ALL, NULL, INT32_MAX, 0 };
        for (guint i = 0; i < left->len; i++) {
            KilnNode *node = g_ptr_array_index(left, i);
            bool alike = members->len == 0 || is_alike(joiner, g_ptr_array_index(members, 0), node);
            if (!alike || !add_member(joiner, &group, node))
                g_ptr_array_add(others, node);
        }
        GError *why = NULL;
        if (members->len > 1 && merge(joiner, &group, &why))
            *changed = true;
        if (why) {
            g_propagate_error(error, why);
            return FALSE;
        }
        g_ptr_array_unref(g_steal_pointer(&left));
        left = g_steal_pointer(&others);
    }
    return TRUE;
}

static gboolean
join_all(KilnFunction *function, KilnJoin join, const char *rule, KilnPassContext *context,
         bool *changed, GError **error)
{
    g_autoptr(GArray) places = g_array_new(FALSE, TRUE, sizeof(int32_t));
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) shared = g_ptr_array_new();
    Joiner joiner = { function, join, context, rule, places };
    int32_t place = 0;
    const KilnNodeOrder *order = kiln_function_order(function);
    g_array_set_size(places, function->next_id);
    for (uint32_t i = 0; i < order->n; i++) {
        const KilnOrderEntry *entry = &order->entries[i];
        g_array_index(places, int32_t, entry->id) = place += 2;
        if (order->ops[i] != KILN_OP_matmul && order->ops[i] != KILN_OP_gemm)
            continue;
        const KilnNode *node = entry->node;
        KilnValue *value = node->operands[1 - joined_operand(&joiner)].value;
        if (value->n_uses > 1 && g_hash_table_add(seen, value))
            g_ptr_array_add(shared, value);
    }
    for (guint i = 0; i < shared->len; i++) {
        if (!join_products_of(&joiner, g_ptr_array_index(shared, i), changed, error))
            return FALSE;
    }
    return TRUE;
}

/* Joined products may make room for others that read what they did. Every join leaves a product
 * less, so that this ends. */
gboolean
kiln_join_products(KilnFunction *function, KilnJoin join, const char *rule,
                   KilnPassContext *context, bool *changed, GError **error)
{
    for (bool again = function->n_nodes <= NODES_MAX; again;) {
        again = false;
        if (!join_all(function, join, rule, context, &again, error))
            return FALSE;
        *changed |= again;
    }
    return TRUE;
}
