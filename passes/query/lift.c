/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/lift.h"

#include "graph/infer/infer.h"
#include "graph/module/flow_types.h"
#include "graph/node.h"
#include "graph/op/flow.h"
#include "graph/module/by_name.h"
#include "passes/query/movement.h"

/* --- questions --- */

/* Constants in a body are copied to where they are read. */
static bool
is_outer(const KilnLift *lift, const KilnValue *value)
{
    return !kiln_loop_makes(lift->loop, value) || kiln_value_constant(value);
}

KilnType
kiln_lift_type(const KilnLift *lift, const KilnValue *value)
{
    KilnType type = value->type;
    type.rank++;
    kiln_type_set_dim(&type, 0, lift->length);
    for (int d = 1; d < type.rank; d++) {
        type.dims[d] = value->type.dims[d - 1];
        type.open[d] = value->type.open[d - 1];
    }
    return type;
}

/* A type of numbers that is the same in all iterations, and leaves room for one more dim. */
static bool
has_fixed_type(const KilnLift *lift, const KilnValue *value)
{
    const KilnType *type = &value->type;
    return type->rank >= 0 && type->rank < KILN_MAX_RANK && !type->quant && !type->layout &&
           !kiln_dtype_is_address(type->dtype) &&
           (kiln_type_is_static(type) || kiln_loop_fixes_type(lift->loop->node, type));
}

/* A reshape to the type of @value in all iterations has at most one dim that is not a number. */
static bool
may_reshape(const KilnLift *lift, const KilnValue *value)
{
    const KilnType type = kiln_lift_type(lift, value);
    int open = 0;
    for (int d = 0; d < type.rank; d++) {
        open += type.dims[d] < 0;
        if (type.dims[d] == 0)
            return kiln_type_is_static(&type);
    }
    return open <= 1;
}

/* The axis of scanned operand @i. */
static int
scanned_axis(const KilnLoopView *loop, uint32_t i)
{
    const KilnAttrs_scan *attrs = kiln_attrs(loop->node, scan);
    return kiln_type_axis(&kiln_loop_operand(loop, loop->carried + i)->type,
                          kiln_ints_at(attrs->scan_input_axes, i, 0));
}

static bool
lifts_argument(const KilnLift *lift, const KilnValue *value)
{
    const KilnLoopView *loop = lift->loop;
    if (loop->node->op == KILN_OP_loop) /* the numbers of the iterations are a constant */
        return value == kiln_loop_number(loop) && kiln_dim_is_number(lift->length, &(int64_t){ 0 });
    if (value->index < loop->carried)
        return false;
    const uint32_t i = value->index - loop->carried;
    const KilnType *whole = &kiln_loop_operand(loop, value->index)->type;
    const int axis = scanned_axis(loop, i);
    const bool reverse =
        kiln_ints_at(kiln_attrs(loop->node, scan)->scan_input_directions, i, 0) == 1;
    return reverse == lift->reverse && axis >= 0 && kiln_type_knows_dim(whole, axis) &&
           kiln_type_dim(whole, axis, loop->node->function->module->dims) == lift->length;
}

/* Operand @i of an element-wise @node may have another dim in front. */
static bool
broadcasts_operand(const KilnNode *node, uint32_t i)
{
    static const char *const first_only[] = { "clip", "prelu" };
    static const char *const none[] = { "quantize_linear", "dequantize_linear",
                                        "rescale_quantized" };
    for (size_t k = 0; k < G_N_ELEMENTS(none); k++) {
        if (kiln_node_is(node, none[k]))
            return false;
    }
    for (size_t k = 0; k < G_N_ELEMENTS(first_only); k++) {
        if (kiln_node_is(node, first_only[k]))
            return i == 0;
    }
    return true;
}

static bool
lifts_elementwise(const KilnLift *lift, const KilnNode *node)
{
    const KilnValue *result = &node->results[0];
    bool any = false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (!value || is_outer(lift, value))
            continue;
        if (!kiln_lift_can(lift, value) || !broadcasts_operand(node, i) ||
            (value->type.rank != result->type.rank && !may_reshape(lift, result)))
            return false;
        any = true;
    }
    return any;
}

static int
gather_axis(const KilnNode *node)
{
    const int64_t *axis = kiln_attr_field(node, "axis", KILN_ATTR_INT);
    return kiln_type_axis(&node->operands[0].value->type, *axis);
}

