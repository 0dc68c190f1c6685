/* SPDX-License-Identifier: Apache-2.0 */
/* Values that a run leaves to the next one without a copy. */
#ifndef KILN_IR_CARRY_H
#define KILN_IR_CARRY_H

#include "ir/ir.h"

/** An output that is an input with more appended along an axis. */
typedef struct {
    KilnBuffer *state;   /* holds both: of the output's type, but for the axis, which has room */
    const KilnDim *room; /* the name of the state's extent along the axis */
    int axis;
    KilnSize extent; /* of the output along the axis */
} KilnAppend;

/** The axis along which @output is longer than @input, where all other dims are equal; -1 where
 * their types are not so. @function is open. */
int kiln_append_axis(const KilnType *output, const KilnType *input);
/** Puts both into one state with room for more, in rows with gaps, where the function copies @input
 * to the front of @output or joins it with others: that copy goes, and what is appended is written
 * behind what was there.
 * @input and @output stay in the function's lists without uses. False, and nothing changes, where
 * the function does something else. */
bool kiln_ir_append_in_place(KilnIRFunction *function, KilnBuffer *output, KilnBuffer *input,
                             KilnAppend *out);

#endif
