/* SPDX-License-Identifier: Apache-2.0 */
/* batch, layer, root-mean-square, instance and group normalisation in f32 and f64, lrn in f32.
 * Variances are taken around the mean. In f32 it is found in two steps: the mean of all, then the
 * mean of what is left over. The statistics of a run are taken before its first element is written.
 */
#include "backends/cpu/cost.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/reduce/fold.h"
#include "backends/cpu/reduce/reduce.h"
#include "ir/tail.h"

#include <math.h>

enum {
    TASK_FLOATS = 8192, /* what a task of several runs writes, about */
    COLUMNS = 512,      /* channels of rows whose factors a task has at a time */
    TOGETHER = 8,       /* runs at most whose statistics are taken together */
};

/* Runs of elements that are normalised in one go. */
typedef struct {
    const KilnCpuReducers *reducers;
    int64_t runs, length;
    int64_t bundle; /* runs of a task */
    int64_t least;  /* of them, where a task has work of its own */
    const float *in;
    float *out;
    double epsilon;
    /* of channels */
    int64_t channels, per_run, plane; /* of all; of a run; floats of one */
    const float *scale, *bias, *mean, *variance;
    /* layer_normalization's further results; NULL where absent */
    float *means, *inverses;
    const float *residual; /* of layer_ and rms_normalization; NULL: none */
    KilnCpuBinaryRow add;
} Norm;

static int64_t
count(const KilnType *type, int from, int to)
{
    int64_t n = 1;
    for (int d = from; d < to; d++)
        n *= type->dims[d];
    return n;
}

/* --- f64 --- */

/* The same in f64, of which elements a plane apart have scales and biases of their own. */
typedef struct {
    int64_t runs, length, bundle;
    int64_t channels, plane;
    bool centred; /* the mean is taken away */
    double epsilon;
    const double *in, *residual, *scale, *bias, *mean, *variance; /* NULL where absent */
    double *out, *means, *inverses;
} Wide;

/* The sum of squares of what @n elements differ from @mean by. */
static double
squares_around(const double *x, int64_t n, double mean)
{
    const KilnCpuFoldLoop loop = kiln_cpu_folds()->row[KILN_CPU_FOLD_squares][KILN_DTYPE_f64];
    KilnCpuFolded sum = { .f = 0 };
    for (int64_t i = 0; i < n; i += COLUMNS) {
        const int64_t some = MIN(COLUMNS, n - i);
        double apart[COLUMNS];
        for (int64_t k = 0; k < some; k++)
            apart[k] = x[i + k] - mean;
        loop(apart, some, &sum);
    }
    return sum.f;
}

/* (x - shift) × factor × scale + bias of @n elements of @channel. */
static void
write_plane(const Wide *w, double *to, const double *x, int64_t n, double shift, double factor,
            int64_t channel)
{
    const double scale = factor * w->scale[channel], bias = w->bias ? w->bias[channel] : 0;
    for (int64_t i = 0; i < n; i++)
        to[i] = (x[i] - shift) * scale + bias;
}

/* The same of one element of each channel from @channel on. */
static void
write_channels(const Wide *w, double *to, const double *x, int64_t n, double shift, double factor,
               int64_t channel)
{
    const double *scale = w->scale + channel, *bias = w->bias ? w->bias + channel : NULL;
    for (int64_t i = 0; i < n; i++)
        to[i] = (x[i] - shift) * factor * scale[i] + (bias ? bias[i] : 0);
}

static void
run_wide(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Wide *w = data;
    const int64_t end = MIN((task + 1) * w->bundle, w->runs);
    const KilnCpuFoldLoop add = kiln_cpu_folds()->row[KILN_CPU_FOLD_sum][KILN_DTYPE_f64];
    const bool each = w->plane == 1;
    for (int64_t run = task * w->bundle; run < end; run++) {
        const double *x = w->in + run * w->length;
        double *to = w->out + run * w->length;
        KilnCpuFolded sum = { .f = 0 };
        for (int64_t i = 0; w->residual && i < w->length; i++)
            to[i] = x[i] + w->residual[run * w->length + i];
        x = w->residual ? to : x;
        if (w->centred)
            add(x, w->length, &sum);
        const double mean = sum.f / (double)w->length;
        const double variance = squares_around(x, w->length, mean) / (double)w->length;
        const double inverse = 1 / sqrt(variance + w->epsilon);
        const int64_t step = each ? w->length : w->plane;
        for (int64_t i = 0; i < w->length; i += step)
            (each ? write_channels : write_plane)(w, to + i, x + i, step, mean, inverse,
                                                  (run * w->length + i) / w->plane % w->channels);
        if (w->means)
            w->means[run] = mean;
        if (w->inverses)
            w->inverses[run] = inverse;
    }
}

