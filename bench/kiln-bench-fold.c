/* SPDX-License-Identifier: Apache-2.0 */
/* kiln-bench-fold: what folding constants costs - memory while it computes, time beside running the
 * same nodes, growth with their number.
 *
 *     kiln-bench-fold [--check] [--threads N] [MODEL…]
 *
 * A chain of 1000 sums of tensors of 1 MB; 64 chains of such tensors, by one thread and by the
 * team; each MODEL with two operators behind every weight; and small nodes by the hundred thousand.
 * With
 * --check it fails where memory, time or growth are more
 * than docs/constants.md promises. */
#include "bench/bench_stats.h"
#include "graph/function.h"
#include "graph/node.h"
#include "graph/op/additive.h"
#include "graph/op/math.h"
#include "graph/op/multiplicative.h"
#include "ir/target.h"
#include "kiln.h"
#include "passes/context/options.h"
#include "passes/manager/manager.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "runtime/session.h"
#include "runtime/targets.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    CHAIN = 1000,
    SIDE_CHAINS = 64, /* beside each other, */
    SIDE_CHAIN = 8,   /* of so many nodes */
    SMALL_CHAIN = 10,
    RUNS = 5,
    SLACK = 2 << 20, /* bytes that are no tensor: nodes, tables, the heap's own */
};
static const double MAX_KEPT = 1.1;  /* of the constants that are left, at the peak */
static const double MAX_RATIO = 2;   /* of the time of running the same nodes */
static const double MAX_SECONDS = 2; /* for 10^5 small nodes */
static const double MAX_GROWTH = 13; /* per factor ten of nodes */
static const char fold[] = "constant-fold{evaluate=compile, max-bytes=4294967296}";

typedef struct {
    gboolean check;
    gint threads;
    char **models;
    const KilnTarget *target;
    bool failed;
} Bench;

/* --- memory --- */

/* The bytes that the system states under @key. */
static gboolean
read_status(const char *key, int64_t *out, GError **error)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents("/proc/self/status", &text, NULL, error))
        return FALSE;
    const char *line = strstr(text, key);
    *out = line ? g_ascii_strtoll(line + strlen(key), NULL, 10) * 1024 : 0;
    return *out > 0 || kiln_throw(error, KILN_ERROR_IO, "/proc/self/status: expected %s", key);
}

/* From now on the peak counts anew; the resident bytes now. */
static gboolean
begin_peak(int64_t *out, GError **error)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file) {
        fputs("5", file);
        fclose(file);
    }
    return read_status("VmRSS:", out, error);
}

/* --- folding --- */

typedef struct {
    double seconds; /* of processor time */
    double elapsed; /* by the clock on the wall */
    int64_t above;  /* bytes at the peak over those before */
} Cost;

static gboolean
fold_module(const Bench *bench, KilnModule *module, int threads, Cost *cost, GError **error)
{
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_parse_inline(fold, error);
    if (!pipeline)
        return FALSE;
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = bench->target;
    options.threads = threads;
    options.verify = false;
    int64_t before, peak;
    if (!begin_peak(&before, error))
        return FALSE;
    double start = bench_cpu_now(), began = bench_now();
    if (!kiln_pipeline_run_graph(pipeline, module, &options, NULL, error))
        return FALSE;
    cost->seconds = bench_cpu_now() - start;
    cost->elapsed = bench_now() - began;
    if (!read_status("VmHWM:", &peak, error))
        return FALSE;
    cost->above = peak - before;
    return TRUE;
}

/* Bytes that constants of @module take; the largest of them in @largest. */
static int64_t
constant_bytes(const KilnModule *module, int64_t *largest)
{
    int64_t sum = 0;
    *largest = 0;
    for (guint i = 0; i < module->constants->len; i++) {
        const KilnConstant *constant = g_ptr_array_index(module->constants, i);
        int64_t bytes = kiln_tensor_storage(constant->tensor);
        sum += bytes;
        *largest = MAX(*largest, bytes);
    }
    return sum;
}

static void
require(Bench *bench, bool holds, const char *what)
{
    if (bench->check && !holds) {
        fprintf(stderr, "kiln-bench-fold: %s: more than promised\n", what);
        bench->failed = true;
    }
}

