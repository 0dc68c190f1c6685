/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_integer and qlinear_matmul: products of 8-bit integers less their zero points, accumulated
 * in i32, which wraps. A zero point or scale is one number, one per row of a (or of the result) or
 * one per column of b, with or without batch dims.
 *
 * qlinear_matmul multiplies the sum, as f32, by a_scale * b_scale / y_scale, computed in f32 in
 * this order; rounding is that of quantize_linear. */
#include "backends/ref/integer/quantize.h"
#include "backends/ref/kernel.h"

/* A matrix product: operands seen with at least two dims, result dims with none dropped. */
typedef struct {
    KilnType a, b, out;
    const void *a_data, *b_data;
    int64_t k;
} Product;

static void
insert_dim(KilnType *type, int at)
{
    for (int d = type->rank; d > at; d--)
        type->dims[d] = type->dims[d - 1];
    type->dims[at] = 1;
    type->rank++;
}

static Product
product_of(const KilnKernelArgs *args, uint32_t a, uint32_t b)
{
    Product p = { .a = *ref_type(args, a),
                  .b = *ref_type(args, b),
                  .out = *ref_type(args, 0),
                  .a_data = args->data[a],
                  .b_data = args->data[b] };
    const bool row = p.a.rank == 1, column = p.b.rank == 1;
    if (row) {
        insert_dim(&p.a, 0);
        insert_dim(&p.out, column ? p.out.rank : p.out.rank - 1);
    }
    if (column) {
        insert_dim(&p.b, 1);
        insert_dim(&p.out, p.out.rank);
    }
    p.k = p.a.dims[p.a.rank - 1];
    return p;
}

/* The first element of the matrix of @type that belongs to the batch at @index of the result. */
static int64_t
matrix_at(const KilnType *type, const KilnType *out, const int64_t *index)
{
    KilnType batch = *type;
    batch.rank -= 2;
    return ref_broadcast_offset(&batch, index, out->rank - 2) * type->dims[type->rank - 2] *
           type->dims[type->rank - 1];
}

/* Where the zero point or scale of a row lies. A vector has one per row; others are broadcast. */
static int64_t
row_param(const KilnType *type, const KilnType *out, const int64_t *index)
{
    if (ref_elements(type) == 1)
        return 0;
    return type->rank == 1 ? index[out->rank - 2] : ref_broadcast_offset(type, index, out->rank);
}

static int64_t
column_param(const KilnType *type, const KilnType *out, const int64_t *index)
{
    return ref_elements(type) == 1 ? 0 : ref_broadcast_offset(type, index, out->rank);
}

static int32_t
accumulate(const Product *p, const int64_t *index, int64_t a_zero, int64_t b_zero)
{
    const int rank = p->out.rank;
    const int64_t columns = p->b.dims[p->b.rank - 1];
    const int64_t a_row = matrix_at(&p->a, &p->out, index) + index[rank - 2] * p->k;
    const int64_t b_column = matrix_at(&p->b, &p->out, index) + index[rank - 1];
    uint32_t sum = 0;
    for (int64_t k = 0; k < p->k; k++) {
        int64_t a = ref_load_int(p->a.dtype, p->a_data, a_row + k) - a_zero;
        int64_t b = ref_load_int(p->b.dtype, p->b_data, b_column + k * columns) - b_zero;
        sum += (uint32_t)(a * b);
    }
    return (int32_t)sum;
}

static int64_t
int_at(const KilnKernelArgs *args, uint32_t operand, int64_t i)
{
    return ref_load_int(ref_type(args, operand)->dtype, args->data[operand], i);
}

static float
float_at(const KilnKernelArgs *args, uint32_t operand, int64_t i)
{
    return (float)ref_load_float(ref_type(args, operand)->dtype, args->data[operand], i);
}

const char *
kiln_ref_matmul_integer(const KilnKernelArgs *args)
{
    const Product p = product_of(args, 1, 2);
    const int64_t n = ref_elements(&p.out);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < n; i++, ref_next(index, p.out.dims, p.out.rank)) {
        int64_t a_zero = 0, b_zero = 0;
        if (ref_has(args, 3))
            a_zero = int_at(args, 3, row_param(ref_type(args, 3), &p.out, index));
        if (ref_has(args, 4))
            b_zero = int_at(args, 4, column_param(ref_type(args, 4), &p.out, index));
        ((int32_t *)args->data[0])[i] = accumulate(&p, index, a_zero, b_zero);
    }
    return NULL;
}

enum {
    A = 1,
    A_SCALE,
    A_ZERO,
    B,
    B_SCALE,
    B_ZERO,
    Y_SCALE,
    Y_ZERO,
};

const char *
kiln_ref_qlinear_matmul(const KilnKernelArgs *args)
{
    const Product p = product_of(args, A, B);
    const int64_t n = ref_elements(&p.out);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < n; i++, ref_next(index, p.out.dims, p.out.rank)) {
        const int64_t row = row_param(ref_type(args, A_SCALE), &p.out, index);
        const int64_t column = column_param(ref_type(args, B_SCALE), &p.out, index);
        const int64_t y = row_param(ref_type(args, Y_SCALE), &p.out, index);
        const int64_t a_zero =
            int_at(args, A_ZERO, row_param(ref_type(args, A_ZERO), &p.out, index));
        const int64_t b_zero =
            int_at(args, B_ZERO, column_param(ref_type(args, B_ZERO), &p.out, index));
        const float factor = float_at(args, A_SCALE, row) * float_at(args, B_SCALE, column) /
                             float_at(args, Y_SCALE, y);
        const float steps = (float)accumulate(&p, index, a_zero, b_zero) * factor;
        kiln_ref_store_quantized(
            p.out.dtype, args->data[0], i, steps,
            int_at(args, Y_ZERO, row_param(ref_type(args, Y_ZERO), &p.out, index)));
    }
    return NULL;
}
