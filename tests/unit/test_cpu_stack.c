/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks on the cpu backend: the bits of their steps run as instructions on the same backend, each
 * of which is held against the reference kernel on the same operands. Random stacks over every form
 * of broadcasting, with special values, and one for each loop of several steps. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/stack/stack.h"
#include "backends/cpu/stack/stack_fused.h"
#include "graph/base/number.h"
#include "ir/stack.h"
#include "ir/target.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- cases --- */

typedef struct {
    int rank;
    int64_t dims[6];
} Shape;

static const Shape spaces[] = {
    { 0, { 0 } },
    { 1, { 0 } },
    { 1, { 1 } },
    { 1, { 517 } },
    { 1, { 9001 } },
    { 2, { 3, 50 } },
    { 2, { 700, 3 } },
    { 2, { 5, 600 } },
    { 2, { 41, 130 } },
    { 2, { 3, 0 } },
    { 3, { 4, 9, 33 } },
    { 3, { 2, 3, 1025 } },
    { 4, { 2, 5, 7, 7 } },
    { 4, { 1, 8, 12, 12 } },
    { 6, { 2, 3, 2, 3, 2, 5 } },
};

static uint32_t
draw(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(*state >> 8) * below >> 24);
}

static const float specials[] = { 0.0f,       -0.0f,    1.0f,     -1.0f,  INFINITY, -INFINITY,
                                  NAN,        3.4e38f,  -3.4e38f, 1e-38f, -1e-45f,  1e-40f,
                                  2147483648, -129.0f,  255.5f,   -0.5f,  88.8f,    -104.5f,
                                  0.625f,     16777216, -9.3e18f, 6.0f,   3.0f,     -3.0f };

/* Every third value is special. */
static void
fill(RefCase *c, uint32_t i, uint32_t *state)
{
    const KilnType *type = &c->buffers[i].type;
    for (int64_t k = 0; k < kiln_type_elements(type); k++) {
        const bool special = draw(state, 3) == 0;
        const double plain = (double)draw(state, 1 << 20) / (1 << 17) - 4;
        const double value =
            special ? (double)specials[draw(state, G_N_ELEMENTS(specials))] : plain;
        if (type->dtype == KILN_DTYPE_bool) /* any byte but 0 is true */
            ((uint8_t *)c->data[i])[k] = (uint8_t)(draw(state, 3) * 127);
        else
            kiln_element_store_f64(type->dtype, c->data[i], k, value);
    }
}

/* A shape that broadcasts to @space: some dims are 1, some of the first are left out. */
static Shape
broadcast_shape(const Shape *space, uint32_t *state)
{
    Shape shape = { 0 };
    const uint32_t form = draw(state, 3);
    if (form == 0)
        return *space;
    const int skip = space->rank ? (int)draw(state, (uint32_t)space->rank + 1) : 0;
    for (int d = skip; d < space->rank; d++)
        shape.dims[shape.rank++] = form == 1 && draw(state, 2) ? space->dims[d] : 1;
    return shape;
}

static void
add_in(RefCase *c, KilnDType dtype, const Shape *shape, uint32_t *state)
{
    case_in(c, dtype, shape->rank, shape->dims, NULL);
    fill(c, c->instr.n_operands - 1, state);
}

static void
set_steps(RefCase *c, const KilnStackStep *steps, uint32_t n)
{
    c->instr.n_steps = n;
    c->instr.steps = kiln_arena_copy(c->arena, steps, n * sizeof *steps);
}

/* --- steps as instructions --- */

/* The results of the steps so far, as operands. */
typedef struct {
    KilnType types[KILN_STACK_STEPS_MAX];
    void *data[KILN_STACK_STEPS_MAX];
} Results;

static void
widen(KilnType *to, const KilnType *from)
{
    for (; to->rank < from->rank; to->rank++) {
        memmove(to->dims + 1, to->dims, (size_t)to->rank * sizeof *to->dims);
        to->dims[0] = 1;
    }
    for (int d = 0; d < from->rank; d++) {
        int64_t *dim = &to->dims[to->rank - from->rank + d];
        *dim = from->dims[d] == 1 ? *dim : from->dims[d];
    }
}

