/* SPDX-License-Identifier: Apache-2.0 */
/* How real numbers of steps become stored integers, in plain C without branches: for loops that are
 * compiled once per instruction set. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_QUANTIZED_STEPS_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_QUANTIZED_STEPS_H

#include <stdint.h>

/* @x within two floats that the type holds; NaN is the lower one. */
static inline float
within(float x, float low, float high)
{
    const float least = x > low ? x : low;
    return least < high ? least : high;
}

/* @steps from @zero, half to even: a sum with 1.5 × 2^23 has no bits below one. */
static inline int32_t
quantized(float steps, int32_t zero, float least, float most)
{
    const float magic = 0x1.8p23f, number = steps != steps ? 0 : steps;
    return (int32_t)((within(number, least, most) + magic) - magic) + zero;
}

#endif
