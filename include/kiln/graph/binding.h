/* SPDX-License-Identifier: Apache-2.0 */
/* A number for each name of open dims. */
#ifndef KILN_GRAPH_BINDING_H
#define KILN_GRAPH_BINDING_H

#include "graph/module.h"

G_BEGIN_DECLS

typedef struct {
    const char *name;
    int64_t number;
} KilnBoundName;

typedef struct KilnDimBinding {
    uint32_t n;
    KilnBoundName *names;
} KilnDimBinding;

/** A KilnDimLookup: @binding is a KilnDimBinding. */
bool kiln_dim_binding_lookup(void *binding, const char *name, int64_t *out);
/** Copies @binding and its names into @arena. */
KilnDimBinding *kiln_dim_binding_copy(KilnArena *arena, const KilnDimBinding *binding);

/** Gives numbers to the names in the dims of the inputs of @module, in order. The numbers tell the
 * names apart: two different sums of them are hardly ever equal by chance. They keep to the facts
 * of the names, are near their hints, and are multiples of @scale. Each @variant, from 0, is
 * another binding. It lives in the module's arena. NULL if a dim of an input is not known, or is an
 * expression with a name that is no dim of an input. */
KilnDimBinding *kiln_dim_binding_typical(const KilnModule *module, unsigned variant, int64_t scale);

/** Writes the number at @binding beside the expression of each dim and each element that inference
 * knows, so that all types have numbers. Lowering then makes an open function. The binding is kept
 * in @module. Fails with KILN_ERROR_SHAPE where a dim is not known, or an expression has no number.
 */
gboolean kiln_module_stand_at(KilnModule *module, const KilnDimBinding *binding, GError **error);

G_END_DECLS

#endif