/* A row of a value from around, which has as many as there are iterations. */
static bool
lifts_gather(const KilnLift *lift, const KilnNode *node)
{
    const KilnValue *data = node->operands[0].value;
    const int axis = gather_axis(node);
    return node->operands[1].value == kiln_loop_number(lift->loop) && is_outer(lift, data) &&
           axis >= 0 && kiln_type_knows_dim(&data->type, axis) &&
           kiln_type_dim(&data->type, axis, node->function->module->dims) == lift->length;
}

static bool
lifts_matmul(const KilnLift *lift, const KilnNode *node)
{
    const KilnValue *left = node->operands[0].value, *right = node->operands[1].value;
    return kiln_lift_can(lift, left) && is_outer(lift, right) && right->type.rank == 2 &&
           left->type.rank >= 1;
}

static bool
lifts_node(const KilnLift *lift, const KilnNode *node)
{
    int perm[KILN_MAX_RANK];
    if (node->n_results != 1 || node->n_operands == 0 || !has_fixed_type(lift, &node->results[0]))
        return false;
    if (kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE))
        return lifts_elementwise(lift, node);
    if (kiln_op_only_reshapes(node->op))
        return kiln_lift_can(lift, node->operands[0].value) && may_reshape(lift, &node->results[0]);
    if (kiln_node_is(node, "transpose"))
        return kiln_lift_can(lift, node->operands[0].value) &&
               kiln_transpose_perm(node, perm, NULL);
    return kiln_node_is(node, "gather") ? lifts_gather(lift, node)
                                        : kiln_node_is(node, "matmul") && lifts_matmul(lift, node);
}

bool
kiln_lift_can(const KilnLift *lift, const KilnValue *value)
{
    return g_hash_table_contains(lift->lifted, value);
}

/* Values in the order of the body: one walk finds all. */
static void
find_lifted(KilnLift *lift)
{
    kiln_foreach_node (node, lift->loop->body) {
        KilnValue *value = node->n_results ? &node->results[0] : NULL;
        if (value && !kiln_lift_can(lift, value) && lifts_node(lift, node))
            g_hash_table_insert(lift->lifted, value, value);
    }
}

void
kiln_lift_init(KilnLift *lift, const KilnLoopView *loop, bool reverse)
{
    int64_t most;
    *lift = (KilnLift){ .loop = loop,
                        .length = kiln_loop_counts(loop->node) ? kiln_loop_trips(loop->node, &most)
                                                               : NULL,
                        .reverse = reverse,
                        .lifted = g_hash_table_new(NULL, NULL) };
    for (guint i = 0; lift->length && i < loop->body->arguments->len; i++) {
        KilnValue *value = &kiln_function_argument(loop->body, i)->value;
        if (lifts_argument(lift, value) && has_fixed_type(lift, value))
            g_hash_table_insert(lift->lifted, value, value);
    }
    if (lift->length)
        find_lifted(lift);
}

void
kiln_lift_clear(KilnLift *lift)
{
    g_clear_pointer(&lift->lifted, g_hash_table_unref);
}

void
kiln_lift_assume(KilnLift *lift, KilnValue *value, KilnValue *other)
{
    g_hash_table_insert(lift->lifted, value, value);
    if (other)
        g_hash_table_insert(lift->lifted, other, other);
    find_lifted(lift);
}

void
kiln_lift_give(KilnLift *lift, KilnValue *value, KilnValue *stacked)
{
    g_hash_table_insert(lift->lifted, value, stacked);
}

/* --- building --- */

static KilnValue *
build_permuted(KilnNode *before, KilnValue *value, int64_t *perm, GError **error)
{
    const KilnNamed transpose = {
        "transpose", { KILN_NAMED(INTS, "perm", .n = (uint32_t)value->type.rank, .v = perm) }
    };
    return kiln_build_named(before, &transpose, &value, 1, error);
}

KilnValue *
kiln_dim_move_build(KilnNode *before, KilnValue *value, int from, int to, GError **error)
{
    int64_t perm[KILN_MAX_RANK];
    const int rank = value->type.rank;
    if (from == to)
        return value;
    for (int d = 0, next = 0; d < rank; d++) {
        next += next == from;
        perm[d] = d == to ? from : next++;
    }
    return build_permuted(before, value, perm, error);
}

static KilnValue *
build_argument(const KilnLift *lift, const KilnValue *value, GError **error)
{
    const KilnLoopView *loop = lift->loop;
    if (loop->node->op == KILN_OP_scan)
        return kiln_dim_move_build(loop->node, kiln_loop_operand(loop, value->index),
                                   scanned_axis(loop, value->index - loop->carried), 0, error);
    const KilnType type = kiln_lift_type(lift, value);
    return kiln_build_constant(loop->node->function, loop->node, value->name,
                               kiln_tensor_new_iota(&type));
}