static KilnType
source_type(const RefCase *c, const Results *results, uint32_t i, uint32_t k)
{
    const KilnStackSource *source = &c->instr.steps[i].sources[k];
    return source->kind == KILN_STACK_STEP ? results->types[source->index]
           : source->kind == KILN_STACK_OPERAND
               ? c->buffers[source->index].type
               : kiln_type_scalar(kiln_stack_source_dtype(&c->instr, i, k));
}

/* Step @i alone, on what the steps before gave. */
static RefCase *
step_case(const RefCase *c, const Results *results, uint32_t i)
{
    const KilnStackStep *step = &c->instr.steps[i];
    RefCase *alone = case_new(step->kind);
    KilnType type = kiln_type_scalar(step->dtype);
    for (uint32_t k = 0; k < step->n_sources; k++) {
        const KilnType source = source_type(c, results, i, k);
        widen(&type, &source);
    }
    case_out(alone, step->dtype, type.rank, type.dims);
    alone->buffers[0].type.quant = step->quant;
    if (step->attrs)
        alone->instr.attrs = step->attrs;
    for (uint32_t k = 0; k < step->n_sources; k++) {
        const KilnStackSource *source = &step->sources[k];
        const KilnType from = source_type(c, results, i, k);
        case_in(alone, from.dtype, from.rank, from.dims,
                source->kind == KILN_STACK_SCALAR ? &source->scalar : NULL);
        alone->buffers[k + 1].type.quant = from.quant;
        const void *data =
            source->kind == KILN_STACK_STEP ? results->data[source->index] : c->data[source->index];
        if (source->kind != KILN_STACK_SCALAR)
            memcpy(alone->data[k + 1], data, (size_t)kiln_type_bytes(&from));
    }
    return alone;
}

static bool
same_elements(const KilnType *type, const void *a, const void *b)
{
    const size_t size = kiln_dtype_size(type->dtype);
    for (int64_t k = 0; k < kiln_type_elements(type); k++) {
        const bool nans = kiln_dtype_is_float(type->dtype) &&
                          isnan(kiln_element_as_f64(type->dtype, a, k)) &&
                          isnan(kiln_element_as_f64(type->dtype, b, k));
        const size_t at = (size_t)k * size;
        if (!nans && memcmp((const char *)a + at, (const char *)b + at, size) != 0)
            return false;
    }
    return true;
}

/* What step @i gave is spread over the space as the stack's result would be. */
static void *
spread(const KilnType *type, const void *data, const KilnType *space)
{
    const size_t size = kiln_dtype_size(type->dtype);
    const int64_t n = kiln_type_elements(space);
    char *to = malloc((size_t)n * size + 1);
    for (int64_t e = 0; e < n; e++) {
        int64_t left = e, from = 0, step = 1;
        for (int d = space->rank - 1; d >= 0; d--) {
            const int at = d - (space->rank - type->rank);
            if (at >= 0 && type->dims[at] != 1)
                from += left % space->dims[d] * step;
            step *= at >= 0 ? type->dims[at] : 1;
            left /= space->dims[d];
        }
        memcpy(to + (size_t)e * size, (const char *)data + (size_t)from * size, size);
    }
    return to;
}

/* Runs every step alone on cpu, and holds it against ref; writes what is stored to the case's
 * results. */
