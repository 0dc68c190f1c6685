/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend's resize and grid_sample. Linear interpolation of the ramp 0, 1, 2 … gives
 * the coordinate itself, so that the coordinate modes can be read off. */
#include "ir/instr.h"
#include "ref_case.h"

#include <math.h>

#define F32 KILN_DTYPE_f32

static const double ramp[] = { 0, 1, 2, 3, 4, 5, 6, 7 };

/* One dim from @in to @out elements. */
static RefCase *
line(KilnDType dtype, int64_t in, int64_t out, const double *data)
{
    RefCase *c = case_new(KILN_INSTR_resize);
    case_out(c, dtype, DIMS(out));
    case_in(c, dtype, DIMS(in), data);
    return c;
}

static KilnFloats
floats(RefCase *c, uint32_t n, const float *values)
{
    return (KilnFloats){ n, kiln_arena_copy(c->arena, values, n * sizeof *values) };
}

static void
coordinates(const char *mode, int64_t in, int64_t out, float scale, const double *expected)
{
    g_autoptr(RefCase) c = line(KILN_DTYPE_f64, in, out, ramp);
    KilnInstrAttrs_resize *attrs = CASE_ATTRS(c, resize);
    attrs->mode = "linear";
    attrs->coordinate_transformation_mode = mode;
    attrs->scales = floats(c, 1, &scale);
    case_gives(c, expected, 1e-7);
}

Test(ref_resize, coordinates)
{
    coordinates("half_pixel", 4, 2, 0.5f, VALUES(0.5, 2.5));
    coordinates("half_pixel", 2, 4, 2, VALUES(0, 0.25, 0.75, 1));
    coordinates("asymmetric", 4, 2, 0.5f, VALUES(0, 2));
    coordinates("asymmetric", 2, 4, 2, VALUES(0, 0.5, 1, 1));
    coordinates("align_corners", 4, 3, 0.75f, VALUES(0, 1.5, 3));
    coordinates("align_corners", 4, 1, 0.25f, VALUES(0));
    coordinates("pytorch_half_pixel", 4, 2, 0.5f, VALUES(0.5, 2.5));
    coordinates("pytorch_half_pixel", 4, 1, 0.25f, VALUES(0));
    coordinates("half_pixel", 4, 1, 0.25f, VALUES(1.5));
    /* 3.2 elements are cut to 3: what is left out is shared by both ends */
    coordinates("half_pixel_symmetric", 4, 3, 0.8f,
                VALUES(0.125 + 0.625 - 0.5, 0.125 + 1.875 - 0.5, 0.125 + 3.125 - 0.5));
    coordinates("half_pixel_symmetric", 4, 2, 0.5f, VALUES(0.5, 2.5));
    /* the stated scale counts, not the ratio of the extents */
    coordinates("half_pixel", 4, 3, 0.8f, VALUES(0.125, 1.375, 2.625));
    coordinates("align_corners", 4, 2, 0.6f, VALUES(0, 3 / (4 * (double)0.6f - 1)));
}

Test(ref_resize, crops)
{
    static const struct {
        int64_t out;
        float roi[2];
        double expected[3];
    } rows[] = {
        { 3, { 0.5f, 1 }, { 1.5, 2.25, 3 } },
        { 3, { 0.5f, 1.5f }, { 1.5, 3, -9 } },
        { 2, { -0.5f, 0 }, { -9, 0 } },
        { 1, { 0, 0.5f }, { 0.75 } },
        { 3, { 1, 0 }, { 3, 1.5, 0 } },
        { 2, { NAN, 1 }, { -9, -9 } },
        { 2, { -INFINITY, INFINITY }, { -9, -9 } },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(RefCase) c = line(F32, 4, rows[i].out, ramp);
        KilnInstrAttrs_resize *attrs = CASE_ATTRS(c, resize);
        attrs->mode = "linear";
        attrs->coordinate_transformation_mode = "tf_crop_and_resize";
        attrs->roi = floats(c, 2, rows[i].roi);
        attrs->extrapolation_value = -9;
        case_gives(c, rows[i].expected, 1e-6);
    }
}

