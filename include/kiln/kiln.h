/* SPDX-License-Identifier: Apache-2.0 */
/* Kiln: load an ONNX model, optimize it under a pipeline, run it on the CPU.
 *
 * A tour. This program prints the first number of the first output:
 *
 *     #include <kiln.h>
 *     #include <stdio.h>
 *
 *     int
 *     main(int argc, char **argv)
 *     {
 *         static float picture[1 * 1 * 28 * 28];
 *         const char *path = argc > 1 ? argv[1] : "model.onnx";
 *         g_autoptr(GError) error = NULL;
 *         g_autoptr(KilnProgram) program = NULL;
 *         g_autoptr(KilnSession) session = NULL;
 *
 *         g_autoptr(KilnModel) model = kiln_model_load(path, &error);
 *         if (model)
 *             program = kiln_program_compile(model, NULL, &error);
 *         if (program)
 *             session = kiln_session_new(program, NULL, &error);
 *         if (!session ||
 *             !kiln_session_bind_input(session, 0, picture, sizeof picture, &error) ||
 *             !kiln_session_run(session, &error)) {
 *             fprintf(stderr, "%s\n", error->message);
 *             return 1;
 *         }
 *         const float *scores = kiln_session_output(session, 0, NULL, &error);
 *         printf("%g\n", scores[0]);
 *         return 0;
 *     }
 *
 * Rules that hold everywhere:
 * - A function that can fail takes a GError ** and returns FALSE or NULL; codes are those of
 *   KilnError. Nothing aborts, exits or prints on bad input. Objects, texts and places for
 *   results must be valid: NULL is for _unref() and _free(), and where it is said. Tensors,
 *   arenas, nodes and all else that grows with a model fail with KILN_ERROR_MEMORY; only small
 *   blocks of GLib and of the vendor's library end the process when memory runs out.
 * - Models, pipelines and programs are immutable once made, reference-counted, and may be shared by
 *   threads. A session belongs to one thread at a time; sessions of one program run concurrently.
 * - Models are mapped from their files: a file that is cut short while its model lives ends the
 *   process, as with any map. Replacing it (writing another and renaming it) is harmless.
 * - Results are bit-identical for any number of threads, per program and instruction set.
 * - Runs share one pool of threads, which is made when it is first needed: no more than one thread
 *   for each processor. Where a thread cannot be made, runs have fewer. A child of fork() makes a
 *   pool of its own; no run may be under way on another thread when a process forks.
 * - The rounding mode of the caller, its handling of denormal numbers and its traps change no
 *   result, and are as they were when a function returns. */
#ifndef KILN_H
#define KILN_H

#include "graph/kiln-types.h"
#include "graph/kiln-version.h"
#include "runtime/kiln-constants.h"
#include "runtime/kiln-limits.h"
#include "runtime/kiln-object.h"

#include <stddef.h>
#include <stdint.h>

/* Options, and structs that functions fill, begin with their size, so that later versions can
 * append fields: the library knows which fields its caller has. */
#ifdef __cplusplus
template <typename Struct>
static inline Struct
kiln_struct_init()
{
    Struct value = Struct();
    value.size = sizeof value;
    return value;
}
#define KILN_STRUCT_INIT(Type) kiln_struct_init<Type>()
#else
#define KILN_STRUCT_INIT(Type)                                                                     \
    {                                                                                              \
        .size = sizeof(Type)                                                                       \
    }
#endif

G_BEGIN_DECLS

typedef struct KilnModel KilnModel;
typedef struct KilnPipeline KilnPipeline;
typedef struct KilnProgram KilnProgram;
typedef struct KilnSession KilnSession;

/** KILN_VERSION of the library that runs. */
KILN_API const char *kiln_version(void);
/** Compiler, instruction set found, libraries: one line for bug reports. */
KILN_API const char *kiln_build_info(void);

/** What is known of an input or output. Pointers stay valid as long as the object that was asked;
 * those from a session until it is bound to other shapes. */
typedef struct {
    size_t size; /* sizeof(KilnTensorInfo): set by KILN_TENSOR_INFO_INIT */
    const char *name;
    KilnDType dtype;
    int rank;                     /* -1: not known before a run */
    const int64_t *dims;          /* -1: not known before a run */
    const char *const *dim_names; /* NULL where a dim has none */
    int64_t bytes;                /* of the row-major payload; -1 where a dim is not known */
} KilnTensorInfo;
#define KILN_TENSOR_INFO_INIT KILN_STRUCT_INIT(KilnTensorInfo)

