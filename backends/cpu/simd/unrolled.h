/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of a few iterations that are to be unrolled completely. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_SIMD_UNROLLED_H
#define KILN_BACKENDS_CPU_SIMD_UNROLLED_H

/* In front of a loop whose number of iterations is a constant, 16 at most. */
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

#endif
