/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's tensor_scatter, col2im, affine_grid, cum_prod and cum_sum against the
 * reference. */
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <string.h>

static const Tolerance exact = { 0, 0 }, rounded = { 2e-6, 2e-6 };

/* --- tensor_scatter --- */

static RefCase *
scatter_case(const char *mode, int64_t axis, const int64_t cache[4], int64_t n, const double *at)
{
    RefCase *c = case_new(KILN_INSTR_tensor_scatter);
    int64_t update[4];
    memcpy(update, cache, sizeof update);
    update[axis] = n;
    CASE_ATTRS(c, tensor_scatter)->mode = mode;
    CASE_ATTRS(c, tensor_scatter)->axis = axis;
    case_out(c, KILN_DTYPE_f32, 4, cache);
    cpu_in(c, 4, cache);
    cpu_in(c, 4, update);
    if (at)
        case_in(c, KILN_DTYPE_i64, 1, cache, at);
    return c;
}

Test(cpu_scatter, caches)
{
    static const int64_t dims[] = { 2, 3, 8, 5 };
    for (int64_t axis = 1; axis < 4; axis++) {
        g_autoptr(RefCase) first = scatter_case("linear", axis, dims, 3, NULL);
        cpu_agrees(first, exact, "at 0");
        g_autoptr(RefCase) none = scatter_case("linear", axis, dims, 0, VALUES(1, 0));
        cpu_agrees(none, exact, "nothing");
        g_autoptr(RefCase) ring = scatter_case("circular", axis, dims, 3, VALUES(-1, 13));
        cpu_agrees(ring, exact, "around the end");
    }
    g_autoptr(RefCase) inside = scatter_case("linear", 2, dims, 3, VALUES(5, 1));
    cpu_agrees(inside, exact, "at the end");
}

Test(cpu_scatter, indices_out_of_range)
{
    static const int64_t dims[] = { 2, 3, 8, 5 };
    g_autoptr(RefCase) behind = scatter_case("linear", 2, dims, 3, VALUES(6, 1));
    cr_expect_str_eq(case_run(behind), "an index is out of range");
    g_autoptr(RefCase) before = scatter_case("linear", 2, dims, 3, VALUES(0, -1));
    cr_expect_str_eq(case_run(before), "an index is out of range");
}

/* --- col2im --- */

typedef struct {
    int rank;
    int64_t image[3], block[3], strides[3], dilations[3], pads[6];
} Fold;

static void
try_fold(const Fold *f, int64_t batch, int64_t channels)
{
    const uint32_t rank = (uint32_t)f->rank;
    int64_t out[5] = { batch, channels }, columns = channels, blocks = 1;
    for (int d = 0; d < f->rank; d++) {
        const int64_t room = f->image[d] + f->pads[d] + f->pads[d + f->rank] -
                             f->dilations[d] * (f->block[d] - 1) - 1;
        out[d + 2] = f->image[d];
        columns *= f->block[d];
        blocks *= room / f->strides[d] + 1;
    }
    g_autoptr(RefCase) c = case_new(KILN_INSTR_col2im);
    KilnInstrAttrs_col2im *attrs = CASE_ATTRS(c, col2im);
    attrs->block_shape = kiln_ints_make(c->arena, f->block, rank);
    attrs->strides = kiln_ints_make(c->arena, f->strides, rank);
    attrs->dilations = kiln_ints_make(c->arena, f->dilations, rank);
    attrs->pads = kiln_ints_make(c->arena, f->pads, 2 * rank);
    case_out(c, KILN_DTYPE_f32, f->rank + 2, out);
    cpu_in(c, 3, (int64_t[]){ batch, columns, blocks });
    cpu_agrees(c, rounded, "col2im");
}

Test(cpu_scatter, blocks)
{
    static const Fold folds[] = {
        { 2, { 5, 7 }, { 2, 3 }, { 1, 1 }, { 1, 1 }, { 0 } },
        { 2, { 5, 7 }, { 2, 3 }, { 2, 2 }, { 1, 2 }, { 1, 0, 0, 2 } },
        { 2, { 6, 40 }, { 3, 1 }, { 1, 1 }, { 2, 1 }, { 2, 3, 1, 0 } },
        { 1, { 30 }, { 4 }, { 3 }, { 2 }, { 2, 1 } },
        { 3, { 4, 3, 5 }, { 2, 2, 2 }, { 1, 2, 1 }, { 1, 1, 2 }, { 0, 1, 0, 1, 0, 2 } },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(folds); i++) {
        try_fold(&folds[i], 2, 3);
        try_fold(&folds[i], 1, 1);
        try_fold(&folds[i], 0, 2);
    }
}

/* --- affine_grid --- */

Test(cpu_scatter, grids)
{
    static const int64_t sizes[][3] = { { 1, 1, 1 }, { 4, 7, 0 }, { 3, 5, 70 }, { 2, 1, 9 } };
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        for (int align = 0; align < 2; align++) {
            const int64_t *s = sizes[i];
            g_autoptr(RefCase) flat = case_new(KILN_INSTR_affine_grid);
            CASE_ATTRS(flat, affine_grid)->align_corners = align;
            case_out(flat, KILN_DTYPE_f32, 4, (int64_t[]){ 2, s[1], s[2], 2 });
            cpu_in(flat, 3, (int64_t[]){ 2, 2, 3 });
            cpu_agrees(flat, rounded, "2 dims");
            g_autoptr(RefCase) deep = case_new(KILN_INSTR_affine_grid);
            CASE_ATTRS(deep, affine_grid)->align_corners = align;
            case_out(deep, KILN_DTYPE_f32, 5, (int64_t[]){ 3, s[0], s[1], s[2], 3 });
            cpu_in(deep, 3, (int64_t[]){ 3, 3, 4 });
            cpu_agrees(deep, rounded, "3 dims");
        }
    }
}

/* --- cum_prod and cum_sum --- */

static void
try_cumulative(KilnInstrKind kind, KilnDType dtype, int64_t axis, int flags)
{
    g_autoptr(RefCase) c = case_new(kind);
    CASE_ATTRS(c, cum_sum)->axis = axis;
    CASE_ATTRS(c, cum_sum)->exclusive = flags & 1;
    CASE_ATTRS(c, cum_sum)->reverse = flags & 2;
    const int64_t dims[] = { 3, 5, 70 };
    case_out(c, dtype, 3, dims);
    case_in(c, dtype, 3, dims, NULL);
    cpu_fill(c, 1, 7);
    cpu_agrees(c, exact, kiln_instr_info(kind)->name);
}

Test(cpu_scatter, running_sums_and_products)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_f32, KILN_DTYPE_f64, KILN_DTYPE_i32,
                                        KILN_DTYPE_i64, KILN_DTYPE_u32, KILN_DTYPE_u64 };
    for (size_t i = 0; i < G_N_ELEMENTS(dtypes); i++) {
        for (int k = 0; k < 12; k++) {
            try_cumulative(KILN_INSTR_cum_prod, dtypes[i], k % 3, k / 3);
            try_cumulative(KILN_INSTR_cum_sum, dtypes[i], k % 3, k / 3);
        }
    }
}

/* Axes that are counted from the last one. */
Test(cpu_scatter, running_sums_along_negative_axes)
{
    for (int k = 0; k < 12; k++)
        try_cumulative(KILN_INSTR_cum_sum, KILN_DTYPE_f32, -1 - k % 3, k / 3);
}
