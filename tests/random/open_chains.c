/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of nodes that compute with dims, as exporters write them. */
#include "tests/random/given.h"
#include "tests/random/opened.h"

#include "graph/function.h"
#include "graph/graph.h"
#include "graph/node.h"
#include "graph/op/additive.h"
#include "graph/op/cast.h"
#include "graph/op/concat.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/logic.h"
#include "graph/op/matmul.h"
#include "graph/op/resize.h"
#include "graph/op/pool.h"
#include "graph/op/math.h"
#include "graph/op/multiplicative.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "graph/op/slice.h"
#include "graph/op/softmax.h"
#include "graph/op/structure.h"
#include "graph/op/transpose.h"

/* --- repairs --- */

bool
opened_compute_shape(KilnNode *node, uint64_t seed)
{
    static const int64_t targets[][2] = { { 0, -1 }, { -1, 1 }, { 1, -1 }, { -1, 0 } };
    KilnValue *x = kiln_node_operand(node, 0);
    if (node->op != KILN_OP_reshape || !x)
        return false;
    uint32_t way = given_draw(node->results[0].name, seed, x->type.rank >= 2 ? 5 : 3);
    const int64_t *target = targets[MIN(way, 2)], flat = -1;
    if (way >= 3)
        target = targets[0];
    kiln_node_set_operand(node, 1,
                          way == 0 || !x->type.rank
                              ? kiln_build_ints(node->function, node, &flat, 1)
                              : kiln_build_ints(node->function, node, target, 2));
    return kiln_node_reinfer(node, NULL);
}

/* --- chains --- */

typedef struct {
    KilnFunction *function;
    uint64_t state;
} Chains;

enum {
    MOST_CHAINS = 4
};

static int
below(Chains *chains, int n)
{
    chains->state = chains->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((chains->state >> 33) % (uint64_t)n);
}

/* --- nodes: NULL where an operand is NULL or does not fit --- */

static KilnValue *
build(Chains *chains, KilnOp op, const void *attrs, KilnValue *a, KilnValue *b)
{
    KilnValue *operands[] = { a, b };
    return a ? kiln_build(chains->function, NULL, op, attrs, operands, b ? 2 : 1, NULL) : NULL;
}

static KilnValue *
build_two(Chains *chains, KilnOp op, const void *attrs, KilnValue *a, KilnValue *b)
{
    return b ? build(chains, op, attrs, a, b) : NULL;
}

static KilnValue *
number(Chains *chains, KilnDType dtype, double value)
{
    KilnType type = kiln_type_scalar(dtype);
    return kiln_build_constant(chains->function, NULL, "c", kiln_tensor_new_splat(&type, value));
}

static KilnValue *
ints(Chains *chains, int64_t value)
{
    return kiln_build_ints(chains->function, NULL, &value, 1);
}

/* Dims from @start to @end of @x. */
static KilnValue *
dims(Chains *chains, KilnValue *x, int64_t start, int64_t end)
{
    KilnAttrs_shape attrs = { .start = start, .end = end };
    return build(chains, KILN_OP_shape, &attrs, x, NULL);
}

static KilnValue *
joined(Chains *chains, KilnValue *a, KilnValue *b, int64_t axis)
{
    KilnAttrs_concat attrs = { .axis = axis };
    return build_two(chains, KILN_OP_concat, &attrs, a, b);
}

static KilnValue *
sliced(Chains *chains, KilnValue *x, KilnValue *start, KilnValue *end, int64_t axis)
{
    KilnValue *operands[] = { x, start, end, ints(chains, axis) };
    return x && start && end
               ? kiln_build(chains->function, NULL, KILN_OP_slice, NULL, operands, 4, NULL)
               : NULL;
}

/* 0, 1, … along @axis of @x, as i64. */
static KilnValue *
positions(Chains *chains, KilnValue *x, int axis)
{
    KilnValue *n = build(chains, KILN_OP_squeeze, NULL, dims(chains, x, axis, axis + 1), NULL);
    KilnValue *operands[] = { number(chains, KILN_DTYPE_i64, 0), n,
                              number(chains, KILN_DTYPE_i64, 1) };
    KilnValue *range =
        n ? kiln_build(chains->function, NULL, KILN_OP_range, NULL, operands, 3, NULL) : NULL;
    int64_t axes[KILN_MAX_RANK];
    uint32_t behind = (uint32_t)(x->type.rank - axis - 1);
    for (uint32_t i = 0; i < behind; i++)
        axes[i] = 1 + i;
    return behind ? build_two(chains, KILN_OP_unsqueeze, NULL, range,
                              kiln_build_ints(chains->function, NULL, axes, behind))
                  : range;
}

