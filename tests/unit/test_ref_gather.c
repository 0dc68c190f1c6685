/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend's gathers and scatters. */
#include "graph/base/number.h"
#include "ir/instr.h"
#include "ref_case.h"

#include <math.h>

#define F32 KILN_DTYPE_f32
#define I32 KILN_DTYPE_i32
#define I64 KILN_DTYPE_i64

static const double counting[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };

/* Every index operand refuses what does not fit, whatever the value. */
static void
refuses(RefCase *c, uint32_t operand, int64_t first_bad)
{
    const int64_t bad[] = { first_bad, -first_bad - 1, INT64_MAX, INT64_MIN };
    int64_t *indices = c->data[operand];
    int64_t keep = indices[0];
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        indices[0] = bad[i];
        cr_expect_not_null(case_run(c), "%s", kiln_instr_info(c->instr.kind)->name);
    }
    indices[0] = keep;
}

Test(ref_gather, gather)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_gather);
    CASE_ATTRS(c, gather)->axis = 1;
    case_out(c, F32, DIMS(2, 2, 1, 2));
    case_in(c, F32, DIMS(2, 3, 2), counting);
    case_in(c, I64, DIMS(2, 1), VALUES(2, -3));
    case_gives(c, VALUES(4, 5, 0, 1, 10, 11, 6, 7), 0);
    refuses(c, 2, 3);

    g_autoptr(RefCase) one = case_new(KILN_INSTR_gather);
    case_out(one, KILN_DTYPE_u8, DIMS(2));
    case_in(one, KILN_DTYPE_u8, DIMS(3, 2), counting);
    case_in(one, I32, SCALAR, VALUES(1));
    case_gives(one, VALUES(2, 3), 0);
}

Test(ref_gather, gather_from_nothing)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_gather);
    case_out(c, F32, DIMS(1, 2));
    case_in(c, F32, DIMS(0, 2), NULL);
    case_in(c, I64, DIMS(1), VALUES(0));
    cr_expect_not_null(case_run(c));
}

Test(ref_gather, gather_elements)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_gather_elements);
    CASE_ATTRS(c, gather_elements)->axis = 0;
    case_out(c, F32, DIMS(2, 2));
    case_in(c, F32, DIMS(3, 3), counting);
    case_in(c, I64, DIMS(2, 2), VALUES(1, -1, 0, 2));
    case_gives(c, VALUES(3, 7, 0, 7), 0);
    refuses(c, 2, 3);
}

Test(ref_gather, gather_nd)
{
    g_autoptr(RefCase) elements = case_new(KILN_INSTR_gather_nd);
    case_out(elements, F32, DIMS(2));
    case_in(elements, F32, DIMS(2, 2), counting);
    case_in(elements, I64, DIMS(2, 2), VALUES(0, 0, 1, -1));
    case_gives(elements, VALUES(0, 3), 0);
    refuses(elements, 2, 2);

    g_autoptr(RefCase) slices = case_new(KILN_INSTR_gather_nd);
    case_out(slices, I64, DIMS(2, 1, 2));
    case_in(slices, I64, DIMS(2, 2, 2), counting);
    case_in(slices, I64, DIMS(2, 1, 2), VALUES(0, 1, 1, 0));
    case_gives(slices, VALUES(2, 3, 4, 5), 0);

    g_autoptr(RefCase) batches = case_new(KILN_INSTR_gather_nd);
    CASE_ATTRS(batches, gather_nd)->batch_dims = 1;
    case_out(batches, F32, DIMS(2, 2));
    case_in(batches, F32, DIMS(2, 2, 2), counting);
    case_in(batches, I64, DIMS(2, 1), VALUES(1, 0));
    case_gives(batches, VALUES(2, 3, 4, 5), 0);

    /* tuples of no coordinates take the whole */
    g_autoptr(RefCase) whole = case_new(KILN_INSTR_gather_nd);
    case_out(whole, F32, DIMS(2, 3));
    case_in(whole, F32, DIMS(3), counting);
    case_in(whole, I64, DIMS(2, 0), NULL);
    case_gives(whole, VALUES(0, 1, 2, 0, 1, 2), 0);
}

/* --- scatter --- */

static RefCase *
scatter(KilnDType dtype, const char *reduction)
{
    RefCase *c = case_new(KILN_INSTR_scatter_elements);
    CASE_ATTRS(c, scatter_elements)->reduction = reduction;
    CASE_ATTRS(c, scatter_elements)->axis = 1;
    case_out(c, dtype, DIMS(1, 5));
    case_in(c, dtype, DIMS(1, 5), VALUES(1, 2, 3, 4, 5));
    case_in(c, I64, DIMS(1, 3), VALUES(1, -4, 3));
    case_in(c, dtype, DIMS(1, 3), VALUES(3, 7, 2));
    return c;
}

Test(ref_gather, scatter_elements_reductions)
{
    static const struct {
        const char *reduction;
        double expected[5];
    } rows[] = {
        { "none", { 1, 7, 3, 2, 5 } }, { "add", { 1, 12, 3, 6, 5 } }, { "mul", { 1, 42, 3, 8, 5 } },
        { "max", { 1, 7, 3, 4, 5 } },  { "min", { 1, 2, 3, 2, 5 } },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (KilnDType dtype = 0; dtype < KILN_DTYPE_bool; dtype++) {
            g_autoptr(RefCase) c = scatter(dtype, rows[i].reduction);
            case_gives(c, rows[i].expected, 0);
            refuses(c, 2, 5);
        }
    }
}

