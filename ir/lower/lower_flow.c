/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering of branches and loops that a run decides. Each subgraph becomes a function of its own.
 * What it reads from around it becomes inputs of that function, weights apart. */
#include "graph/binding.h"
#include "graph/module/define.h"
#include "graph/module/flow.h"
#include "graph/module/flow_types.h"
#include "graph/node.h"
#include "graph/op/flow.h"
#include "ir/flow_names.h"
#include "ir/lower/lower_priv.h"
#include "ir/open.h"

/* An instruction that is put together. */
typedef struct {
    KilnLower *l;
    const KilnNode *node;
    GPtrArray *captures;      /* KilnValue*: inputs of the functions, behind their own */
    GPtrArray *out, *in;      /* KilnBuffer*: operands */
    GArray *decided, *places; /* int64_t: pairs; and per pair the name that it defines */
    GPtrArray *names;         /* KilnDim*: needed by the functions */
    KilnBuffer *counts, *held;
    uint32_t n_held;
} Flow;

static void
flow_clear(Flow *flow)
{
    g_ptr_array_unref(flow->captures);
    g_ptr_array_unref(flow->out);
    g_ptr_array_unref(flow->in);
    g_array_unref(flow->decided);
    g_ptr_array_unref(flow->names);
    g_array_unref(flow->places);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Flow, flow_clear)

static Flow
flow_begin(KilnLower *l, const KilnNode *node)
{
    return (Flow){ .l = l,
                   .node = node,
                   .captures = kiln_lower_captures(node),
                   .out = g_ptr_array_new(),
                   .in = g_ptr_array_new(),
                   .decided = g_array_new(FALSE, FALSE, sizeof(int64_t)),
                   .places = g_array_new(FALSE, FALSE, sizeof(const KilnDim *)),
                   .names = g_ptr_array_new() };
}

static KilnBuffer *
alloc_list(const Flow *flow, const char *what, int64_t n)
{
    g_autofree char *name = g_strconcat(flow->node->results[0].name, "_", what, NULL);
    KilnType type = kiln_type_make(KILN_DTYPE_i64, 1, &n);
    return kiln_ir_alloc(flow->l->ir, name, &type, NULL);
}

/* --- results --- */

/* Notes which dims of result @r a run decides, dim @from of the value as dim 0 of what the function
 * gives. True where there is one. */
static bool
add_decided(Flow *flow, uint32_t r, const int *dim_of)
{
    const KilnType *type = &flow->node->results[r].type;
    bool any = false;
    for (int d = 0; d < type->rank; d++) {
        int from = dim_of ? dim_of[d] : d;
        if (!kiln_flow_is_listed(flow->node, kiln_type_dim_name(type, from)))
            continue;
        int64_t pair[] = { r, d };
        const KilnDim *name = type->open[from];
        g_array_append_vals(flow->decided, pair, 2);
        g_array_append_val(flow->places, name);
        any = true;
    }
    flow->n_held += any;
    return any;
}

/* The counts of held results become numbers of names. */
static gboolean
emit_define(const Flow *flow, GError **error)
{
    int64_t values[KILN_DEFINED_MAX], most[KILN_DEFINED_MAX];
    const KilnDim *const *open = (const KilnDim *const *)(void *)flow->places->data;
    KilnLower *l = flow->l;
    if (!l->ir->open || flow->places->len > KILN_DEFINED_MAX)
        return kiln_lower_throw(flow->node, KILN_ERROR_UNSUPPORTED, error,
                                "a run decides dims of its results, and no names were defined for "
                                "them");
    for (guint i = 0; i < flow->places->len; i++) {
        KilnDimFacts facts;
        kiln_dim_facts(open[i], &facts);
        most[i] = facts.hi == KILN_DIM_MOST ? -1 : facts.hi;
        if (!kiln_dim_evaluate(open[i], kiln_dim_binding_lookup, (void *)kiln_open_binding(l->ir),
                               &values[i], error))
            return FALSE;
    }
    const KilnInstrAttrs_define attrs = {
        .values = kiln_lower_ints_open(l, values, open, (int)flow->places->len),
        .most = kiln_lower_ints(l, most, (int)flow->places->len)
    };
    KilnBuffer *counts = flow->counts;
    return kiln_lower_emit(l, flow->node, KILN_INSTR_define, &counts, 1, &attrs, error);
}

static gboolean
emit_take(const Flow *flow, KilnBuffer *to, uint32_t index, GError **error)
{
    const KilnInstrAttrs_take attrs = { .index = index };
    KilnBuffer *operands[] = { to, flow->held };
    return kiln_lower_emit(flow->l, flow->node, KILN_INSTR_take, operands, 2, &attrs, error);
}

/* --- names --- */

