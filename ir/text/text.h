/* SPDX-License-Identifier: Apache-2.0 */
/* Parses texts that are not in a file. */
#ifndef KILN_IR_TEXT_TEXT_H
#define KILN_IR_TEXT_TEXT_H

#include "ir/ir.h"

/** kiln_ir_module_parse() for a text from memory or from a compiled program. No files lie beside
 * it, so file(…) is an error. Messages use @name as the path. */
KilnIRModule *kiln_ir_module_parse_alone(const char *text, size_t length, const char *name,
                                         GError **error);

#endif