Test(ref_resize, nearest_modes)
{
    static const struct {
        const char *mode;
        double expected[8]; /* of 0, 0.25, 0.5 … 1.75 */
    } rows[] = {
        { "floor", { 0, 0, 0, 0, 1, 1, 1, 1 } },
        { "ceil", { 0, 1, 1, 1, 1, 1, 1, 1 } },
        { "round_prefer_floor", { 0, 0, 0, 1, 1, 1, 1, 1 } },
        { "round_prefer_ceil", { 0, 0, 1, 1, 1, 1, 1, 1 } },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(RefCase) c = line(KILN_DTYPE_i64, 2, 8, ramp);
        CASE_ATTRS(c, resize)->nearest_mode = rows[i].mode;
        CASE_ATTRS(c, resize)->coordinate_transformation_mode = "asymmetric";
        case_gives(c, rows[i].expected, 0);
    }
}

/* Elements are copied: integers beyond the digits of a double stay. */
Test(ref_resize, nearest_keeps_every_bit)
{
    g_autoptr(RefCase) c = line(KILN_DTYPE_u64, 1, 2, NULL);
    ((uint64_t *)c->data[1])[0] = UINT64_MAX - 1;
    cr_assert_null(case_run(c));
    cr_expect_eq(((uint64_t *)c->data[0])[1], UINT64_MAX - 1);
}

/* A scale that is a rounded ratio is the ratio: as a float it would put a whole coordinate beside.
 */
Test(ref_resize, scales_of_stated_sizes_are_exact)
{
    g_autoptr(RefCase) c = line(F32, 6, 2, ramp);
    const float scale = 2.f / 6.f;
    CASE_ATTRS(c, resize)->scales = floats(c, 1, &scale);
    CASE_ATTRS(c, resize)->nearest_mode = "floor";
    CASE_ATTRS(c, resize)->coordinate_transformation_mode = "asymmetric";
    case_gives(c, VALUES(0, 3), 0);
}

/* --- grid_sample --- */

/* Of 1 2 4 8, whose outermost positions are ±0.75 without align_corners. */
static void
samples(const char *mode, const char *padding, bool align, uint32_t n, const double *positions,
        const double *expected)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_grid_sample);
    *CASE_ATTRS(c, grid_sample) = (KilnInstrAttrs_grid_sample){ .align_corners = align,
                                                                .mode = mode,
                                                                .padding_mode = padding };
    case_out(c, F32, DIMS(1, 1, n));
    case_in(c, F32, DIMS(1, 1, 4), VALUES(1, 2, 4, 8));
    case_in(c, F32, DIMS(1, n, 1), positions);
    case_gives(c, expected, 1e-6);
}

Test(ref_resize, grid_sample)
{
    const double *edges = VALUES(-1, -0.75, 0, 0.75, 1), *far = VALUES(-1.5, -1.25, 1.25, NAN);
    samples("linear", "zeros", false, 5, edges, VALUES(0.5, 1, 3, 8, 4));
    samples("linear", "border", false, 5, edges, VALUES(1, 1, 3, 8, 8));
    samples("linear", "zeros", true, 5, edges, VALUES(1, 1.375, 3, 6.5, 8));
    samples("linear", "zeros", false, 4, far, VALUES(0, 0, 0, 0));
    samples("linear", "border", false, 4, far, VALUES(1, 1, 8, 1));
    samples("linear", "reflection", false, 3, far, VALUES(1.5, 1, 8));
    samples("linear", "reflection", true, 3, far, VALUES(1.75, 1.375, 6.5));
    /* Half to even: -0.5 is 0, 0.5 is 0, 1.5 is 2, 3.5 is 4. */
    samples("nearest", "zeros", false, 4, VALUES(-1, -0.5, 0, 1), VALUES(1, 1, 4, 0));
    samples("nearest", "border", false, 4, far, VALUES(1, 1, 8, 1));
    samples("nearest", "reflection", false, 3, far, VALUES(2, 1, 8));
    /* 19/32 and -3/32 at the halves. */
    samples("cubic", "zeros", false, 1, VALUES(0), VALUES((19. * 6 - 3 * 9) / 32));
    samples("cubic", "border", false, 1, VALUES(-1), VALUES((19. * 2 - 3 * 3) / 32));
    samples("cubic", "reflection", false, 1, VALUES(-1), VALUES((19. * 2 - 3 * 4) / 32));
}