static void
add_names(Flow *flow, const KilnIRFunction *function, const GPtrArray *own)
{
    g_autoptr(GPtrArray) needed = kiln_flow_needed_names(function);
    for (guint i = 0; i < needed->len; i++) {
        gpointer name = g_ptr_array_index(needed, i);
        if (!g_ptr_array_find(flow->names, name, NULL) &&
            !(own && g_ptr_array_find((GPtrArray *)own, name, NULL)))
            g_ptr_array_add(flow->names, name);
    }
}

static gboolean
state_names(const Flow *flow, KilnStrings *names, KilnInts *numbers, GError **error)
{
    KilnLower *l = flow->l;
    guint n = flow->names->len;
    const char **words = kiln_arena_new0(l->ir->arena, const char *, n + 1);
    g_autofree int64_t *values = g_new0(int64_t, n + 1);
    for (guint i = 0; i < n; i++) {
        const KilnDim *name = g_ptr_array_index(flow->names, i);
        words[i] = kiln_dim_as_name(name);
        if (!kiln_dim_evaluate(name, kiln_dim_binding_lookup, (void *)kiln_open_binding(l->ir),
                               &values[i], error))
            return FALSE;
    }
    *names = (KilnStrings){ .n = n, .v = words };
    *numbers = kiln_lower_ints_open(l, values, (const KilnDim *const *)flow->names->pdata, (int)n);
    return TRUE;
}

/* --- the instruction --- */

static void
add_captures(Flow *flow)
{
    for (guint i = 0; i < flow->captures->len; i++) {
        KilnValue *value = g_ptr_array_index(flow->captures, i);
        g_ptr_array_add(
            flow->in,
            kiln_lower_form(flow->l, value, g_hash_table_lookup(flow->l->buffers, value), false));
    }
}

static gboolean
emit(Flow *flow, KilnInstrKind kind, const void *attrs, GError **error)
{
    if (flow->n_held) {
        flow->counts = alloc_list(flow, "counts", flow->places->len);
        flow->held = alloc_list(flow, "held", flow->n_held);
        g_ptr_array_add(flow->out, flow->counts);
        g_ptr_array_add(flow->out, flow->held);
    }
    uint32_t n_out = flow->out->len;
    for (guint i = 0; i < flow->in->len; i++) {
        if (!g_ptr_array_index(flow->in, i))
            return kiln_lower_throw(flow->node, KILN_ERROR_INVALID, error,
                                    "operand %u has no buffer", i);
        g_ptr_array_add(flow->out, g_ptr_array_index(flow->in, i));
    }
    KilnInstr *instr =
        kiln_instr_new_stated(flow->l->ir, kind, (KilnBuffer *const *)flow->out->pdata,
                              flow->out->len, n_out, attrs, NULL);
    kiln_lower_name(flow->l, flow->node, instr);
    return TRUE;
}

static KilnInts
decided_of(const Flow *flow)
{
    return kiln_lower_ints(flow->l, (const int64_t *)(void *)flow->decided->data,
                           (int)flow->decided->len);
}

/* --- branches --- */

gboolean
kiln_lower_if(KilnLower *l, const KilnNode *node, GError **error)
{
    const KilnAttrs_if *stated = kiln_attrs(node, if);
    const KilnFunction *regions[] = { stated->then_branch, stated->else_branch };
    g_autofree KilnType *types = g_new0(KilnType, node->n_results + 1);
    const KilnRegionParts parts = { .n_results = node->n_results, .types = types };
    KilnInstrAttrs_branch attrs = { .then = "" };
    const char **names[] = { &attrs.then, &attrs.otherwise };
    g_auto(Flow) flow = flow_begin(l, node);
    for (uint32_t r = 0; r < node->n_results; r++)
        types[r] = node->results[r].type;
    for (int b = 0; b < 2; b++) {
        const char *refusal = kiln_region_refusal(regions[b]);
        KilnIRFunction *function =
            refusal ? kiln_lower_refused(l, node, regions[b], refusal, flow.captures, error)
                    : kiln_lower_region(l, node, regions[b], &parts, flow.captures, error);
        if (!function)
            return FALSE;
        *names[b] = function->name;
        add_names(&flow, function, NULL);
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (!add_decided(&flow, r, NULL))
            g_ptr_array_add(flow.out, kiln_lower_result(l, node, r));
    }
    g_ptr_array_add(flow.in, kiln_lower_operand(l, node, 0));
    add_captures(&flow);
    attrs.decided = decided_of(&flow);
    if (!state_names(&flow, &attrs.names, &attrs.numbers, error) ||
        !emit(&flow, KILN_INSTR_branch, &attrs, error) ||
        (flow.n_held && !emit_define(&flow, error)))
        return FALSE;
    uint32_t index = 0;
    for (uint32_t r = 0; flow.n_held && r < node->n_results; r++) {
        bool held = false;
        for (guint i = 0; i < flow.decided->len; i += 2)
            held |= g_array_index(flow.decided, int64_t, i) == r;
        if (held && !emit_take(&flow, kiln_lower_result(l, node, r), index++, error))
            return FALSE;
    }
    return TRUE;
}

