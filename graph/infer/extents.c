/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of small values as expressions of the dims of inputs: what known.c does for numbers. An
 * element that has no expression is unknown, and the others stay.
 *
 * Values have the type i64 or i32 (bool for conditions). An expression stands for a value only
 * where its bounds fit into the type: then the arithmetic of kernels does not wrap. Values of f32
 * and f64 may be quotients (ratio.c). */
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/cast.h"
#include "graph/op/concat.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/multiplicative.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "graph/op/slice.h"
#include "graph/op/structure.h"
#include "graph/op/transpose.h"

#include <string.h>

/* --- elements of operands --- */

const KilnDim *
kiln_infer_element(const KilnInfer *in, uint32_t i, int64_t k)
{
    KilnRatio ratio = kiln_infer_ratio(in, i, k);
    return ratio.under == 1 ? ratio.over : NULL;
}

/* Elements of operand @i, if it is small; else -1. */
static int64_t
operand_size(const KilnInfer *in, uint32_t i)
{
    const KilnType *type = kiln_infer_type(in, i);
    int64_t n = type && !type->layout && !type->quant ? kiln_type_elements(type) : -1;
    return n <= KILN_KNOWN_MAX ? n : -1;
}

/* --- results --- */

typedef struct {
    KilnInfer *in;
    uint32_t r;
    uint32_t n;
    const KilnDim *v[KILN_EXTENTS_MAX];
    int64_t under[KILN_EXTENTS_MAX]; /* of floats */
} Elements;

static bool
is_followed_float(KilnDType dtype)
{
    return dtype == KILN_DTYPE_f32 || dtype == KILN_DTYPE_f64;
}

static bool
start(Elements *out, KilnInfer *in, uint32_t r)
{
    const KilnType *type = &in->out[r];
    bool followed = type->dtype == KILN_DTYPE_i64 || type->dtype == KILN_DTYPE_i32 ||
                    type->dtype == KILN_DTYPE_bool || is_followed_float(type->dtype);
    int64_t n = followed && !type->layout ? kiln_type_elements(type) : -1;
    if (n < 0 || n > KILN_EXTENTS_MAX || in->known[r])
        return false;
    *out = (Elements){ .in = in, .r = r, .n = (uint32_t)n };
    for (uint32_t k = 0; k < out->n; k++)
        out->under[k] = 1;
    return true;
}

static void
set(Elements *out, uint32_t k, KilnRatio ratio)
{
    out->v[k] = ratio.over;
    out->under[k] = ratio.over ? ratio.under : 1;
}

static bool
fits(const Elements *out, uint32_t k, KilnDType dtype)
{
    const KilnRatio ratio = { out->v[k], out->under[k] };
    int64_t lo, hi;
    if (is_followed_float(dtype)) /* the nearest float of another quotient is good enough */
        return (ratio.under & (ratio.under - 1)) || kiln_ratio_is_exact(ratio, dtype);
    kiln_dim_range(ratio.over, &lo, &hi);
    if (dtype == KILN_DTYPE_i32)
        return lo >= G_MININT32 && hi <= G_MAXINT32;
    return dtype == KILN_DTYPE_bool ? lo >= 0 && hi <= 1 : lo > INT64_MIN && hi < INT64_MAX;
}

/* Stores what is known: numbers alone as numbers. */
static void
finish(Elements *out)
{
    KilnInfer *in = out->in;
    const KilnDType dtype = in->out[out->r].dtype;
    uint32_t n_known = 0, n_numbers = 0;
    bool quotients = false;
    int64_t number;
    for (uint32_t k = 0; k < out->n; k++) {
        if (out->v[k] && !fits(out, k, dtype))
            set(out, k, (KilnRatio){ NULL, 1 });
        n_known += out->v[k] != NULL;
        n_numbers += kiln_dim_is_number(out->v[k], &number);
        quotients |= out->under[k] != 1;
    }
    if (!n_known && (out->n || is_followed_float(dtype)))
        return; /* a list without elements is known */
    if (n_numbers == out->n && !is_followed_float(dtype)) {
        int64_t *to = kiln_known_result(in, out->r);
        for (uint32_t k = 0; to && k < out->n; k++)
            kiln_dim_is_number(out->v[k], &to[k]);
        return;
    }
    KilnExtents *extents =
        kiln_arena_alloc(in->arena, sizeof *extents + out->n * sizeof extents->v[0]);
    extents->n = out->n;
    extents->under =
        quotients ? kiln_arena_copy(in->arena, out->under, out->n * sizeof out->under[0]) : NULL;
    memcpy(extents->v, out->v, out->n * sizeof out->v[0]);
    in->extents[out->r] = extents;
}

