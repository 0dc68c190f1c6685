/* SPDX-License-Identifier: Apache-2.0 */
/* kiln compile: a model as a program on disk. */
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/trace.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    char *out;
} CompileOptions;

static gboolean
check_values(const CompileOptions *compile, GError **error)
{
    return compile->out || kiln_throw(error, KILN_ERROR_USAGE, "expected -o F, found none");
}

static int
compile_work(KilnOptions *options, char **operands, void *data, GError **error)
{
    const CompileOptions *compile = data;
    if (!check_values(compile, error))
        return KILN_EXIT_USAGE;
    g_autoptr(KilnPipeline) pipeline = kiln_options_pipeline(options, error);
    g_autoptr(KilnModel) model =
        pipeline ? kiln_options_load(options, operands[0], NULL, error) : NULL;
    KilnCompileOptions given;
    KilnShape *shapes = NULL;
    if (!model || !kiln_options_compile(options, pipeline, &given, &shapes, error))
        return KILN_EXIT_FAILED;
    kiln_trace_step(options->progress.trace, "compile", operands[0]);
    g_autoptr(KilnProgram) program = kiln_program_compile(model, &given, error);
    kiln_shapes_free(shapes, given.n_shapes);
    kiln_clear_progress(options);
    gboolean saved = program && kiln_program_save(program, compile->out, error);
    return saved ? KILN_EXIT_OK : KILN_EXIT_FAILED;
}

int
kiln_command_compile(int argc, char **argv)
{
    CompileOptions compile = { 0 };
    const GOptionEntry entries[] = {
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &compile.out, "Write the program here", "F" },
        G_OPTION_ENTRY_NULL,
    };
    const KilnUsage usage = {
        .command = "compile",
        .operands = "MODEL",
        .n_operands = KILN_OPERANDS_ONE,
        .summary = "Compiles a model to a file that loads without work: optimized, planned, with "
                   "packed weights.",
        .entries = entries,
        .work = compile_work,
    };
    int status = kiln_command(&usage, argc, argv, &compile);
    g_free(compile.out);
    return status;
}
