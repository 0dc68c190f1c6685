/* SPDX-License-Identifier: Apache-2.0 */
/* Small models in text, compiled and run through kiln.h alone. */
#ifndef KILN_TESTS_UNIT_RUNTIME_CASE_H
#define KILN_TESTS_UNIT_RUNTIME_CASE_H

#include "kiln.h"

#include <criterion/criterion.h>
#include <string.h>

#define DIGITS KILN_SOURCE_DIR "/examples/digits/digits.onnx"

/** Expects an error of @code with @text in its message, and frees it. */
static inline void
expect_error(GError **error, KilnError code, const char *text)
{
    cr_assert(*error, "expected the error '%s', found none", text);
    cr_expect((*error)->domain == KILN_ERROR && (*error)->code == (int)code,
              "expected code %d, found %d: %s", (int)code, (*error)->code, (*error)->message);
    cr_expect(strstr((*error)->message, text), "expected '%s' in '%s'", text, (*error)->message);
    g_clear_error(error);
}

static inline KilnModel *
model_of(const char *text)
{
    GError *error = NULL;
    g_autoptr(GBytes) bytes = g_bytes_new(text, strlen(text));
    KilnModel *model = kiln_model_load_bytes(bytes, "case.kiln", &error);
    cr_assert(model, "%s", error ? error->message : "");
    return model;
}

static inline KilnProgram *
program_of(const char *text, const KilnCompileOptions *options)
{
    GError *error = NULL;
    g_autoptr(KilnModel) model = model_of(text);
    KilnProgram *program = kiln_program_compile(model, options, &error);
    cr_assert(program, "%s", error ? error->message : "");
    return program;
}

static inline KilnSession *
session_of(const char *text)
{
    GError *error = NULL;
    g_autoptr(KilnProgram) program = program_of(text, NULL);
    KilnSession *session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    return session;
}

/** Asserts that @call succeeds; it sets @error if not. */
#define must(call, error)                                                                          \
    do {                                                                                           \
        gboolean good_ = (call);                                                                   \
        cr_assert(good_, "%s", (error) ? (error)->message : "");                                   \
    } while (0)

static inline void
bind(KilnSession *session, unsigned i, const void *data, size_t bytes)
{
    GError *error = NULL;
    must(kiln_session_bind_input(session, i, data, bytes, &error), error);
}

#define DIMS(...)                                                                                  \
    sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), (int64_t[])                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
static inline void
bind_shaped(KilnSession *session, unsigned i, const void *data, size_t rank, const int64_t *dims)
{
    GError *error = NULL;
    must(kiln_session_bind_input_shaped(session, i, data, (int)rank, dims, &error), error);
}

static inline void
run(KilnSession *session)
{
    GError *error = NULL;
    must(kiln_session_run(session, &error), error);
}

static inline void
run_fails(KilnSession *session, KilnError code, const char *text)
{
    GError *error = NULL;
    cr_assert(!kiln_session_run(session, &error));
    expect_error(&error, code, text);
    cr_expect_null(kiln_session_output(session, 0, NULL, &error));
    expect_error(&error, KILN_ERROR_USAGE, "its last run failed");
}

/** Expects output @i to have @rank, @dims and the f32 elements @want. */
static inline void
expect_floats(KilnSession *session, unsigned i, const float *want, size_t rank, const int64_t *dims)
{
    GError *error = NULL;
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    const float *got = kiln_session_output(session, i, &info, &error);
    cr_assert(got, "%s", error ? error->message : "");
    cr_assert_eq(info.rank, (int)rank);
    int64_t n = 1;
    for (size_t d = 0; d < rank; d++) {
        cr_assert_eq(info.dims[d], dims[d]);
        n *= dims[d];
    }
    cr_assert_eq(info.bytes, n * (int64_t)sizeof(float));
    for (int64_t k = 0; k < n; k++)
        cr_expect_eq(got[k], want[k], "element %d: expected %g, found %g", (int)k, want[k], got[k]);
}
#define FLOATS(...) ((float[]){ __VA_ARGS__ })

/* The first @n outputs of @a and @b have the same names, sizes and bits. */
static inline void
expect_same_outputs(KilnSession *a, KilnSession *b, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        KilnTensorInfo x = KILN_TENSOR_INFO_INIT, y = KILN_TENSOR_INFO_INIT;
        const char *left = kiln_session_output(a, i, &x, NULL);
        const char *right = kiln_session_output(b, i, &y, NULL);
        cr_assert(left && right);
        cr_assert_eq(x.bytes, y.bytes);
        cr_expect_arr_eq(left, right, (size_t)x.bytes, "output %u", i);
        cr_expect_str_eq(x.name, y.name);
    }
}

#endif
