/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of reductions, softmax, normalisation and pooling over rows and columns of f32, one set per
 * instruction set. A sum depends only on the sequence of its terms, not on where they lie. Floats
 * are added in lanes over blocks of fixed length, blocks in double. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_REDUCE_REDUCE_H
#define KILN_BACKENDS_CPU_REDUCE_REDUCE_H

#include "backends/cpu/isa.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    KILN_CPU_REDUCE_SUM,
    KILN_CPU_REDUCE_ABSOLUTE, /* sum of magnitudes */
    KILN_CPU_REDUCE_SQUARE,   /* sum of squares */
    KILN_CPU_REDUCE_MAX, /* MAX and MIN keep a NaN; -0 is less than 0; of nothing MAX is -infinity,
                            MIN infinity */
    KILN_CPU_REDUCE_MIN,
    KILN_CPU_N_REDUCTIONS
} KilnCpuReduction;

enum {
    KILN_CPU_REDUCE_BLOCK = 4096,  /* floats added in float before a double takes the sum */
    KILN_CPU_REDUCE_GROUP = 64,    /* floats of a block that lanes take at once */
    KILN_CPU_REDUCE_COLUMNS = 256, /* most columns reduced side by side */
    KILN_CPU_NARROW = 16,          /* columns: more fill vectors by themselves */
};

/* A partly reduced block. Only the loops know its contents. */
typedef struct {
    bool begun;
    float lanes[2 * 16];
} KilnCpuLanes;

/* A group of a block of columns: elements of @width sequences. Each row has the next element of all
 * sequences. */
typedef struct {
    const float *rows[KILN_CPU_REDUCE_GROUP]; /* where they begin */
    int64_t stride;                           /* between rows, if even */
    bool even; /* rows lie @stride apart from rows[0] on; false in the last group */
    int64_t n, width;
    bool first, last; /* first or last group of the block; only the last may lack rows */
    float *lanes;     /* 16 rows of KILN_CPU_REDUCE_COLUMNS floats, kept from group to group */
} KilnCpuColumns;

/* Sums of x - @shift and of its square. */
typedef struct {
    double sum, squares;
} KilnCpuMoments;

/* y = (x - shift) scale + offset, then y scales[i] + offsets[i] if these are set. */
typedef struct {
    float shift, scale, offset;
    const float *scales, *offsets; /* or NULL; no offsets without scales */
} KilnCpuAffine;

/* Softmax along columns: @axis rows of @width floats, @stride apart. */
typedef struct {
    float *out;
    const float *x; /* may be out */
    int64_t axis, stride, width;
    bool logarithm;
} KilnCpuSoftmaxColumns;

/* Lines of windows. out[q] reduces x[r pitch + q stride + k dilation] over the rows r < rows first,
 * then over k < taps. More of x may be read: up to stride - 1 floats behind the last window of a
 * line. If n is less than a vector, a whole vector of windows may be read. */
typedef struct {
    float *out; /* not x */
    const float *x;
    int64_t n, stride, taps, dilation;
    int64_t rows, pitch;
    int64_t lines, line_in, line_out; /* from one to the next: floats of x and of out */
    const float *counts;              /* averages: the sum is divided by counts[q] × count */
    float count;
} KilnCpuWindows;

/* Local response normalisation of one channel: y = x / (bias + scale Σ x²)^beta over @channels
   neighbours, the first of them at @first, @stride apart. */
typedef struct {
    float *out;
    const float *x, *first;
    int64_t n, channels, stride;
    float bias, scale, beta;
} KilnCpuResponse;

typedef struct {
    int64_t vector; /* floats */
    double (*reduce[KILN_CPU_N_REDUCTIONS])(const float *x, int64_t n);
    /* The same for a block that lies in several places. reduce_part takes one part: whole groups,
       except at the end of the block. reduce_value returns the result. */
    void (*reduce_part[KILN_CPU_N_REDUCTIONS])(KilnCpuLanes *lanes, const float *x, int64_t n);
    float (*reduce_value[KILN_CPU_N_REDUCTIONS])(const KilnCpuLanes *lanes);
    /* Takes one group. With the last one, result[i] becomes the result of the block of column i. It
       has room for whole vectors. */
    void (*reduce_columns[KILN_CPU_N_REDUCTIONS])(float *result, const KilnCpuColumns *c);
    KilnCpuMoments (*moments)(const float *x, int64_t n, float shift);
    void (*affine)(float *out, const float *x, int64_t n, const KilnCpuAffine *a);
    /* out[i] = (x[i] - shift[i]) scale[i] + offset[i] */
    void (*affine_columns)(float *out, const float *x, int64_t n, const float *shift,
                           const float *scale, const float *offset);
    /* out[j] = Σ x[i] rows[j depth + i] for each of @n rows */
    void (*row_dots)(float *out, const float *x, const float *rows, int64_t n, int64_t depth);
    /* out[i] = Σ x[j] rows[j width + i] over @n rows */
    void (*row_sums)(float *out, const float *x, const float *rows, int64_t n, int64_t width);
    /* out[i] = e^(x[i] - max); returns the sum. log_exp_sum only returns its logarithm. */
    double (*exp_row)(float *out, const float *x, int64_t n, float max);
    float (*log_exp_sum)(const float *x, int64_t n, float max);
    void (*softmax_columns)(const KilnCpuSoftmaxColumns *c);
    /* The same of at most KILN_CPU_NARROW columns, for which stride is width. */
    void (*softmax_narrow)(const KilnCpuSoftmaxColumns *c);
    void (*max_windows)(const KilnCpuWindows *w);
    void (*average_windows)(const KilnCpuWindows *w);
    void (*response)(const KilnCpuResponse *r);
} KilnCpuReducers;

extern const KilnCpuReducers kiln_cpu_reducers_portable;
#if defined(__x86_64__)
extern const KilnCpuReducers kiln_cpu_reducers_avx2;
extern const KilnCpuReducers kiln_cpu_reducers_avx512;
#endif

/** The loops of @isa (AUTO: the best here). */
static inline const KilnCpuReducers *
kiln_cpu_reducers(KilnCpuIsa isa)
{
    return KILN_CPU_OF_ISA(isa, &kiln_cpu_reducers);
}

#endif
