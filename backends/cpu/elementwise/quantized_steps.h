/* SPDX-License-Identifier: Apache-2.0 */
/* Converts real numbers of steps to stored integers, in plain C without branches. Loops that are
 * compiled once per instruction set use it. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_QUANTIZED_STEPS_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_QUANTIZED_STEPS_H

#include <stdint.h>

/* Clips @x to @low and @high. NaN becomes @low. */
static inline float
within(float x, float low, float high)
{
    const float least = x > low ? x : low;
    return least < high ? least : high;
}

/* Rounds @steps half to even and adds @zero. The sum with 1.5 × 2^23 has no bits below one. */
static inline int32_t
quantized(float steps, int32_t zero, float least, float most)
{
    const float magic = 0x1.8p23f, number = steps != steps ? 0 : steps;
    return (int32_t)((within(number, least, most) + magic) - magic) + zero;
}

#endif
