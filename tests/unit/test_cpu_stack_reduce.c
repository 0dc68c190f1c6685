/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that end with reductions on the cpu backend: the bits of the stack without them and of the
 * reductions run on its results, for any number of threads; close to the reference kernel. Short
 * rows in bundles, rows with operands of their own, blocks, and pieces of long rows. */
#include "backends/cpu/cpu.h"
#include "ir/stack.h"
#include "ir/target.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <string.h>

typedef struct {
    int rank;
    int64_t dims[4];
    int reduced;  /* of the last dims */
    bool per_row; /* the second operand has one element for each group */
    bool supported;
} Shape;

static const Shape shapes[] = {
    { 2, { 300, 3 }, 1, false, true },      { 2, { 300, 3 }, 1, true, true },
    { 2, { 70, 49 }, 1, false, true },      { 4, { 1, 70, 7, 7 }, 2, true, true },
    { 4, { 2, 9, 14, 14 }, 2, true, true }, { 3, { 4, 5, 700 }, 1, false, true },
    { 3, { 4, 5, 700 }, 2, false, true },   { 3, { 2, 3, 4100 }, 1, true, true },
    { 2, { 3, 12544 }, 1, false, true },    { 1, { 100001 }, 1, false, true },
    { 2, { 3, 70001 }, 1, true, true },     { 4, { 1, 5, 112, 112 }, 2, false, true },
    { 2, { 5, 1 }, 1, false, true },        { 4, { 2, 90, 1, 1 }, 2, true, true },
    { 2, { 1, 1 }, 1, false, true },        { 2, { 5, 0 }, 1, false, false },
};

static const KilnInstrKind kinds[] = {
    KILN_INSTR_reduce_sum,        KILN_INSTR_reduce_mean, KILN_INSTR_reduce_max,
    KILN_INSTR_reduce_min,        KILN_INSTR_reduce_l1,   KILN_INSTR_reduce_l2,
    KILN_INSTR_reduce_sum_square,
};

/* Some elements are special: zeros of both signs, and with @specials infinities and NaNs. */
static void
fill(RefCase *c, uint32_t i, bool specials)
{
    static const float values[] = { 0.0f, -0.0f, INFINITY, NAN, -INFINITY };
    cpu_fill(c, i, specials ? 1 : 2);
    const int64_t n = kiln_type_elements(&c->buffers[i].type);
    for (int64_t k = 0; k < n; k += 1 + (k * 7 + 3) % 90)
        ((float *)c->data[i])[k] = values[k % (specials ? 5 : 2)];
}

static void *
axes_of(KilnArena *arena, KilnInstrKind kind, const Shape *shape)
{
    KilnInstrAttrs_reduce_sum *attrs = kiln_instr_attrs_new(kind, arena);
    int64_t axes[4];
    for (int k = 0; k < shape->reduced; k++)
        axes[k] = k % 2 ? -1 - k : shape->rank - 1 - k;
    attrs->axes = kiln_ints_make(arena, axes, (uint32_t)shape->reduced);
    return attrs;
}

