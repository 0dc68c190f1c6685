/* SPDX-License-Identifier: Apache-2.0 */
/* matmul (numpy's: operands of one dim, broadcast batches) and gemm. Sums run over the inner dim in
 * order; integers wrap. The right operand of floats may be stored as other floats. */
#include "backends/ref/elementwise/tail.h"
#include "backends/ref/gemm/inner_loops.h"
#include "backends/ref/kernel.h"
#include "ir/kernel.h"

/* A matrix in memory: elements between rows and between columns. */
typedef struct {
    const void *at;
    int64_t row, column;
} Matrix;

typedef struct {
    const RefRows *rows, *b_rows;
    size_t size, b_size;
    int64_t m, k, n;
    Matrix a, b;
    RefValue *left; /* scratch: one row of a */
    RefValue *sums; /* scratch: one row of the product */
} Product;

/* Row @i of a × b into the sums. */
static void
product_row(const Product *p, int64_t i)
{
    p->rows->load(p->left, (RefLane){ ref_at(p->a.at, i * p->a.row, p->size), p->a.column }, p->k);
    memset(p->sums, 0, (size_t)p->n * sizeof *p->sums);
    /* Both ways add the same terms in the same order; they differ in how they walk b. */
    if (p->b.row == 1) {
        for (int64_t j = 0; j < p->n; j++)
            p->b_rows->dot(&p->sums[j], p->left,
                           (RefLane){ ref_at(p->b.at, j * p->b.column, p->b_size), 1 }, p->k);
        return;
    }
    for (int64_t k = 0; k < p->k; k++)
        p->b_rows->add_scaled((RefSums){ p->sums, 1 },
                              (RefLane){ ref_at(p->b.at, k * p->b.row, p->b_size), p->b.column },
                              p->n, p->left[k]);
}

/* m, k and n of numpy's product: an operand of one dim is a row on the left, a column on the right.
 */
static void
matmul_dims(const KilnType *a, const KilnType *b, int64_t *m, int64_t *k, int64_t *n)
{
    *m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    *k = a->dims[a->rank - 1];
    *n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
}

size_t
kiln_ref_matmul_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    int64_t m, k, n;
    matmul_dims(&kiln_instr_operand(instr, 1)->type, &kiln_instr_operand(instr, 2)->type, &m, &k,
                &n);
    return (size_t)(k + n) * sizeof(RefValue);
}

/* The dims before the matrix; strides count matrices. */
static KilnType
batch_of(const KilnType *type)
{
    return kiln_type_make(type->dtype, type->rank > 2 ? type->rank - 2 : 0, type->dims);
}

const char *
kiln_ref_matmul(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0), *a = ref_type(args, 1), *b = ref_type(args, 2);
    Product p = { .rows = kiln_ref_rows(out->dtype),
                  .size = kiln_dtype_size(out->dtype),
                  .b_rows = kiln_ref_rows(b->dtype),
                  .b_size = kiln_dtype_size(b->dtype),
                  .left = args->scratch };
    matmul_dims(a, b, &p.m, &p.k, &p.n);
    p.sums = p.left + p.k;
    p.a = (Matrix){ NULL, p.k, 1 };
    p.b = (Matrix){ NULL, p.n, 1 };
    KilnType batch_a = batch_of(a), batch_b = batch_of(b);
    KilnType batch = kiln_type_make(out->dtype, MAX(batch_a.rank, batch_b.rank), out->dims);
    int64_t step_a[KILN_MAX_RANK], step_b[KILN_MAX_RANK], index[KILN_MAX_RANK] = { 0 };
    ref_broadcast_strides(&batch_a, &batch, step_a);
    ref_broadcast_strides(&batch_b, &batch, step_b);
    if (ref_elements(out) == 0)
        return NULL;
    int64_t to = 0;
    do {
        p.a.at = ref_at(args->data[1], ref_offset(index, step_a, batch.rank) * p.m * p.k, p.size);
        p.b.at = ref_at(args->data[2], ref_offset(index, step_b, batch.rank) * p.k * p.n, p.b_size);
        for (int64_t i = 0; i < p.m; i++, to += p.n) {
            product_row(&p, i);
            kiln_ref_store_sums(args, p.rows, to, p.sums, p.n);
        }
    } while (ref_next(index, batch.dims, batch.rank));
    return NULL;
}

