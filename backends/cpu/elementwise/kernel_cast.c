/* SPDX-License-Identifier: Apache-2.0 */
/* cast between f32 and the types that it meets in models, and among i32, i64 and bool. Operands:
 * result, data. */
#include "backends/cpu/elementwise/typed.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/strided.h"
#include "backends/cpu/parallel.h"
#include "ir/kernel.h"

enum {
    TASK_ELEMENTS = 16384,
};

static KilnCpuCastRow
row_of(const KilnInstr *instr)
{
    const KilnDType to = cpu_type(instr, 0)->dtype, from = cpu_type(instr, 1)->dtype;
    return kiln_cpu_typed(KILN_CPU_ISA_AUTO)->cast[from][to];
}

typedef struct {
    KilnCpuCastRow row;
    char *to;
    const char *from;
    int64_t n;
    size_t to_size, from_size;
} Cast;

static void
run_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Cast *c = data;
    const int64_t first = task * TASK_ELEMENTS;
    c->row(c->to + (size_t)first * c->to_size, c->from + (size_t)first * c->from_size,
           MIN(TASK_ELEMENTS, c->n - first));
}

bool
kiln_cpu_cast_supports(const KilnInstr *instr)
{
    const KilnType *to = cpu_type(instr, 0), *from = cpu_type(instr, 1);
    return !to->layout && !from->layout && (to->dtype == from->dtype || row_of(instr));
}

const char *
kiln_cpu_cast(const KilnKernelArgs *args)
{
    const KilnType *to = cpu_type(args->instr, 0), *from = cpu_type(args->instr, 1);
    if (to->dtype == from->dtype) {
        KilnCpuNest nest = { 0 };
        kiln_cpu_nest_add(&nest, kiln_type_elements(to), 1, 1);
        kiln_cpu_nest_copy(&nest, &(KilnCpuEnds){ .to = args->data[0],
                                                  .from = args->data[1],
                                                  .size = kiln_dtype_size(to->dtype),
                                                  .threads = args->threads });
        return NULL;
    }
    Cast c = { .row = row_of(args->instr),
               .to = args->data[0],
               .from = args->data[1],
               .n = kiln_type_elements(to),
               .to_size = kiln_dtype_size(to->dtype),
               .from_size = kiln_dtype_size(from->dtype) };
    kiln_cpu_parallel(ceil_div(c.n, TASK_ELEMENTS), args->threads, run_task, &c);
    return NULL;
}
