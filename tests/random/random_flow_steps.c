/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that compute in random nests.
 *
 * Rounding must not grow from one iteration to the next, nor decide anything. So sums are halved,
 * rows of weights have a sum of at most 1, and factors have a magnitude of at most 1. Integers and
 * bools alone decide conditions, trip counts, indices, and the number of elements. */
#include "graph/node.h"
#include "graph/op/cast.h"
#include "graph/op/reduce.h"
#include "tests/random/random_flow_priv.h"
#include "tests/unit/op_named.h"

enum {
    RANK_MAX = 4,       /* of a static value that is read */
    ELEMENTS_MAX = 200, /* of the same */
    INTEGERS_MAX = 50,  /* magnitude */
};

/* --- values --- */

bool
rf_is_of_kind(const KilnType *type, Kind kind)
{
    const bool fixed = type->rank <= RANK_MAX && kiln_type_is_static(type) &&
                       kiln_type_elements(type) <= ELEMENTS_MAX;
    if (kiln_dtype_is_item(type->dtype))
        return false;
    switch (kind) {
    case STATIC:
        return fixed;
    case VECTOR:
        return fixed && type->rank > 0 && kiln_type_elements(type) > 0;
    case SCALAR:
        return fixed && type->rank == 0;
    case RANKED:
        return type->rank > 0;
    default:
        return true;
    }
}

/* One of @found, a late one rather than an early one, and often one that nothing reads yet; NULL
 * where there is none. Frees @found. */
static KilnValue *
choose(Flow *flow, GPtrArray *found)
{
    KilnValue *value = NULL;
    if (found->len) {
        const int a = rg_below(&flow->g, (int)found->len), b = rg_below(&flow->g, (int)found->len);
        value = g_ptr_array_index(found, MAX(a, b));
    }
    for (guint i = found->len; rg_one_in(&flow->g, 2) && i-- > 0;) {
        KilnValue *late = g_ptr_array_index(found, i);
        if (!late->n_uses) {
            value = late;
            break;
        }
    }
    g_ptr_array_unref(found);
    return value;
}

/* A value of @kind and @dtype; KILN_N_DTYPES: of any. */
KilnValue *
rf_pick(Flow *flow, KilnDType dtype, Kind kind)
{
    GPtrArray *found = g_ptr_array_new();
    for (guint i = 0; i < flow->g.values->len; i++) {
        KilnValue *value = g_ptr_array_index(flow->g.values, i);
        if ((dtype == KILN_N_DTYPES || value->type.dtype == dtype) &&
            rf_is_of_kind(&value->type, kind))
            g_ptr_array_add(found, value);
    }
    return choose(flow, found);
}

static KilnValue *
pick_float(Flow *flow, Kind kind)
{
    return rf_pick(flow, rg_one_in(&flow->g, 4) ? KILN_DTYPE_f64 : KILN_DTYPE_f32, kind);
}

/* Certainly. */
static bool
is_same_shape(const KilnType *a, const KilnType *b)
{
    return a == b || (kiln_type_is_static(a) && kiln_type_equal(a, b));
}

/* A value of the element type and rank of @type, and of its dims if @whole. */
KilnValue *
rf_pick_like(Flow *flow, const KilnType *type, bool whole)
{
    GPtrArray *found = g_ptr_array_new();
    for (guint i = 0; i < flow->g.values->len; i++) {
        KilnValue *value = g_ptr_array_index(flow->g.values, i);
        if (value->type.dtype == type->dtype && value->type.rank == type->rank &&
            (!whole || is_same_shape(&value->type, type)))
            g_ptr_array_add(found, value);
    }
    return choose(flow, found);
}

KilnNode *
rf_add_node(Flow *flow, const KilnNodeSpec *spec)
{
    g_autoptr(GError) error = NULL;
    KilnNode *node = kiln_node_new(flow->g.function, spec, &error);
    if (!node) {
        flow->g.refused++;
        return NULL;
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        g_ptr_array_add(flow->g.values, &node->results[r]);
        if (flow->depth == 0 && kiln_op_has(node->op, KILN_TRAIT_REGION) &&
            !kiln_dtype_is_item(node->results[r].type.dtype))
            g_ptr_array_add(flow->flows, &node->results[r]);
    }
    return node;
}

KilnValue *
rf_add(Flow *flow, const char *op, const void *attrs, KilnValue *a, KilnValue *b)
{
    KilnValue *operands[] = { a, b };
    const KilnNodeSpec spec = {
        .op = op_named(op), .attrs = attrs, .operands = operands, .n_operands = b ? 2 : 1
    };
    KilnNode *node = a ? rf_add_node(flow, &spec) : NULL;
    return node ? &node->results[0] : NULL;
}

KilnValue *
rf_maximum(Flow *flow, KilnValue *x, KilnValue *axes)
{
    const KilnAttrs_reduce_max attrs = { .keepdims = false };
    return rf_add(flow, "reduce_max", &attrs, x, axes);
}

