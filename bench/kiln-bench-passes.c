/* SPDX-License-Identifier: Apache-2.0 */
/* kiln-bench-passes: what passes cost, and how their cost grows with the graph.
 *
 * Synthetic graphs of several sizes go through the whole default pipeline, through each pass alone,
 * and through what the manager does around passes: verifying, hashing, cloning, lowering. With
 * `--level ir`, so do functions of the IR: lowered from such graphs, and built from blocks; and the
 * memory plan of what comes out. With `--shape`, so do graphs of one shape, such as a value that
 * all others read, and their whole road to a session. Growth is the factor of time per factor ten
 * of nodes or instructions; near-linear work stays near ten. */
#include "bench/bench_graph.h"
#include "bench/bench_ir.h"
#include "bench/bench_json.h"
#include "bench/bench_road.h"
#include "bench/bench_shapes.h"
#include "bench/bench_stats.h"
#include "kiln.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/hash.h"
#include "passes/manager/manager.h"
#include "passes/pass.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/pipeline.h"
#include "runtime/targets.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_SIZES = 8,
    MIN_RUNS = 3, /* the best of as few is less noisy than one; `--quick` takes one */
    MAX_RUNS = 30,
    COLD_BYTES = 64 << 20,
};
static const double ENOUGH = 0.1; /* seconds of repeating one measurement */
static const char inside[] = "  ";
static const char all_shapes[] = "all";
static const char graph_pipeline[] = "graph pipeline";
static const char ir_pipeline[] = "ir pipeline";
static const double NODES_PER_INSTR = 2.65; /* of the synthetic graphs, before they are optimized */
static const double MIN_DECADES = 1.5;
static const double NOISE_FLOOR = 5e-5; /* seconds; below, growth says nothing */

typedef struct {
    char **passes; /* NULL: all */
    char **shapes; /* NULL: blocks in random order */
    char *pipeline, *first, *sizes_text, *json, *level_text;
    KilnLevel level;
    double limit, growth;
    gint64 seed;
    gboolean no_verify, quick, whole;
    unsigned sizes[MAX_SIZES], n_sizes;
} Options;

/* One line of the table: seconds per size, negative where it was not measured. */
typedef struct {
    char *name;
    double seconds[MAX_SIZES];
    gint64 runs[MAX_SIZES];
    unsigned nodes[MAX_SIZES]; /* or instructions */
} Row;

typedef struct {
    const Options *options;
    const KilnTarget *target;
    KilnPassPipeline *pipeline;
    GPtrArray *rows; /* Row* */
    unsigned size;   /* index of the size that is measured */
    KilnModule *module;
    KilnModule
        *optimized; /* by the graph level of the pipeline; NULL at the IR level: IR is built */
    unsigned nodes[MAX_SIZES];
    const char *shape;  /* NULL: blocks in random order */
    const char *source; /* of the graph or IR, in front of the rows' names; "" for blocks */
} Bench;

static void
row_free(gpointer data)
{
    Row *row = data;
    g_free(row->name);
    g_free(row);
}

