/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that want a processor all the time. */
#ifndef KILN_BENCH_BENCH_LOAD_H
#define KILN_BENCH_BENCH_LOAD_H

#include <stdbool.h>

typedef struct BenchLoad BenchLoad;

/** Starts @n of them; @pin: all on the last processor that this process may use. They end with this
 * process at the latest. NULL where one cannot be started. */
BenchLoad *bench_load_start(int n, bool pin);
void bench_load_stop(BenchLoad *load);

#endif
