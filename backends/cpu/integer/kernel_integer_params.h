/* SPDX-License-Identifier: Apache-2.0 */
/* Converts zero points and scales of products of bytes to the parameters of the loops. */
#ifndef KILN_BACKENDS_CPU_INTEGER_KERNEL_INTEGER_PARAMS_H
#define KILN_BACKENDS_CPU_INTEGER_KERNEL_INTEGER_PARAMS_H

#include "backends/cpu/integer/integer_args.h"
#include "backends/cpu/kernel.h"
#include "ir/kernel.h"

static inline bool
kiln_cpu_is_bytes(const KilnType *type)
{
    return !type->layout && (type->dtype == KILN_DTYPE_i8 || type->dtype == KILN_DTYPE_u8);
}

/** True if no sum or product of extents of the result and both factors overflows int64_t, padding
 * to blocks included. */
bool kiln_cpu_is_countable(const KilnInstr *instr);

/** True if result and both factors are bytes of quantized types, and the instruction has no tail.
 * Only the weights may have several scales. */
bool kiln_cpu_scales_bytes(const KilnInstr *instr);

/** Returns the bytes that the parameters take at the front of a kernel's scratch. */
size_t kiln_cpu_params_size(int64_t channels);

/** Parameters of an instruction with zero points as operands 3 and 4 and sums as its result. */
KilnIntegerParams kiln_cpu_zero_params(const KilnKernelArgs *args);
/** Parameters of an instruction on quantized types. */
KilnIntegerParams kiln_cpu_scale_params(const KilnKernelArgs *args);

/** Arguments with operands 1 and 2 as the two sides, and the scratch behind the parameters. */
KilnIntegerArgs kiln_cpu_integer_args(const KilnKernelArgs *args, const KilnIntegerParams *params,
                                      const int32_t *bias, int64_t channels);

/* Defines the functions beside the kernel of an instruction that packs its right side. They call
 * scratch_of(), packed_of() and pack() of the including file. */
#define KILN_CPU_PACKS(fn)                                                                         \
    size_t kiln_cpu_##fn##_scratch(const KilnInstr *instr, uint32_t form, int threads)             \
    {                                                                                              \
        (void)form;                                                                                \
        return scratch_of(instr, threads);                                                         \
    }                                                                                              \
    size_t kiln_cpu_##fn##_packed(const KilnInstr *instr, uint32_t form)                           \
    {                                                                                              \
        (void)form;                                                                                \
        return packed_of(instr);                                                                   \
    }                                                                                              \
    const char *kiln_cpu_##fn##_prepack(const KilnInstr *instr, uint32_t form,                     \
                                        const void *const *data, void *packed, KilnSlice slice)    \
    {                                                                                              \
        (void)form;                                                                                \
        return pack(instr, data, packed, slice);                                                   \
    }

#endif
