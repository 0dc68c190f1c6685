/* SPDX-License-Identifier: Apache-2.0 */
/* simplify-sequences: values are read where they are made, not out of a sequence or optional.
 *
 *     a   b                              x                               a   b
 *      \ /                               |                                \ /
 *   construct   1                 split_to_sequence  2                 construct
 *        \     /         => b            \          /       => x[2:3]      |            => concat
 *      sequence_at                       sequence_at               concat_from_sequence     a, b
 *
 *     s   x                    s   x                              x
 *      \ /                      \ /                               |
 *     insert  -2       => s[-1] insert                         optional         => x, true
 *        \    /                   |            => s             /      \
 *      sequence_at              erase                     get_element  has_element
 *
 *     x = sequence_empty                     loop body(%i) {
 *     |                                        …
 *     loop body(%i, %s) {            =>        return v
 *       …                                    }  (v is stacked)
 *       return sequence_insert(%s, v)        |
 *     }                                    transpose, reshape
 *     |
 *     concat_from_sequence
 *
 *   known-element     the value at a known position, or the same position of a shorter chain
 *   known-length      how many elements a sequence has
 *   join-known        a concat of the elements of a known sequence
 *   join-parts        the parts of a split, joined along its axis: the operand of the split
 *   erase-inserted    an element that is inserted and erased again
 *   known-optional    the content of an optional, and whether it has one
 *   stack-in-loop     a sequence to which each iteration appends a value of one shape
 *
 * A position that is out of range fails in a run, and so does a join of nothing or of shapes that
 * do not fit. Nodes that may fail so stay: what is looked through certainly succeeds. A loop is
 * changed only if it certainly has an iteration, for a join of no element fails. The sequence has
 * to be empty before the loop, nothing else may read it, and all dims of what is appended are the
 * same in each iteration.
 *
 * Dims that data decided have names, which the node that goes defines. Where they turn out to be
 * other dims, types are written anew with these.
 *
 * requires nothing, preserves nothing; class E. Sequences that nobody reads are left to dce, and
 * those that a loop carries for nothing to drop-loop-values. */
#include "graph/dim/dim_defined.h"
#include "graph/function.h"
#include "graph/module/define.h"
#include "graph/module/flow.h"
#include "graph/module/flow_types.h"
#include "graph/module/move_dims.h"
#include "graph/op/flow.h"
#include "graph/op/items.h"
#include "graph/op/transpose.h"
#include "passes/pass.h"
#include "passes/query/extents.h"
#include "passes/query/movement.h"
#include "passes/query/sequences.h"

enum {
    MOST_JOINED = 1024 /* elements of a concat that is built */
};

typedef struct {
    KilnPassContext *context;
    KilnFunction *function;
    GHashTable
        *dims; /* names that nothing defines any more → KilnDim*: what they turned out to be */
    bool changed;
    GError **error;
} Sweep;

/* --- names of dims --- */

static const KilnDim *
replace_name(void *data, const KilnDim *name)
{
    const KilnDim *dim = g_hash_table_lookup(((Sweep *)data)->dims, kiln_dim_as_name(name));
    return dim ? dim : name;
}

/* The name that @node defines for dim @d of its result; NULL: none. */
static const char *
defined_name(const KilnNode *node, int d)
{
    const KilnStrings *names = kiln_node_item_dims(node);
    return names && (uint32_t)d < names->n && *names->v[d] ? names->v[d] : NULL;
}

/* Dim @d of the result of @node, which data decides, is dim @d of @type. */
static void
learn_dim(Sweep *sweep, const KilnNode *node, int d, const KilnType *type)
{
    KilnDimTable *table = sweep->function->module->dims;
    const char *name = defined_name(node, d);
    const KilnDim *dim = kiln_type_dim(type, d, table);
    if (name && dim && g_strcmp0(kiln_dim_as_name(dim), name) != 0)
        g_hash_table_insert(sweep->dims, (char *)name,
                            (void *)kiln_dim_replace(table, dim, replace_name, sweep));
}

