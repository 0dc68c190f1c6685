/* SPDX-License-Identifier: Apache-2.0 */
/* hoist-transposes: moves a transpose towards the start of the function where less is left to
 * transpose there: above what makes values bigger, and where it meets a transpose that it undoes.
 *
 *         x                 x                x                 y          x     y
 *         |                 |                |                 |          |     |
 *       tile            transpose p      transpose p           |          |  transpose p⁻¹
 *         |        =>       |                 \               /     =>     \   /
 *    transpose p          tile'                add · relu · …               add' · relu' · …
 *         |                 |                  transpose p⁻¹                 |
 *
 * Nodes that only the transpose needs are followed upwards as a tree; each of its values is either
 * transposed there, or computed in the other order of operands for which the same holds, whichever
 * transposes fewer bytes. Constants are permuted while compiling. What nodes look like in the other
 * order is planned in passes/permute/permute.h, as for sink-transposes, which this pass never
 * undoes: it fires only where fewer bytes (or as many in fewer transposes) remain, and sinking
 * never adds any.
 *
 * requires nothing, preserves nothing; class E: each element is computed by the same operation of
 * the same operands in the same order. */
#include "graph/op/transpose.h"
#include "passes/pass.h"
#include "passes/permute/permute.h"

static const char rule[] = "hoist-transpose";

enum {
    DEPTH_MAX = 64, /* nodes above each other */
    NODES_MAX = 512 /* in the tree above one transpose */
};

typedef struct {
    double bytes;
    int64_t transposes;
} Cost;

typedef enum {
    HOIST_TRANSPOSE, /* a transpose of the value, or of what it is a transpose of */
    HOIST_LITERAL,
    HOIST_THROUGH, /* compute it of other operands */
} HoistKind;

/* A value, which is a transpose by @perm of what is wanted instead. */
typedef struct Tree Tree;
struct Tree {
    HoistKind kind;
    KilnValue *value;
    KilnPerm perm;
    Cost cost;
    KilnPermuted plan; /* THROUGH */
    Tree **operands;
};

typedef struct {
    KilnFunction *function;
    KilnPassContext *context;
    KilnArena *arena;
    unsigned n_nodes, depth;
} Search;

static bool
costs_less(Cost a, Cost b)
{
    return a.bytes < b.bytes || (a.bytes == b.bytes && a.transposes < b.transposes);
}

/* --- the tree --- */

/* The transpose that defines @value in this function; NULL where none does. */
static KilnNode *
transpose_behind(const Search *search, const KilnValue *value)
{
    KilnNode *def = kiln_value_def_of(value, KILN_OP_transpose);
    return def && def->function == search->function && kiln_perm_of(def).rank >= 0 ? def : NULL;
}

/* Of what is read to be transposed, and how: a transpose behind the value is merged. */
static KilnPerm
merged_perm(const Search *search, const Tree *tree, KilnValue **x)
{
    const KilnNode *behind = transpose_behind(search, tree->value);
    KilnPerm perm = kiln_perm_inverse(&tree->perm);
    *x = behind ? behind->operands[0].value : tree->value;
    if (!behind)
        return perm;
    KilnPerm first = kiln_perm_of(behind);
    return kiln_perm_compose(&first, &perm);
}

static Cost
transpose_cost(const Search *search, const Tree *tree)
{
    KilnValue *x;
    KilnPerm perm = merged_perm(search, tree, &x);
    int more = !kiln_perm_is_identity(&perm);
    if (x != tree->value && kiln_value_single_use(tree->value))
        more--;
    return (Cost){ more * kiln_perm_bytes(&tree->value->type), more };
}

static Tree *look_at(Search *search, KilnValue *value, const KilnPerm *perm);

/* What the node behind the value would cost in the other order; false where it has none. */
static bool
look_through(Search *search, Tree *tree, Cost *cost)
{
    KilnNode *node = tree->value->def;
    if (!node || node->function != search->function || node->n_results != 1 ||
        !kiln_value_single_use(tree->value) || search->depth == DEPTH_MAX ||
        search->n_nodes == NODES_MAX)
        return false;
    KilnPermuted *plan = &tree->plan;
    *plan = (KilnPermuted){ .node = node,
                            .arena = search->arena,
                            .context = search->context,
                            .rule = rule,
                            .want = tree->perm,
                            .inverse = true };
    plan->from = kiln_arena_new0(search->arena, KilnPerm, node->n_operands + 1);
    for (uint32_t i = 0; i < node->n_operands; i++)
        plan->from[i] = KILN_PERM_NONE;
    if (!kiln_permute_plan(plan) || !kiln_perm_equal(&plan->results[0], &tree->perm))
        return false;
    search->n_nodes++;
    search->depth++;
    *cost = (Cost){ 0, 0 };
    tree->operands = kiln_arena_new0(search->arena, Tree *, node->n_operands + 1);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (plan->operands[i].kind != KILN_PERMUTED_INVERSE)
            continue;
        tree->operands[i] = look_at(search, node->operands[i].value, &plan->operands[i].perm);
        cost->bytes += tree->operands[i]->cost.bytes;
        cost->transposes += tree->operands[i]->cost.transposes;
    }
    search->depth--;
    return true;
}

