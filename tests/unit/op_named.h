/* SPDX-License-Identifier: Apache-2.0 */
/* Finds operators by name, so that a new operator does not recompile the tests. */
#ifndef KILN_TESTS_UNIT_OP_NAMED_H
#define KILN_TESTS_UNIT_OP_NAMED_H

#include "graph/op.h"

static inline KilnOp
op_named(const char *name)
{
    KilnOp op;
    g_assert_true(kiln_op_from_name(name, &op));
    return op;
}

#endif
