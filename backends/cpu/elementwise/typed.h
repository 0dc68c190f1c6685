/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over rows of types other than f32, and from one type to another, per instruction set:
 * conversions, quantization, integer arithmetic, logic, choices. Every instruction set has the same
 * bits: results are exact, or rounded as in the ref backend. Rows are aligned to their elements. A
 * result may be an operand itself if their elements have the same size. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_TYPED_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_TYPED_H

#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/isa.h"
#include "ir/instr.h"

/* Operations on bools. Any byte except 0 is true. */
#define KILN_CPU_LOGIC_OPS(X) X(and) X(equal) X(or) X(xor) X(not )

/* Operations on integers and f64: numbers.def. */
typedef enum {
#define PAIR(id, CLASS, expression) KILN_CPU_PAIR_##id,
#include "backends/cpu/elementwise/numbers.def"
    KILN_CPU_N_PAIR
} KilnCpuPair;

typedef enum {
#define ONE(id, CLASS, expression) KILN_CPU_ONE_##id,
#include "backends/cpu/elementwise/numbers.def"
    KILN_CPU_N_ONE
} KilnCpuOne;

typedef enum {
#define OP(id) KILN_CPU_LOGIC_##id,
    KILN_CPU_LOGIC_OPS(OP)
#undef OP
    KILN_CPU_N_LOGIC
} KilnCpuLogic;

/* Float to integer truncates and saturates, and NaN becomes 0. To bool means "not 0". To float
 * rounds half to even. */
typedef void (*KilnCpuCastRow)(void *out, const void *x, int64_t n);

/* With one scale and zero point. A quotient beyond the type saturates, infinities too. A NaN
 * becomes the zero point. */
typedef void (*KilnCpuQuantRow)(void *out, const void *x, int64_t n, float scale, int32_t zero);

/* From one scale and zero point to another: round((x - from_zero) * factor) + zero, saturated. */
typedef void (*KilnCpuRescaleRow)(void *out, const void *x, int64_t n, float factor,
                                  int32_t from_zero, int32_t zero);

/* At most one operand is one element for the whole row. `not` gets its operand as both. */
typedef void (*KilnCpuPairRow)(void *out, const void *a, const void *b, int64_t n,
                               KilnCpuFixed fixed);

/* Of one element. The parameters are those of attributes. */
typedef void (*KilnCpuOneRow)(void *out, const void *x, int64_t n, const KilnCpuParams *p);

/* min(max(x, low), high); NaN where one of them is NaN. */
typedef void (*KilnCpuClipRow)(void *out, const void *x, int64_t n, const void *low,
                               const void *high);

/* True where the bits of an element, without those outside of @mask, are in low … high. */
typedef void (*KilnCpuBitsRow)(uint8_t *out, const void *x, int64_t n, uint64_t mask, uint64_t low,
                               uint64_t high);

/* out[i] = condition[i] ? yes[i] : no[i], in steps of 0 or 1. Bits do not change. */
typedef struct {
    int64_t condition, yes, no;
} KilnCpuSteps;
typedef void (*KilnCpuChoiceRow)(void *out, const uint8_t *condition, const void *yes,
                                 const void *no, int64_t n, KilnCpuSteps steps);

typedef struct {
    KilnCpuCastRow cast[KILN_N_DTYPES][KILN_N_DTYPES]; /* [from][to]; NULL where there is none */
    /* For i8, u8, i16 and u16. The real type is f32. */
    KilnCpuQuantRow quantize[KILN_N_DTYPES], dequantize[KILN_N_DTYPES];
    KilnCpuRescaleRow rescale[KILN_N_DTYPES][KILN_N_DTYPES]; /* [from][to] */
    KilnCpuPairRow pair[KILN_CPU_N_PAIR][KILN_N_DTYPES];     /* NULL where there is none */
    KilnCpuOneRow one[KILN_CPU_N_ONE][KILN_N_DTYPES];
    KilnCpuClipRow clip[KILN_N_DTYPES];
    KilnCpuBitsRow bits[3]; /* elements of 2, 4 and 8 bytes */
    KilnCpuPairRow logic[KILN_CPU_N_LOGIC];
    KilnCpuChoiceRow choose[4]; /* elements of 1, 2, 4 and 8 bytes */
} KilnCpuTypedRows;

extern const KilnCpuTypedRows kiln_cpu_typed_portable;
#if defined(__x86_64__)
extern const KilnCpuTypedRows kiln_cpu_typed_avx2;
extern const KilnCpuTypedRows kiln_cpu_typed_avx512;
#endif

/** Returns the loops of @isa. AUTO is the best of this machine. */
static inline const KilnCpuTypedRows *
kiln_cpu_typed(KilnCpuIsa isa)
{
    return KILN_CPU_OF_ISA(isa, &kiln_cpu_typed);
}

/** Returns the loop of @kind on operands of @dtype, or NULL if there is none. Divisors of integers
 * must not be 0. */
KilnCpuPairRow kiln_cpu_pair_row(KilnInstrKind kind, const void *attrs, KilnDType dtype);

static inline KilnCpuChoiceRow
kiln_cpu_choice_row(size_t size)
{
    const KilnCpuChoiceRow *choose = kiln_cpu_typed(KILN_CPU_ISA_AUTO)->choose;
    return choose[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
}

#endif
