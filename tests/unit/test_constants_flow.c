/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and shapes that hang on constants which are folded: the forms that constant-fold makes
 * of a text give what the text gives. */
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/manager.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/model.h"
#include "tests/unit/runtime_case.h"

#include "graph/text/text.h"
#include "kiln.h"
#include "tests/fold_case.h"

#include <string.h>

enum {
    N = 6,
};

static const char branches[] =
    "graph @f(%x: f32[2,3], %a: f32[2,3] constant=compile, %w: f32[2,3] constant=run) {\n"
    "  %zero = const @zero : f32[]\n"
    "  %s = reduce_sum(%a) {keepdims=false} : f32[]\n"
    "  %c = greater(%s, %zero) : bool[]\n"
    "  %v = exp(%w) : f32[2,3]\n"
    "  %y = if(%c) then {\n"
    "    %z = reduce_max(%w) {keepdims=false} : f32[]\n"
    "    %d = greater(%z, %zero) : bool[]\n"
    "    %n = if(%d) then {\n"
    "      %o = mul(%v, %a) : f32[2,3]\n"
    "      return %o\n"
    "    } else {\n"
    "      return %a\n"
    "    } : f32[2,3]\n"
    "    return %n\n"
    "  } else {\n"
    "    %k = neg(%v) : f32[2,3]\n"
    "    return %k\n"
    "  } : f32[2,3]\n"
    "  %r = add(%x, %y) : f32[2,3]\n"
    "  return %r\n"
    "}\n"
    "constants { @zero = [0] : f32[] }\n";

