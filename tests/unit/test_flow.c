/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and loops that a run decides, through kiln.h. */
#include "runtime/program.h"
#include "runtime/session.h"
#include "tests/unit/runtime_case.h"

#include "graph/base/alloc.h"
#include "kiln.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* x + x + …, with the sums before each step. */
static const char sums[] = "graph @f(%n: i64[], %x: f32[2]) {\n"
                           "  %y, %s = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[2]) {\n"
                           "    %b = add(%a, %x) : f32[2]\n"
                           "    return %go, %b, %a\n"
                           "  } : f32[2], f32[?,2]\n"
                           "  return %y, %s\n}\n";

/* Grows by a row for as long as its sum is below the limit. */
static const char rows[] = "graph @f(%x: f32[1,2], %limit: f32[]) {\n"
                           "  %go = const @go : bool[]\n"
                           "  %y = loop(_, %go, %x) body(%i: i64[], %c: bool[], %a: f32[?,2]) {\n"
                           "    %b = concat(%a, %x) : f32[?,2]\n"
                           "    %s = reduce_sum(%b) {keepdims=false} : f32[]\n"
                           "    %again = less(%s, %limit) : bool[]\n"
                           "    return %again, %b\n"
                           "  } : f32[?,2]\n"
                           "  %z = add(%y, %x) : f32[?,2]\n"
                           "  return %z\n}\nconstants { @go = [true] : bool[] }\n";

/* Branches of two shapes. */
static const char shapes[] = "graph @f(%c: bool[], %x: f32[2]) {\n"
                             "  %y = if(%c) then {\n"
                             "    %t = concat(%x, %x) {axis=0} : f32[4]\n"
                             "    return %t\n"
                             "  } else {\n"
                             "    %e = neg(%x) : f32[2]\n"
                             "    return %e\n"
                             "  } : f32[?]\n"
                             "  %z = add(%y, %y) : f32[?]\n"
                             "  return %z\n}\n";

static void
expect_sums(KilnSession *session, int64_t n)
{
    const float x[] = { 1, 2 }, y[] = { (float)(1 + n), (float)(2 * (1 + n)) };
    float stack[10][2];
    for (int64_t i = 0; i < n; i++) {
        stack[i][0] = (float)(1 + i);
        stack[i][1] = (float)(2 * (1 + i));
    }
    bind(session, 0, &n, sizeof n);
    bind(session, 1, x, sizeof x);
    run(session);
    expect_floats(session, 0, y, DIMS(2));
    expect_floats(session, 1, stack[0], DIMS(n, 2));
}

/* Whichever of the two places the last iteration writes, the result has it. */
Test(flow, trips_come_with_the_run)
{
    static const int64_t trips[] = { 3, 4, 0, 1, 9, 9, 2, 0 };
    g_autoptr(KilnSession) session = session_of(sums);
    for (size_t i = 0; i < G_N_ELEMENTS(trips); i++)
        expect_sums(session, trips[i]);
    cr_expect_eq(session->program->templates->len, 1);
    cr_expect_eq(session->program->specialisations->len, 0);
}

Test(flow, with_profile_and_poison)
{
    g_autoptr(KilnProgram) program = program_of(sums, NULL);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.profile = options.poison = true;
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, NULL);
    for (int64_t n = 0; n < 4; n++)
        expect_sums(session, n);
}

static void
expect_rows(KilnSession *session, float limit, int64_t n)
{
    const float x[] = { 1, 2 };
    float z[16][2];
    for (int64_t i = 0; i < n; i++) {
        z[i][0] = 2;
        z[i][1] = 4;
    }
    bind(session, 0, x, sizeof x);
    bind(session, 1, &limit, sizeof limit);
    run(session);
    expect_floats(session, 0, z[0], DIMS(n, 2));
}

Test(flow, what_is_carried_grows)
{
    g_autoptr(KilnSession) session = session_of(rows);
    expect_rows(session, 0, 2);
    expect_rows(session, 20, 7);
    expect_rows(session, 20, 7);
    expect_rows(session, 7, 3);
}

