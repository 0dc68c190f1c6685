/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's convolutions, depthwise and transposed included, against naive loops in double
 * precision: every instruction set that this machine has, one to three dims, groups, strides,
 * dilations, paddings larger than the kernel, and the same bits for 1 to 4 threads. */
#include "backends/cpu/conv/conv.h"
#include "backends/cpu/conv/conv_problem.h"
#include "backends/cpu/cost.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/stack/tail.h"
#include "ir/slice.h"
#include "tests/unit/exact_memory.h"

#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One problem: missing leading dims are 1. */
typedef struct {
    int64_t batch, ic, oc, groups;
    int64_t in[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3];
} Case;

#define ONES                                                                                       \
    {                                                                                              \
        1, 1, 1                                                                                    \
    }
#define NONE                                                                                       \
    {                                                                                              \
        0, 0, 0                                                                                    \
    }

// clang-format off
static const Case cases[] = {
    /* 1x1, with and without padding and stride */
    { 1, 5, 7, 1, { 1, 6, 5 }, ONES, ONES, ONES, NONE, NONE },
    { 2, 40, 33, 1, { 1, 7, 7 }, ONES, { 1, 2, 2 }, ONES, NONE, NONE },
    { 3, 4, 4, 2, { 1, 3, 3 }, ONES, { 1, 1, 3 }, ONES, { 0, 1, 2 }, { 0, 0, 1 } },
    /* 3x3, channels around the tile bounds */
    { 1, 3, 1, 1, { 1, 9, 8 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, 8, 13, 1, { 1, 9, 8 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, 2, 14, 1, { 1, 16, 17 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 2, 6, 15, 3, { 1, 10, 33 }, { 1, 3, 3 }, { 1, 2, 2 }, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, 16, 32, 1, { 1, 7, 7 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, 64, 96, 1, { 1, 7, 7 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    /* rows of whole vectors, which are read in place; channels vectorised over many positions */
    { 1, 5, 20, 1, { 1, 5, 48 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, 5, 20, 1, { 1, 3, 64 }, { 1, 2, 3 }, ONES, ONES, { 0, 0, 1 }, { 0, 0, 1 } },
    { 1, 6, 20, 2, { 1, 6, 16 }, ONES, ONES, ONES, NONE, NONE },
    { 1, 6, 20, 1, { 1, 16, 64 }, ONES, { 1, 2, 2 }, ONES, NONE, NONE },
    { 1, 8, 96, 1, { 1, 9, 9 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    /* no padding, dilation, asymmetric padding, negative padding, padding beyond the kernel */
    { 1, 3, 5, 1, { 1, 12, 11 }, { 1, 3, 2 }, ONES, { 1, 2, 3 }, NONE, NONE },
    { 1, 3, 5, 1, { 1, 8, 9 }, { 1, 3, 3 }, { 1, 2, 3 }, { 1, 3, 2 }, { 0, 2, 0 }, { 0, 1, 4 } },
    { 1, 2, 3, 1, { 1, 8, 9 }, { 1, 3, 3 }, ONES, ONES, { 0, -1, 0 }, { 0, 0, -2 } },
    { 1, 2, 3, 1, { 1, 2, 3 }, { 1, 2, 2 }, { 1, 3, 3 }, ONES, { 0, 5, 4 }, { 0, 4, 6 } },
    /* first layer, one dim, three dims, output of one position */
    { 1, 3, 20, 1, { 1, 30, 31 }, { 1, 7, 7 }, { 1, 2, 2 }, ONES, { 0, 3, 3 }, { 0, 3, 3 } },
    { 2, 6, 10, 1, { 1, 1, 70 }, { 1, 1, 3 }, ONES, { 1, 1, 4 }, { 0, 0, 8 }, NONE },
    { 1, 3, 6, 3, { 5, 6, 7 }, { 3, 2, 3 }, { 2, 1, 2 }, { 1, 2, 1 }, ONES, { 1, 0, 1 } },
    { 1, 24, 40, 1, { 1, 4, 4 }, { 1, 4, 4 }, ONES, ONES, NONE, NONE },
    /* many images in several rounds, depth over several blocks */
    { 30, 1, 1, 1, { 1, 200, 199 }, { 1, 1, 3 }, ONES, ONES, { 0, 0, 1 }, { 0, 0, 1 } },
    { 1, 60, 8, 1, { 1, 6, 6 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    /* tap by tap: images smaller than the window, several rounds of images, steps of depth, groups,
       strides, dilations that leave one tap, three dims, 1x1 on many small images */
    { 1, 40, 70, 1, { 1, 4, 4 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 5, 300, 33, 1, { 1, 2, 2 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, 300, 40, 1, { 1, 32, 32 }, { 1, 3, 3 }, ONES, { 1, 8, 8 }, { 0, 8, 8 }, { 0, 8, 8 } },
    { 1, 300, 96, 1, { 1, 2, 2 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, 70, 144, 1, { 1, 1, 3 }, { 1, 3, 5 }, ONES, ONES, { 0, 1, 2 }, { 0, 1, 2 } },
    { 200, 20, 40, 1, { 1, 2, 3 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 2, 80, 96, 2, { 1, 5, 4 }, { 1, 3, 3 }, { 1, 2, 2 }, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, 36, 40, 1, { 1, 8, 7 }, { 1, 3, 3 }, ONES, { 1, 12, 12 }, { 0, 12, 12 }, { 0, 12, 12 } },
    { 1, 32, 20, 1, { 2, 3, 3 }, { 3, 3, 3 }, ONES, ONES, ONES, ONES },
    { 9, 300, 64, 1, { 1, 2, 2 }, ONES, ONES, ONES, NONE, NONE },
    /* depthwise, with multiplier, strides, small and wide rows */
    { 1, 8, 8, 8, { 1, 7, 7 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 2, 3, 3, 3, { 1, 9, 40 }, { 1, 3, 3 }, ONES, ONES, { 0, 2, 0 }, { 0, 0, 3 } },
    { 1, 3, 6, 3, { 1, 6, 18 }, { 1, 3, 3 }, ONES, ONES, { 0, 0, 4 }, { 0, 1, 0 } },
    { 1, 2, 2, 2, { 1, 8, 37 }, { 1, 3, 3 }, ONES, ONES, { 0, -1, -1 }, { 0, 0, -2 } },
    { 1, 2, 2, 2, { 1, 2, 3 }, { 1, 3, 3 }, ONES, ONES, { 0, 5, 18 }, { 0, 4, 19 } },
    { 2, 5, 10, 5, { 1, 9, 70 }, { 1, 3, 3 }, { 1, 2, 2 }, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, 4, 4, 4, { 1, 15, 14 }, { 1, 3, 3 }, { 1, 2, 2 }, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, 3, 3, 3, { 1, 12, 112 }, { 1, 3, 3 }, { 1, 2, 2 }, ONES, { 0, 0, 0 }, { 0, 1, 1 } },
    { 1, 2, 4, 2, { 1, 11, 67 }, { 1, 3, 3 }, { 1, 2, 2 }, ONES, { 0, 2, -1 }, { 0, -3, 5 } },
    { 1, 2, 2, 2, { 1, 2, 3 }, { 1, 3, 3 }, { 1, 2, 2 }, ONES, { 0, 5, 18 }, { 0, 4, 40 } },
    { 1, 3, 3, 3, { 1, 20, 21 }, { 1, 5, 5 }, ONES, { 1, 2, 2 }, { 0, 4, 4 }, { 0, 4, 4 } },
    { 1, 4, 4, 4, { 3, 4, 17 }, { 2, 2, 2 }, ONES, ONES, NONE, NONE },
    { 1, 4, 12, 4, { 1, 1, 40 }, { 1, 1, 4 }, { 1, 1, 3 }, ONES, { 0, 0, 3 }, NONE },
    /* nothing: no channels, no images, no positions */
    { 1, 0, 3, 1, { 1, 4, 4 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 0, 2, 3, 1, { 1, 4, 4 }, { 1, 3, 3 }, ONES, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, 2, 3, 1, { 1, 4, 2 }, { 1, 1, 3 }, ONES, ONES, NONE, NONE },
};

/* Transposed: pad_end is taken off the output; out = (in-1)*stride + (kernel-1)*dilation + 1 - pads. */
static const Case transposed[] = {
    { 1, 4, 3, 1, { 1, 5, 6 }, { 1, 2, 2 }, { 1, 2, 2 }, ONES, NONE, NONE },
    { 2, 6, 8, 2, { 1, 5, 6 }, { 1, 3, 3 }, { 1, 2, 2 }, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, 6, 8, 1, { 1, 5, 6 }, { 1, 3, 4 }, { 1, 2, 3 }, { 1, 2, 1 }, { 0, 1, 0 }, { 0, 0, -2 } },
    { 1, 3, 2, 1, { 1, 1, 20 }, { 1, 1, 5 }, { 1, 1, 1 }, { 1, 1, 2 }, { 0, 0, 3 }, { 0, 0, 2 } },
    { 1, 2, 4, 2, { 3, 4, 5 }, { 2, 3, 2 }, { 2, 1, 2 }, ONES, { 0, 1, 0 }, { 1, 1, 0 } },
    { 1, 2, 60, 1, { 1, 64, 64 }, { 1, 3, 3 }, { 1, 1, 1 }, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, 2, 3, 1, { 1, 3, 3 }, { 1, 2, 2 }, { 1, 4, 4 }, ONES, { 0, 3, 2 }, { 0, 0, 5 } },
    { 1, 3, 4, 1, { 1, 3, 40 }, { 1, 3, 4 }, { 1, 2, 2 }, ONES, { 0, 1, 1 }, { 0, 1, 2 } },
    { 1, 2, 3, 1, { 1, 4, 1 }, { 1, 2, 3 }, { 1, 1, 2 }, ONES, { 0, 0, 1 }, { 0, 0, 1 } },
    { 1, 2, 3, 1, { 1, 1, 1 }, { 1, 2, 4 }, { 1, 9, 1000000007 }, ONES, NONE, { 0, 0, 1 } },
    { 1, 2, 3, 1, { 1, 2, 18 }, { 1, 2, 3 }, { 1, 2, 3 }, { 1, 1, 2 }, { 0, 0, 4 }, { 0, 1, 3 } },
    { 1, 0, 3, 1, { 1, 3, 3 }, { 1, 2, 2 }, { 1, 2, 2 }, ONES, NONE, NONE },
    /* depthwise, with multiplier, more taps in a row than have a place noted, three dims */
    { 1, 5, 5, 5, { 1, 7, 28 }, { 1, 4, 4 }, { 1, 2, 2 }, ONES, { 0, 1, 1 }, { 0, 1, 1 } },
    { 2, 3, 6, 3, { 1, 5, 40 }, { 1, 3, 3 }, ONES, { 1, 2, 1 }, { 0, 2, 1 }, { 0, 0, 3 } },
    { 2, 2, 2, 2, { 1, 1, 9 }, { 1, 1, 19 }, { 1, 1, 3 }, ONES, { 0, 0, 7 }, { 0, 0, -2 } },
    { 1, 4, 8, 4, { 3, 4, 17 }, { 2, 3, 2 }, { 2, 1, 3 }, { 1, 2, 1 }, { 1, 0, 1 }, { 0, 1, 0 } },
};
// clang-format on

static int64_t
times3(const int64_t v[3])
{
    return v[0] * v[1] * v[2];
}

static KilnCpuConv
conv_of(const Case *c, bool transpose)
{
    KilnCpuConv conv = { .batch = c->batch,
                         .ic = c->ic,
                         .oc = c->oc,
                         .groups = c->groups,
                         .tail = kiln_cpu_tail_none() };
    for (int d = 0; d < 3; d++) {
        int64_t reach = (c->kernel[d] - 1) * c->dilation[d] + 1, pads = c->pad[d] + c->pad_end[d];
        int64_t span = c->in[d] + pads - reach;
        conv.in[d] = c->in[d];
        conv.kernel[d] = c->kernel[d];
        conv.stride[d] = c->stride[d];
        conv.dilation[d] = c->dilation[d];
        conv.pad[d] = c->pad[d];
        if (transpose)
            conv.out[d] = (c->in[d] - 1) * c->stride[d] + reach - pads;
        else
            conv.out[d] = span < 0 ? 0 : span / c->stride[d] + 1;
    }
    return conv;
}

/* Small integers and quarters: sums are exact in f32, so that any wrong term shows. */
static float *
filled(int64_t n, uint32_t seed)
{
    float *x = exact_memory(4 * n);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)((int)(seed >> 24) % 17 - 8) * 0.25f;
    }
    return x;
}

/* Adds every product of the convolution to @sums; transposed swaps the roles of in and out. */
static void
naive(const KilnCpuConv *c, const KilnCpuConvArgs *args, bool transpose, double *sums)
{
    const float *w = args->weights;
    const int64_t *big = transpose ? c->out : c->in, *small = transpose ? c->in : c->out;
    int64_t ics = c->ic / c->groups, ocs = c->oc / c->groups, taps = times3(c->kernel);
    int64_t positions = times3(small);
    for (int64_t i = 0; i < c->batch * c->oc * ics * taps; i++) {
        int64_t t = i % taps, k = i / taps % ics, o = i / taps / ics % c->oc;
        int64_t image = i / taps / ics / c->oc, channel = o / ocs * ics + k;
        int64_t tap[3] = { t / c->kernel[2] / c->kernel[1], t / c->kernel[2] % c->kernel[1],
                           t % c->kernel[2] };
        double weight =
            (double)w[transpose ? (channel * ocs + o % ocs) * taps + t : (o * ics + k) * taps + t];
        const float *in = args->in + (image * c->ic + channel) * times3(c->in);
        double *sum = sums + (image * c->oc + o) * times3(c->out);
        for (int64_t p = 0; p < positions; p++) {
            int64_t at[3] = { p / small[2] / small[1], p / small[2] % small[1], p % small[2] };
            bool inside = true;
            for (int d = 0; d < 3; d++) {
                at[d] = at[d] * c->stride[d] + tap[d] * c->dilation[d] - c->pad[d];
                inside = inside && at[d] >= 0 && at[d] < big[d];
            }
            int64_t q = (at[0] * big[1] + at[1]) * big[2] + at[2];
            if (inside)
                sum[transpose ? q : p] += weight * (double)in[transpose ? p : q];
        }
    }
}

static void
run(const KilnCpuConv *c, const KilnCpuConvArgs *plain, bool transpose, int64_t weights)
{
    KilnCpuConvArgs args = *plain;
    char *bytes = exact_memory(4 * weights + 1);
    memcpy(bytes + 1, plain->weights, (size_t)(4 * weights));
    args.weights = bytes + 1;
    float *packed = NULL;
    if (c->weights_packed) {
        int64_t size =
            transpose ? kiln_cpu_conv_transpose_pack_size(c) : kiln_cpu_conv_pack_size(c);
        packed = exact_memory(size);
        if (transpose)
            kiln_cpu_conv_transpose_pack(c, args.weights, packed, KILN_SLICE_WHOLE);
        else
            kiln_cpu_conv_pack(c, args.weights, packed, KILN_SLICE_WHOLE);
        args.weights = packed;
    }
    int64_t size = transpose ? kiln_cpu_conv_transpose_scratch_size(c, args.threads)
                             : kiln_cpu_conv_scratch_size(c, args.threads);
    args.scratch = exact_memory(size);
    if (transpose)
        kiln_cpu_conv_transpose_run(c, &args);
    else
        kiln_cpu_conv_run(c, &args);
    free(args.scratch);
    free(packed);
    free(bytes);
}

static void
compare(const KilnCpuConv *c, const KilnCpuConvArgs *args, const double *sums, const char *what)
{
    int64_t plane = times3(c->out);
    for (int64_t i = 0; i < c->batch * c->oc * plane; i++) {
        double want = sums[i];
        want += args->bias ? (double)args->bias[i / plane % c->oc] : 0.0;
        want += args->residual ? (double)args->residual[i] : 0.0;
        want = want < (double)c->tail.lo ? (double)c->tail.lo : want;
        want = want > (double)c->tail.hi ? (double)c->tail.hi : want;
        cr_assert(fabs((double)args->out[i] - want) <= 1e-5 * (1 + fabs(want)),
                  "%s on %s, output %ld: expected %g, found %g", what, kiln_cpu_isa_name(c->isa),
                  (long)i, want, (double)args->out[i]);
    }
}

static void
check(const Case *table, int index, KilnCpuIsa isa, bool transpose)
{
    KilnCpuConv c = conv_of(&table[index], transpose);
    c.isa = isa;
    int64_t outs = c.batch * c.oc * times3(c.out);
    int64_t weights = c.oc * (c.ic / c.groups) * times3(c.kernel);
    float *in = filled(c.batch * c.ic * times3(c.in), 1), *w = filled(weights, 2);
    float *bias = filled(c.oc, 3), *before = filled(outs, 4), *out = filled(outs, 5);
    float *first = filled(outs, 6);
    double *sums = calloc((size_t)outs + 1, sizeof *sums);
    KilnCpuConvArgs args = { .in = in, .weights = w, .out = out };
    naive(&c, &args, transpose, sums);
    for (int variant = 0; variant < 4; variant++) {
        c.weights_packed = variant != 1;
        c.tail.lo = variant >= 2 ? 0.0f : -INFINITY;
        c.tail.hi = variant == 3 ? 6.0f : INFINITY;
        c.tail.residual = variant == 3 && !transpose;
        args.bias = variant == 1 ? NULL : bias;
        for (args.threads = 1; args.threads <= (variant == 0 ? 4 : 2); args.threads++) {
            memcpy(out, before, (size_t)(4 * outs));
            args.residual = c.tail.residual ? out : NULL; /* in place */
            run(&c, &args, transpose, weights);
            if (args.threads == 1)
                memcpy(first, out, (size_t)(4 * outs));
            cr_assert_eq(memcmp(first, out, (size_t)(4 * outs)), 0, "case %d: bits differ", index);
        }
        args.residual = args.residual ? before : NULL;
        char what[32];
        g_snprintf(what, sizeof what, "case %d, variant %d", index, variant);
        compare(&c, &args, sums, what);
    }
    free(in);
    free(w);
    free(bias);
    free(before);
    free(out);
    free(first);
    free(sums);
}

static void
check_all(KilnCpuIsa isa)
{
    if (!kiln_cpu_isa_supported(isa)) {
        cr_log_info("skipped: this machine has no %s", kiln_cpu_isa_name(isa));
        return;
    }
    for (int i = 0; i < (int)G_N_ELEMENTS(cases); i++)
        check(cases, i, isa, false);
    for (int i = 0; i < (int)G_N_ELEMENTS(transposed); i++)
        check(transposed, i, isa, true);
}

Test(cpu_conv, portable)
{
    check_all(KILN_CPU_ISA_PORTABLE);
}

Test(cpu_conv, avx2)
{
    check_all(KILN_CPU_ISA_AVX2);
}

Test(cpu_conv, avx512)
{
    check_all(KILN_CPU_ISA_AVX512);
}

/* A dilation that makes the halo copy larger than any memory is reported, not computed wrongly. */
Test(cpu_conv, scratch_that_no_number_can_say)
{
    KilnCpuConv c = { .batch = 1,
                      .ic = 1,
                      .oc = 1,
                      .groups = 1,
                      .in = { 1, 1, 1 },
                      .out = { 1, 2, 2 },
                      .kernel = { 1, 2, 2 },
                      .stride = { 1, 1, 1 },
                      .dilation = { 1, INT64_C(1) << 40, INT64_C(1) << 40 },
                      .pad = { 0, INT64_C(1) << 40, INT64_C(1) << 40 } };
    cr_assert_eq(kiln_cpu_conv_scratch_size(&c, 1), INT64_MAX);
}

/* Weights of taps that meet only padding are not even kept. */
Test(cpu_conv, taps_in_padding_cost_nothing)
{
    KilnCpuConv c = { .batch = 1,
                      .ic = 64,
                      .oc = 64,
                      .groups = 1,
                      .in = { 1, 8, 8 },
                      .out = { 1, 8, 8 },
                      .kernel = { 1, 3, 3 },
                      .stride = { 1, 1, 1 },
                      .dilation = { 1, 12, 1 },
                      .pad = { 0, 12, 1 },
                      .tail = kiln_cpu_tail_none(),
                      .weights_packed = true };
    cr_assert_eq(kiln_cpu_conv_best_form(&c), KILN_CONV_TAPS);
    double taps[KILN_CPU_TERMS], direct[KILN_CPU_TERMS];
    kiln_direct_terms(&c, taps);
    c.form = KILN_CONV_TURNED;
    kiln_direct_terms(&c, direct);
    cr_assert_leq(taps[0], direct[0] / 2, "found %g, %g", taps[0], direct[0]);
}
