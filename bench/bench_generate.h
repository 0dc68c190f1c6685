/* SPDX-License-Identifier: Apache-2.0 */
/* Problems for the memory planner whose optimum is known: a rectangle of time and bytes is cut into
 * smaller ones without gaps, which are shuffled. */
#ifndef KILN_BENCH_BENCH_GENERATE_H
#define KILN_BENCH_BENCH_GENERATE_H

#include "bench/bench_problem.h"

/** The problem of @seed: 150 to 500 buffers that fit into 1048576 bytes, and not into less. Its
 * name says how it was cut. With @gaps a few percent of the rectangle are left empty. The same on
 * every machine. */
Problem *problem_generate(uint64_t seed, bool gaps);

#endif
