/* SPDX-License-Identifier: Apache-2.0 */
/* gather and gather_elements of any element type. All indices are checked before anything is moved;
 * negative ones count from the end. Operands: result, data, indices. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

#include <string.h>

enum {
    TASK_BYTES = 1 << 16,
};

/* Indices of a type, and the extent that they may reach. */
typedef struct {
    const void *data;
    bool wide; /* i64, not i32 */
    int64_t extent;
} Indices;

static inline int64_t
stated(const Indices *indices, int64_t i)
{
    return indices->wide ? ((const int64_t *)indices->data)[i]
                         : ((const int32_t *)indices->data)[i];
}

static inline int64_t
index_at(const Indices *indices, int64_t i)
{
    int64_t index = stated(indices, i);
    return index < 0 ? index + indices->extent : index;
}

/* The indices of operand 2 into dim @axis of the data. NULL, or what is wrong with them. */
static const char *
read_indices(const KilnInstr *instr, const void *data, int axis, Indices *out)
{
    const KilnType *type = cpu_type(instr, 2);
    *out = (Indices){ data, type->dtype == KILN_DTYPE_i64, cpu_type(instr, 1)->dims[axis] };
    const int64_t n = kiln_type_elements(type), low = -out->extent, high = out->extent - 1;
    uint64_t outside = 0;
    for (int64_t i = 0; out->wide && i < n; i++)
        outside |= high_bit_outside(((const int64_t *)data)[i], low, high);
    for (int64_t i = 0; !out->wide && i < n; i++)
        outside |= high_bit_outside(((const int32_t *)data)[i], low, high);
    return outside >> 63 ? "an index is out of range" : NULL;
}

bool
kiln_cpu_gather_supports(const KilnInstr *instr)
{
    KilnDType indices = cpu_type(instr, 2)->dtype;
    return (indices == KILN_DTYPE_i64 || indices == KILN_DTYPE_i32) &&
           kiln_cpu_movement_supports(instr);
}

/* The data is [outer, extent, row bytes], the result [outer, n, row bytes]. */
typedef struct {
    char *to;
    const char *from;
    Indices indices;
    int64_t n, rows, row;
    int64_t rows_per_task;
} Gather;

/* A unit of a size known here is moved without a call. */
#define MOVE_ROWS(bytes)                                                                           \
    for (int64_t r = first; r < end; r++) {                                                        \
        int64_t at = outer * g->indices.extent + index_at(&g->indices, i);                         \
        memcpy(g->to + r * g->row, g->from + at * g->row, (size_t)(bytes));                        \
        if (++i == g->n) {                                                                         \
            i = 0;                                                                                 \
            outer++;                                                                               \
        }                                                                                          \
    }

static void
gather_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Gather *g = data;
    int64_t first = task * g->rows_per_task, end = first + g->rows_per_task;
    int64_t outer = first / g->n, i = first % g->n;
    end = end < g->rows ? end : g->rows;
    switch (g->row) {
    case 1:
        MOVE_ROWS(1) break;
    case 2:
        MOVE_ROWS(2) break;
    case 4:
        MOVE_ROWS(4) break;
    case 8:
        MOVE_ROWS(8) break;
    default:
        MOVE_ROWS(g->row) break;
    }
}
#undef MOVE_ROWS

const char *
kiln_cpu_gather(const KilnKernelArgs *args)
{
    const KilnType *data = cpu_type(args->instr, 1);
    int axis = kiln_type_axis(data, kiln_instr_attrs(args->instr, gather)->axis);
    Gather g = { .to = args->data[0], .from = args->data[1] };
    const char *wrong = read_indices(args->instr, args->data[2], axis, &g.indices);
    if (wrong)
        return wrong;
    int64_t outer = 1;
    g.row = (int64_t)kiln_dtype_size(data->dtype);
    for (int d = 0; d < data->rank; d++)
        *(d < axis ? &outer : &g.row) *= d == axis ? 1 : data->dims[d];
    g.n = kiln_type_elements(cpu_type(args->instr, 2));
    g.rows = g.row > 0 ? outer * g.n : 0;
    g.rows_per_task = units_per_task(TASK_BYTES, g.row);
    kiln_cpu_parallel(ceil_div(g.rows, g.rows_per_task), args->threads, gather_task, &g);
    return NULL;
}

/* --- gather_elements --- */

/* The result, of the indices' shape, by rows along its last dim. */
typedef struct {
    char *to;
    const char *from;
    Indices indices;
    int rank;
    const int64_t *dims;            /* of the indices */
    int64_t strides[KILN_MAX_RANK]; /* of the data in bytes; 0 along the axis */
    int64_t step;                   /* of the data in bytes along the axis */
    int64_t size, n, rows, rows_per_task;
} Elements;

#define MOVE_BY(bytes, T)                                                                          \
    for (int64_t i = 0; i < n; i++, from += along) {                                               \
        const int64_t index = ((const T *)e->indices.data)[first + i];                             \
        memcpy(to + i * (bytes), from + (index < 0 ? index + extent : index) * step, (bytes));     \
    }
#define MOVE_ELEMENTS(bytes)                                                                       \
    if (e->indices.wide)                                                                           \
        MOVE_BY(bytes, int64_t)                                                                    \
    else                                                                                           \
        MOVE_BY(bytes, int32_t)

static void
move_elements(const Elements *e, int64_t row)
{
    const int64_t first = row * e->n, along = e->strides[e->rank - 1];
    const int64_t n = e->n, extent = e->indices.extent, step = e->step;
    int64_t rest = row;
    char *to = e->to + first * e->size;
    const char *from = e->from;
    for (int d = e->rank - 2; d >= 0; d--) {
        from += rest % e->dims[d] * e->strides[d];
        rest /= e->dims[d];
    }
    switch (e->size) {
    case 1:
        MOVE_ELEMENTS(1) break;
    case 2:
        MOVE_ELEMENTS(2) break;
    case 4:
        MOVE_ELEMENTS(4) break;
    default:
        MOVE_ELEMENTS(8) break;
    }
}
#undef MOVE_ELEMENTS
#undef MOVE_BY

static void
elements_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Elements *e = data;
    int64_t row = task * e->rows_per_task, end = row + e->rows_per_task;
    for (; row < end && row < e->rows; row++)
        move_elements(e, row);
}

const char *
kiln_cpu_gather_elements(const KilnKernelArgs *args)
{
    const KilnType *data = cpu_type(args->instr, 1), *indices = cpu_type(args->instr, 2);
    int axis = kiln_type_axis(data, kiln_instr_attrs(args->instr, gather_elements)->axis);
    Elements e = { .to = args->data[0],
                   .from = args->data[1],
                   .rank = data->rank,
                   .dims = indices->dims,
                   .size = (int64_t)kiln_dtype_size(data->dtype) };
    const char *wrong = read_indices(args->instr, args->data[2], axis, &e.indices);
    int64_t total = kiln_type_elements(indices), step = e.size;
    if (wrong || total == 0)
        return wrong;
    for (int d = data->rank - 1; d >= 0; d--) {
        e.strides[d] = d == axis ? 0 : step;
        e.step = d == axis ? step : e.step;
        step *= data->dims[d];
    }
    e.n = indices->dims[indices->rank - 1];
    e.rows = total / e.n;
    e.rows_per_task = units_per_task(TASK_BYTES, e.n * e.size);
    kiln_cpu_parallel(ceil_div(e.rows, e.rows_per_task), args->threads, elements_task, &e);
    return NULL;
}
