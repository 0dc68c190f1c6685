/* SPDX-License-Identifier: Apache-2.0 */
/* roi_align: each region is divided into bins, and each bin is the mean or the maximum of samples
 * of the picture.
 *
 * A sample lies between two rows and two columns. The mean is that of the samples' bilinear
 * interpolations. The maximum is that of the weighted neighbours, as in ONNX's own reference. A
 * sample more than one element outside is 0, and so is a neighbour that weighs nothing. Positions
 * are computed in the element type, those of halves in f32: they decide how many samples there are.
 */
#include "backends/ref/kernel.h"

#include <math.h>

/* One side of a region. */
typedef struct {
    bool wide; /* positions are f64 */
    double start, bin;
    int64_t grid, extent; /* samples of a bin; elements of the picture */
} Side;

/* The samples of a bin that are inside. */
typedef struct {
    int64_t begin, end;
} Samples;

/* The two neighbours of a sample. */
typedef struct {
    int64_t at[2];
    double weights[2];
} Taps;

static double
rounded(const Side *side, double x)
{
    return side->wide ? x : (double)(float)x;
}

/* Between @ends, which are numbers of the picture's own scale. */
static Side
side_of(const KilnInstrAttrs_roi_align *attrs, bool wide, const double ends[2], int64_t bins,
        int64_t extent)
{
    const bool half = strcmp(attrs->coordinate_transformation_mode, "half_pixel") == 0;
    Side side = { .wide = wide, .extent = extent };
    const double scale = (double)attrs->spatial_scale, shift = half ? 0.5 : 0;
    side.start = rounded(&side, rounded(&side, ends[0] * scale) - shift);
    const double end = rounded(&side, rounded(&side, ends[1] * scale) - shift);
    double length = rounded(&side, end - side.start);
    if (!half && !(length > 1))
        length = 1;
    side.bin = rounded(&side, length / (double)bins);
    side.grid = attrs->sampling_ratio;
    if (side.grid == 0) /* of a region that is nowhere: none */
        side.grid = side.bin > 0 ? (int64_t)fmin(ceil(side.bin), INT32_MAX) : 0;
    return side;
}

static double
position(const Side *side, int64_t bin, int64_t i)
{
    const double grid = rounded(side, (double)side->grid);
    double at = rounded(side, side->start + rounded(side, (double)bin * side->bin));
    double step = rounded(side, rounded(side, rounded(side, (double)i + 0.5) * side->bin) / grid);
    return rounded(side, at + step);
}

static bool
is_inside(const Side *side, double at)
{
    return at >= -1 && at <= (double)side->extent;
}

/* Of a region whose ends are swapped positions fall. */
static bool
is_before(const Side *side, double at)
{
    return side->bin < 0 ? at > (double)side->extent : at < -1;
}

/* Samples that are inside lie together. They are found by halving, because a region of any size may
 * come with the data. */
static Samples
samples_inside(const Side *side, int64_t bin)
{
    int64_t begin = 0, end = side->grid;
    for (int64_t most = side->grid; begin < most;) {
        const int64_t i = begin + (most - begin) / 2;
        if (is_before(side, position(side, bin, i)))
            begin = i + 1;
        else
            most = i;
    }
    for (int64_t least = begin; least < end;) {
        const int64_t i = least + (end - least) / 2;
        if (is_inside(side, position(side, bin, i)))
            least = i + 1;
        else
            end = i;
    }
    return (Samples){ begin, end };
}

static Taps
taps_at(const Side *side, double at)
{
    at = fmax(at, 0);
    const int64_t low = MIN((int64_t)at, side->extent - 1);
    if (low == side->extent - 1)
        return (Taps){ { low, low }, { 1, 0 } };
    const double t = rounded(side, at - (double)low);
    return (Taps){ { low, low + 1 }, { rounded(side, 1 - t), t } };
}

/* A bin of a plane. */
typedef struct {
    const Side *y, *x;
    KilnDType dtype;
    const void *data;
    int64_t plane; /* its first element */
    bool max;
} Bin;

static void
add_sample(const Bin *bin, Taps y, Taps x, double *value)
{
    for (int k = 0; k < 4; k++) {
        const double weight = y.weights[k / 2] * x.weights[k % 2];
        const int64_t at = bin->plane + y.at[k / 2] * bin->x->extent + x.at[k % 2];
        const double here = weight == 0 ? 0 : weight * ref_load_float(bin->dtype, bin->data, at);
        if (!bin->max)
            *value += here;
        else if (here > *value || here != here)
            *value = here;
    }
}

static double
bin_at(const Bin *bin, int64_t row, int64_t column)
{
    const Side *y = bin->y, *x = bin->x;
    const Samples rows = samples_inside(y, row), columns = samples_inside(x, column);
    const bool all = rows.end - rows.begin == y->grid && columns.end - columns.begin == x->grid;
    double value = bin->max && all ? -INFINITY : 0;
    if (y->grid <= 0 || x->grid <= 0)
        return 0;
    for (int64_t i = rows.begin; i < rows.end; i++) {
        for (int64_t k = columns.begin; k < columns.end; k++)
            add_sample(bin, taps_at(y, position(y, row, i)), taps_at(x, position(x, column, k)),
                       &value);
    }
    return bin->max ? value : value / ((double)y->grid * (double)x->grid);
}

const char *
kiln_ref_roi_align(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_roi_align *attrs = kiln_instr_attrs(args->instr, roi_align);
    const KilnType *out = ref_type(args, 0), *in = ref_type(args, 1), *regions = ref_type(args, 2);
    const bool wide = in->dtype == KILN_DTYPE_f64;
    const int64_t channels = in->dims[1], bins = out->dims[2] * out->dims[3];
    if (ref_elements(out) > 0 && in->dims[2] * in->dims[3] == 0)
        return "there is nothing to sample";
    for (int64_t n = 0; n < out->dims[0]; n++) {
        const int64_t picture = ((const int64_t *)args->data[3])[n];
        double ends[4];
        if (picture < 0 || picture >= in->dims[0])
            return "index out of range";
        for (int i = 0; i < 4; i++)
            ends[i] = ref_load_float(regions->dtype, args->data[2], n * 4 + i);
        const Side x =
            side_of(attrs, wide, (double[]){ ends[0], ends[2] }, out->dims[3], in->dims[3]);
        const Side y =
            side_of(attrs, wide, (double[]){ ends[1], ends[3] }, out->dims[2], in->dims[2]);
        for (int64_t c = 0; c < channels; c++) {
            const Bin bin = { .y = &y,
                              .x = &x,
                              .dtype = in->dtype,
                              .data = args->data[1],
                              .plane = (picture * channels + c) * in->dims[2] * in->dims[3],
                              .max = attrs->mode[0] == 'm' };
            for (int64_t i = 0; i < bins; i++)
                ref_store_float(out->dtype, args->data[0], (n * channels + c) * bins + i,
                                bin_at(&bin, i / out->dims[3], i % out->dims[3]));
        }
    }
    return NULL;
}
