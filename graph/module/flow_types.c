/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/module/flow_types.h"

#include "graph/base/item.h"
#include "graph/dim/dim_defined.h"
#include "graph/function.h"
#include "graph/module/define.h"
#include "graph/module/outline.h"
#include "graph/module/scan.h"
#include "graph/node.h"
#include "graph/op/flow.h"
#include "graph/op/structure.h"

#include <string.h>

static KilnFunction *
body_of(const KilnNode *node)
{
    return node->op == KILN_OP_loop ? kiln_attrs(node, loop)->body : kiln_attrs(node, scan)->body;
}

/* --- names --- */

/* A name for dim @d of @value that no other value of the module has. @function: where it is. */
static const KilnDim *
make_name(KilnFunction *function, const KilnValue *value, int d, int64_t most)
{
    g_autofree char *word = kiln_define_word(value->name);
    g_autofree char *wanted = g_strdup_printf("%s%d", word, d);
    const char *name = kiln_define_name(function, wanted, MIN(most, (int64_t)KILN_DIM_MOST));
    return kiln_dim_name(function->module->dims, name);
}

/* @node defines no names: those that it had may be used again. */
static void
forget_names(KilnNode *node)
{
    *kiln_flow_dims(node) = (KilnStrings){ 0 };
}

/* Dim @d of result @r of @node gets a name of its own, which is listed at once: the next one is
 * another one. */
static gboolean
name_result(KilnNode *node, uint32_t r, int d, int64_t most, KilnType *type, GError **error)
{
    KilnArena *arena = node->function->module->arena;
    KilnStrings *dims = kiln_flow_dims(node);
    if (dims->n == KILN_DEFINED_MAX)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "%s (%s): result %u: expected at most %d dims of results that a run "
                          "decides, found more",
                          kiln_node_label(node), kiln_op_info(node->op)->name, r, KILN_DEFINED_MAX);
    const KilnDim *name = make_name(node->function, &node->results[r], d, most);
    const char **names = kiln_arena_new0(arena, const char *, dims->n + 1);
    for (uint32_t i = 0; i < dims->n; i++)
        names[i] = dims->v[i];
    names[dims->n] = kiln_dim_as_name(name);
    *dims = (KilnStrings){ .n = dims->n + 1, .v = names };
    kiln_type_set_dim(type, d, name);
    return TRUE;
}

/* --- names of a subgraph, which mean nothing around it --- */

typedef struct {
    const KilnFunction *region;
    const KilnType *outer; /* per argument: the type around it; NULL: none has names of its own */
} Inner;

static bool
is_defined_in(const KilnFunction *region, const char *name)
{
    KilnDefined defined[KILN_DEFINED_MAX];
    kiln_foreach_node (node, region) {
        uint32_t n = kiln_node_defines(node, defined);
        for (uint32_t i = 0; i < n; i++) {
            if (g_strcmp0(kiln_dim_as_name(defined[i].name), name) == 0)
                return true;
        }
    }
    return false;
}

static bool
is_inner(void *data, const char *name)
{
    const Inner *inner = data;
    for (guint i = 0; inner->outer && i < inner->region->arguments->len; i++) {
        const KilnType *type = &kiln_function_argument(inner->region, i)->value.type;
        for (int d = 0; d < type->rank; d++) {
            if (!kiln_type_equal_dims(type, d, &inner->outer[i], d) &&
                g_strcmp0(kiln_type_dim_name(type, d), name) == 0)
                return true;
        }
    }
    return is_defined_in(inner->region, name);
}

/* True where dim @d of @type, of a value in the subgraph, means the same around it. */
static bool
is_visible(const Inner *inner, const KilnType *type, int d)
{
    if (!kiln_type_knows_dim(type, d))
        return false;
    return !type->open[d] || !kiln_dim_any_name(type->open[d], is_inner, (void *)inner);
}

/* @type, of a value in the subgraph, without the dims of elements of sequences that mean nothing
 * around it. */
static KilnType
visible_type(const Inner *inner, KilnArena *arena, const KilnType *type)
{
    if (!type->contents || type->dtype == KILN_DTYPE_map)
        return *type;
    const KilnType *stated = kiln_type_element(type);
    KilnType element = visible_type(inner, arena, stated);
    for (int d = 0; d < element.rank; d++) {
        if (!is_visible(inner, stated, d))
            kiln_type_set_dim(&element, d, NULL);
    }
    return kiln_type_equal(&element, stated) ? *type
                                             : kiln_type_of_items(arena, type->dtype, &element);
}