static void
run_steps(RefCase *c, Tolerance tolerance, const char *what)
{
    Results results = { .data = { NULL } };
    for (uint32_t i = 0; i < c->instr.n_steps; i++) {
        const KilnStackStep *step = &c->instr.steps[i];
        g_autoptr(RefCase) alone = step_case(c, &results, i);
        void *out[CASE_MAX_OPERANDS] = { NULL };
        cr_assert_null(cpu_run(alone, &(CpuCall){ .threads = 1 }, out));
        cr_assert_null(case_run(alone));
        cpu_compare(alone, 0, out[0], tolerance, what);
        results.types[i] = alone->buffers[0].type;
        results.data[i] = out[0];
        if (step->store >= 0) {
            const KilnType *space = &c->buffers[step->store].type;
            free(c->data[step->store]);
            c->data[step->store] = spread(&results.types[i], out[0], space);
        }
    }
    for (uint32_t i = 0; i < c->instr.n_steps; i++)
        free(results.data[i]);
}

static void
expect_results(const RefCase *c, const CpuCall *call, const char *what)
{
    void *out[CASE_MAX_OPERANDS] = { NULL };
    cr_assert_null(cpu_run(c, call, out));
    for (uint32_t i = 0; i < c->instr.n_operands; i++) {
        if (out[i])
            cr_assert(same_elements(&c->buffers[i].type, c->data[i], out[i]),
                      "%s: other bits in operand %u, %d threads, shifted %u, over %u", what, i,
                      call->threads, call->shift, call->alias);
    }
    cpu_free(out);
}

/* In every way to run it the stack gives what its steps give. */
static void
check_stack(RefCase *c, Tolerance tolerance, const char *what)
{
    run_steps(c, tolerance, what);
    for (int threads = 1; threads <= 4; threads++)
        expect_results(c, &(CpuCall){ .threads = threads, .shift = threads == 2 ? 8 : 0 }, what);
    for (uint32_t i = 1; i < c->instr.n_operands; i++) {
        if (kiln_instr_may_share(&c->instr, 0, i))
            expect_results(c, &(CpuCall){ .threads = 2, .alias = i }, what);
    }
}

/* --- random stacks --- */

static const float scales[] = { 0.05f, 0.1f, 0.02f };
static const int32_t zeros[] = { 3, 100, -7 };
static const KilnQuant quants[] = { { -1, 1, &scales[0], &zeros[0] },
                                    { -1, 1, &scales[1], &zeros[1] },
                                    { -1, 1, &scales[2], &zeros[2] } };

/* What is drawn from: kinds by the types of their operands. */
static const KilnInstrKind exact_unary[] = {
    KILN_INSTR_abs,
    KILN_INSTR_ceil,
    KILN_INSTR_floor,
    KILN_INSTR_neg,
    KILN_INSTR_relu,
    KILN_INSTR_reciprocal,
    KILN_INSTR_round,
    KILN_INSTR_sign,
    KILN_INSTR_sqrt,
    KILN_INSTR_leaky_relu,
    KILN_INSTR_thresholded_relu,
};
static const KilnInstrKind close_unary[] = {
    KILN_INSTR_elu,  KILN_INSTR_erf,      KILN_INSTR_exp,        KILN_INSTR_gelu,
    KILN_INSTR_log,  KILN_INSTR_sigmoid,  KILN_INSTR_swish,      KILN_INSTR_softplus,
    KILN_INSTR_tanh, KILN_INSTR_softsign, KILN_INSTR_hard_swish, KILN_INSTR_sin,
    KILN_INSTR_cos,  KILN_INSTR_atan,
};
static const KilnInstrKind binary[] = { KILN_INSTR_add, KILN_INSTR_sub,  KILN_INSTR_mul,
                                        KILN_INSTR_div, KILN_INSTR_max,  KILN_INSTR_min,
                                        KILN_INSTR_sum, KILN_INSTR_prelu };
static const KilnInstrKind integer[] = { KILN_INSTR_add, KILN_INSTR_sub, KILN_INSTR_mul };
static const KilnInstrKind comparisons[] = { KILN_INSTR_equal, KILN_INSTR_greater,
                                             KILN_INSTR_greater_or_equal, KILN_INSTR_less,
                                             KILN_INSTR_less_or_equal };
static const KilnInstrKind logic[] = { KILN_INSTR_and, KILN_INSTR_or, KILN_INSTR_xor };
#define DRAW(state, list) list[draw(state, G_N_ELEMENTS(list))]

