/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's reductions of integers, bools and f64, and its products and logarithms of sums
 * of f32, against the reference. */
#include "graph/base/number.h"
#include "graph/kiln-types.h"
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <string.h>

#define D(id) (1u << KILN_DTYPE_##id)
#define INTS (D(i8) | D(i16) | D(i32) | D(i64) | D(u8) | D(u16) | D(u32) | D(u64))

static const Tolerance near = { 1e-12, 1e-6 };

typedef struct {
    int rank;
    int64_t dims[4];
    uint32_t axes; /* a bit each */
} Shape;

static const Shape shapes[] = {
    { 1, { 1 }, 1 },           { 1, { 5 }, 0 },           { 1, { 20011 }, 1 },
    { 2, { 33, 300 }, 1 },     { 2, { 33, 300 }, 2 },     { 2, { 33, 301 }, 3 },
    { 3, { 4, 17, 19 }, 5 },   { 3, { 4, 17, 19 }, 2 },   { 3, { 4, 1, 300 }, 6 },
    { 3, { 2, 0, 3 }, 2 },     { 3, { 0, 4, 5 }, 2 },     { 4, { 3, 5, 7, 20 }, 10 },
    { 4, { 3, 5, 7, 20 }, 5 }, { 4, { 2, 3, 40, 9 }, 6 },
};

/* Values near 1, so that products stay finite; integers of both signs, and large ones. */
static void
fill(RefCase *c, bool large)
{
    const KilnType *type = &c->buffers[1].type;
    Random r = { 11 };
    for (int64_t i = 0; i < kiln_type_elements(type); i++) {
        const double unit = (double)below(&r, 1 << 20) / (1 << 20);
        double value = kiln_dtype_is_float(type->dtype) ? 0.9 + 0.2 * unit
                                                        : floor(unit * (large ? 4e9 : 9)) - 4;
        if (large && kiln_dtype_is_float(type->dtype))
            value = 200 * unit - 100;
        if (large && below(&r, 2000) == 0)
            value = NAN;
        kiln_element_store_f64(type->dtype, c->data[1], i, value);
    }
}

static void
check(KilnInstrKind kind, KilnDType dtype, const Shape *shape, bool large)
{
    int64_t axes[4], kept[4];
    uint32_t n = 0;
    int rank = 0;
    g_autoptr(RefCase) c = case_new(kind);
    for (int d = 0; d < shape->rank; d++) {
        if (shape->axes >> d & 1)
            axes[n++] = d;
        else
            kept[rank++] = shape->dims[d];
    }
    CASE_ATTRS(c, reduce_sum)->axes = kiln_ints_make(c->arena, axes, n);
    case_out(c, dtype, rank, kept);
    case_in(c, dtype, shape->rank, shape->dims, NULL);
    fill(c, large);
    cpu_agrees(c, near, kiln_dtype_name(dtype));
}

static void
check_kind(KilnInstrKind kind, uint32_t dtypes)
{
    for (int dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
        for (size_t i = 0; (dtypes >> dtype & 1) && i < G_N_ELEMENTS(shapes); i++) {
            check(kind, (KilnDType)dtype, &shapes[i], false);
            if (kind != KILN_INSTR_reduce_prod || !kiln_dtype_is_float((KilnDType)dtype))
                check(kind, (KilnDType)dtype, &shapes[i], true);
        }
    }
}

Test(cpu_fold, sums)
{
    check_kind(KILN_INSTR_reduce_sum, INTS | D(f64));
    check_kind(KILN_INSTR_reduce_mean, INTS | D(f64));
    check_kind(KILN_INSTR_reduce_l1, INTS | D(f64));
    check_kind(KILN_INSTR_reduce_l2, INTS | D(f64));
    check_kind(KILN_INSTR_reduce_sum_square, INTS | D(f64));
}

Test(cpu_fold, extremes)
{
    check_kind(KILN_INSTR_reduce_max, INTS | D(f64) | D(bool));
    check_kind(KILN_INSTR_reduce_min, INTS | D(f64) | D(bool));
}

Test(cpu_fold, products)
{
    check_kind(KILN_INSTR_reduce_prod, INTS | D(f64) | D(f32));
}

Test(cpu_fold, logarithms)
{
    check_kind(KILN_INSTR_reduce_log_sum, INTS | D(f64) | D(f32));
    check_kind(KILN_INSTR_reduce_log_sum_exp, D(f32) | D(f64));
}

Test(cpu_fold, infinite_exponents)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_f32, KILN_DTYPE_f64 };
    for (size_t i = 0; i < G_N_ELEMENTS(dtypes); i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_reduce_log_sum_exp);
        CASE_ATTRS(c, reduce_sum)->axes = CASE_INTS(c, 1);
        case_out(c, dtypes[i], DIMS(4));
        case_in(c, dtypes[i], DIMS(4, 2),
                VALUES(INFINITY, 1, -INFINITY, -INFINITY, -INFINITY, 3, -500, 400));
        cpu_agrees(c, near, "infinities");
    }
}

/* --- normalizations --- */

Test(cpu_fold, mean_variance_normalization)
{
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        int64_t axes[4];
        uint32_t n = 0;
        g_autoptr(RefCase) c = case_new(KILN_INSTR_mean_variance_normalization);
        for (int d = 0; d < shapes[i].rank; d++) {
            if (shapes[i].axes >> d & 1)
                axes[n++] = d;
        }
        CASE_ATTRS(c, mean_variance_normalization)->axes = kiln_ints_make(c->arena, axes, n);
        case_out(c, KILN_DTYPE_f32, shapes[i].rank, shapes[i].dims);
        case_in(c, KILN_DTYPE_f32, shapes[i].rank, shapes[i].dims, NULL);
        cpu_fill(c, 1, (uint32_t)i);
        cpu_agrees(c, (Tolerance){ 1e-5, 1e-5 }, "moments");
    }
}

Test(cpu_fold, lp_normalization)
{
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        for (int axis = 0; axis < shapes[i].rank; axis++) {
            for (int way = 0; way < 4; way++) {
                const KilnDType dtype = way < 2 ? KILN_DTYPE_f32 : KILN_DTYPE_f64;
                g_autoptr(RefCase) c = case_new(KILN_INSTR_lp_normalization);
                CASE_ATTRS(c, lp_normalization)->axis = axis;
                CASE_ATTRS(c, lp_normalization)->p = 1 + way % 2;
                case_out(c, dtype, shapes[i].rank, shapes[i].dims);
                case_in(c, dtype, shapes[i].rank, shapes[i].dims, NULL);
                cpu_fill(c, 1, (uint32_t)i);
                if (i == 3)
                    memset(c->data[1], 0, 33 * 300 * kiln_dtype_size(dtype));
                const double digits = way < 2 ? 1e-6 : 1e-13;
                cpu_agrees(c, (Tolerance){ digits, digits }, "norm");
            }
        }
    }
}
