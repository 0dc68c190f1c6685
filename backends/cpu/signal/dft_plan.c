/* SPDX-License-Identifier: Apache-2.0 */
/* Factors of a length, tables of angles, and the run of a transform through its stages. */
#include "backends/cpu/isa.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/signal/dft.h"

#include <glib.h>
#include <math.h>
#include <string.h>

enum {
    LANES = KILN_CPU_DFT_LANES
};

/* --- plans --- */

/* Fours first: they do the work of two stages of two. What is left of @n is returned. */
static int64_t
factor(int64_t n, KilnCpuDftPlan *plan)
{
    static const int radices[] = { 4, 2, 3, 5, 7, 11, KILN_CPU_DFT_RADIX };
    plan->n_stages = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(radices); i++) {
        for (; n % radices[i] == 0; n /= radices[i])
            plan->radix[plan->n_stages++] = radices[i];
    }
    return n;
}

/* The length of the transforms that a transform of @n consists of. */
static int64_t
padded_length(int64_t n)
{
    KilnCpuDftPlan plan;
    int64_t padded = 1;
    if (factor(n, &plan) == 1)
        return n;
    while (padded < 2 * n - 1)
        padded *= 2;
    return padded;
}

/* The tables behind a plan. The second half is there only with a convolution. */
typedef struct {
    double *cosines, *sines;           /* of 2πi / padded */
    double *chirp_re, *chirp_im;       /* e^(-πi k² / n), n numbers */
    double *spectrum_re, *spectrum_im; /* of the chirp that is convolved with, / padded */
} Tables;

static Tables
tables_of(const KilnCpuDftPlan *plan)
{
    char *first = (char *)(uintptr_t)plan + round_up(sizeof *plan, KILN_CPU_LINE);
    Tables t = { .cosines = (double *)(void *)first };
    t.sines = t.cosines + plan->padded;
    t.chirp_re = t.sines + plan->padded;
    t.chirp_im = t.chirp_re + plan->n;
    t.spectrum_re = t.chirp_im + plan->n;
    t.spectrum_im = t.spectrum_re + plan->padded;
    return t;
}

size_t
kiln_cpu_dft_plan_size(int64_t n)
{
    const int64_t padded = padded_length(n);
    const int64_t doubles = padded == n ? 2 * n : 4 * padded + 2 * n;
    return (size_t)round_up(sizeof(KilnCpuDftPlan), KILN_CPU_LINE) +
           (size_t)doubles * sizeof(double);
}

int64_t
kiln_cpu_dft_scratch_size(int64_t n)
{
    return 4 * padded_length(n) * LANES;
}

/* A transform of one signal, whose length is a power of two, in place: for tables. */
static void
transform_one(double *re, double *im, int64_t n)
{
    for (int64_t i = 1, j = 0; i < n; i++) {
        int64_t bit = n / 2;
        for (; j & bit; bit /= 2)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            double a = re[i], b = im[i];
            re[i] = re[j];
            im[i] = im[j];
            re[j] = a;
            im[j] = b;
        }
    }
    for (int64_t half = 1; half < n; half *= 2) {
        for (int64_t k = 0; k < half; k++) {
            const double angle = -G_PI * (double)k / (double)half, c = cos(angle), s = sin(angle);
            for (int64_t i = k; i < n; i += 2 * half) {
                const double a = re[i + half] * c - im[i + half] * s;
                const double b = re[i + half] * s + im[i + half] * c;
                re[i + half] = re[i] - a;
                im[i + half] = im[i] - b;
                re[i] += a;
                im[i] += b;
            }
        }
    }
}

/* k² is taken modulo 2n, so that the angle stays exact. */
static double
chirp_angle(int64_t k, int64_t n)
{
    return G_PI * (double)(k * k % (2 * n)) / (double)n;
}

