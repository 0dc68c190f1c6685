/* SPDX-License-Identifier: Apache-2.0 */
/* Random nests of branches, loops and scans, up to three deep. */
#include "graph/function.h"
#include "graph/module.h"
#include "graph/module/flow.h"
#include "graph/node.h"
#include "graph/op/flow.h"
#include "tests/random/random_flow_priv.h"
#include "tests/random/random_graph.h"

#include <string.h>

enum {
    DEPTH_MAX = 3,
    TRIPS_MAX = 5,
    CARRIED_MAX = 4,
    RESULTS_MAX = 8,
};

/* --- regions --- */

/* What is around a region while it is made. */
typedef struct {
    KilnFunction *function;
    guint n_values;
} Around;

static Around
begin_region(Flow *flow, const char *name)
{
    const Around around = { flow->g.function, flow->g.values->len };
    flow->g.function = kiln_function_new_region(flow->g.module, name);
    flow->depth++;
    return around;
}

static KilnValue *
add_argument(Flow *flow, const char *name, const KilnType *type)
{
    g_autofree char *unique = g_strdup_printf("%s%d", name, flow->depth);
    const char *found = kiln_function_unique_name(flow->g.function, unique);
    KilnArgument *argument = kiln_function_add_argument(flow->g.function, found, type, NULL);
    g_ptr_array_add(flow->g.values, &argument->value);
    return &argument->value;
}

static KilnFunction *
end_region(Flow *flow, Around around, KilnValue *const *results, uint32_t n)
{
    KilnFunction *region = flow->g.function;
    kiln_function_set_results(region, results, NULL, n, NULL);
    g_ptr_array_set_size(flow->g.values, (gint)around.n_values);
    flow->g.function = around.function;
    flow->depth--;
    return region;
}

static void steps(Flow *flow, int n);

static KilnValue *
condition(Flow *flow)
{
    KilnValue *flag = rf_pick(flow, KILN_DTYPE_bool, SCALAR);
    if (flag && !rg_one_in(&flow->g, 4))
        return flag;
    return rf_add(flow, "less", NULL, rf_pick(flow, KILN_DTYPE_i64, SCALAR),
                  rf_number(flow, KILN_DTYPE_i64, rg_below(&flow->g, 4)));
}

/* @like, or another one of elements of its element type and rank; a sequence may also be changed.
 */
static KilnValue *
item_like(Flow *flow, KilnValue *like)
{
    KilnValue *other = rf_pick_item(flow, like->type.dtype);
    const KilnType *element = kiln_type_element(&like->type);
    if (!other || kiln_type_element(&other->type)->dtype != element->dtype ||
        kiln_type_element(&other->type)->rank != element->rank)
        other = like;
    return other->type.dtype == KILN_DTYPE_sequence && element->rank >= 0 && rg_one_in(&flow->g, 2)
               ? rf_changed_sequence(flow, other)
               : other;
}

/* Results of a branch have the element types and ranks of @likes, and often their dims. */
static KilnFunction *
make_branch(Flow *flow, const char *name, KilnValue *const *likes, uint32_t n)
{
    const Around around = begin_region(flow, name);
    KilnValue *results[RESULTS_MAX];
    steps(flow, rg_below(&flow->g, 4));
    for (uint32_t i = 0; i < n; i++)
        results[i] = likes[i]->type.contents
                         ? item_like(flow, likes[i])
                         : rf_pick_like(flow, &likes[i]->type, !rg_one_in(&flow->g, 3));
    return end_region(flow, around, results, n);
}

/* A tensor, or a sequence or optional. */
static KilnValue *
pick_any(Flow *flow)
{
    KilnValue *item =
        rg_one_in(&flow->g, 3)
            ? rf_pick_item(flow, rg_one_in(&flow->g, 3) ? KILN_DTYPE_optional : KILN_DTYPE_sequence)
            : NULL;
    return item ? item : rf_pick(flow, KILN_N_DTYPES, ANY);
}

