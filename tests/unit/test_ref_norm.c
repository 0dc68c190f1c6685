/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend's normalisations, on values computed from the definitions in f64. */
#include "ir/instr.h"
#include "ref_case.h"

#define F32 KILN_DTYPE_f32

static const double counting[] = { 1, 2, 3, 4, 5, 6, 7, 8 };

static RefCase *
batch_normalization(void)
{
    RefCase *c = case_new(KILN_INSTR_batch_normalization);
    CASE_ATTRS(c, batch_normalization)->epsilon = 0.5f;
    CASE_ATTRS(c, batch_normalization)->momentum = 0.75f;
    case_out(c, F32, DIMS(2, 2, 2));
    case_in(c, F32, DIMS(2, 2, 2), counting);
    case_in(c, F32, DIMS(2), VALUES(2, 0.5));
    case_in(c, F32, DIMS(2), VALUES(1, -1));
    case_in(c, F32, DIMS(2), VALUES(3, 4));
    case_in(c, KILN_DTYPE_f64, DIMS(2), VALUES(4, 0.25));
    return c;
}

Test(ref_norm, batch_normalization)
{
    g_autoptr(RefCase) c = batch_normalization();
    case_gives(c,
               VALUES(-0.885618083, 0.0571909584, -1.57735027, -1, 2.88561808, 3.82842712,
                      0.732050808, 1.30940108),
               1e-6);
}

/* Rows of channels: pairs are the same numbers with the last two dims swapped. */
Test(ref_norm, batch_normalization_of_the_last_dim)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_batch_normalization);
    CASE_ATTRS(c, batch_normalization)->epsilon = 0.5f;
    CASE_ATTRS(c, batch_normalization)->axis = -1;
    case_out(c, F32, DIMS(2, 2, 2));
    case_in(c, F32, DIMS(2, 2, 2), VALUES(1, 3, 2, 4, 5, 7, 6, 8));
    case_in(c, F32, DIMS(2), VALUES(2, 0.5));
    case_in(c, F32, DIMS(2), VALUES(1, -1));
    case_in(c, F32, DIMS(2), VALUES(3, 4));
    case_in(c, KILN_DTYPE_f64, DIMS(2), VALUES(4, 0.25));
    case_gives(c,
               VALUES(-0.885618083, -1.57735027, 0.0571909584, -1, 2.88561808, 0.732050808,
                      3.82842712, 1.30940108),
               1e-6);
}

Test(ref_norm, batch_normalization_while_training)
{
    g_autoptr(RefCase) c = batch_normalization();
    CASE_ATTRS(c, batch_normalization)->training_mode = true;
    case_out(c, F32, DIMS(2));
    case_out(c, F32, DIMS(2));
    void *own = c->data[0];
    c->data[0] = c->data[1]; /* in place */
    case_gives(c,
               VALUES(-1.29415734, -0.376494403, -1.57353933, -1.3441236, 2.3764944, 3.29415734,
                      -0.655876399, -0.426460665),
               1e-6);
    case_expect(c, 6, VALUES(3.125, 4.375), 1e-6);
    case_expect(c, 7, VALUES(4.0625, 1.25), 1e-6);
    c->data[0] = own;
}

Test(ref_norm, instance_normalization)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_instance_normalization);
    CASE_ATTRS(c, instance_normalization)->epsilon = 0.5f;
    case_out(c, F32, DIMS(2, 2, 2));
    case_in(c, F32, DIMS(2, 2, 2), counting);
    case_in(c, F32, DIMS(2), VALUES(2, 0.5));
    case_in(c, F32, DIMS(2), VALUES(1, -1));
    case_gives(c,
               VALUES(-0.154700538, 2.15470054, -1.28867513, -0.711324865, -0.154700538, 2.15470054,
                      -1.28867513, -0.711324865),
               1e-6);
}

