/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions of ir/ note while a function is rewritten: the order of instructions, and what
 * was touched since the function was last found valid. */
#ifndef KILN_IR_CHANGES_H
#define KILN_IR_CHANGES_H

#include "ir/ir.h"

/* @instr is in its function's list. Its place lies between those of its neighbours; where there is
 * none between them, all are numbered anew by kiln_ir_place(). */
void kiln_ir_place_link(KilnInstr *instr);
/* Leaves hints of what is ahead: every instruction of a walk over all of them, in order, is told.
 */
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

/* Makes places grow along the list. */
void kiln_ir_place(KilnIRFunction *function);
static inline bool
kiln_instr_is_linked(const KilnInstr *instr)
{
    return instr->previous || instr->function->first == instr;
}

/* @instr was linked, moved or removed, or @rewritten: new, or with other operands or attributes. */
void kiln_ir_changes_add_instr(KilnInstr *instr, bool rewritten);
/* @buffer's uses changed, it is there no more, or it is @restated: new, or of another kind. */
void kiln_ir_changes_add_buffer(KilnBuffer *buffer, bool restated);
/* From here on everything is noted: @function is valid as it is. */
void kiln_ir_changes_begin(KilnIRFunction *function);
/* Nothing is known of what changed. */
void kiln_ir_changes_forget(KilnIRFunction *function);
void kiln_ir_changes_clear(KilnIRChanges *changes);

#endif
