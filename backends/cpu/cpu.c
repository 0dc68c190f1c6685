/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu target's table, generated from kernels.def. Only the instruction set is found at run
 * time, once. */
#include "backends/cpu/cpu.h"

#include "backends/cpu/cost.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/strided_operands.h"

#include <pthread.h>

bool
kiln_cpu_plain_supports(const KilnInstr *instr)
{
    return cpu_all_plain(instr, KILN_DTYPE_f32);
}

/* Short spellings of the table. */
#define D(id) (1u << KILN_DTYPE_##id)
#define AT(i) (1u << (i))
#define SIGNED (D(i8) | D(i16) | D(i32) | D(i64))
#define INTS (SIGNED | D(u8) | D(u16) | D(u32) | D(u64))
#define NUMBERS (INTS | D(f64)) /* beside f32, which has kernels of its own */
#define FLOATS (D(f16) | D(bf16) | D(f32) | D(f64))
#define USUAL (NUMBERS | FLOATS | D(bool)) /* all but those of few bits */
#define ITEMS (D(sequence) | D(optional) | D(map))
#define ALL ((1u << KILN_N_DTYPES) - 1 - D(string) - ITEMS)
#define MOVED (ALL | D(string)) /* by their bytes */
#define TENSORS (MOVED & ~(D(sequence) | D(optional) | D(map)))

#define ROW(instr_, dtypes_, fn, ...)                                                              \
    { .instr = KILN_INSTR_##instr_,                                                                \
      .dtypes = (dtypes_),                                                                         \
      .name = "cpu:" #fn,                                                                          \
      .run = kiln_cpu_##fn,                                                                        \
      .takes_strided = kiln_cpu_takes_strided,                                                     \
      __VA_ARGS__ },
static const KilnKernel kernels[] = {
#define KERNEL(instr, dtypes, fn) ROW(instr, dtypes, fn, )
#define KERNEL_IF(instr, dtypes, fn, test) ROW(instr, dtypes, fn, .supports = kiln_cpu_##test)
#define KERNEL_MOVES(instr, dtypes, fn, test, moved)                                               \
    ROW(instr, dtypes, fn, .supports = kiln_cpu_##test, .any_address = (moved))
#define KERNEL_ANY_LAYOUT(instr, dtypes, fn, test, moved)                                          \
    ROW(instr, dtypes, fn, .layout = "*", .supports = kiln_cpu_##test, .any_address = (moved))
#define KERNEL_QUANTIZED(instr, dtypes, fn, test)                                                  \
    ROW(instr, dtypes, fn, .supports = kiln_cpu_##test, .quantized = true)
#define KERNEL_SCRATCH(instr, dtypes, fn, test, bytes)                                             \
    ROW(instr, dtypes, fn, .supports = kiln_cpu_##test, .scratch_bytes = kiln_cpu_##bytes)
#define KERNEL_WEIGHED(instr, dtypes, fn, test)                                                    \
    ROW(instr, dtypes, fn, .supports = kiln_cpu_##test, .cost = kiln_cpu_##fn##_cost)
#define KERNEL_TIMED(instr, dtypes, fn, test, bytes)                                               \
    ROW(instr, dtypes, fn, .supports = kiln_cpu_##test, .scratch_bytes = kiln_cpu_##bytes,         \
        .cost = kiln_cpu_##fn##_cost)
#define KERNEL_REDUCES(instr, dtypes, fn, test, bytes)                                             \
    ROW(instr, dtypes, fn, .supports = kiln_cpu_##test, .scratch_bytes = kiln_cpu_##bytes,         \
        .of_equal = kiln_cpu_##fn##_equal)
#define KERNEL_REDUCES_TIMED(instr, dtypes, fn, test, bytes)                                       \
    ROW(instr, dtypes, fn, .supports = kiln_cpu_##test, .scratch_bytes = kiln_cpu_##bytes,         \
        .cost = kiln_cpu_##fn##_cost, .of_equal = kiln_cpu_##fn##_equal)
#define PACKED(fn, packs_)                                                                         \
    .supports = kiln_cpu_##fn##_supports, .scratch_bytes = kiln_cpu_##fn##_scratch,                \
    .packed_bytes = kiln_cpu_##fn##_packed, .pack = kiln_cpu_##fn##_prepack, .packs = (packs_)
#define KERNEL_PACKED(instr, dtypes, fn, packs_) ROW(instr, dtypes, fn, PACKED(fn, packs_))
#define KERNEL_PACKED_QUANTIZED(instr, dtypes, fn, packs_)                                         \
    ROW(instr, dtypes, fn, PACKED(fn, packs_), .quantized = true)
#define FORMED(fn, packs_) PACKED(fn, packs_), .form = kiln_cpu_##fn##_form
#define KERNEL_FORMED(instr, dtypes, fn, packs_) ROW(instr, dtypes, fn, FORMED(fn, packs_))
#define KERNEL_MODELLED(instr, dtypes, fn, packs_)                                                 \
    ROW(instr, dtypes, fn, FORMED(fn, packs_), .cost = kiln_cpu_##fn##_cost)
#define KERNEL_FITTED(instr, dtypes, fn, packs_)                                                   \
    ROW(instr, dtypes, fn, FORMED(fn, packs_), .cost = kiln_cpu_##fn##_cost,                       \
        .fitted = &kiln_cpu_##fn##_fitted)
#define KERNEL_SPARED(instr, dtypes, fn, packs_)                                                   \
    ROW(instr, dtypes, fn, PACKED(fn, packs_), .cost = kiln_cpu_##fn##_cost,                       \
        .spare = &kiln_cpu_##fn##_spare)
#define KERNEL_PREPARED(instr, dtypes, fn)                                                         \
    ROW(instr, dtypes, fn, .supports = kiln_cpu_##fn##_supports,                                   \
        .scratch_bytes = kiln_cpu_##fn##_scratch, .prepared_bytes = kiln_cpu_##fn##_prepared,      \
        .prepare = kiln_cpu_##fn##_prepare, .quantized = true)
#include "backends/cpu/kernels.def"
};

static KilnTarget target = {
    .name = "cpu",
    .summary = "vectorised kernels on the threads of the process",
    .kernels = kernels,
    .n_kernels = G_N_ELEMENTS(kernels),
};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static KilnRates rates;

static void
find_isa(void)
{
    KilnCpuIsa best = kiln_cpu_isa_best();
    target.isa = best == KILN_CPU_ISA_AVX512 ? KILN_ISA_AVX512
                 : best == KILN_CPU_ISA_AVX2 ? KILN_ISA_AVX2
                                             : KILN_ISA_ANY;
    rates = kiln_cpu_rates();
    target.rates = &rates;
}

const KilnTarget *
kiln_cpu_target(void)
{
    pthread_once(&once, find_isa);
    return &target;
}
