/* SPDX-License-Identifier: Apache-2.0 */
/* hoist-from-loops: what each iteration, or each branch, computes alike is computed once in front.
 *
 *     a   w                         a   w
 *     |   |                         |   |
 *     loop body(%x) {               |  exp
 *       e = exp(w)          =>      |   |
 *       y = mul(x, e)               loop body(%x) {
 *       return y                      y = mul(x, e)
 *     }                               return y
 *                                   }
 *
 *     c   a                         c   a
 *     |   |                         |   |
 *     if then {                     |  exp
 *       e = exp(a)                  |   |
 *       return neg(e)       =>      if then { return neg(e) } else { return e }
 *     } else {
 *       e = exp(a)
 *       return e
 *     }
 *
 *   hoist-unchanged   a node of a body whose operands all come from around the loop or scan
 *   hoist-common      two equal nodes of the two branches of an `if`, the same
 *
 * Nodes move that are pure and have no subgraph. A loop without an iteration cannot fail, so a loop
 * that may have none keeps what could fail: cannot_fail() lists what cannot. A result that is more
 * than `max-growth` bytes bigger than all operands together stays, for it would take this memory as
 * long as the loop runs. Products are dear and move all the same.
 *
 * The manager runs subgraphs before what is around them, so that a node leaves several loops in one
 * run.
 *
 * requires nothing, preserves nothing; class E. Runs behind drop-loop-values. */
#include "graph/module/flow_types.h"
#include "graph/module/outline.h"
#include "graph/op/expand.h"
#include "graph/op/flow.h"
#include "graph/op/items.h"
#include "graph/op/norm.h"
#include "graph/op/quantize.h"
#include "graph/op/reduce.h"
#include "graph/op/softmax.h"
#include "graph/op/structure.h"
#include "graph/op/transpose.h"
#include "passes/fold/constness.h"
#include "passes/fold/fold_plan.h"
#include "passes/pass.h"
#include "passes/query/equal_nodes.h"
#include "passes/query/literal.h"
#include "passes/query/loop_view.h"
#include "passes/query/movement.h"
#include "passes/query/quant_product.h"

#define OPTIONS(OPTION, CHOICE) OPTION(INT, max_growth, 65536)
PASS_OPTIONS(hoist_from_loops, OPTIONS);

/* --- questions about nodes --- */

/* True where @node, of @region, reads nothing that @region makes or gets. */
static bool
reads_around(const KilnNode *node, const KilnFunction *region)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && kiln_value_function(value) == region)
            return false;
    }
    return node->op != KILN_OP_return;
}

static bool
has_known_types(const KilnNode *node)
{
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (!kiln_type_is_known(&node->results[r].type))
            return false;
    }
    return true;
}

/* The operands that decide shapes and axes are known. */
static bool
has_known_shape_operands(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && kiln_op_is_shape_operand(node->op, i) && !value->known &&
            !kiln_value_constant(value))
            return false;
    }
    return true;
}

/* Numbers for all dims: what could go wrong with shapes went wrong by now. */
static bool
has_static_types(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && !kiln_type_is_static(&value->type))
            return false;
    }
    return kiln_type_is_static(&node->results[0].type);
}

/* Each operand has the dims of the result, or repeats. No text is read. Of operators on two
 * integers those count that commute: the others divide, shift or raise to a power. */
static bool
computes_elements(const KilnNode *node)
{
    const KilnType *type = &node->results[0].type;
    if (kiln_dtype_is_integer(type->dtype) && node->n_operands == 2 &&
        !kiln_op_has(node->op, KILN_TRAIT_COMMUTATIVE))
        return false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value &&
            (value->type.dtype == KILN_DTYPE_string || !kiln_broadcasts_to(&value->type, type)))
            return false;
    }
    return true;
}

/* Of a product of matrices: the extents that it sums over are equal, and one matrix serves the
 * whole batch. A gemm may read its operands transposed: then they are square. */
static bool
multiplies(const KilnNode *node)
{
    const KilnType *a = &node->operands[0].value->type, *b = &node->operands[1].value->type;
    const KilnType *type = &node->results[0].type;
    const int r = type->rank;
    return node->n_operands == 2 && r >= 2 && a->rank == r && b->rank == 2 &&
           kiln_type_equal_dims(a, r - 1, b, 0) && kiln_type_equal_dims(a, r - 2, type, r - 2) &&
           kiln_type_equal_dims(b, 1, type, r - 1);
}