typedef struct {
    RefCase *c;
    uint32_t *state;
    KilnStackStep steps[KILN_STACK_STEPS_MAX];
    uint32_t n, n_out;
} Builder;

/* An earlier step or an operand of @dtype, or a number; false where there is none to read. */
static bool
draw_source(Builder *b, KilnDType dtype, bool number, KilnStackSource *out)
{
    if (number && draw(b->state, 4) == 0) {
        *out = (KilnStackSource){ KILN_STACK_SCALAR, 0, (double)draw(b->state, 9) / 2 - 2 };
        return true;
    }
    KilnStackSource found[KILN_STACK_STEPS_MAX + CASE_MAX_OPERANDS];
    uint32_t n = 0;
    for (uint32_t i = b->n_out; i < b->c->instr.n_operands; i++) {
        if (b->c->buffers[i].type.dtype == dtype && !b->c->buffers[i].type.quant)
            found[n++] = (KilnStackSource){ KILN_STACK_OPERAND, i, 0 };
    }
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->steps[i].dtype == dtype && !b->steps[i].quant)
            found[n++] = (KilnStackSource){ KILN_STACK_STEP, i, 0 };
    }
    /* The last ones more often: chains. */
    if (n)
        *out = draw(b->state, 2) ? found[n - 1] : found[draw(b->state, n)];
    return n > 0;
}

static bool
draw_sources(Builder *b, KilnStackStep *step, uint32_t n, KilnDType dtype)
{
    for (uint32_t k = 0; k < n; k++) {
        if (!draw_source(b, dtype, k > 0, &step->sources[step->n_sources++]))
            return false;
    }
    return true;
}

static bool
draw_conversion(Builder *b, KilnStackStep *step)
{
    static const KilnDType others[] = { KILN_DTYPE_i32,  KILN_DTYPE_i64, KILN_DTYPE_f16,
                                        KILN_DTYPE_bf16, KILN_DTYPE_i8,  KILN_DTYPE_u8,
                                        KILN_DTYPE_bool };
    KilnDType from = KILN_DTYPE_f32;
    step->kind = KILN_INSTR_cast;
    step->dtype = DRAW(b->state, others);
    if (draw(b->state, 2)) {
        from = step->dtype;
        step->dtype = KILN_DTYPE_f32;
    }
    return draw_sources(b, step, 1, from);
}

/* x is quantized, perhaps rescaled, and dequantized: three steps at once. */
static bool
draw_quantized(Builder *b, KilnStackStep *step)
{
    static const KilnDType stored[] = { KILN_DTYPE_i8, KILN_DTYPE_u8, KILN_DTYPE_i16,
                                        KILN_DTYPE_u16 };
    step->kind = KILN_INSTR_quantize_linear;
    step->dtype = DRAW(b->state, stored);
    step->quant = &quants[draw(b->state, 2)];
    if (b->n + 3 > KILN_STACK_STEPS_MAX || !draw_sources(b, step, 1, KILN_DTYPE_f32))
        return false;
    b->steps[b->n++] = *step;
    *step = (KilnStackStep){ .kind = KILN_INSTR_rescale_quantized,
                             .dtype = DRAW(b->state, stored),
                             .quant = &quants[draw(b->state, 2)],
                             .n_sources = 1,
                             .sources = { { KILN_STACK_STEP, b->n - 1, 0 } },
                             .store = -1 };
    b->steps[b->n++] = *step;
    *step = (KilnStackStep){ .kind = KILN_INSTR_dequantize_linear,
                             .dtype = KILN_DTYPE_f32,
                             .n_sources = 1,
                             .sources = { { KILN_STACK_STEP, b->n - 1, 0 } },
                             .store = -1 };
    return true;
}

