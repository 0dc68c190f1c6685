/* SPDX-License-Identifier: Apache-2.0 */
/* max_pool and average_pool in f32, one to three spatial dims.
 *
 * Windows join the rows that they cover first, then along what these come to. Those that lie inside
 * the image are joined in vectors, all lines of a plane in one go, and those at its edges alone.
 * Where there are more of these, and in three dims, the rows that windows cover are joined into one
 * row, with room for the padding at its ends, and that row is joined window by window. Windows
 * without an element give -inf (max) or 0 (average), those of nothing but -0 give -0. Operands:
 * result, data. */
#include "backends/cpu/cost.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/reduce/pool_windows.h"
#include "backends/cpu/reduce/reduce.h"
#include "ir/kernel.h"

#include <math.h>
#include <string.h>

enum {
    SLACK = 16, /* windows beyond the last one that KilnCpuWindows may read */
    EDGES = 1,  /* windows of a row that are joined one by one */
    TAPS = 16,  /* of windows at most, of which a row has less than a vector: others are worth it */
};

/* Floats of a joined row: what all windows and those that are read beside them reach. */
static int64_t
row_floats(const KilnCpuPool *p)
{
    const int64_t reach = (p->out[2] + SLACK) * p->stride[2] + p->kernel[2] * p->dilation[2];
    const int64_t row = MAX(reach, p->pad[2] + p->in[2]);
    return round_up(row, KILN_CPU_LINE_FLOATS);
}

/* What changes no sum and no maximum, and no sign of a zero. */
static float
neutral(const KilnCpuPool *p)
{
    return p->average ? -0.0f : -INFINITY;
}

/* True where window @q of a row covers only padding. */
static bool
is_empty(const KilnCpuPool *p, int64_t q)
{
    for (int64_t k = 0; k < p->kernel[2]; k++) {
        const int64_t at = q * p->stride[2] - p->pad[2] + k * p->dilation[2];
        if (at >= 0 && at < p->in[2])
            return false;
    }
    return true;
}

typedef struct {
    KilnCpuPool p;
    const KilnCpuReducers *reducers;
    KilnCpuBinaryRow join;
    const float *in;
    float *out;
    float *counts;       /* per window of a row; less than 0 of empty ones: -0 becomes 0 */
    float *rows;         /* one per thread */
    int64_t row, bundle; /* floats of a row; rows of the result of a task */
    /* Windows of a row that are read from the image itself, in vectors: up to end where the image
       has reach floats from the row on, else up to safe_end; and lines of windows that lie in it.
     */
    int64_t first, end, safe_end, reach, top, bottom;
} Run;

/* Joins the rows under windows (z, y) of @plane into @row; what is left and right of it stays. */
static void
join_rows(const Run *r, const float *plane, const int64_t at[2], float *row)
{
    const KilnCpuPool *p = &r->p;
    bool first = true;
    for (int64_t k = 0; k < p->kernel[0] * p->kernel[1]; k++) {
        const int64_t z = at[0] * p->stride[0] - p->pad[0] + k / p->kernel[1] * p->dilation[0];
        const int64_t y = at[1] * p->stride[1] - p->pad[1] + k % p->kernel[1] * p->dilation[1];
        if (z < 0 || z >= p->in[0] || y < 0 || y >= p->in[1])
            continue;
        const float *x = plane + (z * p->in[1] + y) * p->in[2];
        if (first)
            memcpy(row, x, (size_t)p->in[2] * sizeof *x);
        else
            r->join(row, row, x, p->in[2]);
        first = false;
    }
    for (int64_t i = 0; first && i < p->in[2]; i++)
        row[i] = p->average ? 0 : -INFINITY;
}

/* The rows of windows (z, y) that lie in an image of two dims. */
typedef struct {
    const float *x;
    int64_t n, pitch;
} Rows;

static Rows
rows_inside(const KilnCpuPool *p, const float *plane, int64_t y)
{
    const int64_t top = y * p->stride[1] - p->pad[1];
    int64_t first = 0, end = p->kernel[1];
    while (first < end && top + first * p->dilation[1] < 0)
        first++;
    while (end > first && top + (end - 1) * p->dilation[1] >= p->in[1])
        end--;
    const float *x = first < end ? plane + (top + first * p->dilation[1]) * p->in[2] : NULL;
    return (Rows){ x, end - first, p->dilation[1] * p->in[2] };
}

/* Keeps a NaN of either; without branches, which nobody could foresee. */
static inline float
larger(float best, float x)
{
    const float larger = x > best ? x : best;
    return x != x ? x : larger;
}

/* One window over @rows, which may hang over their ends. */
static float
window_at(const Run *r, const Rows *rows, int64_t q, float count)
{
    const KilnCpuPool *p = &r->p;
    float y = neutral(p);
    for (int64_t k = 0; k < p->kernel[2]; k++) {
        const int64_t at = q * p->stride[2] - p->pad[2] + k * p->dilation[2];
        if (at < 0 || at >= p->in[2])
            continue;
        float tap = rows->x[at];
        for (int64_t i = 1; i < rows->n; i++) {
            const float x = rows->x[i * rows->pitch + at];
            tap = p->average ? tap + x : larger(tap, x);
        }
        y = p->average ? y + tap : larger(y, tap);
    }
    return p->average ? y / (r->counts[q] * count) : y;
}

