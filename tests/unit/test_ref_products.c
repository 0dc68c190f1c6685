/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend's matmul, gemm, einsum and det. */
#include "ir/instr.h"
#include "ref_case.h"

#define F32 KILN_DTYPE_f32
#define F64 KILN_DTYPE_f64
#define I32 KILN_DTYPE_i32

static const double one_to_24[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                                    13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24 };

/* --- attention --- */

/* Scores 0 and log 3 · scale: shares of 1/4 and 3/4, the other way around where the mask says so.
 */
Test(ref_products, attention)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_attention);
    CASE_ATTRS(c, attention)->scale = 0.5f;
    case_out(c, F32, DIMS(2, 2));
    case_in(c, F32, DIMS(2, 1), VALUES(2, 0));
    case_in(c, F32, DIMS(2, 1), VALUES(0, 1.09861228867));
    case_in(c, F32, DIMS(2, 2), VALUES(4, 8, 0, -4));
    case_in(c, F32, DIMS(2, 2), VALUES(0, 0, 1.09861228867, 0));
    case_gives(c, VALUES(1, -1, 3, 5), 1e-6);
}

Test(ref_products, attention_broadcasts_batches)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_attention);
    case_out(c, F64, DIMS(2, 1, 1));
    case_in(c, F64, DIMS(1, 1), VALUES(7));
    case_in(c, F64, DIMS(2, 1), VALUES(0, 0));
    case_in(c, F64, DIMS(2, 2, 1), VALUES(2, 4, 10, 20));
    case_gives(c, VALUES(3, 15), 1e-12);
}

/* --- matmul --- */

Test(ref_products, matmul_of_every_type)
{
    for (KilnDType dtype = 0; dtype < KILN_DTYPE_bool; dtype++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_matmul);
        case_out(c, dtype, DIMS(2, 2));
        case_in(c, dtype, DIMS(2, 3), one_to_24);
        case_in(c, dtype, DIMS(3, 2), one_to_24 + 6);
        case_gives(c,
                   VALUES(58, 64, dtype == KILN_DTYPE_i8 ? 139 - 256 : 139,
                          dtype == KILN_DTYPE_i8 ? 154 - 256 : 154),
                   0);
    }
}

/* Weights as they are stored: sums are of the numbers, not of rounded ones. */
Test(ref_products, right_operand_in_16_bits)
{
    static const KilnDType stored[] = { KILN_DTYPE_bf16, KILN_DTYPE_f16 };
    for (int i = 0; i < 4; i++) {
        g_autoptr(RefCase) c = case_new(i < 2 ? KILN_INSTR_matmul : KILN_INSTR_gemm);
        case_out(c, F32, DIMS(1, 2));
        case_in(c, F32, DIMS(1, 2), VALUES(1.0009765625, 2));
        case_in(c, stored[i % 2], DIMS(2, 2), VALUES(1, 2, 3, 0.5));
        case_gives(c, VALUES(7.0009765625, 3.001953125), 0);
    }
}

Test(ref_products, matmul_of_vectors)
{
    g_autoptr(RefCase) dot = case_new(KILN_INSTR_matmul);
    case_out(dot, F32, SCALAR);
    case_in(dot, F32, DIMS(3), VALUES(1, 2, 3));
    case_in(dot, F32, DIMS(3), VALUES(4, 5, 6));
    case_gives(dot, VALUES(32), 0);

    g_autoptr(RefCase) row = case_new(KILN_INSTR_matmul);
    case_out(row, F32, DIMS(2, 2));
    case_in(row, F32, DIMS(2), VALUES(1, 10));
    case_in(row, F32, DIMS(2, 2, 2), one_to_24);
    case_gives(row, VALUES(31, 42, 75, 86), 0);

    g_autoptr(RefCase) column = case_new(KILN_INSTR_matmul);
    case_out(column, F32, DIMS(2, 2));
    case_in(column, F32, DIMS(2, 2, 2), one_to_24);
    case_in(column, F32, DIMS(2), VALUES(1, 10));
    case_gives(column, VALUES(21, 43, 65, 87), 0);
}

/* [2,1,1,2] × [3,2,1] gives [2,3,1,1]. */
Test(ref_products, matmul_broadcasts_batches)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_matmul);
    case_out(c, F32, DIMS(2, 3, 1, 1));
    case_in(c, F32, DIMS(2, 1, 1, 2), VALUES(1, 2, 3, 4));
    case_in(c, F32, DIMS(3, 2, 1), VALUES(1, 0, 0, 1, 1, 1));
    case_gives(c, VALUES(1, 2, 3, 3, 4, 7), 0);
}

