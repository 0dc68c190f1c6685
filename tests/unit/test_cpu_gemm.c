/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's matrix product against a naive loop in double precision: every instruction set
 * that this machine has, extents around the tile bounds, all ways to lay out and pack operands, and
 * the same bits for 1 to 4 threads. */
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/isa.h"
#include "graph/base/number.h"
#include "ir/slice.h"
#include "tests/unit/exact_memory.h"

#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Small integers and quarters: sums are exact in f32, so that any wrong term shows. */
static void
fill(float *x, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)((int)(seed >> 24) % 17 - 8) * 0.25f;
    }
}

/* A copy of @n floats that starts one byte off any alignment; *@whole owns it. */
static const void *
misaligned(const float *x, int64_t n, char **whole)
{
    *whole = exact_memory(4 * n + 1);
    memcpy(*whole + 1, x, (size_t)(4 * n));
    return *whole + 1;
}

static double
naive_at(const KilnCpuGemm *g, const KilnCpuGemmArgs *args, int64_t i, int64_t j)
{
    const float *a = args->a, *b = args->b;
    double sum = 0;
    for (int64_t k = 0; k < g->k; k++)
        sum += (double)a[i * g->a_row + k * g->a_col] * (double)b[k * g->b_row + j * g->b_col];
    double x = (double)g->alpha * sum;
    if (args->bias)
        x += (double)g->beta * (double)args->bias[i * g->bias_row + j * g->bias_col];
    if (args->residual)
        x += (double)args->residual[i * g->out_row + j];
    x = x < (double)g->tail.lo ? (double)g->tail.lo : x;
    return x > (double)g->tail.hi ? (double)g->tail.hi : x;
}

/* Run @g on its own packed copies and scratch; the operands' floats are given for packing. */
static void
run(const KilnCpuGemm *g, const KilnCpuGemmArgs *plain, int64_t a_floats, int64_t b_floats)
{
    KilnCpuGemmArgs args = *plain;
    char *a_bytes = NULL, *b_bytes = NULL;
    float *a_packed = NULL, *b_packed = NULL;
    args.a = misaligned(plain->a, a_floats, &a_bytes);
    args.b = misaligned(plain->b, b_floats, &b_bytes);
    if (g->a_packed) {
        a_packed = exact_memory(kiln_cpu_gemm_pack_a_size(g));
        kiln_cpu_gemm_pack_a(g, args.a, a_packed, KILN_SLICE_WHOLE);
        args.a = a_packed;
    }
    if (g->b_packed) {
        b_packed = exact_memory(kiln_cpu_gemm_pack_b_size(g));
        kiln_cpu_gemm_pack_b(g, args.b, b_packed, KILN_SLICE_WHOLE);
        args.b = b_packed;
    }
    args.scratch = exact_memory(kiln_cpu_gemm_scratch_size(g, args.threads));
    kiln_cpu_gemm_run(g, &args);
    free(args.scratch);
    free(a_packed);
    free(b_packed);
    free(a_bytes);
    free(b_bytes);
}

typedef struct {
    bool trans_a, trans_b, a_packed, b_packed;
    int bias; /* 0 none, 1 per row, 2 per column, 3 full, 4 scalar, 5 full with columns apart */
    bool residual, clip;
    float alpha, beta;
} Variant;

static const Variant variants[] = {
    { .alpha = 1, .beta = 1 },
    { .trans_b = true,
      .b_packed = true,
      .bias = 2,
      .residual = true,
      .clip = true,
      .alpha = 1,
      .beta = 1 },
    { .trans_a = true, .a_packed = true, .bias = 1, .residual = true, .alpha = 1, .beta = 1 },
    { .trans_a = true, .trans_b = true, .bias = 3, .alpha = 0.5f, .beta = 2 },
    { .b_packed = true, .a_packed = true, .bias = 4, .clip = true, .alpha = -1, .beta = 0.5f },
    { .trans_b = true, .bias = 5, .residual = true, .clip = true, .alpha = 2, .beta = 1 },
};

