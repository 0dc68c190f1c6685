/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions and softmax of the cpu backend have the bits that the sequence of what they read gives
 * them, whichever dims it runs along and whatever stands around it, for any number of threads. */
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <string.h>

static const KilnInstrKind kinds[] = {
    KILN_INSTR_reduce_sum,        KILN_INSTR_reduce_mean, KILN_INSTR_reduce_l1,
    KILN_INSTR_reduce_l2,         KILN_INSTR_reduce_max,  KILN_INSTR_reduce_min,
    KILN_INSTR_reduce_sum_square,
};

/* Dims of -1 make up the sequence, whose length is shared out among them; the others are kept. */
typedef struct {
    int rank;
    int64_t dims[5];
} Layout;

static const Layout layouts[] = {
    { 2, { 12, -1 } },           { 2, { -1, 12 } },       { 3, { 3, -1, 4 } },
    { 3, { -1, 12, -1 } },       { 3, { -1, -1, 12 } },   { 4, { -1, 3, -1, 4 } },
    { 5, { -1, 2, -1, 6, -1 } }, { 4, { 2, -1, 6, -1 } }, { 4, { -1, 6, -1, 2 } },
};

enum {
    KEPT = 12
};

/* Element @j of sequence @k: numbers of different size, zeros of both signs, and with @specials
 * infinities and NaNs. */
static float
element(int64_t k, int64_t j, bool specials)
{
    static const float values[] = { -0.0f, 0.0f, INFINITY, NAN, -INFINITY };
    const uint32_t state = (uint32_t)(k * 7919 + j) * 2654435761u + 12345;
    const uint32_t bits = (state ^ state >> 15) * 2246822519u;
    if (k < 3 && bits % 5 < 2) /* nothing but zeros, or they are the greatest, or the least */
        return values[bits >> 13 & 1];
    if (k < 3)
        return k == 0 ? -0.0f : k == 1 ? -(float)(bits >> 20) : (float)(bits >> 20);
    if (bits % 11 == 0 && k % 3 == 0)
        return values[bits / 11 % (specials ? 5 : 2)];
    return ((float)(bits >> 8) / (float)(1 << 23) - 1) * (bits & 16 ? 100.0f : 1.0f);
}

/* The dims of @layout for sequences of @n elements; false where they cannot be shared out. */
static bool
dims_of(const Layout *layout, int64_t n, int64_t *dims)
{
    int left = 0;
    for (int d = 0; d < layout->rank; d++)
        left += layout->dims[d] < 0;
    for (int d = 0; d < layout->rank; d++) {
        dims[d] = layout->dims[d];
        if (dims[d] >= 0)
            continue;
        for (dims[d] = left == 1 ? n : MIN(n, 7); n % dims[d]; dims[d]--)
            ;
        n /= dims[d];
        left--;
    }
    return n == 1;
}

static RefCase *
case_of(KilnInstrKind kind, const Layout *layout, int64_t n, bool specials)
{
    int64_t dims[5], axes[5], kept[5];
    uint32_t n_axes = 0, n_kept = 0;
    if (!dims_of(layout, n, dims))
        return NULL;
    for (int d = 0; d < layout->rank; d++) {
        if (layout->dims[d] < 0)
            axes[n_axes++] = d;
        else
            kept[n_kept++] = dims[d];
    }
    RefCase *c = case_new(kind);
    case_out(c, KILN_DTYPE_f32, (int)n_kept, kept);
    case_in(c, KILN_DTYPE_f32, layout->rank, dims, NULL);
    CASE_ATTRS(c, reduce_sum)->axes = kiln_ints_make(c->arena, axes, n_axes);
    for (int64_t e = 0; e < n * KEPT; e++) {
        int64_t rest = e, k = 0, j = 0, k_step = 1, j_step = 1;
        for (int d = layout->rank - 1; d >= 0; rest /= dims[d], d--) {
            const bool reduced = layout->dims[d] < 0;
            *(reduced ? &j : &k) += rest % dims[d] * (reduced ? j_step : k_step);
            *(reduced ? &j_step : &k_step) *= dims[d];
        }
        ((float *)c->data[1])[e] = element(k, j, specials);
    }
    return c;
}

