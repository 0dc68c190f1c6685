/* SPDX-License-Identifier: Apache-2.0 */
/* Independent chains of constants fold on a team: while compiling and at the first run, with the
 * same text, bits, notes, refusals and errors whatever the number of threads. */
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/targets.h"
#include "tests/concurrency/concurrency.h"

#include "graph/text/text.h"
#include "kiln.h"
#include "passes/manager/manager.h"

#include <string.h>

enum {
    CHAINS = 96,
    LENGTH = 6,
    ROUNDS = 3,
    FAILING = 7, /* one chain in so many has a division by 0 in it, */
    BIG = 16,    /* one pages of its own, */
    SHARED = 5,  /* one reads what others read too */
    ELEMENTS = 64,
    BIG_ELEMENTS = 1 << 18,
};

static int
elements_of(int chain)
{
    return chain % BIG == 1 ? BIG_ELEMENTS : ELEMENTS;
}

/* Node @i of @chain reads the one before and, if this is not NULL, another. */
static const char *
op_of(int chain, int i, bool failing, const char **other)
{
    static const char *const ops[] = { "neg", "add", "abs", "bitwise_not", "mul", "neg" };
    bool divides = failing && chain % FAILING == 3 && i == 4;
    bool all = chain % SHARED == 2 && elements_of(chain) == ELEMENTS;
    *other = divides ? "none" : i != 1 && i != 4 ? NULL : all ? "all" : "one";
    return divides ? "div" : ops[i];
}

/* Chains of @a<c>_0 each, arguments or literals; which of their elements are summed varies. */
static char *
chains_text(bool arguments, bool failing)
{
    GString *text = g_string_new("graph @chains(%x: i32[1]");
    for (int c = 0; c < CHAINS && arguments; c++)
        g_string_append_printf(text, ", %%a%d_0: i32[%d] constant=run", c, elements_of(c));
    g_string_append(text, ") {\n  %one = const @one\n  %none = const @none\n  %all = const @all\n"
                          "  %s0 = neg(%x)\n");
    for (int c = 0; c < CHAINS; c++) {
        if (!arguments)
            g_string_append_printf(text, "  %%a%d_0 = const @a%d\n", c, c);
        for (int i = 0; i < LENGTH; i++) {
            const char *other, *op = op_of(c, i, failing, &other);
            g_string_append_printf(text, "  %%a%d_%d = %s(%%a%d_%d%s%s)\n", c, i + 1, op, c, i,
                                   other ? ", %" : "", other ? other : "");
        }
        g_string_append_printf(text, "  %%b%d = gather(%%a%d_%d, %%x)\n", c, c, LENGTH);
        g_string_append_printf(text, "  %%s%d = add(%%s%d, %%b%d)\n", c + 1, c, c);
    }
    g_string_append_printf(text, "  return %%s%d\n}\nconstants {\n  @one = [3] : i32[1]\n", CHAINS);
    g_string_append(text, "  @none = [0] : i32[1]\n"
                          "  @all = random_uniform(seed=4711, low=1, high=9) : i32[64]\n");
    for (int c = 0; c < CHAINS && !arguments; c++)
        g_string_append_printf(text,
                               "  @a%d = random_uniform(seed=%d, low=-99, high=99) : i32[%d]\n", c,
                               c, elements_of(c));
    g_string_append(text, "}\n");
    return g_string_free(text, FALSE);
}

/* --- while compiling --- */

static void
append_line(const char *line, void *data)
{
    g_string_append(data, line);
}

/* What the pass makes of @text with @threads threads, and all that it says. */
static char *
fold(const char *text, int threads)
{
    GString *said = g_string_new(NULL);
    g_autoptr(KilnModule) module = kiln_module_parse(text, strlen(text), "chains", NULL);
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    g_autoptr(KilnPassPipeline) pipeline =
        kiln_pass_pipeline_parse_inline("constant-fold{evaluate=compile, max-bytes=5000000}", NULL);
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = kiln_target_by_name("cpu", NULL);
    options.threads = threads;
    options.log_rewrites = true;
    options.log = append_line;
    options.data = said;
    REQUIRE(module && pipeline);
    REQUIRE(kiln_pipeline_run_graph(pipeline, module, &options, report, NULL));
    for (guint i = 0; i < report->passes->len; i++)
        ((KilnPassStats *)g_ptr_array_index(report->passes, i))->ms = 0;
    g_autofree char *json = kiln_pass_report_to_json(report);
    g_string_append(said, json);
    REQUIRE(kiln_module_print(module, NULL, said, NULL));
    return g_string_free(said, FALSE);
}

static void
folds_alike(bool failing)
{
    g_autofree char *text = chains_text(false, failing);
    g_autofree char *want = fold(text, 1);
    REQUIRE((strstr(want, "\"evaluates\"") != NULL) == failing);
    for (int i = 0; i < ROUNDS; i++) {
        g_autofree char *got = fold(text, i % 2 ? 2 : 4);
        REQUIRE(strcmp(got, want) == 0);
    }
}

/* --- at the first run --- */

static void
bind_arguments(KilnSession *session, float *numbers)
{
    static const int32_t x = 5;
    REQUIRE(kiln_session_bind_input(session, 0, &x, sizeof x, NULL));
    for (int c = 0; c < CHAINS; c++)
        REQUIRE(kiln_session_bind_input(session, 1 + (unsigned)c, numbers,
                                        (size_t)elements_of(c) * sizeof(int32_t), NULL));
}

/* The result of the first run with @threads threads, or its error. */
static char *
run(const char *text, int threads, float *numbers)
{
    g_autoptr(GBytes) bytes = g_bytes_new_static(text, strlen(text));
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "chains.kiln", NULL);
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_parse("constant-fold", NULL);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = threads;
    options.pipeline = pipeline;
    g_autoptr(KilnProgram) program =
        model && pipeline ? kiln_program_compile(model, &options, NULL) : NULL;
    g_autoptr(KilnSession) session = program ? kiln_session_new(program, NULL, NULL) : NULL;
    g_autoptr(GError) error = NULL;
    REQUIRE(session);
    bind_arguments(session, numbers);
    if (!kiln_session_run(session, &error))
        return g_strdup(error->message);
    REQUIRE(kiln_program_fold_runs(program) == 1);
    const int32_t *sum = kiln_session_output(session, 0, NULL, NULL);
    return g_strdup_printf("%d", *sum);
}

static void
runs_alike(bool failing)
{
    g_autofree char *text = chains_text(true, failing);
    g_autofree float *numbers = g_new(float, BIG_ELEMENTS); /* their bits are as good as any */
    fill(numbers, BIG_ELEMENTS, 1);
    g_autofree char *want = run(text, 1, numbers);
    REQUIRE((strstr(want, "a3_5") != NULL) == failing);
    for (int i = 0; i < ROUNDS; i++) {
        g_autofree char *got = run(text, i % 2 ? 2 : 4, numbers);
        REQUIRE(strcmp(got, want) == 0);
    }
}

int
main(void)
{
    for (int failing = 0; failing < 2; failing++) {
        folds_alike(failing);
        runs_alike(failing);
    }
    return 0;
}