/* --- loops --- */

/* The names of arguments that differ from one iteration to the next. */
static GPtrArray *
own_names(const KilnNode *node, const KilnFunction *body)
{
    uint32_t first, carried;
    GPtrArray *own = g_ptr_array_new();
    kiln_flow_carried(node, &first, &carried);
    for (uint32_t i = first; i < first + carried; i++) {
        const KilnType *type = &kiln_function_argument(body, i)->value.type;
        const KilnType *outer = &node->operands[i].value->type;
        for (int d = 0; d < type->rank; d++) {
            if (type->open[d] && !kiln_type_equal_dims(type, d, outer, d))
                g_ptr_array_add(own, (gpointer)type->open[d]);
        }
    }
    return own;
}

/* @type with dim @axis in front. */
static KilnType
with_axis_first(const KilnType *type, int axis, int dim_of[KILN_MAX_RANK])
{
    KilnType front = *type;
    for (int d = 0; d < type->rank; d++) {
        int from = d == 0 ? axis : d - (d <= axis);
        dim_of[d] = from;
        front.dims[d] = type->dims[from];
        front.open[d] = type->open[from];
    }
    return front;
}

static gboolean
emit_transpose(const Flow *flow, KilnBuffer *to, KilnBuffer *from, const int64_t *perm, int rank,
               GError **error)
{
    const KilnInstrAttrs_transpose attrs = { .perm = kiln_lower_ints(flow->l, perm, rank) };
    KilnBuffer *operands[] = { to, from };
    return kiln_lower_emit(flow->l, flow->node, KILN_INSTR_transpose, operands, 2, &attrs, error);
}

/* Operand @i, whose axis @axis is scanned, with this axis in front. */
static KilnBuffer *
scanned_operand(Flow *flow, uint32_t i, int64_t axis, GError **error)
{
    KilnBuffer *buffer = kiln_lower_operand(flow->l, flow->node, i);
    const KilnType *type = &flow->node->operands[i].value->type;
    int at = kiln_type_axis(type, axis), dim_of[KILN_MAX_RANK];
    if (at == 0 || !buffer)
        return buffer;
    KilnType front = with_axis_first(type, at, dim_of);
    int64_t perm[KILN_MAX_RANK];
    for (int d = 0; d < type->rank; d++)
        perm[d] = dim_of[d];
    g_autofree char *name = g_strconcat(buffer->name, "_front", NULL);
    KilnBuffer *to = kiln_ir_alloc(flow->l->ir, name, &front, NULL);
    return emit_transpose(flow, to, buffer, perm, type->rank, error) ? to : NULL;
}

/* A loop or scan as lowering sees it. */
typedef struct {
    const KilnFunction *body;
    uint32_t first, carried, n_scanned;
    KilnInts in_axes, out_axes, in_directions, out_directions;
} Loop;

static Loop
loop_of(const KilnNode *node)
{
    Loop loop = { 0 };
    kiln_flow_carried(node, &loop.first, &loop.carried);
    if (node->op == KILN_OP_loop) {
        loop.body = kiln_attrs(node, loop)->body;
        return loop;
    }
    const KilnAttrs_scan *attrs = kiln_attrs(node, scan);
    loop.body = attrs->body;
    loop.n_scanned = (uint32_t)attrs->num_scan_inputs;
    loop.in_axes = attrs->scan_input_axes;
    loop.out_axes = attrs->scan_output_axes;
    loop.in_directions = attrs->scan_input_directions;
    loop.out_directions = attrs->scan_output_directions;
    return loop;
}

/* Where result @r is stacked. */
static int
axis_of(const Loop *loop, const KilnNode *node, uint32_t r)
{
    int rank = node->results[r].type.rank;
    int64_t axis = r < loop->carried ? 0 : kiln_ints_at(loop->out_axes, r - loop->carried, 0);
    return (int)(axis < 0 ? axis + rank : axis);
}

static gboolean
add_operands(Flow *flow, const Loop *loop, KilnInstrAttrs_loop *attrs, GError **error)
{
    const KilnNode *node = flow->node;
    bool flag;
    if (node->op == KILN_OP_loop) {
        const KilnValue *condition = kiln_node_operand(node, 1);
        attrs->limited = kiln_node_operand(node, 0) != NULL;
        attrs->tested = condition && !(kiln_value_known_flag(condition, &flag) && flag);
        if (attrs->limited)
            g_ptr_array_add(flow->in, kiln_lower_operand(flow->l, node, 0));
        if (attrs->tested)
            g_ptr_array_add(flow->in, kiln_lower_operand(flow->l, node, 1));
    }
    for (uint32_t i = 0; i < loop->carried; i++)
        g_ptr_array_add(flow->in, kiln_lower_operand(flow->l, node, loop->first + i));
    for (uint32_t i = 0; i < loop->n_scanned; i++) {
        KilnBuffer *buffer = scanned_operand(flow, loop->first + loop->carried + i,
                                             kiln_ints_at(loop->in_axes, i, 0), error);
        if (!buffer)
            return FALSE;
        g_ptr_array_add(flow->in, buffer);
    }
    add_captures(flow);
    return TRUE;
}