static bool
draw_where(Builder *b, KilnStackStep *step)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_f32, KILN_DTYPE_f32, KILN_DTYPE_i64,
                                        KILN_DTYPE_f16, KILN_DTYPE_u8 };
    step->kind = KILN_INSTR_where;
    step->dtype = DRAW(b->state, dtypes);
    return draw_sources(b, step, 1, KILN_DTYPE_bool) && draw_sources(b, step, 2, step->dtype);
}

static bool
draw_step(Builder *b, KilnStackStep *step)
{
    const KilnDType whole = draw(b->state, 2) ? KILN_DTYPE_i32 : KILN_DTYPE_i64;
    *step = (KilnStackStep){ .dtype = KILN_DTYPE_f32, .store = -1 };
    switch (draw(b->state, 14)) {
    case 0:
    case 1:
        step->kind = DRAW(b->state, exact_unary);
        return draw_sources(b, step, 1, KILN_DTYPE_f32);
    case 2:
        step->kind = DRAW(b->state, close_unary);
        return draw_sources(b, step, 1, KILN_DTYPE_f32);
    case 3:
        step->kind = KILN_INSTR_clip;
        step->n_sources = 1;
        step->sources[1] = (KilnStackSource){ KILN_STACK_SCALAR, 0, draw(b->state, 8) ? -1 : NAN };
        step->sources[2] = (KilnStackSource){ KILN_STACK_SCALAR, 0, INFINITY };
        step->n_sources = 3;
        return draw_source(b, KILN_DTYPE_f32, false, &step->sources[0]);
    case 4:
        step->kind = DRAW(b->state, comparisons);
        step->dtype = KILN_DTYPE_bool;
        return draw_sources(b, step, 2, draw(b->state, 2) ? KILN_DTYPE_f32 : whole);
    case 5:
        return draw_where(b, step);
    case 6:
        step->kind = DRAW(b->state, logic);
        step->dtype = KILN_DTYPE_bool;
        return draw_sources(b, step, 2, KILN_DTYPE_bool);
    case 7:
        step->kind = DRAW(b->state, integer);
        step->dtype = whole;
        return draw_sources(b, step, 2, whole);
    case 8:
        return draw_conversion(b, step);
    case 9:
        return draw_quantized(b, step);
    default:
        step->kind = DRAW(b->state, binary);
        return draw_sources(b, step, 2, KILN_DTYPE_f32);
    }
}

/* Operands: up to three results, whose types are set once the steps are known, then what is read.
 */
static RefCase *
random_stack(uint32_t seed)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_f32,  KILN_DTYPE_f32, KILN_DTYPE_f32,
                                        KILN_DTYPE_f32,  KILN_DTYPE_i64, KILN_DTYPE_i32,
                                        KILN_DTYPE_bool, KILN_DTYPE_f16, KILN_DTYPE_u8 };
    uint32_t state = seed * 2654435761u + 99;
    const Shape *space = &DRAW(&state, spaces);
    Builder b = { .c = case_new(KILN_INSTR_stack), .state = &state, .n_out = 1 + draw(&state, 3) };
    const uint32_t n_in = 1 + draw(&state, 5), n_steps = b.n_out + draw(&state, 8);
    while (b.c->instr.n_operands < b.n_out)
        b.c->instr.n_operands++;
    for (uint32_t i = 0; i < n_in; i++) {
        const Shape shape = i == 0 ? *space : broadcast_shape(space, &state);
        add_in(b.c, i == 0 ? KILN_DTYPE_f32 : DRAW(&state, dtypes), &shape, &state);
    }
    for (int tries = 0; b.n < n_steps && tries < 200; tries++) {
        KilnStackStep step;
        if (draw_step(&b, &step))
            b.steps[b.n++] = step;
    }
    /* The last steps are stored, each in an operand of its own; f32 again at the end. */
    const uint32_t n_in_all = b.c->instr.n_operands;
    for (uint32_t k = 0; k < b.n_out; k++) {
        KilnStackStep *step = &b.steps[b.n - 1 - k];
        step->store = (int32_t)k;
        b.c->instr.n_operands = k;
        case_out(b.c, step->dtype, space->rank, space->dims);
        b.c->buffers[k].type.quant = step->quant;
    }
    b.c->instr.n_operands = n_in_all;
    set_steps(b.c, b.steps, b.n);
    for (uint32_t i = 0; i < b.n; i++)
        b.c->instr.steps[i].attrs = kiln_instr_attrs_new(b.steps[i].kind, b.c->arena);
    return b.c;
}