size_t
kiln_ref_gemm_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    const KilnType *a = &kiln_instr_operand(instr, 1)->type;
    const KilnType *out = &kiln_instr_operand(instr, 0)->type;
    int64_t k = a->dims[kiln_instr_attrs(instr, gemm)->transA ? 0 : 1];
    return (size_t)(k + out->dims[1]) * sizeof(RefValue);
}

/* One row of the result from one of the product: alpha × sums + beta × c, rounded once. Integers
 * scaled by other factors than one are computed in double and truncated, saturating. */
static void
finish_row(const KilnKernelArgs *args, const Product *p, int64_t i, const int64_t *c_strides)
{
    const KilnInstrAttrs_gemm *attrs = kiln_instr_attrs(args->instr, gemm);
    KilnDType dtype = ref_type(args, 0)->dtype;
    void *row = ref_at_out(args->data[0], i * p->n, p->size);
    double alpha = (double)attrs->alpha, beta = (double)attrs->beta;
    const void *c = ref_has(args, 3) ? args->data[3] : NULL;
    bool scaled = alpha != 1 || (c && beta != 1);
    if (!kiln_dtype_is_float(dtype))
        p->rows->store(row, p->sums, p->n);
    for (int64_t j = 0; j < p->n; j++) {
        int64_t at = i * c_strides[0] + j * c_strides[1];
        if (kiln_dtype_is_float(dtype)) {
            p->sums[j].f = alpha * p->sums[j].f + (c ? beta * ref_load_float(dtype, c, at) : 0);
        } else if (scaled) {
            double sum = alpha * kiln_element_as_f64(dtype, row, j) +
                         (c ? beta * kiln_element_as_f64(dtype, c, at) : 0);
            kiln_element_store_f64(dtype, row, j, sum);
        } else if (c) {
            RefValue sum = ref_load(dtype, row, j), term = ref_load(dtype, c, at);
            sum.u += term.u;
            ref_store(dtype, row, j, sum);
        }
    }
    if (kiln_dtype_is_float(dtype))
        kiln_ref_store_sums(args, p->rows, i * p->n, p->sums, p->n);
}

/* operands: result, a, b, c (broadcast to the result; may be absent) */
const char *
kiln_ref_gemm(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_gemm *attrs = kiln_instr_attrs(args->instr, gemm);
    const KilnType *out = ref_type(args, 0), *a = ref_type(args, 1), *b = ref_type(args, 2);
    Product p = { .rows = kiln_ref_rows(out->dtype),
                  .size = kiln_dtype_size(out->dtype),
                  .b_rows = kiln_ref_rows(b->dtype),
                  .b_size = kiln_dtype_size(b->dtype),
                  .m = out->dims[0],
                  .k = a->dims[attrs->transA ? 0 : 1],
                  .n = out->dims[1],
                  .left = args->scratch };
    p.sums = p.left + p.k;
    p.a = (Matrix){ args->data[1], attrs->transA ? 1 : a->dims[1], attrs->transA ? a->dims[1] : 1 };
    p.b = (Matrix){ args->data[2], attrs->transB ? 1 : b->dims[1], attrs->transB ? b->dims[1] : 1 };
    int64_t c_strides[KILN_MAX_RANK] = { 0 };
    if (ref_has(args, 3))
        ref_broadcast_strides(ref_type(args, 3), out, c_strides);
    if (ref_elements(out) == 0)
        return NULL;
    for (int64_t i = 0; i < p.m; i++) {
        product_row(&p, i);
        finish_row(args, &p, i, c_strides);
    }
    return NULL;
}
