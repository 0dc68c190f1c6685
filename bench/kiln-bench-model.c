/* SPDX-License-Identifier: Apache-2.0 */
/* kiln-bench-model: latency, compile time, memory and efficiency of whole models.
 *
 * Each measurement runs in a process of its own: peak memory is then that of one model, and no
 * measurement warms another's caches or thread pool. */
#include "bench/bench_json.h"
#include "bench/bench_load.h"
#include "bench/bench_peak.h"
#include "bench/bench_stats.h"
#include "bench/bench_sweep.h"
#include "graph/tensor.h"
#include "kiln.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "runtime/program_file.h"
#include "runtime/session.h"
#include "runtime/shapes/texts.h"
#include "runtime/targets.h"
#include "runtime/tensors/tensor_file.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    int threads;
    double min_time;
    gboolean no_verify, no_offload, layers;
    int load, rounds; /* busy processes beside; how often both teams are measured then */
    gboolean load_pin;
    double peak; /* GFLOP/s of one thread */
    char *backend, *json, *inputs, *prefer, *sweep;
    char **pipelines, **models, **shapes, **shape_hints;
} Options;

/* What the child sends back. */
typedef struct {
    BenchStats run; /* seconds */
    double cpu;     /* processor seconds per run */
    double load, compile, first_run;
    gint64 peak_rss, flops;
    KilnMemoryReport memory;
    char error[512];
} Result;

enum {
    LAYER_RUNS = 25,
    MIN_RUNS = 5,
    MAX_RUNS = 2000000,
    LOAD_ROUNDS = 5,
    MAX_LOAD = 256,
    MEMORY_BYTES = 256 << 20, /* more than any cache holds */
};

/* --- in the child --- */

static KilnTensor *
make_input(const Options *options, KilnModel *model, KilnProgram *program, unsigned i,
           GError **error)
{
    if (options->inputs) {
        g_autofree char *path = g_strdup_printf("%s/input_%u.pb", options->inputs, i);
        return kiln_tensor_file_load(path, &program->inputs.types[i], NULL, error);
    }
    const KilnTensorInfo *info = kiln_program_input(program, i);
    if (info->bytes < 0)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "input %s: its shape is open: give --shape or --sweep", info->name);
    return kiln_model_random_input(model, i, &program->inputs.types[i], program->inputs.types, 1,
                                   error);
}