/* batch_normalization: the statistics of channels are given. */
static void
run_wide_batch(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Wide *w = data;
    const int64_t end = MIN((task + 1) * w->bundle, w->runs);
    for (int64_t run = task * w->bundle; w->plane > 1 && run < end; run++) {
        const int64_t c = run % w->channels, at = run * w->length;
        write_plane(w, w->out + at, w->in + at, w->length, w->mean[c],
                    1 / sqrt(w->variance[c] + w->epsilon), c);
    }
    for (int64_t first = 0; w->plane == 1 && first < w->channels; first += COLUMNS) {
        const int64_t some = MIN(COLUMNS, w->channels - first);
        double scale[COLUMNS];
        for (int64_t c = 0; c < some; c++)
            scale[c] = w->scale[first + c] / sqrt(w->variance[first + c] + w->epsilon);
        for (int64_t run = task * w->bundle; run < end; run++) {
            const int64_t at = run * w->length + first;
            for (int64_t c = 0; c < some; c++)
                w->out[at + c] =
                    (w->in[at + c] - w->mean[first + c]) * scale[c] + w->bias[first + c];
        }
    }
}

static const double *
wide(const float *data)
{
    return (const double *)(const void *)data;
}

/* Runs what @n states of elements that are f64. */
static void
run_all_wide(const KilnKernelArgs *args, const Norm *n, bool centred)
{
    const Wide w = { .runs = n->runs,
                     .length = n->length,
                     .bundle = n->bundle,
                     .channels = n->channels ? n->channels : n->length,
                     .plane = n->plane ? n->plane : 1,
                     .centred = centred,
                     .epsilon = n->epsilon,
                     .in = args->data[1],
                     .out = args->data[0],
                     .residual = wide(n->residual),
                     .scale = wide(n->scale),
                     .bias = wide(n->bias),
                     .mean = wide(n->mean),
                     .variance = wide(n->variance),
                     .means = (double *)(void *)n->means,
                     .inverses = (double *)(void *)n->inverses };
    kiln_cpu_parallel(ceil_div(w.runs, w.bundle), args->threads,
                      n->mean ? run_wide_batch : run_wide, &w);
}

/* --- f32 --- */

static void run_rms(const void *data, int64_t task, int thread);

static void
run_all(const KilnKernelArgs *args, Norm *n, KilnCpuTask task)
{
    if (n->length == 0 && !n->means && !n->inverses)
        return; /* however many runs */
    n->reducers = kiln_cpu_reducers(KILN_CPU_ISA_AUTO);
    n->in = args->data[1];
    n->out = args->data[0];
    n->bundle = MAX(units_per_task(TASK_FLOATS, n->length), n->least);
    if (cpu_type(args->instr, 1)->dtype == KILN_DTYPE_f64) {
        run_all_wide(args, n, task != run_rms);
        return;
    }
    kiln_cpu_parallel(ceil_div(n->runs, n->bundle), args->threads, task, n);
}

typedef struct {
    float shift;    /* near the mean */
    double rest;    /* what the mean lies above it */
    double inverse; /* of the deviation */
} Statistics;

/* Of @some runs that follow each other at @x, step by step: each step of a run waits for the one
 * before, but not for other runs. */
static void
take_statistics(const Norm *n, const float *x, int64_t some, Statistics *s)
{
    const double length = (double)n->length;
    KilnCpuMoments m[TOGETHER];
    for (int64_t i = 0; i < some; i++)
        s[i].shift =
            (float)(n->reducers->reduce[KILN_CPU_REDUCE_SUM](x + i * n->length, n->length) /
                    length);
    for (int64_t i = 0; i < some; i++)
        m[i] = n->reducers->moments(x + i * n->length, n->length, s[i].shift);
    for (int64_t i = 0; i < some; i++) {
        s[i].rest = m[i].sum / length;
        s[i].inverse = 1 / sqrt(MAX(0, m[i].squares / length - s[i].rest * s[i].rest) + n->epsilon);
    }
}

/* --- batch_normalization, with given statistics --- */

