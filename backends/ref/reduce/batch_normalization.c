/* SPDX-License-Identifier: Apache-2.0 */
/* batch_normalization: per channel (a number of dim `axis`), with given statistics or, in training
 * mode, with those of the batch: the biased variance, which also moves the running statistics. The
 * statistics of a channel are taken before its first element is written. */
#include "backends/ref/kernel.h"

#include <math.h>

enum {
    Y,
    X,
    SCALE,
    BIAS,
    MEAN,
    VARIANCE,
    RUNNING_MEAN,
    RUNNING_VARIANCE,
};

typedef struct {
    double mean, variance;
} Moments;

static double
load(const KilnKernelArgs *args, uint32_t operand, int64_t i)
{
    return ref_load_float(ref_type(args, operand)->dtype, args->data[operand], i);
}

/* Element @i of a channel. One loop over all of them ends at once where there are none, however big
 * one of the other extents is. */
static int64_t
element_of(RefSplit split, int64_t channel, int64_t i)
{
    return (i / split.inner * split.axis + channel) * split.inner + i % split.inner;
}

static Moments
moments_of_channel(const KilnKernelArgs *args, RefSplit split, int64_t channel)
{
    const int64_t count = split.outer * split.inner;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        sum += load(args, X, element_of(split, channel, i));
    const double mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++) {
        double d = load(args, X, element_of(split, channel, i)) - mean;
        squares += d * d;
    }
    return (Moments){ mean, squares / (double)count };
}

static void
move_running(const KilnKernelArgs *args, uint32_t out, int64_t channel, double now)
{
    if (!ref_has(args, out))
        return;
    const double momentum = (double)kiln_instr_attrs(args->instr, batch_normalization)->momentum;
    const uint32_t in = out == RUNNING_MEAN ? MEAN : VARIANCE;
    ref_store_float(ref_type(args, out)->dtype, args->data[out], channel,
                    load(args, in, channel) * momentum + now * (1 - momentum));
}

const char *
kiln_ref_batch_normalization(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_batch_normalization *attrs =
        kiln_instr_attrs(args->instr, batch_normalization);
    const KilnType *type = ref_type(args, X);
    const RefSplit split = ref_split(type, attrs->axis);
    for (int64_t c = 0; c < split.axis; c++) {
        Moments moments;
        if (attrs->training_mode) {
            moments = moments_of_channel(args, split, c);
            move_running(args, RUNNING_MEAN, c, moments.mean);
            move_running(args, RUNNING_VARIANCE, c, moments.variance);
        } else {
            moments = (Moments){ load(args, MEAN, c), load(args, VARIANCE, c) };
        }
        const double deviation = sqrt(moments.variance + (double)attrs->epsilon);
        const double scale = load(args, SCALE, c), bias = load(args, BIAS, c);
        for (int64_t i = 0; i < split.outer * split.inner; i++) {
            const int64_t at = element_of(split, c, i);
            double x = load(args, X, at);
            ref_store_float(type->dtype, args->data[Y], at,
                            (x - moments.mean) / deviation * scale + bias);
        }
    }
    return NULL;
}
