/* SPDX-License-Identifier: Apache-2.0 */
/* Running IR functions and evaluating graphs: the ways to get the same numbers agree to the bit
 * (node by node; lowered, a buffer per alloc; lowered, through the planned arena; poisoned or not),
 * and every way to fail says what failed and leaks nothing. */
#include "backends/ref/ref.h"
#include "exec/eval.h"
#include "exec/interpret.h"
#include "graph/base/alloc.h"
#include "graph/base/number.h"
#include "graph/base/random.h"
#include "graph/onnx/onnx.h"
#include "ir/plan.h"

#include <criterion/criterion.h>
#include <string.h>

enum {
    MAX_VALUES = 8
};

typedef struct {
    KilnModule *module;
    KilnFunction *function;
    KilnTensor *inputs[MAX_VALUES];
    guint n_inputs, n_outputs;
} Graph;

/* Floats are normal, integers and bools 0 or 1. */
static KilnTensor *
random_input(const KilnType *type, uint64_t seed)
{
    if (kiln_dtype_is_float(type->dtype))
        return kiln_tensor_new_normal(type, seed, 1);
    int64_t n = kiln_type_elements(type);
    g_autofree uint8_t *bytes = g_malloc0((size_t)kiln_type_bytes(type) + 1);
    for (int64_t i = 0; i < n; i++)
        kiln_element_store_f64(type->dtype, bytes, i,
                               (double)(kiln_random_bits(seed, (uint64_t)i) & 1));
    return kiln_tensor_new_copy(type, bytes, NULL);
}

static Graph
graph_of(KilnModule *module)
{
    Graph g = { .module = module, .function = kiln_module_entry(module) };
    g.n_inputs = g.function->arguments->len;
    g.n_outputs = g.function->result_names->len;
    cr_assert(g.n_inputs <= MAX_VALUES && g.n_outputs <= MAX_VALUES);
    for (guint i = 0; i < g.n_inputs; i++)
        g.inputs[i] = random_input(&kiln_function_argument(g.function, i)->value.type, 10 + i);
    return g;
}

static Graph
graph_parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    KilnModule *module = kiln_module_parse(text, strlen(text), "test", &error);
    cr_assert(module, "%s", error ? error->message : "");
    return graph_of(module);
}

static void
free_tensors(KilnTensor **tensors, guint n)
{
    for (guint i = 0; i < n; i++)
        g_clear_pointer(&tensors[i], kiln_tensor_free);
}

static void
graph_clear(Graph *g)
{
    free_tensors(g->inputs, g->n_inputs);
    kiln_module_free(g->module);
}

static void
run_ir(const Graph *g, const KilnIRFunction *ir, bool poison, bool planned, KilnTensor **outputs)
{
    g_autoptr(GError) error = NULL;
    KilnInterpretation run = { .evaluate = kiln_graph_evaluate,
                               .inputs = (const KilnTensor *const *)g->inputs,
                               .outputs = outputs,
                               .poison = poison,
                               .planned = planned };
    cr_assert(kiln_ir_interpret(ir, kiln_ref_target(), &run, &error), "%s",
              error ? error->message : "");
}

/* All ways to run @g agree. */
static void
expect_agreement(Graph *g, const char *what)
{
    KilnTensor *expected[MAX_VALUES] = { NULL };
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_graph_evaluate(g->function, kiln_ref_target(),
                                  (const KilnTensor *const *)g->inputs, expected, &error),
              "%s: %s", what, error ? error->message : "");
    g_autoptr(KilnIRFunction) ir = kiln_lower(g->function, &error);
    cr_assert(ir, "%s: %s", what, error ? error->message : "");
    g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan(ir, kiln_ref_target(), 1, &error);
    cr_assert(plan && kiln_ir_verify(ir, &error), "%s: %s", what, error ? error->message : "");
    for (int way = 0; way < 4; way++) {
        KilnTensor *outputs[MAX_VALUES] = { NULL };
        run_ir(g, ir, way & 1, way & 2, outputs);
        for (guint i = 0; i < g->n_outputs; i++)
            cr_assert(kiln_tensor_equal(outputs[i], expected[i]), "%s: output %u, way %d", what, i,
                      way);
        free_tensors(outputs, g->n_outputs);
    }
    free_tensors(expected, g->n_outputs);
}

