/* SPDX-License-Identifier: Apache-2.0 */
/* quantize_linear and dequantize_linear of f32 with parameters in the types, and lookup_table. The
 * arithmetic is that of the reference, step by step, and has its bits. Elements of one scale lie in
 * runs: all of them, or those behind one index of the quantization's axis. */
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

#include <math.h>

enum {
    TASK_ELEMENTS = 16384,
};

/* One scale and zero point, for @n elements. */
typedef void (*Row)(void *to, const void *from, int64_t n, float scale, int32_t zero);

/* A quotient beyond the type, an infinity too, saturates; a NaN is no step away from the zero
 * point. */
#define ROWS(T, low, high)                                                                         \
    static void quantize_##T(void *out, const void *in, int64_t n, float scale, int32_t zero)      \
    {                                                                                              \
        T *to = out;                                                                               \
        const float *from = in;                                                                    \
        const float least = (float)((low)-zero), most = (float)((high)-zero);                      \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float steps = from[i] / scale;                                                         \
            steps = steps != steps ? 0.0f : steps;                                                 \
            steps = steps < least ? least : steps > most ? most : steps;                           \
            to[i] = (T)((int32_t)nearbyintf(steps) + zero);                                        \
        }                                                                                          \
    }                                                                                              \
    static void dequantize_##T(void *out, const void *in, int64_t n, float scale, int32_t zero)    \
    {                                                                                              \
        float *to = out;                                                                           \
        const T *from = in;                                                                        \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = (float)(from[i] - zero) * scale;                                               \
    }
ROWS(int8_t, INT8_MIN, INT8_MAX)
ROWS(uint8_t, 0, UINT8_MAX)
ROWS(int16_t, INT16_MIN, INT16_MAX)
ROWS(uint16_t, 0, UINT16_MAX)

static Row
row_of(KilnDType stored, bool quantizes)
{
    switch (stored) {
    case KILN_DTYPE_i8:
        return quantizes ? quantize_int8_t : dequantize_int8_t;
    case KILN_DTYPE_u8:
        return quantizes ? quantize_uint8_t : dequantize_uint8_t;
    case KILN_DTYPE_i16:
        return quantizes ? quantize_int16_t : dequantize_int16_t;
    case KILN_DTYPE_u16:
        return quantizes ? quantize_uint16_t : dequantize_uint16_t;
    default:
        return NULL;
    }
}

typedef struct {
    Row row;
    char *to;
    const char *from;
    size_t to_size, from_size;
    const KilnQuant *quant;
    int64_t run, pieces, piece; /* elements of one scale, and how they are cut */
} Conversion;

static void
run_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Conversion *c = data;
    const int64_t run = task / c->pieces, skip = task % c->pieces * c->piece;
    const int64_t first = run * c->run + skip, n = MIN(c->piece, c->run - skip);
    const int64_t at = c->quant->axis < 0 ? 0 : run % c->quant->n;
    c->row(c->to + (size_t)first * c->to_size, c->from + (size_t)first * c->from_size, n,
           c->quant->scales[at], c->quant->zero_points[at]);
}

static const char *
convert(const KilnKernelArgs *args, const KilnType *quantized, bool quantizes)
{
    const int64_t n = kiln_type_elements(quantized);
    Conversion c = { .row = row_of(quantized->dtype, quantizes),
                     .to = args->data[0],
                     .from = args->data[1],
                     .to_size = kiln_dtype_size(cpu_type(args->instr, 0)->dtype),
                     .from_size = kiln_dtype_size(cpu_type(args->instr, 1)->dtype),
                     .quant = quantized->quant,
                     .run = n };
    for (int d = 0; c.quant->axis >= 0 && d <= c.quant->axis && n; d++)
        c.run /= quantized->dims[d];
    if (n == 0)
        return NULL;
    c.piece = MIN(c.run, TASK_ELEMENTS);
    c.pieces = (c.run + c.piece - 1) / c.piece;
    kiln_cpu_parallel(n / c.run * c.pieces, n < TASK_ELEMENTS ? 1 : args->threads, run_task, &c);
    return NULL;
}

static bool
supports(const KilnInstr *instr, const KilnType *real, const KilnType *stored)
{
    return !kiln_instr_operand(instr, 2) && real->dtype == KILN_DTYPE_f32 && stored->quant &&
           !real->layout && !stored->layout && row_of(stored->dtype, true);
}

bool
kiln_cpu_quantize_supports(const KilnInstr *instr)
{
    return supports(instr, cpu_type(instr, 1), cpu_type(instr, 0));
}

const char *
kiln_cpu_quantize(const KilnKernelArgs *args)
{
    return convert(args, cpu_type(args->instr, 0), true);
}

bool
kiln_cpu_dequantize_supports(const KilnInstr *instr)
{
    return supports(instr, cpu_type(instr, 0), cpu_type(instr, 1));
}

const char *
kiln_cpu_dequantize(const KilnKernelArgs *args)
{
    return convert(args, cpu_type(args->instr, 1), false);
}

/* --- tables --- */

typedef struct {
    const uint8_t *x;
    const void *table;
    void *to;
    int64_t n;
    size_t size;
    uint8_t flip; /* of the sign bit: the lowest value comes first */
} LookUp;

#define LOOK_UP(T)                                                                                 \
    for (int64_t i = first; i < end; i++)                                                          \
    ((T *)l->to)[i] = ((const T *)l->table)[l->x[i] ^ l->flip]

static void
look_up(const void *data, int64_t task, int thread)
{
    (void)thread;
    const LookUp *l = data;
    const int64_t first = task * TASK_ELEMENTS, end = MIN(first + TASK_ELEMENTS, l->n);
    if (l->size == 1)
        LOOK_UP(uint8_t);
    else if (l->size == 2)
        LOOK_UP(uint16_t);
    else if (l->size == 4)
        LOOK_UP(uint32_t);
    else
        LOOK_UP(uint64_t);
}

bool
kiln_cpu_lookup_table_supports(const KilnInstr *instr)
{
    return !cpu_type(instr, 0)->layout && !cpu_type(instr, 1)->layout &&
           !cpu_type(instr, 2)->layout;
}

const char *
kiln_cpu_lookup_table(const KilnKernelArgs *args)
{
    const KilnType *x = cpu_type(args->instr, 1);
    const LookUp l = { .x = args->data[1],
                       .table = args->data[2],
                       .to = args->data[0],
                       .n = kiln_type_elements(x),
                       .size = kiln_dtype_size(cpu_type(args->instr, 0)->dtype),
                       .flip = x->dtype == KILN_DTYPE_i8 ? 0x80 : 0 };
    kiln_cpu_parallel((l.n + TASK_ELEMENTS - 1) / TASK_ELEMENTS, args->threads, look_up, &l);
    return NULL;
}
