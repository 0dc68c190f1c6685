/* SPDX-License-Identifier: Apache-2.0 */
/* kiln opt: runs the pipelines and prints what comes out, at either level, in any of the forms. */
#include "graph/module/outline.h"
#include "graph/onnx/onnx.h"
#include "graph/text/json.h"
#include "ir/compiled.h"
#include "ir/plan.h"
#include "ir/text/json.h"
#include "kiln.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/compile.h"
#include "runtime/deferred.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "runtime/specialise.h"
#include "tools/command.h"
#include "tools/overwrite.h"
#include "tools/trace.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char *stage, *emit, *out;
    gboolean time_passes, stats, print_pipeline, print_choices, alone;
} OptOptions;

/* What the pipelines made: a module, or an IR module that holds one. */
typedef struct {
    KilnModule *module;
    KilnIRModule *ir;
    KilnPassReport *report;
} Result;

static void
result_clear(Result *result)
{
    g_clear_pointer(&result->module, kiln_module_free);
    g_clear_pointer(&result->ir, kiln_ir_module_free);
    g_clear_pointer(&result->report, kiln_pass_report_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Result, result_clear)

static bool
is(const char *option, const char *value)
{
    return option && strcmp(option, value) == 0;
}

static gboolean
check_values(const OptOptions *opt, GError **error)
{
    static const char *const forms[] = { "text", "onnx", "dot", "json", NULL };
    if (opt->stage && !is(opt->stage, "graph") && !is(opt->stage, "ir"))
        return kiln_throw(error, KILN_ERROR_USAGE, "--stage: expected graph or ir, found %s",
                          opt->stage);
    if (opt->emit && !g_strv_contains(forms, opt->emit))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--emit: expected text, onnx, dot or json, found %s", opt->emit);
    if (opt->alone && opt->emit && !is(opt->emit, "text"))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--inline: expected --emit text, found --emit %s", opt->emit);
    if (is(opt->emit, "onnx") && kiln_is_stdout(opt->out) && isatty(STDOUT_FILENO))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--emit onnx: expected -o F, found a terminal, which cannot show it");
    return TRUE;
}

/* Forms and stages that do not go together, known once the model's level is. */
static gboolean
check_level(const OptOptions *opt, const KilnModel *model, bool wants_ir, GError **error)
{
    if (model->ir_text && is(opt->stage, "graph"))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--stage graph: expected a model at the graph level, found %s at the ir "
                          "level",
                          model->name);
    if (wants_ir && (is(opt->emit, "dot") || is(opt->emit, "onnx")))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--emit %s: expected the graph stage, found the ir stage", opt->emit);
    return TRUE;
}

/* --- printing --- */

static gboolean
emit_result(const OptOptions *opt, const Result *result, const char *form, GError **error)
{
    if (is(form, "text"))
        return kiln_write_text(opt->out, result->module, result->ir, opt->alone, error);
    if (is(form, "onnx")) {
        g_autoptr(GByteArray) bytes = g_byte_array_new();
        /* ONNX has no regions of a vendor, which a text may have: it is told their operators. */
        return kiln_module_inline(result->module, error) &&
               kiln_onnx_export(result->module, bytes, error) &&
               kiln_write_result(opt->out, bytes->data, bytes->len, error);
    }
    g_autoptr(GString) out = g_string_new(NULL);
    if (is(form, "dot"))
        kiln_module_dot(result->module, out);
    else if (result->ir)
        kiln_ir_json(result->ir, out);
    else
        kiln_module_json(result->module, out);
    return kiln_write_result(opt->out, out->str, out->len, error);
}

/* The algorithms that the target has for each convolution, what its model says of them in
 * microseconds, and which one was chosen; of a call, what the vendor does in it. */
