/* SPDX-License-Identifier: Apache-2.0 */
/* kiln run: runs a model on files or random inputs, summarises, stores or compares its outputs. */
#include "exec/eval.h"
#include "graph/arena.h"
#include "graph/base/random.h"
#include "graph/base/write_file.h"
#include "graph/binding.h"
#include "graph/module/folding.h"
#include "kiln.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "runtime/shapes/texts.h"
#include "runtime/tensors/item_compare.h"
#include "runtime/tensors/tensor_file.h"
#include "tools/batch.h"
#include "tools/command.h"
#include "tools/execute.h"
#include "tools/inputs.h"
#include "tools/overwrite.h"
#include "tools/summary.h"
#include "tools/trace.h"
#include "tools/values.h"

#include <stdio.h>

enum {
    MAX_JOBS = 1024
};

typedef struct {
    KilnInputs inputs;
    char *out_dir, *expect_dir, *inputs_dir, *values_dir, *labels, *iteration, *batch_of;
    GArray *iterations; /* int64_t: of --iteration */
    gboolean poison, profile, npy, overwrite;
    double rtol, atol;
    int runs, jobs;
} RunOptions;

static void
run_options_clear(RunOptions *run)
{
    kiln_inputs_clear(&run->inputs);
    g_free(run->out_dir);
    g_free(run->expect_dir);
    g_free(run->inputs_dir);
    g_free(run->values_dir);
    g_free(run->labels);
    g_free(run->iteration);
    g_free(run->batch_of);
    g_clear_pointer(&run->iterations, g_array_unref);
}

/* "N" or "N,M": one number for each depth of loops. */
static gboolean
read_iterations(RunOptions *run, GError **error)
{
    run->iterations = g_array_new(FALSE, FALSE, sizeof(int64_t));
    if (!run->iteration)
        return TRUE;
    if (!run->values_dir)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--iteration %s: expected --dump-values, whose values it chooses",
                          run->iteration);
    g_auto(GStrv) parts = g_strsplit(run->iteration, ",", -1);
    for (char **part = parts; *part; part++) {
        guint64 number;
        if (!g_ascii_string_to_unsigned(*part, 10, 0, G_MAXINT64, &number, NULL))
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "--iteration: expected numbers from 0 on, such as 3 or 3,0, found "
                              "'%s'",
                              run->iteration);
        const int64_t signed_number = (int64_t)number;
        g_array_append_val(run->iterations, signed_number);
    }
    return run->iterations->len ||
           kiln_throw(error, KILN_ERROR_USAGE, "--iteration: expected a number, found none");
}

/* Each run of a batch has one result, and nothing is printed of it. */
static gboolean
check_batch(const RunOptions *run, GError **error)
{
    const struct {
        const char *option;
        bool given;
    } others[] = { { "save-inputs", run->inputs_dir }, { "dump-values", run->values_dir },
                   { "expect", run->expect_dir },      { "labels", run->labels },
                   { "profile", run->profile },        { "runs", run->runs != 1 } };
    if (run->jobs < 0 || run->jobs > MAX_JOBS)
        return kiln_throw(error, KILN_ERROR_USAGE, "--jobs: expected 0 to %d, found %d", MAX_JOBS,
                          run->jobs);
    if (!run->batch_of)
        return (!run->jobs && !run->overwrite) ||
               kiln_throw(error, KILN_ERROR_USAGE, "--%s: expected --batch-of beside it",
                          run->jobs ? "jobs" : "overwrite");
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
        if (others[i].given)
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "--batch-of and --%s: expected one of them, found both",
                              others[i].option);
    }
    return run->out_dir || kiln_throw(error, KILN_ERROR_USAGE,
                                      "--batch-of: expected -o DIR for the results, found none");
}

static gboolean
check_values(RunOptions *run, GError **error)
{
    const struct {
        const char *option;
        double value;
    } tolerances[] = { { "rtol", run->rtol }, { "atol", run->atol } };
    for (size_t i = 0; i < G_N_ELEMENTS(tolerances); i++) {
        if (!(tolerances[i].value >= 0))
            return kiln_throw(error, KILN_ERROR_USAGE, "--%s: expected 0 or more, found %g",
                              tolerances[i].option, tolerances[i].value);
    }
    if (run->runs < 1)
        return kiln_throw(error, KILN_ERROR_USAGE, "--runs: expected 1 or more, found %d",
                          run->runs);
    return read_iterations(run, error) && check_batch(run, error) &&
           kiln_inputs_check(&run->inputs, error);
}

