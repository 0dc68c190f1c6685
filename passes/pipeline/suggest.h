/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the known word nearest to a misspelt one: "Did you mean …". */
#ifndef KILN_PASSES_PIPELINE_SUGGEST_H
#define KILN_PASSES_PIPELINE_SUGGEST_H

#include <stdint.h>

/** " (did you mean 'x'?)", or "" if none of @words is near. The first of equally near ones. */
char *kiln_suggest(const char *word, const char *const *words, uint32_t n);

#endif
