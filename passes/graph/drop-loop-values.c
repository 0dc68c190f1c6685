/* SPDX-License-Identifier: Apache-2.0 */
/* drop-loop-values: loops, scans and branches carry and return only what is needed.
 *
 *     a   w                                     a   w
 *     |   |                                     |   |\
 *     loop body(%x, %k) {         =>            loop body(%x) {    captured
 *       y = mul(x, k)                             y = mul(x, w)
 *       return y, k, y                            return y
 *     }                                         }
 *
 *   capture-unchanged   the body returns a carried value as it got it: readers of the argument, and
 *                       of the result, read the operand
 *   take-from-around    both branches of an `if` return one value from around it: readers of the
 *                       result read this value
 *   drop-unread         results and carried values that nothing reads go; what only computes the
 *                       next of itself counts as nothing
 *
 * A loop or `if` of which nothing is left goes, too. Names of dims that only dropped results have
 * leave the attribute `dims`. What is carried stays where a needed value has a dim of its name.
 *
 * requires nothing, preserves nothing; class E. Runs behind inline-branches, and in front of
 * hoist-from-loops, which moves what reads only captured values. */
#include "graph/dim/dim_defined.h"
#include "graph/module/flow.h"
#include "graph/op/flow.h"
#include "passes/pass.h"
#include "passes/query/loop_view.h"

#include <string.h>

/* --- values that stay the same --- */

/* A loop or scan. */
typedef struct {
    KilnPassContext *context;
    KilnNode *node;
    KilnFunction *body;
    uint32_t first, carried; /* operands, and arguments of the body */
    uint32_t asks;           /* 1 where the body returns a condition first */
    bool *needed;            /* per result */
    GHashTable *read;        /* KilnValue* of the body that are needed */
    GPtrArray *work;         /* of these, those whose operands are not looked at yet */
} Loop;

static KilnValue *
argument_of(const Loop *loop, uint32_t k)
{
    return &kiln_function_argument(loop->body, loop->first + k)->value;
}

static KilnValue *
returned(const Loop *loop, uint32_t r)
{
    return kiln_function_return(loop->body)->operands[loop->asks + r].value;
}

static bool
may_capture(const Loop *loop, uint32_t k)
{
    static const char rule[] = "capture-unchanged";
    KilnPassContext *context = loop->context;
    const KilnValue *argument = argument_of(loop, k), *next = returned(loop, k);
    const KilnValue *operand = kiln_node_operand(loop->node, loop->first + k);
    const KilnValue *result = &loop->node->results[k];
    if (!operand || (next != argument && next != operand) || (!argument->n_uses && !result->n_uses))
        return false;
    PASS_GUARD(same_type, kiln_type_equal(&argument->type, &operand->type) &&
                              kiln_type_equal(&result->type, &operand->type));
    kiln_pass_note(context, rule, "%s of %s", argument->name, kiln_node_label(loop->node));
    return true;
}

/* A value that is captured may make those stay the same that become it in the next iteration. */
static bool
capture_unchanged(const Loop *loop)
{
    const KilnNode *last = kiln_function_return(loop->body);
    g_autoptr(GArray) work = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    bool changed = false;
    for (uint32_t k = loop->carried; k-- > 0;)
        g_array_append_val(work, k);
    while (work->len) {
        const uint32_t k = g_array_index(work, uint32_t, work->len - 1);
        g_array_set_size(work, work->len - 1);
        if (!may_capture(loop, k))
            continue;
        kiln_foreach_use (use, argument_of(loop, k)) {
            const uint32_t next = use->index - loop->asks;
            if (use->user == last && use->index >= loop->asks && next < loop->carried)
                g_array_append_val(work, next);
        }
        KilnValue *operand = kiln_node_operand(loop->node, loop->first + k);
        kiln_value_replace(argument_of(loop, k), operand);
        kiln_value_replace(&loop->node->results[k], operand);
        changed = true;
    }
    return changed;
}

/* --- values that are read --- */

static void
need(Loop *loop, KilnValue *value)
{
    if (value && g_hash_table_add(loop->read, value))
        g_ptr_array_add(loop->work, value);
}

static void
need_operands(Loop *loop, const KilnNode *node)
{
    g_autoptr(GPtrArray) captures = g_ptr_array_new();
    for (uint32_t i = 0; i < node->n_operands; i++)
        need(loop, node->operands[i].value);
    kiln_node_add_captures(node, captures);
    for (guint i = 0; i < captures->len; i++)
        need(loop, g_ptr_array_index(captures, i));
}

