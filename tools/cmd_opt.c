/* SPDX-License-Identifier: Apache-2.0 */
/* kiln opt: runs the pipelines and prints what comes out, at either level, in any of the forms. */
#include "tools/command.h"

#include "graph/dot.h"
#include "graph/json.h"
#include "graph/onnx/onnx.h"
#include "graph/text/text.h"
#include "ir/json.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    char *stage, *emit, *out;
} OptOptions;

static void
show_text(const char *text, void *data)
{
    (void)data;
    fputs(text, stderr);
}

static gboolean
check_values(const OptOptions *opt, GError **error)
{
    static const char *const forms[] = { "text", "dot", "json", "onnx", NULL };
    if (opt->stage && strcmp(opt->stage, "graph") != 0 && strcmp(opt->stage, "ir") != 0)
        return kiln_throw(error, KILN_ERROR_USAGE, "--stage: expected graph or ir, found %s",
                          opt->stage);
    if (opt->emit && !g_strv_contains(forms, opt->emit))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--emit: expected text, dot, json or onnx, found %s", opt->emit);
    bool ir = opt->stage && strcmp(opt->stage, "ir") == 0;
    if (ir && opt->emit && (strcmp(opt->emit, "dot") == 0 || strcmp(opt->emit, "onnx") == 0))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--emit %s: expected the graph stage, found the ir stage", opt->emit);
    return TRUE;
}

/* --- printing --- */

static gboolean
write_file(const char *path, const char *data, size_t length, GError **error)
{
    g_autoptr(GError) inner = NULL;
    if (!g_file_set_contents(path, data, (gssize)length, &inner))
        return kiln_throw(error, KILN_ERROR_IO, "%s: cannot be written: %s", path, inner->message);
    return TRUE;
}

static gboolean
emit(const OptOptions *opt, const GString *text, const GByteArray *data, const char *data_path,
     GError **error)
{
    if (!opt->out) {
        fwrite(text->str, 1, text->len, stdout);
        return TRUE;
    }
    if (data && data->len && !write_file(data_path, (const char *)data->data, data->len, error))
        return FALSE;
    return write_file(opt->out, text->str, text->len, error);
}

static gboolean
emit_onnx(const OptOptions *opt, const KilnModule *module, GError **error)
{
    g_autoptr(GByteArray) out = g_byte_array_new();
    if (!kiln_onnx_export(module, out, error))
        return FALSE;
    if (opt->out)
        return write_file(opt->out, (const char *)out->data, out->len, error);
    fwrite(out->data, 1, out->len, stdout);
    return TRUE;
}

static gboolean
emit_module(const OptOptions *opt, const KilnModule *module, const KilnIRModule *ir, GError **error)
{
    const char *form = opt->emit ? opt->emit : "text";
    g_autoptr(GString) out = g_string_new(NULL);
    if (strcmp(form, "onnx") == 0)
        return emit_onnx(opt, module, error);
    if (strcmp(form, "dot") == 0) {
        kiln_module_dot(module, out);
        return emit(opt, out, NULL, NULL, error);
    }
    if (strcmp(form, "json") == 0) {
        if (ir ? !kiln_ir_json(ir, out) : !kiln_module_json(module, out))
            return kiln_throw(error, KILN_ERROR_INVALID, "the module has no JSON form");
        return emit(opt, out, NULL, NULL, error);
    }
    g_autofree char *data_path = opt->out ? g_strconcat(opt->out, ".bin", NULL) : NULL;
    g_autofree char *data_name = opt->out ? g_path_get_basename(data_path) : NULL;
    g_autoptr(GByteArray) data = opt->out ? g_byte_array_new() : NULL;
    KilnPrintOptions print = { .data_name = data_name, .data = data };
    gboolean printed = ir ? kiln_ir_module_print(ir, &print, out, error)
                          : kiln_module_print(module, &print, out, error);
    return printed && emit(opt, out, data, data_path, error);
}

/* --- the work --- */

static void
show_report(const KilnOptions *options, const KilnPassReport *report)
{
    if (!options->stats && !options->time_passes)
        return;
    if (options->json) {
        g_autofree char *json = kiln_pass_report_to_json(report);
        puts(json);
    } else {
        kiln_print_pass_table(report, options->stats);
    }
}

