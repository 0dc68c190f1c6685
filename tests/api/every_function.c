/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's program: every public function at least once, from nothing but what is installed.
 *   every_function DIGITS.onnx PLUGIN.so
 * Prints nothing; what is not as kiln.h says ends it with a line that says where. */
#include <glib/gstdio.h>
#include <graph/kiln-op.h>
#include <kiln.h>
#include <passes/kiln-pass.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: expected %s%s%s\n", __FILE__, __LINE__, #condition,            \
                    error ? ": " : "", error ? error->message : "");                               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* A call that has to fail with this code and these words. */
#define FAILS(call, expected_code, words)                                                          \
    do {                                                                                           \
        CHECK(!(call) && error);                                                                   \
        CHECK(error->domain == KILN_ERROR && error->code == KILN_ERROR_##expected_code);           \
        CHECK(strstr(error->message, words));                                                      \
        g_clear_error(&error);                                                                     \
    } while (0)

enum {
    PIXELS = 28 * 28,
    DIGITS = 10,
    N_SESSIONS = 4,
};

static const char twice_text[] =
    "graph @twice(%x: f32[2]) {\n"
    "  %y = plugin_op(%x) {domain=\"strange\", op_type=\"Twice\"} : f32[2]\n"
    "  return %y\n"
    "}\n";
static const char open_text[] = "graph @open(%x: f32[N,3], %y: f32[N,3]) {\n"
                                "  %z = add(%x, %y) : f32[N,3]\n"
                                "  return %z\n"
                                "}\n";
/* What the weights are is known at the first run, and what hangs on them computed then. */
static const char folded_text[] = "graph @folded(%x: f32[1,4], %w: f32[4,4] constant=run) {\n"
                                  "  %t = transpose(%w) {perm=[1,0]} : f32[4,4]\n"
                                  "  %e = exp(%t) : f32[4,4]\n"
                                  "  %y = matmul(%x, %e) : f32[1,4]\n"
                                  "  return %y\n"
                                  "}\n";
static const char strange_text[] = "graph @strange(%x: f32[4]) {\n"
                                   "  %y = unknown(%x) {op_type=\"Frobnicate\", opset=1} : f32[4]\n"
                                   "  return %y\n"
                                   "}\n";

static const char items_text[] = "graph @items(%s: sequence(f32[?]), %x: f32[2]) {\n"
                                 "  %t = sequence_insert(%s, %x) : sequence(f32[?])\n"
                                 "  return %t, %x\n"
                                 "}\n";

static const char carried_text[] = "graph @sums(%x: f32[1], %s: f32[1]) {\n"
                                   "  %y = add(%x, %s) : f32[1]\n"
                                   "  return %y\n"
                                   "}\n";

static KilnModel *
model_of(const char *text, GError **error)
{
    g_autoptr(GBytes) bytes = g_bytes_new_static(text, strlen(text));
    return kiln_model_load_bytes(bytes, "text.kiln", error);
}

static void
fill(float *to, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (float)(i * 7919 % 100) / 100;
}

/* --- models and pipelines --- */

/* What a file says of itself goes with it: model, program, program file. */
static void
check_metadata(const KilnMetadata *metadata)
{
    GError *error = NULL;
    CHECK(strcmp(metadata->graph_name, "digits") == 0 && metadata->ir_version >= 8);
    CHECK(*metadata->producer_name && !*metadata->doc_string && metadata->model_version == 0);
    CHECK(metadata->n_opsets == 1 && metadata->opsets[0].version == 17);
    CHECK(metadata->n_properties == 0 && !kiln_metadata_property(metadata, "labels"));
}

static void
check_types(void)
{
    GError *error = NULL;
    CHECK(strcmp(kiln_dtype_name(KILN_DTYPE_bf16), "bf16") == 0);
    CHECK(kiln_dtype_size(KILN_DTYPE_f64) == 8);
    CHECK(kiln_error_quark() == KILN_ERROR);
    CHECK(strstr(kiln_build_info(), kiln_version()));
}

static void
check_version(void)
{
    GError *error = NULL;
    const int major = KILN_VERSION_MAJOR, minor = KILN_VERSION_MINOR, micro = KILN_VERSION_MICRO;
    g_autofree char *text = g_strdup_printf("%d.%d.%d", major, minor, micro);
    CHECK(strcmp(KILN_VERSION, text) == 0 && strcmp(kiln_version(), text) == 0);
    CHECK(KILN_CHECK_VERSION(major, minor, micro) && !KILN_CHECK_VERSION(major, minor, micro + 1));
    CHECK(KILN_CHECK_VERSION(major, minor - 1, micro + 1));
    CHECK(!KILN_CHECK_VERSION(major, minor + 1, 0) && !KILN_CHECK_VERSION(major + 1, 0, 0));
    CHECK(KILN_CHECK_VERSION(major - 1, minor + 1, micro + 1));
#if !KILN_CHECK_VERSION(0, 2, 0) || KILN_CHECK_VERSION(1000, 0, 0)
#error "KILN_CHECK_VERSION for the preprocessor"
#endif
}

/* What the callers of an older version, and of a later one, have in the place of a struct. */
static void
check_sizes(KilnProgram *program, KilnSession *session)
{
    GError *error = NULL;
    union {
        KilnMemoryReport report;
        int64_t words[32];
    } older, later;
    const KilnMemoryReport unset = { 0 };
    KilnMemoryReport whole = KILN_MEMORY_REPORT_INIT;
    CHECK(kiln_program_memory(program, &whole, &error) && whole.size == sizeof whole);
    memset(&older, 0x77, sizeof older);
    later = older;
    older.report.size = offsetof(KilnMemoryReport, lb_node);
    CHECK(kiln_program_memory(program, &older.report, &error) && older.report.sum == whole.sum);
    CHECK(older.report.lb_node == later.report.lb_node);
    later.report.size = sizeof whole + 2 * sizeof(int64_t);
    CHECK(kiln_program_memory(program, &later.report, &error));
    CHECK(later.report.size == sizeof whole + 2 * sizeof(int64_t));
    CHECK(later.report.weights == whole.weights && later.report.plan_ms == whole.plan_ms);
    const int64_t *behind = later.words + sizeof whole / sizeof *behind;
    CHECK(behind[0] == 0 && behind[1] == 0 && behind[2] != 0);
    /* A size that nobody has set. */
    later.report.size = 0x7777777777777777;
    FAILS(kiln_program_memory(program, &later.report, &error), USAGE, "KILN_MEMORY_REPORT_INIT");
    later.report = unset;
    FAILS(kiln_program_memory(program, &later.report, &error), USAGE,
          "KilnMemoryReport: expected a size, found 0: initialize the struct with "
          "KILN_MEMORY_REPORT_INIT");
    KilnTensorInfo info = { 0 };
    FAILS(kiln_session_output(session, 0, &info, &error), USAGE, "KILN_TENSOR_INFO_INIT");
    g_autoptr(KilnConstantCache) cache = kiln_constant_cache_new(-1);
    KilnConstantCacheStats stats = { 0 };
    FAILS(kiln_constant_cache_stats(cache, &stats, &error), USAGE,
          "KILN_CONSTANT_CACHE_STATS_INIT");
}

static KilnModel *
load(const char *path)
{
    GError *error = NULL;
    FAILS(kiln_model_load("/no such file", &error), IO, "/no such file: cannot be read");
    FAILS(model_of("graph @f(", &error), PARSE, "text.kiln:1:");
    KilnModel *model = kiln_model_load(path, &error);
    CHECK(model);
    check_metadata(kiln_model_metadata(model));
    CHECK(!kiln_model_notes(model)[0]);
    CHECK(kiln_model_n_inputs(model) == 1 && kiln_model_n_outputs(model) == 1);
    const KilnTensorInfo *image = kiln_model_input(model, 0);
    CHECK(strcmp(image->name, "image") == 0 && image->dtype == KILN_DTYPE_f32);
    CHECK(image->rank == 4 && image->dims[3] == 28 && image->bytes == PIXELS * 4);
    CHECK(kiln_model_output(model, 0)->bytes == DIGITS * 4);
    CHECK(!kiln_model_input(model, 1) && !kiln_model_output(model, 1));
    return model;
}

/* The model of a stranger. */
static void
check_limits(const char *path)
{
    GError *error = NULL;
    KilnModelOptions loading = KILN_MODEL_OPTIONS_INIT;
    KilnCompileOptions compiling = KILN_COMPILE_OPTIONS_INIT;
    KilnSessionOptions running = KILN_SESSION_OPTIONS_INIT;
    kiln_model_options_untrusted(&loading);
    kiln_compile_options_untrusted(&compiling);
    kiln_session_options_untrusted(&running);
    g_autoptr(KilnModel) model = kiln_model_load_with(path, &loading, &error);
    g_autoptr(KilnProgram) program = kiln_program_compile(model, &compiling, &error);
    g_autoptr(KilnSession) session = kiln_session_new(program, &running, &error);
    CHECK(model && program && session);
    compiling.total_limit = 1024;
    FAILS(kiln_program_compile(model, &compiling, &error), LIMIT, "memory limit: expected at most");
    g_autoptr(GBytes) text = g_bytes_new_static(open_text, strlen(open_text));
    FAILS(kiln_model_load_bytes_with(text, "text.kiln", &loading, &error), FORMAT, "text.kiln: ");
    loading.node_limit = 1;
    FAILS(kiln_model_load_with(path, &loading, &error), LIMIT, "node limit: expected at most 1");
}

static void
check_unsupported(const KilnModel *digits)
{
    GError *error = NULL;
    unsigned n = 1;
    g_autofree KilnUnsupported **none = kiln_model_check(digits, NULL, &n, &error);
    CHECK(none && n == 0 && !none[0]);
    g_autoptr(KilnModel) strange = model_of(strange_text, &error);
    g_autofree KilnUnsupported **missing = kiln_model_check(strange, "ref", &n, &error);
    CHECK(missing && n == 1 && !missing[1]);
    CHECK(strcmp(missing[0]->op, "Frobnicate") == 0 && strcmp(missing[0]->node, "y") == 0);
    FAILS(kiln_program_compile(strange, NULL, &error), UNSUPPORTED, "Frobnicate");
    FAILS(kiln_model_check(digits, "gpu", &n, &error), USAGE, "found gpu");
}

static gboolean
infer_twice(KilnOpShape *shape)
{
    kiln_op_shape_set_output_like(shape, 0, kiln_op_shape_input_dtype(shape, 0), 0);
    return TRUE;
}

static const char *
run_twice(const KilnOpCall *call)
{
    const KilnOpTensor *x = kiln_op_call_input(call, 0), *y = kiln_op_call_output(call, 0);
    for (int64_t i = 0; i < y->elements; i++)
        ((float *)y->data)[i] = 2 * ((const float *)x->data)[i];
    return NULL;
}

/* An operator of the program itself; @plugin brings none. */
static void
check_operators(const char *plugin)
{
    static const KilnOpDescription twice = { .size = sizeof(KilnOpDescription),
                                             .domain = "strange",
                                             .name = "Twice",
                                             .first_opset = 1,
                                             .min_inputs = 1,
                                             .max_inputs = 1,
                                             .min_outputs = 1,
                                             .max_outputs = 1,
                                             .flags = KILN_OP_PURE,
                                             .infer = infer_twice,
                                             .run = run_twice };
    const float x[2] = { 1, 3 };
    GError *error = NULL;
    FAILS(model_of(twice_text, &error), UNSUPPORTED, "kiln_op_load_plugin()");
    FAILS(kiln_op_register(&(KilnOpDescription){ .size = 1 }, &error), USAGE, "another version");
    FAILS(kiln_op_load_plugin(plugin, &error), PIPELINE, "no symbol kiln_op_plugin");
    CHECK(kiln_op_register(&twice, &error));
    CHECK(kiln_op_register(&twice, &error));
    g_autoptr(KilnModel) model = model_of(twice_text, &error);
    CHECK(model);
    g_autoptr(KilnProgram) program = kiln_program_compile(model, NULL, &error);
    CHECK(program);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    CHECK(session && kiln_session_bind_input(session, 0, x, sizeof x, &error));
    CHECK(kiln_session_run(session, &error));
    const float *y = kiln_session_output(session, 0, NULL, &error);
    CHECK(y && y[0] == 2 && y[1] == 6);
}

static gboolean
drop_nothing(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)function, (void)context, (void)changed, (void)error;
    return TRUE;
}

