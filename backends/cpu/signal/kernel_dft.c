/* SPDX-License-Identifier: Apache-2.0 */
/* dft of f32: some lines of the signal at a time are gathered side by side, transformed in double
 * and stored. An inverse transform is one with real and imaginary parts exchanged on both sides.
 * Operands: result, signal. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/signal/dft.h"

#include <math.h>
#include <string.h>

enum {
    LANES = KILN_CPU_DFT_LANES,
    LONGEST = 1 << 22, /* scratch of a thread is 256 bytes for each number, or more */
};

/* A line of one operand: numbers of @parts floats, @stride floats apart. */
typedef struct {
    int64_t extent, stride, parts;
} Line;

typedef struct {
    const KilnCpuDftPlan *plan;
    Line in, out;
    int64_t n, inner, lines;
    int64_t size;       /* of the scratch of a thread, in doubles */
    bool inverse, half; /* half: the signal is the first half of a symmetric spectrum */
    float *to;
    const float *from;
    double *scratch;
} Dft;

bool
kiln_cpu_dft_supports(const KilnInstr *instr)
{
    return cpu_all_plain(instr, KILN_DTYPE_f32) &&
           kiln_instr_attrs(instr, dft)->length.v[0] <= LONGEST;
}

size_t
kiln_cpu_dft_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    const int64_t n = kiln_instr_attrs(instr, dft)->length.v[0];
    return (size_t)(kiln_cpu_dft_scratch_size(n) * (threads > 1 ? threads : 1)) * sizeof(double);
}

size_t
kiln_cpu_dft_prepared(const KilnInstr *instr)
{
    return kiln_cpu_dft_plan_size(kiln_instr_attrs(instr, dft)->length.v[0]);
}

void
kiln_cpu_dft_prepare(const KilnInstr *instr, void *prepared)
{
    kiln_cpu_dft_plan(kiln_instr_attrs(instr, dft)->length.v[0], prepared);
}

static Line
line_of(const KilnType *type, int64_t axis)
{
    Line line = { .extent = type->dims[axis], .stride = 1, .parts = type->dims[type->rank - 1] };
    for (int d = (int)axis + 1; d < type->rank; d++)
        line.stride *= type->dims[d];
    return line;
}

/* The begin of line @i. */
static int64_t
offset(const Dft *d, const Line *line, int64_t i)
{
    return i / d->inner * line->extent * line->stride + i % d->inner * line->parts;
}

/* One line into one lane; zeros where the signal is shorter than the transform. Whether all of it
 * is finite. */
static bool
gather(const Dft *d, int64_t line, double *re, double *im)
{
    const float *from = d->from + offset(d, &d->in, line);
    const int64_t most = d->half ? d->n / 2 + 1 : d->n, there = min_of(most, d->in.extent);
    float lost = 0;
    for (int64_t k = 0; k < there; k++) {
        const float a = from[k * d->in.stride];
        const float b = d->in.parts == 2 ? from[k * d->in.stride + 1] : 0;
        lost += a * 0 + b * 0;
        re[k * LANES] = (double)a;
        im[k * LANES] = (double)b;
    }
    for (int64_t k = there; k < d->n; k++)
        re[k * LANES] = im[k * LANES] = 0;
    if (!d->half)
        return lost == 0;
    for (int64_t k = 1; k < there && 2 * k < d->n; k++) {
        re[(d->n - k) * LANES] = re[k * LANES];
        im[(d->n - k) * LANES] = -im[k * LANES];
    }
    im[0] = 0;
    if (d->n % 2 == 0)
        im[d->n / 2 * LANES] = 0;
    return lost == 0;
}

static void
scatter(const Dft *d, int64_t line, const double *re, const double *im)
{
    float *to = d->to + offset(d, &d->out, line);
    const double by = d->inverse ? 1 / (double)d->n : 1;
    for (int64_t k = 0; k < d->out.extent; k++) {
        to[k * d->out.stride] = (float)(re[k * LANES] * by);
        if (d->out.parts == 2)
            to[k * d->out.stride + 1] = (float)(im[k * LANES] * by);
    }
}

static void
store_nan(const Dft *d, int64_t line)
{
    float *to = d->to + offset(d, &d->out, line);
    for (int64_t k = 0; k < d->out.extent; k++) {
        for (int64_t part = 0; part < d->out.parts; part++)
            to[k * d->out.stride + part] = NAN;
    }
}

static void
run_lines(const void *data, int64_t task, int thread)
{
    const Dft *d = data;
    const int64_t first = task * LANES, lines = min_of(LANES, d->lines - first);
    const int64_t size = d->plan->padded * LANES;
    double *work = d->scratch + thread * d->size;
    double *re = d->inverse ? work + size : work, *im = d->inverse ? work : work + size;
    if (lines < LANES) /* idle lanes must not hold numbers that slow down */
        memset(work, 0, (size_t)(2 * size) * sizeof *work);
    bool finite[LANES];
    for (int64_t i = 0; i < lines; i++)
        finite[i] = gather(d, first + i, re + i, im + i);
    const double *result = kiln_cpu_dft_run(d->plan, work);
    const double *out_re = d->inverse ? result + size : result;
    const double *out_im = d->inverse ? result : result + size;
    for (int64_t i = 0; i < lines; i++) {
        if (finite[i])
            scatter(d, first + i, out_re + i, out_im + i);
        else
            store_nan(d, first + i);
    }
}

const char *
kiln_cpu_dft(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_dft *attrs = kiln_instr_attrs(args->instr, dft);
    const KilnType *out = cpu_type(args->instr, 0), *in = cpu_type(args->instr, 1);
    Dft d = { .plan = args->prepared,
              .in = line_of(in, attrs->axis),
              .out = line_of(out, attrs->axis),
              .n = attrs->length.v[0],
              .size = kiln_cpu_dft_scratch_size(attrs->length.v[0]),
              .inverse = attrs->inverse,
              .half = attrs->inverse && attrs->onesided,
              .to = args->data[0],
              .from = args->data[1],
              .scratch = args->scratch };
    if (kiln_type_elements(out) == 0)
        return NULL;
    d.inner = d.out.stride / d.out.parts;
    d.lines = d.inner;
    for (int64_t i = 0; i < attrs->axis; i++)
        d.lines *= out->dims[i];
    kiln_cpu_parallel(ceil_div(d.lines, LANES), args->threads, run_lines, &d);
    return NULL;
}
