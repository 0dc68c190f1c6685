/* SPDX-License-Identifier: Apache-2.0 */
/* Prototypes and access to operands for the adapters, which bind the cpu backend's kernels to
 * instructions. */
#ifndef KILN_BACKENDS_CPU_KERNEL_H
#define KILN_BACKENDS_CPU_KERNEL_H

#include "ir/target.h"

#define KERNEL(instr, dtypes, fn) const char *kiln_cpu_##fn(const KilnKernelArgs *args);
#define KERNEL_IF(instr, dtypes, fn, test)                                                         \
    KERNEL(instr, dtypes, fn) bool kiln_cpu_##test(const KilnInstr *instr_);
#define KERNEL_SCRATCH(instr, dtypes, fn, test, bytes)                                             \
    KERNEL_IF(instr, dtypes, fn, test)                                                             \
    size_t kiln_cpu_##bytes(const KilnInstr *instr_, uint32_t form, int threads);
#define KERNEL_WEIGHED(instr, dtypes, fn, test)                                                    \
    KERNEL_IF(instr, dtypes, fn, test) double kiln_cpu_##fn##_cost(const KilnInstr *instr_);
#define KERNEL_TIMED(instr, dtypes, fn, test, bytes)                                               \
    KERNEL_SCRATCH(instr, dtypes, fn, test, bytes)                                                 \
    double kiln_cpu_##fn##_cost(const KilnInstr *instr_);
#define KERNEL_REDUCES(instr, dtypes, fn, test, bytes)                                             \
    KERNEL_SCRATCH(instr, dtypes, fn, test, bytes)                                                 \
    bool kiln_cpu_##fn##_equal(const KilnInstr *instr_, const void *element, void *result);
#define KERNEL_PACKED(instr, dtypes, fn, packs)                                                    \
    KERNEL_SCRATCH(instr, dtypes, fn, fn##_supports, fn##_scratch)                                 \
    size_t kiln_cpu_##fn##_packed(const KilnInstr *instr_, uint32_t form);                         \
    const char *kiln_cpu_##fn##_prepack(const KilnInstr *instr_, uint32_t form,                    \
                                        const void *const *data, void *packed, KilnSlice slice);
#define KERNEL_FORMED(instr, dtypes, fn, packs)                                                    \
    KERNEL_PACKED(instr, dtypes, fn, packs) uint32_t kiln_cpu_##fn##_form(const KilnInstr *instr_);
#define KERNEL_MODELLED(instr, dtypes, fn, packs)                                                  \
    KERNEL_FORMED(instr, dtypes, fn, packs) double kiln_cpu_##fn##_cost(const KilnInstr *instr_);
#define KERNEL_FITTED(instr, dtypes, fn, packs)                                                    \
    KERNEL_MODELLED(instr, dtypes, fn, packs) extern const KilnFitted kiln_cpu_##fn##_fitted;
#define KERNEL_SPARED(instr, dtypes, fn, packs)                                                    \
    KERNEL_PACKED(instr, dtypes, fn, packs) double kiln_cpu_##fn##_cost(const KilnInstr *instr_);  \
    extern const KilnFitted kiln_cpu_##fn##_spare;
#define KERNEL_PREPARED(instr, dtypes, fn)                                                         \
    KERNEL_SCRATCH(instr, dtypes, fn, fn##_supports, fn##_scratch)                                 \
    size_t kiln_cpu_##fn##_prepared(const KilnInstr *instr_);                                      \
    void kiln_cpu_##fn##_prepare(const KilnInstr *instr_, void *prepared);
#include "backends/cpu/kernels.def"

/** Returns the type of operand @i, or NULL if the operand is absent. */
static inline const KilnType *
cpu_type(const KilnInstr *instr, uint32_t i)
{
    const KilnBuffer *buffer = kiln_instr_operand(instr, i);
    return buffer ? &buffer->type : NULL;
}

/** True if every operand that is present has element type @dtype and plain layout. */
static inline bool
cpu_all_plain(const KilnInstr *instr, KilnDType dtype)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnType *type = cpu_type(instr, i);
        if (type && (type->dtype != dtype || type->layout))
            return false;
    }
    return true;
}

/** The extents around @axis, which may count from the end: their products in front of it and behind
 * it, and its own. */
typedef struct {
    int64_t outer, axis, inner;
} CpuAround;

static inline CpuAround
cpu_around(const KilnType *type, int64_t axis)
{
    const int at = (int)(axis < 0 ? axis + type->rank : axis);
    CpuAround around = { 1, 1, 1 };
    for (int d = 0; d < type->rank; d++)
        *(d < at ? &around.outer : d == at ? &around.axis : &around.inner) *= type->dims[d];
    return around;
}

/** The bits of infinity of @dtype, one of the floats of 16 bits or more. */
static inline uint64_t
cpu_infinity_bits(KilnDType dtype)
{
    switch (dtype) {
    case KILN_DTYPE_f16:
        return 0x7c00;
    case KILN_DTYPE_bf16:
        return 0x7f80;
    case KILN_DTYPE_f32:
        return 0x7f800000;
    default:
        return UINT64_C(0x7ff0000000000000);
    }
}

#endif
