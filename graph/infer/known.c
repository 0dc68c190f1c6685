/* SPDX-License-Identifier: Apache-2.0 */
/* Integers known while compiling: shape arithmetic is folded as nodes are made, so that exported
 * chains of shape, gather, mul, concat decide reshapes without any pass.
 *
 * Elements are held in int64_t as their type prints them: sign- or zero-extended from its width,
 * u64 by its bits. Arithmetic wraps in two's complement, as the kernels do. */
#include "graph/base/number.h"
#include "graph/infer/common.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/cast.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/multiplicative.h"
#include "graph/op/reduce.h"

#include <string.h>

KilnKnown *
kiln_infer_known_new(KilnInfer *in, uint32_t r, int64_t n)
{
    KilnKnown *known = kiln_arena_alloc(in->arena, sizeof *known + (size_t)n * sizeof known->v[0]);
    known->n = n;
    in->known[r] = known;
    return known;
}

int64_t *
kiln_known_result(KilnInfer *in, uint32_t r)
{
    const KilnType *type = &in->out[r];
    if (!kiln_dtype_is_integer(type->dtype) && type->dtype != KILN_DTYPE_bool)
        return NULL;
    int64_t n = kiln_type_elements(type);
    if (n < 0 || n > KILN_KNOWN_MAX || type->layout)
        return NULL;
    return kiln_infer_known_new(in, r, n)->v;
}

void
kiln_known_forget(KilnInfer *in, uint32_t r)
{
    in->known[r] = NULL;
}

const int64_t *
kiln_known_operand(const KilnInfer *in, uint32_t i)
{
    const KilnKnown *known = kiln_infer_known(in, i);
    return known && known->n == kiln_type_elements(kiln_infer_type(in, i)) ? known->v : NULL;
}

void
kiln_known_copy(KilnInfer *in, uint32_t r, uint32_t i)
{
    const int64_t *from = kiln_known_operand(in, i);
    int64_t *to = from ? kiln_known_result(in, r) : NULL;
    if (to && in->known[r]->n)
        memcpy(to, from, (size_t)in->known[r]->n * sizeof *to);
}

void
kiln_known_strides(const KilnType *type, int64_t strides[KILN_MAX_RANK])
{
    int64_t stride = 1;
    for (int d = type->rank - 1; d >= 0; d--) {
        strides[d] = stride;
        /* Wraps only where another dim is zero, and then nothing is read. */
        (void)__builtin_mul_overflow(stride, type->dims[d], &stride);
    }
}

/* Steps a multi-index through @type in row-major order. */
static void
step(const KilnType *type, int64_t index[KILN_MAX_RANK])
{
    for (int d = type->rank - 1; d >= 0; d--) {
        if (++index[d] < type->dims[d])
            return;
        index[d] = 0;
    }
}

void
kiln_known_strided(KilnInfer *in, uint32_t r, uint32_t i, int64_t base,
                   const int64_t strides[KILN_MAX_RANK])
{
    const int64_t *from = kiln_known_operand(in, i);
    int64_t *to = from ? kiln_known_result(in, r) : NULL;
    if (!to)
        return;
    const KilnType *type = &in->out[r];
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t k = 0; k < in->known[r]->n; k++, step(type, index)) {
        int64_t at = base;
        for (int d = 0; d < type->rank; d++)
            at += index[d] * strides[d];
        to[k] = from[at];
    }
}

/* --- arithmetic --- */

static int64_t
wrap(KilnDType dtype, int64_t value)
{
    switch (dtype) {
    case KILN_DTYPE_i8:
        return (int8_t)value;
    case KILN_DTYPE_i16:
        return (int16_t)value;
    case KILN_DTYPE_i32:
        return (int32_t)value;
    case KILN_DTYPE_u8:
        return (uint8_t)value;
    case KILN_DTYPE_u16:
        return (uint16_t)value;
    case KILN_DTYPE_u32:
        return (uint32_t)value;
    case KILN_DTYPE_bool:
        return value != 0;
    case KILN_DTYPE_i4:
    case KILN_DTYPE_u4:
    case KILN_DTYPE_i2:
    case KILN_DTYPE_u2: {
        const uint8_t low = (uint8_t)value; /* more than the type has */
        return kiln_element_as_i64(dtype, &low, 0);
    }
    default:
        return value;
    }
}

static bool
less(KilnDType dtype, int64_t a, int64_t b)
{
    return dtype == KILN_DTYPE_u64 ? (uint64_t)a < (uint64_t)b : a < b;
}

/* @truncate: the sign of the dividend, as C; else of the divisor, as Python. */
static bool
divide(KilnDType dtype, int64_t a, int64_t b, int64_t *quotient, int64_t *remainder)
{
    if (b == 0)
        return false;
    if (dtype == KILN_DTYPE_u64) {
        *quotient = (int64_t)((uint64_t)a / (uint64_t)b);
        *remainder = (int64_t)((uint64_t)a % (uint64_t)b);
    } else if (b == -1) { /* the smallest number over -1 wraps */
        *quotient = (int64_t)(0 - (uint64_t)a);
        *remainder = 0;
    } else {
        *quotient = a / b;
        *remainder = a % b;
    }
    return true;
}

