/* SPDX-License-Identifier: Apache-2.0 */
/* What `--check` makes of a step that grows on its way to the results, and of what is no step. */
#include "passes/manager/cut_points.h"

#include "backends/ref/ref.h"
#include "passes/context/options.h"
#include "passes/manager/manager.h"
#include "passes/manager/results.h"
#include "passes/pass.h"
#include "passes/pipeline/pipeline.h"

#include <criterion/criterion.h>
#include <string.h>

/* A quantization of a product by a factor that is given, and a rescale that makes ten steps of one.
 * What the product and the stored value are called is given, too. */
static const char text[] = "graph @f(%%x: f32[64]) {\n"
                           "  %%by = const @by : f32[]\n"
                           "  %%%s = mul(%%x, %%by) : f32[64]\n"
                           "  %%%s = quantize_linear(%%%s) : i8[64] q(0.05,0)\n"
                           "  %%g = rescale_quantized(%%%s) : i8[64] q(0.005,0)\n"
                           "  %%y = rescale_quantized(%%g) : i8[64] q(0.05,0)\n"
                           "  return %%g, %%y\n"
                           "}\n"
                           "constants { @by = splat(%s) : f32[] }\n";

static KilnModule *
module_of(const char *product, const char *stored, const char *factor)
{
    GError *error = NULL;
    g_autofree char *source = g_strdup_printf(text, product, stored, product, stored, factor);
    KilnModule *module = kiln_module_parse(source, strlen(source), "case.kiln", &error);
    cr_assert(module, "%s", error ? error->message : "");
    return module;
}

/* True where @after may stand for @before. */
static bool
stands_for_module(const KilnModule *before, const KilnModule *after, KilnNumerics numerics,
                  bool cut)
{
    const KilnFunction *function = kiln_module_entry(after);
    GError *error = NULL;
    KilnRecord *was = kiln_record_graph(kiln_module_entry(before), kiln_ref_target(), NULL, &error);
    KilnRecord *is = was ? kiln_record_graph(function, kiln_ref_target(), NULL, &error) : NULL;
    cr_assert(is, "%s", error ? error->message : "");
    bool good = cut ? kiln_record_compare_cut(was, function, kiln_ref_target(), numerics, &error)
                    : kiln_results_compare(was->results, is->results, numerics, &error);
    cr_expect(good || g_error_matches(error, KILN_ERROR, KILN_ERROR_MISMATCH));
    g_clear_error(&error);
    kiln_record_free(was);
    kiln_record_free(is);
    return good;
}

/* True where @after may stand for a function of %m, %q and 1. */
static bool
stands_for(const KilnModule *after, KilnNumerics numerics, bool cut)
{
    g_autoptr(KilnModule) before = module_of("m", "q", "1");
    return stands_for_module(before, after, numerics, cut);
}

/* True where such a function may stand for one of %m, %q and 1. */
static bool
fits(const char *product, const char *stored, const char *factor, KilnNumerics numerics, bool cut)
{
    g_autoptr(KilnModule) after = module_of(product, stored, factor);
    return stands_for(after, numerics, cut);
}

static void
make_up(KilnModule *module, const char *name)
{
    KilnValue *value = kiln_function_find_value(kiln_module_entry(module), name);
    cr_assert_not_null(value);
    value->made_up = true;
}

/* Like fits() with a cut. The stored value has another name, which is derived. */
static bool
fits_derived(const char *factor, KilnNumerics numerics)
{
    g_autoptr(KilnModule) after = module_of("p", "r", factor);
    make_up(after, "r");
    return stands_for(after, numerics, true);
}

Test(cut_points, a_step_that_grows_is_one_step)
{
    cr_expect_not(fits("p", "q", "1.01", KILN_NUMERICS_QS, false),
                  "the results are ten steps apart");
    cr_expect(fits("p", "q", "1.01", KILN_NUMERICS_QS, true));
}

