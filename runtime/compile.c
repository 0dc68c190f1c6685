/* SPDX-License-Identifier: Apache-2.0 */
/* From a model to optimized IR: the steps that kiln_program_compile() walks and `kiln opt` can stop
 * on. */
#include "runtime/compile.h"

#include "graph/binding.h"
#include "graph/dim/dim_defined.h"
#include "graph/dim/dim_equal.h"
#include "graph/dim/dim_small.h"
#include "graph/module/define.h"
#include "graph/module/folding.h"
#include "graph/module/outline.h"
#include "graph/size.h"
#include "ir/define.h"
#include "ir/open.h"
#include "ir/plan/settle.h"
#include "ir/target.h"
#include "ir/text/json.h"
#include "ir/vendor.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/manager.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/targets.h"

/* What went wrong in passes and lowering names the node: of which file? */
static void
name_file(const char *path, GError **error)
{
    if (path)
        kiln_prefix_error(error, "%s: ", path);
}

/* The graph of @model for @bindings, optimized. */
static KilnModule *
optimize_graph(const KilnModel *model, const KilnBinding *bindings,
               const KilnPassPipeline *pipeline, const KilnPassOptions *options,
               KilnPassReport *report, GError **error)
{
    /* Shape arithmetic is evaluated on the reference kernels whatever the target: integers and
     * scales have one answer. */
    const KilnTarget *reference = kiln_target_by_name("ref", error);
    g_autoptr(KilnModule) special = kiln_specialise(model->module, bindings, reference, error);
    if (!special) {
        kiln_prefix_error(error, "%s: ", model->name);
        return NULL;
    }
    if (!kiln_pipeline_run_graph(pipeline, special, options, report, error)) {
        name_file(special->path, error);
        return NULL;
    }
    return g_steal_pointer(&special);
}

/* True where data decides dims of @module, and something is computed at the first run. An instance
 * that moves in a run cannot have that. */
static bool
folds_beside_data(const KilnModule *module)
{
    const GPtrArray *arguments = kiln_module_entry(module)->arguments;
    bool folds = module->folding != NULL;
    for (guint i = 0; i < arguments->len && !folds; i++)
        folds = kiln_argument_is_fixed(g_ptr_array_index(arguments, i));
    return folds && kiln_module_defines(module);
}

/* The same where no input is constant. */
static KilnModule *
optimize_varying(const KilnModel *model, const KilnBinding *bindings,
                 const KilnPassPipeline *pipeline, const KilnPassOptions *options,
                 KilnPassReport *report, GError **error)
{
    g_autoptr(KilnModule) module = kiln_module_clone(model->module);
    const KilnModel varying = { .name = model->name, .module = module };
    const GPtrArray *arguments = kiln_module_entry(module)->arguments;
    g_autofree KilnBinding *own =
        bindings ? g_memdup2(bindings, arguments->len * sizeof *bindings) : NULL;
    for (guint i = 0; i < arguments->len; i++) {
        ((KilnArgument *)g_ptr_array_index(arguments, i))->constness = KILN_CONSTNESS_VARYING;
        if (own)
            own[i].constness = KILN_CONSTNESS_VARYING;
    }
    return optimize_graph(&varying, own, pipeline, options, report, error);
}

KilnModule *
kiln_compile_graph(const KilnModel *model, const KilnBinding *bindings,
                   const KilnPassPipeline *pipeline, const KilnPassOptions *options,
                   KilnPassReport *report, GError **error)
{
    if (model->ir_text)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "%s: is at the ir level, which has no graph", model->name);
    KilnModule *module = optimize_graph(model, bindings, pipeline, options, report, error);
    if (module && !model->module->folding && folds_beside_data(module)) {
        kiln_module_free(module);
        module = optimize_varying(model, bindings, pipeline, options, report, error);
    }
    return module;
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
lower_all(KilnIRModule *ir, GError **error)
{
    for (guint i = 0; i < ir->module->functions->len; i++) {
        if (!kiln_lower_into(ir, g_ptr_array_index(ir->module->functions, i), error))
            return FALSE;
    }
    return TRUE;
}

