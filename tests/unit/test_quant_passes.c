/* SPDX-License-Identifier: Apache-2.0 */
/* What passes of quantized graphs claim - the same bits, or at most one step apart - for every
 * stored byte, or every pair of them, and many parameters: the graph is evaluated before and after
 * on the reference. In the texts `$a[256]` is a type of that shape and parameters that vary. */
#include "backends/ref/ref.h"
#include "exec/eval.h"
#include "graph/base/number.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/manager.h"
#include "passes/pipeline/pipeline.h"
#include "passes/rule.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

typedef struct {
    const char *dtype, *quant;
} Parameters;

/* Ranges within each other, across each other, far narrower and far wider ones, ends at 0. */
static const Parameters parameters[] = {
    { "i8", "q(0.1,3)" },     { "i8", "q(0.05,-128)" }, { "u8", "q(0.1,128)" },
    { "i8", "q(0.2,0)" },     { "u8", "q(0.15,0)" },    { "i8", "q(0.12,100)" },
    { "i8", "q(0.0625,-7)" }, { "i8", "q(0.125,-7)" },  { "u8", "q(3,17)" },
    { "i8", "q(0.001,127)" },
};

enum {
    N_PARAMETERS = sizeof parameters / sizeof parameters[0],
    MAX_VARIED = 4,
};

typedef struct {
    const char *passes;
    uint32_t flags;
    int64_t steps;   /* how far stored results may move; floats: 0 or half a step of type a */
    int n_varied;    /* $a, $b, … */
    uint32_t rarely; /* every which combination is tried; 1: all */
    const char *text;
} Claim;

/* --- text and inputs --- */

/* The text with types in place of `$a[…]`. */
static char *
expand(const Claim *claim, const Parameters *const *chosen)
{
    GString *text = g_string_new(NULL);
    for (const char *at = claim->text; *at; at++) {
        const char *end = *at == '$' ? strchr(at, ']') : NULL;
        if (!end) {
            g_string_append_c(text, *at);
            continue;
        }
        const Parameters *p = chosen[at[1] - 'a'];
        g_string_append_printf(text, "%s%.*s %s", p->dtype, (int)(end - at - 1), at + 2, p->quant);
        at = end;
    }
    return g_string_free(text, FALSE);
}

/* Stored: 0, 1, … 255 as the element type has them. Floats: eighths of a step of 0.1 around 0. */
static KilnTensor *
input(const KilnType *type)
{
    KilnType plain = *type;
    plain.quant = NULL;
    g_autofree char *bytes = g_malloc0((size_t)kiln_type_bytes(&plain) + 1);
    int64_t n = kiln_type_elements(&plain);
    for (int64_t i = 0; i < n; i++) {
        bool is_float = kiln_dtype_is_float(plain.dtype);
        double number = is_float ? (double)(i - n / 2) / 80 : (double)(i % 256);
        number -= plain.dtype == KILN_DTYPE_i8 ? 128 : 0;
        kiln_element_store_f64(plain.dtype, bytes, i, number);
    }
    return kiln_tensor_new_copy(&plain, bytes, NULL);
}

static void
tensor_free(gpointer tensor)
{
    kiln_tensor_free(tensor);
}

static GPtrArray *
evaluate(const KilnModule *module)
{
    const KilnFunction *function = kiln_module_entry(module);
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func(tensor_free);
    for (guint i = 0; i < function->arguments->len; i++)
        g_ptr_array_add(inputs, input(&kiln_function_argument(function, i)->value.type));
    guint n = function->result_names->len;
    GPtrArray *outputs = g_ptr_array_new_with_free_func(tensor_free);
    g_ptr_array_set_size(outputs, (gint)n);
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_graph_evaluate(function, kiln_ref_target(),
                                  (const KilnTensor *const *)inputs->pdata,
                                  (KilnTensor **)outputs->pdata, &error),
              "%s", error ? error->message : "");
    return outputs;
}

/* --- the claim --- */