static KilnPipeline *
build_pipeline(const char *plugin)
{
    static const KilnPassInfo passes[] = {
        { .id = "drop-nothing",
          .level = KILN_LEVEL_GRAPH,
          .numerics = KILN_NUMERICS_E,
          .summary = "does nothing",
          .run_graph = drop_nothing },
    };
    static const KilnPassPlugin table = { KILN_PASS_API_VERSION, sizeof(KilnPassInfo), passes, 1 };
    GError *error = NULL;
    FAILS(kiln_pipeline_load("no-such-pipeline", &error), PIPELINE, "no-such-pipeline");
    FAILS(kiln_pipeline_parse("dce,frobnicate", &error), PIPELINE, "frobnicate");
    KilnPipeline *built = kiln_pipeline_new();
    CHECK(kiln_pipeline_register_passes(built, &table, &error));
    CHECK(kiln_pipeline_load_plugin(built, plugin, &error));
    CHECK(kiln_pipeline_add(built, "drop-nothing", &error));
    CHECK(kiln_pipeline_add(built, "fold-batchnorm", &error));
    FAILS(kiln_pipeline_add(built, "no-such-pass", &error), PIPELINE, "no-such-pass");
    g_autofree char *yaml = kiln_pipeline_to_string(built);
    CHECK(strstr(yaml, "fold-batchnorm"));
    g_autoptr(KilnPipeline) parsed = kiln_pipeline_parse("dce,cse", &error);
    g_autoptr(KilnPipeline) again = kiln_pipeline_ref(parsed);
    CHECK(parsed && again == parsed);
    return built;
}