/* What begins with one length and grows by one row is added up. */
static const char twins[] =
    "graph @f(%n: i64[], %x: f32[2,2]) {\n"
    "  %row = const @row : f32[1,2]\n"
    "  %y, %z = loop(%n, _, %x, %x) body(%i: i64[], %go: bool[], %a: f32[?,2], %b: f32[?,2]) {\n"
    "    %s = add(%a, %b) : f32[?,2]\n"
    "    %c = concat(%s, %row) : f32[?,2]\n"
    "    %d = concat(%b, %row) : f32[?,2]\n"
    "    return %go, %c, %d\n"
    "  } : f32[?,2], f32[?,2]\n"
    "  return %y, %z\n}\nconstants { @row = [1, 1] : f32[1,2] }\n";

Test(flow, what_grows_alike_has_one_length)
{
    static const float x[] = { 1, 2, 3, 4 };
    static const float y[] = { 3, 6, 9, 12, 2, 2, 1, 1 }, z[] = { 1, 2, 3, 4, 1, 1, 1, 1 };
    const int64_t n = 2, none = 0;
    g_autoptr(KilnSession) session = session_of(twins);
    bind(session, 0, &n, sizeof n);
    bind(session, 1, x, sizeof x);
    run(session);
    expect_floats(session, 0, y, DIMS(4, 2));
    expect_floats(session, 1, z, DIMS(4, 2));
    bind(session, 0, &none, sizeof none);
    run(session);
    expect_floats(session, 0, x, DIMS(2, 2));
}

/* Two values begin with one length, and grow alike in the first iteration alone. */
static const char parting[] = "graph @f(%n: i64[], %x: f32[1]) {\n"
                              "  %y, %z, %m = loop(%n, _, %x, %x, %x) "
                              "body(%i: i64[], %go: bool[], %a: f32[?], %b: f32[?], %c: f32[?]) {\n"
                              "    %d = concat(%a, %x) : f32[?]\n"
                              "    %e = concat(%b, %c) : f32[?]\n"
                              "    %f = concat(%c, %x) : f32[?]\n"
                              "    return %go, %d, %e, %f\n"
                              "  } : f32[?], f32[?], f32[?]\n"
                              "  return %y, %z\n}\n";

Test(flow, what_grows_alike_once_has_two_lengths)
{
    static const float x = 5, all[] = { 5, 5, 5, 5, 5, 5, 5, 5 };
    g_autoptr(KilnSession) session = session_of(parting);
    for (int64_t n = 0; n < 4; n++) {
        bind(session, 0, &n, sizeof n);
        bind(session, 1, &x, sizeof x);
        run(session);
        expect_floats(session, 0, all, DIMS(n + 1));
        expect_floats(session, 1, all, DIMS(1 + n * (n + 1) / 2));
    }
}

static void
expect_branch(KilnSession *session, bool taken)
{
    const float x[] = { 1, -2 }, then[] = { 2, -4, 2, -4 }, otherwise[] = { -2, 4 };
    const uint8_t flag = taken;
    bind(session, 0, &flag, 1);
    bind(session, 1, x, sizeof x);
    run(session);
    expect_floats(session, 0, taken ? then : otherwise, DIMS(taken ? 4 : 2));
}

Test(flow, branches_have_shapes_of_their_own)
{
    g_autoptr(KilnSession) session = session_of(shapes);
    for (int i = 0; i < 6; i++)
        expect_branch(session, i % 3 != 1);
}

static KilnProgram *
program_without_passes(const char *text)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    g_autoptr(KilnPipeline) none = kiln_pipeline_parse("", NULL);
    options.pipeline = none;
    return program_of(text, &options);
}

/* A branch decides the rows, and what is reshaped by them must have some: this holds in each run.
 * It need not hold for the numbers that a program is looked at with, among which there are none. */