/* @stored: the element-wise result, and with @reduced the reductions of it and of the operand. */
static RefCase *
stack_case(const Shape *shape, bool stored, bool reduced, bool specials)
{
    const uint32_t n_reduced = reduced ? G_N_ELEMENTS(kinds) + 1 : 0;
    const uint32_t first = stored + n_reduced; /* @in operand */
    KilnStackStep steps[3 + G_N_ELEMENTS(kinds) + 1] = {
        { .kind = KILN_INSTR_mul,
          .sources = { { KILN_STACK_OPERAND, first, 0 }, { KILN_STACK_OPERAND, first + 1, 0 } } },
        { .kind = KILN_INSTR_swish, .sources = { { KILN_STACK_STEP, 0, 0 } } },
        { .kind = KILN_INSTR_sub,
          .sources = { { KILN_STACK_STEP, 1, 0 }, { KILN_STACK_STEP, 0, 0 } } },
    };
    int64_t kept[4], per_row[4];
    RefCase *c = case_new(KILN_INSTR_stack);
    for (int d = 0; d < shape->rank; d++)
        kept[d] = per_row[d] = d < shape->rank - shape->reduced ? shape->dims[d] : 1;
    if (stored)
        case_out(c, KILN_DTYPE_f32, shape->rank, shape->dims);
    for (uint32_t k = 0; k < n_reduced; k++) /* with the dims that are reduced, or without */
        case_out(c, KILN_DTYPE_f32, k % 2 ? shape->rank : shape->rank - shape->reduced, kept);
    case_in(c, KILN_DTYPE_f32, shape->rank, shape->dims, NULL);
    case_in(c, KILN_DTYPE_f32, shape->rank, shape->per_row ? per_row : shape->dims, NULL);
    fill(c, first, specials);
    fill(c, first + 1, false);
    c->instr.n_steps = 3 + n_reduced;
    for (uint32_t i = 0; i < c->instr.n_steps; i++) {
        KilnStackStep *step = &steps[i];
        const bool last = i + 1 == c->instr.n_steps; /* reduces the operand */
        if (i >= 3) {
            step->kind = last ? KILN_INSTR_reduce_max : kinds[i - 3];
            step->sources[0] = last ? (KilnStackSource){ KILN_STACK_OPERAND, first, 0 }
                                    : (KilnStackSource){ KILN_STACK_STEP, 2, 0 };
        }
        step->dtype = KILN_DTYPE_f32;
        step->n_sources = i == 0 || i == 2 ? 2 : 1;
        step->store = i >= 3 ? (int32_t)(i - 3 + stored) : i == 2 && stored ? 0 : -1;
        step->attrs = i >= 3 ? axes_of(c->arena, step->kind, shape)
                             : kiln_instr_attrs_new(step->kind, c->arena);
    }
    c->instr.steps = kiln_arena_copy(c->arena, steps, sizeof steps);
    return c;
}

/* What @kind alone makes of @data on cpu. */
static float *
reduce_alone(KilnInstrKind kind, const Shape *shape, const void *data)
{
    g_autoptr(RefCase) alone = case_new(kind);
    void *out[CASE_MAX_OPERANDS] = { NULL };
    alone->instr.attrs = axes_of(alone->arena, kind, shape);
    case_out(alone, KILN_DTYPE_f32, shape->rank - shape->reduced, shape->dims);
    case_in(alone, KILN_DTYPE_f32, shape->rank, shape->dims, NULL);
    memcpy(alone->data[1], data, (size_t)kiln_type_bytes(&alone->buffers[1].type));
    cr_assert_null(cpu_run(alone, &(CpuCall){ .threads = 1 }, out));
    return out[0];
}

static void
expect_bits(const void *a, const void *b, int64_t n, const char *what)
{
    const uint32_t *x = a, *y = b;
    for (int64_t i = 0; i < n; i++) {
        const bool nans = isnan(((const float *)a)[i]) && isnan(((const float *)b)[i]);
        cr_assert(nans || x[i] == y[i], "%s: element %d: %a, not %a", what, (int)i,
                  (double)((const float *)b)[i], (double)((const float *)a)[i]);
    }
}

