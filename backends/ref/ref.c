/* SPDX-License-Identifier: Apache-2.0 */
/* The reference target's table, generated from kernels.def. */
#include "backends/ref/ref.h"

#include "backends/ref/integer/quantized.h"
#include "backends/ref/movement/blocked.h"
#include "ir/plugin.h"

/* Short spellings of the table. */
#define D(id) (1u << KILN_DTYPE_##id)
#define ITEMS (D(sequence) | D(optional) | D(map))
#define FLOATS (D(f32) | D(f64) | D(f16) | D(bf16))
#define SIGNED (D(i8) | D(i16) | D(i32) | D(i64))
#define UNSIGNED (D(u8) | D(u16) | D(u32) | D(u64))
#define INTS (SIGNED | UNSIGNED)
#define STORED (D(i8) | D(u8) | D(i16) | D(u16) | D(i32))
#define FEW_BITS (D(i4) | D(u4) | D(i2) | D(u2))
#define FLOATS_8 (D(f8e4m3fn) | D(f8e4m3fnuz) | D(f8e5m2) | D(f8e5m2fnuz))
#define STORED_FLOATS (FLOATS_8 | D(f6e2m3) | D(f6e3m2) | D(f4e2m1))
#define NUMBERS (FLOATS | INTS)
#define ALL (NUMBERS | D(bool))
#define MOVED (ALL | FEW_BITS | STORED_FLOATS | D(f8e8m0))

#define ROW(instr_, dtypes_, fn, ...)                                                              \
    { .instr = KILN_INSTR_##instr_,                                                                \
      .dtypes = (dtypes_),                                                                         \
      .name = "ref:" #fn,                                                                          \
      .run = kiln_ref_##fn,                                                                        \
      __VA_ARGS__ },

/* A finer test of a row, on top of the plain layouts that all kernels but the packing ones want. */
#define KERNEL(instr, dtypes, fn)
#define KERNEL_IF(instr_, dtypes, fn, test)                                                        \
    static bool plain_##instr_##_##fn(const KilnInstr *instr)                                      \
    {                                                                                              \
        return kiln_ref_is_plain(instr) && kiln_ref_##test(instr);                                 \
    }
#include "backends/ref/kernels.def"

/* Blocked and quantized operands: kernels of the same table run on copies of them. */
#define BY_COPIES(kind)                                                                            \
    static const char *kind(const KilnKernelArgs *args)                                            \
    {                                                                                              \
        return kiln_ref_##kind(kiln_ref_target(), args);                                           \
    }                                                                                              \
    static bool kind##_supports(const KilnInstr *instr)                                            \
    {                                                                                              \
        return kiln_ref_##kind##_supports(kiln_ref_target(), instr);                               \
    }                                                                                              \
    static size_t kind##_scratch(const KilnInstr *instr, uint32_t form, int threads)               \
    {                                                                                              \
        (void)form;                                                                                \
        return kiln_ref_##kind##_scratch(kiln_ref_target(), instr, threads);                       \
    }
BY_COPIES(blocked)
BY_COPIES(quantized)

static const KilnKernel kernels[] = {
#define KERNEL(instr, dtypes, fn) ROW(instr, dtypes, fn, .supports = kiln_ref_is_plain)
#define KERNEL_IF(instr, dtypes, fn, test) ROW(instr, dtypes, fn, .supports = plain_##instr##_##fn)
#define KERNEL_SCRATCH(instr, dtypes, fn, bytes)                                                   \
    ROW(instr, dtypes, fn, .supports = kiln_ref_is_plain, .scratch_bytes = kiln_ref_##bytes)
#define KERNEL_ANY_LAYOUT(instr, dtypes, fn) ROW(instr, dtypes, fn, .layout = "*")
#define KERNEL_PREPARED(instr, dtypes, fn)                                                         \
    ROW(instr, dtypes, fn, .supports = kiln_ref_is_plain,                                          \
        .scratch_bytes = kiln_ref_##fn##_scratch, .prepared_bytes = kiln_ref_##fn##_prepared,      \
        .prepare = kiln_ref_##fn##_prepare)
#define KERNEL_PLUGIN(instr, dtypes, fn)                                                           \
    ROW(instr, dtypes, fn, .supports = kiln_plugin_supports,                                       \
        .scratch_bytes = kiln_ref_##fn##_scratch, .prepared_bytes = kiln_ref_##fn##_prepared,      \
        .prepare = kiln_ref_##fn##_prepare, .quantized = true)
#define KERNEL_REDUCES(instr, dtypes, fn)                                                          \
    ROW(instr, dtypes, fn, .supports = kiln_ref_is_plain, .of_equal = kiln_ref_##fn##_equal)
#define KERNEL_QUANTIZED(instr, dtypes, fn, test)                                                  \
    ROW(instr, dtypes, fn, .supports = plain_##instr##_##fn, .quantized = true)
#include "backends/ref/kernels.def"
/* The same rows for blocked layouts, which strings do not have. */
#define KERNEL_PREPARED(instr, dtypes, fn)
#define KERNEL_PLUGIN(instr, dtypes, fn)
#define KERNEL_TEXT(instr, dtypes, fn)
#define KERNEL(instr_, dtypes_, fn)                                                                \
    { .instr = KILN_INSTR_##instr_,                                                                \
      .dtypes = (dtypes_),                                                                         \
      .layout = "*",                                                                               \
      .name = "ref:blocked_" #fn,                                                                  \
      .run = blocked,                                                                              \
      .supports = blocked_supports,                                                                \
      .scratch_bytes = blocked_scratch },
#define KERNEL_ANY_LAYOUT(instr, dtypes, fn)
#define KERNEL_QUANTIZED(instr, dtypes, fn, test)
#include "backends/ref/kernels.def"
/* The same rows for quantized types. */
#define KERNEL_PREPARED(instr, dtypes, fn)
#define KERNEL_PLUGIN(instr, dtypes, fn)
#define KERNEL_TEXT(instr, dtypes, fn)
#define KERNEL(instr_, dtypes_, fn)                                                                \
    { .instr = KILN_INSTR_##instr_,                                                                \
      .dtypes = STORED,                                                                            \
      .quantized = true,                                                                           \
      .name = "ref:quantized_" #fn,                                                                \
      .run = quantized,                                                                            \
      .supports = quantized_supports,                                                              \
      .scratch_bytes = quantized_scratch },
#define KERNEL_ANY_LAYOUT(instr, dtypes, fn)
#define KERNEL_QUANTIZED(instr, dtypes, fn, test)
#include "backends/ref/kernels.def"
};

static const KilnTarget target = {
    .name = "ref",
    .summary = "naive kernels: what the instructions mean",
    .kernels = kernels,
    .n_kernels = G_N_ELEMENTS(kernels),
    .isa = KILN_ISA_ANY,
};

const KilnTarget *
kiln_ref_target(void)
{
    return &target;
}
