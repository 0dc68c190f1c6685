/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and products with tails have the bits of the instructions that the tails stand for:
 * every kernel, every activation, with a residual apart and in the place of the result: of numbers
 * on one thread, and on three with zeros of both signs, infinities and NaNs between them. */
#include "backends/cpu/cpu.h"
#include "exec/eval.h"
#include "exec/interpret.h"
#include "ir/tail.h"
#include "passes/context/options.h"
#include "passes/manager/manager.h"
#include "passes/manager/numerics.h"
#include "passes/manager/results.h"
#include "passes/pass.h"
#include "passes/pipeline/pipeline.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

typedef struct {
    const char *product, *attrs; /* of %a from @x and @w, without the closing brace */
    const char *x, *w, *y;       /* dims */
    bool no_residual;            /* the kernel adds none */
} Product;

static const Product products[] = {
    { "conv", "pads=[1,1,1,1]", "1,64,9,11", "20,64,3,3", "1,20,9,11", false },
    { "conv", "pads=[1,1,1,1], algorithm=\"winograd\"", "2,8,18,37", "24,8,3,3", "2,24,18,37",
      false },
    { "conv", "pads=[1,1,1,1], algorithm=\"winograd\"", "1,4,6,270", "5,4,3,3", "1,5,6,270",
      false },
    { "conv", "group=1", "1,300,6,6", "31,300,1,1", "1,31,6,6", false },
    { "conv", "group=1", "2,300,3,3", "70,300,1,1", "2,70,3,3", false },
    { "conv", "group=1", "1,300,1,1", "70,300,1,1", "1,70,1,1", false },
    { "conv", "strides=[2,2], group=2", "1,12,17,15", "8,6,3,3", "1,8,8,7", false },
    { "conv", "pads=[1,1,1,1], group=6", "1,6,13,35", "6,1,3,3", "1,6,13,35", false },
    { "conv", "pads=[1,1,1,1], strides=[2,2], group=6", "1,6,13,35", "12,1,3,3", "1,12,7,18",
      false },
    { "conv", "pads=[2,2], dilations=[2]", "1,20,50", "30,20,3", "1,30,50", false },
    { "conv", "strides=[1,2,2]", "1,3,4,9,9", "5,3,2,3,3", "1,5,3,4,4", false },
    { "conv_transpose", "strides=[2,2]", "1,20,7,9", "20,6,2,2", "1,6,14,18", true },
    { "conv_transpose", "pads=[1,1,1,1], group=2", "1,6,7,9", "6,3,3,3", "1,6,7,9", true },
    { "gemm", "transB=true", "5,700", "37,700", "5,37", false },
    { "gemm", "alpha=0.5", "40,300", "300,4", "40,4", false },
    { "gemm", "transA=true", "20,33", "20,70", "33,70", false },
    { "matmul", "activation=\"none\"", "2,3,9,600", "600,33", "2,3,9,33", false },
    { "matmul", "activation=\"none\"", "3,9,40", "3,40,33", "3,9,33", false },
};

/* Behind the sums: from SUM to @y. */
static const char *const activations[] = {
    NULL,
    "relu @out @y, @in SUM",
    "clip @out @y, @in SUM, @in @low, @in @high",
    "leaky_relu @out @y, @in SUM {alpha=0.3}",
    "elu @out @y, @in SUM {alpha=0.7}",
    "sigmoid @out @y, @in SUM",
    "hard_sigmoid @out @y, @in SUM",
    "tanh @out @y, @in SUM",
    "swish @out @y, @in SUM",
    "hard_swish @out @y, @in SUM",
    "mish @out @y, @in SUM",
    "softplus @out @y, @in SUM",
    "gelu @out @y, @in SUM",
    "gelu @out @y, @in SUM {approximate=\"tanh\"}",
};

/* The residual is computed first, and dies where it is added; more than a tail's scratch may take
 * lives before. */
static char *
text_of(const Product *p, const char *activation, bool residual)
{
    GString *text = g_string_new("func @f {\n  weight @w : f32[WEIGHTS] const\n"
                                 "  weight @low : f32[] const\n  weight @high : f32[] const\n"
                                 "  input @x : f32[DATA]\n  input @z : f32[RESULT]\n"
                                 "  output @y : f32[RESULT]\n"
                                 "  %room = alloc : f32[262144]\n"
                                 "  expand @out %room, @in @low\n  dealloc %room\n"
                                 "  %r = alloc : f32[RESULT]\n  neg @out %r, @in @z\n");
    if (residual || activation)
        g_string_append(text, "  %a = alloc : f32[RESULT]\n");
    g_string_append(text, "  PRODUCT\n");
    if (residual && activation)
        g_string_append(text, "  %s = alloc : f32[RESULT]\n");
    if (residual)
        g_string_append_printf(text, "  add @out %s, @in %%a, @in %%r\n", activation ? "%s" : "@y");
    g_string_append_printf(text, "  dealloc %%r\n  %s\n", activation ? activation : "");
    g_string_append(text, residual || activation ? "  dealloc %a\n" : "");
    g_string_append(text, residual && activation ? "  dealloc %s\n" : "");
    g_string_append(text, "}\nconstants {\n"
                          "  @w = random_normal(seed=3, std=0.1) : f32[WEIGHTS]\n"
                          "  @low = splat(-0.5) : f32[]\n  @high = splat(0.75) : f32[]\n}\n");
    g_autofree char *product =
        g_strdup_printf("%s @out %%a, @in @x, @in @w {%s}", p->product, p->attrs);
    g_string_replace(text, "PRODUCT", product, 0);
    g_string_replace(text, "WEIGHTS", p->w, 0);
    g_string_replace(text, "DATA", p->x, 0);
    g_string_replace(text, "RESULT", p->y, 0);
    g_string_replace(text, "SUM", residual ? "%s" : "%a", 0);
    return g_string_free(text, FALSE);
}

