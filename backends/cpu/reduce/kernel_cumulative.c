/* SPDX-License-Identifier: Apache-2.0 */
/* cum_prod and cum_sum: lines side by side, so that vectors take a step of many lines at once.
 * Running numbers of floats stay in double. Operands: result, data; in place is allowed. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

enum {
    LINES = 64, /* side by side */
};

/* The data is [outer, extent, inner]. */
typedef struct {
    void *to;
    const void *from;
    KilnDType dtype;
    int64_t extent, inner, pieces; /* pieces: of LINES lines in inner */
    bool product, exclusive, reverse;
} Running;

/* All steps of the lines [first, first + n) of one outer item. */
#define RUN(name, type, wide, number)                                                              \
    static void name(const Running *r, int64_t begin, int64_t n)                                   \
    {                                                                                              \
        wide all[LINES];                                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            all[i] = (number)r->product;                                                           \
        for (int64_t k = 0; k < r->extent; k++) {                                                  \
            const int64_t step = r->reverse ? r->extent - 1 - k : k;                               \
            const type *from = (const type *)r->from + begin + step * r->inner;                    \
            type *to = (type *)r->to + begin + step * r->inner;                                    \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const wide before = all[i], x = (wide)from[i];                                     \
                all[i] = r->product ? before * x : before + x;                                     \
                to[i] = (type)(r->exclusive ? before : all[i]);                                    \
            }                                                                                      \
        }                                                                                          \
    }
RUN(run_f32, float, double, double)
RUN(run_f64, double, double, double)
RUN(run_32, uint32_t, uint32_t, uint32_t)
RUN(run_64, uint64_t, uint64_t, uint64_t)
#undef RUN

static void
run_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Running *r = data;
    const int64_t first = task % r->pieces * LINES, n = min_of(LINES, r->inner - first);
    const int64_t begin = task / r->pieces * r->extent * r->inner + first;
    switch (r->dtype) {
    case KILN_DTYPE_f32:
        run_f32(r, begin, n);
        break;
    case KILN_DTYPE_f64:
        run_f64(r, begin, n);
        break;
    case KILN_DTYPE_i32:
    case KILN_DTYPE_u32:
        run_32(r, begin, n);
        break;
    default:
        run_64(r, begin, n);
        break;
    }
}

static const char *
run(const KilnKernelArgs *args, Running r, int64_t axis)
{
    const KilnType *type = cpu_type(args->instr, 1);
    int64_t outer = 1;
    if (kiln_type_elements(type) == 0)
        return NULL;
    r.to = args->data[0];
    r.from = args->data[1];
    r.dtype = type->dtype;
    r.extent = r.inner = 1;
    for (int d = 0; d < type->rank; d++)
        *(d < axis ? &outer : d == axis ? &r.extent : &r.inner) *= type->dims[d];
    r.pieces = ceil_div(r.inner, LINES);
    kiln_cpu_parallel(outer * r.pieces, args->threads, run_task, &r);
    return NULL;
}

const char *
kiln_cpu_cum_prod(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_cum_prod *a = kiln_instr_attrs(args->instr, cum_prod);
    const Running r = { .product = true, .exclusive = a->exclusive, .reverse = a->reverse };
    return run(args, r, a->axis);
}

const char *
kiln_cpu_cum_sum(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_cum_sum *a = kiln_instr_attrs(args->instr, cum_sum);
    const Running r = { .exclusive = a->exclusive, .reverse = a->reverse };
    return run(args, r, a->axis);
}