/* True where the pass changed something; where @only is given, by this rule alone. */
static bool
run(const Claim *claim, const char *only, KilnModule *module, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_parse_inline(claim->passes, &error);
    cr_assert(pipeline, "%s", error ? error->message : "");
    pipeline->flags = claim->flags;
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = kiln_ref_target();
    options.check_changed = true;
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    cr_assert(kiln_pipeline_run_graph(pipeline, module, &options, report, &error), "%s\n%s",
              error ? error->message : "", text);
    bool changed = false, other = false;
    for (guint i = 0; i < report->passes->len; i++) {
        const KilnPassStats *stats = g_ptr_array_index(report->passes, i);
        changed |= stats->changed > 0;
        for (guint k = 0; only && k < stats->rules->len; k++) {
            const KilnRuleStats *rule = g_ptr_array_index(stats->rules, k);
            other |= rule->fired > 0 && strcmp(rule->name, only) != 0;
        }
    }
    return changed && !other;
}

static void
compare(const Claim *claim, const KilnTensor *before, const KilnTensor *after, const char *text)
{
    g_autoptr(GBytes) a = kiln_tensor_view(before, NULL), b = kiln_tensor_view(after, NULL);
    cr_assert(kiln_type_equal(&before->type, &after->type));
    for (int64_t i = 0; i < kiln_type_elements(&before->type); i++) {
        double x = kiln_element_as_f64(before->type.dtype, g_bytes_get_data(a, NULL), i);
        double y = kiln_element_as_f64(before->type.dtype, g_bytes_get_data(b, NULL), i);
        cr_assert(fabs(x - y) <= (double)claim->steps, "element %d: %g became %g\n%s", (int)i, x, y,
                  text);
    }
}

/* True where the pass changed something for these parameters. */
static bool
try_one(const Claim *claim, const char *rule, const Parameters *const *chosen)
{
    g_autofree char *text = expand(claim, chosen);
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = kiln_module_parse(text, strlen(text), "claim", &error);
    cr_assert(module, "%s\n%s", error ? error->message : "", text);
    g_autoptr(KilnModule) changed = kiln_module_clone(module);
    if (!run(claim, rule, changed, text))
        return false;
    g_autoptr(GPtrArray) before = evaluate(module), after = evaluate(changed);
    for (guint i = 0; i < before->len; i++)
        compare(claim, g_ptr_array_index(before, i), g_ptr_array_index(after, i), text);
    return true;
}

/* Every combination of parameters; at least @least of them are changed, and not all where @some.
 * Where @rule is given, only those count that no other rule changes. */
static void
holds_of_rule(const Claim *claim, const char *rule, uint32_t least, bool some)
{
    uint32_t combinations = 1, changed = 0, tried = 0;
    for (int i = 0; i < claim->n_varied; i++)
        combinations *= N_PARAMETERS;
    for (uint32_t c = 0; c < combinations; c += claim->rarely) {
        const Parameters *chosen[MAX_VARIED] = { NULL };
        for (uint32_t i = 0, rest = c; i < MAX_VARIED; i++, rest /= N_PARAMETERS)
            chosen[i] = &parameters[rest % N_PARAMETERS];
        changed += try_one(claim, rule, chosen);
        tried++;
    }
    cr_expect_geq(changed, least, "%s: %u of %u", claim->passes, changed, tried);
    cr_expect(!some || changed < tried, "%s: always", claim->passes);
}

static void
holds(const Claim *claim, uint32_t least, bool some)
{
    holds_of_rule(claim, NULL, least, some);
}

/* --- class E --- */

Test(quant_passes, GLW_Q1_same_is_dropped)
{
    holds(&(Claim){ "optimize-quantization", 0, 0, 1, 1,
                    "graph @f(%x: $a[256]) {\n"
                    "  %d = dequantize_linear(%x) : f32[256]\n"
                    "  %q = quantize_linear(%d) : $a[256]\n"
                    "  return %q\n}\n" },
          N_PARAMETERS, false);
}