/* --- shapes --- */

static void
shape_elements(Elements *out)
{
    const KilnType *x = kiln_infer_type(out->in, 0);
    int first =
        x->rank < 0 ? 0 : kiln_infer_shape_bound(kiln_attrs(out->in->node, shape)->start, x->rank);
    for (uint32_t k = 0; k < out->n && first + (int)k < x->rank; k++)
        out->v[k] = kiln_type_dim(x, first + (int)k, out->in->dims);
}

static void
size_element(Elements *out)
{
    const KilnType *x = kiln_infer_type(out->in, 0);
    const KilnDim *product = x->rank < 0 ? NULL : kiln_dim_number(out->in->dims, 1);
    for (int d = 0; d < x->rank; d++)
        product = kiln_dim_mul(out->in->dims, product, kiln_type_dim(x, d, out->in->dims));
    out->v[0] = product;
}

/* --- movement --- */

/* The elements are those of operand 0 in the same order. */
static void
copied_elements(Elements *out)
{
    for (uint32_t k = 0; k < out->n && operand_size(out->in, 0) == out->n; k++)
        set(out, k, kiln_infer_ratio(out->in, 0, k));
}

static void
cast_elements(Elements *out)
{
    const KilnInfer *in = out->in;
    const KilnDType from = kiln_infer_type(in, 0)->dtype, to = in->out[out->r].dtype;
    for (uint32_t k = 0; k < out->n && operand_size(in, 0) == out->n; k++)
        set(out, k, kiln_ratio_cast(in->dims, kiln_infer_ratio(in, 0, k), from, to));
}

static void
gathered_elements(Elements *out)
{
    const KilnInfer *in = out->in;
    int64_t size = operand_size(in, 0), index;
    if (kiln_infer_type(in, 0)->rank != 1 || operand_size(in, 1) != out->n)
        return;
    for (uint32_t k = 0; k < out->n; k++) {
        if (!kiln_dim_is_number(kiln_infer_element(in, 1, k), &index))
            continue;
        index += index < 0 ? size : 0;
        if (index >= 0 && index < size)
            set(out, k, kiln_infer_ratio(in, 0, index));
    }
}

/* Element @base of operand 0, then those that @strides lead to along the dims of the result. */
static void
strided_elements(Elements *out, int64_t base, const int64_t strides[KILN_MAX_RANK])
{
    const KilnType *type = &out->in->out[0];
    for (uint32_t k = 0; k < out->n; k++) {
        int64_t at = base, rest = k;
        for (int d = type->rank - 1; d >= 0; d--) {
            at += rest % type->dims[d] * strides[d];
            rest /= type->dims[d];
        }
        set(out, k, kiln_infer_ratio(out->in, 0, at));
    }
}

static void
sliced_elements(Elements *out)
{
    const KilnInfer *in = out->in;
    KilnSliceBox box;
    bool known;
    g_autoptr(GError) unfit = NULL;
    if (operand_size(in, 0) < 0 || !kiln_slice_resolve(in->node, &box, &known, &unfit) || !known)
        return;
    int64_t strides[KILN_MAX_RANK], base = 0;
    kiln_known_strides(kiln_infer_type(in, 0), strides);
    for (int d = 0; d < in->out[0].rank; d++) {
        if (box.open_start[d])
            return;
        base += box.start[d] * strides[d];
        strides[d] = box.extent[d] > 1 ? strides[d] * box.step[d] : 0;
    }
    strided_elements(out, base, strides);
}