static void
make_chirp(const KilnCpuDftPlan *plan, const Tables *t)
{
    const int64_t n = plan->n, padded = plan->padded;
    double *re = t->spectrum_re, *im = t->spectrum_im;
    memset(re, 0, (size_t)padded * sizeof *re);
    memset(im, 0, (size_t)padded * sizeof *im);
    for (int64_t k = 0; k < n; k++) {
        const double angle = chirp_angle(k, n);
        t->chirp_re[k] = cos(angle);
        t->chirp_im[k] = -sin(angle);
        re[k] = re[(padded - k) % padded] = cos(angle) / (double)padded;
        im[k] = im[(padded - k) % padded] = sin(angle) / (double)padded;
    }
    transform_one(re, im, padded);
}

void
kiln_cpu_dft_plan(int64_t n, KilnCpuDftPlan *plan)
{
    plan->n = n;
    plan->padded = padded_length(n);
    factor(plan->padded, plan);
    const Tables t = tables_of(plan);
    for (int64_t i = 0; i < plan->padded; i++) {
        const double angle = 2 * G_PI * (double)i / (double)plan->padded;
        t.cosines[i] = cos(angle);
        t.sines[i] = -sin(angle);
    }
    if (plan->padded != n)
        make_chirp(plan, &t);
}

/* --- runs --- */

static KilnCpuDftLoops
loops_of_machine(void)
{
    return KILN_CPU_OF_ISA(KILN_CPU_ISA_AUTO, kiln_cpu_dft_stage);
}

/* Numbers of all lanes. */
typedef struct {
    double *re, *im;
} Numbers;

/* Transforms @from; the stages go to and fro between the two. Returns the one with the result. */
static Numbers
run_stages(const KilnCpuDftPlan *plan, const Tables *t, Numbers from, Numbers to)
{
    const KilnCpuDftLoops run = loops_of_machine();
    KilnCpuDftStage stage = { .cosines = t->cosines,
                              .sines = t->sines,
                              .n = plan->padded,
                              .length = plan->padded,
                              .stride = 1 };
    for (int i = 0; i < plan->n_stages; i++) {
        stage.re = from.re;
        stage.im = from.im;
        stage.to_re = to.re;
        stage.to_im = to.im;
        stage.radix = plan->radix[i];
        run(&stage);
        stage.length /= stage.radix;
        stage.stride *= stage.radix;
        const Numbers last = from;
        from = to;
        to = last;
    }
    return from;
}

/* @to = @from times one number for each index. @to may be @from. */
static void
multiply(Numbers to, Numbers from, const double *re, const double *im, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        const double c = re[k], s = im[k];
        for (int64_t i = k * LANES; i < (k + 1) * LANES; i++) {
            const double a = from.re[i], b = from.im[i];
            to.re[i] = a * c - b * s;
            to.im[i] = a * s + b * c;
        }
    }
}

const double *
kiln_cpu_dft_run(const KilnCpuDftPlan *plan, double *work)
{
    const int64_t size = plan->padded * LANES, used = plan->n * LANES;
    const Numbers a = { work, work + size }, b = { work + 2 * size, work + 3 * size };
    const Tables t = tables_of(plan);
    if (plan->padded == plan->n)
        return run_stages(plan, &t, a, b).re;
    multiply(a, a, t.chirp_re, t.chirp_im, plan->n);
    memset(a.re + used, 0, (size_t)(size - used) * sizeof(double));
    memset(a.im + used, 0, (size_t)(size - used) * sizeof(double));
    const Numbers product = run_stages(plan, &t, a, b), other = product.re == a.re ? b : a;
    multiply(product, product, t.spectrum_re, t.spectrum_im, plan->padded);
    /* With real and imaginary parts exchanged the same stages transform back. */
    const Numbers back = run_stages(plan, &t, (Numbers){ product.im, product.re }, other);
    const Numbers result = back.re == other.re ? product : other;
    multiply(result, (Numbers){ back.im, back.re }, t.chirp_re, t.chirp_im, plan->n);
    return result.re;
}
