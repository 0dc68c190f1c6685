/* SPDX-License-Identifier: Apache-2.0 */
/* Problems for kernels: one instruction a line, with the types of its operands. */
#ifndef KILN_BENCH_BENCH_CASE_H
#define KILN_BENCH_BENCH_CASE_H

#include "kiln.h"

typedef struct {
    char *name; /* the line without its options */
    char *hand; /* the hand-written loop that does the same; NULL: none is named */
    KilnModel *model;
} BenchCase;

void bench_case_free(BenchCase *one);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BenchCase, bench_case_free)

/** What a file of cases looks like, for --help. */
extern const char bench_case_format[];

/** The instruction of @line as a model of its own. Operands that are `const` become weights with
 * seeded values. NULL and KILN_ERROR_PARSE, or what the parser and the verifier of the IR say. */
BenchCase *bench_case_new(const char *line, GError **error);

/** Appends the cases of the file @path to @out, BenchCase*. Errors name the line. */
gboolean bench_cases_read(const char *path, GPtrArray *out, GError **error);

#endif