Test(quant_passes, GLW_Q5_rescale_through_max)
{
    holds(&(Claim){ "rescale-through-max", 0, 0, 2, 1,
                    "graph @f(%x: $a[256,1], %y: $a[256]) {\n"
                    "  %m = max(%x, %y) : $a[256,256]\n"
                    "  %r = rescale_quantized(%m) : $b[256,256]\n"
                    "  return %r\n}\n" },
          N_PARAMETERS * N_PARAMETERS, false);
    holds(&(Claim){ "rescale-through-max", 0, 0, 2, 7,
                    "graph @f(%x: $a[256,1], %y: $a[256]) {\n"
                    "  %m = min(%x, %y) : $a[256,256]\n"
                    "  %r = rescale_quantized(%m) : $b[256,256]\n"
                    "  return %r\n}\n" },
          10, false);
}

Test(quant_passes, GLW_Q8_rescale_below_movement_and_max_pool)
{
    holds(&(Claim){ "sink-rescale", 0, 0, 2, 1,
                    "graph @f(%x: $a[1,2,8,16]) {\n"
                    "  %r = rescale_quantized(%x) : $b[1,2,8,16]\n"
                    "  %t = transpose(%r) {perm=[0,3,1,2]} : $b[1,16,2,8]\n"
                    "  %p = max_pool(%t) {kernel_shape=[2,3], pads=[1,2,0,1], strides=[1,2]} : "
                    "$b[1,16,2,5]\n"
                    "  return %p\n}\n" },
          N_PARAMETERS * N_PARAMETERS, false);
}

Test(quant_passes, GLW_Q10_remove_max_splat)
{
    holds(&(Claim){ "remove-max-splat", 0, 0, 2, 1,
                    "graph @f(%x: $a[256]) {\n"
                    "  %c = const @c : $b[]\n"
                    "  %m = max(%x, %c) : $a[256]\n"
                    "  %n = min(%m, %c) : $a[256]\n"
                    "  %d = const @d : $b[]\n"
                    "  %o = max(%d, %x) : $a[256]\n"
                    "  return %n, %o\n}\n"
                    "constants {\n"
                    "  @c = [0] : $b[]\n"
                    "  @d = [100] : $b[]\n}\n" },
          4, true);
}

Test(quant_passes, N11_identity_relu_and_clip)
{
    holds(&(Claim){ "remove-identity-relu,remove-identity-clip", 0, 0, 2, 1,
                    "graph @f(%x: $a[256], %y: $b[256]) {\n"
                    "  %lo = const @lo : f32[]\n"
                    "  %hi = const @hi : f32[]\n"
                    "  %r = relu(%x) : $a[256]\n"
                    "  %c = clip(%y, %lo, %hi) : $b[256]\n"
                    "  %s = relu(%x) : $b[256]\n"
                    "  return %r, %c, %s\n}\n"
                    "constants {\n  @lo = [-13] : f32[]\n  @hi = [38.25] : f32[]\n}\n" },
          4, true);
}

Test(quant_passes, clips_that_quantization_does)
{
    holds(&(Claim){ "optimize-quantize-clip", 0, 0, 1, 1,
                    "graph @f(%x: f32[5000], %y: $a[256]) {\n"
                    "  %lo = const @lo : f32[]\n"
                    "  %hi = const @hi : f32[]\n"
                    "  %c = clip(%x, %lo, %hi) : f32[5000]\n"
                    "  %q = quantize_linear(%c) : $a[5000]\n"
                    "  %d = dequantize_linear(%y) : f32[256]\n"
                    "  %e = clip(%d, %lo, %hi) : f32[256]\n"
                    "  return %q, %e\n}\n"
                    "constants {\n  @lo = [-13.07] : f32[]\n  @hi = [25.28] : f32[]\n}\n" },
          4, true);
}

Test(quant_passes, GLW_Q6_rescale_of_literal)
{
    holds(&(Claim){ "combine-rescale-up", 0, 0, 2, 1,
                    "graph @f() {\n"
                    "  %c = const @c : $a[6]\n"
                    "  %r = rescale_quantized(%c) : $b[6]\n"
                    "  return %r\n}\n"
                    "constants { @c = [0, 1, 5, 77, 126, 127] : $a[6] }\n" },
          N_PARAMETERS * N_PARAMETERS, false);
}