/* --- open dims --- */

enum {
    OPEN_VARIANTS = 3, /* of the binding at which an open module is lowered; the first one stays */
    SHOWN_NAMES = 4    /* in errors */
};

static bool
is_open(const KilnModule *module)
{
    const GPtrArray *inputs = kiln_module_inputs(module);
    bool open = false;
    for (guint i = 0; i < inputs->len; i++)
        open |=
            !kiln_type_is_static(&((const KilnArgument *)g_ptr_array_index(inputs, i))->value.type);
    return open || kiln_module_defines(module);
}

/* Some models need pictures of some pixels, sounds of some samples, or extents that halve without a
 * rest. */
static const int64_t scales[] = { 1, 32, 1 << 10, 1 << 15 };

static gboolean
stand_at(KilnModule *module, unsigned variant, int64_t scale, GError **error)
{
    const KilnDimBinding *binding = kiln_dim_binding_typical(module, variant, scale);
    if (!binding)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "expected a name for each open dim of the inputs, found another one");
    return kiln_module_stand_at(module, binding, error);
}

/* The numbers in a text are those of @binding. */
static void
prefix_numbers(const KilnDimBinding *binding, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (uint32_t i = 0; binding && i < MIN(binding->n, (uint32_t)SHOWN_NAMES); i++)
        g_string_append_printf(text, "%s%s = %" G_GINT64_FORMAT, i ? ", " : "with ",
                               binding->names[i].name, binding->names[i].number);
    if (text->len)
        kiln_prefix_error(error, "%s%s: ", text->str, binding->n > SHOWN_NAMES ? ", …" : "");
}

static gboolean
lower_at(KilnIRModule *ir, unsigned variant, int64_t scale, GError **error)
{
    gboolean good = stand_at(ir->module, variant, scale, error) && lower_all(ir, error);
    for (guint i = 0; good && i < ir->functions->len; i++)
        good = kiln_ir_verify(g_ptr_array_index(ir->functions, i), error);
    if (!good)
        prefix_numbers(kiln_dim_binding_typical(ir->module, variant, scale), error);
    return good;
}

/* Lowers copies of @module at some bindings, and itself at another one: what differs must have
 * expressions. */
static gboolean
lower_scaled(KilnIRModule *ir, int64_t scale, GError **error)
{
    g_autoptr(GPtrArray) others =
        g_ptr_array_new_with_free_func((GDestroyNotify)kiln_ir_module_free);
    for (unsigned v = 1; v < OPEN_VARIANTS; v++) {
        KilnIRModule *other = kiln_ir_module_new(kiln_module_clone(ir->module));
        g_ptr_array_add(others, other);
        if (!lower_at(other, v, scale, error))
            return FALSE;
    }
    /* Extents that the scale leaves out are looked at where the model takes them. */
    KilnIRModule *between = kiln_ir_module_new(kiln_module_clone(ir->module));
    if (scale > 1 && lower_at(between, 0, 1, NULL))
        g_ptr_array_add(others, between);
    else
        kiln_ir_module_free(between);
    g_ptr_array_set_size(ir->functions, 0);
    if (!lower_at(ir, 0, scale, error))
        return FALSE;
    for (guint v = 0; v < others->len; v++) {
        const KilnIRModule *other = g_ptr_array_index(others, v);
        for (guint i = 0; i < ir->functions->len; i++) {
            if (!kiln_open_compare(g_ptr_array_index(ir->functions, i),
                                   g_ptr_array_index(other->functions, i), error))
                return FALSE;
        }
    }
    return TRUE;
}

/* *@out_scale gets the scale of the bindings that the model takes. */
static gboolean
lower_open(KilnIRModule *ir, int64_t *out_scale, GError **error)
{
    g_autoptr(GError) first = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(scales); i++) {
        g_autoptr(GError) why = NULL;
        *out_scale = scales[i];
        if (lower_scaled(ir, scales[i], &why))
            return TRUE;
        if (!first)
            first = g_steal_pointer(&why);
    }
    g_propagate_error(error, g_steal_pointer(&first));
    return FALSE;
}