/* One element of an element-wise op over integers or bools. */
typedef struct {
    const KilnNode *node;
    KilnDType dtype;
    const int64_t *v; /* of each operand; 0 where one is absent */
    int64_t *out;
} Element;

static bool
div_of(const Element *e)
{
    int64_t ignored;
    return divide(e->dtype, e->v[0], e->v[1], e->out, &ignored);
}

static bool
mod_of(const Element *e)
{
    int64_t quotient;
    if (!divide(e->dtype, e->v[0], e->v[1], &quotient, e->out))
        return false;
    bool signs_differ = e->dtype != KILN_DTYPE_u64 && (*e->out < 0) != (e->v[1] < 0);
    if (!kiln_attrs(e->node, mod)->fmod && *e->out != 0 && signs_differ)
        *e->out += e->v[1];
    return true;
}

static bool
bit_shift_of(const Element *e)
{
    uint64_t value = (uint64_t)e->v[0], by = (uint64_t)e->v[1];
    bool left = g_strcmp0(kiln_attrs(e->node, bit_shift)->direction, "LEFT") == 0;
    if (by >= 8 * kiln_dtype_size(e->dtype))
        return false;
    uint64_t sign = e->dtype != KILN_DTYPE_u64 && e->v[0] < 0 ? UINT64_MAX : 0;
    *e->out = (int64_t)(left ? value << by : ((value ^ sign) >> by) ^ sign);
    return true;
}

static int64_t
extremum(bool max, KilnDType dtype, const int64_t *v, uint32_t n)
{
    int64_t best = v[0];
    for (uint32_t i = 1; i < n; i++) {
        if (max ? less(dtype, best, v[i]) : less(dtype, v[i], best))
            best = v[i];
    }
    return best;
}

static bool
clip_of(const Element *e)
{
    int64_t value = e->v[0];
    if (kiln_node_operand(e->node, 1) && less(e->dtype, value, e->v[1]))
        value = e->v[1];
    if (kiln_node_operand(e->node, 2) && less(e->dtype, e->v[2], value))
        value = e->v[2];
    *e->out = value;
    return true;
}

#define ELEMENT(op, expression)                                                                    \
    static bool op##_of(const Element *e)                                                          \
    {                                                                                              \
        const int64_t *v = e->v;                                                                   \
        *e->out = (int64_t)(expression);                                                           \
        return true;                                                                               \
    }

ELEMENT(same, v[0])
ELEMENT(not, !v[0])
ELEMENT(bitwise_not, ~v[0])
ELEMENT(neg, 0 - (uint64_t)v[0])
ELEMENT(abs, less(e->dtype, v[0], 0) ? 0 - (uint64_t)v[0] : (uint64_t)v[0])
ELEMENT(sign, less(e->dtype, v[0], 0) ? -1 : v[0] != 0)
ELEMENT(add, (uint64_t)v[0] + (uint64_t)v[1])
ELEMENT(sub, (uint64_t)v[0] - (uint64_t)v[1])
ELEMENT(mul, (uint64_t)v[0] * (uint64_t)v[1])
ELEMENT(min, extremum(false, e->dtype, v, e->node->n_operands))
ELEMENT(max, extremum(true, e->dtype, v, e->node->n_operands))
ELEMENT(and, v[0] & v[1])
ELEMENT(or, v[0] | v[1])
ELEMENT(xor, v[0] ^ v[1])
ELEMENT(equal, v[0] == v[1])
ELEMENT(less, less(e->dtype, v[0], v[1]))
ELEMENT(less_or_equal, !less(e->dtype, v[1], v[0]))
ELEMENT(greater, less(e->dtype, v[1], v[0]))
ELEMENT(greater_or_equal, !less(e->dtype, v[0], v[1]))
ELEMENT(where, v[0] ? v[1] : v[2])

/* The ops that are computed; false of a row: not for these elements. */
static bool (*const elements[KILN_OP_END])(const Element *e) = {
    [KILN_OP_cast] = same_of,
    [KILN_OP_not] = not_of,
    [KILN_OP_bitwise_not] = bitwise_not_of,
    [KILN_OP_neg] = neg_of,
    [KILN_OP_abs] = abs_of,
    [KILN_OP_sign] = sign_of,
    [KILN_OP_add] = add_of,
    [KILN_OP_sub] = sub_of,
    [KILN_OP_mul] = mul_of,
    [KILN_OP_div] = div_of,
    [KILN_OP_mod] = mod_of,
    [KILN_OP_bit_shift] = bit_shift_of,
    [KILN_OP_min] = min_of,
    [KILN_OP_max] = max_of,
    [KILN_OP_clip] = clip_of,
    [KILN_OP_and] = and_of,
    [KILN_OP_bitwise_and] = and_of,
    [KILN_OP_or] = or_of,
    [KILN_OP_bitwise_or] = or_of,
    [KILN_OP_xor] = xor_of,
    [KILN_OP_bitwise_xor] = xor_of,
    [KILN_OP_equal] = equal_of,
    [KILN_OP_less] = less_of,
    [KILN_OP_less_or_equal] = less_or_equal_of,
    [KILN_OP_greater] = greater_of,
    [KILN_OP_greater_or_equal] = greater_or_equal_of,
    [KILN_OP_where] = where_of,
};

