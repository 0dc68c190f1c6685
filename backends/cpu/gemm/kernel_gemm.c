/* SPDX-License-Identifier: Apache-2.0 */
/* matmul and gemm in f32: the instruction's types and attributes as a problem of gemm.h. The right
 * operand is packed where it is a constant of one matrix, or of many in 16 bits.
 * Operands: result, A, B, of gemm the bias, the residual. */
#include "backends/cpu/cost.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/stack/kernel_tail.h"
#include "ir/tail.h"

#include <string.h>

/* --- both --- */

bool
kiln_cpu_gemm_supports(const KilnInstr *instr)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnType *type = cpu_type(instr, i);
        bool stored =
            type && i == 2 && (type->dtype == KILN_DTYPE_bf16 || type->dtype == KILN_DTYPE_f16);
        if (type && (type->layout || (type->dtype != KILN_DTYPE_f32 && !stored)))
            return false;
    }
    return kiln_cpu_tail_supports(instr);
}

static KilnGemmStorage
storage_of(const KilnType *type)
{
    switch (type->dtype) {
    case KILN_DTYPE_bf16:
        return KILN_GEMM_BF16;
    case KILN_DTYPE_f16:
        return KILN_GEMM_F16;
    default:
        return KILN_GEMM_F32;
    }
}

/* Matrices that the right operand is made of. */
static int64_t
count_right(const KilnInstr *instr)
{
    const KilnType *type = cpu_type(instr, 2);
    int64_t n = 1;
    for (int d = 0; d < type->rank - 2; d++)
        n *= type->dims[d];
    return n;
}

/* Whether the right operand is packed where it is constant. Several matrices in f32 are read in
 * place, or packed by each run, nearly as fast; in 16 bits all of it would be converted by each. */
static bool
packs_right(const KilnInstr *instr, const KilnCpuGemm *g)
{
    bool narrow = g->b_storage != KILN_GEMM_F32 && count_right(instr) > 0 && g->k > 0 && g->n > 0;
    for (int d = 0; d < g->rank; d++) {
        if (g->b_batch[d] != 0)
            return narrow;
    }
    return true;
}

/* Forms of packed weights are numbered as those of gemm.h, without the first, which is no form of
 * its own. */
static uint32_t
form_of(const KilnCpuGemm *g)
{
    return kiln_cpu_gemm_best_form(g) - KILN_CPU_GEMM_STRAIGHT;
}

static KilnCpuGemmForm
gemm_form(uint32_t form)
{
    return (KilnCpuGemmForm)(KILN_CPU_GEMM_STRAIGHT + form);
}

/* Bytes of one packed matrix of the right operand, and of what keeps the next one aligned. */
static int64_t
packed_matrix(const KilnCpuGemm *g)
{
    return round_up(kiln_cpu_gemm_pack_b_size(g), KILN_CPU_LINE);
}

/* A right operand that is not known to be constant may still be packed when the program is bound.
 */
static size_t
scratch_of(const KilnInstr *instr, KilnCpuGemm g, uint32_t form, int threads)
{
    size_t plain = (size_t)kiln_cpu_gemm_scratch_size(&g, threads);
    if (!packs_right(instr, &g))
        return plain;
    g.b_packed = true;
    g.form = gemm_form(form);
    size_t packed = (size_t)kiln_cpu_gemm_scratch_size(&g, threads);
    return kiln_operand_is_const(instr, 2) ? packed : MAX(packed, plain);
}

static void
run(const KilnKernelArgs *args, KilnCpuGemm *g)
{
    const KilnInstr *instr = args->instr;
    uint32_t residual = kiln_tail_operand(instr->kind);
    g->b_packed = args->packed != NULL;
    g->form = args->packed ? gemm_form(args->form) : KILN_CPU_GEMM_BEST;
    if (args->fitted)
        g->b_storage = KILN_GEMM_EXACT;
    KilnCpuGemmArgs a = { .a = args->data[1],
                          .b = args->packed ? args->packed : args->data[2],
                          .out = args->data[0],
                          .bias = residual > 3 && cpu_type(instr, 3) ? args->data[3] : NULL,
                          .residual = cpu_type(instr, residual) ? args->data[residual] : NULL,
                          .scratch = args->scratch,
                          .threads = args->threads };
    kiln_cpu_gemm_run(g, &a);
}

