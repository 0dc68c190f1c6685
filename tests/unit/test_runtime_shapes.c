/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are specialised at a run: open dims, open ranks, and inputs whose values decide
 * shapes. */
#include "runtime/bind.h"
#include "runtime/program.h"
#include "runtime/specialise.h"
#include "runtime/targets.h"
#include "tests/unit/runtime_case.h"

#include "graph/text/text.h"
#include "kiln.h"

#include <string.h>

static const char named[] = "graph @f(%a: f32[N,2], %b: f32[N,M]) {\n"
                            "  %c = concat(%a, %b) {axis=1} : f32[N,?]\n"
                            "  %y = neg(%c) : f32[N,?]\n"
                            "  return %y\n"
                            "}\n";

/* --- open dims --- */

Test(runtime_shapes, named_dims)
{
    g_autoptr(KilnSession) session = session_of(named);
    GError *error = NULL;
    cr_expect(!kiln_session_bind_input(session, 0, FLOATS(1, 2), 8, &error));
    expect_error(&error, KILN_ERROR_SHAPE,
                 "input a: its shape is open: bind it with kiln_session_bind_input_shaped()");
    bind_shaped(session, 0, FLOATS(1, 2), DIMS(1, 2));
    bind_shaped(session, 1, FLOATS(3), DIMS(1, 1));
    run(session);
    expect_floats(session, 0, FLOATS(-1, -2, -3), DIMS(1, 3));

    /* One name, one number. The session is as good as before once it is put right. */
    bind_shaped(session, 0, FLOATS(1, 2, 3, 4), DIMS(2, 2));
    run_fails(session, KILN_ERROR_SHAPE, "dim N: expected one number, found 2 and 1");
    run_fails(session, KILN_ERROR_SHAPE, "input b");
    bind_shaped(session, 1, FLOATS(5, 6), DIMS(2, 1));
    run(session);
    expect_floats(session, 0, FLOATS(-1, -2, -5, -3, -4, -6), DIMS(2, 3));
}

