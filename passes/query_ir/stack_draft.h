/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts the stack that replaces several element-wise instructions, before it enters a function. */
#ifndef KILN_PASSES_QUERY_IR_STACK_DRAFT_H
#define KILN_PASSES_QUERY_IR_STACK_DRAFT_H

#include "ir/ir.h"
#include "ir/stack.h"
#include "passes/query_ir/lives.h"

typedef struct {
    KilnInstr instr; /* in no function; for questions to a target */
    KilnBufferUse uses[KILN_STACK_OPERANDS_MAX];
    KilnBuffer *operands[KILN_STACK_OPERANDS_MAX];
    KilnStackStep steps[KILN_STACK_STEPS_MAX];
    uint32_t n_out;
    KilnBuffer
        *gone[2 * KILN_STACK_STEPS_MAX]; /* allocs that nothing else reads: never in memory */
    uint32_t n_gone;
} KilnStackDraft;

typedef enum {
    KILN_STACK_DRAFTED,
    KILN_STACK_TOO_BIG,       /* steps or operands: the rest is not set */
    KILN_STACK_OVERLAPS,      /* a result overlaps another operand */
    KILN_STACK_READS_REDUCED, /* a member reads the result of a reduction */
    KILN_STACK_LOSES_SPACE,   /* only reductions store, and their operands lack dims */
} KilnStackDrafting;

/** True if the kind, number of operands and types of @instr fit into a stack. */
bool kiln_stack_takes(const KilnInstr *instr);
/** The iteration space of an element-wise instruction, a stack, or a reduction, as the type of one
 * of its operands. */
KilnType kiln_stack_space_of(const KilnInstr *instr);
/** Drafts the stack of @members, which are in the order of the function and share one iteration
 * space. Numbers in constant weights that no instruction writes become part of it. */
KilnStackDrafting kiln_stack_draft(KilnInstr *const *members, uint32_t n, const KilnLives *lives,
                                   KilnStackDraft *draft);
/** The single element of a constant weight that nothing writes, if a double holds all its bits. */
bool kiln_stack_number(const KilnLives *lives, const KilnBuffer *buffer, double *out);

#endif