static gboolean
bind_inputs(const Options *options, KilnSession *session, KilnModel *model, KilnProgram *program,
            GPtrArray *keep, GError **error)
{
    for (unsigned i = 0; i < kiln_program_n_inputs(program); i++) {
        g_autoptr(KilnTensor) tensor = make_input(options, model, program, i, error);
        GBytes *bytes = tensor ? kiln_tensor_view(tensor, error) : NULL;
        if (!bytes)
            return FALSE;
        g_ptr_array_add(keep, bytes);
        if (!kiln_session_bind_input_shaped(session, i, g_bytes_get_data(bytes, NULL),
                                            tensor->type.rank, tensor->type.dims, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
time_runs(const Options *options, KilnSession *session, Result *result, GError **error)
{
    double start = bench_now();
    if (!kiln_session_run(session, error))
        return FALSE;
    result->first_run = bench_now() - start;
    g_autofree double *samples = g_new(double, MAX_RUNS);
    unsigned n = 0;
    double begin = bench_now(), cpu = bench_cpu_now();
    while (n < MIN_RUNS || (n < MAX_RUNS && bench_now() - begin < options->min_time)) {
        start = bench_now();
        if (!kiln_session_run(session, error))
            return FALSE;
        samples[n++] = bench_now() - start;
    }
    result->cpu = (bench_cpu_now() - cpu) / n;
    result->run = bench_stats(samples, n);
    result->peak_rss = bench_peak_rss();
    return TRUE;
}

/* --- the table of --layers --- */

typedef struct {
    const KilnProfileEntry *entry;
    double median; /* seconds */
} Layer;

static int
slower_first(const void *a, const void *b)
{
    const Layer *x = a, *y = b;
    return x->median < y->median ? 1 : x->median > y->median ? -1 : 0;
}

static void
print_layers(const Options *options, Layer *layers, unsigned n)
{
    double total = 0, all = options->peak * options->threads;
    for (unsigned i = 0; i < n; i++)
        total += layers[i].median;
    qsort(layers, n, sizeof *layers, slower_first);
    printf("%9s %6s %9s %6s %8s  %-18s %s\n", "us", "share%", "GFLOP/s", "peak%", "GB/s", "kernel",
           "node");
    for (unsigned i = 0; i < n; i++) {
        const KilnProfileEntry *e = layers[i].entry;
        double seconds = layers[i].median > 0 ? layers[i].median : 1e-9;
        double gflops = (double)e->flops / seconds * 1e-9;
        printf("%9.1f %6.1f %9.1f %6.1f %8.1f  %-18s %s\n", seconds * 1e6, 100 * seconds / total,
               gflops, 100 * gflops / all, (double)e->bytes / seconds * 1e-9, e->kernel,
               e->node ? e->node : e->instruction);
    }
    printf("%9.1f in all instructions; memory is read at %.1f GB/s\n", total * 1e6,
           bench_bandwidth(MEMORY_BYTES, options->threads));
    fflush(stdout);
}

/* Medians over warm runs of every instruction. The profile sums up over runs. */
static gboolean
time_layers(const Options *options, KilnSession *session, GError **error)
{
    if (!kiln_session_run(session, error)) /* cold */
        return FALSE;
    unsigned n = 0;
    const KilnProfileEntry *const *entries = kiln_session_profile(session, &n);
    g_autofree Layer *layers = g_new0(Layer, n + 1);
    g_autofree double *sums = g_new0(double, n + 1);
    g_autofree double *samples = g_new(double, (gsize)n *LAYER_RUNS + 1);
    for (unsigned i = 0; i < n; i++)
        sums[i] = entries[i]->ms;
    for (unsigned run = 0; run < LAYER_RUNS; run++) {
        if (!kiln_session_run(session, error))
            return FALSE;
        unsigned found = 0;
        entries = kiln_session_profile(session, &found);
        if (found != n) { /* data that is drawn anew took another branch */
            g_set_error(
                error, KILN_ERROR, KILN_ERROR_RUN,
                "--layers: expected the same %u instructions in each run, found %u: another "
                "branch was taken",
                n, found);
            return FALSE;
        }
        for (unsigned i = 0; i < n; i++) {
            samples[(gsize)i * LAYER_RUNS + run] = (entries[i]->ms - sums[i]) * 1e-3;
            sums[i] = entries[i]->ms;
        }
    }
    for (unsigned i = 0; i < n; i++)
        layers[i] =
            (Layer){ entries[i], bench_stats(samples + (gsize)i * LAYER_RUNS, LAYER_RUNS).median };
    print_layers(options, layers, n);
    return TRUE;
}

/* With the dims that --shape and --shape-hint state. */
static KilnModel *
load_model(const KilnShapeTexts *texts, const char *path, GError **error)
{
    g_autoptr(KilnModel) model = kiln_model_load(path, error);
    return model ? kiln_model_with_texts(model, texts, error) : NULL;
}

static KilnProgram *
compile_model(const Options *options, const char *path, const char *pipeline_name, Result *result,
              GError **error)
{
    const KilnShapeTexts texts = { options->shapes, options->shape_hints };
    double start = bench_now();
    g_autoptr(KilnModel) model = load_model(&texts, path, error);
    if (!model)
        return NULL;
    result->load = bench_now() - start;
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_load(pipeline_name, error);
    if (!pipeline)
        return NULL;
    KilnCompileOptions compile = KILN_COMPILE_OPTIONS_INIT;
    compile.pipeline = pipeline;
    compile.target = options->backend;
    compile.threads = options->threads;
    compile.no_verify = options->no_verify;
    compile.no_offload = options->no_offload;
    compile.prefer_memory = g_strcmp0(options->prefer, "memory") == 0;
    KilnShape *shapes = kiln_shapes_of_texts(&texts, model, &compile.n_shapes, error);
    if (!shapes)
        return NULL;
    compile.shapes = shapes;
    start = bench_now();
    KilnProgram *program = kiln_program_compile(model, &compile, error);
    result->compile = bench_now() - start;
    kiln_shapes_free(shapes, compile.n_shapes);
    return program;
}

/* The first load of the process: a vendor library generates code at the first, and keeps it. */
static KilnProgram *
load_program(const Options *options, const char *path, Result *result, GError **error)
{
    double start = bench_now();
    g_autoptr(KilnProgram) program = kiln_program_load(path, NULL, error);
    result->load = bench_now() - start;
    const KilnShapeTexts texts = { options->shapes, options->shape_hints };
    return program && kiln_program_pin_texts(program, &texts, error) ? g_steal_pointer(&program)
                                                                     : NULL;
}

/* Loads or compiles what is at @path. */
static KilnProgram *
open_program(const Options *options, const char *path, const char *pipeline_name, Result *result,
             GError **error)
{
    return kiln_program_is_at(path) ? load_program(options, path, result, error)
                                    : compile_model(options, path, pipeline_name, result, error);
}

static gboolean
measure(const Options *options, const char *path, const char *pipeline_name, Result *result,
        GError **error)
{
    g_autoptr(KilnProgram) program = open_program(options, path, pipeline_name, result, error);
    if (!program)
        return FALSE;
    KilnModel *model = program->model;
    result->memory = (KilnMemoryReport)KILN_MEMORY_REPORT_INIT;
    kiln_program_memory(program, &result->memory, NULL);
    KilnSessionOptions session_options = KILN_SESSION_OPTIONS_INIT;
    session_options.threads = options->threads;
    session_options.profile = TRUE; /* for the operations of each instruction; timed apart */
    g_autoptr(KilnSession) profiled = kiln_session_new(program, &session_options, error);
    g_autoptr(GPtrArray) keep = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    unsigned n = 0;
    const KilnProfileEntry *const *entries = profiled ? kiln_session_profile(profiled, &n) : NULL;
    for (unsigned i = 0; i < n; i++)
        result->flops += entries[i]->flops;
    if (!profiled)
        return FALSE;
    if (!options->layers) /* its arena is no part of the peak */
        g_clear_pointer(&profiled, kiln_session_free);
    session_options.profile = FALSE;
    g_autoptr(KilnSession) session = kiln_session_new(program, &session_options, error);
    return session && bind_inputs(options, session, model, program, keep, error) &&
           time_runs(options, session, result, error) &&
           (!options->layers || (bind_inputs(options, profiled, model, program, keep, error) &&
                                 time_layers(options, profiled, error)));
}

/* --- in the parent --- */

static bool
measure_apart(const Options *options, const char *path, const char *pipeline, Result *result)
{
    int ends[2];
    *result = (Result){ 0 };
    if (pipe(ends) != 0)
        return false;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        g_autoptr(GError) error = NULL;
        close(ends[0]);
        if (!measure(options, path, pipeline, result, &error))
            g_strlcpy(result->error, error->message, sizeof result->error);
        ssize_t written = write(ends[1], result, sizeof *result);
        _exit(written == sizeof *result ? 0 : 1);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t n = 1; child > 0 && n > 0 && got < sizeof *result; got += (size_t)MAX(n, 0))
        n = read(ends[0], (char *)result + got, sizeof *result - got);
    close(ends[0]);
    int status = 0;
    if (child > 0)
        waitpid(child, &status, 0);
    if (got < sizeof *result)
        g_snprintf(result->error, sizeof result->error,
                   "the measuring process ended with status %d", status);
    return !*result->error;
}

static char *
short_name(const char *path)
{
    g_autofree char *base = g_path_get_basename(path);
    if (strcmp(base, "model.onnx") != 0)
        return g_steal_pointer(&base);
    g_autofree char *dir = g_path_get_dirname(path);
    return g_path_get_basename(dir);
}

static void
add_entry(JsonArray *benchmarks, const char *name, const Options *options, const Result *result,
          double peak)
{
    double gflops = (double)result->flops / result->run.median * 1e-9;
    JsonObject *entry = bench_json_entry(name, options->threads, result->run.n,
                                         result->run.median * 1e3, result->cpu * 1e3);
    const struct {
        const char *key;
        double value;
    } counters[] = {
        { "min_ms", result->run.min * 1e3 },
        { "p90_ms", result->run.p90 * 1e3 },
        { "p99_ms", result->run.p99 * 1e3 },
        { "load_ms", result->load * 1e3 },
        { "compile_ms", result->compile * 1e3 },
        { "first_run_ms", result->first_run * 1e3 },
        { "gflops", gflops },
        { "peak_share", gflops / (peak * options->threads) },
        { "arena_bytes", (double)result->memory.arena },
        { "lb_live_bytes", (double)result->memory.lb_live },
        { "weight_bytes", (double)result->memory.weights },
        { "peak_rss_bytes", (double)result->peak_rss },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(counters); i++)
        json_object_set_double_member(entry, counters[i].key, counters[i].value);
    json_array_add_object_element(benchmarks, entry);
}

static void
print_row(const char *name, const Options *options, const Result *result, double peak)
{
    double gflops = (double)result->flops / result->run.median * 1e-9;
    printf("%-30s %9.3f %9.3f %9.3f %9.2f %9.1f %9.2f %8.2f %8.2f %7.1f %8.1f %5.1f\n", name,
           result->run.min * 1e3, result->run.median * 1e3, result->run.p90 * 1e3,
           result->load * 1e3, result->compile * 1e3, result->first_run * 1e3,
           (double)result->memory.arena / 1e6, (double)result->memory.lb_live / 1e6,
           (double)result->peak_rss / 1e6, gflops, 100 * gflops / (peak * options->threads));
    fflush(stdout);
}

static int
measure_all(Options *options)
{
    double peak = options->peak = bench_fma_peak();
    JsonArray *benchmarks = json_array_new();
    bool to_stdout = options->json && strcmp(options->json, "-") == 0;
    static char *only_default[] = { "default", NULL };
    char **pipelines = options->pipelines ? options->pipelines : only_default;
    int failed = 0;
    if (!to_stdout) {
        printf("%s; %d threads, FMA peak %.1f GFLOP/s per thread, passes %s\n", kiln_build_info(),
               options->threads, peak, options->no_verify ? "not verified" : "verified");
        printf("%-30s %9s %9s %9s %9s %9s %9s %8s %8s %7s %8s %5s\n", "model", "min ms", "median",
               "p90", "load", "compile", "first run", "arena MB", "lb_live", "RSS MB", "GFLOP/s",
               "peak%");
    }
    for (char **model = options->models; *model; model++) {
        for (char **pipeline = pipelines; *pipeline; pipeline++) {
            Result result;
            g_autofree char *base = short_name(*model);
            g_autofree char *name =
                pipelines[1] ? g_strdup_printf("%s/%s", base, *pipeline) : g_strdup(base);
            if (!measure_apart(options, *model, *pipeline, &result)) {
                fprintf(stderr, "%s: %s\n", name, result.error);
                failed = 1;
                continue;
            }
            if (!to_stdout)
                print_row(name, options, &result, peak);
            add_entry(benchmarks, name, options, &result, peak);
        }
    }
    JsonObject *context = bench_json_context("kiln-bench-model");
    json_object_set_double_member(context, "fma_peak_gflops", peak);
    json_object_set_boolean_member(context, "verify", !options->no_verify);
    return bench_json_write(options->json, context, benchmarks) ? failed : 1;
}

/* --- at one extent after the other --- */

typedef struct {
    const Options *options;
    const char *name, *dim;
    JsonArray *benchmarks;
} Sweeping;

static void
show_point(const BenchSweepPoint *point, void *data)
{
    const Sweeping *sweeping = data;
    double first = point->first * 1e3, later = point->later.median * 1e3;
    g_autofree char *name =
        g_strdup_printf("%s/%s:%" G_GINT64_FORMAT, sweeping->name, sweeping->dim, point->extent);
    JsonObject *entry =
        bench_json_entry(name, sweeping->options->threads, point->later.n, later, point->cpu * 1e3);
    json_object_set_int_member(entry, "extent", point->extent);
    json_object_set_double_member(entry, "first_run_ms", first);
    json_object_set_double_member(entry, "min_ms", point->later.min * 1e3);
    json_object_set_double_member(entry, "first_ratio", first / later);
    json_array_add_object_element(sweeping->benchmarks, entry);
    if (g_strcmp0(sweeping->options->json, "-") == 0)
        return;
    printf("%-30s %9" G_GINT64_FORMAT " %11.3f %11.3f %7.2f\n", sweeping->name, point->extent,
           first, later, first / later);
    fflush(stdout);
}

static gboolean
sweep_model(const Sweeping *sweeping, const BenchSweep *sweep, const char *path, GError **error)
{
    const Options *options = sweeping->options;
    Result result = { 0 };
    g_autoptr(KilnProgram) program = open_program(
        options, path, options->pipelines ? *options->pipelines : "default", &result, error);
    double start = bench_now();
    if (!program || !kiln_program_prepare(program, NULL, 0, error))
        return FALSE;
    if (g_strcmp0(options->json, "-") != 0)
        printf("%s: prepared in %.2f ms\n%-30s %9s %11s %11s %7s\n", sweeping->name,
               (result.load + result.compile + bench_now() - start) * 1e3, "model", sweep->dim,
               "first ms", "median", "ratio");
    return bench_sweep(program, sweep, options->threads, options->min_time, show_point,
                       (void *)sweeping, error);
}

static int
sweep_all(const Options *options)
{
    JsonArray *benchmarks = json_array_new();
    BenchSweep sweep;
    g_autoptr(GError) error = NULL;
    int failed = 0;
    if (!bench_sweep_parse(options->sweep, &sweep, &error)) {
        fprintf(stderr, "kiln-bench-model: %s\n", error->message);
        json_array_unref(benchmarks);
        return 2;
    }
    if (g_strcmp0(options->json, "-") != 0)
        printf("%s; %d threads\n", kiln_build_info(), options->threads);
    for (char **model = options->models; *model; model++) {
        g_autofree char *name = short_name(*model);
        Sweeping sweeping = { options, name, sweep.dim, benchmarks };
        if (sweep_model(&sweeping, &sweep, *model, &error))
            continue;
        fprintf(stderr, "%s: %s\n", name, error->message);
        g_clear_error(&error);
        failed = 1;
    }
    JsonObject *context = bench_json_context("kiln-bench-model");
    json_object_set_string_member(context, "sweep", options->sweep);
    bench_sweep_clear(&sweep);
    return bench_json_write(options->json, context, benchmarks) ? failed : 1;
}

/* --- beside other processes --- */

typedef struct {
    double mean, p99, rate; /* seconds, seconds, runs a second */
} Loaded;

static double
median_of(double *values, int n)
{
    return bench_stats(values, (unsigned)n).median;
}

/* Medians over the rounds of one thread and of the team, which take turns. */
static bool
measure_loaded(const Options *options, const char *path, const char *name, Loaded out[2])
{
    double *values[2][3];
    for (int i = 0; i < 6; i++)
        values[i / 3][i % 3] = g_new0(double, options->rounds);
    bool good = true;
    for (int i = 0; good && i < 2 * options->rounds; i++) {
        Options one = *options;
        one.threads = i % 2 ? options->threads : 1;
        BenchLoad *load = bench_load_start(options->load, options->load_pin);
        Result result = { 0 };
        good = load && measure_apart(&one, path,
                                     options->pipelines ? *options->pipelines : "default", &result);
        bench_load_stop(load);
        if (!good)
            fprintf(stderr, "%s: %s\n", name, load ? result.error : "no process could be started");
        values[i % 2][0][i / 2] = result.run.mean;
        values[i % 2][1][i / 2] = result.run.p99;
        values[i % 2][2][i / 2] = good ? 1 / result.run.mean : 0;
    }
    for (int i = 0; good && i < 2; i++)
        out[i] = (Loaded){ median_of(values[i][0], options->rounds),
                           median_of(values[i][1], options->rounds),
                           median_of(values[i][2], options->rounds) };
    for (int i = 0; i < 6; i++)
        g_free(values[i / 3][i % 3]);
    return good;
}

static int
measure_all_loaded(const Options *options)
{
    JsonArray *benchmarks = json_array_new();
    int failed = 0;
    printf("%s; %d busy processes%s, %d rounds of %g s\n", kiln_build_info(), options->load,
           options->load_pin ? " on one processor" : "", options->rounds, options->min_time);
    printf("%-30s %20s %20s %20s\n%-30s", "", "mean ms", "p99 ms", "runs/s", "model");
    for (int i = 0; i < 3; i++)
        printf(" %6s %6s %6s", "1", "team", "ratio");
    printf("\n");
    for (char **model = options->models; *model; model++) {
        g_autofree char *name = short_name(*model);
        Loaded found[2];
        if (!measure_loaded(options, *model, name, found)) {
            failed = 1;
            continue;
        }
        const double figures[3][2] = { { found[0].mean * 1e3, found[1].mean * 1e3 },
                                       { found[0].p99 * 1e3, found[1].p99 * 1e3 },
                                       { found[0].rate, found[1].rate } };
        printf("%-30s", name);
        for (int i = 0; i < 3; i++)
            printf(i == 2 ? " %6.0f %6.0f %6.2f" : " %6.3f %6.3f %6.2f", figures[i][0],
                   figures[i][1], figures[i][1] / figures[i][0]);
        printf("\n");
        fflush(stdout);
        for (int i = 0; i < 2; i++) {
            JsonObject *entry = bench_json_entry(name, i ? options->threads : 1, options->rounds,
                                                 found[i].mean * 1e3, found[i].mean * 1e3);
            json_object_set_double_member(entry, "p99_ms", found[i].p99 * 1e3);
            json_object_set_double_member(entry, "runs_per_second", found[i].rate);
            json_array_add_object_element(benchmarks, entry);
        }
    }
    JsonObject *context = bench_json_context("kiln-bench-model");
    json_object_set_int_member(context, "load", options->load);
    json_object_set_boolean_member(context, "load_pinned", options->load_pin);
    return bench_json_write(options->json, context, benchmarks) ? failed : 1;
}

int
main(int argc, char **argv)
{
    Options options = { .min_time = 0, .rounds = LOAD_ROUNDS };
    const GOptionEntry entries[] = {
        { "threads", 0, 0, G_OPTION_ARG_INT, &options.threads,
          "Run on N threads (default: one for each processor)", "N" },
        { "min-time", 0, 0, G_OPTION_ARG_DOUBLE, &options.min_time,
          "Measure for at least S seconds (default 1; 5 with --load, 0.02 with --sweep)", "S" },
        { "shape", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.shapes,
          "Set the shape of an input, as in kiln run; may be repeated", "NAME=DIMS" },
        { "shape-hint", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.shape_hints,
          "Expect numbers near N for an open dim; may be repeated", "DIM=N" },
        { "sweep", 0, 0, G_OPTION_ARG_STRING, &options.sweep,
          "Print the first run and the median of later runs at each extent of an open dim",
          "DIM=LO..HI[:STEP]" },
        { "load", 0, 0, G_OPTION_ARG_INT, &options.load,
          "Keep N processes busy during the runs, and compare one thread with the team", "N" },
        { "load-pin", 0, 0, G_OPTION_ARG_NONE, &options.load_pin,
          "Keep the busy processes on one processor", NULL },
        { "rounds", 0, 0, G_OPTION_ARG_INT, &options.rounds,
          "With --load, measure N times and print medians (default 5)", "N" },
        { "pipeline", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options.pipelines,
          "Measure under this pipeline; may be repeated", "F" },
        { "inputs", 0, 0, G_OPTION_ARG_FILENAME, &options.inputs,
          "Read input_N.pb of this folder (default: random inputs)", "DIR" },
        { "backend", 0, 0, G_OPTION_ARG_STRING, &options.backend,
          "Use the kernels of cpu or ref (default: cpu)", "NAME" },
        { "layers", 0, 0, G_OPTION_ARG_NONE, &options.layers,
          "Print the median time of every instruction, slowest first", NULL },
        { "no-offload", 0, 0, G_OPTION_ARG_NONE, &options.no_offload, "Use Kiln's own kernels only",
          NULL },
        { "prefer", 0, 0, G_OPTION_ARG_STRING, &options.prefer,
          "Optimize for speed or memory (default: speed)", "WHAT" },
        { "no-verify", 0, 0, G_OPTION_ARG_NONE, &options.no_verify,
          "Compile without verifying after each pass", NULL },
        { "json", 0, 0, G_OPTION_ARG_FILENAME, &options.json,
          "Write JSON in the format of Google Benchmark; `-` is standard output", "F" },
        { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.models, NULL, "MODEL…" },
        G_OPTION_ENTRY_NULL,
    };
    setlocale(LC_CTYPE, ""); /* what --help is written in */
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(context, "Measures latency, compile time and memory of models.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GError) error = NULL;
    int status = 2;
    if (!g_option_context_parse(context, &argc, &argv, &error))
        fprintf(stderr, "kiln-bench-model: %s\n", error->message);
    else if (!options.models)
        fprintf(stderr, "kiln-bench-model: expected a model, found none\n");
    else if (options.threads < 0 || options.threads > 1024)
        fprintf(stderr, "kiln-bench-model: --threads: expected 1 to 1024, found %d\n",
                options.threads);
    else if (options.load < 0 || options.load > MAX_LOAD)
        fprintf(stderr, "kiln-bench-model: --load: expected 1 to %d, found %d\n", MAX_LOAD,
                options.load);
    else if (options.rounds < 1 || options.rounds > 1000)
        fprintf(stderr, "kiln-bench-model: --rounds: expected 1 to 1000, found %d\n",
                options.rounds);
    else if (options.prefer && strcmp(options.prefer, "speed") != 0 &&
             strcmp(options.prefer, "memory") != 0)
        fprintf(stderr, "kiln-bench-model: --prefer: expected speed or memory, found %s\n",
                options.prefer);
    else if (options.layers && options.json && strcmp(options.json, "-") == 0)
        fprintf(stderr, "kiln-bench-model: --layers: expected --json of a file, found -\n");
    else if (options.sweep && (options.load || options.layers || options.inputs))
        fprintf(stderr, "kiln-bench-model: --sweep: expected no --load, --layers or --inputs\n");
    else {
        options.threads = options.threads ? options.threads : kiln_processor_count();
        if (options.min_time <= 0)
            options.min_time = options.load ? 5 : options.sweep ? 0.02 : 1;
        status = options.sweep  ? sweep_all(&options)
                 : options.load ? measure_all_loaded(&options)
                                : measure_all(&options);
    }
    g_free(options.backend);
    g_free(options.json);
    g_free(options.inputs);
    g_free(options.prefer);
    g_free(options.sweep);
    g_strfreev(options.shapes);
    g_strfreev(options.shape_hints);
    g_strfreev(options.pipelines);
    g_strfreev(options.models);
    return status;
}