static void
step_if(Flow *flow)
{
    KilnValue *likes[2] = { NULL }, *flag = condition(flow);
    KilnType types[2];
    const uint32_t n = 1 + (uint32_t)rg_below(&flow->g, 2);
    for (uint32_t i = 0; i < n; i++)
        likes[i] = pick_any(flow);
    KilnAttrs_if attrs = { .then_branch = make_branch(flow, "then_branch", likes, n),
                           .else_branch = make_branch(flow, "else_branch", likes, n) };
    for (uint32_t i = 0; i < n; i++)
        types[i] =
            kiln_type_join(flow->g.module->arena,
                           &kiln_function_return(attrs.then_branch)->operands[i].value->type,
                           &kiln_function_return(attrs.else_branch)->operands[i].value->type);
    rf_add_node(flow, &(KilnNodeSpec){ .op = KILN_OP_if,
                                       .operands = &flag,
                                       .n_operands = 1,
                                       .n_results = n,
                                       .attrs = &attrs,
                                       .types = types });
}

/* @x, of rank 1 or more, with a dim less or one more. */
static KilnValue *
of_other_rank(Flow *flow, KilnValue *x)
{
    KilnValue *first = kiln_build_ints(flow->g.function, NULL, (int64_t[]){ 0 }, 1);
    return rg_one_in(&flow->g, 2) ? rf_add(flow, "unsqueeze", NULL, x, first)
                                  : rf_maximum(flow, x, first);
}

/* A condition that no program is compiled for: the last input is no list. Its greatest element is
 * exact, so that rounding decides nothing. */
static KilnValue *
data_condition(Flow *flow)
{
    const KilnFunction *entry = kiln_module_entry(flow->g.module);
    KilnValue *x = &kiln_function_argument(entry, entry->arguments->len - 1)->value;
    return kiln_type_elements(&x->type) == 0
               ? NULL
               : rf_add(flow, "greater", NULL, rf_maximum(flow, x, NULL),
                        rf_number(flow, KILN_DTYPE_f32, rg_below(&flow->g, 5) / 4.0));
}

/* Branches whose results differ in rank. What reads them is computed for each rank, up to a number
 * or up to an output. */
static void
step_ranks(Flow *flow)
{
    static const char *const unaries[] = { "abs", "neg", "relu" };
    KilnValue *x = rf_pick(flow, KILN_DTYPE_f32, VECTOR), *flag, *results[2];
    flag = rg_one_in(&flow->g, 4) ? condition(flow) : data_condition(flow);
    if (!x || !flag)
        return;
    KilnFunction *branches[2];
    for (int b = 0; b < 2; b++) {
        const Around around = begin_region(flow, b ? "else_branch" : "then_branch");
        steps(flow, rg_below(&flow->g, 2));
        results[b] = b ? of_other_rank(flow, x) : rf_pick_like(flow, &x->type, false);
        branches[b] = end_region(flow, around, &results[b], 1);
    }
    const KilnAttrs_if attrs = { .then_branch = branches[0], .else_branch = branches[1] };
    const KilnType type = kiln_type_unranked(KILN_DTYPE_f32);
    KilnNode *node = rf_add_node(flow, &(KilnNodeSpec){ .op = KILN_OP_if,
                                                        .operands = &flag,
                                                        .n_operands = 1,
                                                        .n_results = 1,
                                                        .attrs = &attrs,
                                                        .types = &type });
    KilnValue *y = &node->results[0];
    for (int left = rg_below(&flow->g, 3); y && left > 0; left--)
        y = rf_add(flow, unaries[rg_below(&flow->g, G_N_ELEMENTS(unaries))], NULL, y, NULL);
    if (rg_one_in(&flow->g, 3))
        return;
    if (rg_one_in(&flow->g, 2))
        y = rf_add(flow, "mul", NULL, y, rf_number(flow, KILN_DTYPE_f32, 0.5));
    if (rg_one_in(&flow->g, 3))
        rf_add(flow, "shape", NULL, y, NULL);
    else
        rf_maximum(flow, y, NULL);
}

/* --- loops --- */

typedef enum {
    KEEPS_SHAPE, /* becomes another value of its type */
    GROWS,       /* gets or loses rows */
    PASSES,      /* stays as it is */
    SWAPS,       /* becomes what the next one was, of the same type, which becomes this one */
    SWAPPED,
    CHANGES, /* a sequence gets or loses elements */
    OTHER,   /* an optional becomes another one */
} Carry;

