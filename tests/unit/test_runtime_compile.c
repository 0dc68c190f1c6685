/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling: every option, what it refuses, progress, logs and cancelling. */
#include "kiln.h"
#include "tests/unit/runtime_case.h"

#include <string.h>

static const char text[] = "graph @f(%x: f32[4,8]) {\n"
                           "  %i = identity(%x) : f32[4,8]\n"
                           "  %a = exp(%i) : f32[4,8]\n"
                           "  %b = softmax(%a) {axis=1} : f32[4,8]\n"
                           "  %w = const @w : f32[8,8]\n"
                           "  %y = matmul(%b, %w) : f32[4,8]\n"
                           "  return %y\n"
                           "}\n"
                           "constants { @w = random_normal(seed=3, std=1) : f32[8,8] }\n";

static void
refuses(const char *model_text, const KilnCompileOptions *options, KilnError code,
        const char *message)
{
    GError *error = NULL;
    g_autoptr(KilnModel) model = model_of(model_text);
    g_autoptr(KilnProgram) program = kiln_program_compile(model, options, &error);
    cr_assert_null(program);
    expect_error(&error, code, message);
}

Test(runtime_compile, infos)
{
    g_autoptr(KilnProgram) program = program_of(text, NULL);
    cr_assert_eq(kiln_program_n_inputs(program), 1);
    cr_assert_eq(kiln_program_n_outputs(program), 1);
    cr_expect_str_eq(kiln_program_input(program, 0)->name, "x");
    cr_expect_str_eq(kiln_program_output(program, 0)->name, "y");
    cr_expect_eq(kiln_program_output(program, 0)->bytes, 128);
    cr_expect_null(kiln_program_input(program, 1));
    cr_expect_null(kiln_program_output(program, 7));
    cr_expect_eq(kiln_program_ref(program), program);
    kiln_program_unref(program);
}

/* Callers state dims and no layout: a buffer of a layout would have another size. */
Test(runtime_compile, edges_in_a_layout)
{
    refuses("graph @f(%x: f32[1,12]:aB16b) {\n  %y = unpack(%x) : f32[1,12]\n  return %y\n}\n",
            NULL, KILN_ERROR_UNSUPPORTED,
            "input x: expected a plain layout, found f32[1,12]:aB16b");
    refuses("graph @f(%x: f32[1,12]) {\n  %y = pack(%x) : f32[1,12]:aB16b\n  return %y\n}\n", NULL,
            KILN_ERROR_UNSUPPORTED, "output y: expected a plain layout, found f32[1,12]:aB16b");
}

Test(runtime_compile, size_of_the_options)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.size = 0;
    refuses(text, &options, KILN_ERROR_USAGE, "found 0");
    options.size = sizeof options + 8;
    refuses(text, &options, KILN_ERROR_USAGE, "KilnCompileOptions: expected a size of at most");

    /* A caller of an older layout, which ended before `target`: what lies behind is not read. */
    options.size = offsetof(KilnCompileOptions, target);
    options.target = "nonsense";
    options.threads = -1;
    g_autoptr(KilnProgram) program = program_of(text, &options);

    KilnSessionOptions session_options = KILN_SESSION_OPTIONS_INIT;
    session_options.size = sizeof session_options + 1;
    GError *error = NULL;
    cr_expect_null(kiln_session_new(program, &session_options, &error));
    expect_error(&error, KILN_ERROR_USAGE, "KilnSessionOptions: expected a size of at most");
}

Test(runtime_compile, wrong_options)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = -1;
    refuses(text, &options, KILN_ERROR_USAGE, "threads: expected 0 to 1024, found -1");
    options.threads = 1025;
    refuses(text, &options, KILN_ERROR_USAGE, "found 1025");
    options = (KilnCompileOptions)KILN_COMPILE_OPTIONS_INIT;
    options.target = "gpu";
    refuses(text, &options, KILN_ERROR_USAGE, "expected a backend (cpu, ref), found gpu");
    options = (KilnCompileOptions)KILN_COMPILE_OPTIONS_INIT;
    options.memory_limit = -1;
    refuses(text, &options, KILN_ERROR_USAGE, "memory limit");
}

