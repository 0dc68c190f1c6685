/* SPDX-License-Identifier: Apache-2.0 */
/* The spelling of subgraphs, for printer and parser: `then {…} else {…}`, `body(…) {…}`, and a bare
 * `{…}`. */
#ifndef KILN_GRAPH_MODULE_REGIONS_H
#define KILN_GRAPH_MODULE_REGIONS_H

#include "graph/op/offload.h"

#include <string.h>

/* The attribute of this name is printed as @name behind the op. */
#define KILN_ATTR_CALLEE "callee"

static inline const char *
kiln_region_label(const KilnAttrInfo *info)
{
    if (strcmp(info->name, "then_branch") == 0)
        return "then";
    return strcmp(info->name, "else_branch") == 0 ? "else" : info->name;
}

/** True for ops whose one block needs no label. They list no attributes. */
static inline bool
kiln_region_is_bare(KilnOp op)
{
    return op == KILN_OP_vendor_graph || op == KILN_OP_custom_op;
}

#endif
