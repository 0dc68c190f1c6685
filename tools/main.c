/* SPDX-License-Identifier: Apache-2.0 */
/* The kiln command: finds the sub-command and hands over. */
#include "graph/grow/reserve.h"
#include "kiln.h"
#include "passes/pipeline/suggest.h"
#include "tools/command.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *operands, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    { "run", "MODEL", "run a model on input files or random inputs", kiln_command_run },
    { "opt", "MODEL", "optimize a model and print the result", kiln_command_opt },
    { "verify", "DIR…", "run test cases and compare their outputs", kiln_command_verify },
    { "info", "MODEL", "describe a model: producer, inputs, outputs, operators",
      kiln_command_info },
    { "check", "MODEL", "list the operators that are not supported", kiln_command_check },
    { "memory", "MODEL", "show the memory plan of a run", kiln_command_memory },
    { "compile", "MODEL", "compile a model to a program file or an object file",
      kiln_command_compile },
    { "compare", "MODEL", "find the first value that differs between two pipelines",
      kiln_command_compare },
    { "bisect", "MODEL", "find the pass that breaks a model", kiln_command_bisect },
    { "passes", "", "list the passes", kiln_command_passes },
    { "ops", "", "list the operators", kiln_command_ops },
};

static void
print_help(FILE *out)
{
    fprintf(out, "Usage: kiln COMMAND [OPTION…] [OPERAND…]\n\n");
    fprintf(out, "Kiln loads ONNX models, optimizes them and runs them on the CPU.\n\nCommands:\n");
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
        fprintf(out, "  %-7s %s%*s %s\n", commands[i].name, commands[i].operands,
                (int)(5 - g_utf8_strlen(commands[i].operands, -1)), "", commands[i].summary);
    fprintf(out, "\n`kiln COMMAND --help` shows the options of a command. `kiln --version` shows "
                 "the version.\n");
    fprintf(
        out,
        "Exit status: 0 ok, 1 failed, 2 wrong usage, 3 unsupported operators, 4 mismatch, 5 some "
        "inputs of a batch failed.\n");
}

static int
no_such_command(const char *name)
{
    const char *names[G_N_ELEMENTS(commands)];
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
        names[i] = commands[i].name;
    g_autofree char *hint = kiln_suggest(name, names, G_N_ELEMENTS(commands));
    fprintf(stderr, "kiln: expected a command, found %s%s\n`kiln --help` lists them.\n", name,
            hint);
    return KILN_EXIT_USAGE;
}

static int
dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return KILN_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (strcmp(argv[1], "help") == 0 && argc == 2)) {
        print_help(stdout);
        return KILN_EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("%s\n", kiln_build_info());
        return KILN_EXIT_OK;
    }
    bool help = strcmp(argv[1], "help") == 0;
    const char *name = argv[help ? 2 : 1];
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (strcmp(name, commands[i].name) == 0)
            return help ? commands[i].run(2, (char *[]){ argv[2], "--help", NULL })
                        : commands[i].run(argc - 1, argv + 1);
    }
    return no_such_command(name);
}

int
main(int argc, char **argv)
{
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C"); /* numbers are read and printed the same everywhere */
    g_autoptr(GError) error = NULL;
    if (!kiln_reserve_hold(&error)) {
        fprintf(stderr, "kiln: %s\n", error->message);
        return KILN_EXIT_FAILED;
    }
    int status = dispatch(argc, argv);
    /* A full disk or a closed pipe must not pass for success. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == KILN_EXIT_OK) {
        fprintf(stderr, "kiln: standard output: cannot be written: %s\n", g_strerror(errno));
        status = KILN_EXIT_FAILED;
    }
    kiln_reserve_release();
    return status;
}
