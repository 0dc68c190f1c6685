/* SPDX-License-Identifier: Apache-2.0 */
/* Marks for loops: what the compiler shall do with them. */
#ifndef KILN_BACKENDS_CPU_SIMD_UNROLLED_H
#define KILN_BACKENDS_CPU_SIMD_UNROLLED_H

/* Stands in front of a loop with a constant number of iterations, at most 16. */
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

/* Stands in front of a loop whose element i of a result depends on element i of the operands alone,
 * wherever they lie. */
#if defined(__clang__)
#define EACH_BY_ITSELF _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_BY_ITSELF _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#endif

/* Stands in front of a loop of few steps that is to stay a loop. */
#if defined(__clang__)
#define LOOPED _Pragma("clang loop unroll(disable)")
#else
#define LOOPED _Pragma("GCC unroll 1")
#endif

#endif
