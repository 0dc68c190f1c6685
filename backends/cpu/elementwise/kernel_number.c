/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise instructions on integers, bools and f64, with numpy broadcasting, and tests of the
 * bits of floats. Operands: result, then what is combined; of clip also the two bounds. */
#include "backends/cpu/elementwise/broadcast.h"
#include "backends/cpu/elementwise/elementwise_find.h"
#include "backends/cpu/elementwise/real_functions.h"
#include "backends/cpu/elementwise/typed.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/strided_operands.h"
#include "ir/kernel.h"

#include <string.h>

/* --- pairs --- */

static int
find_pair(KilnInstrKind kind, const void *attrs)
{
    switch (kind) {
    case KILN_INSTR_bit_shift: {
        const char *direction = ((const KilnInstrAttrs_bit_shift *)attrs)->direction;
        return strcmp(direction, "LEFT") == 0 ? KILN_CPU_PAIR_bit_shift_left
                                              : KILN_CPU_PAIR_bit_shift_right;
    }
    case KILN_INSTR_mod:
        return ((const KilnInstrAttrs_mod *)attrs)->fmod ? KILN_CPU_PAIR_mod_of_c
                                                         : KILN_CPU_PAIR_mod;
#define CASE(id)                                                                                   \
    case KILN_INSTR_##id:                                                                          \
        return KILN_CPU_PAIR_##id;
        CASE(add)
        CASE(bitwise_and)
        CASE(bitwise_or)
        CASE(bitwise_xor)
        CASE(div)
        CASE(equal)
        CASE(greater)
        CASE(greater_or_equal)
        CASE(less)
        CASE(less_or_equal)
        CASE(max)
        CASE(min)
        CASE(mul)
        CASE(prelu)
        CASE(sub)
#undef CASE
    case KILN_INSTR_mean: /* of f64: their sum, divided behind it */
    case KILN_INSTR_sum:
        return KILN_CPU_PAIR_add;
    default:
        return -1;
    }
}

static KilnCpuPairRow
find_logic(KilnInstrKind kind)
{
    const KilnCpuTypedRows *rows = kiln_cpu_typed(KILN_CPU_ISA_AUTO);
    switch (kind) {
#define OP(id)                                                                                     \
    case KILN_INSTR_##id:                                                                          \
        return rows->logic[KILN_CPU_LOGIC_##id];
        KILN_CPU_LOGIC_OPS(OP)
#undef OP
    default:
        return NULL;
    }
}

KilnCpuPairRow
kiln_cpu_pair_row(KilnInstrKind kind, const void *attrs, KilnDType dtype)
{
    if (dtype == KILN_DTYPE_bool)
        return find_logic(kind);
    const int pair = find_pair(kind, attrs);
    if (pair < 0)
        return NULL;
    return kiln_cpu_typed(KILN_CPU_ISA_AUTO)->pair[pair][dtype];
}

typedef struct {
    KilnCpuPairRow row;
    KilnCpuFixed fixed;
    size_t size, result_size; /* of an element */
    char *out;
    const char *a, *b;
} Pair;

static void
run_row(const void *data, const KilnCpuRun *run)
{
    const Pair *p = data;
    p->row(p->out + (size_t)run->at * p->result_size, p->a + (size_t)run->from[0] * p->size,
           p->b + (size_t)run->from[1] * p->size, run->n, p->fixed);
}

/* Rows with both operands fixed: where further operands make the result larger than these two. */
static void
run_repeated(const void *data, const KilnCpuRun *run)
{
    const Pair *p = data;
    char *out = p->out + (size_t)run->at * p->result_size;
    p->row(out, p->a + (size_t)run->from[0] * p->size, p->b + (size_t)run->from[1] * p->size, 1,
           KILN_CPU_NONE_FIXED);
    for (int64_t i = 1; i < run->n; i++)
        memcpy(out + (size_t)i * p->result_size, out, p->result_size);
}

/* All operands but the result are plain and of one type. */
static bool
takes_one_type(const KilnInstr *instr)
{
    const KilnType *first = cpu_type(instr, 1);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnType *type = cpu_type(instr, i);
        if (type && (type->layout || (i > 0 && type->dtype != first->dtype)))
            return false;
    }
    return true;
}

static void
combine(const KilnKernelArgs *args, uint32_t first, uint32_t second)
{
    const KilnInstr *instr = args->instr;
    const KilnCpuOperand in[] = { kiln_cpu_operand(instr, first), kiln_cpu_operand(instr, second) };
    KilnCpuBroadcast b = kiln_cpu_broadcast(kiln_cpu_operand(instr, 0), in, 2);
    const KilnDType dtype = cpu_type(instr, 1)->dtype;
    const bool repeated = kiln_cpu_is_fixed(&b, 0) && kiln_cpu_is_fixed(&b, 1);
    Pair p = { .row = kiln_cpu_pair_row(instr->kind, instr->attrs, dtype),
               .fixed = kiln_cpu_fixed_operand(&b),
               .size = kiln_dtype_size(dtype),
               .result_size = kiln_dtype_size(cpu_type(instr, 0)->dtype),
               .out = args->data[0],
               .a = args->data[first],
               .b = args->data[second] };
    kiln_cpu_broadcast_run(&b, args->threads, repeated ? run_repeated : run_row, &p);
}