/* --- programs --- */

typedef struct {
    unsigned steps, lines;
    bool go_on;
} Seen;

static gboolean
progress(double fraction, const char *what, void *data)
{
    Seen *seen = data;
    seen->steps += what && fraction >= 0 && fraction <= 1;
    return seen->go_on;
}

static void
hear(const char *line, void *data)
{
    ((Seen *)data)->lines += !strchr(line, '\n');
}

static KilnProgram *
compile(KilnModel *model, KilnPipeline *pipeline)
{
    GError *error = NULL;
    Seen seen = { .go_on = false };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = pipeline;
    options.threads = 2;
    options.progress = progress;
    options.log = hear;
    options.data = &seen;
    FAILS(kiln_program_compile(model, &options, &error), CANCELLED, "cancelled");
    seen.go_on = true;
    options.memory_limit = 64;
    FAILS(kiln_program_compile(model, &options, &error), LIMIT, "64");
    options.memory_limit = 0;
    KilnProgram *program = kiln_program_compile(model, &options, &error);
    CHECK(program && seen.steps > 0 && seen.lines > 0);
    /* A pipeline is not changed under a program that has it. */
    if (pipeline)
        FAILS(kiln_pipeline_add(pipeline, "cse", &error), USAGE, "cannot change");
    CHECK(kiln_program_n_inputs(program) == 1 && kiln_program_n_outputs(program) == 1);
    CHECK(kiln_program_find_input(program, "image") == 0);
    CHECK(kiln_program_find_output(program, "probabilities") == 0);
    CHECK(kiln_program_find_input(program, "probabilities") == -1);
    CHECK(kiln_program_input(program, 0)->bytes == PIXELS * 4);
    CHECK(kiln_program_output(program, 0)->dims[1] == DIGITS && !kiln_program_output(program, 1));
    KilnMemoryReport memory = KILN_MEMORY_REPORT_INIT;
    CHECK(kiln_program_memory(program, &memory, &error));
    CHECK(memory.lb_node <= memory.lb_live && memory.lb_live <= memory.arena && memory.weights > 0);
    return program;
}