static void
judge_memory(Bench *bench, const char *name, const Cost *cost, int64_t kept, int64_t step)
{
    int64_t limit = (int64_t)(MAX_KEPT * (double)kept) + step + SLACK;
    printf("%-24s %8.1f MB at the peak, at most %.1f (%.1f MB are left, a step has %.1f)\n", name,
           (double)cost->above / 1e6, (double)limit / 1e6, (double)kept / 1e6, (double)step / 1e6);
    require(bench, cost->above <= limit, name);
}

/* Generated literals become stored ones. */
static gboolean
store_constants(KilnModule *module, GError **error)
{
    for (guint i = 0; i < module->constants->len; i++) {
        KilnConstant *constant = g_ptr_array_index(module->constants, i);
        g_autoptr(GBytes) bytes = kiln_tensor_view(constant->tensor, error);
        KilnTensor *stored =
            bytes ? kiln_tensor_new_data(&constant->tensor->type, bytes, error) : NULL;
        if (!stored)
            return FALSE;
        kiln_tensor_free(constant->tensor);
        constant->tensor = stored;
    }
    return TRUE;
}

/* --- the chain --- */

static const char chain_type[] = "f32[256,1024]"; /* 1 MB */

static char *
chain_text(void)
{
    GString *text = g_string_new(NULL);
    g_string_append_printf(
        text, "graph @chain(%%x: %s) {\n  %%c0 = const @c0\n  %%c1 = const @c1\n", chain_type);
    for (int i = 0; i < CHAIN; i++)
        g_string_append_printf(text, "  %%s%d = add(%%%s%d, %%c%d)\n", i, i ? "s" : "c",
                               i ? i - 1 : 0, (i + 1) % 2);
    g_string_append_printf(text, "  %%r = add(%%x, %%s%d)\n  return %%r\n}\nconstants {\n",
                           CHAIN - 1);
    for (int k = 0; k < 2; k++)
        g_string_append_printf(text, "  @c%d = random_uniform(seed=%d, low=-1, high=1) : %s\n", k,
                               k, chain_type);
    g_string_append(text, "}\n");
    return g_string_free(text, FALSE);
}

/* Seconds of processor time of the fastest of some runs of the chain as it is, in buffers that are
 * there already. */
static double
run_chain(const Bench *bench, const char *text, GError **error)
{
    g_autoptr(GBytes) bytes = g_bytes_new_static(text, strlen(text));
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "chain.kiln", error);
    g_autoptr(KilnPipeline) plain = model ? kiln_pipeline_parse("dse", error) : NULL;
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = bench->threads;
    options.pipeline = plain;
    g_autoptr(KilnProgram) program = plain ? kiln_program_compile(model, &options, error) : NULL;
    g_autoptr(KilnSession) session = program ? kiln_session_new(program, NULL, error) : NULL;
    if (!session)
        return -1;
    size_t size = (size_t)kiln_program_input(program, 0)->bytes;
    g_autofree void *x = g_malloc0(size);
    double best = INFINITY;
    for (int i = 0; i <= RUNS; i++) {
        double start = bench_cpu_now();
        if (!kiln_session_bind_input(session, 0, x, size, error) ||
            !kiln_session_run(session, error))
            return -1;
        if (i) /* the first touches what is new */
            best = MIN(best, bench_cpu_now() - start);
    }
    return best;
}

static gboolean
measure_chain(Bench *bench, GError **error)
{
    g_autofree char *text = chain_text();
    double running = run_chain(bench, text, error), folding = INFINITY;
    Cost cost = { 0 };
    int64_t kept = 0, largest = 0;
    for (int i = 0; i < RUNS && running >= 0; i++) {
        g_autoptr(KilnModule) module = kiln_module_parse(text, strlen(text), "chain", error);
        if (!module || !store_constants(module, error) ||
            !fold_module(bench, module, bench->threads, &cost, error))
            return FALSE;
        folding = MIN(folding, cost.seconds);
        kept = constant_bytes(module, &largest);
    }
    if (running < 0)
        return FALSE;
    judge_memory(bench, "chain of 1000 sums", &cost, kept, 3 * largest);
    printf("%-24s %8.1f ms to fold, %.1f to run: %.2f times\n", "", folding * 1e3, running * 1e3,
           folding / running);
    require(bench, folding <= MAX_RATIO * running, "time of the chain");
    return TRUE;
}

