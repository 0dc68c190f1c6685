/* SPDX-License-Identifier: Apache-2.0 */
/* grid_sample: every channel of the data at positions that the grid states, in any number of dims.
 *
 * Coordinate k of a position speaks of dim k from the end: -1 is the begin of the data and 1 its
 * end, by the middle of the outermost elements with align_corners, by their outer edges without.
 * What interpolation reaches beyond the ends is as padding_mode says: zeros, the outermost element,
 * or the data again as in mirrors at its ends. Nearest rounds half to even, before the mirrors. A
 * position that is no number is far outside. */
#include "backends/ref/kernel.h"

#include <math.h>

/* The numbers are how many elements of a dim a position is made of. */
typedef enum {
    NEAREST = 1,
    LINEAR = 2,
    CUBIC = 4,
} Mode;

typedef enum {
    ZEROS,
    BORDER,
    REFLECTION,
} Padding;

typedef struct {
    Mode mode;
    Padding padding;
    bool align;
} Sampler;

/* What a position is made of in one dim; at < 0: a zero. */
typedef struct {
    int64_t at[CUBIC];
    double weights[CUBIC];
} Taps;

static Sampler
sampler_of(const KilnInstrAttrs_grid_sample *attrs)
{
    bool cubic = strcmp(attrs->mode, "cubic") == 0, linear = strcmp(attrs->mode, "linear") == 0;
    bool border = strcmp(attrs->padding_mode, "border") == 0;
    bool zeros = strcmp(attrs->padding_mode, "zeros") == 0;
    return (Sampler){ .mode = cubic    ? CUBIC
                              : linear ? LINEAR
                                       : NEAREST,
                      .padding = border  ? BORDER
                                 : zeros ? ZEROS
                                         : REFLECTION,
                      .align = attrs->align_corners };
}

/* @x in mirrors at @low and @high. */
static double
reflect(double x, double low, double high)
{
    double range = high - low, over = x < low ? low - x : x - high;
    if (x >= low && x <= high)
        return x;
    if (!(range > 0) || !isfinite(x))
        return low;
    over = fmod(over, 2 * range);
    if (x > high)
        return over <= range ? high - over : low + (over - range);
    return over <= range ? low + over : high - (over - range);
}

/* Outside of 0 … @n - 1 all positions are alike from some elements on, or lie behind mirrors. */
static double
bring_near(const Sampler *s, double x, int64_t n)
{
    if (s->padding == REFLECTION)
        return reflect(x, s->align ? 0 : -0.5, (double)n - (s->align ? 1 : 0.5));
    return !(x > -CUBIC) ? -CUBIC : fmin(x, (double)(n + CUBIC));
}

static int64_t
element_at(const Sampler *s, int64_t i, int64_t n)
{
    if (i >= 0 && i < n)
        return i;
    if (s->padding == ZEROS)
        return -1;
    if (s->padding == REFLECTION)
        i = (int64_t)bring_near(s, (double)i, n);
    return CLAMP(i, 0, n - 1);
}

/* Keys' kernel with a = -0.75 for @t between the second and the third element. */
static void
cubic_weights(double t, double *weights)
{
    const double a = -0.75;
    for (int k = 0; k < CUBIC; k++) {
        double d = fabs(t + 1 - k);
        weights[k] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1
                            : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    }
}

static Taps
taps_at(const Sampler *s, double coordinate, int64_t n)
{
    Taps taps = { .weights = { 1 } };
    double extent = (double)n;
    double x = s->align ? (coordinate + 1) / 2 * (extent - 1) : ((coordinate + 1) * extent - 1) / 2;
    x = bring_near(s, s->mode == NEAREST ? nearbyint(x) : x, n);
    double first = floor(x);
    if (s->mode == LINEAR) {
        taps.weights[0] = 1 - (x - first);
        taps.weights[1] = x - first;
    } else if (s->mode == CUBIC) {
        cubic_weights(x - first, taps.weights);
        first -= 1;
    }
    for (int k = 0; k < (int)s->mode; k++)
        taps.at[k] = element_at(s, (int64_t)first + k, n);
    return taps;
}

/* The sum over all combinations of the taps of @dims dims; @from is where the data begin. */
static double
sample(const Sampler *s, const Taps *taps, int dims, const int64_t *extents, const KilnType *type,
       const void *data, int64_t from)
{
    double sum = 0;
    for (int64_t which = 0, n = (int64_t)pow((int)s->mode, dims); which < n; which++) {
        double weight = 1;
        int64_t at = 0, rest = which;
        for (int d = 0; d < dims && at >= 0; d++, rest /= (int)s->mode) {
            int64_t here = taps[d].at[rest % (int)s->mode];
            weight *= taps[d].weights[rest % (int)s->mode];
            at = here < 0 ? -1 : at * extents[d] + here;
        }
        if (at >= 0 && weight != 0)
            sum += weight * ref_load_float(type->dtype, data, from + at);
    }
    return sum;
}

const char *
kiln_ref_grid_sample(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0), *in = ref_type(args, 1), *grid = ref_type(args, 2);
    Sampler s = sampler_of(kiln_instr_attrs(args->instr, grid_sample));
    int dims = in->rank - 2;
    int64_t positions = ref_count(out->dims, 2, out->rank), channels = in->dims[1];
    int64_t size = ref_count(in->dims, 2, in->rank);
    if (ref_elements(out) > 0 && size == 0)
        return "there is nothing to sample";
    for (int64_t i = 0; i < in->dims[0] * positions; i++) {
        Taps taps[KILN_MAX_RANK];
        for (int d = 0; d < dims; d++)
            taps[d] =
                taps_at(&s, ref_load_float(grid->dtype, args->data[2], i * dims + dims - 1 - d),
                        in->dims[d + 2]);
        for (int64_t c = 0; c < channels; c++) {
            int64_t plane = i / positions * channels + c;
            double value = sample(&s, taps, dims, &in->dims[2], in, args->data[1], plane * size);
            ref_store_float(out->dtype, args->data[0], plane * positions + i % positions, value);
        }
    }
    return NULL;
}

/* The middle of element @i of @n; -1 and 1 are the middles of the outermost elements with
 * @align_corners, their outer edges without. */
static double
position_of(int64_t i, int64_t n, bool align_corners)
{
    if (align_corners)
        return n > 1 ? -1 + 2.0 / (double)(n - 1) * (double)i : -1;
    return -1 + (2.0 * (double)i + 1) / (double)n;
}

/* Each position of the result's grid, with a 1 behind it, times the matrix of the sample. */
const char *
kiln_ref_affine_grid(const KilnKernelArgs *args)
{
    const bool align = kiln_instr_attrs(args->instr, affine_grid)->align_corners;
    const KilnType *out = ref_type(args, 0);
    const int n = out->rank - 2; /* dims of space */
    const int64_t positions = ref_count(out->dims, 1, n + 1);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < out->dims[0] * positions; i++) {
        const int64_t matrix = i / positions * n * (n + 1);
        for (int row = 0; row < n; row++) {
            const int64_t at = matrix + row * (n + 1);
            double sum = ref_load_float(out->dtype, args->data[1], at + n);
            for (int d = 0; d < n; d++) /* x is the last dim */
                sum += ref_load_float(out->dtype, args->data[1], at + n - 1 - d) *
                       position_of(index[d], out->dims[d + 1], align);
            ref_store_float(out->dtype, args->data[0], i * n + row, sum);
        }
        ref_next(index, &out->dims[1], n);
    }
    return NULL;
}
