/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd convolutions against naive loops in double precision, on every instruction set that this
 * machine has: the error's Euclidean norm stays under a hundred-thousandth of the result's, and
 * bits do not depend on the number of threads. */
#include "backends/cpu/conv/conv_problem.h"
#include "backends/cpu/conv/conv_winograd.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/stack/tail.h"
#include "ir/slice.h"
#include "tests/unit/exact_memory.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t batch, ic, oc, height, width, pad[2], pad_end[2];
} Case;

// clang-format off
static const Case cases[] = {
    { 1, 1, 1, 1, 1, { 1, 1 }, { 1, 1 } },      /* one result in a tile */
    { 1, 3, 5, 4, 4, { 1, 1 }, { 1, 1 } },
    { 2, 4, 17, 5, 9, { 1, 1 }, { 1, 1 } },
    { 1, 16, 15, 14, 14, { 1, 1 }, { 1, 1 } },  /* rows of tiles side by side */
    { 1, 8, 29, 28, 28, { 1, 1 }, { 1, 1 } },
    { 1, 7, 6, 12, 67, { 0, 0 }, { 0, 0 } },
    { 1, 5, 3, 9, 8, { 2, 3 }, { 0, 4 } },      /* uneven and wide padding */
    { 1, 5, 3, 12, 11, { -1, -2 }, { 0, -3 } }, /* cropped */
    { 1, 2, 2, 3, 200, { 1, 1 }, { 1, 1 } },
    { 1, 300, 20, 6, 6, { 1, 1 }, { 1, 1 } },   /* depth in two blocks */
    { 1, 40, 50, 24, 130, { 1, 1 }, { 1, 1 } }, /* several rounds */
    { 1, 1024, 8, 4, 4, { 1, 1 }, { 1, 1 } },
    { 2, 9, 33, 70, 4, { 1, 1 }, { 1, 1 } },    /* a tile a row, several groups of panels */
    { 1, 24, 70, 60, 60, { 1, 1 }, { 1, 1 } },  /* 15 vectors: parts of several rounds, and a rest */
    { 1, 24, 210, 60, 60, { 1, 1 }, { 1, 1 } }, /* so many channels that four threads share three */
    { 1, 24, 210, 28, 28, { 1, 1 }, { 1, 1 } }, /* a tile alone in the last vector, all for all */
    { 1, 300, 40, 66, 4, { 1, 1 }, { 1, 1 } },  /* the same behind one vector, depth in two blocks */
    { 1, 480, 40, 66, 4, { 1, 1 }, { 1, 1 } },  /* the same with more channels: threads share V */
    { 3, 6, 30, 21, 26, { 1, 1 }, { 1, 1 } },   /* images before parts of images */
    { 1, 3, 4, 24, 20, { 1, 1 }, { 1, 1 } },    /* the last 16 go round two corners, two repeat */
    { 1, 3, 4, 20, 20, { 1, 1 }, { 1, 1 } },    /* the last 8 repeat */
    { 1, 3, 4, 20, 23, { 1, 1 }, { 1, 1 } },
};
// clang-format on

static KilnCpuConv
conv_of(const Case *c)
{
    return (KilnCpuConv){ .batch = c->batch,
                          .ic = c->ic,
                          .oc = c->oc,
                          .groups = 1,
                          .in = { 1, c->height, c->width },
                          .out = { 1, c->height + c->pad[0] + c->pad_end[0] - 2,
                                   c->width + c->pad[1] + c->pad_end[1] - 2 },
                          .kernel = { 1, 3, 3 },
                          .stride = { 1, 1, 1 },
                          .dilation = { 1, 1, 1 },
                          .pad = { 0, c->pad[0], c->pad[1] },
                          .tail = kiln_cpu_tail_none(),
                          .weights_packed = true,
                          .isa = KILN_CPU_ISA_AUTO };
}

static float *
noise(int64_t n, uint32_t seed)
{
    float *x = exact_memory(4 * n);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < 4; k++) {
            seed = seed * 1664525u + 1013904223u;
            sum += seed / 4294967296.0 - 0.5;
        }
        x[i] = (float)(sum * 1.7);
    }
    return x;
}

static double
sum_at(const KilnCpuConv *c, const float *in, const float *weights, const int64_t at[4])
{
    double sum = 0;
    for (int64_t k = 0; k < c->ic; k++) {
        for (int64_t t = 0; t < 9; t++) {
            int64_t y = at[2] + t / 3 - c->pad[1], x = at[3] + t % 3 - c->pad[2];
            if (y < 0 || y >= c->in[1] || x < 0 || x >= c->in[2])
                continue;
            sum += (double)in[((at[0] * c->ic + k) * c->in[1] + y) * c->in[2] + x] *
                   (double)weights[(at[1] * c->ic + k) * 9 + t];
        }
    }
    return sum;
}

/* The relative error of @got in the Euclidean norm. */
static double
error_of(const KilnCpuConv *c, const KilnCpuConvArgs *a, const float *weights, const float *got)
{
    double error = 0, norm = 0;
    int64_t at[4], i = 0;
    for (at[0] = 0; at[0] < c->batch; at[0]++) {
        for (at[1] = 0; at[1] < c->oc; at[1]++) {
            for (at[2] = 0; at[2] < c->out[1]; at[2]++) {
                for (at[3] = 0; at[3] < c->out[2]; at[3]++, i++) {
                    double want = sum_at(c, a->in, weights, at);
                    want += (a->bias ? a->bias[at[1]] : 0) + (a->residual ? a->residual[i] : 0);
                    want = fmin(fmax(want, c->tail.lo), c->tail.hi);
                    error += (got[i] - want) * (got[i] - want);
                    norm += want * want;
                }
            }
        }
    }
    return sqrt(error / (norm > 0 ? norm : 1));
}

