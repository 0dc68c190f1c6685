/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that the next run reads as inputs: appended in place, or handed over. */
#include "ir/instr.h"
#include "runtime/open/instance.h"
#include "runtime/session.h"
#include "tests/unit/runtime_case.h"

#include "kiln.h"

#include <string.h>

/* Adds up all that was ever appended, for each of two rows. */
static const char cache[] = "graph @f(%x: f32[1,2,T,2], %past: f32[1,2,P,2]) {\n"
                            "  %all = concat(%past, %x) {axis=2} : f32[1,2,P+T,2]\n"
                            "  %twice = add(%all, %all) : f32[1,2,P+T,2]\n"
                            "  %axes = const @axes : i64[2]\n"
                            "  %s = reduce_sum(%twice, %axes) {keepdims=false} : f32[1,2]\n"
                            "  return %s, %all\n"
                            "}\n"
                            "constants { @axes = [2,3] : i64[2] }\n";
/* The same with an open number of rows. */
static const char batch[] = "graph @f(%x: f32[N,T,2], %past: f32[N,P,2]) {\n"
                            "  %all = concat(%past, %x) {axis=1} : f32[N,P+T,2]\n"
                            "  %y = neg(%all) : f32[N,P+T,2]\n"
                            "  return %y, %all\n"
                            "}\n";
static const char hidden[] = "graph @f(%x: f32[N,2], %h: f32[N,2]) {\n"
                             "  %y = add(%x, %h) : f32[N,2]\n"
                             "  %z = neg(%y) : f32[N,2]\n"
                             "  return %z, %y\n"
                             "}\n";

enum {
    STEPS = 200
};

/* What @n steps have appended: two rows of pairs. */
typedef struct {
    float rows[2][2 * 3 * STEPS];
    int64_t extent;
} Expected;

static void
append(Expected *expected, const float *x, int64_t extent)
{
    for (int row = 0; row < 2; row++)
        memcpy(expected->rows[row] + 2 * expected->extent, x + row * 2 * extent,
               (size_t)(2 * extent) * sizeof(float));
    expected->extent += extent;
}

static void
expect_value(KilnSession *session, const Expected *expected)
{
    GError *error = NULL;
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    const float *sums = kiln_session_output(session, 0, NULL, &error);
    must(sums != NULL, error);
    const float *all = kiln_session_output(session, 1, &info, &error);
    must(all != NULL, error);
    cr_assert_eq(info.dims[2], expected->extent);
    for (int row = 0; row < 2; row++) {
        float sum = 0;
        for (int64_t i = 0; i < 2 * expected->extent; i++) {
            sum += 2 * expected->rows[row][i];
            cr_assert_eq(all[row * 2 * expected->extent + i], expected->rows[row][i], "%d %d", row,
                         (int)i);
        }
        cr_assert_eq(sums[row], sum);
    }
}

/* Small whole numbers, whose sums are exact. */
static void
step(KilnSession *session, Expected *expected, int64_t extent)
{
    float x[2 * 2 * 3];
    const int64_t dims[] = { 1, 2, extent, 2 };
    GError *error = NULL;
    for (int64_t i = 0; i < 4 * extent; i++)
        x[i] = (float)((i * 5 + expected->extent * 3) % 17);
    must(kiln_session_bind_input_shaped(session, 0, x, 4, dims, &error), error);
    must(kiln_session_run(session, &error), error);
    append(expected, x, extent);
}