static KilnIRModule *
parse_and_run(const char *text, const char *passes)
{
    g_autoptr(GError) error = NULL;
    KilnIRModule *module = kiln_ir_module_parse(text, strlen(text), "text", &error);
    cr_assert(module, "%s\n%s", error ? error->message : "", text);
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_parse_inline(passes, &error);
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = kiln_cpu_target();
    bool good = pipeline && kiln_pipeline_run_ir(pipeline, module, &options, NULL, &error);
    cr_assert(good, "%s\n%s", error ? error->message : "", text);
    return module;
}

/* The data has few numbers that spread over what is computed of them, the residual many. */
static GPtrArray *
inputs_of(const KilnIRModule *module, bool specials)
{
    static const float values[] = { 0.0f, -0.0f, INFINITY, NAN, -INFINITY };
    g_autoptr(GError) error = NULL;
    GPtrArray *inputs = kiln_ir_random_inputs(g_ptr_array_index(module->functions, 0), 1, &error);
    cr_assert(inputs, "%s", error ? error->message : "");
    for (guint i = 0; specials && i < inputs->len; i++) {
        KilnTensor *tensor = g_ptr_array_index(inputs, i);
        size_t size;
        g_autofree float *x = g_bytes_unref_to_data(g_steal_pointer(&tensor->bytes), &size);
        const size_t n = size / sizeof *x;
        for (size_t k = 0; k < n; k += 2 + k % 5)
            x[k] = values[i == 0 ? k % 2 : k % 5];
        for (size_t k = 2; i == 0 && k < 5; k++)
            x[n * k / 6] = values[k];
        tensor->bytes = g_bytes_new_take(g_steal_pointer(&x), size);
    }
    return inputs;
}

static KilnTensor *
result_of(KilnIRModule *module, const GPtrArray *inputs, int threads)
{
    g_autoptr(GError) error = NULL;
    KilnIRFunction *function = g_ptr_array_index(module->functions, 0);
    KilnMemoryPlan *plan = kiln_memory_plan(function, kiln_cpu_target(), threads, &error);
    cr_assert(plan, "%s", error ? error->message : "");
    kiln_memory_plan_free(plan);
    KilnTensor *result = NULL;
    const KilnInterpretation run = { .evaluate = kiln_graph_evaluate,
                                     .inputs = (const KilnTensor *const *)inputs->pdata,
                                     .outputs = &result,
                                     .threads = threads,
                                     .poison = true,
                                     .planned = true };
    cr_assert(kiln_ir_interpret(function, kiln_cpu_target(), &run, &error), "%s",
              error ? error->message : "");
    return result;
}

/* What became of the product, which is the only instruction left beside those in front of it; with
 * @in_place its result lies where the residual did. */
static void
expect_fused(const KilnIRModule *module, const Product *p, bool residual, bool in_place)
{
    uint32_t n = 0;
    kiln_foreach_instr (instr, (KilnIRFunction *)g_ptr_array_index(module->functions, 0)) {
        if (kiln_instr_is_bookkeeping(instr) || instr->kind == KILN_INSTR_neg ||
            instr->kind == KILN_INSTR_expand)
            continue;
        uint32_t operand = kiln_tail_operand(instr->kind);
        n++;
        cr_expect_str_eq(kiln_instr_info(instr->kind)->name, p->product);
        if (residual && in_place)
            cr_expect_eq(instr->operands[0].buffer, instr->operands[operand].buffer);
    }
    cr_expect_eq(n, 1);
}

static void
check(const Product *p, const char *activation, bool residual)
{
    static const char *const pipelines[] = { "fuse-tails", "fuse-tails,share-buffers" };
    g_autofree char *text = text_of(p, activation, residual);
    g_autoptr(KilnIRModule) apart = parse_and_run(text, "ir-peephole");
    for (int specials = 0; specials < 2; specials++) {
        g_autoptr(GPtrArray) inputs = inputs_of(apart, specials);
        g_autoptr(KilnTensor) expected = result_of(apart, inputs, 1);
        for (size_t i = 0; i < G_N_ELEMENTS(pipelines); i++) {
            g_autoptr(KilnIRModule) fused = parse_and_run(text, pipelines[i]);
            const int threads = specials ? 3 : 1;
            g_autoptr(KilnTensor) found = result_of(fused, inputs, threads);
            g_autoptr(GError) error = NULL;
            cr_expect(kiln_compare_numerics(expected, found, KILN_NUMERICS_E, NULL, &error),
                      "%s, %d threads\n%s", error ? error->message : "", threads, text);
            if (!residual || !p->no_residual)
                expect_fused(fused, p, residual, i == 1);
        }
    }
}

Test(cpu_tails, bits_of_the_instructions_that_they_stand_for)
{
    for (size_t i = 0; i < G_N_ELEMENTS(products); i++) {
        for (size_t k = 0; k < G_N_ELEMENTS(activations); k++) {
            check(&products[i], activations[k], true);
            if (activations[k])
                check(&products[i], activations[k], false);
        }
    }
}
