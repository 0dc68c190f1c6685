/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/random/given.h"

#include "runtime/kiln-pipeline.h"
#include "runtime/session.h"
#include "graph/node.h"
#include "graph/text/text.h"
#include "passes/manager/numerics.h"
#include "passes/pipeline/pipeline_priv.h"

void
given_set_option(KilnPassPipeline *passes, KilnPipelineEntry *entry, const char *name,
                 const char *value)
{
    g_autoptr(GError) error = NULL;
    KilnOptionText text = { .words = &value, .n_words = 1 };
    if (!kiln_pipeline_set_option(passes, entry, name, &text, &error))
        g_error("%s", error->message);
}

/* --- constants that become arguments --- */

void
given_clear(Given *given)
{
    g_clear_pointer(&given->module, kiln_module_free);
    g_clear_pointer(&given->inputs, g_ptr_array_unref);
}

uint32_t
given_draw(const char *name, uint64_t seed, uint32_t n)
{
    uint64_t z = (seed + g_str_hash(name)) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)((z >> 32) % n);
}

/* Types must not hang on it. */
static bool
may_vary(const KilnValue *value)
{
    const KilnConstant *constant = kiln_value_constant(value);
    if (!constant || value->known || constant->type.quant || constant->type.layout ||
        !kiln_tensor_is_readable(constant->tensor))
        return false;
    kiln_foreach_use (use, value) {
        if (kiln_op_is_shape_operand(use->user->op, use->index))
            return false;
    }
    return value->n_uses > 0;
}

void
given_init(Given *out, const Subject *subject, uint64_t seed, bool constants)
{
    *out = (Given){ .module = kiln_module_clone(subject->module),
                    .inputs = g_ptr_array_new(),
                    .n_before = subject->inputs->len,
                    .seed = seed };
    KilnFunction *function = kiln_module_entry(out->module);
    g_ptr_array_extend(out->inputs, subject->inputs, NULL, NULL);
    kiln_foreach_node_safe (node, function) {
        KilnValue *value = node->op == KILN_OP_const ? &node->results[0] : NULL;
        if (!constants || !value || !may_vary(value) || given_draw(value->name, seed, 2))
            continue;
        KilnTensor *tensor = kiln_value_constant(value)->tensor;
        g_autofree char *name = g_strdup_printf("given_%s", value->name);
        KilnArgument *argument = kiln_function_add_argument(function, name, &value->type, NULL);
        kiln_value_replace(value, &argument->value);
        g_ptr_array_add(out->inputs, tensor);
    }
}

/* --- programs --- */

KilnModel *
given_load(const KilnModule *module, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    kiln_module_print(module, NULL, text, NULL);
    g_autoptr(GBytes) bytes = g_string_free_to_bytes(g_steal_pointer(&text));
    return kiln_model_load_bytes(bytes, "random.kiln", error);
}

static Way
way_of(const Given *given, guint i, Way way)
{
    if (i < given->n_before)
        return WAY_INPUT;
    const KilnArgument *argument = kiln_function_argument(kiln_module_entry(given->module), i);
    return way != WAY_MIXED ? way
                            : (Way)given_draw(argument->value.name, given->seed + 1, WAY_MIXED);
}

KilnProgram *
given_compile(const Given *given, Way way, KilnModel *model, const KilnCompileOptions *options,
              GError **error)
{
    KilnCompileOptions all = *options;
    guint n = kiln_model_n_inputs(model);
    g_autofree KilnConstantInput *constants = g_new0(KilnConstantInput, n + 1);
    g_autoptr(GPtrArray) values = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    for (guint i = 0; i < n; i++) {
        Way mine = way_of(given, i, way);
        if (mine == WAY_INPUT)
            continue;
        GBytes *value = kiln_tensor_view(g_ptr_array_index(given->inputs, i), error);
        if (!value)
            return NULL;
        g_ptr_array_add(values, value);
        constants[all.n_constants++] =
            (KilnConstantInput){ kiln_model_input(model, i)->name, (KilnConstantWhen)mine, value };
    }
    all.constants = constants;
    return kiln_program_compile(model, &all, error);
}

/* --- runs --- */

static KilnTensor *
output_of(KilnSession *session, unsigned i, GError **error)
{
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    info.bytes = -1;
    const void *data = kiln_session_output(session, i, &info, error);
    if (!data && info.bytes)
        return NULL;
    KilnType type = kiln_type_make(info.dtype, info.rank, info.dims);
    return kiln_tensor_new_copy(&type, data, error);
}

KilnResults *
given_results(KilnSession *session, GError **error)
{
    const KilnProgram *program = session->program;
    g_autoptr(KilnResults) results = kiln_results_new((KilnErrorTerms){ .terms = 1 });
    for (unsigned i = 0; i < kiln_program_n_outputs(program); i++) {
        KilnTensor *tensor = output_of(session, i, error);
        if (!tensor)
            return NULL;
        kiln_results_add(results, kiln_program_output(program, i)->name, tensor);
    }
    return g_steal_pointer(&results);
}

gboolean
given_bind(KilnSession *session, unsigned i, KilnTensor *tensor, GPtrArray *bound, GError **error)
{
    GBytes *bytes = kiln_tensor_view(tensor, error);
    if (!bytes)
        return FALSE;
    g_ptr_array_add(bound, bytes);
    return kiln_session_bind_input(session, i, g_bytes_get_data(bytes, NULL),
                                   g_bytes_get_size(bytes), error);
}

KilnResults *
given_run(const Given *given, Way way, KilnProgram *program, const KilnSessionOptions *options,
          GError **error)
{
    KilnSessionOptions seeded = KILN_SESSION_OPTIONS_INIT;
    if (options)
        seeded = *options;
    seeded.seeded = TRUE; /* all ways draw the same numbers */
    g_autoptr(KilnSession) session = kiln_session_new(program, &seeded, error);
    if (!session)
        return NULL;
    g_autoptr(GPtrArray) bound = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    for (guint i = 0; i < kiln_program_n_inputs(program); i++) {
        if (way_of(given, i, way) == WAY_COMPILE)
            continue;
        if (!given_bind(session, i, g_ptr_array_index(given->inputs, i), bound, error))
            return NULL;
    }
    return kiln_session_run(session, error) ? given_results(session, error) : NULL;
}

KilnResults *
given_run_under(const Given *given, Way way, KilnModel *model, KilnPipeline *pipeline,
                const char *target, bool offload, GError **error)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = pipeline;
    options.target = target;
    options.threads = 1;
    options.no_offload = !offload;
    g_autoptr(KilnProgram) program = given_compile(given, way, model, &options, error);
    return program ? given_run(given, way, program, NULL, error) : NULL;
}