/* True where an element of operand @i is 0. All of them are divisors, as the result has elements.
 */
static bool
has_zero(const KilnKernelArgs *args, uint32_t i)
{
    const KilnCpuOperand operand = kiln_cpu_operand(args->instr, i);
    const size_t size = kiln_dtype_size(operand.type->dtype);
    const int64_t n = kiln_type_elements(operand.type) / operand.rows;
    uint8_t found = 0;
    for (int64_t row = 0; row < operand.rows; row++) {
        const char *at = (const char *)args->data[i] + (size_t)(row * operand.pitch) * size;
#define LOOK(T)                                                                                    \
    for (int64_t k = 0; k < n; k++)                                                                \
        found |= ((const T *)(const void *)at)[k] == 0;
        if (size == 1)
            LOOK(uint8_t)
        else if (size == 2)
            LOOK(uint16_t)
        else if (size == 4)
            LOOK(uint32_t)
        else
            LOOK(uint64_t)
#undef LOOK
    }
    return found;
}

bool
kiln_cpu_number_pair_supports(const KilnInstr *instr)
{
    return takes_one_type(instr) &&
           kiln_cpu_pair_row(instr->kind, instr->attrs, cpu_type(instr, 1)->dtype);
}

const char *
kiln_cpu_number_pair(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    const bool divides = instr->kind == KILN_INSTR_div || instr->kind == KILN_INSTR_mod;
    if (divides && !kiln_dtype_is_float(cpu_type(instr, 1)->dtype) && has_zero(args, 2))
        return "integer division by zero";
    combine(args, 1, instr->kind == KILN_INSTR_not ? 1 : 2);
    return NULL;
}

/* max, min, sum and mean of any number of operands, from the left. */
const char *
kiln_cpu_number_variadic(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    combine(args, 1, 2);
    for (uint32_t i = 3; i < instr->n_operands; i++)
        combine(args, 0, i);
    if (instr->kind != KILN_INSTR_mean)
        return NULL;
    const double divisor = instr->n_operands - 1;
    const KilnCpuOperand out = kiln_cpu_operand(instr, 0);
    const int64_t n = kiln_type_elements(out.type) / out.rows;
    for (int64_t row = 0; row < out.rows; row++) {
        double *to = (double *)args->data[0] + row * out.pitch;
        for (int64_t i = 0; i < n; i++)
            to[i] /= divisor;
    }
    return NULL;
}

bool
kiln_cpu_number_variadic_supports(const KilnInstr *instr)
{
    return instr->n_operands > 2 && kiln_cpu_number_pair_supports(instr);
}

/* --- one element --- */

static void
copy_row_of(void *out, const void *in, int64_t n, size_t size)
{
    if (out != in)
        memcpy(out, in, (size_t)n * size);
}

typedef struct {
    KilnCpuOneRow row; /* NULL: the element itself */
    KilnCpuParams params;
    KilnCpuClipRow clip;
    const void *low, *high;
    size_t size;
    char *out;
    const char *in;
} One;

static void
run_one(const void *data, const KilnCpuRun *run)
{
    const One *o = data;
    void *out = o->out + (size_t)run->at * o->size;
    const void *in = o->in + (size_t)run->from[0] * o->size;
    if (o->clip)
        o->clip(out, in, run->n, o->low, o->high);
    else if (o->row)
        o->row(out, in, run->n, &o->params);
    else
        copy_row_of(out, in, run->n, o->size);
}