/* Passes looked at one binding: what they made must be valid at others, too. */
static gboolean
verify_open(const KilnIRModule *ir, int64_t scale, GError **error)
{
    for (unsigned v = 0; v < OPEN_VARIANTS; v++) {
        const KilnDimBinding *binding = kiln_dim_binding_typical(ir->module, v, scale);
        for (guint i = 0; i < ir->functions->len; i++) {
            if (kiln_open_verify_at(g_ptr_array_index(ir->functions, i), binding, error))
                continue;
            prefix_numbers(binding, error);
            return FALSE;
        }
    }
    return TRUE;
}

/* What was assumed of names without an upper bound is checked where a program moves to numbers. */
static void
require_small(KilnIRFunction *function)
{
    KilnDimTable *table = function->module->dims;
    const KilnDimBinding *binding = kiln_open_binding(function);
    const KilnSize most = kiln_size_make(KILN_DIM_SMALL);
    for (uint32_t i = 0; kiln_dim_table_assumes_small(table) && i < binding->n; i++) {
        const KilnBoundName *bound = &binding->names[i];
        const KilnDim *name = kiln_dim_name(table, bound->name);
        KilnDimFacts facts;
        if (!kiln_dim_facts(name, &facts) || facts.hi != KILN_DIM_MOST)
            continue;
        const KilnDim *larger = kiln_dim_max(table, name, kiln_dim_number(table, KILN_DIM_SMALL));
        kiln_open_require_equal(function, kiln_size_open(MAX(bound->number, most.n), larger), most,
                                bound->name);
    }
}

static bool
is_unbound(void *binding, const char *name)
{
    int64_t ignored;
    return !kiln_dim_binding_lookup(binding, name, &ignored);
}

/* What was assumed of expressions is checked there, too. What has names that this program does not
 * have was assumed for another one. */
static void
require_assumed(KilnIRFunction *function)
{
    KilnDimBinding *binding = (KilnDimBinding *)kiln_open_binding(function);
    const KilnDim *a, *b;
    for (unsigned i = 0; kiln_dim_table_assumed_equal(function->module->dims, i, &a, &b); i++) {
        if (!kiln_dim_any_name(a, is_unbound, binding) &&
            !kiln_dim_any_name(b, is_unbound, binding))
            kiln_open_require_equal(function, kiln_size_open(0, a), kiln_size_open(0, b), "shape");
    }
}

static gboolean
lower_and_run(KilnIRModule *ir, const KilnPassPipeline *pipeline, const KilnPassOptions *options,
              KilnPassReport *report, GError **error)
{
    bool open = is_open(ir->module);
    int64_t scale = 1;
    /* Regions that no pass had compiled, where a pipeline was cut short or has none that does, run
     * on own kernels. */
    if (!kiln_module_inline_regions(ir->module, error) ||
        !(open ? lower_open(ir, &scale, error) : lower_all(ir, error)))
        return FALSE;
    fix_inputs(ir);
    if (!kiln_offload_resolve(ir, options->target, options->threads, error) ||
        !kiln_pipeline_run_ir(pipeline, ir, options, report, error) ||
        (open && !verify_open(ir, scale, error)))
        return FALSE;
    KilnIRFunction *entry = g_ptr_array_index(ir->functions, ir->functions->len - 1);
    if (open) {
        require_small(entry);
        require_assumed(entry);
    }
    g_autoptr(KilnDefines) defines = kiln_defines_new(entry);
    if (defines && (ir->module->folding || kiln_ir_takes_fixed(ir)))
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "expected a model without constants that come with the first run, "
                          "because data decides dims, found one with them");
    if (open && !options->prefer_memory)
        kiln_open_settle(entry);
    return TRUE;
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