/* --- branches --- */

static int64_t
most_of(const KilnType *type, int d)
{
    int64_t least, most = KILN_DIM_MOST;
    if (kiln_type_knows_dim(type, d))
        kiln_type_dim_range(type, d, &least, &most);
    return most;
}

/* The type of result @r of branch @inner, if it runs and has the rank that is expected. */
static const KilnType *
branch_type(const Inner *inner, uint32_t r, int rank)
{
    const KilnType *type = &kiln_function_return(inner->region)->operands[r].value->type;
    return kiln_region_refusal(inner->region) || type->rank != rank ? NULL : type;
}

/* Dim @d of both types where it is one, and means the same around the branches. */
static bool
agree_on(const Inner *a, const KilnType *x, const Inner *b, const KilnType *y, int d)
{
    if ((x && !is_visible(a, x, d)) || (y && !is_visible(b, y, d)))
        return false;
    return x && y ? kiln_type_equal_dims(x, d, y, d) : x || y;
}

/* The type of result @r, a sequence or optional, from those of the branches that run. */
static void
join_items(KilnNode *node, uint32_t r, const Inner *a, const Inner *b)
{
    KilnArena *arena = node->function->module->arena;
    const Inner *inner[] = { a, b };
    KilnType joined = node->results[r].type;
    bool any = false;
    for (size_t i = 0; i < G_N_ELEMENTS(inner); i++) {
        const KilnType *stated = branch_type(inner[i], r, 0);
        if (!stated)
            continue;
        const KilnType type = visible_type(inner[i], arena, stated);
        joined = any ? kiln_type_join(arena, &joined, &type) : type;
        any = true;
    }
    node->results[r].type = joined;
}

/* What is known of result @r from the ranks of the branches that run: none where they differ. */
static void
join_ranks(KilnNode *node, uint32_t r, const Inner *a, const Inner *b)
{
    const Inner *inner[] = { a, b };
    KilnType *type = &node->results[r].type;
    bool any = false;
    for (size_t i = 0; i < G_N_ELEMENTS(inner); i++) {
        const KilnType *stated = &kiln_function_return(inner[i]->region)->operands[r].value->type;
        if (kiln_region_refusal(inner[i]->region))
            continue;
        if (any && stated->rank != type->rank)
            *type = kiln_type_unranked(type->dtype);
        else if (!any && stated->rank != type->rank)
            *type = *stated;
        any = true;
    }
}

