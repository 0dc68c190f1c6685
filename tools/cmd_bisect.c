/* SPDX-License-Identifier: Apache-2.0 */
/* kiln bisect: the first pass application after which a model computes something else, found by
 * halving, and a folder that shows it with that one pass. */
#include "graph/base/write_file.h"
#include "graph/binding.h"
#include "kiln.h"
#include "passes/manager/draws.h"
#include "passes/pass.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/specialise.h"
#include "runtime/targets.h"
#include "tools/bisect.h"
#include "tools/command.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char *stage, *out;
    int64_t seed;
} BisectOptions;

/* What was found. */
typedef struct {
    bool guilty;
    bool lowering;  /* it is the step between the levels */
    KilnCut before; /* the last cut that is good */
    KilnTry bad;    /* the first that is not */
    uint32_t tries, applications;
    bool reproduced;   /* by the folder alone */
    unsigned left_out; /* numbers of open dims */
    bool refused;      /* there is no code for open dims: it is made for each shape */
    char why_refused[sizeof((KilnTry *)NULL)->why];
} Finding;

/* --- searching --- */

static gboolean
try(KilnOptions *options, const KilnBisect *bisect, KilnCut cut, Finding *finding, KilnTry *out,
    GError **error)
{
    g_autofree char *what = g_strdup_printf("try %u: %u applications", ++finding->tries, cut.limit);
    kiln_show_progress(0, what, options);
    return kiln_bisect_try(bisect, cut, out, error);
}

/* The first bad cut between @good and @bad applications; @finding->bad is what @bad told. */
static gboolean
halve(KilnOptions *options, const KilnBisect *bisect, KilnCut good, uint32_t bad, Finding *finding,
      GError **error)
{
    while (bad - good.limit > 1) {
        KilnCut middle = { good.lowered, good.limit + (bad - good.limit) / 2 };
        KilnTry told;
        if (!try(options, bisect, middle, finding, &told, error))
            return FALSE;
        if (told.good) {
            good.limit = middle.limit;
            continue;
        }
        bad = MIN(middle.limit, MAX(told.applications, good.limit + 1));
        finding->bad = told;
    }
    finding->before = good;
    finding->guilty = true;
    return TRUE;
}

static uint32_t
cut_limit(const KilnBisect *bisect)
{
    int64_t limit = bisect->options.bisect_limit;
    return limit < 0 ? UINT32_MAX : (uint32_t)MIN(limit, (int64_t)UINT32_MAX);
}

/* One level: all of it, and where that is bad, the first application that is. */
static gboolean
search_level(KilnOptions *options, const KilnBisect *bisect, KilnCut from, Finding *finding,
             GError **error)
{
    KilnTry whole;
    KilnCut all = { from.lowered, cut_limit(bisect) };
    if (!try(options, bisect, all, finding, &whole, error))
        return FALSE;
    finding->applications = whole.applications;
    if (whole.good)
        return TRUE;
    finding->bad = whole;
    return halve(options, bisect, from, MAX(whole.applications, from.limit + 1), finding, error);
}

static bool
is_open(const KilnBisect *bisect)
{
    return ((const KilnBisectRun *)g_ptr_array_index(bisect->runs, 0))->binding->n > 0;
}

/* A model that cannot be lowered with open dims is compiled for each shape, which is no fault. */
static gboolean
search(KilnOptions *options, const KilnBisect *bisect, bool ir, Finding *finding, GError **error)
{
    if (!search_level(options, bisect, (KilnCut){ false, 0 }, finding, error))
        return FALSE;
    if (finding->guilty || !ir || bisect->model->ir_text)
        return TRUE;
    KilnCut lowered = { true, finding->applications };
    KilnTry told;
    if (!try(options, bisect, lowered, finding, &told, error))
        return FALSE;
    if (told.good)
        return search_level(options, bisect, lowered, finding, error);
    if (!told.made && is_open(bisect)) {
        finding->refused = true;
        g_strlcpy(finding->why_refused, told.why, sizeof finding->why_refused);
        return TRUE;
    }
    finding->guilty = finding->lowering = true;
    finding->before = (KilnCut){ false, lowered.limit };
    finding->bad = told;
    return TRUE;
}

/* --- the folder --- */

