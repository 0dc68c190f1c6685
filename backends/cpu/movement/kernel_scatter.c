/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_elements, scatter_nd and gather_nd. All indices are checked before anything is moved.
 * Updates of one element are applied in the order of the indices, whatever the number of threads: a
 * task has elements that no other task writes. Sums and products of f32 are rounded at each update.
 * Half floats would lose updates in that, so their sums and products are left to ref. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/strided.h"
#include "backends/cpu/parallel.h"
#include "ir/kernel.h"

#include <string.h>

static const char out_of_range[] = "an index is out of range";

enum {
    TASK_BYTES = 1 << 16,
};

typedef enum {
    NONE,
    ADD,
    MUL,
    MAXIMUM,
    MINIMUM,
} Reduction;

static Reduction
reduction_of(const char *name)
{
    return strcmp(name, "add") == 0   ? ADD
           : strcmp(name, "mul") == 0 ? MUL
           : strcmp(name, "max") == 0 ? MAXIMUM
           : strcmp(name, "min") == 0 ? MINIMUM
                                      : NONE;
}

/* Applies @n updates to neighbours. */
typedef void (*Apply)(void *to, const void *updates, int64_t n);

#define APPLY(name, T, expression)                                                                 \
    static void name(void *to, const void *updates, int64_t n)                                     \
    {                                                                                              \
        T *out = to;                                                                               \
        const T *in = updates;                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T a = out[i], b = in[i];                                                         \
            out[i] = (T)(expression);                                                              \
        }                                                                                          \
    }
