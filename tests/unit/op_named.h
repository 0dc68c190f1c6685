/* SPDX-License-Identifier: Apache-2.0 */
/* Operators by name, for tests that need one of any family: a new row compiles none of them. */
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
