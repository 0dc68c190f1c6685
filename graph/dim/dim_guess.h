/* SPDX-License-Identifier: Apache-2.0 */
/* Likely numbers of names about which nobody says anything. */
#ifndef KILN_GRAPH_DIM_DIM_GUESS_H
#define KILN_GRAPH_DIM_DIM_GUESS_H

#include "graph/dim.h"

/** Takes @number, at least 1, as the hint of @name while nobody states a hint or an upper bound. It
 * is no fact: texts do not have it. */
void kiln_dim_guess(KilnDimTable *table, const char *name, int64_t number);

#endif
