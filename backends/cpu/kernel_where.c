/* SPDX-License-Identifier: Apache-2.0 */
/* where: elements of any type, chosen by bools (any byte but 0 is true), with numpy broadcasting.
 * Bytes are moved, so that NaNs keep their payload. Operands: result, condition, the two choices.
 */
#include "backends/cpu/broadcast.h"
#include "backends/cpu/elementwise.h"
#include "backends/cpu/kernel.h"

typedef struct {
    void *out;
    const uint8_t *condition;
    const void *yes, *no;
} Where;

/* Both choices are read, so that the loop has no branch; a loop of its own where both advance. */
#define ROW(name, T)                                                                               \
    static void name(const void *data, const KilnCpuRun *run)                                      \
    {                                                                                              \
        const Where *w = data;                                                                     \
        const uint8_t *condition = w->condition + run->from[0];                                    \
        const T *yes = (const T *)w->yes + run->from[1], *no = (const T *)w->no + run->from[2];    \
        T *out = (T *)w->out + run->at;                                                            \
        const int64_t n = run->n, step = run->step[0], s = run->step[1], t = run->step[2];         \
        if (step && s && t) {                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                      \
                T x = yes[i], y = no[i];                                                           \
                out[i] = condition[i] ? x : y;                                                     \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T x = yes[i * s], y = no[i * t];                                                       \
            out[i] = condition[i * step] ? x : y;                                                  \
        }                                                                                          \
    }
ROW(where_8, uint8_t)
ROW(where_16, uint16_t)
ROW(where_32, uint32_t)
ROW(where_64, uint64_t)

/* Elements of 4 bytes have vector loops where the condition advances. */
static void
where_words(const void *data, const KilnCpuRun *run)
{
    const Where *w = data;
    if (!run->step[0]) {
        where_32(data, run);
        return;
    }
    const KilnCpuRows *rows = kiln_cpu_rows(KILN_CPU_ISA_AUTO);
    rows->select[run->step[1] == 0][run->step[2] == 0](
        (float *)w->out + run->at, w->condition + run->from[0],
        (const float *)w->yes + run->from[1], (const float *)w->no + run->from[2], run->n);
}

bool
kiln_cpu_where_supports(const KilnInstr *instr)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (cpu_type(instr, i)->layout)
            return false;
    }
    return kiln_dtype_size(cpu_type(instr, 0)->dtype) > 0;
}

const char *
kiln_cpu_where(const KilnKernelArgs *args)
{
    const KilnType *out = cpu_type(args->instr, 0);
    const KilnType *in[] = { cpu_type(args->instr, 1), cpu_type(args->instr, 2),
                             cpu_type(args->instr, 3) };
    KilnCpuBroadcast b = kiln_cpu_broadcast(out, in, 3);
    Where w = { args->data[0], args->data[1], args->data[2], args->data[3] };
    const size_t size = kiln_dtype_size(out->dtype);
    kiln_cpu_broadcast_run(&b, args->threads,
                           size == 1   ? where_8
                           : size == 2 ? where_16
                           : size == 4 ? where_words
                                       : where_64,
                           &w);
    return NULL;
}
