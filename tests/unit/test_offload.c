/* SPDX-License-Identifier: Apache-2.0 */
/* The offload road: regions, the kernel cache, calls by name, and what the vendor computes. */
#include "backends/ref/ref.h"
#include "graph/module/outline.h"
#include "graph/op/offload.h"
#include "ir/compiled.h"
#include "ir/target.h"
#include "ir/vendor.h"
#include "kiln.h"
#include "passes/context/options.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/bind.h"
#include "runtime/compile.h"
#include "runtime/program.h"
#include "tests/test_vendor.h"
#include "tests/unit/offload_case.h"
#include "tests/unit/runtime_case.h"

#include <string.h>
#include <math.h>
#include <time.h>

#define OFFLOAD "partition-offload{when=always,min-us=0},compile-offload"

/* --- regions and the cache, with the test vendor --- */

/* The module of @text after the passes, lowered and resolved. */
static KilnIRModule *
offloaded(const char *text, const char *passes)
{
    GError *error = NULL;
    KilnTarget target = test_vendor_target();
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = &target;
    g_autoptr(KilnModel) model = model_of(text);
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_parse_inline(passes, &error);
    cr_assert(pipeline, "%s", error ? error->message : "");
    KilnModule *module = kiln_compile_graph(model, NULL, pipeline, &options, NULL, &error);
    cr_assert(module, "%s", error ? error->message : "");
    KilnIRModule *ir = kiln_compile_ir(module, pipeline, &options, NULL, &error);
    cr_assert(ir, "%s", error ? error->message : "");
    return ir;
}

static uint32_t
count(const KilnIRModule *ir, KilnInstrKind kind)
{
    uint32_t n = 0;
    kiln_foreach_instr (instr, (KilnIRFunction *)g_ptr_array_index(ir->functions, 0))
        n += instr->kind == kind;
    return n;
}

Test(offload, off_05_twelve_equal_layers_compile_once)
{
    g_autoptr(GString) text = g_string_new("graph @layers(%x0: f32[4,8]) {\n");
    for (int i = 0; i < 12; i++)
        g_string_append_printf(text,
                               "  %%w%d = const @w%d : f32[8,8]\n"
                               "  %%m%d = matmul(%%x%d, %%w%d) : f32[4,8]\n"
                               "  %%x%d = relu(%%m%d) : f32[4,8]\n",
                               i, i, i, i, i, i + 1, i);
    g_string_append(text, "  return %x12\n}\nconstants {\n");
    for (int i = 0; i < 12; i++)
        g_string_append_printf(text, "  @w%d = random_normal(seed=%d, std=0.3) : f32[8,8]\n", i, i);
    g_string_append(text, "}\n");
    uint64_t before = kiln_kernel_cache_compiled();
    g_autoptr(KilnIRModule) ir = offloaded(text->str, OFFLOAD);
    cr_expect_eq(kiln_kernel_cache_compiled(), before + 1);
    cr_expect_eq(ir->module->declarations->len, 1u);
    cr_expect_eq(count(ir, KILN_INSTR_call), 12u);
    /* Another program of the process finds what lies in the cache. */
    g_autoptr(KilnIRModule) again = offloaded(text->str, OFFLOAD);
    cr_expect_eq(count(again, KILN_INSTR_call), 12u);
    cr_expect_eq(kiln_kernel_cache_compiled(), before + 1);
}

/* Processor seconds that a concat of @n convolutions of one input takes. */
static double
seconds_of_fan(int n)
{
    g_autoptr(GString) text = g_string_new("graph @fan(%x: f32[1,2,3,3], %w: f32[1,2,1,1]) {\n");
    g_autoptr(GString) concat = g_string_new("  %y = concat(");
    for (int i = 0; i < n; i++) {
        g_string_append_printf(text, "  %%c%d = conv(%%x, %%w) : f32[1,1,3,3]\n", i);
        g_string_append_printf(concat, "%s%%c%d", i ? ", " : "", i);
    }
    g_string_append_printf(text, "%s) {axis=1} : f32[1,%d,3,3]\n  return %%y\n}\n", concat->str, n);
    KilnTarget target = test_vendor_target();
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = &target;
    options.verify = false;
    g_autoptr(KilnModel) model = model_of(text->str);
    g_autoptr(KilnPassPipeline) pipeline =
        kiln_pass_pipeline_parse_inline("partition-offload{when=always,min-us=0}", NULL);
    clock_t before = clock();
    KilnModule *module = kiln_compile_graph(model, NULL, pipeline, &options, NULL, NULL);
    double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    cr_assert(module);
    kiln_module_free(module);
    return seconds;
}

/* A node that reads thousands of regions: four times as many take about four times as long.
 * Quadratic time would take 16 times as long. Both numbers exceed the caches. The best of three
 * counts, for other processes share them. */
Test(offload, a_reader_of_many_regions_takes_linear_time)
{
    double few = INFINITY, many = INFINITY;
    for (int i = 0; i < 3; i++) {
        few = fmin(few, seconds_of_fan(3000));
        many = fmin(many, seconds_of_fan(12000));
    }
    cr_expect_lt(many, 10 * few, "%.3f s for 12000 convolutions, %.3f s for 3000", many, few);
}

