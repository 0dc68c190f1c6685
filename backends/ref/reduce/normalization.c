/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations whose statistics come from the data: layer, root-mean-square, instance, group,
 * mean-variance, lp and local response. Variances are biased and taken around the mean; everything
 * is in double and rounded once. In place is allowed where instrs.def says so: the statistics of a
 * group are taken before its first element is written. */
#include "backends/ref/kernel.h"
#include "backends/ref/reduce/groups.h"
#include "ir/tail.h"

#include <math.h>
#include <string.h>

typedef struct {
    double mean, variance;
} Moments;

static Moments
moments_of(const RefGroup *group)
{
    double sum = 0, squares = 0;
    ref_foreach_element (group, at)
        sum += ref_load_float(group->dtype, group->data, at);
    const double mean = sum / (double)group->count;
    ref_foreach_element (group, at) {
        double d = ref_load_float(group->dtype, group->data, at) - mean;
        squares += d * d;
    }
    return (Moments){ mean, squares / (double)group->count };
}

/* @count elements that lie side by side. */
static RefGroup
run_of(const KilnKernelArgs *args, int64_t base, int64_t count)
{
    return (RefGroup){ .dtype = ref_type(args, 1)->dtype,
                       .data = args->data[1],
                       .base = base,
                       .count = count,
                       .rank = 1,
                       .dims = { count },
                       .strides = { 1 } };
}

static double
load(const KilnKernelArgs *args, uint32_t operand, int64_t i)
{
    return ref_load_float(ref_type(args, operand)->dtype, args->data[operand], i);
}

/* y = (x - mean) / sqrt(variance + epsilon) * scale + bias, over runs of @channels_per_run channels
 * that each have a scale and a bias. */
static void
normalize_channels(const KilnKernelArgs *args, int64_t channels_per_run, double epsilon)
{
    const KilnType *type = ref_type(args, 1);
    const RefSplit split = ref_split(type, 1);
    const int64_t run = channels_per_run * split.inner;
    if (ref_elements(type) == 0)
        return;
    for (int64_t base = 0; base < split.outer * split.axis * split.inner; base += run) {
        RefGroup group = run_of(args, base, run);
        const Moments moments = moments_of(&group);
        const double deviation = sqrt(moments.variance + epsilon);
        for (int64_t at = base; at < base + run; at++) {
            const int64_t channel = at / split.inner % split.axis;
            ref_store_float(type->dtype, args->data[0], at,
                            (load(args, 1, at) - moments.mean) / deviation *
                                    load(args, 2, channel) +
                                load(args, 3, channel));
        }
    }
}

const char *
kiln_ref_instance_normalization(const KilnKernelArgs *args)
{
    const float epsilon = kiln_instr_attrs(args->instr, instance_normalization)->epsilon;
    normalize_channels(args, 1, (double)epsilon);
    return NULL;
}

const char *
kiln_ref_group_normalization(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_group_normalization *attrs =
        kiln_instr_attrs(args->instr, group_normalization);
    const int64_t channels = ref_type(args, 1)->dims[1];
    normalize_channels(args, channels / attrs->num_groups, (double)attrs->epsilon);
    return NULL;
}

/* True where groups divide the channels. */
bool
kiln_ref_group_normalization_supports(const KilnInstr *instr)
{
    const int64_t groups = kiln_instr_attrs(instr, group_normalization)->num_groups;
    const KilnType *type = &kiln_instr_operand(instr, 1)->type;
    return type->rank >= 2 && groups > 0 && type->dims[1] % groups == 0;
}

/* With a residual: the sum, rounded, is in the place of the result, and @with reads it there. */
static const KilnKernelArgs *
with_residual(const KilnKernelArgs *args, KilnKernelArgs *with, void **data)
{
    const uint32_t residual = kiln_residual_operand(args->instr->kind);
    const KilnType *type = ref_type(args, 1);
    if (!ref_has(args, residual))
        return args;
    for (int64_t at = 0; at < ref_elements(type); at++)
        ref_store_float(type->dtype, args->data[0], at,
                        load(args, 1, at) + load(args, residual, at));
    memcpy(data, args->data, args->instr->n_operands * sizeof *data);
    data[1] = data[0];
    *with = *args;
    with->data = data;
    return with;
}