static KilnCpuGemm
problem(int64_t m, int64_t n, int64_t k, const Variant *v)
{
    KilnCpuGemm g = kiln_cpu_gemm_dense(m, n, k);
    if (v->trans_a) {
        g.a_row = 1;
        g.a_col = m;
    }
    if (v->trans_b) {
        g.b_row = 1;
        g.b_col = k;
    }
    g.out_row = n + 3;
    g.alpha = v->alpha;
    g.beta = v->beta;
    g.bias_row = v->bias == 1 || v->bias == 5 ? 1 : v->bias == 3 ? n : 0;
    g.bias_col = v->bias == 2 || v->bias == 3 ? 1 : v->bias == 5 ? m : 0;
    if (v->clip) {
        g.tail.lo = 0.0f;
        g.tail.hi = 6.0f;
    }
    g.tail.residual = v->residual;
    g.a_packed = v->a_packed;
    g.b_packed = v->b_packed;
    return g;
}

static void
check(KilnCpuIsa isa, int64_t m, int64_t n, int64_t k, int which)
{
    const Variant *v = &variants[which];
    KilnCpuGemm g = problem(m, n, k, v);
    g.isa = isa;
    int64_t a_floats = m * k, b_floats = k * n, out_floats = m * (n + 3);
    float *a = exact_memory(4 * a_floats), *b = exact_memory(4 * b_floats),
          *bias = exact_memory(4 * (m * n + m + n));
    float *first = exact_memory(4 * out_floats), *out = exact_memory(4 * out_floats);
    float *before = exact_memory(4 * out_floats);
    fill(a, a_floats, 1);
    fill(b, b_floats, 2);
    fill(bias, m * n + m + n, 3);
    fill(before, out_floats, 4);
    KilnCpuGemmArgs args = { .a = a, .b = b, .bias = v->bias ? bias : NULL };
    for (int threads = 1; threads <= (which % 3 == 0 ? 4 : 2); threads++) {
        memcpy(out, before, (size_t)(4 * out_floats));
        args.out = out;
        args.residual = v->residual ? out : NULL; /* in place */
        args.threads = threads;
        run(&g, &args, a_floats, b_floats);
        if (threads == 1)
            memcpy(first, out, (size_t)(4 * out_floats));
        else
            cr_assert_eq(memcmp(first, out, (size_t)(4 * out_floats)), 0, "bits differ");
    }
    args.residual = v->residual ? before : NULL;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double want = naive_at(&g, &args, i, j), got = (double)first[i * g.out_row + j];
            cr_assert(fabs(got - want) <= 1e-5 * (1 + fabs(want)),
                      "%s %ldx%ldx%ld variant %d at %ld,%ld: expected %g, found %g",
                      kiln_cpu_isa_name(isa), (long)m, (long)n, (long)k, which, (long)i, (long)j,
                      want, got);
        }
        cr_assert_eq(memcmp(first + i * g.out_row + n, before + i * g.out_row + n, 12), 0,
                     "wrote behind a row");
    }
    free(a);
    free(b);
    free(bias);
    free(first);
    free(out);
    free(before);
}

static bool
may_run(KilnCpuIsa isa)
{
    if (!kiln_cpu_isa_supported(isa))
        cr_log_info("skipped: this machine has no %s", kiln_cpu_isa_name(isa));
    return kiln_cpu_isa_supported(isa);
}

static void
check_edges(KilnCpuIsa isa)
{
    static const int64_t ms[] = { 0, 1, 2, 3, 4, 5, 6, 7, 13, 14, 15, 29 };
    static const int64_t ns[] = { 0, 1, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65, 95 };
    static const int64_t ks[] = { 0, 1, 7, 8, 19 };
    if (!may_run(isa))
        return;
    int which = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(ms); i++) {
        for (size_t j = 0; j < G_N_ELEMENTS(ns); j++) {
            for (size_t k = 0; k < G_N_ELEMENTS(ks); k++)
                check(isa, ms[i], ns[j], ks[k], which++ % (int)G_N_ELEMENTS(variants));
        }
    }
}

Test(cpu_gemm, edges_portable)
{
    check_edges(KILN_CPU_ISA_PORTABLE);
}

Test(cpu_gemm, edges_avx2)
{
    check_edges(KILN_CPU_ISA_AVX2);
}

Test(cpu_gemm, edges_avx512)
{
    check_edges(KILN_CPU_ISA_AVX512);
}

/* Shapes that make several blocks of depth, rows and columns, packing as a whole, and both sides.
 */
static void
check_blocks(KilnCpuIsa isa)
{
    static const int64_t shapes[][3] = {
        { 1, 1000, 512 },   { 1000, 1, 257 }, { 49, 520, 300 },  { 520, 49, 300 },
        { 200, 130, 1030 }, { 600, 40, 70 },  { 37, 1100, 70 },  { 3, 300, 1000 },
        { 128, 128, 64 },   { 2, 700, 600 },  { 300, 300, 300 },
    };
    if (!may_run(isa))
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        for (int v = 0; v < (int)G_N_ELEMENTS(variants); v += isa == KILN_CPU_ISA_PORTABLE ? 3 : 1)
            check(isa, shapes[i][0], shapes[i][1], shapes[i][2], v);
    }
}

