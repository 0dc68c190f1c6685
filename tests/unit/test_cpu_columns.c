/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend where dims are narrow: few columns that are split, joined and picked, running
 * sums of many rows, and softmax of short rows, against the reference. */
#include "graph/kiln-types.h"
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

static const Tolerance exact = { 0, 0 }, rounded = { 1e-6, 1e-6 };
static const KilnDType sizes[] = { KILN_DTYPE_u8, KILN_DTYPE_f16, KILN_DTYPE_f32, KILN_DTYPE_i64 };
static const int64_t lengths[] = { 1, 2, 7, 31, 64, 65, 200, 5001 };

static void
filled(RefCase *c, KilnDType dtype, int rank, const int64_t *dims, uint32_t seed)
{
    case_in(c, dtype, rank, dims, NULL);
    cpu_fill(c, c->instr.n_operands - 1, seed);
}

/* [2, n, columns] to [2, columns, n], and back. */
static void
check_transpose(KilnDType dtype, int64_t n, int64_t columns)
{
    for (int back = 0; back < 2; back++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_transpose);
        CASE_ATTRS(c, transpose)->perm = CASE_INTS(c, 0, 2, 1);
        int64_t rows[] = { 2, n, columns }, turned[] = { 2, columns, n };
        case_out(c, dtype, 3, back ? rows : turned);
        filled(c, dtype, 3, back ? turned : rows, 1);
        cpu_agrees(c, exact, "transpose of few columns");
    }
}

static void
check_parts(KilnDType dtype, int64_t n, int64_t columns)
{
    g_autoptr(RefCase) joined = case_new(KILN_INSTR_concat);
    CASE_ATTRS(joined, concat)->axis = 1;
    case_out(joined, dtype, DIMS(n, columns, 1));
    for (int64_t k = 0; k < columns; k++)
        filled(joined, dtype, DIMS(n, 1, 1), (uint32_t)k);
    cpu_agrees(joined, exact, "concat of columns");
    g_autoptr(RefCase) picked = case_new(KILN_INSTR_slice);
    CASE_ATTRS(picked, slice)->starts = CASE_INTS(picked, 0, columns - 1);
    CASE_ATTRS(picked, slice)->steps = CASE_INTS(picked, 1, 1);
    case_out(picked, dtype, DIMS(n, 1));
    filled(picked, dtype, DIMS(n, columns), 1);
    cpu_agrees(picked, exact, "slice of a column");
}

Test(cpu_columns, moved)
{
    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
        for (size_t t = 0; t < G_N_ELEMENTS(sizes); t++) {
            for (int64_t columns = 2; columns <= 5; columns++) {
                check_transpose(sizes[t], lengths[i], columns);
                check_parts(sizes[t], lengths[i], columns);
            }
        }
    }
}

/* An operand that is the whole result, and parts that are wider. */
Test(cpu_columns, parts_of_other_widths)
{
    g_autoptr(RefCase) one = case_new(KILN_INSTR_concat);
    CASE_ATTRS(one, concat)->axis = 1;
    case_out(one, KILN_DTYPE_f32, DIMS(9, 1));
    filled(one, KILN_DTYPE_f32, DIMS(9, 1), 1);
    cpu_agrees(one, exact, "one column");
    g_autoptr(RefCase) wider = case_new(KILN_INSTR_concat);
    CASE_ATTRS(wider, concat)->axis = 1;
    case_out(wider, KILN_DTYPE_f32, DIMS(9, 3));
    filled(wider, KILN_DTYPE_f32, DIMS(9, 1), 1);
    filled(wider, KILN_DTYPE_f32, DIMS(9, 2), 2);
    cpu_agrees(wider, exact, "one column and two");
}

Test(cpu_columns, depth)
{
    for (int64_t block = 2; block <= 4; block++) {
        for (int deep = 0; deep < 2; deep++) {
            g_autoptr(RefCase) c =
                case_new(deep ? KILN_INSTR_space_to_depth : KILN_INSTR_depth_to_space);
            if (deep)
                CASE_ATTRS(c, space_to_depth)->blocksize = block;
            else
                CASE_ATTRS(c, depth_to_space)->blocksize = block;
            int64_t flat[] = { 1, 3, 5 * block, 19 * block };
            int64_t thick[] = { 1, 3 * block * block, 5, 19 };
            case_out(c, KILN_DTYPE_f32, 4, deep ? thick : flat);
            filled(c, KILN_DTYPE_f32, 4, deep ? flat : thick, 1);
            cpu_agrees(c, exact, "depth");
        }
    }
}

static void
check_running(KilnDType dtype, int64_t outer, int64_t extent, int64_t inner, int ways)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_cum_sum);
    CASE_ATTRS(c, cum_sum)->axis = 1;
    CASE_ATTRS(c, cum_sum)->exclusive = ways & 1;
    CASE_ATTRS(c, cum_sum)->reverse = ways & 2;
    case_out(c, dtype, DIMS(outer, extent, inner));
    filled(c, dtype, DIMS(outer, extent, inner), 1);
    cpu_agrees(c, rounded, "running sums");
}

Test(cpu_columns, running)
{
    static const KilnDType types[] = { KILN_DTYPE_f32, KILN_DTYPE_f64, KILN_DTYPE_i32,
                                       KILN_DTYPE_u64 };
    for (size_t t = 0; t < G_N_ELEMENTS(types); t++) {
        for (int ways = 0; ways < 4; ways++) {
            check_running(types[t], 1, 70, 1, ways);
            check_running(types[t], 21, 9, 1, ways);
            check_running(types[t], 3000, 11, 1, ways);
            check_running(types[t], 2, 9, 3, ways);
            check_running(types[t], 1, 5, 1300, ways);
        }
    }
}

Test(cpu_columns, short_rows)
{
    static const int64_t rows[] = { 1, 63, 64, 65, 300 };
    for (int64_t n = 1; n <= 26; n++) {
        for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
            for (int logarithm = 0; logarithm < 2; logarithm++) {
                g_autoptr(RefCase) c =
                    case_new(logarithm ? KILN_INSTR_log_softmax : KILN_INSTR_softmax);
                if (logarithm)
                    CASE_ATTRS(c, log_softmax)->axis = -1;
                else
                    CASE_ATTRS(c, softmax)->axis = -1;
                case_out(c, KILN_DTYPE_f32, DIMS(rows[i], n));
                filled(c, KILN_DTYPE_f32, DIMS(rows[i], n), 1);
                cpu_agrees(c, rounded, "softmax of short rows");
            }
        }
    }
}
