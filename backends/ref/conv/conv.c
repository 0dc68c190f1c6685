/* SPDX-License-Identifier: Apache-2.0 */
/* conv, conv_transpose: any number of spatial dims, groups, strides, dilations and pads.
 *
 * One plane of sums per image and output channel; each weight adds a scaled part of an input plane
 * to it, a row of the last dim at a time. The two instructions are each other's mirror: conv walks
 * the windows' side as result, conv_transpose as operand. Terms are added in the order input
 * channel, then kernel position. */
#include "backends/ref/conv/window.h"
#include "backends/ref/elementwise/tail.h"
#include "backends/ref/gemm/inner_loops.h"
#include "backends/ref/kernel.h"
#include "ir/kernel.h"

/* What one weight does: for every window, one element of the small plane (windows) meets one of the
 * large plane. @spread: from small to large, else the reverse. */
typedef struct {
    const RefWindow *window;
    const RefRows *rows;
    RefValue *sums;
    const void *plane; /* of the operand */
    size_t size;
    bool spread;
} Sweep;

static void
sweep(const Sweep *sweep, const int64_t *k, RefValue weight)
{
    const RefWindow *window = sweep->window;
    int inner = window->rank - 1;
    int64_t first[KILN_MAX_RANK], n[KILN_MAX_RANK], index[KILN_MAX_RANK] = { 0 };
    for (int d = 0; d <= inner; d++) {
        int64_t last;
        ref_window_range(window, d, k[d], &first[d], &last);
        n[d] = last - first[d];
        if (n[d] == 0)
            return;
    }
    do {
        int64_t small = 0, large = 0;
        for (int d = 0; d <= inner; d++) {
            int64_t at = first[d] + (d < inner ? index[d] : 0);
            small = small * window->small[d] + at;
            large = large * window->large[d] + ref_window_at(window, d, at, k[d]);
        }
        int64_t to = sweep->spread ? large : small, from = sweep->spread ? small : large;
        int64_t step = window->stride[inner];
        sweep->rows->add_scaled(
            (RefSums){ sweep->sums + to, sweep->spread ? step : 1 },
            (RefLane){ ref_at(sweep->plane, from, sweep->size), sweep->spread ? 1 : step },
            n[inner], weight);
    } while (ref_next(index, n, inner));
}

/* Adds input channel @x through its kernel of weights, @w elements into the weights. */
static void
add_channel(Sweep *channel, const void *weights, int64_t w)
{
    const RefWindow *window = channel->window;
    int64_t k[KILN_MAX_RANK] = { 0 };
    if (ref_count(window->kernel, 0, window->rank) == 0)
        return;
    do {
        sweep(channel, k, ref_rows_load(channel->rows, weights, w++, channel->size));
    } while (ref_next(k, window->kernel, window->rank));
}

/* The plane of sums, as it starts out. operands: result, data, weights, bias */
static void
begin_plane(const KilnKernelArgs *args, const RefRows *rows, int64_t channel, int64_t n)
{
    KilnDType dtype = ref_type(args, 0)->dtype;
    RefValue *sums = args->scratch, bias = { .f = 0 };
    if (ref_has(args, 3))
        bias = ref_rows_load(rows, args->data[3], channel, kiln_dtype_size(dtype));
    for (int64_t i = 0; i < n; i++)
        sums[i] = bias;
}

size_t
kiln_ref_conv_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    const KilnType *out = &kiln_instr_operand(instr, 0)->type;
    return (size_t)ref_count(out->dims, 2, out->rank) * sizeof(RefValue);
}

const char *
kiln_ref_conv(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_conv *attrs = kiln_instr_attrs(args->instr, conv);
    const KilnType *out = ref_type(args, 0), *in = ref_type(args, 1), *weights = ref_type(args, 2);
    RefWindow window = ref_window(REF_WINDOW_OF_WEIGHTS(attrs, weights), out, in);
    int64_t out_channels = out->dims[1], in_channels = weights->dims[1]; /* of a group */
    int64_t out_plane = ref_count(out->dims, 2, out->rank);
    int64_t in_plane = ref_count(in->dims, 2, in->rank);
    int64_t kernel = ref_count(window.kernel, 0, window.rank);
    Sweep channel = { .window = &window,
                      .rows = kiln_ref_rows(out->dtype),
                      .sums = args->scratch,
                      .size = kiln_dtype_size(out->dtype) };
    for (int64_t i = 0; i < out->dims[0] * out_channels; i++) {
        int64_t image = i / out_channels, oc = i % out_channels;
        int64_t group = oc / (out_channels / attrs->group);
        begin_plane(args, channel.rows, oc, out_plane);
        for (int64_t ic = 0; ic < in_channels; ic++) {
            int64_t plane = image * in->dims[1] + group * in_channels + ic;
            channel.plane = ref_at(args->data[1], plane * in_plane, channel.size);
            add_channel(&channel, args->data[2], (oc * in_channels + ic) * kernel);
        }
        kiln_ref_store_sums(args, channel.rows, i * out_plane, channel.sums, out_plane);
    }
    return NULL;
}

/* Weights are [input channels, output channels of a group, kernel…]. What of a window would lie
 * outside of the result is cut off by its pads. */
const char *
kiln_ref_conv_transpose(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_conv_transpose *attrs = kiln_instr_attrs(args->instr, conv_transpose);
    const KilnType *out = ref_type(args, 0), *in = ref_type(args, 1), *weights = ref_type(args, 2);
    RefWindow window = ref_window(REF_WINDOW_OF_WEIGHTS(attrs, weights), in, out);
    int64_t out_channels = weights->dims[1], in_channels = in->dims[1] / attrs->group;
    int64_t out_plane = ref_count(out->dims, 2, out->rank);
    int64_t in_plane = ref_count(in->dims, 2, in->rank);
    int64_t kernel = ref_count(window.kernel, 0, window.rank);
    Sweep channel = { .window = &window,
                      .rows = kiln_ref_rows(out->dtype),
                      .sums = args->scratch,
                      .size = kiln_dtype_size(out->dtype),
                      .spread = true };
    for (int64_t i = 0; i < out->dims[0] * out->dims[1]; i++) {
        int64_t image = i / out->dims[1], oc = i % out->dims[1];
        int64_t group = oc / out_channels;
        begin_plane(args, channel.rows, oc, out_plane);
        for (int64_t ic = group * in_channels; ic < (group + 1) * in_channels; ic++) {
            channel.plane =
                ref_at(args->data[1], (image * in->dims[1] + ic) * in_plane, channel.size);
            add_channel(&channel, args->data[2], (ic * out_channels + oc % out_channels) * kernel);
        }
        kiln_ref_store_sums(args, channel.rows, i * out_plane, channel.sums, out_plane);
    }
    return NULL;
}
