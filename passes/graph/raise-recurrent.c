/* SPDX-License-Identifier: Apache-2.0 */
/* raise-recurrent: a scan or counted loop over a recurrent cell is one recurrent operator.
 *
 *     h  c  x: f32[n,b,i]
 *     |  |  |
 *     scan body(%h, %c, %x) {                 h  c  x
 *       g = x · W + h · R + b                  \ | /
 *       i, f, g, o = split(g)         =>       lstm
 *       c' = σ(f) c + σ(i) tanh(g)            / | \
 *       h' = σ(o) tanh(c')                 h's  h'  c'
 *       return h', c', h'
 *     }
 *
 *   raise-lstm   c' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c')
 *   raise-gru    h' = (1 - z) n + z h, or n + z (h - n), where n = tanh(x · W + (r h) · R + b), or
 *                tanh(x · W + b + r (h · R + b'))
 *   raise-rnn    h' = relu, tanh or σ of x · W + h · R + b
 *
 * Each gate is a part of one product, of one for x and h joined, or of its own products
 * (passes/query/gates.h). Its matrices come from around the loop and are put in ONNX's order; where
 * they are literals, folding does it once. What x is computed from has to lift
 * (passes/query/lift.h), and so does what reads h' and is stacked. All else must do without h' and
 * c'.
 *
 * requires nothing, preserves nothing; class U: the operator adds in another order, and rounds
 * states less often. Runs behind hoist-from-loops, and in front of raise-scans and of passes that
 * rewrite products. drop-loop-values removes the loop. */
#include "graph/function.h"
#include "graph/op/flow.h"
#include "graph/op/recurrent.h"
#include "passes/pass.h"
#include "graph/module/by_name.h"
#include "passes/query/gates.h"
#include "passes/query/lift.h"
#include "passes/query/literal.h"
#include "passes/query/loop_view.h"

#include <string.h>

enum {
    MOST_GATES = 4
};

static const char rule[] = "raise-recurrent";

/* A cell in the body of a loop. */
typedef struct {
    KilnPassContext *context;
    const KilnLoopView *loop;
    KilnLift *lift;
    KilnOp op;
    uint32_t states[2], n_states; /* h, c */
    KilnGate gates[MOST_GATES];   /* in ONNX's order */
    uint32_t n_gates;
    KilnGate behind;        /* gru: the part of the last gate that r multiplies; no r: none */
    const char *activation; /* of rnn */
} Cell;

/* --- patterns --- */

/* The node of the body that computes @value, if it is of @op; else NULL. */
static KilnNode *
node_of(const Cell *cell, const KilnValue *value, const char *op)
{
    KilnNode *node = value->def;
    return kiln_node_is(node, op) && node->function == cell->loop->body ? node : NULL;
}

/* The other operand of the node of @op that computes @value from @operand; NULL: none does. */
static KilnValue *
other_operand(const Cell *cell, const KilnValue *value, const char *op, const KilnValue *operand)
{
    const KilnNode *node = node_of(cell, value, op);
    if (!node)
        return NULL;
    KilnValue *a = node->operands[0].value, *b = node->operands[1].value;
    return a == operand ? b : b == operand ? a : NULL;
}

static KilnValue *
operand_of(const Cell *cell, const KilnValue *value, const char *op)
{
    const KilnNode *node = node_of(cell, value, op);
    return node ? node->operands[0].value : NULL;
}

static KilnValue *
carried(const Cell *cell, uint32_t s)
{
    return kiln_loop_argument(cell->loop, cell->states[s]);
}

/* Gate @g of the cell is @value, which may be NULL. */
static bool
set_gate(Cell *cell, uint32_t g, KilnValue *value, const KilnValue *state)
{
    return value && kiln_gate_find(cell->lift, value, state, &cell->gates[g]);
}

static bool
find_rnn(Cell *cell)
{
    static const struct {
        const char *op, *name;
    } rows[] = { { "tanh", "Tanh" }, { "relu", "Relu" }, { "sigmoid", "Sigmoid" } };
    const KilnValue *next = kiln_loop_returned(cell->loop, cell->states[0]);
    cell->op = KILN_OP_rnn;
    cell->n_gates = 1;
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        cell->activation = rows[i].name;
        if (set_gate(cell, 0, operand_of(cell, next, rows[i].op), carried(cell, 0)))
            return true;
    }
    return false;
}

/* σ(i) tanh(g): ONNX's gates 0 and 3. */
static bool
find_lstm_input(Cell *cell, const KilnValue *product)
{
    const KilnNode *node = node_of(cell, product, "mul");
    for (uint32_t i = 0; node && i < 2; i++) {
        KilnValue *gate = operand_of(cell, node->operands[i].value, "sigmoid");
        KilnValue *update = operand_of(cell, node->operands[1 - i].value, "tanh");
        if (gate && update)
            return set_gate(cell, 0, gate, carried(cell, 0)) &&
                   set_gate(cell, 3, update, carried(cell, 0));
    }
    return false;
}

