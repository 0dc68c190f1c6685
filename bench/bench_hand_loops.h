/* SPDX-License-Identifier: Apache-2.0 */
/* The template of the loops of bench_hand.h. Each is written for its problem alone and keeps values
 * between load and store in registers. One file per instruction set includes it. That file includes
 * its simd header first and defines HANDS, the name of the table. */
#ifndef KILN_BENCH_BENCH_HAND_LOOPS_H
#define KILN_BENCH_BENCH_HAND_LOOPS_H

#include "backends/cpu/simd/vector_math.h"
#include "bench/bench_hand.h"

#include <stddef.h>

#define WHOLE(p) V_LOAD((p) + i)
#define REST(p) V_LOAD_SOME((p) + i, V_MASK(n - i))
#define RELU(x) V_MAX(V_SET1(0.0f), x)

/* @expression is a formula of X(data[1]), X(data[2]) …, the operands. */
#define FLAT(name, expression)                                                                     \
    static void name(float *const *data, int64_t rows, int64_t n)                                  \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        n *= rows;                                                                                 \
        for (; i + VW <= n; i += VW) {                                                             \
            V y = expression(WHOLE);                                                               \
            V_STORE(data[0] + i, y);                                                               \
        }                                                                                          \
        if (i < n) {                                                                               \
            V y = expression(REST);                                                                \
            V_STORE_SOME(data[0] + i, V_MASK(n - i), y);                                           \
        }                                                                                          \
    }
#define ADD_RELU(X) RELU(V_ADD(X(data[1]), X(data[2])))
#define GATE(X) V_MUL(vector_tanh(X(data[1])), vector_sigmoid(X(data[2])))
#define MUL_ADD(X) V_ADD(V_MUL(X(data[1]), X(data[2])), X(data[3]))
#define MUL_ADD_RELU(X) RELU(MUL_ADD(X))
#define MUL_ADD_RELU_SIGMOID(X) vector_sigmoid(MUL_ADD_RELU(X))
#define MUL_ADD_SIGMOID(X) vector_sigmoid(MUL_ADD(X))
FLAT(add_relu, ADD_RELU)
FLAT(gate, GATE)
FLAT(mul_add_relu, MUL_ADD_RELU)
FLAT(mul_add_relu_sigmoid, MUL_ADD_RELU_SIGMOID)
FLAT(mul_add_sigmoid, MUL_ADD_SIGMOID)

static void
silu(float *const *data, int64_t rows, int64_t n)
{
    int64_t i = 0;
    n *= rows;
    for (; i + VW <= n; i += VW) {
        V x = V_LOAD(data[1] + i);
        V_STORE(data[0] + i, V_MUL(x, vector_sigmoid(x)));
    }
    if (i < n) {
        V x = V_LOAD_SOME(data[1] + i, V_MASK(n - i));
        V_STORE_SOME(data[0] + i, V_MASK(n - i), V_MUL(x, vector_sigmoid(x)));
    }
}

/* Scale and shift have one element a row. */
static void
scale_shift_relu(float *const *data, int64_t rows, int64_t n)
{
    for (int64_t row = 0; row < rows; row++) {
        const V scale = V_SET1(data[2][row]), shift = V_SET1(data[3][row]);
        const float *x = data[1] + row * n;
        float *y = data[0] + row * n;
        int64_t i = 0;
        for (; i + VW <= n; i += VW)
            V_STORE(y + i, RELU(V_ADD(V_MUL(V_LOAD(x + i), scale), shift)));
        if (i < n)
            V_STORE_SOME(y + i, V_MASK(n - i), RELU(V_ADD(V_MUL(REST(x), scale), shift)));
    }
}

#define HAND(name, operands)                                                                       \
    {                                                                                              \
#name, 1 + (operands), name                                                                \
    }
const BenchHand HANDS[] = {
    HAND(add_relu, 2),
    HAND(gate, 2),
    HAND(mul_add_relu, 3),
    HAND(mul_add_relu_sigmoid, 3),
    HAND(mul_add_sigmoid, 3),
    HAND(scale_shift_relu, 3),
    HAND(silu, 1),
    { NULL, 0, NULL },
};

#endif