Test(cpu_gemm, blocks_portable)
{
    check_blocks(KILN_CPU_ISA_PORTABLE);
}

Test(cpu_gemm, blocks_avx2)
{
    check_blocks(KILN_CPU_ISA_AVX2);
}

Test(cpu_gemm, blocks_avx512)
{
    check_blocks(KILN_CPU_ISA_AVX512);
}

/* Batch [2, 3] with A[2, 1], B[1, 3] broadcast, and A[2, 3] with one shared (packed) B. */
static void
check_batch(KilnCpuIsa isa, bool shared)
{
    enum {
        M = 20,
        N = 33,
        K = 17
    };
    KilnCpuGemm g = kiln_cpu_gemm_dense(M, N, K);
    g.isa = isa;
    g.rank = 2;
    g.b_packed = shared;
    static const int64_t dims[] = { 2, 3 };
    int64_t a_batch[] = { shared ? 3 * M * K : M * K, shared ? M * K : 0 };
    int64_t b_batch[] = { 0, shared ? 0 : K * N };
    for (int d = 0; d < 2; d++) {
        g.dims[d] = dims[d];
        g.a_batch[d] = a_batch[d];
        g.b_batch[d] = b_batch[d];
        g.out_batch[d] = d == 0 ? 3 * M * N : M * N;
    }
    float *a = exact_memory(4 * 6 * M * K), *b = exact_memory(4 * 3 * K * N),
          *out = exact_memory(4 * 6 * M * N);
    fill(a, 6 * M * K, 5);
    fill(b, 3 * K * N, 6);
    for (int threads = 1; threads <= 3; threads++) {
        memset(out, 0xff, 4 * 6 * M * N);
        KilnCpuGemmArgs args = { .a = a, .b = b, .out = out, .threads = threads };
        run(&g, &args, 6 * M * K, 3 * K * N);
        for (int64_t item = 0; item < 6; item++) {
            args.a = a + item / 3 * g.a_batch[0] + item % 3 * g.a_batch[1];
            args.b = b + item % 3 * g.b_batch[1];
            for (int64_t i = 0; i < M * N; i++) {
                double want = naive_at(&g, &args, i / N, i % N);
                cr_assert_eq((double)out[item * M * N + i], want, "item %ld", (long)item);
            }
        }
    }
    free(a);
    free(b);
    free(out);
}

Test(cpu_gemm, batch)
{
    for (KilnCpuIsa isa = KILN_CPU_ISA_PORTABLE; isa <= KILN_CPU_ISA_AVX512; isa++) {
        if (!may_run(isa))
            continue;
        check_batch(isa, false);
        check_batch(isa, true);
    }
}

/* The last of @n columns alone behind a vector, and with others beside it. */
static void
check_column_alone(KilnCpuIsa isa, int64_t m, int64_t n, int64_t k)
{
    KilnCpuGemm many = kiln_cpu_gemm_dense(m, n + 3, k);
    many.isa = isa;
    KilnCpuGemm alone = many;
    alone.n = n;
    float *a = exact_memory(4 * m * k), *b = exact_memory(4 * k * (n + 3));
    float *whole = exact_memory(4 * m * (n + 3)), *part = exact_memory(4 * m * (n + 3));
    for (int64_t i = 0; i < m * k; i++)
        a[i] = sinf((float)i);
    for (int64_t i = 0; i < k * (n + 3); i++)
        b[i] = cosf((float)i);
    KilnCpuGemmArgs args = { .a = a, .b = b, .out = whole, .threads = 1 };
    run(&many, &args, m * k, k * (n + 3));
    args.out = part;
    run(&alone, &args, m * k, k * (n + 3));
    for (int64_t i = 0; i < m; i++)
        cr_assert_eq(memcmp(part + i * (n + 3), whole + i * (n + 3), (size_t)(4 * n)), 0,
                     "row %ld of %ld x %ld x %ld, isa %d", i, m, n, k, (int)isa);
    free(a), free(b), free(whole), free(part);
}