/* KILN_TEST_LONG: many more. */
Test(cpu_stack, random)
{
    const uint32_t n = getenv("KILN_TEST_LONG") ? 20000 : 600;
    for (uint32_t seed = 1; seed <= n; seed++) {
        g_autoptr(RefCase) c = random_stack(seed);
        g_autofree char *what = g_strdup_printf("stack %u", seed);
        check_stack(c, (Tolerance){ 1e-37, 4e-6 }, what);
    }
}

/* --- several steps in one loop --- */

#define AT(i)                                                                                      \
    {                                                                                              \
        KILN_STACK_OPERAND, i, 0                                                                   \
    }
#define RESULT(i)                                                                                  \
    {                                                                                              \
        KILN_STACK_STEP, i, 0                                                                      \
    }
#define STEP(id, ...)                                                                              \
    {                                                                                              \
        .kind = KILN_INSTR_##id, .dtype = KILN_DTYPE_f32,                                          \
        .n_sources = sizeof((KilnStackSource[]){ __VA_ARGS__ }) / sizeof(KilnStackSource),         \
        .sources = { __VA_ARGS__ }, .store = -1                                                    \
    }

static uint32_t
n_ops(const RefCase *c)
{
    KilnCpuStack stack;
    cr_assert(kiln_cpu_stack_compile(&c->instr, &stack));
    return stack.n_ops;
}

/* An instruction that the loop of @unary computes. */
static KilnStackStep
unary_step(KilnArena *arena, int unary, KilnStackSource source)
{
    KilnStackStep step = {
        .dtype = KILN_DTYPE_f32, .n_sources = 1, .sources = { source }, .store = -1
    };
    step.kind = KILN_INSTR_pow;
    step.sources[1] = (KilnStackSource){ KILN_STACK_SCALAR, 0, 2 };
    switch (unary) {
#define UNARY(id)                                                                                  \
    case KILN_CPU_UNARY_##id:                                                                      \
        step.kind = KILN_INSTR_##id;                                                               \
        break;
#define VARIANT(id)
#define BINARY(id)
#define COMPARE(id)
#include "backends/cpu/elementwise/elementwise.def"
    default:
        step.n_sources = 2;
    }
    if (step.kind == KILN_INSTR_clip) {
        step.n_sources = 3;
        step.sources[1].scalar = -1;
        step.sources[2] = (KilnStackSource){ KILN_STACK_SCALAR, 0, 1.5 };
    }
    step.attrs = kiln_instr_attrs_new(step.kind, arena);
    return step;
}

static KilnStackStep
binary_step(int op, KilnStackSource first, KilnStackSource second)
{
    static const KilnInstrKind kinds[] = {
#define UNARY(id)
#define BINARY(id) [KILN_CPU_BINARY_##id] = KILN_INSTR_##id,
#define COMPARE(id)
#include "backends/cpu/elementwise/elementwise.def"
    };
    return (KilnStackStep){ .kind = kinds[op],
                            .dtype = KILN_DTYPE_f32,
                            .n_sources = 2,
                            .sources = { first, second },
                            .store = -1 };
}