/* @type says as much as that of the result of @node. */
static bool
says_as_much(const KilnNode *node, const KilnType *type)
{
    const KilnType *old = &node->results[0].type;
    if (old->dtype != type->dtype || type->quant || type->layout)
        return false;
    if (old->rank < 0 || old->contents)
        return true;
    if (old->rank != type->rank)
        return false;
    for (int d = 0; d < old->rank; d++) {
        if (!kiln_type_knows_dim(old, d))
            continue;
        if (!kiln_type_knows_dim(type, d) ||
            (!kiln_type_equal_dims(old, d, type, d) && !defined_name(node, d)))
            return false;
    }
    return true;
}

/* @value takes the place of result 0 of @node, which goes. False where it could not be built. */
static bool
replace(Sweep *sweep, const char *rule, KilnNode *node, KilnValue *value)
{
    KilnValue *result = &node->results[0];
    if (!value)
        return false;
    for (int d = 0; d < result->type.rank; d++)
        learn_dim(sweep, node, d, &value->type);
    kiln_pass_note(sweep->context, rule, "%s (%s) by %s", kiln_node_label(node),
                   kiln_op_info(node->op)->name, value->name);
    result->type = value->type; /* which may say more */
    kiln_value_replace(result, value);
    kiln_node_remove(node);
    sweep->changed = true;
    return true;
}

/* --- elements --- */

static KilnType
element_type(const KilnElement *element)
{
    if (element->value)
        return element->value->type;
    KilnType type = kiln_part_type(&element->part, element->part.end - element->part.begin);
    if (!element->drops)
        return type;
    type.rank--;
    for (int d = element->part.axis; d < type.rank; d++) {
        type.dims[d] = type.dims[d + 1];
        type.open[d] = type.open[d + 1];
    }
    return type;
}

static KilnValue *
build_element(const Sweep *sweep, KilnNode *before, const KilnElement *element)
{
    const KilnPart *part = &element->part;
    if (element->value)
        return element->value;
    return element->drops ? kiln_element_build(sweep->function, before, part->source, part->axis,
                                               part->begin, sweep->error)
                          : kiln_part_build(sweep->function, before, part, NULL, sweep->error);
}

/* `sequence_at` of @sequence, whose elements are of a type that says as much. Dims that data
 * decides keep their names. */
static KilnValue *
build_at(const Sweep *sweep, const KilnNode *node, KilnValue *sequence, KilnPosition position)
{
    const KilnStrings *names = &kiln_attrs(node, sequence_at)->dims;
    const KilnType scalar = kiln_type_scalar(KILN_DTYPE_i64);
    const KilnType *element = kiln_type_element(&sequence->type);
    const double at = (double)(position.from_end ? -position.at : position.at);
    KilnAttrs_sequence_at attrs = { .dims = { .n = names->n } };
    attrs.dims.v = kiln_arena_new0(sweep->function->module->arena, const char *, names->n + 1);
    for (uint32_t d = 0; d < names->n; d++)
        attrs.dims.v[d] =
            (int)d < element->rank && kiln_type_knows_dim(element, (int)d) ? "" : names->v[d];
    KilnValue *operands[] = { sequence, kiln_build_constant(sweep->function, (KilnNode *)node, "at",
                                                            kiln_tensor_new_splat(&scalar, at)) };
    return kiln_build(sweep->function, (KilnNode *)node, KILN_OP_sequence_at, &attrs, operands, 2,
                      sweep->error);
}

static bool
take_element(Sweep *sweep, KilnNode *node)
{
    static const char rule[] = "known-element";
    KilnPassContext *context = sweep->context;
    KilnValue *sequence = node->operands[0].value;
    KilnPosition position;
    KilnElement element;
    int64_t at;
    if (!kiln_position_known(node->operands[1].value, &at) ||
        !kiln_sequence_find(sequence, at, &element, &sequence, &position))
        return false;
    const bool found = element.value || element.part.source;
    PASS_GUARD(certain, found || sequence != node->operands[0].value);
    const KilnType type = found ? element_type(&element) : node->results[0].type;
    return says_as_much(node, &type) && replace(sweep, rule, node,
                                                found ? build_element(sweep, node, &element)
                                                      : build_at(sweep, node, sequence, position));
}