static KilnCpuOneRow
one_row(const KilnInstr *instr)
{
    const KilnDType dtype = cpu_type(instr, 1)->dtype;
    const KilnCpuTypedRows *rows = kiln_cpu_typed(KILN_CPU_ISA_AUTO);
    switch (instr->kind) {
#define CASE(id)                                                                                   \
    case KILN_INSTR_##id:                                                                          \
        return rows->one[KILN_CPU_ONE_##id][dtype];
        CASE(abs)
        CASE(bitwise_not)
        CASE(ceil)
        CASE(exp)
        CASE(floor)
        CASE(leaky_relu)
        CASE(log)
        CASE(neg)
        CASE(reciprocal)
        CASE(relu)
        CASE(round)
        CASE(sigmoid)
        CASE(sign)
        CASE(softsign)
        CASE(sqrt)
        CASE(tanh)
        CASE(thresholded_relu)
#undef CASE
    default:
        return dtype == KILN_DTYPE_f64 ? kiln_cpu_real_function(instr->kind, instr->attrs) : NULL;
    }
}

/* Of an unsigned integer these are the integer itself. */
static bool
is_copy(const KilnInstr *instr)
{
    return (instr->kind == KILN_INSTR_abs || instr->kind == KILN_INSTR_relu) &&
           !kiln_dtype_is_float(cpu_type(instr, 1)->dtype) &&
           !kiln_dtype_is_signed(cpu_type(instr, 1)->dtype);
}

bool
kiln_cpu_number_one_supports(const KilnInstr *instr)
{
    return takes_one_type(instr) && (is_copy(instr) || one_row(instr));
}

static void
walk(const KilnKernelArgs *args, One *one, KilnCpuRunFn fn)
{
    const KilnCpuOperand in = kiln_cpu_operand(args->instr, 1);
    KilnCpuBroadcast b = kiln_cpu_broadcast(kiln_cpu_operand(args->instr, 0), &in, 1);
    one->size = kiln_dtype_size(in.type->dtype);
    one->out = args->data[0];
    one->in = args->data[1];
    kiln_cpu_broadcast_run(&b, args->threads, fn, one);
}

const char *
kiln_cpu_number_one(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    One one = { .row = is_copy(instr) ? NULL : one_row(instr),
                .params = kiln_cpu_unary_params(instr->kind, instr->attrs) };
    walk(args, &one, run_one);
    return NULL;
}

/* --- clip --- */

bool
kiln_cpu_number_clip_supports(const KilnInstr *instr)
{
    return takes_one_type(instr) &&
           kiln_cpu_typed(KILN_CPU_ISA_AUTO)->clip[cpu_type(instr, 1)->dtype];
}

/* Without a bound: the least or the greatest element of the type. */
static void
store_extreme(KilnDType dtype, bool greatest, void *to)
{
    const unsigned bits = 8 * (unsigned)kiln_dtype_size(dtype);
    const uint64_t ones = UINT64_MAX >> (64 - bits), half = ones >> 1;
    const uint64_t top = kiln_dtype_is_signed(dtype) ? half : ones;
    const double infinity = greatest ? __builtin_inf() : -__builtin_inf();
    const uint64_t extreme = greatest ? top : ~top & ones;
    if (dtype == KILN_DTYPE_f64)
        memcpy(to, &infinity, sizeof infinity);
    else
        memcpy(to, &extreme, sizeof extreme); /* the low bytes come first */
}

const char *
kiln_cpu_number_clip(const KilnKernelArgs *args)
{
    const KilnDType dtype = cpu_type(args->instr, 1)->dtype;
    uint64_t low, high;
    store_extreme(dtype, false, &low);
    store_extreme(dtype, true, &high);
    One one = { .clip = kiln_cpu_typed(KILN_CPU_ISA_AUTO)->clip[dtype],
                .low = cpu_type(args->instr, 2) ? args->data[2] : &low,
                .high = cpu_type(args->instr, 3) ? args->data[3] : &high };
    walk(args, &one, run_one);
    return NULL;
}

/* --- tests of bits --- */

typedef struct {
    KilnCpuBitsRow row;
    uint64_t mask, low, high;
    size_t size;
    uint8_t *out;
    const char *in;
} Bits;

static void
run_bits(const void *data, const KilnCpuRun *run)
{
    const Bits *b = data;
    b->row(b->out + run->at, b->in + (size_t)run->from[0] * b->size, run->n, b->mask, b->low,
           b->high);
}

bool
kiln_cpu_float_bits_supports(const KilnInstr *instr)
{
    return !cpu_type(instr, 0)->layout && !cpu_type(instr, 1)->layout;
}

/* A NaN lies above infinity if the sign is taken away. */
const char *
kiln_cpu_float_bits(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    const KilnType *type = cpu_type(instr, 1);
    const size_t size = kiln_dtype_size(type->dtype);
    const uint64_t sign = UINT64_C(1) << (8 * size - 1), infinity = cpu_infinity_bits(type->dtype);
    const KilnCpuTypedRows *rows = kiln_cpu_typed(KILN_CPU_ISA_AUTO);
    Bits bits = { .row = rows->bits[size == 2   ? 0
                                    : size == 4 ? 1
                                                : 2],
                  .mask = sign - 1,
                  .low = infinity + 1,
                  .high = sign - 1,
                  .size = size,
                  .out = args->data[0],
                  .in = args->data[1] };
    if (instr->kind == KILN_INSTR_is_inf) {
        const KilnInstrAttrs_is_inf *a = kiln_instr_attrs(instr, is_inf);
        const bool both = a->detect_negative && a->detect_positive;
        bits.mask = both ? sign - 1 : 2 * (sign - 1) + 1;
        bits.low = bits.high = a->detect_positive ? infinity : infinity | sign;
        if (!a->detect_negative && !a->detect_positive)
            bits.low = bits.high + 1; /* nothing lies between them */
    }
    const KilnCpuOperand in = kiln_cpu_operand(instr, 1);
    KilnCpuBroadcast b = kiln_cpu_broadcast(kiln_cpu_operand(instr, 0), &in, 1);
    kiln_cpu_broadcast_run(&b, args->threads, run_bits, &bits);
    return NULL;
}
