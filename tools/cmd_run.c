/* SPDX-License-Identifier: Apache-2.0 */
/* kiln run: runs a model on files or random inputs, summarises, stores or compares its outputs. */
#include "tools/execute.h"
#include "tools/summary.h"
#include "tools/trace.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    char **inputs; /* NAME=FILE */
    char *out_dir, *expect_dir, *labels, *image_mean, *image_std;
    char *random; /* seed */
    double image_scale, rtol, atol;
    KilnImageOptions image;
} RunOptions;

static void
run_options_clear(RunOptions *run)
{
    g_strfreev(run->inputs);
    g_free(run->out_dir);
    g_free(run->expect_dir);
    g_free(run->labels);
    g_free(run->image_mean);
    g_free(run->image_std);
    g_free(run->random);
}

static gboolean
parse_channels(const char *option, const char *text, double out[4], GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text ? text : "", ",", -1);
    unsigned n = text ? g_strv_length(parts) : 0;
    if (n > 4)
        return kiln_throw(error, KILN_ERROR_USAGE, "--%s: expected at most 4 numbers, found %s",
                          option, text);
    for (unsigned i = 0; i < 4 && n; i++) {
        char *end;
        const char *part = parts[MIN(i, n - 1)];
        out[i] = g_ascii_strtod(part, &end);
        if (end == part || *end || (strcmp(option, "image-std") == 0 && out[i] == 0))
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "--%s: expected numbers with commas, found %s", option, text);
    }
    return TRUE;
}

/* --- inputs --- */

static const char *
file_of_input(const RunOptions *run, const char *name)
{
    size_t length = strlen(name);
    for (char **at = run->inputs; at && *at; at++) {
        if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
            return *at + length + 1;
    }
    return NULL;
}

static gboolean
check_inputs(const RunOptions *run, const KilnModel *model, GError **error)
{
    for (char **at = run->inputs; at && *at; at++) {
        bool found = false;
        for (unsigned i = 0; i < kiln_model_n_inputs(model); i++) {
            const char *name = kiln_model_input(model, i)->name;
            found |= g_str_has_prefix(*at, name) && (*at)[strlen(name)] == '=';
        }
        if (!found)
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "-i %s: expected NAME=FILE with the name of an input", *at);
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
    int64_t low = 0, high = 8;
    if (model->ir)
        kiln_ir_input_range(g_ptr_array_index(model->ir->functions, model->ir->functions->len - 1),
                            i, &low, &high);
    else
        kiln_argument_range(kiln_module_entry(model->module), i, &low, &high);
    KilnTensor *tensor = kiln_tensor_random(type, seed, name, low, high);
    return tensor ? tensor : kiln_throw_null(error, KILN_ERROR_MEMORY, "input %s: no memory", name);
}

static gboolean
bind_inputs(const RunOptions *run, KilnModel *model, KilnExecution *execution, GError **error)
{
    KilnProgram *program = execution->program;
    for (unsigned i = 0; i < program->inputs.n; i++) {
        const char *name = program->inputs.info[i].name, *file = file_of_input(run, name);
        g_autoptr(KilnTensor) tensor = NULL;
        if (file)
            tensor = kiln_tensor_file_load(file, &program->inputs.types[i], &run->image, error);
        else if (run->random)
            tensor =
                random_input(model, program, i, g_ascii_strtoull(run->random, NULL, 10), error);
        else
            kiln_throw(error, KILN_ERROR_USAGE, "input %s: expected -i %s=FILE or --random SEED",
                       name, name);
        if (!tensor || !kiln_execution_bind(execution, i, tensor, error))
            return FALSE;
    }
    return TRUE;
}

/* --- outputs --- */

static gboolean
compare_expected(const RunOptions *run, const KilnTensor *tensor, unsigned i, const char *name,
                 GError **error)
{
    g_autofree char *file = g_strdup_printf("%s/output_%u.pb", run->expect_dir, i);
    g_autoptr(KilnTensor) want = kiln_tensor_file_load(file, NULL, NULL, error);
    if (!want)
        return FALSE;
    if (kiln_tensor_compare(tensor, want, run->rtol, run->atol, NULL, NULL, error))
        return TRUE;
    g_prefix_error(error, "output %s against %s: ", name, file);
    return FALSE;
}

static gboolean
handle_outputs(const RunOptions *run, const KilnOptions *options, KilnExecution *execution,
               char **labels, GError **error)
{
    JsonArray *outputs = json_array_new();
    gboolean fine = TRUE;
    for (unsigned i = 0; fine && i < execution->program->outputs.n; i++) {
        const char *name = execution->program->outputs.info[i].name;
        g_autoptr(KilnTensor) tensor = kiln_execution_output(execution, i, error);
        if (!tensor || (run->expect_dir && !compare_expected(run, tensor, i, name, error))) {
            fine = FALSE;
            break;
        }
        if (options->json)
            json_array_add_object_element(outputs, kiln_summary_json(name, tensor, labels));
        else
            kiln_summary_print(name, tensor, labels);
        if (run->out_dir) {
            g_autofree char *file = g_strdup_printf("%s/output_%u.pb", run->out_dir, i);
            fine = kiln_tensor_file_save(file, name, &tensor->type,
                                         g_bytes_get_data(tensor->bytes, NULL), error);
        }
    }
    if (!fine || !options->json) {
        json_array_unref(outputs);
        return fine;
    }
    JsonObject *root = json_object_new();
    json_object_set_array_member(root, "outputs", outputs);
    json_object_set_int_member(root, "fold_runs", 0);
    json_object_set_double_member(root, "run_ms", execution->run_ms);
    kiln_print_json(root);
    return TRUE;
}