static void
run_batch(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Norm *n = data;
    const int64_t end = MIN((task + 1) * n->bundle, n->runs);
    for (int64_t run = task * n->bundle; run < end; run++) {
        const int64_t c = run % n->channels;
        const double scale = (double)n->scale[c] / sqrt((double)n->variance[c] + n->epsilon);
        KilnCpuAffine a = { .shift = n->mean[c], .scale = (float)scale, .offset = n->bias[c] };
        n->reducers->affine(n->out + run * n->length, n->in + run * n->length, n->length, &a);
    }
}

/* Rows of channels, where nothing lies behind them. */
static void
run_batch_columns(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Norm *n = data;
    const int64_t end = MIN((task + 1) * n->bundle, n->runs);
    for (int64_t first = 0; first < n->channels; first += COLUMNS) {
        const int64_t some = MIN(COLUMNS, n->channels - first);
        float scale[COLUMNS];
        for (int64_t c = 0; c < some; c++)
            scale[c] = (float)((double)n->scale[first + c] /
                               sqrt((double)n->variance[first + c] + n->epsilon));
        for (int64_t run = task * n->bundle; run < end; run++) {
            const int64_t at = run * n->channels + first;
            n->reducers->affine_columns(n->out + at, n->in + at, some, n->mean + first, scale,
                                        n->bias + first);
        }
    }
}

static int
channel_axis(const KilnInstr *instr)
{
    return kiln_type_axis(cpu_type(instr, 1), kiln_instr_attrs(instr, batch_normalization)->axis);
}

bool
kiln_cpu_batch_normalization_supports(const KilnInstr *instr)
{
    return cpu_all_plain(instr, cpu_type(instr, 1)->dtype) && channel_axis(instr) >= 0 &&
           !kiln_instr_attrs(instr, batch_normalization)->training_mode;
}

const char *
kiln_cpu_batch_normalization(const KilnKernelArgs *args)
{
    const KilnType *type = cpu_type(args->instr, 1);
    const int axis = channel_axis(args->instr);
    const int64_t behind = count(type, axis + 1, type->rank);
    const bool columns = behind == 1 && type->dims[axis] > 1;
    Norm n = { .runs = count(type, 0, columns ? axis : axis + 1),
               .length = columns ? type->dims[axis] : behind,
               .epsilon = (double)kiln_instr_attrs(args->instr, batch_normalization)->epsilon,
               .channels = type->dims[axis],
               .plane = behind,
               .scale = args->data[2],
               .bias = args->data[3],
               .mean = args->data[4],
               .variance = args->data[5] };
    if (columns) /* each task takes the roots of all variances */
        n.least = ceil_div(n.runs, 4 * MAX(args->threads, 1));
    run_all(args, &n, columns ? run_batch_columns : run_batch);
    return NULL;
}

/* --- instance_normalization, group_normalization --- */

static void
run_group(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Norm *n = data;
    const int64_t end = MIN((task + 1) * n->bundle, n->runs);
    for (int64_t first = task * n->bundle; first < end; first += TOGETHER) {
        const int64_t some = MIN(TOGETHER, end - first);
        Statistics s[TOGETHER];
        take_statistics(n, n->in + first * n->length, some, s);
        for (int64_t plane = 0; plane < some * n->per_run; plane++) {
            const Statistics *of = &s[plane / n->per_run];
            const int64_t c = (first * n->per_run + plane) % n->channels;
            const int64_t at = first * n->length + plane * n->plane;
            const double scale = of->inverse * (double)n->scale[c];
            KilnCpuAffine a = { .shift = of->shift,
                                .scale = (float)scale,
                                .offset = (float)((double)n->bias[c] - of->rest * scale) };
            if (!isfinite(scale)) { /* the rest of the mean times infinity is no offset */
                a.shift = (float)((double)of->shift + of->rest);
                a.offset = n->bias[c];
            }
            n->reducers->affine(n->out + at, n->in + at, n->plane, &a);
        }
    }
}

static const char *
normalize_groups(const KilnKernelArgs *args, int64_t per_run, float epsilon)
{
    const KilnType *type = cpu_type(args->instr, 1);
    Norm n = { .epsilon = (double)epsilon,
               .channels = type->dims[1],
               .per_run = per_run,
               .plane = count(type, 2, type->rank),
               .scale = args->data[2],
               .bias = args->data[3] };
    n.length = n.plane * per_run;
    n.runs = kiln_type_elements(type) == 0 ? 0 : count(type, 0, 2) / per_run;
    run_all(args, &n, run_group);
    return NULL;
}

