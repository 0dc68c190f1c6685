/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/random/ways.h"

#include "graph/text/text.h"
#include "passes/rule.h"
#include "runtime/internal.h"

#include <string.h>

/* How a constant is given to a program; the first three are values of KilnConstantWhen and none. */
typedef enum {
    WAY_COMPILE = KILN_CONSTANT_COMPILE,
    WAY_RUN = KILN_CONSTANT_RUN,
    WAY_INPUT,
    WAY_MIXED, /* each in one of these ways */
    N_WAYS,
} Way;

static const char *const way_names[] = { "known to compile", "known at the first run", "inputs",
                                         "given in mixed ways" };

/* --- constants that become arguments --- */

typedef struct {
    KilnModule *module;
    GPtrArray *inputs; /* KilnTensor*, per argument of the module; borrowed */
    guint n_before;    /* of them the module has anyway */
    uint64_t seed;
} Given;

static void
given_clear(Given *given)
{
    g_clear_pointer(&given->module, kiln_module_free);
    g_clear_pointer(&given->inputs, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Given, given_clear)

static uint32_t
drawn(const char *name, uint64_t seed, uint32_t n)
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
        constant->tensor->kind == KILN_TENSOR_SPARSE ||
        constant->tensor->kind == KILN_TENSOR_STRINGS)
        return false;
    kiln_foreach_use (use, value) {
        if (kiln_op_is_shape_operand(use->user->op, use->index))
            return false;
    }
    return value->n_uses > 0;
}

static void
make_arguments(const Subject *subject, uint64_t seed, Given *out)
{
    *out = (Given){ .module = kiln_module_clone(subject->module),
                    .inputs = g_ptr_array_new(),
                    .n_before = subject->inputs->len,
                    .seed = seed };
    KilnFunction *function = kiln_module_entry(out->module);
    g_ptr_array_extend(out->inputs, subject->inputs, NULL, NULL);
    kiln_foreach_node_safe (node, function) {
        KilnValue *value = node->op == KILN_OP_const ? &node->results[0] : NULL;
        if (!value || !may_vary(value) || drawn(value->name, seed, 2))
            continue;
        KilnTensor *tensor = kiln_value_constant(value)->tensor;
        g_autofree char *name = g_strdup_printf("given_%s", value->name);
        KilnArgument *argument = kiln_function_add_argument(function, name, &value->type, NULL);
        kiln_value_replace(value, &argument->value);
        g_ptr_array_add(out->inputs, tensor);
    }
}

/* --- programs --- */

static KilnModel *
load(const KilnModule *module, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    kiln_module_print(module, NULL, text, NULL);
    g_autoptr(GBytes) bytes = g_string_free_to_bytes(g_steal_pointer(&text));
    return kiln_model_load_bytes(bytes, "random.kiln", error);
}

/* Of @entries what changes no bit, and the lowerings without which nothing runs. */
static void
keep_exact(GPtrArray *entries, bool three, bool late)
{
    for (guint i = entries->len; i-- > 0;) {
        KilnPipelineEntry *entry = g_ptr_array_index(entries, i);
        if (entry->group) {
            keep_exact(entry->group, three, late);
            if (!entry->group->len)
                g_ptr_array_remove_index(entries, i);
        } else if (strcmp(entry->pass->id, "constant-fold") == 0) {
            KilnPassOptions_constant_fold *options = entry->options;
            options->functions = three ? "three" : "two";
            options->evaluate = late ? "run" : "compile";
        } else if (kiln_pass_numerics(entry->pass, 0) != KILN_NUMERICS_E &&
                   !g_str_has_prefix(entry->pass->id, "lower")) {
            g_ptr_array_remove_index(entries, i);
        }
    }
}

static KilnPipeline *
exact_pipeline(uint64_t seed, GError **error)
{
    KilnPipeline *pipeline = kiln_pipeline_load("default", error);
    if (pipeline)
        keep_exact(pipeline->passes->graph, seed & 1, seed >> 1 & 1);
    return pipeline;
}

static Way
way_of(const Given *given, guint i, Way way)
{
    const KilnArgument *argument = kiln_function_argument(kiln_module_entry(given->module), i);
    return way != WAY_MIXED ? way : (Way)drawn(argument->value.name, given->seed + 1, WAY_MIXED);
}

