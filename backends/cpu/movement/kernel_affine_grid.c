/* SPDX-License-Identifier: Apache-2.0 */
/* affine_grid in f32: a row of positions along the last dim of space is a line. Operands: result
 * [N, …, dims], matrices [N, dims, dims + 1]. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

enum {
    TASK_POSITIONS = 4096
};

typedef struct {
    float *to;
    const float *matrices;
    int n;               /* dims of space */
    const int64_t *dims; /* of space */
    int64_t rows, rows_per_task;
    bool align;
} Grid;

/* The middle of element @i of @n, where the ends are -1 and 1. */
static inline float
position(const Grid *g, int64_t i, int64_t n)
{
    if (g->align)
        return n > 1 ? (float)(-1 + 2.0 / (double)(n - 1) * (double)i) : -1;
    return (float)(-1 + (2.0 * (double)i + 1) / (double)n);
}

/* @row counts the rows of all samples. */
static void
fill_row(const Grid *g, int64_t row)
{
    const int64_t width = g->dims[g->n - 1];
    float at[KILN_MAX_RANK] = { 0 }, *to = g->to + row * width * g->n;
    int64_t sample = row;
    for (int d = g->n - 2; d >= 0; d--) {
        at[d] = position(g, sample % g->dims[d], g->dims[d]);
        sample /= g->dims[d];
    }
    const float *matrix = g->matrices + sample * g->n * (g->n + 1);
    for (int e = 0; e < g->n; e++, matrix += g->n + 1) {
        float rest = matrix[g->n];
        for (int d = 0; d < g->n - 1; d++)
            rest += matrix[g->n - 1 - d] * at[d];
        for (int64_t i = 0; i < width; i++)
            to[i * g->n + e] = matrix[0] * position(g, i, width) + rest;
    }
}

static void
grid_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Grid *g = data;
    const int64_t first = task * g->rows_per_task, end = first + g->rows_per_task;
    for (int64_t row = first; row < end && row < g->rows; row++)
        fill_row(g, row);
}

const char *
kiln_cpu_affine_grid(const KilnKernelArgs *args)
{
    const KilnType *out = cpu_type(args->instr, 0);
    Grid g = { .to = args->data[0],
               .matrices = args->data[1],
               .n = out->rank - 2,
               .dims = out->dims + 1,
               .rows = out->dims[0],
               .align = kiln_instr_attrs(args->instr, affine_grid)->align_corners };
    if (kiln_type_elements(out) == 0)
        return NULL;
    for (int d = 0; d < g.n - 1; d++)
        g.rows *= g.dims[d];
    g.rows_per_task = ceil_div(TASK_POSITIONS, g.dims[g.n - 1]);
    kiln_cpu_parallel(ceil_div(g.rows, g.rows_per_task), args->threads, grid_task, &g);
    return NULL;
}
