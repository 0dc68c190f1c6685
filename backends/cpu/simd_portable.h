/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vector vocabulary of the kernel templates for any processor: 4 floats in the compiler's
 * generic vectors. Without a fused instruction to rely on, products are rounded before the sum.
 */
#pragma once

#include <stdint.h>
#include <string.h>

typedef float V __attribute__((vector_size(16)));

static inline V
load_some(const float *p, int64_t n)
{
    V x = { 0, 0, 0, 0 };
    memcpy(&x, p, (size_t)(4 * (n > 4 ? 4 : n < 0 ? 0 : n)));
    return x;
}

static inline void
store_some(float *p, int64_t n, V x)
{
    memcpy(p, &x, (size_t)(4 * (n > 4 ? 4 : n < 0 ? 0 : n)));
}

static inline V
select_max(V a, V b)
{
    V x;
    for (int i = 0; i < 4; i++)
        x[i] = a[i] > b[i] ? a[i] : b[i];
    return x;
}

static inline V
select_min(V a, V b)
{
    V x;
    for (int i = 0; i < 4; i++)
        x[i] = a[i] < b[i] ? a[i] : b[i];
    return x;
}

#define VW 4
#define MASK int64_t
#define V_MASK(n) (n)
#define V_SET1(x) ((V){ (x), (x), (x), (x) })
#define V_LOAD(p) load_some(p, 4)
#define V_LOAD_SOME(p, mask) load_some(p, mask)
#define V_STORE(p, x) store_some(p, 4, x)
#define V_STORE_SOME(p, mask, x) store_some(p, mask, x)
#define V_ADD(a, b) ((a) + (b))
#define V_MUL(a, b) ((a) * (b))
#define V_FMA(a, b, c) ((a) * (b) + (c))
#define V_MIN(a, b) select_min(a, b) /* a NaN in b stays */
#define V_MAX(a, b) select_max(a, b)