// clang-format off
static const char *const graphs[] = {
    "graph @chain(%x: f32[2,3,4]) {\n"
    "  %a = relu(%x) : f32[2,3,4]\n"
    "  %b = softmax(%a) : f32[2,3,4]\n"
    "  %c = neg(%b) : f32[2,3,4]\n"
    "  return %c, %a\n"
    "}\n",
    "graph @shapes(%x: f32[2,3,4]) {\n"
    "  %s = shape(%x) : i64[3]\n"
    "  %i = const @one : i64[1]\n"
    "  %d = gather(%s, %i) : i64[1]\n"
    "  %m = const @minus : i64[1]\n"
    "  %t = concat(%d, %m) : i64[2]\n"
    "  %r = reshape(%x, %t) : f32[3,8]\n"
    "  %f = cast(%s) : f32[3]\n"
    "  %e = reduce_sum(%r) : f32[1,1]\n"
    "  return %r, %f, %e, %s\n"
    "}\n"
    "constants { @one = [1] : i64[1]\n @minus = [-1] : i64[1] }\n",
    "graph @movement(%x: f32[4,6], %c: bool[4,6]) {\n"
    "  %k = const @sizes : i64[3]\n"
    "  %p, %q, %r = split(%x, %k) {axis=1} : f32[4,1], f32[4,2], f32[4,3]\n"
    "  %t = transpose(%q) {perm=[1,0]} : f32[2,4]\n"
    "  %w = where(%c, %x, %p) : f32[4,6]\n"
    "  %j = concat(%r, %p) {axis=1} : f32[4,4]\n"
    "  return %t, %w, %j\n"
    "}\n"
    "constants { @sizes = [1,2,3] : i64[3] }\n",
    "graph @residual(%x: f32[1,4,6,6], %w: f32[4,4,3,3]) {\n"
    "  %a = conv(%x, %w) {pads=[1,1,1,1]} : f32[1,4,6,6]\n"
    "  %b = relu(%a) : f32[1,4,6,6]\n"
    "  %c = conv(%b, %w) {auto_pad=\"SAME_UPPER\"} : f32[1,4,6,6]\n"
    "  %d = add(%c, %b) : f32[1,4,6,6]\n"
    "  %e = max_pool(%d) {kernel_shape=[2,2], strides=[2,2]} : f32[1,4,3,3]\n"
    "  %f = global_average_pool(%e) : f32[1,4,1,1]\n"
    "  %g = flatten(%f) : f32[1,4]\n"
    "  return %g\n"
    "}\n",
    "graph @twice(%x: f32[3], %c: bool[]) {\n"
    "  %y = identity(%x) : f32[3]\n"
    "  %z = mul(%x, %y) : f32[3]\n"
    "  return %x, %y, %z, %z as again\n"
    "}\n",
    "graph @empty(%x: f32[0,3]) {\n"
    "  %y = relu(%x) : f32[0,3]\n"
    "  %z = concat(%y, %x) : f32[0,3]\n"
    "  return %z\n"
    "}\n",
    "graph @generators(%x: f32[2,2]) {\n"
    "  %s = const @shape : i64[2]\n"
    "  %z = constant_of_shape(%s) : f32[2,3]\n"
    "  %n = random_normal() {seed=3, shape=[2,3]} : f32[2,3]\n"
    "  %y = add(%z, %n) : f32[2,3]\n"
    "  %e = eye_like(%x) {dtype=f32, k=1} : f32[2,2]\n"
    "  %d, %m = dropout(%y) : f32[2,3], bool[2,3]\n"
    "  return %y, %e, %d, %m\n"
    "}\n"
    "constants { @shape = [2,3] : i64[2] }\n",
    "graph @quantized(%x: f32[2,3]) {\n"
    "  %s = const @scale : f32[]\n"
    "  %q = quantize_linear(%x, %s) : u8[2,3]\n"
    "  %y = dequantize_linear(%q, %s) : f32[2,3]\n"
    "  return %y, %q\n"
    "}\n"
    "constants { @scale = splat(0.05) : f32[] }\n",
};
// clang-format on

Test(eval, all_ways_to_run_a_graph_agree)
{
    for (size_t i = 0; i < G_N_ELEMENTS(graphs); i++) {
        Graph g = graph_parse(graphs[i]);
        expect_agreement(&g, graphs[i]);
        graph_clear(&g);
    }
}

/* --- subgraphs, which only the evaluation of graphs follows --- */