/* --- models --- */

/** Loads an .onnx file (opsets 1 to 21) or a .kiln text, of the graph level or the ir level.
 * Weights are mapped, not read. Errors: IO, FORMAT, PARSE, INVALID, SHAPE, TYPE, MEMORY. Operators
 * that Kiln lacks do not fail here: see kiln_model_check(). */
KILN_API KilnModel *kiln_model_load(const char *path, GError **error);
/** The same from memory, which the model keeps a reference on. @name stands for the path in
 * messages, and external data is looked for beside it, as are the files that a text names; NULL:
 * there are none, and naming one is an error. */
KILN_API KilnModel *kiln_model_load_bytes(GBytes *bytes, const char *name, GError **error);
/** The same within limits. @options NULL: defaults. KILN_ERROR_LIMIT besides. */
KILN_API KilnModel *kiln_model_load_with(const char *path, const KilnModelOptions *options,
                                         GError **error);
KILN_API KilnModel *kiln_model_load_bytes_with(GBytes *bytes, const char *name,
                                               const KilnModelOptions *options, GError **error);
/** Sets all limits of @options, and refuses all but the one ONNX file. */
KILN_API void kiln_model_options_untrusted(KilnModelOptions *options);
KILN_API KilnModel *kiln_model_ref(KilnModel *model);
KILN_API void kiln_model_unref(KilnModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnModel, kiln_model_unref)

KILN_API unsigned kiln_model_n_inputs(const KilnModel *model);
KILN_API unsigned kiln_model_n_outputs(const KilnModel *model);
KILN_API const KilnTensorInfo *kiln_model_input(const KilnModel *model, unsigned i);
KILN_API const KilnTensorInfo *kiln_model_output(const KilnModel *model, unsigned i);

/** What the model's file says of itself: producer, versions, notes, and properties such as labels
 * (kiln_metadata_property()). Text models and programs keep it. Never NULL; lives as long as
 * @model. */
KILN_API const KilnMetadata *kiln_model_metadata(const KilnModel *model);

/** Notes on what the importer mended in the file, such as nodes that were not sorted: lines without
 * a newline, then NULL. Live as long as @model. Compiling sends them to KilnCompileOptions.log. */
KILN_API const char *const *kiln_model_notes(const KilnModel *model);

/** One thing that a model asks for and a target lacks. */
typedef struct {
    const char *op; /* the name in ONNX, with its domain where it is not the default one */
    int opset;
    const char *dtype;
    const char *node;
    const char *reason;
} KilnUnsupported;
/** Everything that @target ("cpu", "ref"; NULL: "cpu") lacks for @model: *@out_n entries, then
 * NULL, in one block that g_free() frees. NULL and KILN_ERROR_USAGE for an unknown target. */
KILN_API KilnUnsupported **kiln_model_check(const KilnModel *model, const char *target,
                                            unsigned *out_n, GError **error);

/* --- pipelines --- */

/** A pipeline that ships with Kiln ("default", "none", "debug") or a file. KILN_ERROR_PIPELINE says
 * where it is wrong. */
KILN_API KilnPipeline *kiln_pipeline_load(const char *name_or_path, GError **error);
/** The inline form: "dce,cse,constant-fold{evaluate=compile},dse". */
KILN_API KilnPipeline *kiln_pipeline_parse(const char *text, GError **error);
/** An empty pipeline to build in C; passes go to the level they belong to, in the order of the
 * calls. */
KILN_API KilnPipeline *kiln_pipeline_new(void);
/** Appends "id" or "id{option=value}", or several with commas between them. Not after the pipeline
 * was used. */
KILN_API gboolean kiln_pipeline_add(KilnPipeline *pipeline, const char *pass, GError **error);
/** Passes from a plug-in, a shared object written against include/kiln/passes/kiln-pass.h, to be
 * named in kiln_pipeline_add(). It is closed with the pipeline. Not after the pipeline was used. */
KILN_API gboolean kiln_pipeline_load_plugin(KilnPipeline *pipeline, const char *path,
                                            GError **error);
/** The same from the program itself: the table (include/kiln/passes/kiln-pass.h) must live as long
 * as the pipeline. All of its passes are taken, or none. */
