/* SPDX-License-Identifier: Apache-2.0 */
/* unroll-short-loops: the iterations of a short loop or scan stand in a row.
 *
 *     2   a                        a
 *     |   |                        |
 *     loop body(%i, %c, %x) {      add 0 ----.
 *       y = add(x, i)        =>    |         |
 *       return c, y, y             add 1     unsqueeze
 *     }                            |    \    |
 *     |   |                        |     unsqueeze
 *     b   s                        b         concat = s
 *
 * Each iteration reads a constant as its number, `true` as its condition, and its slice of each
 * scanned operand. Stacked results are joined along their axis.
 *
 * Nothing may end the loop early. The option `max-trips` bounds the iterations, and `max-nodes` the
 * nodes that they come to. A body with a subgraph stays, and one with a random operator, whose
 * numbers differ from one iteration to the next, and one that names a dim that data decides: each
 * iteration has another number for it. All iterations have the same types.
 *
 * requires nothing, preserves nothing; class E. Runs behind hoist-from-loops, which leaves fewer
 * nodes to copy, and behind what finds the number of iterations: simplify-shapes, constant-fold. */
#include "graph/module/define.h"
#include "graph/module/flow.h"
#include "graph/module/flow_types.h"
#include "graph/module/outline.h"
#include "graph/op/flow.h"
#include "passes/fold/constness.h"
#include "passes/pass.h"
#include "passes/query/movement.h"

#define OPTIONS(OPTION, CHOICE)                                                                    \
    OPTION(INT, max_trips, 8)                                                                      \
    OPTION(INT, max_nodes, 64)
PASS_OPTIONS(unroll_short_loops, OPTIONS);

static const char rule[] = "unroll";

typedef struct {
    KilnNode *node;
    KilnFunction *body;
    uint32_t first, carried, asks;
    int64_t trips;
    GHashTable *values;  /* KilnValue* → KilnValue*: of the body, in this iteration */
    KilnValue **carry;   /* what the iteration begins with */
    KilnValue **stacked; /* per stacked result: its part of each iteration */
} Loop;

/* --- questions --- */

static int
scanned_axis(const Loop *loop, uint32_t i)
{
    const KilnAttrs_scan *attrs = kiln_attrs(loop->node, scan);
    const KilnType *type = &loop->node->operands[loop->carried + i].value->type;
    const int64_t axis = kiln_ints_at(attrs->scan_input_axes, i, 0);
    return type->rank > 0 ? kiln_type_axis(type, axis) : -1;
}

static uint32_t
n_scanned(const Loop *loop)
{
    return loop->node->n_operands - loop->first - loop->carried;
}

/* The number of iterations; -1: not known. */
static int64_t
find_trips(const Loop *loop)
{
    int64_t trips = -1;
    if (loop->node->op == KILN_OP_loop) {
        const KilnValue *value = kiln_node_operand(loop->node, 0);
        return value && value->known && value->known->n == 1 ? value->known->v[0] : -1;
    }
    for (uint32_t i = 0; i < n_scanned(loop); i++) {
        const KilnType *type = &loop->node->operands[loop->carried + i].value->type;
        const int axis = scanned_axis(loop, i);
        if (axis < 0 || type->dims[axis] < 0 || (i && type->dims[axis] != trips))
            return -1;
        trips = type->dims[axis];
    }
    return trips;
}

static bool
is_plain(const KilnFunction *body)
{
    kiln_foreach_node (node, body) {
        if (node->op != KILN_OP_return && !kiln_node_is_pure(node))
            return false;
    }
    return true;
}

/* A node of @body gives a dim a name, which each copy of it would define. */
static bool
defines_names(const KilnFunction *body)
{
    KilnDefined defined[KILN_DEFINED_MAX];
    kiln_foreach_node (node, body) {
        if (kiln_node_defines(node, defined))
            return true;
    }
    return false;
}

/* Argument @type is what a scan along @axis gives of @whole. */
static bool
is_part(const KilnType *type, const KilnType *whole, int axis)
{
    if (axis < 0 || type->rank != whole->rank - 1 || type->dtype != whole->dtype)
        return false;
    for (int d = 0; d < type->rank; d++) {
        if (!kiln_type_knows_dim(type, d) || !kiln_type_equal_dims(type, d, whole, d + (d >= axis)))
            return false;
    }
    return true;
}