static double
cost_of(KilnCpuGemm g)
{
    double terms[KILN_CPU_TERMS];
    g.b_packed = true;
    kiln_matmul_terms(&g, terms);
    return kiln_cpu_cost(KILN_CPU_COST_matmul, terms);
}

/* --- gemm --- */

static KilnCpuGemm
gemm_problem(const KilnInstr *instr)
{
    const KilnInstrAttrs_gemm *attrs = kiln_instr_attrs(instr, gemm);
    const KilnType *out = cpu_type(instr, 0), *a = cpu_type(instr, 1), *bias = cpu_type(instr, 3);
    int64_t m = out->dims[0], n = out->dims[1], k = a->dims[attrs->transA ? 0 : 1];
    KilnCpuGemm g = kiln_cpu_gemm_dense(m, n, k);
    if (attrs->transA) {
        g.a_row = 1;
        g.a_col = m;
    }
    if (attrs->transB) {
        g.b_row = 1;
        g.b_col = k;
    }
    g.tail = kiln_cpu_tail_of(instr);
    g.b_storage = storage_of(cpu_type(instr, 2));
    g.alpha = attrs->alpha;
    g.beta = attrs->beta;
    if (bias) { /* broadcast to the result, dims aligned at the right */
        int64_t cols = bias->rank > 0 ? bias->dims[bias->rank - 1] : 1;
        g.bias_col = cols == 1 ? 0 : 1;
        g.bias_row = bias->rank < 2 || bias->dims[0] == 1 ? 0 : cols;
    }
    return g;
}

uint32_t
kiln_cpu_gemm_form(const KilnInstr *instr)
{
    KilnCpuGemm g = gemm_problem(instr);
    return form_of(&g);
}

size_t
kiln_cpu_gemm_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    return scratch_of(instr, gemm_problem(instr), form, threads);
}

size_t
kiln_cpu_gemm_packed(const KilnInstr *instr, uint32_t form)
{
    KilnCpuGemm g = gemm_problem(instr);
    g.form = gemm_form(form);
    return (size_t)kiln_cpu_gemm_pack_b_size(&g);
}

const char *
kiln_cpu_gemm_prepack(const KilnInstr *instr, uint32_t form, const void *const *data, void *packed,
                      KilnSlice slice)
{
    KilnCpuGemm g = gemm_problem(instr);
    g.form = gemm_form(form);
    kiln_cpu_gemm_pack_b(&g, data[2], packed, slice);
    return NULL;
}

double
kiln_cpu_gemm_cost(const KilnInstr *instr)
{
    return cost_of(gemm_problem(instr));
}

const char *
kiln_cpu_gemm(const KilnKernelArgs *args)
{
    KilnCpuGemm g = gemm_problem(args->instr);
    run(args, &g);
    return NULL;
}

/* --- matmul --- */

/* Strides of an operand's batch dims as the result's @rank batch dims see them: 0 is a broadcast.
 */
static void
batch_strides(const KilnType *type, int64_t matrix, int rank, int64_t *strides)
{
    int own = type->rank > 2 ? type->rank - 2 : 0;
    int64_t step = matrix;
    for (int d = rank - 1; d >= 0; d--) {
        int from = d - (rank - own);
        int64_t dim = from < 0 ? 1 : type->dims[from];
        strides[d] = dim == 1 ? 0 : step;
        step *= dim;
    }
}

/* A vector counts as one row on the left, as one column on the right. */
static KilnCpuGemm
matmul_problem(const KilnInstr *instr)
{
    const KilnType *out = cpu_type(instr, 0), *a = cpu_type(instr, 1), *b = cpu_type(instr, 2);
    int64_t m = a->rank > 1 ? a->dims[a->rank - 2] : 1, n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    int64_t k = a->dims[a->rank - 1];
    KilnCpuGemm g = kiln_cpu_gemm_dense(m, n, k);
    g.tail = kiln_cpu_tail_of(instr);
    g.b_storage = storage_of(b);
    g.rank = out->rank - (a->rank > 1) - (b->rank > 1);
    int64_t step = m * n;
    for (int d = g.rank - 1; d >= 0; d--) {
        g.dims[d] = out->dims[d];
        g.out_batch[d] = step;
        step *= out->dims[d];
    }
    batch_strides(a, m * k, g.rank, g.a_batch);
    batch_strides(b, k * n, g.rank, g.b_batch);
    return g;
}

