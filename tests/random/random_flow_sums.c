/* SPDX-License-Identifier: Apache-2.0 */
/* Loops and scans that passes compute without iterations: running sums and products, rows that do
 * not depend on each other, counters, and cells of recurrent networks. Some have something that the
 * passes must see: another direction, a state that is read, a loop that ends early. */
#include "graph/function.h"
#include "graph/module.h"
#include "graph/op/flow.h"
#include "graph/op/gather.h"
#include "tests/random/random_flow_priv.h"
#include "tests/unit/op_named.h"

enum {
    BOUND = 50, /* of integers that others read */
    MOST = 6    /* arguments and results of a body */
};

/* The body that is made, and its operands. */
typedef struct {
    Flow *flow;
    KilnFunction *body;
    KilnValue *operands[MOST], *arguments[MOST], *results[MOST];
    uint32_t n_operands, n_arguments, n_results;
} Body;

static KilnValue *
argument(Body *body, const char *name, const KilnType *type, KilnValue *operand)
{
    g_autofree char *wanted = g_strdup_printf("%s%d_", name, body->flow->depth);
    const char *unique = kiln_function_unique_name(body->body, wanted);
    KilnArgument *made = kiln_function_add_argument(body->body, unique, type, NULL);
    if (operand)
        body->operands[body->n_operands++] = operand;
    return body->arguments[body->n_arguments++] = &made->value;
}

static KilnValue *
node(const Body *body, const char *op, const void *attrs, KilnValue *a, KilnValue *b)
{
    KilnValue *operands[] = { a, b };
    return kiln_build(body->body, NULL, op_named(op), attrs, operands, b ? 2 : 1, NULL);
}

static void
give(Body *body, KilnValue *result)
{
    body->results[body->n_results++] = result;
}

/* --- steps of a state --- */

static KilnValue *
literal(Flow *flow, const KilnType *type, bool product)
{
    const double number = rg_one_in(&flow->g, 2) ? (product ? 1 : 0) : rg_below(&flow->g, 5) - 2;
    return kiln_build_constant(flow->g.function, NULL, "first",
                               kiln_tensor_new_splat(type, number));
}

/* What an iteration makes of its row. Factors of floats have a magnitude of at most 1. */
static KilnValue *
term(const Body *body, KilnValue *row, bool product)
{
    if (row->type.dtype == KILN_DTYPE_i64)
        return rg_one_in(&body->flow->g, 2) ? node(body, "neg", NULL, row, NULL) : row;
    if (product)
        return node(body, "tanh", NULL, row, NULL);
    return rg_one_in(&body->flow->g, 2) ? node(body, "sigmoid", NULL, row, NULL) : row;
}

static KilnValue *
step_of(const Body *body, KilnValue *state, KilnValue *row, bool product)
{
    KilnValue *x = term(body, row, product);
    const bool turned = rg_one_in(&body->flow->g, 2);
    return node(body, product ? "mul" : "add", NULL, turned ? x : state, turned ? state : x);
}

/* Stacked results: the state before or after, what is computed from it, or from the row alone. */
static void
stack(Body *body, KilnValue *state, KilnValue *next, KilnValue *row)
{
    RandomGraph *g = &body->flow->g;
    for (int left = 1 + rg_below(g, 2); left > 0; left--) {
        KilnValue *of = rg_one_in(g, 3) ? row : rg_one_in(g, 2) ? next : state;
        const bool computes = of->type.dtype != KILN_DTYPE_i64 && rg_one_in(g, 2);
        give(body, computes ? node(body, "tanh", NULL, of, NULL) : of);
    }
}

/* --- nodes --- */

/* Integers are bounded before others read them. */
static void
offer(Flow *flow, const KilnNodeSpec *spec)
{
    const KilnNode *made = rf_add_node(flow, spec);
    for (uint32_t r = 0; made && r < made->n_results; r++) {
        if (made->results[r].type.dtype != KILN_DTYPE_i64)
            continue;
        g_ptr_array_remove(flow->g.values, &made->results[r]);
        rf_between(flow, &made->results[r], -BOUND, BOUND);
    }
}

static KilnType
row_type(const KilnType *type, int axis)
{
    KilnType out = *type;
    out.rank--;
    for (int d = axis; d < out.rank; d++)
        out.dims[d] = type->dims[d + 1];
    return out;
}