Test(ref_products, matmul_over_nothing)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_matmul);
    case_out(c, F32, DIMS(2, 1));
    case_in(c, F32, DIMS(2, 0), NULL);
    case_in(c, F32, DIMS(0, 1), NULL);
    case_gives(c, VALUES(0, 0), 0);

    g_autoptr(RefCase) none = case_new(KILN_INSTR_matmul);
    case_out(none, F32, DIMS(0, 2));
    case_in(none, F32, DIMS(0, 1), NULL);
    case_in(none, F32, DIMS(1, 2), VALUES(1, 2));
    cr_expect_null(case_run(none));
}

Test(ref_products, sums_are_rounded_once_and_integers_wrap)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_matmul);
    case_out(c, F32, SCALAR);
    case_in(c, F32, DIMS(4), VALUES(1e8, 1, 1, -1e8));
    case_in(c, F32, DIMS(4), VALUES(1, 1, 1, 1));
    case_gives(c, VALUES(2), 0);

    g_autoptr(RefCase) wraps = case_new(KILN_INSTR_matmul);
    case_out(wraps, I32, SCALAR);
    case_in(wraps, I32, DIMS(2), VALUES(65536, 1));
    case_in(wraps, I32, DIMS(2), VALUES(65536, 7));
    case_gives(wraps, VALUES(7), 0);

    g_autoptr(RefCase) wide = case_new(KILN_INSTR_matmul);
    case_out(wide, KILN_DTYPE_u64, SCALAR);
    case_in(wide, KILN_DTYPE_u64, DIMS(2), VALUES(4294967296, 3));
    case_in(wide, KILN_DTYPE_u64, DIMS(2), VALUES(4294967296, 5));
    case_gives(wide, VALUES(15), 0);
}

/* --- gemm --- */

static RefCase *
gemm(KilnDType dtype, bool trans_a, bool trans_b)
{
    RefCase *c = case_new(KILN_INSTR_gemm);
    KilnInstrAttrs_gemm *attrs = CASE_ATTRS(c, gemm);
    attrs->transA = trans_a;
    attrs->transB = trans_b;
    case_out(c, dtype, DIMS(2, 2));
    if (trans_a)
        case_in(c, dtype, DIMS(3, 2), VALUES(1, 4, 2, 5, 3, 6));
    else
        case_in(c, dtype, DIMS(2, 3), one_to_24);
    if (trans_b)
        case_in(c, dtype, DIMS(2, 3), VALUES(7, 9, 11, 8, 10, 12));
    else
        case_in(c, dtype, DIMS(3, 2), one_to_24 + 6);
    return c;
}

Test(ref_products, gemm_transposed)
{
    for (int i = 0; i < 4; i++) {
        g_autoptr(RefCase) c = gemm(F32, i & 1, i & 2);
        case_gives(c, VALUES(58, 64, 139, 154), 0);
    }
}

Test(ref_products, gemm_adds_a_broadcast_c)
{
    g_autoptr(RefCase) row = gemm(F32, false, true);
    CASE_ATTRS(row, gemm)->alpha = 0.5f;
    CASE_ATTRS(row, gemm)->beta = 2;
    case_in(row, F32, DIMS(2), VALUES(1, 2));
    case_gives(row, VALUES(31, 36, 71.5, 81), 0);

    g_autoptr(RefCase) column = gemm(F64, true, false);
    case_in(column, F64, DIMS(2, 1), VALUES(100, 200));
    case_gives(column, VALUES(158, 164, 339, 354), 0);

    g_autoptr(RefCase) scalar = gemm(KILN_DTYPE_f16, true, true);
    case_in(scalar, KILN_DTYPE_f16, SCALAR, VALUES(1));
    case_gives(scalar, VALUES(59, 65, 140, 155), 0);
}

Test(ref_products, gemm_of_integers)
{
    g_autoptr(RefCase) c = gemm(I32, false, false);
    case_in(c, I32, DIMS(2, 2), VALUES(1, 2, 3, -4));
    case_gives(c, VALUES(59, 66, 142, 150), 0);
    CASE_ATTRS(c, gemm)->alpha = 0.5f;
    CASE_ATTRS(c, gemm)->beta = 0.25f;
    case_gives(c, VALUES(29, 32, 70, 76), 0);
}

/* --- einsum --- */

typedef struct {
    const char *equation;
    int ranks[3]; /* result, operands; -1: none */
    int64_t dims[3][4];
    const double expected[12];
} Einsum;

static void
einsum(const Einsum *p, KilnDType dtype)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_einsum);
    CASE_ATTRS(c, einsum)->equation = p->equation;
    case_out(c, dtype, p->ranks[0], p->dims[0]);
    for (int i = 1; i < 3 && p->ranks[i] >= 0; i++)
        case_in(c, dtype, p->ranks[i], p->dims[i], one_to_24);
    case_gives(c, p->expected, 0);
}