static double
first_element(const KilnTensor *tensor)
{
    uint8_t bytes[64];
    cr_assert(kiln_type_bytes(&tensor->type) <= (int64_t)sizeof bytes);
    cr_assert(kiln_tensor_write(tensor, bytes, NULL));
    return kiln_element_as_f64(tensor->type.dtype, bytes, 0);
}

Test(eval, branches_are_followed)
{
    Graph g = graph_parse("graph @g(%c: bool[], %x: f32[1]) {\n"
                          "  %n = abs(%x) : f32[1]\n"
                          "  %y = if(%c) then {\n"
                          "    return %n\n"
                          "  } else {\n"
                          "    %t = neg(%n) : f32[1]\n"
                          "    return %t\n"
                          "  } : f32[1]\n"
                          "  return %y\n"
                          "}\n");
    for (int flag = 0; flag < 2; flag++) {
        KilnTensor *y = NULL;
        KilnType scalar = kiln_type_scalar(KILN_DTYPE_bool);
        kiln_tensor_free(g.inputs[0]);
        g.inputs[0] = kiln_tensor_new_splat(&scalar, flag);
        cr_assert(kiln_graph_evaluate(g.function, kiln_ref_target(),
                                      (const KilnTensor *const *)g.inputs, &y, NULL));
        cr_assert_eq(first_element(y) > 0, flag == 1);
        kiln_tensor_free(y);
    }
    graph_clear(&g);
}

Test(eval, vendor_graphs_run_their_body)
{
    Graph g = graph_parse("graph @v(%x: f32[1], %w: f32[1]) {\n"
                          "  %a = vendor.graph @r0(%x, %w) {\n"
                          "    %m = sub(%x, %w) : f32[1]\n"
                          "    return %m\n"
                          "  } : f32[1]\n"
                          "  %b = vendor.graph @r1(%x, %w) body @inner(%p: f32[1], %q: f32[1]) {\n"
                          "    %m = sub(%p, %q) : f32[1]\n"
                          "    return %m\n"
                          "  } : f32[1]\n"
                          "  %d = sub(%a, %b) : f32[1]\n"
                          "  return %d, %a\n"
                          "}\n");
    KilnTensor *outputs[2] = { NULL };
    cr_assert(kiln_graph_evaluate(g.function, kiln_ref_target(),
                                  (const KilnTensor *const *)g.inputs, outputs, NULL));
    cr_assert_eq(first_element(outputs[0]), 0);
    cr_assert_neq(first_element(outputs[1]), 0);
    free_tensors(outputs, 2);
    graph_clear(&g);
}

/* Shape operands are given as tensors: their values count, not only their types. */
Test(eval, shape_operands_may_be_inputs)
{
    Graph g = graph_parse("graph @g(%x: f32[6], %s: i64[2]) {\n"
                          "  %y = reshape(%x, %s) : f32[?,?]\n"
                          "  return %y\n"
                          "}\n");
    KilnType two = kiln_type_make(KILN_DTYPE_i64, 1, (int64_t[]){ 2 });
    KilnTensor *y = NULL;
    kiln_tensor_free(g.inputs[1]);
    g.inputs[1] = kiln_tensor_new_copy(&two, (int64_t[]){ 2, -1 }, NULL);
    cr_assert(kiln_graph_evaluate(g.function, kiln_ref_target(),
                                  (const KilnTensor *const *)g.inputs, &y, NULL));
    cr_assert(y->type.rank == 2 && y->type.dims[0] == 2 && y->type.dims[1] == 3);
    kiln_tensor_free(y);
    graph_clear(&g);
}

/* --- failures --- */

static void
expect_evaluation_error(const char *text, KilnTensor *input, KilnError code, const char *part)
{
    Graph g = graph_parse(text);
    g_autoptr(GError) error = NULL;
    KilnTensor *outputs[MAX_VALUES] = { NULL };
    if (input) {
        kiln_tensor_free(g.inputs[0]);
        g.inputs[0] = input;
    }
    cr_assert_not(kiln_graph_evaluate(g.function, kiln_ref_target(),
                                      (const KilnTensor *const *)g.inputs, outputs, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, (int)code), "%s", error->message);
    cr_assert(strstr(error->message, part), "%s", error->message);
    graph_clear(&g);
}