Test(offload, off_05_the_cache_forgets_with_the_last_reference)
{
    static const char text[] = "graph @f(%x: f32[3,5], %w: f32[5,7]) {\n"
                               "  %y = matmul(%x, %w) : f32[3,7]\n  return %y\n}\n";
    uint64_t before = kiln_kernel_cache_compiled();
    for (int i = 1; i <= 2; i++) {
        g_autoptr(KilnIRModule) ir = offloaded(text, OFFLOAD);
        cr_expect_eq(count(ir, KILN_INSTR_call), 1u);
        cr_expect_eq(kiln_kernel_cache_compiled(), before + (uint64_t)i);
    }
}

Test(offload, off_06_off_07_failed_regions_run_as_instructions)
{
    g_autoptr(KilnIRModule) ir = offloaded("graph @f(%x: f32[1,4,8,8]) {\n"
                                           "  %n = lrn(%x) {size=3} : f32[1,4,8,8]\n"
                                           "  %y = relu(%n) : f32[1,4,8,8]\n"
                                           "  return %y\n}\n",
                                           OFFLOAD);
    cr_expect_eq(count(ir, KILN_INSTR_call), 0u);
    cr_expect_eq(count(ir, KILN_INSTR_lrn), 1u);
    cr_expect_eq(ir->module->declarations->len, 0u);
}

Test(offload, off_08_off_09_calls_write_into_what_they_are_given)
{
    g_autoptr(KilnIRModule) ir = offloaded("graph @f(%x: f32[4,8], %v: f32[8,8], %w: f32[8,8]) {\n"
                                           "  %a = matmul(%x, %v) : f32[4,8]\n"
                                           "  %y = matmul(%a, %w) : f32[4,8]\n"
                                           "  return %y\n}\n",
                                           OFFLOAD);
    const KilnIRFunction *function = g_ptr_array_index(ir->functions, 0);
    cr_expect_eq(count(ir, KILN_INSTR_call), 2u);
    cr_expect_eq(count(ir, KILN_INSTR_alloc), 1u);
    cr_expect_eq(count(ir, KILN_INSTR_copy), 0u);
    const KilnInstr *last = NULL;
    kiln_foreach_instr (instr, function)
        last = instr->kind == KILN_INSTR_call ? instr : last;
    cr_expect_eq(last->operands[0].access, KILN_ACCESS_OUT);
    cr_expect_eq(last->operands[0].buffer->kind, KILN_BUFFER_OUTPUT);
}

Test(offload, off_09_edges_of_results)
{
    /* Returned twice; an input returned; a result that is read on. */
    g_autoptr(KilnIRModule) ir = offloaded("graph @f(%x: f32[4,8], %w: f32[8,8]) {\n"
                                           "  %a = matmul(%x, %w) : f32[4,8]\n"
                                           "  %b = matmul(%a, %w) : f32[4,8]\n"
                                           "  return %a, %a as again, %x, %b\n}\n",
                                           OFFLOAD);
    GError *error = NULL;
    const KilnIRFunction *function = g_ptr_array_index(ir->functions, 0);
    must(kiln_ir_verify(function, &error), error);
    cr_expect_eq(count(ir, KILN_INSTR_call), 2u);
    cr_expect_eq(function->outputs->len, 4u);
}

/* Where a pipeline was cut short, or a text with regions meets one that compiles none. */
Test(offload, off_06_regions_that_no_pass_compiled_run_as_instructions)
{
    static const char text[] =
        "graph @f(%x: f32[2,3], %w: f32[3,2]) {\n"
        "  %a = vendor.graph @r0(%x, %w) body(%p: f32[2,3], %q: f32[3,2]) {\n"
        "    %m = matmul(%p, %q) : f32[2,2]\n    return %m\n  } : f32[2,2]\n"
        "  %y = vendor.graph @r1(%a) {\n"
        "    %r = relu(%a) : f32[2,2]\n    return %r\n  } : f32[2,2]\n"
        "  return %y\n}\n";
    static const float x[] = { 1, 2, 3, -1, -2, -3 }, w[] = { 1, 0, 0, 1, 1, 1 };
    g_autoptr(KilnIRModule) ir = offloaded(text, "dce");
    cr_expect_eq(count(ir, KILN_INSTR_matmul) + count(ir, KILN_INSTR_gemm), 1u);
    cr_expect_eq(count(ir, KILN_INSTR_relu), 1u);
    cr_expect_eq(count(ir, KILN_INSTR_call), 0u);
    g_autoptr(KilnSession) session = session_of(text);
    bind(session, 0, x, sizeof x);
    bind(session, 1, w, sizeof w);
    run(session);
    expect_floats(session, 0, FLOATS(4, 5, 0, 0), DIMS(2, 2));
}

/* The number of its regions and executables, those of subgraphs too. */
static uint32_t
count_regions(const KilnFunction *function)
{
    uint32_t n = 0;
    kiln_foreach_node (node, function) {
        n += node->op == KILN_OP_vendor_graph || node->op == KILN_OP_vendor_executable;
        kiln_foreach_region (region, node)
            n += count_regions(region);
    }
    return n;
}

