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
 *   results must be valid. NULL is allowed for _unref() and _free(), and where a comment says so.
 *   Tensors, arenas, nodes and all else that grows with a model fail with KILN_ERROR_MEMORY. Only
 *   small blocks of GLib and of the vendor's library end the process when memory runs out.
 * - Models, pipelines and programs are immutable once made, reference-counted, and may be shared by
 *   threads. A session belongs to one thread at a time; sessions of one program run concurrently.
 * - Models are mapped from their files. Cutting a file short while its model lives ends the
 *   process, as with any map. Replacing it (writing another and renaming it) is harmless.
 * - Results are bit-identical for any number of threads, per program and instruction set.
 * - Runs share one pool of threads, made when first needed, with at most one thread for each
 *   processor. Runs have fewer threads where one cannot be made. A child of fork() makes its own
 *   pool; no run may be under way on another thread when a process forks.
 * - The caller's rounding mode, handling of denormal numbers and traps change no result. Functions
 *   return with them as they were. */
#ifndef KILN_H
#define KILN_H

#include "graph/kiln-items.h"
#include "graph/kiln-types.h"
#include "graph/kiln-version.h"
#include "runtime/kiln-carry.h"
#include "runtime/kiln-constants.h"
#include "runtime/kiln-limits.h"
#include "runtime/kiln-memory.h"
#include "runtime/kiln-object.h"
#include "runtime/kiln-operators.h"
#include "runtime/kiln-pipeline.h"
#include "runtime/kiln-profile.h"
#include "runtime/kiln-session-items.h"
#include "runtime/kiln-shapes.h"

#include <stddef.h>
#include <stdint.h>

/* Options, and structs that functions fill, begin with their size. So the library knows which
 * fields its caller has, and later versions can append fields. */
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

/** A model as it was loaded. */
typedef struct KilnModel KilnModel;
/** A model that was compiled for a target. */
typedef struct KilnProgram KilnProgram;
/** The memory of the runs of a program. */
typedef struct KilnSession KilnSession;

/** KILN_VERSION of the library that runs. */
KILN_API const char *kiln_version(void);
/** Compiler, instruction set found, libraries: one line for bug reports. */
KILN_API const char *kiln_build_info(void);

/** Facts about an input or output. Pointers live as long as the object that was asked. Pointers
 * from a session live only until it is bound to other shapes. */
typedef struct {
    size_t size; /* sizeof(KilnTensorInfo): set by KILN_TENSOR_INFO_INIT */
    const char *name;
    KilnDType dtype;
    int rank;                     /* -1: not known before a run */
    const int64_t *dims;          /* -1: not known before a run */
    const char *const *dim_names; /* NULL where a dim has none */
    int64_t bytes;                /* of the row-major payload; -1 where a dim is not known */
    const char *contents;         /* "sequence(f32[?,3])": the whole type; NULL for tensors */
} KilnTensorInfo;
#define KILN_TENSOR_INFO_INIT KILN_STRUCT_INIT(KilnTensorInfo)

/* --- models --- */

/** Loads an .onnx file (opsets 1 to 28) or a .kiln text, of the graph level or the ir level.
 * Weights are mapped, not read. Errors: IO, FORMAT, PARSE, INVALID, SHAPE, TYPE, MEMORY. Operators
 * that Kiln lacks do not fail here: see kiln_model_check(). */
KILN_API KilnModel *kiln_model_load(const char *path, GError **error);
/** The same from memory; the model keeps a reference to @bytes. @name stands for the path in
 * messages. External data, and files that a text names, lie beside it. NULL: a model
 * that names a file is an error. */
KILN_API KilnModel *kiln_model_load_bytes(GBytes *bytes, const char *name, GError **error);
/** The same within limits; KILN_ERROR_LIMIT beyond them. @options NULL: defaults. */
KILN_API KilnModel *kiln_model_load_with(const char *path, const KilnModelOptions *options,
                                         GError **error);
/** Both: from memory, and within limits. */
KILN_API KilnModel *kiln_model_load_bytes_with(GBytes *bytes, const char *name,
                                               const KilnModelOptions *options, GError **error);
/** Sets all limits of @options, and forbids all files but the one ONNX file. */
KILN_API void kiln_model_options_untrusted(KilnModelOptions *options);
/** One owner more; returns @model. */
KILN_API KilnModel *kiln_model_ref(KilnModel *model);
/** One owner less; the last one frees it. Does nothing for NULL. */
KILN_API void kiln_model_unref(KilnModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnModel, kiln_model_unref)

/** The number of inputs that a caller binds. */
KILN_API unsigned kiln_model_n_inputs(const KilnModel *model);
/** The number of outputs. */
KILN_API unsigned kiln_model_n_outputs(const KilnModel *model);
/** NULL where there is no input @i. */
KILN_API const KilnTensorInfo *kiln_model_input(const KilnModel *model, unsigned i);
/** NULL where there is no output @i. */
KILN_API const KilnTensorInfo *kiln_model_output(const KilnModel *model, unsigned i);

