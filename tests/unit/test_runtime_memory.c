/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of programs: what happens when it runs out, who shares weights, and what is kept. */
#include "ir/plan.h"
#include "runtime/bind.h"
#include "runtime/session.h"
#include "runtime/program.h"
#include "tests/unit/runtime_case.h"

#include "graph/base/alloc.h"
#include "kiln.h"
#include "tests/fold_case.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- running out of memory --- */

typedef struct {
    const char *path, *text; /* one of the two */
    const KilnShape *shapes; /* of inputs that are open, in their order */
} Attempt;

/* Binds zeros; the type of an open input has the next of the attempt's shapes. */
static gboolean
bind_zeros(const Attempt *attempt, KilnProgram *program, KilnSession *session, GError **error)
{
    static int64_t zeros[1 << 17];
    const KilnShape *shape = attempt->shapes;
    for (unsigned i = 0; i < kiln_program_n_inputs(program); i++) {
        const KilnTensorInfo *info = kiln_program_input(program, i);
        cr_assert_leq(info->bytes, (int64_t)sizeof zeros);
        gboolean good = info->bytes >= 0
                            ? kiln_session_bind_input(session, i, zeros, (size_t)info->bytes, error)
                            : kiln_session_bind_input_shaped(session, i, zeros, shape->rank,
                                                             shape->dims, error);
        shape += info->bytes < 0;
        if (!good)
            return FALSE;
    }
    return TRUE;
}

static gboolean
try(const Attempt *attempt, GError **error)
{
    g_autoptr(KilnModel) model = NULL;
    if (attempt->path) {
        model = kiln_model_load(attempt->path, error);
    } else {
        g_autoptr(GBytes) bytes = g_bytes_new_static(attempt->text, strlen(attempt->text));
        model = kiln_model_load_bytes(bytes, "case.kiln", error);
    }
    g_autoptr(KilnProgram) program = model ? kiln_program_compile(model, NULL, error) : NULL;
    g_autoptr(KilnSession) session = program ? kiln_session_new(program, NULL, error) : NULL;
    return session && bind_zeros(attempt, program, session, error) &&
           kiln_session_run(session, error) && kiln_session_output(session, 0, NULL, error);
}

/* The first allocation fails, the second, and so on, until there are no more. */
static void
expect_clean_failures(const Attempt *attempt)
{
    const char *name = attempt->path ? attempt->path : attempt->text;
    for (unsigned nth = 1;; nth++) {
        uint64_t before = kiln_alloc_count();
        kiln_alloc_inject_failure(nth);
        g_autoptr(GError) error = NULL;
        gboolean good = try(attempt, &error);
        kiln_alloc_inject_failure(0);
        if (kiln_alloc_count() - before < nth) {
            cr_expect(good, "%s: %s", name, error ? error->message : "");
            cr_expect_gt(nth, 3, "%s allocates nothing", name);
            return;
        }
        cr_assert(!good && error, "%s: allocation %u failed, and nobody noticed", name, nth);
        cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_MEMORY), "%s: allocation %u: %s",
                  name, nth, error->message);
    }
}

Test(runtime_memory, runs_out_in_digits)
{
    expect_clean_failures(&(Attempt){ .path = DIGITS });
}

Test(runtime_memory, runs_out_in_shared_models)
{
    static const char *const names[] = { "squeezenet1_1", "mlp" };
    if (!*KILN_SHARED_DIR || strcmp(KILN_SHARED_DIR, "KILN_SHARED_DIR-NOTFOUND") == 0)
        cr_skip_test("no shared models beside the source");
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path =
            g_build_filename(KILN_SHARED_DIR, "models", names[i], "model.onnx", NULL);
        expect_clean_failures(&(Attempt){ .path = path });
    }
}