/* The steps of a row of stack_fused.def on operands 1, 2 and 3. */
static uint32_t
fused_steps(KilnArena *arena, const KilnCpuFused *fused, KilnStackStep *steps)
{
    const KilnStackSource a = AT(1), b = AT(2), c = AT(3), first = RESULT(0), second = RESULT(1),
                          third = RESULT(2);
    switch (fused->shape) {
    case KILN_CPU_FUSED_PAIR:
        steps[0] = binary_step(fused->ops[1], a, b);
        steps[1] = unary_step(arena, fused->ops[0], first);
        return 2;
    case KILN_CPU_FUSED_CHAIN:
        steps[0] = binary_step(fused->ops[1], a, b);
        steps[1] = binary_step(fused->ops[0], first, c);
        return 2;
    case KILN_CPU_FUSED_TRIPLE:
        steps[0] = binary_step(fused->ops[2], a, b);
        steps[1] = binary_step(fused->ops[1], first, c);
        steps[2] = unary_step(arena, fused->ops[0], second);
        return 3;
    case KILN_CPU_FUSED_QUAD:
        steps[0] = binary_step(fused->ops[3], a, b);
        steps[1] = binary_step(fused->ops[2], first, c);
        steps[2] = unary_step(arena, fused->ops[1], second);
        steps[3] = unary_step(arena, fused->ops[0], third);
        return 4;
    case KILN_CPU_FUSED_GATE:
        steps[0] = unary_step(arena, fused->ops[1], a);
        steps[1] = binary_step(fused->ops[0], first, b);
        return 2;
    default:
        steps[0] = unary_step(arena, fused->ops[1], a);
        steps[1] = unary_step(arena, fused->ops[2], b);
        steps[2] = binary_step(fused->ops[0], first, second);
        return 3;
    }
}

/* Every row of the table, with every operand but the first as one element a row, or not. */
Test(cpu_stack, every_loop_of_several_steps)
{
    static const Shape whole = { 3, { 2, 3, 200 } }, per_row = { 3, { 2, 3, 1 } };
    uint32_t state = 5;
    for (const KilnCpuFused *fused = kiln_cpu_fused(KILN_CPU_ISA_AUTO); fused->rows[0]; fused++) {
        for (int form = 0; form < KILN_CPU_FUSED_FORMS; form++) {
            if (!fused->rows[form])
                continue;
            KilnStackStep steps[KILN_CPU_FUSED_STEPS];
            g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
            case_out(c, KILN_DTYPE_f32, whole.rank, whole.dims);
            add_in(c, KILN_DTYPE_f32, &whole, &state);
            add_in(c, KILN_DTYPE_f32, form & 1 ? &per_row : &whole, &state);
            add_in(c, KILN_DTYPE_f32, form & 2 ? &per_row : &whole, &state);
            const uint32_t n = fused_steps(c->arena, fused, steps);
            steps[n - 1].store = 0;
            set_steps(c, steps, n);
            g_autofree char *what = g_strdup_printf(
                "row %d, form %d", (int)(fused - kiln_cpu_fused(KILN_CPU_ISA_AUTO)), form);
            cr_expect_eq(n_ops(c), 1, "%s: %u loops", what, n_ops(c));
            check_stack(c, (Tolerance){ 1e-37, 4e-6 }, what);
        }
    }
}

/* x is written over before the sum of it would be computed, were it computed with the relu. */
Test(cpu_stack, steps_do_not_pass_what_is_stored)
{
    static const Shape shape = { 1, { 300 } };
    uint32_t state = 7;
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_f32, shape.rank, shape.dims);
    case_out(c, KILN_DTYPE_f32, shape.rank, shape.dims);
    add_in(c, KILN_DTYPE_f32, &shape, &state);
    add_in(c, KILN_DTYPE_f32, &shape, &state);
    set_steps(c,
              (KilnStackStep[]){ STEP(add, AT(2), AT(3)), STEP(neg, AT(2)), STEP(relu, RESULT(0)) },
              3);
    c->instr.steps[1].store = 0;
    c->instr.steps[2].store = 1;
    cr_assert(kiln_instr_may_share(&c->instr, 0, 2));
    check_stack(c, (Tolerance){ 0, 0 }, "stored between");
}

