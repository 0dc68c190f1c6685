/* SPDX-License-Identifier: Apache-2.0 */
/* Joins matrix products that share an operand into one product, which reads it once. */
#ifndef KILN_PASSES_QUERY_JOIN_PRODUCTS_H
#define KILN_PASSES_QUERY_JOIN_PRODUCTS_H

#include "passes/pass.h"

typedef enum {
    KILN_JOIN_LEFT,  /* shared right operand: joins the left ones along rows */
    KILN_JOIN_RIGHT, /* shared left operand: joins the right ones along columns */
} KilnJoin;

/** Joins matmuls, and gemms with equal attributes, if that saves bytes: one read of the shared
 * operand against the concat and the split of the result. Works in list order, so it is
 * deterministic. Refuses by GUARD under @rule. */
gboolean kiln_join_products(KilnFunction *function, KilnJoin join, const char *rule,
                            KilnPassContext *context, bool *changed, GError **error);

#endif