/* --- files --- */

static char *
tensor_path(const RunOptions *run, const char *dir, const char *prefix, const KilnInfoList *list,
            unsigned i)
{
    return g_strdup_printf("%s/%s_%u.%s", dir, prefix, i,
                           kiln_tensor_ending(list->info[i].dtype, run->npy));
}

/* What output @i is compared with: a TensorProto, or where there is none a NumPy array. */
static char *
expected_file(const RunOptions *run, unsigned i)
{
    char *proto = g_strdup_printf("%s/output_%u.pb", run->expect_dir, i);
    char *array = g_strdup_printf("%s/output_%u.npy", run->expect_dir, i);
    bool is_array =
        !g_file_test(proto, G_FILE_TEST_EXISTS) && g_file_test(array, G_FILE_TEST_EXISTS);
    g_free(is_array ? proto : array);
    return is_array ? array : proto;
}

/* The files that a run reads beside the model. */
static GPtrArray *
list_inputs(const RunOptions *run, const KilnModel *model)
{
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);
    for (unsigned i = 0; i < model->inputs.n; i++) {
        const char *file = kiln_inputs_file(&run->inputs, model->inputs.info[i].name);
        if (file)
            g_ptr_array_add(paths, g_strdup(file));
    }
    for (unsigned i = 0; run->expect_dir && i < model->outputs.n; i++)
        g_ptr_array_add(paths, expected_file(run, i));
    if (run->labels)
        g_ptr_array_add(paths, g_strdup(run->labels));
    g_ptr_array_add(paths, NULL);
    return paths;
}

static gboolean
check_overwrite(const RunOptions *run, const KilnOptions *options, const KilnModel *model,
                const char *path, GError **error)
{
    g_autoptr(GPtrArray) inputs = list_inputs(run, model);
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    for (unsigned i = 0; run->out_dir && i < model->outputs.n; i++)
        g_ptr_array_add(paths, tensor_path(run, run->out_dir, "output", &model->outputs, i));
    for (unsigned i = 0; run->inputs_dir && i < model->inputs.n; i++)
        g_ptr_array_add(paths, tensor_path(run, run->inputs_dir, "input", &model->inputs, i));
    g_ptr_array_add(paths, NULL);
    const KilnFiles files = { .model = model,
                              .path = path,
                              .inputs = (const char *const *)inputs->pdata,
                              .outputs = (const char *const *)paths->pdata };
    return kiln_check_overwrite(options, &files, error);
}

static gboolean
write_tensors(const RunOptions *run, const char *dir, const char *prefix, const KilnInfoList *names,
              const GPtrArray *tensors, GError **error)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    for (unsigned i = 0; i < tensors->len; i++)
        g_ptr_array_add(paths, tensor_path(run, dir, prefix, names, i));
    return kiln_folder_make(dir, 0777, error) && kiln_tensors_write(paths, names, tensors, error);
}

/* --- inputs --- */

/* The inputs that are bound now. */
static GPtrArray *
bind_inputs(const RunOptions *run, KilnModel *model, KilnExecution *execution, GError **error)
{
    KilnProgram *program = execution->program;
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_tensor_free);
    for (unsigned i = 0; i < program->inputs.n; i++) {
        const char *file;
        g_autoptr(KilnTensor) tensor =
            kiln_inputs_tensor(&run->inputs, model, i, program->inputs.types, &file, error);
        if (!tensor)
            return NULL;
        if (!program->values[i] && !kiln_execution_bind(execution, i, tensor, error)) {
            if (file)
                kiln_prefix_error(error, "%s: ", file);
            return NULL;
        }
        g_ptr_array_add(inputs, g_steal_pointer(&tensor));
    }
    if (run->inputs_dir &&
        !write_tensors(run, run->inputs_dir, "input", &program->inputs, inputs, error))
        return NULL;
    return g_steal_pointer(&inputs);
}

/* --- outputs --- */

static const char *
output_name(const KilnExecution *execution, unsigned i)
{
    return execution->program->outputs.info[i].name;
}

static void
write_numbers(KilnJson *json, const KilnDimBinding *numbers)
{
    kiln_json_object(json, "dims");
    for (uint32_t i = 0; i < numbers->n; i++)
        kiln_json_int(json, numbers->names[i].name, numbers->names[i].number);
    kiln_json_end_object(json);
}

