/* SPDX-License-Identifier: Apache-2.0 */
/* Reads problems for the memory planner in the CSV format of the MiniMalloc benchmarks. Each line
 * is a buffer. The first line names the columns. */
#ifndef KILN_BENCH_BENCH_PROBLEM_H
#define KILN_BENCH_BENCH_PROBLEM_H

typedef struct {
    char *name;     /* of the file */
    GArray *lives;  /* KilnLife */
    GPtrArray *ids; /* char* */
    int64_t capacity;
    /* The plan. */
    int64_t height, bound;
    double seconds;
} Problem;

/** Loads a problem. @capacity: bytes for all buffers; negative: as the file's name says. On an
 * error it returns NULL, and the error names the line. */
Problem *problem_load(const char *path, int64_t capacity, GError **error);
/** Returns a problem without buffers. Its name is the last part of @path, which may be NULL. */
Problem *problem_new(const char *path);
void problem_free(Problem *problem);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Problem, problem_free)

#endif
