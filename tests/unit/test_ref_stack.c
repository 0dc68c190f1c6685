/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend's stack: what its steps give one by one, it gives at once, bit for bit. */
#include "ref_case.h"

static KilnStackStep *
case_steps(RefCase *c, uint32_t n)
{
    c->instr.n_steps = n;
    c->instr.steps = kiln_arena_new0(c->arena, KilnStackStep, n);
    for (uint32_t i = 0; i < n; i++)
        c->instr.steps[i].operand = -1;
    return c->instr.steps;
}

Test(ref_stack, steps_in_order)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_f32, DIMS(2, 2));
    case_in(c, KILN_DTYPE_f32, DIMS(2, 2), VALUES(-4, 3, 8, NAN));
    case_in(c, KILN_DTYPE_f32, DIMS(2), VALUES(10, 20));
    KilnStackStep *steps = case_steps(c, 4);
    steps[0].kind = KILN_INSTR_relu;
    steps[1] = (KilnStackStep){ KILN_INSTR_mul, NULL, true, 0.5, -1 };
    steps[2] = (KilnStackStep){ KILN_INSTR_sub, NULL, false, 0, 2 };
    steps[3].kind = KILN_INSTR_leaky_relu;
    KilnInstrAttrs_leaky_relu *attrs = kiln_instr_attrs_new(KILN_INSTR_leaky_relu, c->arena);
    attrs->alpha = 2;
    steps[3].attrs = attrs;
    case_gives(c, VALUES(-20, -37, -12, NAN), 0);
}

/* 1/3 rounded to f16 and then times 3 is not 1 in f32: each step rounds. */
Test(ref_stack, every_step_rounds_to_the_element_type)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_f32, DIMS(1));
    case_in(c, KILN_DTYPE_f16, DIMS(1), VALUES(49));
    KilnStackStep *steps = case_steps(c, 4);
    steps[0].kind = KILN_INSTR_reciprocal;
    steps[1].kind = KILN_INSTR_cast;
    steps[2] = (KilnStackStep){ KILN_INSTR_mul, NULL, true, 49, -1 };
    steps[3] = (KilnStackStep){ KILN_INSTR_sub, NULL, true, 1, -1 };
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
    KilnStackStep *steps = case_steps(c, 2);
    steps[0] = (KilnStackStep){ KILN_INSTR_add, NULL, true, 100, -1 };
    steps[1] = (KilnStackStep){ KILN_INSTR_div, NULL, false, 0, 2 };
    case_gives(c, VALUES(-28, -18, 0, 0), 0);
    ((int8_t *)c->data[2])[1] = 0;
    cr_expect_str_eq(case_run(c), "integer division by zero");
}

Test(ref_stack, results_of_another_type)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_bool, DIMS(3));
    case_in(c, KILN_DTYPE_i32, DIMS(3), VALUES(1, 2, 3));
    KilnStackStep *steps = case_steps(c, 3);
    steps[0] = (KilnStackStep){ KILN_INSTR_pow, NULL, true, 2, -1 };
    steps[1] = (KilnStackStep){ KILN_INSTR_greater, NULL, true, 3, -1 };
    steps[2].kind = KILN_INSTR_not;
    case_gives(c, VALUES(1, 0, 0), 0);
}

Test(ref_stack, stacks_without_meaning_are_refused)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
    case_out(c, KILN_DTYPE_i32, DIMS(1));
    case_in(c, KILN_DTYPE_i32, DIMS(1), VALUES(1));
    case_in(c, KILN_DTYPE_f32, DIMS(1), VALUES(1));
    KilnStackStep *steps = case_steps(c, 1);
    steps[0].kind = KILN_INSTR_exp; /* not for integers */
    cr_expect_null(case_kernel(c));
    steps[0].kind = KILN_INSTR_softmax; /* not element-wise */
    cr_expect_null(case_kernel(c));
    steps[0] = (KilnStackStep){ KILN_INSTR_add, NULL, false, 0, 2 }; /* another type */
    cr_expect_null(case_kernel(c));
    steps[0] = (KilnStackStep){ KILN_INSTR_add, NULL, false, 0, -1 }; /* no second operand */
    cr_expect_null(case_kernel(c));
    steps[0] = (KilnStackStep){ KILN_INSTR_add, NULL, false, 0, 3 }; /* one that is not there */
    cr_expect_null(case_kernel(c));
    steps[0] = (KilnStackStep){ KILN_INSTR_equal, NULL, true, 0, -1 }; /* gives a bool */
    cr_expect_null(case_kernel(c));
    steps[0].kind = KILN_INSTR_add;
    cr_expect_not_null(case_kernel(c));
}