/* What a loop or a scan carries. */
typedef struct {
    KilnArena *arena;
    uint32_t n;
    Carry kinds[CARRIED_MAX];
    KilnValue *first[CARRIED_MAX];  /* before the first iteration */
    KilnValue *inside[CARRIED_MAX]; /* arguments of the body */
    KilnType types[CARRIED_MAX];
} Carried;

static void
carry(Carried *carried, Carry kind, KilnValue *first)
{
    if (!first || carried->n == CARRIED_MAX)
        return;
    KilnType *type = &carried->types[carried->n];
    *type = first->type;
    if (type->contents) { /* of elements of other dims, too */
        KilnType element = *kiln_type_element(type);
        element.rank = element.rank == KILN_RANK_NONE ? 1 : element.rank;
        for (int d = 0; d < element.rank; d++)
            kiln_type_set_dim(&element, d, NULL);
        *type = kiln_type_of_items(carried->arena, type->dtype, &element);
    }
    if (kind == GROWS) {
        type->dims[0] = KILN_DIM_UNKNOWN;
        type->open[0] = NULL;
    }
    carried->kinds[carried->n] = kind;
    carried->first[carried->n++] = first;
}

/* Two values that swap, of different ranks. */
static void
carry_ranks(Flow *flow, Carried *carried)
{
    KilnValue *x = rf_pick(flow, KILN_DTYPE_f32, VECTOR), *y = x ? of_other_rank(flow, x) : NULL;
    if (!y || carried->n + 2 > CARRIED_MAX)
        return;
    carry(carried, SWAPS, x);
    carry(carried, SWAPPED, y);
    for (uint32_t k = carried->n - 2; k < carried->n; k++)
        carried->types[k] = kiln_type_unranked(KILN_DTYPE_f32);
}

static void
choose_carried(Flow *flow, Carried *carried, int most, bool may_grow)
{
    if (may_grow && rg_one_in(&flow->g, 3))
        carry(carried, CHANGES, rf_pick_item(flow, KILN_DTYPE_sequence));
    if (may_grow && rg_one_in(&flow->g, 6))
        carry(carried, OTHER, rf_pick_item(flow, KILN_DTYPE_optional));
    if (may_grow && rg_one_in(&flow->g, 6))
        carry_ranks(flow, carried);
    for (int left = rg_below(&flow->g, most + 1); left > 0; left--) {
        const Carry kind = (Carry)rg_below(&flow->g, SWAPPED);
        KilnValue *first = rf_pick(flow, KILN_N_DTYPES, kind == PASSES && may_grow ? ANY : STATIC);
        if (kind == SWAPS && first && carried->n + 2 <= CARRIED_MAX) {
            KilnValue *other = rf_pick_like(flow, &first->type, true);
            carry(carried, SWAPS, first);
            carry(carried, SWAPPED, other);
        } else if (kind == GROWS && may_grow) {
            carry(carried, GROWS, rf_pick(flow, KILN_N_DTYPES, RANKED));
        } else {
            carry(carried, kind == PASSES ? PASSES : KEEPS_SHAPE, first);
        }
    }
}

/* Rows to append to @x: a constant, or what has its other dims. */
static KilnValue *
more_rows(Flow *flow, const KilnValue *x)
{
    KilnType type = x->type;
    type.dims[0] = 1 + rg_below(&flow->g, 2);
    if (!kiln_type_is_static(&type))
        return NULL;
    KilnValue *rows = rg_one_in(&flow->g, 2) ? rf_pick_like(flow, &type, true) : NULL;
    return rows ? rows
                : kiln_build_constant(flow->g.function, NULL, "k",
                                      kiln_tensor_new_splat(&type, rg_below(&flow->g, 3)));
}