bool
kiln_cpu_instance_normalization_supports(const KilnInstr *instr)
{
    const KilnType *type = cpu_type(instr, 1);
    return cpu_all_plain(instr, type->dtype) && type->rank >= 2;
}

const char *
kiln_cpu_instance_normalization(const KilnKernelArgs *args)
{
    return normalize_groups(args, 1,
                            kiln_instr_attrs(args->instr, instance_normalization)->epsilon);
}

bool
kiln_cpu_group_normalization_supports(const KilnInstr *instr)
{
    const int64_t groups = kiln_instr_attrs(instr, group_normalization)->num_groups;
    const KilnType *type = cpu_type(instr, 1);
    return kiln_cpu_instance_normalization_supports(instr) && groups > 0 && type->dims[1] > 0 &&
           type->dims[1] % groups == 0 && kiln_type_elements(cpu_type(instr, 2)) == type->dims[1];
}

const char *
kiln_cpu_group_normalization(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_group_normalization *attrs =
        kiln_instr_attrs(args->instr, group_normalization);
    const int64_t channels = cpu_type(args->instr, 1)->dims[1];
    return normalize_groups(args, channels / attrs->num_groups, attrs->epsilon);
}

/* --- layer_normalization, rms_normalization --- */

static void
take_residual(Norm *n, const KilnKernelArgs *args)
{
    const uint32_t operand = kiln_residual_operand(args->instr->kind);
    if (!cpu_type(args->instr, operand))
        return;
    n->residual = args->data[operand];
    n->add = kiln_cpu_rows(KILN_CPU_ISA_AUTO)->binary[KILN_CPU_BINARY_add][KILN_CPU_NONE_FIXED];
}

/* What @some runs from @run on normalize: with a residual the sum, which waits in the place of the
 * result. */
static const float *
data_of(const Norm *n, int64_t run, int64_t some)
{
    const int64_t at = run * n->length;
    if (!n->residual)
        return n->in + at;
    n->add(n->out + at, n->in + at, n->residual + at, some * n->length);
    return n->out + at;
}

static void
run_layer(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Norm *n = data;
    const int64_t end = MIN((task + 1) * n->bundle, n->runs);
    for (int64_t first = task * n->bundle; first < end; first += TOGETHER) {
        const int64_t some = MIN(TOGETHER, end - first);
        const float *x = data_of(n, first, some);
        Statistics s[TOGETHER];
        take_statistics(n, x, some, s);
        for (int64_t i = 0; i < some; i++) {
            const int64_t run = first + i;
            KilnCpuAffine a = { .shift = s[i].shift,
                                .scale = (float)s[i].inverse,
                                .offset = (float)(-s[i].rest * s[i].inverse),
                                .scales = n->scale,
                                .offsets = n->bias };
            n->reducers->affine(n->out + run * n->length, x + i * n->length, n->length, &a);
            if (n->means)
                n->means[run] =
                    isfinite(s[i].shift) ? (float)((double)s[i].shift + s[i].rest) : s[i].shift;
            if (n->inverses)
                n->inverses[run] = (float)s[i].inverse;
        }
    }
}

static int
first_axis(const KilnInstr *instr, int64_t axis)
{
    return (int)(axis < 0 ? axis + cpu_type(instr, 1)->rank : axis);
}

/* Scale and bias have all elements of a run; where they are broadcast, the fallback is asked. */
bool
kiln_cpu_layer_normalization_supports(const KilnInstr *instr)
{
    const KilnType *type = cpu_type(instr, 1), *bias = cpu_type(instr, 3);
    const int axis = first_axis(instr, kiln_instr_attrs(instr, layer_normalization)->axis);
    const int64_t run = count(type, axis, type->rank);
    return cpu_all_plain(instr, type->dtype) && kiln_type_elements(cpu_type(instr, 2)) == run &&
           (!bias || kiln_type_elements(bias) == run);
}

double
kiln_cpu_layer_normalization_cost(const KilnInstr *instr)
{
    int64_t columns = kiln_type_elements(cpu_type(instr, 2));
    double terms[KILN_CPU_TERMS];
    kiln_rows_terms(columns ? kiln_type_elements(cpu_type(instr, 1)) / columns : 0, columns, terms);
    return kiln_cpu_cost(KILN_CPU_COST_layer_normalization, terms);
}

