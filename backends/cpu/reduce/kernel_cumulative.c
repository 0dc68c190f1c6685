/* SPDX-License-Identifier: Apache-2.0 */
/* cum_prod and cum_sum. Lines that lie side by side take each step together, and rows a few at a
 * time. Running numbers of floats stay in double. Operands: result, data; in place is allowed. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/reduce/cumulative.h"
#include "graph/type.h"

enum {
    TASK_ELEMENTS = 1 << 14,
    LINES = 64, /* of a task, at least */
};

/* The data is [outer, extent, inner]. */
typedef struct {
    char *to;
    const char *from;
    KilnCpuCumulativeLoop loop;
    int64_t size, outer, extent, inner;
    int64_t width, pieces; /* of lines side by side: in a task, and tasks of an outer item */
    int64_t bundle;        /* rows of a task, where no lines lie side by side */
    bool exclusive, reverse;
} Running;

static void
run_lines(const Running *r, int64_t begin, int64_t n)
{
    const bool rows = r->inner == 1;
    const int64_t first = begin + (r->reverse ? (r->extent - 1) * r->inner : 0);
    const KilnCpuLines lines = { .to = r->to + first * r->size,
                                 .from = r->from + first * r->size,
                                 .n = n,
                                 .extent = r->extent,
                                 .step = r->reverse ? -r->inner : r->inner,
                                 .line = rows ? r->extent : 1,
                                 .exclusive = r->exclusive };
    r->loop(&lines);
}

static void
run_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Running *r = data;
    if (r->inner == 1) {
        const int64_t first = task * r->bundle;
        run_lines(r, first * r->extent, min_of(r->bundle, r->outer - first));
        return;
    }
    const int64_t first = task % r->pieces * r->width;
    run_lines(r, task / r->pieces * r->extent * r->inner + first,
              min_of(r->width, r->inner - first));
}

static KilnCpuCumulative
loop_of(KilnDType dtype)
{
    switch (dtype) {
    case KILN_DTYPE_f32:
        return KILN_CPU_CUMULATIVE_f32;
    case KILN_DTYPE_f64:
        return KILN_CPU_CUMULATIVE_f64;
    case KILN_DTYPE_i32:
    case KILN_DTYPE_u32:
        return KILN_CPU_CUMULATIVE_32;
    default:
        return KILN_CPU_CUMULATIVE_64;
    }
}

static const char *
run(const KilnKernelArgs *args, Running r, int64_t stated, bool product)
{
    const KilnType *type = cpu_type(args->instr, 1);
    const int axis = kiln_type_axis(type, stated);
    const KilnCpuCumulatives *loops = kiln_cpu_cumulatives();
    if (kiln_type_elements(type) == 0)
        return NULL;
    r.to = args->data[0];
    r.from = args->data[1];
    r.size = (int64_t)kiln_dtype_size(type->dtype);
    r.outer = r.extent = r.inner = 1;
    for (int d = 0; d < type->rank; d++)
        *(d < axis ? &r.outer : d == axis ? &r.extent : &r.inner) *= type->dims[d];
    r.loop = (r.inner == 1 ? loops->rows : loops->columns)[product][loop_of(type->dtype)];
    r.bundle = round_up(units_per_task(TASK_ELEMENTS, r.extent), KILN_CPU_CUMULATIVE_ROWS);
    r.width = piece_width(LINES, KILN_CPU_CUMULATIVE_LINES, r.outer, r.inner, args->threads);
    r.pieces = ceil_div(r.inner, r.width);
    kiln_cpu_parallel(r.inner == 1 ? ceil_div(r.outer, r.bundle) : r.outer * r.pieces,
                      args->threads, run_task, &r);
    return NULL;
}

const char *
kiln_cpu_cum_prod(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_cum_prod *a = kiln_instr_attrs(args->instr, cum_prod);
    const Running r = { .exclusive = a->exclusive, .reverse = a->reverse };
    return run(args, r, a->axis, true);
}

const char *
kiln_cpu_cum_sum(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_cum_sum *a = kiln_instr_attrs(args->instr, cum_sum);
    const Running r = { .exclusive = a->exclusive, .reverse = a->reverse };
    return run(args, r, a->axis, false);
}