static void
transposed_elements(Elements *out)
{
    const KilnInfer *in = out->in;
    int perm[KILN_MAX_RANK];
    int64_t own[KILN_MAX_RANK], strides[KILN_MAX_RANK];
    if (operand_size(in, 0) != out->n || !kiln_transpose_perm(in->node, perm, NULL))
        return;
    kiln_known_strides(kiln_infer_type(in, 0), own);
    for (int d = 0; d < in->out[0].rank; d++)
        strides[d] = own[perm[d]];
    strided_elements(out, 0, strides);
}

static void
concatenated_elements(Elements *out)
{
    const KilnInfer *in = out->in;
    uint32_t at = 0;
    if (in->out[0].rank != 1)
        return;
    for (uint32_t i = 0; i < in->node->n_operands; i++) {
        int64_t n = operand_size(in, i);
        if (n < 0 || n > out->n - at)
            return;
        for (int64_t k = 0; k < n; k++)
            set(out, at++, kiln_infer_ratio(in, i, k));
    }
}

static void
split_elements(KilnInfer *in)
{
    Elements out;
    int64_t at = 0;
    for (uint32_t r = 0; r < in->node->n_results && kiln_infer_type(in, 0)->rank == 1; r++) {
        if (!start(&out, in, r))
            return;
        for (uint32_t k = 0; k < out.n; k++)
            set(&out, k, kiln_infer_ratio(in, 0, at + k));
        at += out.n;
        finish(&out);
    }
}

/* One element that is repeated. */
static void
expanded_elements(Elements *out)
{
    for (uint32_t k = 0; k < out->n && operand_size(out->in, 0) == 1; k++)
        set(out, k, kiln_infer_ratio(out->in, 0, 0));
}

/* Each is a name, as far as nothing else is known. */
static void
defined_elements(Elements *out)
{
    const KilnStrings *names = &kiln_attrs(out->in->node, define)->names;
    for (uint32_t k = 0; k < out->n && k < names->n; k++)
        out->v[k] = kiln_dim_name(out->in->dims, names->v[k]);
}

/* --- arithmetic: each function gives NULL where it does not know --- */

typedef struct {
    const KilnNode *node;
    KilnDimTable *dims;
    const KilnDim *v[3];
} Operands;

static const KilnDim *
truth(const Operands *o, KilnAnswer answer)
{
    return answer == KILN_ANSWER_UNKNOWN ? NULL
                                         : kiln_dim_number(o->dims, answer == KILN_ANSWER_YES);
}

static KilnAnswer
opposite(KilnAnswer answer)
{
    return answer == KILN_ANSWER_YES  ? KILN_ANSWER_NO
           : answer == KILN_ANSWER_NO ? KILN_ANSWER_YES
                                      : KILN_ANSWER_UNKNOWN;
}

static const KilnDim *
chosen(const Operands *o)
{
    int64_t condition;
    if (kiln_dim_is_number(o->v[0], &condition))
        return condition ? o->v[1] : o->v[2];
    return o->v[1] == o->v[2] ? o->v[1] : NULL;
}

static const KilnDim *
logical(const Operands *o)
{
    int64_t a, b = 0;
    if (!kiln_dim_is_number(o->v[0], &a) ||
        (o->node->op != KILN_OP_not && !kiln_dim_is_number(o->v[1], &b)))
        return NULL;
    switch (o->node->op) {
    case KILN_OP_not:
        return kiln_dim_number(o->dims, !a);
    case KILN_OP_and:
        return kiln_dim_number(o->dims, a && b);
    default:
        return kiln_dim_number(o->dims, a || b);
    }
}

static const KilnDim *
clipped(const Operands *o)
{
    const KilnDim *value = o->v[0];
    if (kiln_node_operand(o->node, 1))
        value = kiln_dim_max(o->dims, value, o->v[1]);
    if (kiln_node_operand(o->node, 2))
        value = kiln_dim_min(o->dims, value, o->v[2]);
    return value;
}