static gboolean
settle_result(KilnNode *node, uint32_t r, GError **error)
{
    const KilnAttrs_if *attrs = kiln_attrs(node, if);
    const Inner a = { attrs->then_branch, NULL }, b = { attrs->else_branch, NULL };
    KilnType *type = &node->results[r].type;
    if (type->contents)
        join_items(node, r, &a, &b);
    else
        join_ranks(node, r, &a, &b);
    const KilnType *x = branch_type(&a, r, type->rank), *y = branch_type(&b, r, type->rank);
    for (int d = 0; d < type->rank; d++) {
        if (agree_on(&a, x, &b, y, d)) {
            type->dims[d] = (x ? x : y)->dims[d];
            type->open[d] = (x ? x : y)->open[d];
            continue;
        }
        int64_t most = MAX(x ? most_of(x, d) : 0, y ? most_of(y, d) : 0);
        if (!name_result(node, r, d, x || y ? most : KILN_DIM_MOST, type, error))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_if_settle(KilnNode *node, GError **error)
{
    forget_names(node);
    return kiln_if_settle_from(node, 0, error);
}

gboolean
kiln_if_settle_from(KilnNode *node, uint32_t first, GError **error)
{
    for (uint32_t r = first; r < node->n_results; r++) {
        if (!settle_result(node, r, error))
            return FALSE;
    }
    return TRUE;
}

/* --- ranks --- */

static int32_t
own_ranks(const KilnValue *value, bool of_shape)
{
    const KilnType *type = &value->type;
    if (!of_shape)
        return type->rank < 0 ? KILN_RANKS_UNKNOWN : 1 << type->rank;
    if (!value->def)
        return 0;
    return type->open[0] || type->dims[0] < 0 ? KILN_RANKS_UNKNOWN : 1 << type->dims[0];
}

int32_t
kiln_flow_ranks(const KilnValue *value, bool of_shape)
{
    int32_t ranks = own_ranks(value, of_shape);
    if (ranks != KILN_RANKS_UNKNOWN || !value->def || value->def->op != KILN_OP_if)
        return ranks;
    ranks = 0;
    kiln_foreach_region (branch, value->def) {
        const KilnNode *results = kiln_function_return(branch);
        if (!kiln_region_refusal(branch))
            ranks |= kiln_flow_ranks(results->operands[value->index].value, of_shape);
    }
    return ranks;
}

/* --- loops --- */

/* Where @value is the condition that the body gets, or a constant, it never ends the loop. */
static bool
goes_on(const KilnFunction *body, const KilnValue *value)
{
    bool flag;
    while (value->def && value->def->op == KILN_OP_identity)
        value = value->def->operands[0].value;
    return value == &kiln_function_argument(body, 1)->value ||
           (kiln_value_known_flag(value, &flag) && flag);
}

bool
kiln_loop_asks(const KilnNode *node)
{
    const KilnFunction *body = body_of(node);
    return kiln_node_operand(node, 1) &&
           !goes_on(body, kiln_function_return(body)->operands[0].value);
}

bool
kiln_loop_counts(const KilnNode *node)
{
    bool flag;
    if (node->op == KILN_OP_scan)
        return true;
    const KilnValue *condition = kiln_node_operand(node, 1);
    return (!condition || (kiln_value_known_flag(condition, &flag) && flag)) &&
           !kiln_loop_asks(node);
}

/* The type of an element of operand @i of a scan, of a known rank. */
static KilnType
scanned_type(const KilnNode *node, uint32_t i, uint32_t states)
{
    const KilnType *whole = &node->operands[i].value->type;
    int64_t axis = kiln_ints_at(kiln_attrs(node, scan)->scan_input_axes, i - states, 0);
    KilnType type = *whole;
    type.rank--;
    for (int d = kiln_type_axis(whole, axis); d < type.rank; d++) {
        type.dims[d] = whole->dims[d + 1];
        type.open[d] = whole->open[d + 1];
    }
    return type;
}

/* The types that the arguments have in the first iteration. */
static gboolean
first_types(const KilnNode *node, KilnType *types, GError **error)
{
    uint32_t first, carried;
    if (node->op == KILN_OP_scan && !kiln_scan_check_node(node, error)) {
        kiln_prefix_error(error, "%s (scan): ", kiln_node_label(node));
        return FALSE;
    }
    kiln_flow_carried(node, &first, &carried);
    if (first) {
        types[0] = kiln_type_scalar(KILN_DTYPE_i64);
        types[1] = kiln_type_scalar(KILN_DTYPE_bool);
    }
    for (uint32_t i = first; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (!value)
            return kiln_throw(error, KILN_ERROR_INVALID, "%s (%s): operand %u is missing",
                              kiln_node_label(node), kiln_op_info(node->op)->name, i);
        types[i] = value->type;
        if (i < first + carried)
            continue;
        if (value->type.rank < 0)
            return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                              "%s (scan): operand %u: expected a known rank, found none",
                              kiln_node_label(node), i);
        types[i] = scanned_type(node, i, carried);
    }
    return TRUE;
}

static void
set_arguments(KilnFunction *body, const KilnType *types)
{
    for (guint i = 0; i < body->arguments->len; i++) {
        KilnValue *value = &kiln_function_argument(body, i)->value;
        value->type = types[i];
        value->known = NULL;
        value->extents = NULL;
    }
}

static gboolean
throw_carried(const KilnNode *node, uint32_t k, const KilnType *before, const KilnType *after,
              GError **error)
{
    g_autofree char *from = kiln_type_to_string(before);
    g_autofree char *to = kiln_type_to_string(after);
    bool dtype = before->dtype != after->dtype;
    return kiln_throw(error, dtype ? KILN_ERROR_TYPE : KILN_ERROR_UNSUPPORTED,
                      "%s (%s): carried value %u: expected one %s in all iterations, found %s and "
                      "%s",
                      kiln_node_label(node), kiln_op_info(node->op)->name, k,
                      dtype ? "element type" : "rank", from, to);
}

/* *@type, of a sequence or optional that is carried, becomes that of what an iteration makes of it,
 * @after, too. False where their elements do not fit. */
static bool
widen_items(const KilnNode *node, const KilnFunction *body, const KilnType *first, KilnType *type,
            const KilnType *after, bool *out_changed)
{
    KilnArena *arena = node->function->module->arena;
    const Inner inner = { body, first };
    const KilnType before = *type, visible = visible_type(&inner, arena, after);
    if (!kiln_type_merge(arena, &before, &visible, type))
        return false;
    *out_changed |= !kiln_type_equal(&before, type);
    return true;
}

/* Carried values of one round: the types that they have before all iterations, before one, and
 * behind it. */
typedef struct {
    const KilnType *first, *before;
    const KilnNode *results; /* of the body: from @asks on */
    uint32_t asks;
} Round;

static const KilnType *
after_of(const Round *round, uint32_t k)
{
    return &round->results->operands[round->asks + k].value->type;
}

/* True where dim @d of carried value @k is not the same in all iterations. */
static bool
changes(const Round *round, uint32_t k, int d)
{
    const KilnType *before = &round->before[k];
    return !kiln_type_equal_dims(before, d, after_of(round, k), d) ||
           !kiln_type_equal_dims(before, d, &round->first[k], d);
}

/* True where two dims that change are equal in all iterations, if they are in one: they begin as
 * the same number, and one iteration makes the same of both. */
static bool
change_alike(const Round *round, uint32_t k, int d, uint32_t j, int e)
{
    return kiln_type_knows_dim(&round->first[k], d) &&
           kiln_type_equal_dims(&round->first[k], d, &round->first[j], e) &&
           kiln_type_equal_dims(&round->before[k], d, &round->before[j], e) &&
           kiln_type_equal_dims(after_of(round, k), d, after_of(round, j), e);
}

/* The dim of @types that dim @d of carried value @k, which changes, becomes: that of one that
 * changes alike and stands before it, or the name that it has unless another one keeps that. */
static const KilnDim *
find_name(const Round *round, const KilnType *types, uint32_t k, int d)
{
    const bool has_name = !kiln_type_equal_dims(&round->before[k], d, &round->first[k], d);
    bool kept = false;
    for (uint32_t j = 0; j <= k; j++) {
        for (int e = 0; e < (j < k ? types[j].rank : d); e++) {
            if (types[j].contents || !changes(round, j, e))
                continue;
            if (change_alike(round, k, d, j, e))
                return types[j].open[e];
            kept |= kiln_type_equal_dims(&types[j], e, &round->before[k], d);
        }
    }
    return has_name && !kept ? round->before[k].open[d] : NULL;
}

/* Types of what a loop carries. */
typedef struct {
    const KilnType *first; /* of arguments in the first iteration */
    KilnType *types;       /* of arguments in all iterations so far */
    int32_t *ranks;        /* per carried value: those that were found where one changes its rank */
} Carried;

/* Dims that an iteration changes get names in the types. *@out_changed tells if one did. */
static gboolean
widen(const KilnNode *node, KilnFunction *body, const Carried *known, bool *out_changed,
      GError **error)
{
    const KilnType *first = known->first;
    KilnType *types = known->types;
    uint32_t at, carried, asks = node->op == KILN_OP_loop ? 1 : 0;
    kiln_flow_carried(node, &at, &carried);
    g_autofree KilnType *before = g_memdup2(types + at, ((gsize)carried + 1) * sizeof *types);
    const Round round = { first + at, before, kiln_function_return(body), asks };
    *out_changed = false;
    for (uint32_t k = 0; k < carried; k++) {
        KilnType *type = &types[at + k];
        const KilnType *after = after_of(&round, k);
        if (type->contents && type->dtype == after->dtype) {
            if (!widen_items(node, body, first, type, after, out_changed))
                return throw_carried(node, k, type, after, error);
            continue;
        }
        if (type->rank != after->rank)
            known->ranks[k] = kiln_flow_ranks(round.results->operands[asks + k].value, false);
        if (type->dtype != after->dtype || type->rank != after->rank)
            return throw_carried(node, k, type, after, error);
        for (int d = 0; d < type->rank; d++) {
            if (!changes(&round, k, d))
                continue;
            KilnValue *argument = &kiln_function_argument(body, at + k)->value;
            const KilnDim *name = find_name(&round, types + at, k, d);
            kiln_type_set_dim(type, d, name ? name : make_name(body, argument, d, KILN_DIM_MOST));
            argument->type = *type; /* so that the next name is another one */
            *out_changed |= !kiln_type_equal_dims(type, d, &before[k], d);
        }
    }
    return TRUE;
}

/* One round on a copy of the body, for @visit may decide by types what its nodes become. */
static gboolean
try_types(KilnNode *node, const Carried *known, KilnRegionVisit visit, void *data,
          bool *out_changed, GError **error)
{
    KilnFunction *probe = kiln_body_copy(node->function->module, body_of(node), false, error);
    if (!probe)
        return FALSE;
    probe->owner = node;
    set_arguments(probe, known->types);
    gboolean good = visit(probe, data, error) && widen(node, probe, known, out_changed, error);
    kiln_function_clear(probe);
    return good;
}

/* How often a body runs; NULL: a run decides, and it is at most @most. */
typedef struct {
    const KilnDim *length;
    int64_t most;
} Trips;

/* Dims of what an iteration gives and that is stacked at @axis. */
static gboolean
stack_type(KilnNode *node, const Inner *inner, uint32_t r, const KilnType *element, int64_t axis,
           Trips trips, GError **error)
{
    KilnType type = *element, *out = &node->results[r].type;
    int rank = element->rank + 1, at = (int)(axis < 0 ? axis + rank : axis);
    type.rank = rank;
    for (int d = 0, from = 0; d < rank; d++) {
        if (d == at) {
            if (trips.length)
                kiln_type_set_dim(&type, d, trips.length);
            else if (!name_result(node, r, d, trips.most, &type, error))
                return FALSE;
            continue;
        }
        type.dims[d] = element->dims[from];
        type.open[d] = element->open[from];
        if (!is_visible(inner, element, from) &&
            !name_result(node, r, d, most_of(element, from), &type, error))
            return FALSE;
        from++;
    }
    *out = type;
    return TRUE;
}

static Trips
trips_of(const KilnNode *node)
{
    KilnDimTable *table = node->function->module->dims;
    uint32_t first, carried;
    kiln_flow_carried(node, &first, &carried);
    if (node->op == KILN_OP_scan) {
        const KilnType *type = &node->operands[carried].value->type;
        int64_t axis = kiln_ints_at(kiln_attrs(node, scan)->scan_input_axes, 0, 0);
        return (Trips){ kiln_type_dim(type, kiln_type_axis(type, axis), table), KILN_DIM_MOST };
    }
    const KilnValue *trips = kiln_node_operand(node, 0);
    const KilnDim *expression = NULL;
    if (trips && trips->extents && trips->extents->n == 1 &&
        (!trips->extents->under || trips->extents->under[0] == 1))
        expression = trips->extents->v[0];
    else if (trips && trips->known && trips->known->n == 1)
        expression = kiln_dim_number(table, MAX(trips->known->v[0], 0));
    int64_t least = -1, most = KILN_DIM_MOST;
    if (expression)
        kiln_dim_range(expression, &least, &most);
    const bool counts = least >= 0 && most <= KILN_DIM_MOST && kiln_loop_counts(node);
    return (Trips){ counts ? expression : NULL, CLAMP(most, 0, (int64_t)KILN_DIM_MOST) };
}

const KilnDim *
kiln_loop_trips(const KilnNode *node, int64_t *out_most)
{
    const Trips trips = trips_of(node);
    *out_most = trips.most;
    return trips.length;
}

/* The number of iterations that operand @trips of a loop allows is 1 or more. */
static bool
allows_one(const KilnValue *trips)
{
    int64_t least = 0, most;
    if (!trips)
        return true;
    if (trips->known && trips->known->n == 1 && !trips->extents)
        return trips->known->v[0] >= 1;
    if (trips->extents && trips->extents->n == 1 && trips->extents->v[0] &&
        (!trips->extents->under || trips->extents->under[0] == 1))
        kiln_dim_range(trips->extents->v[0], &least, &most);
    return least >= 1;
}

bool
kiln_loop_runs(const KilnNode *node)
{
    bool flag = true;
    int64_t least, most;
    if (node->op == KILN_OP_scan) {
        const KilnAttrs_scan *attrs = kiln_attrs(node, scan);
        const KilnType *type =
            &node->operands[node->n_operands - (uint32_t)attrs->num_scan_inputs].value->type;
        const int axis = kiln_type_axis(type, kiln_ints_at(attrs->scan_input_axes, 0, 0));
        if (axis < 0 || !kiln_type_knows_dim(type, axis))
            return false;
        kiln_type_dim_range(type, axis, &least, &most);
        return least >= 1;
    }
    const KilnValue *condition = kiln_node_operand(node, 1);
    if (condition && (!kiln_value_known_flag(condition, &flag) || !flag))
        return false;
    return allows_one(kiln_node_operand(node, 0));
}

bool
kiln_loop_fixes_type(const KilnNode *node, const KilnType *type)
{
    g_autofree KilnType *first = g_new0(KilnType, node->n_operands + 3);
    g_autoptr(GError) ignored = NULL;
    if (type->rank < 0 || !first_types(node, first, &ignored))
        return false;
    const Inner inner = { body_of(node), first };
    for (int d = 0; d < type->rank; d++) {
        if (!is_visible(&inner, type, d))
            return false;
    }
    return true;
}

static gboolean
check_stack(const KilnNode *node, uint32_t r, const KilnType *element, int64_t axis, GError **error)
{
    int rank = element->rank + 1;
    if (element->rank >= 0 && rank <= KILN_MAX_RANK && axis >= -rank && axis < rank)
        return TRUE;
    g_autofree char *text = kiln_type_to_string(element);
    return kiln_throw(error, KILN_ERROR_SHAPE,
                      "%s (%s): result %u: expected values of a rank below %d, stacked at an axis "
                      "of theirs, found %s and axis %" G_GINT64_FORMAT,
                      kiln_node_label(node), kiln_op_info(node->op)->name, r, KILN_MAX_RANK, text,
                      axis);
}

/* Types of the results, from those of the arguments and of what the body returns. */
static gboolean
set_results(KilnNode *node, const KilnType *first, const KilnType *types, GError **error)
{
    uint32_t at, carried, asks = node->op == KILN_OP_loop ? 1 : 0;
    const KilnFunction *body = body_of(node);
    const KilnNode *returned = kiln_function_return(body);
    const Inner inner = { body, first };
    const Trips trips = trips_of(node);
    kiln_flow_carried(node, &at, &carried);
    for (uint32_t r = 0; r < node->n_results; r++) {
        const KilnType *element = &returned->operands[asks + r].value->type;
        if (r >= carried) {
            int64_t axis =
                asks ? 0 : kiln_ints_at(kiln_attrs(node, scan)->scan_output_axes, r - carried, 0);
            if (!check_stack(node, r, element, axis, error) ||
                !stack_type(node, &inner, r, element, axis, trips, error))
                return FALSE;
            continue;
        }
        KilnType type = first[at + r];
        if (type.contents)
            type = types[at + r];
        for (int d = 0; d < type.rank; d++) {
            if (!kiln_type_equal_dims(&type, d, &types[at + r], d) &&
                !name_result(node, r, d, KILN_DIM_MOST, &type, error))
                return FALSE;
        }
        node->results[r].type = type;
    }
    return TRUE;
}

gboolean
kiln_loop_settle(KilnNode *node, KilnRegionVisit visit, void *data, int32_t *out_ranks,
                 GError **error)
{
    uint32_t n = node->n_operands;
    g_autofree KilnType *first = g_new0(KilnType, n + 3);
    g_autofree KilnType *types = g_new0(KilnType, n + 3);
    bool changed = true, ignored;
    forget_names(node);
    if (!first_types(node, first, error))
        return FALSE;
    memcpy(types, first, (n + 3) * sizeof *types);
    const Carried known = { first, types, out_ranks };
    while (changed) {
        g_autoptr(GError) why = NULL;
        if (try_types(node, &known, visit, data, &changed, &why))
            continue;
        if (!kiln_error_is_mismatch(why) || g_error_matches(why, KILN_ERROR, KILN_ERROR_TYPE)) {
            g_propagate_error(error, g_steal_pointer(&why));
            return FALSE;
        }
        changed = false; /* a body whose types do not fit is refused below, for it may not run */
    }
    set_arguments(body_of(node), types);
    if (!kiln_node_visit_regions(node, visit, data, &ignored, error))
        return FALSE;
    const char *refusal = kiln_region_refusal(body_of(node));
    if (refusal) {
        kiln_throw(error, KILN_ERROR_SHAPE, "%s", refusal);
        kiln_region_prefix_error(error, node, body_of(node));
        return FALSE;
    }
    if (!set_results(node, first, types, error))
        return FALSE;
    kiln_node_touch(node);
    return TRUE;
}
