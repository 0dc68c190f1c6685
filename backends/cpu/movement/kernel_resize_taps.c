/* SPDX-License-Identifier: Apache-2.0 */
/* resize of any dims of f32, linear and cubic, with every option: one dim after the other, from the
 * last on. A dim has a table of taps: for each coordinate of the result the elements of the operand
 * that it is made of, and their weights. Weights of 0 are left out, so that an infinity there does
 * not matter. Where a dim has others behind it, a row of these is the weighted sum of rows. Slabs
 * whose coordinate lies outside get the extrapolation value at the end. Operands: result, data. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/weighted.h"
#include "backends/cpu/parallel.h"
#include "ir/kernel.h"

#include <math.h>
#include <string.h>

enum {
    TASK_FLOATS = 1 << 14,
    PIECE = 2048, /* floats of a row that stay in the cache */
};

typedef struct {
    int64_t at;
    float weight;
} Tap;

typedef struct {
    const KilnInstrAttrs_resize *attrs;
    const char *coordinates;
    bool cubic;
    int64_t in, out;
    double scale, roi_begin, roi_end;
    double stretch; /* of the kernel, which covers what an element of a smaller result covers */
    int64_t first;  /* tap, counted from the element left of a coordinate */
    int64_t width;  /* taps that a coordinate may have */
    bool resizes;
    bool leaves; /* some coordinates have no tap */
    int64_t *counts;
    Tap *taps;
} Axis;

/* --- tables --- */

static Axis
axis_of(const KilnInstr *instr, int d)
{
    const KilnInstrAttrs_resize *attrs = kiln_instr_attrs(instr, resize);
    const int rank = cpu_type(instr, 1)->rank;
    Axis axis = { .attrs = attrs,
                  .coordinates = attrs->coordinate_transformation_mode,
                  .cubic = strcmp(attrs->mode, "cubic") == 0,
                  .in = cpu_type(instr, 1)->dims[d],
                  .out = cpu_type(instr, 0)->dims[d],
                  .roi_end = 1,
                  .stretch = 1,
                  .width = 1 };
    const double ratio = (double)axis.out / (double)axis.in;
    const float given = (uint32_t)d < attrs->scales.n ? attrs->scales.v[d] : 0;
    axis.scale = given > 0 && given != (float)ratio ? (double)given : ratio;
    if (attrs->roi.n >= (uint32_t)(2 * rank)) {
        axis.roi_begin = (double)attrs->roi.v[d];
        axis.roi_end = (double)attrs->roi.v[d + rank];
    }
    if (attrs->antialias && axis.scale < 1)
        axis.stretch = fmax(axis.scale, 1.0 / (double)(4 * axis.in));
    axis.first = (int64_t)floor(-(axis.cubic ? 2.0 : 1.0) / axis.stretch) + 1;
    if (axis.in > 0)
        axis.width = min_of(axis.in, 2 - 2 * axis.first);
    const bool crops = strcmp(axis.coordinates, "tf_crop_and_resize") == 0;
    axis.resizes = axis.in != axis.out || axis.scale != 1 || crops;
    return axis;
}

static double
original(const Axis *axis, int64_t i)
{
    const double x = (double)i, in = (double)axis->in, out = in * axis->scale;
    const double half = (x + 0.5) / axis->scale - 0.5;
    if (strcmp(axis->coordinates, "align_corners") == 0)
        return out == 1 ? 0 : x * (in - 1) / (out - 1);
    if (strcmp(axis->coordinates, "asymmetric") == 0)
        return x / axis->scale;
    if (strcmp(axis->coordinates, "tf_crop_and_resize") == 0) {
        const double room = (axis->roi_end - axis->roi_begin) * (in - 1);
        return axis->roi_begin * (in - 1) + (out == 1 ? room / 2 : x * room / (out - 1));
    }
    if (strcmp(axis->coordinates, "pytorch_half_pixel") == 0)
        return axis->out > 1 ? half : 0;
    if (strcmp(axis->coordinates, "half_pixel_symmetric") == 0)
        return in / 2 * (1 - (double)axis->out / out) + half;
    return half;
}

/* The triangle, or the cubic of Keys. */
static double
weight_at(const Axis *axis, double x)
{
    const double a = (double)axis->attrs->cubic_coeff_a, size = fabs(x);
    if (!axis->cubic)
        return size < 1 ? 1 - size : 0;
    if (size <= 1)
        return ((a + 2) * size - (a + 3)) * size * size + 1;
    return size < 2 ? ((a * size - 5 * a) * size + 8 * a) * size - 4 * a : 0;
}

