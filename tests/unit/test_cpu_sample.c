/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's roi_align, max_roi_pool and deform_conv against the reference. */
#include "backends/cpu/cpu.h"
#include "ir/instr.h"
#include "ir/target.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>

/* Weights are rounded to float, as are sums of rows and of columns. */
static const Tolerance exact = { 0, 0 }, rounded = { 4e-6, 4e-6 };

static const int64_t pictures[][4] = {
    { 1, 3, 9, 7 }, { 2, 70, 5, 20 }, { 3, 1, 1, 1 }, { 1, 2, 40, 33 }, { 1, 0, 4, 4 },
};
static const int64_t bins[][2] = { { 7, 7 }, { 1, 1 }, { 3, 18 }, { 14, 2 }, { 5, 40 } };

/* --- roi_align --- */

/* Regions lie inside, hang over, lie outside, are swapped, and are points. */
static RefCase *
align_case(const int64_t picture[4], const int64_t out[2], const char *mode, bool half,
           int64_t ratio)
{
    RefCase *c = case_new(KILN_INSTR_roi_align);
    *CASE_ATTRS(c, roi_align) = (KilnInstrAttrs_roi_align){
        .coordinate_transformation_mode = half ? "half_pixel" : "output_half_pixel",
        .mode = mode,
        .output_height = out[0],
        .output_width = out[1],
        .sampling_ratio = ratio,
        .spatial_scale = 0.5f,
    };
    case_out(c, KILN_DTYPE_f32, DIMS(7, picture[1], out[0], out[1]));
    cpu_in(c, 4, picture);
    case_in(c, KILN_DTYPE_f32, DIMS(7, 4),
            VALUES(0, 0, 14, 10, 3.3, 2.7, 9.1, 8.4, -9, -7, 60, 90, 200, 3, 240, 9, 12, 9, 2, 1, 5,
                   5, 5, 5, 1, 1, 4, 2.5));
    case_in(c, KILN_DTYPE_i64, DIMS(7),
            VALUES(0, (double)(picture[0] - 1), 0, 0, 0, (double)(picture[0] / 2), 0));
    return c;
}

Test(cpu_sample, roi_align)
{
    for (size_t i = 0; i < G_N_ELEMENTS(pictures) * G_N_ELEMENTS(bins) * 12; i++) {
        const int64_t *picture = pictures[i / 12 % G_N_ELEMENTS(pictures)];
        const int64_t *out = bins[i / 12 / G_N_ELEMENTS(pictures)];
        const char *mode = i % 2 ? "max" : "avg";
        g_autoptr(RefCase) c = align_case(picture, out, mode, i / 2 % 2, (int64_t)(i / 4 % 3));
        g_autofree char *what = g_strdup_printf("roi_align %d", (int)i);
        cpu_agrees(c, rounded, what);
    }
}

/* Of a picture with numbers that are not finite, and of regions that are nowhere or everywhere. */
Test(cpu_sample, roi_align_of_strange_numbers)
{
    for (int i = 0; i < 8; i++) {
        g_autoptr(RefCase) c = align_case((int64_t[]){ 1, 1, 4, 4 }, (int64_t[]){ 2, 3 },
                                          i % 2 ? "max" : "avg", i / 2 % 2, i / 4);
        float *picture = c->data[1], *regions = c->data[2];
        picture[2] = INFINITY;
        picture[7] = NAN;
        picture[9] = -INFINITY;
        for (int k = 0; k < 7; k++)
            regions[k * 4 + k % 4] = (float[]){ NAN, INFINITY, -INFINITY, 1e30f }[k % 4];
        regions[6 * 4 + 2] = 4;
        cpu_agrees(c, rounded, "strange numbers");
    }
}

Test(cpu_sample, roi_align_fails)
{
    g_autoptr(RefCase) c = align_case(pictures[0], bins[0], "avg", true, 2);
    ((int64_t *)c->data[3])[6] = 1;
    cr_expect_str_eq(case_run(c), "index out of range");
    cpu_agrees(c, exact, "behind the last picture");
    ((int64_t *)c->data[3])[6] = -1;
    cpu_agrees(c, exact, "before the first picture");
    g_autoptr(RefCase) nothing = align_case((int64_t[]){ 1, 2, 0, 4 }, bins[0], "avg", true, 2);
    cr_expect_str_eq(case_run(nothing), "there is nothing to sample");
    cpu_agrees(nothing, exact, "nothing to sample");
}

