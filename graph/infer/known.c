/* SPDX-License-Identifier: Apache-2.0 */
/* Integers known while compiling: shape arithmetic is folded as nodes are made, so that exported
 * chains of shape, gather, mul, concat decide reshapes without any pass.
 *
 * Elements are held in int64_t as their type prints them: sign- or zero-extended from its width,
 * u64 by its bits. Arithmetic wraps in two's complement, as the kernels do. */
#include "graph/infer/common.h"

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

static bool
fold_mod(const KilnNode *node, KilnDType dtype, const int64_t *v, int64_t *out)
{
    int64_t quotient;
    if (!divide(dtype, v[0], v[1], &quotient, out))
        return false;
    bool signs_differ = dtype != KILN_DTYPE_u64 && (*out < 0) != (v[1] < 0);
    if (!kiln_attrs(node, mod)->fmod && *out != 0 && signs_differ)
        *out += v[1];
    return true;
}

static bool
fold_shift(const KilnNode *node, KilnDType dtype, const int64_t *v, int64_t *out)
{
    uint64_t value = (uint64_t)v[0], by = (uint64_t)v[1];
    bool left = g_strcmp0(kiln_attrs(node, bit_shift)->direction, "LEFT") == 0;
    if (by >= 8 * kiln_dtype_size(dtype))
        return false;
    *out = (int64_t)(left ? value << by : value >> by);
    return true;
}

static int64_t
fold_extreme(bool max, KilnDType dtype, const int64_t *v, uint32_t n)
{
    int64_t best = v[0];
    for (uint32_t i = 1; i < n; i++) {
        if (max ? less(dtype, best, v[i]) : less(dtype, v[i], best))
            best = v[i];
    }
    return best;
}

static int64_t
fold_clip(const KilnNode *node, KilnDType dtype, const int64_t *v)
{
    int64_t value = v[0];
    if (kiln_node_operand(node, 1) && less(dtype, value, v[1]))
        value = v[1];
    if (kiln_node_operand(node, 2) && less(dtype, v[2], value))
        value = v[2];
    return value;
}

/* One element of an element-wise op over integers or bools of @dtype; false: not folded. */
static bool
fold_element(const KilnNode *node, KilnDType dtype, const int64_t *v, int64_t *out)
{
    uint64_t a = (uint64_t)v[0], b = (uint64_t)v[1];
    int64_t ignored;
    switch (node->op) {
    case KILN_OP_cast:
        *out = v[0];
        return true;
    case KILN_OP_not:
        *out = !v[0];
        return true;
    case KILN_OP_bitwise_not:
        *out = ~v[0];
        return true;
    case KILN_OP_neg:
        *out = (int64_t)(0 - a);
        return true;
    case KILN_OP_abs:
        *out = less(dtype, v[0], 0) ? (int64_t)(0 - a) : v[0];
        return true;
    case KILN_OP_sign:
        *out = less(dtype, v[0], 0) ? -1 : v[0] != 0;
        return true;
    case KILN_OP_add:
        *out = (int64_t)(a + b);
        return true;
    case KILN_OP_sub:
        *out = (int64_t)(a - b);
        return true;
    case KILN_OP_mul:
        *out = (int64_t)(a * b);
        return true;
    case KILN_OP_div:
        return divide(dtype, v[0], v[1], out, &ignored);
    case KILN_OP_mod:
        return fold_mod(node, dtype, v, out);
    case KILN_OP_bit_shift:
        return fold_shift(node, dtype, v, out);
    case KILN_OP_min:
    case KILN_OP_max:
        *out = fold_extreme(node->op == KILN_OP_max, dtype, v, node->n_operands);
        return true;
    case KILN_OP_clip:
        *out = fold_clip(node, dtype, v);
        return true;
    case KILN_OP_and:
    case KILN_OP_bitwise_and:
        *out = v[0] & v[1];
        return true;
    case KILN_OP_or:
    case KILN_OP_bitwise_or:
        *out = v[0] | v[1];
        return true;
    case KILN_OP_xor:
    case KILN_OP_bitwise_xor:
        *out = v[0] ^ v[1];
        return true;
    case KILN_OP_equal:
        *out = v[0] == v[1];
        return true;
    case KILN_OP_less:
        *out = less(dtype, v[0], v[1]);
        return true;
    case KILN_OP_less_or_equal:
        *out = !less(dtype, v[1], v[0]);
        return true;
    case KILN_OP_greater:
        *out = less(dtype, v[1], v[0]);
        return true;
    case KILN_OP_greater_or_equal:
        *out = !less(dtype, v[0], v[1]);
        return true;
    case KILN_OP_where:
        *out = v[0] ? v[1] : v[2];
        return true;
    default:
        return false;
    }
}

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
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t k = 0; k < in->known[0]->n; k++, step(type, index)) {
        int64_t v[FOLD_OPERANDS] = { 0 }, value;
        for (uint32_t i = 0; i < n; i++) {
            int64_t at = 0;
            for (int d = 0; from[i] && d < type->rank; d++)
                at += index[d] * strides[i][d];
            v[i] = from[i] ? from[i][at] : 0;
        }
        if (!fold_element(in->node, dtype, v, &value)) {
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
        *into = fold_extreme(op == KILN_OP_reduce_max, dtype, pair, 2);
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
