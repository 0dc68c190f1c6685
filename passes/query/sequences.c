/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/sequences.h"

#include "graph/node.h"
#include "graph/op/items.h"

enum {
    MOST_STEPS = 1024 /* insertions and erasures that are looked through */
};

/* --- positions --- */

bool
kiln_position_known(const KilnValue *value, int64_t *out)
{
    const KilnKnown *known = value ? value->known : NULL;
    if (!known || known->n != 1 || value->extents)
        return false;
    *out = known->v[0];
    return true;
}

/* --- splits --- */

const KilnNode *
kiln_sequence_split(KilnValue *sequence)
{
    return kiln_value_def_of(sequence, KILN_OP_split_to_sequence);
}

int
kiln_split_axis(const KilnNode *split, bool *out_drops)
{
    const KilnAttrs_split_to_sequence *attrs = kiln_attrs(split, split_to_sequence);
    const KilnType *x = &split->operands[0].value->type;
    *out_drops = !kiln_node_operand(split, 1) && !attrs->keepdims;
    return x->rank > 0 ? kiln_type_axis(x, attrs->axis) : -1;
}

/* The lengths are listed, and add up to @extent. */
static bool
adds_up(const KilnKnown *lengths, int64_t extent)
{
    int64_t left = extent;
    for (int64_t i = 0; i < lengths->n; i++) {
        if (lengths->v[i] < 0 || lengths->v[i] > left)
            return false;
        left -= lengths->v[i];
    }
    return left == 0;
}

/* The known lengths of the parts: one for all of them (*@out_each), or a list. False where they are
 * not known. */
static bool
part_lengths(const KilnNode *split, int64_t *out_each, const KilnKnown **out_list)
{
    const KilnValue *lengths = kiln_node_operand(split, 1);
    *out_list = NULL;
    *out_each = 1;
    if (!lengths)
        return true;
    if (!lengths->known || lengths->extents || lengths->type.rank < 0)
        return false;
    if (lengths->type.rank > 0)
        *out_list = lengths->known;
    else
        *out_each = lengths->known->v[0];
    return *out_each >= 1;
}

/* How many parts there are; -1: not known. */
static int64_t
count_parts(const KilnNode *split, int64_t *out_least)
{
    const KilnType *x = &split->operands[0].value->type;
    const KilnKnown *list;
    bool drops;
    const int axis = kiln_split_axis(split, &drops);
    int64_t each, least, most;
    *out_least = 0;
    if (axis < 0 || !kiln_type_knows_dim(x, axis) || !part_lengths(split, &each, &list))
        return -1;
    if (list)
        return adds_up(list, x->dims[axis]) ? list->n : -1;
    kiln_type_dim_range(x, axis, &least, &most);
    *out_least = least / each + (least % each != 0);
    return x->dims[axis] >= 0 ? *out_least : -1;
}

bool
kiln_split_is_certain(const KilnNode *split)
{
    int64_t least;
    const int64_t n = count_parts(split, &least);
    return n >= 1 || least >= 1;
}

/* Part @at of those that are there. */
static void
find_part(const KilnNode *split, int64_t at, KilnElement *out)
{
    const KilnKnown *list;
    int64_t each, begin = 0;
    KilnPart *part = &out->part;
    part->source = split->operands[0].value;
    part->axis = kiln_split_axis(split, &out->drops);
    (void)part_lengths(split, &each, &list);
    for (int64_t i = 0; list && i < at; i++)
        begin += list->v[i];
    part->begin = list ? begin : at * each;
    part->end = part->begin + (list ? list->v[at] : each);
    part->end = MIN(part->end, part->source->type.dims[part->axis]);
}

/* --- chains of insertions and erasures --- */

/* How many elements there are: `exact`, or `least` or more where that is -1. */
typedef struct {
    int64_t exact, least;
} Length;

/* An insertion or erasure. */
typedef struct {
    KilnNode *node;
    Length before, after; /* lengths of the sequence */
    bool certain;         /* it certainly succeeds */
} Step;

static KilnValue *
position_of(const KilnNode *node)
{
    return kiln_node_operand(node, node->op == KILN_OP_sequence_insert ? 2 : 1);
}

/* A position from 0, or below it from the end, certainly lies in 0 … length + @more. */
static bool
is_within(int64_t at, Length length, int64_t more)
{
    return at < 0 ? -at <= length.least : at <= length.least + more;
}

static void
measure(Step *step)
{
    const bool inserts = step->node->op == KILN_OP_sequence_insert;
    const KilnValue *position = position_of(step->node);
    const int64_t change = inserts ? 1 : -1, most = inserts ? 0 : -1;
    int64_t at = inserts ? 0 : -1;
    step->certain =
        (!position || kiln_position_known(position, &at)) && is_within(at, step->before, most);
    step->after.exact = step->certain && step->before.exact >= 0 ? step->before.exact + change : -1;
    step->after.least = MAX(step->before.least + change, 0);
}

