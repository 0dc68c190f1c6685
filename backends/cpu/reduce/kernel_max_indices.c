/* SPDX-License-Identifier: Apache-2.0 */
/* max_pool with indices, max_pool of f64, and max_unpool. A row of results takes one tap of all its
 * windows after the other: the first of equal elements stays, and so does a NaN. Operands of
 * max_pool: result, data, indices; of max_unpool: result, data, indices. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/reduce/pool_windows.h"
#include "ir/kernel.h"

#include <math.h>
#include <string.h>

enum {
    PIECE = 256, /* windows of a row that are looked at together */
    TASK_TAPS = 1 << 14,
};

/* --- max_pool --- */

typedef struct {
    KilnCpuPool p;
    const void *in;
    void *out;
    int64_t *indices; /* NULL: nobody reads them */
    bool column_major;
    int64_t rows, bundle; /* rows of a task */
    void (*row)(const void *self, int64_t row);
} MaxPool;

/* Row and plane exchange with storage_order 1. */
static int64_t
index_of(const MaxPool *m, int64_t plane, int64_t at)
{
    const int64_t *in = m->p.in;
    if (at < 0)
        return -1;
    if (m->column_major) {
        const int64_t x = at % in[2], y = at / in[2] % in[1], z = at / in[2] / in[1];
        at = (x * in[1] + y) * in[0] + z;
    }
    return plane * times3(in) + at;
}

#define MAX_POOL(name, T)                                                                          \
    static void take_##name(T *restrict best, int32_t *restrict at, const T *from, int64_t stride, \
                            int32_t offset, int64_t n)                                             \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T x = from[i * stride], was = best[i];                                           \
            const bool better = (x > was) | (at[i] < 0) | ((x != x) & (was == was));               \
            best[i] = better ? x : was;                                                            \
            at[i] = better ? offset + (int32_t)(i * stride) : at[i];                               \
        }                                                                                          \
    }                                                                                              \
    static void row_##name(const void *self, int64_t row)                                          \
    {                                                                                              \
        const MaxPool *m = self;                                                                   \
        const KilnCpuPool *p = &m->p;                                                              \
        const int64_t y = row % p->out[1], z = row / p->out[1] % p->out[0];                        \
        const int64_t plane = row / p->out[1] / p->out[0];                                         \
        const T *in = (const T *)m->in + plane * times3(p->in);                                    \
        for (int64_t first = 0; first < p->out[2]; first += PIECE) {                               \
            const int64_t n = min_of(PIECE, p->out[2] - first), to = row * p->out[2] + first;      \
            T best[PIECE];                                                                         \
            int32_t at[PIECE];                                                                     \
            for (int64_t i = 0; i < n; i++) {                                                      \
                best[i] = (T)-INFINITY;                                                            \
                at[i] = -1;                                                                        \
            }                                                                                      \
            for (int64_t k = 0; k < times3(p->kernel); k++) {                                      \
                const int64_t k2 = k % p->kernel[2], k1 = k / p->kernel[2] % p->kernel[1];         \
                const int64_t k0 = k / p->kernel[2] / p->kernel[1];                                \
                const int64_t i0 = z * p->stride[0] + k0 * p->dilation[0] - p->pad[0];             \
                const int64_t i1 = y * p->stride[1] + k1 * p->dilation[1] - p->pad[1];             \
                if (i0 < 0 || i0 >= p->in[0] || i1 < 0 || i1 >= p->in[1])                          \
                    continue;                                                                      \
                const KilnCpuSpan span = kiln_cpu_pool_span(p, k2, first, n);                      \
                const int64_t x =                                                                  \
                    (first + span.begin) * p->stride[2] + k2 * p->dilation[2] - p->pad[2];         \
                const int64_t offset = (i0 * p->in[1] + i1) * p->in[2] + x;                        \
                if (span.begin < span.end)                                                         \
                    take_##name(best + span.begin, at + span.begin, in + offset, p->stride[2],     \
                                (int32_t)offset, span.end - span.begin);                           \
            }                                                                                      \
            memcpy((T *)m->out + to, best, (size_t)n * sizeof(T));                                 \
            for (int64_t i = 0; m->indices && i < n; i++)                                          \
                m->indices[to + i] = index_of(m, plane, at[i]);                                    \
        }                                                                                          \
    }
MAX_POOL(f32, float)
MAX_POOL(f64, double)

