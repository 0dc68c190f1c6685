/* SPDX-License-Identifier: Apache-2.0 */
/* add, sub and mul of i32 and i64, which wrap, with numpy broadcasting. Operands: result, then the
 * two that are combined. */
#include "backends/cpu/broadcast.h"
#include "backends/cpu/kernel.h"

typedef void (*Row)(void *out, const void *a, const void *b, const KilnCpuRun *run);

/* The three ways to broadcast are loops of their own, so that each can be vectorised. */
#define ROW(name, T, operator)                                                                     \
    static void name(void *out, const void *a, const void *b, const KilnCpuRun *run)               \
    {                                                                                              \
        T *to = (T *)out + run->at;                                                                \
        const T *x = (const T *)a + run->from[0], *y = (const T *)b + run->from[1];                \
        if (run->step[0] && run->step[1]) {                                                        \
            for (int64_t i = 0; i < run->n; i++)                                                   \
                to[i] = x[i] operator y[i];                                                        \
        } else if (run->step[0]) {                                                                 \
            for (int64_t i = 0; i < run->n; i++)                                                   \
                to[i] = x[i] operator y[0];                                                        \
        } else {                                                                                   \
            for (int64_t i = 0; i < run->n; i++)                                                   \
                to[i] = x[0] operator y[i];                                                        \
        }                                                                                          \
    }
ROW(add_32, uint32_t, +)
ROW(sub_32, uint32_t, -)
ROW(mul_32, uint32_t, *)
ROW(add_64, uint64_t, +)
ROW(sub_64, uint64_t, -)
ROW(mul_64, uint64_t, *)

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
    const bool wide = cpu_type(instr, 0)->dtype == KILN_DTYPE_i64;
    switch (instr->kind) {
    case KILN_INSTR_add:
        return wide ? add_64 : add_32;
    case KILN_INSTR_sub:
        return wide ? sub_64 : sub_32;
    default:
        return wide ? mul_64 : mul_32;
    }
}

bool
kiln_cpu_integer_supports(const KilnInstr *instr)
{
    return cpu_all_plain(instr, cpu_type(instr, 0)->dtype);
}

const char *
kiln_cpu_integer(const KilnKernelArgs *args)
{
    const KilnType *in[] = { cpu_type(args->instr, 1), cpu_type(args->instr, 2) };
    KilnCpuBroadcast b = kiln_cpu_broadcast(cpu_type(args->instr, 0), in, 2);
    Integer e = { row_of(args->instr), args->data[0], args->data[1], args->data[2] };
    kiln_cpu_broadcast_run(&b, args->threads, run_row, &e);
    return NULL;
}