Test(quant_passes, GLW_Q4_quantize_of_literal)
{
    holds(&(Claim){ "quantize-constants", 0, 0, 1, 1,
                    "graph @f() {\n"
                    "  %c = const @c : f32[9]\n"
                    "  %r = quantize_linear(%c) : $a[9]\n"
                    "  return %r\n}\n"
                    "constants { @c = [0, -0.0, 0.15, 0.25, -0.35, 1e30, -inf, nan, 7.05] : f32[9] "
                    "}\n" },
          N_PARAMETERS, false);
}

Test(quant_passes, relu_of_dequantized)
{
    holds(&(Claim){ "quant-fc-float-relu", 0, 0, 2, 1,
                    "graph @f(%x: $a[256,1], %y: $a[256,1]) {\n"
                    "  %w = const @w : i8[1,1] q(0.5,0)\n"
                    "  %m = matmul(%x, %w) : $b[256,1]\n"
                    "  %d = dequantize_linear(%m) : f32[256,1]\n"
                    "  %r = relu(%d) : f32[256,1]\n"
                    "  return %r\n}\n"
                    "constants { @w = [-3] : i8[1,1] q(0.5,0) }\n" },
          N_PARAMETERS * N_PARAMETERS, false);
}

/* --- classes QT and QS --- */

Test(quant_passes, GLW_Q1_other_is_rescaled)
{
    holds(&(Claim){ "optimize-quantization", 0, 1, 2, 1,
                    "graph @f(%x: $a[256]) {\n"
                    "  %d = dequantize_linear(%x) : f32[256]\n"
                    "  %q = quantize_linear(%d) : $b[256]\n"
                    "  return %q\n}\n" },
          N_PARAMETERS * N_PARAMETERS, false);
}

Test(quant_passes, GLW_Q3_N20_rescale_of_rescale)
{
    holds(&(Claim){ "optimize-quantization", 0, 1, 3, 1,
                    "graph @f(%x: $a[256]) {\n"
                    "  %r = rescale_quantized(%x) : $b[256]\n"
                    "  %s = rescale_quantized(%r) : $c[256]\n"
                    "  return %s\n}\n" },
          100, true);
}

Test(quant_passes, N20_per_axis)
{
    holds(&(Claim){ "optimize-quantization", 0, 1, 2, 1,
                    "graph @f(%x: $a[2,256]) {\n"
                    "  %r = rescale_quantized(%x) : i8[2,256] q(axis=0,[0.1,0.2],[3,-128])\n"
                    "  %s = rescale_quantized(%r) : $b[2,256]\n"
                    "  %t = rescale_quantized(%r) : u8[2,256] q(axis=0,[0.3,0.1],[3,128])\n"
                    "  return %s, %t\n}\n" },
          5, true);
}

Test(quant_passes, concat_of_dequantized)
{
    holds(&(Claim){ "optimize-concat-quantization", 0, 1, 3, 3,
                    "graph @f(%x: $a[256], %y: $b[256]) {\n"
                    "  %d = dequantize_linear(%x) : f32[256]\n"
                    "  %e = dequantize_linear(%y) : f32[256]\n"
                    "  %c = concat(%d, %e) : f32[512]\n"
                    "  %q = quantize_linear(%c) : $c[512]\n"
                    "  return %q\n}\n" },
          100, false);
}