Test(offload, off_06_regions_of_subgraphs)
{
    static const char text[] =
        "graph @f(%c: bool[], %x: f32[2]) {\n"
        "  %y = if(%c) then {\n"
        "    %a = vendor.graph @r0(%x) body(%p: f32[2]) {\n"
        "      %q = relu(%p) : f32[2]\n      return %q\n    } : f32[2]\n"
        "    return %a\n  } else {\n"
        "    %b = vendor.executable @r1(%x) : f32[2]\n    return %b\n  } : f32[2]\n"
        "  return %y\n}\n"
        "declare @r1(f32[2]) -> f32[2] body(%p: f32[2]) {\n"
        "  %q = neg(%p) : f32[2]\n  return %q\n}\n";
    GError *error = NULL;
    g_autoptr(KilnModule) module = kiln_module_parse(text, strlen(text), "case.kiln", &error);
    cr_assert(module, "%s", error ? error->message : "");
    must(kiln_module_inline_regions(module, &error), error);
    must(kiln_module_verify(module, &error), error);
    cr_expect_eq(count_regions(kiln_module_entry(module)), 1u);
    must(kiln_module_inline(module, &error), error);
    must(kiln_module_verify(module, &error), error);
    cr_expect_eq(count_regions(kiln_module_entry(module)), 0u);
    cr_expect_eq(module->declarations->len, 0u);
}

static const char printed[] =
    "func @f {\n"
    "  input @x : f32[2,3]\n"
    "  input @w : f32[3,2]\n"
    "  output @y : f32[2,2]\n"
    "  call @r0 @out @y, @in @x, @in @w\n"
    "}\n\n"
    "declare @r0(f32[2,3], f32[3,2]) -> f32[2,2] body(%a: f32[2,3], %b: f32[3,2]) {\n"
    "  %m = matmul(%a, %b) : f32[2,2]\n"
    "  %r = relu(%m) : f32[2,2]\n"
    "  return %r\n"
    "}\n"
    "declare @r1(f32[2]) -> f32[2]\n";

Test(offload, off_11_unread_declarations_are_dropped)
{
    GError *error = NULL;
    g_autoptr(KilnIRModule) ir =
        kiln_ir_module_parse(printed, strlen(printed), "printed.kiln", &error);
    cr_assert(ir, "%s", error ? error->message : "");
    cr_expect_eq(ir->module->declarations->len, 2u);
    KilnTarget target = test_vendor_target();
    must(kiln_offload_resolve(ir, &target, 1, &error), error);
    cr_expect_eq(ir->module->declarations->len, 1u);
    cr_expect_eq(count(ir, KILN_INSTR_call), 1u);
    /* Without a vendor nothing is called and nothing declared. */
    must(kiln_offload_resolve(ir, kiln_ref_target(), 1, &error), error);
    cr_expect_eq(ir->module->declarations->len, 0u);
    cr_expect_eq(count(ir, KILN_INSTR_call), 0u);
    must(kiln_ir_verify(g_ptr_array_index(ir->functions, 0), &error), error);
}

/* The same with memory planned, and something behind the call. */
static const char planned[] =
    "func @f {\n"
    "  arena 64\n"
    "  input @x : f32[2,3]\n"
    "  input @w : f32[3,2]\n"
    "  output @y : f32[2,2]\n"
    "  %v = alloc at 0 : f32[2,2]\n"
    "  call @r0 @out %v, @in @x, @in @w\n"
    "  abs @out @y, @in %v\n"
    "  dealloc %v\n"
    "}\n\n"
    "declare @r0(f32[2,3], f32[3,2]) -> f32[2,2] body(%a: f32[2,3], %b: f32[3,2]) {\n"
    "  %m = matmul(%a, %b) : f32[2,2]\n"
    "  %r = relu(%m) : f32[2,2]\n"
    "  return %r\n"
    "}\n";

static void
check_printed(const char *text)
{
    static const float x[] = { 1, 2, 3, -1, -2, -3 }, w[] = { 1, 0, 0, 1, 1, 1 };
    static const struct {
        const char *target;
        gboolean no_offload;
    } ways[] = { { "ref", FALSE }, { "cpu", TRUE }, { "cpu", FALSE } };
    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
        options.target = ways[i].target;
        options.no_offload = ways[i].no_offload;
        g_autoptr(KilnProgram) program = program_of(text, &options);
        g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
        bind(session, 0, x, sizeof x);
        bind(session, 1, w, sizeof w);
        run(session);
        expect_floats(session, 0, FLOATS(4, 5, 0, 0), DIMS(2, 2));
    }
}

Test(offload, off_11_printed_calls_run_on_every_target)
{
    check_printed(printed);
    check_printed(planned);
}

Test(offload, off_13_unknown_names)
{
    GError *error = NULL;
    static const char text[] = "func @f {\n  input @x : f32[2]\n  output @y : f32[2]\n"
                               "  call @nobody @out @y, @in @x\n}\n"
                               "declare @nobody(f32[2]) -> f32[2]\n";
    g_autoptr(KilnModel) model = model_of(text);
    cr_expect_null(kiln_program_compile(model, NULL, &error));
    expect_error(&error, KILN_ERROR_UNSUPPORTED,
                 "no region of the name @nobody is compiled, and its declaration has no body");
}

