/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution: a task is one input channel. It makes the channel's halo copy in its
 * thread's scratch (small enough to stay in cache) and runs the plane kernel for every output of
 * it. */
#include "backends/cpu/conv/conv_depthwise.h"

#include "backends/cpu/conv/conv_careful.h"
#include "backends/cpu/conv/conv_halo.h"
#include "backends/cpu/conv/conv_kernel.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/stack/tail.h"

#include <string.h>

enum {
    TASKS = 64
};

typedef struct {
    const KilnCpuConv *conv;
    const KilnCpuConvArgs *args;
    KilnHalo halo;
    const KilnConvKernels *kernels;
    int64_t taps, plane; /* floats of scratch for the weights and for the halo */
    const int64_t *offsets;
    float *scratch;
    int64_t channels, tasks; /* of all images */
} Job;

/* The stride of a 3 × 3 kernel that the plane kernel runs over the image itself; 0 of others. */
static int
stride_of_3x3(const KilnCpuConv *c)
{
    bool ok = c->in[0] == 1 && c->out[0] == 1 && c->kernel[0] == 1 && c->pad[0] == 0 &&
              c->stride[1] == c->stride[2] && c->stride[1] <= 2;
    for (int d = 1; d < 3; d++)
        ok &= c->kernel[d] == 3 && c->dilation[d] == 1;
    return ok ? (int)c->stride[1] : 0;
}

void
kiln_conv_depthwise_pack(const KilnCpuConv *conv, const void *src, float *dst, KilnSlice slice)
{
    int64_t taps = times3(conv->kernel), begin = kiln_slice_begin(slice, conv->oc) * taps;
    int64_t end = kiln_slice_end(slice, conv->oc) * taps;
    memcpy(dst + begin, (const char *)src + 4 * begin, (size_t)(4 * (end - begin)));
}

/* The layout that the plane kernel reads: of the image itself, where it can. */
static KilnHalo
halo_of(const KilnCpuConv *conv)
{
    KilnHalo halo = kiln_halo_of(conv);
    halo.direct |= stride_of_3x3(conv) != 0;
    return halo;
}

int64_t
kiln_conv_depthwise_scratch_size(const KilnCpuConv *conv, int threads)
{
    KilnHalo halo = halo_of(conv);
    int64_t taps = times3(conv->kernel), floats = 0, total;
    int64_t teams = threads > 1 ? threads : 1;
    bool too_big =
        !halo.direct &&
        __builtin_add_overflow(halo.plane, 15 + round_up(taps, KILN_CPU_LINE_FLOATS), &floats);
    if (halo.direct)
        floats = round_up(taps, KILN_CPU_LINE_FLOATS);
    too_big |= __builtin_mul_overflow(floats, 4 * teams, &total);
    too_big |= __builtin_add_overflow(total, 4 * round_up(2 * taps, KILN_CPU_LINE_FLOATS), &total);
    return too_big ? INT64_MAX : total;
}

void
kiln_depthwise_terms(const KilnCpuConv *conv, double terms[KILN_CPU_TERMS])
{
    double planes = (double)conv->batch * (double)conv->oc;
    double rows = planes * (double)conv->out[0] * (double)conv->out[1];
    double products =
        rows * (double)(times3(conv->kernel) * ceil_div(conv->out[2], KILN_CPU_LINE_FLOATS));
    bool own = stride_of_3x3(conv) != 0;
    terms[0] = own ? products : 0;
    terms[1] = own ? 0 : products;
    terms[2] = rows;
    terms[3] = planes;
    terms[4] = 4 * ((double)conv->batch * (double)conv->ic * (double)times3(conv->in) +
                    planes * (double)times3(conv->out));
    terms[5] = 1;
}

static float
weight_of(const void *data, int64_t oc, int64_t ic, int64_t tap)
{
    (void)oc; /* those of one output channel */
    (void)ic;
    return ((const float *)data)[tap];
}

