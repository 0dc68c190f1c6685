/* SPDX-License-Identifier: Apache-2.0 */
/* Which constants of a module are equal. A pass runs on each function and subgraph, of which there
 * may be thousands, so the context keeps the answers from one run of a pass to the next. */
#ifndef KILN_PASSES_QUERY_EQUAL_CONSTANTS_H
#define KILN_PASSES_QUERY_EQUAL_CONSTANTS_H

#include "passes/pass.h"

typedef struct KilnEqualConstants KilnEqualConstants;

/** The first constant of the module that equals @constant, maybe @constant itself: the same answer
 * for every function. Constants that were added since the last call are looked at now. */
const KilnConstant *kiln_pass_first_equal(KilnPassContext *context, const KilnConstant *constant);

/** Takes NULL, too. */
void kiln_equal_constants_free(KilnEqualConstants *equal);

#endif