static KilnType
stacked_type(const KilnType *type, int axis, int64_t n)
{
    KilnType out = *type;
    for (int d = out.rank++; d > axis; d--)
        out.dims[d] = type->dims[d - 1];
    out.dims[axis] = n;
    return out;
}

static void
make_scan(Body *body, KilnValue *x, int axis, uint32_t carried)
{
    Flow *flow = body->flow;
    KilnArena *arena = flow->g.module->arena;
    const int64_t direction = rg_below(&flow->g, 2), at = axis;
    int64_t axes[MOST], directions[MOST];
    KilnType types[MOST];
    kiln_function_set_results(body->body, body->results, NULL, body->n_results, NULL);
    for (uint32_t r = 0; r < body->n_results; r++) {
        types[r] = body->results[r]->type;
        if (r < carried)
            continue;
        const uint32_t s = r - carried;
        axes[s] = rg_below(&flow->g, types[r].rank + 1);
        directions[s] = rg_one_in(&flow->g, 5) ? 1 - direction : direction;
        types[r] = stacked_type(&types[r], (int)axes[s], x->type.dims[axis]);
    }
    const uint32_t stacked = body->n_results - carried;
    const KilnAttrs_scan attrs = { .body = body->body,
                                   .num_scan_inputs = 1,
                                   .scan_input_axes = kiln_ints_make(arena, &at, 1),
                                   .scan_input_directions = kiln_ints_make(arena, &direction, 1),
                                   .scan_output_axes = kiln_ints_make(arena, axes, stacked),
                                   .scan_output_directions =
                                       kiln_ints_make(arena, directions, stacked) };
    offer(flow, &(KilnNodeSpec){ .op = KILN_OP_scan,
                                 .operands = body->operands,
                                 .n_operands = body->n_operands,
                                 .n_results = body->n_results,
                                 .attrs = &attrs,
                                 .types = types });
}

/* A scan whose state adds or multiplies; sometimes a second state adds the first one. */
static void
running_scan(Flow *flow, KilnValue *x)
{
    const int axis = rg_below(&flow->g, x->type.rank);
    const KilnType type = row_type(&x->type, axis);
    const bool product = rg_one_in(&flow->g, 2), second = rg_one_in(&flow->g, 3);
    Body body = { .flow = flow, .body = kiln_function_new_region(flow->g.module, "sums") };
    KilnValue *like = rg_one_in(&flow->g, 2) ? rf_pick_like(flow, &type, true) : NULL;
    KilnValue *state = argument(&body, "state", &type, like ? like : literal(flow, &type, product));
    KilnValue *sum = second ? argument(&body, "sum", &type, literal(flow, &type, false)) : NULL;
    KilnValue *row = argument(&body, "row", &type, x);
    KilnValue *next = step_of(&body, state, row, product);
    give(&body, next);
    if (second)
        give(&body, node(&body, "add", NULL, sum, rg_one_in(&flow->g, 2) ? state : next));
    stack(&body, state, next, row);
    make_scan(&body, x, axis, second ? 2 : 1);
}

