/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products that share an operand become one product, which reads it once. */
#ifndef KILN_PASSES_QUERY_JOIN_PRODUCTS_H
#define KILN_PASSES_QUERY_JOIN_PRODUCTS_H

#include "passes/pass.h"

typedef enum {
    KILN_JOIN_LEFT,  /* the right operand is shared: the left ones are joined along rows */
    KILN_JOIN_RIGHT, /* the left operand is shared: the right ones are joined along columns */
} KilnJoin;

/** Merges matmuls, and gemms with equal attributes, wherever reading the shared operand once saves
 * more bytes than joining the others and taking the result apart costs. In list order, so that the
 * same function always gives the same. Refuses by GUARD under @rule. */
gboolean kiln_join_products(KilnFunction *function, KilnJoin join, const char *rule,
                            KilnPassContext *context, bool *changed, GError **error);

#endif