Test(runtime_memory, runs_out_in_texts)
{
    static const KilnShape shapes[] = { { NULL, 2, { 2, 3 } } };
    static const Attempt attempts[] = {
        { .text = "func @f {\n  weight @w : f32[300]\n  weight @state = _ : f32[300]\n"
                  "  input @x : f32[300]\n  output @y : f32[300]\n"
                  "  add @out @state, @in @state, @in @x\n  %a = alloc : f32[300]\n"
                  "  exp @out %a, @in @state\n  softmax @out @y, @in %a {axis=0}\n"
                  "  add @out @y, @in @y, @in %a\n  mul @out @y, @in @y, @in @w\n  dealloc %a\n}\n"
                  "constants { @w = random_normal(seed=1, std=1) : f32[300] }" },
        /* Shapes and values at the run, folding, and arithmetic that inference does not follow. */
        { .text = "graph @f(%x: f32[N,3], %s: f32[1], %n: i64[1]) {\n"
                  "  %w = const @w : f32[3,4]\n  %v = const @v : f32[3,4]\n"
                  "  %wv = mul(%w, %v) : f32[3,4]\n  %m = matmul(%x, %wv) : f32[N,4]\n"
                  "  %one = const @one : f32[1]\n  %s1 = add(%s, %one) : f32[1]\n"
                  "  %i = cast(%s1) {to=i64} : i64[1]\n  %four = const @four : i64[1]\n"
                  "  %shape = concat(%n, %i, %four) {axis=0} : i64[3]\n"
                  "  %r = reshape(%m, %shape) : f32[?,?,?]\n"
                  "  %y = softmax(%r) {axis=2} : f32[?,?,?]\n  return %y\n}\n"
                  "constants { @w = random_normal(seed=1, std=1) : f32[3,4]  @one = [1] : f32[1]\n"
                  "  @v = random_normal(seed=2, std=1) : f32[3,4]  @four = [4] : i64[1] }",
          .shapes = shapes },
        /* Constants folded at the first run, those of calls while compiling among them. */
        { .text = mlp_two },
        { .text = mlp_three },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(attempts); i++)
        expect_clean_failures(&attempts[i]);
}

/* A size that no machine has is an error, not an overflow. */
Test(runtime_memory, sizes_that_cannot_be)
{
    GError *error = NULL;
    g_autoptr(KilnModel) model =
        model_of("graph @f(%x: f32[N]) {\n  %a = exp(%x) : f32[N]\n"
                 "  %b = softmax(%a) {axis=0} : f32[N]\n  %y = add(%b, %a) : f32[N]\n"
                 "  return %y\n}\n");
    static const int64_t sizes[] = { INT64_C(1) << 60, INT64_C(1) << 50, INT64_MAX / 4 };
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        KilnShape shape = { "x", 1, { sizes[i] } };
        KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
        options.shapes = &shape;
        options.n_shapes = 1;
        g_autoptr(KilnProgram) program = kiln_program_compile(model, &options, &error);
        g_autoptr(KilnSession) session = program ? kiln_session_new(program, NULL, &error) : NULL;
        cr_assert_null(session);
        cr_expect(error->code == KILN_ERROR_MEMORY || error->code == KILN_ERROR_LIMIT ||
                      error->code == KILN_ERROR_SHAPE,
                  "%d: %s", error->code, error->message);
        g_clear_error(&error);
    }
}

/* --- weights --- */

static const char open_text[] =
    "graph @f(%x: f32[N,64]) {\n  %w = const @w : f32[64,48]\n  %v = const @v : f32[48]\n"
    "  %m = matmul(%x, %w) : f32[N,48]\n  %y = add(%m, %v) : f32[N,48]\n  return %y\n}\n"
    "constants { @w = random_normal(seed=1, std=1) : f32[64,48]\n"
    "  @v = random_normal(seed=2, std=1) : f32[48] }";

static const KilnSpecialisation *
specialisation(const KilnProgram *program, guint i)
{
    return g_ptr_array_index(program->specialisations, i);
}

static const void *
data_of(GBytes *bytes)
{
    return bytes ? g_bytes_get_data(bytes, NULL) : NULL;
}

Test(runtime_memory, instances_share_weights)
{
    g_autoptr(KilnProgram) program = program_of(open_text, NULL);
    g_autoptr(KilnSession) one = kiln_session_new(program, NULL, NULL);
    g_autoptr(KilnSession) other = kiln_session_new(program, NULL, NULL);
    static float data[40 * 64];
    bind_shaped(one, 0, data, DIMS(33, 64));
    run(one);
    bind_shaped(other, 0, data, DIMS(40, 64));
    run(other);
    const KilnSpecialisation *a = one->made, *b = other->made;
    cr_assert_eq(a->n_calls, b->n_calls);
    unsigned n_packed = 0, n_plain = 0;
    for (uint32_t c = 0; c < a->n_calls; c++) {
        cr_expect_eq(data_of(a->calls[c].packed), data_of(b->calls[c].packed));
        n_packed += a->calls[c].packed != NULL;
    }
    for (uint32_t i = 0; i < a->n_weights; i++) {
        cr_expect_eq(data_of(a->weights[i]), data_of(b->weights[i]));
        n_plain += a->weights[i] != NULL;
    }
    cr_expect_eq(n_packed, 1);
    cr_expect_eq(n_plain, 1); /* what is packed is not kept plain */
}

