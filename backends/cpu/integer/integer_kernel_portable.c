/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes in plain C: a vector of four sums, which compilers find instructions for. */
#include "backends/cpu/integer/integer_kernel.h"
#include "backends/cpu/elementwise/quantized_steps.h"

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
#define VI_SLIDE(p, slide) slide_of(p, slide)
#define SCALE(to, sums, factors, one, steps) scale_16(to, sums, factors, one, steps)
#define INTERLEAVE(from, to, c, flip) interleave_16(from, to, c, flip)
#define INTEGER_KERNELS kiln_integer_kernels_portable

static inline VI
load(const void *p)
{
    VI v;
    memcpy(v.lane, p, sizeof v.lane);
    return v;
}

static inline VI
spread(const void *p)
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
slide_of(const uint8_t *p, const KilnIntegerSlide *slide)
{
    uint8_t bytes[4 * LANES];
    for (int i = 0; i < 4 * LANES; i++)
        bytes[i] = p[slide->bytes[i]];
    return load(bytes);
}

static inline void
interleave_16(const uint8_t *const from[4], uint8_t *to, int64_t c, uint8_t bit)
{
    for (int64_t i = c; i < c + 16; i++) {
        for (int k = 0; k < 4; k++)
            to[i * 4 + k] = from[k][i] ^ bit;
    }
}

__attribute__((always_inline)) static inline void
scale_16(uint8_t *to, const int32_t *sums, const float *factors, bool one,
         const KilnIntegerSteps *s)
{
    for (int i = 0; i < 16; i++) {
        const int32_t sum = (int32_t)((uint32_t)sums[i] + (uint32_t)s->add);
        to[i] = (uint8_t)quantized((float)sum * factors[one ? 0 : i], s->zero, s->least, s->most);
    }
}

#include "backends/cpu/integer/integer_loops.h"