static const KilnDim *
calculate(const Operands *o)
{
    const KilnDim *a = o->v[0], *b = o->v[1];
    KilnDimTable *dims = o->dims;
    switch (o->node->op) {
    case KILN_OP_add:
        return kiln_dim_add(dims, a, b);
    case KILN_OP_sub:
        return kiln_dim_sub(dims, a, b);
    case KILN_OP_mul:
        return kiln_dim_mul(dims, a, b);
    case KILN_OP_div: /* rounds towards 0, as down where nothing is negative */
        return kiln_infer_is_natural(a) ? kiln_dim_floor(dims, a, b) : NULL;
    case KILN_OP_mod:
        return kiln_infer_is_natural(a) ? kiln_dim_remainder(dims, a, b) : NULL;
    case KILN_OP_neg:
        return kiln_dim_scale(dims, a, -1);
    case KILN_OP_abs:
        return kiln_infer_is_natural(a) ? a : NULL;
    case KILN_OP_min:
        return kiln_dim_min(dims, a, b);
    case KILN_OP_max:
        return kiln_dim_max(dims, a, b);
    case KILN_OP_relu:
        return kiln_dim_max(dims, a, kiln_dim_number(dims, 0));
    case KILN_OP_clip:
        return clipped(o);
    case KILN_OP_equal:
        return truth(o, kiln_dim_equal(dims, a, b));
    case KILN_OP_less_or_equal:
        return truth(o, kiln_dim_at_most(dims, a, b));
    case KILN_OP_greater_or_equal:
        return truth(o, kiln_dim_at_most(dims, b, a));
    case KILN_OP_less:
        return truth(o, opposite(kiln_dim_at_most(dims, b, a)));
    case KILN_OP_greater:
        return truth(o, opposite(kiln_dim_at_most(dims, a, b)));
    case KILN_OP_where:
        return chosen(o);
    case KILN_OP_not:
    case KILN_OP_and:
    case KILN_OP_or:
        return logical(o);
    default:
        return NULL;
    }
}

/* A scalar or vector, which is broadcast by its length alone. */
static bool
is_short(const KilnInfer *in, uint32_t i, uint32_t n)
{
    const KilnType *type = kiln_infer_type(in, i);
    int64_t size = operand_size(in, i);
    return !type || (type->rank <= 1 && (size == 1 || size == n));
}

static void
calculated_elements(Elements *out)
{
    const KilnInfer *in = out->in;
    Operands o = { .node = in->node, .dims = in->dims };
    uint32_t n = in->node->n_operands;
    if (n > G_N_ELEMENTS(o.v) || in->out[0].rank > 1)
        return;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_short(in, i, out->n))
            return;
    }
    const KilnOp op = in->node->op;
    const KilnDType dtype = kiln_infer_type(in, 0)->dtype;
    const bool two = op != KILN_OP_min && op != KILN_OP_max;
    const bool quotients = kiln_dtype_is_float(dtype) && kiln_ratio_knows(op);
    for (uint32_t k = 0; k < out->n; k++) {
        KilnRatio v[G_N_ELEMENTS(o.v)] = { { NULL, 1 } };
        for (uint32_t i = 0; i < n; i++) {
            v[i] = kiln_infer_ratio(in, i, operand_size(in, i) == 1 ? 0 : k);
            o.v[i] = v[i].under == 1 ? v[i].over : NULL;
        }
        if (quotients)
            set(out, k, kiln_ratio_calculate(in->dims, op, dtype, v));
        else if (two || n == 2)
            out->v[k] = calculate(&o);
    }
}

/* --- reductions of a vector to one element --- */

