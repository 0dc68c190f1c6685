/* SPDX-License-Identifier: Apache-2.0 */
/* Parses `func` blocks. Several files share these functions. They return false (or NULL) with the
 * parser's error set. */
#ifndef KILN_IR_TEXT_PARSE_PRIV_H
#define KILN_IR_TEXT_PARSE_PRIV_H

#include "graph/text/parse.h"
#include "ir/ir.h"

typedef struct {
    KilnParser parser;
    KilnIRFunction *function;
} KilnIRParser;

/** The operands of an instruction as written. */
typedef struct {
    KilnToken at;       /* the instruction's name */
    GPtrArray *buffers; /* NULL: absent */
    GArray *accesses;   /* KilnAccess; @in if absent */
} KilnIROperands;

/** Reads `%name` of an alloc or view, or `@name` of a weight, input or output. */
KilnBuffer *kiln_ir_parse_buffer(KilnIRParser *in);
/** Reads `{name=value, …}` into the function's arena. */
bool kiln_ir_parse_attrs(KilnIRParser *in, KilnInstrKind kind, void **out);
/** The number of operands before the first @in. */
uint32_t kiln_ir_parse_n_out(const KilnIROperands *operands);
/** Reads `{ step; … }` behind @operands. Returns the stack, at the end of the function. */
KilnInstr *kiln_ir_parse_stack(KilnIRParser *in, const KilnIROperands *operands);

/* --- open functions (parse_open.c) --- */

/** Reads a number of @least or more, or an expression, which goes to @open. */
bool kiln_ir_parse_number(KilnParser *parser, int64_t least, int64_t *number, const KilnDim **open);
/** Reads what stands behind `dims`, and behind `require`. */
bool kiln_ir_parse_dims(KilnIRParser *in);
bool kiln_ir_parse_require(KilnIRParser *in);
/** Reads the place of a view, behind `{`. */
bool kiln_ir_parse_place(KilnParser *parser, KilnBuffer *place, KilnViewOpen *open);
/** Gives @function, which was read, the numbers of its binding. */
gboolean kiln_ir_parse_stand(KilnIRFunction *function, GError **error);

#endif
