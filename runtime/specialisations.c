/* SPDX-License-Identifier: Apache-2.0 */
/* The specialisations of a program: made when a combination of shapes (and of values that shapes
 * depend on) is met first, kept for the next time. The cache is short, so that a program whose
 * values differ at every run does not grow without end. */
#include "runtime/program.h"

#include "graph/base/alloc.h"
#include "graph/base/budget.h"
#include "graph/module/define.h"
#include "ir/define.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/bind.h"
#include "runtime/compile.h"
#include "runtime/fold_calls.h"
#include "runtime/open/carry.h"
#include "runtime/open/instance.h"
#include "runtime/open/probe.h"
#include "runtime/open/template.h"
#include "runtime/open/zeros.h"
#include "runtime/shapes/dims.h"
#include "runtime/specialise.h"

#include <string.h>

bool
kiln_specialisation_fits(const KilnProgram *program, const KilnSpecialisation *made,
                         const KilnBinding *bindings)
{
    for (unsigned i = 0; i < program->inputs.n; i++) {
        const KilnBinding *have = &made->bindings[i], *want = &bindings[i];
        if (have->rank != want->rank)
            return false;
        for (int d = 0; d < want->rank; d++) {
            if (have->dims[d] != want->dims[d])
                return false;
        }
        if (!program->value_inputs[i])
            continue;
        size_t size;
        const void *bytes = g_bytes_get_data(made->values[i], &size);
        if (size && memcmp(bytes, want->data, size) != 0)
            return false;
    }
    return true;
}

static gboolean
keep_key(const KilnProgram *program, KilnSpecialisation *made, const KilnBinding *bindings,
         GError **error)
{
    unsigned n = program->inputs.n;
    made->bindings = g_new0(KilnBinding, n + 1);
    made->values = g_new0(GBytes *, n + 1);
    for (unsigned i = 0; i < n; i++) {
        made->bindings[i] = bindings[i];
        made->bindings[i].data = NULL;
        if (!program->value_inputs[i])
            continue;
        size_t size = (size_t)made->inputs.info[i].bytes;
        void *copy;
        made->values[i] = kiln_bytes_new(1, size, &copy, error);
        if (!made->values[i])
            return FALSE;
        if (size)
            memcpy(copy, bindings[i].data, size);
    }
    return TRUE;
}

/* --- making --- */

/* What part of the whole each stage is, for progress. */
static const double graph_stage = 0.6, ir_stage = 0.2, bind_stage = 0.2;

static void
begin_stage(KilnProgram *program, double length)
{
    program->progress_done += program->progress_stage;
    program->progress_stage = length;
}

static KilnIRModule *
optimize(KilnProgram *program, const KilnModel *model, const KilnBinding *bindings, GError **error)
{
    const KilnPassPipeline *passes = program->pipeline->passes;
    const KilnPassOptions *options = &program->pass_options;
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    program->progress_done = program->progress_stage = 0;
    begin_stage(program, graph_stage);
    if (model->ir_text) {
        begin_stage(program, ir_stage);
        return kiln_compile_ir_text(model, passes, options, report, error);
    }
    KilnModule *module = kiln_compile_graph(model, bindings, passes, options, report, error);
    begin_stage(program, ir_stage);
    return module ? kiln_compile_ir(module, passes, options, report, error) : NULL;
}

/* Computes what can be computed ahead of the runs; *@out is NULL where there is nothing of that
 * kind. @literal: known values are literals already. */
static gboolean
fold(const KilnProgram *program, KilnIRModule *ir, bool literal, KilnFolder **out, GError **error)
{
    bool given = false;
    for (unsigned i = 0; !literal && i < program->model->inputs.n; i++)
        given |= program->values[i] != NULL;
    if (!given && !ir->module->folding && !kiln_ir_takes_fixed(ir))
        return TRUE;
    const KilnFoldOptions options = { .target = program->target,
                                      .directory = program->cache_dir,
                                      .threads = program->threads,
                                      .limits = program->limits,
                                      .values = literal ? NULL : program->values };
    *out = kiln_folder_new(ir, &options, error);
    return *out != NULL;
}

static KilnBindOptions
bind_options(KilnProgram *program)
{
    const KilnPassOptions *passes = &program->pass_options;
    return (KilnBindOptions){ .target = program->target,
                              .threads = program->threads,
                              .memory_limit = program->memory_limit,
                              .cache = program->cache,
                              .frugal = passes->prefer_memory,
                              .outputs = &program->model->outputs,
                              .progress = passes->progress,
                              .data = program };
}

