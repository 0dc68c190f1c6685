/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel says equal elements are reduced to has the bits that it computes of them. */
#include "backends/cpu/cpu.h"
#include "backends/ref/ref.h"
#include "graph/base/number.h"
#include "ir/target.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const KilnInstrKind kinds[] = {
    KILN_INSTR_reduce_l1,         KILN_INSTR_reduce_l2,          KILN_INSTR_reduce_log_sum,
    KILN_INSTR_reduce_max,        KILN_INSTR_reduce_log_sum_exp, KILN_INSTR_reduce_mean,
    KILN_INSTR_reduce_min,        KILN_INSTR_reduce_prod,        KILN_INSTR_reduce_sum,
    KILN_INSTR_reduce_sum_square,
};

/* Below, at and above groups, blocks and pieces of sums. */
static const int64_t lengths[] = { 1,   2,    3,    5,    17,   63,   64,   65,   511,
                                   512, 1023, 1024, 1025, 4095, 8192, 8193, 40001 };

static const double floats[] = {
    0.0,    -0.0,     1.0,    -1.0,   0.1,   -0.1,     1.0 / 3,   3.0, 1e-3,     12345.6,    -7e8,
    1.5e30, -2.5e-39, 1e-300, 5e-324, 1e308, INFINITY, -INFINITY, NAN, 0.999999, 1 + 0x1p-20
};

/* A case of [kept, length], of which the last dim is reduced. */
static RefCase *
case_of(KilnInstrKind kind, KilnDType dtype, int64_t length, double element)
{
    RefCase *c = case_new(kind);
    case_out(c, dtype, DIMS(2));
    case_in(c, dtype, DIMS(2, length), NULL);
    CASE_ATTRS(c, reduce_sum)->axes = CASE_INTS(c, -1);
    for (int64_t i = 0; i < 2 * length; i++)
        kiln_element_store_f64(dtype, c->data[1], i, element);
    return c;
}

/* True where the kernel knew the result. */
static bool
expect_same(RefCase *c, const KilnTarget *target, const KilnKernel *kernel)
{
    const size_t size = kiln_dtype_size(c->buffers[0].type.dtype);
    uint8_t found[8] = { 0 };
    if (!kernel->of_equal || !kernel->of_equal(&c->instr, c->data[1], found))
        return false;
    size_t bytes = kernel->scratch_bytes ? kernel->scratch_bytes(&c->instr, 0, 1) : 0;
    void *scratch = malloc(bytes + 1);
    cr_assert_null(kernel->run(&(KilnKernelArgs){
        .instr = &c->instr, .kernel = kernel, .data = c->data, .scratch = scratch, .threads = 1 }));
    free(scratch);
    for (int i = 0; i < 2; i++)
        cr_expect(memcmp((char *)c->data[0] + (size_t)i * size, found, size) == 0,
                  "%s on %s of %d elements %s of %g: expected %g, found %g",
                  kiln_instr_info(c->instr.kind)->name, target->name,
                  (int)c->buffers[1].type.dims[1], kiln_dtype_name(c->buffers[0].type.dtype),
                  kiln_element_as_f64(c->buffers[1].type.dtype, c->data[1], 0),
                  kiln_element_as_f64(c->buffers[0].type.dtype, c->data[0], i),
                  kiln_element_as_f64(c->buffers[0].type.dtype, found, 0));
    return true;
}

/* How many cases of @dtype the kernels of @target knew; *@out_n: of how many. */
static unsigned
check_type(const KilnTarget *target, KilnDType dtype, const double *elements, size_t n_elements,
           unsigned *out_n)
{
    unsigned known = 0;
    for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++) {
        for (size_t l = 0; l < G_N_ELEMENTS(lengths); l++) {
            for (size_t e = 0; e < n_elements; e++) {
                g_autoptr(RefCase) c = case_of(kinds[k], dtype, lengths[l], elements[e]);
                const KilnKernel *kernel = kiln_target_find(target, &c->instr);
                if (!kernel)
                    continue;
                known += expect_same(c, target, kernel);
                ++*out_n;
            }
        }
    }
    return known;
}

