/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes in plain C: a vector of four sums, which compilers find instructions for. */
#include <stdint.h>
#include <string.h>

enum {
    LANES = 4,
    ROWS = 4,
    COLS = 16,
};
typedef struct {
    int32_t lane[LANES];
} VI;
#define VI_ZERO ((VI){ { 0 } })
#define VI_STORE(p, v) memcpy(p, (v).lane, sizeof(v).lane)
#define VI_BYTES(p) load(p)
#define VI_SPREAD(p) spread(p)
#define VI_DOT(sum, u, s) dot(sum, u, s)
#define VI_TIMES(sum, p, w) times(sum, p, w)
#define INTERLEAVE(from, to, c) interleave_16(from, to, c)
#define INTEGER_KERNELS kiln_integer_kernels_portable

static inline VI
load(const int8_t *p)
{
    VI v;
    memcpy(v.lane, p, sizeof v.lane);
    return v;
}

static inline VI
spread(const uint8_t *p)
{
    VI v;
    for (int i = 0; i < LANES; i++)
        memcpy(&v.lane[i], p, sizeof v.lane[i]);
    return v;
}

/* Sums wrap. */
static inline VI
dot(VI sum, VI u, VI s)
{
    uint8_t a[4 * LANES];
    int8_t b[4 * LANES];
    memcpy(a, u.lane, sizeof a);
    memcpy(b, s.lane, sizeof b);
    for (int i = 0; i < LANES; i++) {
        const int32_t four = a[4 * i] * b[4 * i] + a[4 * i + 1] * b[4 * i + 1] +
                             a[4 * i + 2] * b[4 * i + 2] + a[4 * i + 3] * b[4 * i + 3];
        sum.lane[i] = (int32_t)((uint32_t)sum.lane[i] + (uint32_t)four);
    }
    return sum;
}

static inline VI
times(VI sum, const int8_t *p, int32_t weight)
{
    for (int i = 0; i < LANES; i++)
        sum.lane[i] = (int32_t)((uint32_t)sum.lane[i] + (uint32_t)(p[i] * weight));
    return sum;
}

static inline void
interleave_16(const int8_t *const from[4], int8_t *to, int c)
{
    for (int i = c; i < c + 16; i++) {
        for (int k = 0; k < 4; k++)
            to[i * 4 + k] = from[k][i];
    }
}

#include "backends/cpu/integer_rows.h"