Test(runtime_shapes, dims_that_contradict_the_model)
{
    g_autoptr(KilnSession) session = session_of(named);
    GError *error = NULL;
    float data[8] = { 0 };
    const int64_t wrong[] = { 2, 3 }, negative[] = { -1, 2 }, huge[] = { INT64_MAX, 2 };
    cr_expect(!kiln_session_bind_input_shaped(session, 0, data, 2, wrong, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input a: expected f32[N,2], found f32[2,3]");
    cr_expect(!kiln_session_bind_input_shaped(session, 0, data, 1, wrong, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input a: expected f32[N,2], found f32[2]");
    cr_expect(!kiln_session_bind_input_shaped(session, 0, data, 2, negative, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input a: expected f32[N,2]");
    cr_expect(!kiln_session_bind_input_shaped(session, 0, data, 2, huge, &error));
    expect_error(&error, KILN_ERROR_SHAPE,
                 "input a: expected f32[N,2] of less than 2^63 bytes, found f32[");
}

Test(runtime_shapes, two_shapes_alternate)
{
    g_autoptr(KilnProgram) program = program_of(named, NULL);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    for (int i = 0; i < 6; i++) {
        if (i % 2) {
            bind_shaped(session, 0, FLOATS(1, 2, 3, 4), DIMS(2, 2));
            bind_shaped(session, 1, FLOATS(5, 6), DIMS(2, 1));
            run(session);
            expect_floats(session, 0, FLOATS(-1, -2, -5, -3, -4, -6), DIMS(2, 3));
        } else {
            bind_shaped(session, 0, FLOATS(7, 8), DIMS(1, 2));
            bind_shaped(session, 1, NULL, DIMS(1, 0));
            run(session);
            expect_floats(session, 0, FLOATS(-7, -8), DIMS(1, 2));
        }
    }
    /* The program for a dim that may be 0 takes all shapes. */
    cr_expect_eq(program->specialisations->len, 0);
    cr_expect_eq(program->templates->len, 1);
}

/* What branches compute has its dims, too: passes go by them. */
Test(runtime_shapes, dims_inside_branches)
{
    g_autoptr(KilnModel) model = model_of("graph @f(%x: f32[N,2], %c: bool[]) {\n"
                                          "  %t = transpose(%x) : f32[2,N]\n"
                                          "  %y = if(%c) then {\n"
                                          "    %r = neg(%t) : f32[2,N]\n"
                                          "    return %r\n"
                                          "  } else {\n"
                                          "    %s = transpose(%x) : f32[2,N]\n"
                                          "    %u = neg(%s) : f32[2,N]\n"
                                          "    return %u\n"
                                          "  } : f32[2,N]\n"
                                          "  return %y\n"
                                          "}\n");
    const KilnBinding bindings[] = { { .rank = 2, .dims = { 3, 2 } }, { .rank = 0 } };
    GError *error = NULL;
    g_autoptr(KilnModule) module =
        kiln_specialise(model->module, bindings, kiln_target_by_name("ref", NULL), &error);
    cr_assert(module, "%s", error ? error->message : "");
    g_autoptr(GString) text = g_string_new(NULL);
    kiln_function_print(kiln_module_entry(module), text);
    cr_expect_not(strstr(text->str, "N"), "%s", text->str);
    cr_expect(strstr(text->str, "%u = neg(%s) : f32[2,3]"), "%s", text->str);
}

/* The cache does not grow without end, and what a session runs outlives its place in the cache. */
Test(runtime_shapes, cache_is_bounded)
{
    g_autoptr(KilnProgram) program =
        program_of("graph @f(%x: f32[*]) {\n  %w = const @w : f32[]\n  %y = mul(%x, %w) : f32[*]\n"
                   "  return %y\n}\nconstants { @w = [2] : f32[] }",
                   NULL);
    g_autoptr(KilnSession) old = kiln_session_new(program, NULL, NULL);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    float data[3 * KILN_MAX_SPECIALISATIONS] = { 4 };
    bind_shaped(old, 0, data, DIMS(2));
    run(old);
    for (int64_t n = 1; n <= 2 * KILN_MAX_SPECIALISATIONS; n++) {
        bind_shaped(session, 0, data, DIMS(n));
        run(session);
    }
    cr_expect_eq(program->specialisations->len, KILN_MAX_SPECIALISATIONS);
    data[1] = 5;
    run(old);
    expect_floats(old, 0, FLOATS(8, 10), DIMS(2));
    /* The one that was asked for last is kept longest. */
    bind_shaped(session, 0, data, DIMS(KILN_MAX_SPECIALISATIONS + 2));
    run(session);
    bind_shaped(session, 0, data, DIMS(1000 - 999));
    run(session);
    const KilnSpecialisation *last =
        g_ptr_array_index(program->specialisations, KILN_MAX_SPECIALISATIONS - 2);
    cr_expect_eq(last->bindings[0].dims[0], KILN_MAX_SPECIALISATIONS + 2);
}

Test(runtime_shapes, open_rank)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[*]) {\n  %y = abs(%x) : f32[*]\n  return %y\n}\n");
    bind_shaped(session, 0, FLOATS(-1, 2), DIMS(2));
    run(session);
    expect_floats(session, 0, FLOATS(1, 2), DIMS(2));
    bind_shaped(session, 0, FLOATS(-3, -4, 5, -6), DIMS(2, 1, 2));
    run(session);
    expect_floats(session, 0, FLOATS(3, 4, 5, 6), DIMS(2, 1, 2));
    float scalar = -7;
    bind_shaped(session, 0, &scalar, 0, NULL);
    run(session);
    expect_floats(session, 0, FLOATS(7), 0, NULL);
}

Test(runtime_shapes, outputs_of_open_shape)
{
    g_autoptr(KilnSession) session = session_of(named);
    GError *error = NULL;
    float small[3], big[6];
    must(kiln_session_bind_output(session, 0, small, sizeof small, &error), error);
    bind_shaped(session, 0, FLOATS(1, 2), DIMS(1, 2));
    bind_shaped(session, 1, FLOATS(3), DIMS(1, 1));
    run(session);
    cr_expect_eq(kiln_session_output(session, 0, NULL, NULL), small);
    expect_floats(session, 0, FLOATS(-1, -2, -3), DIMS(1, 3));

    /* Other shapes make more than what is bound: nothing is written past it. */
    bind_shaped(session, 0, FLOATS(1, 2, 3, 4), DIMS(2, 2));
    bind_shaped(session, 1, FLOATS(5, 6), DIMS(2, 1));
    run_fails(session, KILN_ERROR_SHAPE, "output y: expected 24 bytes, found 12");
    must(kiln_session_bind_output(session, 0, big, sizeof big, &error), error);
    run(session);
    cr_expect_eq(kiln_session_output(session, 0, NULL, NULL), big);
    expect_floats(session, 0, FLOATS(-1, -2, -5, -3, -4, -6), DIMS(2, 3));
    /* Bound anew for shapes that stay: checked by the run too. */
    must(kiln_session_bind_output(session, 0, small, sizeof small, &error), error);
    run_fails(session, KILN_ERROR_SHAPE, "output y: expected 24 bytes, found 12");
    must(kiln_session_bind_output(session, 0, NULL, 0, &error), error);
    run(session);
    expect_floats(session, 0, FLOATS(-1, -2, -5, -3, -4, -6), DIMS(2, 3));
}

Test(runtime_shapes, arena_too_small_for_one_shape)
{
    g_autoptr(KilnProgram) program =
        program_of("graph @f(%x: f32[N]) {\n  %a = exp(%x) : f32[N]\n"
                   "  %b = softmax(%a) {axis=0} : f32[N]\n  %y = add(%b, %a) : f32[N]\n"
                   "  return %y\n}\n",
                   NULL);
    _Alignas(64) char arena[256];
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.arena = arena;
    options.arena_bytes = sizeof arena;
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, NULL);
    static float data[1000];
    bind_shaped(session, 0, data, DIMS(1));
    run(session);
    expect_floats(session, 0, FLOATS(2), DIMS(1));
    bind_shaped(session, 0, data, DIMS(1000));
    run_fails(session, KILN_ERROR_USAGE, "arena: expected");
    bind_shaped(session, 0, data, DIMS(1));
    run(session);
    expect_floats(session, 0, FLOATS(2), DIMS(1));
}

Test(runtime_shapes, limits_hold_at_a_run)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.memory_limit = 4096;
    g_autoptr(KilnProgram) program =
        program_of("graph @f(%x: f32[N]) {\n  %a = exp(%x) : f32[N]\n"
                   "  %b = softmax(%a) {axis=0} : f32[N]\n  %y = add(%b, %a) : f32[N]\n"
                   "  return %y\n}\n",
                   &options);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    static float data[10000];
    bind_shaped(session, 0, data, DIMS(10000));
    run_fails(session, KILN_ERROR_LIMIT, "expected an arena of at most 4096 bytes");
    bind_shaped(session, 0, data, DIMS(1));
    run(session);
}

/* What decides no shape is no literal: it is read anew at every run. */
Test(runtime_shapes, only_what_decides_shapes_is_literal)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[N]) {\n  %y = neg(%x) : f32[N]\n  return %y\n}\n");
    float data[2] = { 1, 2 };
    bind_shaped(session, 0, data, DIMS(2));
    run(session);
    expect_floats(session, 0, FLOATS(-1, -2), DIMS(2));
    data[0] = 5;
    run(session);
    expect_floats(session, 0, FLOATS(-5, -2), DIMS(2));
}