static KilnValue *
grown(Flow *flow, KilnValue *x)
{
    KilnValue *rows = rg_one_in(&flow->g, 3) ? NULL : more_rows(flow, x);
    KilnValue *y = !rows                    ? rf_some_rows(flow, x)
                   : rg_one_in(&flow->g, 2) ? rf_add(flow, "concat", NULL, x, rows)
                                            : rf_add(flow, "concat", NULL, rows, x);
    return y ? y : x;
}

static KilnValue *
next_of(Flow *flow, const Carried *carried, uint32_t i)
{
    switch (carried->kinds[i]) {
    case GROWS:
        return grown(flow, carried->inside[i]);
    case PASSES:
        return carried->inside[i];
    case SWAPS:
        return carried->inside[i + 1];
    case SWAPPED:
        return carried->inside[i - 1];
    case CHANGES:
        return rf_changed_sequence(flow, carried->inside[i]);
    case OTHER:
        return item_like(flow, carried->inside[i]);
    default:
        return rf_pick_like(flow, &carried->types[i], true);
    }
}

/* NULL: no limit. */
static KilnValue *
trip_count(Flow *flow)
{
    if (rg_one_in(&flow->g, 3))
        return rf_number(flow, KILN_DTYPE_i64, rg_below(&flow->g, TRIPS_MAX + 1));
    KilnValue *any = rf_pick(flow, KILN_DTYPE_i64, SCALAR);
    return any ? rf_between(flow, any, rg_below(&flow->g, 2) - 1, TRIPS_MAX - flow->depth)
               : rf_number(flow, KILN_DTYPE_i64, 2);
}

/* What the body of a loop returns as its condition. Without a trip count, it ends the loop. */
static KilnValue *
next_condition(Flow *flow, KilnValue *i, KilnValue *go, bool must_end)
{
    const int way = must_end ? 0 : rg_below(&flow->g, 3);
    KilnValue *limit = must_end || rg_one_in(&flow->g, 2)
                           ? rf_number(flow, KILN_DTYPE_i64, rg_below(&flow->g, TRIPS_MAX))
                           : rf_pick(flow, KILN_DTYPE_i64, SCALAR);
    KilnValue *flag = way == 0   ? rf_add(flow, "less", NULL, i, limit)
                      : way == 1 ? rf_pick(flow, KILN_DTYPE_bool, SCALAR)
                                 : go;
    return flag ? flag : go;
}

/* Values of one shape in all iterations: static ones, and those from around the body. */
static uint32_t
choose_stacked(Flow *flow, Around around, KilnValue **out, uint32_t least)
{
    uint32_t n = 0;
    const uint32_t wanted = least + (uint32_t)rg_below(&flow->g, 2);
    while (n < wanted) {
        KilnValue *value = rf_pick(flow, KILN_N_DTYPES, STATIC);
        if (rg_one_in(&flow->g, 6)) {
            KilnValue *outer =
                g_ptr_array_index(flow->g.values, rg_below(&flow->g, (int)around.n_values));
            value = outer->type.rank >= 0 && outer->type.rank < 4 && !outer->type.contents ? outer
                                                                                           : value;
        }
        out[n++] = value;
    }
    return n;
}

static KilnType
stacked_type(const KilnType *type, int axis, int64_t length)
{
    KilnType out = *type;
    for (int d = type->rank; d > axis; d--) {
        out.dims[d] = type->dims[d - 1];
        out.open[d] = type->open[d - 1];
    }
    out.rank++;
    out.dims[axis] = length;
    out.open[axis] = NULL;
    return out;
}