static Row *
find(const Bench *bench, const char *name)
{
    for (guint i = 0; i < bench->rows->len; i++) {
        Row *row = g_ptr_array_index(bench->rows, i);
        if (strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

static void
record(Bench *bench, const char *name, double seconds, unsigned runs)
{
    bool within = g_str_has_prefix(name, inside);
    g_autofree char *full = g_strdup_printf("%s%s%s", within ? inside : "", bench->source,
                                            name + (within ? strlen(inside) : 0));
    Row *row = find(bench, full);
    if (!row) {
        row = g_new0(Row, 1);
        row->name = g_strdup(full);
        for (int i = 0; i < MAX_SIZES; i++)
            row->seconds[i] = -1;
        g_ptr_array_add(bench->rows, row);
    }
    row->seconds[bench->size] = seconds;
    row->runs[bench->size] = runs;
    row->nodes[bench->size] = bench->nodes[bench->size];
}

/* --- one measurement --- */

/* Growth shall show the work and not which cache the graph still fits into: every run begins with
 * cold caches. */
static void
chill(void)
{
    static unsigned char junk[COLD_BYTES];
    for (size_t i = 0; i < sizeof junk; i += 64)
        junk[i]++;
}

/* Seconds of one run, or negative and @error. */
typedef double (*MeasureFn)(Bench *bench, const void *data, GError **error);

static gboolean
measure(Bench *bench, const char *name, MeasureFn run, const void *data, GError **error)
{
    double best = INFINITY, spent = 0;
    unsigned n = 0;
    unsigned least = bench->options->quick ? 1 : MIN_RUNS;
    for (; n < least || (n < MAX_RUNS && spent < ENOUGH && !bench->options->quick); n++) {
        double begin = bench_cpu_now(), seconds = run(bench, data, error);
        if (seconds < 0) {
            g_prefix_error(error, "%s%s of %u: ", bench->source, name, bench->nodes[bench->size]);
            return FALSE;
        }
        best = MIN(best, seconds);
        spent += bench_cpu_now() - begin;
    }
    record(bench, name, best, n);
    return TRUE;
}

static KilnPassOptions
pass_options(const Bench *bench)
{
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = bench->target;
    options.verify = !bench->options->no_verify;
    return options;
}

/* What the passes of a run took inside it, of the clock and not of the processor. */
static void
record_passes(Bench *bench, const KilnPassReport *report, KilnLevel level)
{
    for (guint i = 0; i < report->passes->len; i++) {
        const KilnPassStats *stats = g_ptr_array_index(report->passes, i);
        if (stats->level != level)
            continue;
        g_autofree char *name = g_strdup_printf(
            "%s%s%s", inside, level != bench->options->level ? "ir " : "", stats->id);
        record(bench, name, stats->ms * 1e-3, 1);
    }
}

static double
run_graph_pipeline(Bench *bench, const void *data, GError **error)
{
    (void)data;
    g_autoptr(KilnModule) clone = kiln_module_clone(bench->module);
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    KilnPassOptions options = pass_options(bench);
    chill();
    double start = bench_cpu_now();
    if (!kiln_pipeline_run_graph(bench->pipeline, clone, &options, report, error))
        return -1;
    double seconds = bench_cpu_now() - start;
    if (bench->options->level == KILN_LEVEL_GRAPH)
        record_passes(bench, report, KILN_LEVEL_GRAPH);
    g_clear_pointer(&bench->optimized, kiln_module_free);
    bench->optimized = g_steal_pointer(&clone);
    return seconds;
}

static KilnPassPipeline *
pipeline_of(const KilnPassInfo *pass, GError **error)
{
    bool graph = pass->level == KILN_LEVEL_GRAPH;
    g_autofree char *text =
        g_strdup_printf("%s{%s%s}", pass->id, graph ? "dce=none" : "convergence=one-pass",
                        strcmp(pass->id, "constant-fold") == 0 ? ",evaluate=compile" : "");
    KilnPassPipeline *pipeline = kiln_pass_pipeline_parse_inline(text, error);
    if (pipeline)
        pipeline->flags = (1u << KILN_N_FLAGS) - 1;
    return pipeline;
}

static double
run_graph_pass(Bench *bench, const void *data, GError **error)
{
    const KilnPassInfo *pass = data;
    g_autoptr(KilnModule) clone = kiln_module_clone(bench->module);
    g_autoptr(KilnPassPipeline) pipeline = pipeline_of(pass, error);
    KilnPassOptions options = pass_options(bench);
    options.verify = false; /* the time of the pass alone */
    chill();
    double start = bench_cpu_now();
    return pipeline && kiln_pipeline_run_graph(pipeline, clone, &options, NULL, error)
               ? bench_cpu_now() - start
               : -1;
}

static KilnIRModule *
lowered(const Bench *bench, double *out_seconds, GError **error)
{
    g_autoptr(KilnIRModule) ir = kiln_ir_module_new(kiln_module_clone(bench->optimized));
    chill();
    double start = bench_cpu_now();
    KilnIRFunction *function = kiln_lower(kiln_module_entry(ir->module), error);
    if (!function)
        return NULL;
    *out_seconds = bench_cpu_now() - start;
    g_ptr_array_add(ir->functions, function);
    return g_steal_pointer(&ir);
}

/* IR that no pass has seen. */
static KilnIRModule *
fresh_ir(const Bench *bench, GError **error)
{
    const Options *options = bench->options;
    double seconds;
    return bench->optimized ? lowered(bench, &seconds, error)
                            : bench_ir(options->sizes[bench->size], (uint64_t)options->seed, error);
}

/* @data: a pass, or NULL for the whole IR level of the pipeline. */
static double
run_ir(Bench *bench, const void *data, GError **error)
{
    const KilnPassInfo *pass = data;
    g_autoptr(KilnIRModule) ir = fresh_ir(bench, error);
    g_autoptr(KilnPassPipeline) own = pass ? pipeline_of(pass, error) : NULL;
    const KilnPassPipeline *pipeline = pass ? own : bench->pipeline;
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    KilnPassOptions options = pass_options(bench);
    options.verify &= !pass;
    chill();
    double start = bench_cpu_now();
    if (!ir || !pipeline || !kiln_pipeline_run_ir(pipeline, ir, &options, report, error))
        return -1;
    double seconds = bench_cpu_now() - start;
    if (!pass)
        record_passes(bench, report, KILN_LEVEL_IR);
    return seconds;
}

static double
run_verify_ir(Bench *bench, const void *data, GError **error)
{
    (void)data;
    g_autoptr(KilnIRModule) ir = fresh_ir(bench, error);
    chill();
    double start = bench_cpu_now();
    return ir && kiln_ir_verify(g_ptr_array_index(ir->functions, 0), error)
               ? bench_cpu_now() - start
               : -1;
}

/* Where what passes leave lies in the arena. @data: where what nothing optimized lies. */
static double
run_plan(Bench *bench, const void *data, GError **error)
{
    bool raw = data != NULL;
    g_autoptr(KilnIRModule) ir = fresh_ir(bench, error);
    KilnPassOptions options = pass_options(bench);
    options.verify = false;
    if (!ir || (!raw && !kiln_pipeline_run_ir(bench->pipeline, ir, &options, NULL, error)))
        return -1;
    chill();
    double start = bench_cpu_now();
    g_autoptr(KilnMemoryPlan) plan =
        kiln_memory_plan(g_ptr_array_index(ir->functions, 0), bench->target, 1, error);
    return plan ? bench_cpu_now() - start : -1;
}

static double
run_lower(Bench *bench, const void *data, GError **error)
{
    (void)data;
    double seconds;
    g_autoptr(KilnIRModule) ir = lowered(bench, &seconds, error);
    return ir ? seconds : -1;
}

static double
run_verify(Bench *bench, const void *data, GError **error)
{
    (void)data;
    chill();
    double start = bench_cpu_now();
    return kiln_module_verify(bench->module, error) ? bench_cpu_now() - start : -1;
}

static double
run_hash(Bench *bench, const void *data, GError **error)
{
    (void)data, (void)error;
    chill();
    double start = bench_cpu_now();
    uint64_t hash = kiln_hash_function(kiln_module_entry(bench->module)).named ^
                    kiln_hash_module(bench->module).named;
    return hash ? bench_cpu_now() - start : -1;
}

static double
run_clone(Bench *bench, const void *data, GError **error)
{
    (void)data, (void)error;
    chill();
    double start = bench_cpu_now();
    g_autoptr(KilnModule) clone = kiln_module_clone(bench->module);
    return clone ? bench_cpu_now() - start : -1;
}

/* --- everything of one size --- */

static bool
is_asked_for(const Options *options, const char *id)
{
    if (options->whole)
        return false;
    return !options->passes || g_strv_contains((const char *const *)options->passes, id);
}

static gboolean
measure_passes(Bench *bench, KilnLevel level, GError **error)
{
    for (uint32_t i = 0; i < kiln_pass_count(); i++) {
        const KilnPassInfo *pass = kiln_pass_at(i);
        if (pass->level != level || !is_asked_for(bench->options, pass->id))
            continue;
        bool mixed = level == KILN_LEVEL_IR && bench->options->level == KILN_LEVEL_GRAPH;
        g_autofree char *name = g_strdup_printf("%s%s", mixed ? "ir " : "", pass->id);
        MeasureFn run = level == KILN_LEVEL_IR ? run_ir : run_graph_pass;
        if (!measure(bench, name, run, pass, error))
            return FALSE;
    }
    return TRUE;
}

/* A graph to measure on. What `--first` did to it is in a clone, as if it had been loaded so. */
static KilnModule *
make_graph(const Bench *bench, unsigned nodes, GError **error)
{
    const Options *options = bench->options;
    g_autoptr(KilnModule) module = bench->shape
                                       ? bench_shape(bench->shape, nodes, error)
                                       : bench_graph(nodes, (uint64_t)options->seed, error);
    if (!module || !options->first)
        return g_steal_pointer(&module);
    g_autoptr(KilnPassPipeline) first = kiln_pass_pipeline_parse_inline(options->first, error);
    KilnPassOptions pass = pass_options(bench);
    if (!first || !kiln_pipeline_run_graph(first, module, &pass, NULL, error))
        return NULL;
    return kiln_module_clone(module);
}

/* The road from text to a session. */
static gboolean
measure_road(Bench *bench, GError **error)
{
    double best[BENCH_ROAD_N];
    unsigned runs = bench->options->quick ? 1 : MIN_RUNS;
    bool open = bench_shape_is_graph_only(bench->shape);
    for (unsigned i = 0; i < BENCH_ROAD_N; i++)
        best[i] = INFINITY;
    for (unsigned n = 0; n < runs; n++) {
        double seconds[BENCH_ROAD_N];
        if (!bench_road(bench->module, open, seconds, error)) {
            g_prefix_error(error, "%sof %u: ", bench->source, bench->nodes[bench->size]);
            return FALSE;
        }
        for (unsigned i = 0; i < BENCH_ROAD_N; i++)
            best[i] = MIN(best[i], seconds[i]);
    }
    for (unsigned i = 0; i < BENCH_ROAD_N; i++)
        if (best[i] >= 0)
            record(bench, bench_road_name(i), best[i], runs);
    return TRUE;
}

static gboolean
measure_ir_of(Bench *bench, const char *source, GError **error)
{
    g_autoptr(KilnIRModule) ir = fresh_ir(bench, error);
    if (!ir)
        return FALSE;
    const KilnIRFunction *function = g_ptr_array_index(ir->functions, 0);
    bench->nodes[bench->size] = function->n_instrs;
    bench->source = source;
    bool whole = !bench->options->passes;
    gboolean ok = measure(bench, ir_pipeline, run_ir, NULL, error) &&
                  (!whole || (measure(bench, "memory plan", run_plan, NULL, error) &&
                              measure(bench, "memory plan, raw", run_plan, "", error) &&
                              measure(bench, "verify", run_verify_ir, NULL, error))) &&
                  measure_passes(bench, KILN_LEVEL_IR, error);
    bench->source = "";
    return ok;
}

static gboolean
measure_ir_size(Bench *bench, GError **error)
{
    double nodes = bench->options->sizes[bench->size] * NODES_PER_INSTR;
    g_autoptr(KilnModule) module = make_graph(bench, (unsigned)nodes, error);
    bench->module = module;
    gboolean ok = module && run_graph_pipeline(bench, NULL, error) >= 0 &&
                  measure_ir_of(bench, "lowered: ", error);
    g_clear_pointer(&bench->optimized, kiln_module_free);
    bench->module = NULL;
    return ok && measure_ir_of(bench, "built: ", error);
}

static gboolean
measure_size(Bench *bench, GError **error)
{
    const Options *options = bench->options;
    if (options->level == KILN_LEVEL_IR)
        return measure_ir_size(bench, error);
    g_autoptr(KilnModule) module = make_graph(bench, options->sizes[bench->size], error);
    if (!module)
        return FALSE;
    bench->module = module;
    bench->nodes[bench->size] =
        bench->shape ? options->sizes[bench->size] : kiln_module_entry(module)->n_nodes;
    static const struct {
        const char *name;
        MeasureFn run;
    } around[] = { { "verify", run_verify }, { "hash", run_hash }, { "clone", run_clone } };
    gboolean ok = measure(bench, graph_pipeline, run_graph_pipeline, NULL, error);
    for (size_t i = 0; ok && !options->passes && i < G_N_ELEMENTS(around); i++)
        ok = measure(bench, around[i].name, around[i].run, NULL, error);
    ok = ok && measure_passes(bench, KILN_LEVEL_GRAPH, error);
    bool lowers = !bench->shape || !bench_shape_is_graph_only(bench->shape);
    if (!options->passes && lowers)
        ok = ok && measure(bench, "lower to ir", run_lower, NULL, error) &&
             measure(bench, ir_pipeline, run_ir, NULL, error);
    if (!options->passes && lowers && bench->shape)
        ok = ok && measure(bench, "memory plan", run_plan, NULL, error) &&
             measure(bench, "memory plan, raw", run_plan, "", error);
    if (!options->passes && bench->shape)
        ok = ok && measure_road(bench, error);
    if (lowers)
        ok = ok && measure_passes(bench, KILN_LEVEL_IR, error);
    g_clear_pointer(&bench->optimized, kiln_module_free);
    bench->module = NULL;
    return ok;
}

/* --- what came out --- */

/* Between two sizes, per factor ten of nodes. */
static double
growth_between(const Row *row, unsigned first, unsigned last)
{
    double decades = log10((double)row->nodes[last] / row->nodes[first]);
    return pow(row->seconds[last] / row->seconds[first], 1 / decades);
}

/* Per factor ten of nodes; 0 where it cannot be told. */
static double
growth_at(const Row *row, unsigned size)
{
    if (size == 0 || row->seconds[size - 1] < NOISE_FLOOR || row->seconds[size] < 0)
        return 0;
    return growth_between(row, size - 1, size);
}

/* From the first size whose time says something to the last; 0 where these are too near each other.
 * Linear work is found at up to 17, since a bigger graph misses caches more often; what grows with
 * the power of 1.5 would be at 32. */
static double
growth_of(const Bench *bench, const Row *row)
{
    unsigned first = 0, last = bench->options->n_sizes - 1;
    while (first < last && row->seconds[first] < NOISE_FLOOR)
        first++;
    bool far = log10((double)row->nodes[last] / row->nodes[first]) >= MIN_DECADES;
    return far && row->seconds[last] >= 0 ? growth_between(row, first, last) : 0;
}

static void
print_table(const Bench *bench)
{
    const Options *options = bench->options;
    const char *what = options->level == KILN_LEVEL_IR ? "instructions" : "nodes";
    printf("milliseconds of processor time from cold caches, and growth per factor ten of %s: from "
           "each size to the next, and over all\n%-32s",
           what, what);
    for (unsigned s = 0; s < options->n_sizes; s++)
        printf(" %11u       ", bench->nodes[s]);
    printf("\n");
    for (guint i = 0; i < bench->rows->len; i++) {
        const Row *row = g_ptr_array_index(bench->rows, i);
        printf("%-32s", row->name);
        for (unsigned s = 0; s < options->n_sizes; s++) {
            double growth = growth_at(row, s);
            if (row->seconds[s] < 0)
                printf(" %11s       ", "");
            else if (growth > 0)
                printf(" %11.3f x%-5.1f", row->seconds[s] * 1e3, growth);
            else
                printf(" %11.3f       ", row->seconds[s] * 1e3);
        }
        double growth = growth_of(bench, row);
        if (growth > 0)
            printf("  x%.1f", growth);
        printf("\n");
    }
}

/* Time inside another row's, measured once: too noisy to be judged. */
static bool
is_inside(const Row *row)
{
    return g_str_has_prefix(row->name, inside);
}

static gboolean
write_json(const Bench *bench)
{
    JsonArray *benchmarks = json_array_new();
    for (guint i = 0; i < bench->rows->len; i++) {
        const Row *row = g_ptr_array_index(bench->rows, i);
        for (unsigned s = 0; s < bench->options->n_sizes; s++) {
            if (row->seconds[s] < 0)
                continue;
            g_autofree char *name = g_strdup_printf(
                "%s%s/%u", is_inside(row) ? "pipeline: " : "",
                row->name + (is_inside(row) ? strlen(inside) : 0), bench->options->sizes[s]);
            double ms = row->seconds[s] * 1e3;
            JsonObject *entry = bench_json_entry(name, 1, row->runs[s], ms, ms);
            json_object_set_int_member(
                entry, bench->options->level == KILN_LEVEL_IR ? "instructions" : "nodes",
                row->nodes[s]);
            double growth = growth_at(row, s);
            if (growth > 0)
                json_object_set_double_member(entry, "growth_per_decade", growth);
            json_array_add_object_element(benchmarks, entry);
        }
    }
    JsonObject *context = bench_json_context("kiln-bench-passes");
    json_object_set_boolean_member(context, "verify", !bench->options->no_verify);
    return bench_json_write(bench->options->json, context, benchmarks);
}

/* The limit is that of a whole level. */
static bool
is_quick_enough(const Bench *bench, const Row *row)
{
    const Options *options = bench->options;
    unsigned last = options->n_sizes - 1;
    bool whole =
        g_str_has_suffix(row->name, graph_pipeline) || g_str_has_suffix(row->name, ir_pipeline);
    if (!whole || options->limit <= 0 || row->seconds[last] <= options->limit)
        return true;
    fprintf(stderr, "%s: expected at most %.1f s on %u, found %.1f s\n", row->name, options->limit,
            row->nodes[last], row->seconds[last]);
    return false;
}

/* Complains of what grows too fast or takes too long. */
static bool
judge(const Bench *bench)
{
    const Options *options = bench->options;
    bool good = true;
    for (guint i = 0; i < bench->rows->len; i++) {
        const Row *row = g_ptr_array_index(bench->rows, i);
        double growth = growth_of(bench, row);
        good &= is_quick_enough(bench, row);
        if (is_inside(row) || growth <= options->growth)
            continue;
        fprintf(stderr, "%s: expected at most x%.1f per factor ten of nodes, found x%.1f\n",
                row->name, options->growth, growth);
        good = false;
    }
    return good;
}

/* Every size of one shape, or of blocks in random order. */
static gboolean
measure_sizes(Bench *bench, const char *shape, GError **error)
{
    g_autofree char *source = shape ? g_strdup_printf("%s: ", shape) : g_strdup("");
    gboolean ok = TRUE;
    bench->shape = shape;
    for (bench->size = 0; ok && bench->size < bench->options->n_sizes; bench->size++) {
        bench->source = source;
        ok = measure_size(bench, error);
    }
    bench->source = "";
    return ok;
}

static gboolean
measure_all(Bench *bench, GError **error)
{
    char **shapes = bench->options->shapes;
    if (!shapes)
        return measure_sizes(bench, NULL, error);
    for (; *shapes; shapes++) {
        if (strcmp(*shapes, all_shapes) != 0) {
            if (!measure_sizes(bench, *shapes, error))
                return FALSE;
            continue;
        }
        for (unsigned i = 0; bench_shape_name(i); i++)
            if (!measure_sizes(bench, bench_shape_name(i), error))
                return FALSE;
    }
    return TRUE;
}

static int
bench_all(const Options *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPipeline) pipeline =
        kiln_pipeline_load(options->pipeline ? options->pipeline : "default", &error);
    Bench bench = { .options = options,
                    .target = kiln_target_by_name("cpu", NULL),
                    .pipeline = pipeline ? pipeline->passes : NULL,
                    .rows = g_ptr_array_new_with_free_func(row_free),
                    .source = "" };
    gboolean ok = pipeline && measure_all(&bench, &error);
    int status = ok ? 0 : 1;
    bool to_stdout = options->json && strcmp(options->json, "-") == 0;
    if (!ok)
        fprintf(stderr, "kiln-bench-passes: %s\n", error->message);
    else if (!to_stdout)
        print_table(&bench);
    if (ok && ((options->json && !write_json(&bench)) || !judge(&bench)))
        status = 1;
    g_ptr_array_unref(bench.rows);
    return status;
}

static bool
parse_sizes(Options *options)
{
    g_auto(GStrv) parts =
        g_strsplit(options->sizes_text ? options->sizes_text : "100,1000,10000,100000", ",", -1);
    for (char **part = parts; *part; part++) {
        guint64 size;
        if (options->n_sizes == MAX_SIZES ||
            !g_ascii_string_to_unsigned(*part, 10, 1, 10000000, &size, NULL))
            return false;
        if (options->n_sizes && size <= options->sizes[options->n_sizes - 1])
            return false;
        options->sizes[options->n_sizes++] = (unsigned)size;
    }
    return options->n_sizes > 0;
}

static bool
parse_level(Options *options)
{
    const char *text = options->level_text ? options->level_text : "graph";
    options->level = strcmp(text, "ir") == 0 ? KILN_LEVEL_IR : KILN_LEVEL_GRAPH;
    return options->level == KILN_LEVEL_IR || strcmp(text, "graph") == 0;
}

/* The first of the shapes that there is not; NULL: all are there, and fit the level. */
static const char *
wrong_shape(const Options *options)
{
    for (char **shape = options->shapes; shape && *shape; shape++)
        if (!bench_shape_exists(*shape) && strcmp(*shape, all_shapes) != 0)
            return *shape;
    return NULL;
}

/* Says what shapes there are. */
static void
add_description(GOptionContext *context)
{
    g_autoptr(GString) text = g_string_new("Shapes:");
    for (unsigned i = 0; bench_shape_name(i); i++)
        g_string_append_printf(text, "\n  %-14s %s", bench_shape_name(i), bench_shape_summary(i));
    g_option_context_set_description(context, text->str);
}

int
main(int argc, char **argv)
{
    Options options = { .growth = 20, .seed = 1 };
    const GOptionEntry entries[] = {
        { "pass", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options.passes,
          "Measure only this pass and the pipeline; may be repeated", "PASS" },
        { "pipeline", 0, 0, G_OPTION_ARG_FILENAME, &options.pipeline,
          "Measure this pipeline as a whole (default: default)", "F" },
        { "first", 0, 0, G_OPTION_ARG_STRING, &options.first,
          "Run these passes on each graph before the measurement: a,b{x=1}", "LIST" },
        { "level", 0, 0, G_OPTION_ARG_STRING, &options.level_text,
          "Measure passes of the graph, or passes of the IR and memory plans (default: graph)",
          "graph|ir" },
        { "shape", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options.shapes,
          "Measure graphs of this shape (or `all`); may be repeated; graph level only", "SHAPE" },
        { "whole", 0, 0, G_OPTION_ARG_NONE, &options.whole,
          "Measure the pipeline only, and no single pass", NULL },
        { "sizes", 0, 0, G_OPTION_ARG_STRING, &options.sizes_text,
          "Measure these numbers of nodes (default: 100,1000,10000,100000)", "N,N…" },
        { "seed", 0, 0, G_OPTION_ARG_INT64, &options.seed, "Seed the graphs (default: 1)", "N" },
        { "growth", 0, 0, G_OPTION_ARG_DOUBLE, &options.growth,
          "Fail if ten times the nodes take more than X times the time (default: 20)", "X" },
        { "limit", 0, 0, G_OPTION_ARG_DOUBLE, &options.limit,
          "Fail if a pipeline takes more than S seconds on the largest size", "S" },
        { "no-verify", 0, 0, G_OPTION_ARG_NONE, &options.no_verify, "Do not verify after each pass",
          NULL },
        { "quick", 0, 0, G_OPTION_ARG_NONE, &options.quick, "Measure everything once", NULL },
        { "json", 0, 0, G_OPTION_ARG_FILENAME, &options.json,
          "Write JSON in the format of Google Benchmark; `-` is standard output", "F" },
        G_OPTION_ENTRY_NULL,
    };
    setlocale(LC_CTYPE, ""); /* what --help is written in */
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(
        context, "Measures the time of passes on synthetic graphs, and its growth with the graph.");
    add_description(context);
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GError) error = NULL;
    int status = 2;
    if (!g_option_context_parse(context, &argc, &argv, &error))
        fprintf(stderr, "kiln-bench-passes: %s\n", error->message);
    else if (argc > 1)
        fprintf(stderr, "kiln-bench-passes: expected no operand, found %s\n", argv[1]);
    else if (!parse_level(&options))
        fprintf(stderr, "kiln-bench-passes: --level: expected graph or ir, found %s\n",
                options.level_text);
    else if (wrong_shape(&options))
        fprintf(stderr, "kiln-bench-passes: --shape: expected one that --help lists, found %s\n",
                wrong_shape(&options));
    else if (options.shapes && options.level == KILN_LEVEL_IR)
        fprintf(stderr, "kiln-bench-passes: expected --shape or --level ir, found both\n");
    else if (!parse_sizes(&options))
        fprintf(stderr,
                "kiln-bench-passes: --sizes: expected up to %d ascending numbers, found %s\n",
                MAX_SIZES, options.sizes_text);
    else
        status = bench_all(&options);
    g_strfreev(options.passes);
    g_strfreev(options.shapes);
    g_free(options.pipeline);
    g_free(options.first);
    g_free(options.sizes_text);
    g_free(options.level_text);
    g_free(options.json);
    return status;
}
