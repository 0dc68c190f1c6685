/* SPDX-License-Identifier: Apache-2.0 */
/* Options that all sub-commands take, and what they become. */
#include "passes/context/options.h"
#include "tools/command.h"

#include "graph/base/budget.h"
#include "graph/base/write_file.h"
#include "kiln.h"
#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/suggest.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "runtime/program_file.h"
#include "runtime/shapes/texts.h"
#include "runtime/specialise.h"
#include "runtime/targets.h"
#include "runtime/tensors/file.h"
#include "tools/inputs.h"
#include "tools/overwrite.h"
#include "tools/trace.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* --- parsing --- */

enum {
    MAX_THREADS = 1024
};

static gboolean G_GNUC_PRINTF(3, 4)
    throw_usage(const KilnUsage *usage, GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    return kiln_throw(error, KILN_ERROR_USAGE, "%s\n`kiln %s --help` shows the options.", message,
                      usage->command);
}

static void
add_common(GOptionContext *context, KilnOptions *options)
{
    g_autofree char *names = kiln_pipeline_shipped_names();
    options->pipeline_help =
        g_strdup_printf("Use a YAML file, or one of %s (default: default)", names);
    const GOptionEntry entries[] = {
        { "pipeline", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->pipelines,
          options->pipeline_help, "F" },
        { "passes", 0, 0, G_OPTION_ARG_STRING, &options->passes,
          "Run these passes in place of a pipeline: a,b{x=1},c", "LIST" },
        { "backend", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->backends,
          "Use the fast kernels (cpu) or the naive reference kernels (ref) (default: cpu)",
          "ref|cpu" },
        { "no-offload", 0, 0, G_OPTION_ARG_NONE, &options->no_offload,
          "Use Kiln's own kernels only, and one algorithm for each operator", NULL },
        { "threads", 0, 0, G_OPTION_ARG_INT, &options->threads,
          "Run on N threads (default: 0, one for each processor)", "N" },
        { "mode", 0, 0, G_OPTION_ARG_STRING, &options->mode,
          "Run the entries of the pipeline for inference or training (default: infer)",
          "infer|train" },
        { "const", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->constness,
          "Take an input as constant: compile:NAME or run:NAME", "WHEN:NAME" },
        { "shape", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->shapes,
          "Set the shape of an input: x=1x3x224x224; a dim may be a range: x=1..64x3",
          "NAME=DIMS" },
        { "shape-hint", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->shape_hints,
          "Expect numbers near N for an open dim", "DIM=N" },
        { "prefer", 0, 0, G_OPTION_ARG_STRING, &options->prefer,
          "Optimize for speed or for little memory (default: speed)", "speed|memory" },
        { "load-plugin", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->plugins,
          "Load passes and operators from this shared object; may be given several times", "F" },
        { "load-pass-plugin", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->plugins,
          "The same, by its older name", "F" },
        { "cache-dir", 0, 0, G_OPTION_ARG_FILENAME, &options->cache_dir,
          "Keep folded constants in this directory for the next run", "D" },
        { "no-verify", 0, 0, G_OPTION_ARG_NONE, &options->no_verify,
          "Do not verify the model after each pass", NULL },
        { "accept-newer-opsets", 0, 0, G_OPTION_ARG_NONE, &options->newer_opsets,
          "Read operators of ONNX opsets newer than 28 as those of opset 28", NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &options->json, "Print the result as JSON", NULL },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &options->quiet, "Print results only", NULL },
        { "trace", 0, 0, G_OPTION_ARG_FILENAME, &options->trace,
          "Write a trace for Perfetto or chrome://tracing", "F" },
        G_OPTION_ENTRY_NULL,
    };
    g_option_context_add_main_entries(context, entries, NULL);
}

