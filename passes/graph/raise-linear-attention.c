/* SPDX-License-Identifier: Apache-2.0 */
/* raise-linear-attention: a scan or counted loop over a matrix that keys write and queries read is
 * one linear attention.
 *
 *     S: f32[b,h,d,e]  k, v, q                      S  k  v  q
 *     scan body(%S, %k, %v, %q) {                    \ |  | /
 *       kept = mul(S, exp(g))               =>    linear_attention
 *       S' = add(kept, mul(k, v))                      |   \
 *       return S', matmul(q, S')                       y's   S'
 *     }
 *
 *   raise-linear-attention   S' = kept + k ⊗ v, y = q · S'. `kept` is S or S · exp(g). v may be
 *                            β (v - k · kept), the delta rule
 *
 * In the body, k is [.., d, 1], v is [.., 1, e], q is [.., 1, d], g is [.., d or 1, 1] and β is
 * [.., 1, 1]. All of them lift (passes/query/lift.h). The dims in front of a matrix become the
 * batch of the operator, with one head each.
 *
 * requires nothing, preserves nothing; class U: the operator keeps its state in double. Runs where
 * raise-recurrent does. drop-loop-values removes the loop. */
#include "graph/function.h"
#include "graph/op/recurrent.h"
#include "passes/pass.h"
#include "passes/query/by_name.h"
#include "passes/query/lift.h"
#include "passes/query/loop_view.h"
#include "passes/query/movement.h"

static const char rule[] = "raise-linear-attention";

/* The state of a loop, and the values of the body that change and read it. */
typedef struct {
    KilnPassContext *context;
    const KilnLoopView *loop;
    KilnLift *lift;
    uint32_t k;
    KilnValue *state, *next, *out; /* S, S', y */
    KilnValue *kept;               /* S, or what is left of it */
    KilnValue *key, *value, *query, *decay, *rate;
} Recall;

/* --- the pattern --- */

static KilnNode *
node_of(const Recall *r, const KilnValue *value, const char *op)
{
    return kiln_node_is(value->def, op) && value->def->function == r->loop->body ? value->def
                                                                                 : NULL;
}

/* True where @value lifts and has @rows and @columns behind the dims in front of the state. */
static bool
is_factor(const Recall *r, const KilnValue *value, int64_t rows, int64_t columns)
{
    const KilnType *type = &value->type, *state = &r->state->type;
    const int n = state->rank;
    if (!kiln_lift_can(r->lift, value) || type->rank != n || type->dims[n - 2] != rows ||
        type->dims[n - 1] != columns)
        return false;
    for (int d = 0; d < n - 2; d++) {
        if (!kiln_type_equal_dims(type, d, state, d))
            return false;
    }
    return true;
}

/* What reshapes and swaps of the last two dims, one of which is 1, make @value of. */
static const KilnValue *
base_of(const Recall *r, const KilnValue *value)
{
    while (value->def && value->def->function == r->loop->body &&
           (kiln_op_only_reshapes(value->def->op) || kiln_node_is(value->def, "identity")))
        value = value->def->operands[0].value;
    return value;
}

/* β (v - k · kept): the delta rule. */
static bool
find_delta(Recall *r, const KilnValue *value)
{
    const KilnNode *product = node_of(r, value, "mul");
    const int64_t *dims = r->state->type.dims;
    const int n = r->state->type.rank;
    for (uint32_t i = 0; product && i < 2; i++) {
        KilnValue *rate = product->operands[i].value;
        const KilnNode *rest = node_of(r, product->operands[1 - i].value, "sub");
        const KilnNode *stored = rest ? node_of(r, rest->operands[1].value, "matmul") : NULL;
        if (!stored || stored->operands[1].value != r->kept || !is_factor(r, rate, 1, 1) ||
            !is_factor(r, rest->operands[0].value, 1, dims[n - 1]) ||
            !is_factor(r, stored->operands[0].value, 1, dims[n - 2]) ||
            base_of(r, stored->operands[0].value) != base_of(r, r->key))
            continue;
        r->rate = rate;
        r->value = rest->operands[0].value;
        return true;
    }
    return false;
}

