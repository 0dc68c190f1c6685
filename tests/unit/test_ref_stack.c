/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend's stack: what its steps give one by one, it gives at once, bit for bit. */
#include "ref_case.h"

#include "graph/base/number.h"
#include "ir/instr.h"
#include "ir/stack.h"

#include <math.h>

#define AT(i)                                                                                      \
    {                                                                                              \
        KILN_STACK_OPERAND, i, 0                                                                   \
    }
#define RESULT(i)                                                                                  \
    {                                                                                              \
        KILN_STACK_STEP, i, 0                                                                      \
    }
#define NUMBER(x)                                                                                  \
    {                                                                                              \
        KILN_STACK_SCALAR, 0, x                                                                    \
    }
/** A step that is not stored: its instruction, result type and sources. */
#define STEP(id, type, ...)                                                                        \
    {                                                                                              \
        .kind = KILN_INSTR_##id, .dtype = KILN_DTYPE_##type,                                       \
        .n_sources = sizeof((KilnStackSource[]){ __VA_ARGS__ }) / sizeof(KilnStackSource),         \
        .sources = { __VA_ARGS__ }, .store = -1                                                    \
    }

/** The steps in order; the last one is stored in operand 0. */
#define CASE_STEPS(c, ...)                                                                         \
    case_steps(c, (const KilnStackStep[]){ __VA_ARGS__ },                                          \
               sizeof((KilnStackStep[]){ __VA_ARGS__ }) / sizeof(KilnStackStep))

static KilnStackStep *
case_steps(RefCase *c, const KilnStackStep *steps, size_t n)
{
    c->instr.n_steps = (uint32_t)n;
    c->instr.steps = kiln_arena_copy(c->arena, steps, n * sizeof *steps);
    c->instr.steps[n - 1].store = 0;
    return c->instr.steps;
}

Test(ref_stack, steps_in_order)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_f32, DIMS(2, 2));
    case_in(c, KILN_DTYPE_f32, DIMS(2, 2), VALUES(-4, 3, 8, NAN));
    case_in(c, KILN_DTYPE_f32, DIMS(2), VALUES(10, 20));
    KilnStackStep *steps =
        CASE_STEPS(c, STEP(relu, f32, AT(1)), STEP(mul, f32, RESULT(0), NUMBER(0.5)),
                   STEP(sub, f32, RESULT(1), AT(2)), STEP(leaky_relu, f32, RESULT(2)));
    KilnInstrAttrs_leaky_relu *attrs = kiln_instr_attrs_new(KILN_INSTR_leaky_relu, c->arena);
    attrs->alpha = 2;
    steps[3].attrs = attrs;
    case_gives(c, VALUES(-20, -37, -12, NAN), 0);
}

/* A tree: two branches of one operand meet; the result of one is stored on the way. */
Test(ref_stack, trees_and_several_results)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_f32, DIMS(2, 2));
    case_out(c, KILN_DTYPE_bool, DIMS(2, 2));
    case_in(c, KILN_DTYPE_f32, DIMS(2, 2), VALUES(-4, 3, 8, 0));
    case_in(c, KILN_DTYPE_f32, DIMS(2, 1), VALUES(1, 2));
    KilnStackStep *steps = CASE_STEPS(
        c, STEP(neg, f32, AT(2)), STEP(greater, bool, RESULT(0), AT(3)),
        STEP(sub, f32, NUMBER(1), RESULT(0)), STEP(where, f32, RESULT(1), RESULT(2), NUMBER(7)));
    steps[1].store = 1;
    case_gives(c, VALUES(-3, 7, 7, 7), 0);
    case_expect(c, 1, VALUES(1, 0, 0, 0), 0);
}

/* 1/49 rounded to f16 and then times 49 is not 1 in f32: each step rounds. */
Test(ref_stack, every_step_rounds_to_the_element_type)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_f32, DIMS(1));
    case_in(c, KILN_DTYPE_f16, DIMS(1), VALUES(49));
    CASE_STEPS(c, STEP(reciprocal, f16, AT(1)), STEP(cast, f32, RESULT(0)),
               STEP(mul, f32, RESULT(1), NUMBER(49)), STEP(sub, f32, RESULT(2), NUMBER(1)));
    float third = kiln_f16_to_f32(kiln_f32_to_f16(1.f / 49));
    case_gives(c, VALUES((double)(third * 49.f - 1.f)), 0);
    cr_expect_neq(((float *)c->data[0])[0], 0);
}

Test(ref_stack, integers_wrap_and_divide)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_i8, DIMS(2, 2));
    case_in(c, KILN_DTYPE_i8, DIMS(2, 1), VALUES(100, -100));
    case_in(c, KILN_DTYPE_i8, DIMS(2), VALUES(2, 3));
    CASE_STEPS(c, STEP(add, i8, AT(1), NUMBER(100)), STEP(div, i8, RESULT(0), AT(2)));
    case_gives(c, VALUES(-28, -18, 0, 0), 0);
    ((int8_t *)c->data[2])[1] = 0;
    cr_expect_str_eq(case_run(c), "integer division by zero");
}