/* --- lengths and optionals --- */

static KilnValue *
build_number(const Sweep *sweep, KilnNode *node, double number)
{
    return kiln_build_constant(sweep->function, node, node->results[0].name,
                               kiln_tensor_new_splat(&node->results[0].type, number));
}

static bool
take_length(Sweep *sweep, KilnNode *node)
{
    static const char rule[] = "known-length";
    KilnPassContext *context = sweep->context;
    const int64_t n = kiln_sequence_length(node->operands[0].value, NULL);
    PASS_GUARD(known_length, n >= 0);
    return replace(sweep, rule, node, build_number(sweep, node, (double)n));
}

static bool
simplify_optional(Sweep *sweep, KilnNode *node)
{
    static const char rule[] = "known-optional";
    const KilnNode *def = node->operands[0].value->def;
    if (!def || (def->op != KILN_OP_optional && def->op != KILN_OP_optional_none))
        return false;
    const bool has = def->op == KILN_OP_optional;
    if (node->op == KILN_OP_optional_has_element)
        return replace(sweep, rule, node, build_number(sweep, node, has));
    return has && says_as_much(node, &def->operands[0].value->type) &&
           replace(sweep, rule, node, def->operands[0].value);
}

/* --- insertions that are erased --- */

/* Positions of an insertion and an erasure, in a sequence that has @least elements or more before
 * both. NULL: the end, and the last element. */
static bool
undoes(const KilnValue *inserted, const KilnValue *erased, int64_t n, int64_t least)
{
    int64_t to = -1, from = -1;
    if ((inserted && !kiln_position_known(inserted, &to)) ||
        (erased && !kiln_position_known(erased, &from)))
        return false;
    if (inserted && to < 0) /* in front of an element */
        return -to <= least && (from < 0 ? from == to - 1 : n >= 0 && from == n + to);
    if (!inserted)
        return from == -1 || (n >= 0 && from == n);
    return to <= least && (from >= 0 ? from == to : n >= 0 && n + 1 + from == to);
}

static bool
skip_inserted(Sweep *sweep, KilnNode *node)
{
    static const char rule[] = "erase-inserted";
    KilnPassContext *context = sweep->context;
    const KilnNode *insert = kiln_value_def_of(node->operands[0].value, KILN_OP_sequence_insert);
    if (!insert)
        return false;
    int64_t least;
    const int64_t n = kiln_sequence_length(insert->operands[0].value, &least);
    PASS_GUARD(same_place,
               undoes(kiln_node_operand(insert, 2), kiln_node_operand(node, 1), n, least));
    return replace(sweep, rule, node, insert->operands[0].value);
}

/* --- joins --- */

/* The concat of @node: its axis in the result, whose rank is known. */
static int
join_axis(const KilnNode *node)
{
    const KilnType *type = &node->results[0].type;
    return type->rank > 0 ? kiln_type_axis(type, kiln_attrs(node, concat_from_sequence)->axis) : -1;
}

/* All parts of what is split, in order. */
static bool
join_parts(Sweep *sweep, KilnNode *node)
{
    static const char rule[] = "join-parts";
    KilnPassContext *context = sweep->context;
    const bool stacks = kiln_attrs(node, concat_from_sequence)->new_axis;
    const KilnNode *split = kiln_sequence_split(node->operands[0].value);
    bool drops;
    if (!split)
        return false;
    KilnValue *x = split->operands[0].value;
    const int axis = kiln_split_axis(split, &drops);
    PASS_GUARD(same_axis, drops == stacks && axis >= 0 && axis == join_axis(node));
    PASS_GUARD(fits, kiln_split_is_certain(split));
    return says_as_much(node, &x->type) && replace(sweep, rule, node, x);
}

