/* SPDX-License-Identifier: Apache-2.0 */
/* The kiln command: one file per sub-command, options that all of them take, one way to fail. */
#ifndef KILN_TOOLS_COMMAND_H
#define KILN_TOOLS_COMMAND_H

#include "runtime/tensor_file.h"

#include <json-glib/json-glib.h>

/** Exit status: stable, scripts rely on it. */
enum {
    KILN_EXIT_OK = 0,
    KILN_EXIT_FAILED = 1,
    KILN_EXIT_USAGE = 2,
    KILN_EXIT_UNSUPPORTED = 3,
    KILN_EXIT_MISMATCH = 4,
};

/** Options of every sub-command, and those of passes. Strings are owned. */
typedef struct {
    char *pipeline, *passes, *backend, *mode, *prefer, *trace;
    char **constness; /* compile:NAME, run:NAME */
    char **shapes;    /* NAME=1x3x224x224 */
    int threads;
    gboolean no_offload, json, quiet, no_verify;
    /* passes */
    char **skip, **only, **print_after;
    int64_t stop_after, bisect_limit;
    gboolean print_changed, time_passes, stats, check, print_pipeline;
    char *dump_dir;
} KilnOptions;

/** Parses argv (without the program's name and the sub-command's): @entries are the sub-command's
 * own, @common asks for all of KilnOptions. What is left over is stored in @out_rest. FALSE: an
 * error was set, or help was printed (then
 *  *@out_done is set). */
typedef struct {
    const char *command;  /* "run" */
    const char *operands; /* "MODEL" */
    const char *summary;
    const GOptionEntry *entries;
    bool passes; /* takes the options of passes too */
} KilnUsage;
gboolean kiln_options_parse(const KilnUsage *usage, int argc, char **argv, KilnOptions *options,
                            char ***out_rest, bool *out_done, GError **error);
void kiln_options_clear(KilnOptions *options);
/** Exactly one operand; NULL and KILN_ERROR_USAGE otherwise. */
const char *kiln_one_operand(char **rest, const KilnUsage *usage, GError **error);

/** Prints `kiln COMMAND: message` to standard error and returns the exit status of the error's
 * code. */
int kiln_fail(const char *command, const GError *error);

/** The pipeline that the options name: --passes, else --pipeline, else `default`. */
KilnPipeline *kiln_options_pipeline(const KilnOptions *options, GError **error);
/** Compile options from the command line. The shapes that they point to are stored in @shapes, to
 * be freed. */
gboolean kiln_options_compile(const KilnOptions *options, KilnPipeline *pipeline,
                              KilnCompileOptions *out, KilnShape **shapes, GError **error);
/** Pass options from the command line: what `kiln opt` runs with. */
gboolean kiln_options_passes(const KilnOptions *options, KilnPassOptions *out, GError **error);
/** One binding per input of @model from --shape; static inputs as they are. */
KilnBinding *kiln_options_bindings(const KilnOptions *options, const KilnModel *model,
                                   GError **error);
/** Loads a model and applies --const. */
KilnModel *kiln_options_load(const KilnOptions *options, const char *path, GError **error);

/** Progress of long work: a line on standard error that is rewritten, on terminals only, after a
 * while. */
gboolean kiln_show_progress(double fraction, const char *what, void *data);
void kiln_clear_progress(void);

/** Prints a JSON document with its schema_version, and a newline, to standard output. Takes @root
 * over. */
void kiln_print_json(JsonObject *root);
/** A type as `f32[1,10]` in JSON. */
void kiln_json_set_type(JsonObject *object, const char *key, const KilnType *type);

/** A line per pass to standard error: runs, changes, nodes before and after, time; with @rules what
 * each rule did. */
void kiln_print_pass_table(const KilnPassReport *report, bool rules);

int kiln_command_run(int argc, char **argv);
int kiln_command_opt(int argc, char **argv);
int kiln_command_verify(int argc, char **argv);
int kiln_command_check(int argc, char **argv);
int kiln_command_memory(int argc, char **argv);
int kiln_command_passes(int argc, char **argv);
int kiln_command_ops(int argc, char **argv);

#endif