static gboolean
goes_on(void *data)
{
    ++*(int *)data;
    return FALSE;
}

/* A clone that asks a function of its own, and a result that outlives it. */
static void
check_taken(const KilnSession *session, const float *expected)
{
    GError *error = NULL;
    int asked = 0;
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.poll = goes_on;
    options.poll_data = &asked;
    KilnSession *clone = kiln_session_clone_with(session, &options, &error);
    CHECK(clone && kiln_session_run(clone, &error) && asked > 0);
    float *taken = kiln_session_take_output(clone, 0, &info, &error);
    CHECK(taken && info.bytes == 40);
    FAILS(kiln_session_output(clone, 0, NULL, &error), USAGE, "its memory was taken");
    kiln_session_free(clone);
    CHECK(memcmp(taken, expected, 40) == 0);
    kiln_session_free_output(taken);
}

/* --- sessions --- */

static void
check_session(KilnProgram *program, float *scores)
{
    GError *error = NULL;
    float pixels[PIXELS];
    fill(pixels, PIXELS);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    CHECK(session);
    FAILS(kiln_session_run(session, &error), USAGE, "input image is not bound");
    FAILS(kiln_session_output(session, 0, NULL, &error), USAGE, "has not run");
    FAILS(kiln_session_bind_input(session, 0, pixels, 4, &error), SHAPE,
          "expected 3136 bytes, found 4");
    FAILS(kiln_session_bind_input(session, 1, pixels, 4, &error), USAGE, "the program has 1");
    FAILS(kiln_session_bind_input_shaped(session, 0, pixels, 2, (int64_t[]){ 28, 28 }, &error),
          SHAPE, "expected f32[1,1,28,28], found f32[28,28]");
    FAILS(kiln_session_bind_output(session, 0, scores, 8, &error), SHAPE,
          "expected 40 bytes, found 8");
    CHECK(kiln_session_bind_input(session, 0, pixels, sizeof pixels, &error));
    CHECK(kiln_session_run(session, &error));
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    const float *own = kiln_session_output(session, 0, &info, &error);
    CHECK(own && info.rank == 2 && info.dims[0] == 1 && info.dims[1] == DIGITS && info.bytes == 40);
    /* What other memory was bound for is not there before the next run. */
    CHECK(kiln_session_bind_output(session, 0, scores, DIGITS * sizeof *scores, &error));
    FAILS(kiln_session_output(session, 0, NULL, &error), USAGE, "other memory was bound");
    float first[DIGITS];
    memcpy(first, own, sizeof first);
    CHECK(kiln_session_run(session, &error));
    CHECK(kiln_session_output(session, 0, NULL, &error) == scores);
    CHECK(memcmp(first, scores, sizeof first) == 0);
    unsigned n = 1;
    kiln_session_profile(session, &n);
    CHECK(n == 0);
    check_taken(session, scores);
    check_sizes(program, session);
}