/* Notes @next as the state that becomes this value. */
static bool
set_cell_state(Cell *cell, const KilnValue *next)
{
    for (uint32_t k = 0; next && k < cell->loop->carried; k++) {
        if (k == cell->states[0] || kiln_loop_returned(cell->loop, k) != next)
            continue;
        cell->states[1] = k;
        cell->n_states = 2;
        return true;
    }
    return false;
}

/* h' = σ(o) tanh(c'): ONNX's gate 1. */
static bool
find_lstm_output(Cell *cell, const KilnNode *product)
{
    for (uint32_t i = 0; i < 2; i++) {
        KilnValue *out = operand_of(cell, product->operands[1 - i].value, "sigmoid");
        if (out && set_cell_state(cell, operand_of(cell, product->operands[i].value, "tanh")))
            return set_gate(cell, 1, out, carried(cell, 0));
    }
    return false;
}

/* c' = σ(f) c + σ(i) tanh(g). ONNX's order is i, o, f, g. */
static bool
find_lstm(Cell *cell)
{
    const KilnLoopView *loop = cell->loop;
    const KilnNode *product = node_of(cell, kiln_loop_returned(loop, cell->states[0]), "mul");
    cell->op = KILN_OP_lstm;
    cell->n_gates = 4;
    if (!product || !find_lstm_output(cell, product))
        return false;
    const KilnNode *sum = node_of(cell, kiln_loop_returned(loop, cell->states[1]), "add");
    for (uint32_t i = 0; sum && i < 2; i++) {
        const KilnValue *factor =
            other_operand(cell, sum->operands[i].value, "mul", carried(cell, 1));
        KilnValue *forget = factor ? operand_of(cell, factor, "sigmoid") : NULL;
        if (forget)
            return set_gate(cell, 2, forget, carried(cell, 0)) &&
                   find_lstm_input(cell, sum->operands[1 - i].value);
    }
    return false;
}

/* n = tanh(...), r is ONNX's gate 1, n is gate 2. */
static bool
find_gru_update(Cell *cell, const KilnValue *update)
{
    KilnValue *h = carried(cell, 0), *all = operand_of(cell, update, "tanh");
    const KilnNode *sum = all ? node_of(cell, all, "add") : NULL;
    if (!all)
        return false;
    for (uint32_t i = 0; sum && i < 2; i++) { /* r (h · R + b') */
        const KilnNode *product = node_of(cell, sum->operands[i].value, "mul");
        for (uint32_t j = 0; product && j < 2; j++) {
            KilnValue *reset = operand_of(cell, product->operands[j].value, "sigmoid");
            if (reset &&
                kiln_gate_find(cell->lift, product->operands[1 - j].value, h, &cell->behind) &&
                !cell->behind.input)
                return set_gate(cell, 1, reset, h) &&
                       set_gate(cell, 2, sum->operands[1 - i].value, h);
        }
    }
    cell->behind = (KilnGate){ 0 };
    kiln_foreach_use (use, h) { /* (r h) · R */
        if (!kiln_node_is(use->user, "mul") || use->user->function != cell->loop->body)
            continue;
        const KilnValue *product = &use->user->results[0];
        KilnValue *factor = other_operand(cell, product, "mul", h);
        KilnValue *reset = factor ? operand_of(cell, factor, "sigmoid") : NULL;
        if (reset && set_gate(cell, 2, all, product))
            return set_gate(cell, 1, reset, h);
    }
    return false;
}

/* (1 - z) n: n, where @rest is a product with 1 - @z; else NULL. */
static KilnValue *
update_beside(const Cell *cell, const KilnValue *rest, const KilnValue *z)
{
    const KilnNode *product = node_of(cell, rest, "mul");
    for (uint32_t i = 0; product && i < 2; i++) {
        const KilnNode *difference = node_of(cell, product->operands[i].value, "sub");
        double one;
        if (difference && difference->operands[1].value == z &&
            kiln_value_uniform(difference->operands[0].value, &one) && one == 1)
            return product->operands[1 - i].value;
    }
    return NULL;
}

/* z (h - n): z, where @n is the update; else NULL. */
static KilnValue *
factor_of_difference(const Cell *cell, const KilnValue *product, const KilnValue *n)
{
    const KilnNode *node = node_of(cell, product, "mul");
    for (uint32_t i = 0; node && i < 2; i++) {
        const KilnNode *difference = node_of(cell, node->operands[i].value, "sub");
        if (difference && difference->operands[0].value == carried(cell, 0) &&
            difference->operands[1].value == n)
            return node->operands[1 - i].value;
    }
    return NULL;
}