Test(flow, what_the_rows_of_a_branch_must_be_is_asked_in_a_run)
{
    static const char text[] = "graph @f(%c: bool[], %x: f32[2]) {\n"
                               "  %y = if(%c) then {\n"
                               "    %t = concat(%x, %x) {axis=0} : f32[4]\n    return %t\n"
                               "  } else {\n    %e = neg(%x) : f32[2]\n    return %e\n"
                               "  } : f32[?]\n"
                               "  %s = shape(%y) : i64[1]\n  %m = const @m : i64[1]\n"
                               "  %d = concat(%s, %m) {axis=0} : i64[2]\n"
                               "  %r = reshape(%y, %d) : f32[?,?]\n  return %r\n}\n"
                               "constants { @m = [-1] : i64[1] }\n";
    const float x[] = { 1, -2 }, then[] = { 1, -2, 1, -2 }, otherwise[] = { -1, 2 };
    g_autoptr(KilnProgram) program = program_without_passes(text);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    for (int i = 0; i < 4; i++) {
        const uint8_t flag = i & 1;
        bind(session, 0, &flag, 1);
        bind(session, 1, x, sizeof x);
        run(session);
        expect_floats(session, 0, flag ? then : otherwise, DIMS(flag ? 4 : 2, 1));
    }
}

/* The same of rows that a loop carries. Each iteration doubles them. */
Test(flow, what_carried_rows_must_be_is_asked_in_a_run)
{
    static const char text[] =
        "graph @f(%n: i64[], %x: f32[A,2]) {\n"
        "  %y = loop(%n, _, %x) body(%i: i64[], %go: bool[], %s: f32[?,2]) {\n"
        "    %e = shape(%s) {end=1} : i64[1]\n    %m = const @m : i64[1]\n"
        "    %t = concat(%e, %m) {axis=0} : i64[2]\n"
        "    %r = reshape(%s, %t) {allowzero=true} : f32[?,?]\n"
        "    %z = concat(%r, %r) {axis=0} : f32[?,?]\n    %w = const @w : i64[2]\n"
        "    %q = reshape(%z, %w) : f32[?,2]\n    return %go, %q\n"
        "  } : f32[?,2]\n  return %y\n}\n"
        "constants {\n  @m = [-1] : i64[1]\n  @w = [-1, 2] : i64[2]\n}\n";
    const float x[] = { 1, -2, 1, -2, 1, -2, 1, -2 };
    g_autoptr(KilnProgram) program = program_without_passes(text);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    for (int64_t n = 0; n < 3; n++) {
        bind(session, 0, &n, sizeof n);
        bind_shaped(session, 1, x, DIMS(1, 2));
        run(session);
        expect_floats(session, 0, x, DIMS((int64_t)1 << n, 2));
    }
}

Test(flow, files_have_branches_and_loops)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;
    int file = g_file_open_tmp("kiln-flow-XXXXXX", &path, NULL);
    cr_assert(file >= 0);
    close(file);
    g_autoptr(KilnProgram) program = program_of(rows, NULL);
    must(kiln_program_save(program, path, &error), error);
    g_autoptr(KilnProgram) loaded = kiln_program_load(path, NULL, &error);
    cr_assert(loaded, "%s", error ? error->message : "");
    g_autoptr(KilnSession) session = kiln_session_new(loaded, NULL, NULL);
    expect_rows(session, 20, 7);
    expect_rows(session, 0, 2);
    remove(path);
}

/* Nothing bounds the rows. They bound the places of what is not 0, which grow with them. */
Test(flow, bounds_follow_what_a_loop_makes)
{
    static const int64_t trips[] = { 0, 2, 100, 1, 300, 300, 7 };
    static const float x[] = { 1, 2 };
    g_autoptr(KilnSession) session =
        session_of("graph @f(%n: i64[], %x: f32[2]) {\n"
                   "  %y = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[?]) {\n"
                   "    %b = concat(%a, %x) {axis=0} : f32[?]\n"
                   "    return %go, %b\n"
                   "  } : f32[?]\n"
                   "  %at = non_zero(%y) : i64[1,?]\n"
                   "  %t = transpose(%at) : i64[?,1]\n"
                   "  %z = gather_nd(%y, %t) : f32[?]\n"
                   "  return %z\n}\n");
    float want[602];
    for (size_t i = 0; i < G_N_ELEMENTS(want); i++)
        want[i] = x[i % 2];
    bind(session, 1, x, sizeof x);
    for (size_t i = 0; i < G_N_ELEMENTS(trips); i++) {
        bind(session, 0, &trips[i], sizeof trips[i]);
        run(session);
        expect_floats(session, 0, want, DIMS(2 * trips[i] + 2));
    }
}

