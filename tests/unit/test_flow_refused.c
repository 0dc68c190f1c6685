/* SPDX-License-Identifier: Apache-2.0 */
/* Branches that cannot run for the shapes of a run, beside others that can. */
#include "runtime/program.h"
#include "runtime/session.h"
#include "tests/unit/runtime_case.h"

#include "kiln.h"

/* The second branch takes ten rows, and has other dims than the first one. */
static const char ten_rows[] = "graph @f(%c: bool[], %x: f32[N,4]) {\n"
                               "  %y = if(%c) then {\n"
                               "    %t = neg(%x) : f32[N,4]\n"
                               "    return %t\n"
                               "  } else {\n"
                               "    %k = const @k : i64[2]\n"
                               "    %r = reshape(%x, %k) : f32[5,8]\n"
                               "    return %r\n"
                               "  } : f32[?,?]\n"
                               "  return %y\n}\nconstants { @k = [5, 8] : i64[2] }\n";

static void
bind_rows(KilnSession *session, uint8_t flag, int64_t rows)
{
    static const float x[40] = { 1, 2, 3 };
    static const uint8_t flags[] = { 0, 1 }; /* the session reads it later */
    bind(session, 0, &flags[flag], 1);
    bind_shaped(session, 1, x, DIMS(rows, 4));
}

Test(flow_refused, a_branch_of_one_shape)
{
    static const float same[40] = { 1, 2, 3 }, negated[40] = { -1, -2, -3 };
    g_autoptr(KilnProgram) program = program_of(ten_rows, NULL);
    for (int i = 0; i < 2; i++) {
        g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
        for (int64_t rows = 10; rows > 0; rows -= 3) {
            bind_rows(session, 1, rows);
            run(session);
            expect_floats(session, 0, negated, DIMS(rows, 4));
            bind_rows(session, 0, rows);
            if (rows == 10) {
                run(session);
                expect_floats(session, 0, same, DIMS(5, 8));
            } else {
                run_fails(session, KILN_ERROR_RUN, "y (if): else_branch: r (reshape): operand 0: ");
            }
        }
    }
    cr_expect_eq(program->templates->len, 1); /* for ten rows */
    cr_expect_eq(program->specialisations->len, 3);
}

/* What is carried in a session stays there. */
Test(flow_refused, beside_what_is_carried)
{
    g_autoptr(KilnSession) session = session_of(ten_rows);
    GError *error = NULL;
    must(kiln_session_carry(session, 0, 1, &error), error);
    bind_rows(session, 1, 10);
    run(session);
    expect_floats(session, 0, ((float[40]){ -1, -2, -3 }), DIMS(10, 4));
    run(session);
    expect_floats(session, 0, ((float[40]){ 1, 2, 3 }), DIMS(10, 4));
}

/* The text of the branch comes before a complaint of the size of what it gives. */
Test(flow_refused, a_branch_of_no_shape)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%c: bool[], %x: f32[N,4]) {\n"
                   "  %y = if(%c) then {\n"
                   "    %t = neg(%x) : f32[N,4]\n"
                   "    return %t\n"
                   "  } else {\n"
                   "    %r = unknown() {reason=\"bad (add): why\", mismatch=true} : f32[N,4]\n"
                   "    return %r\n"
                   "  } : f32[N,4]\n"
                   "  return %y\n}\n");
    static const float negated[40] = { -1, -2, -3 };
    for (int64_t rows = 1; rows < 4; rows++) {
        bind_rows(session, 0, rows);
        run_fails(session, KILN_ERROR_RUN, "y (if): else_branch: bad (add): why");
        bind_rows(session, 1, rows);
        run(session);
        expect_floats(session, 0, negated, DIMS(rows, 4));
    }
}

/* Numbers that the program was tried with stand beside their dims. */
Test(flow_refused, a_program_that_is_saved)
{
    g_autoptr(KilnProgram) program = program_of(ten_rows, NULL);
    GError *error = NULL;
    cr_assert_not(kiln_program_save(program, "/nowhere/p", &error));
    expect_error(&error, KILN_ERROR_UNSUPPORTED,
                 "case.kiln: cannot be saved: expected a program for all shapes, or one with fixed "
                 "shapes, found one that is compiled for each shape: with N = ");
}
