/* SPDX-License-Identifier: Apache-2.0 */
/* cast between element types. Half floats and f64 meet in f32, a block at a time; between half
 * floats and others the graph has two casts (passes/graph/lower-halves.c), which stacks take.
 * Operands: result, data. */
#include "backends/cpu/elementwise/typed.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/strided.h"
#include "backends/cpu/parallel.h"
#include "graph/base/number.h"
#include "ir/kernel.h"

enum {
    TASK_ELEMENTS = 16384,
    BLOCK_ELEMENTS = 512,
};

static void
f64_to_f16(void *out, const void *in, int64_t n)
{
    uint16_t *to = out;
    const double *from = in;
    for (int64_t i = 0; i < n; i++)
        to[i] = kiln_f64_to_f16(from[i]);
}

typedef struct {
    KilnCpuCastRow row, then; /* then: from f32 on, where the first loop ends there */
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
    const int64_t first = task * TASK_ELEMENTS, end = MIN(first + TASK_ELEMENTS, c->n);
    if (!c->then) {
        c->row(c->to + (size_t)first * c->to_size, c->from + (size_t)first * c->from_size,
               end - first);
        return;
    }
    for (int64_t i = first; i < end; i += BLOCK_ELEMENTS) {
        float between[BLOCK_ELEMENTS];
        const int64_t n = MIN(BLOCK_ELEMENTS, end - i);
        c->row(between, c->from + (size_t)i * c->from_size, n);
        c->then(c->to + (size_t)i * c->to_size, between, n);
    }
}

static bool
is_half(KilnDType dtype)
{
    return dtype == KILN_DTYPE_f16 || dtype == KILN_DTYPE_bf16;
}

/* True where integers of both types have the same bytes. */
static bool
is_image(KilnDType from, KilnDType to)
{
    return from == to ||
           (from != KILN_DTYPE_bool && to != KILN_DTYPE_bool && !kiln_dtype_is_float(from) &&
            !kiln_dtype_is_float(to) && kiln_dtype_size(from) == kiln_dtype_size(to));
}

/* False if there are no loops. An f64 is rounded to f16 once, which takes a loop of its own. */
static bool
find_rows(KilnDType from, KilnDType to, Cast *c)
{
    const KilnCpuTypedRows *rows = kiln_cpu_typed(KILN_CPU_ISA_AUTO);
    c->row = rows->cast[from][to];
    c->then = NULL;
    if (!c->row && from == KILN_DTYPE_f64 && to == KILN_DTYPE_f16)
        c->row = f64_to_f16;
    if (c->row || is_image(from, to))
        return true;
    if (!(is_half(from) && to == KILN_DTYPE_f64) && !(from == KILN_DTYPE_f64 && is_half(to)))
        return false;
    c->row = rows->cast[from][KILN_DTYPE_f32];
    c->then = rows->cast[KILN_DTYPE_f32][to];
    return c->row && c->then;
}

bool
kiln_cpu_cast_supports(const KilnInstr *instr)
{
    const KilnType *to = cpu_type(instr, 0), *from = cpu_type(instr, 1);
    Cast c;
    return !to->layout && !from->layout && find_rows(from->dtype, to->dtype, &c);
}

const char *
kiln_cpu_cast(const KilnKernelArgs *args)
{
    const KilnType *to = cpu_type(args->instr, 0), *from = cpu_type(args->instr, 1);
    if (is_image(from->dtype, to->dtype)) {
        KilnCpuNest nest = { 0 };
        kiln_cpu_nest_add(&nest, kiln_type_elements(to), 1, 1);
        kiln_cpu_nest_copy(&nest, &(KilnCpuEnds){ .to = args->data[0],
                                                  .from = args->data[1],
                                                  .size = kiln_dtype_size(to->dtype),
                                                  .threads = args->threads });
        return NULL;
    }
    Cast c = { .to = args->data[0],
               .from = args->data[1],
               .n = kiln_type_elements(to),
               .to_size = kiln_dtype_size(to->dtype),
               .from_size = kiln_dtype_size(from->dtype) };
    find_rows(from->dtype, to->dtype, &c);
    kiln_cpu_parallel(ceil_div(c.n, TASK_ELEMENTS), args->threads, run_task, &c);
    return NULL;
}
