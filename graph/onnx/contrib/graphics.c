/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft that ONNX Runtime computes on graphics cards alone. Each is a few of
 * ONNX's in a row. */
#include "graph/graph.h"
#include "graph/module/flow.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/converters.h"
#include "graph/onnx/steps.h"
#include "graph/op/signal.h"

#include <string.h>

/* --- products and gates --- */

/*   gelu(x . w + bias), by tanh */
gboolean
kiln_onnx_convert_gemm_fast_gelu(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *x = kiln_onnx_need(call, 0, error), *w = x ? kiln_onnx_need(call, 1, error) : NULL;
    KilnValue *y = w ? kiln_onnx_step_matmul(&s, x, w) : NULL;
    y = kiln_onnx_step_add_operand(&s, y, 2);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_gelu(&s, y, "tanh"));
}

typedef struct {
    float alpha, beta, limit;
    int64_t round; /* the gate has the element type of the operands */
} Gate;

static gboolean
read_gate(KilnOnnxCall *call, Gate *gate, GError **error)
{
    *gate = (Gate){ .alpha = 1 };
    return kiln_onnx_take_float(call, "activation_alpha", &gate->alpha, error) &&
           kiln_onnx_take_float(call, "activation_beta", &gate->beta, error) &&
           kiln_onnx_take_float(call, "limit", &gate->limit, error) &&
           kiln_onnx_take_int(call, "round_activation", &gate->round, error);
}

/*   g * sigmoid(alpha * g) * (u + beta), of a gate up to the limit and a second half within it */
static KilnValue *
gated(const KilnOnnxSteps *s, const Gate *gate, KilnValue *g, KilnValue *u)
{
    const KilnDType dtype = g ? g->type.dtype : KILN_DTYPE_f32;
    const double limit = (double)gate->limit;
    g = kiln_onnx_step_cast(s, g, KILN_DTYPE_f32);
    u = kiln_onnx_step_cast(s, u, KILN_DTYPE_f32);
    if (limit > 0) {
        g = kiln_onnx_step_at_most(s, g, limit);
        u = kiln_onnx_step_at_least(s, kiln_onnx_step_at_most(s, u, limit), -limit);
    }
    g = kiln_onnx_step_swish_by(s, g, gate->alpha);
    if (gate->round)
        g = kiln_onnx_step_cast(s, kiln_onnx_step_cast(s, g, dtype), KILN_DTYPE_f32);
    if (gate->beta != 0)
        u = kiln_onnx_step_add_number(s, u, (double)gate->beta);
    return kiln_onnx_step_cast(s, kiln_onnx_step_mul(s, g, u), dtype);
}

/* The last dim of @x, which must be known and even; -1: it failed. */
static int64_t
halves_of(const KilnOnnxSteps *s, const KilnValue *x)
{
    const int64_t n = x->type.rank > 0 ? x->type.dims[x->type.rank - 1] : -1;
    if (n >= 0 && n % 2 == 0)
        return n / 2;
    if (n < 0)
        kiln_onnx_unsupported(s->call, s->error, "a last dim that is not known");
    else
        kiln_onnx_throw(
            s->call, KILN_ERROR_SHAPE, s->error,
            "expected two halves along the last dim, found %" G_GINT64_FORMAT " elements", n);
    return -1;
}

/* (gate, up), or both in one operand, gate first */
gboolean
kiln_onnx_convert_swiglu_contrib(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    Gate gate;
    KilnValue *g = kiln_onnx_need(call, 0, error), *u = kiln_onnx_operand(call, 1);
    if (!g || !read_gate(call, &gate, error))
        return FALSE;
    if (!u) {
        const int64_t n = halves_of(&s, g);
        if (n < 0)
            return FALSE;
        u = kiln_onnx_step_slice(&s, g, -1, n, 2 * n, 1);
        g = kiln_onnx_step_slice(&s, g, -1, 0, n, 1);
    }
    return kiln_onnx_set_result(call, 0, gated(&s, &gate, g, u));
}

