/* SPDX-License-Identifier: Apache-2.0 */
/* Lays out what the bins of a region read, and runs the loops of region.h over the planes of a
 * picture. Planes with numbers that are not finite are computed once more, element by element: what
 * weighs nothing must not be read there. */
#include "backends/cpu/sample/region.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

#include <math.h>
#include <string.h>

enum {
    LANES = 16,           /* of the widest vector */
    PLANES = 64,          /* of a task */
    MOST_BYTES = 1 << 26, /* of the tables of a thread */
};

typedef struct {
    const KilnCpuRegions *regions;
    const KilnCpuRegionLoops *loops;
    const KilnType *out, *in;
    const float *from;
    float *to;
    char *scratch;       /* of all threads, one behind the other */
    size_t scratch_size; /* of one */
    int64_t groups;      /* of planes, for each region */
} Run;

/* --- scratch memory --- */

/* The parts of a thread's scratch, each in whole lines. With @base NULL only sizes are counted. */
static void *
take(char *base, size_t *at, int64_t n, size_t size)
{
    char *part = base ? base + *at : NULL;
    *at += (size_t)round_up(n * (int64_t)size, KILN_CPU_LINE);
    return part;
}

typedef struct {
    KilnCpuRegion region;
    float *high, *low;  /* of a bin, by element */
    int64_t *column_of; /* the place of a column of the picture, or -1 */
} Work;

/* Returns the bytes of the scratch, which begins at @base. */
static size_t
divide(const KilnType *out, const KilnType *in, char *base, Work *work)
{
    size_t at = 0;
    KilnCpuRegion *r = &work->region;
    const int64_t longest = in->dims[2] > in->dims[3] ? in->dims[2] : in->dims[3];
    r->height = in->dims[2];
    r->width = in->dims[3];
    r->bins_y = out->dims[2];
    r->bins_x = out->dims[3];
    r->lanes = round_up(r->bins_x, LANES);
    const int64_t table = r->width * r->lanes;
    r->rows = take(base, &at, r->bins_y * r->height, sizeof *r->rows);
    r->row_begin = take(base, &at, r->bins_y + 1, sizeof *r->row_begin);
    r->floor_y = take(base, &at, r->bins_y, sizeof *r->floor_y);
    r->floor_x = take(base, &at, r->lanes, sizeof *r->floor_x);
    r->columns = take(base, &at, r->width, sizeof *r->columns);
    r->weights_x = take(base, &at, 2 * table, sizeof *r->weights_x);
    r->bias_x = take(base, &at, table, sizeof *r->bias_x);
    r->column_begin = take(base, &at, r->lanes, sizeof *r->column_begin);
    r->column_end = take(base, &at, r->lanes, sizeof *r->column_end);
    r->strip = take(base, &at, r->bins_y * r->width, sizeof *r->strip);
    work->high = take(base, &at, longest, sizeof *work->high);
    work->low = take(base, &at, longest, sizeof *work->low);
    work->column_of = take(base, &at, r->width, sizeof *work->column_of);
    return at;
}

static size_t
scratch_size(const KilnType *out, const KilnType *in)
{
    Work work;
    return divide(out, in, NULL, &work);
}

/* --- what bins read --- */

static void
lay_rows(Work *work, const KilnCpuRegions *regions, const void *side)
{
    KilnCpuRegion *r = &work->region;
    int64_t n = 0;
    for (int64_t p = 0; p < r->bins_y; p++) {
        const KilnCpuBin bin = regions->bin(side, p, work->high, work->low);
        r->row_begin[p] = n;
        r->floor_y[p] = bin.zero ? 0 : -INFINITY;
        for (int64_t i = bin.first; i < bin.end; i++) {
            if (work->high[i] != 0)
                r->rows[n++] = (KilnCpuRegionRow){ i, work->high[i], work->low[i] };
        }
    }
    r->row_begin[r->bins_y] = n;
}

/* Gives columns that a bin reads a place in their order, and their lanes no weight. */
static void
place_columns(Work *work, const KilnCpuRegions *regions, const void *side)
{
    KilnCpuRegion *r = &work->region;
    memset(work->column_of, 0xff, (size_t)r->width * sizeof *work->column_of);
    for (int64_t q = 0; q < r->bins_x; q++) {
        const KilnCpuBin bin = regions->bin(side, q, work->high, work->low);
        for (int64_t i = bin.first; i < bin.end; i++)
            work->column_of[i] = work->high[i] != 0 ? 0 : work->column_of[i];
    }
    r->n_columns = r->x_end = 0;
    r->x_begin = r->width;
    for (int64_t i = 0; i < r->width; i++) {
        if (work->column_of[i] < 0)
            continue;
        r->x_begin = min_of(r->x_begin, i);
        r->x_end = i + 1;
        work->column_of[i] = r->n_columns;
        r->columns[r->n_columns++] = i;
    }
    const int64_t n = r->n_columns * r->lanes;
    memset(r->weights_x, 0, (size_t)(2 * n) * sizeof *r->weights_x);
    for (int64_t i = 0; i < n; i++)
        r->bias_x[i] = -INFINITY;
}

