/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: outputs whose memory the caller takes, and runs that ask whether to go on. */
#include "kiln.h"
#include "tests/unit/runtime_case.h"

static const char adds[] = "graph @f(%a: f32[4]) {\n"
                           "  %s = add(%a, %a) : f32[4]\n"
                           "  %e = neg(%s) : f32[4]\n"
                           "  return %s, %e\n"
                           "}\n";
static const char open_text[] = "graph @f(%a: f32[N]) {\n"
                                "  %s = add(%a, %a) : f32[N]\n"
                                "  return %s\n"
                                "}\n";
static const char counts[] = "graph @f(%h: f32[2], %x: f32[2]) {\n"
                             "  %n = add(%h, %x) : f32[2]\n"
                             "  return %n\n"
                             "}\n";

static float *
take(KilnSession *session, unsigned i, KilnTensorInfo *info)
{
    GError *error = NULL;
    float *data = kiln_session_take_output(session, i, info, &error);
    must(data != NULL, error);
    return data;
}

Test(session_taken, results_outlive_runs_and_the_session)
{
    GError *error = NULL;
    KilnSession *session = session_of(adds);
    bind(session, 0, FLOATS(1, 2, 3, 4), 16);
    run(session);
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    float *first = take(session, 0, &info);
    cr_expect_eq(info.bytes, 16);
    cr_expect_null(kiln_session_output(session, 0, NULL, &error));
    expect_error(&error, KILN_ERROR_USAGE, "output s: its memory was taken since the last run");
    cr_expect_null(kiln_session_take_output(session, 0, NULL, &error));
    expect_error(&error, KILN_ERROR_USAGE, "output s: its memory was taken since the last run");
    expect_floats(session, 1, FLOATS(-2, -4, -6, -8), DIMS(4));
    bind(session, 0, FLOATS(5, 6, 7, 8), 16);
    run(session);
    float *second = take(session, 0, NULL);
    kiln_session_free(session);
    cr_expect_neq(first, second);
    cr_expect_eq(first[0], 2.0f);
    cr_expect_eq(first[3], 8.0f);
    cr_expect_eq(second[0], 10.0f);
    kiln_session_free_output(first);
    kiln_session_free_output(second);
    kiln_session_free_output(NULL);
}

Test(session_taken, open_shapes)
{
    g_autoptr(KilnSession) session = session_of(open_text);
    static float data[1000] = { 1 };
    for (int64_t n = 10; n <= 1000; n *= 10) {
        KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
        bind_shaped(session, 0, data, DIMS(n));
        for (int round = 0; round < 2; round++) { /* the second time at the same shape */
            data[n - 1] = (float)n + (float)round;
            run(session);
            float *taken = take(session, 0, &info);
            cr_expect_eq(info.dims[0], n);
            cr_expect_eq(taken[0], 2.0f);
            cr_expect_eq(taken[n - 1], 2.0f * data[n - 1]);
            kiln_session_free_output(taken);
        }
    }
}

Test(session_taken, what_cannot_be_taken)
{
    g_autoptr(KilnSession) session = session_of(adds);
    GError *error = NULL;
    float bound[4];
    cr_expect_null(kiln_session_take_output(session, 0, NULL, &error));
    expect_error(&error, KILN_ERROR_USAGE, "output s: the session has not run");
    bind(session, 0, FLOATS(1, 2, 3, 4), 16);
    must(kiln_session_bind_output(session, 0, bound, sizeof bound, &error), error);
    run(session);
    cr_expect_null(kiln_session_take_output(session, 0, NULL, &error));
    expect_error(&error, KILN_ERROR_USAGE, "output s: it is in bound memory");
    cr_expect_null(kiln_session_take_output(session, 2, NULL, &error));
    expect_error(&error, KILN_ERROR_USAGE, "output 2: the program has 2");
}

/* The next run reads a carried output: the caller gets a copy. */
Test(session_taken, a_carried_output_is_copied)
{
    g_autoptr(KilnSession) session = session_of(counts);
    GError *error = NULL;
    must(kiln_session_carry(session, 0, 0, &error), error);
    bind(session, 0, FLOATS(0, 0), 8);
    bind(session, 1, FLOATS(1, 2), 8);
    for (int i = 1; i <= 3; i++) {
        run(session);
        float *sum = take(session, 0, NULL);
        cr_expect_eq(sum[0], (float)i);
        cr_expect_eq(sum[1], 2.0f * (float)i);
        sum[0] = 100;
        kiln_session_free_output(sum);
    }
}

/* --- asking whether to go on --- */

typedef struct {
    int asked, end_at;
} Asked;

static gboolean
ends(void *data)
{
    Asked *asked = data;
    return ++asked->asked == asked->end_at;
}

Test(session_taken, a_run_asks_between_instructions)
{
    g_autoptr(KilnProgram) program = program_of(adds, NULL);
    GError *error = NULL;
    Asked asked = { 0, 0 };
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.poll = ends;
    options.poll_data = &asked;
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, &error);
    must(session != NULL, error);
    bind(session, 0, FLOATS(1, 2, 3, 4), 16);
    run(session);
    cr_expect_gt(asked.asked, 0);
    asked = (Asked){ 0, 1 };
    run_fails(session, KILN_ERROR_CANCELLED, "cancelled before ");
    run(session);
    g_autoptr(KilnSession) clone = kiln_session_clone(session, &error);
    must(clone != NULL, error);
    asked = (Asked){ 0, 1 };
    run_fails(clone, KILN_ERROR_CANCELLED, "cancelled before ");
    Asked other = { 0, 1 };
    options.poll_data = &other;
    g_autoptr(KilnSession) apart = kiln_session_clone_with(session, &options, &error);
    must(apart != NULL, error);
    asked = (Asked){ 0, 1 };
    run_fails(apart, KILN_ERROR_CANCELLED, "cancelled before ");
    cr_expect_eq(asked.asked, 0);
    options.size = 3;
    cr_expect_null(kiln_session_clone_with(session, &options, &error));
    expect_error(&error, KILN_ERROR_USAGE, "KilnSessionOptions");
}
