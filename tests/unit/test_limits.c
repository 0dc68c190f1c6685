/* SPDX-License-Identifier: Apache-2.0 */
/* Limits for models of strangers: budgets, and the options of the C interface that set them. */
#include "tests/unit/runtime_case.h"

#include "graph/base/alloc.h"
#include "graph/base/budget.h"
#include "kiln.h"

#include <string.h>
#include <time.h>

/* --- budgets --- */

Test(limits, memory_is_counted_while_it_is_held)
{
    GError *error = NULL;
    void *data;
    g_autoptr(KilnBudget) budget = kiln_budget_new(&(KilnLimits){ .bytes = 1 << 20 });
    KilnBudget *before = kiln_budget_enter(budget);
    GBytes *half = kiln_bytes_new(1, 1 << 19, &data, &error);
    GBytes *small = kiln_bytes_new(1, 1 << 10, &data, &error);
    cr_assert(half && small);
    cr_expect_eq(kiln_budget_room(), (1 << 20) - (1 << 19) - (1 << 10));
    cr_expect_null(kiln_bytes_new(1, 1 << 19, &data, &error));
    expect_error(&error, KILN_ERROR_LIMIT,
                 "memory limit: expected at most 1048576 bytes, found 524288 for a tensor beside "
                 "525312 that are held");
    cr_expect_null(kiln_alloc(1, 1 << 19, &error));
    expect_error(&error, KILN_ERROR_LIMIT, "for working memory");
    g_bytes_unref(small);
    GBytes *other = kiln_bytes_new(1, 1 << 19, &data, &error);
    cr_assert(other);
    cr_expect_eq(kiln_budget_room(), 0);
    kiln_budget_leave(before);
    g_bytes_unref(other); /* counts where it was taken */
    before = kiln_budget_enter(budget);
    cr_expect_eq(kiln_budget_room(), 1 << 19);
    kiln_budget_leave(before);
    g_clear_pointer(&budget, kiln_budget_unref);
    g_bytes_unref(half); /* the budget lives as long as this */
    cr_expect_eq(kiln_budget_room(), INT64_MAX);
}

/* What one node makes is made by the next on the same pages. */
Test(limits, recycled_memory_is_counted)
{
    GError *error = NULL;
    void *data;
    KilnRecycler *recycler = kiln_recycler_new();
    g_autoptr(KilnBudget) budget = kiln_budget_new(&(KilnLimits){ .bytes = KILN_MAP_MIN });
    KilnBudget *before = kiln_budget_enter(budget);
    for (int i = 0; i < 3; i++) {
        GBytes *bytes = kiln_bytes_recycle(recycler, 1, KILN_MAP_MIN, &data, &error);
        cr_assert(bytes, "%s", error ? error->message : "");
        cr_expect_eq(kiln_budget_room(), 0);
        cr_expect_null(kiln_bytes_recycle(recycler, 1, KILN_MAP_MIN, &data, NULL));
        g_bytes_unref(bytes);
    }
    kiln_budget_leave(before);
    kiln_recycler_free(recycler);
}

static void
sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = ms * 1000 * 1000 }, NULL);
}

Test(limits, time_is_looked_at_before_work)
{
    GError *error = NULL;
    g_autoptr(KilnBudget) budget = kiln_budget_new(&(KilnLimits){ .ms = 20 });
    KilnBudget *before = kiln_budget_enter(budget);
    kiln_budget_restart(budget);
    must(kiln_budget_check_work(1000, "a node", &error), error);
    cr_expect_not(kiln_budget_check_work(1e9, "a node", &error));
    expect_error(&error, KILN_ERROR_LIMIT, "time limit: expected at most 0.02 seconds, found ");
    sleep_ms(30);
    cr_expect_not(kiln_checkpoint(&error));
    expect_error(&error, KILN_ERROR_LIMIT, "time limit: expected at most 0.02 seconds, found ");
    kiln_budget_leave(before);
    must(kiln_checkpoint(&error), error);
}

Test(limits, no_limits_are_no_budget)
{
    cr_expect_null(kiln_budget_new(&(KilnLimits){ 0 }));
    cr_expect_null(kiln_budget_enter(NULL));
    cr_expect_not(kiln_limits_any(&(KilnLimits){ 0 }));
    kiln_budget_restart(NULL);
    kiln_budget_unref(NULL);
}

/* --- loading --- */

static const char two_nodes[] = "graph @f(%x: f32[4]) {\n"
                                "  %y = exp(%x) : f32[4]\n"
                                "  %z = exp(%y) : f32[4]\n"
                                "  return %z\n"
                                "}\n";