static void
expect_bits(const float *want, const float *found, const char *what)
{
    for (int64_t k = 0; k < KEPT; k++) {
        const bool nans = isnan(want[k]) && isnan(found[k]);
        cr_assert(nans || memcmp(&want[k], &found[k], sizeof *want) == 0,
                  "%s, element %d: expected %a, found %a", what, (int)k, (double)want[k],
                  (double)found[k]);
    }
}

/* All ways in which sequences of @n elements may lie. */
static void
check(KilnInstrKind kind, int64_t n, bool specials)
{
    void *want[CASE_MAX_OPERANDS] = { NULL };
    for (size_t i = 0; i < G_N_ELEMENTS(layouts); i++) {
        g_autoptr(RefCase) c = case_of(kind, &layouts[i], n, specials);
        for (int threads = 1; c && threads <= 3; threads++) {
            void *out[CASE_MAX_OPERANDS] = { NULL };
            g_autofree char *what =
                g_strdup_printf("%s of %d elements, layout %d, %d threads",
                                kiln_instr_info(kind)->name, (int)n, (int)i, threads);
            cr_assert_null(cpu_run(c, &(CpuCall){ .threads = threads }, out));
            if (i == 0 && threads == 1)
                memcpy(want, out, sizeof want);
            else
                expect_bits(want[0], out[0], what);
            if (i > 0 || threads > 1)
                cpu_free(out);
        }
    }
    cpu_free(want);
}

Test(cpu_reduce_order, same_bits_along_any_dims)
{
    for (int64_t n = 1; n <= 100; n++) {
        for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++)
            check(kinds[k], n, (n + (int64_t)k) % 2);
    }
}

/* Several groups, blocks and pieces. */
Test(cpu_reduce_order, same_bits_of_long_sequences)
{
    static const int64_t lengths[] = { 128, 560, 4095, 4096, 4100, 8232, 36000 };
    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
        for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++)
            check(kinds[k], lengths[i], i % 2);
    }
}

/* Element @j of sequence @k of results of which the next in it lies @inner further. */
static float
result_at(const float *out, int64_t n, int64_t inner, int64_t k, int64_t j)
{
    return out[(k / inner * n + j) * inner + k % inner];
}

static void
check_softmax(KilnInstrKind kind, int64_t n, bool specials)
{
    enum {
        SEQUENCES = 48
    };
    static const int64_t inners[] = { 1, SEQUENCES, 2, 3, 4, 6, 12 };
    void *want[CASE_MAX_OPERANDS] = { NULL };
    for (size_t i = 0; i < G_N_ELEMENTS(inners); i++) {
        const int64_t dims[] = { SEQUENCES / inners[i], n, inners[i] };
        void *out[CASE_MAX_OPERANDS] = { NULL };
        g_autoptr(RefCase) c = case_new(kind);
        case_out(c, KILN_DTYPE_f32, 3, dims);
        case_in(c, KILN_DTYPE_f32, 3, dims, NULL);
        CASE_ATTRS(c, softmax)->axis = 1;
        for (int64_t e = 0; e < n * SEQUENCES; e++)
            ((float *)c->data[1])[e] = element(e / (n * inners[i]) * inners[i] + e % inners[i],
                                               e / inners[i] % n, specials);
        cr_assert_null(cpu_run(c, &(CpuCall){ .threads = 1 + (int)i % 3 }, out));
        if (i == 0)
            memcpy(want, out, sizeof want);
        for (int64_t e = 0; e < n * SEQUENCES; e++) {
            const float x = result_at(want[0], n, 1, e / n, e % n);
            const float y = result_at(out[0], n, inners[i], e / n, e % n);
            cr_assert((isnan(x) && isnan(y)) || memcmp(&x, &y, sizeof x) == 0,
                      "%s of %d elements, %d apart: expected %a, found %a",
                      kiln_instr_info(kind)->name, (int)n, (int)inners[i], (double)x, (double)y);
        }
        if (i > 0)
            cpu_free(out);
    }
    cpu_free(want);
}

Test(cpu_reduce_order, same_bits_of_softmax_along_any_dim)
{
    for (int64_t n = 1; n <= 100; n++) {
        check_softmax(KILN_INSTR_softmax, n, n % 2);
        check_softmax(KILN_INSTR_log_softmax, n, n % 2);
    }
    check_softmax(KILN_INSTR_softmax, 4200, false);
    check_softmax(KILN_INSTR_log_softmax, 4200, false);
}