/* Values that are known become literals. */
static void
bind_known(const KilnProgram *program, KilnBinding *bindings)
{
    for (unsigned i = 0; i < program->inputs.n; i++) {
        if (!program->values[i])
            continue;
        bindings[i].data = g_bytes_get_data(program->values[i], NULL);
        bindings[i].constness = KILN_CONSTNESS_VARYING;
    }
}

/* What @program is for one combination of shapes. *@out_literal is true where values that are known
 * had to become literals, because they decide dims. */
static KilnIRModule *
optimize_decided(KilnProgram *program, const KilnBinding *bindings, bool *out_literal,
                 GError **error)
{
    KilnIRModule *ir = optimize(program, program->model, bindings, error);
    bool known = false;
    for (unsigned i = 0; i < program->inputs.n; i++)
        known |= program->values[i] != NULL;
    *out_literal = ir && known && kiln_defines_any(ir->functions);
    if (!*out_literal)
        return ir;
    g_autofree KilnBinding *own = g_memdup2(bindings, program->inputs.n * sizeof *bindings);
    kiln_ir_module_free(ir);
    bind_known(program, own);
    return optimize(program, program->model, own, error);
}

/* Takes @ir over, of which data decides no dim. */
static KilnSpecialisation *
make_static(KilnProgram *program, KilnIRModule *ir, bool literal, const KilnBinding *bindings,
            GError **error)
{
    KilnFolder *folder = NULL;
    begin_stage(program, bind_stage);
    if (!fold(program, ir, literal, &folder, error)) {
        kiln_prefix_error(error, "%s: ", program->model->name);
        kiln_ir_module_free(ir);
        return NULL;
    }
    const KilnPassOptions *passes = &program->pass_options;
    KilnBindOptions options = bind_options(program);
    options.folder = folder;
    g_autoptr(KilnSpecialisation) made = kiln_program_bind(ir, &options, error);
    if (!made) {
        kiln_prefix_error(error, "%s: ", program->model->name);
        return NULL;
    }
    if (!keep_key(program, made, bindings, error))
        return NULL;
    if (!passes->progress(1, "done", program))
        return kiln_throw_null(error, KILN_ERROR_CANCELLED, "%s: cancelled", program->model->name);
    return g_steal_pointer(&made);
}

/* --- open programs --- */

/* What an open program is compiled for: the values that shapes depend on and the dims that the
 * caller or the model fixed; all others as the model says. */
static KilnBinding *
open_bindings(const KilnProgram *program, const KilnBinding *bindings, bool *out_any)
{
    unsigned n = program->inputs.n;
    KilnBinding *open = g_new0(KilnBinding, (gsize)n + 1);
    *out_any = program->model->ir_text != NULL; /* whose function is open, whatever is fixed */
    for (unsigned i = 0; i < n; i++) {
        bool fixed = kiln_type_is_static(&program->inputs.types[i]) || program->value_inputs[i];
        open[i] = bindings[i];
        /* the rank of elements may leave dims to data, which the model cannot say before */
        *out_any |= program->value_inputs[i] && kiln_dtype_is_item(program->inputs.types[i].dtype);
        if (fixed)
            continue;
        open[i].rank = program->inputs.types[i].rank;
        memcpy(open[i].dims, program->inputs.types[i].dims, sizeof open[i].dims);
        *out_any = true;
    }
    *out_any |= program->shaped && kiln_module_defines(program->shaped);
    bind_known(program, open);
    return open;
}

static bool
has_key(const KilnTemplate *template, const KilnProgram *program, const KilnBinding *bindings)
{
    for (unsigned i = 0; i < program->inputs.n; i++) {
        size_t size;
        const void *value =
            template->values[i] ? g_bytes_get_data(template->values[i], &size) : NULL;
        if (value && size && memcmp(value, bindings[i].data, size) != 0)
            return false;
    }
    return true;
}