#define SUMS(id, T)                                                                                \
    APPLY(add_##id, T, a + b)                                                                      \
    APPLY(mul_##id, T, 1u * a * b)
#define EXTREMES(id, T)                                                                            \
    APPLY(max_##id, T, a < b ? b : a)                                                              \
    APPLY(min_##id, T, a < b ? a : b)
#define EXTREMES_OF_FLOATS(id, T)                                                                  \
    APPLY(max_##id, T, a != a || a > b ? a : b)                                                    \
    APPLY(min_##id, T, a != a || a < b ? a : b)
SUMS(u8, uint8_t)
SUMS(u16, uint16_t)
SUMS(u32, uint32_t)
SUMS(u64, uint64_t)
APPLY(add_f32, float, a + b)
APPLY(mul_f32, float, a *b)
APPLY(add_f64, double, a + b)
APPLY(mul_f64, double, a *b)
APPLY(add_bool, uint8_t, (a | b) != 0)
APPLY(mul_bool, uint8_t, (a != 0) & (b != 0))
EXTREMES(u8, uint8_t)
EXTREMES(u16, uint16_t)
EXTREMES(u32, uint32_t)
EXTREMES(u64, uint64_t)
EXTREMES(i8, int8_t)
EXTREMES(i16, int16_t)
EXTREMES(i32, int32_t)
EXTREMES(i64, int64_t)
EXTREMES_OF_FLOATS(f32, float)
EXTREMES_OF_FLOATS(f64, double)
#undef APPLY
#undef SUMS
#undef EXTREMES
#undef EXTREMES_OF_FLOATS

#define ALL_OF(id, sums)                                                                           \
    [KILN_DTYPE_##id] = {                                                                          \
        [ADD] = add_##sums, [MUL] = mul_##sums, [MAXIMUM] = max_##id, [MINIMUM] = min_##id         \
    }
static const Apply applies[KILN_N_DTYPES][MINIMUM + 1] = {
    ALL_OF(u8, u8),
    ALL_OF(u16, u16),
    ALL_OF(u32, u32),
    ALL_OF(u64, u64),
    ALL_OF(i8, u8),
    ALL_OF(i16, u16),
    ALL_OF(i32, u32),
    ALL_OF(i64, u64),
    ALL_OF(f32, f32),
    ALL_OF(f64, f64),
    [KILN_DTYPE_bool] = { [ADD] = add_bool,
                          [MUL] = mul_bool,
                          [MAXIMUM] = add_bool,
                          [MINIMUM] = mul_bool },
};
#undef ALL_OF

/* --- indices --- */

typedef struct {
    const void *data;
    bool wide; /* i64, not i32 */
} Indices;

static inline int64_t
index_at(const Indices *indices, int64_t i, int64_t extent)
{
    const int64_t index =
        indices->wide ? ((const int64_t *)indices->data)[i] : ((const int32_t *)indices->data)[i];
    return index < 0 ? index + extent : index;
}

static bool
has_plain_indices(const KilnInstr *instr, uint32_t i)
{
    for (uint32_t k = 0; k < instr->n_operands; k++) {
        if (cpu_type(instr, k)->layout)
            return false;
    }
    const KilnDType dtype = cpu_type(instr, i)->dtype;
    return (dtype == KILN_DTYPE_i64 || dtype == KILN_DTYPE_i32) &&
           kiln_dtype_size(cpu_type(instr, 0)->dtype) > 0;
}

/* --- the data under the updates --- */

typedef struct {
    char *to;
    const char *updates;
    Apply apply; /* NULL: an update takes the place of the element */
    size_t size;
    Indices indices;
} Scatter;

static bool
scatter_supports(const KilnInstr *instr, const char *reduction)
{
    const Reduction kind = reduction_of(reduction);
    return has_plain_indices(instr, 2) &&
           (kind == NONE || applies[cpu_type(instr, 0)->dtype][kind]);
}

static Scatter
scatter_of(const KilnKernelArgs *args, const char *reduction)
{
    const KilnType *type = cpu_type(args->instr, 0);
    return (
        Scatter){ .to = args->data[0],
                  .updates = args->data[3],
                  .apply = applies[type->dtype][reduction_of(reduction)],
                  .size = kiln_dtype_size(type->dtype),
                  .indices = { args->data[2], cpu_type(args->instr, 2)->dtype == KILN_DTYPE_i64 } };
}

static void
copy_data(const KilnKernelArgs *args)
{
    const KilnType *type = cpu_type(args->instr, 0);
    KilnCpuNest nest = { 0 };
    if (args->data[0] == args->data[1])
        return;
    kiln_cpu_nest_add(&nest, kiln_type_elements(type), 1, 1);
    kiln_cpu_nest_copy(&nest, &(KilnCpuEnds){ .to = args->data[0],
                                              .from = args->data[1],
                                              .size = kiln_dtype_size(type->dtype),
                                              .threads = args->threads });
}

static inline void
apply(const Scatter *s, int64_t at, int64_t from, int64_t n)
{
    char *to = s->to + at * (int64_t)s->size;
    const char *updates = s->updates + from * (int64_t)s->size;
    if (s->apply)
        s->apply(to, updates, n);
    else if (n == 1 && s->size == 4)
        memcpy(to, updates, 4);
    else
        memcpy(to, updates, (size_t)n * s->size);
}

/* --- scatter_elements --- */

/* Updates of one index of the dims before the axis stay within it. */
typedef struct {
    Scatter s;
    int rank, axis;
    const int64_t *dims;            /* of the indices */
    int64_t strides[KILN_MAX_RANK]; /* of the data */
    int64_t extent;                 /* of the axis */
    int64_t rows, row;              /* rows of the last dim within an outer index */
} Elements;

static void
elements_task(const void *data, int64_t outer, int thread)
{
    (void)thread;
    const Elements *e = data;
    const int last = e->rank - 1;
    const int64_t along = last == e->axis ? 0 : 1;
    for (int64_t row = outer * e->rows; row < (outer + 1) * e->rows; row++) {
        int64_t at = 0, rest = row;
        for (int d = last - 1; d >= 0; d--) {
            at += d == e->axis ? 0 : rest % e->dims[d] * e->strides[d];
            rest /= e->dims[d];
        }
        for (int64_t i = 0; i < e->row; i++)
            apply(&e->s,
                  at + i * along +
                      index_at(&e->s.indices, row * e->row + i, e->extent) * e->strides[e->axis],
                  row * e->row + i, 1);
    }
}

bool
kiln_cpu_scatter_elements_supports(const KilnInstr *instr)
{
    return scatter_supports(instr, kiln_instr_attrs(instr, scatter_elements)->reduction);
}

const char *
kiln_cpu_scatter_elements(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_scatter_elements *attrs = kiln_instr_attrs(args->instr, scatter_elements);
    const KilnType *data = cpu_type(args->instr, 1), *indices = cpu_type(args->instr, 2);
    Elements e = { .s = scatter_of(args, attrs->reduction),
                   .rank = data->rank,
                   .axis = kiln_type_axis(data, attrs->axis),
                   .dims = indices->dims,
                   .rows = 1 };
    const int64_t n = kiln_type_elements(indices);
    int64_t stride = 1, outer = 1;
    e.extent = data->dims[e.axis];
    for (int64_t i = 0; i < n; i++) {
        const int64_t index = index_at(&e.s.indices, i, e.extent);
        if (index < 0 || index >= e.extent)
            return out_of_range;
    }
    copy_data(args);
    if (n == 0)
        return NULL;
    for (int d = data->rank - 1; d >= 0; d--) {
        e.strides[d] = stride;
        stride *= data->dims[d];
    }
    e.row = indices->dims[e.rank - 1];
    for (int d = 0; d < e.rank - 1; d++)
        *(d < e.axis ? &outer : &e.rows) *= indices->dims[d];
    kiln_cpu_parallel(outer, args->threads, elements_task, &e);
    return NULL;
}

/* --- tuples of indices --- */

typedef struct {
    int64_t depth, n;    /* indices of a tuple, tuples */
    int64_t slice;       /* elements that a tuple names */
    const int64_t *dims; /* of the data, from the first that is named */
} Tuples;

static int64_t
slice_of(const Indices *indices, const Tuples *t, int64_t tuple)
{
    int64_t at = 0;
    for (int64_t k = 0; k < t->depth; k++)
        at = at * t->dims[k] + index_at(indices, tuple * t->depth + k, t->dims[k]);
    return at * t->slice;
}

static bool
tuples_are_inside(const Indices *indices, const Tuples *t)
{
    for (int64_t i = 0; i < t->n; i++) {
        for (int64_t k = 0; k < t->depth; k++) {
            const int64_t index = index_at(indices, i * t->depth + k, t->dims[k]);
            if (index < 0 || index >= t->dims[k])
                return false;
        }
    }
    return true;
}

/* A task has a part of every slice. */
typedef struct {
    Scatter s;
    Tuples t;
    int64_t part;
} Slices;

static void
slices_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Slices *s = data;
    const int64_t first = task * s->part, n = min_of(s->part, s->t.slice - first);
    for (int64_t i = 0; i < s->t.n; i++)
        apply(&s->s, slice_of(&s->s.indices, &s->t, i) + first, i * s->t.slice + first, n);
}

bool
kiln_cpu_scatter_nd_supports(const KilnInstr *instr)
{
    return scatter_supports(instr, kiln_instr_attrs(instr, scatter_nd)->reduction);
}

const char *
kiln_cpu_scatter_nd(const KilnKernelArgs *args)
{
    const KilnType *data = cpu_type(args->instr, 1), *indices = cpu_type(args->instr, 2);
    Slices s = {
        .s = scatter_of(args, kiln_instr_attrs(args->instr, scatter_nd)->reduction),
        .t = { .depth = indices->dims[indices->rank - 1], .n = 1, .slice = 1, .dims = data->dims }
    };
    for (int d = 0; d < indices->rank - 1; d++)
        s.t.n *= indices->dims[d];
    for (int d = (int)s.t.depth; d < data->rank; d++)
        s.t.slice *= data->dims[d];
    if (!tuples_are_inside(&s.s.indices, &s.t))
        return out_of_range;
    copy_data(args);
    if (s.t.slice == 0)
        return NULL;
    s.part = s.t.slice < 2048 ? s.t.slice : 1024;
    kiln_cpu_parallel(ceil_div(s.t.slice, s.part), args->threads, slices_task, &s);
    return NULL;
}

/* --- gather_nd --- */

typedef struct {
    char *to;
    const char *from;
    Indices indices;
    Tuples t;
    int64_t per_batch, batch; /* tuples of a batch, elements of a batch of the data */
    int64_t size, per_task;
} Gather;

static void
gather_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Gather *g = data;
    const int64_t end = min_of((task + 1) * g->per_task, g->t.n), bytes = g->t.slice * g->size;
    for (int64_t i = task * g->per_task; i < end; i++) {
        const int64_t at = i / g->per_batch * g->batch + slice_of(&g->indices, &g->t, i);
        if (bytes == 4)
            memcpy(g->to + i * 4, g->from + at * g->size, 4); /* a size that compilers know */
        else
            memcpy(g->to + i * bytes, g->from + at * g->size, (size_t)bytes);
    }
}

bool
kiln_cpu_gather_nd_supports(const KilnInstr *instr)
{
    return has_plain_indices(instr, 2);
}

const char *
kiln_cpu_gather_nd(const KilnKernelArgs *args)
{
    const KilnType *data = cpu_type(args->instr, 1), *indices = cpu_type(args->instr, 2);
    const int batch_dims = (int)kiln_instr_attrs(args->instr, gather_nd)->batch_dims;
    const int rank = indices->rank - 1;
    Gather g = {
        .to = args->data[0],
        .from = args->data[1],
        .indices = { args->data[2], indices->dtype == KILN_DTYPE_i64 },
        .t = { .depth = indices->dims[rank], .n = 1, .slice = 1, .dims = data->dims + batch_dims },
        .per_batch = 1,
        .batch = 1,
        .size = (int64_t)kiln_dtype_size(data->dtype)
    };
    for (int d = 0; d < rank; d++) {
        g.t.n *= indices->dims[d];
        g.per_batch *= d < batch_dims ? 1 : indices->dims[d];
    }
    for (int d = batch_dims; d < data->rank; d++) {
        g.batch *= data->dims[d];
        g.t.slice *= d < batch_dims + g.t.depth ? 1 : data->dims[d];
    }
    if (!tuples_are_inside(&g.indices, &g.t))
        return out_of_range;
    if (g.t.n == 0 || g.t.slice == 0)
        return NULL;
    g.per_task = units_per_task(TASK_BYTES, g.t.slice * g.size);
    kiln_cpu_parallel(ceil_div(g.t.n, g.per_task), args->threads, gather_task, &g);
    return NULL;
}