static void
add_passes(GOptionContext *context, KilnOptions *options)
{
    const GOptionEntry entries[] = {
        { "skip", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->skip, "Leave out these passes: a,b",
          "PASS" },
        { "only", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->only, "Run only these passes: a,b",
          "PASS" },
        { "stop-after", 0, 0, G_OPTION_ARG_INT64, &options->stop_after,
          "Stop after N entries of the pipeline", "N" },
        { "bisect-limit", 0, 0, G_OPTION_ARG_INT64, &options->bisect_limit,
          "Stop after N applications of passes", "N" },
        { "print-after", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->print_after,
          "Print the text after these passes (or `all`) to standard error", "PASS" },
        { "print-changed", 0, 0, G_OPTION_ARG_NONE, &options->print_changed,
          "Print each rewrite, and the text after passes that changed it", NULL },
        { "dump-dir", 0, 0, G_OPTION_ARG_FILENAME, &options->dump_dir,
          "Write the text after each application of a pass to this directory", "D" },
        { "check", 0, 0, G_OPTION_ARG_NONE, &options->check,
          "Run the model before and after each pass on ref and compare", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GOptionGroup *group = g_option_group_new(
        "passes", "Options of passes:", "Options that act on passes", NULL, NULL);
    g_option_group_add_entries(group, entries);
    g_option_context_add_group(context, group);
}

static gboolean
check_values(const KilnUsage *usage, const KilnOptions *options, GError **error)
{
    if (options->threads < 0 || options->threads > MAX_THREADS)
        return throw_usage(usage, error, "--threads: expected 0 to %d, found %d", MAX_THREADS,
                           options->threads);
    if (options->mode && strcmp(options->mode, "infer") != 0 && strcmp(options->mode, "train") != 0)
        return throw_usage(usage, error, "--mode: expected infer or train, found %s",
                           options->mode);
    if (options->prefer && strcmp(options->prefer, "speed") != 0 &&
        strcmp(options->prefer, "memory") != 0)
        return throw_usage(usage, error, "--prefer: expected speed or memory, found %s",
                           options->prefer);
    if (options->pipeline && options->passes && !usage->two_sides)
        return throw_usage(usage, error,
                           "--pipeline and --passes: expected one of them, found both");
    if (options->json && options->trace && kiln_is_stdout(options->trace))
        return throw_usage(usage, error,
                           "--json and --trace -: expected one on standard output, found both");
    if (options->stop_after < 0)
        return throw_usage(usage, error,
                           "--stop-after: expected 0 or more, found %" G_GINT64_FORMAT,
                           options->stop_after);
    if (options->bisect_limit < 0)
        return throw_usage(usage, error,
                           "--bisect-limit: expected 0 or more, found %" G_GINT64_FORMAT,
                           options->bisect_limit);
    for (char **backend = options->backends; backend && *backend; backend++) {
        if (!kiln_target_by_name(*backend, error))
            return FALSE;
    }
    return TRUE;
}

static const char *
last_of(char **list)
{
    return list && *list ? list[g_strv_length(list) - 1] : NULL;
}

static gboolean
check_operands(const KilnUsage *usage, char **rest, GError **error)
{
    unsigned n = rest ? g_strv_length(rest) : 0;
    switch (usage->n_operands) {
    case KILN_OPERANDS_NONE:
        return n == 0 || throw_usage(usage, error, "expected no operand, found %s", rest[0]);
    case KILN_OPERANDS_ONE:
        return n == 1 ||
               throw_usage(usage, error, "expected one operand (%s), found %u", usage->operands, n);
    case KILN_OPERANDS_SOME:
        return n >= 1 || throw_usage(usage, error, "expected %s, found none", usage->operands);
    case KILN_OPERANDS_TWO:
        return n == 1 || n == 2 ||
               throw_usage(usage, error, "expected one or two operands (%s), found %u",
                           usage->operands, n);
    case KILN_OPERANDS_OPTIONAL:
        break;
    }
    return n <= 1 ||
           throw_usage(usage, error, "expected one operand (%s), found %u", usage->operands, n);
}

/* Each of @words may be a list itself: "a,b". */
static void
split_lists(char ***words)
{
    if (!*words)
        return;
    g_autofree char *joined = g_strjoinv(",", *words);
    g_strfreev(*words);
    /* An empty text has no parts, but names no pass either. */
    *words = *joined ? g_strsplit(joined, ",", -1) : g_strdupv((char *[]){ joined, NULL });
}

/* The option that is there and nearest to the first of @argv that is not: GLib does not say. */
static char *
suggest_option(GOptionContext *context, int argc, char **argv)
{
    g_autofree char *text = g_option_context_get_help(context, FALSE, NULL);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (char **line = lines; *line; line++) {
        const char *name = g_str_has_prefix(*line, "  -") ? strstr(*line, "--") : NULL;
        if (name)
            g_ptr_array_add(names, g_strndup(name, strcspn(name, "= ")));
    }
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        g_autofree char *name = g_strndup(argv[i], strcspn(argv[i], "="));
        if (g_str_has_prefix(name, "--") &&
            !g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
            return kiln_suggest(name, (const char *const *)names->pdata, names->len);
    }
    return g_strdup("");
}

/* FALSE: @error is set, or help was printed and is not. */
static gboolean
parse(const KilnUsage *usage, int argc, char **argv, KilnOptions *options, char ***out_rest,
      GError **error)
{
    gboolean help = FALSE;
    const GOptionEntry help_entries[] = {
        { "help", 'h', 0, G_OPTION_ARG_NONE, &help, "Show this help", NULL },
        { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, out_rest, NULL, usage->operands },
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_help_enabled(context, FALSE);
    g_option_context_set_summary(context, usage->summary);
    if (usage->entries)
        g_option_context_add_main_entries(context, usage->entries, NULL);
    if (usage->inputs)
        kiln_inputs_add(context, usage->inputs);
    add_common(context, options);
    g_option_context_add_main_entries(context, help_entries, NULL);
    kiln_limits_add(context, options);
    if (usage->passes)
        add_passes(context, options);
    g_autofree char *program = g_strdup_printf("kiln %s", usage->command);
    g_set_prgname(program);
    g_autoptr(GError) inner = NULL;
    if (!g_option_context_parse(context, &argc, &argv, &inner)) {
        bool unknown = g_error_matches(inner, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION);
        g_autofree char *hint = unknown ? suggest_option(context, argc, argv) : g_strdup("");
        return throw_usage(usage, error, "%s%s", inner->message, hint);
    }
    if (help) {
        g_autofree char *text = g_option_context_get_help(context, FALSE, NULL);
        fputs(text, stdout);
        return FALSE;
    }
    options->pipeline = last_of(options->pipelines);
    options->backend = last_of(options->backends);
    split_lists(&options->skip);
    split_lists(&options->only);
    split_lists(&options->print_after);
    return check_values(usage, options, error) && check_operands(usage, *out_rest, error);
}

static void
options_clear(KilnOptions *options)
{
    char *texts[] = { options->passes,        options->mode,         options->prefer,
                      options->trace,         options->dump_dir,     options->cache_dir,
                      options->pipeline_help, options->memory_limit, options->time_limit };
    char **lists[] = { options->pipelines, options->backends,    options->constness,
                       options->shapes,    options->shape_hints, options->skip,
                       options->only,      options->print_after, options->plugins };
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(texts[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++)
        g_strfreev(lists[i]);
    kiln_trace_free(options->progress.trace);
    *options = (KilnOptions){ 0 };
}

static int
status_of(const GError *error)
{
    if (error->domain != KILN_ERROR)
        return KILN_EXIT_FAILED;
    switch (error->code) {
    case KILN_ERROR_USAGE:
        return KILN_EXIT_USAGE;
    case KILN_ERROR_UNSUPPORTED:
        return KILN_EXIT_UNSUPPORTED;
    case KILN_ERROR_MISMATCH:
        return KILN_EXIT_MISMATCH;
    default:
        return KILN_EXIT_FAILED;
    }
}

/* Registers operators before a model is loaded: those of the options, and of pipeline files. What
 * is wrong with a pipeline is told where it is used. */
static gboolean
load_operators(const KilnOptions *options, GError **error)
{
    const KilnPipelineSource plugins = { .text = "",
                                         .plugins = (const char *const *)options->plugins };
    g_autoptr(KilnPipeline) of_options =
        options->plugins ? kiln_pipeline_open(&plugins, error) : NULL;
    if (options->plugins && !of_options)
        return FALSE;
    for (char **name = options->pipelines; name && *name; name++) {
        const KilnPipelineSource source = { .name = *name };
        KilnPipeline *pipeline = kiln_pipeline_open(&source, NULL);
        if (pipeline)
            kiln_pipeline_unref(pipeline);
    }
    return TRUE;
}

/* All of it is held to the limits: loading, compiling, running. */
static int
work(const KilnUsage *usage, KilnOptions *options, char **operands, void *data, GError **error)
{
    KilnLimits limits;
    if (!kiln_limits_parse(options, &limits, error) ||
        !kiln_limits_check_files(options, operands, error))
        return KILN_EXIT_USAGE;
    g_autoptr(KilnBudget) budget = kiln_budget_new(&limits);
    KilnBudget *before = kiln_budget_enter(budget);
    int status = KILN_EXIT_FAILED;
    if (load_operators(options, error))
        status = usage->work(options, operands, data, error);
    kiln_budget_leave(before);
    return status;
}

int
kiln_command(const KilnUsage *usage, int argc, char **argv, void *data)
{
    KilnOptions options = { .stop_after = KILN_NO_LIMIT,
                            .bisect_limit = KILN_NO_LIMIT,
                            .node_limit = KILN_NO_LIMIT };
    g_auto(GStrv) rest = NULL;
    g_autoptr(GError) error = NULL;
    int status = KILN_EXIT_OK;
    if (parse(usage, argc, argv, &options, &rest, &error)) {
        options.progress.trace = options.trace ? kiln_trace_new() : NULL;
        status = work(usage, &options, rest, data, &error);
        if (!error && options.trace)
            kiln_trace_write(options.progress.trace, options.trace, &error);
    }
    kiln_clear_progress(&options);
    if (error) {
        fflush(stdout); /* in order, where both go to one place */
        g_autofree char *message = kiln_printable(error->message);
        fprintf(stderr, "kiln %s: %s\n", usage->command, message);
        status = status_of(error);
    }
    options_clear(&options);
    return status;
}

/* --- what options become --- */

KilnPipeline *
kiln_options_pipeline(const KilnOptions *options, GError **error)
{
    KilnPipelineSource source = { .plugins = (const char *const *)options->plugins };
    if (!options->passes) {
        source.name = options->pipeline ? options->pipeline : "default";
        return kiln_pipeline_open(&source, error);
    }
    source.text = options->passes;
    g_autoptr(GError) inner = NULL;
    KilnPipeline *pipeline = kiln_pipeline_open(&source, &inner);
    /* What is wrong stands on the command line, not in a file. */
    if (!pipeline && g_str_has_prefix(inner->message, "passes:"))
        kiln_throw(error, KILN_ERROR_USAGE, "--%s", inner->message);
    else if (!pipeline)
        g_propagate_error(error, g_steal_pointer(&inner));
    return pipeline;
}

gboolean
kiln_options_compile(KilnOptions *options, const KilnModel *model, KilnPipeline *pipeline,
                     KilnCompileOptions *out, KilnShape **shapes, GError **error)
{
    *out = (KilnCompileOptions)KILN_COMPILE_OPTIONS_INIT;
    out->pipeline = pipeline;
    out->target = options->backend ? options->backend : "cpu";
    out->threads = options->threads;
    out->train = options->mode && strcmp(options->mode, "train") == 0;
    out->no_verify = options->no_verify;
    out->prefer_memory = g_strcmp0(options->prefer, "memory") == 0;
    out->cache_dir = options->cache_dir;
    out->no_offload = options->no_offload;
    out->progress = kiln_show_progress;
    out->data = options;
    const KilnShapeTexts texts = { options->shapes, options->shape_hints };
    *shapes = kiln_shapes_of_texts(&texts, model, &out->n_shapes, error);
    out->shapes = *shapes;
    return *shapes != NULL;
}

/* Dumps and rewrites: standard output is for the result. */
static void
show_text(const char *text, void *data)
{
    kiln_clear_progress(data);
    fputs(text, stderr);
}

static gboolean
check_pass_ids(const KilnOptions *options, const KilnPipeline *pipeline, GError **error)
{
    const struct {
        const char *option;
        char **ids;
    } lists[] = { { "skip", options->skip },
                  { "only", options->only },
                  { "print-after", options->print_after } };
    for (size_t l = 0; l < G_N_ELEMENTS(lists); l++) {
        for (char **id = lists[l].ids; id && *id; id++) {
            bool all = lists[l].ids == options->print_after && strcmp(*id, "all") == 0;
            if (all || kiln_pass_pipeline_find(pipeline->passes, *id))
                continue;
            g_autofree char *hint = kiln_suggest_pass(pipeline->passes, *id);
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "--%s: expected a pass, found %s%s\n`kiln passes` lists them.",
                              lists[l].option, **id ? *id : "an empty name", hint);
        }
    }
    return TRUE;
}

gboolean
kiln_options_passes(KilnOptions *options, const KilnPipeline *pipeline, KilnPassOptions *out,
                    GError **error)
{
    *out = (KilnPassOptions)KILN_PASS_OPTIONS_INIT;
    out->target = kiln_target_choose(options->backend ? options->backend : "cpu",
                                     !options->no_offload, error);
    if (!out->target || !check_pass_ids(options, pipeline, error))
        return FALSE;
    out->check_target = kiln_target_by_name("ref", NULL);
    out->threads = options->threads ? options->threads : kiln_processor_count();
    out->mode =
        options->mode && strcmp(options->mode, "train") == 0 ? KILN_MODE_TRAIN : KILN_MODE_INFER;
    out->verify = !options->no_verify;
    out->prefer_memory = g_strcmp0(options->prefer, "memory") == 0;
    out->one_algorithm = options->no_offload;
    out->check_numerics = options->check;
    out->check_changed = options->check;
    out->skip = (const char *const *)options->skip;
    out->only = (const char *const *)options->only;
    out->stop_after = options->stop_after == KILN_NO_LIMIT ? -1 : options->stop_after;
    out->bisect_limit = options->bisect_limit == KILN_NO_LIMIT ? -1 : options->bisect_limit;
    out->print_after = (const char *const *)options->print_after;
    out->print_changed = options->print_changed;
    out->dump_dir = options->dump_dir;
    out->log_rewrites = options->print_changed && !options->quiet;
    out->dump = out->log = show_text;
    out->progress = kiln_show_progress;
    out->data = options;
    return TRUE;
}

KilnBinding *
kiln_options_bindings(const KilnOptions *options, const KilnModel *model, GError **error)
{
    const KilnShapeTexts texts = { options->shapes, options->shape_hints };
    unsigned n_shapes;
    if (model->ir_text && options->shapes)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "--shape: expected a model at the graph level, found %s at the ir "
                               "level",
                               model->name);
    KilnShape *shapes = kiln_shapes_of_texts(&texts, model, &n_shapes, error);
    if (!shapes)
        return NULL;
    KilnBinding *bindings = g_new0(KilnBinding, model->inputs.n + 1);
    for (unsigned i = 0; i < model->inputs.n; i++) {
        bindings[i].rank = KILN_RANK_UNKNOWN;
        for (unsigned s = 0; s < n_shapes; s++) {
            if (strcmp(model->inputs.info[i].name, shapes[s].input) != 0)
                continue;
            bindings[i].rank = shapes[s].rank;
            memcpy(bindings[i].dims, shapes[s].dims, sizeof bindings[i].dims);
        }
    }
    kiln_shapes_free(shapes, n_shapes);
    return bindings;
}

/* --- loading --- */

/* What was decided when the program was compiled. */
static gboolean
check_settled(const KilnOptions *options, const char *path, GError **error)
{
    const struct {
        const char *option;
        bool given;
    } settled[] = {
        { "pipeline", options->pipelines },
        { "passes", options->passes },
        { "backend", options->backends },
        { "no-offload", options->no_offload },
        { "mode", options->mode },
        { "const", options->constness },
        { "shape-hint", options->shape_hints },
        { "prefer", options->prefer },
        { "no-verify", options->no_verify },
        { "skip", options->skip },
        { "only", options->only },
        { "stop-after", options->stop_after != KILN_NO_LIMIT },
        { "bisect-limit", options->bisect_limit != KILN_NO_LIMIT },
        { "print-after", options->print_after },
        { "print-changed", options->print_changed },
        { "dump-dir", options->dump_dir },
        { "check", options->check },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(settled); i++) {
        if (settled[i].given)
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "--%s: expected a model, found %s, which is compiled already",
                              settled[i].option, path);
    }
    return TRUE;
}

/* @bytes NULL: of the file at @path. */
static KilnModel *
load_program(KilnOptions *options, const char *path, GBytes *bytes, KilnProgram **out,
             GError **error)
{
    KilnLoadOptions load = KILN_LOAD_OPTIONS_INIT;
    load.cache_dir = options->cache_dir;
    if (options->untrusted)
        return kiln_throw_null(error, KILN_ERROR_FORMAT,
                               "%s: --untrusted: expected an ONNX model, found a compiled program, "
                               "which is run as it is",
                               path);
    if (!check_settled(options, path, error))
        return NULL;
    *out = bytes ? kiln_program_load_bytes(bytes, path, &load, error)
                 : kiln_program_load(path, &load, error);
    const KilnShapeTexts texts = { options->shapes, options->shape_hints };
    if (*out && !kiln_program_pin_texts(*out, &texts, error))
        g_clear_pointer(out, kiln_program_unref);
    return *out ? kiln_model_ref((*out)->model) : NULL;
}

/* From a pipe or standard input, which is read once, whichever of the two it holds. */
static KilnModel *
load_stream(KilnOptions *options, const char *path, KilnProgram **out_program, GError **error)
{
    g_autoptr(GBytes) bytes = kiln_file_map(path, error);
    if (!bytes)
        return NULL;
    if (out_program && kiln_program_file_is(bytes))
        return load_program(options, path, bytes, out_program, error);
    const KilnModelOptions given = kiln_limits_model_options(options);
    return kiln_model_load_alone(bytes, path, &given, error);
}

/* Beside a pipe, and what a process was given as its standard input, no other file lies. */
static KilnModel *
load_any(KilnOptions *options, const char *path, KilnProgram **out_program, GError **error)
{
    if (!kiln_file_has_place(path))
        return load_stream(options, path, out_program, error);
    if (out_program && kiln_program_is_at(path))
        return load_program(options, path, NULL, out_program, error);
    const KilnModelOptions given = kiln_limits_model_options(options);
    return kiln_model_load_with(path, &given, error);
}

static void
print_notes(const KilnModel *model)
{
    for (const char *const *note = kiln_model_notes(model); *note; note++) {
        g_autofree char *name = kiln_one_line(model->name);
        fprintf(stderr, "%s: note: %s: %s\n", g_get_prgname(), name, *note);
    }
}

KilnModel *
kiln_options_load(KilnOptions *options, const char *path, KilnProgram **out_program, GError **error)
{
    if (strcmp(path, "-") == 0)
        path = "/dev/stdin";
    kiln_trace_step(options->progress.trace, "load", path);
    if (out_program)
        *out_program = NULL;
    g_autoptr(KilnModel) model = load_any(options, path, out_program, error);
    kiln_trace_step(options->progress.trace, NULL, NULL);
    if (model && !options->quiet)
        print_notes(model);
    if (model && !(out_program && *out_program)) {
        g_autoptr(KilnModel) loaded = g_steal_pointer(&model);
        const KilnShapeTexts texts = { options->shapes, options->shape_hints };
        model = kiln_model_with_texts(loaded, &texts, error);
    }
    const char *const outputs[] = { NULL };
    const KilnFiles files = { .model = model, .path = path, .outputs = outputs };
    if (model && !kiln_check_overwrite(options, &files, error))
        g_clear_pointer(&model, kiln_model_unref);
    if (!model || (out_program && *out_program))
        return g_steal_pointer(&model);
    for (char **at = options->constness; model && at && *at; at++) {
        bool compile = g_str_has_prefix(*at, "compile:"), run = g_str_has_prefix(*at, "run:");
        const char *name = strchr(*at, ':');
        KilnFunction *entry = model->ir_text ? NULL : kiln_module_entry(model->module);
        guint i = 0;
        while (entry && name && i < entry->arguments->len &&
               strcmp(kiln_function_argument(entry, i)->value.name, name + 1) != 0)
            i++;
        if (!compile && !run)
            return kiln_throw_null(error, KILN_ERROR_USAGE,
                                   "--const: expected compile:NAME or run:NAME, found %s", *at);
        if (!entry)
            return kiln_throw_null(error, KILN_ERROR_USAGE,
                                   "--const: expected a model at the graph level, found %s at the "
                                   "ir level",
                                   path);
        if (i == entry->arguments->len)
            return kiln_throw_null(error, KILN_ERROR_USAGE, "--const: the model has no input %s",
                                   name + 1);
        const KilnType *type = &kiln_function_argument(entry, i)->value.type;
        if (kiln_dtype_is_item(type->dtype)) {
            g_autofree char *found = kiln_type_to_string(type);
            return kiln_throw_null(error, KILN_ERROR_USAGE,
                                   "--const: %s: expected a tensor, found %s", name + 1, found);
        }
        kiln_function_argument(entry, i)->constness =
            compile ? KILN_CONSTNESS_COMPILE : KILN_CONSTNESS_RUN;
    }
    return g_steal_pointer(&model);
}
