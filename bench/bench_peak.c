/* SPDX-License-Identifier: Apache-2.0 */
/* The FMA peak: enough independent chains to hide the latency of two units, all in registers. */
#include "bench/bench_peak.h"

#include "bench/bench_stats.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    CHAINS = 12, /* latency 4 or 5 × 2 units, with some to spare; fits 16 registers with the two
                    factors */
    STEPS = 1 << 18,
    RUNS = 9,
};

/* The sum leaves through memory that the compiler cannot see through, so that the chains are not
 * dead code. */
static volatile float sink;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double
chains_avx512(void)
{
    __m512 sums[CHAINS];
    const __m512 factor = _mm512_set1_ps(0.999999f), term = _mm512_set1_ps(1e-6f);
    for (int i = 0; i < CHAINS; i++)
        sums[i] = _mm512_set1_ps((float)i);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < CHAINS; i++)
            sums[i] = _mm512_fmadd_ps(sums[i], factor, term);
    }
    for (int i = 0; i < CHAINS; i++)
        sink = _mm512_cvtss_f32(sums[i]);
    return 2.0 * 16 * CHAINS * STEPS;
}

__attribute__((target("avx2,fma"))) static double
chains_avx2(void)
{
    __m256 sums[CHAINS];
    const __m256 factor = _mm256_set1_ps(0.999999f), term = _mm256_set1_ps(1e-6f);
    for (int i = 0; i < CHAINS; i++)
        sums[i] = _mm256_set1_ps((float)i);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < CHAINS; i++)
            sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
    }
    for (int i = 0; i < CHAINS; i++)
        sink = _mm256_cvtss_f32(sums[i]);
    return 2.0 * 8 * CHAINS * STEPS;
}
#endif

static double
chains_portable(void)
{
    float sums[4 * CHAINS];
    for (int i = 0; i < 4 * CHAINS; i++)
        sums[i] = (float)i;
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < 4 * CHAINS; i++)
            sums[i] = sums[i] * 0.999999f + 1e-6f;
    }
    for (int i = 0; i < 4 * CHAINS; i++)
        sink = sums[i];
    return 2.0 * 4 * CHAINS * STEPS;
}

double
bench_fma_peak(void)
{
    double (*chains)(void) = chains_portable;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        chains = chains_avx512;
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        chains = chains_avx2;
#endif
    double best = 0;
    for (int run = 0; run < RUNS; run++) {
        double start = bench_now();
        double flops = chains();
        double rate = flops / (bench_now() - start) * 1e-9;
        best = rate > best ? rate : best;
    }
    return best;
}