Test(runtime_memory, constants_are_let_go)
{
    g_autoptr(KilnModel) model = model_of(open_text);
    KilnShape shape = { "x", 2, { 33, 64 } };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.shapes = &shape;
    options.n_shapes = 1;
    g_autoptr(KilnProgram) program = kiln_program_compile(model, &options, NULL);
    const GPtrArray *constants = specialisation(program, 0)->ir->module->constants;
    for (guint i = 0; i < constants->len; i++)
        cr_expect_null(((KilnConstant *)g_ptr_array_index(constants, i))->tensor);
    /* Those of the model are untouched: another program can be made. */
    g_autoptr(KilnProgram) again = kiln_program_compile(model, &options, NULL);
    cr_expect(again);
    KilnMemoryReport memory = KILN_MEMORY_REPORT_INIT;
    kiln_program_memory(program, &memory, NULL);
    cr_expect_geq(memory.weights, 4 * (64 * 48 + 48));
    cr_expect_lt(memory.weights, 2 * 4 * (64 * 48 + 48));
}

/* Sessions of one program read the same bytes. */
Test(runtime_memory, sessions_allocate_no_weights)
{
    GError *error = NULL;
    g_autoptr(KilnModel) model = kiln_model_load(DIGITS, &error);
    g_autoptr(KilnProgram) program = kiln_program_compile(model, NULL, &error);
    cr_assert(program, "%s", error ? error->message : "");
    uint64_t before = kiln_alloc_count();
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    cr_assert_not_null(session);
    cr_expect_eq(kiln_alloc_count() - before, 2); /* the arena and one output */
}

/* Weights of a file are its pages, and are dropped once they are packed or copied. */
Test(runtime_memory, mapped_weights)
{
    g_autoptr(KilnModel) model = kiln_model_load(DIGITS, NULL);
    guint mapped = 0;
    for (guint i = 0; i < model->module->constants->len; i++) {
        const KilnTensor *tensor =
            ((KilnConstant *)g_ptr_array_index(model->module->constants, i))->tensor;
        mapped += tensor->mapped;
        g_autoptr(KilnTensor) before = kiln_tensor_new_copy(
            &tensor->type, tensor->bytes ? g_bytes_get_data(tensor->bytes, NULL) : tensor->splat,
            NULL);
        if (tensor->kind != KILN_TENSOR_DATA)
            continue;
        kiln_tensor_drop_pages(tensor);
        cr_expect(kiln_tensor_equal(before, tensor));
        g_autofree char *copy = g_malloc((size_t)kiln_tensor_storage(tensor) + 1);
        kiln_tensor_drain(tensor, copy);
        cr_expect_arr_eq(copy, g_bytes_get_data(before->bytes, NULL),
                         (size_t)kiln_tensor_storage(tensor));
    }
    cr_expect_gt(mapped, 4);
}

/* --- no weight twice --- */

#ifndef KILN_SANITIZED
/* A figure of /proc/self/status in bytes. */
static int64_t
status_bytes(const char *key)
{
    g_autofree char *text = NULL;
    cr_assert(g_file_get_contents("/proc/self/status", &text, NULL, NULL));
    const char *at = strstr(text, key);
    return at ? g_ascii_strtoll(at + strlen(key), NULL, 10) * 1024 : -1;
}

/* How much of the mapped file whose path ends with @name is in the process. */
static int64_t
resident_bytes(const char *name)
{
    g_autofree char *text = NULL;
    cr_assert(g_file_get_contents("/proc/self/smaps", &text, NULL, NULL));
    g_autofree char *line = g_strdup_printf("%s\n", name);
    const char *at = strstr(text, line);
    const char *rss = at ? strstr(at, "Rss:") : NULL;
    return rss ? g_ascii_strtoll(rss + strlen("Rss:"), NULL, 10) * 1024 : -1;
}

enum {
    SPARE = 4 << 20 /* graph, IR and code: what compiling takes besides weights */
};

/* What compiling a model adds at most, and what it leaves, is its packed weights, and with memory
 * preferred they are no bigger than those of the model: no copy lies beside them, not even for a
 * while, and no page of the file that they came from stays. */