/* k ⊗ v */
static bool
find_write(Recall *r, const KilnValue *written)
{
    const KilnNode *outer = node_of(r, written, "mul");
    const int64_t *dims = r->state->type.dims;
    const int n = r->state->type.rank;
    const uint32_t orders = outer ? 2 : 1;
    if (!outer)
        outer = node_of(r, written, "matmul");
    for (uint32_t i = 0; outer && i < orders; i++) {
        KilnValue *value = outer->operands[1 - i].value;
        r->key = outer->operands[i].value;
        if (!is_factor(r, r->key, dims[n - 2], 1))
            continue;
        r->value = value;
        if (is_factor(r, value, 1, dims[n - 1]) || find_delta(r, value))
            return true;
    }
    return false;
}

/* S · exp(g) */
static bool
find_decay(Recall *r)
{
    const KilnNode *product = node_of(r, r->kept, "mul");
    const int64_t *dims = r->state->type.dims;
    const int n = r->state->type.rank;
    for (uint32_t i = 0; product && i < 2; i++) {
        const KilnNode *factor = node_of(r, product->operands[1 - i].value, "exp");
        KilnValue *decay = factor ? factor->operands[0].value : NULL;
        if (product->operands[i].value != r->state || !decay ||
            (!is_factor(r, decay, dims[n - 2], 1) && !is_factor(r, decay, 1, 1)))
            continue;
        r->decay = decay;
        return true;
    }
    return false;
}

static bool
find_update(Recall *r)
{
    const KilnNode *sum = node_of(r, r->next, "add");
    for (uint32_t i = 0; sum && i < 2; i++) {
        r->kept = sum->operands[i].value;
        r->decay = r->rate = NULL;
        if ((r->kept == r->state || find_decay(r)) && find_write(r, sum->operands[1 - i].value))
            return true;
    }
    return false;
}

/* q · S' */
static bool
find_read(Recall *r)
{
    const int n = r->state->type.rank;
    kiln_foreach_use (use, r->next) {
        KilnNode *node = use->user;
        if (!kiln_node_is(node, "matmul") || node->function != r->loop->body || use->index != 1 ||
            !is_factor(r, node->operands[0].value, 1, r->state->type.dims[n - 2]))
            continue;
        r->query = node->operands[0].value;
        r->out = &node->results[0];
        return true;
    }
    return false;
}

static bool
may_raise(Recall *r)
{
    KilnPassContext *context = r->context;
    PASS_GUARD(f32, r->state->type.dtype == KILN_DTYPE_f32);
    kiln_lift_assume(r->lift, r->out);
    PASS_GUARD(others_do_without, !kiln_lift_leaves_need(r->lift, &r->k, 1));
    return true;
}

/* --- the operator --- */

/* The product of the dims in front of the state. */
static int64_t
batch_of(const Recall *r)
{
    int64_t batch = 1;
    for (int d = 0; d < r->state->type.rank - 2; d++)
        batch *= r->state->type.dims[d];
    return batch;
}

/* @value, which lifts, as [batch, steps, elements]. */
static KilnValue *
build_rows(const Recall *r, KilnValue *value, GError **error)
{
    KilnNode *before = r->loop->node;
    const int n = r->state->type.rank;
    KilnValue *all = kiln_lift_build(r->lift, value, error);
    KilnValue *turned = all ? kiln_dim_move_build(before, all, 0, n - 2, error) : NULL;
    if (!turned)
        return NULL;
    KilnType type = kiln_type_make(value->type.dtype, 3, (int64_t[]){ batch_of(r), -1, -1 });
    kiln_type_set_dim(&type, 1, r->lift->length);
    type.dims[2] = value->type.dims[n - 2] * value->type.dims[n - 1];
    return kiln_reshape_build(before->function, before, turned, &type, error);
}

/* @rows, [batch, steps, elements], as @value in all iterations. */
static KilnValue *
build_lifted(const Recall *r, KilnValue *rows, const KilnValue *value, GError **error)
{
    KilnNode *before = r->loop->node;
    const int n = r->state->type.rank;
    const KilnType all = kiln_lift_type(r->lift, value);
    KilnType type = all;
    for (int d = 0; d < n - 2; d++)
        type.dims[d] = value->type.dims[d];
    type.dims[n - 2] = all.dims[0];
    type.open[0] = NULL;
    type.open[n - 2] = all.open[0];
    KilnValue *turned = kiln_reshape_build(before->function, before, rows, &type, error);
    return turned ? kiln_dim_move_build(before, turned, n - 2, 0, error) : NULL;
}

