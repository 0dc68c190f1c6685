/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that a run decides: what reads them moves into branches, and loops carry lists. */
#include "graph/text/text.h"
#include "runtime/model.h"
#include "runtime/specialise.h"
#include "runtime/targets.h"
#include "tests/unit/runtime_case.h"

#include "kiln.h"

#define CONSTANTS                                                                                  \
    "constants {\n  @zero = [0] : f32[]\n  @first = [0] : i64[1]\n  @half = [0.5] : f32[]\n}\n"

#define BRANCHES                                                                                   \
    "  %zero = const @zero : f32[]\n"                                                              \
    "  %first = const @first : i64[1]\n"                                                           \
    "  %s = reduce_sum(%x) {keepdims=false} : f32[]\n"                                             \
    "  %c = greater(%s, %zero) : bool[]\n"                                                         \
    "  %y = if(%c) then {\n"                                                                       \
    "    %t = neg(%x) : f32[1,20]\n"                                                               \
    "    return %t\n"                                                                              \
    "  } else {\n"                                                                                 \
    "    %e = squeeze(%x, %first) : f32[20]\n"                                                     \
    "    return %e\n"                                                                              \
    "  } : f32[*]\n"

/* %v reads %z and %w. So %w moves, which has one rank, and %u stays. */
static const char readers[] = "graph @f(%x: f32[1,20]) {\n" BRANCHES "  %z = abs(%y) : f32[*]\n"
                              "  %m = reduce_max(%z) {keepdims=false} : f32[]\n"
                              "  %u = exp(%m) : f32[]\n"
                              "  %w = sqrt(%m) : f32[]\n"
                              "  %v = mul(%z, %w) : f32[*]\n"
                              "  %r = reduce_sum(%v) {keepdims=false} : f32[]\n"
                              "  return %u, %r\n}\n" CONSTANTS;

/* An output of either rank. */
static const char output[] = "graph @f(%x: f32[1,20]) {\n" BRANCHES "  return %y\n}\n" CONSTANTS;

/* Each iteration adds a dim in front. */
static const char grows[] = "graph @f(%n: i64[], %x: f32[2]) {\n"
                            "  %first = const @first : i64[1]\n"
                            "  %half = const @half : f32[]\n"
                            "  %y = loop(%n, _, %x) body(%i: i64[], %c: bool[], %a: f32[*]) {\n"
                            "    %b = unsqueeze(%a, %first) : f32[*]\n"
                            "    %d = mul(%b, %half) : f32[*]\n"
                            "    return %c, %d\n"
                            "  } : f32[*]\n"
                            "  return %y\n}\n" CONSTANTS;

/* The first dim may be 0. */
static const char empties[] =
    "graph @f(%n: i64[], %x: f32[0,3], %z: f32[5]) {\n"
    "  %y, %w = loop(%n, _, %x, %z) body(%i: i64[], %c: bool[], %a: f32[*], %b: f32[*]) {\n"
    "    return %c, %b, %a\n"
    "  } : f32[*], f32[*]\n"
    "  return %y, %w\n}\n";