static Tree *
look_at(Search *search, KilnValue *value, const KilnPerm *perm)
{
    Tree *tree = kiln_arena_new0(search->arena, Tree, 1);
    Cost through;
    tree->value = value;
    tree->perm = *perm;
    if (kiln_perm_can_move(value)) {
        tree->kind = HOIST_LITERAL;
        return tree;
    }
    tree->cost = transpose_cost(search, tree);
    if (!look_through(search, tree, &through) || !costs_less(through, tree->cost))
        return tree;
    tree->kind = HOIST_THROUGH;
    tree->cost = through;
    return tree;
}

/* --- building --- */

static KilnValue *
build(const Search *search, const Tree *tree, KilnNode *before, GError **error)
{
    KilnType type = kiln_perm_type_before(search->arena, &tree->value->type, &tree->perm);
    KilnPerm perm = kiln_perm_inverse(&tree->perm);
    KilnValue *x;
    if (tree->kind == HOIST_LITERAL)
        return kiln_perm_literal(before, tree->value, &perm, &type, error);
    if (tree->kind == HOIST_TRANSPOSE) {
        perm = merged_perm(search, tree, &x);
        return kiln_perm_is_identity(&perm) ? x
                                            : kiln_perm_transpose(before, x, &perm, &type, error);
    }
    KilnNode *node = tree->value->def;
    g_autofree KilnValue **flipped = g_new0(KilnValue *, node->n_operands + 1);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (!tree->operands[i])
            continue;
        flipped[i] = build(search, tree->operands[i], node, error);
        if (!flipped[i])
            return NULL;
    }
    KilnNode *built = kiln_permute_build(&tree->plan, flipped, error);
    return built ? &built->results[0] : NULL;
}

/* --- the pass --- */

static bool
hoist_in(Search *search, KilnNode *transpose, GError **error)
{
    KilnPassContext *context = search->context;
    KilnValue *value = transpose->operands[0].value, *result = &transpose->results[0];
    KilnPerm perm = kiln_perm_of(transpose), inverse = kiln_perm_inverse(&perm);
    Tree tree = { .kind = HOIST_THROUGH, .value = value, .perm = inverse };
    Cost now = { kiln_perm_bytes(&value->type), 1 };
    if (!look_through(search, &tree, &tree.cost))
        return false;
    KilnType type = kiln_perm_type_before(search->arena, &value->type, &inverse);
    PASS_GUARD(fewer_bytes, costs_less(tree.cost, now));
    PASS_GUARD(type, kiln_type_equal(&type, &result->type));
    const char *above = kiln_node_label(value->def);
    KilnValue *hoisted = build(search, &tree, transpose, error);
    if (!hoisted)
        return false;
    kiln_pass_note(context, rule, "above %s (%s)", above, kiln_op_info(value->def->op)->name);
    kiln_value_replace(result, hoisted);
    kiln_node_remove_if_dead(transpose);
    return true;
}

static bool
hoist(KilnNode *transpose, KilnPassContext *context, GError **error)
{
    Search search = { .function = transpose->function,
                      .context = context,
                      .arena = kiln_arena_new() };
    bool hoisted = hoist_in(&search, transpose, error);
    kiln_arena_free(search.arena);
    return hoisted;
}

GRAPH_PASS(hoist_transposes);

gboolean
kiln_pass_hoist_transposes(KilnFunction *function, KilnPassContext *context, bool *changed,
                           GError **error)
{
    *changed = false;
    for (bool again = true; again;) {
        again = false;
        g_autoptr(GPtrArray) transposes = g_ptr_array_new();
        const KilnNodeOrder *order = kiln_function_order(function);
        for (uint32_t i = order->n; i-- > 0;) {
            KilnNode *node = order->entries[i].node;
            if (order->ops[i] == KILN_OP_transpose && kiln_perm_of(node).rank >= 0)
                g_ptr_array_add(transposes, node);
        }
        for (guint i = 0; i < transposes->len; i++) {
            GError *why = NULL;
            KilnNode *transpose = g_ptr_array_index(transposes, i);
            if (kiln_node_is_linked(transpose) && hoist(transpose, context, &why))
                again = *changed = true;
            if (why) {
                g_propagate_error(error, why);
                return FALSE;
            }
        }
    }
    return TRUE;
}
