/* SPDX-License-Identifier: Apache-2.0 */
/* kiln compile: a model as a program on disk, or as an object to link with. */
#include "kiln.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "runtime/shapes/texts.h"
#include "tools/command.h"
#include "tools/object.h"
#include "tools/overwrite.h"
#include "tools/trace.h"

#include <string.h>
#include <unistd.h>

typedef struct {
    char *out, *format, *name;
} CompileOptions;

static bool
is_identifier(const char *name)
{
    g_autofree char *made = kiln_object_name(name);
    return *name && strcmp(made, name) == 0;
}

static gboolean
check_values(const CompileOptions *compile, GError **error)
{
    static const char *const formats[] = { "program", "object", "c", NULL };
    if (compile->format && !g_strv_contains(formats, compile->format))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--format: expected program, object or c, found %s", compile->format);
    if (compile->name && !is_identifier(compile->name))
        return kiln_throw(error, KILN_ERROR_USAGE, "--name: expected an identifier of C, found %s",
                          compile->name);
    if (!compile->out)
        return kiln_throw(error, KILN_ERROR_USAGE, "expected -o F, found none");
    if (kiln_is_stdout(compile->out) && isatty(STDOUT_FILENO))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "-o -: expected a file or a pipe, found a terminal");
    /* What is written beside it has the same name and another suffix. */
    const char *suffix = g_strcmp0(compile->format, "object") == 0 ? ".o"
                         : g_strcmp0(compile->format, "c") == 0    ? ".c"
                                                                   : "";
    return g_str_has_suffix(compile->out, suffix) ||
           kiln_throw(error, KILN_ERROR_USAGE, "-o: expected a name that ends in %s, found %s",
                      suffix, compile->out);
}

static gboolean
write_program(const CompileOptions *compile, KilnProgram *program, GError **error)
{
    g_autofree char *name =
        compile->name ? g_strdup(compile->name) : kiln_object_name(compile->out);
    if (g_strcmp0(compile->format, "object") == 0)
        return kiln_object_write(program, name, compile->out, error);
    if (g_strcmp0(compile->format, "c") == 0)
        return kiln_object_write_source(program, name, compile->out, error);
    return kiln_program_save(program, kiln_is_stdout(compile->out) ? "/dev/stdout" : compile->out,
                             error);
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
    const char *const outputs[] = { compile->out, NULL };
    const KilnFiles files = { .model = model, .path = operands[0], .outputs = outputs };
    if (!model || !kiln_check_overwrite(options, &files, error) ||
        !kiln_options_compile(options, model, pipeline, &given, &shapes, error))
        return KILN_EXIT_FAILED;
    kiln_trace_step(options->progress.trace, "compile", operands[0]);
    g_autoptr(KilnProgram) program = kiln_program_compile(model, &given, error);
    kiln_shapes_free(shapes, given.n_shapes);
    kiln_clear_progress(options);
    gboolean saved = program && write_program(compile, program, error);
    return saved ? KILN_EXIT_OK : KILN_EXIT_FAILED;
}

int
kiln_command_compile(int argc, char **argv)
{
    CompileOptions compile = { 0 };
    const GOptionEntry entries[] = {
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &compile.out,
          "Write the program to this file (required)", "F" },
        { "format", 0, 0, G_OPTION_ARG_STRING, &compile.format,
          "Write a program file, an object file or C source (default: program)",
          "program|object|c" },
        { "name", 0, 0, G_OPTION_ARG_STRING, &compile.name,
          "Begin the symbols of an object with NAME (default: the name of F)", "NAME" },
        G_OPTION_ENTRY_NULL,
    };
    const KilnUsage usage = {
        .command = "compile",
        .operands = "MODEL",
        .n_operands = KILN_OPERANDS_ONE,
        .summary = "Compiles a model to a program file, which loads fast, or to an object file to "
                   "link with.",
        .entries = entries,
        .work = compile_work,
    };
    int status = kiln_command(&usage, argc, argv, &compile);
    g_free(compile.out);
    g_free(compile.format);
    g_free(compile.name);
    return status;
}