static void
run_rows(const void *data, int64_t task, int thread)
{
    (void)thread;
    const MaxPool *m = data;
    const int64_t end = min_of((task + 1) * m->bundle, m->rows);
    for (int64_t row = task * m->bundle; row < end; row++)
        m->row(m, row);
}

bool
kiln_cpu_max_indices_supports(const KilnInstr *instr)
{
    const KilnType *in = cpu_type(instr, 1);
    if (in->rank < 3 || in->rank > 5 || in->layout || in->quant)
        return false;
    const KilnCpuPool p = kiln_cpu_pool_of(instr);
    return times3(p.in) < INT32_MAX && times3(p.kernel) > 0;
}

const char *
kiln_cpu_max_indices(const KilnKernelArgs *args)
{
    const KilnType *in = cpu_type(args->instr, 1);
    MaxPool m = { .p = kiln_cpu_pool_of(args->instr),
                  .in = args->data[1],
                  .out = args->data[0],
                  .indices = cpu_type(args->instr, 2) ? args->data[2] : NULL,
                  .column_major = kiln_instr_attrs(args->instr, max_pool)->storage_order != 0,
                  .row = in->dtype == KILN_DTYPE_f64 ? row_f64 : row_f32 };
    if (kiln_type_elements(cpu_type(args->instr, 0)) == 0)
        return NULL;
    m.rows = m.p.planes * m.p.out[0] * m.p.out[1];
    m.bundle = units_per_task(TASK_TAPS, m.p.out[2] * times3(m.p.kernel));
    kiln_cpu_parallel(ceil_div(m.rows, m.bundle), args->threads, run_rows, &m);
    return NULL;
}

/* --- max_unpool --- */

typedef struct {
    const char *from;
    char *to;
    const int64_t *at;
    int64_t size, n, room; /* elements of a plane of the data, and of the result */
} Unpool;

/* Of duplicates the last one stays. */
static void
put(const Unpool *u, int64_t begin, int64_t end)
{
#define PUT(T)                                                                                     \
    for (int64_t i = begin; i < end; i++)                                                          \
        ((T *)(void *)u->to)[u->at[i]] = ((const T *)(const void *)u->from)[i];
    switch (u->size) {
    case 1:
        PUT(uint8_t)
        break;
    case 2:
        PUT(uint16_t)
        break;
    case 4:
        PUT(uint32_t)
        break;
    default:
        PUT(uint64_t)
        break;
    }
#undef PUT
}

static void
put_plane(const void *data, int64_t plane, int thread)
{
    (void)thread;
    const Unpool *u = data;
    memset(u->to + plane * u->room * u->size, 0, (size_t)(u->room * u->size));
    put(u, plane * u->n, (plane + 1) * u->n);
}

bool
kiln_cpu_max_unpool_supports(const KilnInstr *instr)
{
    return cpu_type(instr, 1)->rank > 2 && !cpu_type(instr, 0)->layout &&
           !cpu_type(instr, 1)->layout;
}

/* Indices count within the whole result. Where each of them lies in the plane of its element, as
 * max_pool gives them, planes are independent. */
const char *
kiln_cpu_max_unpool(const KilnKernelArgs *args)
{
    const KilnType *out = cpu_type(args->instr, 0), *in = cpu_type(args->instr, 1);
    const int64_t planes = in->dims[0] * in->dims[1], room = kiln_type_elements(out);
    Unpool u = { .from = args->data[1],
                 .to = args->data[0],
                 .at = args->data[2],
                 .size = (int64_t)kiln_dtype_size(out->dtype) };
    const bool same_planes = planes > 0 && out->dims[0] * out->dims[1] == planes;
    uint64_t outside = 0, elsewhere = 0; /* by their highest bits */
    u.n = planes ? kiln_type_elements(in) / planes : 0;
    u.room = planes ? room / planes : 0;
    for (int64_t plane = 0; plane < planes; plane++) {
        const int64_t low = plane * u.room, high = low + u.room - 1;
        for (int64_t i = plane * u.n; i < (plane + 1) * u.n; i++) {
            outside |= high_bit_outside(u.at[i], 0, room - 1);
            elsewhere |= high_bit_outside(u.at[i], low, high);
        }
    }
    if (outside >> 63)
        return "an index is out of range";
    if (same_planes && !(elsewhere >> 63)) {
        kiln_cpu_parallel(planes, args->threads, put_plane, &u);
        return NULL;
    }
    if (room > 0)
        memset(args->data[0], 0, (size_t)(room * u.size));
    put(&u, 0, planes * u.n);
    return NULL;
}
