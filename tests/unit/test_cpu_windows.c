/* SPDX-License-Identifier: Apache-2.0 */
/* Random windows on the cpu target against the reference kernels: pools, convolutions and their
 * transposes in one to three dims, with extents, steps and paddings of all kinds, and resize and
 * softmax along any dim. NaN and infinities where what they meet is no padding. */
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CASES = 120,
    CASES_LONG = 2000
};

/* Quarters, whose sums are exact in any order; with @wild now and then what is no number. */
static void
add_in(RefCase *c, int rank, const int64_t *dims, Random *r, bool wild)
{
    static const double odd[] = { NAN, INFINITY, -INFINITY, -0.0, 1e-41 };
    case_in(c, KILN_DTYPE_f32, rank, dims, NULL);
    float *x = c->data[c->instr.n_operands - 1];
    int64_t n = kiln_type_elements(&c->buffers[c->instr.n_operands - 1].type);
    for (int64_t k = 0; k < n; k++) {
        x[k] = (float)((double)below(r, 17) - 8) / 4;
        if (wild && below(r, 30) == 0)
            x[k] = (float)odd[below(r, G_N_ELEMENTS(odd))];
    }
}

/* Problems that @make draws from @seed on, NULL for what is none; every fourth has odd numbers. */
static void
agree(uint32_t seed, RefCase *(*make)(Random *r, bool wild), Tolerance tolerance)
{
    Random r = { seed };
    int n = getenv("KILN_TEST_LONG") ? CASES_LONG : CASES, drawn = 0;
    for (int i = 0; i < n; i++) {
        g_autoptr(RefCase) c = make(&r, i % 4 == 3);
        g_autofree char *what = g_strdup_printf("case %d", i);
        if (c)
            cpu_agrees(c, tolerance, what);
        drawn += c != NULL;
    }
    cr_expect_gt(drawn, n / 2);
}

/* --- windows --- */

typedef struct {
    int n; /* dims */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pads[6];
} Window;

static Window
draw_window(Random *r, bool transposed)
{
    Window w = { .n = 1 + (int)below(r, 3) };
    bool plain = below(r, 2);
    for (int d = 0; d < w.n; d++) {
        bool last = d == w.n - 1;
        w.in[d] = 1 + below(r, !last ? 9 : below(r, 3) ? 24 : 90);
        w.kernel[d] = plain ? 3 : 1 + below(r, 5);
        w.stride[d] = plain ? 1 + w.n % 2 : 1 + below(r, 4);
        w.dilation[d] = plain ? 1 : 1 + below(r, 3);
        w.pads[d] = plain ? 1 : below(r, 5);
        w.pads[d + w.n] = plain ? 1 : below(r, 5);
        int64_t reach = (w.kernel[d] - 1) * w.dilation[d] + 1, pads = w.pads[d] + w.pads[d + w.n];
        w.out[d] = transposed ? (w.in[d] - 1) * w.stride[d] + reach - pads
                              : (w.in[d] + pads - reach) / w.stride[d] + 1;
        if (w.out[d] < 1 || (!transposed && w.in[d] + pads < reach)) { /* none of it fits */
            w.pads[d] = w.pads[d + w.n] = 0;
            w.kernel[d] = 1;
            w.out[d] =
                transposed ? (w.in[d] - 1) * w.stride[d] + 1 : (w.in[d] - 1) / w.stride[d] + 1;
        }
    }
    return w;
}

static void
place(int64_t *dims, int64_t first, int64_t second, const Window *w, const int64_t *extents)
{
    dims[0] = first;
    dims[1] = second;
    memcpy(dims + 2, extents, (size_t)w->n * sizeof *dims);
}

/* Of all four instructions, whose attributes have these names. */
#define SET_STEPS(c, id, w)                                                                        \
    do {                                                                                           \
        KilnInstrAttrs_##id *attrs_ = CASE_ATTRS(c, id);                                           \
        attrs_->dilations = kiln_ints_make((c)->arena, (w)->dilation, (uint32_t)(w)->n);           \
        attrs_->pads = kiln_ints_make((c)->arena, (w)->pads, 2 * (uint32_t)(w)->n);                \
        attrs_->strides = kiln_ints_make((c)->arena, (w)->stride, (uint32_t)(w)->n);               \
    } while (0)

static RefCase *
pool_case(Random *r, bool wild)
{
    Window w = draw_window(r, false);
    bool average = below(r, 2);
    int64_t in[5], out[5], batch = 1 + below(r, 2), channels = 1 + below(r, 4);
    if (below(r, 3) == 0) /* ceil_mode */
        w.out[w.n - 1]++;
    place(in, batch, channels, &w, w.in);
    place(out, batch, channels, &w, w.out);
    RefCase *c = case_new(average ? KILN_INSTR_average_pool : KILN_INSTR_max_pool);
    case_out(c, KILN_DTYPE_f32, w.n + 2, out);
    add_in(c, w.n + 2, in, r, wild);
    const KilnInts kernel = kiln_ints_make(c->arena, w.kernel, (uint32_t)w.n);
    if (average) {
        SET_STEPS(c, average_pool, &w);
        CASE_ATTRS(c, average_pool)->kernel_shape = kernel;
        CASE_ATTRS(c, average_pool)->count_include_pad = below(r, 2);
    } else {
        SET_STEPS(c, max_pool, &w);
        CASE_ATTRS(c, max_pool)->kernel_shape = kernel;
    }
    return c;
}

