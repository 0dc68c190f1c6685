/* SPDX-License-Identifier: Apache-2.0 */
/* Content hashes of functions. They show whether a pass reports `changed` truthfully, and whether a
 * fixed-point loop runs in circles. */
#ifndef KILN_PASSES_MANAGER_HASH_H
#define KILN_PASSES_MANAGER_HASH_H

#include "ir/ir.h"

typedef struct {
    uint64_t structure; /* without names of values, buffers and constants: a rewrite that is
                           undone and done again makes new names each time */
    uint64_t named;     /* equal text, equal hash */
} KilnHashes;

KilnHashes kiln_hash_function(const KilnFunction *function);
KilnHashes kiln_hash_ir_function(const KilnIRFunction *function);
/** Hashes the parts beside functions that passes may change: constants (names, types, source and a
 * sample of their bytes), declarations, and the list of functions. */
KilnHashes kiln_hash_module(const KilnModule *module);

/** Hashes that are not finished. One walk makes both. */
typedef struct {
    uint64_t state; /* of all but names */
    uint64_t names; /* of names alone */
} KilnHash;

/** The hash of a module's constants and declarations, and what it was made from. All zero: it is
 * not known. */
typedef struct {
    KilnHash hash;
    guint n_constants, n_declarations;
    uint64_t removed_constants;
    const KilnDeclaration *last_declaration;
} KilnKnownHashes;

/** The same hash, without another walk over constants and declarations unless some were added or
 * removed since @known was made. None of them changes. */
KilnHashes kiln_hash_module_again(const KilnModule *module, KilnKnownHashes *known);

#endif