Test(ref_norm, group_normalization)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_group_normalization);
    CASE_ATTRS(c, group_normalization)->epsilon = 0.5f;
    CASE_ATTRS(c, group_normalization)->num_groups = 2;
    case_out(c, F32, DIMS(1, 4, 2));
    case_in(c, F32, DIMS(1, 4, 2), VALUES(1, 2, 4, 8, -1, 0, 3, 5));
    case_in(c, F32, DIMS(4), VALUES(1, 2, 3, 4));
    case_in(c, F32, DIMS(4), VALUES(0, 1, 2, 3));
    case_gives(c,
               VALUES(-0.991836598, -0.631168744, 1.18033393, 4.06567676, -1.31662479, -0.110579412,
                      5.01007563, 8.22619664),
               1e-6);
    CASE_ATTRS(c, group_normalization)->num_groups = 3;
    cr_expect_null(case_kernel(c));
}

Test(ref_norm, layer_normalization)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_layer_normalization);
    CASE_ATTRS(c, layer_normalization)->epsilon = 0.5f;
    case_out(c, F32, DIMS(2, 3));
    case_in(c, F32, DIMS(2, 3), VALUES(1, 2, 6, -1, 0, 4));
    case_in(c, F32, DIMS(3), VALUES(1, 2, 3));
    case_in(c, F32, DIMS(3), VALUES(0.5, 0, -0.5));
    case_out(c, F32, DIMS(2, 1));
    case_out(c, F32, DIMS(2, 1));
    case_gives(c,
               VALUES(-0.37988269, -0.87988269, 3.45947211, -0.37988269, -0.87988269, 3.45947211),
               1e-6);
    case_expect(c, 4, VALUES(3, 1), 0);
    case_expect(c, 5, VALUES(0.439941345, 0.439941345), 1e-6);
}

Test(ref_norm, layer_normalization_over_two_dims)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_layer_normalization);
    CASE_ATTRS(c, layer_normalization)->axis = 1;
    case_out(c, F32, DIMS(1, 2, 2));
    case_in(c, F32, DIMS(1, 2, 2), VALUES(1, 2, 6, -1));
    case_in(c, F32, DIMS(2, 1), VALUES(1, 2));
    case_gives(c, VALUES(-0.392231969, 0, 3.13785575, -2.35339181), 1e-6);
}

Test(ref_norm, rms_normalization)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_rms_normalization);
    CASE_ATTRS(c, rms_normalization)->axis = 1;
    CASE_ATTRS(c, rms_normalization)->epsilon = 0.5f;
    case_out(c, F32, DIMS(2, 2));
    case_in(c, F32, DIMS(2, 2), VALUES(1, 2, 3, -4));
    case_in(c, F32, DIMS(2), VALUES(1, 3));
    case_gives(c, VALUES(0.577350269, 3.46410162, 0.832050294, -3.32820118), 1e-6);
}