static int64_t
clamped(double x, int64_t n)
{
    return !(x > 0) ? 0 : x >= (double)(n - 1) ? n - 1 : (int64_t)x;
}

/* Neighbours outside are the outermost element, whose weights are one. */
static int64_t
fill_taps(const Axis *axis, double x, Tap *taps)
{
    double sum = 0, weight = 0;
    int64_t n = 0;
    for (int64_t i = axis->first; i <= 1 - axis->first; i++) {
        const double at = floor(x) + (double)i;
        const bool outside = at < 0 || at >= (double)axis->in;
        if (axis->attrs->exclude_outside && outside)
            continue;
        const double here = weight_at(axis, (at - x) * axis->stretch);
        const int64_t element = clamped(at, axis->in);
        sum += here;
        if (n > 0 && taps[n - 1].at == element) {
            weight += here;
            taps[n - 1].weight = (float)weight;
        } else if (here != 0) {
            weight = here;
            taps[n++] = (Tap){ element, (float)here };
        }
    }
    for (int64_t i = 0; i < n; i++)
        taps[i].weight = (float)((double)taps[i].weight / sum);
    return sum == 0 ? 0 : n;
}

static void
fill_axis(Axis *axis, char **scratch)
{
    const bool crops = strcmp(axis->coordinates, "tf_crop_and_resize") == 0;
    axis->counts = (int64_t *)(void *)*scratch;
    axis->taps = (Tap *)(void *)(axis->counts + axis->out);
    *scratch = (char *)(axis->taps + axis->out * axis->width);
    for (int64_t i = 0; i < axis->out; i++) {
        const double x = original(axis, i);
        const bool outside = crops && !(x >= 0 && x <= (double)(axis->in - 1));
        axis->counts[i] = outside ? 0 : fill_taps(axis, x, axis->taps + i * axis->width);
        axis->leaves |= axis->counts[i] == 0;
    }
}

/* --- one dim --- */

/* From [outer, in, inner] to [outer, out, inner]. */
typedef struct {
    const Axis *axis;
    const KilnCpuWeightedRows *loops;
    const float *from;
    float *to;
    int64_t outer, inner, rows_per_task;
} Pass;

static void
sum_rows(const Pass *pass, int64_t row)
{
    const Axis *axis = pass->axis;
    const KilnCpuWeightedRows *loops = pass->loops;
    const int64_t o = row % axis->out, plane = row / axis->out * axis->in, count = axis->counts[o];
    const Tap *taps = axis->taps + o * axis->width;
    float *to = pass->to + row * pass->inner, weights[KILN_CPU_WEIGHTED_ROWS];
    const float *rows[KILN_CPU_WEIGHTED_ROWS];
    for (int64_t first = 0; first < pass->inner && count > 0; first += PIECE) {
        const int64_t n = min_of(PIECE, pass->inner - first);
        const int64_t some = min_of(count, KILN_CPU_WEIGHTED_ROWS);
        for (int64_t t = 0; t < some; t++) {
            rows[t] = pass->from + (plane + taps[t].at) * pass->inner + first;
            weights[t] = taps[t].weight;
        }
        if (some == 1 && weights[0] == 1)
            memcpy(to + first, rows[0], (size_t)n * sizeof *to);
        else
            loops->sum[some](to + first, rows, weights, n);
        for (int64_t t = some; t < count; t++) {
            const float *from = pass->from + (plane + taps[t].at) * pass->inner + first;
            loops->add(to + first, &from, &taps[t].weight, n);
        }
    }
}

static void
sum_elements(const Pass *pass, int64_t row)
{
    const Axis *axis = pass->axis;
    const float *from = pass->from + row * axis->in;
    float *to = pass->to + row * axis->out;
    for (int64_t o = 0; o < axis->out; o++) {
        const Tap *taps = axis->taps + o * axis->width;
        float sum = 0;
        for (int64_t t = 0; t < axis->counts[o]; t++)
            sum = t == 0 ? taps[0].weight * from[taps[0].at]
                         : sum + taps[t].weight * from[taps[t].at];
        to[o] = sum;
    }
}