Test(cpu_gemm, a_column_alone_has_the_bits_of_a_vector)
{
    static const int64_t vectors[] = {
        [KILN_CPU_ISA_PORTABLE] = 4, [KILN_CPU_ISA_AVX2] = 8, [KILN_CPU_ISA_AVX512] = 16
    };
    for (KilnCpuIsa isa = KILN_CPU_ISA_PORTABLE; isa <= KILN_CPU_ISA_AVX512; isa++) {
        for (int64_t m = 1; may_run(isa) && m <= 30; m++)
            check_column_alone(isa, m, vectors[isa] + 1, 19);
    }
}

/* Packing is a matter of speed: a folded constant and a run must agree to the bit. */
Test(cpu_gemm, packed_operands_give_the_same_bits)
{
    static const int64_t shapes[][3] = {
        { 1, 100, 70 }, { 3, 230, 300 }, { 49, 70, 300 }, { 33, 20, 513 }
    };
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        KilnCpuGemm g = kiln_cpu_gemm_dense(shapes[i][0], shapes[i][1], shapes[i][2]);
        float *a = exact_memory(4 * g.m * g.k), *b = exact_memory(4 * g.k * g.n);
        float *out[4];
        for (int64_t k = 0; k < g.m * g.k; k++)
            a[k] = sinf((float)k);
        for (int64_t k = 0; k < g.k * g.n; k++)
            b[k] = cosf((float)k);
        for (int v = 0; v < 4; v++) {
            out[v] = exact_memory(4 * g.m * g.n);
            g.a_packed = v & 1;
            g.b_packed = v & 2;
            KilnCpuGemmArgs args = { .a = a, .b = b, .out = out[v], .threads = 1 + v % 2 };
            run(&g, &args, g.m * g.k, g.k * g.n);
            cr_assert_eq(memcmp(out[0], out[v], (size_t)(4 * g.m * g.n)), 0, "shape %d", (int)i);
        }
        for (int v = 0; v < 4; v++)
            free(out[v]);
        free(a);
        free(b);
    }
}

/* @n numbers of 16 bits at @stored, and the same as floats at @wide. */
static void
fill_narrow(KilnGemmStorage storage, int64_t n, uint16_t *stored, float *wide)
{
    for (int64_t i = 0; i < n; i++) {
        float x = sinf((float)i);
        stored[i] = storage == KILN_GEMM_BF16 ? kiln_f32_to_bf16(x) : kiln_f32_to_f16(x);
        wide[i] =
            storage == KILN_GEMM_BF16 ? kiln_bf16_to_f32(stored[i]) : kiln_f16_to_f32(stored[i]);
    }
}

/* One product with B in 16 bits against B in floats: packed and not, on 1 to 4 threads. */
static void
check_narrow(KilnCpuGemm g, KilnGemmStorage storage)
{
    float *a = exact_memory(4 * g.m * g.k), *wide = exact_memory(4 * g.k * g.n),
          *want = exact_memory(4 * g.m * g.n);
    float *out = exact_memory(4 * g.m * g.n);
    uint16_t *stored = exact_memory(4 * g.k * g.n); /* as many bytes as run() copies of floats */
    for (int64_t i = 0; i < g.m * g.k; i++)
        a[i] = cosf((float)i);
    memset(stored, 0, (size_t)(4 * g.k * g.n));
    fill_narrow(storage, g.k * g.n, stored, wide);
    KilnCpuGemmArgs args = { .a = a, .b = wide, .out = want, .threads = 1 };
    run(&g, &args, g.m * g.k, g.k * g.n);
    int64_t floats = kiln_cpu_gemm_pack_b_size(&g);
    g.b_storage = storage;
    cr_expect_eq(kiln_cpu_gemm_pack_b_size(&g), g.m <= 4 ? floats / 2 : floats);
    args.b = stored;
    args.out = out;
    for (int v = 0; v < 8; v++) {
        g.b_packed = v % 2;
        args.threads = 1 + v / 2;
        memset(out, 0xff, (size_t)(4 * g.m * g.n));
        run(&g, &args, g.m * g.k, g.k * g.n);
        cr_assert_eq(memcmp(out, want, (size_t)(4 * g.m * g.n)), 0, "%s %ldx%ldx%ld variant %d",
                     kiln_cpu_isa_name(g.isa), (long)g.m, (long)g.n, (long)g.k, v);
    }
    free(a);
    free(wide);
    free(want);
    free(out);
    free(stored);
}

