/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_quantize_linear: the range of all elements, then their integers, with the arithmetic of
 * the reference. Operands: result, its scale, its zero point, data. */
#include "backends/cpu/elementwise/typed.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/integer/integer_kernel.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "ir/kernel.h"

enum {
    TASK_ELEMENTS = 16384,
    LEVELS = 255, /* steps between the ends of u8 */
};

typedef struct {
    const float *x;
    float *ranges; /* the lower end of each task's range, then the upper one */
    uint8_t *to;
    int64_t n;
    float scale;
    uint8_t zero;
    KilnCpuQuantRow row;
} Dynamic;

static void
range_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Dynamic *d = data;
    const int64_t first = task * TASK_ELEMENTS, n = MIN(TASK_ELEMENTS, d->n - first);
    kiln_integer_kernels()->range(d->x + first, n, d->ranges + 2 * task, d->ranges + 2 * task + 1);
}

static void
quantize_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Dynamic *d = data;
    const int64_t first = task * TASK_ELEMENTS, n = MIN(TASK_ELEMENTS, d->n - first);
    d->row(d->to + first, d->x + first, n, d->scale, d->zero);
}

bool
kiln_cpu_dynamic_quantize_supports(const KilnInstr *instr)
{
    return !cpu_type(instr, 0)->layout && !cpu_type(instr, 3)->layout;
}

size_t
kiln_cpu_dynamic_quantize_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    return (size_t)ceil_div(kiln_type_elements(cpu_type(instr, 3)), TASK_ELEMENTS) * 2 *
           sizeof(float);
}

const char *
kiln_cpu_dynamic_quantize(const KilnKernelArgs *args)
{
    const KilnCpuQuantRow row = kiln_cpu_typed(KILN_CPU_ISA_AUTO)->quantize[KILN_DTYPE_u8];
    Dynamic d = { .x = args->data[3],
                  .ranges = args->scratch,
                  .to = args->data[0],
                  .n = kiln_type_elements(cpu_type(args->instr, 3)),
                  .row = row };
    const int64_t tasks = ceil_div(d.n, TASK_ELEMENTS);
    float low = 0, high = 0;
    kiln_cpu_parallel(tasks, args->threads, range_task, &d);
    for (int64_t i = 0; i < tasks; i++) {
        /* NaN is never less; once found it stays. */
        low = low <= d.ranges[2 * i] || low != low ? low : d.ranges[2 * i];
        high = high >= d.ranges[2 * i + 1] || high != high ? high : d.ranges[2 * i + 1];
    }
    d.scale = low == high ? 1 : (high - low) / LEVELS;
    const float at_zero = -low;
    row(&d.zero, &at_zero, 1, d.scale, 0);
    *(float *)args->data[1] = d.scale;
    *(uint8_t *)args->data[2] = d.zero;
    kiln_cpu_parallel(tasks, args->threads, quantize_task, &d);
    return NULL;
}