Test(offload, bodies_that_are_not_what_is_declared)
{
    GError *error = NULL;
    static const char text[] = "graph @f(%x: f32[2]) {\n  return %x\n}\n"
                               "declare @r(f32[2]) -> f32[3] body(%a: f32[2]) {\n"
                               "  %b = relu(%a) : f32[2]\n  return %b\n}\n";
    cr_expect_null(kiln_module_parse(text, strlen(text), "case.kiln", &error));
    expect_error(&error, KILN_ERROR_INVALID, "@r: its body has another signature than is declared");
}

/* Copies of nodes have no subgraphs: a region is copied when it is compiled, and when it goes back
 * inline. */
Test(offload, regions_have_no_subgraphs)
{
    GError *error = NULL;
    static const char region[] =
        "  %y = if(%c) then {\n    return %a\n  } else {\n"
        "    %n = neg(%a) : f32[2]\n    return %n\n  } : f32[2]\n  return %y\n}";
    g_autofree char *graph =
        g_strdup_printf("graph @f(%%c: bool[], %%a: f32[2]) {\n"
                        "%%r = vendor.graph @r(%%c, %%a) {\n%s : f32[2]\n  return %%r\n}\n",
                        region);
    g_autofree char *declared = g_strdup_printf(
        "graph @f(%%x: f32[2]) {\n  return %%x\n}\n"
        "declare @r(bool[], f32[2]) -> f32[2] body(%%c: bool[], %%a: f32[2]) {\n%s\n",
        region);
    cr_expect_null(kiln_module_parse(graph, strlen(graph), "case.kiln", &error));
    expect_error(&error, KILN_ERROR_INVALID, "y (if): a region for a vendor has no subgraphs");
    cr_expect_null(kiln_module_parse(declared, strlen(declared), "case.kiln", &error));
    expect_error(&error, KILN_ERROR_INVALID, "y (if): a region for a vendor has no subgraphs");
}

static void
expect_refused(const char *text, const char *message)
{
    GError *error = NULL;
    cr_expect_null(kiln_module_parse(text, strlen(text), "case.kiln", &error));
    expect_error(&error, KILN_ERROR_INVALID, message);
}

/* The same of bodies in them, and of calls: a region that called itself would have no end. */
Test(offload, regions_are_closed_to_the_last_body)
{
    expect_refused("graph @f(%c: bool[], %x: f32[2]) {\n"
                   "  %y = vendor.graph @r(%x) body(%a: f32[2]) {\n"
                   "    %s = custom_op @c(%a) body(%b: f32[2]) {\n"
                   "      %t = const @t : bool[]\n"
                   "      %i = if(%t) then {\n        %p = sin(%b) : f32[2]\n        return %p\n"
                   "      } else {\n        return %b\n      } : f32[2]\n      return %i\n"
                   "    } : f32[2]\n    return %s\n  } : f32[2]\n  return %y\n}\n"
                   "constants { @t = [true] : bool[] }\n",
                   "i (if): a region for a vendor has no subgraphs");
    expect_refused("graph @f(%x: f32[2]) {\n  %y = vendor.executable @r(%x) : f32[2]\n"
                   "  return %y\n}\n"
                   "declare @r(f32[2]) -> f32[2] body(%a: f32[2]) {\n"
                   "  %b = vendor.executable @r(%a) : f32[2]\n  return %b\n}\n",
                   "b (vendor.executable): a region for a vendor has no calls");
}

/* --- what the vendor computes, against own kernels --- */

typedef struct {
    const char *name;
    const char *text; /* constants are random; the first argument is the input */
    uint32_t calls;   /* regions that the vendor takes */
} Problem;

/* %m is %s scaled per channel, of @c channels of @size × @size pixels. */
#define SQUEEZED(c, size)                                                                          \
    "  %w = const @w : f32[" c ",3,3,3]\n  %d = const @d : f32[10," c ",1,1]\n"                    \
    "  %u = const @u : f32[" c ",10,1,1]\n"                                                        \
    "  %c = conv(%x, %w) {pads=[1,1,1,1]} : f32[1," c "," size "," size "]\n"                      \
    "  %s = swish(%c) : f32[1," c "," size "," size "]\n"                                          \
    "  %a = global_average_pool(%s) : f32[1," c ",1,1]\n"                                          \
    "  %e = conv(%a, %d) : f32[1,10,1,1]\n  %f = swish(%e) : f32[1,10,1,1]\n"                      \
    "  %h = conv(%f, %u) : f32[1," c ",1,1]\n  %g = sigmoid(%h) : f32[1," c ",1,1]\n"              \
    "  %m = mul(%s, %g) : f32[1," c "," size "," size "]\n"
#define SQUEEZED_WEIGHTS(c)                                                                        \
    W("w", "f32[" c ",3,3,3]") W("d", "f32[10," c ",1,1]") W("u", "f32[" c ",10,1,1]")

#define SCALED(size, results)                                                                      \
    "graph @f(%x: f32[1,3," size "," size "]) {\n" SQUEEZED(                                       \
        "40", size) "  %p = const @p : f32[32,40,1,1]\n  %y = conv(%m, %p) : f32[1,32," size       \
                    "," size "]\n  return " results "\n}\nconstants {\n" SQUEEZED_WEIGHTS("40")    \
                        W("p", "f32[32,40,1,1]") "}\n"