/* Of x . w the first columns are the logits of a router, the others a gate and its second half. */
gboolean
kiln_onnx_convert_router_gate_up(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    const char *activation = "swiglu";
    int64_t router = 0;
    Gate gate;
    KilnValue *x = kiln_onnx_need(call, 0, error), *w = x ? kiln_onnx_need(call, 1, error) : NULL;
    if (!w || !kiln_onnx_take_int(call, "router_size", &router, error) ||
        !kiln_onnx_take_text(call, "activation", &activation, error) ||
        !read_gate(call, &gate, error) || !kiln_onnx_require_rank(call, 1, 2, 2, error))
        return FALSE;
    if (strcmp(activation, "swiglu") != 0)
        return kiln_onnx_unsupported(call, error, "activation=%s", activation);
    const int64_t columns = w->type.dims[1], both = columns - router;
    if (columns < 0)
        return kiln_onnx_unsupported(call, error, "columns of operand 1 that are not known");
    if (router < 1 || both < 2 || both % 2)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "router_size: expected so many of %" G_GINT64_FORMAT
                               " columns that two halves are left, found %" G_GINT64_FORMAT,
                               columns, router);
    KilnValue *y = kiln_onnx_step_matmul(&s, x, w);
    KilnValue *g = kiln_onnx_step_slice(&s, y, -1, router, router + both / 2, 1);
    KilnValue *u = kiln_onnx_step_slice(&s, y, -1, router + both / 2, columns, 1);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_slice(&s, y, -1, 0, router, 1)) &&
           (call->n_results < 2 || kiln_onnx_set_result(call, 1, gated(&s, &gate, g, u)));
}

/* --- complex numbers, whose parts are the last dim --- */

static KilnValue *
part(const KilnOnnxSteps *s, KilnValue *x, int64_t i)
{
    return kiln_onnx_step_slice(s, x, -1, i, i + 1, 1);
}

/*   (a + bi) (c ± di) = ac ∓ bd + (bc ± ad)i */
static gboolean
complex_product(KilnOnnxCall *call, bool conjugate, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *x = kiln_onnx_need(call, 0, error), *y = x ? kiln_onnx_need(call, 1, error) : NULL;
    if (!y)
        return FALSE;
    for (uint32_t i = 0; i < 2; i++) {
        const KilnType *type = &call->operands[i]->type;
        if (!kiln_onnx_require_rank(call, i, 1, KILN_MAX_RANK, error))
            return FALSE;
        if (type->dims[type->rank - 1] >= 0 && type->dims[type->rank - 1] != 2)
            return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                                   "operand %u: expected a last dim of 2, found "
                                   "%" G_GINT64_FORMAT,
                                   i, type->dims[type->rank - 1]);
    }
    KilnValue *a = part(&s, x, 0), *b = part(&s, x, 1), *c = part(&s, y, 0), *d = part(&s, y, 1);
    KilnValue *bd = kiln_onnx_step_mul(&s, b, d), *ad = kiln_onnx_step_mul(&s, a, d);
    KilnValue *ac = kiln_onnx_step_mul(&s, a, c), *bc = kiln_onnx_step_mul(&s, b, c);
    KilnValue *real = conjugate ? kiln_onnx_step_add(&s, ac, bd) : kiln_onnx_step_sub(&s, ac, bd);
    KilnValue *other = conjugate ? kiln_onnx_step_sub(&s, bc, ad) : kiln_onnx_step_add(&s, bc, ad);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_concat(&s, real, other, -1));
}

gboolean
kiln_onnx_convert_complex_mul(KilnOnnxCall *call, GError **error)
{
    return complex_product(call, false, error);
}

gboolean
kiln_onnx_convert_complex_mul_conj(KilnOnnxCall *call, GError **error)
{
    return complex_product(call, true, error);
}

static gboolean
read_fourier(KilnOnnxCall *call, GError **error)
{
    int64_t onesided = 1, normalized = 0, dims = 1;
    if (!kiln_onnx_need(call, 0, error) ||
        !kiln_onnx_take_int(call, "onesided", &onesided, error) ||
        !kiln_onnx_take_int(call, "normalized", &normalized, error) ||
        !kiln_onnx_take_int(call, "signal_ndim", &dims, error))
        return FALSE;
    if (onesided != 1 || normalized != 0 || dims != 1)
        return kiln_onnx_unsupported(call, error,
                                     "onesided=%" G_GINT64_FORMAT " normalized=%" G_GINT64_FORMAT
                                     " signal_ndim=%" G_GINT64_FORMAT,
                                     onesided, normalized, dims);
    return TRUE;
}