static KilnValue *
swapped(Chains *chains, KilnValue *x, int a, int b)
{
    int64_t perm[KILN_MAX_RANK];
    for (int d = 0; x && d < x->type.rank; d++)
        perm[d] = d == a ? b : d == b ? a : d;
    KilnAttrs_transpose attrs = { .perm = { .n = x ? (uint32_t)x->type.rank : 0, .v = perm } };
    return build(chains, KILN_OP_transpose, &attrs, x, NULL);
}

/* --- what exporters write --- */

static KilnValue *
rows(Chains *chains, KilnValue *x)
{
    KilnValue *target = joined(chains, dims(chains, x, 0, 1), ints(chains, -1), 0);
    return build_two(chains, KILN_OP_reshape, NULL, x, target);
}

static KilnValue *
merged(Chains *chains, KilnValue *x)
{
    if (x->type.rank < 2)
        return NULL;
    KilnValue *target =
        build_two(chains, KILN_OP_mul, NULL, dims(chains, x, 0, 1), dims(chains, x, 1, 2));
    if (x->type.rank > 2)
        target = joined(chains, target, dims(chains, x, 2, G_MAXINT64), 0);
    KilnValue *y = build_two(chains, KILN_OP_reshape, NULL, x, target);
    if (below(chains, 2))
        return y;
    return build_two(chains, KILN_OP_reshape, NULL, y, dims(chains, x, 0, G_MAXINT64));
}

static KilnValue *
expanded(Chains *chains, KilnValue *x)
{
    KilnValue *one = number(chains, x->type.dtype, 1);
    one = build_two(chains, KILN_OP_expand, NULL, one, dims(chains, x, 0, G_MAXINT64));
    return build_two(chains, KILN_OP_add, NULL, x, one);
}

static KilnValue *
first_half(Chains *chains, KilnValue *x)
{
    int axis = below(chains, x->type.rank);
    KilnValue *n =
        build_two(chains, KILN_OP_add, NULL, dims(chains, x, axis, axis + 1), ints(chains, 1));
    n = build_two(chains, KILN_OP_div, NULL, n, ints(chains, 2));
    return sliced(chains, x, ints(chains, 0), n, axis);
}

static KilnValue *
with_positions(Chains *chains, KilnValue *x)
{
    KilnAttrs_cast to = kiln_cast_to(x->type.dtype);
    KilnValue *p = positions(chains, x, below(chains, x->type.rank));
    return build_two(chains, KILN_OP_add, NULL, x, build(chains, KILN_OP_cast, &to, p, NULL));
}

static KilnValue *
attention(Chains *chains, KilnValue *x)
{
    int rank = x->type.rank;
    KilnAttrs_softmax soft = { .axis = -1 };
    if (rank < 2 || !kiln_dtype_is_float(x->type.dtype))
        return NULL;
    KilnValue *y =
        build_two(chains, KILN_OP_matmul, NULL, x, swapped(chains, x, rank - 2, rank - 1));
    y = build(chains, KILN_OP_softmax, &soft, y, NULL);
    return build_two(chains, KILN_OP_matmul, NULL, y, x);
}

/* A cache that grows, and what was there before. */
static KilnValue *
grown(Chains *chains, KilnValue *x)
{
    int axis = below(chains, x->type.rank);
    KilnValue *n = dims(chains, x, axis, axis + 1);
    KilnValue *y = joined(chains, x, x, axis);
    if (below(chains, 2))
        return y;
    return sliced(chains, y, n, build_two(chains, KILN_OP_mul, NULL, n, ints(chains, 2)), axis);
}

static KilnValue *
with_zeros(Chains *chains, KilnValue *x)
{
    KilnAttrs_cast to = kiln_cast_to(x->type.dtype);
    KilnValue *zeros =
        build(chains, KILN_OP_constant_of_shape, NULL, dims(chains, x, 0, G_MAXINT64), NULL);
    zeros = build(chains, KILN_OP_cast, &to, zeros, NULL);
    return joined(chains, x, zeros, below(chains, x->type.rank));
}

