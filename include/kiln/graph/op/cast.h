/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_CAST_H
#define KILN_GRAPH_OP_CAST_H
#define KILN_FAMILY cast
#define KILN_FAMILY_ROWS "graph/ops/cast.def"
#include "graph/op/declare.h"

/** The attributes of a cast to @dtype. */
static inline KilnAttrs_cast
kiln_cast_to(KilnDType dtype)
{
    return (KilnAttrs_cast){ .to = dtype, .saturate = true, .round_mode = "up" };
}

#endif
