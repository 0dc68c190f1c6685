/* SPDX-License-Identifier: Apache-2.0 */
/* cast between element types. Half floats and f64 meet in f32, a block at a time; between half
 * floats and others the graph has two casts (passes/graph/lower-halves.c), which stacks take.
 * Numbers of 8 bits and fewer meet f32, f16, bf16 and each other in f32. Operands: result, data. */
#include "backends/cpu/elementwise/low.h"
#include "backends/cpu/elementwise/typed.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/strided.h"
#include "backends/cpu/parallel.h"
#include "graph/base/number.h"
#include "ir/kernel.h"

#include <string.h>

enum {
    TASK_ELEMENTS = 16384,
    BLOCK_ELEMENTS = 512, /* that are f32 for a while, in a cache */
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

static bool
is_low(KilnDType dtype)
{
    return kiln_dtype_is_low_float(dtype) || kiln_dtype_bits(dtype) < 8;
}

/* True where integers of both types have the same bytes. */
static bool
is_image(KilnDType from, KilnDType to)
{
    return from == to || (!is_low(from) && !is_low(to) && from != KILN_DTYPE_bool &&
                          to != KILN_DTYPE_bool && !kiln_dtype_is_float(from) &&
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

/* --- through f32, which holds every number of a low type --- */

typedef struct {
    KilnCpuToF32Row widen; /* NULL: the data is f32 */
    KilnCpuLowRow narrow;
    KilnCpuCastRow store; /* both NULL: the result is f32 */
    bool saturate;
    KilnRoundMode mode;
    char *to;
    const char *from;
    int64_t n;
    size_t to_size, from_size;
} LowCast;

/* One of the two is a low type; false where f32 does not hold the data, or there is no row. */
static bool
low_cast(const KilnInstr *instr, LowCast *out)
{
    const KilnInstrAttrs_cast *attrs = kiln_instr_attrs(instr, cast);
    const KilnDType to = cpu_type(instr, 0)->dtype, from = cpu_type(instr, 1)->dtype;
    const KilnCpuLowRows *rows = kiln_cpu_low(KILN_CPU_ISA_AUTO);
    const KilnCpuTypedRows *typed = kiln_cpu_typed(KILN_CPU_ISA_AUTO);
    const bool halves = kiln_dtype_is_half(from);
    *out = (LowCast){ .widen = halves ? typed->cast[from][KILN_DTYPE_f32] : rows->to_f32[from],
                      .narrow = rows->from_f32[to],
                      .store = kiln_dtype_is_half(to) ? typed->cast[KILN_DTYPE_f32][to] : NULL,
                      .saturate = attrs->saturate,
                      .mode = strcmp(attrs->round_mode, "down") == 0      ? KILN_ROUND_DOWN
                              : strcmp(attrs->round_mode, "nearest") == 0 ? KILN_ROUND_NEAREST
                                                                          : KILN_ROUND_UP,
                      .to_size = kiln_dtype_size(to),
                      .from_size = kiln_dtype_size(from) };
    return (is_low(to) || is_low(from)) && from != KILN_DTYPE_i32 &&
           (out->widen || from == KILN_DTYPE_f32) &&
           (out->narrow || out->store || to == KILN_DTYPE_f32);
}

static void
low_chunk(const LowCast *c, int64_t first, int64_t n)
{
    float wide[BLOCK_ELEMENTS];
    void *to = c->to + (size_t)first * c->to_size;
    const void *from = c->from + (size_t)first * c->from_size;
    const bool direct = !c->narrow && !c->store;
    const float *numbers = c->widen ? wide : from;
    if (c->widen)
        c->widen(direct ? to : (void *)wide, from, n);
    if (c->narrow)
        c->narrow(to, numbers, n, c->saturate, c->mode);
    else if (c->store)
        c->store(to, numbers, n);
}

static void
low_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const LowCast *c = data;
    const int64_t end = MIN((task + 1) * TASK_ELEMENTS, c->n);
    for (int64_t first = task * TASK_ELEMENTS; first < end; first += BLOCK_ELEMENTS)
        low_chunk(c, first, MIN(BLOCK_ELEMENTS, end - first));
}

bool
kiln_cpu_cast_supports(const KilnInstr *instr)
{
    const KilnType *to = cpu_type(instr, 0), *from = cpu_type(instr, 1);
    Cast c;
    LowCast low;
    return !to->layout && !from->layout && to->dtype != KILN_DTYPE_string &&
           (find_rows(from->dtype, to->dtype, &c) || low_cast(instr, &low));
}

const char *
kiln_cpu_cast(const KilnKernelArgs *args)
{
    const KilnType *to = cpu_type(args->instr, 0), *from = cpu_type(args->instr, 1);
    LowCast low;
    if (low_cast(args->instr, &low)) {
        low.to = args->data[0];
        low.from = args->data[1];
        low.n = kiln_type_elements(to);
        kiln_cpu_parallel(ceil_div(low.n, TASK_ELEMENTS), args->threads, low_task, &low);
        return NULL;
    }
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