static KilnValue *
heads(Chains *chains, KilnValue *x)
{
    static const int64_t target[] = { 0, 0, 1, -1 };
    if (x->type.rank != 3)
        return NULL;
    KilnValue *y =
        build(chains, KILN_OP_reshape, NULL, x, kiln_build_ints(chains->function, NULL, target, 4));
    y = swapped(chains, y, 1, 2);
    if (below(chains, 2))
        return y;
    y = swapped(chains, y, 1, 2);
    return build_two(chains, KILN_OP_reshape, NULL, y, dims(chains, x, 0, 3));
}

static KilnValue *
masked(Chains *chains, KilnValue *x)
{
    int axis = below(chains, x->type.rank);
    KilnValue *p = positions(chains, x, axis);
    KilnValue *c = build_two(chains, KILN_OP_less, NULL, p, number(chains, KILN_DTYPE_i64, 2));
    KilnValue *operands[] = { c, x, number(chains, x->type.dtype, 0) };
    return c ? kiln_build(chains->function, NULL, KILN_OP_where, NULL, operands, 3, NULL) : NULL;
}

/* The number of a dim is data, too. */
static KilnValue *
mean(Chains *chains, KilnValue *x)
{
    int axis = below(chains, x->type.rank);
    KilnAttrs_reduce_sum attrs = { .keepdims = true };
    KilnAttrs_cast to = kiln_cast_to(x->type.dtype);
    KilnValue *sum = build(chains, KILN_OP_reduce_sum, &attrs, x, ints(chains, axis));
    KilnValue *n = build(chains, KILN_OP_cast, &to, dims(chains, x, axis, axis + 1), NULL);
    return kiln_dtype_is_float(x->type.dtype) ? build_two(chains, KILN_OP_div, NULL, sum, n) : NULL;
}

static KilnValue *
last_row(Chains *chains, KilnValue *x)
{
    KilnAttrs_gather attrs = { .axis = below(chains, x->type.rank) };
    return build(chains, KILN_OP_gather, &attrs, x, number(chains, KILN_DTYPE_i64, -1));
}

/* A dim by way of floats, as a float: all of it, or a part that is rounded. */
static KilnValue *
float_length(Chains *chains, KilnValue *x, int axis)
{
    static const struct {
        KilnOp op, rounds;
        double by;
    } ways[] = { { KILN_OP_mul, KILN_OP_floor, 0.5 },
                 { KILN_OP_div, KILN_OP_ceil, 3 },
                 { KILN_OP_mul, KILN_OP_ceil, 1.5 },
                 { KILN_OP_div, KILN_OP_floor, 0.25 },
                 { KILN_OP_add, KILN_OP_identity, 0.5 } };
    KilnDType dtype = below(chains, 4) ? KILN_DTYPE_f32 : KILN_DTYPE_f64;
    KilnAttrs_cast to = kiln_cast_to(dtype);
    KilnValue *n = build(chains, KILN_OP_squeeze, NULL, dims(chains, x, axis, axis + 1), NULL);
    n = build(chains, KILN_OP_cast, &to, n, NULL);
    int way = below(chains, G_N_ELEMENTS(ways) + 1);
    if (way == G_N_ELEMENTS(ways))
        return n;
    n = build_two(chains, ways[way].op, NULL, n, number(chains, dtype, ways[way].by));
    return build(chains, ways[way].rounds, NULL, n, NULL);
}

/* The grid of a detector: 0.5, 1.5, … */
static KilnValue *
grid(Chains *chains, KilnValue *x)
{
    KilnValue *n = float_length(chains, x, below(chains, x->type.rank));
    KilnDType dtype = n ? n->type.dtype : KILN_DTYPE_f32;
    KilnValue *operands[] = { number(chains, dtype, below(chains, 2)), n,
                              number(chains, dtype, below(chains, 3) ? 1 : 0.5) };
    KilnValue *range =
        n ? kiln_build(chains->function, NULL, KILN_OP_range, NULL, operands, 3, NULL) : NULL;
    return build_two(chains, KILN_OP_add, NULL, range, number(chains, dtype, 0.5));
}

