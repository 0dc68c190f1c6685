/* SPDX-License-Identifier: Apache-2.0 */
/* softmax and log_softmax in f32: along rows where the axis is the innermost dim, else along
 * columns, with the same bits. Short rows are turned into columns first. Vectors go over several
 * rows where few columns lie side by side. Every element is read for the last time before it is
 * written.
 * Operands: result, data. */
#include "backends/cpu/cost.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/reduce/reduce.h"
#include "backends/cpu/reduce/softmax_loops.h"

enum {
    TASK_FLOATS = 4096, /* what a task of several rows writes, about */
    COLUMNS = 64,       /* of a task */
    SHORT = 24,         /* rows of up to so many elements leave vectors little to do */
    LONG = 16,          /* columns of fewer elements have too little for vectors of several rows */
};

typedef struct {
    const KilnCpuReducers *reducers;
    bool logarithm;
    int64_t outer, axis, inner;
    int64_t bundle; /* rows of a task */
    int64_t pieces; /* of the columns */
    const float *in;
    float *out;
} Softmax;

static void
logarithm_of_row(const Softmax *s, int64_t row)
{
    const float *x = s->in + row * s->axis;
    float max = (float)s->reducers->reduce[KILN_CPU_REDUCE_MAX](x, s->axis);
    float total = s->reducers->log_exp_sum(x, s->axis, max);
    KilnCpuAffine below = { .shift = max, .scale = 1, .offset = -total };
    s->reducers->affine(s->out + row * s->axis, x, s->axis, &below);
}

static void
run_rows(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Softmax *s = data;
    const int64_t first = task * s->bundle, end = MIN(first + s->bundle, s->outer);
    const int64_t at = first * s->axis;
    if (!s->logarithm)
        kiln_cpu_softmax_rows(s->reducers, s->out + at, s->in + at, end - first, s->axis);
    for (int64_t row = first; s->logarithm && row < end; row++)
        logarithm_of_row(s, row);
}

/* COLUMNS rows, or the rest. */
static void
run_short(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Softmax *s = data;
    const int64_t first = task * COLUMNS, n = MIN(COLUMNS, s->outer - first);
    const float *from = s->in + first * s->axis;
    float turned[SHORT * COLUMNS], *to = s->out + first * s->axis;
    for (int64_t r = 0; r < n; r++) {
        for (int64_t k = 0; k < s->axis; k++)
            turned[k * COLUMNS + r] = from[r * s->axis + k];
    }
    s->reducers->softmax_columns(&(KilnCpuSoftmaxColumns){ .out = turned,
                                                           .x = turned,
                                                           .axis = s->axis,
                                                           .stride = COLUMNS,
                                                           .width = n,
                                                           .logarithm = s->logarithm });
    for (int64_t r = 0; r < n; r++) {
        for (int64_t k = 0; k < s->axis; k++)
            to[r * s->axis + k] = turned[k * COLUMNS + r];
    }
}

static void
run_columns(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Softmax *s = data;
    const int64_t first = task % s->pieces * COLUMNS;
    const int64_t at = task / s->pieces * s->axis * s->inner + first;
    s->reducers->softmax_columns(&(KilnCpuSoftmaxColumns){ .out = s->out + at,
                                                           .x = s->in + at,
                                                           .axis = s->axis,
                                                           .stride = s->inner,
                                                           .width = MIN(COLUMNS, s->inner - first),
                                                           .logarithm = s->logarithm });
}

static void
run_narrow(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Softmax *s = data;
    const int64_t first = task * s->bundle, end = MIN(first + s->bundle, s->outer);
    for (int64_t i = first; i < end; i++)
        s->reducers->softmax_narrow(
            &(KilnCpuSoftmaxColumns){ .out = s->out + i * s->axis * s->inner,
                                      .x = s->in + i * s->axis * s->inner,
                                      .axis = s->axis,
                                      .stride = s->inner,
                                      .width = s->inner,
                                      .logarithm = s->logarithm });
}

static const char *
softmax(const KilnKernelArgs *args, int64_t axis, bool logarithm)
{
    const KilnType *type = cpu_type(args->instr, 1);
    const CpuAround around = cpu_around(type, axis);
    Softmax s = { .reducers = kiln_cpu_reducers(KILN_CPU_ISA_AUTO),
                  .logarithm = logarithm,
                  .outer = around.outer,
                  .axis = around.axis,
                  .inner = around.inner,
                  .in = args->data[1],
                  .out = args->data[0] };
    if (kiln_type_elements(type) == 0)
        return NULL;
    s.bundle = units_per_task(TASK_FLOATS, s.axis * s.inner);
    s.pieces = ceil_div(s.inner, COLUMNS);
    if (s.inner == 1 && s.axis <= SHORT)
        kiln_cpu_parallel(ceil_div(s.outer, COLUMNS), args->threads, run_short, &s);
    else if (s.inner == 1)
        kiln_cpu_parallel(ceil_div(s.outer, s.bundle), args->threads, run_rows, &s);
    else if (s.inner < KILN_CPU_NARROW && s.axis >= LONG)
        kiln_cpu_parallel(ceil_div(s.outer, s.bundle), args->threads, run_narrow, &s);
    else
        kiln_cpu_parallel(s.outer * s.pieces, args->threads, run_columns, &s);
    return NULL;
}

static double
cost(const KilnInstr *instr, int64_t axis)
{
    const KilnType *x = cpu_type(instr, 1);
    int64_t columns = x->rank ? x->dims[kiln_type_axis(x, axis)] : 1;
    double terms[KILN_CPU_TERMS];
    kiln_rows_terms(columns ? kiln_type_elements(x) / columns : 0, columns, terms);
    return kiln_cpu_cost(KILN_CPU_COST_softmax, terms);
}

double
kiln_cpu_softmax_cost(const KilnInstr *instr)
{
    return cost(instr, kiln_instr_attrs(instr, softmax)->axis);
}

double
kiln_cpu_log_softmax_cost(const KilnInstr *instr)
{
    return cost(instr, kiln_instr_attrs(instr, log_softmax)->axis);
}

const char *
kiln_cpu_softmax(const KilnKernelArgs *args)
{
    return softmax(args, kiln_instr_attrs(args->instr, softmax)->axis, false);
}

const char *
kiln_cpu_log_softmax(const KilnKernelArgs *args)
{
    return softmax(args, kiln_instr_attrs(args->instr, log_softmax)->axis, true);
}
