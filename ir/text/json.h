/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the IR level as JSON, for scripts, and parses texts that are not in a file. */
#ifndef KILN_IR_TEXT_JSON_H
#define KILN_IR_TEXT_JSON_H

#include "ir/ir.h"

/** Appends {schema_version, functions[{name, arena, weights[], inputs[], outputs[], instrs[{op,
 * name, operands[{buffer, access}], attrs{}, …}]}], constants[]}. An absent operand is null. */
void kiln_ir_json(const KilnIRModule *ir, GString *out);

/** kiln_ir_module_parse() for a text from memory or from a compiled program. No files lie beside
 * it, so file(…) is an error. Messages use @name as the path. */
KilnIRModule *kiln_ir_module_parse_alone(const char *text, size_t length, const char *name,
                                         GError **error);

#endif
