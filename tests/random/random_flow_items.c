/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and optionals in random nests: made, changed, read, carried and returned. Positions are
 * in range, and what is joined fits, so that no run fails: a sequence that is read or shortened
 * gets an element first where none is certain. */
#include "graph/function.h"
#include "graph/op/items.h"
#include "tests/random/random_flow_priv.h"
#include "tests/unit/op_named.h"

/* A sequence or optional; NULL where there is none. */
KilnValue *
rf_pick_item(Flow *flow, KilnDType dtype)
{
    for (int tries = 0; tries < 8; tries++) {
        KilnValue *value =
            g_ptr_array_index(flow->g.values, rg_below(&flow->g, (int)flow->g.values->len));
        if (value->type.dtype == dtype)
            return value;
    }
    for (guint i = flow->g.values->len; i-- > 0;) {
        KilnValue *value = g_ptr_array_index(flow->g.values, i);
        if (value->type.dtype == dtype)
            return value;
    }
    return NULL;
}

/* A tensor for @sequence: all elements have one rank. */
static KilnValue *
element_for(Flow *flow, const KilnValue *sequence)
{
    const KilnType *element = kiln_type_element(&sequence->type);
    if (element->rank == KILN_RANK_NONE)
        return rf_pick(flow, element->dtype, ANY);
    return element->rank >= 0 ? rf_pick_like(flow, element, rg_one_in(&flow->g, 2)) : NULL;
}

static KilnValue *
add_node(Flow *flow, const char *op, const void *attrs, KilnValue *const *operands, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!operands[i])
            return NULL;
    }
    const KilnNodeSpec spec = {
        .op = op_named(op), .attrs = attrs, .operands = operands, .n_operands = n
    };
    KilnNode *node = rf_add_node(flow, &spec);
    return node ? &node->results[0] : NULL;
}

KilnValue *
rf_add_sequence(Flow *flow)
{
    const KilnDType dtypes[] = { KILN_DTYPE_f32, KILN_DTYPE_f32, KILN_DTYPE_i64, KILN_DTYPE_f64 };
    const KilnAttrs_sequence_empty attrs = { .dtype = dtypes[rg_below(&flow->g, 4)] };
    KilnValue *values[3] = { rf_pick(flow, attrs.dtype, ANY) };
    uint32_t n = 1 + (uint32_t)rg_below(&flow->g, 3);
    if (!values[0] || rg_one_in(&flow->g, 3))
        return add_node(flow, "sequence_empty", &attrs, NULL, 0);
    for (uint32_t i = 1; i < n; i++) {
        values[i] = rf_pick_like(flow, &values[0]->type, !rg_one_in(&flow->g, 3));
        n = values[i] ? n : i;
    }
    return add_node(flow, "sequence_construct", NULL, values, n);
}

static KilnValue *
length_of(Flow *flow, KilnValue *sequence)
{
    return rf_add(flow, "sequence_length", NULL, sequence, NULL);
}

/* A position from 0 to below @n, which is 1 or more, or the same from the end. */
static KilnValue *
position_below(Flow *flow, KilnValue *n)
{
    KilnValue *any = rf_pick(flow, KILN_DTYPE_i64, SCALAR);
    KilnValue *at = any && n ? rf_add(flow, "mod", NULL, any, n) : NULL;
    return at && rg_one_in(&flow->g, 3) ? rf_add(flow, "sub", NULL, at, n) : at;
}

/* @sequence with one element more, at any place. */
static KilnValue *
inserted(Flow *flow, KilnValue *sequence)
{
    KilnValue *operands[3] = { sequence, element_for(flow, sequence) };
    uint32_t n = 2;
    if (rg_one_in(&flow->g, 3))
        operands[n++] = rf_number(flow, KILN_DTYPE_i64, 0);
    else if (rg_one_in(&flow->g, 3))
        operands[n++] = length_of(flow, sequence);
    return add_node(flow, "sequence_insert", NULL, operands, n);
}

static KilnValue *
erased(Flow *flow, KilnValue *sequence)
{
    KilnValue *longer = inserted(flow, sequence);
    if (!longer)
        return NULL;
    KilnValue *operands[2] = { longer };
    uint32_t n = 1;
    if (rg_one_in(&flow->g, 2))
        operands[n++] = rg_one_in(&flow->g, 2)
                            ? rf_number(flow, KILN_DTYPE_i64, rg_below(&flow->g, 2) - 1)
                            : position_below(flow, length_of(flow, longer));
    return add_node(flow, "sequence_erase", NULL, operands, n);
}

KilnValue *
rf_changed_sequence(Flow *flow, KilnValue *sequence)
{
    KilnValue *value = rg_one_in(&flow->g, 3) ? erased(flow, sequence) : inserted(flow, sequence);
    return value ? value : sequence;
}

static void
step_sequence(Flow *flow)
{
    rf_add_sequence(flow);
}