/* Each iteration of a loop halves the values. */
static KilnModule *
loop_of(const char *product, const char *factor)
{
    static const char loop[] =
        "graph @f(%%x: f32[64]) {\n"
        "  %%trips = const @trips : i64[]\n"
        "  %%by = const @by : f32[]\n"
        "  %%half = const @half : f32[]\n"
        "  %%y, %%all = loop(%%trips, _, %%x) body(%%i: i64[], %%go: bool[], %%a: f32[64]) {\n"
        "    %%%s = mul(%%a, %%by) : f32[64]\n"
        "    %%q = quantize_linear(%%%s) : i8[64] q(0.05,0)\n"
        "    %%g = rescale_quantized(%%q) : i8[64] q(0.005,0)\n"
        "    %%h = dequantize_linear(%%g) : f32[64]\n"
        "    %%b = mul(%%h, %%half) : f32[64]\n"
        "    return %%go, %%b, %%g\n"
        "  } : f32[64], i8[?,64] q(0.005,0)\n"
        "  return %%y, %%all\n"
        "}\n"
        "constants {\n"
        "  @trips = [3] : i64[]\n  @by = splat(%s) : f32[]\n  @half = splat(0.5) : f32[]\n"
        "}\n";
    GError *error = NULL;
    g_autofree char *source = g_strdup_printf(loop, product, product, factor);
    KilnModule *module = kiln_module_parse(source, strlen(source), "loop.kiln", &error);
    cr_assert(module, "%s", error ? error->message : "");
    return module;
}

/* Cuts are at the values of the same iteration. */
Test(cut_points, steps_in_a_loop_are_those_of_an_iteration)
{
    g_autoptr(KilnModule) before = loop_of("m", "1");
    g_autoptr(KilnModule) near_by = loop_of("p", "1.01");
    g_autoptr(KilnModule) away = loop_of("p", "1.2");
    cr_expect_not(stands_for_module(before, near_by, KILN_NUMERICS_QS, false));
    cr_expect(stands_for_module(before, near_by, KILN_NUMERICS_QS, true));
    cr_expect_not(stands_for_module(before, away, KILN_NUMERICS_QS, true));
}

Test(cut_points, steps_of_many_elements_are_no_ties)
{
    cr_expect_not(fits("p", "q", "1.01", KILN_NUMERICS_QT, true));
    cr_expect(fits("p", "q", "1.0000001", KILN_NUMERICS_QT, true));
}

Test(cut_points, what_is_out_of_its_bound_reaches_the_results)
{
    cr_expect_not(fits("p", "q", "1.2", KILN_NUMERICS_QS, true));
    cr_expect_not(fits("p", "q", "1.01", KILN_NUMERICS_U, true), "class U has no steps");
    cr_expect_not(fits("m", "q", "1.01", KILN_NUMERICS_QS, true), "nor has what is not quantized");
}

Test(cut_points, what_has_another_name_is_not_cut)
{
    cr_expect_not(fits("p", "r", "1.01", KILN_NUMERICS_QS, true));
    cr_expect(fits("p", "r", "1", KILN_NUMERICS_QS, true));
}

Test(cut_points, a_reader_tells_what_a_derived_name_stands_for)
{
    cr_expect(fits_derived("1.01", KILN_NUMERICS_QS), "all are one step off");
    cr_expect(fits_derived("1.0000001", KILN_NUMERICS_QT));
    cr_expect_not(fits_derived("1.01", KILN_NUMERICS_QT), "these are no ties");
    cr_expect_not(fits_derived("1.2", KILN_NUMERICS_QS), "these are many steps");
}

/* All elements of %b are 255 * 0.0627451 = 127.5 * 0.1254902: ties, each of which is rounded down
 * as a real and up as a rescale. %q has a derived name, so its replacement gets another one. */
Test(cut_points, copies_of_one_tie_are_ties)
{
    static const char joined[] = "graph @f(%a: i8[64] q(0.1254902,-128)) {\n"
                                 "  %b = const @b : i8[64] q(0.0627451,-128)\n"
                                 "  %c = dequantize_linear(%a) : f32[64]\n"
                                 "  %d = dequantize_linear(%b) : f32[64]\n"
                                 "  %e = concat(%c, %d) {axis=0} : f32[128]\n"
                                 "  %q = quantize_linear(%e) : i8[128] q(0.1254902,-128)\n"
                                 "  %y = dequantize_linear(%q) : f32[128]\n"
                                 "  return %y\n"
                                 "}\n"
                                 "constants { @b = splat(127) : i8[64] q(0.0627451,-128) }\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = kiln_module_parse(joined, strlen(joined), "joined.kiln", &error);
    cr_assert(module, "%s", error ? error->message : "");
    make_up(module, "q");
    g_autoptr(KilnPassPipeline) pipeline =
        kiln_pass_pipeline_parse_inline("optimize-concat-quantization", &error);
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.check_numerics = true;
    options.check_target = kiln_ref_target();
    cr_expect(kiln_pipeline_run_graph(pipeline, module, &options, NULL, &error), "%s",
              error ? error->message : "");
    cr_expect_not_null(kiln_function_find_value(kiln_module_entry(module), "concat"));
}
