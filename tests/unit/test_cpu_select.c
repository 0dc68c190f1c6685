/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's arg_max, arg_min, hardmax and top_k against the reference: every type, every
 * axis, equal elements, NaN, infinities and zeros of both signs. */
#include "graph/base/number.h"
#include "graph/kiln-types.h"
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>

static const Tolerance exact = { 0, 0 };

#define D(id) (1u << KILN_DTYPE_##id)
#define FLOATS (D(f16) | D(bf16) | D(f32) | D(f64))
#define INTS (D(i8) | D(i16) | D(i32) | D(i64) | D(u8) | D(u16) | D(u32) | D(u64))

/* @few: values that are often equal. */
static void
fill(RefCase *c, uint32_t operand, uint32_t seed, bool few)
{
    static const double specials[] = { NAN, INFINITY, -INFINITY, 0, -0.0, 1, -1 };
    const KilnType *type = &c->buffers[operand].type;
    Random r = { seed };
    for (int64_t i = 0; i < kiln_type_elements(type); i++) {
        double value = (double)below(&r, few ? 9 : 1 << 20) - (few ? 4 : 1 << 19);
        if (kiln_dtype_is_float(type->dtype) && below(&r, few ? 3 : 997) == 0)
            value = specials[below(&r, G_N_ELEMENTS(specials))];
        kiln_element_store_f64(type->dtype, c->data[operand], i, value);
    }
}

typedef struct {
    int rank;
    int64_t dims[3];
} Shape;

static const Shape shapes[] = {
    { 1, { 1 } },         { 1, { 300 } },     { 1, { 20000 } },
    { 2, { 5, 257 } },    { 2, { 257, 5 } },  { 3, { 3, 31, 70 } },
    { 3, { 2, 7, 300 } }, { 3, { 0, 4, 5 } }, { 3, { 3, 600, 3 } },
};

/* --- the best --- */

static void
check_best(KilnInstrKind kind, KilnDType dtype, const Shape *shape, int axis)
{
    for (int variant = 0; variant < 4; variant++) {
        g_autoptr(RefCase) c = case_new(kind);
        int64_t dims[3] = { shape->dims[0], shape->dims[1], shape->dims[2] };
        if (kind == KILN_INSTR_hardmax) {
            CASE_ATTRS(c, hardmax)->axis = axis;
            case_out(c, dtype, shape->rank, dims);
        } else {
            CASE_ATTRS(c, arg_max)->axis = axis; /* those of arg_min are the same */
            CASE_ATTRS(c, arg_max)->select_last_index = variant & 1;
            dims[axis] = 1;
            case_out(c, KILN_DTYPE_i64, shape->rank, dims);
        }
        case_in(c, dtype, shape->rank, shape->dims, NULL);
        fill(c, 1, (uint32_t)variant + 1, variant & 2);
        cpu_agrees(c, exact, kiln_dtype_name(dtype));
    }
}

static void
check_kind(KilnInstrKind kind, uint32_t dtypes)
{
    for (int dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
        for (size_t i = 0; (dtypes >> dtype & 1) && i < G_N_ELEMENTS(shapes); i++) {
            for (int axis = 0; axis < shapes[i].rank; axis++)
                check_best(kind, (KilnDType)dtype, &shapes[i], axis);
        }
    }
}

Test(cpu_select, arg_max)
{
    check_kind(KILN_INSTR_arg_max, FLOATS | INTS);
}

Test(cpu_select, arg_min)
{
    check_kind(KILN_INSTR_arg_min, FLOATS | INTS);
}

Test(cpu_select, hardmax)
{
    check_kind(KILN_INSTR_hardmax, FLOATS);
}

/* --- the first k --- */

static void
check_top_k(KilnDType dtype, const Shape *shape, int axis, int64_t k, bool largest)
{
    for (int few = 0; few < 2; few++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_top_k);
        int64_t dims[3] = { shape->dims[0], shape->dims[1], shape->dims[2] };
        dims[axis] = k;
        CASE_ATTRS(c, top_k)->axis = axis;
        CASE_ATTRS(c, top_k)->largest = largest;
        case_out(c, dtype, shape->rank, dims);
        case_out(c, KILN_DTYPE_i64, shape->rank, dims);
        case_in(c, dtype, shape->rank, shape->dims, NULL);
        fill(c, 2, (uint32_t)(k + few), few);
        cpu_agrees(c, exact, kiln_dtype_name(dtype));
    }
}

Test(cpu_select, top_k)
{
    static const int64_t counts[] = { 0, 1, 2, 5, 31, 50, 150, 600 };
    for (int dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
        for (size_t i = 0; ((FLOATS | INTS) >> dtype & 1) && i < G_N_ELEMENTS(shapes); i++) {
            for (int axis = 0; axis < shapes[i].rank; axis++) {
                const int64_t extent = shapes[i].dims[axis];
                for (size_t n = 0; n < G_N_ELEMENTS(counts) && counts[n] <= extent; n++)
                    check_top_k((KilnDType)dtype, &shapes[i], axis, counts[n], n % 2);
                check_top_k((KilnDType)dtype, &shapes[i], axis, MIN(extent, 400), true);
            }
        }
    }
}

/* Ascending data: each element is larger than all before it. */
Test(cpu_select, top_k_of_ascending_numbers)
{
    const int64_t n = 5000, k = 100;
    g_autoptr(RefCase) c = case_new(KILN_INSTR_top_k);
    case_out(c, KILN_DTYPE_f32, 1, &k);
    case_out(c, KILN_DTYPE_i64, 1, &k);
    case_in(c, KILN_DTYPE_f32, 1, &n, NULL);
    for (int64_t i = 0; i < n; i++)
        ((float *)c->data[2])[i] = (float)i;
    cpu_agrees(c, exact, "ascending");
}

Test(cpu_select, too_few_elements)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_top_k);
    case_out(c, KILN_DTYPE_f32, DIMS(4));
    case_out(c, KILN_DTYPE_i64, DIMS(4));
    case_in(c, KILN_DTYPE_f32, DIMS(3), VALUES(1, 2, 3));
    cr_expect_str_eq(case_run(c), "top_k of fewer than k elements");
    cpu_agrees(c, exact, "too few");
    g_autoptr(RefCase) none = case_new(KILN_INSTR_arg_max);
    case_out(none, KILN_DTYPE_i64, DIMS(2, 1));
    case_in(none, KILN_DTYPE_f32, DIMS(2, 0), NULL);
    CASE_ATTRS(none, arg_max)->axis = 1;
    cr_expect_str_eq(case_run(none), "arg_max or arg_min of no elements");
    cpu_agrees(none, exact, "no elements");
}