static void
pool_windows(const Run *r, const KilnCpuWindows *w)
{
    if (r->p.average)
        r->reducers->average_windows(w);
    else
        r->reducers->max_windows(w);
}

/* Lines of the result, read from the image itself, which ends at @image_end. */
static void
pool_lines(const Run *r, Rows rows, const float *image_end, int64_t lines, float count, float *out)
{
    const KilnCpuPool *p = &r->p;
    for (int64_t q = 0; rows.n == 0 && q < p->out[2]; q++)
        out[q] = p->average ? 0 : -INFINITY;
    if (rows.n == 0)
        return;
    const int64_t line_in = p->stride[1] * p->in[2];
    const float *last_row = rows.x + (rows.n - 1) * rows.pitch + (lines - 1) * line_in;
    const int64_t end = image_end - last_row >= r->reach ? r->end : r->safe_end;
    KilnCpuWindows w = { .out = out + r->first,
                         .x = rows.x + r->first * p->stride[2] - p->pad[2],
                         .n = end - r->first,
                         .stride = p->stride[2],
                         .taps = p->kernel[2],
                         .dilation = p->dilation[2],
                         .rows = rows.n,
                         .pitch = rows.pitch,
                         .lines = lines,
                         .line_in = line_in,
                         .line_out = p->out[2],
                         .counts = r->counts + r->first,
                         .count = count };
    pool_windows(r, &w);
    for (int64_t i = 0; i < lines; i++, rows.x += line_in, out += p->out[2]) {
        for (int64_t q = 0; q < r->first; q++)
            out[q] = window_at(r, &rows, q, count);
        for (int64_t q = end; q < p->out[2]; q++)
            out[q] = window_at(r, &rows, q, count);
    }
}

/* How many lines of windows from @y on have all their rows inside and reach no further than the
 * image does; one if the first does not. */
static int64_t
lines_inside(const Run *r, Rows rows, const float *image_end, int64_t y, int64_t end)
{
    const KilnCpuPool *p = &r->p;
    const int64_t room = image_end - rows.x - (rows.n - 1) * rows.pitch - r->reach;
    if (y < r->top || y >= r->bottom || rows.n == 0 || room < 0)
        return 1;
    return MIN(MIN(end, r->bottom) - y, room / (p->stride[1] * p->in[2]) + 1);
}

/* One row of the result, from rows that are joined into @row first. */
static void
pool_joined(const Run *r, const float *plane, const int64_t at[2], float count, float *row,
            float *out)
{
    const KilnCpuPool *p = &r->p;
    join_rows(r, plane, at, row + p->pad[2]);
    KilnCpuWindows w = { .out = out,
                         .x = row,
                         .n = p->out[2],
                         .stride = p->stride[2],
                         .taps = p->kernel[2],
                         .dilation = p->dilation[2],
                         .rows = 1,
                         .lines = 1,
                         .counts = r->counts,
                         .count = count };
    pool_windows(r, &w);
}

/* Rows of the result, from row @first of plane @number on, until there are @n or the plane ends;
 * how many they were. */
static int64_t
pool_plane(const Run *r, int64_t number, int64_t first, int64_t n, float *row)
{
    const KilnCpuPool *p = &r->p;
    const int64_t per_plane = p->out[0] * p->out[1], end = MIN(first + n, per_plane);
    const int64_t image = number / p->channels, channel = number % p->channels;
    const int64_t plane_in = p->in[0] * p->in[1] * p->in[2];
    const float *plane = r->in + image * p->in_image + channel * plane_in;
    const float *image_end = plane + (p->channels - channel) * plane_in;
    float *out = r->out + image * p->out_image + channel * per_plane * p->out[2];
    for (int64_t i = first, lines; i < end; i += lines) {
        const int64_t at[2] = { i / p->out[1], i % p->out[1] };
        float count = 1;
        if (p->average)
            count =
                (float)MAX(1, kiln_cpu_pool_taps(p, 0, at[0]) * kiln_cpu_pool_taps(p, 1, at[1]));
        lines = 1;
        if (r->first < r->end) {
            const Rows rows = rows_inside(p, plane, at[1]);
            lines = lines_inside(r, rows, image_end, i, end);
            pool_lines(r, rows, image_end, lines, count, out + i * p->out[2]);
        } else {
            pool_joined(r, plane, at, count, row, out + i * p->out[2]);
        }
    }
    return end - first;
}

static void
run_task(const void *data, int64_t task, int thread)
{
    const Run *r = data;
    const KilnCpuPool *p = &r->p;
    const int64_t per_plane = p->out[0] * p->out[1];
    const int64_t end = MIN((task + 1) * r->bundle, p->planes * per_plane);
    float *row = r->rows + thread * r->row;
    for (int64_t i = 0; i < r->row && r->first == r->end; i++)
        row[i] = neutral(p);
    for (int64_t i = task * r->bundle; i < end;)
        i += pool_plane(r, i / per_plane, i % per_plane, end - i, row);
}

