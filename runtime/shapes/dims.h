/* SPDX-License-Identifier: Apache-2.0 */
/* What callers say of open dims: other names, bounds, divisors, hints. */
#ifndef KILN_RUNTIME_SHAPES_DIMS_H
#define KILN_RUNTIME_SHAPES_DIMS_H

#include "graph/type.h"
#include "runtime/kiln-shapes.h"
#include "runtime/model.h"
#include "runtime/specialise.h"

/** What somebody says of one dim. */
typedef struct {
    const char *what;   /* who says it, for messages: "--shape" */
    const char *input;  /* NULL: the dim is the one called @name */
    int rank, dim;      /* of @input: the rank that it must have, and the dim that is meant */
    const char *name;   /* that the dim gets; NULL: as the model says */
    KilnDimRange facts; /* its name is not read */
} KilnDimStatement;

/** @model, or a copy of it for which all of @statements hold. Such a copy has a table of dims of
 * its own, so that other programs of @model know nothing of them. A name that two dims get makes
 * them equal. Bounds that leave one number make the dim that number. */
KilnModel *kiln_model_with_dims(KilnModel *model, const KilnDimStatement *statements, unsigned n,
                                GError **error);

/** A copy of @model, which is no IR level model, in which @names (char*) may be 0. They are names
 * of dims of its inputs. */
KilnModel *kiln_model_with_zeros(KilnModel *model, const GPtrArray *names, GError **error);

/** "1..8" or "a multiple of 8 in 8..64", to be freed. */
char *kiln_dim_facts_text(const KilnDimFacts *facts);
/** KILN_ERROR_SHAPE where @binding gives a number to a dim of @type that its stated facts do not
 * allow. It names @input, the dim, the facts and the number. */
gboolean kiln_dims_check(const KilnType *type, const char *input, const KilnBinding *binding,
                         GError **error);

#endif