/* Whether each scanned operand, then each stacked result, goes from the last to the first. */
static KilnInts
directions_of(const Flow *flow, const Loop *loop)
{
    uint32_t stacked = flow->node->n_results - loop->carried, n = 0;
    g_autofree int64_t *flags = g_new0(int64_t, loop->n_scanned + stacked + 1);
    bool any = false;
    for (uint32_t i = 0; i < loop->n_scanned; i++)
        flags[n++] = kiln_ints_at(loop->in_directions, i, 0);
    for (uint32_t i = 0; i < stacked; i++)
        flags[n++] = kiln_ints_at(loop->out_directions, i, 0);
    for (uint32_t i = 0; i < n; i++)
        any |= flags[i] != 0;
    return kiln_lower_ints(flow->l, flags, any ? (int)n : 0);
}

/* A result as the instruction writes it: stacked along dim 0. */
typedef struct {
    KilnBuffer *buffer; /* NULL: held */
    KilnType type;      /* of the buffer */
    int axis, dim_of[KILN_MAX_RANK];
} Written;

static KilnBuffer *
written_buffer(const Flow *flow, const Written *written, uint32_t r)
{
    if (written->axis == 0)
        return kiln_lower_result(flow->l, flow->node, r);
    g_autofree char *name = g_strconcat(flow->node->results[r].name, "_front", NULL);
    return kiln_ir_alloc(flow->l->ir, name, &written->type, NULL);
}

static void
add_results(Flow *flow, const Loop *loop, Written *written)
{
    for (uint32_t r = 0; r < flow->node->n_results; r++) {
        Written *to = &written[r];
        to->axis = axis_of(loop, flow->node, r);
        to->type = with_axis_first(&flow->node->results[r].type, MAX(to->axis, 0), to->dim_of);
        if (add_decided(flow, r, to->dim_of))
            continue;
        to->buffer = written_buffer(flow, to, r);
        g_ptr_array_add(flow->out, to->buffer);
    }
}

/* Held results are taken, and axes go where they belong. */
static gboolean
finish_results(const Flow *flow, Written *written, GError **error)
{
    uint32_t index = 0;
    for (uint32_t r = 0; r < flow->node->n_results; r++) {
        Written *from = &written[r];
        int64_t perm[KILN_MAX_RANK];
        bool held = !from->buffer;
        if (held)
            from->buffer = written_buffer(flow, from, r);
        if (held && !emit_take(flow, from->buffer, index++, error))
            return FALSE;
        for (int d = 0; d < from->type.rank; d++)
            perm[from->dim_of[d]] = d;
        if (from->axis > 0 && !emit_transpose(flow, kiln_lower_result(flow->l, flow->node, r),
                                              from->buffer, perm, from->type.rank, error))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_lower_loop(KilnLower *l, const KilnNode *node, GError **error)
{
    const Loop loop = loop_of(node);
    KilnInstrAttrs_loop attrs = { .asks = node->op == KILN_OP_loop && kiln_loop_asks(node),
                                  .carried = loop.carried,
                                  .scanned = loop.n_scanned };
    const KilnRegionParts parts = { .counts = node->op == KILN_OP_scan,
                                    .first_result = node->op == KILN_OP_loop && !attrs.asks ? 1 : 0,
                                    .n_results = node->n_results + attrs.asks };
    g_auto(Flow) flow = flow_begin(l, node);
    g_autoptr(GPtrArray) own = own_names(node, loop.body);
    g_autofree Written *written = g_new0(Written, node->n_results + 1);
    const KilnIRFunction *body =
        kiln_lower_region(l, node, loop.body, &parts, flow.captures, error);
    if (!body)
        return FALSE;
    attrs.body = body->name;
    add_names(&flow, body, own);
    add_results(&flow, &loop, written);
    attrs.decided = decided_of(&flow);
    attrs.backwards = directions_of(&flow, &loop);
    return state_names(&flow, &attrs.names, &attrs.numbers, error) &&
           add_operands(&flow, &loop, &attrs, error) &&
           emit(&flow, KILN_INSTR_loop, &attrs, error) &&
           (!flow.n_held || emit_define(&flow, error)) && finish_results(&flow, written, error);
}