/* The elements of @sequence; false where one is not known. */
static bool
list_elements(KilnValue *sequence, int64_t n, KilnElement *out)
{
    for (int64_t i = 0; i < n; i++) {
        KilnValue *ignored;
        KilnPosition at;
        if (!kiln_sequence_find(sequence, i, &out[i], &ignored, &at) ||
            (!out[i].value && !out[i].part.source))
            return false;
    }
    return true;
}

/* All elements certainly have the shape of the first one, but for dim @but. */
static bool
have_one_shape(const KilnElement *elements, int64_t n, int but)
{
    const KilnType first = element_type(&elements[0]);
    for (int64_t i = 0; i < n; i++) {
        const KilnType type = element_type(&elements[i]);
        if (type.rank < 0 || type.rank != first.rank || type.quant || type.layout)
            return false;
        for (int d = 0; d < type.rank; d++) {
            if (d == but ? !kiln_type_knows_dim(&type, d)
                         : !kiln_type_equal_dims(&type, d, &first, d))
                return false;
        }
    }
    return true;
}

static KilnValue *
build_join(const Sweep *sweep, KilnNode *node, const KilnElement *elements, int64_t n, int axis)
{
    const bool stacks = kiln_attrs(node, concat_from_sequence)->new_axis;
    g_autofree KilnValue **values = g_new0(KilnValue *, n);
    for (int64_t i = 0; i < n; i++) {
        values[i] = build_element(sweep, node, &elements[i]);
        if (!values[i])
            return NULL;
    }
    if (stacks)
        return kiln_stack_build(sweep->function, node, values, (uint32_t)n, axis, sweep->error);
    return kiln_join_build(sweep->function, node, values, (uint32_t)n, axis, sweep->error);
}

static bool
join_known(Sweep *sweep, KilnNode *node)
{
    static const char rule[] = "join-known";
    KilnPassContext *context = sweep->context;
    KilnValue *sequence = node->operands[0].value;
    const bool stacks = kiln_attrs(node, concat_from_sequence)->new_axis;
    const int64_t n = kiln_sequence_length(sequence, NULL);
    const int axis = join_axis(node);
    if (axis < 0 || n < 1 || n > MOST_JOINED)
        return false;
    g_autofree KilnElement *elements = g_new0(KilnElement, n);
    if (!list_elements(sequence, n, elements))
        return false;
    PASS_GUARD(one_shape, have_one_shape(elements, n, stacks ? -1 : axis));
    return replace(sweep, rule, node, build_join(sweep, node, elements, n, axis));
}

/* --- loops --- */

/* A sequence that a loop carries, and what is appended to it. */
typedef struct {
    KilnNode *loop, *join;
    KilnFunction *body;
    uint32_t carried; /* which one */
    KilnValue *value; /* in the body */
    int axis;         /* of the join */
    bool stacks;
} Append;

/* The single use of @value; NULL: it has others, or none. */
static const KilnUse *
only_use(const KilnValue *value)
{
    return value->n_uses == 1 ? value->first_use : NULL;
}

/* What each iteration appends to what is carried as argument @argument and returned as @result.
 * NULL where it does more to it, or other things. */
static KilnValue *
appended(const KilnFunction *body, uint32_t argument, uint32_t result)
{
    const KilnUse *use = only_use(&kiln_function_argument(body, argument)->value);
    const KilnNode *insert = use ? use->user : NULL;
    if (!insert || insert->op != KILN_OP_sequence_insert || insert->function != body ||
        use->index != 0 || kiln_node_operand(insert, 2))
        return NULL;
    const KilnUse *returned = only_use(&insert->results[0]);
    return returned && returned->user == kiln_function_return(body) && returned->index == result
               ? insert->operands[1].value
               : NULL;
}

/* The type of the join of @trips (NULL: not known) values of @type. */
static KilnType
joined_type(const Append *append, const KilnType *type, const KilnDim *trips)
{
    KilnDimTable *table = append->loop->function->module->dims;
    KilnType out = *type;
    out.rank += append->stacks ? 1 : 0;
    for (int d = out.rank - 1; append->stacks && d > append->axis; d--) {
        out.dims[d] = type->dims[d - 1];
        out.open[d] = type->open[d - 1];
    }
    if (!append->stacks && trips)
        trips = kiln_dim_mul(table, trips, kiln_type_dim(type, append->axis, table));
    kiln_type_set_dim(&out, append->axis, trips);
    return out;
}

