/* SPDX-License-Identifier: Apache-2.0 */
/* The reference kernels of classical machine learning, by hand. */
#include "ir/instr.h"
#include "tests/unit/ref_case.h"

#include <math.h>

Test(ref_learn, the_last_key_wins_and_nan_is_a_key)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_label_encoder);
    case_out(c, KILN_DTYPE_i64, DIMS(5));
    case_in(c, KILN_DTYPE_f32, DIMS(5), (double[]){ 1, (double)NAN, 2, -0.0, 7 });
    case_in(c, KILN_DTYPE_f32, DIMS(4), (double[]){ 1, (double)NAN, 0, 1 });
    case_in(c, KILN_DTYPE_i64, DIMS(4), (double[]){ 10, 20, 30, 40 });
    case_in(c, KILN_DTYPE_i64, DIMS(1), (double[]){ -1 });
    case_gives(c, (double[]){ 40, 20, -1, 30, -1 }, 0);
}

Test(ref_learn, distances_of_rows)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_squared_distance);
    case_out(c, KILN_DTYPE_f64, DIMS(2, 3));
    case_in(c, KILN_DTYPE_f64, DIMS(2, 2), (double[]){ 0, 0, 1, 2 });
    case_in(c, KILN_DTYPE_f64, DIMS(3, 2), (double[]){ 0, 0, 3, 4, 1, 2 });
    case_gives(c, (double[]){ 0, 25, 5, 5, 8, 0 }, 0);
}

/* Pairs that agree with each other have one solution: r[s,t] = p[s] / (p[s] + p[t]). The rounds end
 * near it. */
Test(ref_learn, pairs_that_agree)
{
    static const double p[] = { 0.2, 0.5, 0.3 };
    g_autoptr(RefCase) c = case_new(KILN_INSTR_pairwise_coupling);
    CASE_ATTRS(c, pairwise_coupling)->classes = 3;
    case_out(c, KILN_DTYPE_f32, DIMS(2, 3));
    case_in(c, KILN_DTYPE_f32, DIMS(2, 3),
            (double[]){ 0.2 / 0.7, 0.2 / 0.5, 0.5 / 0.8, 0.5, 0.5, 0.5 });
    case_gives(c, (double[]){ p[0], p[1], p[2], 1.0 / 3, 1.0 / 3, 1.0 / 3 }, 4e-3);
}

/* x[2] <= 0.5 (or NaN) ? (x[0] <= -1 ? node 3 : node 4) : node 2, then the leaf 5. */
static RefCase *
trees(const char *aggregate)
{
    RefCase *c = case_new(KILN_INSTR_tree_ensemble);
    CASE_ATTRS(c, tree_ensemble)->n_targets = 2;
    CASE_ATTRS(c, tree_ensemble)->aggregate = aggregate;
    case_out(c, KILN_DTYPE_f32, DIMS(4, 2));
    case_in(c, KILN_DTYPE_f32, DIMS(4, 3),
            (double[]){ 0, 9, 0.5, -1, 9, 0, 0, 9, 1, (double)NAN, 9, (double)NAN });
    case_in(c, KILN_DTYPE_i32, DIMS(2), (double[]){ 0, 5 });
    case_in(c, KILN_DTYPE_i32, DIMS(6), (double[]){ 2, 0, 0, 0, 0, 0 });
    case_in(c, KILN_DTYPE_f32, DIMS(6), (double[]){ 0.5, -1, 0, 0, 0, 0 });
    case_in(c, KILN_DTYPE_i32, DIMS(6), (double[]){ 1, 3, 2, 3, 4, 5 });
    case_in(c, KILN_DTYPE_bool, DIMS(6), (double[]){ 1, 0, 0, 0, 0, 0 });
    case_in(c, KILN_DTYPE_i32, DIMS(7), (double[]){ 0, 0, 0, 1, 3, 4, 5 });
    case_in(c, KILN_DTYPE_i32, DIMS(5), (double[]){ 0, 0, 1, 1, 0 });
    case_in(c, KILN_DTYPE_f32, DIMS(5), (double[]){ 1, 2, 3, 4, 10 });
    return c;
}

Test(ref_learn, leaves_add_up)
{
    g_autoptr(RefCase) c = trees("SUM");
    case_gives(c, (double[]){ 10, 4, 12, 3, 11, 0, 10, 4 }, 0);
}

Test(ref_learn, targets_without_an_entry_are_0)
{
    g_autoptr(RefCase) least = trees("MIN"), greatest = trees("MAX");
    case_gives(least, (double[]){ 10, 4, 2, 3, 1, 0, 10, 4 }, 0);
    case_gives(greatest, (double[]){ 10, 4, 10, 3, 10, 0, 10, 4 }, 0);
}