static void
need_result(Loop *loop, uint32_t r)
{
    loop->needed[r] = true;
    need(loop, returned(loop, r));
}

/* All that the needed values are computed from. */
static void
follow(Loop *loop)
{
    while (loop->work->len) {
        const KilnValue *value = g_ptr_array_remove_index(loop->work, loop->work->len - 1);
        if (value->def && value->def->function == loop->body)
            need_operands(loop, value->def);
        if (value->def || ((const KilnArgument *)value)->function != loop->body)
            continue;
        if (value->index >= loop->first && value->index < loop->first + loop->carried)
            need_result(loop, value->index - loop->first);
    }
}

static void
find_needed(Loop *loop)
{
    if (loop->asks)
        need(loop, kiln_function_return(loop->body)->operands[0].value);
    for (uint32_t r = 0; r < loop->node->n_results; r++) {
        if (loop->node->results[r].n_uses)
            need_result(loop, r);
    }
    kiln_foreach_node (inner, loop->body) {
        if (kiln_node_has_effect(inner))
            need_operands(loop, inner);
    }
    follow(loop);
}

/* --- names of dims --- */

static bool
is_name(void *data, const char *name)
{
    return strcmp(data, name) == 0;
}

static bool
mentions(const KilnValue *value, const char *name)
{
    for (int d = 0; d < value->type.rank; d++) {
        const KilnDim *dim = value->type.open[d];
        if (dim && kiln_dim_any_name(dim, is_name, (void *)name))
            return true;
    }
    for (uint32_t i = 0; value->extents && i < value->extents->n; i++) {
        const KilnDim *dim = value->extents->v[i];
        if (dim && kiln_dim_any_name(dim, is_name, (void *)name))
            return true;
    }
    return false;
}

/* True where a value of @function or of its subgraphs mentions @name. Of @node and its body (@loop,
 * NULL: none), only needed values count. */
static bool
is_mentioned(const KilnFunction *function, const Loop *loop, const KilnNode *node, const char *name)
{
    const bool body = loop && function == loop->body;
    for (guint i = 0; i < function->arguments->len; i++) {
        const KilnValue *value = &kiln_function_argument(function, i)->value;
        if (mentions(value, name) && (!body || g_hash_table_contains(loop->read, value)))
            return true;
    }
    kiln_foreach_node (inner, function) {
        bool counts = !body || !inner->n_results;
        for (uint32_t r = 0; r < inner->n_results; r++) {
            const KilnValue *value = &inner->results[r];
            const bool read =
                inner == node ? value->n_uses : !body || g_hash_table_contains(loop->read, value);
            counts |= read;
            if (read && mentions(value, name))
                return true;
        }
        kiln_foreach_region (region, inner) {
            if (counts && is_mentioned(region, loop, node, name))
                return true;
        }
    }
    return false;
}

/* True where the dims of @value have a name that those of @other lack, and others mention it. */
static bool
names_others(const KilnFunction *function, const Loop *loop, const KilnNode *node,
             const KilnValue *value, const KilnValue *other)
{
    for (int d = 0; d < value->type.rank; d++) {
        const char *name = kiln_type_dim_name(&value->type, d);
        if (name && !(other && kiln_type_equal_dims(&value->type, d, &other->type, d)) &&
            is_mentioned(function, loop, node, name))
            return true;
    }
    return false;
}

static bool
is_listed(const KilnNode *node, const char *name)
{
    const KilnStrings *dims = kiln_flow_dims(node);
    for (uint32_t i = 0; i < dims->n; i++) {
        if (strcmp(dims->v[i], name) == 0)
            return true;
    }
    return false;
}

/* The names of @node that its results with a mark in @kept have. */
static KilnStrings
listed_names(const KilnNode *node, const bool *kept)
{
    KilnStrings names = { 0 };
    const KilnStrings *dims = kiln_flow_dims(node);
    names.v = kiln_arena_new0(node->function->module->arena, const char *, dims->n + 1);
    for (uint32_t i = 0; i < dims->n; i++) {
        bool used = false;
        for (uint32_t r = 0; r < node->n_results; r++)
            used |= kept[r] && mentions(&node->results[r], dims->v[i]);
        if (used)
            names.v[names.n++] = dims->v[i];
    }
    return names;
}

