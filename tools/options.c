/* SPDX-License-Identifier: Apache-2.0 */
/* Options that all sub-commands take, and what they become. */
#include "tools/command.h"

#include <stdio.h>
#include <string.h>

/* --- parsing --- */

static gboolean
throw_usage(const KilnUsage *usage, const char *message, GError **error)
{
    return kiln_throw(error, KILN_ERROR_USAGE, "%s\n`kiln %s --help` shows the options.", message,
                      usage->command);
}

static void
add_common(GOptionContext *context, KilnOptions *options)
{
    const GOptionEntry entries[] = {
        { "pipeline", 0, 0, G_OPTION_ARG_STRING, &options->pipeline,
          "A shipped pipeline or a YAML file (default: default)", "F" },
        { "passes", 0, 0, G_OPTION_ARG_STRING, &options->passes,
          "Passes in place of a pipeline: a,b{x=1},c", "LIST" },
        { "backend", 0, 0, G_OPTION_ARG_STRING, &options->backend, "ref or cpu (default: cpu)",
          "NAME" },
        { "no-offload", 0, 0, G_OPTION_ARG_NONE, &options->no_offload,
          "Use Kiln's own kernels only", NULL },
        { "threads", 0, 0, G_OPTION_ARG_INT, &options->threads,
          "Threads (default: one per processor)", "N" },
        { "mode", 0, 0, G_OPTION_ARG_STRING, &options->mode, "infer or train (default: infer)",
          "MODE" },
        { "const", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->constness,
          "An input that is constant: compile:NAME or run:NAME", "WHEN:NAME" },
        { "shape", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->shapes,
          "The shape of an input: NAME=1x3x224x224", "NAME=DIMS" },
        { "prefer", 0, 0, G_OPTION_ARG_STRING, &options->prefer, "speed or memory (default: speed)",
          "WHAT" },
        { "no-verify", 0, 0, G_OPTION_ARG_NONE, &options->no_verify,
          "Do not verify after each pass", NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &options->json, "Print JSON", NULL },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &options->quiet, "Print results only, no progress",
          NULL },
        { "trace", 0, 0, G_OPTION_ARG_FILENAME, &options->trace, "Write a Chrome trace of the run",
          "F" },
        G_OPTION_ENTRY_NULL,
    };
    g_option_context_add_main_entries(context, entries, NULL);
}