/* --- failures --- */

/* A loop whose body has a branch and a dim that data decides, all of which need memory that grows.
 */
static const char grows[] =
    "graph @f(%n: i64[], %x: f32[3]) {\n"
    "  %half = const @half : i64[]\n"
    "  %y, %s = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[?]) {\n"
    "    %early = less(%i, %half) : bool[]\n"
    "    %at = non_zero(%a) : i64[1,?]\n"
    "    %t = transpose(%at) : i64[?,1]\n"
    "    %v = gather_nd(%a, %t) : f32[?]\n"
    "    %w = softmax(%v) {axis=0} : f32[?]\n"
    "    %b = if(%early) then {\n"
    "      %l = concat(%w, %x, %v) {axis=0} : f32[?]\n"
    "      return %l\n"
    "    } else {\n"
    "      %p = concat(%x, %v) {axis=0} : f32[?]\n"
    "      %e = exp(%p) : f32[?]\n"
    "      %r = neg(%e) : f32[?]\n"
    "      return %r\n"
    "    } : f32[?]\n"
    "    %m = reduce_max(%b) : f32[1]\n"
    "    return %go, %b, %m\n"
    "  } : f32[?], f32[?,1]\n"
    "  return %y, %s\n}\nconstants { @half = [3] : i64[] }\n";

/* What an allocation that failed in a body leaves is made whole by the next run. */
Test(flow, runs_after_memory_ran_out)
{
    static const int64_t most = 6;
    static const float x[] = { 1, 0, 2 };
    g_autoptr(KilnProgram) program = program_of(grows, NULL);
    g_autoptr(KilnSession) whole = kiln_session_new(program, NULL, NULL);
    bind(whole, 1, x, sizeof x);
    unsigned failed = 0;
    for (unsigned nth = 1;; nth++) {
        g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
        int64_t n = 1;
        bind(session, 0, &n, sizeof n);
        bind(session, 1, x, sizeof x);
        run(session);
        n = most;
        bind(session, 0, &n, sizeof n);
        g_autoptr(GError) error = NULL;
        kiln_alloc_inject_failure(nth);
        gboolean good = kiln_session_run(session, &error);
        kiln_alloc_inject_failure(0);
        if (good)
            break;
        cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_MEMORY), "%s", error->message);
        failed++;
        for (int64_t again = most; again >= 0; again -= 2) {
            bind(session, 0, &again, sizeof again);
            bind(whole, 0, &again, sizeof again);
            run(session);
            run(whole);
            expect_same_outputs(session, whole, 2);
        }
    }
    cr_expect_gt(failed, 10);
}

/* A loop without an end. */
static const char endless[] = "graph @f(%x: f32[]) {\n"
                              "  %y = loop(_, _, %x) body(%i: i64[], %go: bool[], %a: f32[]) {\n"
                              "    %b = add(%a, %x) : f32[]\n"
                              "    return %go, %b\n"
                              "  } : f32[]\n"
                              "  return %y\n}\n";

Test(flow, a_time_limit_ends_a_loop)
{
    g_autoptr(KilnProgram) program = program_of(endless, NULL);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.time_limit = 50;
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, NULL);
    GError *error = NULL;
    const float x = 1;
    bind(session, 0, &x, sizeof x);
    cr_expect_not(kiln_session_run(session, &error));
    expect_error(&error, KILN_ERROR_LIMIT, "iteration ");
}

Test(flow, a_loop_is_cancelled)
{
    g_autoptr(KilnProgram) program = program_of(endless, NULL);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    volatile int cancel = 1;
    options.cancel = &cancel;
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, NULL);
    GError *error = NULL;
    const float x = 1;
    bind(session, 0, &x, sizeof x);
    cr_expect_not(kiln_session_run(session, &error));
    expect_error(&error, KILN_ERROR_CANCELLED, "cancelled");
}

