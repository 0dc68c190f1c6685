/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_integer, and matmul and gemm of quantized types without a tail: the instruction as
 * problems of integer_matmul.h. A right operand without batch dims is one matrix, and the batch
 * dims of the left one are rows. Operands: result, A, B, then two zero points, or of gemm the bias.
 */
#include "backends/cpu/integer/integer_args.h"
#include "backends/cpu/integer/integer_matmul.h"
#include "backends/cpu/integer/integer_store.h"
#include "backends/cpu/integer/kernel_integer_params.h"
#include "backends/cpu/kernel.h"

static bool
transposes_right(const KilnInstr *instr)
{
    return instr->kind == KILN_INSTR_gemm && kiln_instr_attrs(instr, gemm)->transB;
}

static bool
has_batches(const KilnInstr *instr)
{
    return cpu_type(instr, 2)->rank > 2;
}

static KilnIntegerMatmul
problem_of(const KilnInstr *instr)
{
    const KilnType *out = cpu_type(instr, 0), *a = cpu_type(instr, 1), *b = cpu_type(instr, 2);
    const bool transposed = transposes_right(instr);
    KilnIntegerMatmul p = { .k = a->dims[a->rank - 1],
                            .n = b->rank == 1 ? 1 : b->dims[b->rank - (transposed ? 2 : 1)],
                            .a_signed = a->dtype == KILN_DTYPE_i8,
                            .b_signed = b->dtype == KILN_DTYPE_i8 };
    if (has_batches(instr))
        p.m = a->rank == 1 ? 1 : a->dims[a->rank - 2];
    else
        p.m = p.n > 0 ? kiln_type_elements(out) / p.n : 0;
    p.b_row = transposed ? 1 : p.n;
    p.b_col = transposed ? p.k : 1;
    return p;
}

static bool
has_bytes(const KilnInstr *instr)
{
    return kiln_cpu_is_bytes(cpu_type(instr, 1)) && kiln_cpu_is_bytes(cpu_type(instr, 2)) &&
           kiln_cpu_is_countable(instr);
}

/* One zero point on the left; on the right one, or one per column. */
bool
kiln_cpu_matmul_integer_supports(const KilnInstr *instr)
{
    const KilnType *left = cpu_type(instr, 3), *right = cpu_type(instr, 4);
    if (!has_bytes(instr) || (left && kiln_type_elements(left) != 1))
        return false;
    return !right || kiln_type_elements(right) == 1 ||
           (right->rank == 1 && right->dims[0] == problem_of(instr).n);
}

bool
kiln_cpu_matmul_quantized_supports(const KilnInstr *instr)
{
    const KilnQuant *w = cpu_type(instr, 2)->quant;
    return has_bytes(instr) && kiln_cpu_scales_bytes(instr) &&
           (w->axis < 0 || w->n == problem_of(instr).n);
}

bool
kiln_cpu_gemm_quantized_supports(const KilnInstr *instr)
{
    const KilnInstrAttrs_gemm *attrs = kiln_instr_attrs(instr, gemm);
    const KilnType *bias = cpu_type(instr, 3);
    if (attrs->transA || attrs->alpha != 1 || attrs->beta != 1 ||
        !kiln_cpu_matmul_quantized_supports(instr))
        return false;
    const int64_t n = problem_of(instr).n;
    return !bias || (bias->dtype == KILN_DTYPE_i32 && !bias->layout && bias->rank > 0 &&
                     bias->dims[bias->rank - 1] == n && kiln_type_elements(bias) == n);
}

static size_t
scratch_of(const KilnInstr *instr, int threads)
{
    (void)threads;
    const KilnIntegerMatmul p = problem_of(instr);
    const bool packed = !has_batches(instr) && kiln_operand_is_const(instr, 2);
    return kiln_cpu_params_size(MAX(p.n, 1)) + (size_t)kiln_integer_matmul_scratch_size(&p, packed);
}

/* The first element of the matrix of @type that batch @at of the result has; @matrix elements each.
 */
static int64_t
matrix_at(const KilnType *type, const KilnType *out, int rank, int64_t at, int64_t matrix)
{
    const int own = MAX(type->rank - 2, 0);
    int64_t offset = 0, step = matrix;
    for (int d = rank - 1; d >= 0; d--) {
        const int64_t index = at % out->dims[d];
        const int from = d - (rank - own);
        const int64_t dim = from < 0 ? 1 : type->dims[from];
        at /= out->dims[d];
        offset += dim == 1 ? 0 : index * step;
        step *= dim;
    }
    return offset;
}

static const char *
run(const KilnKernelArgs *args, const KilnIntegerParams *params, const int32_t *bias)
{
    const KilnInstr *instr = args->instr;
    const KilnType *out = cpu_type(instr, 0), *a = cpu_type(instr, 1), *b = cpu_type(instr, 2);
    const KilnIntegerMatmul p = problem_of(instr);
    const int rank = has_batches(instr) ? out->rank - (a->rank > 1) - 1 : 0;
    if (p.m * p.n == 0)
        return NULL;
    const int64_t batches = has_batches(instr) ? kiln_type_elements(out) / (p.m * p.n) : 1;
    const KilnIntegerArgs all = kiln_cpu_integer_args(args, params, bias, MAX(p.n, 1));
    for (int64_t i = 0; i < batches; i++) {
        KilnIntegerArgs one = all;
        one.left += matrix_at(a, out, rank, i, p.m * p.k);
        if (!all.packed)
            one.right += matrix_at(b, out, rank, i, p.k * p.n);
        one.out = (char *)all.out + (size_t)(i * p.m * p.n) * kiln_integer_out_size(&params->store);
        kiln_integer_matmul_run(&p, &one);
    }
    return NULL;
}

const char *
kiln_cpu_matmul_integer(const KilnKernelArgs *args)
{
    const KilnIntegerParams params = kiln_cpu_zero_params(args);
    return run(args, &params, NULL);
}

const char *
kiln_cpu_matmul_quantized(const KilnKernelArgs *args)
{
    const KilnIntegerParams params = kiln_cpu_scale_params(args);
    return run(args, &params, NULL);
}

const char *
kiln_cpu_gemm_quantized(const KilnKernelArgs *args)
{
    const KilnIntegerParams params = kiln_cpu_scale_params(args);
    return run(args, &params, cpu_type(args->instr, 3) ? args->data[3] : NULL);
}

/* --- packed weights: of one matrix --- */

static size_t
packed_of(const KilnInstr *instr)
{
    const KilnIntegerMatmul p = problem_of(instr);
    return has_batches(instr) ? 0 : (size_t)kiln_integer_matmul_packed_size(&p);
}

static const char *
pack(const KilnInstr *instr, const void *const *data, void *packed, KilnSlice slice)
{
    const KilnIntegerMatmul p = problem_of(instr);
    kiln_integer_matmul_pack(&p, data[2], packed, slice);
    return NULL;
}

KILN_CPU_PACKS(matmul_integer)
KILN_CPU_PACKS(matmul_quantized)
KILN_CPU_PACKS(gemm_quantized)
