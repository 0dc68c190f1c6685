/* SPDX-License-Identifier: Apache-2.0 */
/* Reads problems for kernels: one instruction a line, with the types of its operands. */
#ifndef KILN_BENCH_BENCH_CASE_H
#define KILN_BENCH_BENCH_CASE_H

#include "kiln.h"

typedef struct {
    char *name; /* the line without its options */
    char *hand; /* the hand-written loop that does the same; NULL if the line names none */
    KilnModel *model;
} BenchCase;

void bench_case_free(BenchCase *one);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BenchCase, bench_case_free)

/** Describes the format of a file of cases, for --help. */
extern const char bench_case_format[];

/** Makes a model of the instruction in @line. Operands marked `const` become weights with seeded
 * values. NULL with KILN_ERROR_PARSE, or with an error of the parser or the verifier of the IR. */
BenchCase *bench_case_new(const char *line, GError **error);

/** Appends the cases of the file @path to @out, BenchCase*. Errors name the line. */
gboolean bench_cases_read(const char *path, GPtrArray *out, GError **error);

#endif