/* Values of two shapes have no stack. */
Test(flow, a_stack_has_values_of_one_shape)
{
    static const char text[] =
        "graph @f(%n: i64[], %x: f32[1]) {\n"
        "  %y, %s = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[?]) {\n"
        "    %b = concat(%a, %x) {axis=0} : f32[?]\n"
        "    return %go, %b, %b\n"
        "  } : f32[?], f32[?,?]\n"
        "  return %s\n}\n";
    g_autoptr(KilnSession) session = session_of(text);
    GError *error = NULL;
    const float x = 1;
    int64_t n = 2;
    bind(session, 0, &n, sizeof n);
    bind(session, 1, &x, sizeof x);
    cr_expect_not(kiln_session_run(session, &error));
    expect_error(&error, KILN_ERROR_RUN, "iteration 1: stacked result 0: expected values of one");
    n = 1; /* what failed leaves nothing behind */
    bind(session, 0, &n, sizeof n);
    run(session);
    expect_floats(session, 0, (const float[]){ 1, 1 }, DIMS(1, 2));
}

/* What is scanned has one length. A run finds it where the types do not say so. */
Test(flow, what_is_scanned_has_one_length)
{
    static const char text[] =
        "graph @f(%n: i64[], %m: i64[], %x: f32[]) {\n"
        "  %a, %p = loop(%n, _, %x) body(%i: i64[], %go: bool[], %c: f32[]) {\n"
        "    %d = add(%c, %x) : f32[]\n"
        "    return %go, %d, %d\n"
        "  } : f32[], f32[?]\n"
        "  %b, %q = loop(%m, _, %x) body(%j: i64[], %on: bool[], %e: f32[]) {\n"
        "    %f = add(%e, %x) : f32[]\n"
        "    return %on, %f, %f\n"
        "  } : f32[], f32[?]\n"
        "  %s = scan(%p, %q) {num_scan_inputs=2} body(%u: f32[], %v: f32[]) {\n"
        "    %w = mul(%u, %v) : f32[]\n"
        "    return %w\n"
        "  } : f32[?]\n"
        "  return %s\n}\n";
    g_autoptr(KilnSession) session = session_of(text);
    GError *error = NULL;
    const float x = 1;
    int64_t n = 2, m = 2;
    bind(session, 0, &n, sizeof n);
    bind(session, 1, &m, sizeof m);
    bind(session, 2, &x, sizeof x);
    run(session);
    expect_floats(session, 0, (const float[]){ 4, 9 }, DIMS(2));
    n = 3;
    cr_expect_not(kiln_session_run(session, &error));
    expect_error(&error, KILN_ERROR_SHAPE,
                 "s (loop): scanned operand 1 (q): expected length 3, as p has, found 2");
}

Test(flow, functions_of_the_ir_scan_one_length)
{
    static const char text[] =
        "func @b {\n"
        "  input @i : i64[]\n  input @c : bool[]\n  input @p : f32[2]\n  input @q : f32[2]\n"
        "  output @s : f32[2]\n  add @out @s, @in @p, @in @q\n}\n"
        "func @g {\n  input @x : f32[3,2]\n  input @y : f32[2,2]\n  output @all : f32[3,2]\n"
        "  loop @out @all, @in @x, @in @y {body=\"b\", scanned=2}\n}\n";
    g_autoptr(KilnSession) session = session_of(text);
    const float x[6] = { 0 };
    bind(session, 0, x, sizeof x);
    bind(session, 1, x, 4 * sizeof *x);
    run_fails(session, KILN_ERROR_SHAPE,
              "scanned operand 1 (y): expected length 3, as x has, found 2");
}

/* Texts of the IR whose sizes a run alone can compare. */
static const char held[] =
    "func @yes {\n  dims k=3, n=6\n  input @x : f32[k]\n  output @t : f32[2*k]\n"
    "  concat @out @t, @in @x, @in @x\n}\n"
    "func @no {\n  dims k=3, n=6\n  input @x : f32[k]\n  output @e : f32[k]\n"
    "  neg @out @e, @in @x\n}\n"
    "func @g {\n  dims k=3, n=6\n  input @c : bool[]\n  input @x : f32[k]\n"
    "  output @y : f32[n]\n"
    "  %counts = alloc : i64[1]\n  %held = alloc : i64[1]\n"
    "  branch @out %counts, @out %held, @in @c, @in @x {then=\"yes\", otherwise=\"no\", "
    "decided=[0,0], names=[\"k\"], numbers=[k]}\n"
    "  define @in %counts {values=[n], most=[-1]}\n"
    "  take @out @y, @in %held\n"
    "  dealloc %counts\n  dealloc %held\n}\n"
    "dims {\n  n: least=0\n}\n";