/* What `kiln opt` prints of @text behind constant-fold. */
static char *
folded(const char *text, const char *functions)
{
    GError *error = NULL;
    g_autofree char *list = g_strdup_printf("constant-fold{functions=%s},dce", functions);
    g_autoptr(KilnModel) model = model_of(text);
    g_autoptr(KilnModule) module = kiln_module_clone(model->module);
    g_autoptr(KilnPassPipeline) passes = kiln_pass_pipeline_parse_inline(list, &error);
    cr_assert(passes, "%s", error ? error->message : "");
    const KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    must(kiln_pipeline_run_graph(passes, module, &options, report, &error), error);
    g_autoptr(GString) out = g_string_new(NULL);
    must(kiln_module_print(module, NULL, out, &error), error);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

/* How %a and %w of the branches are given. */
typedef struct {
    const char *text;
    bool given; /* %a to compile */
    float a[N], w[N];
} Case;

static KilnSession *
open_session(const Case *c)
{
    GError *error = NULL;
    g_autoptr(GBytes) value = g_bytes_new(c->a, sizeof c->a);
    const KilnConstantInput constant = { "a", KILN_CONSTANT_COMPILE, value };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.constants = &constant;
    options.n_constants = c->given;
    g_autoptr(KilnProgram) program = program_of(c->text, &options);
    KilnSession *session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    return session;
}

static void
run_case(const Case *c, KilnSession *session, float out[N])
{
    static const float x[N] = { 0.5f, -1, 2, 0, 3, -4 };
    GError *error = NULL;
    must(kiln_session_bind_input(session, 0, x, sizeof x, &error), error);
    if (!c->given)
        must(kiln_session_bind_input(session, 1, c->a, sizeof c->a, &error), error);
    must(kiln_session_bind_input(session, 2, c->w, sizeof c->w, &error), error);
    must(kiln_session_run(session, &error), error);
    memcpy(out, kiln_session_output(session, 0, NULL, NULL), N * sizeof *out);
}

/* Signs decide which branches are taken: a new session each time, and one that meets all. */
static void
expect_same(const char *plain, const char *text, bool given)
{
    Case c = { .text = text, .given = given };
    g_autoptr(KilnSession) one = given ? NULL : open_session(&c);
    for (int signs = 0; signs < 4; signs++) {
        float want[N], got[N];
        mlp_fill(c.a, N, 5);
        mlp_fill(c.w, N, 6);
        c.a[0] = signs & 1 ? 9 : -9;
        for (int i = 0; i < N; i++)
            c.w[i] = (signs & 2 ? 1.f : -1.f) * (1 + c.w[i] / 2);
        const Case unfolded = { .text = plain };
        Case reference = c;
        reference.text = unfolded.text;
        reference.given = false;
        g_autoptr(KilnSession) of_reference = open_session(&reference);
        run_case(&reference, of_reference, want);
        g_autoptr(KilnSession) fresh = open_session(&c);
        run_case(&c, fresh, got);
        cr_expect_arr_eq(got, want, sizeof want, "signs %d, given %d", signs, given);
        if (one) {
            run_case(&c, one, got);
            cr_expect_arr_eq(got, want, sizeof want, "signs %d, one session", signs);
        }
    }
}

Test(constants_flow, CTF_10_branches_that_were_folded_give_the_same)
{
    g_autofree char *two = folded(branches, "two"), *three = folded(branches, "three");
    cr_assert(strstr(two, "graph @runtime_fold") && !strstr(strstr(two, "graph @f"), "if("));
    cr_assert(strstr(three, "graph @compiletime_fold"));
    for (int given = 0; given < 2; given++) {
        expect_same(branches, branches, given);
        expect_same(branches, two, given);
        expect_same(branches, three, given);
    }
}

/* What a fold function gives may decide a shape, or how another function goes on. */
Test(constants_flow, CTF_41_a_folded_tensor_decides_a_shape)
{
    static const char text[] = "graph @f(%x: f32[2,3], %s: i64[2] constant=run) {\n"
                               "  %t = abs(%s) : i64[2]\n"
                               "  %y = reshape(%x, %t) : f32[?,?]\n"
                               "  return %y\n"
                               "}\n";
    static const char *const functions[] = { "two", "three" };
    static const int64_t shapes[3][2] = { { 3, -2 }, { -6, 1 }, { 2, 3 } };
    static const float x[N] = { 1, 2, 3, 4, 5, 6 };
    GError *error = NULL;
    for (int f = 0; f < 2; f++) {
        g_autofree char *two = folded(text, functions[f]);
        cr_assert(strstr(two, "@runtime_fold"));
        g_autoptr(KilnProgram) program = program_of(two, NULL);
        g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
        for (int s = 0; s < 3; s++) {
            KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
            must(kiln_session_bind_input(session, 0, x, sizeof x, &error), error);
            must(kiln_session_bind_input(session, 1, shapes[s], sizeof shapes[s], &error), error);
            must(kiln_session_run(session, &error), error);
            const float *y = kiln_session_output(session, 0, &info, &error);
            cr_assert(y);
            cr_expect_eq(info.dims[0], ABS(shapes[s][0]));
            cr_expect_eq(info.dims[1], ABS(shapes[s][1]));
            cr_expect_arr_eq(y, x, sizeof x);
        }
    }
}

/* Where data decides a dim, constants of the first run are taken as other inputs are. Values that
 * are known become literals. */
Test(constants_flow, data_decides_dims_beside_constants)
{
    static const char *const texts[] = {
        "graph @f(%x: f32[4], %w: f32[4]) {\n  %m = relu(%w) : f32[4]\n"
        "  %p = mul(%x, %m) : f32[4]\n  %n = non_zero(%p) : i64[1,?]\n"
        "  %t = transpose(%n) : i64[?,1]\n  %v = gather_nd(%w, %t) : f32[?]\n  return %v\n}\n",
        "graph @f(%x: f32[4] constant=run, %w: f32[4] constant=run) {\n  %m = relu(%w) : f32[4]\n"
        "  %n = non_zero(%m) : i64[1,?]\n  %t = transpose(%n) : i64[?,1]\n"
        "  %v = gather_nd(%w, %t) : f32[?]\n  return %v\n}\n",
    };
    static const float x[] = { 1, 1, 1, 1 }, first[] = { -1, 3, 0, 5 }, then[] = { 2, 4, 6, -7 };
    g_autoptr(GBytes) value = g_bytes_new_static(first, sizeof first);
    const KilnConstantInput constants[] = { { "w", KILN_CONSTANT_RUN, NULL },
                                            { "w", KILN_CONSTANT_COMPILE, NULL },
                                            { "w", KILN_CONSTANT_COMPILE, value } };
    for (size_t i = 0; i < G_N_ELEMENTS(texts) * G_N_ELEMENTS(constants); i++) {
        const KilnConstantInput *constant = &constants[i / G_N_ELEMENTS(texts)];
        KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
        options.constants = constant;
        options.n_constants = 1;
        g_autoptr(KilnProgram) program = program_of(texts[i % G_N_ELEMENTS(texts)], &options);
        g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
        bind(session, 0, x, sizeof x);
        if (!constant->value)
            bind(session, 1, first, sizeof first);
        run(session);
        expect_floats(session, 0, FLOATS(3, 5), DIMS(2));
        if (constant->value)
            continue;
        bind(session, 1, then, sizeof then);
        run(session);
        expect_floats(session, 0, FLOATS(2, 4, 6), DIMS(3));
    }
}