static bool
find_gru(Cell *cell)
{
    const KilnNode *sum = node_of(cell, kiln_loop_returned(cell->loop, cell->states[0]), "add");
    cell->op = KILN_OP_gru;
    cell->n_gates = 3;
    for (uint32_t i = 0; sum && i < 2; i++) {
        const KilnValue *rest = sum->operands[1 - i].value, *part = sum->operands[i].value;
        const KilnValue *z = other_operand(cell, part, "mul", carried(cell, 0));
        const KilnValue *n = z ? update_beside(cell, rest, z) : NULL;
        if (!n) {
            n = rest;
            z = factor_of_difference(cell, part, n);
        }
        KilnValue *gate = z ? operand_of(cell, z, "sigmoid") : NULL;
        if (gate && set_gate(cell, 0, gate, carried(cell, 0)))
            return find_gru_update(cell, n);
    }
    return false;
}

/* --- conditions --- */

/* All gates are [h or x, hidden] of the same x. */
static bool
fits(const Cell *cell, int64_t hidden)
{
    const bool apart = cell->behind.r.value != NULL;
    for (uint32_t g = 0; g < cell->n_gates; g++) {
        const KilnGate *gate = &cell->gates[g];
        const bool last = apart && g == cell->n_gates - 1;
        const KilnGateBlock *r = last ? &cell->behind.r : &gate->r;
        if (!gate->input || gate->input != cell->gates[0].input ||
            gate->w.rows != cell->gates[0].w.rows || gate->w.columns != hidden ||
            (last && gate->r.value) || !r->value || r->rows != hidden || r->columns != hidden)
            return false;
    }
    return true;
}

static bool
is_read(const Cell *cell)
{
    bool read = false;
    for (uint32_t s = 0; s < cell->n_states; s++)
        read |= kiln_lift_is_read(cell->lift, cell->states[s]);
    return read;
}

static bool
may_raise(Cell *cell)
{
    KilnPassContext *context = cell->context;
    const KilnType *type = &carried(cell, 0)->type;
    PASS_GUARD(f32, type->dtype == KILN_DTYPE_f32);
    for (uint32_t s = 0; s < cell->n_states; s++)
        PASS_GUARD(fixed_type, kiln_loop_keeps_type(cell->loop, cell->states[s]) &&
                                   kiln_type_equal_shape(&carried(cell, s)->type, type));
    PASS_GUARD(gates_fit, type->rank == 2 && fits(cell, type->dims[1]));
    kiln_lift_assume(cell->lift, kiln_loop_returned(cell->loop, cell->states[0]), NULL);
    PASS_GUARD(others_do_without, !kiln_lift_leaves_need(cell->lift, cell->states, cell->n_states));
    return true;
}

/* --- the operator --- */

static const void *
attrs_of(const Cell *cell, int64_t hidden, KilnAttrs_rnn *rnn, KilnAttrs_gru *gru,
         KilnAttrs_lstm *lstm)
{
    const char *direction = cell->lift->reverse ? "reverse" : "forward";
    const bool plain = strcmp(cell->activation ? cell->activation : "Tanh", "Tanh") == 0;
    *rnn = (KilnAttrs_rnn){ .direction = direction, .hidden_size = hidden };
    if (!plain)
        rnn->activations = (KilnStrings){ 1, (const char **)&cell->activation };
    *gru = (KilnAttrs_gru){ .direction = direction,
                            .hidden_size = hidden,
                            .linear_before_reset = cell->behind.r.value != NULL };
    *lstm = (KilnAttrs_lstm){ .direction = direction, .hidden_size = hidden };
    return cell->op == KILN_OP_rnn ? (void *)rnn : cell->op == KILN_OP_gru ? (void *)gru : lstm;
}

/* B of the operator: biases of x, then those of h, which has some only in a gru that computes its
 * product before r. */
static KilnValue *
build_bias(const Cell *cell, int64_t hidden, GError **error)
{
    KilnGate all[2 * MOST_GATES] = { 0 };
    for (uint32_t g = 0; g < cell->n_gates; g++)
        all[g] = cell->gates[g];
    all[2 * cell->n_gates - 1] = cell->behind;
    return kiln_gates_build_bias(cell->loop->node, all, 2 * cell->n_gates, hidden, KILN_DTYPE_f32,
                                 error);
}

static bool
has_bias(const Cell *cell)
{
    uint32_t n = cell->behind.n_bias;
    for (uint32_t g = 0; g < cell->n_gates; g++)
        n += cell->gates[g].n_bias;
    return n > 0;
}