static KilnSession *
begin(Expected *expected, int64_t extent)
{
    static const float first[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    const int64_t dims[] = { 1, 2, extent, 2 };
    GError *error = NULL;
    KilnSession *session = session_of(cache);
    must(kiln_session_carry(session, 1, 1, &error), error);
    must(kiln_session_bind_input_shaped(session, 1, first, 4, dims, &error), error);
    *expected = (Expected){ .extent = 0 };
    append(expected, first, extent);
    return session;
}

static bool
is_in_place(const KilnSession *session)
{
    return kiln_instance_state(session->made, 0) != UINT32_MAX;
}

Test(carry, appends_in_place)
{
    Expected expected;
    g_autoptr(KilnSession) session = begin(&expected, 2);
    const char *before = NULL;
    unsigned moves = 0;
    for (int i = 0; i < STEPS; i++) {
        step(session, &expected, 1 + i % 3);
        if (i % 7 == 0)
            expect_value(session, &expected);
        cr_assert(is_in_place(session));
        moves += session->carries.v[0].state != before;
        before = session->carries.v[0].state;
    }
    expect_value(session, &expected);
    cr_expect_leq(moves, 4); /* 64, 128, 256, 512 */
    for (uint32_t c = 0; c < session->made->n_calls; c++)
        cr_expect_neq(session->made->calls[c].instr->kind, KILN_INSTR_concat);
}

Test(carry, nothing_to_begin_with)
{
    Expected expected;
    g_autoptr(KilnSession) session = begin(&expected, 0);
    for (int i = 0; i < 5; i++) {
        step(session, &expected, 2);
        expect_value(session, &expected);
    }
    cr_expect(is_in_place(session));
}

Test(carry, truncates)
{
    Expected expected;
    GError *error = NULL;
    g_autoptr(KilnSession) session = begin(&expected, 2);
    cr_expect(!kiln_session_truncate(session, 1, 1, &error));
    expect_error(&error, KILN_ERROR_USAGE, "input past: no run has made its value");
    cr_expect(!kiln_session_truncate(session, 0, 1, &error));
    expect_error(&error, KILN_ERROR_USAGE, "input x: nothing is appended to it");
    for (int i = 0; i < 10; i++)
        step(session, &expected, 3);
    cr_expect(!kiln_session_truncate(session, 1, 33, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input past: expected 0 to 32 elements, found 33");
    must(kiln_session_truncate(session, 1, 7, &error), error);
    cr_expect(!kiln_session_output(session, 1, NULL, &error));
    expect_error(&error, KILN_ERROR_USAGE, "output all: the session has not run");
    expected.extent = 7;
    step(session, &expected, 2);
    expect_value(session, &expected);
    must(kiln_session_truncate(session, 1, 0, &error), error);
    expected.extent = 0;
    step(session, &expected, 1);
    expect_value(session, &expected);
}

Test(carry, clones_and_begins_anew)
{
    Expected expected, other;
    GError *error = NULL;
    g_autoptr(KilnSession) session = begin(&expected, 2);
    for (int i = 0; i < 4; i++)
        step(session, &expected, 2);
    g_autoptr(KilnSession) clone = kiln_session_clone(session, &error);
    must(clone != NULL, error);
    other = expected;
    step(session, &expected, 1);
    step(clone, &other, 3);
    expect_value(session, &expected);
    expect_value(clone, &other);
    kiln_session_reset(clone);
    cr_expect(!kiln_session_run(clone, &error));
    expect_error(&error, KILN_ERROR_USAGE, "input past is not bound");
    const float first[8] = { 9, 8, 7, 6 };
    const int64_t dims[] = { 1, 2, 1, 2 };
    for (int i = 0; i < 2; i++) {
        must(kiln_session_bind_input_shaped(i ? session : clone, 1, first, 4, dims, &error), error);
        other = (Expected){ .extent = 0 };
        append(&other, first, 1);
        step(i ? session : clone, &other, 2);
        expect_value(i ? session : clone, &other);
    }
}

/* What @past and @x of @n rows, two pairs and one pair each, come to. */
static void
expect_rows(KilnSession *session, const float *past, const float *x, int64_t n)
{
    const int64_t past_dims[] = { n, 2, 2 }, x_dims[] = { n, 1, 2 };
    GError *error = NULL;
    must(kiln_session_bind_input_shaped(session, 0, x, 3, x_dims, &error), error);
    must(kiln_session_bind_input_shaped(session, 1, past, 3, past_dims, &error), error);
    must(kiln_session_run(session, &error), error);
    const float *all = kiln_session_output(session, 1, NULL, &error);
    must(all != NULL, error);
    for (int64_t row = 0; row < n; row++, all += 6) {
        cr_assert_eq(memcmp(all, past + 4 * row, 4 * sizeof(float)), 0, "%d", (int)row);
        cr_assert_eq(memcmp(all + 4, x + 2 * row, 2 * sizeof(float)), 0, "%d", (int)row);
    }
}

Test(carry, begins_anew_with_more_rows)
{
    static float past[4 * 512], x[2 * 512];
    GError *error = NULL;
    g_autoptr(KilnSession) session = session_of(batch);
    for (int i = 0; i < 4 * 512; i++)
        past[i] = x[i / 2] = (float)i;
    must(kiln_session_carry(session, 1, 1, &error), error);
    expect_rows(session, past, x, 1);
    cr_expect(is_in_place(session));
    expect_rows(session, past, x, 512);
    expect_rows(session, past, x, 3);
    expect_rows(session, past, x, 512);
}

Test(carry, strides_and_bound_outputs)
{
    Expected expected;
    GError *error = NULL;
    int64_t strides[8];
    g_autoptr(KilnSession) session = begin(&expected, 2);
    step(session, &expected, 1);
    const float *all = kiln_session_output_strided(session, 1, strides, &error);
    must(all != NULL, error);
    cr_expect_gt(strides[1], 2 * expected.extent);
    cr_expect_eq(strides[2], 2);
    for (int row = 0; row < 2; row++)
        cr_expect_arr_eq(all + row * strides[1], expected.rows[row],
                         (size_t)(2 * expected.extent) * sizeof(float));
    float mine[2 * 2 * 5];
    must(kiln_session_bind_output(session, 1, mine, sizeof mine, &error), error);
    step(session, &expected, 2);
    cr_expect_arr_eq(mine + 10, expected.rows[1], 10 * sizeof(float));
    expect_value(session, &expected);
    must(kiln_session_bind_output(session, 1, NULL, 0, &error), error);
    step(session, &expected, 2);
    expect_value(session, &expected);
}

/* Two buffers change places; the caller's memory is copied. */
Test(carry, hands_over)
{
    GError *error = NULL;
    g_autoptr(KilnSession) session = session_of(hidden);
    float mine[4];
    must(kiln_session_carry(session, 1, 1, &error), error);
    bind_shaped(session, 1, FLOATS(1, 2, 3, 4), DIMS(2, 2));
    bind_shaped(session, 0, FLOATS(10, 20, 30, 40), DIMS(2, 2));
    for (int i = 1; i <= 6; i++) {
        float expected[] = { 1 + 10.0F * i, 2 + 20.0F * i, 3 + 30.0F * i, 4 + 40.0F * i };
        if (i == 3)
            must(kiln_session_bind_output(session, 1, mine, sizeof mine, &error), error);
        if (i == 5)
            must(kiln_session_bind_output(session, 1, NULL, 0, &error), error);
        run(session);
        expect_floats(session, 1, expected, DIMS(2, 2));
    }
}

Test(carry, refuses_what_does_not_fit)
{
    GError *error = NULL;
    g_autoptr(KilnSession) session = session_of(cache);
    cr_expect(!kiln_session_carry(session, 0, 1, &error));
    expect_error(&error, KILN_ERROR_TYPE, "output s to input past: expected f32[1,2,P,2], found");
    cr_expect(!kiln_session_carry(session, 2, 1, &error));
    expect_error(&error, KILN_ERROR_USAGE, "output 2: the program has 2");
    cr_expect(!kiln_session_carry(session, 1, 2, &error));
    expect_error(&error, KILN_ERROR_USAGE, "input 2: the program has 2");
    must(kiln_session_carry(session, 1, 1, &error), error);
    cr_expect(!kiln_session_carry(session, 1, 0, &error));
    expect_error(&error, KILN_ERROR_USAGE, "output all, input x: carried already");
}

Test(carry, profile_and_poison)
{
    Expected expected;
    GError *error = NULL;
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.profile = options.poison = TRUE;
    g_autoptr(KilnProgram) program = program_of(cache, NULL);
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, &error);
    static const float first[4] = { 1, 2, 3, 4 };
    const int64_t dims[] = { 1, 2, 1, 2 };
    must(kiln_session_carry(session, 1, 1, &error), error);
    must(kiln_session_bind_input_shaped(session, 1, first, 4, dims, &error), error);
    expected = (Expected){ .extent = 0 };
    append(&expected, first, 1);
    for (int i = 0; i < 100; i++)
        step(session, &expected, 1);
    expect_value(session, &expected);
    unsigned n;
    kiln_session_profile(session, &n);
    cr_expect_eq(n, session->made->n_calls);
}