/* The pipeline of the guilty application alone, with the flags and plug-ins of the whole. */
static char *
single_pipeline(const KilnPassPipeline *whole, const Finding *finding)
{
    GString *text = g_string_new(NULL);
    KilnPipelineEntry entry = { .pass = finding->bad.pass,
                                .options = (void *)finding->bad.pass_options,
                                .max_iterations = 64,
                                .modes = 1u << KILN_MODE_INFER | 1u << KILN_MODE_TRAIN };
    g_autoptr(GPtrArray) one = g_ptr_array_new(), none = g_ptr_array_new();
    g_ptr_array_add(one, &entry);
    bool graph = !finding->lowering && finding->bad.pass->level == KILN_LEVEL_GRAPH;
    KilnPassPipeline single = { .flags = whole->flags,
                                .plugins = whole->plugins,
                                .graph = graph ? one : none,
                                .ir = graph || finding->lowering ? none : one };
    kiln_pass_pipeline_print(&single, text);
    return g_string_free(text, FALSE);
}

/* This executable, quoted for the shell; what PATH has where that is not known. */
static char *
own_command(void)
{
    g_autofree char *path = g_file_read_link("/proc/self/exe", NULL);
    return path ? g_shell_quote(path) : g_strdup("kiln");
}

static char *
script_text(const KilnOptions *options, const BisectOptions *own)
{
    g_autofree char *command = own_command();
    return g_strdup_printf(
        "#!/bin/sh\n# Exit status 4: it is shown again. Runs the kiln that found it, or $KILN.\n"
        "kiln=%s\ncd \"$(dirname \"$0\")\" && "
        "exec \"${KILN:-$kiln}\" bisect before.kiln --pipeline pipeline.yaml --backend %s%s "
        "--prefer %s "
        "--threads %d --mode %s%s --random %" G_GINT64_FORMAT " -o again\n",
        command, options->backend ? options->backend : "cpu",
        options->no_offload ? " --no-offload" : "", options->prefer ? options->prefer : "speed",
        options->threads, options->mode ? options->mode : "infer",
        options->no_verify ? " --no-verify" : "", own->seed);
}

static gboolean
write_folder(const KilnOptions *options, const BisectOptions *own, const KilnBisect *bisect,
             const Finding *finding, GError **error)
{
    g_autoptr(KilnModule) module = NULL;
    g_autoptr(KilnIRModule) ir = NULL;
    if (!kiln_folder_make(own->out, 0777, error) ||
        !kiln_bisect_run(bisect, finding->before, &module, &ir, error))
        return FALSE;
    g_autofree char *before = g_build_filename(own->out, "before.kiln", NULL);
    g_autofree char *yaml = g_build_filename(own->out, "pipeline.yaml", NULL);
    g_autofree char *script = g_build_filename(own->out, "reproduce.sh", NULL);
    g_autofree char *yaml_text = single_pipeline(bisect->passes, finding);
    g_autofree char *script_content = script_text(options, own);
    const KilnFileContent files[] = { { yaml, yaml_text, strlen(yaml_text) },
                                      { script, script_content, strlen(script_content) } };
    if (!kiln_write_text(before, module, ir, false, error) ||
        !kiln_files_write(files, G_N_ELEMENTS(files), error))
        return FALSE;
    return g_chmod(script, 0755) == 0 ||
           kiln_throw(error, KILN_ERROR_IO, "%s: cannot be made executable: %s", script,
                      g_strerror(errno));
}

/* Whether the files of the folder show it by themselves: values that the passes before computed may
 * matter, which other random inputs do not bring about. */
static bool
reproduces(const BisectOptions *own, const KilnBisect *bisect)
{
    g_autofree char *before = g_build_filename(own->out, "before.kiln", NULL);
    g_autofree char *yaml = g_build_filename(own->out, "pipeline.yaml", NULL);
    g_autoptr(KilnModel) model = kiln_model_load(before, NULL);
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_load(yaml, NULL);
    if (!model || !pipeline)
        return false;
    g_autofree KilnBinding *bindings = g_new0(KilnBinding, model->inputs.n + 1);
    for (unsigned i = 0; i < model->inputs.n; i++)
        bindings[i].rank = KILN_RANK_UNKNOWN;
    g_auto(KilnBisect) again = { .model = model,
                                 .bindings = bindings,
                                 .passes = pipeline->passes,
                                 .options = bisect->options,
                                 .reference = bisect->reference };
    again.options.skip = again.options.only = NULL;
    again.options.stop_after = -1;
    KilnTry told;
    bool whole_road = !model->ir_text && pipeline->passes->graph->len == 0;
    return kiln_bisect_expect(&again, (uint64_t)own->seed, NULL) &&
           kiln_bisect_try(&again, (KilnCut){ whole_road, UINT32_MAX }, &told, NULL) && !told.good;
}