/* A mean of no integers fails. */
static bool
reduces(const KilnNode *node)
{
    const KilnType *type = &node->operands[0].value->type;
    if (node->op != KILN_OP_reduce_mean || kiln_dtype_is_float(type->dtype))
        return true;
    for (int d = 0; d < type->rank; d++) {
        int64_t least, most;
        kiln_type_dim_range(type, d, &least, &most);
        if (least < 1)
            return false;
    }
    return kiln_type_is_known(type);
}

/* True where no data and no number of an open dim can make @node fail. */
static bool
cannot_fail(const KilnNode *node)
{
    if (!has_known_types(node) || !has_known_shape_operands(node))
        return false;
    if (kiln_op_has(node->op, KILN_TRAIT_REDUCES))
        return reduces(node);
    if (kiln_op_reads_type_only(node->op))
        return true;
    if (kiln_op_only_reshapes(node->op))
        return kiln_type_same_elements(&node->operands[0].value->type, &node->results[0].type);
    if (kiln_op_is_product(node->op))
        return has_static_types(node) || multiplies(node);
    switch (node->op) {
    case KILN_OP_const:
    case KILN_OP_identity:
    case KILN_OP_transpose:
    case KILN_OP_softmax:
    case KILN_OP_log_softmax:
    case KILN_OP_lp_normalization:
    case KILN_OP_mean_variance_normalization:
    case KILN_OP_cum_sum:
    case KILN_OP_sequence_empty:
    case KILN_OP_sequence_construct:
    case KILN_OP_sequence_length:
    case KILN_OP_optional:
    case KILN_OP_optional_none:
    case KILN_OP_optional_has_element:
        return true;
    case KILN_OP_expand:
        return kiln_broadcasts_to(&node->operands[0].value->type, &node->results[0].type);
    case KILN_OP_quantize_linear:
    case KILN_OP_dequantize_linear:
    case KILN_OP_batch_normalization:
    case KILN_OP_layer_normalization:
    case KILN_OP_rms_normalization:
    case KILN_OP_instance_normalization:
        return has_static_types(node);
    default:
        return kiln_op_only_moves(node->op)
                   ? has_static_types(node)
                   : kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE) && computes_elements(node);
    }
}

/* By how many bytes the results of @node are bigger than its operands. */
static double
growth(const KilnNode *node)
{
    double bytes = 0;
    if (node->op == KILN_OP_const || kiln_op_is_product(node->op))
        return 0;
    for (uint32_t r = 0; r < node->n_results; r++)
        bytes += kiln_likely_bytes(&node->results[r].type);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value && !kiln_op_is_shape_operand(node->op, i))
            bytes -= kiln_likely_bytes(&node->operands[i].value->type);
    }
    return bytes;
}

/* --- loops --- */

static bool
may_hoist(KilnPassContext *context, const KilnNode *flow, const KilnNode *node)
{
    static const char rule[] = "hoist-unchanged";
    const Options *options = kiln_pass_options(context);
    if (!reads_around(node, node->function))
        return false;
    PASS_GUARD(pure, kiln_node_is_pure(node));
    PASS_GUARD(known_shape, has_known_types(node));
    PASS_GUARD(cannot_fail, kiln_loop_runs(flow) || cannot_fail(node));
    PASS_GUARD(growth, growth(node) <= (double)options->max_growth);
    kiln_pass_note(context, rule, "%s out of %s", kiln_node_label(node), kiln_node_label(flow));
    return true;
}

/* Puts a copy of @node in front of @flow. Readers of @node, and of @twin (NULL: none), read the
 * copy. NULL fails. */
static KilnNode *
hoist(KilnNode *flow, KilnNode *node, KilnNode *twin, GError **error)
{
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    KilnNode *copy = kiln_node_copy(flow->function, node, values, flow, NULL, error);
    if (!copy)
        return NULL;
    for (uint32_t r = 0; r < copy->n_results; r++) {
        kiln_value_replace(&node->results[r], &copy->results[r]);
        if (twin)
            kiln_value_replace(&twin->results[r], &copy->results[r]);
    }
    kiln_node_remove(node);
    if (twin)
        kiln_node_remove(twin);
    return copy;
}

static gboolean
hoist_unchanged(KilnPassContext *context, KilnNode *flow, KilnFunction *body, bool *changed,
                GError **error)
{
    kiln_foreach_node_safe (node, body) {
        if (!may_hoist(context, flow, node))
            continue;
        if (!hoist(flow, node, NULL, error))
            return FALSE;
        *changed = true;
    }
    return TRUE;
}