/* Tables of a rotary embedding, of dims alone. */
static KilnValue *
rotary(Chains *chains, KilnValue *x)
{
    KilnAttrs_cast to = kiln_cast_to(x->type.dtype);
    if (!kiln_dtype_is_float(x->type.dtype))
        return NULL;
    KilnValue *p = positions(chains, x, below(chains, x->type.rank));
    p = build(chains, KILN_OP_cast, &to, p, NULL);
    p = build_two(chains, KILN_OP_mul, NULL, p, number(chains, x->type.dtype, 0.25));
    return build_two(chains, KILN_OP_mul, NULL, x, build(chains, KILN_OP_cos, NULL, p, NULL));
}

/* A pool with as much padding as its steps leave. */
static KilnValue *
pooled(Chains *chains, KilnValue *x)
{
    static int64_t kernel[] = { 3, 3, 3 }, steps[] = { 2, 2, 2 };
    KilnAttrs_max_pool *attrs =
        kiln_op_attrs_new(KILN_OP_max_pool, chains->function->module->arena);
    if (x->type.rank < 3 || x->type.rank > 5 || !kiln_dtype_is_float(x->type.dtype))
        return NULL;
    uint32_t n = (uint32_t)x->type.rank - 2;
    attrs->auto_pad = below(chains, 2) ? "SAME_UPPER" : "SAME_LOWER";
    attrs->kernel_shape = (KilnInts){ .n = n, .v = kernel };
    attrs->strides = (KilnInts){ .n = n, .v = steps };
    return build(chains, KILN_OP_max_pool, attrs, x, NULL);
}

/* The way back of a network of pictures: to the sizes that another tensor has. */
static KilnValue *
resized(Chains *chains, KilnValue *x)
{
    static const char *const modes[] = { "nearest", "linear", "cubic" };
    static const char *const places[] = { "half_pixel", "asymmetric", "align_corners",
                                          "pytorch_half_pixel" };
    KilnAttrs_resize *attrs = kiln_op_attrs_new(KILN_OP_resize, chains->function->module->arena);
    KilnValue *small = pooled(chains, x), *sizes = dims(chains, x, 0, G_MAXINT64);
    KilnValue *operands[] = { small, NULL, NULL, sizes };
    attrs->mode = modes[below(chains, G_N_ELEMENTS(modes))];
    attrs->coordinate_transformation_mode = places[below(chains, G_N_ELEMENTS(places))];
    return small && sizes
               ? kiln_build(chains->function, NULL, KILN_OP_resize, attrs, operands, 4, NULL)
               : NULL;
}

/* --- the whole --- */

static bool
is_operand(const KilnValue *value)
{
    bool number = kiln_dtype_is_float(value->type.dtype) || value->type.dtype == KILN_DTYPE_i64 ||
                  value->type.dtype == KILN_DTYPE_i32;
    return number && value->type.rank > 0 && !value->type.quant && !value->type.layout &&
           !value->known && kiln_type_elements(&value->type) > 0 && !kiln_value_constant(value);
}

static void
add_operands(const KilnFunction *function, GPtrArray *out)
{
    for (guint i = 0; i < function->arguments->len; i++) {
        KilnValue *value = &kiln_function_argument(function, i)->value;
        if (is_operand(value))
            g_ptr_array_add(out, value);
    }
    kiln_foreach_node (node, function) {
        for (uint32_t r = 0; r < node->n_results; r++) {
            if (is_operand(&node->results[r]))
                g_ptr_array_add(out, &node->results[r]);
        }
    }
}

void
opened_add_chains(KilnFunction *function, uint64_t seed, GPtrArray *out)
{
    typedef KilnValue *(*Chain)(Chains *, KilnValue *);
    static const Chain all[] = { rows,  merged,     expanded, first_half, with_positions, attention,
                                 grown, with_zeros, heads,    masked,     mean,           last_row,
                                 grid,  rotary,     pooled,   resized };
    Chains chains = { function, seed * UINT64_C(0x9e3779b97f4a7c15) + 1 };
    g_autoptr(GPtrArray) operands = g_ptr_array_new();
    add_operands(function, operands);
    for (int n = below(&chains, MOST_CHAINS + 1); n > 0 && operands->len; n--) {
        KilnValue *x = g_ptr_array_index(operands, (guint)below(&chains, (int)operands->len));
        KilnValue *y = all[below(&chains, G_N_ELEMENTS(all))](&chains, x);
        if (!y)
            continue;
        g_ptr_array_add(out, y);
        if (is_operand(y))
            g_ptr_array_add(operands, y); /* chains of chains */
    }
}
