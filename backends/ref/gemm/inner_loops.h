/* SPDX-License-Identifier: Apache-2.0 */
/* Inner loops over one dim, once per element type. Convolutions, products and recurrent networks
 * share them. Sums are RefValues: doubles for floats, 64 wrapping bits for integers. A narrower
 * integer type keeps the low bits. Terms are added one by one in the order of the loop. */
#ifndef KILN_BACKENDS_REF_GEMM_INNER_LOOPS_H
#define KILN_BACKENDS_REF_GEMM_INNER_LOOPS_H

#include "backends/ref/kernel.h"
#include "graph/kiln-types.h"

/** Elements of the stored type, @step apart. */
typedef struct {
    const void *at;
    int64_t step;
} RefLane;

/** Sums, @step apart. */
typedef struct {
    RefValue *at;
    int64_t step;
} RefSums;

typedef struct {
    /* to[i] = x[i] */
    void (*load)(RefValue *to, RefLane x, int64_t n);
    /* to[i] = x[i], rounded or wrapped to the element type */
    void (*store)(void *to, const RefValue *x, int64_t n);
    /* to[i] += factor × x[i] */
    void (*add_scaled)(RefSums to, RefLane x, int64_t n, RefValue factor);
    /* *to += a[0] × b[0] + a[1] × b[1] … */
    void (*dot)(RefValue *to, const RefValue *a, RefLane b, int64_t n);
    /* to[i] *= x[i] */
    void (*multiply)(RefValue *to, RefLane x, int64_t n);
    /* *to += x[0] + x[1] … */
    void (*sum)(RefValue *to, const RefValue *x, int64_t n);
} RefRows;

/** Returns the loops of a float or integer type. */
const RefRows *kiln_ref_rows(KilnDType dtype);

/** Loads element @i as a value of sums. */
static inline RefValue
ref_rows_load(const RefRows *rows, const void *data, int64_t i, size_t size)
{
    RefValue value;
    rows->load(&value, (RefLane){ (const char *)data + i * (int64_t)size, 1 }, 1);
    return value;
}

#endif