/* The first number of a position is the place in a row. */
Test(ref_resize, grid_sample_of_pictures)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_grid_sample);
    *CASE_ATTRS(c, grid_sample) = (KilnInstrAttrs_grid_sample){ .align_corners = true,
                                                                .mode = "linear",
                                                                .padding_mode = "zeros" };
    case_out(c, F32, DIMS(1, 2, 1, 3));
    case_in(c, F32, DIMS(1, 2, 2, 3), VALUES(0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15));
    case_in(c, F32, DIMS(1, 1, 3, 2), VALUES(1, -1, -1, 1, 0.5, 0));
    case_gives(c, VALUES(2, 3, 3, 12, 13, 13), 1e-6);
}

/* --- roi_align --- */

/* Of the rows 0 1 2 3 and 10 11 12 13: a bin of one row, from x1 to x2 at y. */
static void
aligns(const char *mode, bool half, int64_t ratio, uint32_t n, const double *regions,
       const double *expected)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_roi_align);
    *CASE_ATTRS(c, roi_align) = (KilnInstrAttrs_roi_align){
        .coordinate_transformation_mode = half ? "half_pixel" : "output_half_pixel",
        .mode = mode,
        .output_height = 1,
        .output_width = 1,
        .sampling_ratio = ratio,
        .spatial_scale = 1,
    };
    case_out(c, F32, DIMS(n, 1, 1, 1));
    case_in(c, F32, DIMS(1, 1, 2, 4), VALUES(0, 1, 2, 3, 10, 11, 12, 13));
    case_in(c, F32, DIMS(n, 4), regions);
    case_in(c, KILN_DTYPE_i64, DIMS(n), VALUES(0, 0));
    case_gives(c, expected, 1e-6);
}

Test(ref_resize, roi_align)
{
    /* The middles of 1 … 3 and 0 … 1 are those of the elements without the half, and between. */
    aligns("avg", false, 1, 2, VALUES(1, 0, 3, 1, 0, 0, 1, 2), VALUES(7, 10.5));
    aligns("avg", true, 1, 2, VALUES(1, 0, 3, 1, 0, 0, 1, 2), VALUES(1.5, 5));
    /* As many samples as the region has elements; a point has none with the half. */
    aligns("avg", true, 0, 2, VALUES(0, 0, 4, 2, 1, 1, 1, 1), VALUES(6.5, 0));
    aligns("avg", false, 0, 1, VALUES(1, 1, 1, 1), VALUES(11.5));
    /* One element outside is like the edge, further out is nothing. */
    aligns("avg", false, 1, 2, VALUES(-1.4, 0, -0.4, 0, -1.6, 0, -0.6, 0), VALUES(5, 0));
    /* The largest of four weighted neighbours: 13 / 4 and 12 * 0.75 * 0.5. */
    aligns("max", false, 1, 1, VALUES(2, 0, 3, 1), VALUES(3.25));
    aligns("max", false, 1, 1, VALUES(1.75, 0, 2.75, 1), VALUES(4.5));
}

static const double doubling[] = { 1, 2, 4, 8 };

Test(ref_resize, cubic)
{
    for (int outside = 0; outside < 2; outside++) {
        g_autoptr(RefCase) c = line(F32, 4, 2, doubling);
        CASE_ATTRS(c, resize)->mode = "cubic";
        CASE_ATTRS(c, resize)->exclude_outside = outside;
        case_gives(c, outside ? VALUES(9. / 7, 44.4 / 7) : VALUES(1.3125, 6.1875), 1e-6);
    }
    /* a = -0.5: 9/16 and -1/16 at the halves */
    g_autoptr(RefCase) keys = line(F32, 4, 2, doubling);
    CASE_ATTRS(keys, resize)->mode = "cubic";
    CASE_ATTRS(keys, resize)->cubic_coeff_a = -0.5f;
    case_gives(keys, VALUES(22. / 16, 98. / 16), 1e-6);
}