static char *
specialised(const char *text)
{
    GError *error = NULL;
    g_autoptr(KilnModel) model = model_of(text);
    g_autoptr(KilnModule) module =
        kiln_specialise(model->module, NULL, kiln_target_by_name("ref", NULL), &error);
    cr_assert(module, "%s", error ? error->message : "");
    g_autoptr(GString) out = g_string_new(NULL);
    kiln_function_print(kiln_module_entry(module), out);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

Test(flow_ranks, readers_move_into_branches)
{
    g_autofree char *text = specialised(readers);
    static const char expected[] = "graph @f(%x: f32[1,20]) {\n"
                                   "  %zero = const @zero : f32[]\n"
                                   "  %first = const @first : i64[1]\n"
                                   "  %s = reduce_sum(%x) {keepdims=false} : f32[]\n"
                                   "  %c = greater(%s, %zero) : bool[]\n"
                                   "  %m, %r = if(%c) then {\n"
                                   "    %t = neg(%x) : f32[1,20]\n"
                                   "    %z_1 = abs(%t) : f32[1,20]\n"
                                   "    %m_1 = reduce_max(%z_1) {keepdims=false} : f32[]\n"
                                   "    %w_1 = sqrt(%m_1) : f32[]\n"
                                   "    %v_1 = mul(%z_1, %w_1) : f32[1,20]\n"
                                   "    %r_1 = reduce_sum(%v_1) {keepdims=false} : f32[]\n"
                                   "    return %m_1, %r_1\n"
                                   "  } else {\n"
                                   "    %e = squeeze(%x, %first) : f32[20]\n"
                                   "    %z_1 = abs(%e) : f32[20]\n"
                                   "    %m_1 = reduce_max(%z_1) {keepdims=false} : f32[]\n"
                                   "    %w_1 = sqrt(%m_1) : f32[]\n"
                                   "    %v_1 = mul(%z_1, %w_1) : f32[20]\n"
                                   "    %r_1 = reduce_sum(%v_1) {keepdims=false} : f32[]\n"
                                   "    return %m_1, %r_1\n"
                                   "  } : f32[], f32[]\n"
                                   "  %u = exp(%m) : f32[]\n"
                                   "  return %u, %r\n"
                                   "}\n";
    cr_expect_str_eq(text, expected, "%s", text);
}

static void
expect_shape(KilnSession *session, unsigned i, int rank, const int64_t *dims)
{
    GError *error = NULL;
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    cr_assert(kiln_session_output(session, i, &info, &error), "%s", error ? error->message : "");
    cr_assert_eq(info.rank, rank, "expected rank %d, found %d", rank, info.rank);
    for (int d = 0; d < rank; d++)
        cr_expect_eq(info.dims[d], dims[d]);
}

Test(flow_ranks, outputs_have_the_rank_of_the_run)
{
    g_autoptr(KilnSession) session = session_of(output);
    float x[20] = { 1 };
    bind(session, 0, x, sizeof x);
    for (int i = 0; i < 4; i++) {
        const float first = x[0] = i % 2 ? -2 : 1;
        run(session);
        expect_shape(session, 0, i % 2 ? 1 : 2, i % 2 ? (int64_t[]){ 20 } : (int64_t[]){ 1, 20 });
        const float *y = kiln_session_output(session, 0, NULL, NULL);
        cr_expect_eq(y[0], i % 2 ? first : -first);
    }
    GError *error = NULL;
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    float *taken = kiln_session_take_output(session, 0, &info, &error);
    cr_assert(taken && info.rank == 1 && taken[0] == -2, "%s", error ? error->message : "");
    run(session);
    kiln_session_free_output(taken);
}

Test(flow_ranks, no_memory_is_bound_where_the_rank_is_not_known)
{
    g_autoptr(KilnSession) session = session_of(output);
    float x[20] = { 1 }, y[20];
    GError *error = NULL;
    bind(session, 0, x, sizeof x);
    must(kiln_session_bind_output(session, 0, y, sizeof y, &error), error);
    cr_expect_not(kiln_session_run(session, &error));
    expect_error(&error, KILN_ERROR_UNSUPPORTED, "output y: expected no memory of the caller");
    must(kiln_session_bind_output(session, 0, NULL, 0, &error), error);
    run(session);
    expect_shape(session, 0, 2, (int64_t[]){ 1, 20 });
}

Test(flow_ranks, loops_change_the_rank)
{
    g_autoptr(KilnSession) session = session_of(grows);
    const float x[] = { 32, 64 };
    const int64_t dims[] = { 1, 1, 1, 1, 1, 2 }, counts[] = { 5, 0, 2 };
    bind(session, 1, x, sizeof x);
    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++) {
        const int64_t n = counts[i];
        bind(session, 0, &n, sizeof n);
        run(session);
        expect_shape(session, 0, (int)n + 1, dims + 5 - n);
        const float *y = kiln_session_output(session, 0, NULL, NULL);
        cr_expect_eq(y[1], 64.0f / (float)(1 << n));
    }
    const int64_t many = 6;
    GError *error = NULL;
    bind(session, 0, &many, sizeof many);
    cr_expect_not(kiln_session_run(session, &error));
    expect_error(&error, KILN_ERROR_RUN, "expected a rank of 6 at most where it changes, found 7");
}

