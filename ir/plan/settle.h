/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of an open function that need not run each time: they compute from weights and dims
 * alone, such as the tables of a rotary embedding. */
#ifndef KILN_IR_PLAN_SETTLE_H
#define KILN_IR_PLAN_SETTLE_H

#include "ir/ir.h"

/** Lists the settled instructions of @function, which is open, and the buffers that keep their
 * results from run to run. These live as long as the function runs. There are none where an
 * instruction defines dims. */
void kiln_open_settle(KilnIRFunction *function);
/** Lets all instructions run each time, so that no memory is kept. */
void kiln_open_unsettle(KilnIRFunction *function);
/** True if @buffer keeps its bytes from run to run. */
bool kiln_open_keeps(const KilnIRFunction *function, const KilnBuffer *buffer);

#endif
