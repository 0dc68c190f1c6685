/* SPDX-License-Identifier: Apache-2.0 */
/* A mark for short loops that the compiler shall unroll completely. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_SIMD_UNROLLED_H
#define KILN_BACKENDS_CPU_SIMD_UNROLLED_H

/* Stands in front of a loop with a constant number of iterations, at most 16. */
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

#endif