Test(ref_stack, results_of_another_type)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_bool, DIMS(3));
    case_in(c, KILN_DTYPE_i32, DIMS(3), VALUES(1, 2, 3));
    CASE_STEPS(c, STEP(pow, i32, AT(1), NUMBER(2)), STEP(greater, bool, RESULT(0), NUMBER(3)),
               STEP(not, bool, RESULT(1)));
    case_gives(c, VALUES(1, 0, 0), 0);
}

Test(ref_stack, clips_state_both_bounds)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_i64, DIMS(3));
    case_in(c, KILN_DTYPE_i64, DIMS(3), VALUES(-5, 0, 0x1p62));
    CASE_STEPS(c, STEP(clip, i64, AT(1), NUMBER(-INFINITY), NUMBER(INFINITY)),
               STEP(clip, i64, RESULT(0), NUMBER(-1), NUMBER(INFINITY)));
    case_gives(c, VALUES(-1, 0, 0x1p62), 0);
}

/* x quantized per channel, rescaled to one scale, and back to reals. */
Test(ref_stack, quantized_inside)
{
    static const float scales[] = { 0.5f, 0.25f }, one = 1.f;
    static const int32_t zeros[] = { 0, 3 }, zero = -1;
    const KilnQuant channels = { 1, 2, scales, zeros }, tensor = { -1, 1, &one, &zero };
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_f32, DIMS(2, 2));
    case_out(c, KILN_DTYPE_i8, DIMS(2, 2));
    case_in(c, KILN_DTYPE_f32, DIMS(2, 2), VALUES(1.2, 1.2, NAN, 1000));
    c->buffers[1].type.quant = &channels;
    KilnStackStep *steps =
        CASE_STEPS(c, STEP(quantize_linear, i8, AT(2)), STEP(rescale_quantized, i8, RESULT(0)),
                   STEP(dequantize_linear, f32, RESULT(1)));
    steps[0].store = 1;
    steps[0].quant = &channels;
    steps[1].quant = &tensor;
    case_gives(c, VALUES(1, 1, 0, 31), 0);
    case_expect(c, 1, VALUES(2, 8, 0, 127), 0);
}

static void *
last_axis(KilnArena *arena, KilnInstrKind kind)
{
    KilnInstrAttrs_reduce_sum *attrs = kiln_instr_attrs_new(kind, arena);
    attrs->axes = kiln_ints_make(arena, (int64_t[]){ -1 }, 1);
    return attrs;
}

/* Each group as it goes by, after the elements that are stored; halves are rounded before. */
Test(ref_stack, reductions_of_the_last_dims)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_f16, DIMS(2, 3));
    case_out(c, KILN_DTYPE_f16, DIMS(2, 1));
    case_out(c, KILN_DTYPE_f16, DIMS(2));
    case_in(c, KILN_DTYPE_f16, DIMS(2, 3), VALUES(1, 2, 3, -4, 2048, 6));
    case_in(c, KILN_DTYPE_f16, DIMS(2, 1), VALUES(2, 1));
    KilnStackStep *steps =
        CASE_STEPS(c, STEP(mul, f16, AT(3), AT(4)), STEP(add, f16, RESULT(0), NUMBER(1)),
                   STEP(reduce_mean, f16, RESULT(1)), STEP(reduce_min, f16, AT(3)));
    steps[1].store = 0;
    steps[2].store = 1;
    steps[3].store = 2;
    steps[2].attrs = last_axis(c->arena, KILN_INSTR_reduce_mean);
    steps[3].attrs = last_axis(c->arena, KILN_INSTR_reduce_min);
    case_gives(c, VALUES(3, 5, 7, -3, 2048, 7), 0);
    case_expect(c, 1, VALUES(5, 684), 0);
    case_expect(c, 2, VALUES(1, -4), 0);
}

Test(ref_stack, reductions_of_nothing)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_f32, DIMS(2));
    case_out(c, KILN_DTYPE_f32, DIMS(2));
    case_in(c, KILN_DTYPE_f32, DIMS(2, 0), NULL);
    KilnStackStep *steps =
        CASE_STEPS(c, STEP(reduce_max, f32, AT(2)), STEP(reduce_mean, f32, AT(2)));
    steps[0].store = 0;
    steps[1].store = 1;
    steps[0].attrs = last_axis(c->arena, KILN_INSTR_reduce_max);
    steps[1].attrs = last_axis(c->arena, KILN_INSTR_reduce_mean);
    case_gives(c, VALUES(-INFINITY, -INFINITY), 0);
    case_expect(c, 1, VALUES(NAN, NAN), 0);
}

Test(ref_stack, steps_without_an_operation_are_refused)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_i32, DIMS(1));
    case_in(c, KILN_DTYPE_i32, DIMS(1), VALUES(1));
    CASE_STEPS(c, STEP(exp, i32, AT(1))); /* not for integers */
    cr_expect_null(case_kernel(c));
    CASE_STEPS(c, STEP(add, i32, AT(1), NUMBER(1)));
    cr_expect_not_null(case_kernel(c));
}