static Length
base_length(const KilnValue *value)
{
    const KilnNode *def = value->def;
    Length length = { -1, 0 };
    if (def && def->op == KILN_OP_sequence_construct)
        length.exact = def->n_operands;
    else if (def && def->op == KILN_OP_sequence_empty)
        length.exact = 0;
    else if (def && def->op == KILN_OP_split_to_sequence)
        length.exact = count_parts(def, &length.least);
    length.least = MAX(length.exact, length.least);
    return length;
}

/* The steps that make @sequence (Step, the last one first) of *@out_base. */
static GArray *
trace(KilnValue *sequence, KilnValue **out_base, Length *out_length)
{
    GArray *steps = g_array_new(FALSE, TRUE, sizeof(Step));
    KilnValue *value = sequence;
    while (
        steps->len < MOST_STEPS && value->def &&
        (value->def->op == KILN_OP_sequence_insert || value->def->op == KILN_OP_sequence_erase)) {
        const Step step = { .node = value->def };
        g_array_append_val(steps, step);
        value = value->def->operands[0].value;
    }
    Length length = base_length(value);
    for (guint i = steps->len; i-- > 0;) {
        Step *step = &g_array_index(steps, Step, i);
        step->before = length;
        measure(step);
        length = step->after;
    }
    *out_base = value;
    *out_length = length;
    return steps;
}

int64_t
kiln_sequence_length(KilnValue *sequence, int64_t *out_least)
{
    KilnValue *base;
    Length length;
    g_array_unref(trace(sequence, &base, &length));
    if (out_least)
        *out_least = length.least;
    return length.exact;
}

/* --- elements --- */

/* Where @step inserts, in its result, or erases, in its operand; counted from where @position is,
 * if that is possible. */
static KilnPosition
place_of(const Step *step, const KilnPosition *position)
{
    const bool inserts = step->node->op == KILN_OP_sequence_insert;
    const KilnValue *stated = position_of(step->node);
    const int64_t n = inserts ? step->after.exact : step->before.exact;
    KilnPosition place = { true, 1 };
    int64_t at;
    if (stated && kiln_position_known(stated, &at))
        place =
            at < 0 ? (KilnPosition){ true, -at + (inserts ? 1 : 0) } : (KilnPosition){ false, at };
    if (place.from_end != position->from_end && n >= 0)
        place = (KilnPosition){ position->from_end, n - place.at };
    return place;
}

/* Moves *@position in the result of @step to where it is in the operand. True: it is what @step
 * inserts. *@out_certain is false where neither can be said. */
static bool
go_through(const Step *step, KilnPosition *position, bool *out_certain)
{
    const bool inserts = step->node->op == KILN_OP_sequence_insert;
    const KilnPosition place = place_of(step, position);
    *out_certain = step->certain;
    if (!step->certain)
        return false;
    if (place.from_end != position->from_end) {
        /* From the other end, the place is so far away at least. */
        const int64_t far = step->before.least + (inserts ? 1 : 0) - place.at;
        *out_certain = position->at < far;
        return false;
    }
    if (inserts && position->at == place.at)
        return true;
    if (inserts)
        position->at -= position->at > place.at ? 1 : 0;
    else
        position->at += position->at >= place.at ? 1 : 0;
    return false;
}

bool
kiln_sequence_find(KilnValue *sequence, int64_t at, KilnElement *out, KilnValue **out_sequence,
                   KilnPosition *out_rest)
{
    KilnValue *base;
    Length length;
    g_autoptr(GArray) steps = trace(sequence, &base, &length);
    KilnPosition *position = out_rest;
    const int64_t n = length.exact;
    *out = (KilnElement){ 0 };
    *out_sequence = sequence;
    *position = (KilnPosition){ at < 0, at < 0 ? -at : at };
    if (n >= 0) {
        *position = (KilnPosition){ false, at < 0 ? at + n : at };
        if (position->at < 0 || position->at >= n)
            return false;
    }
    for (guint i = 0; i < steps->len; i++) {
        const Step *step = &g_array_index(steps, Step, i);
        bool certain;
        if (go_through(step, position, &certain)) {
            out->value = step->node->operands[1].value;
            return true;
        }
        if (!certain)
            return true;
        *out_sequence = step->node->operands[0].value;
    }
    const Length last = base_length(base);
    if (last.exact < 0)
        return true;
    if (position->from_end)
        *position = (KilnPosition){ false, last.exact - position->at };
    if (position->at < 0 || position->at >= last.exact)
        return false;
    if (base->def->op == KILN_OP_sequence_construct)
        out->value = base->def->operands[position->at].value;
    else
        find_part(base->def, position->at, out);
    return true;
}