Test(quant_passes, GLW_Q6_GLW_Q9_combine_up)
{
    const uint32_t flag = KILN_FLAG(quant_lossy) | KILN_FLAG(quant_param_changes);
    holds(&(Claim){ "combine-rescale-up", flag, 1, 4, 23,
                    "graph @f(%x: $a[256,1], %y: $b[16]) {\n"
                    "  %a = add(%x, %y) : $c[256,16]\n"
                    "  %ra = rescale_quantized(%a) : $d[256,16]\n"
                    "  %s = sub(%x, %y) : $c[256,16]\n"
                    "  %rs = rescale_quantized(%s) : $d[256,16]\n"
                    "  %n = min(%x, %y) : $c[256,16]\n"
                    "  %rn = rescale_quantized(%n) : $d[256,16]\n"
                    "  %m = max(%x, %y) : $c[256,16]\n"
                    "  %rm = rescale_quantized(%m) : $d[256,16]\n"
                    "  return %ra, %rs, %rn, %rm\n}\n" },
          50, true);
    holds(&(Claim){ "combine-rescale-up", flag, 1, 4, 97,
                    "graph @f(%x: $a[256,1], %y: $b[256]) {\n"
                    "  %m = mul(%x, %y) : $c[256,256]\n"
                    "  %rm = rescale_quantized(%m) : $d[256,256]\n"
                    "  return %rm\n}\n" },
          10, true);
    holds(&(Claim){ "combine-rescale-up", flag, 1, 4, 97,
                    "graph @f(%x: $a[256,1], %y: $b[256]) {\n"
                    "  %m = div(%x, %y) : $c[256,256]\n"
                    "  %rm = rescale_quantized(%m) : $d[256,256]\n"
                    "  return %rm\n}\n" },
          10, true);
    holds(&(Claim){ "combine-rescale-up", flag, 1, 3, 1,
                    "graph @f(%x: f32[4000], %y: $c[256]) {\n"
                    "  %q = quantize_linear(%x) : $a[4000]\n"
                    "  %r = rescale_quantized(%q) : $b[4000]\n"
                    "  %e = relu(%y) : $a[256]\n"
                    "  %re = rescale_quantized(%e) : $b[256]\n"
                    "  return %r, %re\n}\n" },
          100, true);
    holds(&(Claim){ "combine-rescale-up", flag, 1, 3, 1,
                    "graph @f(%x: $a[256,1]) {\n"
                    "  %w = const @w : i8[1,3] q(0.25,0)\n"
                    "  %m = matmul(%x, %w) : $b[256,3]\n"
                    "  %rm = rescale_quantized(%m) : $c[256,3]\n"
                    "  return %rm\n}\n"
                    "constants { @w = [5, -3, 1] : i8[1,3] q(0.25,0) }\n" },
          100, true);
}

Test(quant_passes, GLW_Q7_combine_down)
{
    holds(&(Claim){ "combine-rescale-down", KILN_FLAG(quant_lossy), 1, 4, 23,
                    "graph @f(%x: $a[256,1], %y: $b[16]) {\n"
                    "  %r = rescale_quantized(%x) : $c[256,1]\n"
                    "  %a = add(%r, %y) : $d[256,16]\n"
                    "  %s = sub(%y, %r) : $d[256,16]\n"
                    "  %n = min(%r, %y) : $d[256,16]\n"
                    "  %m = max(%y, %r) : $d[256,16]\n"
                    "  %e = relu(%r) : $d[256,1]\n"
                    "  return %a, %s, %n, %m, %e\n}\n" },
          50, true);
    holds_of_rule(&(Claim){ "combine-rescale-down", KILN_FLAG(quant_lossy), 1, 4, 31,
                            "graph @f(%x: $a[256,1], %y: $b[256]) {\n"
                            "  %c = const @c : i8[] q(0.5,0)\n"
                            "  %r = rescale_quantized(%x) : $c[256,1]\n"
                            "  %m = mul(%r, %y) : $d[256,256]\n"
                            "  %d = div(%r, %c) : $d[256,1]\n"
                            "  return %m, %d\n}\n"
                            "constants { @c = [-3] : i8[] q(0.5,0) }\n" },
                  "rescale-into-arithmetic", 10, true);
    holds(&(Claim){ "combine-rescale-down", KILN_FLAG(quant_lossy), 1, 4, 31,
                    "graph @f(%x: $a[256,1], %y: $b[256]) {\n"
                    "  %r = rescale_quantized(%x) : $c[256,1]\n"
                    "  %s = rescale_quantized(%y) : $c[256]\n"
                    "  %m = add(%r, %s) : $d[256,256]\n"
                    "  return %m\n}\n" },
          10, true);
}

