/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that stand in no file. */
#ifndef KILN_IR_TEXT_TEXT_H
#define KILN_IR_TEXT_TEXT_H

#include "ir/ir.h"

/** kiln_ir_module_parse() for a text that came from memory or out of a compiled program: there is
 * nothing beside it, so that file(…) is an error. @name stands for the path in messages. */
KilnIRModule *kiln_ir_module_parse_alone(const char *text, size_t length, const char *name,
                                         GError **error);

#endif