/* --- chains beside each other --- */

/* Each of a literal of its own, and read by what varies. */
static char *
side_chains_text(void)
{
    static const char *const ops[] = { "neg", "abs", "sqrt", "relu" };
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "graph @chains(%%y0: %s) {\n", chain_type);
    for (int c = 0; c < SIDE_CHAINS; c++) {
        g_string_append_printf(text, "  %%c%d_0 = const @c%d\n", c, c);
        for (int i = 0; i < SIDE_CHAIN; i++)
            g_string_append_printf(text, "  %%c%d_%d = %s(%%c%d_%d)\n", c, i + 1,
                                   ops[(size_t)i % G_N_ELEMENTS(ops)], c, i);
        g_string_append_printf(text, "  %%y%d = add(%%y%d, %%c%d_%d)\n", c + 1, c, c, SIDE_CHAIN);
    }
    g_string_append_printf(text, "  return %%y%d\n}\nconstants {\n", SIDE_CHAINS);
    for (int c = 0; c < SIDE_CHAINS; c++)
        g_string_append_printf(text, "  @c%d = random_uniform(seed=%d, low=-1, high=1) : %s\n", c,
                               c, chain_type);
    g_string_append(text, "}\n");
    return g_string_free(text, FALSE);
}

/* Folded by one thread and by the team in turn; medians. */
static gboolean
measure_side_chains(Bench *bench, GError **error)
{
    g_autofree char *text = side_chains_text();
    double seconds[2][RUNS], ratios[RUNS];
    const int team = MAX(bench->threads, 2);
    for (int i = 0; i < 2 * RUNS; i++) {
        Cost cost = { 0 };
        int64_t largest;
        g_autoptr(KilnModule) module = kiln_module_parse(text, strlen(text), "chains", error);
        if (!module || !store_constants(module, error) ||
            !fold_module(bench, module, i % 2 ? team : 1, &cost, error))
            return FALSE;
        seconds[i % 2][i / 2] = cost.elapsed;
        if (i % 2)
            ratios[i / 2] = cost.elapsed / seconds[0][i / 2];
        if (i < 2 * RUNS - 1)
            continue;
        int64_t kept = constant_bytes(module, &largest);
        judge_memory(bench, "64 chains", &cost, kept, 3 * largest);
    }
    printf("%-24s %8.1f ms with 1 thread, %.1f with %d: %.2f of the time\n", "",
           bench_stats(seconds[0], RUNS).median * 1e3, bench_stats(seconds[1], RUNS).median * 1e3,
           team, bench_stats(ratios, RUNS).median);
    return TRUE;
}

/* --- models --- */

/* @op of what @constant is, which all its readers read from now on. */
static KilnValue *
put_behind(KilnValue *value, KilnOp op, GError **error)
{
    KilnNode *const_node = value->def;
    KilnValue *made =
        kiln_build(const_node->function, const_node->next, op, NULL, &value, 1, error);
    if (!made)
        return NULL;
    kiln_value_replace(value, made);
    kiln_node_set_operand(made->def, 0, value);
    return made;
}

/* Every stored weight of floats is negated twice. */
static gboolean
negate_weights(KilnModule *module, int64_t *largest, GError **error)
{
    *largest = 0;
    kiln_foreach_node_safe (node, kiln_module_entry(module)) {
        const KilnConstant *constant = kiln_value_constant(&node->results[0]);
        if (node->op != KILN_OP_const || constant->type.quant ||
            constant->type.dtype != KILN_DTYPE_f32 || kiln_tensor_storage(constant->tensor) == 0)
            continue;
        KilnValue *once = put_behind(&node->results[0], KILN_OP_neg, error);
        if (!once || !put_behind(once, KILN_OP_neg, error))
            return FALSE;
        *largest = MAX(*largest, kiln_tensor_storage(constant->tensor));
    }
    return TRUE;
}

