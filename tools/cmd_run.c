/* SPDX-License-Identifier: Apache-2.0 */
/* kiln run: runs a model on files or random inputs, summarises, stores or compares its outputs. */
#include "tools/execute.h"
#include "tools/summary.h"
#include "tools/trace.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char **inputs; /* NAME=FILE */
    char *out_dir, *expect_dir, *inputs_dir, *labels, *image_mean, *image_std;
    char *random_text;
    bool random;
    uint64_t seed;
    double rtol, atol;
    KilnImageOptions image;
} RunOptions;

static void
run_options_clear(RunOptions *run)
{
    g_strfreev(run->inputs);
    g_free(run->out_dir);
    g_free(run->expect_dir);
    g_free(run->inputs_dir);
    g_free(run->labels);
    g_free(run->image_mean);
    g_free(run->image_std);
    g_free(run->random_text);
}

static gboolean
parse_channels(const char *option, const char *text, double out[4], unsigned *stated,
               GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text ? text : "", ",", -1);
    unsigned n = text ? g_strv_length(parts) : 0;
    if (n > 4)
        return kiln_throw(error, KILN_ERROR_USAGE, "--%s: expected at most 4 numbers, found %s",
                          option, text);
    *stated = n;
    bool divides = strcmp(option, "image-std") == 0;
    for (unsigned i = 0; i < 4 && text; i++) {
        char *end;
        const char *part = n ? parts[MIN(i, n - 1)] : text;
        out[i] = g_ascii_strtod(part, &end);
        if (end == part || *end || !isfinite(out[i]) || (divides && out[i] == 0))
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "--%s: expected %snumbers with commas, found %s", option,
                              divides ? "non-zero " : "", text);
    }
    return TRUE;
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
    if (!isfinite(run->image.scale))
        return kiln_throw(error, KILN_ERROR_USAGE, "--image-scale: expected a number, found %g",
                          run->image.scale);
    run->random = run->random_text != NULL;
    if (run->random &&
        !g_ascii_string_to_unsigned(run->random_text, 10, 0, G_MAXUINT64, &run->seed, NULL))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--random: expected a seed of 0 to 2^64-1, found %s", run->random_text);
    return parse_channels("image-mean", run->image_mean, run->image.mean, &run->image.n_mean,
                          error) &&
           parse_channels("image-std", run->image_std, run->image.std, &run->image.n_std, error);
}

/* --- files --- */

/* All files or none. */
static gboolean
write_tensors(const char *dir, const char *prefix, const KilnInfoList *names,
              const GPtrArray *tensors, GError **error)
{
    if (g_mkdir_with_parents(dir, 0777) != 0)
        return kiln_throw(error, KILN_ERROR_IO, "%s: cannot be made: %s", dir, g_strerror(errno));
    g_autofree KilnFileContent *files = g_new0(KilnFileContent, tensors->len + 1);
    g_autoptr(GPtrArray) kept = g_ptr_array_new_with_free_func((GDestroyNotify)g_byte_array_unref);
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    for (unsigned i = 0; i < tensors->len; i++) {
        char *path = g_strdup_printf("%s/%s_%u.pb", dir, prefix, i);
        GByteArray *bytes = g_byte_array_new();
        g_ptr_array_add(paths, path);
        g_ptr_array_add(kept, bytes);
        if (!kiln_tensor_file_encode(path, names->info[i].name, g_ptr_array_index(tensors, i),
                                     bytes, error))
            return FALSE;
        files[i] = (KilnFileContent){ path, bytes->data, bytes->len };
    }
    return kiln_files_write(files, tensors->len, error);
}

/* --- inputs --- */

static bool
names_input(const char *argument, const char *name)
{
    return g_str_has_prefix(argument, name) && argument[strlen(name)] == '=';
}

static const char *
file_of_input(const RunOptions *run, const char *name)
{
    for (char **at = run->inputs; at && *at; at++) {
        if (names_input(*at, name))
            return *at + strlen(name) + 1;
    }
    return NULL;
}