/* An arena of the caller's, one thread, a profile, poison, and somebody who cancels. */
static void
check_options(KilnProgram *program, const float *expected)
{
    GError *error = NULL;
    int cancel = 0;
    float pixels[PIXELS];
    fill(pixels, PIXELS);
    KilnMemoryReport memory = KILN_MEMORY_REPORT_INIT;
    CHECK(kiln_program_memory(program, &memory, &error));
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.arena_bytes = ((size_t)memory.arena + 63) / 64 * 64;
    g_autofree void *unused = NULL;
    options.arena = unused = aligned_alloc(64, options.arena_bytes ? options.arena_bytes : 64);
    options.threads = 1;
    options.profile = options.poison = TRUE;
    options.cancel = &cancel;
    options.threads = 3;
    FAILS(kiln_session_new(program, &options, &error), USAGE,
          "expected 0 to 2, as compiled, found 3");
    options.threads = 1;
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, &error);
    CHECK(session && kiln_session_bind_input(session, 0, pixels, sizeof pixels, &error));
    cancel = 1;
    FAILS(kiln_session_run(session, &error), CANCELLED, "cancelled before");
    FAILS(kiln_session_output(session, 0, NULL, &error), USAGE, "its last run failed");
    cancel = 0;
    CHECK(kiln_session_run(session, &error));
    const float *scores = kiln_session_output(session, 0, NULL, &error);
    CHECK(scores && memcmp(scores, expected, DIGITS * sizeof *scores) == 0);
    unsigned n = 0;
    const KilnProfileEntry *const *entries = kiln_session_profile(session, &n);
    CHECK(n > 0 && entries[0]->kernel && entries[0]->node && entries[n - 1]->runs > 0);
}

typedef struct {
    KilnProgram *program;
    const float *expected;
    bool same;
} Worker;

static void *
work(void *data)
{
    Worker *worker = data;
    GError *error = NULL;
    float pixels[PIXELS];
    fill(pixels, PIXELS);
    g_autoptr(KilnSession) session = kiln_session_new(worker->program, NULL, &error);
    CHECK(session && kiln_session_bind_input(session, 0, pixels, sizeof pixels, &error));
    worker->same = true;
    for (int i = 0; i < 5; i++) {
        CHECK(kiln_session_run(session, &error));
        const float *scores = kiln_session_output(session, 0, NULL, &error);
        worker->same &= memcmp(scores, worker->expected, DIGITS * sizeof *scores) == 0;
    }
    return NULL;
}

