/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs of every operator and every element type, from the rows of random_rows.def. */
#ifndef KILN_TESTS_RANDOM_RANDOM_ROWS_H
#define KILN_TESTS_RANDOM_RANDOM_ROWS_H

#include "graph/module.h"

/** How many operators have a row. */
uint32_t random_rows_count(void);
const char *random_rows_op(uint32_t row);
/** A bit for each element type that @row is drawn for. */
uint32_t random_rows_types(uint32_t row);
/** Why operator @name has no row; NULL if nothing says so. */
const char *random_rows_left_out(const char *name);

/** A module with the lines of @row for @dtype. NULL with an error if the row does not fit. */
KilnModule *random_rows_one(uint32_t row, KilnDType dtype, uint64_t seed, GError **error);

/** Whether data may decide shapes in the graph of this seed: in one of four. */
#define RANDOM_ROWS_OF_DATA(seed) ((seed) / 8 % 4 == 1)
/** A module of several rows, and of nodes of the other families behind them. */
KilnModule *random_rows_graph(uint64_t seed);

#endif
