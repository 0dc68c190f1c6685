/* SPDX-License-Identifier: Apache-2.0 */
/* cast between f32 and the types that it meets in models, and among i32, i64 and bool. Float to
 * integer truncates and saturates, NaN gives 0; anything to bool is "not 0"; to a float rounds half
 * to even. Operands: result, data. */
#include "backends/cpu/cast.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/strided.h"
#include "graph/number.h"

#include <string.h>

enum {
    TASK_ELEMENTS = 16384,
};

typedef void (*Row)(void *out, const void *x, int64_t n);

#define ROW(name, T, U, expression)                                                                \
    static void name(void *out, const void *in, int64_t n)                                         \
    {                                                                                              \
        T *to = out;                                                                               \
        const U *from = in;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const U x = from[i];                                                                   \
            to[i] = expression;                                                                    \
        }                                                                                          \
    }

/* The bounds are floats that lie just beyond the type, or on its end. */
static inline int64_t
whole(float x, float low, float high, int64_t least, int64_t most)
{
    if (!(x > low))
        return x != x ? 0 : least;
    return x >= high ? most : (int64_t)x;
}

/* The upper half, rounded half to even; a NaN stays one. */
static inline uint16_t
to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (uint16_t)((x != x ? bits | 0x400000 : rounded) >> 16);
}

static inline float
from_bf16(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

ROW(f32_to_i64, int64_t, float, whole(x, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX))
ROW(f32_to_i32, int32_t, float, (int32_t)whole(x, -0x1p31f, 0x1p31f, INT32_MIN, INT32_MAX))
ROW(f32_to_i8, int8_t, float, (int8_t)whole(x, -128, 127, INT8_MIN, INT8_MAX))
ROW(f32_to_u8, uint8_t, float, (uint8_t)whole(x, 0, 255, 0, UINT8_MAX))
ROW(f32_to_bool, uint8_t, float, x != 0)
ROW(f32_to_f16, uint16_t, float, kiln_f32_to_f16(x))
ROW(f32_to_bf16, uint16_t, float, to_bf16(x))
ROW(i64_to_f32, float, int64_t, (float)x)
ROW(i32_to_f32, float, int32_t, (float)x)
ROW(i8_to_f32, float, int8_t, (float)x)
ROW(u8_to_f32, float, uint8_t, (float)x)
ROW(bool_to_f32, float, uint8_t, x != 0 ? 1.0f : 0.0f)
ROW(f16_to_f32, float, uint16_t, kiln_f16_to_f32(x))
ROW(bf16_to_f32, float, uint16_t, from_bf16(x))
ROW(i64_to_i32, int32_t, int64_t, (int32_t)x)
ROW(i32_to_i64, int64_t, int32_t, x)
ROW(bool_to_i64, int64_t, uint8_t, x != 0)
ROW(bool_to_i32, int32_t, uint8_t, x != 0)
ROW(i64_to_bool, uint8_t, int64_t, x != 0)
ROW(i32_to_bool, uint8_t, int32_t, x != 0)

#if defined(__x86_64__)
static void
f32_to_f16_avx2(void *out, const void *x, int64_t n)
{
    kiln_cpu_f32_to_f16_avx2(out, x, n);
}

static void
f16_to_f32_avx2(void *out, const void *x, int64_t n)
{
    kiln_cpu_f16_to_f32_avx2(out, x, n);
}
#endif

static const struct {
    KilnDType from, to;
    Row row;
} rows[] = {
#define PAIR(a, b)                                                                                 \
    {                                                                                              \
        KILN_DTYPE_##a, KILN_DTYPE_##b, a##_to_##b                                                 \
    }
    PAIR(f32, i64), PAIR(f32, i32),  PAIR(f32, i8),   PAIR(f32, u8),   PAIR(f32, bool),
    PAIR(f32, f16), PAIR(f32, bf16), PAIR(i64, f32),  PAIR(i32, f32),  PAIR(i8, f32),
    PAIR(u8, f32),  PAIR(bool, f32), PAIR(f16, f32),  PAIR(bf16, f32), PAIR(i64, i32),
    PAIR(i32, i64), PAIR(bool, i64), PAIR(bool, i32), PAIR(i64, bool), PAIR(i32, bool),
};

/* NULL where there is no loop for the two types. */
static Row
row_of(const KilnInstr *instr)
{
    const KilnDType to = cpu_type(instr, 0)->dtype, from = cpu_type(instr, 1)->dtype;
#if defined(__x86_64__)
    if (kiln_cpu_isa_best() >= KILN_CPU_ISA_AVX2) {
        if (from == KILN_DTYPE_f32 && to == KILN_DTYPE_f16)
            return f32_to_f16_avx2;
        if (from == KILN_DTYPE_f16 && to == KILN_DTYPE_f32)
            return f16_to_f32_avx2;
    }
#endif
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].from == from && rows[i].to == to)
            return rows[i].row;
    }
    return NULL;
}

typedef struct {
    Row row;
    char *to;
    const char *from;
    int64_t n;
    size_t to_size, from_size;
} Cast;

static void
run_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Cast *c = data;
    const int64_t first = task * TASK_ELEMENTS;
    c->row(c->to + (size_t)first * c->to_size, c->from + (size_t)first * c->from_size,
           MIN(TASK_ELEMENTS, c->n - first));
}

bool
kiln_cpu_cast_supports(const KilnInstr *instr)
{
    const KilnType *to = cpu_type(instr, 0), *from = cpu_type(instr, 1);
    return !to->layout && !from->layout && (to->dtype == from->dtype || row_of(instr));
}

const char *
kiln_cpu_cast(const KilnKernelArgs *args)
{
    const KilnType *to = cpu_type(args->instr, 0), *from = cpu_type(args->instr, 1);
    if (to->dtype == from->dtype) {
        KilnCpuNest nest = { 0 };
        kiln_cpu_nest_add(&nest, kiln_type_elements(to), 1, 1);
        kiln_cpu_nest_copy(&nest, &(KilnCpuEnds){ .to = args->data[0],
                                                  .from = args->data[1],
                                                  .size = kiln_dtype_size(to->dtype),
                                                  .threads = args->threads });
        return NULL;
    }
    Cast c = { .row = row_of(args->instr),
               .to = args->data[0],
               .from = args->data[1],
               .n = kiln_type_elements(to),
               .to_size = kiln_dtype_size(to->dtype),
               .from_size = kiln_dtype_size(from->dtype) };
    kiln_cpu_parallel((c.n + TASK_ELEMENTS - 1) / TASK_ELEMENTS, args->threads, run_task, &c);
    return NULL;
}
