/* SPDX-License-Identifier: Apache-2.0 */
/* Inverse of com.microsoft: elimination of [x | 1] with the greatest pivot of each column, then
 * substitution from the last row up, step by step as ONNX Runtime's library does it. A singular
 * matrix has a pivot of 0, by which its rows are divided.
 *
 *   for each k:       swap rows k and p, where |x[p,k]| is greatest of the rows from k on
 *                     rows behind k -= x[row,k] / x[k,k] * row k
 *   for each k, down: row k /= x[k,k]
 *                     rows before k -= x[row,k] * row k
 *
 * The steps are nodes: matrices of a greater order are refused. */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/logic.h"

enum {
    MAX_ORDER = 32
};

typedef struct {
    KilnOnnxSteps s;
    KilnDType dtype;
    int64_t n;
    KilnValue *rows; /* 0 to n - 1: i64[n,1] */
} Inverse;

/* Part [@from, @to) of dim @axis (-1: columns, -2: rows). */
static KilnValue *
part(const Inverse *v, KilnValue *x, int64_t axis, int64_t from, int64_t to)
{
    return kiln_onnx_step_slice(&v->s, x, axis, from, to, 1);
}

/* @yes in the rows that @op says of row @k, else @no. */
static KilnValue *
in_rows(const Inverse *v, KilnOp op, int64_t k, KilnValue *yes, KilnValue *no)
{
    KilnValue *where = kiln_onnx_step_number(&v->s, op, v->rows, (double)k);
    return kiln_onnx_step3(&v->s, KILN_OP_where, NULL, where, yes, no);
}

static KilnValue *
zero_of(const Inverse *v)
{
    return kiln_onnx_scalar(v->s.call, "zero", v->dtype, 0);
}

/* @values as matrices like @x: its dims but the last two, @rows and @columns. */
static KilnValue *
like(const Inverse *v, KilnValue *values, KilnValue *x, int64_t columns)
{
    KilnOnnxExtent extents[KILN_MAX_RANK];
    const int rank = x ? x->type.rank : 2;
    for (int d = 0; d < rank - 2; d++)
        extents[d] = (KilnOnnxExtent)KILN_ONNX_DIM(x, d);
    extents[rank - 2] = (KilnOnnxExtent)KILN_ONNX_NUMBER(v->n);
    extents[rank - 1] = (KilnOnnxExtent)KILN_ONNX_NUMBER(columns);
    return x ? kiln_onnx_step_expand(&v->s, values, extents, (uint32_t)rank) : NULL;
}

/* @x with the greatest element of column @k, of the rows from @k on, in row @k. */
static KilnValue *
with_pivot(const Inverse *v, KilnValue *x, int64_t k)
{
    const KilnOnnxSteps *s = &v->s;
    KilnValue *size = kiln_onnx_step_abs(s, part(v, x, -1, k, k + 1));
    KilnValue *none = kiln_onnx_scalar(s->call, "none", v->dtype, -1);
    size = in_rows(v, KILN_OP_greater_or_equal, k, size, none);
    KilnValue *p = kiln_onnx_step_arg_max(s, size, -2);
    KilnValue *is_p = kiln_onnx_step2(s, KILN_OP_equal, NULL, v->rows, p);
    KilnValue *from =
        kiln_onnx_step3(s, KILN_OP_where, NULL, is_p,
                        kiln_onnx_scalar(s->call, "k", KILN_DTYPE_i64, (double)k), v->rows);
    from = like(v, in_rows(v, KILN_OP_equal, k, p, from), x, 2 * v->n);
    return x ? kiln_onnx_step_gather_elements(s, x, from, x->type.rank - 2) : NULL;
}

