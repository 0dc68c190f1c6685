/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/gates.h"

#include "graph/node.h"
#include "graph/module/by_name.h"
#include "passes/query/literal.h"
#include "passes/query/loop_view.h"
#include "passes/query/movement.h"

enum {
    DEEPEST = 16, /* sums and parts inside each other */
};

/* Columns [column, column + columns) of @value are looked at. */
typedef struct {
    KilnValue *value;
    int64_t column, columns;
} Span;

typedef struct {
    const KilnLift *lift;
    const KilnValue *state;
    KilnGate *gate;
} Search;

static bool find(const Search *search, Span span, int depth);

/* --- terms --- */

static int64_t
width(const KilnValue *value)
{
    const KilnType *type = &value->type;
    return type->rank >= 1 ? type->dims[type->rank - 1] : -1;
}

/* A bias is a vector, perhaps with dims of extent 1 in front, or one number for all. */
static bool
add_bias(const Search *search, Span span)
{
    const KilnType *type = &span.value->type;
    KilnGate *gate = search->gate;
    double number;
    const bool uniform = kiln_type_elements(type) == 1 && kiln_literal_uniform(span.value, &number);
    for (int d = 0; d + 1 < type->rank; d++) {
        if (type->dims[d] != 1)
            return false;
    }
    if (gate->n_bias == KILN_GATE_TERMS ||
        (!uniform && (kiln_loop_makes(search->lift->loop, span.value) ||
                      width(span.value) < span.column + span.columns)))
        return false;
    gate->bias[gate->n_bias++] = (KilnGateBlock){
        .value = span.value, .column = span.column, .rows = 1, .columns = span.columns
    };
    return true;
}

/* Rows [@row, …) of @block times @left. */
static bool
add_product(const Search *search, KilnValue *left, KilnGateBlock block)
{
    KilnGate *gate = search->gate;
    const bool recurs = left == search->state;
    KilnGateBlock *to = recurs ? &gate->r : &gate->w;
    if (to->value || (!recurs && !kiln_lift_can(search->lift, left)) ||
        !kiln_type_equal_dims(&left->type, 0, &search->state->type, 0))
        return false;
    *to = block;
    if (!recurs)
        gate->input = left;
    return true;
}

static bool
find_product(const Search *search, const KilnNode *node, bool transposed, Span span)
{
    KilnValue *left = node->operands[0].value, *right = node->operands[1].value;
    const KilnNode *join = kiln_node_is(left->def, "concat") ? left->def : NULL;
    KilnGateBlock block = { .value = right,
                            .transposed = transposed,
                            .column = span.column,
                            .rows = width(left),
                            .columns = span.columns };
    if (kiln_loop_makes(search->lift->loop, right) || right->type.rank != 2 ||
        left->type.rank != 2 || block.rows < 1 || !kiln_type_is_static(&right->type))
        return false;
    if (!join || join->function != node->function || kiln_lift_can(search->lift, left))
        return add_product(search, left, block);
    if (kiln_concat_axis(join) != 1)
        return false;
    for (uint32_t i = 0; i < join->n_operands; i++) {
        block.rows = width(join->operands[i].value);
        if (block.rows < 1 || !add_product(search, join->operands[i].value, block))
            return false;
        block.row += block.rows;
    }
    return true;
}

static bool
find_gemm(const Search *search, const KilnNode *node, Span span, int depth)
{
    KilnValue *bias = kiln_node_operand(node, 2);
    const bool *turned[] = { kiln_attr_field(node, "transA", KILN_ATTR_BOOL),
                             kiln_attr_field(node, "transB", KILN_ATTR_BOOL) };
    const float *alpha = kiln_attr_field(node, "alpha", KILN_ATTR_FLOAT);
    const float *beta = kiln_attr_field(node, "beta", KILN_ATTR_FLOAT);
    if (*turned[0] || *alpha != 1 || (bias && *beta != 1))
        return false;
    return find_product(search, node, *turned[1], span) &&
           (!bias || find(search, (Span){ bias, span.column, span.columns }, depth));
}

static bool
find_sum(const Search *search, const KilnNode *node, Span span, int depth)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (!find(search, (Span){ node->operands[i].value, span.column, span.columns }, depth))
            return false;
    }
    return true;
}