Test(quant_passes, average_pools_take_rescales)
{
    holds(&(Claim){ "sink-rescale", KILN_FLAG(quant_lossy), 1, 3, 1,
                    "graph @f(%x: $a[1,1,16,16]) {\n"
                    "  %r = rescale_quantized(%x) : $b[1,1,16,16]\n"
                    "  %p = average_pool(%r) {kernel_shape=[2,3], pads=[1,2,0,1]} : $c[1,1,16,17]\n"
                    "  return %p\n}\n" },
          100, true);
}

Test(quant_passes, narrower_types_for_clips)
{
    const uint32_t flags = KILN_FLAG(quant_lossy) | KILN_FLAG(quant_param_changes);
    holds(&(Claim){ "optimize-quantize-clip", flags, 1, 1, 1,
                    "graph @f(%x: f32[5000]) {\n"
                    "  %lo = const @lo : f32[]\n"
                    "  %hi = const @hi : f32[]\n"
                    "  %c = clip(%x, %lo, %hi) : f32[5000]\n"
                    "  %q = quantize_linear(%c) : $a[5000]\n"
                    "  return %q\n}\n"
                    "constants {\n  @lo = [-1.23] : f32[]\n  @hi = [3.45] : f32[]\n}\n" },
          N_PARAMETERS, false);
}

Test(quant_passes, f16_between_is_less_than_a_step)
{
    holds(&(Claim){ "out-conversions", KILN_FLAG(quant_lossy), 1, 1, 1,
                    "graph @f(%x: f32[5000]) {\n"
                    "  %h = cast(%x) {to=f16} : f16[5000]\n"
                    "  %q = quantize_linear(%h) : $a[5000]\n"
                    "  return %q\n}\n" },
          N_PARAMETERS, false);
}

Test(quant_passes, activations_of_stored_integers)
{
    static const char *const functions[] = {
        "swish", "hard_swish", "sigmoid", "hard_sigmoid", "tanh",     "gelu", "mish",
        "elu",   "celu",       "selu",    "softplus",     "softsign", "relu", "leaky_relu",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(functions); i++) {
        g_autofree char *text = g_strdup_printf("graph @f(%%x: $a[256]) {\n"
                                                "  %%d = dequantize_linear(%%x) : f32[256]\n"
                                                "  %%s = %s(%%d) : f32[256]\n"
                                                "  %%q = quantize_linear(%%s) : $b[256]\n"
                                                "  return %%q\n}\n",
                                                functions[i]);
        holds(&(Claim){ "quantize-swish", 0, 1, 2, 1, text }, N_PARAMETERS * N_PARAMETERS, false);
    }
}

/* --- classes --- */

/* What leaves a step out runs under `quant-lossy` alone. */
Test(quant_passes, rules_of_class_qs_need_the_flag)
{
    int n_qs = 0;
    for (uint32_t i = 0; i < kiln_pass_count(); i++) {
        const KilnPassInfo *pass = kiln_pass_at(i);
        const KilnRule *rules = pass->rules ? pass->rules->rules : NULL;
        uint32_t n = pass->rules ? pass->rules->n : 0;
        KilnNumerics widest = KILN_NUMERICS_E;
        for (uint32_t k = 0; k < n; k++) {
            widest = MAX(widest, rules[k].numerics);
            n_qs += rules[k].numerics == KILN_NUMERICS_QS;
            cr_expect(rules[k].numerics != KILN_NUMERICS_QS ||
                          rules[k].flags & KILN_FLAG(quant_lossy),
                      "%s/%s", pass->id, rules[k].name);
        }
        cr_expect(pass->numerics < KILN_NUMERICS_QT || !rules || widest == pass->numerics, "%s",
                  pass->id);
        cr_expect(!rules || kiln_pass_numerics(pass, 0) <= KILN_NUMERICS_QT, "%s", pass->id);
    }
    cr_expect_geq(n_qs, 12);
}