static const Einsum equations[] = {
    { "ij->ji", { 2, 2, -1 }, { { 3, 2 }, { 2, 3 } }, { 1, 4, 2, 5, 3, 6 } },
    { "ij->", { 0, 2, -1 }, { { 0 }, { 2, 3 } }, { 21 } },
    { "ij", { 2, 2, -1 }, { { 2, 3 }, { 2, 3 } }, { 1, 2, 3, 4, 5, 6 } },
    { "ba", { 2, 2, -1 }, { { 3, 2 }, { 2, 3 } }, { 1, 4, 2, 5, 3, 6 } },
    { "aB", { 2, 2, -1 }, { { 3, 2 }, { 2, 3 } }, { 1, 4, 2, 5, 3, 6 } },
    { "ii", { 0, 2, -1 }, { { 0 }, { 3, 3 } }, { 15 } },
    { "ii->i", { 1, 2, -1 }, { { 3 }, { 3, 3 } }, { 1, 5, 9 } },
    { "ij,jk->ik", { 2, 2, 2 }, { { 2, 2 }, { 2, 3 }, { 3, 2 } }, { 22, 28, 49, 64 } },
    { "ij, jk", { 2, 2, 2 }, { { 2, 2 }, { 2, 3 }, { 3, 2 } }, { 22, 28, 49, 64 } },
    { "i,i", { 0, 1, 1 }, { { 0 }, { 3 }, { 3 } }, { 14 } },
    { "i,j->ij", { 2, 1, 1 }, { { 2, 3 }, { 2 }, { 3 } }, { 1, 2, 3, 2, 4, 6 } },
    { "i,ij->j", { 1, 1, 2 }, { { 2 }, { 1 }, { 3, 2 } }, { 9, 12 } },
    { "...ij,...jk->...ik",
      { 3, 3, 2 },
      { { 2, 1, 2 }, { 2, 1, 2 }, { 2, 2 } },
      { 7, 10, 15, 22 } },
    { "...i->i...", { 2, 2, -1 }, { { 3, 2 }, { 2, 3 } }, { 1, 4, 2, 5, 3, 6 } },
    { "...", { 2, 2, -1 }, { { 2, 2 }, { 2, 2 } }, { 1, 2, 3, 4 } },
    { "i...->i", { 1, 3, -1 }, { { 2 }, { 2, 2, 2 } }, { 10, 26 } },
    { "b...,...->b", { 1, 2, 1 }, { { 2 }, { 2, 3 }, { 3 } }, { 14, 32 } },
    { "ijk,ijk->k", { 1, 3, 3 }, { { 2 }, { 2, 2, 2 }, { 2, 2, 2 } }, { 84, 120 } },
    { "ij->i", { 1, 2, -1 }, { { 2 }, { 2, 0 } }, { 0, 0 } },
};

Test(ref_products, einsum)
{
    for (size_t i = 0; i < G_N_ELEMENTS(equations); i++) {
        einsum(&equations[i], F32);
        einsum(&equations[i], KILN_DTYPE_u8);
        einsum(&equations[i], KILN_DTYPE_bf16);
    }
}

Test(ref_products, einsum_of_three)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_einsum);
    CASE_ATTRS(c, einsum)->equation = "i,j,k->kj";
    case_out(c, I32, DIMS(2, 2));
    case_in(c, I32, DIMS(2), VALUES(1, 2));
    case_in(c, I32, DIMS(2), VALUES(1, 10));
    case_in(c, I32, DIMS(2), VALUES(1, -1));
    case_gives(c, VALUES(3, 30, -3, -30), 0);
}

Test(ref_products, einsum_refuses_what_does_not_fit)
{
    static const char *const wrong[] = { "i->i",   "ijk->i", "ij->k",    "ij->ii", "ij,jk->ik",
                                         "ij->i-", "ij->,",  "......->", "i1->i",  "ij>i",
                                         "ii->i",  "",       "ij->ij",   "ij-" };
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_einsum);
        CASE_ATTRS(c, einsum)->equation = wrong[i];
        case_out(c, F32, DIMS(2));
        case_in(c, F32, DIMS(2, 3), one_to_24);
        cr_expect_not_null(case_run(c), "%s", wrong[i]);
    }
}

/* --- det --- */

Test(ref_products, det)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_det);
    case_out(c, F32, DIMS(3));
    case_in(
        c, F32, DIMS(3, 3, 3),
        VALUES(0, 2, 1, 1, 0, 0, 0, 1, 4, 1, 2, 3, 2, 4, 6, 1, 1, 1, 2, 0, 0, 0, 3, 0, 0, 0, 4));
    case_gives(c, VALUES(-7, 0, 24), 0);

    g_autoptr(RefCase) empty = case_new(KILN_INSTR_det);
    case_out(empty, F64, SCALAR);
    case_in(empty, F64, DIMS(0, 0), NULL);
    case_gives(empty, VALUES(1), 0);
}
