/* SPDX-License-Identifier: Apache-2.0 */
/* What a `stack` computes: element-wise steps in SSA form over one iteration space.
 *
 *     stack @out %s, @out %y, @in %a, @in %b { t0: add %b -> %s; sigmoid; mul t0 -> %y }
 *
 * The @out operands come first and have the dims of the iteration space, to which the @in operands
 * broadcast by the rules of ONNX. A step works on results of earlier steps, on operands and on
 * numbers, and rounds its result to its type, so that a stack gives the bits of its steps run as
 * instructions; what no @out takes is never in memory. Steps run in order, each over any part of
 * the space before the next begins there.
 *
 *     stack @out %s, @in %a, @in %b { mul(%a, %b); reduce_sum {axes=[1]} -> %s }
 *
 * A step may be a reduction of the last dims of the space. It stores its result, with those dims 1
 * or left out, and no step reads it. Wherever it stands it may read its source when all other steps
 * have run: kiln_instr_may_share says what may share bytes. Where all results are of reductions,
 * the space is what the @in operands broadcast to. */
#ifndef KILN_IR_STACK_H
#define KILN_IR_STACK_H

#include "ir/ir.h"

enum {
    KILN_STACK_SOURCES_MAX = 3,
    /* Kernels work on tiles, one per value that lives: 32 tiles of 256 floats fill 32 KiB, the
       first-level cache of common processors. */
    KILN_STACK_STEPS_MAX = 32,
    /* Addresses that advance side by side: as many as x86-64 has general registers, and no more
       streams than hardware prefetchers follow. */
    KILN_STACK_OPERANDS_MAX = 16,
};

typedef enum {
    KILN_STACK_STEP,    /* the result of step @index, an earlier one */
    KILN_STACK_OPERAND, /* @in operand @index of the stack, counted among all operands */
    KILN_STACK_SCALAR,  /* @scalar, stored as kiln_stack_source_dtype() */
} KilnStackSourceKind;

typedef struct {
    KilnStackSourceKind kind;
    uint32_t index;
    double scalar;
} KilnStackSource;

struct KilnStackStep {
    KilnInstrKind kind;
    void *attrs;            /* KilnInstrAttrs_<kind>; NULL where it has none */
    KilnDType dtype;        /* of the result */
    const KilnQuant *quant; /* of the result; its axis is a dim of the iteration space */
    uint32_t n_sources;
    KilnStackSource sources[KILN_STACK_SOURCES_MAX];
    int32_t store; /* the @out operand that takes the result; -1: none */
};

/** `stack @out …, @in … { … }`: the first @n_out operands are results. At most as many operands and
 * steps as above; all else is for the verifier. @steps are copied with what they point to. */
KilnInstr *kiln_instr_new_stack(KilnIRFunction *function, KilnBuffer *const *operands,
                                uint32_t n_operands, uint32_t n_out, const KilnStackStep *steps,
                                uint32_t n_steps, KilnInstr *before);
/** How many sources a step of @kind has; 0 where it may be no step. clip states both bounds. */
uint32_t kiln_stack_n_sources(KilnInstrKind kind);
/** True of reductions that a step may be: those that meet each element once. */
bool kiln_stack_reduces(KilnInstrKind kind);
/** How many of the last dims of a space of @rank a reduction takes; 0 where its axes are others. */
int kiln_stack_reduced_dims(KilnInstrKind kind, const void *attrs, int rank);
/** True where a reduction stores in operand @out. */
bool kiln_stack_is_reduced(const KilnInstr *stack, uint32_t out);
/** The iteration space of what has no absent operands, as the type of some operand with its dims.
 * False where the @in operands do not decide it. */
bool kiln_stack_space(const KilnInstr *stack, KilnType *out);
/** The element type of a source. A number has that of the result, but in comparisons, where it has
 * that of what it is compared with. */
KilnDType kiln_stack_source_dtype(const KilnInstr *stack, uint32_t step, uint32_t source);
const KilnQuant *kiln_stack_source_quant(const KilnInstr *stack, uint32_t step, uint32_t source);
/** The type of step @i's result as its sources decide it, unranked. False where they do not: of
 * conversions, and of a choice between numbers. */
bool kiln_stack_infer(const KilnInstr *stack, uint32_t i, KilnType *out);

#endif