static void
check_concurrent(KilnProgram *program, const float *expected)
{
    GError *error = NULL;
    pthread_t threads[N_SESSIONS];
    Worker workers[N_SESSIONS];
    for (int i = 0; i < N_SESSIONS; i++) {
        workers[i] = (Worker){ kiln_program_ref(program), expected, false };
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < N_SESSIONS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(workers[i].same);
        kiln_program_unref(workers[i].program);
    }
}

/* --- files --- */

static void
check_files(KilnProgram *program, const float *expected)
{
    GError *error = NULL;
    float loaded[DIGITS];
    g_autofree char *folder = g_dir_make_tmp("kiln-api-XXXXXX", &error);
    CHECK(folder);
    g_autofree char *path = g_build_filename(folder, "digits.kiln-program", NULL);
    g_autofree char *nowhere = g_build_filename(folder, "nowhere", "digits.kiln-program", NULL);
    FAILS(kiln_program_save(program, nowhere, &error), IO, nowhere);
    FAILS(kiln_program_load(path, NULL, &error), IO, path);
    CHECK(kiln_program_save(program, path, &error));
    KilnLoadOptions options = KILN_LOAD_OPTIONS_INIT;
    options.cache_dir = folder;
    g_autoptr(KilnProgram) back = kiln_program_load(path, &options, &error);
    CHECK(back);
    check_metadata(kiln_program_metadata(back));
    check_session(back, loaded);
    CHECK(memcmp(loaded, expected, sizeof loaded) == 0);
    char *bytes = NULL;
    gsize size = 0;
    CHECK(g_file_get_contents(path, &bytes, &size, &error));
    g_autoptr(GBytes) whole = g_bytes_new_take(bytes, size);
    g_autoptr(GBytes) half = g_bytes_new_from_bytes(whole, 0, size / 2);
    g_autoptr(KilnProgram) memory = kiln_program_load_bytes(whole, "of memory", NULL, &error);
    CHECK(memory);
    FAILS(kiln_program_load_bytes(half, "half of it", NULL, &error), FORMAT, "half of it: ");
    CHECK(g_unlink(path) == 0 && g_rmdir(folder) == 0);
    FAILS(kiln_program_load_object(&(KilnObject){ 0 }, (struct _GError **)&error), USAGE,
          "KilnObject");
}

/* --- shapes and constants --- */

static void
check_shapes(void)
{
    GError *error = NULL;
    float x[6] = { 1, 2, 3, 4, 5, 6 }, y[6] = { 6, 5, 4, 3, 2, 1 };
    g_autoptr(KilnModel) model = model_of(open_text, &error);
    g_autoptr(KilnModel) same = kiln_model_ref(model);
    CHECK(same == model && strcmp(kiln_model_input(model, 0)->dim_names[0], "N") == 0);
    CHECK(kiln_model_input(model, 0)->dims[0] == -1 && kiln_model_input(model, 0)->bytes == -1);
    const KilnShape shape = { "x", 2, { 2, 4 } };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.shapes = &shape;
    options.n_shapes = 1;
    FAILS(kiln_program_compile(model, &options, &error), SHAPE,
          "expected f32[N,3], found f32[2,4]");
    g_autoptr(KilnProgram) program = kiln_program_compile(model, NULL, &error);
    CHECK(program);
    KilnMemoryReport memory = KILN_MEMORY_REPORT_INIT;
    CHECK(kiln_program_memory(program, &memory, &error));
    CHECK(memory.arena == -1);
    const KilnShape rows = { "x", 2, { 4, -1 } };
    CHECK(kiln_program_prepare(program, &rows, 1, &error));
    CHECK(kiln_program_memory_for(program, &rows, 1, &memory, &error) && memory.arena >= 0);
    FAILS(kiln_program_memory_for(program, NULL, 0, &memory, &error), USAGE, "an upper bound");
    CHECK(kiln_program_save(program, "/dev/null", &error));
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    FAILS(kiln_session_bind_input(session, 0, x, sizeof x, &error), SHAPE, "its shape is open");
    const int64_t two[] = { 2, 3 }, one[] = { 1, 3 }, wrong[] = { -2, 3 },
                  huge[] = { G_MAXINT64, 3 };
    FAILS(kiln_session_bind_input_shaped(session, 0, x, 2, wrong, &error), SHAPE,
          "expected f32[N,3]");
    FAILS(kiln_session_bind_input_shaped(session, 0, x, 2, huge, &error), SHAPE,
          "expected f32[N,3]");
    CHECK(kiln_session_bind_input_shaped(session, 0, x, 2, two, &error));
    CHECK(kiln_session_bind_input_shaped(session, 1, y, 2, one, &error));
    FAILS(kiln_session_run(session, &error), SHAPE, "dim N: expected one number");
    CHECK(kiln_session_bind_input_shaped(session, 1, y, 2, two, &error));
    CHECK(kiln_session_run(session, &error));
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    const float *z = kiln_session_output(session, 0, &info, &error);
    CHECK(z && info.dims[0] == 2 && z[0] == 7 && z[5] == 7);
}