static const Problem problems[] = {
    { "convolution with bias and relu",
      "graph @f(%x: f32[1,32,9,11]) {\n"
      "  %w = const @w : f32[32,32,3,3]\n  %b = const @b : f32[32]\n"
      "  %c = conv(%x, %w, %b) {pads=[1,1,1,1]} : f32[1,32,9,11]\n"
      "  %y = relu(%c) : f32[1,32,9,11]\n  return %y\n}\n"
      "constants {\n" W("w", "f32[32,32,3,3]") W("b", "f32[32]") "}\n",
      1 },
    { "strides, dilations, uneven pads, odd channels",
      "graph @f(%x: f32[2,5,17,13]) {\n"
      "  %w = const @w : f32[7,5,3,2]\n"
      "  %y = conv(%x, %w) {dilations=[2,1], pads=[2,0,1,1], strides=[2,3]} : f32[2,7,8,5]\n"
      "  return %y\n}\n"
      "constants {\n" W("w", "f32[7,5,3,2]") "}\n",
      1 },
    { "depthwise with clip",
      "graph @f(%x: f32[1,24,10,10]) {\n"
      "  %w = const @w : f32[24,1,3,3]\n  %l = const @l : f32[]\n  %h = const @h : f32[]\n"
      "  %c = conv(%x, %w) {group=24, pads=[1,1,1,1]} : f32[1,24,10,10]\n"
      "  %y = clip(%c, %l, %h) : f32[1,24,10,10]\n  return %y\n}\n"
      "constants {\n" W("w", "f32[24,1,3,3]") "  @l = [0] : f32[]\n  @h = [1] : f32[]\n}\n",
      1 },
    { "residual that is read on, and one that dies",
      "graph @f(%x: f32[1,32,14,14]) {\n"
      "  %w = const @w : f32[32,32,3,3]\n"
      "  %a = conv(%x, %w) {pads=[1,1,1,1]} : f32[1,32,14,14]\n"
      "  %r = relu(%a) : f32[1,32,14,14]\n"
      "  %b = conv(%r, %w) {pads=[1,1,1,1]} : f32[1,32,14,14]\n"
      "  %s = add(%b, %r) : f32[1,32,14,14]\n"
      "  %t = relu(%s) : f32[1,32,14,14]\n"
      "  %c = conv(%t, %w) {pads=[1,1,1,1]} : f32[1,32,14,14]\n"
      "  %y = add(%r, %c) : f32[1,32,14,14]\n"
      "  %z = mul(%y, %t) : f32[1,32,14,14]\n  return %z\n}\n"
      "constants {\n" W("w", "f32[32,32,3,3]") "}\n",
      1 },
    { "residual and relu",
      "graph @f(%x: f32[1,64,28,28]) {\n"
      "  %w = const @w : f32[64,64,3,3]\n  %b = const @b : f32[64]\n"
      "  %a = conv(%x, %w, %b) {pads=[1,1,1,1]} : f32[1,64,28,28]\n"
      "  %c = conv(%a, %w, %b) {pads=[1,1,1,1]} : f32[1,64,28,28]\n"
      "  %s = add(%c, %a) : f32[1,64,28,28]\n"
      "  %y = relu(%s) : f32[1,64,28,28]\n  return %y\n}\n"
      "constants {\n" W("w", "f32[64,64,3,3]") W("b", "f32[64]") "}\n",
      1 },
    { "residual that is constant",
      "graph @f(%x: f32[1,3,32,32]) {\n"
      "  %w = const @w : f32[16,3,3,3]\n  %v = const @v : f32[96,16,4,4]\n"
      "  %p = const @p : f32[1,96,8,8]\n"
      "  %a = conv(%x, %w) {pads=[1,1,1,1]} : f32[1,16,32,32]\n"
      "  %b = relu(%a) : f32[1,16,32,32]\n"
      "  %c = conv(%b, %v) {strides=[4,4]} : f32[1,96,8,8]\n"
      "  %y = add(%c, %p) : f32[1,96,8,8]\n  return %y\n}\n"
      "constants {\n" W("w", "f32[16,3,3,3]") W("v", "f32[96,16,4,4]")
          W("p", "f32[1,96,8,8]") "}\n",
      1 },
    { "concat in place, read before and after",
      "graph @f(%x: f32[1,16,12,12]) {\n"
      "  %w = const @w : f32[32,16,3,3]\n  %v = const @v : f32[16,64,1,1]\n"
      "  %u = const @u : f32[32,32,3,3]\n"
      "  %a = conv(%x, %w) {pads=[1,1,1,1]} : f32[1,32,12,12]\n"
      "  %b = conv(%a, %u) {pads=[1,1,1,1]} : f32[1,32,12,12]\n"
      "  %c = concat(%b, %a) {axis=1} : f32[1,64,12,12]\n"
      "  %d = conv(%c, %v) : f32[1,16,12,12]\n"
      "  %e = max_pool(%a) {kernel_shape=[1,1]} : f32[1,32,12,12]\n"
      "  return %d, %e\n}\n"
      "constants {\n" W("w", "f32[32,16,3,3]") W("v", "f32[16,64,1,1]")
          W("u", "f32[32,32,3,3]") "}\n",
      1 },
    { "concat of odd channels",
      "graph @f(%x: f32[1,5,6,6]) {\n"
      "  %w = const @w : f32[3,5,1,1]\n  %v = const @v : f32[4,6,1,1]\n"
      "  %a = conv(%x, %w) : f32[1,3,6,6]\n  %b = relu(%a) : f32[1,3,6,6]\n"
      "  %c = concat(%a, %b) {axis=1} : f32[1,6,6,6]\n"
      "  %d = conv(%c, %v) : f32[1,4,6,6]\n  return %d\n}\n"
      "constants {\n" W("w", "f32[3,5,1,1]") W("v", "f32[4,6,1,1]") "}\n",
      1 },
    { "transposed convolution",
      "graph @f(%x: f32[1,16,7,7]) {\n"
      "  %w = const @w : f32[16,8,3,3]\n  %b = const @b : f32[8]\n"
      "  %y = conv_transpose(%x, %w, %b) {output_padding=[1,1], pads=[1,1,1,1], strides=[2,2]} "
      ": f32[1,8,14,14]\n  return %y\n}\n"
      "constants {\n" W("w", "f32[16,8,3,3]") W("b", "f32[8]") "}\n",
      1 },
    { "transposed convolution, bias and what follows, whole blocks",
      "graph @f(%x: f32[1,64,12,12]) {\n"
      "  %w = const @w : f32[64,32,2,2]\n  %b = const @b : f32[32]\n"
      "  %s = const @s : f32[32,1,1]\n"
      "  %t = conv_transpose(%x, %w, %b) {strides=[2,2]} : f32[1,32,24,24]\n"
      "  %r = relu(%t) : f32[1,32,24,24]\n  %m = mul(%r, %s) : f32[1,32,24,24]\n"
      "  %y = add(%m, %t) : f32[1,32,24,24]\n  return %y, %m\n}\n"
      "constants {\n" W("w", "f32[64,32,2,2]") W("b", "f32[32]") W("s", "f32[32,1,1]") "}\n",
      1 },
    { "transposed convolution, no bias, odd channels",
      "graph @f(%x: f32[2,20,6,6]) {\n"
      "  %w = const @w : f32[20,24,2,2]\n  %b = const @b : f32[24]\n"
      "  %t = conv_transpose(%x, %w) {strides=[2,2]} : f32[2,24,12,12]\n"
      "  %r = relu(%t) : f32[2,24,12,12]\n"
      "  %u = conv_transpose(%x, %w, %b) {strides=[2,2]} : f32[2,24,12,12]\n"
      "  %y = sigmoid(%u) : f32[2,24,12,12]\n  return %r, %y\n}\n"
      "constants {\n" W("w", "f32[20,24,2,2]") W("b", "f32[24]") "}\n",
      2 },
    { "transposed convolution in a concat",
      "graph @f(%x: f32[1,16,8,8]) {\n"
      "  %w = const @w : f32[16,16,2,2]\n  %b = const @b : f32[16]\n"
      "  %v = const @v : f32[16,32,3,3]\n"
      "  %t = conv_transpose(%x, %w, %b) {strides=[2,2]} : f32[1,16,16,16]\n"
      "  %r = relu(%t) : f32[1,16,16,16]\n"
      "  %q = max_pool(%r) {kernel_shape=[3,3], pads=[1,1,1,1]} : f32[1,16,16,16]\n"
      "  %c = concat(%r, %q) {axis=1} : f32[1,32,16,16]\n"
      "  %y = conv(%c, %v) {pads=[1,1,1,1]} : f32[1,16,16,16]\n  return %y\n}\n"
      "constants {\n" W("w", "f32[16,16,2,2]") W("b", "f32[16]") W("v", "f32[16,32,3,3]") "}\n",
      1 },
    { "a convolution and a transposed one with the same weights",
      "graph @f(%x: f32[1,24,6,5,6]) {\n"
      "  %w = const @w : f32[24,24,1,1,1]\n  %b = const @b : f32[24]\n"
      "  %c = conv(%x, %w) : f32[1,24,6,5,6]\n"
      "  %y = conv_transpose(%c, %w, %b) : f32[1,24,6,5,6]\n  return %y\n}\n"
      "constants {\n" W("w", "f32[24,24,1,1,1]") W("b", "f32[24]") "}\n",
      1 },
    { "pools that round up, pad and average",
      "graph @f(%x: f32[1,16,13,13]) {\n"
      "  %w = const @w : f32[16,16,1,1]\n"
      "  %a = conv(%x, %w) : f32[1,16,13,13]\n"
      "  %p = max_pool(%a) {ceil_mode=true, kernel_shape=[3,3], strides=[2,2]} : f32[1,16,6,6]\n"
      "  %q = average_pool(%p) {kernel_shape=[3,3], pads=[1,1,1,1]} : f32[1,16,6,6]\n"
      "  %r = average_pool(%q) {count_include_pad=true, kernel_shape=[3,3], pads=[1,1,1,1]} "
      ": f32[1,16,6,6]\n"
      "  %y = global_average_pool(%r) : f32[1,16,1,1]\n  return %y\n}\n"
      "constants {\n" W("w", "f32[16,16,1,1]") "}\n",
      1 },
    { "gemm, transposed weights, activations",
      "graph @f(%x: f32[3,40]) {\n"
      "  %w = const @w : f32[24,40]\n  %b = const @b : f32[24]\n"
      "  %g = gemm(%x, %w, %b) {transB=true} : f32[3,24]\n"
      "  %h = gelu(%g) : f32[3,24]\n  %s = sigmoid(%h) : f32[3,24]\n"
      "  %y = tanh(%s) : f32[3,24]\n  return %y\n}\n"
      "constants {\n" W("w", "f32[24,40]") W("b", "f32[24]") "}\n",
      1 },
    { "matmul of a batch with one matrix, residual",
      "graph @f(%x: f32[2,6,16]) {\n"
      "  %w = const @w : f32[16,16]\n  %b = const @b : f32[16]\n"
      "  %m = matmul(%x, %w) : f32[2,6,16]\n  %a = add(%m, %b) : f32[2,6,16]\n"
      "  %y = add(%x, %a) : f32[2,6,16]\n  return %y\n}\n"
      "constants {\n" W("w", "f32[16,16]") W("b", "f32[16]") "}\n",
      1 },
    { "matmul of two values",
      "graph @f(%x: f32[2,6,6]) {\n"
      "  %y = matmul(%x, %x) : f32[2,6,6]\n  return %y\n}\n",
      1 },
    { "squeeze and excitation: own activations, a scale in weights of odd channels",
      SCALED("40", "%y"), 1 },
    { "a scale in weights, and what is scaled is a residual",
      "graph @f(%x: f32[1,3,40,40]) {\n" SQUEEZED(
          "48", "40") "  %p = const @p : f32[48,48,1,1]\n  %r = conv(%m, %p) : f32[1,48,40,40]\n"
                      "  %q = add(%r, %s) : f32[1,48,40,40]\n"
                      "  %y = global_average_pool(%q) : f32[1,48,1,1]\n  return %y\n}\n"
                      "constants {\n" SQUEEZED_WEIGHTS("48") W("p", "f32[48,48,1,1]") "}\n",
      1 },
    { "two activations of one algorithm behind one convolution",
      "graph @f(%x: f32[1,3,4,4]) {\n"
      "  %w = const @w : f32[3,3,3,3]\n  %c = conv(%x, %w) {pads=[1,1,1,1]} : f32[1,3,4,4]\n"
      "  %r = relu(%c) : f32[1,3,4,4]\n  %s = add(%x, %r) : f32[1,3,4,4]\n"
      "  %y = leaky_relu(%s) {alpha=0.5} : f32[1,3,4,4]\n  return %y\n}\n"
      "constants {\n" W("w", "f32[3,3,3,3]") "}\n",
      1 },
    { "transposed convolution to blocks that are not full, with bias and activation",
      "graph @f(%x: f32[1,32,4,16]) {\n"
      "  %w = const @w : f32[32,24,1,1]\n  %b = const @b : f32[24]\n"
      "  %t = conv_transpose(%x, %w, %b) : f32[1,24,4,16]\n"
      "  %y = relu(%t) : f32[1,24,4,16]\n  return %y\n}\n"
      "constants {\n" W("w", "f32[32,24,1,1]") W("b", "f32[24]") "}\n",
      1 },
    { "transposed convolution to one channel, with bias",
      "graph @f(%x: f32[1,16,3,3]) {\n"
      "  %w = const @w : f32[16,1,2,1]\n  %b = const @b : f32[1]\n"
      "  %y = conv_transpose(%x, %w, %b) {output_padding=[0,1], strides=[2,2]} : f32[1,1,6,6]\n"
      "  return %y\n}\n"
      "constants {\n" W("w", "f32[16,1,2,1]") W("b", "f32[1]") "}\n",
      1 },
    { "what the library has no convolution or product with behind it",
      "graph @f(%x: f32[1,32,7,14], %r: f32[14], %m: f32[20,64], %q: f32[20,1]) {\n"
      "  %w = const @w : f32[32,32,3,3]\n  %v = const @v : f32[32,32,3,3]\n"
      "  %u = const @u : f32[64,48]\n"
      "  %c = conv(%x, %w) {pads=[1,1,1,1]} : f32[1,32,7,14]\n"
      "  %s = relu(%c) : f32[1,32,7,14]\n  %a = add(%s, %r) : f32[1,32,7,14]\n"
      "  %d = conv(%a, %v) {pads=[1,1,1,1]} : f32[1,32,7,14]\n"
      "  %y = mul(%d, %r) : f32[1,32,7,14]\n"
      "  %p = matmul(%m, %u) : f32[20,48]\n  %n = mul(%p, %q) : f32[20,48]\n"
      "  %z = relu(%n) : f32[20,48]\n  return %y, %z\n}\n"
      "constants {\n" W("w", "f32[32,32,3,3]") W("v", "f32[32,32,3,3]") W("u", "f32[64,48]") "}\n",
      2 },
    { "channels last, a sum of so many products that `brgconv` cuts it by the number of threads",
      "graph @f(%x: f32[1,1024,7,7]) {\n"
      "  %w = const @w : f32[64,1024,3,3]\n  %p = pack(%x) : f32[1,1024,7,7]:acdb\n"
      "  %y = vendor.graph @r(%p, %w)\n"
      "    body(%a: f32[1,1024,7,7]:acdb, %v: f32[64,1024,3,3] constant=compile) {\n"
      "    %u = unpack(%a) : f32[1,1024,7,7]\n"
      "    %c = conv(%u, %v) {pads=[1,1,1,1]} : f32[1,64,7,7]\n    return %c\n"
      "  } : f32[1,64,7,7]\n  return %y\n}\n"
      "constants {\n" W("w", "f32[64,1024,3,3]") "}\n",
      1 },
    { "the logarithm of what is certain",
      "graph @f(%x: f32[64,1]) {\n  %y = log_softmax(%x) : f32[64,1]\n  return %y\n}\n", 0 },
    { "convolution of rank 5",
      "graph @f(%x: f32[1,4,5,6,7]) {\n"
      "  %w = const @w : f32[8,4,3,3,3]\n"
      "  %y = conv(%x, %w) {pads=[1,1,1,1,1,1]} : f32[1,8,5,6,7]\n  return %y\n}\n"
      "constants {\n" W("w", "f32[8,4,3,3,3]") "}\n",
      1 },
};

