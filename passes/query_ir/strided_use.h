/* SPDX-License-Identifier: Apache-2.0 */
/* Whether instructions can work on a buffer that lies strided in another one. */
#ifndef KILN_PASSES_QUERY_IR_STRIDED_USE_H
#define KILN_PASSES_QUERY_IR_STRIDED_USE_H

#include "ir/target.h"

/** True where all users of @buffer but @except can work on it in @region of another buffer. Kernels
 * answer for themselves. Views of @buffer must be regions there too, aligned to their elements.
 * False where there is too much to look at: uses of a strided region, views of views. */
bool kiln_strided_taken(const KilnTarget *target, const KilnBuffer *buffer,
                        const KilnRegion *region, const KilnInstr *except);

#endif