/* Operand @value of a node of the body as the node around reads it. @rank: of the body's result, if
 * it broadcasts. */
static KilnValue *
build_operand(const KilnLift *lift, KilnValue *value, int rank, GError **error)
{
    KilnNode *before = lift->loop->node;
    if (!value || !kiln_loop_makes(lift->loop, value))
        return value;
    if (is_outer(lift, value)) {
        const KilnConstant *constant = kiln_value_constant(value);
        return kiln_moved_constant(before->function, before, constant->name,
                                   kiln_tensor_copy(constant->tensor), &constant->type);
    }
    KilnValue *stacked = g_hash_table_lookup(lift->lifted, value);
    const int missing = rank - value->type.rank;
    if (missing <= 0)
        return stacked;
    KilnType type = stacked->type;
    type.rank += missing;
    for (int d = type.rank - 1; d > 0; d--) {
        const bool new = d <= missing;
        type.dims[d] = new ? 1 : stacked->type.dims[d - missing];
        type.open[d] = new ? NULL : stacked->type.open[d - missing];
    }
    return kiln_reshape_build(before->function, before, stacked, &type, error);
}

static KilnValue *
build_same_op(const KilnLift *lift, const KilnNode *node, bool broadcasts, GError **error)
{
    g_autofree KilnValue **operands = g_new0(KilnValue *, node->n_operands + 1);
    KilnNode *before = lift->loop->node;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        operands[i] = build_operand(lift, node->operands[i].value,
                                    broadcasts ? node->results[0].type.rank : 0, error);
        if (!operands[i] && node->operands[i].value)
            return NULL;
    }
    const KilnNodeSpec spec = { .op = node->op,
                                .operands = operands,
                                .n_operands = node->n_operands,
                                .attrs = node->attrs,
                                .result_name = node->results[0].name,
                                .before = before };
    KilnNode *made = kiln_node_new(before->function, &spec, error);
    return made ? &made->results[0] : NULL;
}

static KilnValue *
build_transpose(const KilnNode *node, KilnValue *stacked, KilnNode *before, GError **error)
{
    int inner[KILN_MAX_RANK];
    int64_t perm[KILN_MAX_RANK] = { 0 };
    if (!kiln_transpose_perm(node, inner, error))
        return NULL;
    for (int d = 1; d < stacked->type.rank; d++)
        perm[d] = inner[d - 1] + 1;
    return build_permuted(before, stacked, perm, error);
}

static KilnValue *
build_node(const KilnLift *lift, const KilnNode *node, GError **error)
{
    KilnNode *before = lift->loop->node;
    if (kiln_node_is(node, "matmul"))
        return build_same_op(lift, node, false, error);
    if (kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE))
        return build_same_op(lift, node, true, error);
    KilnValue *operand = build_operand(lift, node->operands[0].value, 0, error);
    if (!operand)
        return NULL;
    if (kiln_node_is(node, "transpose"))
        return build_transpose(node, operand, before, error);
    if (kiln_node_is(node, "gather"))
        return kiln_dim_move_build(before, operand, gather_axis(node), 0, error);
    const KilnType type = kiln_lift_type(lift, &node->results[0]);
    return kiln_reshape_build(before->function, before, operand, &type, error);
}

static void
need(const KilnLift *lift, KilnValue *value, GHashTable *needed, GPtrArray *work)
{
    if (value && g_hash_table_lookup(lift->lifted, value) == value &&
        g_hash_table_add(needed, value))
        g_ptr_array_add(work, value);
}

/* What is not built yet, and @value is computed from. */
static GHashTable *
find_needed(const KilnLift *lift, KilnValue *value)
{
    GHashTable *needed = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) work = g_ptr_array_new();
    need(lift, value, needed, work);
    while (work->len) {
        const KilnValue *next = g_ptr_array_remove_index(work, work->len - 1);
        for (uint32_t i = 0;
             next->def && !kiln_node_is(next->def, "gather") && i < next->def->n_operands; i++)
            need(lift, next->def->operands[i].value, needed, work);
    }
    return needed;
}