static void
step_change(Flow *flow)
{
    KilnValue *sequence = rf_pick_item(flow, KILN_DTYPE_sequence);
    if (sequence)
        rf_changed_sequence(flow, sequence);
}

static void
step_at(Flow *flow)
{
    KilnValue *sequence = rf_pick_item(flow, KILN_DTYPE_sequence);
    sequence = sequence ? inserted(flow, sequence) : NULL;
    if (!sequence)
        return;
    KilnValue *operands[] = { sequence,
                              rg_one_in(&flow->g, 2)
                                  ? rf_number(flow, KILN_DTYPE_i64, rg_below(&flow->g, 2) - 1)
                                  : position_below(flow, length_of(flow, sequence)) };
    add_node(flow, "sequence_at", NULL, operands, 2);
}

static void
step_length(Flow *flow)
{
    KilnValue *sequence = rf_pick_item(flow, KILN_DTYPE_sequence);
    if (sequence)
        length_of(flow, sequence);
}

static void
step_split(Flow *flow)
{
    KilnValue *x = rf_pick(flow, KILN_N_DTYPES, VECTOR);
    if (!x)
        return;
    const KilnAttrs_split_to_sequence attrs = { .axis = rg_below(&flow->g, x->type.rank),
                                                .keepdims = rg_one_in(&flow->g, 2) };
    const int64_t extent = x->type.dims[attrs.axis], cut = rg_below(&flow->g, (int)extent + 1);
    const int64_t lengths[] = { cut, extent - cut };
    KilnValue *operands[2] = { x };
    uint32_t n = 1;
    if (rg_one_in(&flow->g, 2))
        operands[n++] = rg_one_in(&flow->g, 2)
                            ? rf_number(flow, KILN_DTYPE_i64, 1 + rg_below(&flow->g, 2))
                            : rg_ints(&flow->g, lengths, 2);
    KilnValue *parts = add_node(flow, "split_to_sequence", &attrs, operands, n);
    const bool stacks = n == 1 && !attrs.keepdims;
    const KilnAttrs_concat_from_sequence join = { .axis = attrs.axis, .new_axis = stacks };
    if (parts && rg_one_in(&flow->g, 2))
        add_node(flow, "concat_from_sequence", &join, &parts, 1);
}

/* Joins what certainly fits: a sequence of elements of one static shape. */
static void
step_join(Flow *flow)
{
    KilnValue *sequence = rf_pick_item(flow, KILN_DTYPE_sequence);
    const KilnType *element = sequence ? kiln_type_element(&sequence->type) : NULL;
    if (!element || !kiln_type_is_static(element) || element->rank > 3)
        return;
    KilnValue *operands[] = { sequence, rf_pick_like(flow, element, true) };
    KilnValue *whole = add_node(flow, "sequence_insert", NULL, operands, 2);
    const bool stacks = element->rank == 0 || rg_one_in(&flow->g, 2);
    const int rank = element->rank + (stacks ? 1 : 0);
    const int axis = rg_below(&flow->g, rank) - (rg_one_in(&flow->g, 2) ? rank : 0);
    const KilnAttrs_concat_from_sequence attrs = { .axis = axis, .new_axis = stacks };
    if (whole)
        add_node(flow, "concat_from_sequence", &attrs, &whole, 1);
}

static KilnValue *
add_optional(Flow *flow)
{
    KilnValue *x = rf_pick(flow, KILN_N_DTYPES, ANY);
    if (!x)
        return NULL;
    const KilnType type = kiln_type_of_items(flow->g.module->arena, KILN_DTYPE_optional, &x->type);
    const KilnNodeSpec none = { .op = KILN_OP_optional_none, .types = &type };
    if (!rg_one_in(&flow->g, 3))
        return add_node(flow, "optional", NULL, &x, 1);
    KilnNode *node = rf_add_node(flow, &none);
    return node ? &node->results[0] : NULL;
}

static void
step_optional(Flow *flow)
{
    KilnValue *optional = rf_pick_item(flow, KILN_DTYPE_optional);
    KilnValue *x = rf_pick(flow, KILN_N_DTYPES, ANY);
    if (!optional || rg_one_in(&flow->g, 2)) {
        add_optional(flow);
        return;
    }
    rf_add(flow, "optional_has_element", NULL, optional, NULL);
    KilnValue *certain =
        x && rg_one_in(&flow->g, 2) ? add_node(flow, "optional", NULL, &x, 1) : NULL;
    if (certain)
        add_node(flow, "optional_get_element", NULL, &certain, 1);
}

void
rf_step_items(Flow *flow)
{
    static void (*const all[])(Flow *) = {
        step_sequence, step_change, step_change, step_at,   step_at,
        step_at,       step_length, step_split,  step_join, step_optional,
    };
    all[rg_below(&flow->g, G_N_ELEMENTS(all))](flow);
}
