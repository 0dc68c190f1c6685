/* SPDX-License-Identifier: Apache-2.0 */
/* label_encoder on the cpu target: the table of keys finds what ref finds. */
#include "graph/kiln-types.h"
#include "graph/type.h"
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum {
    N = 9000, /* elements: several tasks */
    KEYS = 700
};

static void
expect_as_ref(RefCase *c)
{
    void *out[CASE_MAX_OPERANDS] = { NULL };
    size_t bytes = (size_t)kiln_type_bytes(&c->buffers[0].type);
    cr_assert_null(case_run(c));
    for (int threads = 1; threads <= 3; threads++) {
        cr_assert_null(cpu_run(c, &(CpuCall){ .threads = threads }, out));
        cr_expect_arr_eq(out[0], c->data[0], bytes, "%d threads", threads);
        for (int i = 0; i < CASE_MAX_OPERANDS; i++)
            free(out[i]);
    }
}

/* Some keys twice, some elements without a key, zeros of both signs, NaN. */
static RefCase *
numbers(KilnDType dtype)
{
    double *x = g_new(double, N), *keys = g_new(double, KEYS), *values = g_new(double, KEYS);
    RefCase *c = case_new(KILN_INSTR_label_encoder);
    for (int i = 0; i < N; i++)
        x[i] = i * 7919 % 101 - 3;
    for (int k = 0; k < KEYS; k++) {
        keys[k] = k * 31 % 90 - 5;
        values[k] = k;
    }
    x[5] = NAN;
    x[6] = -0.0;
    keys[4] = NAN;
    case_out(c, KILN_DTYPE_i32, DIMS(N));
    case_in(c, dtype, DIMS(N), x);
    case_in(c, dtype, DIMS(KEYS), keys);
    case_in(c, KILN_DTYPE_i32, DIMS(KEYS), values);
    case_in(c, KILN_DTYPE_i32, DIMS(1), VALUES(-1));
    g_free(x);
    g_free(keys);
    g_free(values);
    return c;
}

Test(cpu_labels, of_numbers)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_f32,  KILN_DTYPE_f64, KILN_DTYPE_f16,
                                        KILN_DTYPE_bf16, KILN_DTYPE_i64, KILN_DTYPE_i32,
                                        KILN_DTYPE_u64,  KILN_DTYPE_i8 };
    for (size_t i = 0; i < G_N_ELEMENTS(dtypes); i++) {
        g_autoptr(RefCase) c = numbers(dtypes[i]);
        expect_as_ref(c);
    }
}

Test(cpu_labels, of_strings)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_label_encoder);
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    for (int i = 0; i < N; i++)
        g_ptr_array_add(words, i % 50 ? g_strdup_printf("%d", i * 7919 % 901) : g_strdup(""));
    const char *const *all = (const char *const *)words->pdata;
    case_out(c, KILN_DTYPE_string, DIMS(N));
    case_texts(c, DIMS(N), all);
    case_texts(c, DIMS(KEYS), all + 30);
    case_texts(c, DIMS(KEYS), all + 1000);
    case_texts(c, DIMS(1), TEXTS("none"));
    expect_as_ref(c); /* texts of the same addresses */
}

Test(cpu_labels, without_keys)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_label_encoder);
    case_out(c, KILN_DTYPE_i32, DIMS(2));
    case_in(c, KILN_DTYPE_i64, DIMS(2), VALUES(1, 2));
    case_in(c, KILN_DTYPE_i64, 1, (const int64_t[]){ 0 }, NULL);
    case_in(c, KILN_DTYPE_i32, 1, (const int64_t[]){ 0 }, NULL);
    case_in(c, KILN_DTYPE_i32, DIMS(1), VALUES(-1));
    expect_as_ref(c);
}