static KilnModel *
load(const char *text, const KilnModelOptions *options, GError **error)
{
    g_autoptr(GBytes) bytes = g_bytes_new(text, strlen(text));
    return kiln_model_load_bytes_with(bytes, "case.kiln", options, error);
}

Test(limits, models_within_them_load)
{
    GError *error = NULL;
    KilnModelOptions options = KILN_MODEL_OPTIONS_INIT;
    kiln_model_options_untrusted(&options);
    g_autoptr(KilnModel) digits = kiln_model_load_with(DIGITS, &options, &error);
    cr_assert(digits, "%s", error ? error->message : "");
    cr_expect_null(load(two_nodes, &options, &error));
    expect_error(&error, KILN_ERROR_FORMAT, "case.kiln: expected an ONNX model, found a text");
    options.onnx_only = FALSE;
    g_autoptr(KilnModel) text = load(two_nodes, &options, &error);
    cr_assert(text, "%s", error ? error->message : "");
    options.node_limit = 1;
    cr_expect_null(load(two_nodes, &options, &error));
    expect_error(&error, KILN_ERROR_LIMIT,
                 "node limit: expected at most 1 nodes in all graphs, found 2 up to f");
    cr_expect_null(kiln_model_load_with(DIGITS, &options, &error));
    expect_error(&error, KILN_ERROR_LIMIT, "node limit: expected at most 1 nodes");
}

Test(limits, they_are_not_below_zero)
{
    GError *error = NULL;
    KilnModelOptions options = KILN_MODEL_OPTIONS_INIT;
    options.node_limit = -1;
    cr_expect_null(load(two_nodes, &options, &error));
    expect_error(&error, KILN_ERROR_USAGE, "node limit: expected 0 or more, found -1");
    g_autoptr(KilnModel) model = model_of(two_nodes);
    KilnCompileOptions compile = KILN_COMPILE_OPTIONS_INIT;
    compile.total_limit = -2;
    cr_expect_null(kiln_program_compile(model, &compile, &error));
    expect_error(&error, KILN_ERROR_USAGE, "total limit: expected 0 or more, found -2");
    g_autoptr(KilnProgram) program = program_of(two_nodes, NULL);
    KilnSessionOptions session = KILN_SESSION_OPTIONS_INIT;
    session.time_limit = -3;
    cr_expect_null(kiln_session_new(program, &session, &error));
    expect_error(&error, KILN_ERROR_USAGE, "time limit: expected 0 or more, found -3");
}

/* --- compiling --- */

static void
compile_fails(const char *text, const KilnCompileOptions *options, const char *message)
{
    GError *error = NULL;
    g_autoptr(KilnModel) model = model_of(text);
    cr_expect_null(kiln_program_compile(model, options, &error));
    expect_error(&error, KILN_ERROR_LIMIT, message);
}

/* Weights, arena and outputs: 4 KiB each, and none of it too much alone. */
Test(limits, all_memory_counts_together)
{
    static const char text[] = "graph @f(%x: f32[1024]) {\n"
                               "  %w = const @w : f32[1024]\n"
                               "  %a = add(%x, %w) : f32[1024]\n"
                               "  %s = softmax(%a) : f32[1024]\n"
                               "  %y = reduce_sum(%s) : f32[1]\n"
                               "  return %a, %y\n"
                               "}\n"
                               "constants { @w = random_normal(seed=1, std=1) : f32[1024] }\n";
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.total_limit = 12 * 1024 + 512;
    G_GNUC_UNUSED g_autoptr(KilnProgram) program = program_of(text, &options);
    options.total_limit = 9 * 1024;
    compile_fails(text, &options, "case.kiln: memory limit: expected at most 9216 bytes, found ");
    options.total_limit = 0;
    options.memory_limit = 12 * 1024; /* the arena alone */
    G_GNUC_UNUSED g_autoptr(KilnProgram) other = program_of(text, &options);
}

/* 40 KB of text ask for 4 GB: `tile` of a literal is stored by no pass, and lives in the arena. */
Test(limits, the_arena_is_counted_before_it_is_made)
{
    static const char text[] = "graph @f(%x: f32[1]) {\n"
                               "  %w = const @w : f32[2]\n"
                               "  %n = const @n : i64[1]\n"
                               "  %t = tile(%w, %n) : f32[1000000000]\n"
                               "  %s = cum_sum(%t, %a) : f32[1000000000]\n"
                               "  %y = reduce_sum(%s) : f32[1]\n"
                               "  %z = add(%x, %y) : f32[1]\n"
                               "  return %z\n"
                               "}\n";
    g_autoptr(GString) whole = g_string_new(text);
    g_string_replace(whole, "  %n =", "  %a = const @a : i64[]\n  %n =", 1);
    g_string_append(whole, "constants {\n  @w = [1, 2] : f32[2]\n  @n = [500000000] : i64[1]\n"
                           "  @a = [0] : i64[]\n}\n");
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    kiln_compile_options_untrusted(&options);
    compile_fails(whole->str, &options, "memory limit: expected at most 1073741824 bytes, found ");
}