/* Runs the text with @new in place of @old; @message is a part of its error, NULL where it has
 * none. */
static void
run_changed(const char *old, const char *new, const char *message)
{
    g_auto(GStrv) parts = g_strsplit(held, old, -1);
    g_autofree char *text = g_strjoinv(new, parts);
    cr_assert(parts[0] && parts[1], "%s", old);
    g_autoptr(KilnSession) session = session_of(text);
    GError *error = NULL;
    const float x[] = { 1, 2, 3 };
    const uint8_t c = 1;
    bind(session, 0, &c, sizeof c);
    bind_shaped(session, 1, x, DIMS(3));
    if (!message) {
        run(session);
        expect_floats(session, 0, FLOATS(1, 2, 3, 1, 2, 3), DIMS(6));
        return;
    }
    cr_expect_not(kiln_session_run(session, &error), "%s", new);
    cr_expect(error && strstr(error->message, message), "%s: expected %s, found %s", new, message,
              error ? error->message : "none");
    g_clear_error(&error);
}

Test(flow, sizes_are_compared_in_a_run)
{
    run_changed("numbers=[k]", "numbers=[k]", NULL);
    run_changed("numbers=[k]", "numbers=[k+1]",
                "operand x: expected 16 bytes for the function that reads it, found 12");
    run_changed("numbers=[k]", "numbers=[9*k]", "operand x: expected 108 bytes");
    run_changed("%held\n  dealloc", "%held\n  dealloc", NULL);
    run_changed("output @y : f32[n]", "output @y : f32[n+500]",
                "the held result has another size than the operand");
}

/* Iterations and runs draw other numbers, and the seed repeats them. */
Test(flow, iterations_draw_other_numbers)
{
    static const char text[] =
        "graph @f(%x: f32[]) {\n"
        "  %n = const @n : i64[]\n"
        "  %y, %s = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[]) {\n"
        "    %r = random_uniform() {shape=[4]} : f32[4]\n"
        "    return %go, %a, %r\n"
        "  } : f32[], f32[2,4]\n"
        "  return %s\n}\nconstants { @n = [2] : i64[] }\n";
    g_autoptr(KilnProgram) program = program_of(text, NULL);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.seeded = true;
    options.seed = 7;
    float first[8];
    const float x = 0;
    for (int i = 0; i < 2; i++) {
        g_autoptr(KilnSession) session = kiln_session_new(program, &options, NULL);
        bind(session, 0, &x, sizeof x);
        run(session);
        const float *y = kiln_session_output(session, 0, NULL, NULL);
        cr_expect(memcmp(y, y + 4, 4 * sizeof *y) != 0);
        if (i)
            cr_expect_arr_eq(first, y, sizeof first);
        memcpy(first, y, sizeof first);
    }
}

/* In a program for all shapes, too, where a loop has constant operands. */
Test(flow, loops_over_constants_draw_again)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[N]) {\n"
                   "  %n = const @n : i64[]\n"
                   "  %s = loop(%n, _) body(%i: i64[], %go: bool[]) {\n"
                   "    %r = random_uniform() {shape=[4]} : f32[4]\n"
                   "    return %go, %r\n"
                   "  } : f32[2,4]\n"
                   "  %p = reduce_sum(%s) : f32[1,1]\n"
                   "  %o = neg(%x) : f32[N]\n"
                   "  return %p, %o\n}\nconstants { @n = [2] : i64[] }\n");
    const float x[] = { 1, 2, 3 };
    float first;
    bind_shaped(session, 0, x, DIMS(3));
    run(session);
    memcpy(&first, kiln_session_output(session, 0, NULL, NULL), sizeof first);
    run(session);
    cr_expect(memcmp(&first, kiln_session_output(session, 0, NULL, NULL), sizeof first) != 0);
}

