/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-written loops for single problems. They show how fast the general kernels could be. */
#ifndef KILN_BENCH_BENCH_HAND_H
#define KILN_BENCH_BENCH_HAND_H

#include <stdint.h>

/** @data are results and operands of f32 in the order of the instruction, @rows × @n elements. An
 * operand with one element a row has @rows elements. */
typedef void (*BenchHandLoop)(float *const *data, int64_t rows, int64_t n);

typedef struct {
    const char *name;
    int n_data;
    BenchHandLoop loop;
} BenchHand;

/* One table per instruction set. A NULL name ends it. */
extern const BenchHand bench_hand_portable[];
#if defined(__x86_64__)
extern const BenchHand bench_hand_avx2[];
extern const BenchHand bench_hand_avx512[];
#endif

/** Returns the loop of that name for the best instruction set of this machine, or NULL. */
const BenchHand *bench_hand_find(const char *name);

#endif
