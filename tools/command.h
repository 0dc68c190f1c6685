/* SPDX-License-Identifier: Apache-2.0 */
/* The kiln command: one file per sub-command, with common options and one way to report errors. */
#ifndef KILN_TOOLS_COMMAND_H
#define KILN_TOOLS_COMMAND_H

#include "graph/base/budget.h"
#include "graph/base/json_writer.h"
#include "ir/ir.h"
#include "kiln.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "runtime/specialise.h"

/** Exit status: stable, scripts rely on it. */
enum {
    KILN_EXIT_OK = 0,
    KILN_EXIT_FAILED = 1,
    KILN_EXIT_USAGE = 2,
    KILN_EXIT_UNSUPPORTED = 3,
    KILN_EXIT_MISMATCH = 4,
    KILN_EXIT_PARTIAL = 5, /* some inputs of a batch have no result */
};

typedef struct KilnTrace KilnTrace;
typedef struct KilnInputs KilnInputs;

/** Progress of long work, for the terminal and the trace. */
typedef struct {
    gint64 started, shown; /* ms; 0: not yet */
    KilnTrace *trace;      /* NULL: none asked for */
} KilnProgress;

/** Options of every sub-command, and those of passes. Strings are owned. */
typedef struct {
    char **pipelines, **backends; /* as given; the last one counts, unless there are two sides */
    const char *pipeline, *backend;
    char *passes, *mode, *prefer, *trace, *cache_dir;
    char **constness;   /* compile:NAME, run:NAME */
    char **shapes;      /* NAME=1x3x224x224 */
    char **shape_hints; /* DIM=64 */
    char **plugins;     /* files of --load-plugin */
    int threads;
    gboolean no_offload, json, quiet, no_verify, newer_opsets;
    /* limits */
    gboolean untrusted;
    char *memory_limit, *time_limit;
    int64_t node_limit; /* KILN_NO_LIMIT: not given */
    /* passes */
    char **skip, **only, **print_after;
    int64_t stop_after, bisect_limit; /* KILN_NO_LIMIT: all */
    gboolean print_changed, check;
    char *dump_dir;
    char *pipeline_help; /* the help text of --pipeline */
    KilnProgress progress;
} KilnOptions;
#define KILN_NO_LIMIT G_MAXINT64

/** The operands that follow the options. */
typedef enum {
    KILN_OPERANDS_NONE,
    KILN_OPERANDS_ONE,
    KILN_OPERANDS_SOME,     /* at least one */
    KILN_OPERANDS_OPTIONAL, /* one at most */
    KILN_OPERANDS_TWO,      /* one or two */
} KilnOperands;

/** A sub-command: how it is called and what it does. */
typedef struct {
    const char *command;  /* "run" */
    const char *operands; /* "MODEL" */
    KilnOperands n_operands;
    const char *summary;
    const GOptionEntry *entries; /* its own options; may be NULL */
    bool passes;                 /* takes the options that act on passes too */
    bool two_sides;              /* --pipeline and --backend may be given twice */
    KilnInputs *inputs;          /* where options of inputs go; NULL: it takes none */
    /** Does the work on @operands (NULL-terminated; NULL: none) and returns the exit status. If
     * @error was set, the status of the error counts. */
    int (*work)(KilnOptions *options, char **operands, void *data, GError **error);
} KilnUsage;

/** Parses argv (argv[0] is the sub-command), does the work, reports errors, writes the trace.
 * Returns the exit status. */
int kiln_command(const KilnUsage *usage, int argc, char **argv, void *data);

/** The pipeline that the options name: --passes, else --pipeline, else `default`. */
KilnPipeline *kiln_options_pipeline(const KilnOptions *options, GError **error);
/** Makes compile options for @model from the command line. They point to @shapes, which the caller
 * frees with kiln_shapes_free(). */
gboolean kiln_options_compile(KilnOptions *options, const KilnModel *model, KilnPipeline *pipeline,
                              KilnCompileOptions *out, KilnShape **shapes, GError **error);
/** Makes the pass options of `kiln opt` from the command line, for the passes of @pipeline. */
gboolean kiln_options_passes(KilnOptions *options, const KilnPipeline *pipeline,
                             KilnPassOptions *out, GError **error);
/** Makes one binding per input of @model from --shape. Other shapes stay as they are. */
KilnBinding *kiln_options_bindings(const KilnOptions *options, const KilnModel *model,
                                   GError **error);
/** Loads a model and applies --const. If @path is a compiled program and @out_program is not NULL,
 * *@out_program gets the program, else NULL. The model then describes the inputs and instructions
 * of the program. Options that a program has settled are KILN_ERROR_USAGE. */
KilnModel *kiln_options_load(KilnOptions *options, const char *path, KilnProgram **out_program,
                             GError **error);

/** Shows @fraction and @what in a line on standard error, which later calls rewrite. Only on a
 * terminal, not with --quiet, and not in the first half second. */
void kiln_show_line(KilnOptions *options, double fraction, const char *what);
/** A KilnProgressFn; @data is the KilnOptions. Shows the line, and adds a step to the trace. */
gboolean kiln_show_progress(double fraction, const char *what, void *data);
void kiln_clear_progress(KilnOptions *options);

/** Begins what --json prints in @text: an object with a schema_version. */
KilnJson kiln_report_begin(GString *text);
/** Ends the object and prints it to standard output. */
gboolean kiln_report_print(KilnJson *json, GError **error);
/** @text on one line, to be freed: control characters become \\n, \\t or \\xHH. */
char *kiln_one_line(const char *text);
/** The same, but lines stay. Names from a model must not control the terminal. */
char *kiln_printable(const char *text);

/** Like kiln_file_write(), but `-` is standard output. */
gboolean kiln_write_result(const char *path, const void *data, size_t size, GError **error);
/** True if @path is `-`: standard output. */
bool kiln_is_stdout(const char *path);
/** Writes the text of @ir, or of @module if @ir is NULL, to @path. Big constants go to PATH.bin,
 * or, with @alone, into the text. If @path is `-`, the text names them as pieces of the model's
 * file. */
gboolean kiln_write_text(const char *path, const KilnModule *module, const KilnIRModule *ir,
                         bool alone, GError **error);
/** Prints a line per pass to standard error: runs, changes, nodes before and after, time. @rules
 * adds the rules. */
void kiln_print_pass_table(const KilnPassReport *report, bool rules);

int kiln_command_run(int argc, char **argv);
int kiln_command_opt(int argc, char **argv);
int kiln_command_verify(int argc, char **argv);
int kiln_command_info(int argc, char **argv);
int kiln_command_check(int argc, char **argv);
int kiln_command_memory(int argc, char **argv);
int kiln_command_compile(int argc, char **argv);
int kiln_command_compare(int argc, char **argv);
int kiln_command_bisect(int argc, char **argv);
int kiln_command_passes(int argc, char **argv);
int kiln_command_ops(int argc, char **argv);

/* --- options for models of strangers: limits, and files that are refused --- */

/** Adds --untrusted and the options of limits to @context. */
void kiln_limits_add(GOptionContext *context, KilnOptions *options);
/** Stores the limits of the options. --untrusted sets defaults for the others. */
gboolean kiln_limits_parse(const KilnOptions *options, KilnLimits *out, GError **error);
/** With --untrusted, refuses plug-ins and pipeline files that came with one of @operands:
 * KILN_ERROR_USAGE. Call it before any file is opened. */
gboolean kiln_limits_check_files(const KilnOptions *options, char **operands, GError **error);
/** Returns the options for loading a model. */
KilnModelOptions kiln_limits_model_options(const KilnOptions *options);

#endif