static gboolean
print_json(const RunOptions *run, const KilnExecution *execution, const GPtrArray *outputs,
           const KilnDimBinding *numbers, char **labels, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = kiln_report_begin(text);
    kiln_json_array(&json, "outputs");
    for (unsigned i = 0; i < outputs->len; i++)
        kiln_summary_write(&json, &execution->program->outputs.info[i],
                           g_ptr_array_index(outputs, i), labels);
    kiln_json_end_array(&json);
    kiln_json_int(&json, "fold_runs", (int64_t)kiln_program_fold_runs(execution->program));
    kiln_json_number(&json, "run_ms", execution->run_ms);
    if (run->profile)
        kiln_profile_write(&json, "profile", execution->session);
    if (numbers->n)
        write_numbers(&json, numbers);
    return kiln_report_print(&json, error);
}

static gboolean
print_outputs(const RunOptions *run, const KilnOptions *options, const KilnExecution *execution,
              const GPtrArray *outputs, const KilnDimBinding *numbers, char **labels,
              GError **error)
{
    if (options->json)
        return print_json(run, execution, outputs, numbers, labels, error);
    for (unsigned i = 0; i < outputs->len; i++)
        kiln_summary_print(&execution->program->outputs.info[i], g_ptr_array_index(outputs, i),
                           labels);
    return TRUE;
}

static gboolean
compare_outputs(const RunOptions *run, const KilnExecution *execution, const GPtrArray *outputs,
                GError **error)
{
    for (unsigned i = 0; i < outputs->len; i++) {
        g_autofree char *file = expected_file(run, i);
        g_autoptr(KilnTensor) want =
            kiln_tensor_file_load(file, &execution->program->outputs.types[i], NULL, error);
        if (!want)
            return FALSE;
        if (!kiln_value_compare(g_ptr_array_index(outputs, i), want, run->rtol, run->atol, NULL,
                                NULL, error)) {
            kiln_prefix_error(error, "output %s against %s: ", output_name(execution, i), file);
            return FALSE;
        }
    }
    return TRUE;
}

/* A number that is too large would look like a loop without values. */
static gboolean
check_found(const RunOptions *run, const KilnIterations *only, GError **error)
{
    return !run->iteration || only->found ||
           kiln_throw(error, KILN_ERROR_INVALID,
                      "--iteration %s: no loop of the optimized graph has this iteration "
                      "(--pipeline none keeps loops that passes unroll)",
                      run->iteration);
}

static gboolean
dump_values(const RunOptions *run, KilnOptions *options, const KilnModel *model,
            const KilnProgram *program, const GPtrArray *inputs, const GPtrArray *outputs,
            GError **error)
{
    KilnValueDump dump;
    KilnIterations only = { .numbers = (const int64_t *)run->iterations->data,
                            .n = run->iterations->len };
    const KilnValueWatcher watcher = { kiln_value_dump_write, &dump, &only };
    g_autoptr(KilnPipeline) pipeline = kiln_options_pipeline(options, error);
    g_autoptr(KilnModule) module =
        pipeline ? kiln_values_optimize(options, model, pipeline, inputs, NULL, error) : NULL;
    return module && kiln_value_dump_open(&dump, run->values_dir, error) &&
           kiln_values_of_graph(options, model, module, inputs, &watcher, error) &&
           check_found(run, &only, error) &&
           kiln_values_of_outputs(program, outputs, kiln_value_dump_write, &dump, error);
}

/* --- the work --- */

static void
clear_constant(gpointer constant)
{
    g_bytes_unref(((KilnConstantInput *)constant)->value);
}

/* Constants that are known when the program is compiled: those of inputs that are marked so and
 * have a static shape. Others come with the first run. */
static GArray *
load_constants(const KilnInputs *inputs, const KilnModel *model, GError **error)
{
    g_autoptr(GArray) constants = g_array_new(FALSE, FALSE, sizeof(KilnConstantInput));
    g_array_set_clear_func(constants, clear_constant);
    const GPtrArray *arguments = model->ir_text ? NULL : kiln_module_inputs(model->module);
    for (guint i = 0; arguments && i < arguments->len; i++) {
        const KilnArgument *argument = g_ptr_array_index(arguments, i);
        const KilnType *type = &model->inputs.types[i];
        if (argument->constness != KILN_CONSTNESS_COMPILE || !kiln_type_is_static(type))
            continue;
        g_autoptr(KilnTensor) tensor =
            kiln_inputs_tensor(inputs, model, i, model->inputs.types, NULL, error);
        GBytes *value = tensor ? kiln_tensor_view(tensor, error) : NULL;
        if (!value)
            return NULL;
        KilnConstantInput constant = { model->inputs.info[i].name, KILN_CONSTANT_COMPILE, value };
        g_array_append_val(constants, constant);
    }
    return g_steal_pointer(&constants);
}