Test(runtime_compile, shapes)
{
    const char *open = "graph @f(%x: f32[N,4], %z: f32[N,?]) {\n"
                       "  %y = concat(%x, %z) {axis=1} : f32[N,?]\n  return %y\n}\n";
    KilnShape shapes[] = { { "x", 2, { 3, 4 } }, { "z", 2, { 3, 2 } } };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.shapes = shapes;
    options.n_shapes = 2;
    g_autoptr(KilnProgram) whole = program_of(open, &options);
    cr_expect_eq(kiln_program_input(whole, 0)->bytes, 48);
    cr_expect_eq(kiln_program_output(whole, 0)->bytes, 72);
    KilnMemoryReport memory = KILN_MEMORY_REPORT_INIT;
    kiln_program_memory(whole, &memory, NULL);
    cr_expect(memory.arena >= 0 && memory.lb_live >= 0);

    /* One of the two: what follows from it is known, the rest comes with a run. */
    options.n_shapes = 1;
    g_autoptr(KilnProgram) part = program_of(open, &options);
    cr_expect_eq(kiln_program_input(part, 0)->bytes, 48);
    cr_expect_eq(kiln_program_input(part, 1)->dims[0], 3);
    cr_expect_eq(kiln_program_input(part, 1)->dims[1], -1);
    cr_expect_eq(kiln_program_output(part, 0)->dims[0], 3);
    cr_expect_eq(kiln_program_output(part, 0)->bytes, -1);
    kiln_program_memory(part, &memory, NULL);
    cr_expect_eq(memory.arena, -1);
    cr_expect_eq(memory.lb_live, -1);

    shapes[0] = (KilnShape){ "x", 2, { 3, 5 } };
    refuses(open, &options, KILN_ERROR_SHAPE, "input x: expected f32[N,4], found f32[3,5]");
    shapes[0] = (KilnShape){ "x", 3, { 3, 4, 1 } };
    refuses(open, &options, KILN_ERROR_SHAPE, "expected f32[N,4]");
    shapes[0] = (KilnShape){ "x", 2, { -3, 4 } };
    refuses(open, &options, KILN_ERROR_SHAPE, "expected f32[N,4]");
    shapes[0] = (KilnShape){ "x", 9, { 3, 4 } };
    refuses(open, &options, KILN_ERROR_USAGE, "expected rank 0 to 8, found 9");
    shapes[0] = (KilnShape){ NULL, 2, { 3, 4 } };
    refuses(open, &options, KILN_ERROR_USAGE, "shape: expected the name of an input, found NULL");
    shapes[0] = (KilnShape){ "nobody", 2, { 3, 4 } };
    refuses(open, &options, KILN_ERROR_USAGE, "the model has no input nobody");
    shapes[0] = (KilnShape){ "x", 2, { INT64_MAX, 4 } };
    refuses(open, &options, KILN_ERROR_SHAPE, "input x");
    options.n_shapes = 2;
    shapes[0] = (KilnShape){ "x", 2, { 2, 4 } };
    refuses(open, &options, KILN_ERROR_SHAPE, "dim N: expected one number, found 2 and 3");
    shapes[1] = shapes[0];
    refuses(open, &options, KILN_ERROR_USAGE, "shape of x: stated twice");
}

/* Kernels multiply some of the dims even where another is zero. */
Test(runtime_compile, dims_that_overflow_beside_a_zero)
{
    static const struct {
        const char *text;
        KilnError code;
    } models[] = {
        { "graph @g(%x: f32[0,4294967296,4294967296]) {\n"
          "  %y = global_average_pool(%x)\n  return %y\n}\n",
          KILN_ERROR_INVALID },
        { "graph @g(%x: f32[4294967296,4294967296,0]) {\n"
          "  %y = transpose(%x) {perm=[2,1,0]}\n  return %y\n}\n",
          KILN_ERROR_SHAPE },
        { "graph @g(%x: f32[0,4294967296,4294967296], %s: f32[1]) {\n"
          "  %y = layer_normalization(%x, %s) {axis=1}\n  return %y\n}\n",
          KILN_ERROR_SHAPE },
        { "graph @g(%x: f32[0,4294967296,4294967296], %w: f32[4294967296,0]) {\n"
          "  %y = matmul(%x, %w)\n  return %y\n}\n",
          KILN_ERROR_INVALID },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(models); i++) {
        GError *error = NULL;
        g_autoptr(GBytes) bytes = g_bytes_new(models[i].text, strlen(models[i].text));
        cr_expect_null(kiln_model_load_bytes(bytes, "case.kiln", &error));
        expect_error(&error, models[i].code, "less than 2^63 bytes, found f32[");
    }
}

