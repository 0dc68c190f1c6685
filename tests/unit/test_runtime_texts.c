/* SPDX-License-Identifier: Apache-2.0 */
/* Strings through kiln.h: elements are addresses of texts, bound and read without a copy. */
#include "kiln.h"
#include "tests/unit/runtime_case.h"

#include <string.h>

static const char joins[] = "graph @f(%a: string[2], %b: string[2]) {\n"
                            "  %j = string_concat(%a, %b) : string[2]\n"
                            "  %e = equal(%a, %b) : bool[2]\n"
                            "  %w = const @w : string[2]\n"
                            "  %g = string_concat(%w, %j) : string[2]\n"
                            "  %c = string_concat(%w, %w) : string[2]\n"
                            "  return %j, %e, %g, %c\n"
                            "}\n"
                            "constants {\n"
                            "  @w = [\"<\", \">\"] : string[2]\n"
                            "}\n";

static const KilnText x = { "x", 1 }, y = { "y", 1 }, bad = { "\xFF", 1 };

static void
expect_texts(KilnSession *session, unsigned output, size_t n, const char *const *expected)
{
    GError *error = NULL;
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    const KilnText *const *found = kiln_session_output(session, output, &info, &error);
    cr_assert(found, "%s", error ? error->message : "");
    cr_assert_eq(info.dtype, KILN_DTYPE_string);
    cr_assert_eq((size_t)info.bytes, n * sizeof *found);
    for (size_t i = 0; i < n; i++) {
        const KilnText text = found[i] ? *found[i] : (KilnText){ "", 0 };
        cr_expect(text.length == strlen(expected[i]) &&
                      memcmp(text.text, expected[i], text.length) == 0,
                  "output %u, element %zu: expected '%s', found '%.*s'", output, i, expected[i],
                  (int)text.length, text.text);
    }
}
#define WORDS(...) ((const char *const[]){ __VA_ARGS__ })

static void
expect_joined(const char *pipeline, const char *target, gboolean poison)
{
    GError *error = NULL;
    g_autoptr(KilnPipeline) passes = kiln_pipeline_load(pipeline, NULL);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = passes;
    options.target = target;
    g_autoptr(KilnProgram) program = program_of(joins, &options);
    KilnSessionOptions of_session = KILN_SESSION_OPTIONS_INIT;
    of_session.poison = poison;
    g_autoptr(KilnSession) session = kiln_session_new(program, &of_session, &error);
    cr_assert(session, "%s", error ? error->message : "");
    const KilnText *a[2] = { &x, NULL }, *b[2] = { &y, NULL };
    bind(session, 0, a, sizeof a);
    bind(session, 1, b, sizeof b);
    for (int i = 0; i < 3; i++) {
        run(session);
        expect_texts(session, 0, 2, WORDS("xy", ""));
        expect_texts(session, 2, 2, WORDS("<xy", ">"));
        expect_texts(session, 3, 2, WORDS("<<", ">>"));
        const uint8_t *equal = kiln_session_output(session, 1, NULL, &error);
        cr_expect(!equal[0] && equal[1]);
    }
    b[0] = &x; /* is read at each run */
    run(session);
    expect_texts(session, 0, 2, WORDS("xx", ""));
}

Test(runtime_texts, of_the_caller)
{
    expect_joined("default", NULL, FALSE);
    expect_joined("default", NULL, TRUE);
    expect_joined("none", NULL, TRUE);
    expect_joined("default", "ref", TRUE);
}

Test(runtime_texts, that_are_not_utf8)
{
    g_autoptr(KilnSession) session = session_of(joins);
    const KilnText *a[2] = { &x, &bad }, *b[2] = { &y, &y };
    bind(session, 0, a, sizeof a);
    bind(session, 1, b, sizeof b);
    run_fails(session, KILN_ERROR_FORMAT,
              "input a: expected UTF-8, found other bytes in element 1");
    a[1] = &y;
    run(session);
}

Test(runtime_texts, beyond_a_limit)
{
    GError *error = NULL;
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.memory_limit = 1 << 16;
    g_autoptr(KilnProgram) program = program_of(joins, &options);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    g_autofree char *many = g_strnfill(50000, 'a');
    const KilnText big = { many, 50000 };
    const KilnText *a[2] = { &big, &x }, *b[2] = { &y, &y };
    bind(session, 0, a, sizeof a);
    bind(session, 1, b, sizeof b);
    run_fails(session, KILN_ERROR_LIMIT, "string_concat");
    a[0] = &x;
    run(session);
    expect_texts(session, 0, 2, WORDS("xy", "xy"));
}

