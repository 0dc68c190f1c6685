/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers. Element i of a stream depends on the seed and i only. So a tensor
 * is the same for any order and number of threads. */
#ifndef KILN_GRAPH_BASE_RANDOM_H
#define KILN_GRAPH_BASE_RANDOM_H

#include <stdint.h>

/** Mixes the bits of @z. The finaliser is that of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static inline uint64_t
kiln_random_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/** 64 well-mixed bits. */
uint64_t kiln_random_bits(uint64_t seed, uint64_t index);
/** Uniform in [0, 1), 53 bits. */
double kiln_random_unit(uint64_t seed, uint64_t index);
/** Mean 0, standard deviation 1: the Box-Muller transform of two uniform numbers. */
double kiln_random_normal(uint64_t seed, uint64_t index);
/** Makes a seed from a text (FNV-1a). It ties a stream to a name, not to an order. */
uint64_t kiln_random_seed(uint64_t seed, const char *text);
/** The number of the random stream of an object called @name; never 0. */
int64_t kiln_random_stream(const char *name);
/** The seed of an operator: its own @seed, or if that is 0, a mix of its @stream and the seed of
 * the @run. */
uint64_t kiln_random_seed_of(int64_t seed, int64_t stream, uint64_t run);
/** A seed that no other call in this or another process is likely to get. */
uint64_t kiln_random_fresh(void);

#endif
