/* SPDX-License-Identifier: Apache-2.0 */
/* Modules with the shapes of a run. */
#ifndef KILN_RUNTIME_SPECIALISE_H
#define KILN_RUNTIME_SPECIALISE_H

#include "graph/graph.h"
#include "ir/target.h"

#include <stdbool.h>

/** What a run is specialised for: shape of each input, and the bytes of those that shapes depend
 * on. */
typedef struct {
    int rank; /* KILN_RANK_UNKNOWN: as the model says */
    int64_t dims[KILN_MAX_RANK];
    const void *data;        /* of inputs that shapes depend on; else NULL */
    KilnConstness constness; /* VARYING: as the model says */
} KilnBinding;

/** Inputs of @module whose values decide shapes: those that shape operands are computed from. One
 * flag per input, to be freed. */
bool *kiln_value_inputs(const KilnModule *module);
/** True where a tensor of @binding's shape is of @type, whose dims may be open. */
bool kiln_binding_fits(const KilnBinding *binding, const KilnType *type);
/** Says that it does not, of the input of that name. Always FALSE. */
gboolean kiln_binding_throw(const KilnBinding *binding, const char *input, const KilnType *type,
                            GError **error);
/** A clone of @module in which every input has the bound shape, inputs with data are literal, and
 * all types that this decides are static. @target evaluates what shape inference does not. */
KilnModule *kiln_specialise(const KilnModule *module, const KilnBinding *bindings,
                            const KilnTarget *target, GError **error);

#endif
