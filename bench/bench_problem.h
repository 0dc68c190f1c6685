/* SPDX-License-Identifier: Apache-2.0 */
/* Problems for the memory planner, in the CSV format of the MiniMalloc benchmarks: a line a buffer,
 * columns named in the first line. */
#ifndef KILN_BENCH_BENCH_PROBLEM_H
#define KILN_BENCH_BENCH_PROBLEM_H

#include "ir/plan/place.h"

typedef struct {
    char *name;     /* of the file */
    GArray *lives;  /* KilnLife */
    GPtrArray *ids; /* char* */
    int64_t capacity;
    /* The plan. */
    int64_t height, bound;
    double seconds;
} Problem;

/** @capacity: bytes to place all in; negative: as the file's name says. NULL with an error that
 * names the line. */
Problem *problem_load(const char *path, int64_t capacity, GError **error);
/** One without buffers, named by the last part of @path (or NULL: not yet). */
Problem *problem_new(const char *path);
void problem_free(Problem *problem);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Problem, problem_free)

#endif