/** Facts from the model's file: producer, versions, notes, and properties such as labels
 * (kiln_metadata_property()). Text models and programs keep them. Never NULL; lives as long as
 * @model. */
KILN_API const KilnMetadata *kiln_model_metadata(const KilnModel *model);

/** Notes on repairs by the importer, such as sorting nodes: lines without a newline, then NULL.
 * They live as long as @model. Compiling sends them to KilnCompileOptions.log. */
KILN_API const char *const *kiln_model_notes(const KilnModel *model);

/** A thing that a model needs and a target lacks. */
typedef struct {
    const char *op; /* the name in ONNX, with its domain unless that is the default */
    int opset;
    const char *dtype;
    const char *node;
    const char *reason;
} KilnUnsupported;
/** Everything that @target ("cpu", "ref"; NULL: "cpu") lacks for @model: *@out_n entries, then
 * NULL, in one block that g_free() frees. NULL and KILN_ERROR_USAGE for an unknown target. */
KILN_API KilnUnsupported **kiln_model_check(const KilnModel *model, const char *target,
                                            unsigned *out_n, GError **error);

/* --- programs --- */

/** FALSE cancels. @fraction grows from 0 to 1; @what names the step. */
typedef gboolean (*KilnProgressFn)(double fraction, const char *what, void *data);
/** A line of log, without a newline: a rewrite of a pass, for example. Without a function there is
 * no log. */
typedef void (*KilnLogFn)(const char *line, void *data);

/** A program that is specialised at a run uses @progress, @log and @cancel again, on the thread
 * that runs. Then they, and @data, must live as long as the program. They must not use the
 * program. */
typedef struct {
    size_t size;            /* sizeof(KilnCompileOptions): set by KILN_COMPILE_OPTIONS_INIT */
    KilnPipeline *pipeline; /* NULL: "default" */
    const char *target;     /* NULL: "cpu" */
    int threads; /* 0: one per processor that this process may use, by its affinity, its control
                    group and OMP_NUM_THREADS. Other numbers bound the threads of a run */
    const KilnShape *shapes; /* of inputs with open dims; others must equal the model's */
    unsigned n_shapes;
    int64_t memory_limit; /* bytes of arena; 0: none. KILN_ERROR_LIMIT where the plan needs more */
    gboolean no_verify;   /* skip the verifier after each pass */
    gboolean prefer_memory; /* saves memory at the cost of speed, with the same bits: no copies of
                               weights larger than the weights, no second copy while packing, and
                               fewer bytes where a kernel can */
    gboolean train;         /* compile in training mode instead of inference mode */
    KilnProgressFn progress;
    KilnLogFn log;
    void *data;                 /* for progress and log */
    const volatile int *cancel; /* KILN_ERROR_CANCELLED once it is not 0: g_atomic_int_set() */
    const KilnConstantInput *constants; /* beside those that the model marks */
    unsigned n_constants;
    KilnConstantCache *cache; /* NULL: the model's own */
    const char *cache_dir;    /* a directory that keeps folded constants for later processes; NULL:
                                 none. Damaged files and those of other versions are written anew.
                                 The directory must belong to the user, and nobody else may write to
                                 it: else KILN_ERROR_IO */
    gboolean no_offload;      /* no vendor library, only Kiln's own kernels, and one algorithm per
                                 operator: a literal, a constant input and any other operand give
                                 the same bits */
    KilnParallelFor parallel_for; /* NULL: the process's one pool. Must outlive the program */
    void *pool;                   /* its first argument */
    int64_t total_limit;        /* bytes of folding, weights, arena and outputs together; 0: none */
    int64_t node_limit;         /* nodes of the module after each pass; 0: none */
    int64_t time_limit;         /* milliseconds of compiling, or of a run by estimate; 0: none */
    const KilnDimRange *ranges; /* of open dims */
    unsigned n_ranges;
} KilnCompileOptions;
#define KILN_COMPILE_OPTIONS_INIT KILN_STRUCT_INIT(KilnCompileOptions)
/** Sets total_limit, node_limit and time_limit for the model of a stranger. */
KILN_API void kiln_compile_options_untrusted(KilnCompileOptions *options);

/** Optimizes, lowers, plans and binds @model. @options NULL: defaults. If shapes, or values that
 * shapes depend on, come with the inputs, the first run does this work, or kiln_program_prepare().
 * It makes an open program, which serves all shapes. Where it cannot, the program keeps a
 * specialisation for each of the last 32 combinations. Errors: UNSUPPORTED, SHAPE, TYPE, PASS,
 * PIPELINE, LIMIT, MEMORY, CANCELLED, USAGE. */
