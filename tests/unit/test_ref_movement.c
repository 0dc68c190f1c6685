/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend's movement: what moves where, for elements of every size. */
#include "graph/base/number.h"
#include "ir/instr.h"
#include "ref_case.h"

#include <stdlib.h>
#include <string.h>

#define F32 KILN_DTYPE_f32
#define I64 KILN_DTYPE_i64

static const double counting[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                   12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23 };

/* One type per element size, and bool. */
static const KilnDType sizes[] = { KILN_DTYPE_u8, KILN_DTYPE_f16, KILN_DTYPE_i32, KILN_DTYPE_f64 };

Test(ref_movement, transpose)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_transpose);
        CASE_ATTRS(c, transpose)->perm = CASE_INTS(c, 2, 0, 1);
        case_out(c, sizes[i], DIMS(4, 2, 3));
        case_in(c, sizes[i], DIMS(2, 3, 4), counting);
        case_gives(c,
                   VALUES(0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22, 3, 7, 11,
                          15, 19, 23),
                   0);
    }
    g_autoptr(RefCase) scalar = case_new(KILN_INSTR_transpose);
    case_out(scalar, F32, SCALAR);
    case_in(scalar, F32, SCALAR, VALUES(7));
    case_gives(scalar, VALUES(7), 0);
}

Test(ref_movement, concat)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_concat);
    CASE_ATTRS(c, concat)->axis = 1;
    case_out(c, F32, DIMS(2, 4, 1));
    case_in(c, F32, DIMS(2, 1, 1), VALUES(1, 2));
    case_in(c, F32, DIMS(2, 0, 1), NULL);
    case_in(c, F32, DIMS(2, 3, 1), VALUES(3, 4, 5, 6, 7, 8));
    case_gives(c, VALUES(1, 3, 4, 5, 2, 6, 7, 8), 0);
}

Test(ref_movement, slice_with_negative_steps)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_slice);
        CASE_ATTRS(c, slice)->starts = CASE_INTS(c, 1, 3);
        CASE_ATTRS(c, slice)->steps = CASE_INTS(c, 1, -2);
        case_out(c, sizes[i], DIMS(2, 2));
        case_in(c, sizes[i], DIMS(3, 4), counting);
        case_gives(c, VALUES(7, 5, 11, 9), 0);
    }
    g_autoptr(RefCase) empty = case_new(KILN_INSTR_slice);
    CASE_ATTRS(empty, slice)->starts = CASE_INTS(empty, 3);
    case_out(empty, F32, DIMS(0));
    case_in(empty, F32, DIMS(3), counting);
    cr_expect_null(case_run(empty));
}

Test(ref_movement, expand_and_tile)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_expand);
    case_out(c, F32, DIMS(2, 2, 3));
    case_in(c, F32, DIMS(2, 1), VALUES(5, 6));
    case_gives(c, VALUES(5, 5, 5, 6, 6, 6, 5, 5, 5, 6, 6, 6), 0);

    g_autoptr(RefCase) tile = case_new(KILN_INSTR_tile);
    case_out(tile, KILN_DTYPE_bool, DIMS(4, 4));
    case_in(tile, KILN_DTYPE_bool, DIMS(2, 2), VALUES(1, 0, 1, 1));
    case_gives(tile, VALUES(1, 0, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0, 1, 1, 1, 1), 0);

    g_autoptr(RefCase) none = case_new(KILN_INSTR_tile);
    case_out(none, F32, DIMS(0, 4));
    case_in(none, F32, DIMS(2, 2), counting);
    cr_expect_null(case_run(none));
}

/* The specification's formulas: DCR reshapes [n, block, block, c, h, w], CRD [n, c, block, block,
 * h, w]; here h = w = 1, so that the result is the block itself. */
Test(ref_movement, depth_to_space_and_back)
{
    const char *const modes[] = { "DCR", "CRD" };
    const double spread[2][8] = { { 0, 2, 4, 6, 1, 3, 5, 7 }, { 0, 1, 2, 3, 4, 5, 6, 7 } };
    for (int i = 0; i < 2; i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_depth_to_space);
        CASE_ATTRS(c, depth_to_space)->blocksize = 2;
        CASE_ATTRS(c, depth_to_space)->mode = modes[i];
        case_out(c, F32, DIMS(1, 2, 2, 2));
        case_in(c, F32, DIMS(1, 8, 1, 1), counting);
        case_gives(c, spread[i], 0);
    }
    g_autoptr(RefCase) back = case_new(KILN_INSTR_space_to_depth);
    CASE_ATTRS(back, space_to_depth)->blocksize = 2;
    case_out(back, F32, DIMS(1, 4, 1, 3));
    case_in(back, F32, DIMS(1, 1, 2, 6), counting);
    case_gives(back, VALUES(0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11), 0);
    for (int i = 0; i < 2; i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_space_to_depth);
        CASE_ATTRS(c, space_to_depth)->blocksize = 2;
        CASE_ATTRS(c, space_to_depth)->mode = modes[i];
        case_out(c, F32, DIMS(1, 8, 1, 1));
        case_in(c, F32, DIMS(1, 2, 2, 2), spread[i]);
        case_gives(c, counting, 0);
    }

    g_autoptr(RefCase) wide = case_new(KILN_INSTR_depth_to_space);
    CASE_ATTRS(wide, depth_to_space)->blocksize = 2;
    case_out(wide, F32, DIMS(1, 1, 2, 6));
    case_in(wide, F32, DIMS(1, 4, 1, 3), VALUES(0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11));
    case_gives(wide, counting, 0);
}