typedef struct KilnPassPlugin KilnPassPlugin;
KILN_API gboolean kiln_pipeline_register_passes(KilnPipeline *pipeline, const KilnPassPlugin *table,
                                                GError **error);
/** YAML that loads back to the same pipeline; free with g_free(). */
KILN_API char *kiln_pipeline_to_string(const KilnPipeline *pipeline);
KILN_API KilnPipeline *kiln_pipeline_ref(KilnPipeline *pipeline);
KILN_API void kiln_pipeline_unref(KilnPipeline *pipeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnPipeline, kiln_pipeline_unref)

/* --- programs --- */

/** The concrete shape of an input whose model leaves dims open. */
typedef struct {
    const char *input;
    int rank;
    int64_t dims[8];
} KilnShape;

/** FALSE cancels. @fraction grows from 0 to 1; @what names the step. */
typedef gboolean (*KilnProgressFn)(double fraction, const char *what, void *data);
/** A line of log, without a newline: what the passes rewrote. Silent where no function is set. */
typedef void (*KilnLogFn)(const char *line, void *data);

/** Where a program is specialised at a run, @progress, @log and @cancel are used once more, by the
 * thread that runs: then they, and @data, must live as long as the program. They must not use the
 * program themselves. */
typedef struct {
    size_t size;             /* sizeof(KilnCompileOptions): set by KILN_COMPILE_OPTIONS_INIT */
    KilnPipeline *pipeline;  /* NULL: "default" */
    const char *target;      /* NULL: "cpu" */
    int threads;             /* 0: one per processor that this process may use: those of its
                                affinity, within the quota of its control group, and no more than
                                OMP_NUM_THREADS. Other numbers bound the threads of a run */
    const KilnShape *shapes; /* of inputs that the model leaves open; others must agree with it */
    unsigned n_shapes;
    int64_t memory_limit; /* bytes of arena; 0: none. KILN_ERROR_LIMIT where the plan needs more */
    gboolean no_verify;   /* skip the verifier after each pass */
    gboolean prefer_memory; /* less memory is worth more than speed: no copies of weights that are
                               larger than they are, none beside them while they are packed, and
                               fewer bytes where a kernel can do that: results have the same bits */
    gboolean train;         /* compile in training mode instead of inference mode */
    KilnProgressFn progress;
    KilnLogFn log;
    void *data;                 /* for progress and log */
    const volatile int *cancel; /* KILN_ERROR_CANCELLED once it is not 0: g_atomic_int_set() */
    const KilnConstantInput *constants; /* beside those that the model marks */
    unsigned n_constants;
    KilnConstantCache *cache; /* NULL: the model's own */
    const char *cache_dir;    /* folded constants are kept here from one process to the next; files
                                 that are damaged or of another version are written anew. It must
                                 belong to the user, and nobody else may write to it: KILN_ERROR_IO.
                                 NULL: not */
    gboolean no_offload;      /* Kiln's own kernels only, whatever vendor library there is, and one
                                 algorithm per operator: the same bits whether an operand is a literal
                                 of the model, a constant input or any other */
    KilnParallelFor parallel_for; /* NULL: the process's one pool. As long as the program lives */
    void *pool;                   /* its first argument */
    int64_t total_limit; /* bytes that folding, weights, arena and outputs take together; 0: none */
    int64_t node_limit;  /* of the module after each pass; 0: none */
    int64_t time_limit;  /* milliseconds that compiling takes, or by an estimate a run; 0: none */
} KilnCompileOptions;
#define KILN_COMPILE_OPTIONS_INIT KILN_STRUCT_INIT(KilnCompileOptions)
/** Sets total_limit, node_limit and time_limit for the model of a stranger. */
KILN_API void kiln_compile_options_untrusted(KilnCompileOptions *options);

/** Optimizes, lowers, plans and binds @model. @options NULL: defaults. Where shapes, or values that
 * shapes depend on, come with the inputs only, the work is done at the first run with them and
 * kept: the program holds a specialisation for each of the last 32 combinations. Errors:
 * UNSUPPORTED, SHAPE, TYPE, PASS, PIPELINE, LIMIT, MEMORY, CANCELLED, USAGE. */
KILN_API KilnProgram *kiln_program_compile(KilnModel *model, const KilnCompileOptions *options,
                                           GError **error);
/** Inputs that come with the first run have changed where they are bound: the next run of each
 * session looks at them again. Binding such an input does the same for its session. Not while a
 * session of the program runs. */