/* A reshape to @type needs no more than numbers, what is in front of @axis, and one -1 there. */
static bool
numbers_say(const KilnType *type, int axis)
{
    for (int d = axis + 1; d < type->rank; d++) {
        if (type->dims[d] < 0)
            return false;
    }
    return kiln_type_is_static(type) || kiln_dims_are_positive(type, axis);
}

static bool
may_stack(const Sweep *sweep, Append *append)
{
    static const char rule[] = "stack-in-loop";
    KilnPassContext *context = sweep->context;
    KilnValue *sequence = append->join->operands[0].value;
    KilnNode *loop = kiln_value_def_of(sequence, KILN_OP_loop);
    uint32_t first, carried;
    if (!loop || loop->function != sweep->function)
        return false;
    kiln_flow_carried(loop, &first, &carried);
    append->loop = loop;
    append->body = kiln_attrs(loop, loop)->body;
    append->carried = sequence->index;
    append->axis = join_axis(append->join);
    append->stacks = kiln_attrs(append->join, concat_from_sequence)->new_axis;
    if (append->axis < 0 || append->carried >= carried || kiln_region_refusal(append->body))
        return false;
    append->value = appended(append->body, first + append->carried, 1 + append->carried);
    PASS_GUARD(appends, append->value != NULL);
    PASS_GUARD(read_once, sequence->n_uses == 1);
    PASS_GUARD(starts_empty,
               kiln_sequence_length(loop->operands[first + append->carried].value, NULL) == 0);
    PASS_GUARD(has_iteration, kiln_loop_runs(loop));
    const KilnType *type = &append->value->type;
    PASS_GUARD(fixed_shape, kiln_loop_fixes_type(loop, type) && type->rank < KILN_MAX_RANK);
    int64_t most;
    const KilnType joined = joined_type(append, type, kiln_loop_trips(loop, &most));
    return !type->quant && !type->layout && (append->stacks || numbers_say(&joined, append->axis));
}

/* How often the loop runs: a new name in @names, where a run decides. */
static const KilnDim *
count_trips(const Append *append, KilnStrings *names)
{
    int64_t most;
    KilnModule *module = append->loop->function->module;
    const KilnDim *trips = kiln_loop_trips(append->loop, &most);
    if (trips)
        return trips;
    g_autofree char *word = kiln_define_word(append->loop->results[append->carried].name);
    trips = kiln_dim_define(module->dims, word, most);
    const char **list = kiln_arena_new0(module->arena, const char *, names->n + 1);
    for (uint32_t i = 0; i < names->n; i++)
        list[i] = names->v[i];
    list[names->n] = kiln_dim_as_name(trips);
    *names = (KilnStrings){ .n = names->n + 1, .v = list };
    return trips;
}

/* The body returns @value behind its results. */
static gboolean
return_too(KilnFunction *body, KilnValue *value, GError **error)
{
    const KilnNode *last = kiln_function_return(body);
    const uint32_t n = last->n_operands;
    g_autofree KilnValue **values = g_new0(KilnValue *, n + 1);
    g_autofree const char **names = g_new0(const char *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        values[i] = last->operands[i].value;
        names[i] = g_ptr_array_index(body->result_names, i);
    }
    values[n] = value;
    names[n] = value->name;
    return kiln_function_set_results(body, values, names, n + 1, error);
}