static void
step_loop(Flow *flow)
{
    Carried carried = { .arena = flow->g.module->arena };
    KilnValue *results[RESULTS_MAX], *operands[CARRIED_MAX + 2];
    KilnType types[RESULTS_MAX];
    const bool counts = !rg_one_in(&flow->g, 5), conditional = !counts || rg_one_in(&flow->g, 2);
    choose_carried(flow, &carried, 3, true);
    operands[0] = counts ? trip_count(flow) : NULL;
    operands[1] = conditional ? condition(flow) : NULL;
    memcpy(operands + 2, carried.first, sizeof carried.first);
    const Around around = begin_region(flow, "body");
    const KilnType scalars[] = { kiln_type_scalar(KILN_DTYPE_i64),
                                 kiln_type_scalar(KILN_DTYPE_bool) };
    KilnValue *i = add_argument(flow, "i", &scalars[0]),
              *go = add_argument(flow, "go", &scalars[1]);
    for (uint32_t c = 0; c < carried.n; c++)
        carried.inside[c] = add_argument(flow, "c", &carried.types[c]);
    steps(flow, 1 + rg_below(&flow->g, 4));
    results[0] = next_condition(flow, i, go, !counts);
    for (uint32_t c = 0; c < carried.n; c++)
        results[1 + c] = next_of(flow, &carried, c);
    const uint32_t stacked =
        choose_stacked(flow, around, results + 1 + carried.n, carried.n ? 0 : 1);
    const uint32_t n = carried.n + stacked;
    for (uint32_t r = 0; r < n; r++)
        types[r] = r < carried.n ? carried.types[r]
                                 : stacked_type(&results[1 + r]->type, 0, KILN_DIM_UNKNOWN);
    const KilnAttrs_loop attrs = { .body = end_region(flow, around, results, n + 1) };
    rf_add_node(flow, &(KilnNodeSpec){ .op = KILN_OP_loop,
                                       .operands = operands,
                                       .n_operands = carried.n + 2,
                                       .n_results = n,
                                       .attrs = &attrs,
                                       .types = types });
}

/* --- scans --- */

/* The type of a slice across @axis. */
static KilnType
slice_type(const KilnType *type, int axis)
{
    KilnType out = *type;
    out.rank--;
    for (int d = axis; d < out.rank; d++) {
        out.dims[d] = type->dims[d + 1];
        out.open[d] = type->open[d + 1];
    }
    return out;
}

static int64_t
either_sign(Flow *flow, int axis, int rank)
{
    return rg_one_in(&flow->g, 2) ? axis : axis - rank;
}

/* Axes and directions of outputs, with the types that they give. */
static void
choose_axes(Flow *flow, KilnAttrs_scan *attrs, KilnValue *const *parts, uint32_t n, int64_t length,
            KilnType *types)
{
    int64_t axes[RESULTS_MAX], directions[RESULTS_MAX];
    for (uint32_t i = 0; i < n; i++) {
        const int rank = parts[i]->type.rank + 1, axis = rg_below(&flow->g, rank);
        axes[i] = either_sign(flow, axis, rank);
        directions[i] = rg_below(&flow->g, 2);
        types[i] = stacked_type(&parts[i]->type, axis, length);
    }
    attrs->scan_output_axes = kiln_ints_make(flow->g.module->arena, axes, n);
    attrs->scan_output_directions = kiln_ints_make(flow->g.module->arena, directions, n);
}

static void
step_scan(Flow *flow)
{
    Carried carried = { .arena = flow->g.module->arena };
    KilnAttrs_scan attrs = { .num_scan_inputs = 1 + rg_below(&flow->g, 2) };
    KilnValue *results[RESULTS_MAX], *operands[CARRIED_MAX + 2];
    KilnType types[RESULTS_MAX], inner[2];
    int64_t axes[2], directions[2];
    const uint32_t scanned = (uint32_t)attrs.num_scan_inputs;
    KilnValue *x = rf_pick(flow, KILN_N_DTYPES, rg_one_in(&flow->g, 3) ? RANKED : VECTOR);
    if (!x)
        return;
    choose_carried(flow, &carried, 2, false);
    memcpy(operands, carried.first, sizeof carried.first);
    const int axis = rg_below(&flow->g, x->type.rank);
    for (uint32_t i = 0; i < scanned; i++) {
        const bool same = i == 0 || !rf_is_of_kind(&x->type, STATIC);
        KilnValue *value = same ? x : rf_pick_like(flow, &x->type, true);
        operands[carried.n + i] = value;
        axes[i] = either_sign(flow, axis, x->type.rank);
        directions[i] = rg_below(&flow->g, 2);
        inner[i] = slice_type(&value->type, axis);
    }
    attrs.scan_input_axes = kiln_ints_make(flow->g.module->arena, axes, scanned);
    attrs.scan_input_directions = kiln_ints_make(flow->g.module->arena, directions, scanned);
    const Around around = begin_region(flow, "body");
    for (uint32_t c = 0; c < carried.n; c++)
        carried.inside[c] = add_argument(flow, "s", &carried.types[c]);
    for (uint32_t i = 0; i < scanned; i++)
        add_argument(flow, "row", &inner[i]);
    steps(flow, 1 + rg_below(&flow->g, 4));
    for (uint32_t c = 0; c < carried.n; c++) {
        results[c] = next_of(flow, &carried, c);
        types[c] = carried.types[c];
    }
    const uint32_t stacked = choose_stacked(flow, around, results + carried.n, 1);
    choose_axes(flow, &attrs, results + carried.n, stacked, x->type.dims[axis], types + carried.n);
    attrs.body = end_region(flow, around, results, carried.n + stacked);
    rf_add_node(flow, &(KilnNodeSpec){ .op = KILN_OP_scan,
                                       .operands = operands,
                                       .n_operands = carried.n + scanned,
                                       .n_results = carried.n + stacked,
                                       .attrs = &attrs,
                                       .types = types });
}