Test(ref_movement, channel_shuffle)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_channel_shuffle);
    CASE_ATTRS(c, channel_shuffle)->group = 2;
    case_out(c, F32, DIMS(1, 6, 2));
    case_in(c, F32, DIMS(1, 6, 2), counting);
    case_gives(c, VALUES(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11), 0);
}

Test(ref_movement, reverse_sequence)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_reverse_sequence);
    CASE_ATTRS(c, reverse_sequence)->batch_axis = 0;
    CASE_ATTRS(c, reverse_sequence)->time_axis = 1;
    case_out(c, F32, DIMS(3, 4));
    case_in(c, F32, DIMS(3, 4), counting);
    case_in(c, I64, DIMS(3), VALUES(1, 3, 4));
    case_gives(c, VALUES(0, 1, 2, 3, 6, 5, 4, 7, 11, 10, 9, 8), 0);
    ((int64_t *)c->data[2])[0] = 5;
    cr_expect_not_null(case_run(c));
    ((int64_t *)c->data[2])[0] = -1;
    cr_expect_not_null(case_run(c));
}

/* --- pad --- */

static void
pad(const char *mode, int64_t begin, int64_t end, const double *expected)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_pad);
        CASE_ATTRS(c, pad)->mode = mode;
        CASE_ATTRS(c, pad)->pads = CASE_INTS(c, begin, end);
        case_out(c, sizes[i], DIMS(3 + begin + end));
        case_in(c, sizes[i], DIMS(3), VALUES(1, 2, 3));
        case_gives(c, expected, 0);
    }
}

Test(ref_movement, pad_modes)
{
    pad("constant", 2, 1, VALUES(0, 0, 1, 2, 3, 0));
    pad("edge", 2, 3, VALUES(1, 1, 1, 2, 3, 3, 3, 3));
    pad("reflect", 2, 1, VALUES(3, 2, 1, 2, 3, 2));
    pad("reflect", 5, 0, VALUES(2, 1, 2, 3, 2, 1, 2, 3));
    pad("wrap", 2, 4, VALUES(2, 3, 1, 2, 3, 1, 2, 3, 1));
    pad("constant", -1, 2, VALUES(2, 3, 0, 0));
    pad("constant", -1, -1, VALUES(2));
    pad("reflect", -1, 2, VALUES(2, 3, 2, 3));
    pad("edge", 1, -2, VALUES(1, 1));
    pad("constant", -4, 3, VALUES(0, 0));
}

Test(ref_movement, pad_two_dims_with_a_value)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_pad);
    CASE_ATTRS(c, pad)->pads = CASE_INTS(c, 1, 0, 0, 1);
    case_out(c, F32, DIMS(3, 3));
    case_in(c, F32, DIMS(2, 2), VALUES(1, 2, 3, 4));
    case_in(c, F32, SCALAR, VALUES(9));
    case_gives(c, VALUES(9, 9, 9, 1, 2, 9, 3, 4, 9), 0);
}

Test(ref_movement, pad_of_nothing)
{
    for (int i = 0; i < 2; i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_pad);
        CASE_ATTRS(c, pad)->mode = i ? "edge" : "constant";
        CASE_ATTRS(c, pad)->pads = CASE_INTS(c, 1, 1);
        case_out(c, F32, DIMS(2));
        case_in(c, F32, DIMS(0), NULL);
        if (i)
            cr_expect_not_null(case_run(c));
        else
            case_gives(c, VALUES(0, 0), 0);
    }
}

/* --- layouts --- */