/* --- branches --- */

/* A node of the second branch. Equal ones make a list in the order in which they were found. */
typedef struct Twin Twin;
struct Twin {
    KilnNode *node;
    uint32_t hash;
    Twin *next, *last; /* @last: of the first one alone */
};

typedef struct {
    GHashTable *table; /* Twin*: the first one of each list */
    KilnArena *arena;  /* of the twins */
} Twins;

static guint
twin_hash(gconstpointer data)
{
    return ((const Twin *)data)->hash;
}

static gboolean
twin_equal(gconstpointer left, gconstpointer right)
{
    const Twin *a = left, *b = right;
    return a->hash == b->hash && kiln_node_equal(a->node, b->node);
}

static bool
may_leave(const KilnNode *node)
{
    return reads_around(node, node->function) && kiln_node_is_pure(node);
}

static void
add_twin(Twins *twins, KilnNode *node)
{
    if (!may_leave(node))
        return;
    const Twin own = { .node = node, .hash = kiln_node_hash(node) };
    Twin *twin = kiln_arena_copy(twins->arena, &own, sizeof own);
    Twin *first = g_hash_table_lookup(twins->table, twin);
    twin->last = twin;
    if (!first) {
        g_hash_table_add(twins->table, twin);
        return;
    }
    first->last->next = twin;
    first->last = twin;
}

/* The first node of the second branch that equals @node, and leaves the table. */
static KilnNode *
take_twin(const Twins *twins, KilnNode *node)
{
    if (!may_leave(node))
        return NULL;
    const Twin own = { .node = node, .hash = kiln_node_hash(node) };
    Twin *first = g_hash_table_lookup(twins->table, &own);
    if (!first)
        return NULL;
    g_hash_table_remove(twins->table, first);
    if (first->next) {
        first->next->last = first->last;
        g_hash_table_add(twins->table, first->next);
    }
    return first->node;
}

/* Whether no operand of the reader in front of that of @use reads the same node. */
static bool
is_first_read(const KilnUse *use)
{
    const KilnNode *read = use->user->operands[use->index].value->def;
    for (uint32_t i = 0; i < use->index; i++) {
        const KilnValue *value = use->user->operands[i].value;
        if (value && value->def == read)
            return false;
    }
    return true;
}

/* Nodes of the second branch that read @node may read nothing of their branch by now. */
static void
add_readers(Twins *twins, KilnNode *node, const KilnFunction *branch)
{
    for (uint32_t r = 0; r < node->n_results; r++) {
        kiln_foreach_use (use, &node->results[r]) {
            if (use->user->function == branch && is_first_read(use))
                add_twin(twins, use->user);
        }
    }
}

static gboolean
hoist_common(KilnPassContext *context, KilnNode *flow, bool *changed, GError **error)
{
    KilnFunction *branch = kiln_attrs(flow, if)->then_branch;
    KilnFunction *other = kiln_attrs(flow, if)->else_branch;
    g_autoptr(GHashTable) table = g_hash_table_new(twin_hash, twin_equal);
    g_autoptr(KilnArena) arena = kiln_arena_new();
    Twins twins = { table, arena };
    kiln_foreach_node (node, other)
        add_twin(&twins, node);
    kiln_foreach_node_safe (node, branch) {
        KilnNode *twin = take_twin(&twins, node);
        if (!twin)
            continue;
        kiln_pass_note(context, "hoist-common", "%s out of %s", kiln_node_label(node),
                       kiln_node_label(flow));
        KilnNode *copy = hoist(flow, node, twin, error);
        if (!copy)
            return FALSE;
        add_readers(&twins, copy, other);
        *changed = true;
    }
    return TRUE;
}

GRAPH_PASS(hoist_from_loops);

gboolean
kiln_pass_hoist_from_loops(KilnFunction *function, KilnPassContext *context, bool *changed,
                           GError **error)
{
    *changed = false;
    if (!function->n_region_nodes)
        return TRUE;
    kiln_foreach_node_safe (node, function) {
        gboolean good = TRUE;
        if (node->op == KILN_OP_if)
            good = hoist_common(context, node, changed, error);
        else if (node->op == KILN_OP_loop)
            good = hoist_unchanged(context, node, kiln_attrs(node, loop)->body, changed, error);
        else if (node->op == KILN_OP_scan)
            good = hoist_unchanged(context, node, kiln_attrs(node, scan)->body, changed, error);
        if (!good)
            return FALSE;
    }
    return TRUE;
}