static KilnNode *
build_operator(const Recall *r, GError **error)
{
    KilnNode *before = r->loop->node;
    const KilnType *state = &r->state->type;
    const int n = state->rank;
    KilnValue *rows[] = { r->query, r->key, r->value, NULL, r->decay, r->rate };
    const KilnType past = kiln_type_make(
        state->dtype, 4, (int64_t[]){ batch_of(r), 1, state->dims[n - 2], state->dims[n - 1] });
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i] && !(rows[i] = build_rows(r, rows[i], error)))
            return NULL;
    }
    rows[3] = kiln_reshape_build(before->function, before, kiln_loop_operand(r->loop, r->k), &past,
                                 error);
    const KilnAttrs_linear_attention attrs = { .chunk_size = 64,
                                               .q_num_heads = 1,
                                               .kv_num_heads = 1,
                                               .scale = 1,
                                               .update_rule = r->decay && r->rate ? "gated_delta"
                                                              : r->decay          ? "gated"
                                                              : r->rate           ? "delta"
                                                                                  : "linear" };
    const KilnNodeSpec spec = { .op = KILN_OP_linear_attention,
                                .operands = rows,
                                .n_operands = r->rate    ? 6
                                              : r->decay ? 5
                                                         : 4,
                                .n_results = 2,
                                .attrs = &attrs,
                                .before = before };
    return rows[3] ? kiln_node_new(before->function, &spec, error) : NULL;
}

static gboolean
raise_one(const Recall *r, GError **error)
{
    KilnNode *node = r->loop->node, *made = build_operator(r, error);
    KilnValue *result = &node->results[r->k];
    KilnValue *all = made ? build_lifted(r, &made->results[0], r->out, error) : NULL;
    if (!all)
        return FALSE;
    if (result->n_uses) {
        KilnValue *last =
            kiln_reshape_build(node->function, node, &made->results[1], &result->type, error);
        if (!last)
            return FALSE;
        kiln_value_replace(result, last);
    }
    kiln_lift_give(r->lift, r->out, all);
    return kiln_lift_replace_stacks(r->lift, r->k, error);
}

/* --- the pass --- */

static gboolean
raise_state(KilnPassContext *context, const KilnLoopView *loop, uint32_t k, bool *changed,
            GError **error)
{
    Recall r = { .context = context,
                 .loop = loop,
                 .k = k,
                 .state = kiln_loop_argument(loop, k),
                 .next = kiln_loop_returned(loop, k) };
    if (!kiln_node_is(r.next->def, "add") || r.state->type.rank < 2 ||
        !kiln_type_is_static(&r.state->type) || kiln_type_elements(&r.state->type) == 0 ||
        !kiln_loop_keeps_type(loop, k))
        return TRUE;
    g_auto(KilnLift) lift = { 0 };
    kiln_lift_init(&lift, loop, false);
    r.lift = &lift;
    if (!lift.length || !kiln_lift_is_read(&lift, k) || !find_update(&r) || !find_read(&r) ||
        !may_raise(&r))
        return TRUE;
    kiln_pass_note(context, rule, "%s of %s", r.state->name, kiln_node_label(loop->node));
    *changed = true;
    return raise_one(&r, error);
}

GRAPH_PASS(raise_linear_attention);

gboolean
kiln_pass_raise_linear_attention(KilnFunction *function, KilnPassContext *context, bool *changed,
                                 GError **error)
{
    KilnLoopView loop;
    *changed = false;
    if (!function->n_region_nodes)
        return TRUE;
    kiln_foreach_node_safe (node, function) {
        const bool loops = kiln_loop_view(node, &loop);
        for (uint32_t k = 0; loops && k < loop.carried; k++) {
            if (!raise_state(context, &loop, k, changed, error))
                return FALSE;
        }
    }
    return TRUE;
}
