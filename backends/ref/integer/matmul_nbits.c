/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_nbits: a product with weights of 2, 4 or 8 bits. The inner dim is cut into blocks; each
 * block of a column has a scale and a zero point, by default the middle of the range.
 *
 *     w[k, n] = (number - zero point) × scale        each step rounded to f32
 *     y[m, n] = tail(bias[n] + sum over k of a[m, k] × w[k, n])
 *
 * Numbers lie in the bytes of b[n, block], the lowest bits first, and zero points of bytes in those
 * of a row. Products add up in f64 in the order of k.
 * Operands: result, a, b, scales, zero points, bias, residual. */
#include "backends/ref/elementwise/tail.h"
#include "backends/ref/gemm/inner_loops.h"
#include "backends/ref/kernel.h"

typedef struct {
    const KilnKernelArgs *args;
    int64_t k, n, bits, block, blocks;
} Product;

static Product
product_of(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_matmul_nbits *attrs = kiln_instr_attrs(args->instr, matmul_nbits);
    return (Product){ args,        attrs->K,          attrs->N,
                      attrs->bits, attrs->block_size, (attrs->K - 1) / attrs->block_size + 1 };
}

/* Number @i of those in @bytes. */
static int
number_at(const uint8_t *bytes, int64_t bits, int64_t i)
{
    return bytes[i * bits / 8] >> i * bits % 8 & ((1 << bits) - 1);
}

static float
zero_of(const Product *p, int64_t n, int64_t block)
{
    if (!ref_has(p->args, 4))
        return (float)(1 << (p->bits - 1));
    const int64_t row = ref_type(p->args, 4)->dims[1];
    if (ref_type(p->args, 4)->dtype == KILN_DTYPE_u8)
        return (float)number_at((const uint8_t *)p->args->data[4] + n * row, p->bits, block);
    return ((const float *)p->args->data[4])[n * row + block];
}

/* Column @n of the weights. */
static void
fill_column(const Product *p, int64_t n, float *column)
{
    const float *scales = p->args->data[3];
    const uint8_t *bytes =
        (const uint8_t *)p->args->data[2] + n * p->blocks * p->block * p->bits / 8;
    for (int64_t k = 0; k < p->k; k++) {
        const int64_t block = k / p->block;
        const float less = (float)number_at(bytes, p->bits, k) - zero_of(p, n, block);
        column[k] = less * scales[n * p->blocks + block];
    }
}

size_t
kiln_ref_matmul_nbits_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    const KilnInstrAttrs_matmul_nbits *attrs = kiln_instr_attrs(instr, matmul_nbits);
    return (size_t)attrs->K * sizeof(float);
}

const char *
kiln_ref_matmul_nbits(const KilnKernelArgs *args)
{
    const Product p = product_of(args);
    const RefRows *rows = kiln_ref_rows(KILN_DTYPE_f32);
    const int64_t m = ref_elements(ref_type(args, 1)) / p.k;
    float *column = args->scratch;
    for (int64_t n = 0; n < p.n && m > 0; n++) {
        fill_column(&p, n, column);
        for (int64_t i = 0; i < m; i++) {
            const float *a = (const float *)args->data[1] + i * p.k;
            RefValue sum = { .f = 0 };
            for (int64_t k = 0; k < p.k; k++)
                sum.f += (double)a[k] * (double)column[k];
            if (ref_has(args, 5))
                sum.f += (double)((const float *)args->data[5])[n];
            kiln_ref_store_sums(args, rows, i * p.n + n, &sum, 1);
        }
    }
    return NULL;
}