static void
check_problem(const Problem *problem)
{
    g_autoptr(KilnProgram) alone = offload_program(problem->text, NULL, 1);
    g_autoptr(KilnProgram) offloading = offload_program(problem->text, OFFLOAD, 1);
    uint32_t calls = offload_calls(offloading);
    cr_expect_eq(offload_calls(alone), 0u);
    if (offload_has_all())
        cr_expect_eq(calls, problem->calls, "%s: expected %u calls, found %u", problem->name,
                     problem->calls, calls);
    g_autoptr(GArray) own = offload_outputs(alone), one = offload_outputs(offloading);
    offload_agrees(own, one, problem->name);
    offload_same_bits(problem->text, OFFLOAD, one, problem->name);
}

Test(offload, off_10_vendor_agrees_with_own_kernels)
{
    if (!offload_has_vendor())
        cr_skip_test("built without a vendor library");
    for (size_t i = 0; i < G_N_ELEMENTS(problems); i++)
        check_problem(&problems[i]);
}

Test(offload, off_10_workspace_is_in_the_memory_plan)
{
    if (!offload_has_vendor())
        cr_skip_test("built without a vendor library");
    g_autoptr(KilnProgram) program = offload_program(problems[0].text, OFFLOAD, 0);
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    for (uint32_t c = 0; c < made->n_calls; c++) {
        const KilnBoundCall *call = &made->calls[c];
        if (call->instr->kind != KILN_INSTR_call)
            continue;
        size_t need = call->kernel->scratch_bytes(call->instr, call->form, program->threads);
        cr_expect_gt(need, 0u);
        cr_expect_geq(call->scratch_offset, 0);
        cr_expect_leq(call->scratch_offset + (int64_t)need, made->plan->arena);
        /* Weights lie packed, and no call reads them plain. */
        cr_expect_gt(call->packed_bytes, 0u);
        cr_expect_null(made->weights[0]);
    }
}

