/* SPDX-License-Identifier: Apache-2.0 */
/* simplify-recurrent: what exporters state of recurrent networks though it is so anyway.
 *
 *     initial_h, initial_c = 0                    =>  absent, which means zero
 *     sequence_lens = the number of steps         =>  absent, which means all steps
 *     y, y_h, y_c, the last of them unread        =>  without these results
 *
 * requires nothing, preserves nothing; class E: the same steps from the same state. Kernels that
 * know no lengths can run the network then, and nothing is stored for what nobody reads. */
#include "passes/rule.h"

#include "graph/op/cast.h"
#include "graph/op/expand.h"
#include "graph/op/recurrent.h"
#include "passes/query/literal.h"

#include <math.h>
#include <string.h>

enum {
    LENGTHS = 4,
    STATES = 5, /* initial_h; of lstm also initial_c behind it */
    MAX_OPERANDS = 8,
    MAX_RESULTS = 3,
};

/* The matched network again, with @operands and its first @n_results results. */
static bool
rebuild(KilnMatch *match, KilnValue *const *operands, uint32_t n_results)
{
    KilnNode *net = match->root;
    uint32_t n = net->n_operands;
    KilnType types[MAX_RESULTS];
    while (n && !operands[n - 1])
        n--;
    for (uint32_t r = 0; r < n_results; r++)
        types[r] = net->results[r].type;
    KilnNodeSpec spec = { .op = net->op,
                          .name = net->name,
                          .operands = operands,
                          .n_operands = n,
                          .n_results = n_results,
                          .attrs = net->attrs,
                          .types = types,
                          .before = net };
    KilnNode *node = kiln_node_new(match->root->function, &spec, match->error);
    if (!node)
        return false;
    for (uint32_t r = 1; r < n_results; r++)
        kiln_value_replace(&net->results[r], &node->results[r]);
    return kiln_match_replace(match, &node->results[0]);
}

static void
operands_of(const KilnNode *net, KilnValue *operands[MAX_OPERANDS])
{
    memset(operands, 0, MAX_OPERANDS * sizeof *operands);
    for (uint32_t i = 0; i < net->n_operands; i++)
        operands[i] = net->operands[i].value;
}

/* A state of zeros for each sequence of the batch. The rows of gru and lstm begin with the fields
 * of rnn. */
static bool
is_zero_state(const KilnNode *net, const KilnValue *state)
{
    const KilnType *x = &net->operands[0].value->type;
    int batch = kiln_attrs(net, rnn)->layout ? 0 : 1;
    double number = NAN;
    return kiln_value_uniform(state, &number) && number == 0 && !signbit(number) && x->rank == 3 &&
           state->type.rank == 3 && kiln_type_equal_dims(&state->type, batch, x, batch);
}

static bool
drop_states(KilnMatch *match)
{
    const KilnNode *net = match->root;
    KilnValue *operands[MAX_OPERANDS];
    uint32_t n_states = net->op == KILN_OP_lstm ? 2 : 1, n_stated = 0, n_zero = 0;
    operands_of(net, operands);
    for (uint32_t i = STATES; i < STATES + n_states; i++) {
        if (!operands[i])
            continue;
        n_stated++;
        if (is_zero_state(net, operands[i])) {
            operands[i] = NULL;
            n_zero++;
        }
    }
    if (n_stated == 0)
        return false;
    GUARD(zero_state, n_zero > 0);
    return rebuild(match, operands, net->n_results);
}

/* Whether the integer type @dtype has every number that dim @d of @x may be. */
static bool
has_dim(KilnDType dtype, const KilnType *x, int d)
{
    const unsigned bits = kiln_dtype_bits(dtype) - (kiln_dtype_is_signed(dtype) ? 1 : 0);
    int64_t least, most;
    kiln_type_dim_range(x, d, &least, &most);
    return least >= 0 && (bits > 62 || most >> bits == 0);
}

/* Whether each element of @value is dim @d of @x, whatever number that is. Nodes that repeat it are
 * looked through, and casts to integer types that keep it. */
static bool
is_open_dim(const KilnValue *value, const KilnType *x, int d)
{
    for (const KilnValue *at = value; at; at = at->def->operands[0].value) {
        bool equal = at->extents && at->extents->n > 0 && !at->extents->under;
        for (uint32_t i = 0; equal && i < at->extents->n; i++)
            equal = at->extents->v[i] == x->open[d];
        if (equal)
            return true;
        const bool passes =
            at->def && (at->def->op == KILN_OP_expand ||
                        (at->def->op == KILN_OP_cast && kiln_dtype_is_integer(at->type.dtype) &&
                         has_dim(at->type.dtype, x, d)));
        if (!passes)
            break;
    }
    return false;
}

/* Lengths may be computed from dims that are open. */
static bool
are_full(const KilnValue *lengths, const KilnType *x, int steps)
{
    double length = -1;
    if (x->rank != 3)
        return false;
    return x->open[steps]
               ? is_open_dim(lengths, x, steps)
               : kiln_value_uniform(lengths, &length) && length == (double)x->dims[steps];
}

static bool
drop_lengths(KilnMatch *match)
{
    const KilnNode *net = match->root;
    KilnValue *operands[MAX_OPERANDS];
    operands_of(net, operands);
    const KilnType *x = &operands[0]->type;
    int steps = kiln_attrs(net, rnn)->layout ? 1 : 0;
    if (!operands[LENGTHS])
        return false;
    GUARD(full_lengths, are_full(operands[LENGTHS], x, steps));
    operands[LENGTHS] = NULL;
    return rebuild(match, operands, net->n_results);
}

static bool
drop_results(KilnMatch *match)
{
    KilnNode *net = match->root;
    KilnValue *operands[MAX_OPERANDS];
    uint32_t n = net->n_results;
    while (n > 1 && net->results[n - 1].n_uses == 0)
        n--;
    if (net->n_results == 1)
        return false;
    GUARD(unread_tail, n < net->n_results);
    operands_of(net, operands);
    return rebuild(match, operands, n);
}

static const KilnRule rules[] = {
    RULE("recurrent-zero-state", E, "(lstm|gru|rnn ? ? ? ...)", drop_states),
    RULE("recurrent-full-lengths", E, "(lstm|gru|rnn ? ? ? ...)", drop_lengths),
    RULE("recurrent-unread-results", E, "(lstm|gru|rnn ? ? ? ...)", drop_results),
};

RULE_PASS(simplify_recurrent, FORWARD);
