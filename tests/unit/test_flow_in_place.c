/* SPDX-License-Identifier: Apache-2.0 */
/* Carried values that a body changes in place, and profiles of bodies. */
#include "kiln.h"

#include "ir/flow.h"
#include "ir/ir.h"
#include "runtime/flow/frame.h"
#include "runtime/kiln-profile.h"
#include "tests/unit/runtime_case.h"

#include <string.h>

/* --- which ones --- */

/* The body of a loop with one carried value. */
static bool
is_in_place(const char *body)
{
    g_autofree char *text = g_strdup_printf("func @body {\n"
                                            "  input @i : i64[]\n  input @c : bool[]\n"
                                            "  input @a : f32[4]\n  input @w : f32[4]\n"
                                            "  output @b : f32[4]\n%s}\n"
                                            "func @g {\n"
                                            "  input @n : i64[]\n  input @x : f32[4]\n"
                                            "  input @w : f32[4]\n  output @y : f32[4]\n"
                                            "  loop @out @y, @in @n, @in @x, @in @w "
                                            "{body=\"body\", limited=true, carried=1}\n}\n",
                                            body);
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "t.kiln", &error);
    cr_assert(ir, "%s", error ? error->message : "");
    const KilnIRFunction *function = kiln_ir_module_find_function(ir, "g");
    KilnCarriedValue carried = { 0 };
    KilnFlowFrame frame = { .instr = function->first, .carried = &carried };
    frame.at = kiln_flow_operands(frame.instr);
    kiln_flow_find_in_place(&frame, kiln_ir_module_find_function(ir, "body"));
    return carried.in_place;
}

Test(flow_in_place, what_is_written_last_to_what_it_reads)
{
    cr_expect(is_in_place("  add @out @b, @in @a, @in @w\n"));
    cr_expect(is_in_place("  add @out @b, @in @w, @in @a\n"));
    cr_expect(is_in_place("  %t = alloc : f32[4]\n  neg @out %t, @in @a\n"
                          "  add @out @b, @in @a, @in %t\n  dealloc %t\n"));
}

Test(flow_in_place, must_not)
{
    /* it is not read, or twice */
    cr_expect_not(is_in_place("  neg @out @b, @in @w\n"));
    cr_expect_not(is_in_place("  add @out @b, @in @a, @in @a\n"));
    /* it is read later */
    cr_expect_not(is_in_place("  %t = alloc : f32[4]\n  neg @out @b, @in @a\n"
                              "  neg @out %t, @in @a\n  dealloc %t\n"));
    /* a part of it is read */
    cr_expect_not(is_in_place("  %v = view @a {offset=0} : f32[4]\n  %t = alloc : f32[4]\n"
                              "  add @out %t, @in @a, @in %v\n  neg @out @b, @in %t\n"
                              "  dealloc %t\n"));
    /* several instructions write the result */
    cr_expect_not(
        is_in_place("  %v = view @b {offset=0} : f32[2]\n  %r = view @a {offset=0} : f32[2]\n"
                    "  %u = view @b {offset=2} : f32[2]\n"
                    "  neg @out %v, @in %r\n  neg @out %u, @in %r\n"));
    /* the instruction may not share bytes */
    cr_expect_not(is_in_place("  transpose @out @b, @in @a {perm=[0]}\n"));
}

/* --- results --- */

static const char cache[] =
    "graph @f(%x: f32[4,2], %row: f32[1,2], %n: i64[]) {\n"
    "  %y = loop(%n, _, %x) body(%i: i64[], %c: bool[], %k: f32[4,2]) {\n"
    "    %s = const @s : i64[2]\n    %z = const @z : i64[1]\n    %o = const @o : i64[1]\n"
    "    %at = reshape(%i, %s) : i64[1,1]\n"
    "    %first = slice(%k, %z, %o) : f32[1,2]\n"
    "    %u = add(%first, %row) : f32[1,2]\n"
    "    %t = scatter_nd(%k, %at, %u) : f32[4,2]\n"
    "    return %c, %t\n"
    "  } : f32[4,2]\n"
    "  return %y\n}\n"
    "constants {\n  @s = [1, 1] : i64[2]\n  @z = [0] : i64[1]\n  @o = [1] : i64[1]\n}\n";

Test(flow_in_place, rows_of_a_cache)
{
    g_autoptr(KilnSession) session = session_of(cache);
    const float x[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, row[] = { 10, 20 };
    bind(session, 0, x, sizeof x);
    bind(session, 1, row, sizeof row);
    for (int round = 0; round < 2; round++) {
        for (int64_t n = 0; n <= 4; n++) {
            float want[8];
            memcpy(want, x, sizeof x);
            for (int64_t i = 0; i < n; i++) {
                for (int d = 0; d < 2; d++)
                    want[2 * i + d] = want[d] + row[d];
            }
            bind(session, 2, &n, sizeof n);
            run(session);
            expect_floats(session, 0, want, DIMS(4, 2));
        }
    }
    cr_expect_eq(x[0], 1); /* what the caller bound is as it was */
}

/* A sum that is changed in place, beside a value that is read behind it. */
Test(flow_in_place, beside_others)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[3], %n: i64[]) {\n"
                   "  %s, %d, %all = loop(%n, _, %x, %x) body(%i: i64[], %c: bool[], %a: f32[3], "
                   "%b: f32[3]) {\n"
                   "    %t = add(%a, %b) : f32[3]\n"
                   "    %u = add(%b, %t) : f32[3]\n"
                   "    %v = neg(%b) : f32[3]\n"
                   "    return %c, %t, %u, %v\n"
                   "  } : f32[3], f32[3], f32[?,3]\n"
                   "  return %s, %d\n}\n");
    const float x[] = { 1, 2, 3 };
    bind(session, 0, x, sizeof x);
    for (int64_t n = 0; n < 6; n++) {
        float a[3], b[3];
        memcpy(a, x, sizeof x);
        memcpy(b, x, sizeof x);
        for (int64_t i = 0; i < n; i++) {
            for (int k = 0; k < 3; k++) {
                a[k] += b[k];
                b[k] += a[k];
            }
        }
        bind(session, 1, &n, sizeof n);
        run(session);
        expect_floats(session, 0, a, DIMS(3));
        expect_floats(session, 1, b, DIMS(3));
    }
}

/* --- profiles --- */

Test(flow_in_place, profiles_have_bodies)
{
    GError *error = NULL;
    g_autoptr(KilnProgram) program = program_of(cache, NULL);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.profile = TRUE;
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, &error);
    cr_assert(session, "%s", error ? error->message : "");
    const float x[8] = { 0 }, row[] = { 1, 2 };
    const int64_t n = 4;
    bind(session, 0, x, sizeof x);
    bind(session, 1, row, sizeof row);
    bind(session, 2, &n, sizeof n);
    run(session);
    run(session);
    unsigned count, scatters = 0;
    const KilnProfileEntry *const *entries = kiln_session_profile(session, &count);
    cr_assert_gt(count, 1);
    cr_expect_str_eq(entries[0]->instruction, "loop");
    cr_expect_eq(entries[0]->calls, 2);
    for (unsigned i = 0; i < count; i++) {
        cr_expect_eq(entries[i]->runs, 2);
        cr_expect_geq(entries[i]->ms, 0);
        if (strcmp(entries[i]->instruction, "scatter_nd") != 0)
            continue;
        scatters++;
        cr_expect_eq(entries[i]->calls, 8);
    }
    cr_expect_eq(scatters, 1);
}
