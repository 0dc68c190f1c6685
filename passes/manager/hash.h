/* SPDX-License-Identifier: Apache-2.0 */
/* Content hashes of functions: what checks that a pass tells the truth about `changed`, and what
 * finds out that a fixed point goes round in circles. */
#ifndef KILN_PASSES_MANAGER_HASH_H
#define KILN_PASSES_MANAGER_HASH_H

#include "ir/ir.h"

typedef struct {
    uint64_t structure; /* names of values, buffers and constants do not count: a rewrite that is
                           undone and done again makes new names each time */
    uint64_t named;     /* equal text, equal hash */
} KilnHashes;

KilnHashes kiln_hash_function(const KilnFunction *function);
KilnHashes kiln_hash_ir_function(const KilnIRFunction *function);
/** What passes may change beside functions: constants (names, types, where their bytes come from
 * and a sample of them), declarations, and which functions there are. */
KilnHashes kiln_hash_module(const KilnModule *module);

/** 64-bit content hash of a function: ops, attributes, operands, types, names; not addresses. Equal
 * text, equal hash. */
uint64_t kiln_function_hash(const KilnFunction *function);

#endif