/* What the one region that @text becomes is made of; skips the test where the library has no
 * kernels for AVX-512. */
static char *
steps_of(const char *text)
{
    if (!offload_has_all())
        cr_skip_test("needs the vendor library and its kernels for AVX-512");
    g_autoptr(KilnProgram) program = offload_program(text, OFFLOAD, 1);
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    cr_assert_eq(made->n_calls, 1u);
    const KilnCompiled *compiled = kiln_call_compiled(made->calls[0].instr);
    GString *steps = g_string_new(NULL);
    compiled->vendor->describe(compiled, steps);
    return g_string_free(steps, FALSE);
}

/* With a bias or a tail inside, the library's transposed convolution takes many times as long; the
 * layout is the one that the models weigh it in. */
Test(offload, off_10_transposed_convolutions_have_steps_for_what_follows)
{
    g_autofree char *steps =
        steps_of("graph @f(%x: f32[1,64,64,64]) {\n"
                 "  %w = const @w : f32[64,32,2,2]\n  %b = const @b : f32[32]\n"
                 "  %t = conv_transpose(%x, %w, %b) {strides=[2,2]} : f32[1,32,128,128]\n"
                 "  %y = relu(%t) : f32[1,32,128,128]\n  return %y\n}\n"
                 "constants {\n" W("w", "f32[64,32,2,2]") W("b", "f32[32]") "}\n");
    const char *conv = strstr(steps, "conv_transpose f32[64,32,2,2] in blocks: jit");
    cr_assert(conv, "%s", steps);
    cr_expect(strstr(conv, "bias: jit"), "%s", steps);
}

/* A scale per channel goes into the weights behind it, and own kernels apply SiLU, where there are
 * pixels enough; a scaled value that something else reads is computed. */
Test(offload, off_10_big_maps_are_neither_scaled_nor_activated_by_the_library)
{
    g_autofree char *big = steps_of(SCALED("40", "%y")), *small = steps_of(SCALED("8", "%y"));
    g_autofree char *read = steps_of(SCALED("40", "%y, %m"));
    cr_expect(strstr(big, "custom_op: cpu:binary\nconv f32[32,40,1,1]"), "%s", big);
    cr_expect(strstr(big, "conv f32[40,3,3,3] in blocks: jit:avx512_core\ncustom_op: cpu:unary"),
              "%s", big);
    cr_expect_null(strstr(big, "mul:"), "%s", big);
    cr_expect(strstr(small, "mul: jit"), "%s", small);
    cr_expect_null(strstr(small, "custom_op"), "%s", small);
    cr_expect(strstr(read, "mul: jit"), "%s", read);
    cr_expect_null(strstr(read, "cpu:binary"), "%s", read);
}
