/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: binding, running, arenas, profiles, and what a run meets in its data. */
#include "kiln.h"
#include "tests/unit/runtime_case.h"

#include <stdlib.h>
#include <string.h>

static const char adds[] = "graph @f(%a: f32[4], %b: f32[4]) {\n"
                           "  %s = add(%a, %b) : f32[4]\n"
                           "  %e = exp(%s) : f32[4]\n"
                           "  %d = sub(%s, %b) : f32[4]\n"
                           "  return %s, %d, %e\n"
                           "}\n";

/* --- inputs --- */

Test(runtime_session, runs_when_all_is_bound)
{
    g_autoptr(KilnSession) session = session_of(adds);
    GError *error = NULL;
    cr_expect_null(kiln_session_output(session, 0, NULL, &error));
    expect_error(&error, KILN_ERROR_USAGE, "output s: the session has not run");
    run_fails(session, KILN_ERROR_USAGE, "input a is not bound");
    bind(session, 0, FLOATS(1, 2, 3, 4), 16);
    run_fails(session, KILN_ERROR_USAGE, "input b is not bound");
    bind(session, 1, FLOATS(10, 20, 30, 40), 16);
    run(session);
    expect_floats(session, 0, FLOATS(11, 22, 33, 44), DIMS(4));
    expect_floats(session, 1, FLOATS(1, 2, 3, 4), DIMS(4));
    cr_expect_null(kiln_session_output(session, 3, NULL, &error));
    expect_error(&error, KILN_ERROR_USAGE, "output 3: the program has 3");
}

