/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of pictures become pictures of one size: roi_align and max_roi_pool. A bin of the result
 * is a mean or a maximum over elements of some rows and some columns. The weight of an element is
 * that of its row times that of its column. So rows are joined into a strip for each row of bins
 * first, in vectors, and then columns of the strip, in vectors of bins. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_SAMPLE_REGION_H
#define KILN_BACKENDS_CPU_SAMPLE_REGION_H

#include "backends/cpu/kernel.h"
#include "ir/kernel.h"

/** What a bin reads of one side: elements first … end - 1. A maximum counts a 0, too, where @zero
 * is set. */
typedef struct {
    int64_t first, end;
    bool zero;
} KilnCpuBin;

/** Writes the weights of bin @bin for elements first … end - 1 of @side to the places of the same
 * number. A weight of 0 is none. A maximum is that over two weights, @high of elements from 0 on
 * and
 * @low of others; a mean has @high alone. */
typedef KilnCpuBin (*KilnCpuBinFn)(const void *side, int64_t bin, float *high, float *low);

/** A row that a row of bins reads. */
typedef struct {
    int64_t row;
    float high, low;
} KilnCpuRegionRow;

/** A region: what each bin reads. */
typedef struct {
    int64_t height, width;         /* of a plane of the picture */
    int64_t bins_y, bins_x, lanes; /* lanes: bins_x, rounded up */
    bool max, even;                /* even: all weights are 1 */
    float scale;                   /* of means */
    KilnCpuRegionRow *rows;        /* those of bin row p: rows[row_begin[p]] … */
    int64_t *row_begin;            /* bins_y + 1 */
    float *floor_y, *floor_x;      /* 0, or -inf where the bin has no zero; per bin, per lane */
    int64_t n_columns;             /* those that any bin reads */
    int64_t *columns;
    float *weights_x; /* [2][n_columns][lanes]: high, then low ones */
    float *bias_x;    /* [n_columns][lanes]: -inf of bins without a weight, or 0 */
    int64_t *column_begin, *column_end; /* of a lane */
    int64_t x_begin, x_end;             /* columns lie between */
    float *strip;                       /* [bins_y][width] */
} KilnCpuRegion;

typedef struct {
    /** Computes one plane of the result. False where a number was not finite: the result is
     * nothing then. */
    bool (*plane)(const KilnCpuRegion *region, const float *from, float *to);
} KilnCpuRegionLoops;

extern const KilnCpuRegionLoops kiln_cpu_region_portable;
#if defined(__x86_64__)
extern const KilnCpuRegionLoops kiln_cpu_region_avx2;
extern const KilnCpuRegionLoops kiln_cpu_region_avx512;
#endif

/** A kernel that reads regions. @side finds the sides of region @n for bin(); it returns the
 * picture of the region. */
typedef struct {
    KilnCpuBinFn bin;
    int64_t (*sides)(const void *data, int64_t n, void *y, void *x, float *scale);
    const void *data;
    bool max, even;
} KilnCpuRegions;

enum {
    KILN_CPU_SIDE_BYTES = 64, /* room for a side */
};

/** Runs the instruction. Operands: result, data, regions, and more. */
const char *kiln_cpu_regions_run(const KilnKernelArgs *args, const KilnCpuRegions *regions);

#endif