/* What is carried, scanned and stacked has one type in all iterations. */
static bool
has_fixed_types(const Loop *loop)
{
    const KilnNode *node = loop->node, *last = kiln_function_return(loop->body);
    bool fixed = kiln_flow_dims(node)->n == 0;
    for (uint32_t i = 0; fixed && i < loop->first; i++)
        fixed = kiln_type_elements(&kiln_function_argument(loop->body, i)->value.type) == 1;
    for (uint32_t k = 0; fixed && k < loop->carried; k++) {
        const KilnValue *operand = node->operands[loop->first + k].value;
        const KilnType *type = &kiln_function_argument(loop->body, loop->first + k)->value.type;
        if (type->contents) /* elements are looked at where they come out */
            fixed = operand != NULL;
        else
            fixed = operand && kiln_type_is_known(type) && kiln_type_equal(type, &operand->type) &&
                    kiln_type_equal(type, &last->operands[loop->asks + k].value->type) &&
                    kiln_type_equal(type, &node->results[k].type);
    }
    for (uint32_t i = 0; fixed && i < n_scanned(loop); i++) {
        const uint32_t at = loop->carried + i;
        fixed = is_part(&kiln_function_argument(loop->body, at)->value.type,
                        &node->operands[at].value->type, scanned_axis(loop, i));
    }
    for (uint32_t r = loop->carried; fixed && r < node->n_results; r++) {
        const KilnType *type = &last->operands[loop->asks + r].value->type;
        fixed = kiln_type_is_known(type) && type->rank + 1 == node->results[r].type.rank;
    }
    return fixed;
}

static bool
may_unroll(KilnPassContext *context, const Loop *loop)
{
    const Options *options = kiln_pass_options(context);
    const int64_t nodes = (int64_t)loop->body->n_nodes - 1;
    PASS_GUARD(counts, kiln_loop_counts(loop->node));
    PASS_GUARD(short_loop, loop->trips >= 1 && loop->trips <= options->max_trips);
    PASS_GUARD(small_body, nodes <= options->max_nodes / MAX(loop->trips, 1));
    PASS_GUARD(plain_body, is_plain(loop->body));
    PASS_GUARD(fixed_types, has_fixed_types(loop));
    PASS_GUARD(no_names, loop->trips == 1 || !defines_names(loop->body));
    return true;
}

/* --- iterations --- */

static KilnValue *
value_for(const Loop *loop, KilnValue *value)
{
    KilnValue *other = g_hash_table_lookup(loop->values, value);
    return other ? other : value;
}

static void
set_argument(const Loop *loop, uint32_t i, KilnValue *value)
{
    g_hash_table_insert(loop->values, &kiln_function_argument(loop->body, i)->value, value);
}

/* True where more reads @value than the end of the body, as its condition. */
static bool
is_read(const Loop *loop, const KilnValue *value)
{
    const KilnNode *last = kiln_function_return(loop->body);
    kiln_foreach_use (use, value) {
        if (use->user != last || use->index >= loop->asks)
            return true;
    }
    return false;
}

/* Argument @i of a loop is @number; nothing is made where nothing reads it. */
static void
set_number(const Loop *loop, uint32_t i, int64_t number)
{
    const KilnValue *argument = &kiln_function_argument(loop->body, i)->value;
    if (is_read(loop, argument))
        set_argument(loop, i,
                     kiln_build_constant(loop->node->function, loop->node, argument->name,
                                         kiln_tensor_new_splat(&argument->type, (double)number)));
}

/* Argument of a scan: the part of operand @i in iteration @trip. */
static bool
set_part(const Loop *loop, uint32_t i, int64_t trip, GError **error)
{
    const KilnAttrs_scan *attrs = kiln_attrs(loop->node, scan);
    const uint32_t at = loop->carried + i;
    const bool reverse = kiln_ints_at(attrs->scan_input_directions, i, 0) == 1;
    if (!kiln_function_argument(loop->body, at)->value.n_uses)
        return true;
    KilnValue *part =
        kiln_element_build(loop->node->function, loop->node, loop->node->operands[at].value,
                           scanned_axis(loop, i), reverse ? loop->trips - 1 - trip : trip, error);
    if (part)
        set_argument(loop, at, part);
    return part != NULL;
}