/* A loop that counts for itself, reads a row by this or its own number, and adds it. */
static void
counting_loop(Flow *flow, KilnValue *x)
{
    const KilnType scalar = kiln_type_scalar(KILN_DTYPE_i64);
    const KilnType flag = kiln_type_scalar(KILN_DTYPE_bool);
    const int axis = rg_below(&flow->g, x->type.rank);
    const KilnType type = row_type(&x->type, axis);
    const int64_t n = x->type.dims[axis];
    const bool ends = rg_one_in(&flow->g, 4), own = rg_one_in(&flow->g, 2);
    const bool longer = rg_one_in(&flow->g, 4);
    Body body = { .flow = flow, .body = kiln_function_new_region(flow->g.module, "counts") };
    body.operands[body.n_operands++] =
        rf_number(flow, KILN_DTYPE_i64, (double)(longer ? n + 1 : n));
    body.operands[body.n_operands++] = ends ? rf_number(flow, KILN_DTYPE_bool, 1) : NULL;
    KilnValue *extent = rf_number(flow, KILN_DTYPE_i64, (double)n);
    KilnValue *step = rf_number(flow, KILN_DTYPE_i64, 1 + rg_below(&flow->g, 3));
    KilnValue *i = argument(&body, "i", &scalar, NULL), *go = argument(&body, "go", &flag, NULL);
    KilnValue *count = argument(&body, "count", &scalar,
                                rf_number(flow, KILN_DTYPE_i64, rg_below(&flow->g, 4) - 1));
    KilnValue *state = argument(&body, "state", &type, literal(flow, &type, false));
    KilnValue *at = own ? count : i;
    if (own || longer)
        at = node(&body, "mod", NULL, at, extent);
    const KilnAttrs_gather gather = { .axis = axis };
    KilnValue *row = node(&body, "gather", &gather, x, at);
    give(&body, ends ? node(&body, "less", NULL, count, extent) : go);
    give(&body, rg_one_in(&flow->g, 4) ? node(&body, "sub", NULL, count, step)
                                       : node(&body, "add", NULL, count, step));
    KilnValue *next = step_of(&body, state, row, false);
    give(&body, next);
    stack(&body, state, next, row);
    kiln_function_set_results(body.body, body.results, NULL, body.n_results, NULL);
    KilnType types[MOST];
    for (uint32_t r = 1; r < body.n_results; r++) {
        types[r - 1] = body.results[r]->type;
        if (r > 2)
            types[r - 1] = stacked_type(&types[r - 1], 0, KILN_DIM_UNKNOWN);
    }
    const KilnAttrs_loop attrs = { .body = body.body };
    offer(flow, &(KilnNodeSpec){ .op = KILN_OP_loop,
                                 .operands = body.operands,
                                 .n_operands = body.n_operands,
                                 .n_results = body.n_results - 1,
                                 .attrs = &attrs,
                                 .types = types });
}

/* @rows × @columns numbers whose sums over a column are at most 1. */
static KilnValue *
weights(Flow *flow, int64_t rows, int64_t columns)
{
    const KilnType type = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ rows, columns });
    const double most = 1.0 / (double)MAX(rows, 1);
    return kiln_build_constant(flow->g.function, NULL, "w",
                               kiln_tensor_new_uniform(&type, rg_next(&flow->g), -most, most));
}

/* h' = f(x · W + h · R + b). */
static void
cell_scan(Flow *flow, KilnValue *x)
{
    static const char *const ops[] = { "tanh", "sigmoid", "relu" };
    const int axis = rg_below(&flow->g, 3);
    const int64_t hidden = 1 + rg_below(&flow->g, 4);
    const KilnType row = row_type(&x->type, axis);
    const KilnType type = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ row.dims[0], hidden });
    const KilnType bias = kiln_type_make(KILN_DTYPE_f32, 1, &hidden);
    Body body = { .flow = flow, .body = kiln_function_new_region(flow->g.module, "cell") };
    KilnValue *w = weights(flow, row.dims[1], hidden), *r = weights(flow, hidden, hidden);
    KilnValue *b = literal(flow, &bias, false);
    KilnValue *h = argument(&body, "h", &type, literal(flow, &type, false));
    KilnValue *a = argument(&body, "row", &row, x);
    KilnValue *sum = node(&body, "add", NULL, node(&body, "matmul", NULL, a, w),
                          node(&body, "matmul", NULL, h, r));
    if (rg_one_in(&flow->g, 2))
        sum = node(&body, "add", NULL, sum, b);
    KilnValue *next = node(&body, ops[rg_below(&flow->g, G_N_ELEMENTS(ops))], NULL, sum, NULL);
    give(&body, next);
    if (rg_one_in(&flow->g, 4))
        stack(&body, h, next, a);
    else
        give(&body, next);
    make_scan(&body, x, axis, 1);
}

void
rf_step_sums(Flow *flow)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_f32, KILN_DTYPE_f64, KILN_DTYPE_i64 };
    KilnValue *x = rf_pick(flow, dtypes[rg_below(&flow->g, G_N_ELEMENTS(dtypes))], VECTOR);
    if (!x)
        return;
    if (x->type.dtype == KILN_DTYPE_f32 && x->type.rank == 3)
        cell_scan(flow, x);
    else if (rg_one_in(&flow->g, 2))
        running_scan(flow, x);
    else
        counting_loop(flow, x);
}