Test(runtime_memory, PEAK_prefer_memory_holds_no_second_copy)
{
    g_autofree char *path =
        g_build_filename(KILN_SHARED_DIR, "models", "bert_small", "model.onnx", NULL);
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        cr_skip_test("no shared models");
    g_autoptr(KilnModel) model = kiln_model_load(path, NULL);
    int64_t plain = 0;
    for (guint i = 0; i < model->module->constants->len; i++)
        plain += kiln_tensor_storage(
            ((KilnConstant *)g_ptr_array_index(model->module->constants, i))->tensor);
    cr_assert_gt(plain, 10 << 20);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.prefer_memory = TRUE;
    options.threads = 1;
    int64_t before = status_bytes("VmRSS:"), pages = status_bytes("RssFile:");
    g_autoptr(KilnProgram) program = kiln_program_compile(model, &options, NULL);
    cr_assert(program);
    KilnMemoryReport memory = KILN_MEMORY_REPORT_INIT;
    kiln_program_memory(program, &memory, NULL);
    cr_expect_leq(memory.weights, plain + (plain >> 6));
    cr_expect_lt(status_bytes("VmHWM:") - before, memory.weights + SPARE);
    cr_expect_lt(status_bytes("RssFile:") - pages, SPARE);
    cr_expect_eq(resident_bytes("bert_small/model.onnx"), 0);
}

/* Rows of a table are read where they lie in the file, though no float there is aligned. */
Test(runtime_memory, tables_stay_in_the_file)
{
    static const char text[] = "graph @f(%i: i64[4]) {\n  %t = const @t : f32[4096,16]\n"
                               "  %y = gather(%t, %i) : f32[4,16]\n  return %y\n}\n"
                               "constants { @t = file(\"table.bin\", 1, 262144) : f32[4096,16] }\n";
    enum {
        BYTES = 4096 * 16 * 4
    };
    g_autofree char *folder = g_dir_make_tmp("kiln-XXXXXX", NULL);
    g_autofree char *table = g_build_filename(folder, "table.bin", NULL);
    g_autofree char *path = g_build_filename(folder, "table.kiln", NULL);
    g_autofree char *bytes = g_malloc0(BYTES + 1);
    for (int i = 0; i < 4096 * 16; i++) {
        float value = (float)i;
        memcpy(bytes + 1 + 4 * i, &value, 4);
    }
    cr_assert(g_file_set_contents(table, bytes, BYTES + 1, NULL));
    cr_assert(g_file_set_contents(path, text, -1, NULL));
    GError *error = NULL;
    g_autoptr(KilnModel) model = kiln_model_load(path, &error);
    cr_assert(model, "%s", error ? error->message : "");
    g_autoptr(KilnProgram) program = kiln_program_compile(model, NULL, &error);
    cr_assert(program, "%s", error ? error->message : "");
    const KilnSpecialisation *made = specialisation(program, 0);
    cr_assert_eq(made->n_weights, 1);
    cr_expect_neq((uintptr_t)g_bytes_get_data(made->weights[0], NULL) % 4, 0);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    static const int64_t rows[] = { 4095, 0, 17, -1 };
    cr_assert(kiln_session_bind_input(session, 0, rows, sizeof rows, NULL));
    cr_assert(kiln_session_run(session, NULL));
    const float *out = kiln_session_output(session, 0, NULL, NULL);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(out[16 * i + 3], (float)(16 * (rows[i] + (rows[i] < 0) * 4096) + 3));
    g_remove(table);
    g_remove(path);
    g_rmdir(folder);
}
#endif