/* --- values that decide shapes --- */

Test(runtime_shapes, reshape_by_input)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[2,3], %s: i64[2]) {\n  %y = reshape(%x, %s) : f32[?,?]\n"
                   "  %z = neg(%y) : f32[?,?]\n  return %z\n}\n");
    int64_t shape[2] = { 3, 2 }, other[2] = { 1, -1 };
    bind(session, 0, FLOATS(1, 2, 3, 4, 5, 6), 24);
    bind(session, 1, shape, sizeof shape);
    run(session);
    expect_floats(session, 0, FLOATS(-1, -2, -3, -4, -5, -6), DIMS(3, 2));
    /* In place. */
    shape[0] = 6;
    shape[1] = 1;
    run(session);
    expect_floats(session, 0, FLOATS(-1, -2, -3, -4, -5, -6), DIMS(6, 1));
    bind(session, 1, other, sizeof other);
    run(session);
    expect_floats(session, 0, FLOATS(-1, -2, -3, -4, -5, -6), DIMS(1, 6));
    /* A value that fits nothing, and back. */
    other[0] = 4;
    run_fails(session, KILN_ERROR_SHAPE, "y");
    other[0] = 2;
    run(session);
    expect_floats(session, 0, FLOATS(-1, -2, -3, -4, -5, -6), DIMS(2, 3));
}