/* True where result @r of @node defines a name that others mention. */
static bool
result_names_others(const KilnNode *node, uint32_t r)
{
    const KilnType *type = &node->results[r].type;
    for (int d = 0; d < type->rank; d++) {
        const char *name = kiln_type_dim_name(type, d);
        if (name && is_listed(node, name) && is_mentioned(node->function, NULL, node, name))
            return true;
    }
    return false;
}

/* --- dropping --- */

static bool
may_drop(KilnPassContext *context, const Loop *loop, const KilnNode *node, uint32_t r)
{
    static const char rule[] = "drop-unread";
    if (loop && r < loop->carried)
        PASS_GUARD(names_argument, !names_others(loop->body, loop, node, argument_of(loop, r),
                                                 kiln_node_operand(node, loop->first + r)));
    PASS_GUARD(names_result, !result_names_others(node, r));
    return true;
}

/* Marks what is needed only for the names of its dims. True where something is left to drop. */
static bool
settle_needed(KilnPassContext *context, Loop *loop, const KilnNode *node, bool *needed)
{
    bool any, again;
    do {
        any = again = false;
        for (uint32_t r = 0; r < node->n_results; r++) {
            if (needed[r])
                continue;
            if (may_drop(context, loop, node, r)) {
                any = true;
                continue;
            }
            needed[r] = true;
            if (!loop)
                continue;
            need_result(loop, r);
            follow(loop);
            again = true; /* it may need others */
        }
    } while (again);
    return any;
}

/* The results of @node with a mark in @kept become those of @spec. The body stays. */
static gboolean
remake(KilnNode *node, KilnNodeSpec *spec, const bool *kept, GError **error)
{
    g_autofree KilnType *types = g_new0(KilnType, node->n_results + 1);
    spec->n_results = 0;
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (kept[r])
            types[spec->n_results++] = node->results[r].type;
    }
    spec->op = node->op;
    spec->name = node->name;
    spec->types = types;
    spec->before = node;
    KilnNode *made = spec->n_results ? kiln_node_new(node->function, spec, error) : NULL;
    if (!made && spec->n_results)
        return FALSE;
    for (uint32_t r = 0, to = 0; made && r < node->n_results; r++) {
        if (kept[r])
            kiln_value_replace(&node->results[r], &made->results[to++]);
    }
    kiln_node_remove(node);
    return TRUE;
}

/* @region returns only results with a mark in @kept, behind @asks others. */
static gboolean
keep_results(KilnFunction *region, uint32_t asks, const bool *kept, GError **error)
{
    const KilnNode *last = kiln_function_return(region);
    g_autofree KilnValue **values = g_new0(KilnValue *, last->n_operands + 1);
    g_autofree const char **names = g_new0(const char *, last->n_operands + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < last->n_operands; i++) {
        if (i >= asks && !kept[i - asks])
            continue;
        names[n] = g_ptr_array_index(region->result_names, i);
        values[n++] = last->operands[i].value;
    }
    if (!kiln_function_set_results(region, values, names, n, error))
        return FALSE;
    kiln_foreach_node_reverse (inner, region) {
        if (kiln_node_is_dead(inner))
            kiln_node_remove(inner);
    }
    return TRUE;
}

static KilnInts
keep_ints(KilnArena *arena, KilnInts list, const bool *kept)
{
    KilnInts out = { .v = kiln_arena_new0(arena, int64_t, list.n + 1) };
    for (uint32_t i = 0; i < list.n; i++) {
        if (kept[i])
            out.v[out.n++] = list.v[i];
    }
    return out;
}