static KilnIRModule *
lower_and_plan(KilnModule *module, KilnModel *model, const KilnPassPipeline *passes,
               const KilnPassOptions *pass_options, KilnPassReport *report, GError **error)
{
    g_autoptr(KilnIRModule) ir =
        module ? kiln_compile_ir(module, passes, pass_options, report, error)
               : kiln_compile_ir_text(model, passes, pass_options, report, error);
    if (!ir)
        return NULL;
    for (guint i = 0; i < ir->functions->len; i++) {
        g_autoptr(KilnMemoryPlan) plan =
            kiln_memory_plan(g_ptr_array_index(ir->functions, i), pass_options->target,
                             pass_options->threads, error);
        if (!plan)
            return NULL;
    }
    return g_steal_pointer(&ir);
}

static gboolean
optimize(const OptOptions *opt, const KilnOptions *options, const char *path, GError **error)
{
    g_autoptr(KilnPipeline) pipeline = kiln_options_pipeline(options, error);
    if (!pipeline)
        return FALSE;
    if (options->print_pipeline) {
        g_autofree char *text = kiln_pipeline_to_string(pipeline);
        fputs(text, stdout);
        return TRUE;
    }
    KilnPassOptions pass_options;
    if (!kiln_options_passes(options, &pass_options, error))
        return FALSE;
    pass_options.dump = pass_options.log = show_text;
    pass_options.log_rewrites = options->print_changed && !options->quiet;
    g_autoptr(KilnModel) model = kiln_options_load(options, path, error);
    g_autofree KilnBinding *bindings = model ? kiln_options_bindings(options, model, error) : NULL;
    if (!bindings)
        return FALSE;
    bool wants_ir = (opt->stage && strcmp(opt->stage, "ir") == 0) || model->ir_text;
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    g_autoptr(KilnModule) module = NULL;
    g_autoptr(KilnIRModule) ir = NULL;
    if (!model->ir_text) {
        module =
            kiln_compile_graph(model, bindings, pipeline->passes, &pass_options, report, error);
        if (!module)
            return FALSE;
    }
    if (wants_ir) {
        ir = lower_and_plan(g_steal_pointer(&module), model, pipeline->passes, &pass_options,
                            report, error);
        if (!ir)
            return FALSE;
    }
    show_report(options, report);
    /* With --stats --json the document is the result, unless a file was asked for too. */
    bool silent = options->json && (options->stats || options->time_passes) && !opt->out;
    return silent || emit_module(opt, module ? module : ir->module, ir, error);
}

int
kiln_command_opt(int argc, char **argv)
{
    OptOptions opt = { 0 };
    const GOptionEntry entries[] = {
        { "stage", 0, 0, G_OPTION_ARG_STRING, &opt.stage, "graph or ir (default: graph)", "LEVEL" },
        { "emit", 0, 0, G_OPTION_ARG_STRING, &opt.emit, "text, dot, json or onnx (default: text)",
          "FORM" },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &opt.out,
          "Write here; big constants go to F.bin", "F" },
        G_OPTION_ENTRY_NULL,
    };
    const KilnUsage usage = {
        "opt", "MODEL",
        "Runs the pipelines on a model (.onnx, or .kiln at either level) and prints it.", entries,
        true
    };
    KilnOptions options;
    g_auto(GStrv) rest = NULL;
    g_autoptr(GError) error = NULL;
    bool done;
    const char *path = NULL;
    bool fine = kiln_options_parse(&usage, argc, argv, &options, &rest, &done, &error) &&
                check_values(&opt, &error);
    if (fine && !(options.print_pipeline && !rest))
        fine = (path = kiln_one_operand(rest, &usage, &error)) != NULL;
    fine = fine && optimize(&opt, &options, path, &error);
    int status = fine || done ? KILN_EXIT_OK : kiln_fail("opt", error);
    kiln_options_clear(&options);
    g_free(opt.stage);
    g_free(opt.emit);
    g_free(opt.out);
    return status;
}