/* Against the parts run one after the other. */
static void
check_parts(const Shape *shape, bool stored, bool specials, const char *what)
{
    g_autoptr(RefCase) plain = stack_case(shape, true, false, specials);
    g_autoptr(RefCase) c = stack_case(shape, stored, true, specials);
    void *out[CASE_MAX_OPERANDS] = { NULL }, *whole[CASE_MAX_OPERANDS] = { NULL };
    cr_assert_null(cpu_run(plain, &(CpuCall){ .threads = 1 }, whole));
    for (int threads = 1; threads <= 4; threads++) {
        const CpuCall call = { .threads = threads,
                               .shift = threads == 2 ? 8 : 0,
                               .alias = threads == 3 && stored ? c->instr.n_operands - 2 : 0 };
        if (call.alias && !kiln_instr_may_share(&c->instr, 0, call.alias))
            continue;
        cr_assert_null(cpu_run(c, &call, out));
        if (stored)
            expect_bits(whole[0], out[0], kiln_type_elements(&c->buffers[0].type), what);
        for (uint32_t k = 0; k <= G_N_ELEMENTS(kinds); k++) {
            const bool last = k == G_N_ELEMENTS(kinds);
            const KilnInstrKind kind = last ? KILN_INSTR_reduce_max : kinds[k];
            const void *data = last ? plain->data[plain->instr.n_operands - 2] : whole[0];
            g_autofree float *alone = reduce_alone(kind, shape, data);
            expect_bits(alone, out[stored + k], kiln_type_elements(&c->buffers[stored + k].type),
                        what);
        }
        cpu_free(out);
    }
    cpu_free(whole);
}

static void
check_reference(const Shape *shape, const char *what)
{
    g_autoptr(RefCase) c = stack_case(shape, true, true, false);
    void *out[CASE_MAX_OPERANDS] = { NULL };
    cr_assert_null(case_run(c));
    cr_assert_null(cpu_run(c, &(CpuCall){ .threads = 1 }, out));
    for (uint32_t i = 0; i <= G_N_ELEMENTS(kinds) + 1; i++)
        cpu_compare(c, i, out[i], (Tolerance){ 1e-2, 2e-5 }, what);
    cpu_free(out);
}

Test(cpu_stack_reduce, bits_of_the_parts)
{
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        const Shape *shape = &shapes[i];
        g_autofree char *what = g_strdup_printf("shape %d", (int)i);
        g_autoptr(RefCase) c = stack_case(shape, true, true, false);
        const KilnKernel *kernel = kiln_target_find(kiln_cpu_target(), &c->instr);
        cr_assert_eq(kiln_target_depth(kiln_cpu_target(), kernel) == 0, shape->supported, "%s",
                     what);
        if (!shape->supported)
            continue;
        for (int stored = 0; stored < 2; stored++) {
            check_parts(shape, stored, false, what);
            check_parts(shape, stored, true, what);
        }
        check_reference(shape, what);
    }
}

/* The sums are of what was there before the relu: they are taken of a tile when all steps are done
 * with it, so that the result may not lie over the operand. */
Test(cpu_stack_reduce, operands_that_are_folded_are_not_overwritten)
{
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        const Shape *shape = &shapes[i];
        if (!shape->supported)
            continue;
        g_autoptr(RefCase) c = case_new(KILN_INSTR_stack);
        case_out(c, KILN_DTYPE_f32, shape->rank, shape->dims);
        case_out(c, KILN_DTYPE_f32, shape->rank - shape->reduced, shape->dims);
        cpu_in(c, shape->rank, shape->dims);
        KilnStackStep steps[] = {
            { .kind = KILN_INSTR_reduce_sum, .store = 1 },
            { .kind = KILN_INSTR_relu, .store = 0 },
        };
        for (int k = 0; k < 2; k++) {
            steps[k].dtype = KILN_DTYPE_f32;
            steps[k].n_sources = 1;
            steps[k].sources[0] = (KilnStackSource){ KILN_STACK_OPERAND, 2, 0 };
        }
        steps[0].attrs = axes_of(c->arena, KILN_INSTR_reduce_sum, shape);
        c->instr.n_steps = 2;
        c->instr.steps = steps;
        g_autofree char *what = g_strdup_printf("shape %d", (int)i);
        cpu_agrees(c, (Tolerance){ 1e-2, 2e-5 }, what); /* also over what it may lie over */
        cr_assert_not(kiln_instr_may_share(&c->instr, 0, 2), "%s", what);
    }
}