static gboolean
remake_loop(const Loop *loop, GError **error)
{
    KilnNode *node = loop->node;
    KilnArena *arena = node->function->module->arena;
    g_autofree KilnValue **operands = g_new0(KilnValue *, node->n_operands + 1);
    g_autofree KilnArgument **arguments = g_new0(KilnArgument *, node->n_operands + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const bool carried = i >= loop->first && i < loop->first + loop->carried;
        if (carried && !loop->needed[i - loop->first])
            continue;
        operands[n] = node->operands[i].value;
        arguments[n++] = kiln_function_argument(loop->body, i);
    }
    if (!keep_results(loop->body, loop->asks, loop->needed, error))
        return FALSE;
    kiln_function_keep_arguments(loop->body, arguments, n);
    KilnNodeSpec spec = { .operands = operands, .n_operands = n };
    if (node->op == KILN_OP_loop) {
        const KilnAttrs_loop attrs = { .body = loop->body,
                                       .dims = listed_names(node, loop->needed) };
        spec.attrs = &attrs;
        return remake(node, &spec, loop->needed, error);
    }
    KilnAttrs_scan attrs = *kiln_attrs(node, scan);
    attrs.dims = listed_names(node, loop->needed);
    attrs.scan_output_axes = keep_ints(arena, attrs.scan_output_axes, loop->needed + loop->carried);
    attrs.scan_output_directions =
        keep_ints(arena, attrs.scan_output_directions, loop->needed + loop->carried);
    spec.attrs = &attrs;
    return remake(node, &spec, loop->needed, error);
}

static gboolean
drop_from_loop(KilnPassContext *context, KilnNode *node, bool *changed, GError **error)
{
    g_autofree bool *needed = g_new0(bool, node->n_results + 1);
    g_autoptr(GHashTable) read = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) work = g_ptr_array_new();
    const bool scan = node->op == KILN_OP_scan;
    Loop loop = { .context = context,
                  .node = node,
                  .body = scan ? kiln_attrs(node, scan)->body : kiln_attrs(node, loop)->body,
                  .asks = scan ? 0 : 1,
                  .needed = needed,
                  .read = read,
                  .work = work };
    kiln_flow_carried(node, &loop.first, &loop.carried);
    if (node->n_operands < loop.first || kiln_region_refusal(loop.body))
        return TRUE;
    *changed |= capture_unchanged(&loop);
    find_needed(&loop);
    if (!settle_needed(context, &loop, node, needed))
        return TRUE;
    kiln_pass_note(context, "drop-unread", "%s", kiln_node_label(node));
    *changed = true;
    return remake_loop(&loop, error);
}

/* --- branches --- */

static bool
may_take(KilnPassContext *context, KilnNode *node, uint32_t r, KilnValue **out)
{
    static const char rule[] = "take-from-around";
    const KilnAttrs_if *attrs = kiln_attrs(node, if);
    KilnValue *value = kiln_function_return(attrs->then_branch)->operands[r].value;
    if (value != kiln_function_return(attrs->else_branch)->operands[r].value ||
        !node->results[r].n_uses)
        return false;
    PASS_GUARD(same_type, kiln_type_equal(&value->type, &node->results[r].type));
    kiln_pass_note(context, rule, "%s", node->results[r].name);
    *out = value;
    return true;
}

static gboolean
drop_from_if(KilnPassContext *context, KilnNode *node, bool *changed, GError **error)
{
    g_autofree bool *needed = g_new0(bool, node->n_results + 1);
    const KilnAttrs_if *attrs = kiln_attrs(node, if);
    for (uint32_t r = 0; r < node->n_results; r++) {
        KilnValue *value;
        if (may_take(context, node, r, &value)) {
            kiln_value_replace(&node->results[r], value);
            *changed = true;
        }
        needed[r] = node->results[r].n_uses > 0;
    }
    if (!settle_needed(context, NULL, node, needed))
        return TRUE;
    kiln_pass_note(context, "drop-unread", "%s", kiln_node_label(node));
    *changed = true;
    const KilnAttrs_if made = { .then_branch = attrs->then_branch,
                                .else_branch = attrs->else_branch,
                                .dims = listed_names(node, needed) };
    KilnValue *condition = kiln_node_operand(node, 0);
    KilnNodeSpec spec = { .operands = &condition, .n_operands = 1, .attrs = &made };
    return keep_results(made.then_branch, 0, needed, error) &&
           keep_results(made.else_branch, 0, needed, error) && remake(node, &spec, needed, error);
}

GRAPH_PASS(drop_loop_values);

gboolean
kiln_pass_drop_loop_values(KilnFunction *function, KilnPassContext *context, bool *changed,
                           GError **error)
{
    *changed = false;
    if (!function->n_region_nodes)
        return TRUE;
    kiln_foreach_node_safe (node, function) {
        if (!kiln_op_is_flow(node->op))
            continue;
        if (!(node->op == KILN_OP_if ? drop_from_if(context, node, changed, error)
                                     : drop_from_loop(context, node, changed, error)))
            return FALSE;
    }
    return TRUE;
}