static gboolean
measure_model(Bench *bench, const char *path, GError **error)
{
    g_autoptr(KilnModel) model = kiln_model_load(path, error);
    if (!model || !model->module)
        return model != NULL;
    g_autoptr(KilnModule) module = kiln_module_clone(model->module);
    g_autofree char *folder = g_path_get_dirname(path);
    g_autofree char *name = g_path_get_basename(folder);
    Cost cost = { 0 };
    int64_t largest, last;
    if (!negate_weights(module, &largest, error) ||
        !fold_module(bench, module, bench->threads, &cost, error))
        return FALSE;
    judge_memory(bench, name, &cost, constant_bytes(module, &last), 3 * largest);
    return TRUE;
}

/* --- small nodes --- */

static KilnModule *
make_small(unsigned n)
{
    KilnModule *module = kiln_module_new();
    KilnFunction *function = kiln_function_new(module, "small");
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 4 });
    KilnValue *sum = &kiln_function_add_argument(function, "x", &type, NULL)->value;
    static const KilnOp ops[] = { KILN_OP_add, KILN_OP_mul, KILN_OP_sub };
    for (unsigned i = 0; i < n; i += SMALL_CHAIN) {
        const float numbers[] = { (float)i, 1, 2, 3 };
        KilnTensor *tensor = kiln_tensor_new_copy(&type, numbers, NULL);
        KilnValue *c = kiln_build_constant(function, NULL, "c", tensor), *value = c;
        for (int k = 0; k < SMALL_CHAIN; k++) {
            KilnValue *operands[] = { value, c };
            value = kiln_build(function, NULL, ops[(unsigned)k % G_N_ELEMENTS(ops)], NULL, operands,
                               2, NULL);
        }
        KilnValue *operands[] = { sum, value };
        sum = kiln_build(function, NULL, KILN_OP_add, NULL, operands, 2, NULL);
    }
    kiln_function_set_results(function, &sum, NULL, 1, NULL);
    return module;
}

static gboolean
measure_small(Bench *bench, GError **error)
{
    static const unsigned sizes[] = { 1000, 10000, 100000 };
    double last = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        Cost cost;
        double best = INFINITY;
        for (int run = 0; run < RUNS; run++) {
            g_autoptr(KilnModule) module = make_small(sizes[i]);
            if (!fold_module(bench, module, bench->threads, &cost, error))
                return FALSE;
            best = MIN(best, cost.seconds);
        }
        printf("%6u small nodes       %8.1f ms (least of %d)\n", sizes[i], best * 1e3, RUNS);
        require(bench, i == 0 || best <= MAX_GROWTH * last, "growth of the time for small nodes");
        last = best;
    }
    require(bench, last <= MAX_SECONDS, "time for small nodes");
    return TRUE;
}

static gboolean
measure_all(Bench *bench, GError **error)
{
    bench->target = kiln_target_choose("cpu", false, error);
    if (!bench->target || !measure_chain(bench, error) || !measure_side_chains(bench, error) ||
        !measure_small(bench, error))
        return FALSE;
    for (char **model = bench->models; model && *model; model++) {
        if (!measure_model(bench, *model, error))
            return FALSE;
    }
    return TRUE;
}

int
main(int argc, char **argv)
{
    Bench bench = { .threads = 1 };
    const GOptionEntry entries[] = {
        { "check", 0, 0, G_OPTION_ARG_NONE, &bench.check,
          "Fail above the limits of docs/constants.md", NULL },
        { "threads", 0, 0, G_OPTION_ARG_INT, &bench.threads,
          "Compare one thread with N threads (default 1)", "N" },
        { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &bench.models, "", "MODEL…" },
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GError) error = NULL;
    setlocale(LC_CTYPE, ""); /* what --help is written in */
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(context, "Measures the time and memory of constant folding.");
    g_option_context_add_main_entries(context, entries, NULL);
    bool good =
        g_option_context_parse(context, &argc, &argv, &error) && measure_all(&bench, &error);
    if (!good)
        fprintf(stderr, "kiln-bench-fold: %s\n", error ? error->message : "it failed");
    g_strfreev(bench.models);
    return !good || bench.failed;
}
