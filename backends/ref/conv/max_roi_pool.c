/* SPDX-License-Identifier: Apache-2.0 */
/* max_roi_pool: the maximum of each bin of a region. Ends of regions and of bins are whole numbers.
 * An end of a region is rounded, half away from zero, and belongs to it; a region has one element
 * at least. A bin that covers no element is 0. Ends are computed in the element type, those of
 * halves in f32. */
#include "backends/ref/kernel.h"

#include <math.h>

/* Elements first … end - 1 of one side. */
typedef struct {
    int64_t first, end;
} Range;

static double
rounded(bool wide, double x)
{
    return wide ? x : (double)(float)x;
}

/* NaN is 0, and what is far away is like what is less far. */
static double
whole(double x)
{
    return x != x ? 0 : round(CLAMP(x, -0x1p40, 0x1p40));
}

/* Bin @bin of @bins between the elements @low and @high. */
static Range
bin_of(bool wide, double low, double high, int64_t bin, int64_t bins, int64_t extent)
{
    const double length = fmax(high - low + 1, 1);
    const double size = rounded(wide, rounded(wide, length) / (double)bins);
    const double first = floor(rounded(wide, (double)bin * size)) + low;
    const double end = ceil(rounded(wide, (double)(bin + 1) * size)) + low;
    return (Range){ (int64_t)CLAMP(first, 0, (double)extent),
                    (int64_t)CLAMP(end, 0, (double)extent) };
}

static double
largest(const KilnType *in, const void *data, int64_t plane, Range y, Range x)
{
    const bool empty = y.first >= y.end || x.first >= x.end;
    double best = empty ? 0 : -INFINITY;
    for (int64_t i = y.first; i < y.end; i++) {
        for (int64_t k = x.first; k < x.end; k++) {
            const double here = ref_load_float(in->dtype, data, plane + i * in->dims[3] + k);
            if (here > best || here != here)
                best = here;
        }
    }
    return best;
}

const char *
kiln_ref_max_roi_pool(const KilnKernelArgs *args)
{
    const double scale = (double)kiln_instr_attrs(args->instr, max_roi_pool)->spatial_scale;
    const KilnType *out = ref_type(args, 0), *in = ref_type(args, 1);
    const bool wide = in->dtype == KILN_DTYPE_f64;
    const int64_t channels = in->dims[1], height = out->dims[2], width = out->dims[3];
    for (int64_t n = 0; n < out->dims[0]; n++) {
        double ends[4];
        const double picture = ref_load_float(in->dtype, args->data[2], n * 5);
        if (!(picture >= 0 && picture < (double)in->dims[0]))
            return "index out of range";
        for (int i = 0; i < 4; i++)
            ends[i] = whole(
                rounded(wide, ref_load_float(in->dtype, args->data[2], n * 5 + 1 + i) * scale));
        for (int64_t i = 0; i < channels * height * width; i++) {
            const int64_t c = i / (height * width), bin = i % (height * width);
            const int64_t plane = ((int64_t)picture * channels + c) * in->dims[2] * in->dims[3];
            const Range y = bin_of(wide, ends[1], ends[3], bin / width, height, in->dims[2]);
            const Range x = bin_of(wide, ends[0], ends[2], bin % width, width, in->dims[3]);
            ref_store_float(out->dtype, args->data[0], n * channels * height * width + i,
                            largest(in, args->data[1], plane, y, x));
        }
    }
    return NULL;
}