/* Every output of channel @index (counted through all images), from its plane at @in. */
static void
run_channel(const Job *job, int64_t index, const float *in, float *weights)
{
    const KilnCpuConv *c = job->conv;
    int64_t image = index / c->ic, channel = index % c->ic, multiplier = c->oc / c->ic;
    int64_t taps = times3(c->kernel), positions = times3(c->out);
    KilnDepthwisePlane plane = { .in = in,
                                 .offsets = job->offsets,
                                 .weights = weights,
                                 .taps = taps,
                                 .stride3x3 = stride_of_3x3(c),
                                 .height = c->in[1],
                                 .width = c->in[2],
                                 .pad_y = c->pad[1],
                                 .pad_x = c->pad[2],
                                 .dims = { c->out[0], c->out[1], c->out[2] },
                                 .pitch = { job->halo.pitch[0], job->halo.pitch[1] },
                                 .lo = c->tail.lo,
                                 .hi = c->tail.hi };
    for (int64_t m = 0; m < multiplier; m++) {
        int64_t output = channel * multiplier + m, at = output * positions;
        memcpy(weights, (const char *)job->args->weights + 4 * output * taps, (size_t)(4 * taps));
        if (!kiln_all_finite(weights, taps)) {
            KilnConvWeights reader = { weight_of, weights };
            kiln_conv_careful_channel(c, job->args, &reader, image, output);
            continue;
        }
        plane.bias = job->args->bias ? job->args->bias[output] : 0.0f;
        plane.out = job->args->out + image * kiln_conv_out_image(c, job->args) + at;
        plane.residual =
            job->args->residual
                ? job->args->residual + image * kiln_conv_residual_image(c, job->args) + at
                : NULL;
        job->kernels->plane(&plane);
        kiln_cpu_tail_activate(&c->tail, plane.out, positions);
    }
}

static void
channels_task(const void *data, int64_t task, int thread)
{
    const Job *job = data;
    int64_t end = (task + 1) * job->channels / job->tasks, size = times3(job->conv->in);
    float *weights = job->scratch + thread * (job->taps + job->plane);
    float *halo = weights + job->taps;
    for (int64_t i = task * job->channels / job->tasks; i < end; i++) {
        int64_t image = i / job->conv->ic, channel = i % job->conv->ic;
        int64_t at = image * kiln_conv_in_image(job->conv, job->args) + channel * size;
        KilnHaloCopy copy = { .in = job->args->in + at,
                              .plane = halo,
                              .end = kiln_halo_rows(&job->halo) };
        if (!job->halo.direct)
            kiln_halo_copy(job->conv, &job->halo, &copy);
        run_channel(job, i, job->halo.direct ? copy.in : halo, weights);
    }
}

void
kiln_conv_depthwise_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args)
{
    if (times3(conv->out) == 0)
        return;
    Job job = { .conv = conv,
                .args = args,
                .halo = halo_of(conv),
                .kernels = kiln_conv_kernels(conv->isa, conv->out[2]),
                .taps = round_up(times3(conv->kernel), KILN_CPU_LINE_FLOATS) };
    job.plane = job.halo.direct ? 0 : round_up(job.halo.plane, KILN_CPU_LINE_FLOATS);
    int64_t *offsets = (int64_t *)(void *)args->scratch;
    job.offsets = offsets;
    job.scratch = args->scratch + round_up(2 * times3(conv->kernel), KILN_CPU_LINE_FLOATS);
    int64_t t[3];
    for (t[0] = 0; t[0] < conv->kernel[0]; t[0]++) {
        for (t[1] = 0; t[1] < conv->kernel[1]; t[1]++) {
            for (t[2] = 0; t[2] < conv->kernel[2]; t[2]++)
                *offsets++ = kiln_halo_tap(conv, &job.halo, t);
        }
    }
    job.channels = conv->batch * conv->ic;
    job.tasks = job.channels < TASKS ? job.channels : TASKS;
    kiln_cpu_parallel(job.tasks, args->threads, channels_task, &job);
}