KILN_API KilnProgram *kiln_program_compile(KilnModel *model, const KilnCompileOptions *options,
                                           GError **error);
/** Does the work of the first run with these shapes ahead of it: compiles the open program, and
 * packs its weights. @shapes may leave out inputs and dims. Kiln then takes their hints. Any number
 * of threads may call it. Errors: those of kiln_program_compile(); USAGE where shapes depend on the
 * values of an input. */
KILN_API gboolean kiln_program_prepare(KilnProgram *program, const KilnShape *shapes,
                                       unsigned n_shapes, GError **error);
/** Says that inputs which come with the first run have changed where they are bound. The next run
 * of each session looks at them again. Binding such an input does the same for its session. Do not
 * call it while a session of the program runs. */
KILN_API void kiln_program_invalidate_constants(KilnProgram *program);
/** How often runs of @program computed its folded constants: once for all sessions and threads,
 * unless they changed or were evicted. 0 where the cache or the disk had them. */
KILN_API uint64_t kiln_program_fold_runs(const KilnProgram *program);

/** Writes @program to a file that kiln_program_load() maps: optimized, planned, with its weights
 * packed for the kernels of this processor. A program with open dims stays open. The file appears
 * whole or not at all. Errors: IO; USAGE where values that shapes depend on come with the inputs;
 * UNSUPPORTED where the model is compiled for each shape; those of kiln_program_compile(). */
KILN_API gboolean kiln_program_save(KilnProgram *program, const char *path, GError **error);

/** How a program is loaded. */
typedef struct {
    size_t size;              /* sizeof(KilnLoadOptions): set by KILN_LOAD_OPTIONS_INIT */
    KilnConstantCache *cache; /* of constants that the first run folds; NULL: one of its own */
    const char *cache_dir;    /* as in KilnCompileOptions */
} KilnLoadOptions;
#define KILN_LOAD_OPTIONS_INIT KILN_STRUCT_INIT(KilnLoadOptions)
/** Loads a program that kiln_program_save() or `kiln compile` wrote: its results have the same
 * bits. Nothing is optimized, folded or packed again; kernels of a vendor library are created anew.
 * Weights are read-only pages of the file, shared by all sessions and processes. Checksums of all
 * bytes find damage, not malice: load only programs of makers whose code you would run.
 * @options NULL: defaults. Errors: IO; FORMAT where the file is no program, or is cut short or
 * damaged; UNSUPPORTED where it was made by another version, for another instruction set or vendor
 * library; INVALID, MEMORY. */
KILN_API KilnProgram *kiln_program_load(const char *path, const KilnLoadOptions *options,
                                        GError **error);
/** The same from memory. The program keeps a reference to @bytes, or a copy if they are not aligned
 * to 64 bytes. @name stands for the path in messages. */
KILN_API KilnProgram *kiln_program_load_bytes(GBytes *bytes, const char *name,
                                              const KilnLoadOptions *options, GError **error);
/** One owner more; returns @program. */
KILN_API KilnProgram *kiln_program_ref(KilnProgram *program);
/** One owner less; the last one frees it. Does nothing for NULL. */
KILN_API void kiln_program_unref(KilnProgram *program);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnProgram, kiln_program_unref)

/** kiln_model_metadata() of the model that @program was compiled from, by this process or another.
 * Lives as long as @program. */
KILN_API const KilnMetadata *kiln_program_metadata(const KilnProgram *program);
/** The number of inputs that a caller binds. */
KILN_API unsigned kiln_program_n_inputs(const KilnProgram *program);
/** The number of outputs. */
KILN_API unsigned kiln_program_n_outputs(const KilnProgram *program);
/** NULL where there is no input @i. */
KILN_API const KilnTensorInfo *kiln_program_input(const KilnProgram *program, unsigned i);
/** NULL where there is no output @i. */
KILN_API const KilnTensorInfo *kiln_program_output(const KilnProgram *program, unsigned i);
/** The number of the input of that name; -1: there is none. */
KILN_API int kiln_program_find_input(const KilnProgram *program, const char *name);
/** The number of the output of that name; -1: there is none. */
KILN_API int kiln_program_find_output(const KilnProgram *program, const char *name);

/* --- sessions --- */

/** A run asks it between two instructions: KILN_ERROR_CANCELLED once it returns TRUE. It must
 * return fast. */
typedef gboolean (*KilnPollFn)(void *data);

