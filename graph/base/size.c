/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/size.h"

/* --- arithmetic --- */

KilnSize
kiln_size_make(int64_t n)
{
    return (KilnSize){ .n = n };
}

KilnSize
kiln_size_open(int64_t n, const KilnDim *dim)
{
    return (KilnSize){ .n = n, .dim = dim };
}

static KilnDimTable *
table_of(KilnSize a, KilnSize b)
{
    const KilnDim *dim = a.dim ? a.dim : b.dim;
    return dim ? kiln_dim_table_of(dim) : NULL;
}

static const KilnDim *
dim_of(KilnSize size, KilnDimTable *table)
{
    return size.dim ? size.dim : kiln_dim_number(table, size.n);
}

/* @n where both sides are numbers, else with the expression that @combine makes of both. */
static KilnSize
combined(KilnSize a, KilnSize b, int64_t n,
         const KilnDim *(*combine)(KilnDimTable *, const KilnDim *, const KilnDim *))
{
    KilnSize size = { .n = n, .lost = a.lost || b.lost };
    KilnDimTable *table = table_of(a, b);
    int64_t number;
    if (size.lost || !table)
        return size;
    size.dim = combine(table, dim_of(a, table), dim_of(b, table));
    size.lost = !size.dim;
    if (kiln_dim_is_number(size.dim, &number))
        size.dim = NULL;
    return size;
}

static KilnSize
out_of_range(void)
{
    return (KilnSize){ .lost = true };
}

KilnSize
kiln_size_add(KilnSize a, KilnSize b)
{
    int64_t n;
    return __builtin_add_overflow(a.n, b.n, &n) ? out_of_range() : combined(a, b, n, kiln_dim_add);
}

KilnSize
kiln_size_sub(KilnSize a, KilnSize b)
{
    int64_t n;
    return __builtin_sub_overflow(a.n, b.n, &n) ? out_of_range() : combined(a, b, n, kiln_dim_sub);
}

KilnSize
kiln_size_mul(KilnSize a, KilnSize b)
{
    int64_t n;
    return __builtin_mul_overflow(a.n, b.n, &n) ? out_of_range() : combined(a, b, n, kiln_dim_mul);
}

KilnSize
kiln_size_divide(KilnSize a, KilnSize b)
{
    KilnSize size = combined(a, b, a.n / b.n, kiln_dim_divide);
    size.lost |= a.n % b.n != 0;
    return size;
}

bool
kiln_size_equal(KilnSize a, KilnSize b)
{
    if (a.lost || b.lost || a.n != b.n)
        return false;
    KilnDimTable *table = table_of(a, b);
    return !table || a.dim == b.dim ||
           kiln_dim_equal(table, dim_of(a, table), dim_of(b, table)) == KILN_ANSWER_YES;
}

bool
kiln_size_at_most(KilnSize a, KilnSize b)
{
    if (a.lost || b.lost || a.n > b.n)
        return false;
    KilnDimTable *table = table_of(a, b);
    return !table || a.dim == b.dim ||
           kiln_dim_at_most(table, dim_of(a, table), dim_of(b, table)) == KILN_ANSWER_YES;
}

bool
kiln_size_is_multiple(KilnSize size, int64_t by)
{
    return !size.lost && size.n % by == 0 &&
           (!size.dim || kiln_dim_divides(by, size.dim) == KILN_ANSWER_YES);
}

/* --- of types --- */

KilnSize
kiln_type_size(const KilnType *type, int d)
{
    return kiln_size_open(type->dims[d], type->open[d]);
}

KilnSize
kiln_type_product(const KilnType *type, int first, int end)
{
    KilnSize product = kiln_size_make(1);
    for (int d = first; d < end; d++)
        product = kiln_size_mul(product, kiln_type_size(type, d));
    return product;
}

KilnSize
kiln_type_size_elements(const KilnType *type)
{
    KilnSize size = kiln_size_make(kiln_type_elements(type));
    if (kiln_type_is_open(type))
        size = kiln_type_product(type, 0, type->rank);
    size.lost |= size.n < 0;
    return size;
}

/* Blocks of a layout are numbers. Where a dim that they split is open, so is the padding. */
KilnSize
kiln_type_size_bytes(const KilnType *type)
{
    int64_t bytes = kiln_type_bytes(type), unit = (int64_t)kiln_dtype_size(type->dtype);
    KilnSize size = kiln_type_size_elements(type);
    if (!kiln_type_is_open(type))
        return (KilnSize){ .n = bytes, .lost = bytes < 0 };
    size = kiln_size_mul(size, kiln_size_make(unit));
    size.lost |= size.n != bytes;
    size.n = bytes;
    return size;
}

bool
kiln_type_same_bytes(const KilnType *a, const KilnType *b)
{
    return kiln_size_equal(kiln_type_size_bytes(a), kiln_type_size_bytes(b));
}