static void
print_choices(const KilnIRModule *ir, const KilnTarget *target)
{
    printf("%-9s %12s %12s  %s\n", "chosen", "direct us", "winograd us", "node");
    for (guint i = 0; i < ir->functions->len; i++) {
        kiln_foreach_instr (instr, (KilnIRFunction *)g_ptr_array_index(ir->functions, i)) {
            KilnChoice choices[KILN_MAX_CHOICES];
            uint32_t n = kiln_target_choices(target, instr, choices);
            const KilnCompiled *compiled = kiln_call_compiled(instr);
            g_autofree char *label = kiln_one_line(kiln_instr_label(instr));
            if (compiled) {
                g_autoptr(GString) lines = g_string_new(NULL);
                compiled->vendor->describe(compiled, lines);
                printf("%s: %s\n%s", compiled->vendor->name, label, lines->str);
            }
            if (n == 0)
                continue;
            g_autofree char *other =
                n > 1 ? g_strdup_printf("%.1f", choices[1].cost) : g_strdup("-");
            printf("%-9s %12.1f %12s  %s\n", kiln_instr_attrs(instr, conv)->algorithm,
                   choices[0].cost, other, label);
        }
    }
}

static void
show_report(const OptOptions *opt, const KilnOptions *options, const KilnPassReport *report)
{
    if (options->json) {
        g_autofree char *json = kiln_pass_report_to_json(report);
        puts(json);
    } else {
        kiln_print_pass_table(report, opt->stats);
    }
}

/* --- the work --- */

static gboolean
plan_all(const KilnIRModule *ir, const KilnPassOptions *pass_options, GError **error)
{
    for (guint i = 0; i < ir->functions->len; i++) {
        g_autoptr(KilnMemoryPlan) plan =
            kiln_memory_plan(g_ptr_array_index(ir->functions, i), pass_options->target,
                             pass_options->threads, error);
        if (!plan)
            return FALSE;
    }
    return TRUE;
}

static gboolean
optimize(const KilnModel *model, const KilnBinding *bindings, const KilnPassPipeline *passes,
         const KilnPassOptions *pass_options, Result *result, GError **error)
{
    if (model->ir_text)
        result->ir = kiln_compile_ir_text(model, passes, pass_options, result->report, error);
    else
        result->module =
            kiln_compile_graph(model, bindings, passes, pass_options, result->report, error);
    return result->ir || result->module;
}

static gboolean
lower(const KilnPassPipeline *passes, const KilnPassOptions *pass_options, Result *result,
      GError **error)
{
    if (!result->ir)
        result->ir = kiln_compile_ir(g_steal_pointer(&result->module), passes, pass_options,
                                     result->report, error);
    return result->ir && plan_all(result->ir, pass_options, error);
}

/* As it is: nothing is left to be optimized. */
static gboolean
show_program(const OptOptions *opt, const KilnOptions *options, const KilnProgram *program,
             GError **error)
{
    if (opt->stats || opt->time_passes)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--%s: expected a model, found %s, which is compiled already",
                          opt->stats ? "stats" : "time-passes", program->model->name);
    const Result result = { .ir = program->model->ir };
    if (!opt->print_choices)
        return emit_result(opt, &result,
                           opt->emit       ? opt->emit
                           : options->json ? "json"
                                           : "text",
                           error);
    if (!kiln_describe_regions(program->model->ir, error)) {
        kiln_prefix_error(error, "%s: ", program->model->name);
        return FALSE;
    }
    print_choices(program->model->ir, program->target);
    return TRUE;
}