/* A loop whose results have more dims that data decides than a node may name. */
Test(flow, dims_that_a_run_decides_are_bounded)
{
    enum {
        N = 65
    };
    g_autoptr(GString) text = g_string_new("graph @f(%n: i64[], %x: f32[1]) {\n  ");
    for (int k = 0; k < N; k++)
        g_string_append_printf(text, "%s%%y%d", k ? ", " : "", k);
    g_string_append(text, " = loop(%n, _");
    for (int k = 0; k < N; k++)
        g_string_append(text, ", %x");
    g_string_append(text, ") body(%i: i64[], %go: bool[]");
    for (int k = 0; k < N; k++)
        g_string_append_printf(text, ", %%a%d: f32[?]", k);
    g_string_append(text, ") {\n");
    for (int k = 0; k < N; k++)
        g_string_append_printf(text, "    %%b%d = concat(%%a%d, %%x) {axis=0} : f32[?]\n", k, k);
    g_string_append(text, "    return %go");
    for (int k = 0; k < N; k++)
        g_string_append_printf(text, ", %%b%d", k);
    g_string_append(text, "\n  } : f32[?]");
    for (int k = 1; k < N; k++)
        g_string_append(text, ", f32[?]");
    g_string_append(text, "\n  return ");
    for (int k = 0; k < N; k++)
        g_string_append_printf(text, "%s%%y%d", k ? ", " : "", k);
    g_string_append(text, "\n}\n");
    g_autoptr(KilnModel) model = model_of(text->str);
    GError *error = NULL;
    g_autoptr(KilnProgram) program = kiln_program_compile(model, NULL, &error);
    g_autoptr(KilnSession) session = program ? kiln_session_new(program, NULL, &error) : NULL;
    if (session) {
        const float x = 1;
        const int64_t n = 2;
        bind(session, 0, &n, sizeof n);
        bind(session, 1, &x, sizeof x);
        cr_expect_not(kiln_session_run(session, &error));
    }
    expect_error(&error, KILN_ERROR_UNSUPPORTED,
                 "y0 (loop): result 64: expected at most 64 dims of results that a run decides");
}

/* A branch that does not fit stands beside one whose dims data decides. It refuses where it is
 * taken, with its reason, and does no harm otherwise. */
Test(flow, a_refused_branch_beside_a_decided_one)
{
    static const char text[] =
        "graph @f(%c: bool[], %e: bool[], %x: f32[2,2], %w: f32[3]) {\n"
        "  %y = if(%c) then {\n"
        "    %t = concat(%x, %x) {axis=0} : f32[4,2]\n"
        "    return %t\n"
        "  } else {\n"
        "    %u = neg(%x) : f32[2,2]\n"
        "    return %u\n"
        "  } : f32[?,2]\n"
        "  %z = if(%e) then {\n"
        "    %refused = unknown() {reason=\"it does not fit\", mismatch=true} : f32[?,2]\n"
        "    return %refused\n"
        "  } else {\n"
        "    %v = add(%y, %y) : f32[?,2]\n"
        "    return %v\n"
        "  } : f32[?,2]\n"
        "  return %z\n}\n";
    g_autoptr(KilnSession) session = session_of(text);
    const float x[] = { 1, 2, 3, 4 }, w[3] = { 0 };
    for (uint8_t c = 0; c < 2; c++) {
        uint8_t e = 0;
        bind(session, 0, &c, sizeof c);
        bind(session, 1, &e, sizeof e);
        bind(session, 2, x, sizeof x);
        bind(session, 3, w, sizeof w);
        run(session);
        if (c)
            expect_floats(session, 0, FLOATS(2, 4, 6, 8, 2, 4, 6, 8), DIMS(4, 2));
        else
            expect_floats(session, 0, FLOATS(-2, -4, -6, -8), DIMS(2, 2));
        e = 1;
        bind(session, 1, &e, sizeof e);
        GError *error = NULL;
        cr_expect_not(kiln_session_run(session, &error));
        cr_expect(error && strstr(error->message, "it does not fit"), "%s",
                  error ? error->message : "no error");
        g_clear_error(&error);
    }
}
