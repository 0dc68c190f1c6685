/* SPDX-License-Identifier: Apache-2.0 */
/* copy: the bytes of one buffer into another of as many bytes. Operands: result, data. */
#include "backends/cpu/kernel.h"
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

const char *
kiln_cpu_copy(const KilnKernelArgs *args)
{
    Copy c = { args->data[0], args->data[1], kiln_type_bytes(cpu_type(args->instr, 0)) };
    if (c.to != c.from) /* in place there is nothing to move */
        kiln_cpu_parallel((c.bytes + TASK_BYTES - 1) / TASK_BYTES, args->threads, run_task, &c);
    return NULL;
}