/* A shape that the model has itself may be said again, and must be the same. */
Test(runtime_compile, shapes_of_static_models)
{
    const char *ir = "func @f {\n  input @x : f32[2]\n  output @y : f32[2]\n"
                     "  relu @out @y, @in @x\n}\n";
    KilnShape shape = { "x", 2, { 4, 8 } };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.shapes = &shape;
    options.n_shapes = 1;
    kiln_program_unref(program_of(text, &options));
    refuses(ir, &options, KILN_ERROR_SHAPE, "shape of x");
    shape = (KilnShape){ "x", 1, { 2 } };
    kiln_program_unref(program_of(ir, &options));
    refuses(text, &options, KILN_ERROR_SHAPE, "input x: expected f32[4,8], found f32[2]");
}

Test(runtime_compile, memory_limit)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.memory_limit = 64;
    refuses(text, &options, KILN_ERROR_LIMIT, "expected an arena of at most 64 bytes");
    options.memory_limit = 1 << 20;
    g_autoptr(KilnProgram) program = program_of(text, &options);
    KilnMemoryReport memory = KILN_MEMORY_REPORT_INIT;
    kiln_program_memory(program, &memory, NULL);
    cr_expect(memory.arena > 64 && memory.arena <= 1 << 20);
    cr_expect(memory.lb_node <= memory.lb_live && memory.lb_live <= memory.arena);
    cr_expect(memory.arena <= memory.sum);
    cr_expect(memory.proven_optimal);
    cr_expect(memory.weights >= 256);

    /* Exactly what the plan needs is enough. */
    options.memory_limit = memory.arena;
    kiln_program_unref(program_of(text, &options));
}

/* --- progress, logs, cancelling --- */

typedef struct {
    unsigned calls, stop_at, lines;
    double last;
    bool backwards, newline;
    int cancel, cancel_at;
} Watch;

static gboolean
watch_progress(double fraction, const char *what, void *data)
{
    Watch *watch = data;
    watch->backwards |= fraction < watch->last || fraction > 1 || !what || !*what;
    watch->last = fraction;
    watch->calls++;
    if (watch->cancel_at && watch->calls == (unsigned)watch->cancel_at)
        g_atomic_int_set(&watch->cancel, 1);
    return watch->calls != watch->stop_at;
}

static void
watch_log(const char *line, void *data)
{
    Watch *watch = data;
    watch->lines++;
    watch->newline |= strchr(line, '\n') || !*line;
}

Test(runtime_compile, progress_and_log)
{
    Watch watch = { 0 };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.progress = watch_progress;
    options.log = watch_log;
    options.data = &watch;
    kiln_program_unref(program_of(text, &options));
    cr_expect_gt(watch.calls, 10);
    cr_expect(!watch.backwards);
    cr_expect_eq(watch.last, 1.0);
    cr_expect_gt(watch.lines, 0); /* the identity was removed */
    cr_expect(!watch.newline);
}

/* Whenever it is cancelled, nothing is left behind. */
Test(runtime_compile, progress_cancels)
{
    Watch all = { 0 };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.progress = watch_progress;
    options.data = &all;
    kiln_program_unref(program_of(text, &options));
    for (unsigned at = 1; at <= all.calls; at++) {
        Watch watch = { .stop_at = at };
        options.data = &watch;
        refuses(text, &options, KILN_ERROR_CANCELLED, "cancelled");
        cr_expect_eq(watch.calls, at);
    }
}

Test(runtime_compile, flag_cancels)
{
    Watch watch = { .cancel = 1 };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.cancel = &watch.cancel;
    refuses(text, &options, KILN_ERROR_CANCELLED, "cancelled");
    watch = (Watch){ .cancel_at = 5 };
    options.progress = watch_progress;
    options.data = &watch;
    refuses(text, &options, KILN_ERROR_CANCELLED, "cancelled");
    cr_expect_eq(watch.calls, 5);
}