/* @x less multiples of row @k, so that column @k has zeros behind it. */
static KilnValue *
eliminated(const Inverse *v, KilnValue *x, int64_t k)
{
    const KilnOnnxSteps *s = &v->s;
    KilnValue *row = part(v, x, -2, k, k + 1), *pivot = part(v, row, -1, k, k + 1);
    KilnValue *factor = kiln_onnx_step_div(s, part(v, x, -1, k, k + 1), pivot);
    factor = kiln_onnx_step3(s, KILN_OP_where, NULL,
                             kiln_onnx_step_number(s, KILN_OP_equal, pivot, 0), zero_of(v), factor);
    KilnValue *less = kiln_onnx_step_sub(s, x, kiln_onnx_step_mul(s, factor, row));
    return in_rows(v, KILN_OP_greater, k, less, x);
}

/* @y, where row @k is solved by column @k of the triangle @x. */
static KilnValue *
substituted(const Inverse *v, KilnValue *x, KilnValue *y, int64_t k)
{
    const KilnOnnxSteps *s = &v->s;
    KilnValue *column = part(v, x, -1, k, k + 1);
    KilnValue *row = kiln_onnx_step_div(s, part(v, y, -2, k, k + 1), part(v, column, -2, k, k + 1));
    KilnValue *less = kiln_onnx_step_sub(s, y, kiln_onnx_step_mul(s, column, row));
    return in_rows(v, KILN_OP_equal, k, row, in_rows(v, KILN_OP_less, k, less, y));
}

/* 1 in the diagonal, else 0: [n, n] */
static KilnValue *
identity_of(const Inverse *v)
{
    const KilnOnnxSteps *s = &v->s;
    const KilnOnnxExtent row[] = { KILN_ONNX_NUMBER(1), KILN_ONNX_NUMBER(v->n) };
    KilnValue *same = kiln_onnx_step2(s, KILN_OP_equal, NULL, v->rows,
                                      kiln_onnx_step_reshape(s, v->rows, row, 2));
    return kiln_onnx_step_cast(s, same, v->dtype);
}

static KilnValue *
numbered_rows(const Inverse *v)
{
    int64_t numbers[MAX_ORDER];
    const KilnOnnxExtent column[] = { KILN_ONNX_NUMBER(v->n), KILN_ONNX_NUMBER(1) };
    for (int64_t i = 0; i < v->n; i++)
        numbers[i] = i;
    return kiln_onnx_step_reshape(&v->s, kiln_onnx_ints(v->s.call, "rows", numbers, (uint32_t)v->n),
                                  column, 2);
}

static KilnValue *
inverse_of(const Inverse *v, KilnValue *x)
{
    x = kiln_onnx_step_concat(&v->s, x, like(v, identity_of(v), x, v->n), -1);
    for (int64_t k = 0; k + 1 < v->n; k++)
        x = eliminated(v, with_pivot(v, x, k), k);
    KilnValue *y = part(v, x, -1, v->n, 2 * v->n);
    for (int64_t k = v->n - 1; k >= 0; k--)
        y = substituted(v, x, y, k);
    return y;
}

gboolean
kiln_onnx_convert_inverse(KilnOnnxCall *call, GError **error)
{
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_require_rank(call, 0, 2, KILN_MAX_RANK, error))
        return FALSE;
    const int rank = x->type.rank;
    const int64_t n = MAX(x->type.dims[rank - 1], x->type.dims[rank - 2]);
    if (n == 0)
        return kiln_onnx_set_result(call, 0, x);
    if (n < 0 || n > MAX_ORDER)
        return kiln_onnx_unsupported(call, error, "matrices of order %" G_GINT64_FORMAT, n);
    int64_t dims[KILN_MAX_RANK];
    for (int d = 0; d < rank; d++)
        dims[d] = d < rank - 2 ? -1 : n;
    if (!kiln_onnx_require_shape(call, 0, dims, rank, error))
        return FALSE;
    const KilnDType dtype = x->type.dtype;
    Inverse v = { .s = { call, error }, .dtype = dtype, .n = n };
    if (kiln_dtype_is_half(dtype))
        v.dtype = KILN_DTYPE_f32;
    v.rows = numbered_rows(&v);
    x = v.rows ? inverse_of(&v, kiln_onnx_step_cast(&v.s, x, v.dtype)) : NULL;
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_cast(&v.s, x, dtype));
}
