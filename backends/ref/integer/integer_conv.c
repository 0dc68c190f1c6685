/* SPDX-License-Identifier: Apache-2.0 */
/* conv_integer and qlinear_conv: a window over any number of dims, 8-bit integers less their zero
 * points, accumulated in i32, which wraps. Outside the image lies the zero point of x, which adds
 * nothing. A zero point or scale of w is one number or one per channel of the result.
 *
 * qlinear_conv adds its bias (i32) to the sum, and multiplies that, as f32, by
 * x_scale * w_scale / y_scale, computed in f32 in this order; rounding is that of quantize_linear.
 */
#include "backends/ref/integer/quantize.h"
#include "backends/ref/kernel.h"

typedef struct {
    const KilnType *x, *w, *out;
    const void *x_data, *w_data;
    int64_t x_zero;
    KilnInts dilations, pads, strides;
    int64_t group;
} Conv;

/* One element of the result for one channel of the input: the window over the image. */
static uint32_t
window(const Conv *conv, const int64_t *at, int64_t x_channel, int64_t w_channel, int64_t w_zero)
{
    const int dims = conv->x->rank - 2;
    const int64_t *image = conv->x->dims + 2, *kernel = conv->w->dims + 2;
    int64_t taps = 1, index[KILN_MAX_RANK] = { 0 };
    for (int d = 0; d < dims; d++)
        taps *= kernel[d];
    uint32_t sum = 0;
    for (int64_t tap = 0; tap < taps; tap++, ref_next(index, kernel, dims)) {
        int64_t offset = x_channel;
        bool inside = true;
        for (int d = 0; d < dims; d++) {
            int64_t from = at[d] * kiln_ints_at(conv->strides, (uint32_t)d, 1) -
                           kiln_ints_at(conv->pads, (uint32_t)d, 0) +
                           index[d] * kiln_ints_at(conv->dilations, (uint32_t)d, 1);
            inside = inside && from >= 0 && from < image[d];
            offset = offset * image[d] + from;
        }
        if (!inside)
            continue;
        int64_t x = ref_load_int(conv->x->dtype, conv->x_data, offset) - conv->x_zero;
        int64_t w = ref_load_int(conv->w->dtype, conv->w_data, w_channel * taps + tap) - w_zero;
        sum += (uint32_t)(x * w);
    }
    return sum;
}

/* The element of the result at @index (batch, channel, image). */
static uint32_t
accumulate(const Conv *conv, const int64_t *index, int64_t w_zero)
{
    const int64_t per_group = conv->w->dims[1];
    const int64_t group = index[1] / (conv->out->dims[1] / conv->group);
    uint32_t sum = 0;
    for (int64_t c = 0; c < per_group; c++) {
        const int64_t x_channel = index[0] * conv->x->dims[1] + group * per_group + c;
        sum += window(conv, index + 2, x_channel, index[1] * per_group + c, w_zero);
    }
    return sum;
}

static int64_t
channel_param(const KilnType *type, int64_t channel)
{
    return ref_elements(type) == 1 ? 0 : channel;
}

static int64_t
int_at(const KilnKernelArgs *args, uint32_t operand, int64_t channel)
{
    const KilnType *type = ref_type(args, operand);
    return ref_load_int(type->dtype, args->data[operand], channel_param(type, channel));
}

static float
float_at(const KilnKernelArgs *args, uint32_t operand, int64_t channel)
{
    const KilnType *type = ref_type(args, operand);
    return (float)ref_load_float(type->dtype, args->data[operand], channel_param(type, channel));
}

const char *
kiln_ref_conv_integer(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_conv_integer *attrs = kiln_instr_attrs(args->instr, conv_integer);
    const Conv conv = { .x = ref_type(args, 1),
                        .w = ref_type(args, 2),
                        .out = ref_type(args, 0),
                        .x_data = args->data[1],
                        .w_data = args->data[2],
                        .x_zero = ref_has(args, 3) ? int_at(args, 3, 0) : 0,
                        .dilations = attrs->dilations,
                        .pads = attrs->pads,
                        .strides = attrs->strides,
                        .group = attrs->group };
    const int64_t n = ref_elements(conv.out);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < n; i++, ref_next(index, conv.out->dims, conv.out->rank)) {
        const int64_t w_zero = ref_has(args, 4) ? int_at(args, 4, index[1]) : 0;
        ((uint32_t *)args->data[0])[i] = accumulate(&conv, index, w_zero);
    }
    return NULL;
}

enum {
    X = 1,
    X_SCALE,
    X_ZERO,
    W,
    W_SCALE,
    W_ZERO,
    Y_SCALE,
    Y_ZERO,
    BIAS,
};

const char *
kiln_ref_qlinear_conv(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_qlinear_conv *attrs = kiln_instr_attrs(args->instr, qlinear_conv);
    const Conv conv = { .x = ref_type(args, X),
                        .w = ref_type(args, W),
                        .out = ref_type(args, 0),
                        .x_data = args->data[X],
                        .w_data = args->data[W],
                        .x_zero = int_at(args, X_ZERO, 0),
                        .dilations = attrs->dilations,
                        .pads = attrs->pads,
                        .strides = attrs->strides,
                        .group = attrs->group };
    const int64_t n = ref_elements(conv.out);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < n; i++, ref_next(index, conv.out->dims, conv.out->rank)) {
        const int64_t channel = index[1];
        uint32_t sum = accumulate(&conv, index, int_at(args, W_ZERO, channel));
        if (ref_has(args, BIAS))
            sum += (uint32_t)((const int32_t *)args->data[BIAS])[channel];
        const float factor = float_at(args, X_SCALE, 0) * float_at(args, W_SCALE, channel) /
                             float_at(args, Y_SCALE, 0);
        kiln_ref_store_quantized(conv.out->dtype, args->data[0], i, (float)(int32_t)sum * factor,
                                 int_at(args, Y_ZERO, 0));
    }
    return NULL;
}