/** How a session runs. */
typedef struct {
    size_t size; /* sizeof(KilnSessionOptions): set by KILN_SESSION_OPTIONS_INIT */
    void *arena; /* the caller's, 64-byte aligned, of KilnMemoryReport.arena bytes; NULL: the
                    session's own */
    size_t arena_bytes;
    int threads;      /* 0: as compiled; never more than that */
    gboolean profile; /* time every instruction */
    gboolean poison;  /* for debugging: run everything again, with NaN in dead memory after each
                         instruction; KILN_ERROR_RUN where a result depends on dead memory */
    const volatile int *cancel; /* checked between two instructions: KILN_ERROR_CANCELLED once it is
                                   not 0. Any thread may set it: g_atomic_int_set() */
    KilnParallelFor parallel_for; /* NULL: as compiled */
    void *pool;
    int64_t time_limit; /* milliseconds of a run, checked between two instructions; 0: none */
    gboolean seeded; /* TRUE: random operators without a seed draw the same numbers in every run, by
                        @seed. FALSE: each run draws others. Pipeline, target and threads do not
                        change the numbers */
    uint64_t seed;
    KilnPollFn poll; /* NULL: nobody is asked. Any run of the session calls it on its own thread */
    void *poll_data; /* its argument */
} KilnSessionOptions;
#define KILN_SESSION_OPTIONS_INIT KILN_STRUCT_INIT(KilnSessionOptions)
/** Sets time_limit for the model of a stranger. */
KILN_API void kiln_session_options_untrusted(KilnSessionOptions *options);

/** A session of @program, which it keeps. @options NULL: defaults. Errors: MEMORY; USAGE where an
 * option is wrong. */
KILN_API KilnSession *kiln_session_new(KilnProgram *program, const KilnSessionOptions *options,
                                       GError **error);
/** Frees it, whatever is bound. Does nothing for NULL. */
KILN_API void kiln_session_free(KilnSession *session);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnSession, kiln_session_free)

/** Reads input @i from @data at every run from now on, without a copy. @data is borrowed, row-major
 * and aligned to its element. @bytes must be the size of the input's type (KILN_ERROR_SHAPE); @data
 * may be NULL where that is 0. For inputs of static shape. Strings are addresses of KilnText, which
 * are borrowed, too: the run fails with KILN_ERROR_FORMAT where one is not UTF-8. */
KILN_API gboolean kiln_session_bind_input(KilnSession *session, unsigned i, const void *data,
                                          size_t bytes, GError **error);
/** The same with the shape, for inputs whose model leaves dims open. KILN_ERROR_SHAPE where a dim
 * contradicts the model. Dims of one name that contradict each other fail at the run. */
KILN_API gboolean kiln_session_bind_input_shaped(KilnSession *session, unsigned i, const void *data,
                                                 int rank, const int64_t *dims, GError **error);
/** Writes output @i to @data at every run from now on, without a copy. NULL: to the session's own
 * memory again. @bytes must be the size of the output's type (KILN_ERROR_SHAPE); the run checks it
 * where the shape comes with the inputs. An output must not overlap an input, another output or the
 * caller's arena: the run fails with KILN_ERROR_USAGE and writes nothing. */
KILN_API gboolean kiln_session_bind_output(KilnSession *session, unsigned i, void *data,
                                           size_t bytes, GError **error);
/** Runs. Allocates nothing, takes no lock and looks up no name, unless it makes strings, or shapes,
 * or values that shapes depend on, differ from the last run. Errors: USAGE where an input is not
 * bound; RUN where an instruction cannot compute with its data, such as an index out of range;
 * CANCELLED where KilnSessionOptions.cancel asks for it; LIMIT where its time is over; and those of
 * kiln_program_compile() where it specialises. The session may run again after an error. A variable
 * of the model then keeps the value that the failed run wrote. */
KILN_API gboolean kiln_session_run(KilnSession *session, GError **error);
/** The payload of output @i after a run: the bound memory, or the session's own, valid until the
 * next run. So are the texts of strings, in bound memory, too. @info, if not NULL, gets its
 * concrete type. NULL and KILN_ERROR_USAGE where no run succeeded since the last of these: session
 * made, run failed, output bound to other memory. */
KILN_API const void *kiln_session_output(KilnSession *session, unsigned i, KilnTensorInfo *info,
                                         GError **error);

/** kiln_session_output(), but the memory becomes the caller's, without a copy: the session makes
 * new memory for the next run. It outlives the session, and kiln_session_free_output() frees it. A
 * carried output is copied. Errors: those of kiln_session_output(); USAGE where the output is in
 * bound memory, was taken already, or has strings; MEMORY. */
KILN_API void *kiln_session_take_output(KilnSession *session, unsigned i, KilnTensorInfo *info,
                                        GError **error);
/** Any thread may call it. @data NULL: does nothing. */
KILN_API void kiln_session_free_output(void *data);

/** kiln_session_clone() with cancel, poll and poll_data of @options instead of those of @session.
 * Other options are not read. */
KILN_API KilnSession *kiln_session_clone_with(const KilnSession *session,
                                              const KilnSessionOptions *options, GError **error);

G_END_DECLS

#endif