static RefCase *
conv_case_of(Random *r, bool wild, bool transposed)
{
    Window w = draw_window(r, transposed);
    int64_t groups = 1 + below(r, 3), ic = 1 + below(r, 9), oc = 1 + below(r, below(r, 2) ? 4 : 40);
    int64_t in[5], out[5], weights[5], batch = 1 + below(r, 3);
    if (below(r, 3) == 0)
        ic = 1; /* depthwise where there are groups */
    place(in, batch, groups * ic, &w, w.in);
    place(out, batch, groups * oc, &w, w.out);
    place(weights, transposed ? groups * ic : groups * oc, transposed ? oc : ic, &w, w.kernel);
    RefCase *c = case_new(transposed ? KILN_INSTR_conv_transpose : KILN_INSTR_conv);
    case_out(c, KILN_DTYPE_f32, w.n + 2, out);
    add_in(c, w.n + 2, in, r, wild);
    add_in(c, w.n + 2, weights, r, false);
    if (below(r, 2))
        add_in(c, 1, (int64_t[]){ groups * oc }, r, wild);
    else
        case_absent(c);
    if (!transposed && below(r, 2))
        add_in(c, w.n + 2, out, r, wild);
    else
        case_absent(c);
    if (transposed) {
        SET_STEPS(c, conv_transpose, &w);
        CASE_ATTRS(c, conv_transpose)->group = groups;
        if (below(r, 2))
            CASE_ATTRS(c, conv_transpose)->activation = "relu";
    } else {
        SET_STEPS(c, conv, &w);
        CASE_ATTRS(c, conv)->group = groups;
        if (below(r, 2))
            CASE_ATTRS(c, conv)->activation = "relu";
    }
    return c;
}

static RefCase *
conv_case(Random *r, bool wild)
{
    return conv_case_of(r, wild, false);
}

static RefCase *
transposed_case(Random *r, bool wild)
{
    return conv_case_of(r, wild, true);
}

/* Sums of quarters are exact; a denormal may be lost beside them. A mean, a weight of resize and a
 * softmax are rounded in another order than the reference's, some times by 2^-24 of about one. */
static const Tolerance exact = { 1e-40, 0 }, rounded = { 1e-6, 1e-6 };

Test(cpu_windows, pools)
{
    agree(1, pool_case, rounded);
}

Test(cpu_windows, convolutions)
{
    agree(2, conv_case, exact);
}

Test(cpu_windows, transposed_convolutions)
{
    agree(3, transposed_case, exact);
}

/* --- softmax, resize --- */

static RefCase *
softmax_case(Random *r, bool wild)
{
    int rank = 1 + (int)below(r, 3);
    int64_t dims[3];
    for (int d = 0; d < rank; d++)
        dims[d] = 1 + below(r, below(r, 4) ? 20 : 140);
    RefCase *c = case_new(below(r, 2) ? KILN_INSTR_softmax : KILN_INSTR_log_softmax);
    CASE_ATTRS(c, softmax)->axis = below(r, (uint32_t)rank);
    case_out(c, KILN_DTYPE_f32, rank, dims);
    add_in(c, rank, dims, r, wild);
    return c;
}

static RefCase *
resize_case(Random *r, bool wild)
{
    static const char *const coordinates[] = { "half_pixel", "pytorch_half_pixel", "align_corners",
                                               "asymmetric" };
    static const char *const roundings[] = { "round_prefer_floor", "round_prefer_ceil", "floor",
                                             "ceil" };
    int64_t in[] = { 1, 1 + below(r, 3), 1 + below(r, 9), 1 + below(r, 20) }, out[4];
    float scales[4] = { 1, 1 };
    memcpy(out, in, sizeof out);
    for (int d = 2; d < 4; d++) {
        scales[d] = (float)(1 + below(r, 12)) / 4;
        out[d] = (int64_t)floor((double)((float)in[d] * scales[d]));
        if (out[d] == 0)
            return NULL;
    }
    RefCase *c = case_new(KILN_INSTR_resize);
    KilnInstrAttrs_resize *attrs = CASE_ATTRS(c, resize);
    attrs->mode = below(r, 2) ? "linear" : "nearest";
    attrs->coordinate_transformation_mode = coordinates[below(r, 4)];
    attrs->nearest_mode = roundings[below(r, 4)];
    attrs->scales = (KilnFloats){ 4, kiln_arena_alloc(c->arena, sizeof scales) };
    memcpy((void *)attrs->scales.v, scales, sizeof scales);
    case_out(c, KILN_DTYPE_f32, 4, out);
    add_in(c, 4, in, r, wild);
    return c;
}

Test(cpu_windows, softmax)
{
    agree(4, softmax_case, rounded);
}

Test(cpu_windows, resize)
{
    agree(5, resize_case, rounded);
}
