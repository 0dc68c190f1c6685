/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of max_pool and average_pool, and the terms of their costs, in one to three spatial
 * dims. Missing dims stand in front with extent 1. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_REDUCE_POOL_WINDOWS_H
#define KILN_BACKENDS_CPU_REDUCE_POOL_WINDOWS_H

#include "backends/cpu/cost.h"
#include "backends/cpu/kernel.h"
#include "ir/ir.h"

typedef struct {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3];
    int64_t planes, channels;
    int64_t in_image, out_image; /* elements from one image to the next */
    bool average, count_padding;
} KilnCpuPool;

/** The pool of @instr, whose data must have rank 3 to 5. */
KilnCpuPool kiln_cpu_pool_of(const KilnInstr *instr);

typedef struct {
    int64_t begin, end;
} KilnCpuSpan;
/** The windows from @first on, of @n, of which tap @k of the last dim is an element. */
KilnCpuSpan kiln_cpu_pool_span(const KilnCpuPool *p, int64_t k, int64_t first, int64_t n);
/** How many of the taps of window @at of dim @d lie inside, or where padding counts in it too. What
 * lies behind the padding (windows that hang over, by ceil_mode) never counts. */
int64_t kiln_cpu_pool_taps(const KilnCpuPool *p, int d, int64_t at);

/* --- costs --- */

/** Extents of a pool. Missing dims have extent 1. */
typedef struct {
    int64_t planes, in[3], out[3], kernel[3];
    int64_t edges; /* windows of a row that hang over its ends */
} KilnCpuPoolShape;
/** How many of @out windows, each @reach positions long, hang over the ends of a row of @in. */
int64_t kiln_pool_edges(int64_t in, int64_t out, int64_t reach, int64_t stride, int64_t pad);
/** Terms: vectors of rows folded first; rows of the result; vectors of taps; taps of windows folded
 * one by one; the call; rows of the result made from folded rows. */
void kiln_pool_terms(const KilnCpuPoolShape *shape, double terms[KILN_CPU_TERMS]);
/** Terms: bytes; planes; the call. */
void kiln_global_pool_terms(const KilnCpuPoolShape *shape, double terms[KILN_CPU_TERMS]);

#endif
