/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that several branches and loops run, and functions that none may run. */
#include "tests/unit/runtime_case.h"

#include "kiln.h"

#include <string.h>

enum {
    DEPTH = 60 /* of a nest: whoever makes something for each way through it never ends */
};

/* Both branches of each function of the nest run the one below it. @dims: "" or a line of each
 * function. @last: what the last function does. */
static char *
nest_of(const char *dims, const char *type, const char *last)
{
    GString *text = g_string_new(NULL);
    for (int k = 0; k <= DEPTH; k++) {
        g_string_append_printf(text,
                               "func @f%d {\n%s  input @c : bool[]\n  input @x : %s\n"
                               "  output @y : %s\n",
                               k, dims, type, type);
        if (k)
            g_string_append_printf(text,
                                   "  branch @out @y, @in @c, @in @c, @in @x {then=\"f%d\", "
                                   "otherwise=\"f%d\"%s}\n}\n",
                                   k - 1, k - 1, *dims ? ", names=[\"N\"], numbers=[N]" : "");
        else
            g_string_append_printf(text, "  %s\n}\n", last);
    }
    return g_string_free(text, FALSE);
}

static void
bind_nest(KilnSession *session, uint8_t flag, const float *x, int64_t n)
{
    bind(session, 0, &flag, 1);
    bind_shaped(session, 1, x, DIMS(n));
}

Test(flow_functions, a_nest_of_shared_functions)
{
    static const char *const forms[][2] = { { "", "f32[2]" }, { "  dims N=5\n", "f32[N]" } };
    static const float x[] = { 1, -2 }, y[] = { -1, 2 };
    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++) {
        g_autofree char *text = nest_of(forms[i][0], forms[i][1], "neg @out @y, @in @x");
        g_autoptr(KilnSession) session = session_of(text);
        for (uint8_t flag = 0; flag < 4; flag++) {
            bind_nest(session, flag % 2, x, 2);
            run(session);
            expect_floats(session, 0, y, DIMS(2));
        }
    }
}

/* Whether one of them draws is found once for each function. */
Test(flow_functions, a_nest_that_draws)
{
    static const float x[2] = { 0 };
    g_autofree char *text = nest_of("", "f32[2]", "random_uniform @out @y {stream=7}");
    g_autoptr(KilnSession) session = session_of(text);
    float first[2];
    bind_nest(session, 1, x, 2);
    run(session);
    memcpy(first, kiln_session_output(session, 0, NULL, NULL), sizeof first);
    run(session);
    cr_expect(memcmp(first, kiln_session_output(session, 0, NULL, NULL), sizeof first) != 0);
}

/* --- what is refused --- */

static void
expect_refused(const char *called, const char *dims, const char *message)
{
    GError *error = NULL;
    g_autofree char *text = g_strdup_printf("func @a {\n%s}\n"
                                            "func @b {\n%s  input @c : bool[]\n"
                                            "  input @x : f32[4]\n  output @y : f32[4]\n"
                                            "  branch @out @y, @in @c, @in @x {then=\"a\", "
                                            "otherwise=\"a\"}\n}\n",
                                            called, dims);
    g_autoptr(GBytes) bytes = g_bytes_new(text, strlen(text));
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "case.kiln", &error);
    g_autoptr(KilnProgram) program = model ? kiln_program_compile(model, NULL, &error) : NULL;
    cr_assert_null(program);
    expect_error(&error, KILN_ERROR_INVALID, message);
}

Test(flow_functions, write_no_weights)
{
    expect_refused("  weight @s = _ : f32[4]\n  input @x : f32[4]\n  output @y : f32[4]\n"
                   "  add @out @s, @in @s, @in @x\n  neg @out @y, @in @s\n",
                   "",
                   "@b: y (branch): @a: expected a func that writes to no weight, because a branch "
                   "or loop runs it, found one that writes to s");
}

Test(flow_functions, have_dims_where_their_caller_has)
{
    expect_refused("  input @x : f32[4]\n  output @y : f32[4]\n  neg @out @y, @in @x\n",
                   "  dims N=5\n  input @n : f32[N]\n",
                   "@b: y (branch): @a: expected a func with dims, as @b has them, found one "
                   "without");
}
