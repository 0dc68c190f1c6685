/* SPDX-License-Identifier: Apache-2.0 */
/* Every code of KilnError as a caller meets it: g_error_matches() tells it, and the message is one
 * line in UTF-8. Uses nothing but what is installed. */
#include <kiln.h>
#include <passes/kiln-pass.h>
#include <stdio.h>
#include <string.h>

#define GRAPH(body) "graph @f(%x: f32[2,3]) {\n" body "  return %y\n}\n"

/* --- the ways to fail: each sets the error --- */

static KilnModel *
load(const char *text, const char *name, GError **error)
{
    g_autoptr(GBytes) bytes = g_bytes_new_static(text, strlen(text));
    return kiln_model_load_bytes(bytes, name, error);
}

static void
compile(const char *text, const KilnCompileOptions *options, GError **error)
{
    g_autoptr(KilnModel) model = load(text, "text.kiln", error);
    g_autoptr(KilnProgram) program = model ? kiln_program_compile(model, options, error) : NULL;
    if (program && !*error)
        fprintf(stderr, "%s: compiled without an error\n", text);
}

static void
fail_IO(GError **error)
{
    kiln_model_unref(kiln_model_load("/no such folder/model.onnx", error));
}

static void
fail_FORMAT(GError **error)
{
    kiln_model_unref(load("hello, world\n", "model.onnx", error));
}

static void
fail_PARSE(GError **error)
{
    kiln_model_unref(load("graph @f(", "text.kiln", error));
}

static void
fail_INVALID(GError **error)
{
    compile(GRAPH("  %y = relu(%x, %x) : f32[2,3]\n"), NULL, error);
}

static void
fail_TYPE(GError **error)
{
    compile(GRAPH("  %y = and(%x, %x) : f32[2,3]\n"), NULL, error);
}

static void
fail_SHAPE(GError **error)
{
    compile(GRAPH("  %y = matmul(%x, %x) : f32[2,3]\n"), NULL, error);
}

static void
fail_UNSUPPORTED(GError **error)
{
    compile(GRAPH("  %y = unknown(%x) {op_type=\"Frobnicate\", opset=1} : f32[2,3]\n"), NULL,
            error);
}

static void
fail_USAGE(GError **error)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = -1;
    compile(GRAPH("  %y = relu(%x) : f32[2,3]\n"), &options, error);
}

static void
fail_PIPELINE(GError **error)
{
    kiln_pipeline_unref(kiln_pipeline_parse("no-such-pass", error));
}

static gboolean
refuse(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)function, (void)context, (void)changed;
    return kiln_throw(error, KILN_ERROR_PASS, "it refuses");
}

static void
fail_PASS(GError **error)
{
    static const KilnPassInfo passes[] = {
        { .id = "refuse", .level = KILN_LEVEL_GRAPH, .summary = "refuses", .run_graph = refuse },
    };
    static const KilnPassPlugin table = { KILN_PASS_API_VERSION, sizeof(KilnPassInfo), passes, 1 };
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_new();
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = pipeline;
    if (kiln_pipeline_register_passes(pipeline, &table, error) &&
        kiln_pipeline_add(pipeline, "refuse", error))
        compile(GRAPH("  %y = relu(%x) : f32[2,3]\n"), &options, error);
}

static void
fail_LIMIT(GError **error)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.memory_limit = 1;
    g_autoptr(KilnPipeline) none = kiln_pipeline_load("none", error);
    options.pipeline = none;
    compile(GRAPH("  %e = exp(%x) : f32[2,3]\n  %y = softmax(%e) : f32[2,3]\n"), &options, error);
}

static void
fail_MEMORY(GError **error)
{
    /* 4 EB, which no machine has. */
    g_autoptr(KilnModel) model = load("graph @f(%x: f32[1048576,1048576,1048576]) {\n"
                                      "  %e = exp(%x) : f32[1048576,1048576,1048576]\n"
                                      "  %y = softmax(%e) : f32[1048576,1048576,1048576]\n"
                                      "  return %y\n"
                                      "}\n",
                                      "text.kiln", error);
    g_autoptr(KilnProgram) program = model ? kiln_program_compile(model, NULL, error) : NULL;
    kiln_session_free(program ? kiln_session_new(program, NULL, error) : NULL);
}

/* Comparing is the work of commands: the library declares the code for them. */
static void
fail_MISMATCH(GError **error)
{
    kiln_throw(error, KILN_ERROR_MISMATCH, "expected 1, found 2");
}

static void
fail_RUN(GError **error)
{
    static const float x[] = { 1, 2 };
    static const int64_t i[] = { 7 };
    g_autoptr(KilnModel) model = load("graph @f(%x: f32[2], %i: i64[1]) {\n"
                                      "  %y = gather(%x, %i) : f32[1]\n"
                                      "  return %y\n"
                                      "}\n",
                                      "text.kiln", error);
    g_autoptr(KilnProgram) program = model ? kiln_program_compile(model, NULL, error) : NULL;
    g_autoptr(KilnSession) session = program ? kiln_session_new(program, NULL, error) : NULL;
    if (session && kiln_session_bind_input(session, 0, x, sizeof x, error) &&
        kiln_session_bind_input(session, 1, i, sizeof i, error))
        kiln_session_run(session, error);
}

static void
fail_CANCELLED(GError **error)
{
    static const volatile int cancel = 1;
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.cancel = &cancel;
    compile(GRAPH("  %y = relu(%x) : f32[2,3]\n"), &options, error);
}

/* --- each of them --- */

static bool
is_one_line(const char *message)
{
    for (const char *at = message; *at; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return false;
    }
    return *message && g_utf8_validate(message, -1, NULL);
}

static int
check(const char *name, KilnError code, void (*fail)(GError **error))
{
    g_autoptr(GError) error = NULL;
    fail(&error);
    if (error && g_error_matches(error, KILN_ERROR, (int)code) && is_one_line(error->message))
        return 0;
    fprintf(stderr, "KILN_ERROR_%s: expected one line of this code, found code %d: %s\n", name,
            error ? error->code : -1, error ? error->message : "no error");
    return 1;
}

int
main(void)
{
    int bad = 0;
#define X(id, sentence) bad += check(#id, KILN_ERROR_##id, fail_##id);
    KILN_ERROR_MAP(X)
#undef X
    if (strcmp(g_quark_to_string(KILN_ERROR), "kiln-error-quark") != 0) {
        fprintf(stderr, "expected the domain kiln-error-quark, found %s\n",
                g_quark_to_string(KILN_ERROR));
        bad++;
    }
    return bad != 0;
}
