/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_nbits of the cpu target: against the reference, and with the bits of a product with the
 * floats that the weights stand for. */
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/gemm_nbits.h"
#include "graph/kiln-types.h"
#include "graph/type.h"
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <string.h>

#define NO_ZEROS KILN_DTYPE_string

typedef struct {
    int64_t m, n, k, bits, block;
    KilnDType zeros; /* NO_ZEROS: the middle of the range */
} Problem;

static void
fill_bytes(RefCase *c, uint32_t seed)
{
    const uint32_t i = c->instr.n_operands - 1;
    Random random = { seed };
    for (int64_t k = 0; k < kiln_type_bytes(&c->buffers[i].type); k++)
        ((uint8_t *)c->data[i])[k] = (uint8_t)below(&random, 256);
}

static RefCase *
case_of(const Problem *p)
{
    const int64_t blocks = (p->k - 1) / p->block + 1;
    RefCase *c = case_new(KILN_INSTR_matmul_nbits);
    CASE_ATTRS(c, matmul_nbits)->K = p->k;
    CASE_ATTRS(c, matmul_nbits)->N = p->n;
    CASE_ATTRS(c, matmul_nbits)->bits = p->bits;
    CASE_ATTRS(c, matmul_nbits)->block_size = p->block;
    case_out(c, KILN_DTYPE_f32, DIMS(p->m, p->n));
    cpu_in(c, DIMS(p->m, p->k));
    case_in(c, KILN_DTYPE_u8, DIMS(p->n, blocks, p->block * p->bits / 8), NULL);
    fill_bytes(c, 1);
    cpu_in(c, DIMS(p->n, blocks));
    if (p->zeros == KILN_DTYPE_f32) {
        cpu_in(c, DIMS(p->n, blocks));
    } else if (p->zeros == KILN_DTYPE_u8) {
        case_in(c, KILN_DTYPE_u8, DIMS(p->n, (blocks * p->bits - 1) / 8 + 1), NULL);
        fill_bytes(c, 2);
    } else {
        case_absent(c);
    }
    return c;
}

/* The weights as floats, [K, N]. */
static float *
floats_of(const RefCase *c, const Problem *p)
{
    float *w = g_new(float, p->k * p->n);
    const int64_t blocks = (p->k - 1) / p->block + 1, row = (blocks * p->bits - 1) / 8 + 1;
    const int mask = (1 << p->bits) - 1;
    for (int64_t i = 0; i < p->n * p->k; i++) {
        const int64_t n = i / p->k, k = i % p->k, b = n * blocks + k / p->block;
        const int64_t bit = (b * p->block + k % p->block) * p->bits;
        const int number = ((uint8_t *)c->data[2])[bit / 8] >> bit % 8 & mask;
        const int64_t at = k / p->block * p->bits;
        float zero = (float)(1 << (p->bits - 1));
        if (p->zeros == KILN_DTYPE_f32)
            zero = ((float *)c->data[4])[b];
        else if (p->zeros == KILN_DTYPE_u8)
            zero = (float)(((uint8_t *)c->data[4])[n * row + at / 8] >> at % 8 & mask);
        w[k * p->n + n] = ((float)number - zero) * ((float *)c->data[3])[b];
    }
    return w;
}

/* Blocks and blocks of depth have whole words: sums have the order of those of floats. */
static void
has_the_bits_of_floats(const Problem *p)
{
    g_autoptr(RefCase) c = case_of(p);
    g_autoptr(RefCase) floats = case_new(KILN_INSTR_matmul);
    g_autofree float *w = floats_of(c, p);
    case_out(floats, KILN_DTYPE_f32, DIMS(p->m, p->n));
    cpu_in(floats, DIMS(p->m, p->k));
    cpu_in(floats, DIMS(p->k, p->n));
    memcpy(floats->data[2], w, (size_t)(p->k * p->n) * sizeof *w);
    void *x[CASE_MAX_OPERANDS] = { NULL }, *y[CASE_MAX_OPERANDS] = { NULL };
    cr_assert_null(cpu_run(c, &(CpuCall){ .threads = 2, .packed = true }, x));
    cr_assert_null(cpu_run(floats, &(CpuCall){ .threads = 1, .packed = true }, y));
    cr_assert_eq(memcmp(x[0], y[0], (size_t)(p->m * p->n) * 4), 0, "%d rows, %d bits, zeros %d",
                 (int)p->m, (int)p->bits, (int)p->zeros);
    cpu_free(x);
    cpu_free(y);
}

/* The bound that the shape function sets on the bytes of the packed form holds
 * (graph/infer/quant.c).
 */