Test(cpu_equal_elements, floats_of_the_reference)
{
    const KilnDType types[] = { KILN_DTYPE_f32, KILN_DTYPE_f64, KILN_DTYPE_f16, KILN_DTYPE_bf16 };
    for (size_t t = 0; t < G_N_ELEMENTS(types); t++) {
        unsigned n = 0;
        cr_expect_eq(check_type(kiln_ref_target(), types[t], floats, G_N_ELEMENTS(floats), &n), n);
        cr_expect_gt(n, 3000);
    }
}

Test(cpu_equal_elements, integers_of_the_reference)
{
    const double whole[] = { 0, 1, 2, 3, 7, 100 }, negative[] = { -1, -3, -100 };
    const double flags[] = { 0, 1 };
    for (KilnDType dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
        unsigned n = 0;
        if (!kiln_dtype_is_integer(dtype))
            continue;
        cr_expect_eq(check_type(kiln_ref_target(), dtype, whole, G_N_ELEMENTS(whole), &n), n);
        if (kiln_dtype_is_signed(dtype)) {
            n = 0;
            cr_expect_eq(check_type(kiln_ref_target(), dtype, negative, 3, &n), n);
        }
    }
    unsigned n = 0;
    cr_expect_eq(check_type(kiln_ref_target(), KILN_DTYPE_bool, flags, 2, &n), n);
}

Test(cpu_equal_elements, the_cpu)
{
    unsigned n = 0;
    cr_expect_eq(check_type(kiln_cpu_target(), KILN_DTYPE_f32, floats, G_N_ELEMENTS(floats), &n),
                 n);
}

/* Columns have the order of rows. */
Test(cpu_equal_elements, columns)
{
    for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++) {
        g_autoptr(RefCase) c = case_new(kinds[k]);
        case_out(c, KILN_DTYPE_f32, DIMS(2));
        case_in(c, KILN_DTYPE_f32, DIMS(33001, 2), NULL);
        CASE_ATTRS(c, reduce_sum)->axes = CASE_INTS(c, 0);
        for (int64_t i = 0; i < INT64_C(2) * 33001; i++)
            ((float *)c->data[1])[i] = 0.1f;
        const size_t size = sizeof(float);
        const KilnKernel *kernel = kiln_target_find(kiln_cpu_target(), &c->instr);
        if (!kernel)
            continue;
        void *out[CASE_MAX_OPERANDS] = { NULL };
        uint8_t found[8];
        cr_assert(kernel->of_equal(&c->instr, c->data[1], found));
        cr_assert_null(cpu_run(c, &(CpuCall){ .threads = 2 }, out));
        cr_expect_eq(memcmp(out[0], found, size), 0, "%s", kiln_instr_info(kinds[k])->name);
        free(out[0]);
    }
}

/* More than anybody would add one by one: a power of two times the element, however often it is
 * rounded on the way. */
Test(cpu_equal_elements, many)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_reduce_sum);
    case_out(c, KILN_DTYPE_f64, SCALAR);
    case_in(c, KILN_DTYPE_f64, DIMS(1), VALUES(1));
    CASE_ATTRS(c, reduce_sum)->axes = CASE_INTS(c, 0);
    c->buffers[1].type.dims[0] = INT64_C(1) << 40;
    double found, element = 0.75;
    cr_assert(case_kernel(c)->of_equal(&c->instr, &element, &found));
    cr_expect_eq(found, 0.75 * 0x1p40);
    element = 0.1; /* until the sum is so large that one more is lost in it */
    c->buffers[1].type.dims[0] = INT64_MAX;
    cr_assert(case_kernel(c)->of_equal(&c->instr, &element, &found));
    cr_expect(found >= 0.1 * 0x1p53 / 2 && found + 0.1 == found, "found %g", found);
}