static gboolean
check_inputs(const RunOptions *run, const KilnModel *model, GError **error)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (unsigned i = 0; i < kiln_model_n_inputs(model); i++) {
        const char *name = kiln_model_input(model, i)->name;
        unsigned n = 0;
        g_string_append_printf(names, "%s%s", i ? ", " : "", name);
        for (char **at = run->inputs; at && *at; at++)
            n += names_input(*at, name);
        if (n > 1)
            return kiln_throw(error, KILN_ERROR_USAGE, "-i %s: expected one file, found %u", name,
                              n);
    }
    for (char **at = run->inputs; at && *at; at++) {
        bool found = false;
        for (unsigned i = 0; i < kiln_model_n_inputs(model); i++)
            found |= names_input(*at, kiln_model_input(model, i)->name);
        if (!found)
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "-i %s: expected NAME=FILE with one of the inputs %s", *at,
                              names->str);
    }
    return TRUE;
}

static KilnTensor *
random_input(const KilnModel *model, const KilnProgram *program, unsigned i, uint64_t seed,
             GError **error)
{
    const KilnType *type = &program->inputs.types[i];
    const char *name = program->inputs.info[i].name;
    if (!kiln_type_is_static(type))
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "input %s: its shape is open: give --shape %s=…", name, name);
    return kiln_model_random_input(model, i, type, seed, error);
}

static gboolean
bind_inputs(const RunOptions *run, KilnModel *model, KilnExecution *execution, GError **error)
{
    KilnProgram *program = execution->program;
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_tensor_free);
    for (unsigned i = 0; i < program->inputs.n; i++) {
        const char *name = program->inputs.info[i].name, *file = file_of_input(run, name);
        g_autoptr(KilnTensor) tensor = NULL;
        if (file)
            tensor = kiln_tensor_file_load(file, &program->inputs.types[i], &run->image, error);
        else if (run->random)
            tensor = random_input(model, program, i, run->seed, error);
        else
            kiln_throw(error, KILN_ERROR_USAGE, "input %s: expected -i %s=FILE or --random SEED",
                       name, name);
        if (!tensor)
            return FALSE;
        if (!kiln_execution_bind(execution, i, tensor, error)) {
            if (file)
                g_prefix_error(error, "%s: ", file);
            return FALSE;
        }
        g_ptr_array_add(inputs, g_steal_pointer(&tensor));
    }
    return !run->inputs_dir ||
           write_tensors(run->inputs_dir, "input", &program->inputs, inputs, error);
}

/* --- outputs --- */

static const char *
output_name(const KilnExecution *execution, unsigned i)
{
    return execution->program->outputs.info[i].name;
}

static GPtrArray *
collect_outputs(KilnExecution *execution, GError **error)
{
    g_autoptr(GPtrArray) outputs = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_tensor_free);
    for (unsigned i = 0; i < execution->program->outputs.n; i++) {
        KilnTensor *tensor = kiln_execution_output(execution, i, error);
        if (!tensor)
            return NULL;
        g_ptr_array_add(outputs, tensor);
    }
    return g_steal_pointer(&outputs);
}

static void
print_outputs(const KilnOptions *options, const KilnExecution *execution, const GPtrArray *outputs,
              char **labels)
{
    if (!options->json) {
        for (unsigned i = 0; i < outputs->len; i++)
            kiln_summary_print(output_name(execution, i), g_ptr_array_index(outputs, i), labels);
        return;
    }
    JsonArray *array = json_array_new();
    for (unsigned i = 0; i < outputs->len; i++)
        json_array_add_object_element(
            array,
            kiln_summary_json(output_name(execution, i), g_ptr_array_index(outputs, i), labels));
    JsonObject *root = json_object_new();
    json_object_set_array_member(root, "outputs", array);
    json_object_set_int_member(root, "fold_runs", 0);
    json_object_set_double_member(root, "run_ms", execution->run_ms);
    kiln_print_json(root);
}

static gboolean
compare_outputs(const RunOptions *run, const KilnExecution *execution, const GPtrArray *outputs,
                GError **error)
{
    for (unsigned i = 0; i < outputs->len; i++) {
        g_autofree char *file = g_strdup_printf("%s/output_%u.pb", run->expect_dir, i);
        g_autoptr(KilnTensor) want = kiln_tensor_file_load(file, NULL, NULL, error);
        if (!want)
            return FALSE;
        if (!kiln_tensor_compare(g_ptr_array_index(outputs, i), want, run->rtol, run->atol, NULL,
                                 NULL, error)) {
            g_prefix_error(error, "output %s against %s: ", output_name(execution, i), file);
            return FALSE;
        }
    }
    return TRUE;
}

/* --- the work --- */