/* --- telling --- */

/* The numbers of open dims that results were compared with: char*. */
static GPtrArray *
list_numbers(const KilnBisect *bisect)
{
    GPtrArray *numbers = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; is_open(bisect) && i < bisect->runs->len; i++)
        g_ptr_array_add(
            numbers,
            kiln_binding_to_string(((KilnBisectRun *)g_ptr_array_index(bisect->runs, i))->binding));
    return numbers;
}

static void
print_numbers(const GPtrArray *numbers, const Finding *finding)
{
    if (numbers->len) {
        g_autoptr(GString) text = g_string_new(NULL);
        for (guint i = 0; i < numbers->len; i++)
            g_string_append_printf(text, "%s%s", i ? "; " : "",
                                   (const char *)g_ptr_array_index(numbers, i));
        printf("compared with %s; %u left out\n", text->str, finding->left_out);
    }
    if (finding->refused) {
        g_autofree char *why = kiln_one_line(finding->why_refused);
        printf("compiled for each of these numbers: open dims cannot be compiled: %s\n", why);
    }
}

static void
print_finding(const BisectOptions *own, const GPtrArray *numbers, const Finding *finding)
{
    print_numbers(numbers, finding);
    if (!finding->guilty) {
        printf("%u applications, all of them good (%u tries)\n", finding->applications,
               finding->tries);
        return;
    }
    const KilnTry *bad = &finding->bad;
    if (finding->lowering)
        printf("guilty: lowering to the ir level\n");
    else
        printf("guilty: application %s\n", bad->last);
    g_autofree char *why = kiln_printable(bad->why);
    printf("  %s\n", why);
    for (uint32_t i = 0; i < bad->n_rewrites && !finding->lowering; i++) {
        g_autofree char *rewrite = kiln_one_line(bad->rewrites[i]);
        printf("  rewrite: %s\n", rewrite);
    }
    printf("%s: before.kiln, pipeline.yaml and reproduce.sh %s (%u tries)\n", own->out,
           finding->reproduced ? "show it" : "do not show it alone", finding->tries);
}

static gboolean
print_finding_json(const BisectOptions *own, const GPtrArray *numbers, const Finding *finding,
                   GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = kiln_report_begin(text);
    kiln_json_array(&json, "numbers");
    for (guint i = 0; i < numbers->len; i++)
        kiln_json_string(&json, NULL, g_ptr_array_index(numbers, i));
    kiln_json_end_array(&json);
    kiln_json_int(&json, "left_out", finding->left_out);
    kiln_json_bool(&json, "per_shape", finding->refused);
    kiln_json_int(&json, "applications", finding->applications);
    kiln_json_int(&json, "tries", finding->tries);
    if (!finding->guilty) {
        kiln_json_null(&json, "guilty");
        return kiln_report_print(&json, error);
    }
    const KilnTry *bad = &finding->bad;
    kiln_json_object(&json, "guilty");
    kiln_json_int(&json, "application", finding->before.limit + 1);
    kiln_json_string(&json, "pass", finding->lowering ? "" : bad->pass->id);
    kiln_json_string(&json, "what", finding->lowering ? "lowering" : bad->last);
    kiln_json_string(&json, "why", bad->why);
    kiln_json_array(&json, "rewrites");
    for (uint32_t i = 0; i < bad->n_rewrites; i++)
        kiln_json_string(&json, NULL, bad->rewrites[i]);
    kiln_json_end_array(&json);
    kiln_json_string(&json, "folder", own->out);
    kiln_json_bool(&json, "reproduced", finding->reproduced);
    kiln_json_end_object(&json);
    return kiln_report_print(&json, error);
}

/* --- the command --- */

static gboolean
search_and_write(KilnOptions *options, const BisectOptions *own, const KilnBisect *bisect,
                 Finding *finding, GError **error)
{
    bool ir = bisect->model->ir_text || g_strcmp0(own->stage, "graph") != 0;
    if (!search(options, bisect, ir, finding, error))
        return FALSE;
    if (!finding->guilty)
        return TRUE;
    if (!write_folder(options, own, bisect, finding, error))
        return FALSE;
    finding->reproduced = reproduces(own, bisect);
    return TRUE;
}