bool
kiln_cpu_matmul_supports(const KilnInstr *instr)
{
    return kiln_cpu_gemm_supports(instr);
}

uint32_t
kiln_cpu_matmul_form(const KilnInstr *instr)
{
    KilnCpuGemm g = matmul_problem(instr);
    return form_of(&g);
}

size_t
kiln_cpu_matmul_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    return scratch_of(instr, matmul_problem(instr), form, threads);
}

size_t
kiln_cpu_matmul_packed(const KilnInstr *instr, uint32_t form)
{
    KilnCpuGemm g = matmul_problem(instr);
    g.form = gemm_form(form);
    return packs_right(instr, &g) ? (size_t)(count_right(instr) * packed_matrix(&g)) : 0;
}

const char *
kiln_cpu_matmul_prepack(const KilnInstr *instr, uint32_t form, const void *const *data,
                        void *packed, KilnSlice slice)
{
    KilnCpuGemm g = matmul_problem(instr);
    g.form = gemm_form(form);
    int64_t n = count_right(instr), source = kiln_gemm_element_size(g.b_storage) * g.k * g.n;
    for (int64_t i = 0; i < n; i++)
        kiln_cpu_gemm_pack_b(&g, (const char *)data[2] + i * source,
                             (char *)packed + i * packed_matrix(&g), slice);
    return NULL;
}

double
kiln_cpu_matmul_cost(const KilnInstr *instr)
{
    return cost_of(matmul_problem(instr));
}

const char *
kiln_cpu_matmul(const KilnKernelArgs *args)
{
    KilnCpuGemm g = matmul_problem(args->instr);
    g.form = gemm_form(args->form);
    for (int d = 0; args->packed && d < g.rank; d++) {
        if (g.b_batch[d] != 0)
            g.b_batch[d] = g.b_batch[d] / (g.k * g.n) *
                           (packed_matrix(&g) / kiln_gemm_element_size(g.b_storage));
    }
    run(args, &g);
    return NULL;
}

/* --- packed in fewer bits --- */

static KilnCpuGemm
problem(const KilnInstr *instr, uint32_t form)
{
    KilnCpuGemm g = instr->kind == KILN_INSTR_gemm ? gemm_problem(instr) : matmul_problem(instr);
    g.form = gemm_form(form);
    return g;
}

static bool
suits(const KilnInstr *instr)
{
    KilnCpuGemm g = problem(instr, 0);
    return kiln_cpu_gemm_exact_suits(&g);
}

/* More rows than suit are cut into other panels than those of floats. */
static size_t
scratch_fitted(const KilnInstr *instr, uint32_t form, int threads)
{
    KilnCpuGemm g = problem(instr, form);
    g.b_packed = true;
    g.b_storage = KILN_GEMM_EXACT;
    return (size_t)kiln_cpu_gemm_scratch_size(&g, threads);
}

static size_t
measure(const KilnInstr *instr, uint32_t form, const void *const *data, int threads,
        GByteArray *head)
{
    KilnCpuGemm g = problem(instr, form);
    int64_t size = kiln_cpu_gemm_exact_head_size(&g);
    if (size == 0)
        return 0;
    g_byte_array_set_size(head, (guint)size);
    memset(head->data, 0, (size_t)size);
    return (size_t)kiln_cpu_gemm_exact_fit(&g, data[2], head->data, threads);
}

static void
pack_fitted(const KilnInstr *instr, uint32_t form, const void *const *data, void *packed,
            KilnSlice slice)
{
    KilnCpuGemm g = problem(instr, form);
    kiln_cpu_gemm_exact_pack(&g, data[2], packed, slice);
}

static bool
is_sound(const KilnInstr *instr, uint32_t form, const void *packed, size_t bytes)
{
    KilnCpuGemm g = problem(instr, form);
    return kiln_cpu_gemm_exact_head_size(&g) > 0 &&
           kiln_cpu_gemm_exact_is_sound(&g, packed, (int64_t)bytes);
}

const KilnFitted kiln_cpu_gemm_fitted = { suits, scratch_fitted, measure, pack_fitted, is_sound };
const KilnFitted kiln_cpu_matmul_fitted = { suits, scratch_fitted, measure, pack_fitted, is_sound };