static void
run_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Pass *pass = data;
    const bool elements = pass->inner == 1;
    const int64_t rows = elements ? pass->outer : pass->outer * pass->axis->out;
    const int64_t end = min_of((task + 1) * pass->rows_per_task, rows);
    for (int64_t row = task * pass->rows_per_task; row < end; row++) {
        if (elements)
            sum_elements(pass, row);
        else
            sum_rows(pass, row);
    }
}

static void
run_pass(Pass *pass, int threads)
{
    const bool elements = pass->inner == 1;
    const int64_t row = elements ? pass->axis->out : pass->inner;
    const int64_t rows = elements ? pass->outer : pass->outer * pass->axis->out;
    pass->rows_per_task = units_per_task(TASK_FLOATS, row);
    kiln_cpu_parallel(ceil_div(rows, pass->rows_per_task), threads, run_task, pass);
}

static void
extrapolate(const Axis *axis, float *to, int64_t outer, int64_t inner)
{
    for (int64_t row = 0; axis->leaves && row < outer * axis->out; row++) {
        for (int64_t i = 0; axis->counts[row % axis->out] == 0 && i < inner; i++)
            to[row * inner + i] = axis->attrs->extrapolation_value;
    }
}

/* --- the kernel --- */

/* Elements of the largest value between two dims; 0 where no more than one is resized. */
static int64_t
most_between(const KilnInstr *instr)
{
    const KilnType *in = cpu_type(instr, 1), *out = cpu_type(instr, 0);
    int64_t most = 0, behind = 1;
    int n = 0;
    for (int d = in->rank - 1; d >= 0; d--) {
        int64_t before = 1;
        for (int k = 0; k <= d; k++)
            before *= in->dims[k];
        if (n > 0)
            most = before * behind > most ? before * behind : most;
        n += axis_of(instr, d).resizes;
        behind *= out->dims[d];
    }
    return n > 1 ? most : 0;
}

bool
kiln_cpu_resize_taps_supports(const KilnInstr *instr)
{
    const char *mode = kiln_instr_attrs(instr, resize)->mode;
    return strcmp(mode, "nearest") != 0 && cpu_type(instr, 1)->rank > 0 &&
           cpu_all_plain(instr, KILN_DTYPE_f32);
}

size_t
kiln_cpu_resize_taps_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    size_t bytes = 2 * (size_t)most_between(instr) * sizeof(float) + sizeof(int64_t);
    for (int d = 0; d < cpu_type(instr, 1)->rank; d++) {
        const Axis axis = axis_of(instr, d);
        bytes += (size_t)axis.out * (sizeof(int64_t) + (size_t)axis.width * sizeof(Tap));
    }
    return bytes;
}

const char *
kiln_cpu_resize_taps(const KilnKernelArgs *args)
{
    const KilnType *out = cpu_type(args->instr, 0), *in = cpu_type(args->instr, 1);
    Axis axes[KILN_MAX_RANK];
    char *scratch = args->scratch;
    int left = 0;
    if (kiln_type_elements(in) == 0)
        return "there is nothing to resize";
    for (int d = 0; d < in->rank; d++) {
        axes[d] = axis_of(args->instr, d);
        fill_axis(&axes[d], &scratch);
        left += axes[d].resizes;
    }
    float *between[2] = { (float *)(void *)scratch,
                          (float *)(void *)scratch + most_between(args->instr) };
    const float *from = args->data[1];
    if (left == 0)
        memcpy(args->data[0], from, (size_t)kiln_type_elements(in) * sizeof *from);
    for (int d = in->rank - 1, n = 0; d >= 0; d--) {
        Pass pass = {
            .axis = &axes[d], .loops = kiln_cpu_weighted(), .from = from, .outer = 1, .inner = 1
        };
        if (!axes[d].resizes)
            continue;
        for (int k = 0; k < d; k++)
            pass.outer *= in->dims[k];
        for (int k = d + 1; k < in->rank; k++)
            pass.inner *= out->dims[k];
        pass.to = --left == 0 ? args->data[0] : between[n++ & 1];
        run_pass(&pass, args->threads);
        from = pass.to;
    }
    for (int d = 0; d < in->rank; d++) {
        int64_t outer = 1, inner = 1;
        for (int k = 0; k < in->rank; k++)
            *(k < d ? &outer : &inner) *= k == d ? 1 : out->dims[k];
        extrapolate(&axes[d], args->data[0], outer, inner);
    }
    return NULL;
}
