/* SPDX-License-Identifier: Apache-2.0 */
/* quantize_linear and dequantize_linear with scales and zero points as operands: one for all
 * elements, one per index of an axis, or one per block of them. The arithmetic is that of the
 * reference, step by step, in f32. Chunks of elements are widened to f32 in a cache, with the scale
 * and zero point of each element beside them. Constant data of fewer than 8 bits is packed. */
#include "backends/cpu/elementwise/low.h"
#include "backends/cpu/elementwise/typed.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "graph/base/number.h"
#include "ir/kernel.h"
#include "ir/slice.h"

#include <string.h>

enum {
    TASK_ELEMENTS = 16384,
    CHUNK = 1024, /* a multiple of 8: a chunk of packed elements begins with a byte */
    GROUP = 8,    /* elements that are whole bytes, whatever their bits */
};

/* Elements that are read as f32. */
typedef struct {
    const char *data;
    size_t size;
    KilnCpuToF32Row widen; /* NULL: they are f32 */
    KilnDType packed;      /* string: not packed */
} Reals;

typedef struct {
    Reals x, scale, zero;  /* zero.data: NULL if absent */
    int64_t inner, axis;   /* x as [outer, axis, inner] */
    int64_t block, blocks; /* elements of a block along the axis; blocks there */
    bool one;              /* scale and zero point for all */
    char *to;
    size_t to_size;
    KilnCpuStepsRow steps; /* quantizes to integers, */
    KilnCpuLowRow narrow;  /* or to floats; both NULL: dequantizes */
    KilnCpuCastRow store;  /* of f32, to the result; NULL: it is f32 */
    bool saturate;
    int64_t n;
} Linear;

/* The row that makes f32 of @dtype; false if there is none. */
static bool
reals_of(const KilnType *type, Reals *out)
{
    const KilnCpuTypedRows *typed = kiln_cpu_typed(KILN_CPU_ISA_AUTO);
    *out = (Reals){ .size = kiln_dtype_size(type->dtype),
                    .packed = KILN_DTYPE_string,
                    .widen = kiln_dtype_is_half(type->dtype)
                                 ? typed->cast[type->dtype][KILN_DTYPE_f32]
                                 : kiln_cpu_low(KILN_CPU_ISA_AUTO)->to_f32[type->dtype] };
    return !type->layout && !type->quant && (out->widen || type->dtype == KILN_DTYPE_f32);
}

/* All but the addresses. */
static bool
linear_of(const KilnInstr *instr, int64_t axis, int64_t block, Linear *out)
{
    const KilnType *x = cpu_type(instr, 1), *scale = cpu_type(instr, 2), *zero = cpu_type(instr, 3);
    const KilnType *to = cpu_type(instr, 0);
    *out = (Linear){ .inner = 1, .axis = 1, .block = block, .saturate = true };
    if (!scale || !reals_of(x, &out->x) || !reals_of(scale, &out->scale) ||
        (zero && !reals_of(zero, &out->zero)) || to->layout || to->quant)
        return false;
    const int at = kiln_type_axis(x, axis);
    for (int d = MAX(at, 0); d < x->rank; d++)
        *(d == at ? &out->axis : &out->inner) *= x->dims[d];
    out->one = kiln_type_elements(scale) == 1;
    out->blocks = block ? ceil_div(out->axis, block) : out->axis;
    out->n = kiln_type_elements(x);
    out->to_size = kiln_dtype_size(to->dtype);
    return true;
}

/* --- chunks --- */

static void
widen(const Reals *from, int64_t first, float *out, int64_t n)
{
    uint8_t bytes[CHUNK];
    const char *at = from->data + (size_t)first * from->size;
    if (from->packed != KILN_DTYPE_string) {
        const char *packed = from->data + kiln_packed_bytes(from->packed, first);
        if (kiln_dtype_bits(from->packed) == 4)
            kiln_cpu_low(KILN_CPU_ISA_AUTO)->unpack4(bytes, (const uint8_t *)packed, n);
        else
            kiln_unpack_elements(from->packed, bytes, packed, 0, n);
        at = (const char *)bytes;
    }
    if (from->widen)
        from->widen(out, at, n);
    else
        memcpy(out, at, (size_t)n * sizeof *out);
}

