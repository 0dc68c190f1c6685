/* SPDX-License-Identifier: Apache-2.0 */
/* deform_conv: a convolution whose kernel elements each read the data at a place of their own, for
 * each window. A place between elements is their linear interpolation, in any number of dims, with
 * zeros outside. What weighs nothing is not read. Operands: result, data, weights, offsets, bias,
 * mask. */
#include "backends/ref/conv/window.h"
#include "backends/ref/kernel.h"

#include <math.h>

typedef struct {
    const KilnKernelArgs *args;
    const KilnInstrAttrs_deform_conv *attrs;
    RefWindow window;
    int64_t taps, positions, plane; /* of the kernel, of the result, of the data */
    int64_t in_group, out_group;    /* channels */
    int64_t image, channel;         /* of the result */
    const int64_t *at;              /* the window */
    int64_t position;
} Deform;

/* Where kernel element @k, whose number is @tap, reads the data of channel group @group. As in
 * ONNX's own reference, the offset moves the window in the element type, where that of halves is
 * f32, and the kernel element is counted from there. */
static void
place_of(const Deform *d, int64_t group, const int64_t *k, int64_t tap, double *place)
{
    const KilnType *offsets = ref_type(d->args, 3);
    const int64_t first = (d->image * d->attrs->offset_group + group) * d->taps + tap;
    for (int i = 0; i < d->window.rank; i++) {
        const int64_t element = (first * d->window.rank + i) * d->positions + d->position;
        const int64_t window = ref_window_at(&d->window, i, d->at[i], 0);
        const int64_t behind = ref_window_at(&d->window, i, d->at[i], k[i]) - window;
        const double offset = ref_load_float(offsets->dtype, d->args->data[3], element);
        const double moved = (double)window + offset;
        const bool wide = offsets->dtype == KILN_DTYPE_f64;
        place[i] = (wide ? moved : (double)(float)moved) + (double)behind;
    }
}

/* The plane of the data that begins with element @from, at @place. */
static double
sample(const Deform *d, int64_t from, const double *place, double factor)
{
    const KilnType *in = ref_type(d->args, 1);
    const int rank = d->window.rank;
    double sum = 0;
    for (int corner = 0; corner < 1 << rank; corner++) {
        double weight = factor;
        int64_t at = 0;
        for (int i = 0; i < rank; i++) {
            const int64_t extent = in->dims[i + 2];
            const double low = floor(place[i]), here = low + (corner >> i & 1);
            const bool inside = here >= 0 && here < (double)extent;
            weight *= !inside ? 0 : corner >> i & 1 ? place[i] - low : 1 - (place[i] - low);
            at = at * extent + (inside ? (int64_t)here : 0);
        }
        if (weight != 0)
            sum += weight * ref_load_float(in->dtype, d->args->data[1], from + at);
    }
    return sum;
}

/* What input channel @ic of the group adds to the result. */
static double
add_channel(const Deform *d, int64_t ic)
{
    const KilnDType dtype = ref_type(d->args, 0)->dtype;
    const int64_t channels = ref_type(d->args, 1)->dims[1];
    const int64_t c = d->channel / d->out_group * d->in_group + ic;
    const int64_t group = c / (channels / d->attrs->offset_group);
    const int64_t masks = (d->image * d->attrs->offset_group + group) * d->taps;
    int64_t k[KILN_MAX_RANK] = { 0 }, tap = 0;
    double sum = 0;
    do {
        double place[KILN_MAX_RANK], factor = 1;
        place_of(d, group, k, tap, place);
        if (ref_has(d->args, 5))
            factor =
                ref_load_float(dtype, d->args->data[5], (masks + tap) * d->positions + d->position);
        const double weight = ref_load_float(dtype, d->args->data[2],
                                             (d->channel * d->in_group + ic) * d->taps + tap);
        sum += weight * sample(d, (d->image * channels + c) * d->plane, place, factor);
        tap++;
    } while (ref_next(k, d->window.kernel, d->window.rank));
    return sum;
}

const char *
kiln_ref_deform_conv(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_deform_conv *attrs = kiln_instr_attrs(args->instr, deform_conv);
    const KilnType *out = ref_type(args, 0), *in = ref_type(args, 1), *weights = ref_type(args, 2);
    int64_t index[KILN_MAX_RANK] = { 0 };
    Deform d = { .args = args,
                 .attrs = attrs,
                 .window = ref_window(REF_WINDOW_OF_WEIGHTS(attrs, weights), out, in),
                 .taps = ref_count(weights->dims, 2, weights->rank),
                 .positions = ref_count(out->dims, 2, out->rank),
                 .plane = ref_count(in->dims, 2, in->rank),
                 .in_group = weights->dims[1],
                 .out_group = out->dims[1] / attrs->group,
                 .at = index + 2 };
    if (ref_elements(out) == 0)
        return NULL;
    int64_t i = 0;
    do {
        d.image = index[0];
        d.channel = index[1];
        d.position = i % d.positions;
        double sum = ref_has(args, 4) ? ref_load_float(out->dtype, args->data[4], d.channel) : 0;
        for (int64_t ic = 0; ic < d.in_group && d.taps > 0; ic++)
            sum += add_channel(&d, ic);
        ref_store_float(out->dtype, args->data[0], i++, sum);
    } while (ref_next(index, out->dims, out->rank));
    return NULL;
}
