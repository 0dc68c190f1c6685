/* SPDX-License-Identifier: Apache-2.0 */
/* Types with open dims: which are certainly equal, and what costs take them for. */
#include "graph/type.h"

#include <criterion/criterion.h>

typedef struct {
    KilnDimTable *table;
    const KilnDim *n, *m;
} Fixture;

static Fixture
fixture(void)
{
    KilnDimTable *table = kiln_dim_table_new();
    return (Fixture){ table, kiln_dim_name(table, "N"), kiln_dim_name(table, "M") };
}

/* f32 of two dims; NULL: not known. */
static KilnType
matrix(const KilnDim *rows, const KilnDim *columns)
{
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 2, (const int64_t[]){ 0, 0 });
    kiln_type_set_dim(&type, 0, rows);
    kiln_type_set_dim(&type, 1, columns);
    return type;
}

Test(type, open_shapes_are_equal_where_it_is_certain)
{
    Fixture f = fixture();
    const KilnDim *four = kiln_dim_number(f.table, 4);
    KilnType a = matrix(f.n, four), b = matrix(f.m, four), unknown = matrix(NULL, four);
    cr_expect(kiln_type_equal_shape(&a, &a));
    cr_expect_not(kiln_type_equal_shape(&a, &b));
    cr_expect_not(kiln_type_equal_shape(&unknown, &unknown));
    cr_expect(kiln_type_same_shape(&unknown, &unknown));
    KilnType unranked = kiln_type_unranked(KILN_DTYPE_f32);
    cr_expect_not(kiln_type_equal_shape(&unranked, &unranked));
    kiln_dim_table_unref(f.table);
}

Test(type, open_shapes_have_as_many_elements_where_it_is_certain)
{
    Fixture f = fixture();
    const KilnDim *four = kiln_dim_number(f.table, 4), *two = kiln_dim_number(f.table, 2);
    const KilnDim *twice = kiln_dim_scale(f.table, f.n, 2);
    KilnType a = matrix(f.n, four), b = matrix(twice, two), c = matrix(f.m, four);
    KilnType unknown = matrix(NULL, four), numbers = matrix(four, two);
    cr_expect(kiln_type_same_elements(&a, &b));
    cr_expect_not(kiln_type_same_elements(&a, &c));
    cr_expect_not(kiln_type_same_elements(&a, &unknown));
    cr_expect_not(kiln_type_same_elements(&unknown, &unknown));
    cr_expect_not(kiln_type_same_elements(&a, &numbers));
    KilnType swapped = matrix(two, four), empty = matrix(kiln_dim_number(f.table, 0), f.n);
    cr_expect(kiln_type_same_elements(&numbers, &swapped));
    cr_expect_not(kiln_type_same_elements(&empty, &numbers));
    kiln_dim_table_unref(f.table);
}

Test(type, hints_and_bounds_of_dims)
{
    Fixture f = fixture();
    const KilnDimFacts facts = { .lo = 2, .hi = 9, .divisor = 1, .hint = 5 };
    int64_t lo, hi;
    cr_assert(kiln_dim_state(f.table, "N", &facts, NULL));
    KilnType type = matrix(kiln_dim_scale(f.table, f.n, 3), NULL);
    const KilnType likely = kiln_type_at_hints(&type);
    cr_expect(kiln_type_is_static(&likely));
    cr_expect_eq(likely.dims[0], 15);
    cr_expect_eq(kiln_type_likely_elements(&type), 15 * KILN_DIM_HINT);
    kiln_type_dim_range(&type, 0, &lo, &hi);
    cr_expect_eq(lo, 6);
    cr_expect_eq(hi, 27);
    kiln_type_dim_range(&likely, 0, &lo, &hi);
    cr_expect_eq(lo, 15);
    cr_expect_eq(hi, 15);
    kiln_dim_table_unref(f.table);
}
