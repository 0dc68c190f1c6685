/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's max_pool with indices, max_pool of f64 and max_unpool against the reference. */
#include "graph/base/number.h"
#include "graph/kiln-types.h"
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>

static const Tolerance exact = { 0, 0 };

typedef struct {
    int rank; /* spatial dims */
    int64_t in[3], kernel[3], stride[3], dilation[3], pads[6];
} Windows;

static const Windows cases[] = {
    { 1, { 300 }, { 3 }, { 1 }, { 1 }, { 0, 0 } },
    { 1, { 9 }, { 3 }, { 2 }, { 2 }, { 2, 1 } },
    { 1, { 2 }, { 5 }, { 1 }, { 1 }, { 4, 4 } },
    { 2, { 8, 600 }, { 2, 2 }, { 2, 2 }, { 1, 1 }, { 0, 0, 0, 0 } },
    { 2, { 7, 9 }, { 3, 3 }, { 1, 1 }, { 2, 2 }, { 1, 1, 1, 1 } },
    { 2, { 5, 5 }, { 3, 2 }, { 3, 2 }, { 1, 1 }, { 2, 0, 1, 1 } },
    { 3, { 4, 5, 6 }, { 2, 2, 2 }, { 2, 2, 2 }, { 1, 1, 1 }, { 0, 0, 0, 0, 0, 0 } },
    { 3, { 3, 4, 5 }, { 2, 1, 3 }, { 1, 2, 1 }, { 1, 1, 2 }, { 1, 0, 2, 0, 0, 1 } },
};

/* Some elements are equal, some NaN, some infinite. */
static void
fill(RefCase *c, uint32_t i, uint32_t seed)
{
    static const double odd[] = { NAN, -INFINITY, INFINITY, -0.0 };
    const KilnType *type = &c->buffers[i].type;
    Random r = { seed };
    for (int64_t k = 0; k < kiln_type_elements(type); k++) {
        double value = (double)below(&r, 7) - 3;
        if (below(&r, 16) == 0)
            value = odd[below(&r, G_N_ELEMENTS(odd))];
        kiln_element_store_f64(type->dtype, c->data[i], k, value);
    }
}

/* All pools have these lists. */
static RefCase *
pool_case(KilnInstrKind kind, const Windows *w, KilnDType dtype, int64_t out[5])
{
    RefCase *c = case_new(kind);
    const uint32_t n = (uint32_t)w->rank;
    int64_t in[5] = { 2, 3 };
    out[0] = 2;
    out[1] = 3;
    for (int d = 0; d < w->rank; d++) {
        int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1;
        in[d + 2] = w->in[d];
        out[d + 2] = (w->in[d] + w->pads[d] + w->pads[d + w->rank] - reach) / w->stride[d] + 1;
    }
    CASE_ATTRS(c, max_pool)->kernel_shape = kiln_ints_make(c->arena, w->kernel, n);
    CASE_ATTRS(c, max_pool)->strides = kiln_ints_make(c->arena, w->stride, n);
    CASE_ATTRS(c, max_pool)->dilations = kiln_ints_make(c->arena, w->dilation, n);
    CASE_ATTRS(c, max_pool)->pads = kiln_ints_make(c->arena, w->pads, 2 * n);
    case_out(c, dtype, w->rank + 2, out);
    case_in(c, dtype, w->rank + 2, in, NULL);
    fill(c, 1, 7);
    return c;
}

static void
check(const Windows *w, KilnDType dtype, bool indices, int64_t order)
{
    int64_t out[5];
    g_autoptr(RefCase) c = pool_case(KILN_INSTR_max_pool, w, dtype, out);
    CASE_ATTRS(c, max_pool)->storage_order = order;
    if (indices)
        case_out(c, KILN_DTYPE_i64, w->rank + 2, out);
    cpu_agrees(c, exact, "max_pool");
}

Test(cpu_max_indices, pools)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (int64_t order = 0; order < 2; order++) {
            check(&cases[i], KILN_DTYPE_f32, true, order);
            check(&cases[i], KILN_DTYPE_f64, true, order);
        }
        check(&cases[i], KILN_DTYPE_f64, false, 0);
    }
}

Test(cpu_max_indices, pools_of_powers)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_f32, KILN_DTYPE_f64 };
    for (size_t i = 0; i < 6 * G_N_ELEMENTS(cases); i++) {
        int64_t out[5], ends[5] = { 2, 3, 1, 1, 1 };
        const Windows *w = &cases[i / 6];
        g_autoptr(RefCase) c = pool_case(KILN_INSTR_lp_pool, w, dtypes[i & 1], out);
        CASE_ATTRS(c, lp_pool)->p = (int64_t)(i / 2 % 3) + 1;
        cpu_agrees(c, (Tolerance){ 0, i & 1 ? 4e-15 : 1e-6 }, "lp_pool");
        g_autoptr(RefCase) whole = case_new(KILN_INSTR_global_lp_pool);
        CASE_ATTRS(whole, global_lp_pool)->p = (int64_t)(i / 2 % 3) + 1;
        case_out(whole, dtypes[i & 1], w->rank + 2, ends);
        case_in(whole, dtypes[i & 1], w->rank + 2, c->buffers[1].type.dims, NULL);
        fill(whole, 1, 9);
        cpu_agrees(whole, (Tolerance){ 0, i & 1 ? 4e-15 : 1e-6 }, "global_lp_pool");
    }
}

/* @local: each index lies in the plane of its element, as max_pool gives it. */
static RefCase *
unpool(KilnDType dtype, bool local)
{
    RefCase *c = case_new(KILN_INSTR_max_unpool);
    Random r = { 3 };
    CASE_ATTRS(c, max_unpool)->kernel_shape = CASE_INTS(c, 2, 2);
    CASE_ATTRS(c, max_unpool)->strides = CASE_INTS(c, 2, 2);
    case_out(c, dtype, DIMS(2, 3, 8, 10));
    case_in(c, dtype, DIMS(2, 3, 4, 5), NULL);
    cpu_fill(c, 1, 1);
    case_in(c, KILN_DTYPE_i64, DIMS(2, 3, 4, 5), NULL);
    for (int64_t i = 0; i < 120; i++)
        ((int64_t *)c->data[2])[i] = local ? i / 20 * 80 + below(&r, 80) : below(&r, 480);
    return c;
}

Test(cpu_max_indices, unpools)
{
    static const KilnDType types[] = { KILN_DTYPE_u8, KILN_DTYPE_f16, KILN_DTYPE_f32,
                                       KILN_DTYPE_f64 };
    for (size_t t = 0; t < G_N_ELEMENTS(types); t++) {
        for (int local = 0; local < 2; local++) {
            g_autoptr(RefCase) c = unpool(types[t], local);
            cpu_agrees(c, exact, "max_unpool");
        }
    }
    g_autoptr(RefCase) c = unpool(KILN_DTYPE_f32, true);
    ((int64_t *)c->data[2])[7] = 480;
    cr_expect_str_eq(case_run(c), "an index is out of range");
    cpu_agrees(c, exact, "out of range");
    ((int64_t *)c->data[2])[7] = -1;
    cpu_agrees(c, exact, "below");
}
