/* SPDX-License-Identifier: Apache-2.0 */
/* Generates problems for the memory planner with a known optimum. A rectangle of time and bytes is
 * cut into smaller ones without gaps, and these are shuffled. */
#ifndef KILN_BENCH_BENCH_GENERATE_H
#define KILN_BENCH_BENCH_GENERATE_H

#include "bench/bench_problem.h"

#include <stdbool.h>
#include <stdint.h>

/** Returns the problem of @seed: 150 to 500 buffers that fit into 1048576 bytes, but not into less.
 * Its name says how it was cut. @gaps leaves a few percent of the rectangle empty. The problem is
 * the same on every machine. */
Problem *problem_generate(uint64_t seed, bool gaps);

#endif
