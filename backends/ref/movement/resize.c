/* SPDX-License-Identifier: Apache-2.0 */
/* resize: nearest, linear and cubic interpolation over any number of dims.
 *
 * Each dim has a table: for every coordinate of the result, the elements of the operand that it is
 * made of and their weights. An element of the result is the sum over all combinations. Coordinates
 * outside of the operand mean its outermost elements, or count nothing with exclude_outside; with
 * tf_crop_and_resize a result whose coordinate lies outside is the extrapolation value. Weights of
 * zero are left out, so that an infinity beside the wanted element does no harm. Integers are
 * rounded half to even and saturate.
 *
 * Where sizes were given, scales are their ratios as floats; a scale that equals its ratio rounded
 * is taken as the exact ratio. align_corners and tf_crop_and_resize take scale × extent, which need
 * not be whole, for the extent of the result, as the tests of ONNX do. */
#include "backends/ref/kernel.h"

#include <math.h>

/* The numbers are the kernels' reach to each side. */
typedef enum {
    NEAREST = 0,
    LINEAR = 1,
    CUBIC = 2,
} Mode;

typedef enum {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_CROP_AND_RESIZE,
} Coordinates;

typedef struct {
    int64_t at;
    double weight;
} Tap;

/* One dim. */
typedef struct {
    int64_t in, out;
    double scale, roi_begin, roi_end;
    int64_t width;   /* taps that a coordinate may have */
    int64_t *counts; /* per coordinate; 0: outside */
    Tap *taps;       /* width per coordinate */
} Axis;

typedef struct {
    const KilnInstrAttrs_resize *attrs;
    Mode mode;
    Coordinates coordinates;
    int rank;
    Axis axes[KILN_MAX_RANK];
} Resize;

static Mode
mode_of(const char *name)
{
    return strcmp(name, "linear") == 0 ? LINEAR : strcmp(name, "cubic") == 0 ? CUBIC : NEAREST;
}

static Coordinates
coordinates_of(const char *name)
{
    static const char *const names[] = {
        [HALF_PIXEL_SYMMETRIC] = "half_pixel_symmetric",
        [PYTORCH_HALF_PIXEL] = "pytorch_half_pixel",
        [ALIGN_CORNERS] = "align_corners",
        [ASYMMETRIC] = "asymmetric",
        [TF_CROP_AND_RESIZE] = "tf_crop_and_resize",
    };
    for (int i = HALF_PIXEL_SYMMETRIC; i <= TF_CROP_AND_RESIZE; i++) {
        if (strcmp(name, names[i]) == 0)
            return (Coordinates)i;
    }
    return HALF_PIXEL;
}

/* How much the kernel is stretched: an antialiased one covers what a result element covers. */
static double
kernel_scale(const Resize *resize, const Axis *axis)
{
    if (!resize->attrs->antialias || axis->scale >= 1)
        return 1;
    return MAX(axis->scale, 1.0 / (double)(4 * axis->in));
}

/* The kernel covers 1 - first … on both sides of the element left of a coordinate. */
static int64_t
first_tap(const Resize *resize, const Axis *axis)
{
    return (int64_t)floor(-(double)resize->mode / kernel_scale(resize, axis)) + 1;
}

static double
scale_of(const KilnInstrAttrs_resize *attrs, int d, int64_t in, int64_t out)
{
    double ratio = (double)out / (double)in;
    if ((uint32_t)d >= attrs->scales.n)
        return ratio;
    float given = attrs->scales.v[d];
    return !(given > 0) || given == (float)ratio ? ratio : (double)given;
}

static Resize
resize_of(const KilnInstr *instr)
{
    const KilnType *in = &kiln_instr_operand(instr, 1)->type;
    const KilnType *out = &kiln_instr_operand(instr, 0)->type;
    const KilnInstrAttrs_resize *attrs = kiln_instr_attrs(instr, resize);
    Resize resize = { .attrs = attrs,
                      .mode = mode_of(attrs->mode),
                      .coordinates = coordinates_of(attrs->coordinate_transformation_mode),
                      .rank = in->rank };
    bool roi = attrs->roi.n >= (uint32_t)(2 * in->rank);
    for (int d = 0; d < in->rank; d++) {
        Axis *axis = &resize.axes[d];
        *axis = (Axis){ .in = in->dims[d],
                        .out = out->dims[d],
                        .scale = scale_of(attrs, d, in->dims[d], out->dims[d]),
                        .roi_begin = roi ? (double)attrs->roi.v[d] : 0,
                        .roi_end = roi ? (double)attrs->roi.v[d + in->rank] : 1,
                        .width = 1 };
        if (resize.mode != NEAREST && axis->in > 0)
            axis->width = MIN(axis->in, 2 - 2 * first_tap(&resize, axis));
    }
    return resize;
}

/* Where coordinate @i of the result lies in the operand. */
static double
original(const Resize *resize, const Axis *axis, int64_t i)
{
    double x = (double)i, in = (double)axis->in, out = in * axis->scale;
    switch (resize->coordinates) {
    case ALIGN_CORNERS:
        return out == 1 ? 0 : x * (in - 1) / (out - 1);
    case ASYMMETRIC:
        return x / axis->scale;
    case TF_CROP_AND_RESIZE: {
        double room = (axis->roi_end - axis->roi_begin) * (in - 1);
        return axis->roi_begin * (in - 1) + (out == 1 ? room / 2 : x * room / (out - 1));
    }
    case PYTORCH_HALF_PIXEL:
        return axis->out > 1 ? (x + 0.5) / axis->scale - 0.5 : 0;
    case HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - (double)axis->out / out) + (x + 0.5) / axis->scale - 0.5;
    default:
        return (x + 0.5) / axis->scale - 0.5;
    }
}

