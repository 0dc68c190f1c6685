/* SPDX-License-Identifier: Apache-2.0 */
/* Loops written by hand, each for what some kernel does by general means: how fast it could be. */
#ifndef KILN_BENCH_BENCH_HAND_H
#define KILN_BENCH_BENCH_HAND_H

#include <stdint.h>

/** Results and operands of f32 in the order of the instruction, @rows × @n elements. An operand
 * that is one element a row has @rows elements. */
typedef void (*BenchHandLoop)(float *const *data, int64_t rows, int64_t n);

typedef struct {
    const char *name;
    int n_data;
    BenchHandLoop loop;
} BenchHand;

/* One table per instruction set, each ended by a name that is NULL. */
extern const BenchHand bench_hand_portable[];
#if defined(__x86_64__)
extern const BenchHand bench_hand_avx2[];
extern const BenchHand bench_hand_avx512[];
#endif

/** The loop of that name for the best instruction set here; NULL: there is none. */
const BenchHand *bench_hand_find(const char *name);

#endif
