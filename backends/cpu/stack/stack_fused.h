/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over rows of f32 that do several steps of a stack at once, per instruction set. Results
 * between the steps stay in registers. The bits are those of the steps one after the other. Rows
 * may have any alignment. The result may be an operand itself. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_STACK_STACK_FUSED_H
#define KILN_BACKENDS_CPU_STACK_STACK_FUSED_H

#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/isa.h"

enum {
    KILN_CPU_FUSED_OPERANDS = 3,
    KILN_CPU_FUSED_FORMS = 4,
    KILN_CPU_FUSED_STEPS = 4,
};

typedef void (*KilnCpuFusedRow)(float *out, const float *const in[KILN_CPU_FUSED_OPERANDS],
                                int64_t n, const KilnCpuParams *p);

typedef enum {
    KILN_CPU_FUSED_PAIR,
    KILN_CPU_FUSED_CHAIN,
    KILN_CPU_FUSED_TRIPLE,
    KILN_CPU_FUSED_QUAD,
    KILN_CPU_FUSED_GATE,
    KILN_CPU_FUSED_TWIN,
} KilnCpuFusedShape;

/** A row of stack_fused.def: KilnCpuUnary and KilnCpuBinary of its steps in that order. The loops
 * get the parameters of the one unary step that has any. */
typedef struct {
    KilnCpuFusedShape shape;
    uint8_t ops[KILN_CPU_FUSED_STEPS];
    /* By operands that are one element for the whole row: bit 0 for the second, bit 1 for the
       third. NULL if there is no such loop. */
    KilnCpuFusedRow rows[KILN_CPU_FUSED_FORMS];
} KilnCpuFused;

/* The tables have the order of stack_fused.def and end with a row of zeros. */
extern const KilnCpuFused kiln_cpu_fused_portable[];
#if defined(__x86_64__)
extern const KilnCpuFused kiln_cpu_fused_avx2[];
extern const KilnCpuFused kiln_cpu_fused_avx512[];
#endif

/** Returns the loops of @isa. AUTO is the best of this machine. */
static inline const KilnCpuFused *
kiln_cpu_fused(KilnCpuIsa isa)
{
    return KILN_CPU_OF_ISA(isa, kiln_cpu_fused);
}

#endif