static gboolean
run(const RunOptions *run_options, const KilnOptions *options, const char *path, GError **error)
{
    g_auto(GStrv) labels = NULL;
    if (run_options->labels && !(labels = kiln_labels_load(run_options->labels, error)))
        return FALSE;
    if (run_options->out_dir && g_mkdir_with_parents(run_options->out_dir, 0777) != 0)
        return kiln_throw(error, KILN_ERROR_IO, "%s: cannot be made", run_options->out_dir);
    g_autoptr(KilnModel) model = kiln_options_load(options, path, error);
    if (!model || !check_inputs(run_options, model, error))
        return FALSE;
    g_autoptr(KilnPipeline) pipeline = kiln_options_pipeline(options, error);
    KilnCompileOptions compile;
    KilnShape *shapes = NULL;
    if (!pipeline || !kiln_options_compile(options, pipeline, &compile, &shapes, error))
        return FALSE;
    g_auto(KilnExecution) execution = { 0 };
    gboolean fine =
        kiln_execution_open(&execution, model, &compile, options->trace != NULL, error) &&
        bind_inputs(run_options, model, &execution, error) &&
        kiln_execution_run(&execution, error) &&
        handle_outputs(run_options, options, &execution, labels, error) &&
        (!options->trace || kiln_trace_write(options->trace, execution.session, error));
    for (unsigned i = 0; i < compile.n_shapes; i++)
        g_free((char *)shapes[i].input);
    g_free(shapes);
    return fine;
}

int
kiln_command_run(int argc, char **argv)
{
    RunOptions run_options = {
        .image_scale = 1, .rtol = 1e-3, .atol = 1e-7, .image = KILN_IMAGE_OPTIONS_INIT
    };
    const GOptionEntry entries[] = {
        { "input", 'i', 0, G_OPTION_ARG_FILENAME_ARRAY, &run_options.inputs,
          "Read an input: .pb, .npy, .png, .pgm, .ppm", "NAME=FILE" },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &run_options.out_dir, "Write output_N.pb here",
          "DIR" },
        { "expect", 0, 0, G_OPTION_ARG_FILENAME, &run_options.expect_dir,
          "Compare with output_N.pb of this folder", "DIR" },
        { "rtol", 0, 0, G_OPTION_ARG_DOUBLE, &run_options.rtol,
          "Relative tolerance of --expect (default 1e-3)", "R" },
        { "atol", 0, 0, G_OPTION_ARG_DOUBLE, &run_options.atol,
          "Absolute tolerance of --expect (default 1e-7)", "A" },
        { "random", 0, 0, G_OPTION_ARG_STRING, &run_options.random,
          "Random inputs for what -i does not give", "SEED" },
        { "labels", 0, 0, G_OPTION_ARG_FILENAME, &run_options.labels,
          "A label per line, for the top 5", "FILE" },
        { "image-scale", 0, 0, G_OPTION_ARG_DOUBLE, &run_options.image_scale,
          "Multiply pictures by this (default 1)", "S" },
        { "image-mean", 0, 0, G_OPTION_ARG_STRING, &run_options.image_mean,
          "Subtract this per channel: 0.48,0.45,0.40", "M" },
        { "image-std", 0, 0, G_OPTION_ARG_STRING, &run_options.image_std,
          "Divide by this per channel", "S" },
        G_OPTION_ENTRY_NULL,
    };
    const KilnUsage usage = { "run", "MODEL", "Runs a model and prints a summary of each output.",
                              entries, false };
    KilnOptions options;
    g_auto(GStrv) rest = NULL;
    g_autoptr(GError) error = NULL;
    bool done;
    int status = KILN_EXIT_OK;
    const char *path = NULL;
    if (kiln_options_parse(&usage, argc, argv, &options, &rest, &done, &error))
        path = kiln_one_operand(rest, &usage, &error);
    run_options.image.scale = run_options.image_scale;
    bool fine =
        path &&
        parse_channels("image-mean", run_options.image_mean, run_options.image.mean, &error) &&
        parse_channels("image-std", run_options.image_std, run_options.image.std, &error) &&
        run(&run_options, &options, path, &error);
    if (!fine && !done)
        status = kiln_fail("run", error);
    kiln_options_clear(&options);
    run_options_clear(&run_options);
    return status;
}
