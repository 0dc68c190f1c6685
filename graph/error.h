/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: one domain, codes from KILN_ERROR_MAP, one line to fail. */
#ifndef KILN_GRAPH_ERROR_H
#define KILN_GRAPH_ERROR_H

#include "graph/kiln-types.h"

#include <stdbool.h>

/** Sets @error and returns FALSE, so that a failure is one line: `return kiln_throw(error, …)`. The
 * message is UTF-8, whatever bytes it quotes. */
gboolean kiln_throw(GError **error, KilnError code, const char *format, ...) G_GNUC_PRINTF(3, 4);

/** The same for functions that return a pointer. */
#define kiln_throw_null(...) (kiln_throw(__VA_ARGS__), NULL)

/** The sentence of a code in KILN_ERROR_MAP. */
const char *kiln_error_sentence(KilnError code);

#endif