/* What is read twice, or stored, is computed once. */
Test(cpu_stack, shared_results_stay)
{
    static const Shape shape = { 1, { 300 } };
    uint32_t state = 9;
    for (int stored = 0; stored < 2; stored++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
        case_out(c, KILN_DTYPE_f32, shape.rank, shape.dims);
        case_out(c, KILN_DTYPE_f32, shape.rank, shape.dims);
        add_in(c, KILN_DTYPE_f32, &shape, &state);
        add_in(c, KILN_DTYPE_f32, &shape, &state);
        set_steps(c,
                  (KilnStackStep[]){ STEP(add, AT(2), AT(3)), STEP(relu, RESULT(0)),
                                     STEP(neg, RESULT(0)) },
                  stored ? 2 : 3);
        c->instr.steps[1].store = 0;
        c->instr.steps[stored ? 0 : 2].store = 1;
        cr_expect_eq(n_ops(c), stored ? 2 : 3);
        check_stack(c, (Tolerance){ 0, 0 }, "shared");
    }
}

/* --- bounds that are known at run time, and what is refused --- */

Test(cpu_stack, clip_by_operands)
{
    static const Shape all[] = { { 2, { 3, 300 } }, { 1, { 1 } } }, one = { 0, { 0 } };
    for (uint32_t i = 0; i < 6; i++) {
        const Shape *shape = &all[i / 3];
        uint32_t state = i;
        g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
        case_out(c, KILN_DTYPE_f32, shape->rank, shape->dims);
        add_in(c, KILN_DTYPE_f32, shape, &state);
        add_in(c, KILN_DTYPE_f32, &one, &state);
        add_in(c, KILN_DTYPE_f32, &one, &state);
        *(float *)c->data[2] = i % 3 == 0 ? -1 : i % 3 == 1 ? NAN : 2;
        *(float *)c->data[3] = i % 3 == 0 ? 1.5f : 1;
        set_steps(c, (KilnStackStep[]){ STEP(neg, AT(1)), STEP(clip, RESULT(0), AT(2), AT(3)) }, 2);
        c->instr.steps[1].store = 0;
        check_stack(c, (Tolerance){ 0, 0 }, "clip");
    }
}

static void
expect_refused(KilnStackStep step, KilnDType in, const KilnQuant *quant)
{
    static const Shape shape = { 2, { 3, 2 } };
    uint32_t state = 1;
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, step.dtype, shape.rank, shape.dims);
    add_in(c, in, &shape, &state);
    add_in(c, in, &shape, &state);
    c->buffers[1].type.quant = quant;
    step.store = 0;
    set_steps(c, &step, 1);
    c->instr.steps[0].attrs = kiln_instr_attrs_new(step.kind, c->arena);
    cr_expect_null(kiln_target_find(kiln_cpu_target(), &c->instr), "%s",
                   kiln_instr_info(step.kind)->name);
}

/* What has no vector loop is left to instructions of their own. */
Test(cpu_stack, refuses)
{
    const KilnQuant two = { 1, 2, (float[]){ 0.3f, 0.5f }, (int32_t[]){ 17, 0 } };
    expect_refused((KilnStackStep)STEP(mod, AT(1), AT(2)), KILN_DTYPE_f32, NULL);
    expect_refused((KilnStackStep)STEP(mod, AT(1), AT(2)), KILN_DTYPE_i32, NULL);
    expect_refused((KilnStackStep)STEP(pow, AT(1), AT(2)), KILN_DTYPE_f32, NULL);
    expect_refused((KilnStackStep)STEP(mean, AT(1), AT(2)), KILN_DTYPE_f32, NULL);
    expect_refused((KilnStackStep)STEP(clip, AT(1), AT(1), AT(2)), KILN_DTYPE_f32, NULL);
    expect_refused((KilnStackStep)STEP(dequantize_linear, AT(1)), KILN_DTYPE_u8, &two);
    KilnStackStep f16 = STEP(add, AT(1), AT(2));
    f16.dtype = KILN_DTYPE_f16;
    expect_refused(f16, KILN_DTYPE_f16, NULL);
}
