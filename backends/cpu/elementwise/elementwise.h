/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over rows of f32 for every element-wise operation of elementwise.def, per instruction set.
 * The bits of a result depend on the elements at its index only, not on its place in the row or the
 * length. If two operands are NaN, the result is either of them. Rows may have any alignment. The
 * result may be an operand itself. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_H

#include "backends/cpu/isa.h"

#include <stdint.h>

typedef enum {
#define UNARY(id) KILN_CPU_UNARY_##id,
#define BINARY(id)
#define COMPARE(id)
#include "backends/cpu/elementwise/elementwise.def"
    KILN_CPU_N_UNARY
} KilnCpuUnary;

typedef enum {
#define UNARY(id)
#define BINARY(id) KILN_CPU_BINARY_##id,
#define COMPARE(id)
#include "backends/cpu/elementwise/elementwise.def"
    KILN_CPU_N_BINARY
} KilnCpuBinary;

typedef enum {
#define UNARY(id)
#define BINARY(id)
#define COMPARE(id) KILN_CPU_COMPARE_##id,
#include "backends/cpu/elementwise/elementwise.def"
    KILN_CPU_N_COMPARE
} KilnCpuCompare;

/* The operand of a binary operation that is one element for the whole row. */
typedef enum {
    KILN_CPU_NONE_FIXED,
    KILN_CPU_SECOND_FIXED,
    KILN_CPU_FIRST_FIXED,
    KILN_CPU_N_FIXED
} KilnCpuFixed;

/* Parameters from the attributes, such as alpha and beta. */
typedef struct {
    float a, b;
} KilnCpuParams;

typedef void (*KilnCpuUnaryRow)(float *out, const float *x, int64_t n, const KilnCpuParams *p);
typedef void (*KilnCpuBinaryRow)(float *out, const float *a, const float *b, int64_t n);
typedef void (*KilnCpuCompareRow)(uint8_t *out, const float *a, const float *b, int64_t n);

/* out[i] = condition[i] ? yes[i] : no[i]. Bits do not change. */
typedef void (*KilnCpuSelectRow)(float *out, const uint8_t *condition, const float *yes,
                                 const float *no, int64_t n);

typedef struct {
    KilnCpuUnaryRow unary[KILN_CPU_N_UNARY];
    KilnCpuBinaryRow binary[KILN_CPU_N_BINARY][KILN_CPU_N_FIXED];
    KilnCpuCompareRow compare[KILN_CPU_N_COMPARE][KILN_CPU_N_FIXED];
    KilnCpuSelectRow select[2][2]; /* [yes is one element][no is one element] */
} KilnCpuRows;

extern const KilnCpuRows kiln_cpu_rows_portable;
#if defined(__x86_64__)
extern const KilnCpuRows kiln_cpu_rows_avx2;
extern const KilnCpuRows kiln_cpu_rows_avx512;
#endif

/** Returns the loops of @isa. AUTO is the best of this machine. */
static inline const KilnCpuRows *
kiln_cpu_rows(KilnCpuIsa isa)
{
    return KILN_CPU_OF_ISA(isa, &kiln_cpu_rows);
}

#endif