Test(ref_resize, antialias)
{
    g_autoptr(RefCase) linear = line(F32, 4, 2, doubling);
    CASE_ATTRS(linear, resize)->mode = "linear";
    CASE_ATTRS(linear, resize)->antialias = true;
    case_gives(linear, VALUES(1.75, 5.75), 1e-6);

    /* outside elements left out: weights 3, 3, 1 of 7 */
    CASE_ATTRS(linear, resize)->exclude_outside = true;
    case_gives(linear, VALUES(13. / 7, 38. / 7), 1e-6);

    /* at 1/6 the triangle of width 4/3 weighs 1, 7, 3 of 11 */
    g_autoptr(RefCase) sixths = line(F32, 4, 3, ramp);
    CASE_ATTRS(sixths, resize)->mode = "linear";
    CASE_ATTRS(sixths, resize)->antialias = true;
    case_gives(sixths, VALUES(3. / 11, 1.5, 30. / 11), 1e-6);

    /* the published example of the cubic one, along one dim */
    g_autoptr(RefCase) cubic = line(F32, 4, 2, ramp);
    const float scale = 0.6f;
    CASE_ATTRS(cubic, resize)->mode = "cubic";
    CASE_ATTRS(cubic, resize)->antialias = true;
    CASE_ATTRS(cubic, resize)->scales = floats(cubic, 1, &scale);
    case_gives(cubic, VALUES(0.3036144, 2.0714286), 1e-6);

    /* enlarging is not changed by it */
    g_autoptr(RefCase) larger = line(F32, 2, 4, ramp);
    CASE_ATTRS(larger, resize)->mode = "linear";
    CASE_ATTRS(larger, resize)->antialias = true;
    case_gives(larger, VALUES(0, 0.25, 0.75, 1), 1e-6);

    /* a constant stays itself */
    g_autoptr(RefCase) constant = line(F32, 8, 3, VALUES(5, 5, 5, 5, 5, 5, 5, 5));
    CASE_ATTRS(constant, resize)->mode = "cubic";
    CASE_ATTRS(constant, resize)->antialias = true;
    case_gives(constant, VALUES(5, 5, 5), 1e-6);
}

Test(ref_resize, two_dims)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_resize);
    CASE_ATTRS(c, resize)->mode = "linear";
    CASE_ATTRS(c, resize)->coordinate_transformation_mode = "align_corners";
    case_out(c, F32, DIMS(1, 1, 3, 3));
    case_in(c, F32, DIMS(1, 1, 2, 2), VALUES(1, 3, 5, 11));
    case_gives(c, VALUES(1, 2, 3, 3, 5, 7, 5, 8, 11), 1e-6);
}

Test(ref_resize, integers_round_to_even_and_saturate)
{
    g_autoptr(RefCase) c = line(KILN_DTYPE_i32, 4, 3, VALUES(0, 1, 2, 3));
    CASE_ATTRS(c, resize)->mode = "linear";
    CASE_ATTRS(c, resize)->coordinate_transformation_mode = "align_corners";
    case_gives(c, VALUES(0, 2, 3), 0);

    /* the cubic overshoots on both sides of a step */
    g_autoptr(RefCase) step = line(KILN_DTYPE_u8, 6, 12, VALUES(0, 0, 0, 255, 255, 255));
    CASE_ATTRS(step, resize)->mode = "cubic";
    cr_assert_null(case_run(step));
    cr_expect_eq(((uint8_t *)step->data[0])[4], 0);
    cr_expect_eq(((uint8_t *)step->data[0])[7], 255);
}

Test(ref_resize, infinities_do_not_spread)
{
    g_autoptr(RefCase) c = line(F32, 3, 3, VALUES(1, INFINITY, 2));
    CASE_ATTRS(c, resize)->mode = "cubic";
    case_gives(c, VALUES(1, INFINITY, 2), 0);
}

Test(ref_resize, empty)
{
    g_autoptr(RefCase) none = line(F32, 3, 0, ramp);
    cr_expect_null(case_run(none));
    g_autoptr(RefCase) nothing = line(F32, 0, 3, NULL);
    cr_expect_not_null(case_run(nothing));
}
