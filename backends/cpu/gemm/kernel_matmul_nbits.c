/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_nbits: the instruction's types and attributes as a problem of gemm.h, whose right operand
 * has numbers of few bits. Constant weights are packed once; others by each run, into its scratch.
 * Operands: result, A, the numbers, scales, zero points, bias, residual. */
#include "backends/cpu/extents.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/gemm_nbits.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/stack/kernel_tail.h"
#include "ir/kernel.h"

enum {
    A = 1,
    NUMBERS,
    SCALES,
    ZEROS,
    BIAS,
    RESIDUAL,
};

bool
kiln_cpu_matmul_nbits_supports(const KilnInstr *instr)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnType *type = cpu_type(instr, i);
        if (type && type->layout)
            return false;
    }
    return kiln_cpu_tail_supports(instr);
}

static KilnCpuGemm
problem_of(const KilnInstr *instr)
{
    const KilnInstrAttrs_matmul_nbits *attrs = kiln_instr_attrs(instr, matmul_nbits);
    const KilnType *zeros = cpu_type(instr, ZEROS);
    const int64_t rows = kiln_type_elements(cpu_type(instr, A)) / attrs->K;
    KilnCpuGemm g = kiln_cpu_gemm_dense(rows, attrs->N, attrs->K);
    g.tail = kiln_cpu_tail_of(instr);
    g.bias_col = 1;
    g.b_storage = KILN_GEMM_NBITS;
    g.nbits = (KilnGemmNbits){ .block = attrs->block_size,
                               .bits = (int)attrs->bits,
                               .zeros = !zeros                          ? KILN_GEMM_ZEROS_MIDDLE
                                        : zeros->dtype == KILN_DTYPE_u8 ? KILN_GEMM_ZEROS_U8
                                                                        : KILN_GEMM_ZEROS_F32 };
    return g;
}

/* Whether all that the packed form has is constant. */
static bool
is_constant(const KilnInstr *instr)
{
    return kiln_operand_is_const(instr, NUMBERS) && kiln_operand_is_const(instr, SCALES) &&
           (!cpu_type(instr, ZEROS) || kiln_operand_is_const(instr, ZEROS));
}

size_t
kiln_cpu_matmul_nbits_packed(const KilnInstr *instr, uint32_t form)
{
    (void)form;
    KilnCpuGemm g = problem_of(instr);
    return (size_t)kiln_cpu_gemm_nbits_size(&g);
}

size_t
kiln_cpu_matmul_nbits_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    KilnCpuGemm g = problem_of(instr);
    const int64_t packed =
        is_constant(instr) ? 0 : round_up(kiln_cpu_gemm_nbits_size(&g), KILN_CPU_LINE);
    return (size_t)(packed + kiln_cpu_gemm_scratch_size(&g, threads));
}

static KilnGemmNbitsSource
source_of(const void *const *data, const KilnInstr *instr)
{
    return (KilnGemmNbitsSource){ data[NUMBERS], data[SCALES],
                                  cpu_type(instr, ZEROS) ? data[ZEROS] : NULL };
}

const char *
kiln_cpu_matmul_nbits_prepack(const KilnInstr *instr, uint32_t form, const void *const *data,
                              void *packed, KilnSlice slice)
{
    (void)form;
    KilnCpuGemm g = problem_of(instr);
    const KilnGemmNbitsSource source = source_of(data, instr);
    kiln_cpu_gemm_nbits_pack(&g, &source, packed, slice);
    return NULL;
}

/* --- weights that are not constant --- */

enum {
    PACK_TASKS = 16
};

typedef struct {
    const KilnCpuGemm *gemm;
    KilnGemmNbitsSource source;
    void *packed;
} Packing;

static void
pack_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Packing *p = data;
    kiln_cpu_gemm_nbits_pack(p->gemm, &p->source, p->packed, (KilnSlice){ task, PACK_TASKS });
}

const char *
kiln_cpu_matmul_nbits(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    KilnCpuGemm g = problem_of(instr);
    KilnCpuGemmArgs a = { .a = args->data[A],
                          .b = args->packed,
                          .out = args->data[0],
                          .bias = cpu_type(instr, BIAS) ? args->data[BIAS] : NULL,
                          .residual = cpu_type(instr, RESIDUAL) ? args->data[RESIDUAL] : NULL,
                          .scratch = args->scratch,
                          .threads = args->threads };
    if (!args->packed) {
        const Packing packing = { &g, source_of((const void *const *)args->data, instr),
                                  args->scratch };
        kiln_cpu_parallel(PACK_TASKS, args->threads, pack_task, &packing);
        a.b = args->scratch;
        a.scratch += round_up(kiln_cpu_gemm_nbits_size(&g), KILN_CPU_LINE) / 4;
    }
    kiln_cpu_gemm_run(&g, &a);
    return NULL;
}
