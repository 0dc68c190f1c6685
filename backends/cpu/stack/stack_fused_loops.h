/* SPDX-License-Identifier: Apache-2.0 */
/* The template of the loops of stack_fused.h, with the formulas of elementwise_ops.h. A loop does
 * whole vectors, then a masked one. One file per instruction set includes it. That file includes
 * its simd header first and defines FUSED, the name of the table. */
#ifndef KILN_BACKENDS_CPU_STACK_STACK_FUSED_LOOPS_H
#define KILN_BACKENDS_CPU_STACK_STACK_FUSED_LOOPS_H

#include "backends/cpu/elementwise/elementwise_ops.h"
#include "backends/cpu/stack/stack_fused.h"

#include <stddef.h>

/* How an operand is loaded: each element, the masked rest, or one element for all. */
#define EACH(k) V_LOAD(in[k] + i)
#define REST(k) V_LOAD_SOME(in[k] + i, V_MASK(n - i))
#define ONE(k) one##k
#define ROW(name, expression, rest)                                                                \
    static void name(float *out, const float *const in[KILN_CPU_FUSED_OPERANDS], int64_t n,        \
                     const KilnCpuParams *p)                                                       \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        ONES for (; i + VW <= n; i += VW) V_STORE(out + i, expression);                            \
        if (i < n)                                                                                 \
            V_STORE_SOME(out + i, V_MASK(n - i), rest);                                            \
    }

/* Loops of two operands: formula_<id>(a, b, p). */
#define ONES                                                                                       \
    const V one1 = V_SET1(in[1][0]);                                                               \
    (void)one1;
