/* SPDX-License-Identifier: Apache-2.0 */
/* quantize_linear and dequantize_linear of f32 and rescale_quantized with parameters in the types,
 * and lookup_table. The arithmetic is that of the reference, step by step, and has its bits.
 * Elements of one scale lie in runs: all of them, or those behind one index of the quantization's
 * axis. */
#include "backends/cpu/elementwise/look_up.h"
#include "backends/cpu/elementwise/typed.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "ir/kernel.h"

enum {
    TASK_ELEMENTS = 16384,
};

static KilnCpuQuantRow
row_of(KilnDType stored, bool quantizes)
{
    const KilnCpuTypedRows *rows = kiln_cpu_typed(KILN_CPU_ISA_AUTO);
    return quantizes ? rows->quantize[stored] : rows->dequantize[stored];
}

typedef struct {
    KilnCpuQuantRow row;
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
    c.pieces = ceil_div(c.run, c.piece);
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

/* --- from one scale to another --- */

typedef struct {
    KilnCpuRescaleRow row;
    char *to;
    const char *from;
    size_t to_size, from_size;
    int64_t n;
    float factor;
    int32_t from_zero, zero;
} Rescale;

static void
rescale_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Rescale *r = data;
    const int64_t first = task * TASK_ELEMENTS, n = MIN(TASK_ELEMENTS, r->n - first);
    r->row(r->to + (size_t)first * r->to_size, r->from + (size_t)first * r->from_size, n, r->factor,
           r->from_zero, r->zero);
}

/* One scale and zero point for all elements. */
bool
kiln_cpu_rescale_supports(const KilnInstr *instr)
{
    const KilnType *to = cpu_type(instr, 0), *from = cpu_type(instr, 1);
    return !to->layout && !from->layout && to->quant && from->quant && to->quant->axis < 0 &&
           from->quant->axis < 0 &&
           kiln_cpu_typed(KILN_CPU_ISA_AUTO)->rescale[from->dtype][to->dtype];
}

const char *
kiln_cpu_rescale(const KilnKernelArgs *args)
{
    const KilnType *to = cpu_type(args->instr, 0), *from = cpu_type(args->instr, 1);
    const Rescale r = { .row = kiln_cpu_typed(KILN_CPU_ISA_AUTO)->rescale[from->dtype][to->dtype],
                        .to = args->data[0],
                        .from = args->data[1],
                        .to_size = kiln_dtype_size(to->dtype),
                        .from_size = kiln_dtype_size(from->dtype),
                        .n = kiln_type_elements(to),
                        .factor = from->quant->scales[0] / to->quant->scales[0],
                        .from_zero = from->quant->zero_points[0],
                        .zero = to->quant->zero_points[0] };
    kiln_cpu_parallel(ceil_div(r.n, TASK_ELEMENTS), args->threads, rescale_task, &r);
    return NULL;
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
look_up_bytes(const LookUp *l, int64_t first, int64_t end)
{
    uint8_t table[256];
    for (int i = 0; i < 256; i++)
        table[i] = ((const uint8_t *)l->table)[i ^ l->flip];
    kiln_cpu_look_up_bytes()((uint8_t *)l->to + first, l->x + first, end - first, table);
}

static void
look_up(const void *data, int64_t task, int thread)
{
    (void)thread;
    const LookUp *l = data;
    const int64_t first = task * TASK_ELEMENTS, end = MIN(first + TASK_ELEMENTS, l->n);
    if (l->size == 1)
        look_up_bytes(l, first, end);
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
    kiln_cpu_parallel(ceil_div(l.n, TASK_ELEMENTS), args->threads, look_up, &l);
    return NULL;
}
