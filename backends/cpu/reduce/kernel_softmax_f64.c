/* SPDX-License-Identifier: Apache-2.0 */
/* softmax and log_softmax in f64, by the loops of numbers.def: a few passes over rows that stay in
 * the cache, of which exponentials take most of the time. Along rows where the axis is the
 * innermost dim, else along columns. Operands: result, data. */
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/typed.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/reduce/fold.h"
#include "ir/kernel.h"

#include <math.h>
#include <string.h>

enum {
    TASK_ELEMENTS = 2048, /* of rows, about */
    COLUMNS = 64,         /* of a task */
};

typedef struct {
    const KilnCpuTypedRows *typed;
    KilnCpuFoldLoop largest, sum; /* of a row */
    bool logarithm;
    int64_t outer, axis, inner;
    int64_t bundle; /* rows of a task */
    int64_t pieces; /* of the columns */
    const double *in;
    double *out;
} Softmax;

/* out = a op b of @n elements. */
static void
combine(const Softmax *s, KilnCpuPair op, double *out, const double *a, const double *b, int64_t n,
        KilnCpuFixed fixed)
{
    s->typed->pair[op][KILN_DTYPE_f64](out, a, b, n, fixed);
}

static void
exponentials(const Softmax *s, double *out, const double *x, int64_t n)
{
    s->typed->one[KILN_CPU_ONE_exp][KILN_DTYPE_f64](out, x, n, &(KilnCpuParams){ 0 });
}

/* Takes the logarithm of the sum of exponentials from the elements of row @y. */
static void
take_logarithm(const Softmax *s, double *y)
{
    double powers[TASK_ELEMENTS];
    KilnCpuFolded total = { .f = 0 };
    for (int64_t k = 0; k < s->axis; k += TASK_ELEMENTS) {
        const int64_t n = min_of(TASK_ELEMENTS, s->axis - k);
        exponentials(s, powers, y + k, n);
        s->sum(powers, n, &total);
    }
    total.f = log(total.f);
    combine(s, KILN_CPU_PAIR_sub, y, y, &total.f, s->axis, KILN_CPU_SECOND_FIXED);
}

/* Rows @first to @first + @n, whose exponentials are taken together. */
static void
softmax_of_rows(const Softmax *s, int64_t first, int64_t n)
{
    double *out = s->out + first * s->axis;
    for (int64_t i = 0; i < n; i++) {
        const double *x = s->in + (first + i) * s->axis;
        KilnCpuFolded most = { .f = -INFINITY };
        s->largest(x, s->axis, &most);
        combine(s, KILN_CPU_PAIR_sub, out + i * s->axis, x, &most.f, s->axis,
                KILN_CPU_SECOND_FIXED);
    }
    for (int64_t i = 0; s->logarithm && i < n; i++)
        take_logarithm(s, out + i * s->axis);
    if (s->logarithm)
        return;
    exponentials(s, out, out, n * s->axis);
    for (int64_t i = 0; i < n; i++) {
        double *y = out + i * s->axis;
        KilnCpuFolded total = { .f = 0 };
        s->sum(y, s->axis, &total);
        total.f = 1 / total.f;
        combine(s, KILN_CPU_PAIR_mul, y, y, &total.f, s->axis, KILN_CPU_SECOND_FIXED);
    }
}

static void
run_rows(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Softmax *s = data;
    const int64_t first = task * s->bundle;
    softmax_of_rows(s, first, min_of(s->bundle, s->outer - first));
}

static void
run_columns(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Softmax *s = data;
    const int64_t first = task % s->pieces * COLUMNS, n = min_of(COLUMNS, s->inner - first);
    const int64_t at = task / s->pieces * s->axis * s->inner + first;
    const double *x = s->in + at;
    double *y = s->out + at, most[COLUMNS], total[COLUMNS] = { 0 }, power[COLUMNS];
    memcpy(most, x, (size_t)n * sizeof *most);
    for (int64_t k = 1; k < s->axis; k++)
        combine(s, KILN_CPU_PAIR_max, most, most, x + k * s->inner, n, KILN_CPU_NONE_FIXED);
    for (int64_t k = 0; k < s->axis; k++) {
        double *to = y + k * s->inner, *powers = s->logarithm ? power : to;
        combine(s, KILN_CPU_PAIR_sub, to, x + k * s->inner, most, n, KILN_CPU_NONE_FIXED);
        exponentials(s, powers, to, n);
        combine(s, KILN_CPU_PAIR_add, total, total, powers, n, KILN_CPU_NONE_FIXED);
    }
    for (int64_t i = 0; i < n; i++)
        total[i] = s->logarithm ? log(total[i]) : 1 / total[i];
    for (int64_t k = 0; k < s->axis; k++)
        combine(s, s->logarithm ? KILN_CPU_PAIR_sub : KILN_CPU_PAIR_mul, y + k * s->inner,
                y + k * s->inner, total, n, KILN_CPU_NONE_FIXED);
}

static const char *
softmax(const KilnKernelArgs *args, int64_t axis, bool logarithm)
{
    const KilnType *type = cpu_type(args->instr, 1);
    const CpuAround around = cpu_around(type, axis);
    const KilnCpuFoldRows *folds = kiln_cpu_folds();
    Softmax s = { .typed = kiln_cpu_typed(KILN_CPU_ISA_AUTO),
                  .largest = folds->row[KILN_CPU_FOLD_max][KILN_DTYPE_f64],
                  .sum = folds->row[KILN_CPU_FOLD_sum][KILN_DTYPE_f64],
                  .logarithm = logarithm,
                  .outer = around.outer,
                  .axis = around.axis,
                  .inner = around.inner,
                  .in = args->data[1],
                  .out = args->data[0] };
    if (kiln_type_elements(type) == 0)
        return NULL;
    s.bundle = units_per_task(TASK_ELEMENTS, s.axis);
    s.pieces = ceil_div(s.inner, COLUMNS);
    if (s.inner == 1)
        kiln_cpu_parallel(ceil_div(s.outer, s.bundle), args->threads, run_rows, &s);
    else
        kiln_cpu_parallel(s.outer * s.pieces, args->threads, run_columns, &s);
    return NULL;
}

bool
kiln_cpu_softmax_f64_supports(const KilnInstr *instr)
{
    return !cpu_type(instr, 0)->layout && !cpu_type(instr, 1)->layout;
}

const char *
kiln_cpu_softmax_f64(const KilnKernelArgs *args)
{
    return softmax(args, kiln_instr_attrs(args->instr, softmax)->axis, false);
}

const char *
kiln_cpu_log_softmax_f64(const KilnKernelArgs *args)
{
    return softmax(args, kiln_instr_attrs(args->instr, log_softmax)->axis, true);
}
