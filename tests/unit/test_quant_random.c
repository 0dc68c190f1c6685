/* SPDX-License-Identifier: Apache-2.0 */
/* Random quantized graphs: passes of class E leave every bit, all passes together and under all
 * flags leave graphs that the verifier accepts, that are final after a few rounds, and that the
 * reference has kernels for. */
#include "backends/ref/ref.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/manager.h"
#include "passes/manager/results.h"
#include "passes/pass.h"
#include "passes/pipeline/pipeline.h"
#include "tests/random/random_graph.h"

#include <criterion/criterion.h>
#include <string.h>

enum {
    GRAPHS = 200
};

/* --- properties --- */

/* True where a pass changed something, other than by what was dead. */
static bool
run(const char *passes, uint32_t flags, KilnModule *module, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_parse_inline(passes, &error);
    cr_assert(pipeline, "%s", error ? error->message : "");
    pipeline->flags = flags;
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = kiln_ref_target();
    options.check_changed = true;
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    cr_assert(kiln_pipeline_run_graph(pipeline, module, &options, report, &error), "%s: %s\n%s",
              passes, error ? error->message : "", text);
    bool changed = false;
    for (guint i = 0; i < report->passes->len; i++) {
        const KilnPassStats *stats = g_ptr_array_index(report->passes, i);
        changed |= stats->changed > 0 && strcmp(stats->id, "dce") != 0;
    }
    return changed;
}

static KilnResults *
results(const KilnModule *module, const char *text)
{
    g_autoptr(GError) error = NULL;
    KilnResults *found =
        kiln_results_of_graph(kiln_module_entry(module), kiln_ref_target(), NULL, &error);
    cr_assert(found, "%s\n%s", error ? error->message : "", text);
    return found;
}

Test(quant_random, exact_passes_leave_every_bit)
{
    static const char *const passes[] = {
        "quantize-constants",  "sink-conversions{narrowing=true,tanh=true}",
        "rescale-through-max", "sink-concat-below-quantize",
        "remove-max-splat",    "remove-identity-relu,remove-identity-clip",
        "quant-fc-float-relu", "rescale-through-max{when=pays}",
    };
    uint32_t changed = 0;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        g_autofree char *text = random_quantized_text(seed);
        g_autoptr(KilnModule) module = random_quantized_graph(seed);
        g_autoptr(KilnResults) before = results(module, text);
        for (size_t i = 0; i < G_N_ELEMENTS(passes); i++) {
            g_autoptr(KilnModule) copy = kiln_module_clone(module);
            g_autoptr(GError) error = NULL;
            if (!run(passes[i], 0, copy, text))
                continue;
            changed++;
            cr_assert_not(run(passes[i], 0, copy, text), "%s: again\n%s", passes[i], text);
            g_autoptr(KilnResults) after = results(copy, text);
            cr_assert(kiln_results_compare(before, after, KILN_NUMERICS_E, &error), "%s: %s\n%s",
                      passes[i], error ? error->message : "", text);
        }
    }
    cr_expect_gt(changed, GRAPHS / 4, "%u", changed);
}

Test(quant_random, passes_together_come_to_an_end)
{
    static const char all[] =
        "type-quantization,quantize-constants,merge-qdq,optimize-quantization,optimize-concat-"
        "quantization,"
        "optimize-quantize-clip,quantize-swish,quant-fc-float-relu,remove-identity-relu,"
        "remove-identity-clip,remove-max-splat,rescale-through-max{when=pays},sink-rescale,"
        "combine-rescale-up,combine-rescale-down,optimize-quantization,sink-conversions,"
        "sink-concat-below-quantize,out-conversions,replace-zero-scale,unary-to-lut";
    const uint32_t flags[] = { 0, KILN_FLAG(quant_param_changes),
                               KILN_FLAG(quant_param_changes) | KILN_FLAG(quant_lossy) };
    uint32_t changed = 0;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        g_autofree char *text = random_quantized_text(seed);
        for (size_t i = 0; i < G_N_ELEMENTS(flags); i++) {
            g_autoptr(KilnModule) module = random_quantized_graph(seed);
            int rounds = 0;
            while (run(all, flags[i], module, text))
                cr_assert_lt(++rounds, 20, "no end\n%s", text);
            changed += rounds > 0;
            kiln_results_free(results(module, text));
        }
    }
    cr_expect_gt(changed, 2 * GRAPHS);
}
