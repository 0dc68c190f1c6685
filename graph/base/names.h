/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up names in the tables. */
#ifndef KILN_GRAPH_BASE_NAMES_H
#define KILN_GRAPH_BASE_NAMES_H

#include <stdbool.h>
#include <string.h>

/** True where the two are equal. Most rows of a table differ in the first letter: no call is made
 * for them. */
static inline bool
kiln_name_equal(const char *a, const char *b)
{
    return *a == *b && strcmp(a, b) == 0;
}

#endif