static KilnNode *
build_operator(const Cell *cell, GError **error)
{
    KilnNode *before = cell->loop->node;
    const int64_t hidden = carried(cell, 0)->type.dims[1];
    KilnGate recurrent[MOST_GATES];
    memcpy(recurrent, cell->gates, sizeof recurrent);
    if (cell->behind.r.value)
        recurrent[cell->n_gates - 1] = cell->behind;
    KilnValue *operands[7] = { NULL };
    operands[0] = kiln_lift_build(cell->lift, cell->gates[0].input, error);
    operands[1] = operands[0] ? kiln_gates_build_matrix(before, cell->gates, cell->n_gates,
                                                        KILN_GATE_W, error)
                              : NULL;
    operands[2] =
        operands[1] ? kiln_gates_build_matrix(before, recurrent, cell->n_gates, KILN_GATE_R, error)
                    : NULL;
    if (!operands[2] || (has_bias(cell) && !(operands[3] = build_bias(cell, hidden, error))))
        return NULL;
    for (uint32_t s = 0; s < cell->n_states; s++) {
        operands[5 + s] = kiln_build_along(
            before, "unsqueeze", kiln_loop_operand(cell->loop, cell->states[s]), 0, error);
        if (!operands[5 + s])
            return NULL;
    }
    KilnAttrs_rnn rnn;
    KilnAttrs_gru gru;
    KilnAttrs_lstm lstm;
    const KilnNodeSpec spec = { .op = cell->op,
                                .operands = operands,
                                .n_operands = 5 + cell->n_states,
                                .n_results = 1 + cell->n_states,
                                .attrs = attrs_of(cell, hidden, &rnn, &gru, &lstm),
                                .before = before };
    return kiln_node_new(before->function, &spec, error);
}

static gboolean
raise_one(const Cell *cell, GError **error)
{
    const KilnLoopView *loop = cell->loop;
    KilnNode *node = loop->node;
    KilnNode *made = build_operator(cell, error);
    if (!made)
        return FALSE;
    for (uint32_t s = 0; s < cell->n_states; s++) {
        KilnValue *result = &node->results[cell->states[s]];
        KilnValue *last = result->n_uses
                              ? kiln_build_along(node, "squeeze", &made->results[1 + s], 0, error)
                              : NULL;
        if (last)
            kiln_value_replace(result, last);
        else if (result->n_uses)
            return FALSE;
    }
    KilnValue *all = kiln_build_along(node, "squeeze", &made->results[0], 1, error);
    if (!all)
        return FALSE;
    kiln_lift_give(cell->lift, kiln_loop_returned(loop, cell->states[0]), all);
    if (!kiln_lift_replace_stacks(cell->lift, cell->states[0], error))
        return FALSE;
    if (!all->n_uses)
        kiln_node_remove(all->def);
    return TRUE;
}

/* --- the pass --- */

typedef struct {
    const char *name;
    const char *last; /* makes h' */
    bool (*find)(Cell *cell);
} CellRule;

static const CellRule cell_rules[] = {
    { "raise-rnn", "tanh", find_rnn },    { "raise-rnn", "relu", find_rnn },
    { "raise-rnn", "sigmoid", find_rnn }, { "raise-lstm", "mul", find_lstm },
    { "raise-gru", "add", find_gru },
};

static gboolean
raise_cell(KilnPassContext *context, const KilnLoopView *loop, uint32_t h, bool *changed,
           GError **error)
{
    const KilnNode *last = kiln_loop_returned(loop, h)->def;
    const CellRule *row = NULL;
    for (size_t i = 0; last && i < G_N_ELEMENTS(cell_rules); i++) {
        if (kiln_node_is(last, cell_rules[i].last) && last->function == loop->body)
            row = &cell_rules[i];
    }
    if (!row)
        return TRUE;
    g_auto(KilnLift) lift = { 0 };
    Cell cell = { .context = context, .loop = loop, .lift = &lift, .states = { h }, .n_states = 1 };
    kiln_lift_init(&lift, loop, kiln_loop_scan_reverse(loop));
    if (!lift.length || !row->find(&cell) || !is_read(&cell) || !may_raise(&cell))
        return TRUE;
    kiln_pass_note(context, row->name, "%s of %s", carried(&cell, 0)->name,
                   kiln_node_label(loop->node));
    *changed = true;
    return raise_one(&cell, error);
}

static gboolean
raise_all(KilnPassContext *context, const KilnLoopView *loop, bool *changed, GError **error)
{
    for (uint32_t k = 0; k < loop->carried; k++) {
        if (!raise_cell(context, loop, k, changed, error))
            return FALSE;
    }
    return TRUE;
}

GRAPH_PASS(raise_recurrent);

gboolean
kiln_pass_raise_recurrent(KilnFunction *function, KilnPassContext *context, bool *changed,
                          GError **error)
{
    return kiln_loops_visit(function, context, raise_all, changed, error);
}
