/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that data decides: which instruction defines which name, and what hangs on it.
 *
 * The `define` instructions of a function cut its run into stages. Stage 0 knows the names that
 * come with the inputs, and stage k the names of the first k of these instructions, too. Only
 * instructions from the k-th `define` on may need a number of stage k. */
#ifndef KILN_IR_DEFINE_H
#define KILN_IR_DEFINE_H

#include "ir/ir.h"

typedef struct KilnDefines {
    GPtrArray *instrs; /* KilnInstr*: `define`, in order */
    GPtrArray *names;  /* const char*, of the module */
    GArray *stages;    /* uint32_t, per name */
} KilnDefines;

/** NULL where no instruction of @function defines a name, or expressions were taken out of it. */
KilnDefines *kiln_defines_new(const KilnIRFunction *function);
void kiln_defines_free(KilnDefines *defines);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnDefines, kiln_defines_free)
/** True where an instruction of one of @functions (KilnIRFunction*) defines a name, be it in one
 * that only a branch or loop runs. */
bool kiln_defines_any(const GPtrArray *functions);
/** The first stage that knows all names of @dim. NULL: stage 0. */
uint32_t kiln_defines_stage(const KilnDefines *defines, const KilnDim *dim);
/** The same for all that the operands, the places and the attributes of @instr depend on. What a
 * `define` defines does not count. */
uint32_t kiln_defines_stage_of_instr(const KilnDefines *defines, const KilnInstr *instr);
/** The same for the type and the place of @buffer. */
uint32_t kiln_defines_stage_of_buffer(const KilnDefines *defines, const KilnBuffer *buffer);
/** True where all that @instr depends on is known as soon as the type of @buffer is. Then what
 * writes to the buffer may write to a result of @instr instead. True for NULL. */
bool kiln_defines_in_time(const KilnDefines *defines, const KilnInstr *instr,
                          const KilnBuffer *buffer);

#endif