KilnValue *
rf_number(Flow *flow, KilnDType dtype, double value)
{
    const KilnType type = kiln_type_scalar(dtype);
    return kiln_build_constant(flow->g.function, NULL, "k", kiln_tensor_new_splat(&type, value));
}

static KilnValue *
one_int(Flow *flow, int64_t value)
{
    return rg_ints(&flow->g, &value, 1);
}

KilnValue *
rf_between(Flow *flow, KilnValue *x, int64_t low, int64_t high)
{
    x = rf_add(flow, "max", NULL, x, rf_number(flow, KILN_DTYPE_i64, (double)low));
    return x ? rf_add(flow, "min", NULL, x, rf_number(flow, KILN_DTYPE_i64, (double)high)) : NULL;
}

/* --- steps that compute --- */

static void
step_unary(Flow *flow)
{
    static const char *const ops[] = { "tanh", "sigmoid", "relu", "neg", "abs" };
    rf_add(flow, ops[rg_below(&flow->g, G_N_ELEMENTS(ops))], NULL, pick_float(flow, ANY), NULL);
}

static void
step_binary(Flow *flow)
{
    static const char *const ops[] = { "add", "sub", "max", "min" };
    const char *op = ops[rg_below(&flow->g, G_N_ELEMENTS(ops))];
    KilnValue *x = pick_float(flow, ANY);
    KilnValue *y = x && rg_one_in(&flow->g, 2) ? rf_pick_like(flow, &x->type, true)
                   : x                         ? rf_pick(flow, x->type.dtype, SCALAR)
                                               : NULL;
    if (!y && x)
        y = rf_number(flow, x->type.dtype, rg_below(&flow->g, 9) / 4.0 - 1);
    KilnValue *sum = rf_add(flow, op, NULL, x, y);
    if (sum && (op == ops[0] || op == ops[1]))
        rf_add(flow, "mul", NULL, sum, rf_number(flow, sum->type.dtype, 0.5));
}

static void
step_product(Flow *flow)
{
    KilnValue *x = pick_float(flow, ANY);
    KilnValue *y = x ? rf_pick_like(flow, &x->type, true) : NULL;
    x = rf_add(flow, "tanh", NULL, x, NULL);
    y = rf_add(flow, "sigmoid", NULL, y, NULL);
    if (x && y)
        rf_add(flow, "mul", NULL, x, y);
}

static void
step_matmul(Flow *flow)
{
    KilnValue *x = pick_float(flow, RANKED);
    if (!x || x->type.rank < 2 || x->type.dims[x->type.rank - 1] < 1)
        return;
    const int64_t k = x->type.dims[x->type.rank - 1];
    const int64_t dims[] = { k, 1 + rg_below(&flow->g, 4) };
    const KilnType type = kiln_type_make(x->type.dtype, 2, dims);
    KilnTensor *weights =
        kiln_tensor_new_uniform(&type, rg_next(&flow->g), -1.0 / (double)k, 1.0 / (double)k);
    rf_add(flow, "matmul", NULL, x, kiln_build_constant(flow->g.function, NULL, "w", weights));
}

static void
step_integer(Flow *flow)
{
    static const char *const ops[] = { "add", "sub", "max", "min" };
    KilnValue *x = rf_pick(flow, KILN_DTYPE_i64, ANY);
    KilnValue *y = x && rg_one_in(&flow->g, 2) ? rf_pick_like(flow, &x->type, true)
                                               : rf_pick(flow, KILN_DTYPE_i64, SCALAR);
    KilnValue *z = y ? rf_add(flow, ops[rg_below(&flow->g, G_N_ELEMENTS(ops))], NULL, x, y) : NULL;
    if (z)
        rf_between(flow, z, -INTEGERS_MAX, INTEGERS_MAX);
}

static void
step_flag(Flow *flow)
{
    static const char *const compares[] = { "less", "equal" };
    static const char *const ops[] = { "and", "or" };
    KilnValue *x = rf_pick(flow, KILN_DTYPE_bool, rg_one_in(&flow->g, 2) ? SCALAR : ANY);
    if (rg_one_in(&flow->g, 2)) {
        x = rf_pick(flow, KILN_DTYPE_i64, rg_one_in(&flow->g, 2) ? SCALAR : ANY);
        rf_add(flow, compares[rg_below(&flow->g, 2)], NULL, x,
               rf_number(flow, KILN_DTYPE_i64, rg_below(&flow->g, 4)));
    } else if (rg_one_in(&flow->g, 2)) {
        rf_add(flow, "not", NULL, x, NULL);
    } else {
        rf_add(flow, ops[rg_below(&flow->g, 2)], NULL, x, rf_pick(flow, KILN_DTYPE_bool, SCALAR));
    }
}

static void
step_where(Flow *flow)
{
    KilnValue *x = pick_float(flow, ANY);
    KilnValue *operands[] = { rf_pick(flow, KILN_DTYPE_bool, SCALAR), x,
                              x ? rf_pick_like(flow, &x->type, true) : NULL };
    if (operands[0] && operands[2])
        rf_add_node(flow, &(KilnNodeSpec){
                              .op = op_named("where"), .operands = operands, .n_operands = 3 });
}