/* Takes @ir over, whose entry is open, and @folder, if any. */
static KilnTemplate *
template_of(const KilnProgram *program, KilnIRModule *ir, KilnFolder *folder,
            const KilnBinding *bindings)
{
    unsigned n = program->inputs.n;
    g_autofree GBytes **values = g_new0(GBytes *, (gsize)n + 1);
    for (unsigned i = 0; i < n; i++) {
        KilnType type =
            kiln_type_make(program->inputs.types[i].dtype, bindings[i].rank, bindings[i].dims);
        if (program->value_inputs[i] && !program->values[i]) /* else there is one value */
            values[i] = g_bytes_new(bindings[i].data, (gsize)kiln_type_bytes(&type));
    }
    KilnTemplate *template = kiln_template_new(ir, folder, values, n);
    kiln_template_plan(template, program->target, program->threads);
    for (unsigned i = 0; i < n; i++)
        g_clear_pointer(&values[i], g_bytes_unref);
    return template;
}

/* NULL where @model, which is that of the program or has other facts of its dims, cannot be
 * compiled for open dims. */
static KilnTemplate *
make_template(KilnProgram *program, const KilnModel *model, const KilnBinding *bindings,
              GError **error)
{
    bool any;
    g_autofree KilnBinding *open = open_bindings(program, bindings, &any);
    KilnIRModule *ir = any ? optimize(program, model, open, error) : NULL;
    if (ir && !((KilnIRFunction *)g_ptr_array_index(ir->functions, ir->functions->len - 1))->open)
        g_clear_pointer(&ir, kiln_ir_module_free); /* passes found all that data seemed to decide */
    KilnFolder *folder = NULL;
    if (ir && !fold(program, ir, true, &folder, error))
        g_clear_pointer(&ir, kiln_ir_module_free);
    return ir ? template_of(program, ir, folder, bindings) : NULL;
}

/* Whether shapes of their own may go on where open dims did not: a program without a graph has
 * nothing to make theirs of. */
static bool
is_refusal(const KilnProgram *program, const GError *error)
{
    if (error && program->model->ir_text)
        return false;
    return !error || g_error_matches(error, KILN_ERROR, KILN_ERROR_SHAPE) ||
           g_error_matches(error, KILN_ERROR, KILN_ERROR_UNSUPPORTED) ||
           g_error_matches(error, KILN_ERROR, KILN_ERROR_INVALID);
}

/* That for all shapes, for sessions that carry nothing. @zeros: NULL: each name is as the model
 * says. */
static KilnTemplate *
look_up(const KilnProgram *program, const KilnBinding *bindings, const KilnZeros *zeros)
{
    for (guint i = 0; i < program->templates->len; i++) {
        KilnTemplate *template = g_ptr_array_index(program->templates, i);
        if (!template->base && !template->fixed && template->zeros == zeros &&
            has_key(template, program, bindings))
            return template;
    }
    return NULL;
}

/* The same for the shapes of @bindings. */
static KilnTemplate *
look_up_fixed(const KilnProgram *program, const KilnBinding *bindings)
{
    for (guint i = 0; i < program->templates->len; i++) {
        KilnTemplate *template = g_ptr_array_index(program->templates, i);
        bool fits = !template->base && template->fixed && has_key(template, program, bindings);
        for (unsigned k = 0; k < template->n_inputs && fits; k++)
            fits = kiln_binding_fits(&bindings[k], &template->input_types[k]);
        if (fits)
            return template;
    }
    return NULL;
}

static void
add_template(KilnProgram *program, KilnTemplate *template)
{
    if (program->templates->len == KILN_MAX_SPECIALISATIONS)
        g_ptr_array_remove_index(program->templates, 0);
    g_ptr_array_add(program->templates, template);
}

/* @base for a session that carries values. */
static KilnTemplate *
find_carried(KilnProgram *program, KilnTemplate *base, const KilnCarries *carries)
{
    if (!base || !carries || !carries->n)
        return base;
    for (guint i = 0; i < program->templates->len; i++) {
        KilnTemplate *template = g_ptr_array_index(program->templates, i);
        if (template->base == base && kiln_template_carries(template, carries))
            return template;
    }
    KilnTemplate *template = kiln_template_new_carried(base, carries);
    add_template(program, template);
    return template;
}

/* Makes the open program of @zeros, or of the model itself. *@out is NULL where there is none; then
 * *@out_refusal says why. */
