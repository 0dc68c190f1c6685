/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean …": the known word that is nearest to a misspelt one. */
#ifndef KILN_PASSES_PIPELINE_SUGGEST_H
#define KILN_PASSES_PIPELINE_SUGGEST_H

#include <stdint.h>

/** " (did you mean 'x'?)", or "" where none of @words is near. The first of equally near ones. */
char *kiln_suggest(const char *word, const char *const *words, uint32_t n);

#endif
