/* SPDX-License-Identifier: Apache-2.0 */
/* The butterflies of a stage: loops over lanes, which the compiler turns into vectors. One file per
 * instruction set includes this and names the function STAGE.
 *
 *     y(r·p + j) = e^(-2πi jp / length) Σ x(p + k·length / r) e^(-2πi jk / r),  j, k = 0 … r - 1 */
#ifndef KILN_BACKENDS_CPU_SIGNAL_DFT_LOOPS_H
#define KILN_BACKENDS_CPU_SIGNAL_DFT_LOOPS_H

#include "backends/cpu/signal/dft.h"

enum {
    LANES = KILN_CPU_DFT_LANES
};

/* Where a butterfly reads and writes; neighbours are @step and @out_step elements apart. */
typedef struct {
    const double *restrict re, *restrict im;
    double *restrict to_re, *restrict to_im;
    int64_t step, out_step;
    int64_t angle; /* of the factor of j = 1, in steps of the tables */
} Butterfly;

static inline void
butterfly_2(const KilnCpuDftStage *s, Butterfly b)
{
    const double c = s->cosines[b.angle], t = s->sines[b.angle];
    for (int l = 0; l < LANES; l++) {
        const double x = b.re[l] - b.re[b.step + l], y = b.im[l] - b.im[b.step + l];
        b.to_re[l] = b.re[l] + b.re[b.step + l];
        b.to_im[l] = b.im[l] + b.im[b.step + l];
        b.to_re[b.out_step + l] = x * c - y * t;
        b.to_im[b.out_step + l] = x * t + y * c;
    }
}

static inline void
butterfly_4(const KilnCpuDftStage *s, Butterfly b)
{
    const double c1 = s->cosines[b.angle], t1 = s->sines[b.angle];
    const double c2 = s->cosines[2 * b.angle], t2 = s->sines[2 * b.angle];
    const double c3 = s->cosines[3 * b.angle], t3 = s->sines[3 * b.angle];
    const int64_t one = b.step, two = 2 * b.step, three = 3 * b.step, out = b.out_step;
    for (int l = 0; l < LANES; l++) {
        const double even_re = b.re[l] + b.re[two + l], even_im = b.im[l] + b.im[two + l];
        const double left_re = b.re[l] - b.re[two + l], left_im = b.im[l] - b.im[two + l];
        const double odd_re = b.re[one + l] + b.re[three + l];
        const double odd_im = b.im[one + l] + b.im[three + l];
        /* (x1 - x3) / i */
        const double right_re = b.im[one + l] - b.im[three + l];
        const double right_im = b.re[three + l] - b.re[one + l];
        const double y1_re = left_re + right_re, y1_im = left_im + right_im;
        const double y2_re = even_re - odd_re, y2_im = even_im - odd_im;
        const double y3_re = left_re - right_re, y3_im = left_im - right_im;
        b.to_re[l] = even_re + odd_re;
        b.to_im[l] = even_im + odd_im;
        b.to_re[out + l] = y1_re * c1 - y1_im * t1;
        b.to_im[out + l] = y1_re * t1 + y1_im * c1;
        b.to_re[2 * out + l] = y2_re * c2 - y2_im * t2;
        b.to_im[2 * out + l] = y2_re * t2 + y2_im * c2;
        b.to_re[3 * out + l] = y3_re * c3 - y3_im * t3;
        b.to_im[3 * out + l] = y3_re * t3 + y3_im * c3;
    }
}

/* Adds number @k of the butterfly, turned by @angle, to the sums. */
static inline void
add_turned(const KilnCpuDftStage *s, const Butterfly *b, int k, int64_t angle, double *re,
           double *im)
{
    const double c = s->cosines[angle], t = s->sines[angle];
    const double *restrict x = b->re + k * b->step, *restrict y = b->im + k * b->step;
    for (int l = 0; l < LANES; l++) {
        re[l] += x[l] * c - y[l] * t;
        im[l] += x[l] * t + y[l] * c;
    }
}

static inline void
butterfly(const KilnCpuDftStage *s, Butterfly b)
{
    const int64_t part = s->n / s->radix;
    for (int j = 0; j < s->radix; j++) {
        const double c = s->cosines[j * b.angle], t = s->sines[j * b.angle];
        double re[LANES] = { 0 }, im[LANES] = { 0 };
        for (int k = 0; k < s->radix; k++)
            add_turned(s, &b, k, j * k % s->radix * part, re, im);
        for (int l = 0; l < LANES; l++) {
            b.to_re[j * b.out_step + l] = re[l] * c - im[l] * t;
            b.to_im[j * b.out_step + l] = re[l] * t + im[l] * c;
        }
    }
}

void
STAGE(const KilnCpuDftStage *s)
{
    const int64_t m = s->length / s->radix;
    for (int64_t p = 0; p < m; p++) {
        for (int64_t q = 0; q < s->stride; q++) {
            const int64_t from = (q + s->stride * p) * LANES;
            const int64_t to = (q + s->stride * s->radix * p) * LANES;
            const Butterfly b = { .re = s->re + from,
                                  .im = s->im + from,
                                  .to_re = s->to_re + to,
                                  .to_im = s->to_im + to,
                                  .step = m * s->stride * LANES,
                                  .out_step = s->stride * LANES,
                                  .angle = p * s->stride };
            if (s->radix == 4)
                butterfly_4(s, b);
            else if (s->radix == 2)
                butterfly_2(s, b);
            else
                butterfly(s, b);
        }
    }
}

#endif