static bool
copy_iteration(Loop *loop, int64_t trip, GError **error)
{
    KilnNode *node = loop->node, *last = kiln_function_return(loop->body);
    if (node->op == KILN_OP_loop) {
        set_number(loop, 0, trip);
        set_number(loop, 1, 1);
    }
    for (uint32_t k = 0; k < loop->carried; k++)
        set_argument(loop, loop->first + k, loop->carry[k]);
    for (uint32_t i = 0; i < n_scanned(loop); i++) {
        if (!set_part(loop, i, trip, error))
            return false;
    }
    kiln_foreach_node (inner, loop->body) {
        if (inner != last &&
            !kiln_node_copy(node->function, inner, loop->values, node, NULL, error))
            return false;
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        KilnValue *value = value_for(loop, last->operands[loop->asks + r].value);
        if (r < loop->carried)
            loop->carry[r] = value;
        else
            loop->stacked[(r - loop->carried) * loop->trips + trip] = value;
    }
    return true;
}

/* --- results --- */

/* Stacked result @s; NULL fails. */
static KilnValue *
join_parts(const Loop *loop, uint32_t s, GError **error)
{
    KilnNode *node = loop->node;
    const uint32_t n = (uint32_t)loop->trips;
    const KilnAttrs_scan *attrs = node->op == KILN_OP_scan ? kiln_attrs(node, scan) : NULL;
    const int64_t axis = attrs ? kiln_ints_at(attrs->scan_output_axes, s, 0) : 0;
    const bool reverse = attrs && kiln_ints_at(attrs->scan_output_directions, s, 0) == 1;
    g_autofree KilnValue **parts = g_new0(KilnValue *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        parts[reverse ? n - 1 - i : i] = loop->stacked[s * n + i];
    return kiln_stack_build(node->function, node, parts, n,
                            kiln_type_axis(&node->results[loop->carried + s].type, axis), error);
}

static gboolean
replace_results(const Loop *loop, GError **error)
{
    KilnNode *node = loop->node;
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (!node->results[r].n_uses)
            continue;
        KilnValue *value =
            r < loop->carried ? loop->carry[r] : join_parts(loop, r - loop->carried, error);
        if (!value)
            return FALSE;
        kiln_value_replace(&node->results[r], value);
    }
    kiln_node_remove(node);
    return TRUE;
}

static gboolean
unroll(KilnPassContext *context, KilnNode *node, bool *changed, GError **error)
{
    const bool scan = node->op == KILN_OP_scan;
    Loop loop = { .node = node,
                  .body = scan ? kiln_attrs(node, scan)->body : kiln_attrs(node, loop)->body,
                  .asks = scan ? 0 : 1 };
    kiln_flow_carried(node, &loop.first, &loop.carried);
    if (node->n_operands < loop.first)
        return TRUE;
    loop.trips = find_trips(&loop);
    if (!may_unroll(context, &loop))
        return TRUE;
    kiln_pass_note(context, rule, "%s", kiln_node_label(node));
    *changed = true;
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    g_autofree KilnValue **carry = g_new0(KilnValue *, loop.carried + 1);
    g_autofree KilnValue **stacked =
        g_new0(KilnValue *, (size_t)(node->n_results - loop.carried) * (size_t)loop.trips + 1);
    loop.values = values;
    loop.carry = carry;
    loop.stacked = stacked;
    for (uint32_t k = 0; k < loop.carried; k++)
        carry[k] = node->operands[loop.first + k].value;
    for (int64_t trip = 0; trip < loop.trips; trip++) {
        if (!copy_iteration(&loop, trip, error))
            return FALSE;
    }
    return replace_results(&loop, error);
}

GRAPH_PASS(unroll_short_loops);

gboolean
kiln_pass_unroll_short_loops(KilnFunction *function, KilnPassContext *context, bool *changed,
                             GError **error)
{
    *changed = false;
    if (!function->n_region_nodes)
        return TRUE;
    kiln_foreach_node_safe (node, function) {
        if ((node->op == KILN_OP_loop || node->op == KILN_OP_scan) &&
            !unroll(context, node, changed, error))
            return FALSE;
    }
    /* The numbers of the iterations make more of what follows known. */
    return !*changed || kiln_function_refine(function, error);
}