Test(runtime_shapes, slice_by_input)
{
    g_autoptr(KilnSession) session = session_of(
        "graph @f(%x: f32[6], %start: i64[1], %end: i64[1]) {\n"
        "  %axes = const @axes : i64[1]\n  %y = slice(%x, %start, %end, %axes) : f32[?]\n"
        "  return %y\n}\nconstants { @axes = [0] : i64[1] }");
    int64_t start = 1, end = 4;
    bind(session, 0, FLOATS(1, 2, 3, 4, 5, 6), 24);
    bind(session, 1, &start, 8);
    bind(session, 2, &end, 8);
    run(session);
    expect_floats(session, 0, FLOATS(2, 3, 4), DIMS(3));
    start = 4; /* as many elements, others of them */
    end = 7;
    run(session);
    expect_floats(session, 0, FLOATS(5, 6), DIMS(2));
    start = 2;
    end = 5;
    run(session);
    expect_floats(session, 0, FLOATS(3, 4, 5), DIMS(3));
    start = 5;
    end = 5;
    run(session);
    expect_floats(session, 0, NULL, DIMS(0));
}

/* The value goes through arithmetic before it is a shape, and is data besides. */
Test(runtime_shapes, computed_from_inputs)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[1,2], %n: i64[]) {\n"
                   "  %one = const @one : i64[1]\n  %axes = const @axes : i64[1]\n"
                   "  %u = unsqueeze(%n, %axes) : i64[1]\n  %d = add(%u, %one) : i64[1]\n"
                   "  %two = const @two : i64[1]\n  %s = concat(%d, %two) {axis=0} : i64[2]\n"
                   "  %e = expand(%x, %s) : f32[?,2]\n  %f = cast(%n) {to=f32} : f32[]\n"
                   "  %y = mul(%e, %f) : f32[?,2]\n  return %y\n}\n"
                   "constants { @one = [1] : i64[1]  @two = [2] : i64[1]  @axes = [0] : i64[1] }");
    int64_t n = 1;
    bind(session, 0, FLOATS(1, 2), 8);
    bind(session, 1, &n, 8);
    run(session);
    expect_floats(session, 0, FLOATS(1, 2, 1, 2), DIMS(2, 2));
    n = 2;
    run(session);
    expect_floats(session, 0, FLOATS(2, 4, 2, 4, 2, 4), DIMS(3, 2));
}

Test(runtime_shapes, resize_by_input)
{
    g_autoptr(KilnSession) sizes =
        session_of("graph @f(%x: f32[1,1,2,2], %s: i64[4]) {\n"
                   "  %y = resize(%x, _, _, %s) {mode=\"nearest\"} : f32[?,?,?,?]\n"
                   "  return %y\n}\n");
    int64_t size[4] = { 1, 1, 2, 4 };
    bind(sizes, 0, FLOATS(1, 2, 3, 4), 16);
    bind(sizes, 1, size, sizeof size);
    run(sizes);
    expect_floats(sizes, 0, FLOATS(1, 1, 2, 2, 3, 3, 4, 4), DIMS(1, 1, 2, 4));
    size[3] = 2;
    run(sizes);
    expect_floats(sizes, 0, FLOATS(1, 2, 3, 4), DIMS(1, 1, 2, 2));

    /* Scales are floats: what integers cannot follow. */
    g_autoptr(KilnSession) scales =
        session_of("graph @f(%x: f32[1,1,2,2], %s: f32[4]) {\n  %two = const @two : f32[]\n"
                   "  %t = mul(%s, %two) : f32[4]\n"
                   "  %y = resize(%x, _, %t) {mode=\"nearest\"} : f32[?,?,?,?]\n  return %y\n}\n"
                   "constants { @two = [2] : f32[] }");
    float scale[4] = { 0.5f, 0.5f, 0.5f, 1 };
    bind(scales, 0, FLOATS(1, 2, 3, 4), 16);
    bind(scales, 1, scale, sizeof scale);
    run(scales);
    expect_floats(scales, 0, FLOATS(1, 1, 2, 2, 3, 3, 4, 4), DIMS(1, 1, 2, 4));
    scale[3] = 0.5f;
    run(scales);
    expect_floats(scales, 0, FLOATS(1, 2, 3, 4), DIMS(1, 1, 2, 2));
}

