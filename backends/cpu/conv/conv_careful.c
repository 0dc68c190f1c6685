/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/conv/conv_careful.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/stack/tail.h"

#include <string.h>

bool
kiln_all_finite(const void *data, int64_t n)
{
    const int32_t infinity = 0x7f800000;
    int32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, (const char *)data + 4 * i, sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    return most < infinity;
}

bool
kiln_conv_reads_padding(const KilnCpuConv *c)
{
    for (int d = 0; d < 3; d++) {
        int64_t last = (c->out[d] - 1) * c->stride[d] + (c->kernel[d] - 1) * c->dilation[d];
        if (c->pad[d] > 0 || last - c->pad[d] >= c->in[d])
            return true;
    }
    return false;
}

/* The sum of output position @at of channel @oc: what lies outside of the image is left out. */
static float
sum_at(const KilnCpuConv *c, const float *image, const KilnConvWeights *weights, int64_t oc,
       const int64_t at[3], float sum)
{
    int64_t channels = c->ic / c->groups, group = oc / (c->oc / c->groups), t[3], x[3];
    for (int64_t ic = 0; ic < channels; ic++) {
        const float *plane = image + (group * channels + ic) * times3(c->in);
        for (int64_t tap = 0, n = times3(c->kernel); tap < n; tap++) {
            t[0] = tap / (c->kernel[1] * c->kernel[2]);
            t[1] = tap / c->kernel[2] % c->kernel[1];
            t[2] = tap % c->kernel[2];
            bool inside = true;
            for (int d = 0; d < 3; d++) {
                x[d] = at[d] * c->stride[d] + t[d] * c->dilation[d] - c->pad[d];
                inside &= x[d] >= 0 && x[d] < c->in[d];
            }
            if (inside)
                sum += weights->at(weights->data, oc, ic, tap) *
                       plane[(x[0] * c->in[1] + x[1]) * c->in[2] + x[2]];
        }
    }
    return sum;
}

void
kiln_conv_careful_channel(const KilnCpuConv *c, const KilnCpuConvArgs *args,
                          const KilnConvWeights *weights, int64_t image, int64_t oc)
{
    int64_t n = times3(c->out), at[3];
    const float *in = args->in + image * kiln_conv_in_image(c, args);
    float *out = args->out + image * kiln_conv_out_image(c, args) + oc * n;
    const float *residual = args->residual;
    if (residual)
        residual += image * kiln_conv_residual_image(c, args) + oc * n;
    for (int64_t i = 0; i < n; i++) {
        at[0] = i / (c->out[1] * c->out[2]);
        at[1] = i / c->out[2] % c->out[1];
        at[2] = i % c->out[2];
        float x = sum_at(c, in, weights, oc, at, args->bias ? args->bias[oc] : 0.0f);
        x = residual ? x + residual[i] : x;
        x = x < c->tail.lo ? c->tail.lo : x;
        out[i] = x > c->tail.hi ? c->tail.hi : x;
    }
    kiln_cpu_tail_activate(&c->tail, out, n);
}

typedef struct {
    const KilnCpuConv *conv;
    const KilnCpuConvArgs *args;
    const KilnConvWeights *weights;
} Job;

static void
channel_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Job *job = data;
    kiln_conv_careful_channel(job->conv, job->args, job->weights, task / job->conv->oc,
                              task % job->conv->oc);
}

void
kiln_conv_careful_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args,
                      const KilnConvWeights *weights)
{
    Job job = { conv, args, weights };
    kiln_cpu_parallel(conv->batch * conv->oc, args->threads, channel_task, &job);
}