KILN_API void kiln_program_invalidate_constants(KilnProgram *program);
/** How often runs of @program computed its folded constants: once, however many sessions and
 * threads there are, unless they changed or were evicted; not at all where the cache or the disk
 * had them. */
KILN_API uint64_t kiln_program_fold_runs(const KilnProgram *program);

/** Writes @program to a file that kiln_program_load() maps: optimized, planned, with its weights
 * packed for the kernels of this processor. The file appears whole or not at all. Errors: IO; USAGE
 * where shapes, or values that shapes depend on, come with the inputs. */
KILN_API gboolean kiln_program_save(KilnProgram *program, const char *path, GError **error);

typedef struct {
    size_t size;              /* sizeof(KilnLoadOptions): set by KILN_LOAD_OPTIONS_INIT */
    KilnConstantCache *cache; /* of constants that the first run folds; NULL: one of its own */
    const char *cache_dir;    /* as in KilnCompileOptions */
} KilnLoadOptions;
#define KILN_LOAD_OPTIONS_INIT KILN_STRUCT_INIT(KilnLoadOptions)
/** A program that kiln_program_save() or `kiln compile` wrote: its results have the same bits.
 * Nothing is optimized, folded or packed again; kernels of a vendor library are created anew.
 * Weights are read-only pages of the file, shared by all sessions and processes. All bytes are
 * checked against their checksums, which finds damage, not malice: load programs of makers whom you
 * would run code of.
 * @options NULL: defaults. Errors: IO; FORMAT where the file is none, cut short or damaged;
 * UNSUPPORTED where it was made by another version, for another instruction set or vendor library;
 * INVALID, MEMORY. */
KILN_API KilnProgram *kiln_program_load(const char *path, const KilnLoadOptions *options,
                                        GError **error);
/** The same from memory, which the program keeps a reference on (a copy where it is not aligned to
 * 64 bytes). @name stands for the path in messages. */
KILN_API KilnProgram *kiln_program_load_bytes(GBytes *bytes, const char *name,
                                              const KilnLoadOptions *options, GError **error);
KILN_API KilnProgram *kiln_program_ref(KilnProgram *program);
KILN_API void kiln_program_unref(KilnProgram *program);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnProgram, kiln_program_unref)

/** kiln_model_metadata() of the model that @program was compiled from, by this process or another.
 * Lives as long as @program. */
KILN_API const KilnMetadata *kiln_program_metadata(const KilnProgram *program);
KILN_API unsigned kiln_program_n_inputs(const KilnProgram *program);
KILN_API unsigned kiln_program_n_outputs(const KilnProgram *program);
/** NULL where there is no input or output @i. */
KILN_API const KilnTensorInfo *kiln_program_input(const KilnProgram *program, unsigned i);
KILN_API const KilnTensorInfo *kiln_program_output(const KilnProgram *program, unsigned i);
/** The number of the input or output of that name; -1: there is none. */
KILN_API int kiln_program_find_input(const KilnProgram *program, const char *name);
KILN_API int kiln_program_find_output(const KilnProgram *program, const char *name);

/** Bytes; all -1 for a program that is not specialised yet. Of several specialisations it is the
 * one that was asked for last. */
typedef struct {
    size_t size;     /* sizeof(KilnMemoryReport): set by KILN_MEMORY_REPORT_INIT */
    int64_t sum;     /* activations without sharing */
    int64_t lb_node; /* the most that one instruction needs: no order can do with less */
    int64_t lb_live; /* the most that is live at once: no placement can do with less */
    int64_t arena;   /* what a session allocates */
    int64_t weights; /* constants as the program holds them, packed copies included */
    /* arena == lb_live, or a search proved that nothing is lower. */
    gboolean proven_optimal;
    double plan_ms; /* 0 of a program that was loaded: it brings its plan */
} KilnMemoryReport;
#define KILN_MEMORY_REPORT_INIT KILN_STRUCT_INIT(KilnMemoryReport)
KILN_API gboolean kiln_program_memory(const KilnProgram *program, KilnMemoryReport *out,
                                      GError **error);

/* --- sessions --- */

