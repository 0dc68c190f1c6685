/* SPDX-License-Identifier: Apache-2.0 */
/* A `stack` computes element-wise steps in SSA form over one iteration space.
 *
 *     stack @out %s, @out %y, @in %a, @in %b { t0: add %b -> %s; sigmoid; mul t0 -> %y }
 *
 * The @out operands come first and have the dims of the iteration space. The @in operands broadcast
 * to it by the rules of ONNX. A step reads results of earlier steps, operands and numbers. It
 * rounds its result to its type, so a stack gives the bits of its steps run as instructions. A
 * result without an @out is never in memory. Steps run in order, each over any part of the space
 * before the next one starts there.
 *
 *     stack @out %s, @in %a, @in %b { mul(%a, %b); reduce_sum {axes=[1]} -> %s }
 *
 * A step may reduce the last dims of the space. It stores its result, with those dims 1 or left
 * out, and no step reads it. Such a step may read its source after all other steps have run:
 * kiln_instr_may_share says which operands may share bytes. If all results are of reductions, the
 * space is the broadcast of the @in operands. */
#ifndef KILN_IR_STACK_H
#define KILN_IR_STACK_H

#include "ir/ir.h"

enum {
    KILN_STACK_SOURCES_MAX = 3,
    /* Kernels use one tile per live value: 32 tiles of 256 floats fill 32 KiB, the first-level
     * cache of common processors. */
    KILN_STACK_STEPS_MAX = 32,
    /* Addresses that advance together: x86-64 has as many general registers, and hardware
     * prefetchers follow as many streams. */
    KILN_STACK_OPERANDS_MAX = 16,
};

typedef enum {
    KILN_STACK_STEP,    /* result of step @index, an earlier step */
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

/** Makes `stack @out …, @in … { … }`. The first @n_out operands are results. The limits above hold;
 * the verifier checks the rest. Copies @steps with the data that they point to. */
KilnInstr *kiln_instr_new_stack(KilnIRFunction *function, KilnBuffer *const *operands,
                                uint32_t n_operands, uint32_t n_out, const KilnStackStep *steps,
                                uint32_t n_steps, KilnInstr *before);
/** The number of sources of a step of @kind; 0 if it cannot be a step. clip states both bounds. */
uint32_t kiln_stack_n_sources(KilnInstrKind kind);
/** True for the reductions that a step may be: they meet each element once. */
bool kiln_stack_reduces(KilnInstrKind kind);
/** How many of the last dims of a space of @rank a reduction takes; 0 if it has other axes. */
int kiln_stack_reduced_dims(KilnInstrKind kind, const void *attrs, int rank);
/** True if a reduction stores in operand @out. */
bool kiln_stack_is_reduced(const KilnInstr *stack, uint32_t out);
/** The iteration space of @stack without absent operands: the type of some operand with its dims.
 * False if the @in operands do not decide it. */
bool kiln_stack_space(const KilnInstr *stack, KilnType *out);
/** The element type of a source. A number has the type of the result; in a comparison it has the
 * type of the other source. */
KilnDType kiln_stack_source_dtype(const KilnInstr *stack, uint32_t step, uint32_t source);
const KilnQuant *kiln_stack_source_quant(const KilnInstr *stack, uint32_t step, uint32_t source);
/** Infers the type of step @i's result, unranked. False if its sources do not decide it: for
 * conversions, and for a choice between numbers. */
bool kiln_stack_infer(const KilnInstr *stack, uint32_t i, KilnType *out);

#endif