static double
nearest(const char *mode, double x)
{
    if (strcmp(mode, "floor") == 0)
        return floor(x);
    if (strcmp(mode, "ceil") == 0)
        return ceil(x);
    bool half = x - floor(x) == 0.5;
    return half ? (strcmp(mode, "round_prefer_ceil") == 0 ? ceil(x) : floor(x)) : round(x);
}

/* The triangle of linear and the piecewise cubic (Keys) with parameter a. */
static double
kernel(const Resize *resize, double x)
{
    double a = (double)resize->attrs->cubic_coeff_a;
    x = fabs(x);
    if (resize->mode == LINEAR)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* NaN, of a roi that is none, becomes 0. */
static int64_t
clamp(double x, int64_t n)
{
    return !(x > 0) ? 0 : x >= (double)(n - 1) ? n - 1 : (int64_t)x;
}

/* The taps of coordinate @x, weights summing to one; returns how many. None where exclude_outside
 * leaves nothing that weighs. */
static int64_t
fill_taps(const Resize *resize, const Axis *axis, double x, Tap *taps)
{
    if (resize->mode == NEAREST) {
        taps[0] = (Tap){ clamp(nearest(resize->attrs->nearest_mode, x), axis->in), 1 };
        return 1;
    }
    double scale = kernel_scale(resize, axis), sum = 0;
    int64_t first = first_tap(resize, axis), last = 1 - first, n = 0;
    for (int64_t i = first; i <= last; i++) {
        double at = floor(x) + (double)i, weight = kernel(resize, (at - x) * scale);
        if (resize->attrs->exclude_outside && (at < 0 || at >= (double)axis->in))
            continue;
        sum += weight;
        int64_t element = clamp(at, axis->in);
        if (n > 0 && taps[n - 1].at == element)
            taps[n - 1].weight += weight;
        else if (weight != 0)
            taps[n++] = (Tap){ element, weight };
    }
    for (int64_t i = 0; i < n; i++)
        taps[i].weight /= sum;
    return sum == 0 ? 0 : n;
}

static void
fill_axis(const Resize *resize, Axis *axis)
{
    for (int64_t i = 0; i < axis->out; i++) {
        double x = original(resize, axis, i);
        bool outside =
            resize->coordinates == TF_CROP_AND_RESIZE && !(x >= 0 && x <= (double)(axis->in - 1));
        axis->counts[i] = outside ? 0 : fill_taps(resize, axis, x, axis->taps + i * axis->width);
    }
}

size_t
kiln_ref_resize_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    Resize resize = resize_of(instr);
    size_t bytes = 0;
    for (int d = 0; d < resize.rank; d++)
        bytes += (size_t)resize.axes[d].out *
                 (sizeof(int64_t) + (size_t)resize.axes[d].width * sizeof(Tap));
    return bytes;
}

/* One element of the result from its taps per dim. */
static void
make_element(const KilnKernelArgs *args, const Resize *resize, const int64_t *index, int64_t to)
{
    KilnDType dtype = ref_type(args, 0)->dtype;
    const Tap *taps[KILN_MAX_RANK];
    int64_t counts[KILN_MAX_RANK], at[KILN_MAX_RANK] = { 0 };
    for (int d = 0; d < resize->rank; d++) {
        const Axis *axis = &resize->axes[d];
        taps[d] = axis->taps + index[d] * axis->width;
        counts[d] = axis->counts[index[d]];
        if (counts[d] == 0) {
            kiln_element_store_f64(dtype, args->data[0], to,
                                   (double)resize->attrs->extrapolation_value);
            return;
        }
    }
    double sum = 0;
    do {
        double weight = 1;
        int64_t from = 0;
        for (int d = 0; d < resize->rank; d++) {
            from = from * resize->axes[d].in + taps[d][at[d]].at;
            weight *= taps[d][at[d]].weight;
        }
        if (resize->mode == NEAREST) {
            ref_copy_element(args->data[0], to, args->data[1], from, kiln_dtype_size(dtype));
            return;
        }
        sum += weight * kiln_element_as_f64(dtype, args->data[1], from);
    } while (ref_next(at, counts, resize->rank));
    kiln_element_store_f64(dtype, args->data[0], to, kiln_dtype_is_float(dtype) ? sum : rint(sum));
}

const char *
kiln_ref_resize(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0);
    Resize resize = resize_of(args->instr);
    int64_t n = ref_elements(out), index[KILN_MAX_RANK] = { 0 };
    if (n == 0)
        return NULL;
    if (ref_elements(ref_type(args, 1)) == 0)
        return "there is nothing to resize";
    char *scratch = args->scratch;
    for (int d = 0; d < resize.rank; d++) {
        Axis *axis = &resize.axes[d];
        axis->counts = (int64_t *)scratch;
        axis->taps = (Tap *)(axis->counts + axis->out);
        scratch = (char *)(axis->taps + axis->out * axis->width);
        fill_axis(&resize, axis);
    }
    for (int64_t i = 0; i < n; i++) {
        make_element(args, &resize, index, i);
        ref_next(index, out->dims, out->rank);
    }
    return NULL;
}