Test(flow_ranks, empty_tensors_keep_their_dims)
{
    g_autoptr(KilnSession) session = session_of(empties);
    const float x[1] = { 0 }, z[5] = { 1, 2, 3, 4, 5 };
    bind(session, 1, x, 0);
    bind(session, 2, z, sizeof z);
    for (int64_t n = 0; n < 4; n++) {
        bind(session, 0, &n, sizeof n);
        run(session);
        expect_shape(session, n % 2 ? 1 : 0, 2, (int64_t[]){ 0, 3 });
        expect_shape(session, n % 2 ? 0 : 1, 1, (int64_t[]){ 5 });
    }
}

Test(flow_ranks, what_a_scan_carries_keeps_its_rank)
{
    static const char text[] =
        "graph @f(%x: f32[1], %rows: f32[3,2]) {\n"
        "  %axes = const @axes : i64[1]\n"
        "  %y = scan(%x, %rows) {num_scan_inputs=1} body(%a: f32[*], %r: f32[2]) {\n"
        "    %b = unsqueeze(%a, %axes) : f32[*]\n"
        "    return %b\n"
        "  } : f32[*]\n"
        "  return %y\n}\nconstants { @axes = [0] : i64[1] }\n";
    g_autoptr(KilnModel) model = model_of(text);
    GError *error = NULL;
    g_autoptr(KilnProgram) program = kiln_program_compile(model, NULL, &error);
    cr_expect_not(program);
    expect_error(&error, KILN_ERROR_UNSUPPORTED, "expected one rank in all iterations");
}

/* Only the body of a loop finds a dim. A small input decides a rank, so that each of its numbers
 * has a program. That of 0 has no loop. */
Test(flow_ranks, dims_of_bodies_make_a_program_open)
{
    static const char text[] =
        "graph @f(%n: i64[], %x: f32[1,2]) {\n"
        "  %first = const @first : i64[1]\n"
        "  %four = const @four : i64[]\n"
        "  %none = optional_none() : optional(f32[1,2])\n"
        "  %l = loop(%n, _, %none) body(%i: i64[], %c: bool[], %a: optional(f32[?,?])) {\n"
        "    %t = loop(%n, _, %x) body(%j: i64[], %d: bool[], %v: f32[?,2]) {\n"
        "      %w = concat(%v, %x) : f32[?,2]\n"
        "      return %d, %w\n"
        "    } : f32[?,2]\n"
        "    %p = optional(%t) : optional(f32[?,2])\n"
        "    return %c, %p\n"
        "  } : optional(f32[?,?])\n"
        "  %less = less(%n, %four) : bool[]\n"
        "  %y = if(%less) then {\n"
        "    return %x\n"
        "  } else {\n"
        "    %s = squeeze(%x, %first) : f32[2]\n"
        "    return %s\n"
        "  } : f32[*]\n"
        "  %h = optional_has_element(%l) : bool[]\n"
        "  return %y, %h\n}\n"
        "constants {\n  @first = [0] : i64[1]\n  @four = [4] : i64[]\n}\n";
    g_autoptr(KilnSession) session = session_of(text);
    bind(session, 1, FLOATS(1, 2), 2 * sizeof(float));
    for (int64_t n = 0; n < 6; n++) {
        bind(session, 0, &n, sizeof n);
        run(session);
        expect_shape(session, 0, n < 4 ? 2 : 1, n < 4 ? (int64_t[]){ 1, 2 } : (int64_t[]){ 2 });
        cr_expect_eq(*(const bool *)kiln_session_output(session, 1, NULL, NULL), n > 0);
    }
}
