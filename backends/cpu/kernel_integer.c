/* SPDX-License-Identifier: Apache-2.0 */
/* add, sub and mul of i32 and i64, which wrap, their comparisons, and the logic of bools, with
 * numpy broadcasting. Operands: result, then the two that are combined; of not the one. */
#include "backends/cpu/broadcast.h"
#include "backends/cpu/kernel.h"

typedef void (*Row)(void *out, const void *a, const void *b, const KilnCpuRun *run);

/* The three ways to broadcast are loops of their own, so that each can be vectorised. */
#define ROW(name, T, U, expression)                                                                \
    static void name(void *out, const void *a, const void *b, const KilnCpuRun *run)               \
    {                                                                                              \
        T *to = (T *)out + run->at;                                                                \
        const U *first = (const U *)a + run->from[0], *second = (const U *)b + run->from[1];       \
        if (run->step[0] && run->step[1]) {                                                        \
            for (int64_t i = 0; i < run->n; i++) {                                                 \
                const U x = first[i], y = second[i];                                               \
                to[i] = (T)(expression);                                                           \
            }                                                                                      \
        } else if (run->step[0]) {                                                                 \
            const U y = second[0];                                                                 \
            for (int64_t i = 0; i < run->n; i++) {                                                 \
                const U x = first[i];                                                              \
                to[i] = (T)(expression);                                                           \
            }                                                                                      \
        } else {                                                                                   \
            const U x = first[0];                                                                  \
            for (int64_t i = 0; i < run->n; i++) {                                                 \
                const U y = second[i];                                                             \
                to[i] = (T)(expression);                                                           \
            }                                                                                      \
        }                                                                                          \
    }
/* Arithmetic is that of unsigned integers, which wrap; comparisons see the sign. */
#define ROWS_OF_BOTH(name, expression)                                                             \
    ROW(name##_32, uint32_t, uint32_t, expression)                                                 \
    ROW(name##_64, uint64_t, uint64_t, expression)
#define COMPARISONS_OF_BOTH(name, expression)                                                      \
    ROW(name##_32, uint8_t, int32_t, expression)                                                   \
    ROW(name##_64, uint8_t, int64_t, expression)
ROWS_OF_BOTH(add, x + y)
ROWS_OF_BOTH(sub, x - y)
ROWS_OF_BOTH(mul, x *y)
COMPARISONS_OF_BOTH(equal, x == y)
COMPARISONS_OF_BOTH(greater, x > y)
COMPARISONS_OF_BOTH(greater_or_equal, x >= y)
COMPARISONS_OF_BOTH(less, x < y)
COMPARISONS_OF_BOTH(less_or_equal, x <= y)
ROW(logical_and, uint8_t, uint8_t, x &&y)
ROW(logical_or, uint8_t, uint8_t, x || y)
ROW(logical_xor, uint8_t, uint8_t, !x != !y)
ROW(logical_not, uint8_t, uint8_t, !x || !y) /* of one operand, twice */

typedef struct {
    Row row;
    void *out;
    const void *a, *b;
} Integer;

static void
run_row(const void *data, const KilnCpuRun *run)
{
    const Integer *e = data;
    e->row(e->out, e->a, e->b, run);
}

static Row
row_of(const KilnInstr *instr)
{
    const bool wide = cpu_type(instr, 1)->dtype == KILN_DTYPE_i64;
    switch (instr->kind) {
#define CASE(id)                                                                                   \
    case KILN_INSTR_##id:                                                                          \
        return wide ? id##_64 : id##_32;
        CASE(add)
        CASE(sub)
        CASE(mul)
        CASE(equal)
        CASE(greater)
        CASE(greater_or_equal)
        CASE(less)
        CASE(less_or_equal)
#undef CASE
    case KILN_INSTR_and:
        return logical_and;
    case KILN_INSTR_or:
        return logical_or;
    case KILN_INSTR_xor:
        return logical_xor;
    default:
        return logical_not;
    }
}

bool
kiln_cpu_integer_supports(const KilnInstr *instr)
{
    const KilnType *first = cpu_type(instr, 1);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnType *type = cpu_type(instr, i);
        if (type->layout || (i > 0 && type->dtype != first->dtype))
            return false;
    }
    return true;
}

const char *
kiln_cpu_integer(const KilnKernelArgs *args)
{
    const uint32_t second = args->instr->kind == KILN_INSTR_not ? 1 : 2;
    const KilnType *in[] = { cpu_type(args->instr, 1), cpu_type(args->instr, second) };
    KilnCpuBroadcast b = kiln_cpu_broadcast(cpu_type(args->instr, 0), in, 2);
    Integer e = { row_of(args->instr), args->data[0], args->data[1], args->data[second] };
    kiln_cpu_broadcast_run(&b, args->threads, run_row, &e);
    return NULL;
}