static void
run(const KilnCpuConv *c, KilnCpuConvArgs a, int threads, float *out)
{
    int64_t bytes = kiln_winograd_scratch_size(c, threads);
    a.threads = threads;
    a.scratch = exact_memory(bytes);
    a.out = out;
    memset(a.scratch, 0xff, (size_t)bytes); /* NaN: nothing may be read that was not written */
    kiln_winograd_run(c, &a);
    free(a.scratch);
}

static void
check(const Case *test, bool tail)
{
    KilnCpuConv c = conv_of(test);
    cr_assert(kiln_winograd_supports(&c));
    float spread =
        sqrtf((float)c.ic); /* the results grow with it: some are clipped, most are not */
    c.tail.residual = tail;
    c.tail.lo = tail ? -spread : c.tail.lo;
    c.tail.hi = tail ? 2 * spread : c.tail.hi;
    int64_t n = c.batch * c.oc * c.out[1] * c.out[2];
    float *in = noise(c.batch * c.ic * c.in[1] * c.in[2], 1), *weights = noise(c.oc * c.ic * 9, 2);
    float *bias = noise(c.oc, 3), *residual = noise(n, 4), *out = noise(n, 5), *again = noise(n, 6);
    float *packed = exact_memory(kiln_winograd_pack_size(&c));
    char *unaligned = malloc((size_t)(4 * c.oc * c.ic * 9 + 1)); /* as in a mapped file */
    memcpy(unaligned + 1, weights, (size_t)(4 * c.oc * c.ic * 9));
    kiln_winograd_pack(&c, unaligned + 1, packed, KILN_SLICE_WHOLE);
    KilnCpuConvArgs a = {
        .in = in, .weights = packed, .bias = tail ? bias : NULL, .residual = tail ? residual : NULL
    };
    run(&c, a, 1, out);
    double error = error_of(&c, &a, weights, out);
    cr_assert_lt(error, 1e-5, "%ld -> %ld channels, %ld x %ld, isa %d: relative error %g", c.ic,
                 c.oc, c.in[1], c.in[2], (int)kiln_cpu_isa_best(), error);
    for (int threads = 2; threads <= 16; threads += threads < 4 ? 1 : 6) {
        run(&c, a, threads, again);
        cr_assert_eq(memcmp(out, again, (size_t)(4 * n)), 0, "%d threads", threads);
    }
    free(in), free(weights), free(bias), free(residual), free(out), free(again), free(packed);
    free(unaligned);
}

Test(cpu_winograd, as_a_direct_convolution)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(&cases[i], false);
        check(&cases[i], true);
    }
}

/* Memory is planned for the program's threads, and sessions may have fewer. */
Test(cpu_winograd, fewer_threads_need_no_more_scratch)
{
    for (int64_t oc = 1; oc <= 256; oc *= 4) {
        for (int64_t height = 4; height <= 64; height++) {
            KilnCpuConv c = conv_of(&(Case){ 1, 8, oc, height, 44, { 1, 1 }, { 1, 1 } });
            for (int threads = 2; threads <= 8; threads++)
                cr_assert_leq(kiln_winograd_scratch_size(&c, threads - 1),
                              kiln_winograd_scratch_size(&c, threads),
                              "%ld channels, height %ld, %d threads", oc, height, threads);
        }
    }
}

Test(cpu_winograd, in_place_residual)
{
    KilnCpuConv c = conv_of(&cases[4]);
    int64_t n = c.oc * c.out[1] * c.out[2];
    float *in = noise(c.ic * c.in[1] * c.in[2], 1), *weights = noise(c.oc * c.ic * 9, 2);
    float *residual = noise(n, 4), *out = noise(n, 4), *apart = noise(n, 5);
    float *packed = exact_memory(kiln_winograd_pack_size(&c));
    kiln_winograd_pack(&c, weights, packed, KILN_SLICE_WHOLE);
    KilnCpuConvArgs a = { .in = in, .weights = packed, .residual = residual };
    run(&c, a, 1, apart);
    a.residual = out;
    run(&c, a, 2, out);
    cr_assert_eq(memcmp(out, apart, (size_t)(4 * n)), 0);
    free(in), free(weights), free(residual), free(out), free(apart), free(packed);
}

Test(cpu_winograd, what_it_does_not_compute)
{
    KilnCpuConv c = conv_of(&cases[4]), other;
    other = c, other.groups = 2;
    cr_assert_not(kiln_winograd_supports(&other));
    other = c, other.stride[2] = 2;
    cr_assert_not(kiln_winograd_supports(&other));
    other = c, other.dilation[1] = 2;
    cr_assert_not(kiln_winograd_supports(&other));
    other = c, other.kernel[1] = 1;
    cr_assert_not(kiln_winograd_supports(&other));
    other = c, other.in[0] = other.out[0] = 2;
    cr_assert_not(kiln_winograd_supports(&other));
    other = c, other.out[1] = 0;
    cr_assert_not(kiln_winograd_supports(&other));
    other = c, other.batch = 0;
    cr_assert_not(kiln_winograd_supports(&other));
    other = c, other.ic = INT64_C(1) << 40, other.oc = INT64_C(1) << 40;
    cr_assert_eq(kiln_winograd_pack_size(&other), INT64_MAX);
}