static void
reduced_element(Elements *out)
{
    const KilnInfer *in = out->in;
    KilnDimTable *dims = in->dims;
    int64_t n = operand_size(in, 0);
    if (kiln_infer_type(in, 0)->rank != 1 || out->n != 1 || n < 1)
        return;
    const KilnDim *all = kiln_infer_element(in, 0, 0);
    const bool floats = kiln_dtype_is_float(in->out[0].dtype);
    for (int64_t k = 1; k < n; k++) {
        const KilnDim *next = kiln_infer_element(in, 0, k);
        if (floats && !(kiln_infer_is_natural(all) && kiln_infer_is_natural(next)))
            return; /* what is in between may be no float */
        switch (in->node->op) {
        case KILN_OP_reduce_sum:
            all = kiln_dim_add(dims, all, next);
            break;
        case KILN_OP_reduce_prod:
            all = kiln_dim_mul(dims, all, next);
            break;
        case KILN_OP_reduce_max:
            all = kiln_dim_max(dims, all, next);
            break;
        default:
            all = kiln_dim_min(dims, all, next);
        }
    }
    out->v[0] = all;
}

/* --- the operators --- */

// clang-format off
static void (*const functions[KILN_OP_END])(Elements *out) = {
    [KILN_OP_define] = defined_elements,
    [KILN_OP_shape] = shape_elements,
    [KILN_OP_size] = size_element,
    [KILN_OP_identity] = copied_elements,
    [KILN_OP_reshape] = copied_elements,
    [KILN_OP_flatten] = copied_elements,
    [KILN_OP_squeeze] = copied_elements,
    [KILN_OP_unsqueeze] = copied_elements,
    [KILN_OP_cast] = cast_elements,
    [KILN_OP_gather] = gathered_elements,
    [KILN_OP_slice] = sliced_elements,
    [KILN_OP_transpose] = transposed_elements,
    [KILN_OP_concat] = concatenated_elements,
    [KILN_OP_expand] = expanded_elements,
    [KILN_OP_add] = calculated_elements,
    [KILN_OP_sub] = calculated_elements,
    [KILN_OP_mul] = calculated_elements,
    [KILN_OP_div] = calculated_elements,
    [KILN_OP_mod] = calculated_elements,
    [KILN_OP_neg] = calculated_elements,
    [KILN_OP_abs] = calculated_elements,
    [KILN_OP_floor] = calculated_elements,
    [KILN_OP_ceil] = calculated_elements,
    [KILN_OP_min] = calculated_elements,
    [KILN_OP_max] = calculated_elements,
    [KILN_OP_clip] = calculated_elements,
    [KILN_OP_relu] = calculated_elements,
    [KILN_OP_equal] = calculated_elements,
    [KILN_OP_less] = calculated_elements,
    [KILN_OP_less_or_equal] = calculated_elements,
    [KILN_OP_greater] = calculated_elements,
    [KILN_OP_greater_or_equal] = calculated_elements,
    [KILN_OP_where] = calculated_elements,
    [KILN_OP_not] = calculated_elements,
    [KILN_OP_and] = calculated_elements,
    [KILN_OP_or] = calculated_elements,
    [KILN_OP_reduce_sum] = reduced_element,
    [KILN_OP_reduce_prod] = reduced_element,
    [KILN_OP_reduce_max] = reduced_element,
    [KILN_OP_reduce_min] = reduced_element,
};
// clang-format on

/* True where an operand has expressions, or the shape of one is open: else numbers say it all. Some
 * parts of a concat may be known, and others not. */
static bool
may_be_open(const KilnInfer *in)
{
    for (uint32_t i = 0; i < in->node->n_operands; i++) {
        const KilnValue *value = kiln_node_operand(in->node, i);
        if (value && (value->extents || (value->known && in->node->op == KILN_OP_concat)))
            return true;
    }
    bool reads_shape = in->node->op == KILN_OP_shape || in->node->op == KILN_OP_size;
    if (in->node->op == KILN_OP_define)
        return true;
    return reads_shape && kiln_infer_type(in, 0)->rank > 0;
}

void
kiln_infer_extents(KilnInfer *in)
{
    Elements out;
    if (!in->extents || in->node->n_results == 0 || in->known[0] || !may_be_open(in))
        return;
    if (in->node->op == KILN_OP_split) {
        split_elements(in);
        return;
    }
    if (!functions[in->node->op] || in->node->n_results != 1 || !start(&out, in, 0))
        return;
    functions[in->node->op](&out);
    finish(&out);
}