static bool
find(const Search *search, Span span, int depth)
{
    const KilnLoopView *loop = search->lift->loop;
    const KilnNode *node = span.value->def;
    KilnPart part;
    if (!kiln_loop_makes(loop, span.value) || kiln_value_constant(span.value))
        return add_bias(search, span);
    if (!node || depth == DEEPEST || span.value->type.rank != 2 ||
        width(span.value) < span.column + span.columns)
        return false;
    if (kiln_part_of(span.value, loop->body, &part))
        return part.axis == part.source->type.rank - 1 &&
               find(search, (Span){ part.source, span.column + part.begin, span.columns },
                    depth + 1);
    if (kiln_node_is(node, "add"))
        return find_sum(search, node, span, depth + 1);
    if (kiln_node_is(node, "gemm"))
        return find_gemm(search, node, span, depth + 1);
    return kiln_node_is(node, "matmul") && find_product(search, node, false, span);
}

bool
kiln_gate_find(const KilnLift *lift, KilnValue *value, const KilnValue *state, KilnGate *out)
{
    *out = (KilnGate){ 0 };
    const Search search = { lift, state, out };
    return value->type.rank == 2 && width(value) >= 1 &&
           find(&search, (Span){ value, 0, width(value) }, 0);
}

/* --- operands --- */

/* Indices [@begin, @begin + @n) of @axis of @value. */
static KilnValue *
build_part(KilnNode *before, KilnValue *value, int axis, int64_t begin, int64_t n, GError **error)
{
    const KilnPart part = { .source = value, .axis = axis, .begin = begin, .end = begin + n };
    return value->type.dims[axis] == n
               ? value
               : kiln_part_build(before->function, before, &part, NULL, error);
}

/* @block as [columns, rows]. */
static KilnValue *
build_matrix(KilnNode *before, const KilnGateBlock *block, GError **error)
{
    const int rows = block->transposed ? 1 : 0;
    KilnValue *part = build_part(before, block->value, rows, block->row, block->rows, error);
    if (part)
        part = build_part(before, part, 1 - rows, block->column, block->columns, error);
    return part && !block->transposed ? kiln_dim_move_build(before, part, 0, 1, error) : part;
}

/* The values in a row, with a dim of extent 1 in front. */
static KilnValue *
build_joined(KilnNode *before, KilnValue *const *parts, uint32_t n, GError **error)
{
    KilnValue *joined = kiln_join_build(before->function, before, parts, n, 0, error);
    return joined ? kiln_build_along(before, "unsqueeze", joined, 0, error) : NULL;
}

KilnValue *
kiln_gates_build_matrix(KilnNode *before, const KilnGate *gates, uint32_t n, KilnGateMatrix which,
                        GError **error)
{
    g_autofree KilnValue **parts = g_new0(KilnValue *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        parts[i] = build_matrix(before, which == KILN_GATE_W ? &gates[i].w : &gates[i].r, error);
        if (!parts[i])
            return NULL;
    }
    return build_joined(before, parts, n, error);
}

/* One term of a bias, as a vector of @type. */
static KilnValue *
build_term(KilnNode *before, const KilnGateBlock *block, const KilnType *type, GError **error)
{
    const KilnType *own = &block->value->type;
    double number;
    if (kiln_type_elements(own) == 1 && kiln_literal_uniform(block->value, &number))
        return kiln_literal_build_splat(before->function, before, "bias", type, number);
    KilnValue *part =
        build_part(before, block->value, own->rank - 1, block->column, block->columns, error);
    return part && own->rank != 1 ? kiln_reshape_build(before->function, before, part, type, error)
                                  : part;
}

static KilnValue *
build_bias(KilnNode *before, const KilnGate *gate, const KilnType *type, GError **error)
{
    KilnValue *sum = NULL;
    if (!gate->n_bias)
        return kiln_literal_build_splat(before->function, before, "bias", type, 0);
    for (uint32_t i = 0; i < gate->n_bias; i++) {
        KilnValue *term = build_term(before, &gate->bias[i], type, error);
        if (term && i > 0)
            term = kiln_build_pair(before, "add", sum, term, error);
        if (!term)
            return NULL;
        sum = term;
    }
    return sum;
}

KilnValue *
kiln_gates_build_bias(KilnNode *before, const KilnGate *gates, uint32_t n, int64_t hidden,
                      KilnDType dtype, GError **error)
{
    const KilnType type = kiln_type_make(dtype, 1, &hidden);
    g_autofree KilnValue **parts = g_new0(KilnValue *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        parts[i] = build_bias(before, &gates[i], &type, error);
        if (!parts[i])
            return NULL;
    }
    return build_joined(before, parts, n, error);
}
