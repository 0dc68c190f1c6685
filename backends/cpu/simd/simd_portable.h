/* SPDX-License-Identifier: Apache-2.0 */
/* The vector vocabulary of the kernel templates for any processor: 4 floats in the compiler's
 * generic vectors. V_FMA rounds the product, because there may be no fused multiply-add. */
#ifndef KILN_BACKENDS_CPU_SIMD_SIMD_PORTABLE_H
#define KILN_BACKENDS_CPU_SIMD_SIMD_PORTABLE_H

#include <stdint.h>
#include <string.h>

typedef float V __attribute__((vector_size(16)));

/* Lanes first … end - 1, clipped to the vector. */
typedef struct {
    int64_t first, end;
} Lanes;

static inline Lanes
lanes_between(int64_t first, int64_t end)
{
    return (Lanes){ first < 0 ? 0 : first, end > 4 ? 4 : end };
}

static inline V
load_whole(const float *p)
{
    V x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline void
store_whole(float *p, V x)
{
    memcpy(p, &x, sizeof x);
}

static inline V
load_some(const float *p, Lanes lanes)
{
    V x = { 0, 0, 0, 0 };
    for (int64_t i = lanes.first; i < lanes.end; i++)
        x[i] = p[i];
    return x;
}

static inline void
store_some(float *p, Lanes lanes, V x)
{
    for (int64_t i = lanes.first; i < lanes.end; i++)
        p[i] = x[i];
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

typedef struct {
    int32_t lane[4];
} Places;

static inline Places
places_from(const int32_t *at)
{
    Places places;
    for (int i = 0; i < 4; i++)
        places.lane[i] = at[i] - at[0];
    return places;
}

static inline V
pick_places(const float *p, Places places)
{
    V x;
    for (int i = 0; i < 4; i++)
        x[i] = p[places.lane[i]];
    return x;
}

#define VW 4
#define MASK Lanes
#define V_MASK(n) lanes_between(0, n)
#define V_LANES(first, end) lanes_between(first, end)
#define V_SET1(x) ((V){ (x), (x), (x), (x) })
#define V_LOAD(p) load_whole(p)
#define V_LOAD_SOME(p, mask) load_some(p, mask)
#define V_STORE(p, x) store_whole(p, x)
#define V_STORE_SOME(p, mask, x) store_some(p, mask, x)
#define V_ADD(a, b) ((a) + (b))
#define V_MUL(a, b) ((a) * (b))
#define V_FMA(a, b, c) ((a) * (b) + (c))
#define V_MIN(a, b) select_min(a, b) /* a NaN in b stays */
#define V_MAX(a, b) select_max(a, b)
/* Every other element of a, then of b, from the first or the second on. */
#define V_EVENS(a, b) ((V){ a[0], a[2], b[0], b[2] })
#define V_ODDS(a, b) ((V){ a[1], a[3], b[1], b[3] })
/* Interleaves the first halves of a and b, or the second halves. */
#define V_ZIP_LOW(a, b) ((V){ a[0], b[0], a[1], b[1] })
#define V_ZIP_HIGH(a, b) ((V){ a[2], b[2], a[3], b[3] })
/* Places relative to the first, each less than two vectors on; loads the floats at them. */
#define PLACES Places
#define V_PLACES(at) places_from(at)
#define V_PICK(p, places) pick_places(p, places)

#endif
