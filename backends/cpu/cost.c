/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/cost.h"

#include "backends/cpu/costs.h"
#include "backends/cpu/costs_avx2.h"
#include "backends/cpu/isa.h"

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

void
kiln_rows_terms(int64_t rows, int64_t columns, double terms[KILN_CPU_TERMS])
{
    kiln_cpu_set_terms(terms, (double)rows * (double)columns, (double)rows, 1);
}

void
kiln_computed_terms(double flops, double terms[KILN_CPU_TERMS])
{
    kiln_cpu_set_terms(terms, flops, 0, 0);
}

void
kiln_moved_terms(double bytes, double terms[KILN_CPU_TERMS])
{
    kiln_cpu_set_terms(terms, bytes, 1, 0);
}

void
kiln_cpu_tail_terms(double flops, double bytes, double terms[KILN_CPU_TERMS])
{
    kiln_cpu_set_terms(terms, flops, bytes, 0);
}

void
kiln_relayout_terms(double bytes, double terms[KILN_CPU_TERMS])
{
    kiln_cpu_set_terms(terms, bytes, 1, 0);
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
