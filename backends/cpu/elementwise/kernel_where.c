/* SPDX-License-Identifier: Apache-2.0 */
/* where: elements of any type, chosen by bools (any byte but 0 is true), with numpy broadcasting.
 * Bytes are moved, so that NaNs keep their payload. Operands: result, condition, the two choices.
 */
#include "backends/cpu/elementwise/broadcast.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/typed.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/strided_operands.h"
#include "ir/kernel.h"

typedef struct {
    void *out;
    const uint8_t *condition;
    const void *yes, *no;
    size_t size; /* of an element */
    KilnCpuChoiceRow row;
} Where;

static void
run_where(const void *data, const KilnCpuRun *run)
{
    const Where *w = data;
    w->row((char *)w->out + (size_t)run->at * w->size, w->condition + run->from[0],
           (const char *)w->yes + (size_t)run->from[1] * w->size,
           (const char *)w->no + (size_t)run->from[2] * w->size, run->n,
           (KilnCpuSteps){ run->step[0], run->step[1], run->step[2] });
}

/* Elements of 4 bytes have vector loops where the condition advances. */
static void
where_words(const void *data, const KilnCpuRun *run)
{
    const Where *w = data;
    if (!run->step[0]) {
        run_where(data, run);
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
    const KilnCpuOperand in[] = { kiln_cpu_operand(args->instr, 1),
                                  kiln_cpu_operand(args->instr, 2),
                                  kiln_cpu_operand(args->instr, 3) };
    KilnCpuBroadcast b = kiln_cpu_broadcast(kiln_cpu_operand(args->instr, 0), in, 3);
    const size_t size = kiln_dtype_size(out->dtype);
    Where w = { .out = args->data[0],
                .condition = args->data[1],
                .yes = args->data[2],
                .no = args->data[3],
                .size = size,
                .row = kiln_cpu_choice_row(size) };
    kiln_cpu_broadcast_run(&b, args->threads, size == 4 ? where_words : run_where, &w);
    return NULL;
}
