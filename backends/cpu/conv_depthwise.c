/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution: a task is one input channel. It makes the channel's halo copy in its
 * thread's scratch (small enough to stay in cache) and runs the plane kernel for every output of
 * it.
 */
#include "backends/cpu/conv_depthwise.h"

#include "backends/cpu/conv_halo.h"
#include "backends/cpu/parallel.h"

#include <string.h>

typedef struct {
    const KilnCpuConv *conv;
    const KilnCpuConvArgs *args;
    KilnHalo halo;
    KilnDepthwiseKernel kernel;
    int64_t taps, plane; /* floats of scratch for the weights and for the halo */
    const int64_t *offsets;
    float *scratch;
} Job;

static int64_t
times3(const int64_t v[3])
{
    return v[0] * v[1] * v[2];
}

static int64_t
aligned(int64_t floats)
{
    return (floats + 15) / 16 * 16;
}

static KilnDepthwiseKernel
kernel_of(KilnCpuIsa isa)
{
    switch (kiln_cpu_isa_resolve(isa)) {
#if defined(__x86_64__)
    case KILN_CPU_ISA_AVX512:
        return kiln_depthwise_avx512;
    case KILN_CPU_ISA_AVX2:
        return kiln_depthwise_avx2;
#endif
    default:
        return kiln_depthwise_portable;
    }
}

void
kiln_conv_depthwise_pack(const KilnCpuConv *conv, const void *src, float *dst)
{
    memcpy(dst, src, (size_t)(4 * conv->oc * times3(conv->kernel)));
}

int64_t
kiln_conv_depthwise_scratch_size(const KilnCpuConv *conv, int threads)
{
    KilnHalo halo = kiln_halo_of(conv);
    int64_t taps = times3(conv->kernel), plane = halo.direct ? 0 : halo.plane, total;
    int64_t teams = threads > 1 ? threads : 1;
    bool too_big = __builtin_add_overflow(plane, aligned(taps) + 15, &plane);
    too_big |= __builtin_mul_overflow(plane, 4 * teams, &total);
    too_big |= __builtin_add_overflow(total, 4 * aligned(2 * taps), &total);
    return too_big ? INT64_MAX : total;
}

static void
channel_task(const void *data, int64_t task, int thread)
{
    const Job *job = data;
    const KilnCpuConv *c = job->conv;
    int64_t image = task / c->ic, channel = task % c->ic, multiplier = c->oc / c->ic;
    int64_t taps = times3(c->kernel), positions = times3(c->out);
    float *weights = job->scratch + thread * (job->taps + job->plane);
    float *halo = weights + job->taps;
    const float *in = job->args->in + task * times3(c->in);
    if (!job->halo.direct)
        kiln_halo_copy(c, &job->halo, in, halo, (int64_t[]){ 0, kiln_halo_rows(&job->halo) });
    KilnDepthwisePlane plane = { .in = job->halo.direct ? in : halo,
                                 .offsets = job->offsets,
                                 .weights = weights,
                                 .taps = taps,
                                 .dims = { c->out[0], c->out[1], c->out[2] },
                                 .pitch = { job->halo.pitch[0], job->halo.pitch[1] },
                                 .lo = c->lo,
                                 .hi = c->hi };
    for (int64_t m = 0; m < multiplier; m++) {
        int64_t output = channel * multiplier + m, at = (image * c->oc + output) * positions;
        memcpy(weights, (const char *)job->args->weights + 4 * output * taps, (size_t)(4 * taps));
        plane.bias = job->args->bias ? job->args->bias[output] : 0.0f;
        plane.out = job->args->out + at;
        plane.residual = job->args->residual ? job->args->residual + at : NULL;
        job->kernel(&plane);
    }
}

void
kiln_conv_depthwise_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args)
{
    if (times3(conv->out) == 0)
        return;
    Job job = { .conv = conv,
                .args = args,
                .halo = kiln_halo_of(conv),
                .kernel = kernel_of(conv->isa),
                .taps = aligned(times3(conv->kernel)) };
    job.plane = job.halo.direct ? 0 : aligned(job.halo.plane);
    int64_t *offsets = (int64_t *)(void *)args->scratch;
    job.offsets = offsets;
    job.scratch = args->scratch + aligned(2 * times3(conv->kernel));
    int64_t t[3];
    for (t[0] = 0; t[0] < conv->kernel[0]; t[0]++) {
        for (t[1] = 0; t[1] < conv->kernel[1]; t[1]++) {
            for (t[2] = 0; t[2] < conv->kernel[2]; t[2]++)
                *offsets++ = kiln_halo_tap(conv, &job.halo, t);
        }
    }
    kiln_cpu_parallel(conv->batch * conv->ic, args->threads, channel_task, &job);
}