/* Facts of one program alone: the model stays as it is. */
static void
check_ranges(void)
{
    GError *error = NULL;
    const float x[3 * 3] = { 0 };
    const KilnDimRange range = { "N", 1, 2, 0, 2 };
    const int64_t three[] = { 3, 3 };
    g_autoptr(KilnModel) model = model_of(open_text, &error);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    KilnMemoryReport memory = KILN_MEMORY_REPORT_INIT;
    options.ranges = &range;
    options.n_ranges = 1;
    g_autoptr(KilnProgram) program = kiln_program_compile(model, &options, &error);
    CHECK(program && kiln_program_prepare(program, NULL, 0, &error));
    CHECK(kiln_program_memory_for(program, NULL, 0, &memory, &error) && memory.arena >= 0);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    CHECK(kiln_session_bind_input_shaped(session, 0, x, 2, three, &error));
    CHECK(kiln_session_bind_input_shaped(session, 1, x, 2, three, &error));
    FAILS(kiln_session_run(session, &error), SHAPE, "dim N: expected 1..2, found 3");
}

static void
check_constants(void)
{
    GError *error = NULL;
    float x[4] = { 1, 2, 3, 4 }, w[16] = { 0 };
    g_autoptr(KilnConstantCache) cache = kiln_constant_cache_new(-1);
    g_autoptr(KilnConstantCache) shared = kiln_constant_cache_ref(cache);
    g_autoptr(KilnModel) model = model_of(folded_text, &error);
    g_autoptr(GBytes) value = g_bytes_new_static(x, sizeof x);
    const KilnConstantInput constant = { "x", KILN_CONSTANT_COMPILE, value };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.cache = shared;
    options.constants = &constant;
    options.n_constants = 1;
    g_autoptr(KilnProgram) program = kiln_program_compile(model, &options, &error);
    g_autoptr(KilnSession) session = program ? kiln_session_new(program, NULL, &error) : NULL;
    CHECK(session);
    FAILS(kiln_session_bind_input(session, 0, x, sizeof x, &error), USAGE,
          "its value was set when the program was compiled");
    CHECK(kiln_session_bind_input(session, 1, w, sizeof w, &error));
    CHECK(kiln_session_run(session, &error) && kiln_session_run(session, &error));
    CHECK(kiln_program_fold_runs(program) == 1);
    CHECK(((const float *)kiln_session_output(session, 0, NULL, &error))[0] == 10);
    kiln_program_invalidate_constants(program);
    w[0] = 1;
    CHECK(kiln_session_run(session, &error) && kiln_program_fold_runs(program) == 2);
    KilnConstantCacheStats stats = KILN_CONSTANT_CACHE_STATS_INIT;
    CHECK(kiln_constant_cache_stats(cache, &stats, &error));
    CHECK(stats.capacity == -1 && stats.fills == 2 && stats.failures == 0);
    kiln_constant_cache_set_capacity(cache, 0);
    CHECK(kiln_constant_cache_stats(cache, &stats, &error));
    CHECK(stats.capacity == 0 && stats.bytes == 0);
}

