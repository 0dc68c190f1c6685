/* SPDX-License-Identifier: Apache-2.0 */
/* The FMA peak: enough independent chains to hide the latency of two units, all in registers.
 * Bandwidth: sums of whole vectors, as fast as they can be loaded. */
#include "bench/bench_peak.h"

#include "bench/bench_stats.h"
#include "exec/team.h"

#include <stdlib.h>

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

/* --- bandwidth --- */

enum {
    LINE = 16,            /* floats */
    STRIP = 8 * LINE,     /* read by one turn of the loop */
    READ_BYTES = 4 << 20, /* by a thread in a run, at least */
};

static float
read_portable(const float *x, int64_t n)
{
    float sums[LINE] = { 0 };
    for (int64_t i = 0; i < n; i += LINE) {
        for (int k = 0; k < LINE; k++)
            sums[k] += x[i + k];
    }
    float sum = 0;
    for (int k = 0; k < LINE; k++)
        sum += sums[k];
    return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static float
read_avx512(const float *x, int64_t n)
{
    __m512 sums[8];
    for (int k = 0; k < 8; k++)
        sums[k] = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += STRIP) {
        for (int k = 0; k < 8; k++)
            sums[k] = _mm512_add_ps(sums[k], _mm512_loadu_ps(x + i + 16 * k));
    }
    for (int k = 1; k < 8; k++)
        sums[0] = _mm512_add_ps(sums[0], sums[k]);
    return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2"))) static float
read_avx2(const float *x, int64_t n)
{
    __m256 sums[8];
    for (int k = 0; k < 8; k++)
        sums[k] = _mm256_setzero_ps();
    for (int64_t i = 0; i < n; i += STRIP / 2) {
        for (int k = 0; k < 8; k++)
            sums[k] = _mm256_add_ps(sums[k], _mm256_loadu_ps(x + i + 8 * k));
    }
    for (int k = 1; k < 8; k++)
        sums[0] = _mm256_add_ps(sums[0], sums[k]);
    return _mm256_cvtss_f32(sums[0]);
}
#endif

typedef struct {
    float (*read_all)(const float *, int64_t);
    const float *x;
    int64_t n, turns;
} Part;

static void
read_part(const void *data, int64_t task, int member)
{
    (void)member;
    const Part *part = data;
    volatile float sum = 0;
    for (int64_t turn = 0; turn < part->turns; turn++)
        sum = part->read_all(part->x + task * part->n, part->n);
    (void)sum;
}

double
bench_bandwidth(int64_t bytes, int threads)
{
    float (*read_all)(const float *, int64_t) = read_portable;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        read_all = read_avx512;
    else if (__builtin_cpu_supports("avx2"))
        read_all = read_avx2;
#endif
    /* Whole strips per thread. */
    int64_t n = (bytes / threads / (int64_t)sizeof(float) + STRIP - 1) / STRIP * STRIP;
    n = n > 0 ? n : STRIP;
    const int64_t turns = READ_BYTES / (n * (int64_t)sizeof(float)) + 1;
    float *x = aligned_alloc(64, (size_t)(n * threads) * sizeof *x);
    double best = 1;
    for (int64_t i = 0; x && i < n * threads; i++)
        x[i] = 1;
    for (int run = 0; x && run < RUNS; run++) {
        double start = bench_now();
        kiln_team_tasks(threads, threads, read_part, &(Part){ read_all, x, n, turns });
        double read = (double)(n * threads * turns) * sizeof *x;
        double rate = read / (bench_now() - start) * 1e-9;
        best = rate > best ? rate : best;
    }
    free(x);
    return best;
}