static const char products[] =
    "graph @f(%x: f32[1]) {\n"
    "  %w = const @w : f32[1500,1500]\n"
    "  %p = matmul(%w, %w) : f32[1500,1500]\n"
    "  %q = matmul(%p, %w) : f32[1500,1500]\n"
    "  %r = matmul(%q, %w) : f32[1500,1500]\n"
    "  %y = reduce_sum(%r) : f32[1,1]\n"
    "  %z = add(%x, %y) : f32[1,1]\n"
    "  return %z\n"
    "}\n"
    "constants { @w = random_normal(seed=1, std=0.01) : f32[1500,1500] }\n";

/* The estimate of the first product alone is more than there is; nothing is computed. */
Test(limits, time_is_estimated)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.time_limit = 100;
    options.target = "ref";
    compile_fails(products, &options, "time limit: expected at most 0.1 seconds, found ");
}

/* With a limit for which there is room, results are what they are without. */
Test(limits, what_is_not_folded_runs)
{
    GError *error = NULL;
    const float x = 1;
    float found[2];
    for (int i = 0; i < 2; i++) {
        KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
        options.total_limit = i ? 60 * 1000 * 1000 : 0;
        options.no_offload = TRUE;
        g_autoptr(KilnProgram) program = program_of(products, &options);
        g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
        bind(session, 0, &x, sizeof x);
        run(session);
        found[i] = *(const float *)kiln_session_output(session, 0, NULL, &error);
    }
    cr_expect_eq(found[0], found[1]);
}

/* --- at a run --- */

static gboolean
wait_a_little(double fraction, const char *what, void *data)
{
    (void)fraction, (void)what, (void)data;
    sleep_ms(3);
    return TRUE;
}

Test(limits, compiling_ends_with_its_time)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.time_limit = 20;
    options.progress = wait_a_little;
    compile_fails(two_nodes, &options, "time limit: expected at most 0.02 seconds, found ");
}

/* A shape that comes with a run is held to the limits of the program. */
Test(limits, specialising_at_a_run)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.total_limit = 1 << 20;
    g_autoptr(KilnProgram) program = program_of("graph @f(%x: f32[N,1], %y: f32[1,N]) {\n"
                                                "  %p = matmul(%x, %y) : f32[N,N]\n"
                                                "  %e = softmax(%p) : f32[N,N]\n"
                                                "  %z = reduce_sum(%e) : f32[1,1]\n"
                                                "  return %z\n"
                                                "}\n",
                                                &options);
    GError *error = NULL;
    static const float ones[4096] = { 1 };
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    bind_shaped(session, 0, ones, DIMS(16, 1));
    bind_shaped(session, 1, ones, DIMS(1, 16));
    run(session);
    bind_shaped(session, 0, ones, DIMS(4096, 1));
    bind_shaped(session, 1, ones, DIMS(1, 4096));
    run_fails(session, KILN_ERROR_LIMIT, "memory limit: expected at most 1048576 bytes, found ");
    bind_shaped(session, 0, ones, DIMS(16, 1));
    bind_shaped(session, 1, ones, DIMS(1, 16));
    run(session);
}

Test(limits, a_run_ends_with_its_time)
{
    GError *error = NULL;
    static float x[500 * 500];
    g_autoptr(KilnProgram) program =
        program_of("graph @f(%x: f32[500,500]) {\n"
                   "  %a = matmul(%x, %x) : f32[500,500]\n"
                   "  %b = matmul(%a, %x) : f32[500,500]\n"
                   "  %c = matmul(%b, %x) : f32[500,500]\n"
                   "  return %c\n"
                   "}\n",
                   &(KilnCompileOptions){ .size = sizeof(KilnCompileOptions), .target = "ref" });
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.time_limit = 1;
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, &error);
    bind(session, 0, x, sizeof x);
    run_fails(session, KILN_ERROR_LIMIT, "time limit: expected at most 0.001 seconds, found ");
    kiln_session_options_untrusted(&options);
    g_autoptr(KilnSession) patient = kiln_session_new(program, &options, &error);
    bind(patient, 0, x, sizeof x);
    run(patient);
}

/* Callers that were built before there were limits pass shorter options. */
Test(limits, older_callers_have_none)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.size = offsetof(KilnCompileOptions, total_limit);
    options.total_limit = 1; /* is not theirs */
    G_GNUC_UNUSED g_autoptr(KilnProgram) program = program_of(two_nodes, &options);
}