/* The one-sided transform of the last dim of real numbers. */
gboolean
kiln_onnx_convert_rfft(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    const KilnAttrs_dft attrs = { .onesided = true };
    const int64_t last = -1;
    if (!read_fourier(call, error) || !kiln_onnx_require_rank(call, 0, 1, KILN_MAX_RANK - 1, error))
        return FALSE;
    KilnValue *operands[] = { kiln_onnx_step_unsqueeze(&s, call->operands[0], &last, 1), NULL,
                              kiln_onnx_scalar(call, "axis", KILN_DTYPE_i64, -2) };
    return operands[0] &&
           kiln_onnx_set_result(call, 0,
                                kiln_onnx_build(call, KILN_OP_dft, &attrs, operands, 3, error));
}

/* The way back, to an even number of real numbers. */
gboolean
kiln_onnx_convert_irfft(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    const KilnAttrs_dft attrs = { .onesided = true, .inverse = true };
    if (!read_fourier(call, error) || !kiln_onnx_require_rank(call, 0, 2, KILN_MAX_RANK, error))
        return FALSE;
    KilnValue *operands[] = { call->operands[0], NULL,
                              kiln_onnx_scalar(call, "axis", KILN_DTYPE_i64, -2) };
    KilnValue *y = kiln_onnx_build(call, KILN_OP_dft, &attrs, operands, 3, error);
    KilnValue *first = kiln_onnx_scalar(call, "first", KILN_DTYPE_i64, 0);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_gather(&s, y, first, -1));
}

/* --- others --- */

/*   data + bias + residual: nothing is dropped but in training */
gboolean
kiln_onnx_convert_bias_dropout(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    const KilnValue *training = kiln_onnx_operand(call, 4);
    bool trains = false;
    KilnValue *x = kiln_onnx_need(call, 0, error),
              *bias = x ? kiln_onnx_need(call, 1, error) : NULL;
    kiln_onnx_take(call, "seed");
    if (!bias)
        return FALSE;
    if (training && (!kiln_value_known_flag(training, &trains) || trains))
        return kiln_onnx_unsupported(call, error, "training");
    KilnValue *y = kiln_onnx_step_add_operand(&s, kiln_onnx_step_add(&s, x, bias), 2);
    if (!kiln_onnx_set_result(call, 0, y) || call->n_results < 2)
        return y != NULL;
    KilnOnnxExtent extents[KILN_MAX_RANK];
    if (y->type.rank < 0)
        return kiln_onnx_unsupported(call, error, "an operand of an unknown rank");
    for (int d = 0; d < y->type.rank; d++)
        extents[d] = (KilnOnnxExtent)KILN_ONNX_DIM(y, d);
    KilnValue *kept = kiln_onnx_step_expand(&s, kiln_onnx_scalar(call, "kept", KILN_DTYPE_bool, 1),
                                            extents, (uint32_t)y->type.rank);
    return kiln_onnx_set_result(call, 1, kept);
}

/* The sum of integers of 8 bits has 32. */
gboolean
kiln_onnx_convert_reduce_sum_integer(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_convert_reduce_axes(call, error))
        return FALSE;
    const bool is_signed = kiln_dtype_is_signed(x->type.dtype);
    call->operands[0] = kiln_onnx_step_cast(&s, x, is_signed ? KILN_DTYPE_i32 : KILN_DTYPE_u32);
    return call->operands[0] != NULL;
}