Test(eval, failures_name_what_failed)
{
    KilnType three = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 3 });
    KilnType index = kiln_type_make(KILN_DTYPE_i64, 1, (int64_t[]){ 1 });
    static const char relu[] = "graph @g(%x: f32[2]) {\n %y = relu(%x) : f32[2]\n return %y\n}\n";
    expect_evaluation_error(relu, kiln_tensor_new_splat(&three, 1), KILN_ERROR_SHAPE,
                            "x: expected f32[2], found f32[3]");
    expect_evaluation_error("graph @g(%x: f32[N]) {\n"
                            "  %q = quantize_linear(%x) : u8[N] q(axis=0,[1,2],[0,0])\n"
                            "  %y = dequantize_linear(%q) : f32[N]\n  return %y\n}\n",
                            kiln_tensor_new_splat(&three, 1), KILN_ERROR_TYPE,
                            "q (quantize_linear): expected one scale per index");
    expect_evaluation_error("graph @g(%i: i64[1], %x: f32[2]) {\n"
                            "  %y = gather(%x, %i) : f32[1] loc(\"/pick\")\n  return %y\n}\n",
                            kiln_tensor_new_splat(&index, 5), KILN_ERROR_RUN, "/pick (gather): ");
}

static const KilnTarget bare = { .name = "bare" };

Test(eval, targets_say_what_they_lack)
{
    Graph g = graph_parse("graph @g(%x: f32[2], %s: i64[1]) {\n"
                          "  %y = relu(%x) : f32[2]\n"
                          "  %z = reshape(%y, %s) : f32[?]\n"
                          "  return %z\n"
                          "}\n");
    const KilnNode *relu = g.function->first;
    char *reason = NULL;
    cr_assert(kiln_target_supports(kiln_ref_target(), relu, NULL));
    cr_assert_not(kiln_target_supports(&bare, relu, &reason));
    cr_assert_str_eq(reason, "target bare has no kernel for relu");
    g_clear_pointer(&reason, g_free);
    cr_assert_not(kiln_target_supports(kiln_ref_target(), relu->next, &reason));
    cr_assert(strstr(reason, "is known only at run time"), "%s", reason);
    g_free(reason);

    KilnTensor *y = NULL;
    g_autoptr(GError) error = NULL;
    const KilnTensor *x = g.inputs[0];
    cr_assert_not(kiln_target_evaluate(&bare, relu, &x, &y, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_UNSUPPORTED));
    cr_assert(strstr(error->message, "target bare has no kernel for relu(f32[2], f32[2])"), "%s",
              error->message);
    graph_clear(&g);
}

/* Every allocation of a run fails once: an error each time, no crash, no leak. */
Test(eval, memory_may_run_out_anywhere)
{
    Graph g = graph_parse(graphs[3]);
    g_autoptr(KilnIRFunction) ir = kiln_lower(g.function, NULL);
    g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan(ir, kiln_ref_target(), 1, NULL);
    cr_assert(plan);
    for (int planned = 0; planned < 2; planned++) {
        bool done = false;
        for (unsigned nth = 1; !done; nth++) {
            g_autoptr(GError) error = NULL;
            KilnTensor *y = NULL;
            KilnInterpretation run = { .evaluate = kiln_graph_evaluate,
                                       .inputs = (const KilnTensor *const *)g.inputs,
                                       .outputs = &y,
                                       .poison = true,
                                       .planned = planned };
            kiln_alloc_inject_failure(nth);
            done = kiln_ir_interpret(ir, kiln_ref_target(), &run, &error);
            kiln_alloc_inject_failure(0);
            cr_assert(done || g_error_matches(error, KILN_ERROR, KILN_ERROR_MEMORY));
            cr_assert_lt(nth, 100);
            kiln_tensor_free(y);
        }
    }
    graph_clear(&g);
}

/* --- hooks of kernels, and state --- */

static size_t
packed_bytes(const KilnInstr *instr, uint32_t form)
{
    (void)form;
    return (size_t)kiln_type_bytes(&kiln_instr_operand(instr, 2)->type);
}

static bool memory_is_full;

/* Halves the weights, so that a run without packing is told apart. */
static const char *
pack(const KilnInstr *instr, uint32_t form, const void *const *data, void *packed, KilnSlice slice)
{
    (void)form;
    if (memory_is_full)
        return "no memory for the test";
    int64_t n = kiln_type_elements(&kiln_instr_operand(instr, 2)->type);
    const float *weights = data[2];
    cr_assert_null(data[1]);
    for (int64_t i = kiln_slice_begin(slice, n); i < kiln_slice_end(slice, n); i++)
        ((float *)packed)[i] = weights[i] / 2;
    return NULL;
}

static size_t
scratch_bytes(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)instr;
    return 64 * (size_t)threads;
}