Test(ref_gather, scatter_in_place)
{
    const char *const reductions[] = { "none", "add" };
    for (int i = 0; i < 2; i++) {
        g_autoptr(RefCase) c = scatter(F32, reductions[i]);
        void *keep = c->data[0];
        c->data[0] = c->data[1];
        case_gives(c, i ? VALUES(1, 12, 3, 6, 5) : VALUES(1, 7, 3, 2, 5), 0);
        c->data[0] = keep;
    }
}

Test(ref_gather, scatter_compares_the_whole_range_of_integers)
{
    g_autoptr(RefCase) c = scatter(KILN_DTYPE_u64, "max");
    ((uint64_t *)c->data[3])[0] = UINT64_MAX;
    cr_assert_null(case_run(c));
    cr_expect_eq(((uint64_t *)c->data[0])[1], UINT64_MAX);

    g_autoptr(RefCase) narrow = scatter(KILN_DTYPE_i8, "min");
    ((int8_t *)narrow->data[3])[0] = -128;
    cr_assert_null(case_run(narrow));
    cr_expect_eq(((int8_t *)narrow->data[0])[1], -128);
}

Test(ref_gather, scatter_of_floats_rounds_once_and_keeps_nan)
{
    g_autoptr(RefCase) c = scatter(KILN_DTYPE_f16, "add");
    kiln_element_store_f64(KILN_DTYPE_f16, c->data[1], 1, 2048);
    kiln_element_store_f64(KILN_DTYPE_f16, c->data[3], 0, 1);
    kiln_element_store_f64(KILN_DTYPE_f16, c->data[3], 1, 1);
    case_gives(c, VALUES(1, 2050, 3, 6, 5), 0);

    const char *const reductions[] = { "max", "min" };
    for (int i = 0; i < 2; i++) {
        g_autoptr(RefCase) nan = scatter(F32, reductions[i]);
        ((float *)nan->data[3])[0] = NAN;
        ((float *)nan->data[1])[3] = NAN;
        case_gives(nan, VALUES(1, NAN, 3, NAN, 5), 0);
    }
}

Test(ref_gather, scatter_of_bools)
{
    static const struct {
        const char *reduction;
        double expected[4];
    } rows[] = { { "add", { 0, 1, 1, 1 } },
                 { "mul", { 0, 0, 0, 1 } },
                 { "max", { 0, 1, 1, 1 } },
                 { "min", { 0, 0, 0, 1 } } };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_scatter_elements);
        CASE_ATTRS(c, scatter_elements)->reduction = rows[i].reduction;
        case_out(c, KILN_DTYPE_bool, DIMS(4));
        case_in(c, KILN_DTYPE_bool, DIMS(4), VALUES(0, 0, 1, 1));
        case_in(c, I32, DIMS(4), VALUES(0, 1, 2, 3));
        case_in(c, KILN_DTYPE_bool, DIMS(4), VALUES(0, 1, 0, 1));
        case_gives(c, rows[i].expected, 0);
    }
}

Test(ref_gather, scatter_elements_in_two_dims)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_scatter_elements);
    case_out(c, F32, DIMS(3, 3));
    case_in(c, F32, DIMS(3, 3), VALUES(0, 0, 0, 0, 0, 0, 0, 0, 0));
    case_in(c, I64, DIMS(2, 3), VALUES(1, 0, 2, 0, 2, 1));
    case_in(c, F32, DIMS(2, 3), VALUES(1, 1.1, 1.2, 2, 2.1, 2.2));
    case_gives(c, VALUES(2, 1.1, 0, 1, 0, 2.2, 0, 2.1, 1.2), 1e-6);
}

Test(ref_gather, scatter_nd)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_scatter_nd);
    case_out(c, F32, DIMS(3, 2));
    case_in(c, F32, DIMS(3, 2), counting);
    case_in(c, I64, DIMS(2, 1), VALUES(2, -3));
    case_in(c, F32, DIMS(2, 2), VALUES(10, 20, 30, 40));
    case_gives(c, VALUES(30, 40, 2, 3, 10, 20), 0);
    CASE_ATTRS(c, scatter_nd)->reduction = "mul";
    case_gives(c, VALUES(0, 40, 2, 3, 40, 100), 0);
    refuses(c, 2, 3);

    g_autoptr(RefCase) same = case_new(KILN_INSTR_scatter_nd);
    CASE_ATTRS(same, scatter_nd)->reduction = "add";
    case_out(same, I32, DIMS(2, 2));
    case_in(same, I32, DIMS(2, 2), counting);
    case_in(same, I64, DIMS(3, 2), VALUES(0, 1, 0, 1, 1, -2));
    case_in(same, I32, DIMS(3), VALUES(5, 6, 7));
    case_gives(same, VALUES(0, 12, 9, 3), 0);

    /* tuples of no coordinates replace the whole */
    g_autoptr(RefCase) whole = case_new(KILN_INSTR_scatter_nd);
    case_out(whole, F32, DIMS(2));
    case_in(whole, F32, DIMS(2), counting);
    case_in(whole, I64, DIMS(1, 0), NULL);
    case_in(whole, F32, DIMS(1, 2), VALUES(8, 9));
    case_gives(whole, VALUES(8, 9), 0);
}