Test(cpu_nbits, packed_forms_have_no_more_bytes_than_the_graph_counts)
{
    static const KilnGemmZeros zeros[] = { KILN_GEMM_ZEROS_MIDDLE, KILN_GEMM_ZEROS_U8,
                                           KILN_GEMM_ZEROS_F32 };
    static const int64_t extents[] = { 1, 15, 33, 70, 1000001, INT32_MAX };
    static const int64_t blocks[] = { 4, 12, 40, 1024, 1073741824 };
    for (int i = 0; i < 270; i++) {
        const int64_t n = extents[i % 6], block = blocks[i / 6 % 5],
                      bits = INT64_C(2) << i / 30 % 3;
        for (int64_t k = 1; k <= 10000; k += 3333) {
            const int64_t most =
                (n + 32) * ((k - 1) / block + 1) * (8 + 4 * ((block * bits - 1) / 32 + 1));
            KilnCpuGemm gemm = kiln_cpu_gemm_dense(1, n, k);
            gemm.b_storage = KILN_GEMM_NBITS;
            gemm.nbits = (KilnGemmNbits){ block, (int)bits, zeros[i / 90] };
            const int64_t bytes = kiln_cpu_gemm_nbits_size(&gemm);
            cr_assert(bytes > 0 && bytes <= most, "%d %d, %d bits, blocks of %d: %g", (int)n,
                      (int)k, (int)bits, (int)block, (double)bytes);
        }
    }
    KilnCpuGemm last = kiln_cpu_gemm_dense(1, 870000000, 870000000); /* the graph takes it */
    last.b_storage = KILN_GEMM_NBITS;
    last.nbits = (KilnGemmNbits){ 1, 8, KILN_GEMM_ZEROS_F32 };
    cr_assert(kiln_cpu_gemm_nbits_size(&last) >= INT64_C(870000000) * 870000000 * 12);
}

static const KilnDType zeros_of[] = { NO_ZEROS, KILN_DTYPE_u8, KILN_DTYPE_f32 };

Test(cpu_nbits, has_the_bits_of_a_product_of_floats)
{
    for (int64_t m = 1; m <= 9; m++) {
        for (int64_t bits = 2; bits <= 8; bits *= 2) {
            for (int z = 0; z < 3; z++)
                has_the_bits_of_floats(&(Problem){ m, 200, 512, bits, 32, zeros_of[z] });
        }
    }
}

static double
tolerance_of(const Problem *p)
{
    const double most = 3.0 * 3.0 * (double)(1 << p->bits) * (double)p->k;
    return most * 0x1p-23;
}

/* Blocks of any size, extents around those of panels, and weights that come with the run. */
Test(cpu_nbits, agrees_with_the_reference)
{
    static const int64_t blocks[] = { 4, 12, 16, 40, 256, 300, 1024 };
    Random r = { 7 };
    for (int i = 0; i < 60; i++) {
        const Problem p = { .m = 1 + below(&r, 8),
                            .n = 1 + below(&r, 70),
                            .k = 1 + below(&r, 700),
                            .bits = INT64_C(2) << i % 3,
                            .block = blocks[i % 7],
                            .zeros = zeros_of[below(&r, 3)] };
        g_autoptr(RefCase) c = case_of(&p);
        g_autofree char *what =
            g_strdup_printf("%d %d %d, %d bits, blocks of %d, zeros %d", (int)p.m, (int)p.n,
                            (int)p.k, (int)p.bits, (int)p.block, (int)p.zeros);
        cpu_agrees(c, (Tolerance){ tolerance_of(&p), 1e-6 }, what);
    }
}

Test(cpu_nbits, bias_residual_and_activation)
{
    for (int64_t m = 1; m <= 6; m += 5) {
        const Problem p = { m, 70, 600, 4, 32, KILN_DTYPE_u8 };
        g_autoptr(RefCase) c = case_of(&p);
        CASE_ATTRS(c, matmul_nbits)->activation = "relu";
        cpu_in(c, DIMS(p.n));
        cpu_in(c, DIMS(m, p.n));
        cpu_agrees(c, (Tolerance){ tolerance_of(&p), 1e-6 }, "tail");
    }
}

Test(cpu_nbits, a_scale_that_is_nan_reaches_its_column_alone)
{
    const Problem p = { 2, 20, 64, 4, 32, NO_ZEROS };
    g_autoptr(RefCase) c = case_of(&p);
    ((float *)c->data[3])[7 * 2 + 1] = NAN;
    cpu_agrees(c, (Tolerance){ tolerance_of(&p), 1e-6 }, "NaN");
    cr_assert(isnan(((float *)c->data[0])[7]));
    cr_assert(!isnan(((float *)c->data[0])[6]));
}