/* Storage is a matter of memory: numbers of 16 bits are the same as floats. */
Test(cpu_gemm, weights_in_16_bits_give_the_bits_of_floats)
{
    static const int64_t shapes[][3] = { { 1, 100, 70 },  { 1, 16, 9 },    { 2, 33, 300 },
                                         { 3, 130, 513 }, { 4, 200, 300 }, { 29, 40, 300 } };
    for (KilnCpuIsa isa = KILN_CPU_ISA_PORTABLE; isa <= KILN_CPU_ISA_AVX512; isa++) {
        if (!may_run(isa))
            continue;
        for (size_t i = 0; i < 2 * G_N_ELEMENTS(shapes); i++) {
            const int64_t *s = shapes[i / 2];
            KilnCpuGemm g = kiln_cpu_gemm_dense(s[0], s[1], s[2]);
            g.isa = isa;
            if (i % 2) {
                g.b_row = 1;
                g.b_col = g.k;
            }
            check_narrow(g, KILN_GEMM_BF16);
            check_narrow(g, KILN_GEMM_F16);
        }
    }
}

/* Clipping keeps NaN, and an infinite range clips nothing. */
/* Scratch for up to @most rows is enough for any number of them. */
static void
check_scratch_up_to(const KilnCpuGemm *gemm, int64_t most, int threads)
{
    KilnCpuGemm g = *gemm;
    g.m = most;
    int64_t enough = kiln_cpu_gemm_scratch_up_to(&g, threads);
    for (g.m = 1; g.m <= most; g.m++)
        cr_assert_leq(kiln_cpu_gemm_scratch_size(&g, threads), enough,
                      "%d of %d rows, %d columns, depth %d, form %d, %d threads", (int)g.m,
                      (int)most, (int)g.n, (int)g.k, (int)g.form, threads);
}

Test(cpu_gemm, scratch_for_fewer_rows)
{
    static const int64_t columns[] = { 1, 20, 128, 1030 }, depths[] = { 1, 40, 256, 1500 };
    static const int64_t most[] = { 1, 96, 256, 257, 1700 };
    for (size_t i = 0; i < 4 * 4 * 5 * 4; i++) {
        KilnCpuGemm g = kiln_cpu_gemm_dense(1, columns[i % 4], depths[i / 4 % 4]);
        g.form = i / 80 % 2 ? KILN_CPU_GEMM_TURNED : KILN_CPU_GEMM_STRAIGHT;
        g.b_packed = i / 160 % 2 == 0;
        g.bias_col = 1;
        for (g.isa = KILN_CPU_ISA_AUTO; g.isa <= KILN_CPU_ISA_AVX512; g.isa++) {
            if (!kiln_cpu_isa_supported(g.isa))
                continue;
            for (int threads = 1; threads <= 16; threads *= 4)
                check_scratch_up_to(&g, most[i / 16 % 5], threads);
        }
    }
    KilnCpuGemm none = kiln_cpu_gemm_dense(0, 20, 40);
    none.form = KILN_CPU_GEMM_STRAIGHT;
    cr_expect_eq(kiln_cpu_gemm_scratch_up_to(&none, 2), 0);
}

Test(cpu_gemm, nan_and_infinity_pass)
{
    for (KilnCpuIsa isa = KILN_CPU_ISA_PORTABLE; isa <= KILN_CPU_ISA_AVX512; isa++) {
        if (!may_run(isa))
            continue;
        KilnCpuGemm g = kiln_cpu_gemm_dense(1, 3, 1);
        g.isa = isa;
        float a[] = { 1.0f }, b[] = { NAN, INFINITY, -INFINITY }, out[3];
        KilnCpuGemmArgs args = { .a = a, .b = b, .out = out, .threads = 1 };
        run(&g, &args, 1, 3);
        cr_assert(isnan(out[0]) && isinf(out[1]) && isinf(out[2]) && out[2] < 0);
        g.tail.lo = 0.0f;
        run(&g, &args, 1, 3);
        cr_assert(isnan(out[0]) && isinf(out[1]) && out[2] == 0.0f);
    }
}

Test(cpu_gemm, isa_names)
{
    cr_assert_str_eq(kiln_cpu_isa_name(KILN_CPU_ISA_AVX2), "avx2");
    cr_assert_neq(kiln_cpu_isa_best(), KILN_CPU_ISA_AUTO);
    cr_assert_eq(kiln_cpu_isa_resolve(KILN_CPU_ISA_AUTO), kiln_cpu_isa_best());
    cr_assert(kiln_cpu_isa_supported(KILN_CPU_ISA_PORTABLE));
}