static const char *
add_packed(const KilnKernelArgs *args)
{
    const float *weights = args->packed ? args->packed : args->data[2];
    if (!args->scratch || ((uintptr_t)args->scratch % KILN_ALIGNMENT))
        return "no scratch";
    memset(args->scratch, 1, 64 * (size_t)args->threads);
    for (int i = 0; i < 2; i++)
        ((float *)args->data[0])[i] = ((const float *)args->data[1])[i] + weights[i];
    return NULL;
}

static const KilnKernel hooked_kernels[] = {
    { .instr = KILN_INSTR_add,
      .dtypes = 1u << KILN_DTYPE_f32,
      .name = "test:add",
      .run = add_packed,
      .scratch_bytes = scratch_bytes,
      .packed_bytes = packed_bytes,
      .pack = pack,
      .packs = 1u << 2 },
};

Test(eval, kernels_get_scratch_and_packed_weights)
{
    KilnTarget hooked = {
        .name = "hooked", .kernels = hooked_kernels, .n_kernels = 1, .fallback = kiln_ref_target()
    };
    static const char text[] = "func @f {\n"
                               "  weight @w : f32[2] const\n  weight @state : f32[2]\n"
                               "  input @x : f32[2]\n  output @y : f32[2]\n"
                               "  add @out @y, @in @x, @in @w\n"
                               "  add @out @state, @in @y, @in @state\n"
                               "}\n"
                               "constants { @w = splat(4) : f32[2]\n"
                               "  @state = splat(100) : f32[2] }\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "f", &error);
    cr_assert(ir, "%s", error ? error->message : "");
    KilnType two = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 2 });
    g_autoptr(KilnTensor) x = kiln_tensor_new_splat(&two, 1);
    KilnTensor *y = NULL, *weights[2] = { NULL };
    KilnInterpretation run = { .evaluate = kiln_graph_evaluate,
                               .inputs = (const KilnTensor *const[]){ x },
                               .outputs = &y,
                               .weights = weights,
                               .threads = 2 };
    memory_is_full = true;
    cr_assert_not(kiln_ir_interpret(g_ptr_array_index(ir->functions, 0), &hooked, &run, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_RUN));
    cr_assert_str_eq(error->message, "y (add): weights were not packed: no memory for the test");
    g_clear_error(&error);
    memory_is_full = false;
    cr_assert(kiln_ir_interpret(g_ptr_array_index(ir->functions, 0), &hooked, &run, &error), "%s",
              error ? error->message : "");
    cr_assert_eq(first_element(y), 1 + 2);
    cr_assert_null(weights[0]); /* const */
    cr_assert_eq(first_element(weights[1]), 3 + 100);
    kiln_tensor_free(y);
    kiln_tensor_free(weights[1]);
}

Test(eval, a_plan_is_asked_for)
{
    Graph g = graph_parse(graphs[0]);
    g_autoptr(KilnIRFunction) ir = kiln_lower(g.function, NULL);
    g_autoptr(GError) error = NULL;
    KilnTensor *outputs[2];
    KilnInterpretation run = { .evaluate = kiln_graph_evaluate,
                               .inputs = (const KilnTensor *const *)g.inputs,
                               .outputs = outputs,
                               .planned = true };
    cr_assert_not(kiln_ir_interpret(ir, kiln_ref_target(), &run, &error));
    cr_assert(strstr(error->message, "@chain has no memory plan"), "%s", error->message);
    graph_clear(&g);
}

/* --- models --- */

static KilnModule *
model(const char *name)
{
    g_autofree char *path = g_build_filename(KILN_SHARED_DIR, "models", name, "model.onnx", NULL);
    g_autoptr(GError) error = NULL;
    KilnModule *module = kiln_onnx_import_file(path, &error);
    cr_assert(module, "%s", error ? error->message : "");
    return module;
}

Test(eval, models_are_lowered_and_planned_at_their_bound)
{
    static const char *const names[] = { "lenet",         "mlp",       "mobilenet_v2",
                                         "squeezenet1_1", "resnet18",  "shufflenet_v2_x1_0",
                                         "bert_small",    "lstm2_256", "unet16_256",
                                         "wavenet_32" };
    if (!g_file_test(KILN_SHARED_DIR "/models", G_FILE_TEST_IS_DIR))
        cr_skip_test("no models beside the source tree");
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(KilnModule) module = model(names[i]);
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnIRFunction) ir = kiln_lower(kiln_module_entry(module), &error);
        cr_assert(ir, "%s: %s", names[i], error ? error->message : "");
        g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan(ir, kiln_ref_target(), 1, &error);
        cr_assert(plan && kiln_ir_verify(ir, &error), "%s: %s", names[i],
                  error ? error->message : "");
        cr_assert(plan->proven_optimal, "%s: arena %ld, bound %ld", names[i], (long)plan->arena,
                  (long)plan->lb_live);
    }
}