static void
add_passes(GOptionContext *context, KilnOptions *options)
{
    const GOptionEntry entries[] = {
        { "skip", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->skip, "Leave this pass out", "PASS" },
        { "only", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->only, "Run this pass and no other",
          "PASS" },
        { "stop-after", 0, 0, G_OPTION_ARG_INT64, &options->stop_after, "Stop after N entries",
          "N" },
        { "bisect-limit", 0, 0, G_OPTION_ARG_INT64, &options->bisect_limit,
          "Stop after N pass applications", "N" },
        { "print-after", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->print_after,
          "Print the text after this pass, or all", "PASS" },
        { "print-changed", 0, 0, G_OPTION_ARG_NONE, &options->print_changed,
          "Print the text after passes that changed it", NULL },
        { "dump-dir", 0, 0, G_OPTION_ARG_FILENAME, &options->dump_dir,
          "Write the text after each application here", "D" },
        { "time-passes", 0, 0, G_OPTION_ARG_NONE, &options->time_passes,
          "Show the time of each pass", NULL },
        { "stats", 0, 0, G_OPTION_ARG_NONE, &options->stats, "Show what each pass did", NULL },
        { "check", 0, 0, G_OPTION_ARG_NONE, &options->check,
          "Run before and after every pass and compare", NULL },
        { "print-pipeline", 0, 0, G_OPTION_ARG_NONE, &options->print_pipeline,
          "Print the pipeline and stop", NULL },
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
    if (options->threads < 0 || options->threads > 1024)
        return throw_usage(usage, "--threads: expected 1 to 1024", error);
    if (options->mode && strcmp(options->mode, "infer") != 0 && strcmp(options->mode, "train") != 0)
        return throw_usage(usage, "--mode: expected infer or train", error);
    if (options->prefer && strcmp(options->prefer, "speed") != 0 &&
        strcmp(options->prefer, "memory") != 0)
        return throw_usage(usage, "--prefer: expected speed or memory", error);
    if (options->pipeline && options->passes)
        return throw_usage(usage, "--pipeline and --passes: expected one of them", error);
    return kiln_target_by_name(options->backend ? options->backend : "cpu", error) != NULL;
}

gboolean
kiln_options_parse(const KilnUsage *usage, int argc, char **argv, KilnOptions *options,
                   char ***out_rest, bool *out_done, GError **error)
{
    *options = (KilnOptions){ .stop_after = -1, .bisect_limit = -1 };
    *out_done = false;
    gboolean help = FALSE;
    const GOptionEntry help_entries[] = {
        { "help", 'h', 0, G_OPTION_ARG_NONE, &help, "Show this", NULL },
        { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, out_rest, NULL, usage->operands },
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_help_enabled(context, FALSE);
    g_option_context_set_summary(context, usage->summary);
    if (usage->entries)
        g_option_context_add_main_entries(context, usage->entries, NULL);
    add_common(context, options);
    g_option_context_add_main_entries(context, help_entries, NULL);
    if (usage->passes)
        add_passes(context, options);
    g_autofree char *program = g_strdup_printf("kiln %s", usage->command);
    g_set_prgname(program);
    g_autoptr(GError) inner = NULL;
    if (!g_option_context_parse(context, &argc, &argv, &inner))
        return throw_usage(usage, inner->message, error);
    if (help) {
        g_autofree char *text = g_option_context_get_help(context, FALSE, NULL);
        fputs(text, stdout);
        *out_done = true;
        return FALSE;
    }
    return check_values(usage, options, error);
}

void
kiln_options_clear(KilnOptions *options)
{
    char *texts[] = { options->pipeline, options->passes, options->backend, options->mode,
                      options->prefer,   options->trace,  options->dump_dir };
    char **lists[] = { options->constness, options->shapes, options->skip, options->only,
                       options->print_after };
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(texts[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++)
        g_strfreev(lists[i]);
    *options = (KilnOptions){ 0 };
}

const char *
kiln_one_operand(char **rest, const KilnUsage *usage, GError **error)
{
    unsigned n = rest ? g_strv_length(rest) : 0;
    if (n == 1)
        return rest[0];
    g_autofree char *message =
        g_strdup_printf("expected one operand (%s), found %u", usage->operands, n);
    throw_usage(usage, message, error);
    return NULL;
}

int
kiln_fail(const char *command, const GError *error)
{
    kiln_clear_progress();
    fprintf(stderr, "kiln %s: %s\n", command, error->message);
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

/* --- what options become --- */

KilnPipeline *
kiln_options_pipeline(const KilnOptions *options, GError **error)
{
    if (options->passes)
        return kiln_pipeline_parse(options->passes, error);
    return kiln_pipeline_load(options->pipeline ? options->pipeline : "default", error);
}

/* NAME=1x3x224x224; NAME= is a scalar. */
static gboolean
parse_shape(const char *text, KilnShape *out, GError **error)
{
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text)
        return kiln_throw(error, KILN_ERROR_USAGE, "--shape: expected NAME=1x3x224x224, found %s",
                          text);
    out->rank = 0;
    const char *at = equals + 1;
    while (*at) {
        char *end;
        int64_t dim = g_ascii_strtoll(at, &end, 10);
        if (end == at || dim < 0 || out->rank == KILN_MAX_RANK || (*end && *end != 'x') ||
            (*end == 'x' && !end[1]))
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "--shape: expected NAME=1x3x224x224, found %s", text);
        out->dims[out->rank++] = dim;
        at = *end ? end + 1 : end;
    }
    out->input = g_strndup(text, (size_t)(equals - text));
    return TRUE;
}

static void
free_shapes(KilnShape *shapes, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        g_free((char *)shapes[i].input);
    g_free(shapes);
}

static KilnShape *
parse_shapes(const KilnOptions *options, unsigned *out_n, GError **error)
{
    unsigned n = options->shapes ? g_strv_length(options->shapes) : 0;
    KilnShape *shapes = g_new0(KilnShape, n + 1);
    for (unsigned i = 0; i < n; i++) {
        if (!parse_shape(options->shapes[i], &shapes[i], error)) {
            free_shapes(shapes, n);
            return NULL;
        }
    }
    *out_n = n;
    return shapes;
}

gboolean
kiln_options_compile(const KilnOptions *options, KilnPipeline *pipeline, KilnCompileOptions *out,
                     KilnShape **shapes, GError **error)
{
    *out = (KilnCompileOptions)KILN_COMPILE_OPTIONS_INIT;
    out->pipeline = pipeline;
    out->target = options->backend ? options->backend : "cpu";
    out->threads = options->threads;
    out->train = options->mode && strcmp(options->mode, "train") == 0;
    out->no_verify = options->no_verify;
    out->progress = options->quiet ? NULL : kiln_show_progress;
    *shapes = parse_shapes(options, &out->n_shapes, error);
    out->shapes = *shapes;
    return *shapes != NULL;
}

gboolean
kiln_options_passes(const KilnOptions *options, KilnPassOptions *out, GError **error)
{
    *out = (KilnPassOptions)KILN_PASS_OPTIONS_INIT;
    out->target = kiln_target_by_name(options->backend ? options->backend : "cpu", error);
    if (!out->target)
        return FALSE;
    out->check_target = kiln_target_by_name("ref", NULL);
    out->threads = options->threads ? options->threads : kiln_processor_count();
    out->mode =
        options->mode && strcmp(options->mode, "train") == 0 ? KILN_MODE_TRAIN : KILN_MODE_INFER;
    out->verify = !options->no_verify;
    out->check_numerics = options->check;
    out->check_changed = options->check;
    out->skip = (const char *const *)options->skip;
    out->only = (const char *const *)options->only;
    out->stop_after = options->stop_after;
    out->bisect_limit = options->bisect_limit;
    out->print_after = (const char *const *)options->print_after;
    out->print_changed = options->print_changed;
    out->dump_dir = options->dump_dir;
    char **lists[] = { options->skip, options->only, options->print_after };
    for (size_t l = 0; l < G_N_ELEMENTS(lists); l++) {
        for (char **id = lists[l]; id && *id; id++) {
            if (!kiln_pass_find(*id) &&
                !(lists[l] == options->print_after && strcmp(*id, "all") == 0))
                return kiln_throw(error, KILN_ERROR_USAGE,
                                  "expected a pass, found %s\n`kiln passes` lists them.", *id);
        }
    }
    return TRUE;
}

KilnBinding *
kiln_options_bindings(const KilnOptions *options, const KilnModel *model, GError **error)
{
    unsigned n_shapes;
    KilnShape *shapes = parse_shapes(options, &n_shapes, error);
    if (!shapes)
        return NULL;
    KilnBinding *bindings = g_new0(KilnBinding, model->inputs.n + 1);
    for (unsigned i = 0; i < model->inputs.n; i++)
        bindings[i].rank = KILN_RANK_UNKNOWN;
    for (unsigned s = 0; s < n_shapes; s++) {
        unsigned i = 0;
        while (i < model->inputs.n && strcmp(model->inputs.info[i].name, shapes[s].input) != 0)
            i++;
        if (i == model->inputs.n) {
            kiln_throw(error, KILN_ERROR_USAGE, "--shape: the model has no input %s",
                       shapes[s].input);
            g_clear_pointer(&bindings, g_free);
            break;
        }
        bindings[i].rank = shapes[s].rank;
        memcpy(bindings[i].dims, shapes[s].dims, sizeof bindings[i].dims);
    }
    free_shapes(shapes, n_shapes);
    return bindings;
}

KilnModel *
kiln_options_load(const KilnOptions *options, const char *path, GError **error)
{
    g_autoptr(KilnModel) model = kiln_model_load(path, error);
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
        if (!entry || i == entry->arguments->len)
            return kiln_throw_null(error, KILN_ERROR_USAGE, "--const: the model has no input %s",
                                   name + 1);
        kiln_function_argument(entry, i)->constness =
            compile ? KILN_CONSTNESS_COMPILE : KILN_CONSTNESS_RUN;
    }
    return g_steal_pointer(&model);
}
