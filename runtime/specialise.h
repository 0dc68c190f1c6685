/* SPDX-License-Identifier: Apache-2.0 */
/* Modules with the shapes of a run. */
#ifndef KILN_RUNTIME_SPECIALISE_H
#define KILN_RUNTIME_SPECIALISE_H

#include "ir/target.h"

#include <stdbool.h>

/** An input that a run is specialised for: its shape, and its bytes if shapes depend on them. */
typedef struct {
    int rank;                    /* KILN_RANK_UNKNOWN: as the model says */
    int64_t dims[KILN_MAX_RANK]; /* KILN_DIM_UNKNOWN: the same */
    const void *data;            /* NULL: shapes do not depend on them. Of a sequence or optional
                                    whose type leaves the rank of its elements open: that, an i64 */
    KilnConstness constness;     /* VARYING: as the model says */
} KilnBinding;

/** One flag per input of @module: true if shape operands are computed from its value, or if the
 * elements of a sequence have a rank that the model does not know. The caller frees the flags. */
bool *kiln_value_inputs(const KilnModule *module);
/** True where @binding leaves its rank or a dim as the model says. */
bool kiln_binding_is_open(const KilnBinding *binding);
/** True if a tensor of @binding's shape is of @type, whose dims may be open. */
bool kiln_binding_fits(const KilnBinding *binding, const KilnType *type);
/** The same for the dims that @binding has. */
bool kiln_binding_may_fit(const KilnBinding *binding, const KilnType *type);
/** Says that @binding does not fit @type, the type of @input. Always FALSE. */
gboolean kiln_binding_throw(const KilnBinding *binding, const char *input, const KilnType *type,
                            GError **error);
/** True if the data of runs may decide dims of @module (graph/module/define.h). */
bool kiln_data_may_decide(const KilnModule *module);
/** A clone of @module with the bound shapes. Inputs with data become literals, and all types that
 * follow from this become static. @target evaluates nodes that shape inference does not. */
KilnModule *kiln_specialise(const KilnModule *module, const KilnBinding *bindings,
                            const KilnTarget *target, GError **error);

#endif
