/* SPDX-License-Identifier: Apache-2.0 */
/* Names of dims that a function of a branch or loop needs. */
#ifndef KILN_IR_FLOW_NAMES_H
#define KILN_IR_FLOW_NAMES_H

#include "ir/ir.h"

/** The names that @function needs from outside: those in its types, places and attributes, but for
 * those that it defines. KilnDim*, in the order in which they occur. */
GPtrArray *kiln_flow_needed_names(const KilnIRFunction *function);

#endif
