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
 * In the body, S is [.., d, e]. k has d elements, v has e, q has d, g has d or 1, and β has 1,
 * behind the same dims. Reshapes between them do not matter. All of them lift
 * (passes/query/lift.h). The dims in front of a matrix become the batch of the operator, with one
 * head each.
 *
 * requires nothing, preserves nothing; class U: the operator keeps its state in double. Runs where
 * raise-recurrent does. drop-loop-values removes the loop. */
#include "graph/function.h"
#include "graph/infer/infer.h"
#include "graph/op/recurrent.h"
#include "passes/pass.h"
#include "graph/module/by_name.h"
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

/* The dims in front of @value's last @n are those in front of the state's matrix. */
static bool
has_batch(const Recall *r, const KilnValue *value, int n)
{
    const KilnType *type = &value->type, *state = &r->state->type;
    if (type->rank != state->rank - 2 + n)
        return false;
    for (int d = 0; d < state->rank - 2; d++) {
        if (!kiln_type_equal_dims(type, d, state, d))
            return false;
    }
    return true;
}

/* @value is [.., @rows, @columns]. */
static bool
is_matrix(const Recall *r, const KilnValue *value, int64_t rows, int64_t columns)
{
    const int n = value->type.rank;
    return has_batch(r, value, 2) && value->type.dims[n - 2] == rows &&
           value->type.dims[n - 1] == columns;
}

static bool
is_factor(const Recall *r, const KilnValue *value, int64_t rows, int64_t columns)
{
    return kiln_lift_can(r->lift, value) && is_matrix(r, value, rows, columns);
}

/* @value lifts and is [.., @n], [.., 1, @n] or [.., @n, 1]. */
static bool
is_vector(const Recall *r, const KilnValue *value, int64_t n)
{
    return is_factor(r, value, 1, n) || is_factor(r, value, n, 1) ||
           (kiln_lift_can(r->lift, value) && has_batch(r, value, 1) &&
            value->type.dims[value->type.rank - 1] == n);
}

/* What reshapes make @value of: the same elements in the same order. */
static KilnValue *
base_of(const Recall *r, KilnValue *value)
{
    while (value->def && value->def->function == r->loop->body &&
           kiln_op_only_reshapes(value->def->op))
        value = value->def->operands[0].value;
    return value;
}

static int64_t
depth_of(const Recall *r)
{
    return r->state->type.dims[r->state->type.rank - 2];
}

static int64_t
width_of(const Recall *r)
{
    return r->state->type.dims[r->state->type.rank - 1];
}

/* @value is `kept` with its last two dims swapped. */
static bool
is_kept_turned(const Recall *r, const KilnValue *value)
{
    const KilnNode *node = node_of(r, value, "transpose");
    const int n = r->state->type.rank;
    int perm[KILN_MAX_RANK];
    if (!node || node->operands[0].value != r->kept || !kiln_transpose_perm(node, perm, NULL) ||
        perm[n - 2] != n - 1)
        return false;
    for (int d = 0; d < n - 2; d++) {
        if (perm[d] != d)
            return false;
    }
    return true;
}

/* @value is k · kept, in any shape. */
static bool
is_stored(const Recall *r, KilnValue *value)
{
    const KilnNode *product = node_of(r, base_of(r, value), "matmul");
    if (!product)
        return false;
    KilnValue *a = product->operands[0].value, *b = product->operands[1].value;
    const bool row = b == r->kept && is_factor(r, a, 1, depth_of(r));
    const bool column = is_kept_turned(r, a) && is_factor(r, b, depth_of(r), 1);
    return (row || column) && base_of(r, row ? a : b) == base_of(r, r->key);
}