/* --- modes, targets, threads --- */

/* A dropout is nothing in inference, and is removed; in training mode it has to stay. */
Test(runtime_compile, training_mode)
{
    const char *dropout = "graph @f(%x: f32[4]) {\n  %y = dropout(%x) : f32[4]\n"
                          "  %z = neg(%y) : f32[4]\n  return %z\n}\n";
    for (int train = 0; train <= 1; train++) {
        Watch watch = { 0 };
        KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
        options.train = train;
        options.log = watch_log;
        options.data = &watch;
        g_autoptr(KilnPipeline) pipeline = kiln_pipeline_parse("eliminate-noop", NULL);
        options.pipeline = pipeline;
        g_autoptr(KilnProgram) program = program_of(dropout, &options);
        cr_expect_eq(watch.lines, train ? 0 : 1);
        g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
        bind(session, 0, FLOATS(1, 2, 3, 4), 16);
        run(session);
        expect_floats(session, 0, FLOATS(-1, -2, -3, -4), DIMS(4));
    }
}

Test(runtime_compile, targets_and_threads_agree)
{
    static const char *const targets[] = { "ref", "cpu" };
    float x[32], want[32];
    for (int i = 0; i < 32; i++)
        x[i] = (float)(i % 5) - 2;
    for (int threads = 0; threads <= 3; threads++) {
        for (size_t t = 0; t < G_N_ELEMENTS(targets); t++) {
            KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
            options.target = targets[t];
            options.threads = threads;
            options.no_verify = threads == 1;
            g_autoptr(KilnProgram) program = program_of(text, &options);
            g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
            bind(session, 0, x, sizeof x);
            run(session);
            const float *got = kiln_session_output(session, 0, NULL, NULL);
            if (threads == 0 && t == 0)
                memcpy(want, got, sizeof want);
            for (int i = 0; i < 32; i++)
                cr_expect_float_eq(got[i], want[i], 1e-5);
        }
    }
}

/* Without a value the border is a zero of the data's own quantization, made where the result lies.
 */
Test(runtime_compile, quantized_data_is_padded)
{
    static const char padding[] =
        "graph @f(%x: f32[1,2,2]) {\n  %pads = const @pads : i64[6]\n"
        "  %q = quantize_linear(%x) : i8[1,2,2] q(0.5,0)\n"
        "  %r = quantize_linear(%x) : i8[1,2,2] q(0.25,0)\n"
        "  %p = pad(%q, %pads) : i8[1,4,2] q(0.5,0)\n"
        "  %s = pad(%r, %pads) : i8[1,4,2] q(0.25,0)\n"
        "  %y = dequantize_linear(%p) : f32[1,4,2]\n  %z = dequantize_linear(%s) : f32[1,4,2]\n"
        "  return %y, %z\n}\nconstants { @pads = [0,1,0,0,1,0] : i64[6] }\n";
    g_autoptr(KilnSession) session = session_of(padding);
    bind(session, 0, FLOATS(1.25f, -2, 3, 0.5f), 16);
    run(session);
    expect_floats(session, 0, FLOATS(0, 0, 1, -2, 3, 0.5f, 0, 0), DIMS(1, 4, 2));
    expect_floats(session, 1, FLOATS(0, 0, 1.25f, -2, 3, 0.5f, 0, 0), DIMS(1, 4, 2));
}

Test(runtime_compile, errors_name_the_node)
{
    refuses("graph @f(%x: f32[2]) {\n  %y = unknown(%x) {op_type=\"Foo\", domain=\"\", opset=13} : "
            "f32[2] loc(\"/my/node\")\n  return %y\n}\n",
            NULL, KILN_ERROR_UNSUPPORTED, "/my/node");
    refuses("graph @f(%x: f32[2], %v: f32[2] variable) {\n  %y = add(%x, %v) : f32[2]\n"
            "  return %y\n}\n",
            NULL, KILN_ERROR_UNSUPPORTED, "argument v: state kept between runs");
}
