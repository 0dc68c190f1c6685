/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/loop_view.h"

#include "graph/module/flow.h"
#include "graph/node.h"
#include "graph/op/flow.h"

gboolean
kiln_loops_visit(KilnFunction *function, KilnPassContext *context, KilnLoopVisit visit,
                 bool *changed, GError **error)
{
    KilnLoopView loop;
    *changed = false;
    if (!function->n_region_nodes)
        return TRUE;
    kiln_foreach_node_safe (node, function) {
        if (kiln_loop_view(node, &loop) && !visit(context, &loop, changed, error))
            return FALSE;
    }
    return TRUE;
}

double
kiln_likely_bytes(const KilnType *type)
{
    return (double)MAX(kiln_type_likely_elements(type), 0) * (double)kiln_dtype_size(type->dtype);
}

bool
kiln_node_has_effect(const KilnNode *node)
{
    if (kiln_op_info(node->op)->traits & (KILN_TRAIT_SIDE_EFFECT | KILN_TRAIT_STATE))
        return node->op != KILN_OP_return;
    kiln_foreach_region (region, node) {
        kiln_foreach_node (inner, region) {
            if (kiln_node_has_effect(inner))
                return true;
        }
    }
    return false;
}

bool
kiln_loop_view(KilnNode *node, KilnLoopView *out)
{
    if (node->op != KILN_OP_loop && node->op != KILN_OP_scan)
        return false;
    const bool scan = node->op == KILN_OP_scan;
    *out =
        (KilnLoopView){ .node = node,
                        .body = scan ? kiln_attrs(node, scan)->body : kiln_attrs(node, loop)->body,
                        .asks = scan ? 0 : 1 };
    kiln_flow_carried(node, &out->first, &out->carried);
    if (node->n_operands < out->first + out->carried)
        return false;
    out->scanned = node->n_operands - out->first - out->carried;
    for (uint32_t i = out->first; i < node->n_operands; i++) {
        if (!node->operands[i].value)
            return false;
    }
    return true;
}

KilnValue *
kiln_loop_argument(const KilnLoopView *loop, uint32_t k)
{
    return &kiln_function_argument(loop->body, loop->first + k)->value;
}

KilnValue *
kiln_loop_operand(const KilnLoopView *loop, uint32_t k)
{
    return loop->node->operands[loop->first + k].value;
}

KilnValue *
kiln_loop_returned(const KilnLoopView *loop, uint32_t r)
{
    return kiln_function_return(loop->body)->operands[loop->asks + r].value;
}

bool
kiln_loop_makes(const KilnLoopView *loop, const KilnValue *value)
{
    return kiln_value_function(value) == loop->body;
}

KilnValue *
kiln_loop_number(const KilnLoopView *loop)
{
    return loop->first ? &kiln_function_argument(loop->body, 0)->value : NULL;
}

bool
kiln_loop_keeps_type(const KilnLoopView *loop, uint32_t k)
{
    const KilnType *type = &kiln_loop_argument(loop, k)->type;
    return !type->contents && kiln_type_is_known(type) &&
           kiln_type_equal(type, &kiln_loop_operand(loop, k)->type) &&
           kiln_type_equal(type, &kiln_loop_returned(loop, k)->type) &&
           kiln_type_equal(type, &loop->node->results[k].type);
}

bool
kiln_loop_scan_reverse(const KilnLoopView *loop)
{
    return !loop->asks &&
           kiln_ints_at(kiln_attrs(loop->node, scan)->scan_input_directions, 0, 0) == 1;
}

int
kiln_loop_stack_axis(const KilnLoopView *loop, uint32_t r)
{
    const int64_t axis = loop->asks ? 0
                                    : kiln_ints_at(kiln_attrs(loop->node, scan)->scan_output_axes,
                                                   r - loop->carried, 0);
    return kiln_type_axis(&loop->node->results[r].type, axis);
}

bool
kiln_loop_stack_reverse(const KilnLoopView *loop, uint32_t r)
{
    return !loop->asks && kiln_ints_at(kiln_attrs(loop->node, scan)->scan_output_directions,
                                       r - loop->carried, 0) == 1;
}

double
kiln_loop_bytes(const KilnLoopView *loop)
{
    double bytes = 0;
    for (uint32_t i = loop->first; i < loop->node->n_operands; i++)
        bytes += kiln_likely_bytes(&loop->node->operands[i].value->type);
    for (uint32_t r = 0; r < loop->node->n_results; r++) {
        if (loop->node->results[r].n_uses)
            bytes += kiln_likely_bytes(&loop->node->results[r].type);
    }
    return bytes;
}

/* --- what a value is computed from --- */

typedef struct {
    const KilnLoopView *loop;
    GHashTable *seen; /* KilnValue* of the body */
    GPtrArray *work;
} Walk;

static void
visit(const Walk *walk, KilnValue *value)
{
    if (value && kiln_loop_makes(walk->loop, value) && g_hash_table_add(walk->seen, value))
        g_ptr_array_add(walk->work, value);
}

static void
visit_operands(const Walk *walk, const KilnNode *node)
{
    g_autoptr(GPtrArray) captures = g_ptr_array_new();
    for (uint32_t i = 0; i < node->n_operands; i++)
        visit(walk, node->operands[i].value);
    kiln_node_add_captures(node, captures);
    for (guint i = 0; i < captures->len; i++)
        visit(walk, g_ptr_array_index(captures, i));
}

/* True where the walk comes to carried value @k. */
static bool
comes_to(const Walk *walk, uint32_t k)
{
    const KilnLoopView *loop = walk->loop;
    while (walk->work->len) {
        const KilnValue *value = g_ptr_array_remove_index(walk->work, walk->work->len - 1);
        if (value == kiln_loop_argument(loop, k))
            return true;
        if (value->def)
            visit_operands(walk, value->def);
        else if (value->index >= loop->first && value->index < loop->first + loop->carried)
            visit(walk, kiln_loop_returned(loop, value->index - loop->first));
    }
    return false;
}

static bool
reads_any(const KilnNode *node, GHashTable *values)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value && g_hash_table_contains(values, node->operands[i].value))
            return true;
    }
    if (!kiln_op_has(node->op, KILN_TRAIT_REGION))
        return false;
    g_autoptr(GPtrArray) captures = g_ptr_array_new();
    kiln_node_add_captures(node, captures);
    for (guint i = 0; i < captures->len; i++) {
        if (g_hash_table_contains(values, g_ptr_array_index(captures, i)))
            return true;
    }
    return false;
}

GHashTable *
kiln_loop_readers(const KilnLoopView *loop, uint32_t k)
{
    GHashTable *readers = g_hash_table_new(NULL, NULL);
    g_hash_table_add(readers, kiln_loop_argument(loop, k));
    kiln_foreach_node (node, loop->body) {
        const bool reads = reads_any(node, readers);
        for (uint32_t r = 0; reads && r < node->n_results; r++)
            g_hash_table_add(readers, &node->results[r]);
    }
    return readers;
}

bool
kiln_loop_needs(const KilnLoopView *loop, KilnValue *const *values, uint32_t n, uint32_t k)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) work = g_ptr_array_new();
    const Walk walk = { loop, seen, work };
    if (loop->asks)
        visit(&walk, kiln_function_return(loop->body)->operands[0].value);
    for (uint32_t i = 0; i < n; i++)
        visit(&walk, values[i]);
    kiln_foreach_node (node, loop->body) {
        if (kiln_node_has_effect(node))
            visit_operands(&walk, node);
    }
    return comes_to(&walk, k);
}