static gboolean
try_template(KilnProgram *program, const KilnBinding *bindings, const KilnZeros *zeros,
             KilnTemplate **out, char **out_refusal, GError **error)
{
    const KilnModel *model = zeros ? zeros->model : program->model;
    g_autoptr(GError) why = NULL;
    *out = make_template(program, model, bindings, &why);
    if (*out) {
        (*out)->zeros = zeros;
        add_template(program, *out);
        return TRUE;
    }
    if (!is_refusal(program, why)) {
        g_propagate_error(error, g_steal_pointer(&why));
        return FALSE;
    }
    *out_refusal = g_strdup(why ? why->message : "no dim of its inputs is open");
    if (program->log && why) {
        g_autofree char *line = g_strdup_printf("%s: compiled for each shape%s: %s", model->name,
                                                zeros ? " with a dim of 0" : "", why->message);
        program->log(line, program->data);
    }
    return TRUE;
}

/* The same for shapes with dims of 0, which names at hand are not. */
static gboolean
find_with_zeros(KilnProgram *program, const KilnBinding *bindings, const GPtrArray *names,
                KilnTemplate **out, GError **error)
{
    KilnZeros *zeros;
    g_autoptr(GError) inner = NULL;
    while ((zeros = kiln_zeros_for(program->zeros, program->model, names, &inner))) {
        *out = look_up(program, bindings, zeros);
        if (!*out && !try_template(program, bindings, zeros, out, &zeros->refusal, error))
            return FALSE;
        if (*out)
            return TRUE;
    }
    if (!inner)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&inner));
    return FALSE;
}

/* The open program for @bindings, made where none was tried before; *@out is NULL where there is
 * none. */
static gboolean
find_template(KilnProgram *program, const KilnBinding *bindings, KilnTemplate **out, GError **error)
{
    *out = NULL;
    if (program->refusal || !program->open)
        return TRUE;
    g_autoptr(GPtrArray) names = kiln_zeros_of(&program->inputs, bindings);
    if (names->len && !program->model->ir_text)
        return find_with_zeros(program, bindings, names, out, error);
    *out = look_up(program, bindings, NULL);
    return *out || try_template(program, bindings, NULL, out, &program->refusal, error);
}

/* Values that shapes depend on are a key of open programs, and come with a run. */
static gboolean
check_no_values(const KilnProgram *program, GError **error)
{
    for (unsigned i = 0; i < program->inputs.n; i++) {
        if (program->value_inputs[i] && !program->values[i])
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "%s: cannot be saved: expected shapes that depend on no value of a "
                              "run, found ones that depend on the value of input %s",
                              program->model->name, program->inputs.info[i].name);
    }
    return TRUE;
}

/* Why there is no program for all shapes, without the name of the model. */
static const char *
refusal_of(const KilnProgram *program)
{
    const char *text = program->refusal ? program->refusal : "a dim of an input is 0";
    const size_t n = strlen(program->model->name);
    bool named = strncmp(text, program->model->name, n) == 0 && g_str_has_prefix(text + n, ": ");
    return named ? text + n + 2 : text;
}

/* The shapes as far as the model and the caller fixed them. */
static KilnBinding *
stated_bindings(const KilnProgram *program)
{
    KilnBinding *bindings = g_new0(KilnBinding, (gsize)program->inputs.n + 1);
    for (unsigned i = 0; i < program->inputs.n; i++) {
        const KilnType *type = &program->inputs.types[i];
        bindings[i].rank = type->rank;
        memcpy(bindings[i].dims, type->dims, sizeof bindings[i].dims);
        bindings[i].constness = program->constness[i];
    }
    return bindings;
}

static KilnTemplate *
open_template(KilnProgram *program, KilnPackedForm **out_forms, GError **error)
{
    g_autofree KilnBinding *bindings = stated_bindings(program);
    KilnBindOptions options = bind_options(program);
    KilnTemplate *template = NULL;
    options.progress = NULL;
    if (!check_no_values(program, error) || !find_template(program, bindings, &template, error))
        return NULL;
    if (!template)
        return kiln_throw_null(error, KILN_ERROR_UNSUPPORTED,
                               "%s: cannot be saved: expected a program for all shapes, or one "
                               "with fixed shapes, found one that is compiled for each shape: %s",
                               program->model->name, refusal_of(program));
    *out_forms = kiln_probe_forms(template, &options, error);
    return *out_forms ? kiln_template_ref(template) : NULL;
}

KilnTemplate *
kiln_program_open_template(KilnProgram *program, KilnPackedForm **out_forms, GError **error)
{
    g_autoptr(KilnBudget) budget = kiln_budget_new(&program->limits);
    KilnBudget *before = kiln_budget_enter(budget);
    pthread_mutex_lock(&program->lock);
    KilnTemplate *template = open_template(program, out_forms, error);
    pthread_mutex_unlock(&program->lock);
    kiln_budget_leave(before);
    return template;
}

