/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/cost.h"

#include "backends/cpu/costs.h"
#include "backends/cpu/costs_avx2.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"

static double
volume(const int64_t v[3])
{
    return (double)v[0] * (double)v[1] * (double)v[2];
}

/* What @extent floats are in vectors of sixteen, the widest there are: costs are of these. */
static double
vectors(int64_t extent)
{
    return (double)ceil_div(extent, 16);
}

static const double *
costs_of(KilnCpuCostKind kind)
{
    static const double wide[KILN_CPU_N_COSTS][KILN_CPU_TERMS] = KILN_CPU_COSTS;
    static const double narrow[KILN_CPU_N_COSTS][KILN_CPU_TERMS] = KILN_CPU_COSTS_AVX2;
    return (kiln_cpu_isa_best() == KILN_CPU_ISA_AVX512 ? wide : narrow)[kind];
}

double
kiln_cpu_cost(KilnCpuCostKind kind, const double terms[KILN_CPU_TERMS])
{
    const double *costs = costs_of(kind);
    double us = 0;
    for (int i = 0; i < KILN_CPU_TERMS; i++)
        us += terms[i] * costs[i];
    return us;
}

static void
set_terms(double terms[KILN_CPU_TERMS], double first, double second, double third)
{
    for (int i = 3; i < KILN_CPU_TERMS; i++)
        terms[i] = 0;
    terms[0] = first;
    terms[1] = second;
    terms[2] = third;
}

int64_t
kiln_pool_edges(int64_t in, int64_t out, int64_t reach, int64_t stride, int64_t pad)
{
    int64_t first = ceil_div(pad, stride), end = (in + pad - reach + stride) / stride;
    int64_t inside = (end < out ? end : out) - first;
    return inside > 0 ? out - inside : out;
}

/* The choice of kernel_pool.c between windows of the image and rows that are joined first. */
void
kiln_pool_terms(const KilnCpuPoolShape *s, double terms[KILN_CPU_TERMS])
{
    double rows = (double)s->planes * (double)s->out[0] * (double)s->out[1];
    double joins = (double)s->kernel[0] * (double)s->kernel[1];
    bool joined = s->in[0] > 1 || s->edges > 1;
    terms[0] = joined ? rows * joins * vectors(s->in[2]) : 0;
    terms[1] = rows;
    terms[2] = rows * (joined ? 1 : joins) * (double)s->kernel[2] * vectors(s->out[2]);
    terms[3] = joined ? 0 : rows * (double)s->edges * joins * (double)s->kernel[2];
    terms[4] = 1;
    terms[5] = joined ? rows : 0;
}

void
kiln_global_pool_terms(const KilnCpuPoolShape *s, double terms[KILN_CPU_TERMS])
{
    set_terms(terms, 4 * (double)s->planes * volume(s->in), (double)s->planes, 1);
}

void
kiln_rows_terms(int64_t rows, int64_t columns, double terms[KILN_CPU_TERMS])
{
    set_terms(terms, (double)rows * (double)columns, (double)rows, 1);
}

void
kiln_lstm_terms(int64_t steps, int64_t batch, int64_t in, int64_t hidden,
                double terms[KILN_CPU_TERMS])
{
    double gates = 4 * (double)steps * (double)batch * (double)hidden;
    for (int i = 4; i < KILN_CPU_TERMS; i++)
        terms[i] = 0;
    terms[0] = gates * (double)in;
    terms[1] = gates * (double)hidden;
    terms[2] = (double)steps;
    terms[3] = 1;
}

void
kiln_computed_terms(double flops, double terms[KILN_CPU_TERMS])
{
    set_terms(terms, flops, 0, 0);
}

void
kiln_moved_terms(double bytes, double terms[KILN_CPU_TERMS])
{
    set_terms(terms, bytes, 1, 0);
}

void
kiln_cpu_tail_terms(double flops, double bytes, double terms[KILN_CPU_TERMS])
{
    set_terms(terms, flops, bytes, 0);
}

void
kiln_relayout_terms(double bytes, double terms[KILN_CPU_TERMS])
{
    set_terms(terms, bytes, 1, 0);
}

KilnRates
kiln_cpu_rates(void)
{
    const double *computed = costs_of(KILN_CPU_COST_computed);
    const double *moved = costs_of(KILN_CPU_COST_moved), *tail = costs_of(KILN_CPU_COST_tail);
    const double *relayout = costs_of(KILN_CPU_COST_relayout);
    return (KilnRates){ .flop = computed[0],
                        .byte = moved[0],
                        .call = moved[1],
                        .tail_flop = tail[0],
                        .tail_byte = tail[1],
                        .relayout_byte = relayout[0],
                        .relayout_call = relayout[1] };
}