enum {
    FOLD_OPERANDS = 8 /* no exporter's min, max or sum of shapes has more */
};

/* Strides by which operand @i is read while walking @type; 0 where it is broadcast. */
static void
broadcast_strides(const KilnInfer *in, uint32_t i, const KilnType *type,
                  int64_t strides[KILN_MAX_RANK])
{
    const KilnType *from = kiln_infer_type(in, i);
    int64_t own[KILN_MAX_RANK];
    kiln_known_strides(from, own);
    memset(strides, 0, sizeof(int64_t) * KILN_MAX_RANK);
    /* A single element may have more dims than the result: a clip bound written as a vector. */
    int shift = type->rank - from->rank;
    for (int d = MAX(-shift, 0); d < from->rank; d++)
        strides[d + shift] = from->dims[d] == 1 ? 0 : own[d];
}

void
kiln_known_elementwise(KilnInfer *in)
{
    uint32_t n = in->node->n_operands;
    const KilnType *type = &in->out[0];
    const int64_t *from[FOLD_OPERANDS];
    int64_t strides[FOLD_OPERANDS][KILN_MAX_RANK];
    if (n > FOLD_OPERANDS)
        return;
    for (uint32_t i = 0; i < n; i++) {
        from[i] = kiln_known_operand(in, i);
        if (!from[i] && kiln_infer_type(in, i))
            return;
        if (from[i])
            broadcast_strides(in, i, type, strides[i]);
    }
    int64_t *to = kiln_known_result(in, 0);
    if (!to)
        return;
    KilnDType dtype = kiln_infer_type(in, 0)->dtype;
    bool (*element_of)(const Element *) = elements[in->node->op];
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t k = 0; k < in->known[0]->n; k++, step(type, index)) {
        int64_t v[FOLD_OPERANDS] = { 0 }, value;
        for (uint32_t i = 0; i < n; i++) {
            int64_t at = 0;
            for (int d = 0; from[i] && d < type->rank; d++)
                at += index[d] * strides[i][d];
            v[i] = from[i] ? from[i][at] : 0;
        }
        if (!element_of || !element_of(&(Element){ in->node, dtype, v, &value })) {
            kiln_known_forget(in, 0);
            return;
        }
        to[k] = wrap(type->dtype, value);
    }
}

/* --- reductions --- */

static bool
accumulate(KilnOp op, KilnDType dtype, int64_t *into, int64_t value)
{
    int64_t pair[2] = { *into, value };
    switch (op) {
    case KILN_OP_reduce_sum:
        *into = (int64_t)((uint64_t)*into + (uint64_t)value);
        return true;
    case KILN_OP_reduce_prod:
        *into = (int64_t)((uint64_t)*into * (uint64_t)value);
        return true;
    case KILN_OP_reduce_max:
    case KILN_OP_reduce_min:
        *into = extremum(op == KILN_OP_reduce_max, dtype, pair, 2);
        return true;
    default:
        return false;
    }
}

void
kiln_known_reduce(KilnInfer *in, const bool reduced[KILN_MAX_RANK])
{
    const KilnType *x = kiln_infer_type(in, 0);
    const int64_t *from = kiln_known_operand(in, 0);
    int64_t *to = from ? kiln_known_result(in, 0) : NULL;
    KilnOp op = in->node->op;
    if (!to)
        return;
    int64_t strides[KILN_MAX_RANK] = { 0 }, index[KILN_MAX_RANK] = { 0 }, stride = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        strides[d] = reduced[d] ? 0 : stride;
        (void)__builtin_mul_overflow(stride, reduced[d] ? 1 : x->dims[d], &stride);
    }
    int64_t n = kiln_type_elements(x);
    bool foldable = op == KILN_OP_reduce_sum || op == KILN_OP_reduce_prod || n > 0;
    for (int64_t k = 0; op == KILN_OP_reduce_prod && k < in->known[0]->n; k++)
        to[k] = 1;
    g_autofree bool *begun = g_new0(bool, MAX(in->known[0]->n, 1));
    for (int64_t k = 0; foldable && k < n; k++, step(x, index)) {
        int64_t at = 0;
        for (int d = 0; d < x->rank; d++)
            at += index[d] * strides[d];
        bool extreme = op == KILN_OP_reduce_max || op == KILN_OP_reduce_min;
        if (extreme && !begun[at])
            to[at] = from[k];
        else
            foldable = accumulate(op, x->dtype, &to[at], from[k]);
        begun[at] = true;
    }
    for (int64_t k = 0; foldable && k < in->known[0]->n; k++)
        to[k] = wrap(x->dtype, to[k]);
    if (!foldable)
        kiln_known_forget(in, 0);
}