const char *
kiln_cpu_layer_normalization(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    const KilnType *type = cpu_type(instr, 1);
    const int axis = first_axis(instr, kiln_instr_attrs(instr, layer_normalization)->axis);
    Norm n = { .runs = count(type, 0, axis),
               .length = count(type, axis, type->rank),
               .epsilon = (double)kiln_instr_attrs(instr, layer_normalization)->epsilon,
               .scale = args->data[2],
               .bias = cpu_type(instr, 3) ? args->data[3] : NULL,
               .means = cpu_type(instr, 4) ? args->data[4] : NULL,
               .inverses = cpu_type(instr, 5) ? args->data[5] : NULL };
    take_residual(&n, args);
    run_all(args, &n, run_layer);
    return NULL;
}

static void
run_rms(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Norm *n = data;
    const int64_t end = MIN((task + 1) * n->bundle, n->runs);
    for (int64_t first = task * n->bundle; first < end; first += TOGETHER) {
        const int64_t some = MIN(TOGETHER, end - first);
        const float *x = data_of(n, first, some);
        double squares[TOGETHER];
        for (int64_t i = 0; i < some; i++)
            squares[i] = n->reducers->reduce[KILN_CPU_REDUCE_SQUARE](x + i * n->length, n->length);
        for (int64_t i = 0; i < some; i++) {
            const double root = sqrt(squares[i] / (double)n->length + n->epsilon);
            KilnCpuAffine a = { .scale = (float)(1 / root), .scales = n->scale };
            n->reducers->affine(n->out + (first + i) * n->length, x + i * n->length, n->length, &a);
        }
    }
}

bool
kiln_cpu_rms_normalization_supports(const KilnInstr *instr)
{
    const KilnType *type = cpu_type(instr, 1);
    const int axis = first_axis(instr, kiln_instr_attrs(instr, rms_normalization)->axis);
    return cpu_all_plain(instr, type->dtype) &&
           kiln_type_elements(cpu_type(instr, 2)) == count(type, axis, type->rank);
}

const char *
kiln_cpu_rms_normalization(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_rms_normalization *attrs =
        kiln_instr_attrs(args->instr, rms_normalization);
    const KilnType *type = cpu_type(args->instr, 1);
    const int axis = first_axis(args->instr, attrs->axis);
    Norm n = { .runs = count(type, 0, axis),
               .length = count(type, axis, type->rank),
               .epsilon = (double)attrs->epsilon,
               .scale = args->data[2] };
    take_residual(&n, args);
    run_all(args, &n, run_rms);
    return NULL;
}

/* --- lrn --- */

typedef struct {
    const KilnCpuReducers *reducers;
    const KilnInstrAttrs_lrn *attrs;
    int64_t channels, plane;
    const float *in;
    float *out;
} Lrn;

static void
run_channel(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Lrn *l = data;
    const int64_t c = task % l->channels, before = (l->attrs->size - 1) / 2;
    const int64_t first = MAX(0, c - before), last = MIN(l->channels - 1, c + l->attrs->size / 2);
    const float *x = l->in + task * l->plane;
    l->reducers->response(&(KilnCpuResponse){ .out = l->out + task * l->plane,
                                              .x = x,
                                              .first = x + (first - c) * l->plane,
                                              .n = l->plane,
                                              .channels = last - first + 1,
                                              .stride = l->plane,
                                              .bias = l->attrs->bias,
                                              .scale = l->attrs->alpha / (float)l->attrs->size,
                                              .beta = l->attrs->beta });
}

bool
kiln_cpu_lrn_supports(const KilnInstr *instr)
{
    return cpu_all_plain(instr, KILN_DTYPE_f32) && cpu_type(instr, 1)->rank >= 2;
}

const char *
kiln_cpu_lrn(const KilnKernelArgs *args)
{
    const KilnType *type = cpu_type(args->instr, 1);
    Lrn l = { .reducers = kiln_cpu_reducers(KILN_CPU_ISA_AUTO),
              .attrs = kiln_instr_attrs(args->instr, lrn),
              .channels = type->dims[1],
              .plane = count(type, 2, type->rank),
              .in = args->data[1],
              .out = args->data[0] };
    kiln_cpu_parallel(l.plane ? count(type, 0, 2) : 0, args->threads, run_channel, &l);
    return NULL;
}