/* How many windows end in the first @length positions of dim @d. */
static int64_t
windows_within(const KilnCpuPool *p, int d, int64_t length)
{
    const int64_t reach = (p->kernel[d] - 1) * p->dilation[d] + 1 - p->pad[d];
    return MIN(p->out[d], (length - reach + p->stride[d]) / p->stride[d]);
}

/* Which windows lie inside the image; none where more than EDGES lie at its edges, which take as
 * long as a vector each. Narrow rows
 * leave lanes of the widest vectors idle. */
static void
find_inside(Run *r)
{
    const KilnCpuPool *p = &r->p;
    const int64_t first = ceil_div(p->pad[2], p->stride[2]);
    const int64_t safe_end = windows_within(p, 2, p->in[2] - (p->stride[2] - 1));
    const int64_t end = windows_within(p, 2, p->in[2]);
    const bool flat = p->kernel[0] == 1 && p->in[0] == 1 && p->out[0] == 1 && p->pad[0] == 0;
    const KilnCpuReducers *reducers = r->reducers;
    if (end - first <= 8 && reducers->vector > 8)
        reducers = kiln_cpu_reducers(KILN_CPU_ISA_AVX2);
    const bool narrow = end - first < reducers->vector;
    if (!flat || end <= first || p->out[2] - (end - first) > EDGES ||
        (narrow && p->kernel[1] * p->kernel[2] > TAPS))
        return;
    r->reducers = reducers;
    r->first = first;
    r->safe_end = safe_end - first < reducers->vector ? first : safe_end;
    r->end = end;
    r->reach = first * p->stride[2] - p->pad[2] +
               MAX(end - first, reducers->vector) * p->stride[2] +
               (p->kernel[2] - 1) * p->dilation[2];
    r->top = MAX(0, ceil_div(p->pad[1], p->stride[1]));
    r->bottom = windows_within(p, 1, p->in[1]);
}

bool
kiln_cpu_pool_supports(const KilnInstr *instr)
{
    const int rank = cpu_type(instr, 1)->rank;
    if (rank < 3 || rank > 5 || !cpu_all_plain(instr, KILN_DTYPE_f32) || cpu_type(instr, 2))
        return false;
    KilnCpuPool p = kiln_cpu_pool_of(instr);
    return p.kernel[0] > 0 && p.kernel[1] > 0 && p.kernel[2] > 0 && p.pad[2] >= 0;
}

size_t
kiln_cpu_pool_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    KilnCpuPool p = kiln_cpu_pool_of(instr);
    const int64_t counts = round_up(p.out[2], KILN_CPU_LINE_FLOATS);
    return (size_t)(row_floats(&p) * threads + counts) * sizeof(float);
}

double
kiln_cpu_pool_cost(const KilnInstr *instr)
{
    KilnCpuPool p = kiln_cpu_pool_of(instr);
    KilnCpuPoolShape shape = { .planes = p.planes };
    memcpy(shape.in, p.in, sizeof shape.in);
    memcpy(shape.out, p.out, sizeof shape.out);
    memcpy(shape.kernel, p.kernel, sizeof shape.kernel);
    const int64_t reach = (p.kernel[2] - 1) * p.dilation[2] + 1;
    shape.edges = kiln_pool_edges(p.in[2], p.out[2], reach, p.stride[2], p.pad[2]);
    double terms[KILN_CPU_TERMS];
    kiln_pool_terms(&shape, terms);
    return kiln_cpu_cost(KILN_CPU_COST_pool, terms);
}

const char *
kiln_cpu_pool(const KilnKernelArgs *args)
{
    Run r = { .p = kiln_cpu_pool_of(args->instr),
              .reducers = kiln_cpu_reducers(KILN_CPU_ISA_AUTO),
              .in = args->data[1],
              .out = args->data[0],
              .counts = args->scratch };
    const KilnCpuPool *p = &r.p;
    const int64_t rows = p->planes * p->out[0] * p->out[1];
    const KilnCpuBinary join = p->average ? KILN_CPU_BINARY_add : KILN_CPU_BINARY_max;
    r.join = kiln_cpu_rows(KILN_CPU_ISA_AUTO)->binary[join][KILN_CPU_NONE_FIXED];
    r.row = row_floats(p);
    r.rows = r.counts + round_up(p->out[2], KILN_CPU_LINE_FLOATS);
    for (int64_t q = 0; q < p->out[2]; q++)
        r.counts[q] = is_empty(p, q) ? -1 : (float)kiln_cpu_pool_taps(p, 2, q);
    const int64_t reads = p->in[2] * p->kernel[0] * p->kernel[1];
    find_inside(&r);
    r.bundle = units_per_task(16384, reads);
    kiln_cpu_parallel(ceil_div(rows, r.bundle), args->threads, run_task, &r);
    return NULL;
}