/* What decides a shape may be returned too, and be empty. */
Test(runtime_shapes, value_inputs_as_outputs)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[], %s: i64[R]) {\n  %y = expand(%x, %s) : f32[*]\n"
                   "  return %y, %s as shape\n}\n");
    float three = 3;
    int64_t shape[] = { 2, 1 };
    bind(session, 0, &three, 4);
    bind_shaped(session, 1, shape, DIMS(2));
    run(session);
    expect_floats(session, 0, FLOATS(3, 3), DIMS(2, 1));
    const int64_t *back = kiln_session_output(session, 1, NULL, NULL);
    cr_expect(back[0] == 2 && back[1] == 1);
    shape[0] = 0;
    run(session);
    expect_floats(session, 0, NULL, DIMS(0, 1));
    bind_shaped(session, 1, NULL, DIMS(0));
    run(session);
    expect_floats(session, 0, FLOATS(3), 0, NULL);
}

/* Known shapes, but a value that comes with the run: nothing needs to be bound with a shape. */
Test(runtime_shapes, infos_of_open_programs)
{
    g_autoptr(KilnProgram) program = program_of(
        "graph @f(%x: f32[2,3], %s: i64[2]) {\n  %y = reshape(%x, %s) : f32[?,?]\n  return %y\n}\n",
        NULL);
    cr_expect_eq(kiln_program_input(program, 0)->bytes, 24);
    cr_expect_eq(kiln_program_input(program, 1)->bytes, 16);
    cr_expect_eq(kiln_program_output(program, 0)->rank, 2);
    cr_expect_eq(kiln_program_output(program, 0)->bytes, -1);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.profile = TRUE;
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, NULL);
    unsigned n;
    kiln_session_profile(session, &n);
    cr_expect_eq(n, 0);
    int64_t shape[2] = { 6, 1 };
    bind(session, 0, FLOATS(1, 2, 3, 4, 5, 6), 24);
    bind(session, 1, shape, sizeof shape);
    run(session);
    run(session);
    const KilnProfileEntry *const *entries = kiln_session_profile(session, &n);
    cr_assert_eq(n, 1);
    cr_expect_eq(entries[0]->runs, 2);
}

/* --- loops --- */

/* As many iterations as there are rows but one. */
static const char loop_over_rows[] =
    "graph @f(%x: f32[N,2], %c: f32[2]) {\n"
    "  %s = shape(%x) {end=1} : i64[1]\n"
    "  %one = const @one : i64[1]\n"
    "  %d = sub(%s, %one) : i64[1]\n"
    "  %n = squeeze(%d) : i64[]\n"
    "  %last, %all = loop(%n, _, %c) body(%i: i64[], %go: bool[], %carried: f32[2]) {\n"
    "    %next = neg(%carried) : f32[2]\n"
    "    return %go, %next, %next\n"
    "  } : f32[2], f32[?,2]\n"
    "  %sum = add(%x, %last) : f32[N,2]\n"
    "  %y = concat(%all, %sum) : f32[?,2]\n"
    "  return %y\n"
    "}\n"
    "constants { @one = [1] : i64[1] }\n";

Test(runtime_shapes, a_loop_that_a_run_finds_idle)
{
    g_autoptr(KilnSession) session = session_of(loop_over_rows);
    bind_shaped(session, 1, FLOATS(10, 20), DIMS(2));
    bind_shaped(session, 0, FLOATS(1, 2), DIMS(1, 2));
    run(session);
    expect_floats(session, 0, FLOATS(11, 22), DIMS(1, 2));
    bind_shaped(session, 0, FLOATS(1, 2, 3, 4), DIMS(2, 2));
    run(session); /* one iteration: -c, and x - c */
    expect_floats(session, 0, FLOATS(-10, -20, -9, -18, -7, -16), DIMS(3, 2));
    bind_shaped(session, 0, FLOATS(3, 4), DIMS(1, 2));
    run(session);
    expect_floats(session, 0, FLOATS(13, 24), DIMS(1, 2));
}
