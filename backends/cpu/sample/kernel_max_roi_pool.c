/* SPDX-License-Identifier: Apache-2.0 */
/* max_roi_pool in f32: each bin is a rectangle of whole elements. Operands: result, data, regions.
 */
#include "backends/cpu/kernel.h"
#include "backends/cpu/sample/region.h"

#include <math.h>
#include <string.h>

typedef struct {
    const float *regions;
    float scale;
    int64_t height, width, bins_y, bins_x;
} Pool;

typedef struct {
    double low;
    float size; /* of a bin */
    int64_t extent;
} Side;
_Static_assert(sizeof(Side) <= KILN_CPU_SIDE_BYTES, "a side has room");

/* NaN is 0, and what is far away is like what is less far. */
static double
whole(float x)
{
    return x != x ? 0 : round(fmin(fmax((double)x, -0x1p40), 0x1p40));
}

static Side
side_of(const Pool *p, float low, float high, int64_t bins, int64_t extent)
{
    const double begin = whole(low * p->scale), end = whole(high * p->scale);
    const float length = (float)fmax(end - begin + 1, 1);
    return (Side){ begin, length / (float)bins, extent };
}

static KilnCpuBin
weigh_bin(const void *of, int64_t number, float *high, float *low)
{
    const Side *side = of;
    const double extent = (double)side->extent;
    const double first = (double)floorf((float)number * side->size) + side->low;
    const double end = (double)ceilf((float)(number + 1) * side->size) + side->low;
    const KilnCpuBin bin = { .first = (int64_t)fmin(fmax(first, 0), extent),
                             .end = (int64_t)fmin(fmax(end, 0), extent),
                             .zero = fmin(fmax(first, 0), extent) >= fmin(fmax(end, 0), extent) };
    for (int64_t i = bin.first; i < bin.end; i++)
        high[i] = low[i] = 1;
    return bin;
}

static int64_t
find_sides(const void *data, int64_t n, void *y, void *x, float *scale)
{
    const Pool *p = data;
    const float *region = p->regions + n * 5;
    const Side rows = side_of(p, region[2], region[4], p->bins_y, p->height);
    const Side columns = side_of(p, region[1], region[3], p->bins_x, p->width);
    memcpy(y, &rows, sizeof rows);
    memcpy(x, &columns, sizeof columns);
    *scale = 1;
    return (int64_t)region[0];
}

const char *
kiln_cpu_max_roi_pool(const KilnKernelArgs *args)
{
    const KilnType *out = cpu_type(args->instr, 0), *in = cpu_type(args->instr, 1);
    const Pool p = { .regions = args->data[2],
                     .scale = kiln_instr_attrs(args->instr, max_roi_pool)->spatial_scale,
                     .height = in->dims[2],
                     .width = in->dims[3],
                     .bins_y = out->dims[2],
                     .bins_x = out->dims[3] };
    for (int64_t n = 0; n < out->dims[0]; n++) {
        if (!(p.regions[n * 5] >= 0 && p.regions[n * 5] < (float)in->dims[0]))
            return "index out of range";
    }
    const KilnCpuRegions regions = {
        .bin = weigh_bin, .sides = find_sides, .data = &p, .max = true, .even = true
    };
    return kiln_cpu_regions_run(args, &regions);
}
