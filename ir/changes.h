/* SPDX-License-Identifier: Apache-2.0 */
/* Notes that ir/ takes while a function is rewritten: the order of instructions, and the changes
 * since the function was last valid. */
#ifndef KILN_IR_CHANGES_H
#define KILN_IR_CHANGES_H

#include "ir/ir.h"

/* Call this after @instr joined its function's list. It gets a number between those of its
 * neighbours. If none is free, kiln_ir_place() numbers all instructions anew. */
void kiln_ir_place_link(KilnInstr *instr);
/* Leaves prefetch hints: call kiln_ahead_note() for every instruction of a walk, in order. */
typedef struct {
    KilnInstr *last[KILN_AHEAD_INSTRS]; /* a ring */
    uint32_t n;
} KilnAhead;
static inline void
kiln_ahead_note(KilnAhead *ahead, KilnInstr *instr)
{
    KilnInstr **last = &ahead->last[ahead->n++ % KILN_AHEAD_INSTRS];
    instr->behind = *last;
    if (*last)
        (*last)->ahead = instr;
    *last = instr;
}

/* Numbers all instructions, growing along the list. */
void kiln_ir_place(KilnIRFunction *function);
static inline bool
kiln_instr_is_linked(const KilnInstr *instr)
{
    return instr->previous || instr->function->first == instr;
}

/* @instr was linked, moved or removed. @rewritten: it is new, or has other operands or attributes.
 */
void kiln_ir_changes_add_instr(KilnInstr *instr, bool rewritten);
/* @buffer has other uses or was removed. @restated: it is new, or of another kind. */
void kiln_ir_changes_add_buffer(KilnBuffer *buffer, bool restated);
/* Starts to note changes: @function is valid now. */
void kiln_ir_changes_begin(KilnIRFunction *function);
/* Forgets the notes: any part may have changed. */
void kiln_ir_changes_forget(KilnIRFunction *function);
void kiln_ir_changes_clear(KilnIRChanges *changes);

#endif