static KilnProgram *
compile(KilnModel *model, const char *target, const Given *given, Way way, GError **error)
{
    g_autoptr(KilnPipeline) pipeline = exact_pipeline(given->seed, error);
    if (!pipeline)
        return NULL;
    guint n = kiln_model_n_inputs(model);
    g_autofree KilnConstantInput *constants = g_new0(KilnConstantInput, n + 1);
    g_autoptr(GPtrArray) values = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    for (guint i = given->n_before; i < n; i++) {
        Way mine = way_of(given, i, way);
        if (mine == WAY_INPUT)
            continue;
        GBytes *value = kiln_tensor_view(g_ptr_array_index(given->inputs, i), error);
        if (!value)
            return NULL;
        g_ptr_array_add(values, value);
        constants[options.n_constants++] =
            (KilnConstantInput){ kiln_model_input(model, i)->name, (KilnConstantWhen)mine, value };
    }
    options.pipeline = pipeline;
    options.target = target;
    options.threads = 1;
    options.no_offload = TRUE;
    options.constants = constants;
    return kiln_program_compile(model, &options, error);
}

/* --- runs --- */

static KilnTensor *
output_of(KilnSession *session, unsigned i, GError **error)
{
    KilnTensorInfo info = { .bytes = -1 };
    const void *data = kiln_session_output(session, i, &info, error);
    if (!data && info.bytes)
        return NULL;
    KilnType type = kiln_type_make(info.dtype, info.rank, info.dims);
    return kiln_tensor_new_copy(&type, data, error);
}

/* Outputs by name, and the tensors bound until they are read. */
static KilnResults *
run(KilnModel *model, const char *target, const Given *given, Way way, GError **error)
{
    g_autoptr(KilnProgram) program = compile(model, target, given, way, error);
    g_autoptr(KilnSession) session = program ? kiln_session_new(program, NULL, error) : NULL;
    if (!session)
        return NULL;
    g_autoptr(GPtrArray) bound = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    for (guint i = 0; i < kiln_program_n_inputs(program); i++) {
        if (i >= given->n_before && way_of(given, i, way) == WAY_COMPILE)
            continue;
        GBytes *bytes = kiln_tensor_view(g_ptr_array_index(given->inputs, i), error);
        if (!bytes)
            return NULL;
        g_ptr_array_add(bound, bytes);
        if (!kiln_session_bind_input(session, i, g_bytes_get_data(bytes, NULL),
                                     g_bytes_get_size(bytes), error))
            return NULL;
    }
    if (!kiln_session_run(session, error))
        return NULL;
    g_autoptr(KilnResults) results = kiln_results_new((KilnErrorTerms){ 1, 0 });
    for (unsigned i = 0; i < kiln_program_n_outputs(program); i++) {
        KilnTensor *tensor = output_of(session, i, error);
        if (!tensor)
            return NULL;
        kiln_results_add(results, kiln_program_output(program, i)->name, tensor);
    }
    return g_steal_pointer(&results);
}

static gboolean
agree_on(const char *target, KilnModel *literal, KilnModel *given_model, const Given *given,
         GError **error)
{
    g_autoptr(KilnResults) expected = run(literal, target, given, WAY_INPUT, error);
    for (Way way = 0; expected && way < N_WAYS; way++) {
        g_autoptr(KilnResults) found = run(given_model, target, given, way, error);
        if (!found || !kiln_results_compare(expected, found, KILN_NUMERICS_E, error)) {
            g_prefix_error(error, "on %s, constants %s: ", target, way_names[way]);
            return FALSE;
        }
    }
    return expected != NULL;
}

gboolean
ways_agree(uint64_t seed, Subject *subject, bool *fired, GError **error)
{
    g_auto(Given) given = { 0 };
    make_arguments(subject, seed, &given);
    *fired = given.inputs->len > given.n_before;
    if (!*fired)
        return TRUE;
    g_autoptr(KilnModel) literal = load(subject->module, error);
    g_autoptr(KilnModel) model = literal ? load(given.module, error) : NULL;
    return model && agree_on("ref", literal, model, &given, error) &&
           agree_on("cpu", literal, model, &given, error);
}