Test(runtime_session, wrong_inputs)
{
    g_autoptr(KilnSession) session = session_of(adds);
    GError *error = NULL;
    float data[5];
    cr_expect(!kiln_session_bind_input(session, 0, data, 20, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input a: expected 16 bytes, found 20");
    cr_expect(!kiln_session_bind_input(session, 2, data, 16, &error));
    expect_error(&error, KILN_ERROR_USAGE, "input 2: the program has 2");
    cr_expect(!kiln_session_bind_input(session, 0, (char *)data + 1, 16, &error));
    expect_error(&error, KILN_ERROR_USAGE, "input a: expected an address aligned to 4 bytes");
    cr_expect(!kiln_session_bind_input(session, 0, NULL, 16, &error));
    expect_error(&error, KILN_ERROR_USAGE, "input a: expected an address, found NULL");
    const int64_t dims[] = { 2, 2, 1, 1, 1, 1, 1, 1, 1 };
    cr_expect(!kiln_session_bind_input_shaped(session, 0, data, 2, dims, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input a: expected f32[4], found f32[2,2]");
    cr_expect(!kiln_session_bind_input_shaped(session, 0, data, 9, dims, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "expected rank 0 to 8, found 9");
    cr_expect(!kiln_session_bind_input_shaped(session, 0, data, -1, dims, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "expected rank 0 to 8, found -1");
    cr_expect(!kiln_session_bind_input_shaped(session, 0, data, 1, NULL, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input a: expected 1 dims, found NULL");
    cr_expect(!kiln_session_bind_input_shaped(session, 9, data, 1, dims, &error));
    expect_error(&error, KILN_ERROR_USAGE, "input 9: the program has 2");
    cr_expect(!kiln_session_bind_output(session, 0, data, 20, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "output s: expected 16 bytes, found 20");
    cr_expect(!kiln_session_bind_output(session, 0, (char *)data + 2, 16, &error));
    expect_error(&error, KILN_ERROR_USAGE, "output s: expected an address aligned to 4 bytes");
    cr_expect(!kiln_session_bind_output(session, 3, data, 16, &error));
    expect_error(&error, KILN_ERROR_USAGE, "output 3: the program has 3");
    /* A refused binding changes nothing. */
    run_fails(session, KILN_ERROR_USAGE, "input a is not bound");
}

/* Read at every run, where it lies then. */
Test(runtime_session, inputs_are_borrowed)
{
    g_autoptr(KilnSession) session = session_of(adds);
    float a[4] = { 1, 2, 3, 4 }, b[4] = { 0 }, other[4] = { 5, 6, 7, 8 };
    bind(session, 0, a, sizeof a);
    bind(session, 1, b, sizeof b);
    run(session);
    expect_floats(session, 0, FLOATS(1, 2, 3, 4), DIMS(4));
    a[0] = 100;
    run(session);
    expect_floats(session, 0, FLOATS(100, 2, 3, 4), DIMS(4));
    bind(session, 0, other, sizeof other);
    run(session);
    expect_floats(session, 0, FLOATS(5, 6, 7, 8), DIMS(4));
    /* Two inputs may be the same memory. */
    bind(session, 1, other, sizeof other);
    run(session);
    expect_floats(session, 0, FLOATS(10, 12, 14, 16), DIMS(4));
}

/* Element-aligned is all that is asked for. */
Test(runtime_session, any_aligned_address)
{
    const char *text =
        "graph @f(%x: f32[2,37]) {\n  %w = const @w : f32[37,19]\n"
        "  %m = matmul(%x, %w) : f32[2,19]\n  %y = softmax(%m) {axis=1} : f32[2,19]\n"
        "  return %y\n}\nconstants { @w = random_normal(seed=1, std=1) : f32[37,19] }";
    g_autoptr(KilnSession) session = session_of(text);
    float in[2 * 37 + 16], out[2 * 19 + 16], want[2 * 19];
    for (int shift = 0; shift < 16; shift++) {
        for (int i = 0; i < 2 * 37; i++)
            in[shift + i] = (float)(i % 11) / 11;
        bind(session, 0, in + shift, 2 * 37 * sizeof(float));
        GError *error = NULL;
        must(kiln_session_bind_output(session, 0, out + 15 - shift, sizeof want, &error), error);
        run(session);
        if (shift == 0)
            memcpy(want, out + 15, sizeof want);
        cr_expect_arr_eq(out + 15 - shift, want, sizeof want);
    }
}

/* --- outputs --- */

Test(runtime_session, outputs_without_a_copy)
{
    g_autoptr(KilnSession) session = session_of(adds);
    float mine[4] = { 0 };
    GError *error = NULL;
    bind(session, 0, FLOATS(1, 2, 3, 4), 16);
    bind(session, 1, FLOATS(1, 1, 1, 1), 16);
    must(kiln_session_bind_output(session, 0, mine, sizeof mine, &error), error);
    run(session);
    cr_expect_eq(kiln_session_output(session, 0, NULL, NULL), mine);
    expect_floats(session, 0, FLOATS(2, 3, 4, 5), DIMS(4));
    cr_expect_neq(kiln_session_output(session, 1, NULL, NULL), mine);

    /* Back to the session's own: what was bound is left alone. */
    must(kiln_session_bind_output(session, 0, NULL, 0, &error), error);
    bind(session, 0, FLOATS(0, 0, 0, 0), 16);
    run(session);
    cr_expect_neq(kiln_session_output(session, 0, NULL, NULL), mine);
    expect_floats(session, 0, FLOATS(1, 1, 1, 1), DIMS(4));
    cr_expect_eq(mine[3], 5);
}

static void
bind_out(KilnSession *session, unsigned i, void *data)
{
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_session_bind_output(session, i, data, data ? 16 : 0, &error), "%s",
              error ? error->message : "");
}

/* What a run would write must not lie over anything else that it uses. */
Test(runtime_session, overlaps_are_refused)
{
    g_autoptr(KilnSession) session = session_of(adds);
    float a[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, b[4] = { 10, 20, 30, 40 }, out[12];
    bind(session, 0, a, 16);
    bind(session, 1, b, 16);
    bind_out(session, 0, a);
    run_fails(session, KILN_ERROR_USAGE, "output s: expected memory of its own, found 16 bytes at");
    cr_expect(a[0] == 1 && a[3] == 4);
    bind_out(session, 0, a + 3); /* by one element */
    run_fails(session, KILN_ERROR_USAGE, "which overlap input a, 16 bytes at");
    bind_out(session, 0, a + 4); /* right behind it */
    bind_out(session, 1, out);
    bind_out(session, 2, out + 2);
    run_fails(session, KILN_ERROR_USAGE, "which overlap output e, 16 bytes at");
    bind_out(session, 2, out + 4);
    run(session);
    cr_expect(a[4] == 11 && out[3] == 4);
    /* Inputs may be the same memory, and bindings may overlap while they change places. */
    bind(session, 1, a, 16);
    run(session);
    bind(session, 0, out, 16);
    bind_out(session, 1, a);
    bind(session, 1, out, 16);
    run(session);
}

Test(runtime_session, same_value_twice_input_and_constant)
{
    g_autoptr(KilnSession) session = session_of(
        "graph @f(%x: f32[2]) {\n  %y = neg(%x) : f32[2]\n  %c = const @c : f32[2]\n"
        "  return %y, %x, %y as again, %c, %x as \"x too\"\n}\nconstants { @c = [5, 6] : f32[2] }");
    float mine[2];
    GError *error = NULL;
    must(kiln_session_bind_output(session, 2, mine, sizeof mine, &error), error);
    bind(session, 0, FLOATS(1, -2), 8);
    run(session);
    expect_floats(session, 0, FLOATS(-1, 2), DIMS(2));
    expect_floats(session, 1, FLOATS(1, -2), DIMS(2));
    expect_floats(session, 2, FLOATS(-1, 2), DIMS(2));
    expect_floats(session, 3, FLOATS(5, 6), DIMS(2));
    expect_floats(session, 4, FLOATS(1, -2), DIMS(2));
    cr_expect_eq(kiln_session_output(session, 2, NULL, NULL), mine);
}

/* No input at all, and outputs that need no instruction but a copy. */
Test(runtime_session, constant_function)
{
    g_autoptr(KilnSession) session = session_of(
        "graph @f() {\n  %c = const @c : f32[]\n  return %c\n}\nconstants { @c = [2.5] : f32[] }");
    run(session);
    expect_floats(session, 0, FLOATS(2.5f), 0, NULL);
}

Test(runtime_session, rank_0_and_empty_tensors)
{
    g_autoptr(KilnSession) scalar =
        session_of("graph @f(%x: f32[]) {\n  %y = exp(%x) : f32[]\n  return %y\n}\n");
    float zero = 0;
    bind_shaped(scalar, 0, &zero, 0, NULL);
    run(scalar);
    expect_floats(scalar, 0, FLOATS(1), 0, NULL);

    g_autoptr(KilnSession) empty =
        session_of("graph @f(%x: f32[0,3], %z: f32[2,3]) {\n"
                   "  %c = concat(%x, %z) {axis=0} : f32[2,3]\n  %y = exp(%x) : f32[0,3]\n"
                   "  %r = reduce_sum(%x) {keepdims=false} : f32[]\n  return %c, %y, %r\n}\n");
    bind(empty, 0, NULL, 0);
    bind(empty, 1, FLOATS(1, 2, 3, 4, 5, 6), 24);
    run(empty);
    expect_floats(empty, 0, FLOATS(1, 2, 3, 4, 5, 6), DIMS(2, 3));
    expect_floats(empty, 1, NULL, DIMS(0, 3));
    expect_floats(empty, 2, FLOATS(0), 0, NULL);
}

/* --- arenas --- */

Test(runtime_session, arena_of_the_caller)
{
    g_autoptr(KilnProgram) program =
        program_of("graph @f(%x: f32[64]) {\n  %a = exp(%x) : f32[64]\n"
                   "  %b = softmax(%a) {axis=0} : f32[64]\n  %y = add(%b, %a) : f32[64]\n"
                   "  return %y\n}\n",
                   NULL);
    KilnMemoryReport memory = KILN_MEMORY_REPORT_INIT;
    kiln_program_memory(program, &memory, NULL);
    cr_assert_gt(memory.arena, 0);
    size_t need = (size_t)memory.arena;
    char *memory_block = aligned_alloc(64, need + 128);
    memset(memory_block, 0x5A, need + 128);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.arena = memory_block + 64;
    options.arena_bytes = need - 1;
    GError *error = NULL;
    cr_expect_null(kiln_session_new(program, &options, &error));
    expect_error(&error, KILN_ERROR_USAGE, "arena: expected");
    options.arena = memory_block + 32;
    options.arena_bytes = need + 32;
    cr_expect_null(kiln_session_new(program, &options, &error));
    expect_error(&error, KILN_ERROR_USAGE, "arena: expected an address aligned to 64 bytes");

    options.arena = memory_block + 64;
    options.arena_bytes = need;
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, &error);
    cr_assert(session, "%s", error ? error->message : "");
    g_autoptr(KilnSession) own = kiln_session_new(program, NULL, &error);
    float x[64];
    for (int i = 0; i < 64; i++)
        x[i] = (float)i / 64;
    bind(session, 0, memory_block + 64, sizeof x);
    run_fails(session, KILN_ERROR_USAGE, "the caller's arena: expected memory of its own");
    bind(session, 0, x, sizeof x);
    bind(own, 0, x, sizeof x);
    run(session);
    run(own);
    cr_expect_arr_eq(kiln_session_output(session, 0, NULL, NULL),
                     kiln_session_output(own, 0, NULL, NULL), sizeof x);
    bool used = false;
    for (size_t i = 0; i < need; i++)
        used |= memory_block[64 + i] != 0x5A;
    cr_expect(used);
    for (size_t i = 0; i < 64; i++)
        cr_expect(memory_block[i] == 0x5A && memory_block[64 + need + i] == 0x5A);
    kiln_session_free(g_steal_pointer(&session));
    free(memory_block);
}

/* --- threads and profiles --- */

Test(runtime_session, threads)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 2;
    g_autoptr(KilnProgram) program = program_of(adds, &options);
    KilnSessionOptions session_options = KILN_SESSION_OPTIONS_INIT;
    GError *error = NULL;
    session_options.threads = 3;
    cr_expect_null(kiln_session_new(program, &session_options, &error));
    expect_error(&error, KILN_ERROR_USAGE, "threads: expected 0 to 2, as compiled, found 3");
    session_options.threads = -1;
    cr_expect_null(kiln_session_new(program, &session_options, &error));
    expect_error(&error, KILN_ERROR_USAGE, "found -1");
    session_options.threads = 1;
    g_autoptr(KilnSession) session = kiln_session_new(program, &session_options, &error);
    bind(session, 0, FLOATS(1, 2, 3, 4), 16);
    bind(session, 1, FLOATS(1, 1, 1, 1), 16);
    run(session);
    expect_floats(session, 0, FLOATS(2, 3, 4, 5), DIMS(4));
}

Test(runtime_session, profile)
{
    g_autoptr(KilnProgram) program =
        program_of("graph @f(%x: f32[2,3]) {\n  %w = const @w : f32[3,4]\n"
                   "  %y = matmul(%x, %w) : f32[2,4] loc(\"/fc\")\n  return %y\n}\n"
                   "constants { @w = splat(1) : f32[3,4] }",
                   NULL);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.profile = TRUE;
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, NULL);
    bind(session, 0, FLOATS(1, 2, 3, 4, 5, 6), 24);
    for (int i = 0; i < 3; i++)
        run(session);
    unsigned n;
    const KilnProfileEntry *const *entries = kiln_session_profile(session, &n);
    cr_assert_eq(n, 1);
    cr_expect_str_eq(entries[0]->instruction, "matmul");
    cr_expect_str_eq(entries[0]->node, "/fc");
    cr_expect(g_str_has_prefix(entries[0]->kernel, "cpu:"));
    cr_expect_eq(entries[0]->flops, 2 * 2 * 3 * 4);
    cr_expect_eq(entries[0]->bytes, 4 * (6 + 12 + 8));
    cr_expect_eq(entries[0]->runs, 3);
    cr_expect(entries[0]->ms >= 0);

    g_autoptr(KilnSession) silent = kiln_session_new(program, NULL, NULL);
    bind(silent, 0, FLOATS(1, 2, 3, 4, 5, 6), 24);
    run(silent);
    cr_expect_null(kiln_session_profile(silent, &n));
    cr_expect_eq(n, 0);
}

/* --- random operators --- */

/* What a run of a new session draws: 8 numbers of each of two operators. */
static void
draw(KilnProgram *program, const KilnSessionOptions *options, float out[2][16])
{
    GError *error = NULL;
    g_autoptr(KilnSession) session = kiln_session_new(program, options, &error);
    cr_assert(session, "%s", error ? error->message : "");
    for (int i = 0; i < 2; i++) {
        run(session);
        memcpy(out[i], kiln_session_output(session, 0, NULL, NULL), 32);
        memcpy(out[i] + 8, kiln_session_output(session, 1, NULL, NULL), 32);
    }
}

Test(runtime_session, seeds)
{
    KilnCompileOptions compile = KILN_COMPILE_OPTIONS_INIT;
    compile.threads = 2;
    g_autoptr(KilnProgram) program = program_of("graph @f() {\n"
                                                "  %a = random_normal() {shape=[8]}\n"
                                                "  %b = random_normal() {shape=[8]}\n"
                                                "  return %a, %b\n}\n",
                                                &compile);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    float first[2][16], again[2][16], other[2][16];
    draw(program, NULL, first);
    cr_expect_arr_neq(first[0], first[1], sizeof first[0]);
    cr_expect_arr_neq(first[0], first[0] + 8, 32);
    draw(program, NULL, again);
    cr_expect_arr_neq(first[0], again[0], sizeof first[0]);

    options.seeded = TRUE;
    draw(program, &options, first);
    cr_expect_arr_eq(first[0], first[1], sizeof first[0]);
    cr_expect_arr_neq(first[0], first[0] + 8, 32);
    options.threads = 1;
    draw(program, &options, again);
    cr_expect_arr_eq(first, again, sizeof first);
    options.seed = 1;
    draw(program, &options, other);
    cr_expect_arr_neq(first, other, sizeof first);
}

/* --- data that cannot be computed with --- */

Test(runtime_session, indices_out_of_range)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[4], %i: i64[2]) {\n"
                   "  %y = gather(%x, %i) {axis=0} : f32[2] loc(\"/embed/Gather\")\n"
                   "  return %y\n}\n");
    int64_t index[2] = { 3, 4 };
    bind(session, 0, FLOATS(1, 2, 3, 4), 16);
    bind(session, 1, index, sizeof index);
    run_fails(session, KILN_ERROR_RUN, "/embed/Gather (gather): ");
    index[1] = INT64_MIN;
    run_fails(session, KILN_ERROR_RUN, "/embed/Gather");
    index[1] = -4;
    run(session);
    expect_floats(session, 0, FLOATS(4, 1), DIMS(2));
}

/* --- state --- */

/* Weights that instructions write belong to the session and live as long as it. */
Test(runtime_session, state)
{
    const char *text = "func @count {\n  weight @sum : f32[2]\n  weight @blank = _ : f32[2]\n"
                       "  input @x : f32[2]\n  output @y : f32[2]\n  output @z : f32[2]\n"
                       "  add @out @sum, @in @sum, @in @x\n  copy @out @y, @in @sum\n"
                       "  add @out @blank, @in @blank, @in @x\n  copy @out @z, @in @blank\n}\n"
                       "constants { @sum = [10, 20] : f32[2] }";
    g_autoptr(KilnPipeline) none = kiln_pipeline_load("none", NULL);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = none;
    g_autoptr(KilnProgram) program = program_of(text, &options);
    g_autoptr(KilnSession) a = kiln_session_new(program, NULL, NULL);
    g_autoptr(KilnSession) b = kiln_session_new(program, NULL, NULL);
    bind(a, 0, FLOATS(1, 2), 8);
    bind(b, 0, FLOATS(100, 100), 8);
    run(a);
    run(b);
    run(a);
    expect_floats(a, 0, FLOATS(12, 24), DIMS(2));
    expect_floats(a, 1, FLOATS(2, 4), DIMS(2));
    expect_floats(b, 0, FLOATS(110, 120), DIMS(2));
}