/* Items of all kinds, and what a session makes of one. */
static void
check_items(void)
{
    GError *error = NULL;
    const int64_t two = 2, keys[] = { 4, 5 };
    const float numbers[] = { 1, 2 };
    g_autoptr(KilnItem) tensor = kiln_item_new_tensor(KILN_DTYPE_f32, 1, &two, numbers, &error);
    g_autoptr(KilnItem) names = kiln_item_new_tensor(KILN_DTYPE_i64, 1, &two, keys, &error);
    g_autoptr(KilnItem) map = kiln_item_new_map(names, tensor, &error);
    g_autoptr(KilnItem) sequence = kiln_item_new_sequence(&tensor, 1, &error);
    g_autoptr(KilnItem) optional = kiln_item_new_optional(sequence, &error);
    CHECK(tensor && names && map && sequence && optional);
    FAILS(kiln_item_new_map(tensor, names, &error), USAGE, "a map: expected keys");
    CHECK(kiln_item_dtype(map) == KILN_DTYPE_map && kiln_item_length(map) == 2);
    CHECK(kiln_item_get(optional, 0) == sequence && !kiln_item_get(optional, 1));
    g_autoptr(KilnModel) model = model_of(items_text, &error);
    g_autoptr(KilnProgram) program = kiln_program_compile(model, NULL, &error);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    CHECK(session);
    CHECK(strcmp(kiln_model_input(model, 0)->contents, "sequence(f32[?])") == 0);
    CHECK(!kiln_model_input(model, 1)->contents);
    FAILS(kiln_session_bind_input_item(session, 1, tensor, &error), USAGE, "found an item");
    CHECK(kiln_session_bind_input_item(session, 0, sequence, &error));
    CHECK(kiln_session_bind_input(session, 1, numbers, sizeof numbers, &error));
    CHECK(kiln_session_run(session, &error));
    FAILS(kiln_session_output_item(session, 1, &error), USAGE, "found f32");
    g_autoptr(KilnItem) longer = kiln_session_output_item(session, 0, &error);
    g_autoptr(KilnItem) last = kiln_item_ref(kiln_item_get(longer, 1));
    int rank;
    CHECK(kiln_item_length(longer) == 2 && kiln_item_equal(last, tensor));
    CHECK(kiln_item_dims(last, &rank)[0] == 2 && rank == 1 && kiln_item_bytes(last) == 8);
    CHECK(memcmp(kiln_item_data(last), numbers, sizeof numbers) == 0);
}

/* An output that the next run reads. */
static void
check_carry(void)
{
    GError *error = NULL;
    const float x = 1, begin = 10;
    int64_t strides[8] = { 0 };
    g_autoptr(KilnModel) model = model_of(carried_text, &error);
    g_autoptr(KilnProgram) program = kiln_program_compile(model, NULL, &error);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    CHECK(session && kiln_session_bind_input(session, 0, &x, sizeof x, &error) &&
          kiln_session_bind_input(session, 1, &begin, sizeof begin, &error) &&
          kiln_session_carry(session, 0, 1, &error));
    CHECK(kiln_session_run(session, &error) && kiln_session_run(session, &error));
    g_autoptr(KilnSession) clone = kiln_session_clone(session, &error);
    CHECK(clone && kiln_session_run(clone, &error));
    const float *sum = kiln_session_output_strided(clone, 0, strides, &error);
    CHECK(sum && *sum == 13 && strides[0] == 1);
    CHECK(!kiln_session_truncate(session, 1, 0, &error));
    g_clear_error(&error);
    kiln_session_reset(session);
    CHECK(kiln_session_bind_input(session, 1, &begin, sizeof begin, &error) &&
          kiln_session_run(session, &error));
    sum = kiln_session_output(session, 0, NULL, &error);
    CHECK(sum && *sum == 11);
}

int
main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "expected MODEL PLUGIN\n");
        return 2;
    }
    GError *error = NULL;
    float expected[DIGITS];
    check_types();
    check_version();
    g_autoptr(KilnModel) digits = load(argv[1]);
    check_unsupported(digits);
    check_limits(argv[1]);
    check_operators(argv[2]);
    g_autoptr(KilnPipeline) built = build_pipeline(argv[2]);
    g_autoptr(KilnProgram) other = compile(digits, built);
    check_session(other, expected);
    g_autoptr(KilnPipeline) own = kiln_pipeline_load("own", &error);
    CHECK(own);
    g_autoptr(KilnProgram) program = compile(digits, own);
    check_session(program, expected);
    check_options(program, expected);
    check_concurrent(program, expected);
    check_files(program, expected);
    check_items();
    check_shapes();
    check_ranges();
    check_constants();
    check_carry();
    return 0;
}