/* @n times element @at. */
static void
repeat(const Reals *from, int64_t at, float *out, int64_t n)
{
    float value;
    widen(from, at, &value, 1);
    for (int64_t i = 0; i < n; i++)
        out[i] = value;
}

/* Parameters of elements that follow each other, from one place on: one for all of them, or one
 * for each. */
typedef struct {
    int64_t at, n;
    bool each;
} Run;

static Run
run_at(const Linear *l, int64_t i)
{
    const int64_t in = i % l->inner, row = i / l->inner, a = row % l->axis, outer = row / l->axis;
    if (l->one)
        return (Run){ 0, INT64_MAX, false };
    if (!l->block && l->inner == 1)
        return (Run){ a, l->axis - a, true };
    if (!l->block)
        return (Run){ a, l->inner - in, false };
    const int64_t block = outer * l->blocks + a / l->block;
    if (l->inner == 1)
        return (Run){ block, MIN(l->block - a % l->block, l->axis - a), false };
    return (Run){ block * l->inner + in, l->inner - in, true };
}

static void
parameters_of(const Linear *l, int64_t first, int64_t n, float *scale, float *zero)
{
    for (int64_t done = 0; done < n;) {
        const Run run = run_at(l, first + done);
        const int64_t now = MIN(run.n, n - done);
        void (*const fill)(const Reals *, int64_t, float *, int64_t) = run.each ? widen : repeat;
        fill(&l->scale, run.at, scale + done, now);
        if (l->zero.data)
            fill(&l->zero, run.at, zero + done, now);
        done += now;
    }
}

static void
run_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Linear *l = data;
    const KilnCpuLowRows *rows = kiln_cpu_low(KILN_CPU_ISA_AUTO);
    const int64_t end = MIN((task + 1) * TASK_ELEMENTS, l->n);
    float x[CHUNK], scale[CHUNK], zeros[CHUNK];
    const float *zero = l->zero.data ? zeros : NULL;
    for (int64_t first = task * TASK_ELEMENTS; first < end; first += CHUNK) {
        const int64_t n = MIN(CHUNK, end - first);
        void *to = l->to + (size_t)first * l->to_size;
        if (!l->one || first == task * TASK_ELEMENTS)
            parameters_of(l, first, l->one ? CHUNK : n, scale, zeros);
        widen(&l->x, first, x, n);
        if (!l->steps && !l->narrow) {
            rows->multiply(l->store ? x : to, x, zero, scale, n);
            if (l->store)
                l->store(to, x, n);
            continue;
        }
        rows->divide(x, x, scale, n);
        if (l->steps) {
            l->steps(to, x, zero, n);
            continue;
        }
        for (int64_t i = 0; zero && i < n; i++)
            x[i] += zero[i];
        l->narrow(to, x, n, l->saturate, KILN_ROUND_UP);
    }
}

static const char *
run(Linear *l, const KilnKernelArgs *args)
{
    const KilnType *scale = cpu_type(args->instr, 2), *zero = cpu_type(args->instr, 3);
    if (l->n == 0)
        return NULL;
    const int64_t outer = l->n / l->inner / l->axis;
    const int64_t expected = l->one ? 1 : l->block ? outer * l->blocks * l->inner : l->axis;
    if (kiln_type_elements(scale) != expected || (zero && kiln_type_elements(zero) != expected))
        return "the number of scales or zero points does not fit the data";
    l->to = args->data[0];
    l->x.data = args->data[1];
    l->scale.data = args->data[2];
    l->zero.data = zero ? args->data[3] : NULL;
    kiln_cpu_parallel(ceil_div(l->n, TASK_ELEMENTS), args->threads, run_task, l);
    return NULL;
}