/* Floats have means: a sum would add up roundings. */
static void
step_reduce(Flow *flow)
{
    const bool whole = rg_one_in(&flow->g, 3);
    KilnValue *x = whole ? rf_pick(flow, KILN_DTYPE_i64, RANKED) : pick_float(flow, VECTOR);
    if (!x)
        return;
    const int64_t axis =
        rg_below(&flow->g, x->type.rank) - (rg_one_in(&flow->g, 2) ? x->type.rank : 0);
    const bool keepdims = rg_one_in(&flow->g, 2);
    const KilnAttrs_reduce_sum sum = { .keepdims = keepdims };
    const KilnAttrs_reduce_mean mean = { .keepdims = keepdims };
    const KilnAttrs_reduce_max max = { .keepdims = keepdims };
    KilnValue *axes = rg_one_in(&flow->g, 4) ? NULL : one_int(flow, axis);
    if (!whole) {
        const bool means = rg_one_in(&flow->g, 2);
        rf_add(flow, means ? "reduce_mean" : "reduce_max",
               means ? (const void *)&mean : (const void *)&max, x, axes);
        return;
    }
    x = rf_add(flow, "reduce_sum", &sum, x, axes);
    if (x)
        rf_between(flow, x, -INTEGERS_MAX, INTEGERS_MAX);
}

/* By the number of the iteration, or by any other integer. */
static void
step_gather(Flow *flow)
{
    KilnValue *x = rf_pick(flow, KILN_N_DTYPES, VECTOR);
    KilnValue *index = rf_pick(flow, KILN_DTYPE_i64, rg_one_in(&flow->g, 3) ? VECTOR : SCALAR);
    if (!x || !index)
        return;
    KilnValue *extent = rf_number(flow, KILN_DTYPE_i64, (double)x->type.dims[0]);
    index = rf_add(flow, "mod", NULL, index, extent);
    if (index)
        rf_add(flow, "gather", NULL, x, index);
}

static void
step_cast(Flow *flow)
{
    static const KilnDType from[] = { KILN_DTYPE_i64, KILN_DTYPE_bool, KILN_DTYPE_f32,
                                      KILN_DTYPE_f64, KILN_DTYPE_bool };
    static const KilnDType to[] = { KILN_DTYPE_f32, KILN_DTYPE_f32, KILN_DTYPE_f64, KILN_DTYPE_f32,
                                    KILN_DTYPE_i64 };
    const int i = rg_below(&flow->g, G_N_ELEMENTS(from));
    const KilnAttrs_cast attrs = kiln_cast_to(to[i]);
    rf_add(flow, "cast", &attrs, rf_pick(flow, from[i], ANY), NULL);
}

/* How many there are is in the data. */
static void
step_non_zero(Flow *flow)
{
    KilnValue *x = rf_pick(flow, rg_one_in(&flow->g, 2) ? KILN_DTYPE_bool : KILN_DTYPE_i64, VECTOR);
    x = rf_add(flow, "non_zero", NULL, x, NULL);
    if (x && rg_one_in(&flow->g, 2)) {
        const KilnAttrs_reduce_sum attrs = { .keepdims = false };
        x = rf_add(flow, "reduce_sum", &attrs, x, one_int(flow, 1));
        if (x)
            rf_between(flow, x, -INTEGERS_MAX, INTEGERS_MAX);
    }
}

KilnValue *
rf_some_rows(Flow *flow, KilnValue *x)
{
    KilnValue *operands[] = { x, one_int(flow, rg_below(&flow->g, 3)),
                              one_int(flow, rg_one_in(&flow->g, 2) ? 4 : INT64_MAX) };
    KilnNode *node = rf_add_node(
        flow, &(KilnNodeSpec){ .op = op_named("slice"), .operands = operands, .n_operands = 3 });
    return node ? &node->results[0] : NULL;
}

static void
step_rows(Flow *flow)
{
    KilnValue *x = rf_pick(flow, KILN_N_DTYPES, RANKED);
    KilnValue *y = x && rg_one_in(&flow->g, 2) ? rf_pick_like(flow, &x->type, true) : NULL;
    if (!x)
        return;
    if (!y)
        rf_some_rows(flow, x);
    else
        rf_add(flow, "concat", NULL, x, y);
}

void
rf_step(Flow *flow)
{
    static void (*const all[])(Flow *) = {
        step_unary,   step_unary,    step_binary,  step_binary,  step_binary,
        step_product, step_matmul,   step_flag,    step_where,   step_reduce,
        step_gather,  step_gather,   step_integer, step_cast,    step_rows,
        step_rows,    step_non_zero, rf_step_sums, rf_step_sums,
    };
    all[rg_below(&flow->g, G_N_ELEMENTS(all))](flow);
}