/* True where all elements of all operands are finite; or no NaN, or not infinite. */
gboolean
kiln_onnx_convert_is_all_finite(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    int64_t only_inf = 0, only_nan = 0;
    KilnValue *any = NULL;
    if (!kiln_onnx_take_flag(call, "isinf_only", &only_inf, error) ||
        !kiln_onnx_take_flag(call, "isnan_only", &only_nan, error))
        return FALSE;
    if (only_inf && only_nan)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected one of isinf_only and isnan_only, found both");
    for (uint32_t i = 0; i < MAX(call->n_operands, 1u); i++) {
        KilnValue *x = kiln_onnx_need(call, i, error), *bad = NULL;
        if (!x)
            return FALSE;
        if (!only_inf)
            bad = kiln_onnx_step_is_nan(&s, x);
        if (!only_nan) {
            KilnValue *inf = kiln_onnx_step_is_inf(&s, x);
            bad = bad ? kiln_onnx_step_either(&s, bad, inf) : inf;
        }
        bad = kiln_onnx_step_any(&s, bad);
        any = any ? kiln_onnx_step_either(&s, any, bad) : bad;
    }
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_opposite(&s, any));
}

/*   (a - az) * (b - bz) as i32, of (a, az, b, bz) */
gboolean
kiln_onnx_convert_mul_integer(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *sides[2];
    for (uint32_t i = 0; i < 2; i++) {
        KilnValue *zero = kiln_onnx_operand(call, 2 * i + 1);
        if (!kiln_onnx_need(call, 2 * i, error) || !kiln_onnx_require_one(call, 2 * i + 1, error))
            return FALSE;
        sides[i] = kiln_onnx_step_cast(&s, call->operands[2 * i], KILN_DTYPE_i32);
        if (zero)
            sides[i] =
                kiln_onnx_step_sub(&s, sides[i], kiln_onnx_step_cast(&s, zero, KILN_DTYPE_i32));
    }
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_mul(&s, sides[0], sides[1]));
}

/* (weights, indices); how gradients are made of the two others does not matter. */
gboolean
kiln_onnx_convert_torch_embedding(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *table = kiln_onnx_need(call, 0, error);
    KilnValue *at = table ? kiln_onnx_need(call, 1, error) : NULL;
    if (!at || !kiln_onnx_require_rank(call, 0, 2, 2, error))
        return FALSE;
    at = kiln_onnx_step_from_front(&s, table, 0, at);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_gather(&s, table, at, 0));
}

/* Rows at their offsets, and zeros in all other places. (rows[tokens, size], offsets[batch,
 * length]) The offsets of the tokens come first. */
gboolean
kiln_onnx_convert_restore_padding(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    const KilnOnnxExtent flat[] = { KILN_ONNX_NUMBER(-1) };
    KilnValue *x = kiln_onnx_need(call, 0, error), *at = x ? kiln_onnx_need(call, 1, error) : NULL;
    if (!at || !kiln_onnx_require_rank(call, 0, 2, 2, error) ||
        !kiln_onnx_require_rank(call, 1, 2, 2, error))
        return FALSE;
    const KilnOnnxExtent shape[] = { KILN_ONNX_DIM(at, 0), KILN_ONNX_DIM(at, 1),
                                     KILN_ONNX_DIM(x, 1) };
    KilnValue *places =
        kiln_onnx_step_cast(&s, kiln_onnx_step_reshape(&s, at, flat, 1), KILN_DTYPE_i64);
    const int64_t last = 1;
    KilnValue *from = kiln_onnx_step_slice_to(&s, places, 0, 0, kiln_onnx_step_extents(&s, x, 0));
    from = from ? kiln_onnx_step_unsqueeze(&s, from, &last, 1) : NULL;
    if (!from)
        return FALSE;
    const KilnOnnxExtent as_x[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_DIM(x, 1) };
    const KilnOnnxExtent all[] = { KILN_ONNX_DIM(places, 0), KILN_ONNX_DIM(x, 1) };
    from = kiln_onnx_step_expand(&s, from, as_x, 2);
    KilnValue *zero = kiln_onnx_scalar(call, "nothing", x->type.dtype, 0);
    KilnValue *y = kiln_onnx_step_expand(&s, zero, all, 2);
    y = kiln_onnx_step_scatter_elements(&s, y, from, x, 0);
    return kiln_onnx_set_result(call, 0, y ? kiln_onnx_step_reshape(&s, y, shape, 3) : NULL);
}
