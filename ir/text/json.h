/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the IR level as JSON, for scripts. */
#ifndef KILN_IR_TEXT_JSON_H
#define KILN_IR_TEXT_JSON_H

#include "ir/ir.h"

/** Appends {schema_version, functions[{name, arena, weights[], inputs[], outputs[], instrs[{op,
 * name, operands[{buffer, access}], attrs{}, …}]}], constants[]}. An absent operand is null. Always
 * TRUE. */
gboolean kiln_ir_json(const KilnIRModule *ir, GString *out);

#endif