/* --- quantize_linear --- */

static bool
quantization(const KilnInstr *instr, Linear *out)
{
    const KilnInstrAttrs_quantize_linear *attrs = kiln_instr_attrs(instr, quantize_linear);
    const KilnCpuLowRows *rows = kiln_cpu_low(KILN_CPU_ISA_AUTO);
    if (!linear_of(instr, attrs->axis, attrs->block_size, out))
        return false;
    const KilnDType to = cpu_type(instr, 0)->dtype;
    out->saturate = attrs->saturate;
    out->steps = rows->steps[to];
    out->narrow = out->steps ? NULL : rows->from_f32[to];
    return out->steps || out->narrow;
}

bool
kiln_cpu_quantize_linear_supports(const KilnInstr *instr)
{
    Linear l;
    return quantization(instr, &l);
}

const char *
kiln_cpu_quantize_linear(const KilnKernelArgs *args)
{
    Linear l;
    quantization(args->instr, &l);
    return run(&l, args);
}

/* --- dequantize_linear --- */

/* f32 does not hold the difference from a zero point of 32 bits. */
static bool
dequantization(const KilnInstr *instr, Linear *out)
{
    const KilnInstrAttrs_dequantize_linear *attrs = kiln_instr_attrs(instr, dequantize_linear);
    if (!linear_of(instr, attrs->axis, attrs->block_size, out))
        return false;
    const KilnDType to = cpu_type(instr, 0)->dtype, from = cpu_type(instr, 1)->dtype;
    if (kiln_dtype_is_half(to))
        out->store = kiln_cpu_typed(KILN_CPU_ISA_AUTO)->cast[KILN_DTYPE_f32][to];
    return (out->store || to == KILN_DTYPE_f32) && (from != KILN_DTYPE_i32 || !cpu_type(instr, 3));
}

bool
kiln_cpu_dequantize_linear_supports(const KilnInstr *instr)
{
    Linear l;
    return dequantization(instr, &l);
}

size_t
kiln_cpu_dequantize_linear_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)instr;
    (void)form;
    (void)threads;
    return 0;
}

size_t
kiln_cpu_dequantize_linear_packed(const KilnInstr *instr, uint32_t form)
{
    (void)form;
    const KilnType *x = cpu_type(instr, 1);
    return kiln_dtype_bits(x->dtype) < 8
               ? (size_t)kiln_packed_bytes(x->dtype, kiln_type_elements(x))
               : 0;
}

const char *
kiln_cpu_dequantize_linear_prepack(const KilnInstr *instr, uint32_t form, const void *const *data,
                                   void *packed, KilnSlice slice)
{
    (void)form;
    const KilnType *x = cpu_type(instr, 1);
    const int64_t n = kiln_type_elements(x), groups = ceil_div(n, GROUP);
    const int64_t first = kiln_slice_begin(slice, groups) * GROUP;
    const int64_t end = MIN(kiln_slice_end(slice, groups) * GROUP, n);
    if (first < end)
        kiln_pack_elements(x->dtype, (char *)packed + kiln_packed_bytes(x->dtype, first),
                           (const char *)data[1] + first, end - first);
    return NULL;
}

const char *
kiln_cpu_dequantize_linear(const KilnKernelArgs *args)
{
    Linear l;
    dequantization(args->instr, &l);
    if (!args->packed)
        return run(&l, args);
    void *const data[] = { args->data[0], (void *)(uintptr_t)args->packed, args->data[2],
                           cpu_type(args->instr, 3) ? args->data[3] : NULL };
    KilnKernelArgs packed = *args;
    packed.data = data;
    l.x.packed = cpu_type(args->instr, 1)->dtype;
    return run(&l, &packed);
}