/* The loop with one result more: what is appended, stacked at dim 0. */
static KilnValue *
build_stack(const Sweep *sweep, const Append *append, const KilnDim **out_trips)
{
    KilnNode *loop = append->loop;
    const uint32_t n = loop->n_results;
    KilnAttrs_loop attrs = *kiln_attrs(loop, loop);
    g_autofree KilnType *types = g_new0(KilnType, n + 1);
    g_autofree KilnValue **operands = g_new0(KilnValue *, loop->n_operands + 1);
    const Append stacked = { .loop = loop, .axis = 0, .stacks = true };
    for (uint32_t r = 0; r < n; r++)
        types[r] = loop->results[r].type;
    for (uint32_t i = 0; i < loop->n_operands; i++)
        operands[i] = loop->operands[i].value;
    *out_trips = count_trips(append, &attrs.dims);
    types[n] = joined_type(&stacked, &append->value->type, *out_trips);
    KilnNodeSpec spec = { .op = KILN_OP_loop,
                          .name = loop->name,
                          .operands = operands,
                          .n_operands = loop->n_operands,
                          .n_results = n + 1,
                          .attrs = &attrs,
                          .types = types,
                          .before = loop };
    if (!return_too(append->body, append->value, sweep->error))
        return NULL;
    KilnNode *made = kiln_node_new(sweep->function, &spec, sweep->error);
    if (!made)
        return NULL;
    for (uint32_t r = 0; r < n; r++)
        kiln_value_replace(&loop->results[r], &made->results[r]);
    kiln_node_remove(loop);
    return &made->results[n];
}

/* Dim 0 of @stack goes to where the join has it. */
static KilnValue *
build_joined(const Sweep *sweep, const Append *append, KilnValue *stack, const KilnType *type)
{
    int64_t order[KILN_MAX_RANK];
    const int rank = stack->type.rank;
    for (int d = 0; d < rank; d++)
        order[d] = d < append->axis ? d + 1 : d == append->axis ? 0 : d;
    const KilnAttrs_transpose attrs = { .perm = { .n = (uint32_t)rank, .v = order } };
    if (append->axis > 0)
        stack = kiln_build(sweep->function, append->join, KILN_OP_transpose, &attrs, &stack, 1,
                           sweep->error);
    if (!stack || append->stacks)
        return stack;
    return kiln_reshape_build(sweep->function, append->join, stack, type, sweep->error);
}

static bool
stack_in_loop(Sweep *sweep, KilnNode *node)
{
    Append append = { .join = node };
    const KilnDim *trips;
    if (!may_stack(sweep, &append))
        return false;
    KilnValue *stack = build_stack(sweep, &append, &trips);
    if (!stack)
        return false;
    const KilnType type = joined_type(&append, &append.value->type, trips);
    return replace(sweep, "stack-in-loop", node, build_joined(sweep, &append, stack, &type));
}

/* --- the sweep --- */

static void
visit(Sweep *sweep, KilnNode *node)
{
    switch (node->op) {
    case KILN_OP_sequence_at:
        take_element(sweep, node);
        break;
    case KILN_OP_sequence_length:
        take_length(sweep, node);
        break;
    case KILN_OP_sequence_erase:
        skip_inserted(sweep, node);
        break;
    case KILN_OP_optional_has_element:
    case KILN_OP_optional_get_element:
        simplify_optional(sweep, node);
        break;
    case KILN_OP_concat_from_sequence:
        if (!join_parts(sweep, node) && !*sweep->error && !join_known(sweep, node) &&
            !*sweep->error)
            stack_in_loop(sweep, node);
        break;
    default:
        break;
    }
}

GRAPH_PASS(simplify_sequences);

gboolean
kiln_pass_simplify_sequences(KilnFunction *function, KilnPassContext *context, bool *changed,
                             GError **error)
{
    g_autoptr(GHashTable) dims = g_hash_table_new(g_str_hash, g_str_equal);
    GError *failure = NULL;
    Sweep sweep = { context, function, dims, false, &failure };
    kiln_foreach_node_safe (node, function) {
        visit(&sweep, node);
        if (failure) {
            g_propagate_error(error, failure);
            return FALSE;
        }
    }
    *changed = sweep.changed;
    if (g_hash_table_size(dims))
        kiln_function_replace_dims(function, replace_name, &sweep);
    return !*changed || kiln_function_refine(function, error);
}