static gboolean
show(const RunOptions *run, KilnOptions *options, const KilnModel *model, KilnExecution *execution,
     const GPtrArray *inputs, char **labels, GError **error)
{
    g_autoptr(KilnArena) arena = kiln_arena_new();
    const KilnDimBinding numbers = kiln_inputs_numbers(arena, model, inputs, options->shapes);
    if (options->trace)
        kiln_trace_session(options->progress.trace, execution->session, &numbers);
    g_autoptr(GPtrArray) outputs = kiln_execution_outputs(execution, error);
    if (!outputs || (run->out_dir && !write_tensors(run, run->out_dir, "output",
                                                    &execution->program->outputs, outputs, error)))
        return FALSE;
    if (run->values_dir &&
        !dump_values(run, options, model, execution->program, inputs, outputs, error))
        return FALSE;
    if (!print_outputs(run, options, execution, outputs, &numbers, labels, error))
        return FALSE;
    if (run->profile && !options->json) {
        fflush(stdout); /* in order, where both go to one place */
        kiln_profile_print(execution->session, execution->run_ms, &numbers, options->quiet);
    }
    return !run->expect_dir || compare_outputs(run, execution, outputs, error);
}

static gboolean
run_and_show(const RunOptions *run, KilnOptions *options, KilnModel *model,
             KilnExecution *execution, GError **error)
{
    g_auto(GStrv) labels = NULL;
    if (run->labels && !(labels = kiln_labels_load(run->labels, error)))
        return FALSE;
    g_autoptr(GPtrArray) inputs = bind_inputs(run, model, execution, error);
    if (!inputs)
        return FALSE;
    kiln_trace_step(options->progress.trace, "run", "run");
    gboolean ran = kiln_execution_run(execution, (unsigned)run->runs, error);
    kiln_trace_step(options->progress.trace, NULL, NULL);
    kiln_clear_progress(options);
    return ran && show(run, options, model, execution, inputs, labels, error);
}

/* The options of sessions; values that are computed once more, by the graph, draw the same. */
static KilnSessionOptions
session_options(const RunOptions *run, const KilnOptions *options, KilnModel *model)
{
    KilnSessionOptions session = KILN_SESSION_OPTIONS_INIT;
    session.threads = options->threads;
    session.profile = run->profile || (options->trace && !run->batch_of);
    session.poison = run->poison;
    session.seeded = run->inputs.run_seeded || run->values_dir;
    session.seed = run->inputs.run_seeded ? run->inputs.run_seed : kiln_random_fresh();
    if (model->module)
        model->module->seed = session.seed;
    return session;
}

static int
run_once(const RunOptions *run, KilnOptions *options, KilnModel *model,
         const KilnCompileOptions *compile, KilnExecution *execution, GError **error)
{
    const KilnSessionOptions session = session_options(run, options, model);
    gboolean fine = kiln_execution_open(execution, model, compile, &session, error);
    kiln_clear_progress(options);
    return fine && run_and_show(run, options, model, execution, error) ? KILN_EXIT_OK
                                                                       : KILN_EXIT_FAILED;
}

static int
run_batch(KilnBatch *batch, const RunOptions *run, KilnModel *model,
          const KilnCompileOptions *compile, KilnExecution *execution, GError **error)
{
    const KilnSessionOptions session = session_options(run, batch->options, model);
    if (!execution->program)
        execution->program = kiln_program_compile(model, compile, error);
    kiln_clear_progress(batch->options);
    return execution->program ? kiln_batch_run(batch, execution->program, &session, error)
                              : KILN_EXIT_FAILED;
}

