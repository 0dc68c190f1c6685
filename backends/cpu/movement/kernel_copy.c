/* SPDX-License-Identifier: Apache-2.0 */
/* copy: the bytes of one buffer into another of as many bytes. Operands: result, data. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/strided.h"
#include "backends/cpu/movement/strided_operands.h"
#include "backends/cpu/parallel.h"

#include <string.h>

enum {
    TASK_BYTES = 1 << 18,
};

typedef struct {
    char *to;
    const char *from;
    int64_t bytes;
} Copy;

static void
run_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Copy *c = data;
    int64_t first = task * TASK_BYTES, left = c->bytes - first;
    memcpy(c->to + first, c->from + first, (size_t)(left < TASK_BYTES ? left : TASK_BYTES));
}

/* The shorter runs of either side, as many as the longer ones have of them. */
static void
copy_rows(const KilnKernelArgs *args)
{
    const KilnRegion to = kiln_buffer_region(args->instr->operands[0].buffer);
    const KilnRegion from = kiln_buffer_region(args->instr->operands[1].buffer);
    const int64_t many = MAX(to.rows, from.rows), few = MIN(to.rows, from.rows);
    const int64_t run = MIN(to.run, from.run);
    KilnCpuNest nest = { 0 };
    kiln_cpu_nest_add(&nest, few, to.rows == few ? to.pitch : many / few * to.pitch,
                      from.rows == few ? from.pitch : many / few * from.pitch);
    kiln_cpu_nest_add(&nest, many / few, to.rows == few ? run : to.pitch,
                      from.rows == few ? run : from.pitch);
    kiln_cpu_nest_add(&nest, run, 1, 1);
    kiln_cpu_nest_copy(&nest, &(KilnCpuEnds){ .to = args->data[0],
                                              .from = args->data[1],
                                              .size = 1,
                                              .threads = args->threads });
}

const char *
kiln_cpu_copy(const KilnKernelArgs *args)
{
    if (kiln_cpu_operand(args->instr, 0).rows > 1 || kiln_cpu_operand(args->instr, 1).rows > 1) {
        if (args->data[0] != args->data[1]) /* in place */
            copy_rows(args);
        return NULL;
    }
    Copy c = { args->data[0], args->data[1], kiln_type_bytes(cpu_type(args->instr, 0)) };
    if (c.to != c.from) /* in place there is nothing to move */
        kiln_cpu_parallel(ceil_div(c.bytes, TASK_BYTES), args->threads, run_task, &c);
    return NULL;
}