/* *@out is NULL where @bindings need a program of their own. */
static gboolean
instantiate(KilnProgram *program, const KilnBinding *bindings, KilnCarries *carries,
            KilnSpecialisation **out, GError **error)
{
    KilnTemplate *template;
    KilnBindOptions options = bind_options(program);
    options.carries = carries;
    g_autoptr(GError) why = NULL;
    *out = NULL;
    if (!find_template(program, bindings, &template, error))
        return FALSE;
    if (!template)
        template = look_up_fixed(program, bindings);
    template = find_carried(program, template, carries);
    *out = template ? kiln_instance_new(template, &options, bindings, &why) : NULL;
    if (is_refusal(program, why) && !(why && template->fixed))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&why));
    return FALSE;
}

/* Numbers that data decides need an instance, also where one combination of shapes has a program of
 * its own. Takes @ir over. */
static KilnSpecialisation *
make_undecided(KilnProgram *program, KilnIRModule *ir, const KilnBinding *bindings,
               KilnCarries *carries, GError **error)
{
    KilnBindOptions options = bind_options(program);
    KilnTemplate *template = template_of(program, ir, NULL, bindings);
    options.carries = carries;
    template->fixed = true;
    add_template(program, template);
    return kiln_instance_new(find_carried(program, template, carries), &options, bindings, error);
}

/* A program for @bindings alone. *@out_instance or the result is set. */
static KilnSpecialisation *
make(KilnProgram *program, const KilnBinding *bindings, KilnCarries *carries,
     KilnSpecialisation **out_instance, GError **error)
{
    bool literal;
    KilnIRModule *ir = optimize_decided(program, bindings, &literal, error);
    if (!ir)
        return NULL;
    if (!kiln_defines_any(ir->functions))
        return make_static(program, ir, literal, bindings, error);
    if (program->open) {
        *out_instance = make_undecided(program, ir, bindings, carries, error);
        return NULL;
    }
    kiln_ir_module_free(ir);
    return kiln_throw_null(error, KILN_ERROR_UNSUPPORTED,
                           "%s: expected dims that inputs decide, found ones that data decides",
                           program->model->name);
}

/* --- the cache --- */

/* The specialisation for @bindings, moved to the end of the list; NULL where there is none. */
static KilnSpecialisation *
find(KilnProgram *program, const KilnBinding *bindings)
{
    GPtrArray *list = program->specialisations;
    for (guint i = list->len; i-- > 0;) {
        if (!kiln_specialisation_fits(program, g_ptr_array_index(list, i), bindings))
            continue;
        g_ptr_array_insert(list, -1, g_ptr_array_steal_index(list, i));
        return g_ptr_array_index(list, list->len - 1);
    }
    return NULL;
}

/* What the caller or the model stated of dims is no matter of the shapes that a program can take.
 */
static gboolean
check_stated(const KilnProgram *program, const KilnBinding *bindings, GError **error)
{
    for (unsigned i = 0; i < program->inputs.n; i++) {
        if (!kiln_dims_check(&program->inputs.types[i], program->inputs.info[i].name, &bindings[i],
                             error))
            return FALSE;
    }
    return TRUE;
}

KilnSpecialisation *
kiln_program_specialise(KilnProgram *program, const KilnBinding *bindings, KilnCarries *carries,
                        GError **error)
{
    if (!check_stated(program, bindings, error))
        return NULL;
    g_autoptr(KilnBudget) budget = kiln_budget_new(&program->limits);
    KilnBudget *before = kiln_budget_enter(budget);
    /* Compiling under the lock makes each combination once, however many sessions meet it first
     * together. */
    pthread_mutex_lock(&program->lock);
    KilnSpecialisation *found = find(program, bindings), *instance = NULL;
    gboolean good = found || instantiate(program, bindings, carries, &instance, error);
    if (good && !found && !instance &&
        (found = make(program, bindings, carries, &instance, error))) {
        if (program->specialisations->len == KILN_MAX_SPECIALISATIONS)
            g_ptr_array_remove_index(program->specialisations, 0);
        g_ptr_array_add(program->specialisations, found);
    }
    if (found)
        kiln_specialisation_ref(found);
    pthread_mutex_unlock(&program->lock);
    kiln_budget_leave(before);
    return instance ? instance : found;
}