static int
run_work(KilnOptions *options, char **operands, void *data, GError **error)
{
    RunOptions *run = data;
    if (!check_values(run, error))
        return KILN_EXIT_USAGE;
    if (run->batch_of && !options->threads)
        options->threads = 1; /* of each run; there are as many runs as processors */
    g_autoptr(KilnPipeline) pipeline = kiln_options_pipeline(options, error);
    g_auto(KilnExecution) execution = { 0 };
    g_autoptr(KilnModel) model =
        pipeline ? kiln_options_load(options, operands[0], &execution.program, error) : NULL;
    g_auto(KilnBatch) batch = { .options = options,
                                .inputs = &run->inputs,
                                .model = model,
                                .path = operands[0],
                                .of = run->batch_of,
                                .out_dir = run->out_dir,
                                .npy = run->npy,
                                .overwrite = run->overwrite,
                                .jobs = run->jobs };
    KilnCompileOptions compile;
    KilnShape *shapes = NULL;
    g_autoptr(GArray) constants = NULL;
    if (!model || !kiln_inputs_check_names(&run->inputs, model, error) ||
        !(run->batch_of ? kiln_batch_find(&batch, error)
                        : check_overwrite(run, options, model, operands[0], error)) ||
        !(constants = load_constants(&run->inputs, model, error)) ||
        !kiln_options_compile(options, model, pipeline, &compile, &shapes, error))
        return KILN_EXIT_FAILED;
    compile.constants = (const KilnConstantInput *)constants->data;
    compile.n_constants = constants->len;
    int status = run->batch_of ? run_batch(&batch, run, model, &compile, &execution, error)
                               : run_once(run, options, model, &compile, &execution, error);
    kiln_shapes_free(shapes, compile.n_shapes);
    return status;
}

int
kiln_command_run(int argc, char **argv)
{
    RunOptions run = { .inputs = KILN_INPUTS_INIT, .rtol = 1e-3, .atol = 1e-7, .runs = 1 };
    const GOptionEntry entries[] = {
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &run.out_dir,
          "Write the outputs to DIR/output_N.pb", "DIR" },
        { "npy", 0, 0, G_OPTION_ARG_NONE, &run.npy, "Write NumPy arrays (.npy) in place of .pb",
          NULL },
        { "save-inputs", 0, 0, G_OPTION_ARG_FILENAME, &run.inputs_dir,
          "Write the inputs to DIR/input_N.pb", "DIR" },
        { "dump-values", 0, 0, G_OPTION_ARG_FILENAME, &run.values_dir,
          "Write every value of the optimized graph to DIR as .npy", "DIR" },
        { "iteration", 0, 0, G_OPTION_ARG_STRING, &run.iteration,
          "Dump the values of iteration N of a loop only, from 0; M is for the loops in it",
          "N[,M…]" },
        { "expect", 0, 0, G_OPTION_ARG_FILENAME, &run.expect_dir,
          "Compare the outputs with DIR/output_N.pb or DIR/output_N.npy", "DIR" },
        { "rtol", 0, 0, G_OPTION_ARG_DOUBLE, &run.rtol,
          "Set the relative tolerance of --expect (default: 1e-3)", "R" },
        { "atol", 0, 0, G_OPTION_ARG_DOUBLE, &run.atol,
          "Set the absolute tolerance of --expect (default: 1e-7)", "A" },
        { "runs", 0, 0, G_OPTION_ARG_INT, &run.runs, "Run the model N times (default: 1)", "N" },
        { "profile", 0, 0, G_OPTION_ARG_NONE, &run.profile,
          "Print the time of each instruction and of each kind to standard error", NULL },
        { "poison", 0, 0, G_OPTION_ARG_NONE, &run.poison,
          "Run again with dead memory filled with NaN, and fail if a result changes", NULL },
        { "labels", 0, 0, G_OPTION_ARG_FILENAME, &run.labels,
          "Print a label from FILE (one a line) beside each of the top 5", "FILE" },
        { "batch-of", 0, 0, G_OPTION_ARG_FILENAME, &run.batch_of,
          "Run each file of a folder, or of a list with one on each line; -o has the results",
          "PATH" },
        { "jobs", 0, 0, G_OPTION_ARG_INT, &run.jobs,
          "Run N of a batch at once (default: 0, one for each processor)", "N" },
        { "overwrite", 0, 0, G_OPTION_ARG_NONE, &run.overwrite,
          "Run also what has a result of an earlier batch", NULL },
        G_OPTION_ENTRY_NULL,
    };
    const KilnUsage usage = {
        .command = "run",
        .operands = "MODEL",
        .n_operands = KILN_OPERANDS_ONE,
        .summary = "Runs a model and prints a summary of each output.",
        .entries = entries,
        .inputs = &run.inputs,
        .work = run_work,
    };
    int status = kiln_command(&usage, argc, argv, &run);
    run_options_clear(&run);
    return status;
}
