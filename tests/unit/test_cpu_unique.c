/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's unique against the reference: every type, few and many values, NaN, zeros of
 * both signs, results that are left out, an axis. */
#include "graph/base/number.h"
#include "graph/kiln-types.h"
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <string.h>

#define D(id) (1u << KILN_DTYPE_##id)
#define FLOATS (D(f16) | D(bf16) | D(f32) | D(f64))
#define INTS (D(i8) | D(i16) | D(i32) | D(i64) | D(u8) | D(u16) | D(u32) | D(u64))

static RefCase *
unique_case(KilnDType dtype, int64_t n, uint32_t most, bool sorted, bool all)
{
    static const double specials[] = { NAN, INFINITY, -INFINITY, 0, -0.0, 1, -1 };
    RefCase *c = case_new(KILN_INSTR_unique);
    Random r = { most + (uint32_t)n };
    CASE_ATTRS(c, unique)->sorted = sorted;
    case_out(c, dtype, 1, &n);
    case_out(c, KILN_DTYPE_i64, 0, NULL);
    for (int i = 0; i < 3; i++) {
        if (all || i == 1)
            case_out(c, KILN_DTYPE_i64, 1, &n);
        else
            case_absent(c);
    }
    case_in(c, dtype, 1, &n, NULL);
    for (int64_t i = 0; i < n; i++) {
        double value = (double)below(&r, most) - (kiln_dtype_is_signed(dtype) ? most / 2 : 0);
        if (kiln_dtype_is_float(dtype) && below(&r, 5) == 0)
            value = specials[below(&r, G_N_ELEMENTS(specials))];
        kiln_element_store_f64(dtype, c->data[5], i, dtype == KILN_DTYPE_bool ? i % 2 : value);
    }
    return c;
}

/* Results have room for all elements. What lies behind the unique ones is nothing. */
static void
check(RefCase *c, const char *what)
{
    const int64_t n = kiln_type_elements(&c->buffers[5].type);
    void *found[CASE_MAX_OPERANDS] = { NULL };
    cr_assert_null(case_run(c));
    cr_assert_null(cpu_run(c, &(CpuCall){ .threads = 2 }, found));
    const int64_t count = *(const int64_t *)c->data[1];
    cr_assert_eq(*(const int64_t *)found[1], count, "%s", what);
    for (uint32_t i = 0; i < 5; i++) {
        const size_t size = kiln_dtype_size(c->buffers[i].type.dtype);
        const int64_t used = i == 1 ? 1 : i == 3 ? n : count;
        if (found[i])
            cr_assert_eq(memcmp(found[i], c->data[i], (size_t)used * size), 0, "%s, operand %u",
                         what, i);
    }
    cpu_free(found);
}

Test(cpu_unique, elements)
{
    static const int64_t lengths[] = { 0, 1, 2, 300, 3000 };
    static const uint32_t most[] = { 3, 100, 1u << 24 };
    for (int dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
        if (!((FLOATS | INTS | D(bool)) >> dtype & 1))
            continue;
        for (size_t i = 0; i < G_N_ELEMENTS(lengths) * G_N_ELEMENTS(most) * 4; i++) {
            const uint32_t greatest = most[i / 4 % G_N_ELEMENTS(most)];
            const size_t bits = 8 * kiln_dtype_size((KilnDType)dtype);
            g_autoptr(RefCase) c =
                unique_case((KilnDType)dtype, lengths[i / 4 / G_N_ELEMENTS(most)],
                            bits < 24 ? MIN(greatest, 1u << (bits - 1)) : greatest, i & 1, i & 2);
            check(c, kiln_dtype_name((KilnDType)dtype));
        }
    }
}

Test(cpu_unique, axis_of_the_only_dim)
{
    for (int64_t axis = -1; axis < 1; axis++) {
        g_autoptr(RefCase) c = unique_case(KILN_DTYPE_i64, 500, 40, true, true);
        CASE_ATTRS(c, unique)->axis = axis;
        check(c, "an axis");
    }
}
