/* SPDX-License-Identifier: Apache-2.0 */
/* The kiln command: one file per sub-command, options that all of them take, one way to fail. */
#ifndef KILN_TOOLS_COMMAND_H
#define KILN_TOOLS_COMMAND_H

#include "kiln.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "runtime/specialise.h"
#include "runtime/tensors/file.h"
#include "runtime/tensors/tensor_file.h"

#include <json-glib/json-glib.h>

/** Exit status: stable, scripts rely on it. */
enum {
    KILN_EXIT_OK = 0,
    KILN_EXIT_FAILED = 1,
    KILN_EXIT_USAGE = 2,
    KILN_EXIT_UNSUPPORTED = 3,
    KILN_EXIT_MISMATCH = 4,
};

typedef struct KilnTrace KilnTrace;
typedef struct KilnInputs KilnInputs;

/** Long work as it goes on: what a terminal shows, what a trace records. */
typedef struct {
    gint64 started, shown; /* ms; 0: not yet */
    KilnTrace *trace;      /* NULL: none asked for */
} KilnProgress;

/** Options of every sub-command, and those of passes. Strings are owned. */
typedef struct {
    char **pipelines, **backends; /* as given; the last ones count, but where there are two sides */
    const char *pipeline, *backend;
    char *passes, *mode, *prefer, *trace, *cache_dir;
    char **constness; /* compile:NAME, run:NAME */
    char **shapes;    /* NAME=1x3x224x224 */
    char **plugins;   /* files of --load-pass-plugin */
    int threads;
    gboolean no_offload, json, quiet, no_verify;
    /* limits */
    gboolean untrusted;
    char *memory_limit, *time_limit;
    int64_t node_limit; /* KILN_NO_LIMIT: not given */
    /* passes */
    char **skip, **only, **print_after;
    int64_t stop_after, bisect_limit; /* KILN_NO_LIMIT: all */
    gboolean print_changed, check;
    char *dump_dir;
    char *pipeline_help; /* what --help says of --pipeline */
    KilnProgress progress;
} KilnOptions;
#define KILN_NO_LIMIT G_MAXINT64

/** What may follow the options. */
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
    KilnInputs *inputs;          /* takes the options of inputs, which go there; may be NULL */
    /** Does the work on @operands (NULL-terminated; NULL: none) and returns the exit status; where
     * @error was set, the error's own status counts. */
    int (*work)(KilnOptions *options, char **operands, void *data, GError **error);
} KilnUsage;

/** Parses argv (argv[0] is the sub-command), does the work, reports what went wrong, writes the
 * trace. Returns the exit status. */
int kiln_command(const KilnUsage *usage, int argc, char **argv, void *data);

/** The pipeline that the options name: --passes, else --pipeline, else `default`. */
KilnPipeline *kiln_options_pipeline(const KilnOptions *options, GError **error);
/** Compile options from the command line. The shapes that they point to are stored in @shapes, to
 * be freed with kiln_shapes_free(). */
gboolean kiln_options_compile(KilnOptions *options, KilnPipeline *pipeline, KilnCompileOptions *out,
                              KilnShape **shapes, GError **error);
void kiln_shapes_free(KilnShape *shapes, unsigned n);
/** Pass options from the command line, for passes of @pipeline: what `kiln opt` runs with. */
gboolean kiln_options_passes(KilnOptions *options, const KilnPipeline *pipeline,
                             KilnPassOptions *out, GError **error);
/** One binding per input of @model from --shape; static inputs as they are. With @all an input
 * whose shape stays open is KILN_ERROR_USAGE. */
KilnBinding *kiln_options_bindings(const KilnOptions *options, const KilnModel *model, bool all,
                                   GError **error);
/** Loads a model and applies --const. Where @path is a compiled program and @out_program is not
 * NULL, that is loaded in place of it: *@out_program gets it, else NULL, and the model is what it
 * says of its inputs and instructions. Options that a program has settled are KILN_ERROR_USAGE
 * then. */
KilnModel *kiln_options_load(KilnOptions *options, const char *path, KilnProgram **out_program,
                             GError **error);

/** Progress of long work: a line on standard error that is rewritten, on terminals only, after a
 * while. @data is the KilnOptions. A KilnProgressFn. */
gboolean kiln_show_progress(double fraction, const char *what, void *data);
void kiln_clear_progress(KilnOptions *options);

/** @root as a JSON document, to be freed; takes @root over. File names that are no UTF-8, which
 * JSON has to be, have U+FFFD in place of what is not. */
char *kiln_json_text(JsonObject *root, bool pretty);
/** Prints a JSON document with its schema_version, and a newline, to standard output. Takes @root
 * over. */
void kiln_print_json(JsonObject *root);
/** A text from a file, with control characters as \\n, \\t or \\xHH, so that a line stays a line:
 * to be freed. */
char *kiln_one_line(const char *text);
/** The same for a text of several lines, which stay: names from a model must not command a
 * terminal.
 */
char *kiln_printable(const char *text);
/** A number in JSON, which has no NaN and no infinities: they become null. */
void kiln_json_set_number(JsonObject *object, const char *key, double value);
/** A type as `f32[1,10]` in JSON. */
void kiln_json_set_type(JsonObject *object, const char *key, const KilnType *type);

/** kiln_file_write(); `-` is standard output. */
gboolean kiln_write_result(const char *path, const void *data, size_t size, GError **error);
/** True where @path is standard output: `-`. */
bool kiln_is_stdout(const char *path);
/** The text of @ir, or of @module where that is NULL, to @path. Big constants go to PATH.bin. With
 * @alone they stand in the text. Where @path is `-` they are named as pieces of the model's file.
 */
gboolean kiln_write_text(const char *path, const KilnModule *module, const KilnIRModule *ir,
                         bool alone, GError **error);
/** A line per pass to standard error: runs, changes, nodes before and after, time; with @rules what
 * each rule did. */
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

#endif