/* Whether a process that writes to @data dies of it. */
static bool
write_faults(const void *data)
{
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        volatile char *byte = (volatile char *)data;
        *byte = *byte;
        _exit(0);
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

/* GLW-I6: weights that nothing writes lie in read-only memory, which all sessions share; what
 * instructions write to is each session's own. */
Test(runtime_memory, weights_are_read_only)
{
    static const char text[] =
        "func @f {\n  weight @w : f32[64,48]\n"
        "  weight @v : f32[48]\n  weight @big : f32[300,300]\n  weight @state = _ : f32[48]\n"
        "  input @x : f32[8,64]\n  output @y : f32[8,48]\n  output @z : f32[300,300]\n"
        "  gemm @out @y, @in @x, @in @w, @in @v\n  add @out @state, @in @state, @in @v\n"
        "  add @out @y, @in @y, @in @state\n  exp @out @z, @in @big\n}\n"
        "constants { @w = random_normal(seed=1, std=1) : f32[64,48]\n"
        "  @v = random_normal(seed=2, std=1) : f32[48]\n"
        "  @big = random_normal(seed=3, std=1) : f32[300,300] }";
    g_autoptr(KilnProgram) program = program_of(text, NULL);
    const KilnSpecialisation *made = specialisation(program, 0);
    unsigned n_plain = 0, n_packed = 0;
    for (uint32_t i = 0; i < made->n_weights; i++) {
        if (!made->weights[i])
            continue;
        n_plain++;
        cr_expect(write_faults(g_bytes_get_data(made->weights[i], NULL)), "weight %u", i);
    }
    for (uint32_t c = 0; c < made->n_calls; c++) {
        if (!made->calls[c].packed)
            continue;
        n_packed++;
        cr_expect(write_faults(g_bytes_get_data(made->calls[c].packed, NULL)), "call %u", c);
    }
    cr_expect_geq(n_plain, 2);
    cr_expect_eq(n_packed, 1);
    cr_expect_eq(made->n_states, 1);
    cr_expect_not(write_faults(g_bytes_get_data(made->states[0], NULL)));
}

/* So do the weights of a model file: its map, or aligned copies. */
Test(runtime_memory, weights_of_files_are_read_only)
{
    g_autoptr(KilnModel) model = kiln_model_load(DIGITS, NULL);
    g_autoptr(KilnProgram) program = kiln_program_compile(model, NULL, NULL);
    const KilnSpecialisation *made = specialisation(program, 0);
    unsigned n = 0;
    for (uint32_t i = 0; i < made->n_weights + made->n_calls; i++) {
        GBytes *bytes =
            i < made->n_weights ? made->weights[i] : made->calls[i - made->n_weights].packed;
        if (!bytes)
            continue;
        cr_expect(write_faults(g_bytes_get_data(bytes, NULL)), "number %u", i);
        n++;
    }
    cr_expect_gt(n, 2);
}

/* --- poison --- */

static const char chain_text[] =
    "func @f {\n  weight @state = _ : f32[64]\n  input @x : f32[64]\n  output @y : f32[64]\n"
    "  add @out @state, @in @state, @in @x\n  %a = alloc : f32[64]\n  exp @out %a, @in @state\n"
    "  %b = alloc : f32[64]\n  neg @out %b, @in %a\n  %c = alloc : f32[64]\n"
    "  cum_sum @out %c, @in %b\n  add @out @y, @in %a, @in %c\n"
    "  dealloc %a\n  dealloc %b\n  dealloc %c\n}";

/* A session with poison gives the results of one without, run after run, and finds a plan that
 * frees a buffer too early. */
Test(runtime_memory, poison)
{
    GError *error = NULL;
    g_autoptr(KilnProgram) program = program_of(chain_text, NULL);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    g_autoptr(KilnSession) plain = kiln_session_new(program, NULL, NULL);
    options.poison = TRUE;
    g_autoptr(KilnSession) poisoned = kiln_session_new(program, &options, NULL);
    float x[64];
    for (int i = 0; i < 64; i++)
        x[i] = (float)i / 64;
    cr_assert(kiln_session_bind_input(plain, 0, x, sizeof x, NULL) &&
              kiln_session_bind_input(poisoned, 0, x, sizeof x, NULL));
    for (int n = 0; n < 3; n++) {
        cr_assert(kiln_session_run(plain, &error), "%s", error ? error->message : "");
        cr_assert(kiln_session_run(poisoned, &error), "%s", error ? error->message : "");
        cr_expect_arr_eq(kiln_session_output(plain, 0, NULL, NULL),
                         kiln_session_output(poisoned, 0, NULL, NULL), sizeof x);
    }
    KilnMemoryPlan *plan = specialisation(program, 0)->plan;
    unsigned n_found = 0;
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        if (plan->lives[i].last == plan->lives[i].first)
            continue;
        plan->lives[i].last--;
        g_autoptr(KilnSession) broken = kiln_session_new(program, &options, NULL);
        cr_assert(kiln_session_bind_input(broken, 0, x, sizeof x, NULL));
        cr_expect_not(kiln_session_run(broken, &error));
        cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_RUN));
        cr_expect(strstr(error->message, "with poisoned dead memory"), "%s", error->message);
        g_clear_error(&error);
        plan->lives[i].last++;
        n_found++;
    }
    cr_expect_gt(n_found, 0);
}