/* The same with the shapes of @run, as a session compiles for them. */
static gboolean
search_pinned(KilnOptions *options, const BisectOptions *own, const KilnBisect *open,
              const KilnBisectRun *run, Finding *finding, GError **error)
{
    g_autofree KilnBinding *bindings =
        g_memdup2(open->bindings, (open->model->inputs.n + 1) * sizeof *bindings);
    for (guint i = 0; i < run->inputs->len; i++) {
        const KilnTensor *input = g_ptr_array_index(run->inputs, i);
        bindings[i].rank = input->type.rank;
        memcpy(bindings[i].dims, input->type.dims, sizeof bindings[i].dims);
    }
    g_auto(KilnBisect) bisect = { .model = open->model,
                                  .bindings = bindings,
                                  .passes = open->passes,
                                  .options = open->options,
                                  .reference = open->reference };
    gboolean good = kiln_bisect_expect(&bisect, (uint64_t)own->seed, error) &&
                    search_and_write(options, own, &bisect, finding, error);
    if (!good || finding->guilty) {
        g_autofree char *with = kiln_binding_to_string(run->binding);
        g_autofree char *why = g_strdup_printf("with %s: %s", with, finding->bad.why);
        g_strlcpy(finding->bad.why, why, sizeof finding->bad.why);
    }
    return good;
}

static gboolean
bisect_model(KilnOptions *options, const BisectOptions *own, const KilnModel *model,
             const KilnPipeline *pipeline, Finding *finding, GPtrArray **out_numbers,
             GError **error)
{
    g_autofree KilnBinding *bindings = kiln_options_bindings(options, model, error);
    g_auto(KilnBisect) bisect = { .model = model,
                                  .bindings = bindings,
                                  .passes = pipeline->passes,
                                  .reference = kiln_target_by_name("ref", NULL) };
    if (!bindings || !kiln_options_passes(options, pipeline, &bisect.options, error) ||
        !kiln_bisect_expect(&bisect, (uint64_t)own->seed, error))
        return FALSE;
    finding->left_out = bisect.draws.refused;
    *out_numbers = list_numbers(&bisect);
    if (!search_and_write(options, own, &bisect, finding, error))
        return FALSE;
    for (guint i = 0; finding->refused && !finding->guilty && i < bisect.runs->len; i++) {
        if (!search_pinned(options, own, &bisect, g_ptr_array_index(bisect.runs, i), finding,
                           error))
            return FALSE;
    }
    return TRUE;
}

static int
bisect_work(KilnOptions *options, char **operands, void *data, GError **error)
{
    BisectOptions *own = data;
    if (!own->out)
        own->out = g_strdup("kiln-bisect");
    if (own->stage && strcmp(own->stage, "graph") != 0 && strcmp(own->stage, "ir") != 0) {
        kiln_throw(error, KILN_ERROR_USAGE, "--stage: expected graph or ir, found %s", own->stage);
        return KILN_EXIT_USAGE;
    }
    g_autoptr(KilnPipeline) pipeline = kiln_options_pipeline(options, error);
    g_autoptr(KilnModel) model =
        pipeline ? kiln_options_load(options, operands[0], NULL, error) : NULL;
    g_autoptr(GPtrArray) numbers = NULL;
    Finding finding = { 0 };
    if (!model || !bisect_model(options, own, model, pipeline, &finding, &numbers, error))
        return KILN_EXIT_FAILED;
    kiln_clear_progress(options);
    if (!options->json)
        print_finding(own, numbers, &finding);
    else if (!print_finding_json(own, numbers, &finding, error))
        return KILN_EXIT_FAILED;
    return finding.guilty ? KILN_EXIT_MISMATCH : KILN_EXIT_OK;
}

int
kiln_command_bisect(int argc, char **argv)
{
    BisectOptions own = { .seed = 1 };
    const GOptionEntry entries[] = {
        { "stage", 0, 0, G_OPTION_ARG_STRING, &own.stage,
          "Search the passes up to this level (default: ir)", "graph|ir" },
        { "random", 0, 0, G_OPTION_ARG_INT64, &own.seed, "Seed the random inputs (default: 1)",
          "SEED" },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &own.out,
          "Write the files that reproduce the failure here (default: kiln-bisect)", "DIR" },
        G_OPTION_ENTRY_NULL,
    };
    const KilnUsage usage = {
        .command = "bisect",
        .operands = "MODEL",
        .n_operands = KILN_OPERANDS_ONE,
        .summary =
            "Finds the first application of a pass that changes the results of the model, makes "
            "it invalid, or crashes. Exits with status 4 if there is one.",
        .entries = entries,
        .passes = true,
        .work = bisect_work,
    };
    int status = kiln_command(&usage, argc, argv, &own);
    g_free(own.stage);
    g_free(own.out);
    return status;
}
