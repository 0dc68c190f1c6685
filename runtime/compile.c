/* SPDX-License-Identifier: Apache-2.0 */
/* From a model to optimized IR: the steps that kiln_program_compile() walks and `kiln opt` can stop
 * on. */
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/manager.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/compile.h"
#include "runtime/targets.h"

#include "graph/module/folding.h"
#include "graph/module/outline.h"
#include "ir/target.h"
#include "ir/text/json.h"
#include "ir/vendor.h"

/* What went wrong in passes and lowering names the node: of which file? */
static void
name_file(const char *path, GError **error)
{
    if (path)
        kiln_prefix_error(error, "%s: ", path);
}

KilnModule *
kiln_compile_graph(const KilnModel *model, const KilnBinding *bindings,
                   const KilnPassPipeline *pipeline, const KilnPassOptions *options,
                   KilnPassReport *report, GError **error)
{
    if (model->ir_text)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "%s: is at the ir level, which has no graph", model->name);
    /* Shape arithmetic is evaluated on the reference kernels whatever the target: integers and
     * scales have one answer. */
    const KilnTarget *reference = kiln_target_by_name("ref", error);
    g_autoptr(KilnModule) module = kiln_specialise(model->module, bindings, reference, error);
    if (!module) {
        kiln_prefix_error(error, "%s: ", model->name);
        return NULL;
    }
    module->mode = options->mode;
    if (!kiln_pipeline_run_graph(pipeline, module, options, report, error)) {
        name_file(module->path, error);
        return NULL;
    }
    return g_steal_pointer(&module);
}

/* What the entry takes that is the same in every run. */
static void
fix_inputs(const KilnIRModule *ir)
{
    const KilnFunction *graph = kiln_module_entry(ir->module);
    const KilnIRFunction *entry = g_ptr_array_index(ir->functions, ir->functions->len - 1);
    for (guint i = 0; i < graph->arguments->len; i++) {
        if (kiln_argument_is_fixed(kiln_function_argument(graph, i)))
            kiln_ir_fix_input(g_ptr_array_index(entry->inputs, i));
    }
}

static gboolean
lower_and_run(KilnIRModule *ir, const KilnPassPipeline *pipeline, const KilnPassOptions *options,
              KilnPassReport *report, GError **error)
{
    /* Regions that no pass had compiled, where a pipeline was cut short or has none that does, run
     * on own kernels. */
    if (!kiln_module_inline_regions(ir->module, error))
        return FALSE;
    for (guint i = 0; i < ir->module->functions->len; i++) {
        KilnIRFunction *function = kiln_lower(g_ptr_array_index(ir->module->functions, i), error);
        if (!function)
            return FALSE;
        g_ptr_array_add(ir->functions, function);
    }
    fix_inputs(ir);
    return kiln_offload_resolve(ir, options->target, options->threads, error) &&
           kiln_pipeline_run_ir(pipeline, ir, options, report, error);
}

KilnIRModule *
kiln_compile_ir(KilnModule *module, const KilnPassPipeline *pipeline,
                const KilnPassOptions *options, KilnPassReport *report, GError **error)
{
    g_autoptr(KilnIRModule) ir = kiln_ir_module_new(module);
    if (lower_and_run(ir, pipeline, options, report, error))
        return g_steal_pointer(&ir);
    name_file(module->path, error);
    return NULL;
}

KilnIRModule *
kiln_compile_ir_text(const KilnModel *model, const KilnPassPipeline *pipeline,
                     const KilnPassOptions *options, KilnPassReport *report, GError **error)
{
    size_t length;
    const char *text = g_bytes_get_data(model->ir_text, &length);
    g_autoptr(KilnIRModule) ir = model->module->path
                                     ? kiln_ir_module_parse(text, length, model->name, error)
                                     : kiln_ir_module_parse_alone(text, length, model->name, error);
    if (!ir || !kiln_offload_resolve(ir, options->target, options->threads, error) ||
        !kiln_pipeline_run_ir(pipeline, ir, options, report, error))
        return NULL;
    return g_steal_pointer(&ir);
}
