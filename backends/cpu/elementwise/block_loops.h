/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that are small in code, for the many types of numbers.def and cast_loops.h. A loop does
 * whole blocks of 64 elements, so that the compiler needs no code for remainders, for operands of
 * one element, or for results that overlap. Others come as blocks of their own. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_BLOCK_LOOPS_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_BLOCK_LOOPS_H

#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/simd/unrolled.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    BLOCK = 64, /* elements */
    BLOCK_BYTES = BLOCK * 8
};

/* @step: bytes to the next block of the first operand, and of the second. */
typedef void (*BlockFn)(void *out, const void *a, const void *b, int64_t blocks,
                        const size_t step[2], const void *more);

/* Bytes of an element of the operands and of the result, and what the loop knows beside them. */
typedef struct {
    size_t in, out;
    const void *more;
} BlockTypes;

/* @blocks blocks of the expression in x and y. */
#define BLOCKS(name, T, W, R, expression)                                                          \
    static void name(void *out, const void *a, const void *b, int64_t blocks,                      \
                     const size_t step[2], const void *more)                                       \
    {                                                                                              \
        (void)more;                                                                                \
        for (; blocks > 0; blocks--) {                                                             \
            R *to = out;                                                                           \
            const T *first = a, *second = b;                                                       \
            EACH_BY_ITSELF                                                                         \
            for (int i = 0; i < BLOCK; i++) {                                                      \
                const W x = first[i], y = second[i];                                               \
                (void)y;                                                                           \
                to[i] = (R)(expression);                                                           \
            }                                                                                      \
            out = to + BLOCK;                                                                      \
            a = (const char *)a + step[0];                                                         \
            b = (const char *)b + step[1];                                                         \
        }                                                                                          \
    }

static void
fill_block(char *block, const char *one, size_t size)
{
    for (int i = 0; i < BLOCK; i++)
        memcpy(block + (size_t)i * size, one, size);
}

/* Runs @fn on @n elements. What a block has behind them is neither 0 nor NaN. */
static void
run_blocks(BlockFn fn, BlockTypes types, void *out, const void *a, const void *b, int64_t n,
           KilnCpuFixed fixed)
{
    _Alignas(64) char one[BLOCK_BYTES], rest[3][BLOCK_BYTES];
    size_t step[2] = { BLOCK * types.in, BLOCK * types.in };
    if (fixed != KILN_CPU_NONE_FIXED) {
        const bool first = fixed == KILN_CPU_FIRST_FIXED;
        fill_block(one, first ? a : b, types.in);
        *(first ? &a : &b) = one;
        step[!first] = 0;
    }
    const int64_t blocks = n / BLOCK;
    const size_t left = (size_t)(n % BLOCK);
    if (blocks > 0)
        fn(out, a, b, blocks, step, types.more);
    if (left == 0)
        return;
    memset(rest, 1, sizeof rest);
    memcpy(rest[0], (const char *)a + (size_t)blocks * step[0], left * types.in);
    memcpy(rest[1], (const char *)b + (size_t)blocks * step[1], left * types.in);
    fn(rest[2], rest[0], rest[1], 1, step, types.more);
    memcpy((char *)out + (size_t)blocks * BLOCK * types.out, rest[2], left * types.out);
}

#endif
