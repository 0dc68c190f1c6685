/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of extents: minimum, division rounded up, rounding up, product, bounds of indices. */
#ifndef KILN_BACKENDS_CPU_EXTENTS_H
#define KILN_BACKENDS_CPU_EXTENTS_H

#include <stdint.h>

enum {
    KILN_CPU_LINE = 64, /* bytes of a cache line and of the widest vector */
    KILN_CPU_LINE_FLOATS = 16,
};

static inline int64_t
min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t
ceil_div(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* How many units of @size, which may be 0, make a task of size @task; 1 where one is larger. */
static inline int64_t
units_per_task(int64_t task, int64_t size)
{
    return size >= task ? 1 : task / (size > 1 ? size : 1);
}

/* The width of the pieces of @outer rows of @inner elements: @least doubled up to @most, while each
 * of
 * @threads has a piece. Wide pieces read memory in its order. */
static inline int64_t
piece_width(int64_t least, int64_t most, int64_t outer, int64_t inner, int threads)
{
    int64_t width = least;
    while (width < most && outer * ceil_div(inner, 2 * width) >= (int64_t)threads)
        width *= 2;
    return width;
}

/* The highest bit is set where @i lies outside of @low … @high; @high is at least -1. Joined by
 * `|`, the numbers of many indices need no branch. */
static inline uint64_t
high_bit_outside(int64_t i, int64_t low, int64_t high)
{
    return ((uint64_t)i - (uint64_t)low) | ((uint64_t)high - (uint64_t)i);
}

static inline int64_t
round_up(int64_t n, int64_t to)
{
    return ceil_div(n, to) * to;
}

static inline int64_t
times3(const int64_t v[3])
{
    return v[0] * v[1] * v[2];
}

#endif