static gboolean
run_and_show(const RunOptions *run, KilnOptions *options, KilnModel *model,
             KilnExecution *execution, GError **error)
{
    g_auto(GStrv) labels = NULL;
    if (run->labels && !(labels = kiln_labels_load(run->labels, error)))
        return FALSE;
    if (!bind_inputs(run, model, execution, error))
        return FALSE;
    kiln_trace_step(options->progress.trace, "run", "run");
    gboolean ran = kiln_execution_run(execution, error);
    kiln_trace_step(options->progress.trace, NULL, NULL);
    kiln_clear_progress(options);
    if (!ran)
        return FALSE;
    if (options->trace)
        kiln_trace_session(options->progress.trace, execution->session);
    g_autoptr(GPtrArray) outputs = collect_outputs(execution, error);
    if (!outputs || (run->out_dir && !write_tensors(run->out_dir, "output",
                                                    &execution->program->outputs, outputs, error)))
        return FALSE;
    print_outputs(options, execution, outputs, labels);
    return !run->expect_dir || compare_outputs(run, execution, outputs, error);
}

static int
run_work(KilnOptions *options, char **operands, void *data, GError **error)
{
    RunOptions *run = data;
    if (!check_values(run, error))
        return KILN_EXIT_USAGE;
    g_autoptr(KilnPipeline) pipeline = kiln_options_pipeline(options, error);
    g_autoptr(KilnModel) model = pipeline ? kiln_options_load(options, operands[0], error) : NULL;
    KilnCompileOptions compile;
    KilnShape *shapes = NULL;
    if (!model || !check_inputs(run, model, error) ||
        !kiln_options_compile(options, pipeline, &compile, &shapes, error))
        return KILN_EXIT_FAILED;
    g_auto(KilnExecution) execution = { 0 };
    gboolean fine = kiln_execution_open(&execution, model, &compile, options->trace != NULL, error);
    kiln_clear_progress(options);
    fine = fine && run_and_show(run, options, model, &execution, error);
    kiln_shapes_free(shapes, compile.n_shapes);
    return fine ? KILN_EXIT_OK : KILN_EXIT_FAILED;
}

int
kiln_command_run(int argc, char **argv)
{
    RunOptions run = { .rtol = 1e-3, .atol = 1e-7, .image = KILN_IMAGE_OPTIONS_INIT };
    const GOptionEntry entries[] = {
        { "input", 'i', 0, G_OPTION_ARG_FILENAME_ARRAY, &run.inputs,
          "Read an input: .pb, .npy, .png, .pgm, .ppm", "NAME=FILE" },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &run.out_dir, "Write output_N.pb here", "DIR" },
        { "save-inputs", 0, 0, G_OPTION_ARG_FILENAME, &run.inputs_dir,
          "Write input_N.pb here: with -o, a test case", "DIR" },
        { "expect", 0, 0, G_OPTION_ARG_FILENAME, &run.expect_dir,
          "Compare with output_N.pb of this folder", "DIR" },
        { "rtol", 0, 0, G_OPTION_ARG_DOUBLE, &run.rtol,
          "Relative tolerance of --expect (default: 1e-3)", "R" },
        { "atol", 0, 0, G_OPTION_ARG_DOUBLE, &run.atol,
          "Absolute tolerance of --expect (default: 1e-7)", "A" },
        { "random", 0, 0, G_OPTION_ARG_STRING, &run.random_text,
          "Random inputs for what -i does not give", "SEED" },
        { "labels", 0, 0, G_OPTION_ARG_FILENAME, &run.labels, "A label per line, for the top 5",
          "FILE" },
        { "image-scale", 0, 0, G_OPTION_ARG_DOUBLE, &run.image.scale,
          "Multiply pictures by this (default: 1)", "S" },
        { "image-mean", 0, 0, G_OPTION_ARG_STRING, &run.image_mean,
          "Then subtract this per channel: 0.48,0.45,0.40", "M" },
        { "image-std", 0, 0, G_OPTION_ARG_STRING, &run.image_std, "Then divide by this per channel",
          "S" },
        G_OPTION_ENTRY_NULL,
    };
    const KilnUsage usage = {
        .command = "run",
        .operands = "MODEL",
        .n_operands = KILN_OPERANDS_ONE,
        .summary = "Runs a model and prints a summary of each output.",
        .entries = entries,
        .work = run_work,
    };
    int status = kiln_command(&usage, argc, argv, &run);
    run_options_clear(&run);
    return status;
}