typedef struct {
    size_t size; /* sizeof(KilnSessionOptions): set by KILN_SESSION_OPTIONS_INIT */
    void *arena; /* the caller's, 64-byte aligned, of KilnMemoryReport.arena bytes; NULL: the
                    session's own */
    size_t arena_bytes;
    int threads;      /* 0: as compiled; never more than that */
    gboolean profile; /* time every instruction */
    gboolean poison;  /* for debugging: run everything a second time, fill memory that is dead with
                         NaN after each instruction, and fail with KILN_ERROR_RUN where a result
                         depends on it */
    const volatile int *cancel; /* of a run, between two instructions: KILN_ERROR_CANCELLED once it
                                   is not 0, which any thread may make it: g_atomic_int_set() */
    KilnParallelFor parallel_for; /* NULL: as compiled */
    void *pool;
    int64_t time_limit; /* milliseconds of a run, looked at between two instructions; 0: none */
    gboolean seeded; /* TRUE: random operators without a seed of their own draw the same numbers in
                        every run, chosen by @seed. FALSE: each run draws other numbers. Pipeline,
                        target and threads change none of them */
    uint64_t seed;
} KilnSessionOptions;
#define KILN_SESSION_OPTIONS_INIT KILN_STRUCT_INIT(KilnSessionOptions)
/** Sets time_limit for the model of a stranger. */
KILN_API void kiln_session_options_untrusted(KilnSessionOptions *options);

KILN_API KilnSession *kiln_session_new(KilnProgram *program, const KilnSessionOptions *options,
                                       GError **error);
KILN_API void kiln_session_free(KilnSession *session);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnSession, kiln_session_free)

/** Reads input @i from @data at every run from now on, without a copy: row-major, aligned to its
 * element, borrowed. @bytes must be what the input's type asks for (KILN_ERROR_SHAPE); @data may be
 * NULL where that is none. For inputs of static shape. */
KILN_API gboolean kiln_session_bind_input(KilnSession *session, unsigned i, const void *data,
                                          size_t bytes, GError **error);
/** The same with the shape: for inputs whose model leaves dims open. A dim that contradicts the
 * model's is KILN_ERROR_SHAPE; one that contradicts another input's of the same name is found by
 * the run. */
KILN_API gboolean kiln_session_bind_input_shaped(KilnSession *session, unsigned i, const void *data,
                                                 int rank, const int64_t *dims, GError **error);
/** Writes output @i to @data at every run from now on, without a copy; NULL: to memory of the
 * session's own again. @bytes must be what the output's type asks for (KILN_ERROR_SHAPE); where its
 * shape comes with the inputs, the run checks that. An output must not overlap an input, another
 * output or the caller's arena: the run fails with KILN_ERROR_USAGE, and nothing is written. */
KILN_API gboolean kiln_session_bind_output(KilnSession *session, unsigned i, void *data,
                                           size_t bytes, GError **error);
/** Runs. Allocates nothing, takes no lock, looks up no name (but where shapes, or values that
 * shapes depend on, are others than those of the last run). KILN_ERROR_USAGE where an input is not
 * bound, KILN_ERROR_RUN where an instruction meets data that it cannot compute with (an index out
 * of range), KILN_ERROR_CANCELLED where KilnSessionOptions.cancel asks for that, KILN_ERROR_LIMIT
 * where its time is over, and the errors of kiln_program_compile() where it specialises. After an
 * error the session may run again; a variable of the model holds what the failed run had written by
 * then. */
KILN_API gboolean kiln_session_run(KilnSession *session, GError **error);
/** The payload of output @i after a run: the bound memory, or the session's own, valid until the
 * next run. @info, if not NULL, gets its concrete type. NULL and KILN_ERROR_USAGE where no run has
 * succeeded since the session was made, a run failed, or other memory was bound to the output. */
KILN_API const void *kiln_session_output(KilnSession *session, unsigned i, KilnTensorInfo *info,
                                         GError **error);

/** Time of one instruction, summed over the runs since the shapes changed. */
typedef struct {
    const char *instruction;
    const char *node;   /* the ONNX node that it came from */
    const char *kernel; /* "cpu:conv_gemm" */
    int64_t flops, bytes;
    uint64_t runs;
    double ms;
    int64_t live_bytes; /* of the arena, while it runs: buffers that hold something, and scratch */
} KilnProfileEntry;
/** In order of execution; *@out_n entries, borrowed until the next run. None without
 * KilnSessionOptions.profile. */
KILN_API const KilnProfileEntry *const *kiln_session_profile(KilnSession *session, unsigned *out_n);

G_END_DECLS

#endif