static gboolean
run(const OptOptions *opt, KilnOptions *options, const char *path, const KilnPipeline *pipeline,
    GError **error)
{
    KilnPassOptions pass_options;
    /* Regions would be written as their operators, but weights packed for them have no form. */
    if (is(opt->emit, "onnx"))
        options->no_offload = TRUE;
    if (!kiln_options_passes(options, pipeline, &pass_options, error))
        return FALSE;
    pass_options.measure = opt->stats;
    g_autoptr(KilnProgram) program = NULL;
    g_autoptr(KilnModel) model = kiln_options_load(options, path, &program, error);
    bool wants_ir = model && (is(opt->stage, "ir") || model->ir_text || opt->print_choices);
    g_autofree char *beside = g_strconcat(opt->out, ".bin", NULL);
    const char *const outputs[] = { opt->out, beside, NULL };
    const KilnFiles files = { .model = model, .path = path, .outputs = outputs };
    if (!model || !check_level(opt, model, wants_ir, error) ||
        !kiln_check_overwrite(options, &files, error))
        return FALSE;
    if (program)
        return show_program(opt, options, program, error);
    g_autofree KilnBinding *bindings = kiln_options_bindings(options, model, error);
    g_auto(Result) result = { .report = kiln_pass_report_new() };
    if (!bindings || !optimize(model, bindings, pipeline->passes, &pass_options, &result, error) ||
        (wants_ir && !lower(pipeline->passes, &pass_options, &result, error)))
        return FALSE;
    kiln_trace_step(options->progress.trace, "print", path);
    kiln_clear_progress(options);
    if (opt->print_choices) {
        print_choices(result.ir, pass_options.target);
        return TRUE;
    }
    bool report = opt->stats || opt->time_passes;
    /* With --json the report is the document, so that the result goes to a file or nowhere. */
    if (report && options->json && kiln_is_stdout(opt->out)) {
        show_report(opt, options, result.report);
        return TRUE;
    }
    const char *form = opt->emit ? opt->emit : options->json && !report ? "json" : "text";
    if (!emit_result(opt, &result, form, error))
        return FALSE;
    if (report)
        show_report(opt, options, result.report);
    return TRUE;
}

static int
opt_work(KilnOptions *options, char **operands, void *data, GError **error)
{
    OptOptions *opt = data;
    if (!opt->out)
        opt->out = g_strdup("-");
    g_autoptr(KilnPipeline) pipeline =
        check_values(opt, error) ? kiln_options_pipeline(options, error) : NULL;
    if (!pipeline)
        return KILN_EXIT_FAILED;
    if (opt->print_pipeline) {
        g_autofree char *text = kiln_pipeline_to_string(pipeline);
        return kiln_write_result(opt->out, text, strlen(text), error) ? KILN_EXIT_OK
                                                                      : KILN_EXIT_FAILED;
    }
    if (!operands) {
        kiln_throw(error, KILN_ERROR_USAGE,
                   "expected one operand (MODEL), found 0\n`kiln opt --help` shows the options.");
        return KILN_EXIT_USAGE;
    }
    return run(opt, options, operands[0], pipeline, error) ? KILN_EXIT_OK : KILN_EXIT_FAILED;
}

int
kiln_command_opt(int argc, char **argv)
{
    OptOptions opt = { 0 };
    const GOptionEntry entries[] = {
        { "stage", 0, 0, G_OPTION_ARG_STRING, &opt.stage, "Stop at this level (default: graph)",
          "graph|ir" },
        { "emit", 0, 0, G_OPTION_ARG_STRING, &opt.emit,
          "Print the model in this form (default: text)", "text|onnx|dot|json" },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &opt.out,
          "Write to this file, and its large constants to F.bin; `-` is standard output", "F" },
        { "inline", 0, 0, G_OPTION_ARG_NONE, &opt.alone,
          "Put all constants into the text in base64", NULL },
        { "stats", 0, 0, G_OPTION_ARG_NONE, &opt.stats,
          "Show what each pass and each of its rules changed", NULL },
        { "time-passes", 0, 0, G_OPTION_ARG_NONE, &opt.time_passes, "Show the time of each pass",
          NULL },
        { "print-pipeline", 0, 0, G_OPTION_ARG_NONE, &opt.print_pipeline,
          "Print the pipeline as YAML and stop; no MODEL is needed", NULL },
        { "print-choices", 0, 0, G_OPTION_ARG_NONE, &opt.print_choices,
          "Print the algorithm of each convolution and the estimated times", NULL },
        G_OPTION_ENTRY_NULL,
    };
    const KilnUsage usage = {
        .command = "opt",
        .operands = "MODEL",
        .n_operands = KILN_OPERANDS_OPTIONAL,
        .summary = "Optimizes a model (.onnx or .kiln) and prints the result.",
        .entries = entries,
        .passes = true,
        .work = opt_work,
    };
    int status = kiln_command(&usage, argc, argv, &opt);
    g_free(opt.stage);
    g_free(opt.emit);
    g_free(opt.out);
    return status;
}