Test(eval, all_ways_to_run_a_model_agree)
{
    if (!g_file_test(KILN_SHARED_DIR "/models", G_FILE_TEST_IS_DIR))
        cr_skip_test("no models beside the source tree");
    static const char *const names[] = { "lenet", "mlp", "lstm2_256" };
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        Graph g = graph_of(model(names[i]));
        expect_agreement(&g, names[i]);
        graph_clear(&g);
    }
}

/* --- costs --- */

Test(eval, costs_follow_the_formulas)
{
    static const char text[] =
        "func @f {\n"
        "  input @x : f32[1,3,8,8]\n  input @w : f32[4,3,3,3]\n  output @c : f32[1,4,6,6]\n"
        "  input @a : f32[2,3]\n  input @b : f32[3,4]\n  output @m : f32[2,4]\n"
        "  output @e : f32[2,3]\n  output @t : f32[3,2]\n"
        "  output @s : f32[2,4]\n"
        "  conv @out @c, @in @x, @in @w\n"
        "  matmul @out @m, @in @a, @in @b\n"
        "  exp @out @e, @in @a\n"
        "  transpose @out @t, @in @a {perm=[1,0]}\n"
        "  einsum @out @s, @in @a, @in @b {equation=\"ik,kj->ij\"}\n"
        "}\n";
    static const KilnCost expected[] = { { 2 * 27 * 144, 4 * (144 + 192 + 108) },
                                         { 2 * 3 * 8, 4 * (8 + 6 + 12) },
                                         { 10 * 6, 4 * 12 },
                                         { 0, 4 * 12 },
                                         { 2 * 2 * 3 * 4, 4 * (8 + 6 + 12) } };
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "f", &error);
    cr_assert(ir, "%s", error ? error->message : "");
    size_t i = 0;
    kiln_foreach_instr (instr, (KilnIRFunction *)g_ptr_array_index(ir->functions, 0)) {
        KilnCost cost = kiln_instr_cost(instr);
        cr_assert_eq(cost.flops, expected[i].flops, "%zu: %ld", i, (long)cost.flops);
        cr_assert_eq(cost.bytes, expected[i].bytes, "%zu: %ld", i, (long)cost.bytes);
        i++;
    }
    cr_assert_eq(i, G_N_ELEMENTS(expected));
}

/* Sums and products that no 64 bits hold are the most that they do. */
Test(eval, costs_saturate)
{
    static const char text[] =
        "func @f {\n"
        "  input @x : f32[1,1073741824,1073741824]\n  output @y : f32[1,1073741824,1073741824]\n"
        "  input @k : i8[1,1152921504606846976,7]\n  output @i : i32[1,1,1]\n"
        "  input @s : f32[1,4,8,8,8]\n  output @r : f32[1,4,8,8,8]\n"
        "  output @p : f32[1,4,8,8,8]\n"
        "  call @twice @out @y, @in @x\n"
        "  conv_integer @out @i, @in @k, @in @k\n"
        "  lrn @out @r, @in @s {size=9223372036854775807}\n"
        "  lp_pool @out @p, @in @s {kernel_shape=[1073741824,1073741824,1073741824],\n"
        "    pads=[1073741823,1073741823,1073741823,0,0,0]}\n"
        "}\n"
        "declare @twice(f32[1,1073741824,1073741824]) -> f32[1,1073741824,1073741824]\n"
        "body(%x: f32[1,1073741824,1073741824]) {\n"
        "  %a = softmax(%x) : f32[1,1073741824,1073741824]\n"
        "  %b = softmax(%a) : f32[1,1073741824,1073741824]\n"
        "  return %b\n}\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "f", &error);
    cr_assert(ir, "%s", error ? error->message : "");
    kiln_foreach_instr (instr, (KilnIRFunction *)g_ptr_array_index(ir->functions, 0))
        cr_expect_eq(kiln_instr_cost(instr).flops, INT64_MAX, "%s: %ld",
                     kiln_instr_info(instr->kind)->name, (long)kiln_instr_cost(instr).flops);
}
