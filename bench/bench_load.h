/* SPDX-License-Identifier: Apache-2.0 */
/* Starts processes that keep processors busy. */
#ifndef KILN_BENCH_BENCH_LOAD_H
#define KILN_BENCH_BENCH_LOAD_H

#include <stdbool.h>

typedef struct BenchLoad BenchLoad;

/** Starts @n processes. @pin puts all on the last processor that this process may use. They end
 * with this process at the latest. Returns NULL if one cannot be started. */
BenchLoad *bench_load_start(int n, bool pin);
void bench_load_stop(BenchLoad *load);

#endif