/* Scale and bias are broadcast to the normalised dims; mean and 1/deviation are further results. */
const char *
kiln_ref_layer_normalization(const KilnKernelArgs *plain)
{
    void *data[7];
    KilnKernelArgs with;
    const KilnKernelArgs *args = with_residual(plain, &with, data);
    const KilnInstrAttrs_layer_normalization *attrs =
        kiln_instr_attrs(args->instr, layer_normalization);
    const KilnType *type = ref_type(args, 1);
    const RefSplit split = ref_split(type, attrs->axis);
    const int64_t run = split.axis * split.inner;
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t o = 0; o < split.outer; o++) {
        RefGroup group = run_of(args, o * run, run);
        const Moments moments = moments_of(&group);
        const double deviation = sqrt(moments.variance + (double)attrs->epsilon);
        for (int64_t at = o * run; at < (o + 1) * run; at++) {
            double y = (load(args, 1, at) - moments.mean) / deviation;
            y *= load(args, 2, ref_broadcast_offset(ref_type(args, 2), index, type->rank));
            if (ref_has(args, 3))
                y += load(args, 3, ref_broadcast_offset(ref_type(args, 3), index, type->rank));
            ref_store_float(type->dtype, args->data[0], at, y);
            ref_next(index, type->dims, type->rank);
        }
        if (ref_has(args, 4))
            ref_store_float(ref_type(args, 4)->dtype, args->data[4], o, moments.mean);
        if (ref_has(args, 5))
            ref_store_float(ref_type(args, 5)->dtype, args->data[5], o, 1 / deviation);
    }
    return NULL;
}

const char *
kiln_ref_rms_normalization(const KilnKernelArgs *plain)
{
    void *data[4];
    KilnKernelArgs with;
    const KilnKernelArgs *args = with_residual(plain, &with, data);
    const KilnInstrAttrs_rms_normalization *attrs =
        kiln_instr_attrs(args->instr, rms_normalization);
    const KilnType *type = ref_type(args, 1);
    const RefSplit split = ref_split(type, attrs->axis);
    const int64_t run = split.axis * split.inner;
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t first = 0; first < split.outer * run; first += run) {
        double squares = 0;
        for (int64_t at = first; at < first + run; at++)
            squares += load(args, 1, at) * load(args, 1, at);
        const double root = sqrt(squares / (double)run + (double)attrs->epsilon);
        for (int64_t at = first; at < first + run; at++) {
            double scale =
                load(args, 2, ref_broadcast_offset(ref_type(args, 2), index, type->rank));
            ref_store_float(type->dtype, args->data[0], at, load(args, 1, at) / root * scale);
            ref_next(index, type->dims, type->rank);
        }
    }
    return NULL;
}

/* The standard function's denominator: deviation + 1e-9. */
const char *
kiln_ref_mean_variance_normalization(const KilnKernelArgs *args)
{
    const KilnType *type = ref_type(args, 1);
    const KilnInts axes = kiln_instr_attrs(args->instr, mean_variance_normalization)->axes;
    RefGroups groups = ref_groups(type, args->data[1], axes);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < groups.count; i++, ref_next(index, groups.dims, groups.rank)) {
        const RefGroup *group = &groups.group;
        groups.group.base = ref_offset(index, groups.strides, groups.rank);
        const Moments moments = moments_of(group);
        const double deviation = sqrt(moments.variance) + 1e-9;
        ref_foreach_element (group, at)
            ref_store_float(type->dtype, args->data[0], at,
                            (load(args, 1, at) - moments.mean) / deviation);
    }
    return NULL;
}

/* x / norm along the axis; 0 where the norm is 0. */
const char *
kiln_ref_lp_normalization(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_lp_normalization *attrs = kiln_instr_attrs(args->instr, lp_normalization);
    const KilnType *type = ref_type(args, 1);
    const RefSplit split = ref_split(type, attrs->axis);
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        const int64_t base = i / split.inner * split.axis * split.inner + i % split.inner;
        double sum = 0;
        for (int64_t k = 0; k < split.axis; k++) {
            double x = load(args, 1, base + k * split.inner);
            sum += attrs->p == 1 ? fabs(x) : x * x;
        }
        const double norm = attrs->p == 1 ? sum : sqrt(sum);
        for (int64_t k = 0; k < split.axis; k++) {
            const int64_t at = base + k * split.inner;
            ref_store_float(type->dtype, args->data[0], at,
                            norm == 0 ? 0 : load(args, 1, at) / norm);
        }
    }
    return NULL;
}

bool
kiln_ref_lp_normalization_supports(const KilnInstr *instr)
{
    const int64_t p = kiln_instr_attrs(instr, lp_normalization)->p;
    return p == 1 || p == 2;
}

/* y = x / (bias + alpha / size * (sum of squares over the neighbouring channels)) ^ beta. */
const char *
kiln_ref_lrn(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_lrn *attrs = kiln_instr_attrs(args->instr, lrn);
    const KilnType *type = ref_type(args, 1);
    const RefSplit split = ref_split(type, 1);
    const int64_t before = (attrs->size - 1) / 2, after = attrs->size / 2;
    for (int64_t i = 0; i < split.outer * split.axis * split.inner; i++) {
        const int64_t c = i / split.inner % split.axis;
        double squares = 0;
        for (int64_t k = MAX(0, c - before); k <= MIN(split.axis - 1, c + after); k++) {
            double x = load(args, 1, i + (k - c) * split.inner);
            squares += x * x;
        }
        const double scale = (double)attrs->alpha / (double)attrs->size;
        ref_store_float(type->dtype, args->data[0], i,
                        load(args, 1, i) /
                            pow((double)attrs->bias + scale * squares, (double)attrs->beta));
    }
    return NULL;
}