static void
lay_columns(Work *work, const KilnCpuRegions *regions, const void *side)
{
    KilnCpuRegion *r = &work->region;
    place_columns(work, regions, side);
    for (int64_t q = 0; q < r->lanes; q++) {
        KilnCpuBin bin = { 0 };
        r->column_begin[q] = r->n_columns;
        r->column_end[q] = 0;
        if (q < r->bins_x)
            bin = regions->bin(side, q, work->high, work->low);
        r->floor_x[q] = bin.zero ? 0 : -INFINITY;
        for (int64_t i = bin.first; i < bin.end; i++) {
            if (work->high[i] == 0)
                continue;
            const int64_t k = work->column_of[i];
            r->weights_x[k * r->lanes + q] = work->high[i];
            r->weights_x[(r->n_columns + k) * r->lanes + q] = work->low[i];
            r->bias_x[k * r->lanes + q] = 0;
            r->column_begin[q] = min_of(r->column_begin[q], k);
            r->column_end[q] = k + 1;
        }
    }
}

/* --- planes with numbers that are not finite --- */

static double
careful_bin(const KilnCpuRegion *r, const float *from, int64_t p, int64_t q)
{
    const bool zero = !r->max || r->floor_y[p] == 0 || r->floor_x[q] == 0;
    double value = zero ? 0 : -INFINITY;
    for (int64_t i = r->row_begin[p]; i < r->row_begin[p + 1]; i++) {
        for (int64_t k = r->column_begin[q]; k < r->column_end[q]; k++) {
            const float here = from[r->rows[i].row * r->width + r->columns[k]];
            const bool low = r->max && here < 0;
            const double y = (double)(low ? r->rows[i].low : r->rows[i].high);
            const double x = (double)r->weights_x[((low ? r->n_columns : 0) + k) * r->lanes + q];
            if (x == 0)
                continue;
            if (!r->max)
                value += y * x * (double)here;
            else if (y * x * (double)here > value || here != here)
                value = y * x * (double)here;
        }
    }
    return r->max ? value : value * (double)r->scale;
}

static void
careful_plane(const KilnCpuRegion *r, const float *from, float *to)
{
    for (int64_t p = 0; p < r->bins_y; p++) {
        const bool empty = r->row_begin[p] == r->row_begin[p + 1];
        for (int64_t q = 0; q < r->bins_x; q++)
            to[p * r->bins_x + q] = empty ? 0 : (float)careful_bin(r, from, p, q);
    }
}

/* --- the run --- */

static void
run_task(const void *data, int64_t task, int thread)
{
    const Run *run = data;
    const KilnCpuRegions *regions = run->regions;
    _Alignas(8) char y[KILN_CPU_SIDE_BYTES], x[KILN_CPU_SIDE_BYTES];
    Work work = { .region = { .max = regions->max, .even = regions->even } };
    const int64_t n = task / run->groups, channels = run->in->dims[1];
    const int64_t first = task % run->groups * PLANES, end = min_of(first + PLANES, channels);
    divide(run->out, run->in, run->scratch + (size_t)thread * run->scratch_size, &work);
    const int64_t picture = regions->sides(regions->data, n, y, x, &work.region.scale);
    lay_rows(&work, regions, y);
    lay_columns(&work, regions, x);
    const KilnCpuRegion *r = &work.region;
    for (int64_t c = first; c < end; c++) {
        const float *from = run->from + (picture * channels + c) * r->height * r->width;
        float *to = run->to + (n * channels + c) * r->bins_y * r->bins_x;
        if (!run->loops->plane(r, from, to))
            careful_plane(r, from, to);
    }
}

static const KilnCpuRegionLoops *
loops(void)
{
    return KILN_CPU_OF_ISA(KILN_CPU_ISA_AUTO, &kiln_cpu_region);
}

/* The tables of a thread are for regions that are small in a picture that fits the caches. Where
 * they take more, the sums of each bin alone are as fast. */
bool
kiln_cpu_regions_supports(const KilnInstr *instr)
{
    const KilnType *out = cpu_type(instr, 0), *in = cpu_type(instr, 1);
    const int64_t most = INT64_C(1) << 20;
    return in->dtype == KILN_DTYPE_f32 && !in->layout && !out->layout && in->dims[2] <= most &&
           in->dims[3] <= most && out->dims[2] <= most && out->dims[3] <= most &&
           scratch_size(out, in) <= MOST_BYTES;
}

size_t
kiln_cpu_regions_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    return scratch_size(cpu_type(instr, 0), cpu_type(instr, 1)) * (size_t)threads;
}

const char *
kiln_cpu_regions_run(const KilnKernelArgs *args, const KilnCpuRegions *regions)
{
    Run run = { .regions = regions,
                .loops = loops(),
                .out = cpu_type(args->instr, 0),
                .in = cpu_type(args->instr, 1),
                .from = args->data[1],
                .to = args->data[0],
                .scratch = args->scratch };
    run.scratch_size = scratch_size(run.out, run.in);
    run.groups = ceil_div(run.in->dims[1], PLANES);
    kiln_cpu_parallel(run.out->dims[0] * run.groups, args->threads, run_task, &run);
    return NULL;
}
