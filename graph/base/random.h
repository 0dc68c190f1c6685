/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers: element i of a stream depends on the seed and i alone, so that a
 * tensor is the same whatever order or number of threads generates it. */
#ifndef KILN_GRAPH_BASE_RANDOM_H
#define KILN_GRAPH_BASE_RANDOM_H

#include <stdint.h>

/** 64 well-mixed bits. The finaliser is that of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
uint64_t kiln_random_bits(uint64_t seed, uint64_t index);
/** Uniform in [0, 1), 53 bits. */
double kiln_random_unit(uint64_t seed, uint64_t index);
/** Mean 0, standard deviation 1: the Box-Muller transform of two uniform numbers. */
double kiln_random_normal(uint64_t seed, uint64_t index);
/** A seed from a text (FNV-1a), so that a stream can be tied to a name rather than to an order. */
uint64_t kiln_random_seed(uint64_t seed, const char *text);
/** The number of the stream of random numbers that something called @name draws from; never 0. */
int64_t kiln_random_stream(const char *name);
/** The seed of an operator: @seed, its own, or where that is 0 one made of its stream and the seed
 * of the run. */
uint64_t kiln_random_seed_of(int64_t seed, int64_t stream, uint64_t run);
/** A seed that no other call in this or another process is likely to get. */
uint64_t kiln_random_fresh(void);

#endif