/* β (v - k · kept): the delta rule. */
static bool
find_delta(Recall *r, KilnValue *value)
{
    const KilnNode *product = node_of(r, base_of(r, value), "mul");
    for (uint32_t i = 0; product && i < 2; i++) {
        KilnValue *rate = product->operands[i].value;
        const KilnNode *rest = node_of(r, product->operands[1 - i].value, "sub");
        if (!rest || !is_stored(r, rest->operands[1].value) || !is_vector(r, rate, 1) ||
            !is_vector(r, rest->operands[0].value, width_of(r)) ||
            !kiln_type_equal(&rest->operands[0].value->type, &rest->operands[1].value->type) ||
            !kiln_type_equal(&product->results[0].type, &rest->results[0].type))
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
    const uint32_t orders = outer ? 2 : 1;
    if (!outer)
        outer = node_of(r, written, "matmul");
    for (uint32_t i = 0; outer && i < orders; i++) {
        r->key = outer->operands[i].value;
        r->value = outer->operands[1 - i].value;
        if (!is_factor(r, r->key, depth_of(r), 1) || !is_matrix(r, r->value, 1, width_of(r)))
            continue;
        if (kiln_lift_can(r->lift, r->value) || find_delta(r, r->value))
            return true;
    }
    return false;
}

/* S · exp(g) */
static bool
find_decay(Recall *r)
{
    const KilnNode *product = node_of(r, r->kept, "mul");
    for (uint32_t i = 0; product && i < 2; i++) {
        KilnValue *factor = product->operands[1 - i].value;
        const bool each = is_factor(r, factor, depth_of(r), 1);
        const KilnNode *node = node_of(r, base_of(r, factor), "exp");
        if (product->operands[i].value != r->state || (!each && !is_factor(r, factor, 1, 1)) ||
            !node || !is_vector(r, node->operands[0].value, each ? depth_of(r) : 1))
            continue;
        r->decay = node->operands[0].value;
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
    kiln_foreach_use (use, r->next) {
        KilnNode *node = use->user;
        if (!kiln_node_is(node, "matmul") || node->function != r->loop->body || use->index != 1 ||
            !is_factor(r, node->operands[0].value, 1, depth_of(r)))
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
    kiln_lift_assume(r->lift, r->out, NULL);
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

/* @value, which lifts, as [batch, steps, @n]. */
static KilnValue *
build_rows(const Recall *r, KilnValue *value, int64_t n, GError **error)
{
    KilnNode *before = r->loop->node;
    KilnValue *all = kiln_lift_build(r->lift, value, error);
    KilnValue *turned =
        all ? kiln_dim_move_build(before, all, 0, r->state->type.rank - 2, error) : NULL;
    KilnType type = kiln_type_make(value->type.dtype, 3, (int64_t[]){ batch_of(r), -1, n });
    kiln_type_set_dim(&type, 1, r->lift->length);
    return turned ? kiln_reshape_build(before->function, before, turned, &type, error) : NULL;
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

/* One number for all rows of the state, or one for each. */
static int64_t
decay_length(const Recall *r)
{
    return is_vector(r, r->decay, depth_of(r)) ? depth_of(r) : 1;
}

static KilnNode *
build_operator(const Recall *r, GError **error)
{
    KilnNode *before = r->loop->node;
    const KilnType *state = &r->state->type;
    KilnValue *rows[] = { r->query, r->key, r->value, NULL, r->decay, r->rate };
    const int64_t lengths[] = {
        depth_of(r), depth_of(r), width_of(r), 0, r->decay ? decay_length(r) : 0, 1
    };
    const KilnType past =
        kiln_type_make(state->dtype, 4, (int64_t[]){ batch_of(r), 1, depth_of(r), width_of(r) });
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i] && !(rows[i] = build_rows(r, rows[i], lengths[i], error)))
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

static gboolean
raise_all(KilnPassContext *context, const KilnLoopView *loop, bool *changed, GError **error)
{
    for (uint32_t k = 0; k < loop->carried; k++) {
        if (!raise_state(context, loop, k, changed, error))
            return FALSE;
    }
    return TRUE;
}

GRAPH_PASS(raise_linear_attention);

gboolean
kiln_pass_raise_linear_attention(KilnFunction *function, KilnPassContext *context, bool *changed,
                                 GError **error)
{
    return kiln_loops_visit(function, context, raise_all, changed, error);
}