double
kiln_lift_bytes(const KilnLift *lift, KilnValue *value)
{
    g_autoptr(GHashTable) needed = find_needed(lift, value);
    const KilnFunction *body = lift->loop->body;
    double most = 0;
    for (guint i = 0; i < body->arguments->len; i++) {
        const KilnValue *argument = &kiln_function_argument(body, i)->value;
        const KilnType type = kiln_lift_type(lift, argument);
        if (g_hash_table_contains(needed, argument))
            most = MAX(most, kiln_likely_bytes(&type));
    }
    kiln_foreach_node (node, body) {
        if (node->n_results != 1 || !g_hash_table_contains(needed, &node->results[0]))
            continue;
        const KilnType type = kiln_lift_type(lift, &node->results[0]);
        most = MAX(most, kiln_likely_bytes(&type));
    }
    return most;
}

KilnValue *
kiln_lift_build(KilnLift *lift, KilnValue *value, GError **error)
{
    g_autoptr(GHashTable) needed = find_needed(lift, value);
    for (guint i = 0; i < lift->loop->body->arguments->len; i++) {
        KilnValue *argument = &kiln_function_argument(lift->loop->body, i)->value;
        KilnValue *made =
            g_hash_table_contains(needed, argument) ? build_argument(lift, argument, error) : NULL;
        if (made)
            kiln_lift_give(lift, argument, made);
        else if (g_hash_table_contains(needed, argument))
            return NULL;
    }
    kiln_foreach_node (node, lift->loop->body) {
        if (node->n_results != 1 || !g_hash_table_contains(needed, &node->results[0]))
            continue;
        KilnValue *made = build_node(lift, node, error);
        if (!made)
            return NULL;
        kiln_lift_give(lift, &node->results[0], made);
    }
    return g_hash_table_lookup(lift->lifted, value);
}

/* --- results --- */

bool
kiln_lift_can_stack(const KilnLift *lift, uint32_t r)
{
    const KilnLoopView *loop = lift->loop;
    return loop->node->results[r].n_uses && kiln_loop_stack_reverse(loop, r) == lift->reverse &&
           kiln_lift_can(lift, kiln_loop_returned(loop, r));
}

bool
kiln_lift_replace_stack(KilnLift *lift, uint32_t r, GError **error)
{
    const KilnLoopView *loop = lift->loop;
    KilnValue *rows = kiln_lift_build(lift, kiln_loop_returned(loop, r), error);
    KilnValue *value =
        rows ? kiln_dim_move_build(loop->node, rows, 0, kiln_loop_stack_axis(loop, r), error)
             : NULL;
    if (value)
        kiln_value_replace(&loop->node->results[r], value);
    return value != NULL;
}

bool
kiln_lift_replace_stacks(KilnLift *lift, uint32_t k, GError **error)
{
    const KilnLoopView *loop = lift->loop;
    g_autoptr(GHashTable) readers = kiln_loop_readers(loop, k);
    for (uint32_t r = loop->carried; r < loop->node->n_results; r++) {
        if (kiln_lift_can_stack(lift, r) &&
            g_hash_table_contains(readers, kiln_loop_returned(loop, r)) &&
            !kiln_lift_replace_stack(lift, r, error))
            return false;
    }
    return true;
}

bool
kiln_lift_is_read(const KilnLift *lift, uint32_t k)
{
    const KilnLoopView *loop = lift->loop;
    g_autoptr(GHashTable) readers = kiln_loop_readers(loop, k);
    bool read = loop->node->results[k].n_uses > 0;
    for (uint32_t r = loop->carried; !read && r < loop->node->n_results; r++)
        read = loop->node->results[r].n_uses &&
               g_hash_table_contains(readers, kiln_loop_returned(loop, r));
    return read;
}

static bool
is_listed(const uint32_t *states, uint32_t n, uint32_t k)
{
    bool listed = false;
    for (uint32_t i = 0; i < n; i++)
        listed |= states[i] == k;
    return listed;
}

bool
kiln_lift_leaves_need(const KilnLift *lift, const uint32_t *states, uint32_t n)
{
    const KilnLoopView *loop = lift->loop;
    g_autofree KilnValue **left = g_new0(KilnValue *, loop->node->n_results + 1);
    uint32_t n_left = 0;
    for (uint32_t r = 0; r < loop->node->n_results; r++) {
        const bool goes =
            r < loop->carried ? is_listed(states, n, r) : kiln_lift_can_stack(lift, r);
        if (loop->node->results[r].n_uses && !goes)
            left[n_left++] = kiln_loop_returned(loop, r);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (kiln_loop_needs(loop, left, n_left, states[i]))
            return true;
    }
    return false;
}