Test(cpu_sample, roi_align_without_bins)
{
    g_autoptr(RefCase) c = align_case(pictures[0], (int64_t[]){ 0, 3 }, "max", true, 2);
    cpu_agrees(c, exact, "no rows of bins");
    g_autoptr(RefCase) thin = align_case(pictures[0], (int64_t[]){ 3, 0 }, "avg", true, 0);
    cpu_agrees(thin, exact, "no columns of bins");
}

/* Tables of gigabytes are not made: the reference needs none. */
Test(cpu_sample, large_tables_fall_back)
{
    const int64_t wide[] = { 1, 1, 1, 100000 };
    g_autoptr(RefCase) c = align_case(wide, (int64_t[]){ 1, 7 }, "avg", true, 2);
    cr_expect_not_null(kiln_target_find(kiln_cpu_target(), &c->instr));
    g_autoptr(RefCase) many = align_case(wide, (int64_t[]){ 1, 100 }, "avg", true, 2);
    cr_expect_null(kiln_target_find(kiln_cpu_target(), &many->instr));
    g_autoptr(RefCase) high =
        align_case((int64_t[]){ 1, 1, 100000, 1 }, (int64_t[]){ 100, 1 }, "avg", true, 2);
    cr_expect_null(kiln_target_find(kiln_cpu_target(), &high->instr));
}

/* --- max_roi_pool --- */

static RefCase *
pool_case(const int64_t picture[4], const int64_t out[2])
{
    RefCase *c = case_new(KILN_INSTR_max_roi_pool);
    CASE_ATTRS(c, max_roi_pool)->spatial_scale = 0.5f;
    CASE_ATTRS(c, max_roi_pool)->pooled_shape = kiln_ints_make(c->arena, out, 2);
    case_out(c, KILN_DTYPE_f32, DIMS(5, picture[1], out[0], out[1]));
    cpu_in(c, 4, picture);
    case_in(c, KILN_DTYPE_f32, DIMS(5, 5),
            VALUES(0, 0, 0, 14, 10, (double)(picture[0] - 1), 3.3, 2.7, 9.1, 8.4, 0, -9, -7, 60, 90,
                   0, 200, 3, 240, 9, 0, 12, 9, 2, 1));
    return c;
}

Test(cpu_sample, max_roi_pool)
{
    for (size_t i = 0; i < G_N_ELEMENTS(pictures) * G_N_ELEMENTS(bins); i++) {
        g_autoptr(RefCase) c =
            pool_case(pictures[i % G_N_ELEMENTS(pictures)], bins[i / G_N_ELEMENTS(pictures)]);
        g_autofree char *what = g_strdup_printf("max_roi_pool %d", (int)i);
        cpu_agrees(c, exact, what);
    }
}

Test(cpu_sample, max_roi_pool_of_strange_numbers)
{
    g_autoptr(RefCase) c = pool_case((int64_t[]){ 1, 2, 6, 6 }, (int64_t[]){ 3, 3 });
    float *picture = c->data[1], *regions = c->data[2];
    picture[2] = INFINITY;
    picture[7] = NAN;
    picture[40] = -INFINITY;
    for (int k = 0; k < 5; k++)
        regions[k * 5 + 1 + k % 4] = (float[]){ NAN, INFINITY, -INFINITY, 1e30f }[k % 4];
    cpu_agrees(c, exact, "strange numbers");
    regions[5] = NAN;
    cr_expect_str_eq(case_run(c), "index out of range");
    cpu_agrees(c, exact, "no picture");
}

/* --- deform_conv --- */

typedef struct {
    int64_t picture[4], kernel[2], out[2];
    int64_t channels, group, offset_group, stride, pad, dilation;
    bool bias, mask;
} Deform;

static const Deform deforms[] = {
    { { 1, 3, 9, 7 }, { 3, 3 }, { 7, 5 }, 5, 1, 1, 1, 0, 1, true, true },
    { { 2, 40, 12, 11 }, { 3, 3 }, { 12, 11 }, 33, 1, 2, 1, 1, 1, true, false },
    { { 1, 12, 10, 10 }, { 2, 3 }, { 5, 4 }, 6, 3, 4, 2, 0, 1, false, true },
    { { 1, 24, 8, 9 }, { 3, 3 }, { 8, 9 }, 8, 2, 3, 1, 2, 2, true, true },
    { { 3, 4, 1, 1 }, { 1, 1 }, { 1, 1 }, 4, 4, 1, 1, 0, 1, false, false },
};

