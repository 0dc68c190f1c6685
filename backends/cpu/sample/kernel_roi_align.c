/* SPDX-License-Identifier: Apache-2.0 */
/* roi_align in f32. A sample is the product of one of rows and one of columns, and so are their
 * sums and maxima over a bin. Operands: result, data, regions, pictures. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/sample/region.h"

#include <math.h>
#include <string.h>

typedef struct {
    const KilnInstrAttrs_roi_align *attrs;
    const float *regions;
    const int64_t *pictures;
    int64_t height, width, bins_y, bins_x;
    bool half, max;
} Align;

typedef struct {
    float start, bin;
    int64_t grid, extent; /* samples of a bin; elements of the picture */
    bool max;
} Side;
_Static_assert(sizeof(Side) <= KILN_CPU_SIDE_BYTES, "a side has room");

static Side
side_of(const Align *a, float low, float high, int64_t bins, int64_t extent)
{
    const float scale = a->attrs->spatial_scale, shift = a->half ? 0.5f : 0;
    Side side = { .start = low * scale - shift, .extent = extent, .max = a->max };
    float length = high * scale - shift - side.start;
    if (!a->half && !(length > 1))
        length = 1;
    side.bin = length / (float)bins;
    side.grid = a->attrs->sampling_ratio;
    if (side.grid == 0)
        side.grid = side.bin > 0 ? (int64_t)fmin(ceil((double)side.bin), INT32_MAX) : 0;
    return side;
}

static float
position(const Side *side, int64_t bin, int64_t i)
{
    return side->start + (float)bin * side->bin + ((float)i + 0.5f) * side->bin / (float)side->grid;
}

static bool
is_inside(const Side *side, float at)
{
    return at >= -1 && at <= (float)side->extent;
}

/* The first sample from @begin on that is not before the picture, or that is not inside it. */
static int64_t
find_sample(const Side *side, int64_t bin, int64_t begin, bool inside)
{
    int64_t end = side->grid;
    while (begin < end) {
        const int64_t i = begin + (end - begin) / 2;
        const float at = position(side, bin, i);
        const bool before = side->bin < 0 ? at > (float)side->extent : at < -1;
        if (inside ? is_inside(side, at) : before)
            begin = i + 1;
        else
            end = i;
    }
    return begin;
}

/* The element before a sample, and how far behind it the sample is. */
static int64_t
element_before(const Side *side, float at, float *behind)
{
    at = at > 0 ? at : 0;
    const int64_t low = min_of((int64_t)at, side->extent - 1);
    *behind = low == side->extent - 1 ? 0 : at - (float)low;
    return low;
}

static void
add_weight(const Side *side, int64_t at, float weight, KilnCpuBin *bin, float *high, float *low)
{
    if (weight == 0) {
        bin->zero = true;
    } else if (!side->max) {
        high[at] += weight;
    } else {
        high[at] = high[at] > weight ? high[at] : weight;
        low[at] = low[at] != 0 && low[at] < weight ? low[at] : weight;
    }
}

static KilnCpuBin
weigh_bin(const void *of, int64_t number, float *high, float *low)
{
    const Side *side = of;
    const int64_t first = find_sample(side, number, 0, false);
    const int64_t end = find_sample(side, number, first, true);
    KilnCpuBin bin = { .zero = side->grid <= 0 || end - first < side->grid };
    if (first >= end)
        return bin;
    float behind;
    const int64_t one = element_before(side, position(side, number, first), &behind);
    const int64_t other = element_before(side, position(side, number, end - 1), &behind);
    bin.first = min_of(one, other);
    bin.end = min_of(one + other - bin.first + 2, side->extent);
    memset(high + bin.first, 0, (size_t)(bin.end - bin.first) * sizeof *high);
    memset(low + bin.first, 0, (size_t)(bin.end - bin.first) * sizeof *low);
    for (int64_t i = first; i < end; i++) {
        const int64_t at = element_before(side, position(side, number, i), &behind);
        add_weight(side, at, 1 - behind, &bin, high, low);
        add_weight(side, min_of(at + 1, side->extent - 1), behind, &bin, high, low);
    }
    return bin;
}

static int64_t
find_sides(const void *data, int64_t n, void *y, void *x, float *scale)
{
    const Align *a = data;
    const float *ends = a->regions + n * 4;
    const Side rows = side_of(a, ends[1], ends[3], a->bins_y, a->height);
    const Side columns = side_of(a, ends[0], ends[2], a->bins_x, a->width);
    memcpy(y, &rows, sizeof rows);
    memcpy(x, &columns, sizeof columns);
    const double samples = (double)rows.grid * (double)columns.grid;
    *scale = rows.grid > 0 && columns.grid > 0 ? (float)(1 / samples) : 0;
    return a->pictures[n];
}

const char *
kiln_cpu_roi_align(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_roi_align *attrs = kiln_instr_attrs(args->instr, roi_align);
    const KilnType *out = cpu_type(args->instr, 0), *in = cpu_type(args->instr, 1);
    const Align a = { .attrs = attrs,
                      .regions = args->data[2],
                      .pictures = args->data[3],
                      .height = in->dims[2],
                      .width = in->dims[3],
                      .bins_y = out->dims[2],
                      .bins_x = out->dims[3],
                      .half = strcmp(attrs->coordinate_transformation_mode, "half_pixel") == 0,
                      .max = attrs->mode[0] == 'm' };
    if (kiln_type_elements(out) > 0 && a.height * a.width == 0)
        return "there is nothing to sample";
    for (int64_t n = 0; n < out->dims[0]; n++) {
        if (a.pictures[n] < 0 || a.pictures[n] >= in->dims[0])
            return "index out of range";
    }
    const KilnCpuRegions regions = {
        .bin = weigh_bin, .sides = find_sides, .data = &a, .max = a.max
    };
    return kiln_cpu_regions_run(args, &regions);
}