/* --- graphs --- */

static void
steps(Flow *flow, int n)
{
    static void (*const flows[])(Flow *) = { step_if,   step_if,   step_ranks, step_loop, step_loop,
                                             step_loop, step_loop, step_scan,  step_scan };
    while (n-- > 0) {
        if (flow->depth < DEPTH_MAX && rg_one_in(&flow->g, 3))
            flows[rg_below(&flow->g, G_N_ELEMENTS(flows))](flow);
        else if (rg_one_in(&flow->g, 4))
            rf_step_items(flow);
        else
            rf_step(flow);
    }
}

static void
input(Flow *flow, KilnDType dtype, int rank, const char *range)
{
    int64_t dims[2] = { 0 };
    for (int d = 0; d < rank; d++)
        dims[d] = rg_one_in(&flow->g, 30) ? 0 : 1 + rg_below(&flow->g, 4);
    const KilnType type = kiln_type_make(dtype, rank, dims);
    rg_argument(&flow->g, &type);
    const guint n = flow->g.function->arguments->len;
    kiln_function_argument(flow->g.function, n - 1)->range = range;
}

/* What a name stands for twice is returned once. */
static bool
is_result(KilnValue *const *results, uint32_t n, const KilnValue *value)
{
    for (uint32_t i = 0; i < n; i++) {
        if (results[i] == value)
            return true;
    }
    return false;
}

KilnModule *
random_flow_graph(uint64_t seed)
{
    Flow flow = { .g = { .state = seed * UINT64_C(0x9fb21c651e98df25) + 7 },
                  .flows = g_ptr_array_new() };
    KilnValue *results[RESULTS_MAX];
    uint32_t n = 0;
    rg_begin(&flow.g);
    input(&flow, KILN_DTYPE_i64, 0, "[0,6)");
    input(&flow, KILN_DTYPE_bool, 0, NULL);
    input(&flow, KILN_DTYPE_i64, 1, "[-2,3)");
    input(&flow, KILN_DTYPE_bool, 1 + rg_below(&flow.g, 2), NULL);
    input(&flow, KILN_DTYPE_f64, 1 + rg_below(&flow.g, 2), NULL);
    input(&flow, KILN_DTYPE_f32, 1, NULL);
    input(&flow, KILN_DTYPE_f32, 2, NULL);
    steps(&flow, 2 + rg_below(&flow.g, 4));
    while (flow.flows->len == 0)
        step_loop(&flow);
    steps(&flow, 1 + rg_below(&flow.g, 4));
    for (guint i = flow.flows->len; i-- > 0 && n < RESULTS_MAX - 1;)
        results[n++] = g_ptr_array_index(flow.flows, i);
    KilnValue *last = g_ptr_array_index(flow.g.values, flow.g.values->len - 1);
    if (!is_result(results, n, last) && !last->type.contents)
        results[n++] = last;
    kiln_function_set_results(flow.g.function, results, NULL, n, NULL);
    g_ptr_array_unref(flow.flows);
    g_ptr_array_unref(flow.g.values);
    return flow.g.module;
}