Test(runtime_texts, are_not_carried)
{
    g_autoptr(KilnSession) session = session_of(joins);
    GError *error = NULL;
    cr_expect(!kiln_session_carry(session, 0, 0, &error));
    expect_error(&error, KILN_ERROR_UNSUPPORTED, "input a: strings are not carried");
}

static void
expect_constant(KilnConstantWhen when)
{
    GError *error = NULL;
    char bytes[] = "x";
    const KilnText text = { bytes, 1 };
    const KilnText *a[2] = { &text, &y }, *b[2] = { &y, &y };
    g_autoptr(GBytes) value = when == KILN_CONSTANT_COMPILE ? g_bytes_new(a, sizeof a) : NULL;
    const KilnConstantInput constant = { .input = "a", .when = when, .value = value };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.constants = &constant;
    options.n_constants = 1;
    g_autoptr(KilnProgram) program = program_of(joins, &options);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    if (when == KILN_CONSTANT_RUN)
        bind(session, 0, a, sizeof a);
    else
        bytes[0] = '?'; /* the program has a copy */
    bind(session, 1, b, sizeof b);
    run(session);
    expect_texts(session, 0, 2, WORDS("xy", "yy"));
}

Test(runtime_texts, of_constant_inputs)
{
    expect_constant(KILN_CONSTANT_COMPILE);
    expect_constant(KILN_CONSTANT_RUN);
}

/* Data decides how many parts and words there are. */
static const char parts[] = "graph @f(%a: string[N]) {\n"
                            "  %p, %n = string_split(%a) {delimiter=\" \"} : string[N,?], i64[N]\n"
                            "  %s = string_normalizer(%a) {stopwords=[\"the\"]} : string[?]\n"
                            "  %t = transpose(%p) {perm=[1,0]} : string[?,N]\n"
                            "  return %t, %n, %s\n"
                            "}\n";

Test(runtime_texts, whose_number_data_decides)
{
    static const KilnText three = { "a b c", 5 }, the = { "the", 3 };
    g_autoptr(KilnSession) session = session_of(parts);
    const KilnText *a[2] = { &three, &the }, *b[3] = { &x, &x, &the };
    for (int i = 0; i < 2; i++) {
        bind_shaped(session, 0, a, DIMS(2));
        run(session);
        expect_texts(session, 0, 6, WORDS("a", "the", "b", "", "c", ""));
        expect_texts(session, 2, 1, WORDS("a b c"));
        bind_shaped(session, 0, b, DIMS(3));
        run(session);
        expect_texts(session, 0, 3, WORDS("x", "x", "the"));
        expect_texts(session, 2, 2, WORDS("x", "x"));
        bind_shaped(session, 0, b + 2, DIMS(1));
        run(session);
        expect_texts(session, 2, 1, WORDS(""));
    }
}

/* An empty string stands for none, whether there are stopwords or not. */
Test(runtime_texts, of_which_there_are_none)
{
    static const char *const models[] = {
        "graph @f(%a: string[N]) {\n"
        "  %s = string_normalizer(%a) {stopwords=[\"the\"]} : string[?]\n"
        "  %t = string_normalizer(%a) : string[max(N,1)]\n"
        "  return %s, %t\n}\ndims {\n  N: least=0\n}\n",
        "graph @f(%a: string[N]) {\n"
        "  %s = string_normalizer(%a) {stopwords=[\"the\"]} : string[?]\n"
        "  %t = string_normalizer(%a) {case_change_action=\"LOWER\"} : string[?]\n"
        "  return %s, %t\n}\n",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autoptr(KilnSession) session = session_of(models[i]);
        const KilnText *a[2] = { &x, &x };
        for (int k = 0; k < 2; k++) {
            bind_shaped(session, 0, a, DIMS(2));
            run(session);
            expect_texts(session, 0, 2, WORDS("x", "x"));
            expect_texts(session, 1, 2, WORDS("x", "x"));
            bind_shaped(session, 0, a, DIMS(0));
            run(session);
            expect_texts(session, 0, 1, WORDS(""));
            expect_texts(session, 1, 1, WORDS(""));
        }
    }
}