static RefCase *
deform_case(const Deform *d)
{
    const int64_t taps = d->kernel[0] * d->kernel[1], places = d->offset_group * taps;
    const int64_t n = d->picture[0], pads[] = { d->pad, d->pad, d->pad, d->pad };
    RefCase *c = case_new(KILN_INSTR_deform_conv);
    *CASE_ATTRS(c, deform_conv) = (KilnInstrAttrs_deform_conv){
        .dilations = kiln_ints_make(c->arena, (int64_t[]){ d->dilation, d->dilation }, 2),
        .pads = kiln_ints_make(c->arena, pads, 4),
        .strides = kiln_ints_make(c->arena, (int64_t[]){ d->stride, d->stride }, 2),
        .group = d->group,
        .offset_group = d->offset_group,
    };
    case_out(c, KILN_DTYPE_f32, DIMS(n, d->channels, d->out[0], d->out[1]));
    cpu_in(c, 4, d->picture);
    cpu_in(c, DIMS(d->channels, d->picture[1] / d->group, d->kernel[0], d->kernel[1]));
    cpu_in(c, DIMS(n, 2 * places, d->out[0], d->out[1]));
    if (d->bias)
        cpu_in(c, DIMS(d->channels));
    else
        case_absent(c);
    if (d->mask)
        cpu_in(c, DIMS(n, places, d->out[0], d->out[1]));
    return c;
}

/* Sums of up to 360 products of numbers of up to 9, in another order than the reference has. */
static const Tolerance summed = { 3e-4, 3e-5 };

Test(cpu_sample, deform_conv)
{
    for (size_t i = 0; i < G_N_ELEMENTS(deforms); i++) {
        g_autoptr(RefCase) c = deform_case(&deforms[i]);
        g_autofree char *what = g_strdup_printf("deform_conv %d", (int)i);
        cpu_agrees(c, summed, what);
    }
}

/* Places that are far away or no numbers, and places on elements beside infinities. */
Test(cpu_sample, deform_conv_of_strange_places)
{
    const Deform d = { { 1, 2, 4, 4 }, { 1, 1 }, { 4, 4 }, 1, 1, 1, 1, 0, 1, false, false };
    static const float strange[] = { NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 3e9f, 0, 0 };
    g_autoptr(RefCase) c = deform_case(&d);
    float *picture = c->data[1], *offsets = c->data[3];
    picture[6] = INFINITY;
    picture[11] = NAN;
    for (int i = 0; i < 32; i++)
        offsets[i] = strange[i * 7 % 8];
    cpu_agrees(c, summed, "strange places");
    for (int i = 0; i < 32; i++)
        offsets[i] = (float)(i % 3 - 1);
    cpu_agrees(c, summed, "whole numbers");
}

Test(cpu_sample, deform_conv_of_empty_kernels)
{
    const Deform d = { { 1, 2, 4, 4 }, { 0, 1 }, { 5, 4 }, 2, 1, 1, 1, 0, 1, true, false };
    g_autoptr(RefCase) c = deform_case(&d);
    cpu_agrees(c, exact, "an empty kernel");
    g_autoptr(RefCase) none =
        deform_case(&(Deform){ { 0, 2, 4, 4 }, { 1, 1 }, { 4, 4 }, 2, 1, 1, 1, 0, 1, true, true });
    cr_expect_null(kiln_target_find(kiln_cpu_target(), &none->instr));
}

/* An offset that f32 loses beside the number of the kernel element. */
Test(cpu_sample, deform_conv_of_tiny_offsets)
{
    const Deform d = { { 1, 1, 1, 4 }, { 1, 2 }, { 1, 3 }, 1, 1, 1, 1, 0, 1, false, false };
    g_autoptr(RefCase) c = deform_case(&d);
    float *picture = c->data[1], *offsets = c->data[3];
    for (int i = 0; i < 4; i++)
        picture[i] = i == 2 ? 0x1p24f : 0;
    for (int i = 0; i < 12; i++)
        offsets[i] = i / 3 % 2 ? 0x1p-24f : 0;
    cpu_agrees(c, exact, "tiny offsets");
}

/* Kernel elements that are too far away to be counted in 32 bits. */
Test(cpu_sample, deform_conv_of_far_kernels_falls_back)
{
    const int64_t far = INT64_C(1) << 29;
    g_autoptr(RefCase) c = deform_case(
        &(Deform){ { 1, 1, 1, 1 }, { 2, 1 }, { 1, 1 }, 1, 1, 1, 1, far / 2, far, false, false });
    cr_expect_null(kiln_target_find(kiln_cpu_target(), &c->instr));
}

Test(cpu_sample, deform_conv_falls_back)
{
    g_autoptr(RefCase) c = deform_case(
        &(Deform){ { 1, 2, 0, 4 }, { 1, 1 }, { 0, 4 }, 1, 1, 1, 1, 0, 1, false, false });
    cr_expect_null(kiln_target_find(kiln_cpu_target(), &c->instr));
}