#define ROWS_OF_2(id)                                                                              \
    ROW(id##_0, formula_##id(EACH(0), EACH(1), p), formula_##id(REST(0), REST(1), p))              \
    ROW(id##_1, formula_##id(EACH(0), ONE(1), p), formula_##id(REST(0), ONE(1), p))
#define PAIR(outer, inner)                                                                         \
    static inline V formula_pair_##outer##_##inner(V a, V b, const KilnCpuParams *p)               \
    {                                                                                              \
        return op_##outer(op_##inner(a, b), p);                                                    \
    }                                                                                              \
    ROWS_OF_2(pair_##outer##_##inner)
#define CHAIN(outer, inner)
#define TRIPLE(last, outer, inner)
#define QUAD(last, after, outer, inner)
#define GATE(outer, inner)                                                                         \
    static inline V formula_gate_##outer##_##inner(V a, V b, const KilnCpuParams *p)               \
    {                                                                                              \
        return op_##outer(op_##inner(a, p), b);                                                    \
    }                                                                                              \
    ROWS_OF_2(gate_##outer##_##inner)
#define TWIN(outer, first, second)                                                                 \
    static inline V formula_twin_##outer##_##first##_##second(V a, V b, const KilnCpuParams *p)    \
    {                                                                                              \
        return op_##outer(op_##first(a, p), op_##second(b, p));                                    \
    }                                                                                              \
    ROW(twin_##outer##_##first##_##second,                                                         \
        formula_twin_##outer##_##first##_##second(EACH(0), EACH(1), p),                            \
        formula_twin_##outer##_##first##_##second(REST(0), REST(1), p))
#include "backends/cpu/stack/stack_fused.def"
#undef ONES

/* Loops of three operands: formula_<id>(a, b, c, p). */
#define ONES                                                                                       \
    const V one1 = V_SET1(in[1][0]), one2 = V_SET1(in[2][0]);                                      \
    (void)one1, (void)one2;
#define ROWS_OF_3(id)                                                                              \
    ROW(id##_0, formula_##id(EACH(0), EACH(1), EACH(2), p),                                        \
        formula_##id(REST(0), REST(1), REST(2), p))                                                \
    ROW(id##_1, formula_##id(EACH(0), ONE(1), EACH(2), p),                                         \
        formula_##id(REST(0), ONE(1), REST(2), p))                                                 \
    ROW(id##_2, formula_##id(EACH(0), EACH(1), ONE(2), p),                                         \
        formula_##id(REST(0), REST(1), ONE(2), p))                                                 \
    ROW(id##_3, formula_##id(EACH(0), ONE(1), ONE(2), p), formula_##id(REST(0), ONE(1), ONE(2), p))
#define PAIR(outer, inner)
#define CHAIN(outer, inner)                                                                        \
    static inline V formula_chain_##outer##_##inner(V a, V b, V c, const KilnCpuParams *p)         \
    {                                                                                              \
        (void)p;                                                                                   \
        return op_##outer(op_##inner(a, b), c);                                                    \
    }                                                                                              \
    ROWS_OF_3(chain_##outer##_##inner)
#define TRIPLE(last, outer, inner)                                                                 \
    static inline V formula_triple_##last##_##outer##_##inner(V a, V b, V c,                       \
                                                              const KilnCpuParams *p)              \
    {                                                                                              \
        return op_##last(op_##outer(op_##inner(a, b), c), p);                                      \
    }                                                                                              \
    ROWS_OF_3(triple_##last##_##outer##_##inner)
#define QUAD(last, after, outer, inner)                                                            \
    static inline V formula_quad_##last##_##after##_##outer##_##inner(V a, V b, V c,               \
                                                                      const KilnCpuParams *p)      \
    {                                                                                              \
        return op_##last(op_##after(op_##outer(op_##inner(a, b), c), p), p);                       \
    }                                                                                              \
    ROWS_OF_3(quad_##last##_##after##_##outer##_##inner)
#define GATE(outer, inner)
#define TWIN(outer, first, second)
#include "backends/cpu/stack/stack_fused.def"
#undef ONES

#define UNARY_OP(id) KILN_CPU_UNARY_##id
#define BINARY_OP(id) KILN_CPU_BINARY_##id
#define PAIR(outer, inner)                                                                         \
    { KILN_CPU_FUSED_PAIR,                                                                         \
      { UNARY_OP(outer), BINARY_OP(inner), 0 },                                                    \
      { pair_##outer##_##inner##_0, pair_##outer##_##inner##_1, NULL, NULL } },
#define CHAIN(outer, inner)                                                                        \
    { KILN_CPU_FUSED_CHAIN,                                                                        \
      { BINARY_OP(outer), BINARY_OP(inner), 0 },                                                   \
      { chain_##outer##_##inner##_0, chain_##outer##_##inner##_1, chain_##outer##_##inner##_2,     \
        chain_##outer##_##inner##_3 } },
#define TRIPLE(last, outer, inner)                                                                 \
    { KILN_CPU_FUSED_TRIPLE,                                                                       \
      { UNARY_OP(last), BINARY_OP(outer), BINARY_OP(inner) },                                      \
      { triple_##last##_##outer##_##inner##_0, triple_##last##_##outer##_##inner##_1,              \
        triple_##last##_##outer##_##inner##_2, triple_##last##_##outer##_##inner##_3 } },
#define QUAD(last, after, outer, inner)                                                            \
    { KILN_CPU_FUSED_QUAD,                                                                         \
      { UNARY_OP(last), UNARY_OP(after), BINARY_OP(outer), BINARY_OP(inner) },                     \
      { quad_##last##_##after##_##outer##_##inner##_0,                                             \
        quad_##last##_##after##_##outer##_##inner##_1,                                             \
        quad_##last##_##after##_##outer##_##inner##_2,                                             \
        quad_##last##_##after##_##outer##_##inner##_3 } },
#define GATE(outer, inner)                                                                         \
    { KILN_CPU_FUSED_GATE,                                                                         \
      { BINARY_OP(outer), UNARY_OP(inner), 0 },                                                    \
      { gate_##outer##_##inner##_0, gate_##outer##_##inner##_1, NULL, NULL } },
#define TWIN(outer, first, second)                                                                 \
    { KILN_CPU_FUSED_TWIN,                                                                         \
      { BINARY_OP(outer), UNARY_OP(first), UNARY_OP(second) },                                     \
      { twin_##outer##_##first##_##second, NULL, NULL, NULL } },
const KilnCpuFused FUSED[] = {
#include "backends/cpu/stack/stack_fused.def"
    { 0, { 0 }, { NULL } },
};

#endif