/* Sums are rounded before they are normalized: in f16, 2048.75 is 2048. */
Test(ref_norm, residuals)
{
    g_autoptr(RefCase) layer = case_new(KILN_INSTR_layer_normalization);
    CASE_ATTRS(layer, layer_normalization)->epsilon = 0.5f;
    case_out(layer, F32, DIMS(2, 3));
    case_in(layer, F32, DIMS(2, 3), VALUES(0, 0, 8, -3, 0, 2));
    case_in(layer, F32, DIMS(3), VALUES(1, 2, 3));
    for (int i = 0; i < 3; i++)
        case_absent(layer);
    case_in(layer, F32, DIMS(2, 3), VALUES(1, 2, -2, 2, 0, 2));
    case_gives(layer,
               VALUES(-0.87988269, -0.87988269, 3.95947211, -0.87988269, -0.87988269, 3.95947211),
               1e-6);
    g_autoptr(RefCase) rms = case_new(KILN_INSTR_rms_normalization);
    CASE_ATTRS(rms, rms_normalization)->axis = 1;
    CASE_ATTRS(rms, rms_normalization)->epsilon = 0.5f;
    case_out(rms, F32, DIMS(2, 2));
    case_in(rms, F32, DIMS(2, 2), VALUES(0, 2, 1, -2));
    case_in(rms, F32, DIMS(2), VALUES(1, 3));
    case_in(rms, F32, DIMS(2, 2), VALUES(1, 0, 2, -2));
    case_gives(rms, VALUES(0.577350269, 3.46410162, 0.832050294, -3.32820118), 1e-6);
    g_autoptr(RefCase) half = case_new(KILN_INSTR_layer_normalization);
    case_out(half, KILN_DTYPE_f16, DIMS(1, 2));
    case_in(half, KILN_DTYPE_f16, DIMS(1, 2), VALUES(2048, 2048));
    case_in(half, KILN_DTYPE_f16, DIMS(2), VALUES(1, 1));
    for (int i = 0; i < 3; i++)
        case_absent(half);
    case_in(half, KILN_DTYPE_f16, DIMS(1, 2), VALUES(0.75, 0));
    case_gives(half, VALUES(0, 0), 0);
}

Test(ref_norm, mean_variance_normalization)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_mean_variance_normalization);
    CASE_ATTRS(c, mean_variance_normalization)->axes = CASE_INTS(c, 0, 2);
    case_out(c, F32, DIMS(2, 2, 2));
    case_in(c, F32, DIMS(2, 2, 2), counting);
    void *own = c->data[0];
    c->data[0] = c->data[1]; /* in place */
    case_gives(c,
               VALUES(-1.21267812, -0.727606875, -1.21267812, -0.727606875, 0.727606875, 1.21267812,
                      0.727606875, 1.21267812),
               1e-6);
    c->data[0] = own;
}

Test(ref_norm, lp_normalization)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_lp_normalization);
    case_out(c, F32, DIMS(2, 2));
    case_in(c, F32, DIMS(2, 2), VALUES(3, -4, 0, 0));
    case_gives(c, VALUES(0.6, -0.8, 0, 0), 1e-7);
    CASE_ATTRS(c, lp_normalization)->p = 1;
    case_gives(c, VALUES(3. / 7, -4. / 7, 0, 0), 1e-7);
    CASE_ATTRS(c, lp_normalization)->axis = 0;
    case_gives(c, VALUES(1, -1, 0, 0), 1e-7);
    CASE_ATTRS(c, lp_normalization)->p = 3;
    cr_expect_null(case_kernel(c));
}

Test(ref_norm, lrn)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_lrn);
    CASE_ATTRS(c, lrn)->alpha = 0.5f;
    CASE_ATTRS(c, lrn)->bias = 2;
    CASE_ATTRS(c, lrn)->size = 3;
    case_out(c, F32, DIMS(1, 4, 1));
    case_in(c, F32, DIMS(1, 4, 1), VALUES(1, 2, 3, 4));
    case_gives(c, VALUES(0.457906435, 0.665906758, 0.70981766, 1.02216766), 1e-6);
    CASE_ATTRS(c, lrn)->size = 2;
    case_gives(c, VALUES(0.41313071, 0.576647639, 0.616283859, 1.04338972), 1e-6);
}

Test(ref_norm, normalisations_of_nothing)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_instance_normalization);
    case_out(c, F32, DIMS(2, 2, 0));
    case_in(c, F32, DIMS(2, 2, 0), NULL);
    case_in(c, F32, DIMS(2), VALUES(1, 1));
    case_in(c, F32, DIMS(2), VALUES(0, 0));
    cr_expect_null(case_run(c));
    g_autoptr(RefCase) l = case_new(KILN_INSTR_layer_normalization);
    case_out(l, F32, DIMS(2, 0));
    case_in(l, F32, DIMS(2, 0), NULL);
    case_in(l, F32, DIMS(1), VALUES(1));
    cr_expect_null(case_run(l));
}