static void
relayout(const char *tag, int rank, const int64_t *dims, const double *expected)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_pack);
        case_add(c, sizes[i], rank, dims, NULL);
        c->buffers[0].type.layout = tag;
        size_t bytes = (size_t)kiln_type_bytes(&c->buffers[0].type);
        free(c->data[0]);
        c->data[0] = malloc(bytes);
        memset(c->data[0], 0xa5, bytes);
        case_in(c, sizes[i], rank, dims, counting);
        cr_assert_null(case_run(c));
        int64_t n = (int64_t)(bytes / kiln_dtype_size(sizes[i]));
        for (int64_t k = 0; k < n; k++)
            cr_expect_eq(kiln_element_as_f64(sizes[i], c->data[0], k), expected[k],
                         "%s, element %d", tag, (int)k);
        /* and back */
        KilnType packed = c->buffers[0].type;
        c->buffers[0].type = c->buffers[1].type;
        c->buffers[1].type = packed;
        void *keep = c->data[0];
        c->data[0] = c->data[1];
        c->data[1] = keep;
        c->instr.kind = KILN_INSTR_unpack;
        memset(c->data[0], 0xa5, (size_t)kiln_type_bytes(&c->buffers[0].type));
        cr_assert_null(case_run(c));
        case_expect(c, 0, counting, 0);
    }
}

Test(ref_movement, blocked_layouts)
{
    /* two channels of a block of four do not fill: the rest is zero */
    relayout("aBcd4b", DIMS(1, 3, 1, 2), VALUES(0, 2, 4, 0, 1, 3, 5, 0));
    relayout("acb", DIMS(1, 3, 2), VALUES(0, 2, 4, 1, 3, 5));
    relayout("AB2a2b", DIMS(3, 3), VALUES(0, 1, 3, 4, 2, 0, 5, 0, 6, 7, 0, 0, 8, 0, 0, 0));
    /* b is split twice: 2 outer, then pairs around the block of a */
    relayout("AB2b2a2b", DIMS(2, 5), VALUES(0, 1, 5, 6, 2, 3, 7, 8, 4, 0, 9, 0, 0, 0, 0, 0));
}

/* --- results that follow from positions --- */

Test(ref_movement, range)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_range);
    case_out(c, F32, DIMS(4));
    case_in(c, F32, SCALAR, VALUES(1));
    case_in(c, F32, SCALAR, VALUES(-0.5));
    case_gives(c, VALUES(1, 0.5, 0, -0.5), 0);

    g_autoptr(RefCase) ints = case_new(KILN_INSTR_range);
    case_out(ints, I64, DIMS(3));
    case_in(ints, I64, SCALAR, VALUES(10));
    case_in(ints, I64, SCALAR, VALUES(-3));
    case_gives(ints, VALUES(10, 7, 4), 0);

    /* the third element of 0, 0.1f … is one product, not two sums */
    g_autoptr(RefCase) once = case_new(KILN_INSTR_range);
    case_out(once, F32, DIMS(11));
    case_in(once, F32, SCALAR, VALUES(0));
    case_in(once, F32, SCALAR, VALUES(0.1));
    cr_assert_null(case_run(once));
    cr_expect_eq(((float *)once->data[0])[10], (float)(10 * (double)0.1f));
}

Test(ref_movement, one_hot)
{
    const KilnDType indices[] = { I64, F32, KILN_DTYPE_u8 };
    for (int i = 0; i < 3; i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_one_hot);
        CASE_ATTRS(c, one_hot)->axis = 1;
        case_out(c, KILN_DTYPE_i32, DIMS(2, 3, 2));
        case_in(c, indices[i], DIMS(2, 2), VALUES(1, i == 2 ? 2 : -1, 0, 3));
        case_in(c, KILN_DTYPE_i32, DIMS(2), VALUES(-7, 8));
        case_gives(c, VALUES(-7, -7, 8, -7, -7, 8, 8, -7, -7, -7, -7, -7), 0);
    }
}

Test(ref_movement, eye_like)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_eye_like);
    CASE_ATTRS(c, eye_like)->k = 1;
    case_out(c, KILN_DTYPE_bf16, DIMS(2, 3));
    case_gives(c, VALUES(0, 1, 0, 0, 0, 1), 0);
    CASE_ATTRS(c, eye_like)->k = INT64_MIN;
    case_gives(c, VALUES(0, 0, 0, 0, 0, 0), 0);
}

Test(ref_movement, trilu)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_trilu);
    case_out(c, F32, DIMS(2, 2, 3));
    case_in(c, F32, DIMS(2, 2, 3), counting);
    case_gives(c, VALUES(0, 1, 2, 0, 4, 5, 6, 7, 8, 0, 10, 11), 0);
    CASE_ATTRS(c, trilu)->upper = false;
    CASE_ATTRS(c, trilu)->k = -1;
    case_gives(c, VALUES(0, 0, 0, 3, 0, 0, 0, 0, 0, 9, 0, 0), 0);
    CASE_ATTRS(c, trilu)->k = INT64_MAX;
    case_gives(c, counting, 0);
    /* in place */
    void *keep = c->data[0];
    c->data[0] = c->data[1];
    CASE_ATTRS(c, trilu)->k = 0;
    case_gives(c, VALUES(0, 0, 0, 3, 4, 0, 6, 0, 0, 9, 10, 0), 0);
    c->data[0] = keep;
}
